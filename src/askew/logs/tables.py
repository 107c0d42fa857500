"""Convert logs in columns (Parquet, or columns read from JSON or XML) to the common table of events."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, check_names, place
from askew.core.protocols import LogBatch, Rejected
from askew.logs.definition import APOSTROPHES, BLANKS, QUOTES, STRIPPED

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

ROLES = tuple(role for role in LOG_COLUMNS if role != "line")
_SHOWN = 40


def shape(text: str) -> str:
    """Mask a value for error messages: letters become a, digits 9, non-ASCII ?. It shows the form, not the content."""
    cut = text[:_SHOWN]
    drawn = "".join(
        "9" if c.isdigit() else "a" if c.isascii() and c.isalpha() else c if " " <= c <= "~" else "?" for c in cut
    )
    return repr(drawn) + ("..." if len(text) > _SHOWN else "")


# Build the columns of a log from its bytes: queries as canonical terms, ids as hashes, clicks as lists.

_MARKS = re.escape(STRIPPED).replace(r"\'", "'")
_IN_A_TERM = r"a-z0-9\x{80}-\x{10ffff}"
# A term from its first to its last character that is not stripped, with a letter or digit somewhere in it.
_TERM = f"(?:[^ {_MARKS}{_IN_A_TERM}][^ {_IN_A_TERM}]*)?[{_IN_A_TERM}](?:[^ ]*[^ {_MARKS}])?"
_PLAIN_TERMS = "^[a-z0-9]+(?: [a-z0-9]+)*$"


def canonical_column(texts: pa.Array) -> pa.Array:
    """The canonical query of each text of a column. A null gives an empty query."""
    column = pl.Series(texts).fill_null("").str.to_lowercase()
    other = ~column.str.contains(_PLAIN_TERMS)
    terms = (
        column.filter(other)
        .str.replace_all(f"[{APOSTROPHES}]", "'")
        .str.replace_all(f"[{QUOTES}]", '"')
        .str.replace_all(f"[{BLANKS}]", " ")
        .str.extract_all(_TERM)
        .list.join(" ")
    )
    return column.scatter(other.arg_true(), terms).to_arrow().cast(pa.string())


def new_key() -> bytes:
    """A random key for ids, kept in memory only."""
    return secrets.token_bytes(16)


def hashed(ids: pa.Array, key: bytes) -> pa.Array:
    """The 64-bit hash of each id: BLAKE2 with a secret key."""
    encoded = ids.fill_null("").dictionary_encode()
    distinct = encoded.dictionary.view(pa.binary()).to_pylist()
    hashes = b"".join(hashlib.blake2b(name, digest_size=8, key=key).digest() for name in distinct)
    return pa.array(np.frombuffer(hashes, np.uint64)).take(encoded.indices)


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
NUL, NOT_UTF8 = "NUL byte", "not UTF-8"
_TEXTS = ("query", "topic", "click_doc", "results", "texts")
NO_TERM = "query without a term"
NOT_A_RANK = "click rank is not a whole number of 1 or more"
# A whole number of at least this size is milliseconds, a smaller one seconds (up to the year 5138).
_MILLISECONDS_FROM = 100_000_000_000
# The year 10000 in milliseconds. A larger number is in microseconds or finer, or is not a time.
_TOO_LATE = 253_402_300_800_000
_LARGEST_RANK = 2**31 - 1


def wanted_columns(
    names: list[str], chosen: Mapping[str, str] | None, where: str, roles: Sequence[str] = ROLES
) -> dict[str, str]:
    """The column for each part of a log: the one given in ``columns=``, or the column with the name of the part."""
    chosen = chosen or {}
    check_names("column of a log", chosen, roles, "⟨columns⟩")
    names_by_role = {role: chosen.get(role, role) for role in roles if role in chosen or role in names}
    for role, name in names_by_role.items():
        if name not in names:
            raise DataError(f"{where}: expected a column {name}, found none; ⟨columns⟩ names {name!r} as the {role}")
    missing = [role for role in ("time", "query") if role not in names_by_role]
    if missing or not ({"user", "session"} & set(names_by_role)):
        what = ", ".join(missing) or "user or session"
        raise DataError(
            f"{where}: expected a column {what}, found {len(names)} columns; name the columns with ⟨columns⟩, as in "
            "user=UID,time=TS,query=Q"
        )
    return names_by_role


def to_batch(raw: pa.Table, key: Any, where: str, unit: str = "row") -> LogBatch:
    """Convert rows with columns of LOG_COLUMNS, in any compatible types, to events. ``line`` is each row's number."""
    rejected = Rejected()
    columns = {name: raw[name].combine_chunks() for name in raw.column_names}
    columns |= {name: column.cast(_VIEWS[column.type]) for name, column in columns.items() if column.type in _VIEWS}
    good = np.ones(raw.num_rows, np.bool_)
    lines = columns["line"].to_numpy(zero_copy_only=False)

    in_lines = unit == "line"

    def reject(reason: str, rows: Any, name: str = "") -> None:
        shown = columns[name] if name and _is_text(columns[name].type) else None
        bad = np.flatnonzero(rows & good)
        examples = []
        for row in bad[:3].tolist():
            at = place(where, int(lines[row])) if in_lines else f"{where}, {unit} {lines[row]}"
            if shown is not None:
                # The text may not be valid UTF-8.
                value = (
                    shown[row].as_buffer().to_pybytes().decode("utf-8", "replace") if shown[row].is_valid else "None"
                )
                at += f": {name + ' ' if in_lines else ''}{shape(value)}"
            examples.append(at)
        rejected.add(reason, len(bad), examples)
        good[bad] = False

    columns |= {name: _as_texts(columns[name], name, where) for name in _TEXTS if name in columns}
    faults = [_faults(columns[name]) for name in _TEXTS if name in columns]
    for number, reason in enumerate((NUL, NOT_UTF8)):
        reject(reason, np.any([masks[number] for masks in faults], axis=0))
    times, is_time = _times(columns["time"], where)
    reject("unparseable time", ~is_time, "time")
    if "click_rank" in columns:
        ranks, odd = _ranks(columns["click_rank"], where)
        reject(NOT_A_RANK, odd, "click_rank")
        columns["click_rank"] = ranks
    for name in ("user", "session"):
        if name in columns:
            columns[name] = _plain(columns[name], name, where)
            # In a text file, the sessions of a user may have no name.
            if name == "user" or "user" not in columns or not in_lines:
                reject(f"no {name}", pc.equal(pc.binary_length(columns[name].fill_null("")), 0).to_numpy(False))
    if "entry" in columns:
        encoded = _plain(columns["entry"], "entry", where).fill_null("").dictionary_encode()
        texts = [text.decode("utf-8", "replace") for text in encoded.dictionary.view(pa.binary()).to_pylist()]
        # An unknown word is the entry point ``other``.
        codes = [_ENTRY_WORDS.get(text.strip().lower(), 3) for text in texts]
        columns["entry"] = pa.array(codes, pa.uint8()).take(encoded.indices)
    if not good.all():
        keep = pa.array(np.flatnonzero(good))
        columns = {name: column.take(keep) for name, column in columns.items()}
    named: dict[str, Any] = {"time": pa.array(times[good]), "line": columns["line"].cast(pa.int64())}
    for name in ("user", "session"):
        if name in columns:
            named[name] = hashed(columns[name], key)
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
            f"⟨columns⟩: the columns of {what} are fixed; use ⟨columns⟩ only for data frames and for the formats 'tsv' "
            "and 'parquet'",
            code="fixed-columns",
        )


def _with_unranked(clicked: pa.Array, ranks: pa.Array | None) -> pa.Array:
    """Give the rank 0 to clicks without a rank. Their rank is looked up in the results later."""
    docs = list_sizes(clicked)
    ranks = pa.array([[]] * len(docs), LOG_COLUMNS["click_rank"]) if ranks is None else ranks
    rank_counts = list_sizes(ranks)
    unranked = (rank_counts == 0) & (docs > 0)
    sizes = np.where(unranked, docs, rank_counts)
    values = np.zeros(int(sizes.sum()), np.int32)
    values[np.repeat(~unranked, sizes)] = ranks.flatten().to_numpy(zero_copy_only=False)
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
        filled = pc.fill_null(pc.greater(pc.binary_length(texts), 0), False)
        return short_lists(filled.to_numpy(zero_copy_only=False), texts.filter(filled))
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


def _faults(column: pa.Array) -> list[Any]:
    """Which rows have a text with a NUL byte, and which have one that is not UTF-8."""
    raw = _series(column.flatten() if _is_list(column.type) else column)
    masks = [raw.bin.contains(b"\0").fill_null(False), decoded(raw).is_null() & raw.is_not_null()]
    if not any(mask.any() for mask in masks):
        return [np.zeros(len(column), np.bool_)] * 2
    if not _is_list(column.type):
        return [mask.to_numpy() for mask in masks]
    rows = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
    return [np.bincount(rows[mask.to_numpy()], minlength=len(column)) > 0 for mask in masks]


def _series(texts: pa.Array) -> pl.Series:
    """A column of texts as bytes, because the texts of a file may not be UTF-8."""
    return pl.Series(texts.view(pa.large_binary() if texts.type == pa.large_string() else pa.binary()))


def decoded(raw: pl.Series) -> pl.Series:
    """Bytes as texts; null where they are not UTF-8."""

    def decode(text: bytes | None) -> str | None:
        try:
            return None if text is None else text.decode()
        except UnicodeDecodeError:
            return None

    try:
        return raw.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(map(decode, raw), dtype=pl.String)


_DATE_AND_CLOCK = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$".replace(r"\d", "[0-9]")
_MOMENT = (
    r"^(?P<date>\d{4}-\d{2}-\d{2})[ T](?P<hour>\d{2}):(?P<minute>\d{2}):(?P<second>\d{2})(?:\.(?P<part>\d+))?"
    r"(?:[zZ]|(?P<sign>[+-])(?P<hours>\d{2})(?::?(?P<minutes>\d{2}))?)?$"
).replace(r"\d", "[0-9]")
_NUMBER = r"^(?P<whole>[0-9]{1,16})(?:\.(?P<part>[0-9]+))?$"


def parse_times(texts: pl.Series) -> pl.Series:
    """The milliseconds since 1970 of each text; null if it is not a time. Surrounding spaces are ignored."""
    plain = texts.str.contains(_DATE_AND_CLOCK).fill_null(False)
    frame = pl.DataFrame({"text": texts, "plain": plain})
    plain_times = frame.select(
        pl.when("plain").then("text").str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="ms")
    )
    times = plain_times.to_series().cast(pl.Int64)
    return times if plain.all() else times.scatter((~plain).arg_true(), _other_times(texts.filter(~plain)))


def _other_times(texts: pl.Series) -> pl.Series:
    """Times as numbers of seconds or milliseconds, or with a fraction of a second or a time zone."""
    text = pl.col("text").str.strip_chars(" ")
    part = pl.col("part").str.slice(0, 3).str.pad_end(3, "0").cast(pl.Int64)
    frame = texts.to_frame("text")
    whole = pl.col("whole").cast(pl.Int64)
    is_large = whole >= _MILLISECONDS_FROM
    numbers = frame.select(text.str.extract_groups(_NUMBER)).unnest("text").select(
        pl.when(pl.col("part").is_null() & is_large & (whole < _TOO_LATE)).then(whole)
        .when(~is_large).then(whole * 1000 + part.fill_null(0))
    ).to_series()  # fmt: skip
    if not numbers.has_nulls():
        return numbers
    moments = frame.select(text.str.extract_groups(_MOMENT)).unnest("text")
    hour, minute, second, hours, minutes = (
        pl.col(name).cast(pl.Int64).fill_null(0) for name in ("hour", "minute", "second", "hours", "minutes")
    )
    date = pl.col("date").str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("ms")).cast(pl.Int64)
    offset = (hours * 60 + minutes) * pl.when(pl.col("sign") == "-").then(-60_000).otherwise(60_000)
    valid = (hour <= 23) & (minute <= 59) & (second <= 60) & (hours <= 15) & (minutes <= 59)
    clock = ((hour * 60 + minute) * 60 + second) * 1000 + part.fill_null(0)
    return numbers.fill_null(moments.select(pl.when(valid).then(date + clock - offset)).to_series())


def _times(column: pa.Array, where: str) -> tuple[Any, Any]:
    kind = column.type
    if _is_text(kind):
        read = parse_times(decoded(_series(column)))
        return read.fill_null(0).to_numpy(), read.is_not_null().to_numpy()
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(kind):
        times = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).fill_null(0).to_numpy()
        return times, valid & (np.abs(times) < _TOO_LATE)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(f"{where}: expected times as timestamps, texts or numbers, found {kind}")
    values = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
    valid = valid & np.isfinite(values) & (np.abs(values) < _TOO_LATE)
    values = np.where(valid, values, 0.0)
    return np.where(np.abs(values) >= _MILLISECONDS_FROM, values, values * 1000).astype(np.int64), valid


def _ranks(column: pa.Array, where: str) -> tuple[pa.Array, Any]:
    if _is_text(column.type):
        # An empty text is no click; 0 is not a rank.
        texts = decoded(_series(column))
        ranks = texts.to_frame("text").select(
            pl.when(pl.col("text").str.contains("^[0-9]{1,9}$")).then(pl.col("text").cast(pl.Int64, strict=False))
            .when(pl.col("text") != "").then(0)
        )  # fmt: skip
        column = ranks.to_series().to_arrow()
    if not _is_list(column.type):
        filled = column.is_valid()
        column = short_lists(filled.to_numpy(zero_copy_only=False), column.filter(filled))
    if not pa.types.is_integer(column.type.value_type):
        raise DataError(f"{where}: expected click ranks as whole numbers, found {column.type.value_type}")
    ranks = column.flatten().fill_null(0).to_numpy(zero_copy_only=False)
    wrong = (ranks < 1) | (ranks > _LARGEST_RANK)
    odd = np.zeros(len(column), np.bool_)
    np.logical_or.at(odd, pc.list_parent_indices(column).to_numpy(zero_copy_only=False), wrong)
    return column.cast(LOG_COLUMNS["click_rank"], safe=False), odd
