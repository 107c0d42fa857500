"""Open Parquet files, and convert their columns to ids and texts or raise an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from askew.core.errors import DataError
from askew.corpora.lines import listing, no_value

_BATCH = 65_536


@contextmanager
def _opened(path: Path, what: str) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # UnicodeDecodeError: a damaged column name
        first = next(iter(str(error).splitlines()), "no reason given")
        raise DataError(f"{what} {path}: not a readable Parquet file ({first}); fetch or write it again") from None


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
    try:
        texts = _as_text(column, kind) if _is_text_or_number(kind) else None
    except pa.ArrowException:
        texts = None
    if texts is None:
        raise DataError(f"{what} {path}: expected texts or numbers in the column {name}, found {kind}")
    return texts


def _as_text(column: pa.Array, kind: pa.DataType) -> pa.Array:
    # Decode a dictionary column first: Arrow cannot cast a dictionary of numbers directly to text.
    values = column.cast(kind)
    if pa.types.is_floating(kind):
        # Some programs write NaN for a missing value.
        values = pc.if_else(pc.is_nan(values), None, values)
    return values.cast(pa.large_string())


def _is_text_or_number(kind: pa.DataType) -> bool:
    t = pa.types
    texts = (t.is_string, t.is_large_string, t.is_string_view, t.is_binary, t.is_large_binary, t.is_null)
    return any(test(kind) for test in (*texts, t.is_integer, t.is_floating, t.is_decimal))
