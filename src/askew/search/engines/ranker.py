"""Use an engine as a ranker: answers from the cache or the engine become document ordinals with decreasing scores."""

from __future__ import annotations

import inspect
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import AskewError, ConfigError, Note
from askew.core.pace import RateLimit
from askew.core.plugins import Count, NotNegative, OneOf, Positive
from askew.core.ranking import Hits
from askew.core.text import mended
from askew.search.common import check_k, one_word, query_texts
from askew.search.engines.answers import AnswerFile
from askew.search.engines.client import Answer, Engine, EngineError, Found
from askew.search.engines.wire import SecretSource

OFF = "off"


@dataclass(frozen=True)
class EngineSettings:
    """Settings that all engines share.

    ``name`` replaces the name of the engine in runs. ``snapshot`` names the state of its documents: with a new name,
    queries are sent again. ``concurrency`` requests are sent at once, at most ``per_second`` in a second, with
    ``batch_size`` queries each. A request is tried ``attempts`` times. The pause before another attempt
    is ``backoff_s`` seconds at first and doubles each time, up to ``max_wait_s`` seconds. If the engine requests a
    pause, all requests wait that long; if it requests more than ``max_wait_s`` seconds, the search stops with an error.
    ``cache`` is the file that stores answers, or "off"; it is encrypted if ``cache_key_env`` or ``cache_key_file``
    gives the location of a secret.
    ``unknown`` says whether a document that is not in the collection is an error or skipped. ``refused`` says whether a
    query that the engine refuses is an error or has an empty result. Skipped documents and refused queries are counted.
    """

    name: str | None = None
    snapshot: str | None = None
    concurrency: Count = 4
    per_second: Positive | None = None
    batch_size: Count | None = None
    attempts: Count = 5
    backoff_s: NotNegative = 0.5
    max_wait_s: NotNegative = 60.0
    cache: str | None = None
    cache_key_env: str | None = None
    cache_key_file: str | None = None
    unknown: Annotated[str, OneOf(("error", "skip"))] = "error"
    refused: Annotated[str, OneOf(("error", "empty"))] = "error"

    def answers(self, otherwise: Path | None = None) -> AnswerFile | None:
        """The cache of answers: the file in ``cache``, by default ``otherwise``; None if the cache is off."""
        secret = SecretSource("cache_key", self.cache_key_env, self.cache_key_file)
        place = Path(self.cache).expanduser() if self.cache else otherwise
        return None if self.cache == OFF or place is None else AnswerFile(place, secret)


# Settings that change how requests are sent, but not their results.
_HOW_ASKED = frozenset(one.name for one in fields(EngineSettings)) - {"name", "snapshot", "unknown", "refused"}
# Called in the caller's thread with the positions of queries and the answer of each. Returns whether to continue.
Take = Callable[[Sequence[int], Sequence[Answer]], bool]


Progress = Callable[[int, int], None]
# Part of the cache keys: a new number invalidates all cached answers.
_FORM = 1
# Scores that differ by less would be equal in a TREC run (six decimals) or as 32-bit floats.
_LEAST_STEP, _LEAST_SHARE = 2e-6, 2.0**-22


class EngineRanker:
    """Searches with a live engine.

    The order of the engine is kept: tied scores are lowered slightly, and if scores are missing or increase, the score
    is minus the rank. Without a known collection, new documents are appended to ``doc_ids``, so that ordinals stay
    valid, and ``texts`` has their texts. Blank queries are not sent and have no results. Equal queries are sent once.
    ``requests`` counts the requests that were sent.
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
        per_second = self._settings.per_second
        self._pace = RateLimit(None if per_second is None else 60 * per_second)
        self.requests = 0
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

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text."""
        check_k(k)
        if self.most is not None and k > self.most:
            raise ConfigError(f"engine {self.id}: it returns at most {self.most} documents for a query, but k is {k}")
        queries = query_texts(texts)
        wanted = list(dict.fromkeys(text for text in queries if text.strip()))
        answers = self._gather(wanted, k)
        ids: dict[str, list[str]] = {}
        scores: dict[str, list[float]] = {}
        with self._lock:
            # In the order of the queries and not of arrival, so that the result is reproducible.
            for text in wanted:
                answer = answers[text]
                if isinstance(answer, EngineError):
                    self.counts["refused"] += 1
                    answer = []
                # If a document occurs more than once, its best rank counts.
                ranked: dict[str, Found] = {}
                for found in answer:
                    ranked.setdefault(found.doc_id, found)
                self.counts["repeated"] += len(answer) - len(ranked)
                ids[text], scores[text] = list(ranked), falling([found.score for found in ranked.values()])
                for doc, found in ranked.items():
                    if found.text is not None and self.texts.setdefault(doc, found.text) != found.text:
                        self._other_texts.add(doc)
            rows = np.repeat(np.arange(len(queries)), [len(ids.get(text, [])) for text in queries])
            docs = [doc for text in queries for doc in ids.get(text, [])]
            places, there = self._ordinals(pa.array(docs, pa.string()))
        values = np.array([score for text in queries for score in scores.get(text, [])], np.float32)
        sizes = np.bincount(rows[there], minlength=len(queries)) if len(queries) else np.zeros(0)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Hits(offsets, places[there].astype(np.int32), values[there])

    def notes(self) -> list[Note]:
        """Notes on irregularities in the answers so far."""
        irregular = {
            "unknown": "{:,} documents in the answers are not in the collection and were skipped",
            "refused": "{:,} queries were refused by the engine and count as queries without results",
            "repeated": "{:,} repeated documents in the answers were removed; only the best rank of a document counts",
            "other-texts": "{:,} documents had different texts in different answers; the first text is used",
        }
        counts = {**self.counts, "other-texts": len(self._other_texts)}
        return [Note(text.format(n), code=code, n=n) for code, text in irregular.items() if (n := counts.get(code, 0))]

    def close(self) -> None:
        """Close the connections of the engine and the cache file."""
        if self._answers is not None:
            self._answers.close()
        getattr(self.engine, "close", lambda: None)()

    def _gather(self, wanted: list[str], k: int) -> dict[str, Answer]:
        file, progress = self._answers, self.progress or (lambda *_: None)
        keyed = {"form": _FORM, "k": k, "texts": not self._known, "of": self.settings()}
        # Another user may get other answers. The file has only a keyed hash of the secrets.
        if file is not None and hasattr(self.engine, "credentials"):
            keyed |= {"credentials": found} if (found := self.engine.credentials()) else {}
        keys = {} if file is None else {text: file.key(keyed, text) for text in wanted}
        cached = {} if file is None else file.read(list(keys.values()))
        answers: dict[str, Answer] = {text: cached[key] for text, key in keys.items() if key in cached}
        left = [text for text in wanted if text not in answers]
        progress(len(answers), len(wanted))

        def stops() -> EngineError | None:
            """The error that stops the search: a query failed in all attempts, or was refused (``refused='error'``)."""
            errors = [answer for answer in answers.values() if isinstance(answer, EngineError)]
            failed = [error for error in errors if error.transient]
            if failed or not errors or self._settings.refused != "error":
                return failed[0] if failed else None
            if len(errors) == len(answers):
                return errors[0]
            said = f"{errors[0]} (⟨refused=empty⟩ counts such queries as queries without results)"
            return EngineError(said, code="query-refused")

        def take(places: Sequence[int], found: Sequence[Answer]) -> bool:
            new: dict[bytes, list[Found]] = {}
            for text, answer in zip([left[place] for place in places], found, strict=True):
                if isinstance(answer, EngineError):
                    answers[text] = answer
                    continue
                for document in answer[:k]:
                    doc_id = document.doc_id
                    if not isinstance(doc_id, str) or not doc_id or mended(doc_id) != doc_id:
                        kind = type(doc_id).__name__
                        said = f"engine {self.id}: expected document ids that are non-empty Unicode texts, found {kind}"
                        raise EngineError(said, code="bad-id", kind=kind)
                checked = [
                    Found(
                        doc,
                        None if score is None else float(score),
                        None if self._known or body is None else mended(body),
                    )
                    for doc, score, body in answer[:k]
                ]
                answers[text] = checked
                if keys:
                    new[keys[text]] = checked
            if file is not None and new:
                file.write(new)
            progress(len(answers), len(wanted))
            return stops() is None

        try:
            if left:
                self._send(left, k, take)
            if (reason := stops()) is not None:
                raise reason
        except EngineError as error:
            done = sum(not isinstance(answer, EngineError) for answer in answers.values())
            kept = f", and their answers are in {file.path}: run again to continue" if file is not None and done else ""
            said = f"{error}; {done:,} of {len(wanted):,} queries were answered{kept}"
            facts: dict[str, Any] = {**error.values, "answered": done, "queries": len(wanted)}
            raise EngineError(said, code=error.code, **facts) from error.__cause__
        return answers

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
        missing = ids.filter(placed.is_null())
        if len(missing) and self._settings.unknown == "error":
            raise EngineError(
                f"engine {self.id}: {len(missing):,} documents in its answers are not in the collection (the first: "
                f"{missing[0].as_py()!r}); use the collection that the engine searches, or set ⟨unknown=skip⟩",
                code="unknown-documents",
                n=len(missing),
                first=missing[0].as_py(),
            )
        self.counts["unknown"] += len(missing)
        return placed.fill_null(-1).to_numpy(zero_copy_only=False), there

    def _send(self, queries: Sequence[str], k: int, take: Take) -> None:
        """Send queries until all are answered or ``take`` returns False. Answers arrive in any order.

        If it stops early or a request fails, the requests that were sent are still awaited and passed to ``take``, so
        that no answer is lost.
        """
        size = self._settings.batch_size or int(getattr(self.engine, "batch_size", 1))
        waiting = deque(range(start, min(start + size, len(queries))) for start in range(0, len(queries), size))
        most = min(self._settings.concurrency, getattr(self.engine, "most_threads", None) or len(waiting))
        running: dict[Future[Sequence[Answer]], range] = {}
        stop, go_on = threading.Event(), True
        with ThreadPoolExecutor(max(1, most), "askew-engine") as pool:
            try:
                while go_on and (waiting or running):
                    while waiting and len(running) < max(1, most):
                        places = waiting.popleft()
                        batch = [queries[place] for place in places]
                        running[pool.submit(self._answered, batch, k, stop)] = places
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        places = running.pop(future)
                        go_on = take(places, future.result()) and go_on
            finally:
                # Also on an interrupt: cancel waiting requests, and keep the answers to those that were sent.
                stop.set()
                for future in as_completed(running):
                    if future.exception() is None:
                        take(running[future], future.result())

    def _answered(self, batch: Sequence[str], k: int, stop: threading.Event) -> Sequence[Answer]:
        """The answers of one batch. Only queries with transient errors are sent again."""
        answers: dict[int, Answer] = {}
        left = list(range(len(batch)))
        for attempt in range(1, self._settings.attempts + 1):
            self._pace.wait(stop)
            is_last = attempt == self._settings.attempts
            try:
                answers.update(zip(left, self._once([batch[place] for place in left], k), strict=True))
            except EngineError as error:
                if not error.transient or is_last:
                    raise
                failed = error
            else:
                failures = {i: one for i, one in answers.items() if isinstance(one, EngineError) and one.transient}
                if not failures or is_last:
                    break
                left = list(failures)
                failed = failures[left[0]]
            most, wanted = self._settings.max_wait_s, failed.retry_after
            if wanted is not None and wanted > most:
                said = f"{failed}; the engine asks to wait {wanted:g} seconds, but ⟨max_wait_s⟩ is {most:g}"
                raise EngineError(said, code="wait-too-long", wanted=wanted, most=most)
            self._pace.rest(wanted, self._settings.backoff_s, most, attempt, batch[0], stop)
        return [answers[place] for place in range(len(batch))]

    def _once(self, batch: Sequence[str], k: int) -> Sequence[Answer]:
        with self._lock:
            self.requests += 1
        try:
            found = self.engine.find(batch, k)
        except AskewError:
            raise
        except Exception as error:
            # The message may quote the query, so it is not shown. The original exception is kept as the cause.
            said = f"engine {self.engine.id}: the request failed with {type(error).__name__}"
            raise EngineError(said, code="request-failed", kind=type(error).__name__) from error
        if len(found) != len(batch):
            said = f"engine {self.engine.id}: expected {len(batch)} answers, one for each query, found {len(found)}"
            raise EngineError(said, code="number-of-answers", expected=len(batch), found=len(found))
        return found


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


class EnginePlugin:
    """A factory of rankers, called with settings: ``http = EnginePlugin(HttpEngine)``.

    The parameters of the engine's constructor are its settings. Settings in the class attribute ``how_asked``, such as
    a time limit or the location of a secret, do not change results, so they are not part of the key of a build step.
    """

    def __init__(self, engine: type[Any]) -> None:
        self._engine = engine
        self.__doc__ = engine.__doc__
        self._shared = _parameters(EngineSettings)
        own = _parameters(engine)
        clash = sorted(own.keys() & (self._shared.keys() | {"index", "ranker"}))
        assert not clash, f"{engine.__name__}: rename the settings {clash}; all engines or rankers use these names"
        every = [*own.values(), *self._shared.values()]
        self.__signature__ = inspect.Signature(every, return_annotation=EngineRanker)
        self.__annotations__ = {one.name: one.annotation for one in every} | {"return": EngineRanker}

    def __call__(self, *values: Any, **settings: Any) -> EngineRanker:
        """Make a ranker with these settings."""
        given = self.__signature__.bind(*values, **settings).arguments
        shared = {name: value for name, value in given.items() if name in self._shared}
        own = {name: value for name, value in given.items() if name not in self._shared}
        return EngineRanker(self._engine(**own), EngineSettings(**shared))

    def named(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings that determine the results of the engine, in a form that may be published."""
        hidden = _HOW_ASKED | getattr(self._engine, "how_asked", frozenset())
        # Separate host and path of an address, which are published, from the parameters of the request.
        return {
            name: value.split("?", 1) if isinstance(value, str) and "://" in value and "?" in value else value
            for name, value in settings.items()
            if name not in hidden
        }


def _parameters(made: type[Any]) -> dict[str, inspect.Parameter]:
    hints = get_type_hints(made.__init__, include_extras=True)
    found = inspect.signature(made).parameters.values()
    return {
        one.name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY if one.default is not one.empty else one.kind)
        .replace(annotation=hints.get(one.name, Any))
        for one in found
    }  # fmt: skip
