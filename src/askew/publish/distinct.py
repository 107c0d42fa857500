"""Count distinct texts exactly, also if they do not fit into memory."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import polars as pl

# The number of texts kept in memory. Beyond it, texts are written to files by hash, so equal texts share a file.
_HELD = 1 << 17
_FILES = 64


class DistinctTexts:
    """Counts distinct texts, and for each pattern the distinct texts that contain a match."""

    def __init__(self, *patterns: re.Pattern[str]) -> None:
        self._patterns = patterns
        self._held: list[pl.Series] = []
        self._size = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._spilled = 0

    def add(self, *texts: pl.Series) -> None:
        """Add texts; nulls are ignored."""
        self._held.append(pl.concat([one.alias("text") for one in texts]).drop_nulls().unique())
        self._size += len(self._held[-1])
        if self._size > _HELD:
            self._spill()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="askew-")
        if not self._held:
            return
        texts = pl.DataFrame({"text": pl.concat(self._held).unique()})
        parted = texts.with_columns(file=pl.col("text").hash(0) % _FILES)
        for (number,), part in parted.partition_by("file", as_dict=True, include_key=False).items():
            part.write_ipc(Path(self._folder.name) / f"{number}-{self._spilled}.arrow")
        self._spilled += 1
        self._held, self._size = [], 0

    def counts(self) -> tuple[int, ...]:
        """The number of distinct texts, then for each pattern the number of distinct texts with a match."""
        if self._folder is None:
            return self._counted(pl.concat(self._held) if self._held else pl.Series("text", [], pl.String))
        self._spill()
        totals = [0] * (1 + len(self._patterns))
        for number in range(_FILES):
            files = sorted(Path(self._folder.name).glob(f"{number}-*.arrow"))
            texts = [pl.read_ipc(file)["text"] for file in files]
            found = self._counted(pl.concat(texts)) if texts else ()
            totals = [total + one for total, one in zip(totals, found, strict=True)] if found else totals
        self.close()
        return tuple(totals)

    def close(self) -> None:
        """Delete the temporary files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _counted(self, texts: pl.Series) -> tuple[int, ...]:
        known = texts.unique().to_list()
        return len(known), *(sum(bool(one.search(text)) for text in known) for one in self._patterns)
