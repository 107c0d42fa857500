"""Concurrent requests with a bounded number of threads. Cached answers are read without a request."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from askew.core.errors import DataError
from askew.plugins.pace import RateLimit
from askew.reformulators.llm.cache import AnswerCache, Damaged
from askew.reformulators.llm.client import ChatClient, Endpoint, RequestsStopped
from askew.reformulators.llm.usage import Account
from askew.reformulators.llm.wire import Completion, Trouble


@dataclass(frozen=True)
class Request:
    """One request. ``key`` is the fingerprint of its content; ``query_id`` is used in error messages."""

    key: str
    body: dict[str, Any]
    query_id: str


class Asker:
    """Gets an answer, or the reason of the failure, for each of many requests."""

    def __init__(
        self, endpoint: Endpoint, pace: RateLimit, account: Account, cache: AnswerCache | None,
        strict: bool = False, give_up_after: int = 0,
    ) -> None:  # fmt: skip
        self._endpoint, self._pace, self._account, self._cache = endpoint, pace, account, cache
        self._strict, self._give_up_after = strict, give_up_after
        self._lock = threading.Lock()
        self._failed_in_a_row = 0

    def answers(self, requests: Sequence[Request]) -> list[Completion | Trouble]:
        """Return an answer or a ``Trouble`` for each request, in order. Identical requests are sent once."""
        if not requests:
            return []
        stop, broken = threading.Event(), list[BaseException]()
        workers = min(self._endpoint.concurrency, len(requests))
        with (
            ChatClient(self._endpoint, self._pace, self._account, stop) as client,
            ThreadPoolExecutor(workers, "askew-llm") as pool,
        ):
            once = {request.key: request for request in requests}
            work = partial(self._or_stop_all, client, stop, broken)
            asked = {key: pool.submit(work, request) for key, request in once.items()}
            try:
                wait(asked.values(), return_when=FIRST_EXCEPTION)
            finally:
                # Also when the user interrupts: requests that wait for their turn or for a retry are canceled.
                if broken or not all(future.done() for future in asked.values()):
                    stop.set()
                    pool.shutdown(wait=False, cancel_futures=True)
        if broken:
            raise broken[0]
        return [asked[request.key].result() for request in requests]

    def _or_stop_all(
        self, client: ChatClient, stop: threading.Event, broken: list[BaseException], request: Request
    ) -> Completion | Trouble:
        try:
            return self._one(client, request)
        except RequestsStopped:
            raise
        except BaseException as error:
            broken.append(error)
            stop.set()
            raise

    def _one(self, client: ChatClient, request: Request) -> Completion | Trouble:
        known = self._from_cache(request.key)
        if known is not None:
            return known
        try:
            answer = client.ask(request.body, request.key)
        except Trouble as trouble:
            self._note_failure(trouble, request)
            return trouble
        with self._lock:
            self._failed_in_a_row = 0
        self._account.add(prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens)
        if self._cache is not None:
            self._cache.write(request.key, request.body, answer)
        return answer

    def _from_cache(self, key: str) -> Completion | None:
        if self._cache is None:
            return None
        try:
            found = self._cache.read(key)
        except Damaged:
            self._account.add(cache_damaged=1)
            return None
        self._account.add(cache_hits=int(found is not None))
        return found

    def _note_failure(self, trouble: Trouble, request: Request) -> None:
        """Count a failure. It is an error if ``strict`` is set or if too many requests in a row have failed."""
        self._account.add(failures=1)
        if self._strict:
            raise DataError(
                f"llm: no answer for the query {request.query_id!r}: {trouble.reason} (attempts allowed: "
                f"{self._endpoint.attempts}). To count queries without an answer and continue, set on_failure='count'"
            )
        with self._lock:
            self._failed_in_a_row = self._failed_in_a_row + 1 if trouble.again else 0
            row = self._failed_in_a_row
        if self._give_up_after and row >= self._give_up_after:
            raise DataError(
                f"llm: {row} consecutive queries have failed; the last error is: {trouble.reason}. The endpoint seems "
                "to be down. Run the same command later: cached answers are not requested again. To allow more "
                "consecutive failures, set the parameter 'give_up_after' to a higher number"
            )
