"""BM25 search in a tantivy index through its Python package (extra ``tantivy``)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from askew.core.errors import ConfigError
from askew.plugins.limits import OneOf
from askew.rankers.engines.client import Answer, EngineError
from askew.rankers.engines.opened import Opened, existing, found_in, library, names_in, sendable
from askew.rankers.engines.plugin import EnginePlugin

_SYNTAXES = ("words", "tantivy")


class TantivyEngine:
    """A folder with a tantivy index, searched by BM25.

    ``fields`` are the searched fields, separated by commas and with optional boosts, as in title^2,text. ``id_field``
    is the stored field with the document id. ``text_fields`` are the stored fields with the text (default: ``fields``).
    With ``syntax="words"``, documents that contain at least one word of the query are found. With ``syntax="tantivy"``,
    a query is read as tantivy's query language, and some queries are errors.
    """

    def __init__(
        self, folder: str, fields: str = "text", id_field: str = "id", text_fields: str | None = None,
        syntax: Annotated[str, OneOf(_SYNTAXES)] = "words",
    ) -> None:  # fmt: skip
        self._folder, self._id_field, self._syntax = folder, id_field, syntax
        self._boosts = dict(_boost(field) for field in names_in(fields))
        if not self._boosts:
            raise ConfigError("tantivy: fields= is empty; give the fields to search, as in 'title^2,text'")
        self._texts = ",".join(self._boosts) if text_fields is None else text_fields
        self._opened = Opened(self._open)
        self.id = f"tantivy-{existing(folder, 'tantivy', 'folder').resolve().name}"

    def settings(self) -> Mapping[str, Any]:
        """The folder and the fields."""
        return {
            "folder": self._folder, "fields": self._boosts, "id_field": self._id_field, "text_fields": self._texts,
            "syntax": self._syntax,
        }  # fmt: skip

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The documents of each query."""
        return [self._find(query, k) for query in queries]

    def close(self) -> None:
        """Close the index."""
        self._opened.close()

    def _find(self, query: str, k: int) -> Answer:
        index, searcher = self._opened.get()
        text = _quoted_words(query) if self._syntax == "words" else sendable(query)
        try:
            parsed = self._parse(index, text)
        except ValueError:
            # The message of tantivy quotes the query, so it is not shown.
            return EngineError(
                f"engine {self.id}: a query is not valid in tantivy's language; correct the query, or set "
                "syntax='words'"
            )
        hits = searcher.search(parsed, k, count=False).hits
        return [
            found_in(_values(searcher.doc(place)), self._id_field, self._texts, score, self.id) for score, place in hits
        ]

    def _parse(self, index: Any, text: str) -> Any:
        boosts = {name: boost for name, boost in self._boosts.items() if boost != 1.0}
        return index.parse_query(text, list(self._boosts), boosts)

    def _open(self) -> tuple[Any, Any]:
        made = library("tantivy", "tantivy")
        try:
            index = made.Index.open(str(existing(self._folder, "tantivy", "folder")))
            # A field that is missing, not indexed or has a custom tokenizer fails here, before any query.
            self._parse(index, '"a"')
        except ValueError as error:
            raise EngineError(f"tantivy: the index in folder= {self._folder} cannot be searched ({error})") from None
        return index, index.searcher()

    def __repr__(self) -> str:
        return f"TantivyEngine({self.id!r})"


def _boost(field: str) -> tuple[str, float]:
    name, _, boost = field.partition("^")
    try:
        return name, float(boost or 1.0)
    except ValueError:
        raise ConfigError(f"tantivy: expected a number as boost in fields=, as in 'title^2', found {field!r}") from None


def _quoted_words(query: str) -> str:
    """The words of a query, each in quotes, so that nothing is read as an operator.

    Words are split as tantivy's tokenizers do, so that none becomes a phrase. Marks are part of the preceding letter.
    """
    parts = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in query)
    return " ".join(f'"{word}"' for word in parts.split())


def _values(document: Any) -> dict[str, Any]:
    """The fields of a document, with a single value or a list of several values."""
    return {name: values[0] if len(values) == 1 else values for name, values in document.to_dict().items()}


tantivy = EnginePlugin(TantivyEngine)
