"""Select a reformulation of a query at query time, by its results.

A candidate is eligible if its results lean less than those of the original query and keep enough of its top 10. The
eligible candidate that leans least is selected. This needs no judgements, so a search engine can do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from askew.app.build.built_pairs import LEAN, Built
from askew.core.measure import Direction, new_column, old_column
from askew.core.ranking import Floats, Hits, Ints
from askew.selectors.pareto import epsilon_best
from askew.trainers.selector import ORIGINAL, TopDocuments, least_leaning

TOP = 10
_NONE = -1


@dataclass(frozen=True)
class Variants:
    """The variants of some queries, with their results.

    ``original`` has the row of each original query, ``query`` the number of the query of each row, and ``scores`` the
    values of each measure by row. Lists are in the order in which they are measured.
    """

    table: pa.Table
    query: Ints
    original: Ints
    hits: Hits
    scores: Mapping[str, Floats]

    @property
    def candidates(self) -> Ints:
        """The rows of the reformulations, without the original queries."""
        return np.setdiff1d(np.arange(len(self.query)), self.original)

    def rows_of(self, chosen: Ints) -> Ints:
        """Convert positions among the candidates, or ORIGINAL, to the selected row of each query."""
        taken = chosen != ORIGINAL
        rows = self.original.copy()
        rows[taken] = self.candidates[chosen[taken]]
        return rows


def lower_is_better(values: Floats, direction: Direction) -> Floats:
    """Convert scores so that lower is better: absolute values if zero is best, negated if higher is better."""
    if direction is Direction.ZERO:
        return np.abs(values)
    return -values if direction is Direction.UP else values


def top_documents(hits: Hits, depth: int = TOP) -> tuple[Ints, Floats]:
    """Return the top documents of each list, one row per list, and their scores; -1 after the end of a list."""
    lengths = np.minimum(np.diff(hits.offsets), depth)
    there = np.arange(depth) < lengths[:, None]
    docs, scores = np.full(there.shape, _NONE, np.int64), np.zeros(there.shape)
    at = (hits.offsets[:-1, None] + np.arange(depth))[there]
    docs[there], scores[there] = hits.docs[at], hits.scores[at]
    return docs, scores


def kept_share(old: Ints, new: Ints) -> Floats:
    """Return for each row the share of the documents in ``old`` that are also in ``new``; 0 if ``old`` has none."""
    there = old != _NONE
    kept = (old[:, :, None] == new[:, None, :]).any(axis=2) & there
    return np.asarray(kept.sum(axis=1) / np.maximum(there.sum(axis=1), 1), np.float64)


def choose_by_results(variants: Variants, lean: str, direction: Direction, agree: float) -> Ints:
    """Select for each query the candidate that leans least, by its results.

    Candidates must lean less than the original and keep the share ``agree`` of its top 10. Ties are broken by the share
    that is kept, then by the order. The original is selected if there is no such candidate.
    """
    rows = variants.candidates
    query = variants.query[rows]
    size = lower_is_better(variants.scores[lean], direction)
    docs, _ = top_documents(variants.hits)
    keeps = kept_share(docs[variants.original][query], docs[rows])
    chosen = least_leaning(query, len(variants.original), size[rows], size[variants.original], keeps, agree)
    return variants.rows_of(chosen)


def choose_by_judgements(
    variants: Variants, effectiveness: str, lean: str, directions: Mapping[str, Direction]
) -> Ints:
    """Select for each query the candidate that leans least and is, by the judgements, as effective as the original.

    Ties are broken by effectiveness. The original is selected unless a candidate leans less, or leans equally and is
    more effective.
    """
    rows = variants.candidates
    query = variants.query[rows]
    better, less = (
        directions[name].gain(variants.scores[name][variants.original][query], variants.scores[name][rows])
        for name in (effectiveness, lean)
    )
    with np.errstate(invalid="ignore"):
        improves = (less > 0) | ((less == 0) & (better > 0))
    best = epsilon_best(query, len(variants.original), better, less, 0.0, improves)
    chosen = np.full(len(variants.original), ORIGINAL, np.int64)
    chosen[query[best]] = np.flatnonzero(best)
    return variants.rows_of(chosen)


def choose_by_selector(variants: Variants, folder: Path, index: Path) -> Ints:
    """Select a candidate of each query with a trained selector, which reads texts and results, but no judgements."""
    from askew.app.train.selector import CROSS_ENCODER, LEAN_AWARE, choose, read_rule

    built = _built(variants, index)
    if not len(built.query):
        return variants.original
    rule = LEAN_AWARE if read_rule(folder)[LEAN_AWARE] else CROSS_ENCODER
    # Queries without candidates are not passed to the selector.
    rows = np.unique(variants.query[variants.candidates])
    chosen = np.full(len(variants.original), ORIGINAL, np.int64)
    chosen[rows] = choose(folder, built, rule)
    return variants.rows_of(chosen)


def _built(variants: Variants, index: Path) -> Built:
    rows = variants.candidates
    present, query = np.unique(variants.query[rows], return_inverse=True)
    originals = variants.original[present]
    texts = variants.table["text"].to_pylist()
    lean = variants.scores[LEAN]
    table = pl.DataFrame({
        "query_id": pl.from_arrow(variants.table["query_id"].take(pa.array(rows))),
        "variant_id": pl.from_arrow(variants.table["variant_id"].take(pa.array(rows))),
        "text": [texts[row] for row in rows.tolist()],
        "original_text": [texts[row] for row in originals[query].tolist()],
        old_column(LEAN): lean[originals][query], new_column(LEAN): lean[rows],
    })  # fmt: skip
    docs, scores = top_documents(variants.hits)
    found = TopDocuments(docs[originals], scores[originals]), TopDocuments(docs[rows], scores[rows])
    ids = variants.table["query_id"].take(pa.array(originals)).to_pylist()
    return Built(table, query, ids, [texts[row] for row in originals.tolist()], True, found, index, scored=(LEAN,))
