"""Convert logs in columns (Parquet, or columns read from JSON or XML) to the common table of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, check_name, place
from askew.logs.columns import bytes_of, canonical_column, drop_without_terms, faults_of, hashed, list_sizes
from askew.logs.events import entry_code, shape
from askew.logs.scan import NOT_UTF8, NUL, TOO_LATE, parse_times
from askew.plugins.log_formats import LOG_COLUMNS, LogBatch, Rejected

_FAULTS = {NUL: "NUL byte", NOT_UTF8: "not UTF-8"}
_TEXTS = ("query", "topic", "click_doc", "results", "texts")
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
    columns = {name: _without_views(raw[name].combine_chunks()) for name in raw.column_names}
    good = np.ones(raw.num_rows, np.bool_)
    lines = columns["line"].to_numpy(zero_copy_only=False)

    def reject(reason: str, rows: Any, shown: pa.Array | None = None) -> None:
        bad = np.flatnonzero(rows & good)
        examples = (_example(where, unit, int(lines[i]), shown, int(i)) for i in bad[:3])
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
        reject("click rank is not a whole number of 1 or more", odd)
    if "entry" in columns:
        columns["entry"] = _entries(_plain(columns["entry"], "entry", where))
    keep = pa.array(np.flatnonzero(good))
    table = _events({name: column.take(keep) for name, column in columns.items()}, times[good], key)
    return LogBatch(drop_without_terms(table, rejected, where), raw.num_rows, rejected)


def refuse_columns(columns: Mapping[str, str] | None, what: str) -> None:
    """Raise an error if ``columns`` is given for a format with fixed fields."""
    if columns:
        raise ConfigError(
            f"columns=: the columns of {what} are fixed; use columns= only for data frames and for the formats 'tsv' "
            "and 'parquet'"
        )


def _without_views(column: pa.Array) -> pa.Array:
    """Convert string and binary views to plain columns, because Arrow supports fewer operations on views."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def _events(columns: dict[str, pa.Array], times: Any, key: Any) -> pa.Table:
    named: dict[str, Any] = {"time": pa.array(times), "line": columns["line"].cast(pa.int64())}
    for name in ("user", "session"):
        if name in columns:
            named[name] = pa.array(hashed(columns[name], key))
    named.setdefault("user", named.get("session"))
    named["query"] = canonical_column(columns["query"])
    for name in ("entry", "click_rank", "click_doc", "results", "texts", "topic"):
        if name in columns:
            named[name] = columns[name]
    _complete_clicks(named)
    return pa.table(named)


def _complete_clicks(named: dict[str, Any]) -> None:
    """Give the rank 0 to clicks without a rank. Their rank is looked up in the results later."""
    if "click_doc" not in named:
        return
    docs = list_sizes(named["click_doc"])
    ranks = named.get("click_rank", pa.array([[]] * len(docs), LOG_COLUMNS["click_rank"]))
    known = list_sizes(ranks)
    lost = (known == 0) & (docs > 0)
    sizes = np.where(lost, docs, known)
    values = np.zeros(int(sizes.sum()), np.int32)
    values[np.repeat(~lost, sizes)] = ranks.flatten().to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    named["click_rank"] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def _example(where: str, unit: str, line: int, shown: pa.Array | None, row: int) -> str:
    at = place(where, line) if unit == "line" else f"{where}, {unit} {line}"
    if shown is None:
        return at
    # The text may not be valid UTF-8.
    value = "None" if not shown[row].is_valid else shown[row].as_buffer().to_pybytes().decode("utf-8", "replace")
    return f"{at}: {shape(value)}"


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
        offsets = np.zeros(len(texts) + 1, np.int32)
        np.cumsum(there.to_numpy(zero_copy_only=False), out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), texts.filter(there))
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
    if not _is_list(column.type):
        return faults_of(column)
    inner = faults_of(column.flatten())
    rows = np.zeros(len(column), np.uint8)
    np.maximum.at(rows, pc.list_parent_indices(column).to_numpy(zero_copy_only=False), inner)
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
        offsets = np.zeros(len(column) + 1, np.int32)
        np.cumsum(there.to_numpy(zero_copy_only=False), out=offsets[1:])
        column = pa.ListArray.from_arrays(pa.array(offsets), column.filter(there))
    if not pa.types.is_integer(column.type.value_type):
        raise DataError(f"{where}: expected click ranks as whole numbers, found {column.type.value_type}")
    ranks = column.flatten().fill_null(0).to_numpy(zero_copy_only=False)
    wrong = (ranks < 1) | (ranks > _LARGEST_RANK)
    odd = np.zeros(len(column), np.bool_)
    np.logical_or.at(odd, pc.list_parent_indices(column).to_numpy(zero_copy_only=False), wrong)
    return column.cast(LOG_COLUMNS["click_rank"], safe=False), odd


def _entries(column: pa.Array) -> pa.Array:
    encoded = column.fill_null("").dictionary_encode()
    texts = [text.decode("utf-8", "replace") for text in encoded.dictionary.view(pa.binary()).to_pylist()]
    codes = pa.array([entry_code(text) for text in texts], pa.uint8())
    return codes.take(encoded.indices)
