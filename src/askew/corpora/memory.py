"""What a program has in memory: data frames, Arrow tables, mappings. They pass the checks that files pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from askew.core.errors import ConfigError, DataError
from askew.corpora.documents import documents_of
from askew.corpora.judgements import QrelsFile, judgements_of
from askew.corpora.lines import WHITE, shown
from askew.corpora.runs import RunFile, run_of

# Messages name a file; what is in memory has no better name.
_HERE = Path("in memory")


def run_in_memory(run: object, name: str) -> RunFile:
    """A run from a data frame, an Arrow table or ``{query: {document: score}}``."""
    what = f"run {name}"
    table = _nested(run, "score", what) if isinstance(run, Mapping) else _as_table(run, what)
    return run_of(table, Path(name))


def judgements_in_memory(qrels: object) -> QrelsFile:
    """Judgements from a data frame, an Arrow table or ``{query: {document: relevance}}``."""
    what = f"judgements {_HERE}"
    table = _nested(qrels, "relevance", what) if isinstance(qrels, Mapping) else _as_table(qrels, what)
    return judgements_of(table, _HERE)


def documents_in_memory(docs: object, fields: tuple[str, ...] = ()) -> pa.Table:
    """Documents from a mapping of id to text, a data frame or an Arrow table."""
    what = f"documents {_HERE}"
    if not isinstance(docs, Mapping):
        return documents_of(_as_table(docs, what), _HERE, fields)
    if fields:
        raise ConfigError(f"{what}: a mapping of id to text has no named fields; fields are for tables")
    for doc, text in docs.items():
        if not isinstance(text, str):
            raise DataError(f"{what}: expected a text for the document {shown(doc)}, found {shown(text)}")
    table = _table({"doc_id": _ids(docs, "doc_id", what), "text": list(docs.values())}, what)
    return documents_of(table, _HERE, ())


def _as_table(thing: object, what: str) -> pa.Table:
    """A table with its columns as they are, checked only for being one."""
    if isinstance(thing, pl.DataFrame):
        thing = thing.to_arrow()
    if not isinstance(thing, pa.Table):
        raise DataError(
            f"{what}: expected a path, a mapping, a polars data frame or an Arrow table, found {type(thing).__name__}"
        )
    if not thing.num_rows:
        raise DataError(f"{what}: there are no rows in it; expected at least one")
    return thing


def _nested(thing: Mapping[Any, Any], value: str, what: str) -> pa.Table:
    """``{query: {document: value}}`` as rows."""
    rows = []
    for query, docs in thing.items():
        if not isinstance(docs, Mapping):
            raise DataError(
                f"{what}: expected {{query: {{document: {value}}}}}, found {shown(docs)} for {shown(query)}"
            )
        rows += [(query, doc, number) for doc, number in docs.items()]
    if not rows:
        raise DataError(f"{what}: there are no rows in it; expected at least one")
    for query, doc, number in rows:
        if isinstance(number, bool) or not isinstance(number, Real):
            raise DataError(
                f"{what}: expected a number as the {value} of {shown(doc)} for {shown(query)}, found {shown(number)}"
            )
    queries, docs, numbers = zip(*rows, strict=True)
    columns = {"query_id": _ids(queries, "query_id", what), "doc_id": _ids(docs, "doc_id", what), value: list(numbers)}
    return _table(columns, what)


def _ids(values: Iterable[object], name: str, what: str) -> list[str]:
    """Ids as text: a text that is not blank, or a whole number."""
    found = []
    for value in values:
        number = isinstance(value, int) and not isinstance(value, bool)
        if not number and not (isinstance(value, str) and value.strip(WHITE)):
            raise DataError(f"{what}: expected a text or a whole number as {name}, found {shown(value)}")
        found.append(str(value))
    return found


def _table(columns: Mapping[str, list[Any]], what: str) -> pa.Table:
    try:
        return pa.table(dict(columns))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise DataError(f"{what}: {str(error).splitlines()[0]}") from None
