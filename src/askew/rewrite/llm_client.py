"""One request to an OpenAI-compatible endpoint, repeated while a retry may succeed.

The key is read from the environment when the connection is made. No object of askew stores it, and it is removed from
answers and error messages of the endpoint. Redirects are not followed: they would send the key to another address.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from askew.core.address import Address, without_secrets
from askew.core.errors import ConfigError, MissingExtra
from askew.core.pace import RateLimit, back_off, retry_after
from askew.core.text import mended

if TYPE_CHECKING:
    import ssl

    import httpx


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


class RequestsStopped(Exception):
    """The requests were canceled while one waited for its turn."""


@dataclass(frozen=True)
class Endpoint:
    """The address of an endpoint, with its timeout, retries and limits."""

    base_url: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    timeout_s: float = 60.0
    attempts: int = 6
    backoff_s: float = 0.5
    max_wait_s: float = 60.0
    max_bytes: int = 1_000_000
    concurrency: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        """Convert a plain string to an ``Address``, which does not show a key."""
        if self.base_url is not None:
            object.__setattr__(self, "base_url", Address(self.base_url))

    def url(self) -> Address:
        """Return the checked address for requests, from the setting or else from the environment."""
        address = Address(self.base_url or os.environ.get("OPENAI_BASE_URL", ""))
        if not address:
            raise ConfigError(
                "llm: expected an address in the setting base_url or the environment variable OPENAI_BASE_URL, "
                "such as https://api.openai.com/v1; found neither"
            )
        whole = address.reveal()
        try:
            parts = urlsplit(whole)
            port_is_sound = parts.port is None or parts.port > 0
        except ValueError:
            raise ConfigError(
                "llm: expected base_url to be an address such as https://host/v1; what was found is not shown, because "
                "it may contain a key"
            ) from None
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ConfigError(
                "llm: expected base_url without user name, password, ?parameters and #fragment; give an API key in the "
                "environment variable that key_variable names"
            )
        sound = parts.scheme in ("http", "https") and parts.hostname and port_is_sound and whole.isprintable()
        if not sound or " " in whole:
            raise ConfigError(
                f"llm: expected base_url to be an address such as https://host/v1 (http or https), found {address!r}"
            )
        return Address(whole.rstrip("/").removesuffix("/chat/completions") + "/chat/completions")


class ChatClient:
    """Sends requests to one endpoint, from several threads at once."""

    def __init__(self, endpoint: Endpoint, pace: RateLimit, stop: threading.Event) -> None:
        self._endpoint, self._pace, self._stop = endpoint, pace, stop
        self._lock = threading.Lock()
        self._http: httpx.Client | None = None
        self._url = Address("")

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        if self._http is not None:
            self._http.close()

    def ask(self, body: Mapping[str, Any], key: str) -> Completion:
        """Return the answer to a request; raise ``Trouble`` if every attempt fails. ``key`` identifies the request."""
        content = json.dumps(body, ensure_ascii=False).encode()
        http = self._opened()
        for attempt in range(1, self._endpoint.attempts + 1):
            self._sleep(self._pace.reserve())
            while (held := self._pace.held()) > 0:
                self._sleep(held)
            try:
                return self._once(http, content)
            except Trouble as trouble:
                if attempt == self._endpoint.attempts or not trouble.again:
                    raise
                self._rest(trouble, attempt, key)
        raise AssertionError("the setting 'attempts' must be 1 or more")

    def _once(self, http: httpx.Client, content: bytes) -> Completion:
        import httpx

        deadline = time.monotonic() + self._endpoint.timeout_s
        try:
            with http.stream("POST", self._url.reveal(), content=content) as response:
                body = self._read(response, deadline)
        except httpx.TimeoutException:
            raise Trouble("time-out") from None
        except httpx.ConnectError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise ConfigError(f"llm: the certificate of {self._url} is not trusted: {error}") from None
            raise Trouble("no connection") from None
        except httpx.HTTPError:
            raise Trouble("connection lost") from None
        key = http.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            answer = read_response(response.status_code, response.headers, body, self._endpoint.key_variable)
        except ConfigError as error:
            raise ConfigError(_without(key, str(error))) from None
        return replace(answer, text=_without(key, answer.text), finish=_without(key, answer.finish))

    def _read(self, response: httpx.Response, deadline: float) -> bytes:
        """Read the body within the limits of size and time. Compressed bodies are refused: they may expand."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Trouble("compressed answer")
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > self._endpoint.max_bytes:
                raise Trouble("answer too large", again=response.status_code != 200)
            if time.monotonic() > deadline:
                raise Trouble("time-out")
        return bytes(body)

    def _rest(self, trouble: Trouble, attempt: int, key: str) -> None:
        """Wait as long as the endpoint requests, and at least for the backoff time."""
        end = self._endpoint
        if trouble.wait is not None and trouble.wait > end.max_wait_s:
            raise Trouble(TOO_LONG_A_WAIT, again=trouble.again)
        if trouble.wait:
            self._pace.hold(trouble.wait)
        self._sleep(back_off(end.backoff_s, end.max_wait_s, attempt, end.seed, key))

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds) if seconds > 0 else self._stop.is_set():
            raise RequestsStopped

    def _opened(self) -> httpx.Client:
        """Return the HTTP client, made at the first request: cached answers need neither a key nor the network."""
        with self._lock:
            if self._http is None:
                self._url = self._endpoint.url()
                self._http = _connections(self._endpoint)
            return self._http


def _connections(endpoint: Endpoint) -> httpx.Client:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("the reformulator 'llm'", "llm") from None
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    # Many local endpoints need no key. An invalid header would be quoted in an error message together with the key.
    key = os.environ.get(endpoint.key_variable, "").strip()
    if not all("!" <= char <= "~" for char in key):
        raise ConfigError(
            f"llm: expected a key of printable ASCII in the environment variable {endpoint.key_variable}, found other "
            "characters"
        )
    if key:
        headers["Authorization"] = f"Bearer {key}"
    most = endpoint.concurrency
    try:
        return httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(endpoint.timeout_s, pool=None),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            follow_redirects=False,
            verify=_trust(),
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        # The only addresses parsed here are those of proxies. They may contain a password, so they are not shown.
        raise ConfigError(
            f"llm: the proxy in the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY) cannot be used "
            f"({type(error).__name__})"
        ) from None


@cache
def _trust() -> ssl.SSLContext:
    """Return the trusted certificates of httpx or of SSL_CERT_FILE. They are read once, because that is slow."""
    import httpx

    return httpx.create_ssl_context()


def _without(key: str, text: str) -> str:
    return without_secrets(text.replace(key, "[key]") if len(key) >= 8 else text)
