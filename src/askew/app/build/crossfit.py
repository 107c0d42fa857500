"""The step held-out: choose pairs with one part of the data and measure them on the other part, with the same ranker.

If a gain is due to chance in the part that chooses the pairs, it does not appear in the other part. There are three
schemes. In each of them, each part is used once to choose pairs and once to measure them.

``documents``: pairs are chosen by the lean (and the effectiveness, if a query has several relevant documents) of half
of the documents, and measured on the other half. The values of this scheme are the main ones, because the two halves
share no passage and do not compete for ranks.

``words``: pairs are chosen by the lean with half of the words of every group, and the effectiveness of half of the
documents. Both halves of the words are counted in the same passages, so this scheme overstates the true gain.

``ranks``: pairs are chosen by the lean of the odd ranks and measured on the even ranks. A passage that moves from an
odd to an even rank moves its lean to the other part, so this scheme understates the true gain.

``documents`` and ``words`` are repeated for several random splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.app.build.across import NEGATIVE
from askew.app.build.half_mentions import HalfCounts, HalfWords
from askew.app.build.halves import DocumentHalf, can_split, document_halves, every_other, have_several, judged_places
from askew.app.build.pairs import Select
from askew.app.build.resources import Resources
from askew.app.build.scores import Evaluate, lists_of
from askew.app.build.variants import ORIGINAL
from askew.app.scoring.lists import ScoredLists
from askew.app.scoring.requested import CountKey, keys_of
from askew.app.scoring.scorer import Scorer
from askew.core.measure import column_of, new_column, old_column
from askew.core.ranking import Floats, Ints
from askew.measures.catalogue import MeasureRequest
from askew.plugins.kinds import DocMentions, Inputs

STEP = "held-out"
# The schemes, in the order in which they are reported.
DOCUMENTS, WORDS, RANKS = SCHEMES = ("documents", "words", "ranks")
SPLITS, SEED = 5, 0
NOT_CHOSEN = "chosen by no part"
_ROW = "_row"
Values = Mapping[str, Floats]


@dataclass(frozen=True)
class PartValues:
    """The values of all measures in one part of the data, by row.

    ``choosing`` has every measure; a measure that cannot be split has its value in the whole data. ``reported`` has
    only values that do not depend on the other part, and NaN elsewhere.
    """

    choosing: Values
    reported: Values

    def with_values(self, own: Values) -> PartValues:
        """Return the part with the values of some measures replaced."""
        return PartValues({**self.choosing, **own}, {**self.reported, **own})


@dataclass(frozen=True)
class Split:
    """Two disjoint parts of the data."""

    scheme: str
    number: int
    parts: tuple[PartValues, PartValues]


def choices_of(select: Select, scored: pl.DataFrame, split: Split) -> list[pl.DataFrame]:
    """Return the pairs that each part chooses, with their old and new values in the other part."""
    first, second = split.parts
    return [
        _choice(select, scored, by, told).with_columns(
            pl.lit(split.scheme).alias("scheme"),
            pl.lit(split.number, pl.Int32).alias("split"),
            pl.lit(name).alias("chosen_by"),
        )
        for name, by, told in (("first", first, second), ("second", second, first))
    ]


def chosen_subsets(select: Select) -> list[str]:
    """Return the subsets of chosen pairs: all except the negative pairs."""
    return [name for name in select.selector.subsets if name != NEGATIVE]


def _choice(select: Select, scored: pl.DataFrame, by: PartValues, told: PartValues) -> pl.DataFrame:
    subsets = chosen_subsets(select)
    columns = [pl.Series(column_of(text), values) for text, values in by.choosing.items()]
    table = scored.with_columns(columns).with_row_index(_ROW)
    pairs = pl.DataFrame(pl.from_arrow(select.run(table.to_arrow())[0]))
    chosen = pairs.filter(pl.any_horizontal(subsets)).select("query_id", "variant_id", *subsets, _ROW)
    originals = table.filter(pl.col("method") == ORIGINAL).select("query_id", _original=_ROW)
    found = chosen.join(originals, on="query_id", how="left", maintain_order="left")
    sides = ((old_column, found["_original"].to_numpy()), (new_column, found[_ROW].to_numpy()))
    values = [pl.Series(name(text), told.reported[text][rows]) for text in told.reported for name, rows in sides]
    return found.drop(_ROW, "_original").with_columns(values)


class HeldOut:
    """Chooses pairs by one part of the data with the selector of the recipe, and reports them by the other part."""

    name = "held-out"
    version = 1
    together = "query_id"

    def __init__(
        self, evaluate: Evaluate, select: Select, resources: Resources, splits: int = SPLITS, seed: int = SEED
    ) -> None:
        self._evaluate, self.select, self._resources = evaluate, select, resources
        self.splits, self.seed = splits, seed

    def settings(self) -> Mapping[str, Any]:
        """Return the settings and versions of scoring and choosing, and how the data is split."""
        return {
            "evaluate": [Evaluate.version, self._evaluate.settings()],
            "select": [Select.version, self.select.settings()],
            "halves": self._counts.keys() if self._words_split else [], "splits": self.splits, "seed": self.seed,
        }  # fmt: skip

    @property
    def _lean(self) -> list[MeasureRequest]:
        return [one for one in self._evaluate.asked if "mentions" in one.family.reads]

    @property
    def _judged(self) -> list[MeasureRequest]:
        return [one for one in self._evaluate.asked if one.judged]

    @cached_property
    def _words_split(self) -> bool:
        """Whether each group has two or more words."""
        return can_split(self._evaluate.lexicons(), [name for one in self._lean for name in one.groups])

    @cached_property
    def _counts(self) -> HalfCounts:
        lexicons = {one.id: one for one in self._evaluate.lexicons()}
        groups = [name for one in self._lean for name in one.groups]
        words = HalfWords(self._resources, lexicons, keys_of(self._lean), groups, self.splits, self.seed)
        return HalfCounts(words, lambda key: self._scorer.mentions(*key))

    @property
    def _scorer(self) -> Scorer:
        return self._evaluate.scorer

    @cached_property
    def _has_several(self) -> bool:
        """Whether a measure reads judgements, and a query has several relevant documents."""
        return bool(self._judged) and bool(have_several(self._resources.judged_documents[1]).any())

    @cached_property
    def _document_halves(self) -> list[tuple[DocumentHalf, DocumentHalf]]:
        every, judged = self._resources.judged_documents
        return [document_halves(judged, len(every), split, self.seed) for split in range(self.splits)]

    def prepare(self) -> None:
        """Count the mentions of the collection once, before any worker reads the counts."""
        self._evaluate.prepare()
        if self._words_split:
            self._counts.prepare()

    def rows_used(self, table: pa.Table) -> int:
        """Count the variants that some part chose."""
        return pl.DataFrame(pl.from_arrow(table.select(["query_id", "variant_id"]))).n_unique()

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return one row for each pair and each part that chose it."""
        scored = pl.DataFrame(pl.from_arrow(self._evaluate.run(rows)[0]))
        found = [self._nothing()]
        for split in self._splits(lists_of(rows), scored):
            found += [one.select(found[0].columns) for one in choices_of(self.select, scored, split)]
        table = pl.concat(found).to_arrow().cast(_arrow_schema(found[0]))
        return table, {NOT_CHOSEN: rows.num_rows - self.rows_used(table)}

    def _nothing(self) -> pl.DataFrame:
        values = [side(text) for text in self._evaluate.directions for side in (old_column, new_column)]
        texts = dict.fromkeys(("query_id", "variant_id", "scheme"), pl.String)
        flags = dict.fromkeys(chosen_subsets(self.select), pl.Boolean)
        return pl.DataFrame(
            schema=texts | {"split": pl.Int32, "chosen_by": pl.String} | flags | dict.fromkeys(values, pl.Float64)
        )

    def _splits(self, lists: ScoredLists, scored: pl.DataFrame) -> Iterator[Split]:
        whole = {text: scored[column_of(text)].to_numpy() for text in self._evaluate.directions}
        if not self._lean and not self._has_several:
            return
        inputs = self._scorer.inputs(lists, self._lean)
        places = judged_places(lists, self._resources.judged_documents[1])
        for number in range(self.splits):
            halves = [self._of_documents(lists, places, whole, half) for half in self._document_halves[number]]
            if self._words_split:
                words = [self._of_words(inputs, number, first) for first in (True, False)]
                first, second = (half.with_values(own) for half, own in zip(halves, words, strict=True))
                yield Split(WORDS, number, (first, second))
            yield Split(DOCUMENTS, number, (halves[0], halves[1]))
        if self._lean:
            odd, even = (self._of_ranks(lists, whole, parity) for parity in (1, 0))
            yield Split(RANKS, 0, (odd, even))

    def _of_words(self, inputs: Inputs, number: int, first: bool) -> Values:
        """Compute the lean with half of the words."""
        kept: dict[CountKey, DocMentions] = {}

        def count(*named: str) -> DocMentions:
            key = CountKey(*named)
            if key not in kept:
                kept[key] = self._counts.of(key, number, first)
            return kept[key]

        return self._scorer.values(replace(inputs, find_mentions=count), self._lean)

    def _of_documents(self, lists: ScoredLists, places: Ints, whole: Values, half: DocumentHalf) -> PartValues:
        """Compute the lean and effectiveness of the lists with half of the documents."""
        judged = self._judged if self._has_several else []
        asked = [_with_half_cutoff(one) for one in [*self._lean, *judged]]
        queries = lists.ids if lists.queries is None else lists.queries
        inputs = self._scorer.inputs(half.lists(lists, places), asked)
        found = self._scorer.values(replace(inputs, judgements=half.judged.of_queries(queries)), asked)
        several = self._resources.judged_documents[1].of_queries(queries).relevant() > 1
        names = {one.text for one in judged}
        known = {text: several if text in names else np.ones(len(several), np.bool_) for text in found}
        # The only relevant document of a query cannot be split: its effectiveness is used to choose, but not reported.
        choosing = {text: np.where(known[text], values, whole[text]) for text, values in found.items()}
        return _part(whole, choosing, {text: np.where(known[text], found[text], np.nan) for text in found})

    def _of_ranks(self, lists: ScoredLists, whole: Values, parity: int) -> PartValues:
        """Compute the lean of the odd or even ranks, with half the cutoff."""
        part = every_other(lists, self._scorer.order(lists), parity)
        asked = [_with_half_cutoff(one) for one in self._lean]
        return _part(whole, self._scorer.values(self._scorer.inputs(part, asked), asked))


def _part(whole: Values, own: Values, reported: Values | None = None) -> PartValues:
    nothing = np.full(len(next(iter(whole.values()))), np.nan)
    told = {**own, **(reported or {})}
    return PartValues({**whole, **own}, {text: told.get(text, nothing) for text in whole})


def _with_half_cutoff(one: MeasureRequest) -> MeasureRequest:
    """Halve the cutoff of a measure, for lists with half of the documents: it then reaches the same depth."""
    cutoff = one.measure.cutoff
    return one if cutoff is None else replace(one, measure=replace(one.measure, cutoff=(cutoff + 1) // 2))


def _arrow_schema(frame: pl.DataFrame) -> pa.Schema:
    kinds: Mapping[Any, pa.DataType] = {
        pl.String: pa.string(), pl.Int32: pa.int32(), pl.Boolean: pa.bool_(), pl.Float64: pa.float64(),
    }  # fmt: skip
    return pa.schema([(name, kinds[type(kind)]) for name, kind in frame.schema.items()])
