"""Fill a query into a JSON request, and read the hits from the reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

from askew.core.errors import ConfigError
from askew.rankers.engines.client import EngineError, Found

# Words that query languages read as operators. A backslash makes them plain words.
_OPERATORS = ("AND", "OR", "NOT")

# The number of field names that a message shows, and the most characters of a name.
_NAMES_SHOWN, _NAME_SHOWN = 8, 40


class _Missing:
    """Marks a missing value at the end of a path."""


MISSING = _Missing()


@dataclass(frozen=True)
class QueryText:
    """Prepares the text of a query for an engine: escapes characters and joins words."""

    escape: str = ""
    join: str | None = None

    def of(self, query: str) -> str:
        """The query, with a backslash before everything that the engine would read as an operator."""
        if not self.escape and self.join is None:
            return query
        words = query.split() if self.join is not None else query.split(" ")
        return (self.join or " ").join(self._word(word) for word in words)

    def _word(self, word: str) -> str:
        if "\\" in self.escape and word in _OPERATORS:
            return f"\\{word}"
        return "".join(f"\\{char}" if char in self.escape else char for char in word)


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
        for one in value:
            yield from text_names(one)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str) and str(name) != "key" and not has_place(inner):
                yield str(name)
            yield from text_names(inner)


def has_place(value: Any, mark: str = "{query}") -> bool:
    """Whether a JSON value contains the placeholder for the query."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return any(has_place(inner, mark) for inner in value)
    return isinstance(value, str) and mark in value


def read_body(given: Mapping[str, Any] | str | None) -> dict[str, Any] | None:
    """Read the body of a request, given as a table or as JSON text."""
    if given is None or isinstance(given, Mapping):
        return None if given is None else dict(given)
    try:
        body = json.loads(given)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ConfigError(
            'body= should be a JSON object such as {"text": "{query}", "size": "{k}"}, found something else'
        )
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


@dataclass(frozen=True)
class HitPaths:
    """The paths of the hits in a reply, and of id, score and text in a hit. ``text`` may be several, with commas."""

    hits: str
    doc_id: str
    score: str | None = None
    text: str | None = None
    error: str | None = None
    hits_optional: bool = False

    def read(self, reply: Any, where: str) -> list[Found]:
        """The hits of a reply."""
        if self.error and (said := follow(reply, self.error)) is not MISSING and said:
            raise EngineError(f"{where}: the engine reports an error or partial results", transient=True)
        hits = follow(reply, self.hits)
        if hits is MISSING and self.hits_optional:
            return []
        if not isinstance(hits, list):
            raise EngineError(
                f"{where}: the reply has no list of hits at {self.hits!r}; {_fields(reply)}; set hits_at="
            )
        return [self._found(hit, where) for hit in hits]

    def _found(self, hit: Any, where: str) -> Found:
        found = follow(hit, self.doc_id)
        if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
            raise EngineError(f"{where}: a hit has no document id at {self.doc_id!r}; {_fields(hit)}; set id_at=")
        score = follow(hit, self.score) if self.score else None
        number = float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None
        return Found(str(found), number, joined_text(self.text, lambda at: follow(hit, at)))


def _fields(found: Any) -> str:
    """The names of the fields of a part of a reply, for a message."""
    if not isinstance(found, Mapping):
        return f"found {type(found).__name__}"
    names = [repr(str(name)[:_NAME_SHOWN]) for name in found]
    more = [] if len(names) <= _NAMES_SHOWN else ["..."]
    return f"its fields are {', '.join([*names[:_NAMES_SHOWN], *more]) or 'none'}"


def joined_text(paths: str | None, at: Callable[[str], Any]) -> str | None:
    """Join the texts at comma-separated paths; None if there is no text."""
    parts = [at(path.strip()) for path in (paths or "").split(",") if path.strip()]
    texts = [" ".join(map(str, part)) if isinstance(part, list) else part for part in parts]
    said = [text for text in texts if isinstance(text, str)]
    return " ".join(said) if said else None
