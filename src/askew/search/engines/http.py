"""Search any JSON interface over HTTP, with a request template and paths into the reply."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus, urlencode

from askew.core.address import is_secret_name
from askew.core.errors import ConfigError, UnknownName
from askew.core.files import DATA, parse_json, parse_toml
from askew.core.plugins import Count, Positive
from askew.search.engines.client import Answer, EngineError, Found
from askew.search.engines.ranker import EnginePlugin
from askew.search.engines.wire import (
    OF_THE_QUERY,
    Authentication,
    SecretSource,
    Wire,
    checked_url,
    read_json,
    status_error,
)

# Words that query languages read as operators. A backslash makes them plain words.
_OPERATORS = ("AND", "OR", "NOT")
# The number of field names that a message shows, and the most characters of a name.
_NAMES_SHOWN, _NAME_SHOWN = 8, 40
# What a path that leads nowhere gives, since None is a value of JSON.
MISSING: Any = object()


def escaped(query: str, escape: str, join: str | None = None) -> str:
    """A query with a backslash before everything that the engine would read as an operator, and its words joined."""
    if not escape and join is None:
        return query
    words = query.split() if join is not None else query.split(" ")
    plain = ["".join(f"\\{char}" if char in escape else char for char in word) for word in words]
    if "\\" in escape:
        plain = [f"\\{word}" if word in _OPERATORS else word for word in plain]
    return (join or " ").join(plain)


def fill_url(template: str, query: str, k: int) -> str:
    """Fill the query and k into a URL template, URL-encoded."""
    return template.replace("{k}", str(k)).replace("{query}", quote(query, safe="", errors="replace"))


def fill_params(params: Mapping[str, Any], query: str, k: int) -> str:
    """Fill the query and k into URL parameters, and encode them."""
    filled = ((name, fill_value(value, query, k)) for name, value in params.items())
    return "&".join(f"{quote_plus(name)}={quote_plus(str(value), errors='replace')}" for name, value in filled)


def fill_value(value: Any, query: str, k: int) -> Any:
    """Replace ``{query}`` and ``{k}`` in JSON values. The query is inserted as a value, never as JSON text."""
    if isinstance(value, Mapping):
        return {name: fill_value(inner, query, k) for name, inner in value.items()}
    if isinstance(value, list):
        return [fill_value(inner, query, k) for inner in value]
    if not isinstance(value, str):
        return value
    # The query is inserted last, so that a query that contains {k} is not changed.
    return k if value == "{k}" else value.replace("{k}", str(k)).replace("{query}", query)


def text_names(value: Any) -> Iterator[str]:
    """The names of JSON values that may be secrets: all texts without a placeholder for the query.

    The name ``key`` is left out, because it is common for other values.
    """
    if isinstance(value, list):
        for item in value:
            yield from text_names(item)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str) and str(name) != "key" and not has_place(inner):
                yield str(name)
            yield from text_names(inner)


def has_place(value: Any) -> bool:
    """Whether a JSON value contains the placeholder for the query."""
    return bool(fill_value(value, "a", 0) != fill_value(value, "b", 0))


def read_body(written: Mapping[str, Any] | str | None) -> dict[str, Any] | None:
    """Read the body of a request, given as a table or as JSON text."""
    if written is None or isinstance(written, Mapping):
        return None if written is None else dict(written)
    try:
        body = parse_json(written)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ConfigError('body= should be a JSON object such as {"text": "{query}", "size": "{k}"}')
    return body


def follow(value: Any, path: str) -> Any:
    """The value at a dotted path of object names and list positions; MISSING if there is none."""
    for step in path.split(".") if path else ():
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def read_hits(reply: Any, form: Mapping[str, Any], where: str) -> list[Found]:
    """The hits of a reply, at the paths of a template."""
    if (at := form.get("error_at")) and (error := follow(reply, at)) is not MISSING and error:
        raise EngineError(f"{where}: the engine reports an error or partial results", transient=True)
    hits = follow(reply, form["hits_at"])
    if hits is MISSING and form.get("hits_optional"):
        return []
    if not isinstance(hits, list):
        raise EngineError(f"{where}: no list of hits at {form['hits_at']!r}; {_fields(reply)}; set ⟨hits_at⟩")
    documents = []
    for hit in hits:
        doc_id = follow(hit, form["id_at"])
        if isinstance(doc_id, bool) or not isinstance(doc_id, str | int) or doc_id == "":
            raise EngineError(f"{where}: a hit has no document id at {form['id_at']!r}; {_fields(hit)}; set ⟨id_at⟩")
        score = follow(hit, form["score_at"]) if form.get("score_at") else None
        documents.append(Found(str(doc_id), as_number(score), joined_text(form.get("text_at"), partial(follow, hit))))
    return documents


def as_number(value: Any) -> float | None:
    """A number of JSON; None for any other value."""
    with contextlib.suppress(OverflowError):
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return None


def _fields(reply: Any) -> str:
    if not isinstance(reply, Mapping):
        return f"found {type(reply).__name__}"
    names = [repr(str(name)[:_NAME_SHOWN]) for name in reply]
    more = [] if len(names) <= _NAMES_SHOWN else ["..."]
    return f"its fields are {', '.join([*names[:_NAMES_SHOWN], *more]) or 'none'}"


def names_in(text: str | None) -> list[str]:
    """Split names that are separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def joined_text(paths: str | None, at: Callable[[str], Any]) -> str | None:
    """Join the texts at comma-separated paths; None if there is no text."""
    parts = [at(path) for path in names_in(paths)]
    texts = [" ".join(map(str, part)) if isinstance(part, list) else part for part in parts]
    return " ".join(strings) if (strings := [text for text in texts if isinstance(text, str)]) else None


_FOLDER = DATA / "engines"
# Statuses that wrong settings can cause. Their errors show the request without the query, up to this length.
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
        self,
        url: str,
        template: str | None = None,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | str | None = None,
        hits_at: str | int | None = None,
        id_at: str | int | None = None,
        score_at: str | int | None = None,
        text_at: str | int | None = None,
        error_at: str | int | None = None,
        escape: str | None = None,
        join: str | None = None,
        headers: Mapping[str, str] | None = None,
        headers_env: Mapping[str, str] | None = None,
        auth_env: str | None = None,
        auth_file: str | None = None,
        auth_scheme: str = "bearer",
        timeout_s: Positive = 30.0,
        max_bytes: Count = 50_000_000,
    ) -> None:
        own: dict[str, Any] = {"escape": escape, "join": join, "body": body}
        paths = zip(_PATHS, (hits_at, id_at, score_at, text_at, error_at), strict=True)
        # The command line reads a list position as a number.
        own |= {name: str(value) for name, value in paths if value is not None}
        self._form = read_template(template) | {name: value for name, value in own.items() if value is not None}
        self._params = {**self._form.get("params", {}), **(params or {})}
        self._body, self._headers = read_body(self._form.get("body")), dict(headers or {})
        address = url.rstrip("/") + self._form["path"] if "path" in self._form else url
        self._refuse(address)
        parts = checked_url(address.replace("{query}", "q").replace("{k}", "1"))
        self._wire = Wire(f"{parts.scheme}://{parts.netloc}", timeout_s, max_bytes)
        self._target = address[len(self._wire.origin) :] or "/"
        self._auth = Authentication(SecretSource("auth", auth_env, auth_file), auth_scheme, dict(headers_env or {}))
        self.id = f"http-{(template and Path(template).stem) or 'json'}-{parts.netloc}"

    def settings(self) -> Mapping[str, Any]:
        """The request and the paths."""
        return {
            "url": self._wire.origin + self._target,
            "params": self._params,
            "body": self._body,
            "headers": self._headers,
            "escape": self._form.get("escape", ""),
            "join": self._form.get("join"),
            "paths": [self._form.get(path) for path in _PATHS],
        }

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The hits of each query, with one request per query."""
        return [self._find(query, k) for query in queries]

    def credentials(self) -> Mapping[str, str]:
        """The headers with secrets."""
        return self._auth.headers()

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _find(self, query: str, k: int) -> Answer:
        text = escaped(query, self._form.get("escape", ""), self._form.get("join"))
        target, params = fill_url(self._target, text, k), fill_params(self._params, text, k)
        body = None if self._body is None else json.dumps(fill_value(self._body, text, k)).encode()
        headers = {"Accept": "application/json", **self._headers, **self._auth.headers()}
        reply = self._wire.send(_with_params(target, params), headers, body, "application/json")
        if reply.status == 200:
            return read_hits(read_json(reply, self._wire.origin), self._form, self._wire.origin)[:k]
        error = status_error(self._wire.origin, reply.status, reply.headers, bool(self._auth))
        if reply.status in _OF_THE_SETTINGS:
            shown = _with_params(self._target, urlencode(self._params, safe="{}", quote_via=quote))[:_LONGEST]
            error = EngineError(f"{error}; the request was {'GET' if body is None else 'POST'} {shown}")
        if reply.status in OF_THE_QUERY:
            return error
        raise error

    def _refuse(self, address: str) -> None:
        """Raise an error if the request has no placeholder for the query, or contains a secret."""
        if not has_place([address, self._params, self._body]):
            raise ConfigError("http: there is no placeholder for the query; put {query} into ⟨url⟩, ⟨params⟩ or ⟨body⟩")
        if "{" in address.partition("://")[2].replace("?", "/").partition("/")[0]:
            raise ConfigError(
                "http: the host in ⟨url⟩ has a placeholder, and a query must not choose the host; put {query} into the "
                "path, ⟨params⟩ or ⟨body⟩"
            )
        in_url = [unquote_plus(parameter.partition("=")[0]) for parameter in address.partition("?")[2].split("&")]
        for name in (*in_url, *self._params, *self._headers, *text_names(self._body)):
            is_header = name.lower() in ("cookie", "x-auth")
            if is_header or is_secret_name(name.removeprefix("X-").removeprefix("x-")):
                raise ConfigError(
                    f"http: {name!r} looks like a secret, and settings must not contain secrets; give the secret with "
                    "⟨auth_env⟩ or ⟨auth_file⟩ and ⟨auth_scheme⟩, or with ⟨headers_env⟩"
                )


def _with_params(target: str, params: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}{params}" if params else target


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
        settings = parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"⟨template⟩ {path}: cannot be read ({why})") from None
    keys = (*_PATHS, "path", "params", "body", "escape", "join", "hits_optional")
    for key in settings:
        if key not in keys:
            raise UnknownName("setting", key, keys, f"⟨template⟩ {path}")
    return {"hits_at": "hits", "id_at": "id"} | settings


http = EnginePlugin(HttpEngine)
