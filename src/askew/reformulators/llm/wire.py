"""Reading of responses from an OpenAI-compatible endpoint, as untrusted input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from askew.core.errors import ConfigError
from askew.plugins.pace import retry_after

_AGAIN = {408, 409, 425, 429}
_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Completion:
    """The answer of a model; ``finish`` is the reason why it stopped ("stop", "length", "content_filter")."""

    text: str
    finish: str = "stop"
    refused: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the fields as the cache stores them."""
        return asdict(self)


class Trouble(Exception):
    """A failed request. ``again``: a retry may succeed, after ``wait`` seconds if that is known."""

    def __init__(self, reason: str, again: bool = True, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.again, self.wait = reason, again, wait


def read_response(status: int, headers: Mapping[str, str], body: bytes, key_variable: str) -> Completion:
    """Return the answer; raise ``Trouble`` if this request failed, ``ConfigError`` if every request would fail."""
    if status == 200:
        return _read_success(headers, body)
    code, message = _read_error(body)
    wait = retry_after(headers.get("retry-after"))
    if status == 429 and code == "insufficient_quota":
        raise ConfigError(f"llm: the endpoint says that the quota of this key is used up: {message}")
    if status in _AGAIN or status >= 500:
        raise Trouble(f"status {status}", wait=wait)
    if code == "content_filter":
        # Some endpoints refuse a single prompt with this code: the cause is the query, not the settings.
        return Completion("", finish="content_filter", refused=True)
    if code == "context_length_exceeded":
        raise Trouble("prompt too long", again=False)
    raise ConfigError(_explained(status, headers, message, key_variable))


def _explained(status: int, headers: Mapping[str, str], message: str, key_variable: str) -> str:
    if status in (401, 403):
        return (
            f"llm: the endpoint refused access (status {status}): expected a valid key in the environment variable "
            f"{key_variable} (the setting key_variable can name another variable)"
        )
    if 300 <= status < 400:
        to = _shown(headers.get("location", "nowhere"))
        return f"llm: the endpoint redirects (status {status}, to {to}): set base_url to the final address"
    hint = {404: "; check base_url and model", 400: "; it may not support a setting (json, seed, top_p, max_tokens)"}
    return f"llm: the endpoint refused the request (status {status}): {message}{hint.get(status, '')}"


def _read_success(headers: Mapping[str, str], body: bytes) -> Completion:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        kind = headers.get("content-type", "").lower()
        raise Trouble("broken JSON" if "json" in kind else "wrong content type") from None
    if not isinstance(data, dict):
        raise Trouble("not an answer")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Trouble("the endpoint answered with an error" if data.get("error") else "the response has no answer")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise Trouble("not an answer")
    finish, used = choices[0].get("finish_reason"), data.get("usage")
    used = used if isinstance(used, dict) else {}
    return Completion(
        text=_content(message.get("content")),
        finish=mended(finish) if isinstance(finish, str) else "stop",
        refused=bool(message.get("refusal")) or finish == "content_filter",
        prompt_tokens=_tokens(used.get("prompt_tokens")),
        completion_tokens=_tokens(used.get("completion_tokens")),
    )


def _content(content: object) -> str:
    """The text of a message; some endpoints send it in parts."""
    if isinstance(content, str):
        return mended(content)
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return mended("".join(text for text in texts if isinstance(text, str)))


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


def mended(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
