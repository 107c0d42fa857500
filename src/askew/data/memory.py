"""Read data in memory: lists, mappings, data frames and Arrow tables, with the same checks as files.

Data frames of any library are read through the Arrow interface (``__arrow_c_stream__``), so none of these libraries is
imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, TypeGuard

import polars as pl
import pyarrow as pa

from askew.core.errors import ConfigError, DataError
from askew.data.documents import as_documents, documents_of, json_document
from askew.data.files import WHITE, reason, shown
from askew.data.judgements import QrelsFile, judgements_of
from askew.data.queries import queries_of, query_rows
from askew.data.runs import Run, run_of

# Used in messages in place of a file name.
_HERE = Path("in memory")
_TABLES = "a mapping, a data frame or an Arrow table"
_DOCUMENTS = f"a list of texts, a list of (id, text) pairs, a list of dicts, {_TABLES}"
_ARROW = ("__arrow_c_stream__", "__arrow_c_array__")


def run_in_memory(run: object, name: str) -> Run:
    """Make a run from a data frame, an Arrow table or ``{query: {document: score}}``."""
    what = f"run {name}"
    table = _nested(run, "score", what) if isinstance(run, Mapping) else _as_table(run, what)
    return replace(run_of(table, Path(name)), name=name)


def judgements_in_memory(qrels: object) -> QrelsFile:
    """Make judgements from a data frame, an Arrow table or ``{query: {document: relevance}}``."""
    what = f"judgements {_HERE}"
    table = _nested(qrels, "relevance", what) if isinstance(qrels, Mapping) else _as_table(qrels, what)
    return judgements_of(table, _HERE)


def queries_in_memory(queries: object) -> pa.Table:
    """Make queries from ``{id: text}``, or from a data frame or Arrow table with the columns of a file of queries."""
    what = f"queries {_HERE}"
    if isinstance(queries, Mapping):
        for query, text in queries.items():
            if not isinstance(text, str):
                raise DataError(f"{what}: expected a text for the query {shown(query)}, found {shown(text)}")
        table = _table({"query_id": _ids(queries, "query_id", what), "text": list(queries.values())}, what)
    else:
        table = _as_table(queries, what)
    return queries_of(query_rows(table, _HERE), _HERE)


def documents_in_memory(docs: object, fields: tuple[str, ...] = ()) -> pa.Table:
    """Make documents from texts, (id, text) pairs, dicts, a mapping of id to text, a data frame or an Arrow table.

    The ids of a list of texts are its positions: "0", "1", ...
    """
    what = f"documents {_HERE}"
    if _is_list(docs):
        return _listed(docs, fields, what)
    if not isinstance(docs, Mapping):
        return documents_of(_as_table(docs, what, _DOCUMENTS), _HERE, fields)
    _refuse_fields("a mapping of id to text", fields, what)
    return _pairs(list(docs.items()), what)


def held_in_memory(docs: object) -> object:
    """Return the documents in a form that can be read repeatedly. A stream, which is read once, becomes a table."""
    return docs if isinstance(docs, Mapping) or _is_list(docs) else _as_table(docs, f"documents {_HERE}", _DOCUMENTS)


def _is_list(thing: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is a sequence, but not a text or bytes."""
    return isinstance(thing, Sequence) and not isinstance(thing, str | bytes | bytearray)


def _listed(docs: Sequence[Any], fields: tuple[str, ...], what: str) -> pa.Table:
    """The documents of a list. All items must have the type of the first."""
    if not docs:
        raise _empty(what)
    if isinstance(docs[0], str):
        _refuse_fields("a list of texts", fields, what)
        return _pairs([(str(position), text) for position, text in enumerate(docs)], what)
    if isinstance(docs[0], Mapping):
        expected = "expected every document to be a dict, because the first document is a dict"
        _check_each(docs, [isinstance(doc, Mapping) for doc in docs], expected, what)
        # A dict is read like a line of JSON Lines.
        rows = [json_document(doc, _HERE, row, fields) for row, doc in enumerate(docs, start=1)]
        return as_documents(*zip(*rows, strict=True))
    expected = "expected a list of texts, a list of (id, text) pairs or a list of dicts"
    _check_each(docs, [isinstance(doc, list | tuple) and len(doc) == 2 for doc in docs], expected, what)
    _refuse_fields("a list of (id, text)", fields, what)
    return _pairs(docs, what)


def _check_each(docs: Sequence[Any], fits: list[bool], expected: str, what: str) -> None:
    if not all(fits):
        position = fits.index(False)
        raise DataError(f"{what}: {expected}; found {shown(docs[position])} at position {position}")


def _pairs(pairs: Sequence[Any], what: str) -> pa.Table:
    for doc, text in pairs:
        if not isinstance(text, str):
            raise DataError(f"{what}: expected a text for the document {shown(doc)}, found {shown(text)}")
    if not pairs:
        raise _empty(what)
    ids = _ids((doc for doc, _ in pairs), "doc_id", what)
    return documents_of(_table({"doc_id": ids, "text": [text for _, text in pairs]}, what), _HERE, ())


def _refuse_fields(kind: str, fields: tuple[str, ...], what: str) -> None:
    if fields:
        raise ConfigError(f"{what}: {kind} has no named fields; fields are for tables and dicts")


def _as_table(thing: object, what: str, expected: str = _TABLES) -> pa.Table:
    """Convert to an Arrow table and check only that it has rows and distinct columns."""
    if not any(hasattr(thing, door) for door in _ARROW):
        raise DataError(f"{what}: expected a path, {expected}, found {type(thing).__name__}")
    try:
        table = thing.to_arrow() if isinstance(thing, pl.DataFrame) else pa.table(thing)
    except (pa.ArrowException, ValueError, TypeError) as error:
        # Mixed types in a column, two columns of the same name, or a single column in place of a table.
        raise DataError(f"{what}: {type(thing).__name__} is not a table of plain columns ({reason(error)})") from None
    twice = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{what}: the column {twice} occurs more than once; rename or remove one")
    if not table.num_rows:
        raise _empty(what)
    return table


def _empty(what: str) -> DataError:
    return DataError(f"{what}: it has no rows; expected at least one row")


def _nested(thing: Mapping[Any, Any], value: str, what: str) -> pa.Table:
    rows = []
    for query, docs in thing.items():
        if not isinstance(docs, Mapping):
            form = f"{{query: {{document: {value}}}}}"
            raise DataError(f"{what}: expected {form}, found {shown(docs)} for {shown(query)}")
        rows += [(query, doc, number) for doc, number in docs.items()]
    if not rows:
        raise _empty(what)
    for query, doc, number in rows:
        if isinstance(number, bool) or not isinstance(number, Real):
            place = f"the {value} of {shown(doc)} for {shown(query)}"
            raise DataError(f"{what}: expected a number as {place}, found {shown(number)}")
    queries, docs, numbers = zip(*rows, strict=True)
    columns = {"query_id": _ids(queries, "query_id", what), "doc_id": _ids(docs, "doc_id", what), value: list(numbers)}
    return _table(columns, what)


def _ids(values: Iterable[object], name: str, what: str) -> list[str]:
    """Convert ids to text. An id must be a text that is not blank, or a whole number."""
    texts = []
    for value in values:
        number = isinstance(value, int) and not isinstance(value, bool)
        if not number and not (isinstance(value, str) and value.strip(WHITE)):
            raise DataError(f"{what}: expected a text or a whole number as {name}, found {shown(value)}")
        texts.append(str(value))
    return texts


def _table(columns: Mapping[str, list[Any]], what: str) -> pa.Table:
    try:
        return pa.table(dict(columns))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise DataError(f"{what}: {reason(error)}") from None
