"""Rows, for the small edges and for plugin authors who prefer them to columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

import pyarrow as pa

from askew.core.tables import DOCUMENTS, JUDGEMENTS, QUERIES, RUN, conform


@dataclass(frozen=True)
class Document:
    """A text that can be ranked."""

    doc_id: str
    text: str


@dataclass(frozen=True)
class Query:
    """An information need, in the words it was first asked."""

    query_id: str
    text: str


@dataclass(frozen=True)
class Judgement:
    """How relevant a document is to a query."""

    query_id: str
    doc_id: str
    relevance: int


@dataclass(frozen=True)
class Ranked:
    """One line of a run."""

    query_id: str
    doc_id: str
    score: float


Row = TypeVar("Row", Document, Query, Judgement, Ranked)
_SCHEMAS: dict[type[Any], pa.Schema] = {Document: DOCUMENTS, Query: QUERIES, Judgement: JUDGEMENTS, Ranked: RUN}


def to_table(rows: Iterable[Row], kind: type[Row]) -> pa.Table:
    """Rows as a table of the right shape."""
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=_SCHEMAS[kind])


def to_rows(table: pa.Table, kind: type[Row]) -> Iterator[Row]:
    """The rows of a table."""
    names = [field.name for field in fields(kind)]
    for values in conform(table, _SCHEMAS[kind], f"{kind.__name__} rows").select(names).to_pylist():
        yield kind(**values)
