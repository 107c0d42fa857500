"""Pairs that hold: less lean that is owed neither to chance nor to one document, for builds with ``select.holds``.

Lean is the first measure of lean of the selector, without its sign: by mentions of people in general (``who=generic``)
if the measure names them, and again by all mentions.

A query can yield a pair if
    * a document of the collection is judged relevant to it;
    * at least two articles of its results lean;
    * its results lean beyond chance, with the false-discovery rate over all queries at most 5%
      (``askew.measures.chance``); of no query if it is not known which documents are of one article.
A candidate of such a query may be chosen if
    * effectiveness is above zero for the query or for the candidate;
    * its results lean less, by both kinds of mentions, also if any one article is left out of both result lists.

A build searches and scores the original queries first and reformulates only those that can yield a pair. A pair that
may not be chosen stays a pair, with the reason in the column ``refused``; if the selector accepts it, it is a negative
sample. Placebo lists are treated in the same way (``askew.pairs.held_out``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from scipy import sparse

from askew.core.defaults import LEVEL
from askew.core.groups import ANY
from askew.core.measure import new_column, old_column
from askew.core.protocols import Inputs
from askew.core.ranking import Flags, Floats, Ints, Rankings
from askew.measures.catalogue import MeasureRequest
from askew.measures.chance import Null, chance
from askew.measures.common import GroupDifference, mentions_for
from askew.measures.scorer import Scorer

# The columns of a pair by which it may be chosen: the p-value of the original query, corrected for all queries; the
# gain by all mentions; the least gain by both kinds of mentions if one article is left out; the documents of the gain.
CHANCE, ALL, LEAST, DOCUMENTS, REFUSED = "p_chance", "all_mentions_gain", "least_gain", "carried_by", "refused"
NO_RELEVANT = "no document is judged relevant"
FEW = "fewer than two articles of the results lean"
BY_CHANCE = "the results do not lean beyond chance"
UNKNOWN = "neither ids nor headings say which documents are of one article, so chance is not known"
NO_EFFECT = "effectiveness is 0 for both queries"
MORE_BY_ALL = "the results do not lean less by all mentions"
ONE_DOCUMENT = "less lean is owed to one document"
# Sums in another order may differ by this much.
_TIE = 1e-9


def corrected(p: Floats) -> Floats:
    """The p-values corrected by Benjamini and Hochberg: at most the level for those that ``discoveries`` finds."""
    found = np.ones(len(p))
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    scaled = p[order] * len(order) / np.arange(1, len(order) + 1)
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found


def refusals(pairs: pl.DataFrame, effectiveness: Sequence[str]) -> pl.Series:
    """Why each pair may not be chosen; null if it may. Only the values in the columns of a pair decide."""
    reached = [pl.col(side(name)) > 0 for name in effectiveness for side in (old_column, new_column)]
    return pairs.select(
        pl.when(pl.col(CHANCE) > LEVEL)
        .then(pl.lit(BY_CHANCE))
        .when(~pl.any_horizontal(*reached) if reached else pl.lit(False))
        .then(pl.lit(NO_EFFECT))
        .when(pl.col(ALL) <= _TIE)
        .then(pl.lit(MORE_BY_ALL))
        .when(pl.col(LEAST) <= _TIE)
        .then(pl.lit(ONE_DOCUMENT))
        .alias(REFUSED)
    ).to_series()


# The negative samples: those of the selector, and the pairs that it accepts but that may not be chosen.
WITH_REFUSED = pl.col("negative") | (pl.col("accepted") & pl.col(REFUSED).is_not_null())


class Holding:
    """The lean by which pairs must hold: by people in general (or all mentions), and by all mentions.

    ``effectiveness`` are the judged measures of the selector.
    """

    def __init__(self, measure: MeasureRequest, effectiveness: Sequence[str]) -> None:
        params = {**dict(measure.measure.params), "sign": "abs"}
        self.lean, self._every = (
            replace(measure, measure=measure.measure.with_params(one)) for one in (params, {**params, "who": ANY})
        )
        self.effectiveness = tuple(effectiveness)
        self._null: Null | None = None

    @property
    def requests(self) -> list[MeasureRequest]:
        """The lean by both kinds of mentions, all mentions last; one if all mentions decide."""
        return [self.lean, self._every] if self.lean.measure.param("who", ANY) != ANY else [self._every]

    def settings(self) -> dict[str, Any]:
        """What determines the conditions."""
        return {"lean": [one.signature for one in self.requests], "effectiveness": list(self.effectiveness)}

    def null(self, scorer: Scorer) -> Null:
        """The articles of the whole collection and their directions, by all mentions."""
        if self._null is None:
            count = len(scorer.doc_ids)
            whole = Rankings(pa.array(["all"]), np.array([0, count]), np.arange(count), np.zeros(count))
            every = replace(self._every, measure=replace(self._every.measure, cutoff=None))
            inputs = scorer.inputs(whole, [every])
            self._null = Null(every.family, every.measure, inputs, "collection")
        return self._null

    def chances(self, scorer: Scorer, lists: Rankings) -> Floats:
        """The p-values of the lean of original queries, corrected for their number."""
        return corrected(chance(self.lean.family, self.lean.measure, scorer.inputs(lists, [self.lean])).p)

    def promising(self, scorer: Scorer, lists: Rankings) -> tuple[Floats, list[str | None]]:
        """The corrected p-value of each original query, and why it cannot yield a pair; None if it can."""
        p, inputs = self.chances(scorer, lists), scorer.inputs(lists, [self.lean])
        relevant = np.ones(len(lists), np.bool_)
        if self.effectiveness and (judged := inputs.judgements) is not None:
            known = mentions_for(self._every.measure, scorer.inputs(lists, [self._every])).known
            rows = np.repeat(np.arange(len(lists)), np.diff(judged.offsets))
            relevant = np.bincount(rows, (judged.relevance >= 1) & known[judged.docs], len(lists)) > 0
        few = np.diff(_amounts(self.lean, inputs, self.null(scorer).unit).indptr) < 2
        unlikely = BY_CHANCE if self.null(scorer).known else UNKNOWN
        reasons = np.select([~relevant, few, p > LEVEL], [NO_RELEVANT, FEW, unlikely], "")
        return p, [str(reason) or None for reason in reasons]

    def columns(self, scorer: Scorer, lists: Rankings, originals: Ints) -> dict[str, Any]:
        """The columns by which candidates may be chosen; ``originals`` has the row of the original of each list."""
        units, least, gain = self.null(scorer).unit, np.full(len(lists), np.inf), np.zeros(len(lists))
        for one in self.requests:
            gain, left_out = _gains(_amounts(one, scorer.inputs(lists, [one]), units), originals)
            least = np.minimum(least, left_out)
        documents = np.append(np.arange(len(units) - 1), -1)
        carried = _amounts(self.lean, scorer.inputs(lists, [self.lean]), documents)
        return {ALL: gain, LEAST: least, DOCUMENTS: _carriers(carried, originals, least > _TIE, scorer.doc_ids)}


def _amounts(one: MeasureRequest, inputs: Inputs, units: Ints) -> sparse.csr_array:
    """What each unit (article or document) adds to the signed lean of each list."""
    assert isinstance(one.family, GroupDifference)
    rankings, lean = one.family.read(one.measure, inputs)
    values = lean[rankings.docs] * one.family.weights(one.measure, rankings)
    there = (units[rankings.docs] >= 0) & (values != 0)
    rows = np.repeat(np.arange(len(rankings)), rankings.lengths)[there]
    shape = (len(rankings), int(units.max(initial=0)) + 1)
    return sparse.csr_array((values[there], (rows, units[rankings.docs][there])), shape=shape)


def _both(amounts: sparse.csr_array, originals: Ints) -> tuple[Ints, Ints, Floats, Floats]:
    """For each list and unit of the list or of its original: the amounts before and after."""
    sides = [(amounts[originals].tocoo(), 0), (amounts.tocoo(), 1)]
    size = amounts.shape[1]
    keys = np.concatenate([one.row.astype(np.int64) * size + one.col for one, _ in sides])
    key, place = np.unique(keys, return_inverse=True)
    both = np.zeros((2, len(key)))
    np.add.at(both, (np.concatenate([np.full(one.nnz, side) for one, side in sides]), place),
              np.concatenate([one.data for one, _ in sides]))  # fmt: skip
    return key // size, key % size, both[0], both[1]


def _gains(amounts: sparse.csr_array, originals: Ints) -> tuple[Floats, Floats]:
    """How much less each list leans than its original, and the least of it if any one unit is left out."""
    new = np.asarray(amounts.sum(axis=1)).ravel()
    old = new[originals]
    gain = np.abs(old) - np.abs(new)
    rows, _, before, after = _both(amounts, originals)
    least = gain.copy()
    np.minimum.at(least, rows, np.abs(old[rows] - before) - np.abs(new[rows] - after))
    return gain, least


def _carriers(amounts: sparse.csr_array, originals: Ints, wanted: Flags, doc_ids: pa.Array) -> list[str | None]:
    """The ids of the documents that make a list lean less than its original, as JSON, those that do most first."""
    rows, docs, before, after = _both(amounts, originals)
    toward = np.sign(np.asarray(amounts.sum(axis=1)).ravel()[originals])[rows]
    carried = toward * (before - after)
    kept = np.flatnonzero((carried > _TIE) & wanted[rows])
    order = kept[np.lexsort((docs[kept], -carried[kept], rows[kept]))]
    found: list[str | None] = [None] * len(wanted)
    ids = doc_ids.take(pa.array(docs[order])).to_pylist()
    ends = np.searchsorted(rows[order], np.arange(len(wanted) + 1))
    for row in np.unique(rows[order]).tolist():
        found[row] = json.dumps(ids[ends[row] : ends[row + 1]], ensure_ascii=False)
    return found
