"""The reader of JSON Lines for runs, judgements, queries and documents."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from askew.core.errors import DataError, place
from askew.data.files import WHITE, listing, no_value, numbered, reason

# Open Parquet files, and convert their columns to ids and texts or raise an error.

_BATCH = 65_536
_TEXTS_OR_NUMBERS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary,
    pa.types.is_large_binary, pa.types.is_null, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
)  # fmt: skip


@contextmanager
def readable(otherwise: str) -> Iterator[None]:
    """Turn Arrow's exceptions for a damaged file into a DataError of one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: a damaged column name
        raise DataError(f"{otherwise} ({reason(error)}); fetch or write it again", code="damaged") from None


@contextmanager
def _opened(path: Path, what: str) -> Iterator[pq.ParquetFile]:
    with readable(f"{what} {path}: not a readable Parquet file"), pq.ParquetFile(path) as file:
        yield file


def parquet_names(path: Path, what: str) -> list[str]:
    """The names of the columns."""
    with _opened(path, what) as file:
        names: list[str] = file.schema_arrow.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{what} {path}: the column {twice} occurs more than once; rename or remove one")
        return names


def parquet_rows(path: Path, what: str) -> int:
    """The number of rows."""
    with _opened(path, what) as file:
        return int(file.metadata.num_rows)


def parquet_table(path: Path, what: str, names: list[str]) -> pa.Table:
    """Read these columns of the whole file."""
    with _opened(path, what) as file:
        table = file.read(columns=names)
        # Arrow does not check the values by default, and texts may not be valid UTF-8.
        table.validate(full=True)
        return table


def parquet_frames(paths: Sequence[Path], what: str) -> list[pl.DataFrame]:
    """Read the files of one table completely. All must have the columns of the first."""
    frames = [pl.DataFrame(pl.from_arrow(parquet_table(path, what, parquet_names(path, what)))) for path in paths]
    for path, frame in zip(paths, frames, strict=True):
        if frame.schema != frames[0].schema:
            raise DataError(f"{what} {path}: expected the columns of {paths[0].name}; found {listing(frame.columns)}")
    return frames


def parquet_batches(path: Path, what: str, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Read these columns, one batch at a time."""
    with _opened(path, what) as file:
        for batch in file.iter_batches(batch_size=_BATCH, columns=names):
            batch.validate(full=True)
            yield batch


def id_column(rows: pa.Table | pa.RecordBatch, name: str, path: Path, what: str, first: int = 1) -> pa.Array:
    """Convert ids to text. The error for a missing id names the row."""
    ids = text_column(rows, name, path, what).cast(pa.string())
    missing = pc.fill_null(pc.equal(pc.ascii_trim_whitespace(ids), ""), True)
    if pc.any(missing).as_py():
        raise no_value(path, first + pc.index(missing, True).as_py(), name)
    return ids


def text_column(rows: pa.Table | pa.RecordBatch, name: str, path: Path, what: str) -> pa.Array:
    """Convert texts or numbers to text. Nulls are kept."""
    column = rows[name]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if any(is_kind(kind) for is_kind in _TEXTS_OR_NUMBERS):
        with suppress(pa.ArrowException):
            # Decode a dictionary column first: Arrow cannot cast a dictionary of numbers directly to text.
            values = column.cast(kind)
            if pa.types.is_floating(kind):
                # Some programs write NaN for a missing value.
                values = pc.if_else(pc.is_nan(values), None, values)
            return values.cast(pa.large_string())
    raise DataError(f"{what} {path}: expected texts or numbers in the column {name}, found {kind}", code="bad-column")


# The content of a line may be private, so messages name only its type.
_KINDS: dict[type, str] = {
    str: "a text", list: "a list", dict: "an object", int: "a number", float: "a number", bool: "true or false",
    type(None): "null",
}  # fmt: skip


def json_rows(blocks: Iterable[tuple[int, str]], path: Path, expected: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with its line number. ``expected`` describes the content of a line in error messages."""
    for number, line in numbered(blocks):
        if not line.strip(WHITE):
            continue
        row = _parsed(line, path, number, expected)
        if not isinstance(row, dict):
            message = f"{place(path, number)}: expected {expected}, one on each line; found {_kind(row)}"
            raise DataError(message, code="bad-line", line=number)
        yield number, row


def _parsed(line: str, path: Path, number: int, expected: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        why = f"{error.msg} at character {error.pos + 1}"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError:
        # Python refuses to read whole numbers of several thousand digits.
        why = "a number has too many digits"
    message = f"{place(path, number)}: not valid JSON ({why}); expected {expected}, one on each line"
    raise DataError(message, code="bad-json", line=number)


def json_id(value: object, name: str, path: Path, line: int) -> str:
    """Return an id as text. It must be a text that is not blank, or a number."""
    if value is None or (isinstance(value, str) and not value.strip(WHITE)):
        raise no_value(path, line, name)
    return json_text(value, name, path, line)


def json_text(value: object, name: str, path: Path, line: int) -> str:
    """Return a text or a number as text. Lists and objects are refused: their words would come from Python's repr."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            # JSON can express a lone surrogate, but it is no character and cannot be stored.
            half = f"expected characters in {name}, found half a surrogate pair {value[error.start]!r}; remove it"
            raise DataError(f"{place(path, line)}: {half}", code="bad-text") from None
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return str(value)
    message = f"{place(path, line)}: expected a text or a number as {name}, found {_kind(value)}"
    raise DataError(message, code="bad-value", line=line, column=name)


def _kind(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return _KINDS.get(type(value), type(value).__name__)
