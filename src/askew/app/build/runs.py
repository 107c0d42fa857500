"""retrieve: variants in, their best documents out. One row for each variant."""

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
# Named as Parquet names what is in a list, so that a part reads back as it was written.
DOC, SCORE = (pa.list_(pa.field("element", kind)) for kind in (pa.int32(), pa.float32()))


class RetrieveStage:
    """Searches every variant. One that finds nothing is dropped and counted: an empty list would lean nowhere."""

    name = "retrieve"
    version = 1

    def __init__(
        self, ranker: Callable[[], RankerPlugin], ranker_key: Mapping[str, Any], k: int = 100,
        prepare: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        """``prepare`` makes what every ranker of this kind reads: the index."""
        if k < 1:
            raise ConfigError(f"retrieve: expected k of 1 or more, found {k}")
        self._make, self._key, self.k, self._prepare = ranker, dict(ranker_key), k, prepare

    @cached_property
    def ranker(self) -> RankerPlugin:
        """The ranker, opened once."""
        return self._make()

    def prepare(self) -> None:
        """The index is made once, before any worker opens it."""
        if self._prepare is not None:
            self._prepare()

    @property
    def neural(self) -> bool:
        """Whether the ranker runs a neural model."""
        return has_device("ranker", str(self._key.get("ranker", "")))

    def settings(self) -> Mapping[str, Any]:
        """The ranker with the key of its index, and how many documents."""
        return {"ranker": self._key, "k": self.k}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """The variants with ``doc``, ordinals of the collection, and ``score``, best first."""
        hits = self.ranker.search(rows["text"].combine_chunks(), self.k)
        offsets = pa.array(hits.offsets.astype(np.int32))
        docs = pa.ListArray.from_arrays(offsets, pa.array(hits.docs, pa.int32()), type=DOC)
        scores = pa.ListArray.from_arrays(offsets, pa.array(hits.scores, pa.float32()), type=SCORE)
        table = rows.append_column("doc", docs).append_column("score", scores)
        found = np.diff(hits.offsets) > 0
        dropped = {NOTHING: int((~found).sum())} if not found.all() else {}
        return table.filter(pa.array(found)), dropped
