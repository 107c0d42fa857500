"""The reformulator ``llm``: prompts for each query, answers from the cache or the endpoint, candidates from answers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError
from askew.plugins.methods import Candidates, Passage, QueryBatch
from askew.plugins.pace import RateLimit
from askew.reformulators.llm.batch import Asker, Request
from askew.reformulators.llm.cache import AnswerCache, request_key
from askew.reformulators.llm.clean import CLEANING, Sieve, clip
from askew.reformulators.llm.client import Endpoint
from askew.reformulators.llm.forms import one_line
from askew.reformulators.llm.prompts import load_prompt
from askew.reformulators.llm.usage import Account, Usage
from askew.reformulators.llm.wire import Completion, Trouble, mended


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
        endpoint_name: str = "default", samples: int = 1, count: int = 5, temperature: float | None = 0.0,
        top_p: float | None = 1.0, max_tokens: int = 512, max_tokens_field: str = "max_tokens", seed: int | None = 0,
        json: bool = False, passages: int = 3, passage_chars: int = 1000, cache: str | Path | None = None,
        concurrency: int = 8, timeout_s: float = 60.0, attempts: int = 6, backoff_s: float = 0.5,
        max_wait_s: float = 60.0, requests_per_minute: float | None = None, max_answer_bytes: int = 1_000_000,
        on_failure: str = "count", give_up_after: int = 25,
    ) -> None:  # fmt: skip
        _check_texts(model=model, key_variable=key_variable, endpoint_name=endpoint_name)
        _check_variable(key_variable)
        _check_choice("max_tokens_field", max_tokens_field, ("max_tokens", "max_completion_tokens"))
        _check_choice("on_failure", on_failure, ("count", "error"))
        _check_whole(1, samples=samples, count=count, max_tokens=max_tokens, passages=passages, attempts=attempts)
        _check_whole(1, passage_chars=passage_chars, concurrency=concurrency, max_answer_bytes=max_answer_bytes)
        _check_whole(0, give_up_after=give_up_after, seed=seed)
        _check_least(0, backoff_s=backoff_s, max_wait_s=max_wait_s, temperature=temperature)
        _check_above_zero(timeout_s=timeout_s, requests_per_minute=requests_per_minute, top_p=top_p)
        if samples > 1 and temperature == 0:
            raise ConfigError(
                "llm: expected temperature= above 0 because samples= is above 1, found temperature=0; all samples "
                "would be the same"
            )
        self._prompt = load_prompt(prompt)
        self._check_json(json)
        self.reads = frozenset({"passages"}) if self._prompt.uses_passages else frozenset()
        self._sampling = {"temperature": _real(temperature), "top_p": _real(top_p), max_tokens_field: max_tokens}
        self._model, self._name, self._seed, self._json = model, endpoint_name, seed, json
        self._samples, self._count, self.mixes, self._passage_chars = samples, count, passages, passage_chars
        self._on_failure = on_failure
        self._account = Account()
        endpoint = Endpoint(base_url, key_variable, float(timeout_s), attempts, float(backoff_s), float(max_wait_s),
                            max_answer_bytes, concurrency, seed or 0)  # fmt: skip
        if base_url is not None or cache is None:
            # With a cache, all answers may be stored already; then no address of an endpoint is required.
            endpoint.url()
        kept = None if cache is None else AnswerCache(Path(cache))
        pace = RateLimit(requests_per_minute)
        self._asker = Asker(endpoint, pace, self._account, kept, on_failure == "error", give_up_after)

    @property
    def usage(self) -> Usage:
        """Requests, retries, cache hits and tokens so far."""
        return self._account.total()

    def settings(self) -> Mapping[str, Any]:
        """Return everything that determines the candidates, without the endpoint's address, retries and limits."""
        shown = {"passages": self.mixes, "passage_chars": self._passage_chars} if self.reads else {}
        return {
            "model": self._model, "endpoint_name": self._name, "prompt": self._prompt.id, "samples": self._samples,
            "count": self._count, **self._sampling, "seed": self._seed, "json": self._json,
            "on_failure": self._on_failure, "cleaning": CLEANING, **shown,
        }  # fmt: skip

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the queries, keywords or passages that the model wrote, by query and sample."""
        found = Candidates()
        jobs = self._jobs(asked, found)
        answers = iter(self._asker.answers([request for _, _, requests in jobs for request in requests]))
        for row, query, requests in jobs:
            sieve = Sieve(query, self._prompt, self._count)
            for _ in requests:
                for text in self._texts(next(answers), sieve):
                    found.add(row, text)
            found.rejected.update(sieve.rejected)
        return found

    def _texts(self, answer: Completion | Trouble, sieve: Sieve) -> list[str]:
        if isinstance(answer, Completion):
            return sieve.take(answer)
        sieve.rejected[f"failed: {answer.reason}"] += 1
        return []

    def _jobs(self, asked: QueryBatch, found: Candidates) -> list[tuple[int, str, list[Request]]]:
        """Return the requests for each query; queries without text or without needed passages are counted."""
        if self.reads and asked.passages is None:
            raise DataError(
                f"llm: the prompt {self._prompt.name!r} needs the top-ranked passages of each query, but there are no "
                "documents; give the documents"
            )
        jobs = []
        for row, text in enumerate(asked.texts):
            query = one_line(mended(text))
            passages = asked.passages[row] if self.reads and asked.passages is not None else ()
            if not query:
                found.reject("empty query")
            elif self.reads and not passages:
                found.reject("no passages")
            else:
                jobs.append((row, query, self._requests(asked.query_ids[row], query, passages)))
        return jobs

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
            body = self._body(messages, sample)
            requests.append(Request(request_key(self._name, body, sample), body, query_id))
        return requests

    def _body(self, messages: list[dict[str, str]], sample: int) -> dict[str, Any]:
        sampling = {**self._sampling, "seed": None if self._seed is None else self._seed + sample}
        body: dict[str, Any] = {"model": self._model, "messages": messages}
        body.update({name: value for name, value in sampling.items() if value is not None})
        if self._json and self._prompt.answer != "passage":
            body["response_format"] = {"type": "json_object"}
        return body

    def _check_json(self, json: bool) -> None:
        text = (self._prompt.system + self._prompt.user).lower()
        if json and self._prompt.answer != "passage" and "json" not in text:
            raise ConfigError(
                f"llm: json=true needs a prompt that asks for JSON, but the prompt {self._prompt.name!r} does not; "
                'add a sentence such as: Answer with JSON only, in the form {"queries": ["..."]}'
            )


def _real(value: float | None) -> float | None:
    """Convert to a float, so that 0 and 0.0 give the same request."""
    return None if value is None else float(value)


def _check_texts(**settings: str) -> None:
    for name, value in settings.items():
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"llm: expected {name} to be a text, found {value!r}")


def _check_variable(name: str) -> None:
    """Refuse a text that is not a variable name, without showing it: it may be the key itself."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ConfigError(
            "llm: expected key_variable to be the name of an environment variable, such as OPENAI_API_KEY; found "
            "something else, which is not printed because it may be the key itself"
        )


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"llm: expected {name} to be {' or '.join(map(repr, known))}, found {value!r}")


def _check_whole(least: int, **settings: int | None) -> None:
    for name, value in settings.items():
        if value is not None and type(value) is not int:
            raise ConfigError(f"llm: expected {name} to be a whole number, found {value!r}")
    _check_least(least, **settings)


def _check_least(least: int, **settings: float | None) -> None:
    for name, value in settings.items():
        if value is not None and not (value >= least and math.isfinite(value)):
            raise ConfigError(f"llm: expected {name} to be {least} or more, found {value!r}")


def _check_above_zero(**settings: float | None) -> None:
    for name, value in settings.items():
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ConfigError(f"llm: expected {name} to be above 0, found {value!r}")
