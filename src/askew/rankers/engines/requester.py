"""Send many queries to one engine, in batches and a limited number of threads, and retry failed requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from askew.core.errors import AskewError
from askew.plugins.pace import RateLimit, back_off
from askew.rankers.engines.client import Answer, Engine, EngineError
from askew.rankers.engines.settings import EngineSettings

# Called in the caller's thread with the positions of queries and the answer of each. Returns whether to continue.
Take = Callable[[Sequence[int], Sequence[Answer]], bool]


class RequestsEnded(Exception):
    """The search was stopped while a request waited for its turn."""


class Requester:
    """Sends queries to an engine."""

    def __init__(self, engine: Engine, settings: EngineSettings) -> None:
        self._engine, self._settings = engine, settings
        per_second = settings.per_second
        self._pace = RateLimit(None if per_second is None else 60 * per_second)
        self.requests = 0
        self._lock = threading.Lock()

    def send(self, queries: Sequence[str], k: int, take: Take) -> None:
        """Send queries until all are answered or ``take`` returns False. Answers arrive in any order.

        If it stops early or a request fails, the requests that were sent are still awaited and passed to ``take``, so
        that no answer is lost.
        """
        size = self._settings.batch_size or int(getattr(self._engine, "batch_size", 1))
        waiting = deque(range(start, min(start + size, len(queries))) for start in range(0, len(queries), size))
        most = min(self._settings.concurrency, getattr(self._engine, "most_threads", None) or len(waiting))
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
                # Also on an interrupt: cancel waiting requests, and wait for those that were sent.
                stop.set()
                _take_the_rest(running, take)

    def _answered(self, batch: Sequence[str], k: int, stop: threading.Event) -> Sequence[Answer]:
        """The answers of one batch. Only queries with transient errors are sent again."""
        answers: dict[int, Answer] = {}
        for attempt in range(1, self._settings.attempts + 1):
            left = [place for place in range(len(batch)) if not _is_settled(answers.get(place))]
            self._wait_for_turn(stop)
            try:
                found = self._once([batch[place] for place in left], k)
            except EngineError as error:
                if not error.transient or attempt == self._settings.attempts:
                    raise
                self._rest(error, attempt, batch, stop)
                continue
            answers.update(zip(left, found, strict=True))
            failed = [one for one in found if not _is_settled(one)]
            if not failed or attempt == self._settings.attempts:
                break
            assert isinstance(failed[0], EngineError), "expected an EngineError as the answer of a failed query"
            self._rest(failed[0], attempt, batch, stop)
        return [answers[place] for place in range(len(batch))]

    def _once(self, batch: Sequence[str], k: int) -> Sequence[Answer]:
        with self._lock:
            self.requests += 1
        try:
            found = self._engine.find(batch, k)
        except AskewError:
            raise
        except Exception as error:
            # The message may quote the query, so it is not shown. The original exception is kept as the cause.
            raise EngineError(f"engine {self._engine.id}: the request failed with {type(error).__name__}") from error
        if len(found) != len(batch):
            raise EngineError(
                f"engine {self._engine.id}: expected {len(batch)} answers, one for each query, found {len(found)}"
            )
        return found

    def _wait_for_turn(self, stop: threading.Event) -> None:
        _sleep(self._pace.reserve(), stop)
        while (held := self._pace.held()) > 0:
            _sleep(held, stop)

    def _rest(self, error: EngineError, attempt: int, batch: Sequence[str], stop: threading.Event) -> None:
        most, wanted = self._settings.max_wait_s, error.retry_after
        if wanted is not None and wanted > most:
            raise EngineError(f"{error}; the engine asks to wait {wanted:g} seconds, but max_wait_s= is {most:g}")
        if wanted:
            self._pace.hold(wanted)
        _sleep(back_off(self._settings.backoff_s, most, attempt, 0, batch[0]), stop)


def _is_settled(answer: Answer | None) -> bool:
    return answer is not None and not (isinstance(answer, EngineError) and answer.transient)


def _sleep(seconds: float, stop: threading.Event) -> None:
    if stop.wait(seconds) if seconds > 0 else stop.is_set():
        raise RequestsEnded


def _take_the_rest(running: dict[Future[Sequence[Answer]], range], take: Take) -> None:
    """Wait for requests that were already sent, and take their answers."""
    wait(running)
    for future, places in running.items():
        if future.exception() is None:
            take(places, future.result())
