"""Fuse several rankers by reciprocal rank fusion, or by the sum of their scores.

``rrf``      sum of 1 / (constant + rank); the default constant is 60, as in Cormack, Clarke and Buettcher (2009).
``combsum``  sum of scores (Fox and Shaw 1994), scaled to 0..1 within each query (``normalize='minmax'``) or unchanged
             (``'none'``). With minmax, all scores of a list with equal scores become 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.plugins.kinds import RankerPlugin
from askew.rankers.common import check_k, query_texts, ranked
from askew.rankers.disk import places_of


class FusionRanker:
    """Fuses the top-ranked documents of its rankers, from each as many as the setting depth."""

    def __init__(
        self, rankers: Sequence[RankerPlugin], method: str = "rrf", constant: float = 60.0, normalize: str = "minmax",
        weights: Sequence[float] | None = None, depth: int = 1000,
    ) -> None:  # fmt: skip
        if len(rankers) < 2:
            raise ConfigError(f"fusion: expected two rankers or more, found {len(rankers)}")
        if method not in ("rrf", "combsum") or normalize not in ("minmax", "none"):
            raise ConfigError(
                "fusion: expected method= to be 'rrf' or 'combsum', and normalize= to be 'minmax' or 'none'; found "
                f"method={method!r} and normalize={normalize!r}"
            )
        if not constant > 0 or depth < 1:
            raise ConfigError(
                f"fusion: expected constant > 0 and depth >= 1, found constant={constant} and depth={depth}"
            )
        self._weights = list(weights) if weights is not None else [1.0] * len(rankers)
        if len(self._weights) != len(rankers) or min(self._weights) < 0:
            raise ConfigError(f"fusion: expected {len(rankers)} weights, each 0 or more, found {self._weights}")
        self._rankers, self._method, self._constant = list(rankers), method, constant
        self._normalize, self._depth = normalize, depth
        every = pa.concat_arrays([ranker.doc_ids.cast(pa.string()) for ranker in rankers])
        self.doc_ids = pc.unique(every)
        self._places = [places_of(ranker.doc_ids, self.doc_ids, "fusion") for ranker in rankers]
        self.id = f"{method}-" + "+".join(ranker.id for ranker in rankers)

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text by the fused score."""
        check_k(k)
        queries = query_texts(texts)
        rows, docs, gains = [], [], []
        for ranker, places, weight in zip(self._rankers, self._places, self._weights, strict=True):
            found = ranker.search(queries, max(self._depth, k))
            rows.append(found.rows())
            docs.append(places[found.docs])
            gains.append(weight * self._gain(found))
        return _sum(np.concatenate(rows), np.concatenate(docs), np.concatenate(gains), len(queries), k)

    def _gain(self, found: Hits) -> Any:
        sizes = np.diff(found.offsets)
        if self._method == "rrf":
            rank = np.arange(len(found.docs)) - np.repeat(found.offsets[:-1], sizes) + 1
            return 1.0 / (self._constant + rank)
        scores = found.scores.astype(np.float64)
        if self._normalize == "none" or not len(scores):
            return scores
        filled = sizes > 0
        # Results are sorted: the first score is the highest, the last the lowest.
        high, low = scores[found.offsets[:-1][filled]], scores[found.offsets[1:][filled] - 1]
        span = np.where(high > low, high - low, 1.0)
        high, low, span = (np.repeat(value, sizes[filled]) for value in (high, low, span))
        return np.where(high > low, (scores - low) / span, 1.0)


def _sum(rows: Any, docs: Any, gains: Any, queries: int, k: int) -> Hits:
    """Sum the scores of each document, in the order of the rankers."""
    order = np.lexsort((docs, rows))
    rows, docs, gains = rows[order], docs[order], gains[order]
    if not len(rows):
        return ranked(rows, docs, gains, queries, k)
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (docs[1:] != docs[:-1])])
    return ranked(rows[starts], docs[starts], np.add.reduceat(gains, starts), queries, k)
