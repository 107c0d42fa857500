"""Use an engine as a ranker: answers from the cache or the engine become document ordinals with decreasing scores."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.rankers.common import check_k, one_word, query_texts
from askew.rankers.engines.client import Answer, Engine, EngineError, Found
from askew.rankers.engines.requester import Requester
from askew.rankers.engines.settings import EngineSettings

Progress = Callable[[int, int], None]
# Part of the cache keys: a new number invalidates all cached answers.
_FORM = 1
# Scores that differ by less would be equal in a TREC run (six decimals) or as 32-bit floats.
_LEAST_STEP, _LEAST_SHARE = 2e-6, 2.0**-22


@dataclass
class _Gathered:
    """The results of a search so far: ids and scores by query, and texts by document with the number of their query."""

    keeps_texts: bool
    ids: dict[str, list[str]] = field(default_factory=dict)
    scores: dict[str, list[float]] = field(default_factory=dict)
    texts: dict[str, tuple[int, str]] = field(default_factory=dict)
    other_texts: set[str] = field(default_factory=set)
    repeated: int = 0
    refused: list[EngineError] = field(default_factory=list)
    failed: list[EngineError] = field(default_factory=list)

    def add(self, number: int, query: str, answer: Sequence[Found]) -> None:
        """Add an answer. If a document occurs more than once, its best rank counts."""
        ranked: dict[str, Found] = {}
        for one in answer:
            ranked.setdefault(one.doc_id, one)
        self.repeated += len(answer) - len(ranked)
        self.ids[query] = list(ranked)
        self.scores[query] = falling([one.score for one in ranked.values()])
        for one in ranked.values() if self.keeps_texts else ():
            if one.text is not None:
                self._keep(one.doc_id, number, one.text)

    def fail(self, query: str, error: EngineError) -> None:
        """Add a query that failed, with an empty result."""
        (self.failed if error.transient else self.refused).append(error)
        self.ids[query], self.scores[query] = [], []

    def _keep(self, doc: str, number: int, text: str) -> None:
        before = self.texts.get(doc)
        if before is not None and before[1] != text:
            self.other_texts.add(doc)
        # Answers arrive in any order. The text of the first query is kept, so that the result is reproducible.
        if before is None or number < before[0]:
            self.texts[doc] = (number, text)


class EngineRanker:
    """Searches with a live engine.

    The order of the engine is kept: tied scores are lowered slightly, and if scores are missing or increase, the score
    is minus the rank. Without a known collection, new documents are appended to ``doc_ids``, so that ordinals stay
    valid, and ``texts`` has their texts. Blank queries are not sent and have no results. Equal queries are sent once.
    """

    # The number of queries per search call, which limits memory use and allows progress reports.
    queries_at_once = 256

    def __init__(self, engine: Engine, settings: EngineSettings | None = None) -> None:
        self.engine, self._settings = engine, settings or EngineSettings()
        self.id = one_word(self._settings.name or engine.id)
        self.most: int | None = getattr(engine, "most", None)
        self.doc_ids: pa.Array = pa.array([], pa.string())
        self.texts: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.progress: Progress | None = None
        self._known = False
        self._places: dict[str, int] = {}
        self._other_texts: set[str] = set()
        self._requester = Requester(engine, self._settings)
        self._answers = self._settings.answers()
        self._lock = threading.Lock()

    def over(self, doc_ids: pa.Array) -> EngineRanker:
        """A copy of this ranker for a known collection. Ordinals refer to its ids, and texts are not kept."""
        made = EngineRanker(self.engine, self._settings)
        made._answers, made.doc_ids, made._known = self._answers, doc_ids.cast(pa.string()), True
        return made

    def keep_answers(self, otherwise: Path) -> Path | None:
        """Cache answers in this file unless the settings name another file or "off"; return the file that is used."""
        if self._answers is None and getattr(self.engine, "keeps_answers", True):
            self._answers = self._settings.answers(otherwise)
        return self.answers_path

    @property
    def answers_path(self) -> Path | None:
        """The cache file, if there is one."""
        return None if self._answers is None else self._answers.path

    def settings(self) -> Mapping[str, Any]:
        """The settings that determine the answers, without secrets."""
        return {"engine": self.engine.id, **self.engine.settings(), "snapshot": self._settings.snapshot}

    @property
    def requests(self) -> int:
        """The number of requests that were sent to the engine."""
        return self._requester.requests

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text."""
        check_k(k)
        if self.most is not None and k > self.most:
            raise ConfigError(f"engine {self.id}: it returns at most {self.most} documents for a query, but k is {k}")
        queries = query_texts(texts)
        wanted = list(dict.fromkeys(text for text in queries if text.strip()))
        found = self._gather(wanted, k)
        with self._lock:
            self._learn(found)
            return self._hits(queries, found)

    def notes(self) -> list[str]:
        """Notes on irregularities in the answers so far."""
        told = {
            "unknown": "{:,} documents in the answers are not in the collection and were skipped",
            "refused": "{:,} queries were refused by the engine and count as queries without results",
            "repeated": "{:,} repeated documents in the answers were removed; only the best rank of a document counts",
        }
        notes = [text.format(self.counts[name]) for name, text in told.items() if self.counts[name]]
        if self._other_texts:
            notes.append(
                f"{len(self._other_texts):,} documents had different texts in different answers; the first text is used"
            )
        return notes

    def close(self) -> None:
        """Close the connections of the engine and the cache file."""
        if self._answers is not None:
            self._answers.close()
        close = getattr(self.engine, "close", None)
        if close is not None:
            close()

    def _gather(self, wanted: list[str], k: int) -> _Gathered:
        """Collect the answers of queries from the cache or the engine."""
        found, file = _Gathered(keeps_texts=not self._known), self._answers
        facts = {"form": _FORM, "k": k, "texts": not self._known, "of": self.settings()}
        keys = {} if file is None else {text: file.key(facts, text) for text in wanted}
        kept = {} if file is None else file.read(list(keys.values()))
        left = []
        for number, text in enumerate(wanted):
            if keys and keys[text] in kept:
                found.add(number, text, kept[keys[text]][:k])
            else:
                left.append((number, text))
        self._tell(len(wanted) - len(left), len(wanted))

        def take(places: Sequence[int], answers: Sequence[Answer]) -> bool:
            new: dict[bytes, list[Found]] = {}
            for (number, text), answer in zip([left[place] for place in places], answers, strict=True):
                if isinstance(answer, EngineError):
                    found.fail(text, answer)
                    continue
                checked = [_checked(one, self.id, self._known) for one in answer[:k]]
                found.add(number, text, checked)
                if keys:
                    new[keys[text]] = checked
            if file is not None and new:
                file.write(new)
            self._tell(len(found.ids), len(wanted))
            return self._stops(found) is None

        try:
            if left:
                self._requester.send([text for _, text in left], k, take)
            if (reason := self._stops(found)) is not None:
                raise reason
        except EngineError as error:
            raise self._explained(error, found, len(wanted)) from error.__cause__
        return found

    def _stops(self, found: _Gathered) -> EngineError | None:
        """The error that stops the search: a query failed after all attempts, or was refused (``refused='error'``)."""
        if found.failed:
            return found.failed[0]
        if not found.refused or self._settings.refused != "error":
            return None
        if len(found.refused) == len(found.ids):
            return found.refused[0]
        return EngineError(f"{found.refused[0]} (refused='empty' counts such queries as queries without results)")

    def _explained(self, error: EngineError, found: _Gathered, total: int) -> EngineError:
        done, file = len(found.ids) - len(found.failed) - len(found.refused), self._answers
        kept = f", and their answers are in {file.path}: run again to continue" if file is not None and done else ""
        return EngineError(f"{error}; {done:,} of {total:,} queries were answered{kept}")

    def _learn(self, found: _Gathered) -> None:
        self.counts["refused"] += len(found.refused)
        self.counts["repeated"] += found.repeated
        self._other_texts |= found.other_texts
        for doc, (_, text) in found.texts.items():
            if self.texts.setdefault(doc, text) != text:
                self._other_texts.add(doc)

    def _hits(self, queries: Sequence[str], found: _Gathered) -> Hits:
        ids = [found.ids.get(text, []) for text in queries]
        scores = [found.scores.get(text, []) for text in queries]
        rows = np.repeat(np.arange(len(queries)), [len(one) for one in ids])
        flat = pa.array([doc for one in ids for doc in one], pa.string())
        values = np.array([score for one in scores for score in one], np.float32)
        places, there = self._ordinals(flat)
        sizes = np.bincount(rows[there], minlength=len(queries)) if len(queries) else np.zeros(0)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Hits(offsets, places[there].astype(np.int32), values[there])

    def _ordinals(self, ids: pa.Array) -> tuple[Any, Any]:
        """The ordinals of documents, and a mask of those in the collection."""
        if not self._known:
            new = [doc for doc in dict.fromkeys(ids.to_pylist()) if doc not in self._places]
            if new:
                self._places.update((doc, len(self.doc_ids) + i) for i, doc in enumerate(new))
                self.doc_ids = pa.concat_arrays([self.doc_ids, pa.array(new, pa.string())])
            places = np.array([self._places[doc] for doc in ids.to_pylist()], np.int64)
            return places, np.ones(len(places), np.bool_)
        placed = pc.index_in(ids, value_set=self.doc_ids)
        there = placed.is_valid().to_numpy(zero_copy_only=False)
        if not there.all():
            self._note_unknown(ids.filter(placed.is_null()))
        return placed.fill_null(-1).to_numpy(zero_copy_only=False), there

    def _note_unknown(self, missing: pa.Array) -> None:
        if self._settings.unknown == "error":
            raise EngineError(
                f"engine {self.id}: {len(missing):,} documents in its answers are not in the collection (the first: "
                f"{missing[0].as_py()!r}); use the collection that the engine searches, or set unknown='skip'"
            )
        self.counts["unknown"] += len(missing)

    def _tell(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(done, total)

    def __repr__(self) -> str:
        return f"EngineRanker({self.id!r})"


def falling(scores: Sequence[float | None]) -> list[float]:
    """Scores that decrease from rank to rank, so that the order of the engine is kept.

    Tied scores are lowered slightly. If a score is missing or increases, all scores are minus the rank.
    """
    given = [np.nan if score is None else float(score) for score in scores]
    values = np.array(given, np.float64)
    with np.errstate(over="ignore"):
        is_usable = np.isfinite(values.astype(np.float32)).all() and (np.diff(values) <= 0).all()
    if not is_usable:
        return [-float(rank) for rank in range(1, len(given) + 1)]
    for i in range(1, len(given)):
        step = max(_LEAST_STEP, abs(given[i - 1]) * _LEAST_SHARE)
        given[i] = min(given[i], given[i - 1] - step)
    return given


def _checked(found: Found, engine: str, known: bool) -> Found:
    """Check a document for the cache. Its text is dropped if the collection is known."""
    if not isinstance(found.doc_id, str) or not found.doc_id:
        raise EngineError(
            f"engine {engine}: expected document ids that are non-empty texts, found {type(found.doc_id).__name__}"
        )
    score = None if found.score is None else float(found.score)
    return Found(found.doc_id, score, None if known else found.text)
