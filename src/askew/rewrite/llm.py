"""Reformulations by a language model behind any OpenAI-compatible endpoint; answers are cached on disk."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from askew.core.errors import ConfigError, DataError, StoreError
from askew.core.files import fingerprint, write_whole
from askew.core.pace import RateLimit, RequestsEnded
from askew.core.plugins import Between, Count, NotNegative, OneOf, Positive
from askew.core.protocols import Candidates, Passage, QueryBatch
from askew.core.text import mended
from askew.rewrite.llm_answers import CLEANING, Sieve, clip, one_line
from askew.rewrite.llm_client import ChatClient, Completion, Endpoint
from askew.rewrite.prompts import load_prompt
from askew.search.engines.client import EngineError

# Answers on disk, keyed by the content of the request.

_FORM = 1


def request_key(endpoint_name: str, body: Mapping[str, Any], sample: int) -> str:
    """Return the key of a request: the fingerprint of the endpoint's name, the body and the number of the sample."""
    return fingerprint({"form": _FORM, "endpoint": endpoint_name, "body": body, "sample": sample}, length=64)


class AnswerCache:
    """A folder of answers."""

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"llm: expected cache to be a folder, found a file: {folder}", code="not-a-folder")
        self._folder = folder

    def path(self, key: str) -> Path:
        """Return the path of the cached answer to a request."""
        return self._folder / key[:2] / f"{key[2:]}.json"

    def read(self, key: str) -> Completion | None:
        """Return the cached answer to a request; None if there is none or if the entry is damaged."""
        try:
            data = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"llm: the cache cannot be read: {self.path(key)} ({error.strerror})") from None
        try:
            entry = json.loads(data)
            whole = entry["key"] == key and entry["checksum"] == _checksum(key, entry["request"], entry["answer"])
            return Completion(**entry["answer"]) if whole else None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def write(self, key: str, request: Mapping[str, Any], completion: Completion) -> None:
        """Store an answer. The file is renamed when it is complete, so a reader never sees a part of it."""
        answer = asdict(completion)
        checksum = _checksum(key, request, answer)
        entry = {"form": _FORM, "key": key, "request": request, "answer": answer, "checksum": checksum}
        try:
            write_whole(self.path(key), json.dumps(entry, ensure_ascii=False, indent=1))
        except OSError as error:
            raise StoreError(f"llm: the cache cannot be written: {self.path(key)} ({error.strerror})") from None


def _checksum(key: str, request: Any, answer: Any) -> str:
    return fingerprint([key, request, answer], length=64)


# Concurrent requests with a bounded number of threads. Cached answers are read without a request.


@dataclass(frozen=True)
class Request:
    """One request. ``key`` is the fingerprint of its content; ``query_id`` is used in error messages."""

    key: str
    body: dict[str, Any]
    query_id: str


class Asker:
    """Gets an answer, or the reason of the failure, for each of many requests."""

    def __init__(
        self, endpoint: Endpoint, pace: RateLimit, cache: AnswerCache | None, strict: bool, give_up_after: int
    ) -> None:
        self._endpoint, self._pace, self._cache = endpoint, pace, cache
        self._strict, self._give_up_after = strict, give_up_after
        self._lock = threading.Lock()
        self._failed_in_a_row = 0

    def answers(self, requests: Sequence[Request]) -> list[Completion | EngineError]:
        """Return an answer or an ``EngineError`` for each request, in order. Identical requests are sent once."""
        if not requests:
            return []
        stop = threading.Event()
        workers = min(self._endpoint.concurrency, len(requests))
        client = ChatClient(self._endpoint, self._pace, stop)
        with closing(client), ThreadPoolExecutor(workers, "askew-llm") as pool:
            distinct = {request.key: request for request in requests}
            futures = {key: pool.submit(self._answer, client, stop, request) for key, request in distinct.items()}
            try:
                wait(futures.values(), return_when=FIRST_EXCEPTION)
            finally:
                # Also when the user interrupts: requests that wait for their turn or for a retry are canceled.
                if stop.is_set() or not all(future.done() for future in futures.values()):
                    stop.set()
                    pool.shutdown(wait=True, cancel_futures=True)
        for error in (future.exception() for future in futures.values() if not future.cancelled()):
            if error is not None and not isinstance(error, RequestsEnded):
                raise error
        return [futures[request.key].result() for request in requests]

    def _answer(self, client: ChatClient, stop: threading.Event, request: Request) -> Completion | EngineError:
        try:
            if self._cache is not None and (cached := self._cache.read(request.key)) is not None:
                return cached
            try:
                answer = client.ask(request.body, request.key)
            except EngineError as failure:
                self._note_failure(failure, request)
                return failure
            with self._lock:
                self._failed_in_a_row = 0
            if self._cache is not None:
                self._cache.write(request.key, request.body, answer)
        except BaseException:
            stop.set()
            raise
        return answer

    def _note_failure(self, failure: EngineError, request: Request) -> None:
        """Count a failure. It is an error if ``strict`` is set or if too many requests in a row have failed."""
        if self._strict:
            raise DataError(
                f"llm: no answer for the query {request.query_id!r}: {failure} (attempts allowed: "
                f"{self._endpoint.attempts}). To count queries without an answer and continue, set ⟨on_failure=count⟩"
            )
        with self._lock:
            self._failed_in_a_row = self._failed_in_a_row + 1 if failure.transient else 0
            row = self._failed_in_a_row
        if self._give_up_after and row >= self._give_up_after:
            raise DataError(
                f"llm: {row} consecutive queries have failed; the last error is: {failure}. The endpoint seems "
                "to be down. Run the same command later: cached answers are not requested again. To allow more "
                "consecutive failures, set the parameter 'give_up_after' to a higher number",
                code="too-many-failures",
                failures=row,
            )


# The reformulator ``llm``: prompts for each query, answers from the cache or the endpoint, candidates from answers.


class LlmReformulator:
    """Gets reformulations from a language model (any OpenAI-compatible endpoint) with a prompt of the prompt bank.

    ``prompt`` is the name of a prompt in the bank or a TOML file. ``base_url`` defaults to the environment variable
    OPENAI_BASE_URL, and the key is read from the environment variable ``key_variable``. ``samples`` is the number of
    answers requested per query, ``count`` the number of queries or keywords in one answer. Answers are cached in the
    folder ``cache`` by request and ``endpoint_name``: give endpoints different names if they serve different models
    under the same model name. ``on_failure`` says whether a query that fails in all its ``attempts`` is counted or
    is an error. After ``give_up_after`` consecutive failed queries, an error is raised in any case (0: never). If
    ``temperature``, ``top_p`` or ``seed`` is None, it is left out of the request, for models that refuse it.
    """

    method = "llm"

    def __init__(
        self, model: str, prompt: str = "rewrite", base_url: str | None = None, key_variable: str = "OPENAI_API_KEY",
        endpoint_name: str = "default", samples: Count = 1, count: Count = 5, temperature: NotNegative | None = 0.0,
        top_p: Positive | None = 1.0, max_tokens: Count = 512,
        max_tokens_field: Annotated[str, OneOf(("max_tokens", "max_completion_tokens"))] = "max_tokens",
        seed: Annotated[int, Between(0)] | None = 0, json: bool = False, passages: Count = 3,
        passage_chars: Count = 1000, cache: str | Path | None = None, concurrency: Count = 8,
        timeout_s: Positive = 60.0, attempts: Count = 6, backoff_s: NotNegative = 0.5, max_wait_s: NotNegative = 60.0,
        requests_per_minute: Positive | None = None, max_answer_bytes: Count = 1_000_000,
        on_failure: Annotated[str, OneOf(("count", "error"))] = "count",
        give_up_after: Annotated[int, Between(0)] = 25,
    ) -> None:  # fmt: skip
        for name, value in (("model", model), ("endpoint_name", endpoint_name)):
            if not value.strip():
                raise ConfigError(f"llm: expected {name} to be a text, found {value!r}")
        # A value that is not a variable name is not shown: it may be the key itself.
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key_variable):
            raise ConfigError(
                "llm: expected key_variable to be the name of an environment variable, such as OPENAI_API_KEY; found "
                "something else, which is not printed because it may be the key itself"
            )
        if samples > 1 and temperature == 0:
            raise ConfigError(
                "llm: expected ⟨temperature⟩ above 0 because ⟨samples⟩ is above 1, found temperature=0; all samples "
                "would be the same"
            )
        self._prompt = load_prompt(prompt)
        text = (self._prompt.system + self._prompt.user).lower()
        if json and self._prompt.answer != "passage" and "json" not in text:
            raise ConfigError(
                f"llm: json=true needs a prompt that asks for JSON, but the prompt {self._prompt.name!r} does not; "
                'add a sentence such as: Answer with JSON only, in the form {"queries": ["..."]}'
            )
        self.reads = frozenset({"passages"}) if self._prompt.uses_passages else frozenset()
        # As floats, so that 0 and 0.0 give the same request.
        real = {"temperature": temperature, "top_p": top_p}
        self._sampling = {name: None if value is None else float(value) for name, value in real.items()}
        self._sampling[max_tokens_field] = max_tokens
        self._model, self._name, self._seed, self._json = model, endpoint_name, seed, json
        self._samples, self._count, self.mixes, self._passage_chars = samples, count, passages, passage_chars
        self._on_failure = on_failure
        endpoint = Endpoint(base_url, key_variable, float(timeout_s), attempts, float(backoff_s), float(max_wait_s),
                            max_answer_bytes, concurrency, seed or 0)  # fmt: skip
        if base_url is not None or cache is None:
            # With a cache, all answers may be stored already; then no address of an endpoint is required.
            endpoint.url()
        answers = None if cache is None else AnswerCache(Path(cache))
        pace = RateLimit(requests_per_minute)
        self._asker = Asker(endpoint, pace, answers, on_failure == "error", give_up_after)

    def settings(self) -> Mapping[str, Any]:
        """Return everything that determines the candidates, without the endpoint's address, retries and limits."""
        shown = {"passages": self.mixes, "passage_chars": self._passage_chars} if self.reads else {}
        return {
            "model": self._model, "endpoint_name": self._name, "prompt": self._prompt.id, "samples": self._samples,
            "count": self._count, **self._sampling, "seed": self._seed, "json": self._json,
            "on_failure": self._on_failure, "cleaning": CLEANING, **shown,
        }  # fmt: skip

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return the queries, keywords or passages that the model wrote, by query and sample."""
        if self.reads and batch.passages is None:
            raise DataError(
                f"llm: the prompt {self._prompt.name!r} needs the top-ranked passages of each query, but there are no "
                "documents; give the documents"
            )
        candidates = Candidates()
        jobs: list[tuple[int, str, list[Request]]] = []
        for row, text in enumerate(batch.texts):
            query = one_line(mended(text))
            passages = batch.passages[row] if self.reads and batch.passages is not None else ()
            if not query:
                candidates.reject("empty query")
            elif self.reads and not passages:
                candidates.reject("no passages")
            else:
                jobs.append((row, query, self._requests(batch.query_ids[row], query, passages)))
        answers = iter(self._asker.answers([request for _, _, requests in jobs for request in requests]))
        for row, query, requests in jobs:
            sieve = Sieve(query, self._prompt, self._count)
            for answer in islice(answers, len(requests)):
                if isinstance(answer, EngineError):
                    sieve.rejected[f"failed: {answer}"] += 1
                    continue
                for text in sieve.take(answer):
                    candidates.add(row, text)
            candidates.rejected.update(sieve.rejected)
        return candidates

    def _requests(self, query_id: str, query: str, passages: tuple[Passage, ...]) -> list[Request]:
        shown = [clip(mended(passage.text), self._passage_chars) for passage in passages[: self.mixes]]
        values = {
            "query": query,
            "count": str(self._count),
            "passages": "\n".join(f"[{i}] {text}" for i, text in enumerate(shown, 1)),
        }
        messages = self._prompt.messages(values)
        requests = []
        for sample in range(self._samples):
            sampling = {**self._sampling, "seed": None if self._seed is None else self._seed + sample}
            body: dict[str, Any] = {"model": self._model, "messages": messages}
            body.update({name: value for name, value in sampling.items() if value is not None})
            if self._json and self._prompt.answer != "passage":
                body["response_format"] = {"type": "json_object"}
            requests.append(Request(request_key(self._name, body, sample), body, query_id))
        return requests
