"""The stage retrieve: searches the variants; one row of results for each variant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError
from askew.plugins.kinds import RankerPlugin
from askew.plugins.registry import has_device

NOTHING = "found nothing"
# Parquet calls the values of a list "element"; with this name, a part reads back as it was written.
DOC, SCORE = (pa.list_(pa.field("element", kind)) for kind in (pa.int32(), pa.float32()))


class RetrieveStage:
    """Searches every variant; variants without results are dropped and counted, as an empty list has no lean."""

    name = "retrieve"
    version = 1

    def __init__(
        self, ranker: Callable[[], RankerPlugin], ranker_key: Mapping[str, Any], k: int = 100,
        prepare: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        """``prepare`` builds the index of the ranker."""
        if k < 1:
            raise ConfigError(f"retrieve: expected k of 1 or more, found {k}")
        self._make, self._key, self.k, self._prepare = ranker, dict(ranker_key), k, prepare

    @cached_property
    def ranker(self) -> RankerPlugin:
        """The ranker; it is opened at the first use."""
        return self._make()

    def prepare(self) -> None:
        """Build the index once, before any worker opens it."""
        if self._prepare is not None:
            self._prepare()

    @property
    def neural(self) -> bool:
        """Whether the ranker runs a neural model."""
        return has_device("ranker", str(self._key.get("ranker", "")))

    def settings(self) -> Mapping[str, Any]:
        """Return the ranker with the key of its index, and the number of documents."""
        return {"ranker": self._key, "k": self.k}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants with ``doc`` (ordinals of documents) and ``score``, best first."""
        hits = self.ranker.search(rows["text"].combine_chunks(), self.k)
        offsets = pa.array(hits.offsets.astype(np.int32))
        docs = pa.ListArray.from_arrays(offsets, pa.array(hits.docs, pa.int32()), type=DOC)
        scores = pa.ListArray.from_arrays(offsets, pa.array(hits.scores, pa.float32()), type=SCORE)
        table = rows.append_column("doc", docs).append_column("score", scores)
        found = np.diff(hits.offsets) > 0
        dropped = {NOTHING: int((~found).sum())} if not found.all() else {}
        return table.filter(pa.array(found)), dropped
