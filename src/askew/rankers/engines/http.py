"""Search any JSON interface over HTTP, with a request template and paths into the reply."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_plus, urlencode

from askew.core.address import is_secret_name
from askew.core.errors import ConfigError, UnknownName
from askew.core.shipped import DATA
from askew.plugins.limits import Count, Positive
from askew.rankers.engines.client import Answer, EngineError
from askew.rankers.engines.plugin import EnginePlugin
from askew.rankers.engines.secret import Authentication, SecretSource
from askew.rankers.engines.shape import (
    HitPaths,
    QueryText,
    fill_params,
    fill_url,
    fill_value,
    has_place,
    read_body,
    text_names,
)
from askew.rankers.engines.wire import Reply, Wire, checked_url, status_error

_FOLDER = DATA / "engines"
# Statuses that wrong settings can cause. Their errors show the request, up to this length.
_OF_THE_SETTINGS, _LONGEST = {400, 404, 405, 415, 422}, 300
_PATHS = ("hits_at", "id_at", "score_at", "text_at", "error_at")


class HttpEngine:
    """Any search engine with a JSON interface over HTTP; templates for Solr, Vespa, Groonga and Anserini.

    ``url``, ``params`` or ``body`` contain the placeholders ``{query}`` and ``{k}``. With a body, the request is a
    POST. ``hits_at`` is the path to the list of hits, as in response.docs; ``id_at``, ``score_at`` and ``text_at`` are
    paths within a hit. A value at ``error_at`` makes the reply an error. ``template`` is solr, vespa, groonga, anserini
    or a TOML file with these settings; settings that are given replace those of the template. Each character in
    ``escape`` is escaped by a backslash, and ``join`` is put between the words of a query. The secret is read from the
    environment variable ``auth_env`` or the file ``auth_file``, and sent by the scheme ``auth_scheme``: bearer, basic,
    apikey or header:NAME. ``headers_env`` maps headers to the environment variables with their values.
    """

    how_asked = frozenset({"auth_env", "auth_file", "auth_scheme", "headers_env", "timeout_s", "max_bytes"})

    def __init__(
        self, url: str, template: str | None = None, params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | str | None = None, hits_at: str | int | None = None, id_at: str | int | None = None,
        score_at: str | int | None = None, text_at: str | int | None = None, error_at: str | int | None = None,
        escape: str | None = None, join: str | None = None, headers: Mapping[str, str] | None = None,
        headers_env: Mapping[str, str] | None = None, auth_env: str | None = None, auth_file: str | None = None,
        auth_scheme: str = "bearer", timeout_s: Positive = 30.0, max_bytes: Count = 50_000_000,
    ) -> None:  # fmt: skip
        paths = dict(zip(_PATHS, (hits_at, id_at, score_at, text_at, error_at), strict=True))
        own = {"escape": escape, "join": join, "body": read_body(body)}
        # The command line reads a list position as a number.
        own |= {name: None if value is None else str(value) for name, value in paths.items()}
        form = read_template(template) | {name: value for name, value in own.items() if value is not None}
        self._params = {**form.get("params", {}), **(params or {})}
        self._body, self._headers = read_body(form.get("body")), dict(headers or {})
        address = url.rstrip("/") + form["path"] if "path" in form else url
        self._refuse(address)
        parts = checked_url(address.replace("{query}", "q").replace("{k}", "1"))
        self._wire = Wire(f"{parts.scheme}://{parts.netloc}", timeout_s, max_bytes)
        self._target = address[len(self._wire.origin) :] or "/"
        self._text = QueryText(form.get("escape", ""), form.get("join"))
        self._paths = HitPaths(
            form["hits_at"], form["id_at"], form.get("score_at"), form.get("text_at"), form.get("error_at"),
            bool(form.get("hits_optional", False)),
        )  # fmt: skip
        self._auth = Authentication(SecretSource("auth", auth_env, auth_file), auth_scheme, dict(headers_env or {}))
        self.id = f"http-{(template and Path(template).stem) or 'json'}-{parts.netloc}"

    def settings(self) -> Mapping[str, Any]:
        """The request and the paths."""
        return {
            "url": self._wire.origin + self._target, "params": self._params, "body": self._body,
            "headers": self._headers, "escape": self._text.escape, "join": self._text.join,
            "paths": [self._paths.hits, self._paths.doc_id, self._paths.score, self._paths.text, self._paths.error],
        }  # fmt: skip

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The hits of each query, with one request per query."""
        return [self._find(query, k) for query in queries]

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _find(self, query: str, k: int) -> Answer:
        text = self._text.of(query)
        target, more = fill_url(self._target, text, k), fill_params(self._params, text, k)
        target += f"{'&' if '?' in target else '?'}{more}" if more else ""
        headers = {"Accept": "application/json", **self._headers, **self._auth.headers()}
        body = None
        if self._body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(fill_value(self._body, text, k)).encode()
        reply = self._wire.send("GET" if body is None else "POST", target, headers, body)
        if reply.status != 200:
            error = self._failed(reply)
            if reply.is_of_the_query:
                return error
            raise error
        try:
            read = json.loads(reply.body)
        except (ValueError, RecursionError):
            raise EngineError(f"{self._wire.origin}: the reply is not JSON; check url=") from None
        return self._paths.read(read, self._wire.origin)[:k]

    def _failed(self, reply: Reply) -> EngineError:
        """The error for an HTTP status. If settings may be wrong, it shows the request without the query."""
        error = status_error(self._wire.origin, reply, bool(self._auth))
        if reply.status not in _OF_THE_SETTINGS:
            return error
        params = urlencode(self._params, safe="{}", quote_via=quote)
        target = self._target + (f"{'&' if '?' in self._target else '?'}{params}" if params else "")
        method = "GET" if self._body is None else "POST"
        return EngineError(f"{error}; the request was {method} {target[:_LONGEST]}")

    def _refuse(self, address: str) -> None:
        """Raise an error if the request has no placeholder for the query, or contains a secret."""
        places = [address, self._params, self._body]
        if not has_place(places):
            raise ConfigError("http: there is no placeholder for the query; put {query} into url=, params= or body=")
        in_url = [unquote_plus(one.partition("=")[0]) for one in address.partition("?")[2].split("&")]
        for name in (*in_url, *self._params, *self._headers, *text_names(self._body)):
            if _may_be_secret(name):
                raise ConfigError(
                    f"http: {name!r} looks like a secret, and settings must not contain secrets. Give the secret in "
                    "one of two ways: with auth_scheme= and either auth_env= or auth_file=; or with headers_env="
                )

    def __repr__(self) -> str:
        return f"HttpEngine({self.id!r})"


def _may_be_secret(name: str) -> bool:
    return is_secret_name(name.removeprefix("X-").removeprefix("x-")) or name.lower() in ("cookie", "x-auth")


def templates() -> list[str]:
    """The names of the templates that come with askew."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_template(name: str | None) -> dict[str, Any]:
    """The settings of a template, by its name or file; by default those of plain JSON."""
    if name is None:
        return {"hits_at": "hits", "id_at": "id", "score_at": "score", "text_at": "text"}
    path = _FOLDER / f"{name}.toml" if name in templates() else Path(name).expanduser()
    if path.suffix != ".toml":
        raise UnknownName("template", name, templates())
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"template= {path}: cannot be read ({why})") from None
    known = (*_PATHS, "path", "params", "body", "escape", "join", "hits_optional")
    for key in found:
        if key not in known:
            raise UnknownName("setting", key, known, f"template= {path}")
    return {"hits_at": "hits", "id_at": "id"} | found


http = EnginePlugin(HttpEngine)
