"""Cut the rows of a step into shards. The cuts do not depend on the executor or the number of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew.core.errors import StageError


class Shards:
    """Cuts the rows that are not done yet into shards, and counts all rows in ``total``.

    With ``together``, consecutive rows with the same value in that column stay in one shard. ``read`` is called after
    each batch of the input.
    """

    def __init__(
        self,
        batches: Iterable[pa.Table],
        done: list[tuple[int, int]],
        shard_rows: int,
        read: Callable[[], None],
        together: str | None = None,
    ) -> None:
        if shard_rows < 1:
            raise StageError(f"a shard must have at least one row, found {shard_rows}")
        self.batches, self.done, self.shard_rows, self.read = batches, done, shard_rows, read
        self.together, self._last = together, object()
        self.total = 0

    def __iter__(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield shards. A shard ends when it is full, where a finished part begins, and at the end of the input."""
        waiting: list[pa.Table] = []
        start = 0
        for batch in self.batches:
            begins = self._begins(batch)
            at = 0
            while at < batch.num_rows:
                here = self.total
                if waiting and begins[at] and here >= self._end_of_shard(start):
                    yield start, pa.concat_tables(waiting)
                    waiting, start = [], here
                skip = self._done_until(here)
                if skip:
                    size = min(skip - here, batch.num_rows - at)
                    start = here + size
                else:
                    due = at + max(1, self._end_of_shard(start) - here)
                    cuts = np.flatnonzero(begins[due:])
                    size = (due + int(cuts[0]) if len(cuts) else batch.num_rows) - at
                    waiting.append(batch.slice(at, size))
                at += size
                self.total += size
            self.read()
        if waiting:
            yield start, pa.concat_tables(waiting)

    def _begins(self, batch: pa.Table) -> npt.NDArray[np.bool_]:
        """The rows at which a shard may begin."""
        if self.together is None or not batch.num_rows:
            return np.ones(batch.num_rows, np.bool_)
        values = np.array(batch[self.together].to_pylist(), object)
        begins = np.concatenate([[values[0] != self._last], values[1:] != values[:-1]]).astype(np.bool_)
        self._last = values[-1]
        return begins

    def _done_until(self, row: int) -> int:
        return next((stop for start, stop in self.done if start <= row < stop), 0)

    def _end_of_shard(self, start: int) -> int:
        following = min((a for a, _ in self.done if a > start), default=start + self.shard_rows)
        return min(start + self.shard_rows, following)
