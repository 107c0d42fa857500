"""Tables of pairs that are read part by part, so that memory does not grow with the number of candidates.

All rows of a query are in one part, one after the other, as the steps of a build write them. Results are the same to
the last bit, with one part or with many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

# The number of a row's query in the order of all query ids.
QUERY = "_query"
Reader = Callable[[list[str]], Iterator[pl.DataFrame]]
Change = Callable[[pl.DataFrame], pl.DataFrame]


class PairParts:
    """A table that is read in parts, as often as needed, and only the requested columns."""

    def __init__(self, read: Reader, columns: Sequence[str]) -> None:
        self._read, self.columns = read, list(columns)

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns of each part."""
        return self._read(list(dict.fromkeys(columns)))

    def numbered(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns of each part, and the number of the query of each row."""
        for frame, numbers in zip(self.frames(["query_id", *columns]), self.query_numbers, strict=True):
            runs = frame["query_id"].rle_id().to_numpy()
            yield frame.with_columns(pl.Series(QUERY, numbers[runs], pl.Int64))

    @cached_property
    def query_numbers(self) -> list[npt.NDArray[np.int32]]:
        """For each part the numbers of its queries, in the order of the rows."""
        ids = [_compact(pl.DataFrame(frame["query_id"].unique())) for frame in self.frames(["query_id"])]
        if not ids:
            return []
        # Read again instead of kept: a step that repeats its queries has many more rows than queries.
        known = pl.concat(ids).unique().sort("query_id").with_row_index(QUERY)
        runs = (frame["query_id"].rle().struct.field("value") for frame in self.frames(["query_id"]))
        found = (one.to_frame("query_id").join(known, on="query_id", how="left", maintain_order="left") for one in runs)
        return [one[QUERY].to_numpy().astype(np.int32) for one in found]

    @cached_property
    def queries(self) -> int:
        """How many queries there are."""
        return max((int(one.max()) + 1 for one in self.query_numbers if len(one)), default=0)

    @cached_property
    def height(self) -> int:
        """How many rows there are."""
        return sum(frame.height for frame in self.frames(self.columns[:1]))

    def count(self, *flags: str) -> dict[str, int]:
        """How many rows have each flag."""
        found = dict.fromkeys(flags, 0)
        for frame in self.frames(flags) if flags else ():
            for name in flags:
                found[name] += int(frame[name].sum())
        return found

    def filter(self, wanted: pl.Expr | str) -> PairParts:
        """Return the rows that match; their queries keep their numbers."""
        wanted = pl.col(wanted) if isinstance(wanted, str) else wanted
        return _Changed(self, lambda frame: frame.filter(wanted), wanted.meta.root_names())

    def with_flag(self, name: str) -> PairParts:
        """The table with one more column, true in all rows."""
        return _Changed(self, lambda frame: frame.with_columns(pl.lit(True).alias(name)), (), [name])

    def map(self, columns: Sequence[str], change: Change) -> pl.DataFrame:
        """Apply a function to each part and concatenate the results, which should have few rows per query."""
        found = [_compact(change(frame)) for frame in self.frames(columns)]
        return pl.concat(found) if found else pl.DataFrame()


class _Changed(PairParts):
    """A table that changes the parts of another table as they are read."""

    def __init__(self, base: PairParts, change: Change, needs: Sequence[str], made: Sequence[str] = ()) -> None:
        super().__init__(base.frames, [*base.columns, *(name for name in made if name not in base.columns)])
        self._base, self._change, self._needs, self._made = base, change, list(needs), set(made)

    def _below(self, columns: Sequence[str]) -> list[str]:
        found = [*(name for name in columns if name not in self._made), *self._needs]
        return list(dict.fromkeys(found)) or self._base.columns[:1]

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        for frame in self._base.frames(self._below(columns)):
            yield self._change(frame).select(list(dict.fromkeys(columns)))

    def numbered(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        for frame in self._base.numbered(self._below(columns)):
            yield self._change(frame).select(list(dict.fromkeys([QUERY, *columns])))

    @cached_property
    def queries(self) -> int:
        return self._base.queries


def _compact(frame: pl.DataFrame) -> pl.DataFrame:
    """Copy a few rows of a part, so that their texts do not keep the whole part in memory."""
    return pl.DataFrame(pl.from_arrow(frame.rechunk().to_arrow())).cast(dict(frame.schema))  # type: ignore[arg-type]


def parts_of(pairs: pl.DataFrame | PairParts) -> PairParts:
    """Return a table in parts; a data frame is one part.

    In a data frame the rows of a query need not be together.
    """
    if isinstance(pairs, PairParts):
        return pairs
    frame = pairs
    return PairParts(lambda columns: iter([frame.select(columns)]), frame.columns)
