"""Search a table of LanceDB (extra ``lancedb``) by full text or vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from askew.core.errors import ConfigError
from askew.plugins.limits import Count, OneOf
from askew.rankers.engines.client import Answer, EngineError
from askew.rankers.engines.opened import (
    Opened,
    existing,
    found_in,
    is_remote,
    library,
    names_in,
    need_names,
    sendable,
)
from askew.rankers.engines.plugin import EnginePlugin
from askew.rankers.engines.vectors import BATCH, QueryEncoder

# The score is this constant minus the distance. LanceDB's dot distance is one minus the inner product.
_SCORES = {"cosine": 1.0, "dot": 1.0, "l2": 0.0}


class LanceDbEngine:
    """A table of LanceDB in a folder or object store, searched by full text or by vectors.

    ``place`` is the folder of the database or its address, such as s3://bucket/films; LanceDB reads the keys from the
    environment. With ``search="text"``, ``fields`` (separated by commas) are searched. With ``search="vector"``,
    ``vector_column`` is searched by ``distance`` (cosine, dot or l2) for queries encoded by ``model``; ``nprobes`` and
    ``refine_factor`` are passed to the vector index. ``id_column`` has the document id, ``text_columns`` the text.
    """

    how_asked = frozenset({"device"})

    def __init__(
        self, place: str, table: str, search: Annotated[str, OneOf(("text", "vector"))] = "text",
        id_column: str = "id", text_columns: str = "text", fields: str = "text", vector_column: str = "vector",
        distance: Annotated[str, OneOf(tuple(_SCORES))] = "cosine", nprobes: Count | None = None,
        refine_factor: Count | None = None, model: str | None = None, revision: str | None = None,
        query_prompt: str = "", device: str | None = None,
    ) -> None:  # fmt: skip
        if place.startswith("db://"):
            raise ConfigError("lancedb: place= should be a folder or an object store; db:// is not supported")
        if not is_remote(place):
            existing(place, "lancedb", "place")
        self._place, self._table, self._id_column, self._texts = place, table, id_column, text_columns
        self._fields, self._column, self._distance = names_in(fields), vector_column, distance
        self._tuning = {"nprobes": nprobes, "refine_factor": refine_factor}
        self._encoder = QueryEncoder("lancedb", model, revision, query_prompt, device) if search == "vector" else None
        self.batch_size = BATCH if self._encoder else 1
        self._opened = Opened(self._open)
        self.id = f"lancedb-{table}-{search}"

    def settings(self) -> Mapping[str, Any]:
        """The table, its columns and the settings of the search."""
        own: dict[str, Any] = {"fields": self._fields}
        if self._encoder is not None:
            own = {"column": self._column, "distance": self._distance, **self._tuning, **self._encoder.settings()}
        return {"place": self._place, "table": self._table, "id": self._id_column, "texts": self._texts, **own}

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The rows of each query."""
        table = self._opened.get()
        if self._encoder is None:
            return [self._answer(self._matched(table, query).limit(k), "_score") for query in queries]
        return [self._answer(self._nearest(table, one).limit(k), "_distance") for one in self._encoder.dense(queries)]

    def close(self) -> None:
        """Close the table."""
        self._opened.close()

    def _matched(self, table: Any, query: str) -> Any:
        # A query object, so that no character of the text is read as an operator.
        forms, text = library("lancedb.query", "lancedb"), sendable(query)
        asked = (
            forms.MatchQuery(text, self._fields[0])
            if len(self._fields) == 1
            else forms.MultiMatchQuery(text, self._fields)
        )
        return table.search(asked, query_type="fts")

    def _nearest(self, table: Any, vector: list[float]) -> Any:
        asked = table.search(vector, vector_column_name=self._column, query_type="vector")
        asked = asked.distance_type(self._distance)
        for name, value in self._tuning.items():
            asked = asked if value is None else getattr(asked, name)(value)
        return asked

    def _answer(self, asked: Any, ranked_by: str) -> Answer:
        columns = list(dict.fromkeys([self._id_column, *names_in(self._texts), ranked_by]))
        rows = asked.select(columns).to_arrow().to_pylist()
        found = []
        for row in rows:
            value = row[ranked_by]
            score = value if ranked_by == "_score" else _SCORES[self._distance] - value
            found.append(found_in(row, self._id_column, self._texts, score, self.id))
        return found

    def _open(self) -> Any:
        lancedb = library("lancedb", "lancedb")
        where = f"lancedb: the table {self._table!r} of {self._place}"
        try:
            table = lancedb.connect(self._place).open_table(self._table)
        except Exception as error:
            # The library has its own exceptions for missing and for unreachable tables.
            raise EngineError(f"{where} cannot be opened ({type(error).__name__}); check place= and table=") from error
        searched = self._fields if self._encoder is None else [self._column]
        need_names([self._id_column, *names_in(self._texts), *searched], table.schema.names, where)
        if self._encoder is not None:
            width = getattr(table.schema.field(self._column).type, "list_size", None)
            self._encoder.check_width(width, f"{where}, column {self._column!r},")
        return table

    def __repr__(self) -> str:
        return f"LanceDbEngine({self.id!r})"


lancedb = EnginePlugin(LanceDbEngine)
