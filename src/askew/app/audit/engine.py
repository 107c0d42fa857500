"""Open and search the engine of an audit, and keep its answers until the audit is complete."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.app.measure.inputs import parts_of
from askew.app.scoring.texts import DocumentSource, gather_texts
from askew.app.search.compose import make_ranker
from askew.app.search.facade import Ranker
from askew.app.search.retrieve import run_lines
from askew.core.errors import ConfigError, DataError, StageError
from askew.core.fingerprint import fingerprint
from askew.plugins.kinds import RankerPlugin
from askew.rankers.engines.callables import callable_ranker
from askew.rankers.engines.client import EngineError
from askew.rankers.engines.http import templates
from askew.rankers.engines.ranker import EngineRanker

# Called with the number of items done, the total number, and the name of the step.
Progress = Callable[[int, int, str], None]
_SQLITE = ("", "-wal", "-shm")


def tell(progress: Progress | None, done: int, total: int, label: str) -> None:
    """Report the current step, if a progress function is given."""
    if progress is not None:
        progress(done, total, label)


class AuditedEngine:
    """A ranker, and the texts of the documents that it returned."""

    def __init__(self, ranker: RankerPlugin, docs: object = None, missing: str | None = None) -> None:
        self.ranker, self.texts, self.notes = ranker, dict[str, str](), list[str]()
        self._docs, self._missing = docs, missing or "error"
        self._kept: Path | None = None

    @property
    def id(self) -> str:
        """The name of the engine in tables."""
        return self.ranker.id

    def keep_answers(self, path: Path) -> None:
        """Keep the answers in a file until ``finish``, so that a resumed audit sends no query twice."""
        if not isinstance(self.ranker, EngineRanker) or self.ranker.answers_path is not None:
            return
        self._kept = self.ranker.keep_answers(path)
        if self._kept is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        if self._kept is not None and path.exists():
            self.notes.append(
                f"the answers that an interrupted audit kept in {path} are used; delete this file to send all queries "
                "again"
            )

    def search(self, queries: pa.Table, k: int, label: str, progress: Progress | None = None) -> pl.DataFrame:
        """Search the queries and return the lines of a run; the texts of its documents are added to ``texts``."""
        if isinstance(self.ranker, EngineRanker) and progress is not None:
            self.ranker.progress = lambda done, total: progress(done, total, label)
        try:
            hits = self.ranker.search(queries["text"].combine_chunks(), k)
        except EngineError as error:
            raise StageError(f"audit, {label}: {error}") from error.__cause__
        lines = run_lines(queries["query_id"].combine_chunks(), hits, self.ranker.doc_ids)
        self._read_texts(lines["doc_id"].unique(maintain_order=True).to_list())
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

    def _read_texts(self, found: Iterable[str]) -> None:
        given = self.ranker.texts if isinstance(self.ranker, EngineRanker) else {}
        wanted = [doc for doc in found if doc not in self.texts]
        self.texts |= {doc: given[doc] for doc in wanted if doc in given}
        absent = [doc for doc in wanted if doc not in given]
        if absent and self._docs is not None:
            self.texts |= _texts_of(self._docs, absent)
        without = [doc for doc in wanted if doc not in self.texts]
        if without and self._missing == "error":
            raise DataError(
                f"engine {self.id}: {len(without):,} of {len(wanted):,} retrieved documents have no text, such as "
                f"{without[0]!r}. Give the texts with docs=, or set the field of the text in the settings of the "
                "engine (for the engine 'http', the setting 'text_at'). With missing='zero', a document without a "
                "text counts as a document that names no group"
            )


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
            "engine_settings= is only for an engine that is given by name; change the settings of the given object "
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
        return {**_read_settings(Path(rest)), "ranker": name}
    if rest and name != "callable":
        raise ConfigError(f"engine {text!r}: expected a name, NAME:SETTINGS.toml, callable:FILE.py:NAME or an address")
    if name in templates():
        raise ConfigError(
            f"engine {name!r}: this is a template of the engine 'http'; use the engine 'http' with the setting "
            f"template={name!r}"
        )
    return {"ranker": name, **({"function": rest} if rest else {})}


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"engine settings {path}: cannot be read ({why}); expected a TOML file") from None


def _texts_of(docs: object, wanted: list[str]) -> dict[str, str]:
    source = DocumentSource(parts_of(docs, None, None)[0])
    found = gather_texts(source, pa.array(wanted, pa.string()), np.ones(len(wanted), np.bool_)).to_pylist()
    return {doc: text for doc, text in zip(wanted, found, strict=True) if text is not None}
