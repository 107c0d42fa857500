"""Open and search the engine of an audit, and keep its answers until the audit is complete."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core.errors import ConfigError, DataError, StageError
from askew.core.files import fingerprint, parse_toml
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon
from askew.core.measure import Measure
from askew.core.protocols import RankerPlugin
from askew.data.collection import Collection
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.counts import DocumentSource, gather_texts
from askew.measures.measure import MeasureReport, measure, parts_of
from askew.measures.requested import MeasuresLike, comparable, is_signed, key_of, measure_texts, named_groups
from askew.measures.statistics.intervals import Mean
from askew.rewrite.facade import Ranker
from askew.search.engines.callables import callable_ranker
from askew.search.engines.client import EngineError
from askew.search.engines.http import templates
from askew.search.engines.ranker import EngineRanker
from askew.search.retrieve import make_ranker, run_lines
from askew.study.audit.settings import AuditSettings

# Choose the measures of an audit, and measure the results of the engine with them.

# Signed values of different queries can cancel out in the mean, so the absolute value is measured too.
# NFaiRR compares a run with another one, its background; with itself, it is near 1 for any engine.
_LEAN = ("ARaB(tf)", "ARaB(tf,sign=abs)", "LexiconShare")
_LEAN_OF_SEVERAL = ("AWRF", "LexiconShare")
_EFFECTIVENESS = ("nDCG", "RR")
NEITHER = "neither"
# Measures of lean also count the queries without judgements.
_UNJUDGED = "absent"


@dataclass(frozen=True)
class AuditMeasures:
    """The measures of an audit, with all their parameters.

    ``lean`` is the deciding measure: it decides which queries are worst. ``effectiveness`` shows whether a
    reformulation loses effectiveness. ``groups`` are the groups that the caller gave. ``named`` are the groups that the
    deciding measure counts; None only for the published pair of groups, for which each measure has its own word list.
    """

    asked: tuple[MeasureRequest, ...]
    lean: MeasureRequest
    effectiveness: MeasureRequest | None
    groups: Groups | None
    named: Groups | None
    lexicon: Lexicon

    @property
    def cutoff(self) -> int | None:
        """How many results the deciding measure reads."""
        return self.lean.measure.cutoff


def choose_measures(
    measures: MeasuresLike | None, groups: Groups | None, how: AuditSettings, judged: bool
) -> AuditMeasures:
    """Return the given measures, or else the default measures that can compare these groups."""
    k = how.k
    texts = measure_texts(measures)
    if texts is None:
        texts = [f"{name}@{k}" for name in _EFFECTIVENESS] if judged else []
        lean_names = _LEAN_OF_SEVERAL if groups is not None and len(groups.names) > 2 else _LEAN
        texts += comparable([f"{name}@{k}" for name in lean_names], groups)
    # The catalogue has the options of the measurement, so that signatures can be compared with those of a baseline
    # before any query is sent.
    options = {"unjudged": _UNJUDGED} | ({} if how.missing is None else {"missing": how.missing})
    catalogue = Catalogue(overrides=options, groups=groups)
    # Measures are written in canonical form, because conditions and baselines name them by their texts.
    asked = tuple(catalogue.complete([Measure.parse(text).text for text in texts]))
    for one in asked:
        one.check()
        # The value would differ from that of the full list.
        if one.measure.cutoff is None or one.measure.cutoff > k:
            raise ConfigError(
                f"⟨measures⟩: {one.text} reads more than {k} results of each query; give a lower cutoff or a larger ⟨k⟩"
            )
        if one.judged and not judged:
            raise ConfigError(f"the measure {one.text} needs judgements: give them with ⟨qrels⟩")
    lean = next((one for one in asked if key_of(one) is not None), None)
    if lean is None:
        raise ConfigError(f"⟨measures⟩: expected a measure that counts words of groups, such as ARaB(tf)@{k}")
    effectiveness = next((one for one in asked if one.judged), None)
    lexicon = catalogue.lexicons[str(lean.measure.param("lexicon"))]
    named = named_groups(lean, catalogue) if groups is None else groups
    return AuditMeasures(asked, lean, effectiveness, groups, named, lexicon)


def of_query(measured: MeasureReport, text: str) -> dict[str, float]:
    """The values of one measure by query id, without the queries for which it is not defined."""
    (run,) = measured.runs
    pairs = zip(run.query_ids, run.values[text].tolist(), strict=True)
    return {query: value for query, value in pairs if not math.isnan(value)}


@dataclass(frozen=True)
class AuditedRun:
    """The results of an engine for some queries, the texts of both, and the measures of the audit."""

    name: str
    lines: pl.DataFrame
    docs: Mapping[str, str]
    queries: Mapping[str, str]
    measures: AuditMeasures
    missing: str | None

    def without_judgements(self) -> AuditedRun:
        """Return the run with only the measures that need no judgements."""
        kept = tuple(one for one in self.measures.asked if "judgements" not in one.family.reads)
        return replace(self, measures=replace(self.measures, asked=kept, effectiveness=None))

    def measured(self, **options: Any) -> MeasureReport:
        """Measure the run; measures that are not defined for any of its queries are left out, with a note."""
        collection = Collection.open(dict(self.docs), queries=dict(self.queries))
        texts, groups = [one.text for one in self.measures.asked], self.measures.groups
        report = measure(
            {self.name: self.lines}, collection, texts, groups=groups, queries=list(self.queries), unjudged=_UNJUDGED,
            undefined="drop", **options,
        )  # fmt: skip
        lean = self.measures.lean.text
        if all(one.text != lean for one in report.asked):
            raise DataError(f"audit: {lean} is not defined for any query; give another measure in ⟨measures⟩")
        return report


def toward(one: MeasureRequest, found: Mean) -> str | None:
    """Return the group that a mean leans toward by its interval, or ``neither``; None without a sign or an interval."""
    if not is_signed(one) or found.low is None or found.high is None:
        return None
    return one.groups[0] if found.low > 0 else one.groups[1] if found.high < 0 else NEITHER


# Called with the number of items done, the total number, and the name of the step.
Progress = Callable[[int, int, str], None]
_SQLITE = ("", "-wal", "-shm")


class AuditedEngine:
    """A ranker, and the texts of the documents that it returned."""

    def __init__(self, ranker: RankerPlugin, docs: object = None, missing: str | None = None) -> None:
        self.ranker, self.texts, self.notes = ranker, dict[str, str](), list[str]()
        self._docs, self._missing = docs, missing or "error"
        self._kept: Path | None = None

    def keep_answers(self, path: Path) -> None:
        """Keep the answers in a file until ``finish``, so that a resumed audit sends no query twice."""
        if not isinstance(self.ranker, EngineRanker) or self.ranker.answers_path is not None:
            return
        self._kept = self.ranker.keep_answers(path)
        if self._kept is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self.notes.append(
                f"the answers that an interrupted audit kept in {path} are used; delete this file to send all queries "
                "again"
            )

    def search(self, queries: pa.Table, k: int, label: str, progress: Progress) -> pl.DataFrame:
        """Search the queries and return the lines of a run; the texts of its documents are added to ``texts``."""
        given: Mapping[str, str] = {}
        if isinstance(self.ranker, EngineRanker):
            self.ranker.progress = lambda done, total: progress(done, total, label)
        try:
            hits = self.ranker.search(queries["text"].combine_chunks(), k)
        except EngineError as error:
            raise StageError(f"audit, {label}: {error}") from error.__cause__
        lines = run_lines(queries["query_id"].combine_chunks(), hits, self.ranker.doc_ids)
        found = lines["doc_id"].unique(maintain_order=True).to_list()
        wanted = [doc for doc in found if doc not in self.texts]
        if isinstance(self.ranker, EngineRanker):
            given = self.ranker.texts
        self.texts |= {doc: given[doc] for doc in wanted if doc in given}
        absent = [doc for doc in wanted if doc not in given]
        if absent and self._docs is not None:
            source = DocumentSource(parts_of(self._docs, None, None)[0])
            texts = gather_texts(source, pa.array(absent, pa.string()), np.ones(len(absent), np.bool_)).to_pylist()
            self.texts |= {doc: text for doc, text in zip(absent, texts, strict=True) if text is not None}
        without = [doc for doc in wanted if doc not in self.texts]
        if without and self._missing == "error":
            raise DataError(
                f"engine {self.ranker.id}: {len(without):,} of {len(wanted):,} retrieved documents have no text, such "
                f"as {without[0]!r}. Give the texts with ⟨docs⟩, or set the field of the text in the settings of the "
                "engine (for the engine 'http', the setting 'text_at'). With ⟨missing=zero⟩, a document without a "
                "text counts as a document that names no group",
                code="no-text",
                missing=len(without),
                documents=len(wanted),
            )
        return lines

    def all_notes(self) -> list[str]:
        """The notes of this audit, and those of the engine on its answers."""
        return [*self.notes, *(self.ranker.notes() if isinstance(self.ranker, EngineRanker) else [])]

    def finish(self) -> None:
        """Close the engine, and remove the answers that were kept only for this audit."""
        if self._kept is not None:
            assert isinstance(self.ranker, EngineRanker), (
                "only an EngineRanker has a file with the answers of its engine"
            )
            self.ranker.close()
            for ending in _SQLITE:
                self._kept.with_name(self._kept.name + ending).unlink(missing_ok=True)


def open_engine(
    engine: object, settings: Mapping[str, Any] | None = None, queries: pa.Table | None = None
) -> RankerPlugin:
    """Make a ranker from a name with settings, an address, a ranker, a retriever, or any function.

    A name may be followed by a file of settings, as in ``http:engine.toml``, or for ``callable`` by the function, as
    in ``callable:search.py:find``.
    """
    if isinstance(engine, str):
        return make_ranker({**_named(engine), **(settings or {})}, queries)
    if settings:
        raise ConfigError(
            "⟨engine_settings⟩ is only for an engine that is given by name; change the settings of the given object "
            "instead"
        )
    if isinstance(engine, Ranker):
        made: RankerPlugin = engine._ranker
        return made
    return engine if isinstance(engine, RankerPlugin) else callable_ranker(engine)


def answers_place(ranker: RankerPlugin, out: str | Path | None, store: str | Path | None) -> Path | None:
    """Return the path for the answers of an incomplete audit: beside the report folder, or in the store."""
    if out is not None:
        path = Path(out)
        return path.with_name(f"{path.name}.answers")
    if store is None or "://" in str(store) or not isinstance(ranker, EngineRanker):
        return None
    return Path(store) / f"audit-{fingerprint(dict(ranker.settings()))[:12]}.answers"


def _named(text: str) -> dict[str, Any]:
    if text.startswith(("http://", "https://")):
        return {"ranker": "http", "url": text}
    name, _, rest = text.partition(":")
    if rest.endswith(".toml"):
        try:
            return {**parse_toml(Path(rest).expanduser().read_text(encoding="utf-8")), "ranker": name}
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"engine settings {rest}: cannot be read ({why}); expected a TOML file") from None
    if rest and name != "callable":
        raise ConfigError(f"engine {text!r}: expected a name, NAME:SETTINGS.toml, callable:FILE.py:NAME or an address")
    if name in templates():
        raise ConfigError(
            f"engine {name!r}: this is a template of the engine 'http'; use the engine 'http' with the setting "
            f"template={name!r}"
        )
    return {"ranker": name, **({"function": rest} if rest else {})}
