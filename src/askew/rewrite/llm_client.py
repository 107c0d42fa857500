"""One request to an OpenAI-compatible endpoint, repeated while a retry may succeed.

The key is read from the environment when the connection is made. No object of askew stores it, and it is removed from
answers and error messages of the endpoint. Redirects are not followed: they would send the key to another address.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import SplitResult

from askew.core.address import without_secrets
from askew.core.errors import ConfigError
from askew.core.pace import RateLimit, retry_after
from askew.core.text import mended
from askew.search.engines.client import EngineError
from askew.search.engines.wire import Wire, parse_url

# Reading of responses from an OpenAI-compatible endpoint, as untrusted input.

_AGAIN = {408, 409, 425, 429}
_SHOWN_CHARS = 300
TOO_LONG_A_WAIT = "the endpoint asks to wait longer than the setting max_wait_s allows"


@dataclass(frozen=True)
class Completion:
    """The answer of a model; ``finish`` is the reason why it stopped ("stop", "length", "content_filter")."""

    text: str
    finish: str = "stop"
    refused: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


def read_response(status: int, headers: Mapping[str, str], body: bytes, key_variable: str) -> Completion:
    """Return the answer; raise ``EngineError`` if this request failed, ``ConfigError`` if every request would fail."""
    if status == 200:
        return _read_success(headers, body)
    code, message = _read_error(body)
    wait = retry_after(headers.get("retry-after"))
    if status == 429 and code == "insufficient_quota":
        raise ConfigError(f"llm: the endpoint says that the quota of this key is used up: {message}")
    if status in _AGAIN or status >= 500:
        raise EngineError(f"status {status}", transient=True, retry_after=wait)
    if code == "content_filter":
        # Some endpoints refuse a single prompt with this code: the cause is the query, not the settings.
        return Completion("", finish="content_filter", refused=True)
    if code == "context_length_exceeded":
        raise EngineError("prompt too long")
    if status in (401, 403):
        raise ConfigError(
            f"llm: the endpoint refused access (status {status}): expected a valid key in the environment variable "
            f"{key_variable} (the setting key_variable can name another variable)"
        )
    if 300 <= status < 400:
        to = _shown(headers.get("location", "nowhere"))
        raise ConfigError(f"llm: the endpoint redirects (status {status}, to {to}): set base_url to the final address")
    hint = {404: "; check base_url and model", 400: "; it may not support a setting (json, seed, top_p, max_tokens)"}
    raise ConfigError(f"llm: the endpoint refused the request (status {status}): {message}{hint.get(status, '')}")


def _read_success(headers: Mapping[str, str], body: bytes) -> Completion:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        kind = headers.get("content-type", "").lower()
        raise EngineError("broken JSON" if "json" in kind else "wrong content type", transient=True) from None
    if not isinstance(data, dict):
        raise EngineError("not an answer", transient=True)
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        reason = "the endpoint answered with an error" if data.get("error") else "the response has no answer"
        raise EngineError(reason, transient=True)
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise EngineError("not an answer", transient=True)
    finish, used = choices[0].get("finish_reason"), data.get("usage")
    used = used if isinstance(used, dict) else {}
    content = message.get("content")
    if isinstance(content, list):  # some endpoints send the text in parts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    return Completion(
        text=mended(content) if isinstance(content, str) else "",
        finish=mended(finish) if isinstance(finish, str) else "stop",
        refused=bool(message.get("refusal")) or finish == "content_filter",
        prompt_tokens=_tokens(used.get("prompt_tokens")),
        completion_tokens=_tokens(used.get("completion_tokens")),
    )


def _tokens(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _read_error(body: bytes) -> tuple[str, str]:
    """The code and the message of an error, as far as there are any."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return "", _shown(body[:4096].decode("utf-8", "replace"))
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return "", _shown(str(error))
    code = error.get("code")
    return code if isinstance(code, str) else "", _shown(str(error.get("message", error)))


def _shown(text: str) -> str:
    """Make a text of the endpoint fit for an error message: one line, printable, short."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * _SHOWN_CHARS])
    line = " ".join(line.split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + " ..."


# The reasons of failures that are no reply, by their codes.
_REASONS = {
    "time-out": "time-out", "no-connection": "no connection", "compressed": "compressed answer",
    "too-large": "answer too large",
}  # fmt: skip


@dataclass(frozen=True)
class Endpoint:
    """The address of an endpoint, with its timeout, retries and limits."""

    base_url: str | None = field(default=None, repr=False)
    key_variable: str = "OPENAI_API_KEY"
    timeout_s: float = 60.0
    attempts: int = 6
    backoff_s: float = 0.5
    max_wait_s: float = 60.0
    max_bytes: int = 1_000_000
    concurrency: int = 8
    seed: int = 0

    def url(self) -> SplitResult:
        """The parts of the checked address, from the setting or else from the environment."""
        address = self.base_url or os.environ.get("OPENAI_BASE_URL", "")
        if not address:
            raise ConfigError(
                "llm: expected an address in the setting base_url or the environment variable OPENAI_BASE_URL, "
                "such as https://api.openai.com/v1; found neither"
            )
        parts = parse_url(address, ("http", "https"))
        if parts is None or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            raise ConfigError(
                "llm: expected base_url to be an address such as https://host/v1 (http or https) without user name, "
                "password, ?parameters and #fragment; what was found is not shown, because it may contain a key. Give "
                "an API key in the environment variable that key_variable names"
            )
        return parts


class ChatClient:
    """Sends requests to one endpoint, from several threads at once."""

    def __init__(self, endpoint: Endpoint, pace: RateLimit, stop: threading.Event) -> None:
        self._endpoint, self._pace, self._stop = endpoint, pace, stop

    @cached_property
    def _wire(self) -> tuple[Wire, str]:
        """The connections, opened at the first request: cached answers need no address."""
        parts = self._endpoint.url()
        path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        end = self._endpoint
        return Wire(f"{parts.scheme}://{parts.netloc}", end.timeout_s, end.max_bytes), path

    def close(self) -> None:
        """Close the connections."""
        if "_wire" in vars(self):
            self._wire[0].close()

    def ask(self, body: Mapping[str, Any], key: str) -> Completion:
        """Return the answer to a request; an ``EngineError`` says why every attempt failed. ``key`` identifies it."""
        content, end = json.dumps(body, ensure_ascii=False).encode(), self._endpoint
        for attempt in range(1, end.attempts + 1):
            self._pace.wait(self._stop)
            try:
                return self._once(content)
            except EngineError as error:
                if attempt == end.attempts or not error.transient:
                    raise
                if error.retry_after is not None and error.retry_after > end.max_wait_s:
                    raise EngineError(TOO_LONG_A_WAIT, transient=True) from None
                self._pace.rest(error.retry_after, end.backoff_s, end.max_wait_s, attempt, key, self._stop, end.seed)
        raise AssertionError("the setting 'attempts' must be 1 or more")

    def _once(self, content: bytes) -> Completion:
        wire, path = self._wire
        # Many local endpoints need no key. An invalid header would be quoted in an error message together with the key.
        key = os.environ.get(self._endpoint.key_variable, "").strip()
        if not all("!" <= char <= "~" for char in key):
            raise ConfigError(
                f"llm: expected a key of printable ASCII in the environment variable {self._endpoint.key_variable}, "
                "found other characters"
            )
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            reply = wire.send(path, headers, content, "application/json")
        except EngineError as error:
            again = error.transient or error.code == "compressed"
            raise EngineError(_REASONS.get(error.code, "connection lost"), transient=again) from None
        try:
            answer = read_response(reply.status, reply.headers, reply.body, self._endpoint.key_variable)
        except ConfigError as error:
            raise ConfigError(_without(key, str(error))) from None
        return replace(answer, text=_without(key, answer.text), finish=_without(key, answer.finish))


def _without(key: str, text: str) -> str:
    return without_secrets(text.replace(key, "[key]") if len(key) >= 8 else text)
