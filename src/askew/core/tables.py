"""The shape of every table that travels: column names are those of ir_measures and ir_datasets."""

from __future__ import annotations

import pyarrow as pa

from askew.core.errors import DataError

DOCUMENTS = pa.schema([("doc_id", pa.string()), ("text", pa.large_string())])
JUDGEMENTS = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("relevance", pa.int32())])


def mentions_schema(groups: tuple[str, ...], clipped: bool = False) -> pa.Schema:
    """Mentions: one dense count per group, and the number of tokens (-1: the line of the document was malformed).

    ``clipped`` is how many words of all groups the tokenizer left out, where it leaves out clipped words.
    """
    counts = [(f"mentions_{group}", pa.int32()) for group in groups]
    left = [("clipped", pa.int32())] if clipped else []
    return pa.schema([("doc_id", pa.string()), ("tokens", pa.int32()), *counts, *left])


def conform(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    """The table with exactly these columns and types, or an error that says what differs."""
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        found = ", ".join(table.column_names) or "none"
        raise DataError(f"{where}: expected the columns {', '.join(schema.names)}; found {found}")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{where}: {error}") from None
