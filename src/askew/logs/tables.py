"""Convert logs in columns (Parquet, or columns read from JSON or XML) to the common table of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, check_name, place
from askew.core.protocols import LogBatch, Rejected
from askew.logs.definition import APOSTROPHES, BLANKS, QUOTES, STRIPPED
from askew.logs.scan import (
    NOT_UTF8,
    NUL,
    TOO_LATE,
    beyond_ascii,
    gather,
    hash_all,
    parse_times,
    texts_fault,
    write_terms,
)

# Values of a log: the entry point of a query, and the masked form of a value for error messages.

# The entry points of a query: how it was entered. 0 is unknown.
ENTRIES = ("", "edited", "recommended", "other")
_ENTRY_WORDS = {
    "edited": 1, "edit": 1, "typed": 1, "reformulated": 1, "recommended": 2, "recommendation": 2, "suggested": 2,
    "suggestion": 2, "related": 2, "": 0, "-": 0, "none": 0, "null": 0,
}  # fmt: skip

# The columns that a row of a log can have, in their stored form: ids are hashed with a key of the run, a query is its
# terms, times are milliseconds. A format may return other types: texts or numbers for ids, texts, numbers or timestamps
# for times, a single value for a list.
LOG_COLUMNS: dict[str, pa.DataType] = {
    "user": pa.uint64(),
    "session": pa.uint64(),
    "time": pa.int64(),
    "query": pa.string(),
    "entry": pa.uint8(),
    "click_rank": pa.list_(pa.int32()),
    "click_doc": pa.list_(pa.string()),
    "results": pa.list_(pa.string()),
    "texts": pa.list_(pa.string()),
    "topic": pa.string(),
    "line": pa.int64(),
}

_SHOWN = 40


def entry_code(text: str) -> int:
    """The code of an entry point; an unknown word is ``other``."""
    return _ENTRY_WORDS.get(text.strip().lower(), 3)


def shape(text: str) -> str:
    """Mask a value for error messages: letters become a, digits 9, non-ASCII ?. It shows the form, not the content."""
    cut = text[:_SHOWN]
    drawn = "".join(
        "9" if c.isdigit() else "a" if c.isascii() and c.isalpha() else c if " " <= c <= "~" else "?" for c in cut
    )
    return repr(drawn) + ("..." if len(text) > _SHOWN else "")


# Build the columns of a log from its bytes: queries as canonical terms, ids as hashes, clicks as lists.

_STRIPPED = np.zeros(256, np.bool_)
_STRIPPED[np.frombuffer(STRIPPED.encode(), np.uint8)] = True


def canonical_queries(data: Any, starts: Any, ends: Any) -> pa.Array:
    """The canonical query of each piece ``data[start:end]``, as a column of texts."""
    high = np.flatnonzero(beyond_ascii(data, starts, ends))
    if len(high):
        # Lower-cased copies of the pieces with non-ASCII characters are appended to the bytes.
        column = pl.Series(text_array(*gather(data, starts[high], ends[high])))
        lowered = (
            column.str.to_lowercase()
            .str.replace_all(f"[{APOSTROPHES}]", "'")
            .str.replace_all(f"[{QUOTES}]", '"')
            .str.replace_all(f"[{BLANKS}]", " ")
        )
        added, offsets = bytes_of(lowered.to_arrow())
        starts, ends = starts.copy(), ends.copy()
        starts[high], ends[high] = offsets[:-1] + len(data), offsets[1:] + len(data)
        data = np.concatenate([data, added])
    return text_array(*write_terms(data, starts, ends, _STRIPPED))


def canonical_column(texts: pa.Array) -> pa.Array:
    """The canonical query of each text of a column. A null gives an empty query."""
    data, offsets = bytes_of(texts)
    return canonical_queries(data, offsets[:-1], offsets[1:])


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


def short_lists(sizes: Any, values: pa.Array) -> pa.Array:
    """A column of lists with these sizes. True is a list of one value, False an empty list."""
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def drop_without_terms(table: pa.Table, rejected: Rejected, where: str) -> pa.Table:
    """Drop rows whose query has no term, and count them as rejected."""
    empty = pc.equal(pc.binary_length(table["query"]), 0)
    if not pc.any(empty).as_py():
        return table
    lines = table["line"].filter(empty)
    rejected.add(NO_TERM, len(lines), (place(where, line.as_py()) for line in lines[:3]))
    return table.filter(pc.invert(empty))


def list_sizes(lists: pa.Array) -> Any:
    """The number of values of each list; 0 for a null."""
    return pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)


# Arrow supports fewer operations on views.
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_FAULTS = {NUL: "NUL byte", NOT_UTF8: "not UTF-8"}
_TEXTS = ("query", "topic", "click_doc", "results", "texts")
NO_TERM = "query without a term"
NOT_A_RANK = "click rank is not a whole number of 1 or more"
_MILLISECONDS_FROM = 100_000_000_000
_LARGEST_RANK = 2**31 - 1


def wanted_columns(names: list[str], asked: Mapping[str, str] | None, where: str) -> dict[str, str]:
    """The column for each part of a log: the one given in ``columns=``, or the column with the name of the part."""
    roles = [role for role in LOG_COLUMNS if role != "line"]
    for role, name in (asked or {}).items():
        check_name("column of a log", role, roles, "columns=")
        if name not in names:
            raise DataError(f"{where}: columns= names {name!r} as the {role}, but there is no such column")
    found = {role: (asked or {}).get(role, role) for role in roles if role in (asked or {}) or role in names}
    lost = [role for role in ("time", "query") if role not in found]
    if lost or not ({"user", "session"} & set(found)):
        what = ", ".join(lost) or "user or session"
        raise DataError(
            f"{where}: expected a column {what}, found {len(names)} columns; name the columns with columns=, as in "
            "user=UID,time=TS,query=Q"
        )
    return found


def to_batch(raw: pa.Table, key: Any, where: str, unit: str = "row") -> LogBatch:
    """Convert rows with columns of LOG_COLUMNS, in any compatible types, to events. ``line`` is each row's number."""
    rejected = Rejected()
    columns = {name: raw[name].combine_chunks() for name in raw.column_names}
    columns |= {name: one.cast(_VIEWS[one.type]) for name, one in columns.items() if one.type in _VIEWS}
    good = np.ones(raw.num_rows, np.bool_)
    lines = columns["line"].to_numpy(zero_copy_only=False)

    def reject(reason: str, rows: Any, shown: pa.Array | None = None) -> None:
        bad = np.flatnonzero(rows & good)
        examples = []
        for row in bad[:3].tolist():
            at = place(where, int(lines[row])) if unit == "line" else f"{where}, {unit} {lines[row]}"
            if shown is not None:
                # The text may not be valid UTF-8.
                value = (
                    shown[row].as_buffer().to_pybytes().decode("utf-8", "replace") if shown[row].is_valid else "None"
                )
                at += f": {shape(value)}"
            examples.append(at)
        rejected.add(reason, len(bad), examples)
        good[bad] = False

    faults = np.zeros(raw.num_rows, np.uint8)
    for name in _TEXTS:
        if name in columns:
            columns[name] = _as_texts(columns[name], name, where)
            np.maximum(faults, _faults(columns[name]), out=faults)
    for code, reason in _FAULTS.items():
        reject(reason, faults == code)
    times, is_time = _times(columns["time"], where)
    reject("unparseable time", ~is_time, columns["time"] if _is_text(columns["time"].type) else None)
    for name in ("user", "session"):
        if name in columns:
            columns[name] = _plain(columns[name], name, where)
            reject(f"no {name}", pc.equal(pc.binary_length(columns[name].fill_null("")), 0).to_numpy(False))
    if "click_rank" in columns:
        columns["click_rank"], odd = _ranks(columns["click_rank"], where)
        reject(NOT_A_RANK, odd)
    if "entry" in columns:
        encoded = _plain(columns["entry"], "entry", where).fill_null("").dictionary_encode()
        texts = [text.decode("utf-8", "replace") for text in encoded.dictionary.view(pa.binary()).to_pylist()]
        columns["entry"] = pa.array(map(entry_code, texts), pa.uint8()).take(encoded.indices)
    keep = pa.array(np.flatnonzero(good))
    columns = {name: column.take(keep) for name, column in columns.items()}
    named: dict[str, Any] = {"time": pa.array(times[good]), "line": columns["line"].cast(pa.int64())}
    for name in ("user", "session"):
        if name in columns:
            data, offsets = bytes_of(columns[name])
            named[name] = pa.array(hash_all(data, offsets[:-1], offsets[1:], key))
    named.setdefault("user", named.get("session"))
    named["query"] = canonical_column(columns["query"])
    others = ("entry", "click_rank", "click_doc", "results", "texts", "topic")
    named |= {name: columns[name] for name in others if name in columns}
    if "click_doc" in named:
        named["click_rank"] = _with_unranked(named["click_doc"], named.get("click_rank"))
    table = pa.table(named)
    return LogBatch(drop_without_terms(table, rejected, where), raw.num_rows, rejected)


def refuse_columns(columns: Mapping[str, str] | None, what: str) -> None:
    """Raise an error if ``columns`` is given for a format with fixed fields."""
    if columns:
        raise ConfigError(
            f"columns=: the columns of {what} are fixed; use columns= only for data frames and for the formats 'tsv' "
            "and 'parquet'",
            code="fixed-columns",
        )


def _with_unranked(clicked: pa.Array, ranks: pa.Array | None) -> pa.Array:
    """Give the rank 0 to clicks without a rank. Their rank is looked up in the results later."""
    docs = list_sizes(clicked)
    ranks = pa.array([[]] * len(docs), LOG_COLUMNS["click_rank"]) if ranks is None else ranks
    known = list_sizes(ranks)
    lost = (known == 0) & (docs > 0)
    sizes = np.where(lost, docs, known)
    values = np.zeros(int(sizes.sum()), np.int32)
    values[np.repeat(~lost, sizes)] = ranks.flatten().to_numpy(zero_copy_only=False)
    return short_lists(sizes, pa.array(values))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _as_texts(column: pa.Array, name: str, where: str) -> pa.Array:
    """A column of texts, or of lists of texts if the part is a list. A single value becomes a list of one."""
    lists = pa.types.is_list(LOG_COLUMNS[name])
    if lists and not _is_list(column.type):
        texts = _plain(column, name, where)
        there = pc.fill_null(pc.greater(pc.binary_length(texts), 0), False)
        return short_lists(there.to_numpy(zero_copy_only=False), texts.filter(there))
    return _cast(column, LOG_COLUMNS[name], name, where) if lists else _plain(column, name, where)


def _plain(column: pa.Array, name: str, where: str) -> pa.Array:
    """A column as texts. Bytes are not decoded here; invalid UTF-8 is detected later."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    if pa.types.is_binary(column.type):
        return column.view(pa.string())
    if pa.types.is_large_binary(column.type):
        column = column.view(pa.large_string())
    return _cast(column, pa.string(), name, where)


def _cast(column: pa.Array, kind: pa.DataType, name: str, where: str) -> pa.Array:
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(f"{where}: expected the {name} as text in each row, found {column.type}") from None


def _faults(column: pa.Array) -> Any:
    """For each row: 0, or the code of a fault of its texts (NUL byte, not UTF-8)."""
    data, offsets = bytes_of(column.flatten() if _is_list(column.type) else column)
    faults = np.zeros(len(offsets) - 1, np.uint8)
    texts_fault(data, offsets, faults)
    if not _is_list(column.type):
        return faults
    rows = np.zeros(len(column), np.uint8)
    np.maximum.at(rows, pc.list_parent_indices(column).to_numpy(zero_copy_only=False), faults)
    return rows


def _times(column: pa.Array, where: str) -> tuple[Any, Any]:
    """The times in milliseconds, and whether each row has a valid time."""
    kind = column.type
    if _is_text(kind):
        data, offsets = bytes_of(column)
        times, good = np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
        parse_times(data, offsets[:-1], offsets[1:], times, good)
        return times, good
    there = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(kind):
        times = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).fill_null(0).to_numpy()
        return times, there & (np.abs(times) < TOO_LATE)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(f"{where}: expected times as timestamps, texts or numbers, found {kind}")
    values = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
    there = there & np.isfinite(values) & (np.abs(values) < TOO_LATE)
    values = np.where(there, values, 0.0)
    return np.where(np.abs(values) >= _MILLISECONDS_FROM, values, values * 1000).astype(np.int64), there


def _ranks(column: pa.Array, where: str) -> tuple[pa.Array, Any]:
    """Lists of ranks, and which rows have an invalid rank."""
    if not _is_list(column.type):
        there = column.is_valid()
        column = short_lists(there.to_numpy(zero_copy_only=False), column.filter(there))
    if not pa.types.is_integer(column.type.value_type):
        raise DataError(f"{where}: expected click ranks as whole numbers, found {column.type.value_type}")
    ranks = column.flatten().fill_null(0).to_numpy(zero_copy_only=False)
    wrong = (ranks < 1) | (ranks > _LARGEST_RANK)
    odd = np.zeros(len(column), np.bool_)
    np.logical_or.at(odd, pc.list_parent_indices(column).to_numpy(zero_copy_only=False), wrong)
    return column.cast(LOG_COLUMNS["click_rank"], safe=False), odd
