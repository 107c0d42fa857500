"""Build the columns of a log from its bytes: queries as canonical terms, ids as hashes, clicks as lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import place
from askew.logs.definition import APOSTROPHES, BLANKS, QUOTES, STRIPPED
from askew.logs.hashing import hash_all
from askew.logs.scan import beyond_ascii, gather, texts_fault, write_terms
from askew.plugins.log_formats import Rejected

_STRIPPED = np.zeros(256, np.bool_)
_STRIPPED[np.frombuffer(STRIPPED.encode(), np.uint8)] = True


def canonical_queries(data: Any, starts: Any, ends: Any) -> pa.Array:
    """The canonical query of each piece ``data[start:end]``, as a column of texts."""
    high = np.flatnonzero(beyond_ascii(data, starts, ends))
    if len(high):
        data, starts, ends = _with_lower_case(data, starts, ends, high)
    return text_array(*write_terms(data, starts, ends, _STRIPPED))


def canonical_column(texts: pa.Array) -> pa.Array:
    """The canonical query of each text of a column. A null gives an empty query."""
    data, offsets = bytes_of(texts)
    return canonical_queries(data, offsets[:-1], offsets[1:])


def _with_lower_case(data: Any, starts: Any, ends: Any, rows: Any) -> Any:
    """Append lower-cased copies of the pieces of ``rows`` to the bytes, and let these rows point to the copies."""
    column = pl.Series(text_array(*gather(data, starts[rows], ends[rows])))
    lowered = (
        column.str.to_lowercase()
        .str.replace_all(f"[{APOSTROPHES}]", "'")
        .str.replace_all(f"[{QUOTES}]", '"')
        .str.replace_all(f"[{BLANKS}]", " ")
    )
    added, offsets = bytes_of(lowered.to_arrow())
    starts, ends = starts.copy(), ends.copy()
    starts[rows], ends[rows] = offsets[:-1] + len(data), offsets[1:] + len(data)
    return np.concatenate([data, added]), starts, ends


def text_array(data: Any, offsets: Any) -> pa.Array:
    """Bytes and offsets as a column of texts, without a copy."""
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def bytes_of(texts: pa.Array) -> tuple[Any, Any]:
    """The bytes of a column of texts and the offset of each text, without a copy where possible."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if array.null_count:
        array = array.fill_null("")
    array = array.cast(pa.large_string()) if array.type not in (pa.string(), pa.large_string()) else array
    kind = np.int32 if array.type == pa.string() else np.int64
    buffers = array.buffers()
    if buffers[1] is None or not len(array):
        return np.zeros(0, np.uint8), np.zeros(len(array) + 1, np.int64)
    offsets = np.frombuffer(buffers[1], kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.zeros(0, np.uint8)
    return data, offsets


def hashed(texts: pa.Array, key: Any) -> Any:
    """The hash of each text with the secret key."""
    data, offsets = bytes_of(texts)
    return hash_all(data, offsets[:-1], offsets[1:], key)


def faults_of(texts: pa.Array) -> Any:
    """For each text of a column: 0, or the code of its fault (NUL byte, not UTF-8)."""
    data, offsets = bytes_of(texts)
    faults = np.zeros(len(offsets) - 1, np.uint8)
    texts_fault(data, offsets, faults)
    return faults


def short_lists(there: Any, values: pa.Array) -> pa.Array:
    """A column of lists: one value for the rows marked in ``there``, an empty list for all others."""
    offsets = np.zeros(len(there) + 1, np.int32)
    np.cumsum(there, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def drop_without_terms(table: pa.Table, rejected: Rejected, where: str) -> pa.Table:
    """Drop rows whose query has no term, and count them as rejected."""
    empty = pc.equal(pc.binary_length(table["query"]), 0)
    if not pc.any(empty).as_py():
        return table
    lines = table["line"].filter(empty)
    rejected.add("query without a term", len(lines), (place(where, line.as_py()) for line in lines[:3]))
    return table.filter(pc.invert(empty))


def list_sizes(lists: pa.Array) -> Any:
    """The number of values of each list; 0 for a null."""
    return pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
