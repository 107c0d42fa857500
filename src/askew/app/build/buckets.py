"""Sort rows by query id on disk, a bucket of queries at a time, for tables that are larger than memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import polars as pl
import pyarrow as pa

# The approximate number of rows of a bucket; one bucket is in memory at a time.
ROWS = 1 << 15
_BUCKET = "_bucket"


class QueryBuckets:
    """Queries sorted by id, in buckets of about the same number of rows; the rows are in temporary files.

    ``ids`` yields the query ids of the rows of the first table, in any order; ``rows`` is the number of these rows.
    """

    def __init__(self, ids: Iterable[pl.Series], rows: int = ROWS) -> None:
        pieces = [one.value_counts(name="rows") for one in ids]
        schema = {"query_id": pl.String, "rows": pl.UInt32}
        counts = pl.concat(pieces).cast({"rows": pl.UInt32}) if pieces else pl.DataFrame(schema=schema)
        counts = counts.group_by("query_id").sum().sort("query_id")
        before = counts["rows"].cast(pl.Int64).cum_sum().to_numpy() - counts["rows"].to_numpy()
        self.rows = int(counts["rows"].sum())
        self._of = counts.select("query_id", pl.Series(_BUCKET, (before // rows).astype(np.int32)))
        self._numbers = self._of[_BUCKET].unique().sort().to_list()
        self._folder = tempfile.TemporaryDirectory(prefix="askew-")
        self._empty: dict[str, pl.DataFrame] = {}

    @property
    def queries(self) -> pl.Series:
        """All query ids, sorted."""
        return self._of["query_id"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._folder.cleanup()

    def put(self, table: str, frames: Iterable[pl.DataFrame]) -> None:
        """Write the rows of a table to the buckets of their queries; rows of unknown queries are left out."""
        for frame in frames:
            self._empty.setdefault(table, frame.clear())
            named = frame.join(self._of, on="query_id", how="inner", maintain_order="left")
            parts = named.partition_by(_BUCKET, as_dict=True, include_key=False, maintain_order=True)
            for (bucket,), part in parts.items():
                self._append(self._path(table, bucket), part.to_arrow())

    def _path(self, table: str, bucket: object) -> Path:
        return Path(self._folder.name) / f"{table}-{bucket}"

    def _append(self, path: Path, rows: pa.Table) -> None:
        with path.open("ab") as file, pa.ipc.new_stream(file, rows.schema) as stream:
            stream.write_table(rows)

    def __iter__(self) -> Iterator[dict[str, pl.DataFrame]]:
        """Yield the tables of each bucket, with rows in the order in which they were added."""
        if not self._numbers:
            yield dict(self._empty)
        for bucket in self._numbers:
            yield {table: self._read(table, bucket) for table in self._empty}

    def _read(self, table: str, bucket: int) -> pl.DataFrame:
        path = self._path(table, bucket)
        if not path.exists():
            return self._empty[table]
        found = []
        with pa.OSFile(str(path)) as file:
            while file.tell() < file.size():
                found.append(pl.DataFrame(pl.from_arrow(pa.ipc.open_stream(file).read_all())))
        return pl.concat(found)
