"""Try reformulations of the worst queries on the audited engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pyarrow as pa

from askew.app.audit.engine import AuditedEngine, Progress, tell
from askew.app.audit.measures import AuditMeasures, EngineScores, measure_lines, without_judgements
from askew.app.audit.settings import AuditSettings
from askew.app.audit.worst import WorstQuery
from askew.app.scoring.universe import QrelsLike, as_judgements
from askew.app.search.candidates import default_methods
from askew.app.search.reformulate import make_filter, make_reformulator, reformulate
from askew.app.search.suggest import Suggestion, best_of
from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.outcome import Outcome, outcome_of, verdict
from askew.filters.equivalence import EquivalenceFilter, chosen_model

_EQUIVALENCE = "equivalence"
_LOSES_NOTHING = (Outcome.BETTER_LESS.value, Outcome.SAME_LESS.value)


@dataclass(frozen=True)
class Tried:
    """A reformulation, and how it changes the results of the engine.

    ``same`` is the probability that the reformulation asks for the same thing as the original query. ``kept`` is the
    share of the original query's top results that the reformulation also retrieves. ``lean`` and ``effectiveness`` are
    the values of the original query and of the reformulation. ``lean_verdict`` is less, same or more. ``outcome`` is
    None if the query has no judgements. ``suggested`` is true for at most one reformulation of a query.
    """

    query_id: str
    text: str
    method: str
    same: float
    natural: float
    lean: tuple[float, float | None]
    effectiveness: tuple[float | None, float | None]
    kept: float
    lean_verdict: str | None
    outcome: str | None
    gain: float | None
    suggested: bool = False


@dataclass(frozen=True)
class Reformulations:
    """The tried reformulations, the number of dropped candidates by reason, and the results of the suggested ones."""

    tried: tuple[Tried, ...] = ()
    methods: tuple[str, ...] = ()
    model: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    lines: pl.DataFrame | None = None

    @property
    def suggested(self) -> list[Tried]:
        """The suggested reformulation of each query that has one."""
        return [one for one in self.tried if one.suggested]


def _strict(given: Mapping[str, Any]) -> dict[str, Any]:
    """Raise the thresholds of the neural model, because a choice by lean prefers reformulations that differ more."""
    is_neural = chosen_model(str(given.get("model", "auto"))) == "neural"
    return {**(dict.fromkeys(("same", "natural"), defaults.STRICT) if is_neural else {}), **given}


class ReformulationTrial:
    """Generates reformulations, searches them, and compares their results with those of the original queries.

    The constructor checks the names of methods and their settings, before any query is sent.
    """

    def __init__(self, settings: AuditSettings, groups: Groups | None) -> None:
        self._settings = settings
        self.names = tuple(default_methods() if settings.methods is None else settings.methods)
        own = settings.method_settings
        unknown = [name for name in own if name not in {*self.names, _EQUIVALENCE}]
        if unknown:
            raise ConfigError(
                f"method_settings=: {unknown[0]!r} is not one of the reformulators of this audit ("
                f"{', '.join(self.names)})"
            )
        self._methods = [make_reformulator({"method": name, **own.get(name, {})}, groups) for name in self.names]
        reading = next((one.method for one in self._methods if one.reads), None)
        if reading is not None:
            raise ConfigError(
                f"methods=: {reading!r} cannot be used in an audit, because it needs an index of a collection; leave "
                "it out"
            )
        self._rules = make_filter({"filter": "rules"}, groups)
        judge = make_filter({"filter": _EQUIVALENCE, **_strict(own.get(_EQUIVALENCE, {}))})
        assert isinstance(judge, EquivalenceFilter), "the filter 'equivalence' must be the one that askew ships"
        self._judge = judge

    def run(
        self, engine: AuditedEngine, worst: Sequence[WorstQuery], originals: pl.DataFrame, measures: AuditMeasures,
        qrels: QrelsLike | None, progress: Progress | None,
    ) -> Reformulations:  # fmt: skip
        """Search the best reformulations of each of the worst queries."""
        if not worst or not self._settings.tries or not self._methods:
            return Reformulations(methods=self.names)
        chosen, dropped = self._written(worst, progress)
        model = str(self._judge.settings()["model"])
        if not chosen:
            return Reformulations((), self.names, model, dropped)
        table = pa.table({"query_id": list(chosen), "text": [one.text for one, _, _ in chosen.values()]})
        lines = engine.search(table, self._settings.k, "searching reformulations", progress)
        scored = self._measured(engine, chosen, lines, measures, qrels)
        tried = self._compared(worst, originals, chosen, lines, scored, measures)
        suggested = _with_suggested(tried, self._settings)
        best = {place: one.query_id for place, one in zip(chosen, suggested, strict=True) if one.suggested}
        kept = lines.filter(pl.col("query_id").is_in(list(best))).with_columns(pl.col("query_id").replace(best))
        return Reformulations(tuple(suggested), self.names, model, dropped, kept)

    def _written(
        self, worst: Sequence[WorstQuery], progress: Progress | None
    ) -> tuple[dict[str, tuple[Suggestion, str, str]], Counter[str]]:
        """Return the best candidates by a unique name, with query and method, and counts of dropped ones by reason."""
        queries = {one.query_id: one.text for one in worst}
        rows, dropped = [], Counter[str]()
        # One query at a time, to report progress: a language model takes seconds for each query.
        for done, (query, text) in enumerate(queries.items()):
            tell(progress, done, len(queries), "reformulating")
            found, tallies = reformulate(pa.table({"query_id": [query], "text": [text]}), self._methods, [self._rules])
            rows += found.select("query_id", "text", "method").rows()
            dropped += sum((tally.rejected for tally in tallies), Counter[str]())
        tell(progress, 0, 0, "comparing meanings")
        scores = self._judge.score([queries[query] for query, _, _ in rows], [text for _, text, _ in rows])
        kept: dict[str, list[Suggestion]] = defaultdict(list)
        made_by: dict[tuple[str, str], str] = {}
        for (query, text, method), score in zip(rows, scores, strict=True):
            reason = self._judge.reason(score)
            if reason is not None:
                dropped[reason] += 1
            elif (query, text) not in made_by:
                made_by[query, text] = method
                kept[query].append(Suggestion(text, **score))
        chosen = {
            f"{place}.{number}": (one, query, made_by[query, one.text])
            for place, query in enumerate(queries)
            for number, one in enumerate(best_of(kept[query], self._settings.tries))
        }
        return chosen, dropped

    def _measured(
        self, engine: AuditedEngine, chosen: Mapping[str, tuple[Suggestion, str, str]], lines: pl.DataFrame,
        measures: AuditMeasures, qrels: QrelsLike | None,
    ) -> EngineScores | None:  # fmt: skip
        if not lines.height:
            return None
        owners = {name: query for name, (_, query, _) in chosen.items()}
        judged = None if measures.effectiveness is None else _judgements_of(qrels, owners)
        wanted = measures if judged is not None else without_judgements(measures)
        options: dict[str, Any] = {"qrels": judged, "missing": self._settings.missing}
        found = {name: chosen[name][0].text for name in lines["query_id"].unique(maintain_order=True).to_list()}
        return measure_lines(engine.id, lines, engine.texts, found, wanted, **options)

    def _compared(
        self, worst: Sequence[WorstQuery], originals: pl.DataFrame,
        chosen: Mapping[str, tuple[Suggestion, str, str]], lines: pl.DataFrame, scored: EngineScores | None,
        measures: AuditMeasures,
    ) -> list[Tried]:  # fmt: skip
        old, tops, after = {one.query_id: one for one in worst}, _tops(originals), _tops(lines)
        lean = {} if scored is None else scored.of_query(measures.lean.text)
        effect = None if measures.effectiveness is None else measures.effectiveness.text
        known = {} if scored is None or effect is None or effect not in scored.values else scored.of_query(effect)
        found = []
        for name, (one, query, method) in chosen.items():
            before = old[query].values.get(effect) if effect is not None else None
            found.append(
                _tried(
                    one, query, method, (old[query].lean, lean.get(name)), (before, known.get(name)),
                    _share_kept(tops[query], after.get(name, ())), measures,
                )
            )  # fmt: skip
        return found


def _tried(
    one: Suggestion, query: str, method: str, lean: tuple[float, float | None],
    effectiveness: tuple[float | None, float | None], kept: float, measures: AuditMeasures,
) -> Tried:  # fmt: skip
    decided = verdict(*lean, measures.lean.direction)
    gain = None if lean[1] is None else measures.lean.direction.gain(lean[0], lean[1])
    better = None
    if measures.effectiveness is not None and effectiveness[0] is not None and effectiveness[1] is not None:
        better = measures.effectiveness.direction.gain(effectiveness[0], effectiveness[1])
    outcome = outcome_of(better, gain)
    return Tried(
        query, one.text, method, one.same, one.natural, lean, effectiveness, kept,
        None if decided is None else decided.lean, None if outcome is None else outcome.value, gain,
    )  # fmt: skip


def _with_suggested(tried: Sequence[Tried], how: AuditSettings) -> list[Tried]:
    """Mark for each query the acceptable reformulation that reduces the lean most."""
    best: dict[str, int] = {}
    for place, one in enumerate(tried):
        if _is_worth_a_look(one, how) and (
            one.query_id not in best or (one.gain or 0) > (tried[best[one.query_id]].gain or 0)
        ):
            best[one.query_id] = place
    return [replace(one, suggested=best.get(one.query_id) == place) for place, one in enumerate(tried)]


def _is_worth_a_look(one: Tried, how: AuditSettings) -> bool:
    """Whether a reformulation reduces lean enough, keeps enough results, and, if judged, loses no effectiveness."""
    is_less = one.lean_verdict == "less" and (one.gain or 0.0) >= how.reduction * abs(one.lean[0])
    return is_less and one.kept >= how.agree and one.outcome in (None, *_LOSES_NOTHING)


def _tops(lines: pl.DataFrame) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for query, doc in lines.sort("query_id", "rank").select("query_id", "doc_id").iter_rows():
        found.setdefault(query, []).append(doc)
    return found


def _share_kept(old: Sequence[str], new: Sequence[str]) -> float:
    return len(set(old) & set(new)) / max(len(old), 1)


def _judgements_of(qrels: QrelsLike | None, owners: Mapping[str, str]) -> pl.DataFrame | None:
    """Return the judgements of the original queries under the names of their reformulations; None if there are none."""
    if qrels is None:
        return None
    names = pl.DataFrame({"name": list(owners), "query_id": list(owners.values())})
    found = as_judgements(qrels).lines.join(names, on="query_id", how="inner")
    return found.drop("query_id").rename({"name": "query_id"}) if found.height else None
