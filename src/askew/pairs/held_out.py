"""The steps held-out and placebo: choose pairs again, with one part of the data, and on lists with drawn directions.

The step held-out chooses pairs with one part of the data and measures them on the other part, with the same ranker.

If a gain is due to chance in the part that chooses the pairs, it does not appear in the other part. Pairs are chosen by
the lean (and the effectiveness, if a query has several relevant documents) of one half of the documents, and measured
on the other half, for several random splits in both directions. The two halves share no passage and do not compete for
ranks.

Halves of the group words and of the ranks were tried too. Both halves of the words are counted in the same passages
(-61% where the documents say -22%), and a passage that moves from an odd to an even rank moves its lean to the other
half (+189%), so neither is held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.defaults import LEVEL
from askew.core.measure import column_of, new_column, old_column
from askew.core.protocols import DocMentions, Judgements
from askew.core.ranking import Flags, Floats, Ints, Rankings
from askew.measures.catalogue import MeasureRequest
from askew.measures.lists import JudgedQueries
from askew.measures.requested import CountKey, keys_of
from askew.pairs.gains import ORIGINAL
from askew.pairs.holding import CHANCE, Holding
from askew.pairs.resources import Resources
from askew.pairs.stages import NEGATIVE, Evaluate, Select, StepScores, lists_of


@dataclass(frozen=True)
class DocumentHalf:
    """Half of the documents, with half of the relevant documents of each query that has several.

    ``judged`` are the judgements, without the relevant documents of the other half. ``kept`` has one value for each
    judgement: 1 if the document is one of several relevant ones and is in this half, 0 if it is in the other half, -1
    for all other judgements. ``documents`` says which of all other documents are in this half.
    """

    judged: JudgedQueries
    kept: Ints
    documents: Flags

    def lists(self, lists: Rankings, places: Ints) -> Rankings:
        """Return the lists with only the documents of this half; ``places`` is the result of ``judged_places``.

        If the documents of the other half stayed in the lists, they would compete for ranks with those of this half, so
        that a gain of one half would be a loss of the other. If both halves had the same non-relevant documents, both
        would gain when these are ranked low.
        """
        dealt = np.where(places < 0, -1, self.kept[places]) if len(self.kept) else np.full(len(places), -1)
        return lists.keep(np.where(dealt < 0, self.documents[lists.docs], dealt == 1))


def document_halves(judged: JudgedQueries, documents: int, split: int, seed: int) -> tuple[DocumentHalf, DocumentHalf]:
    """Split the documents into two disjoint halves.

    The only relevant document of a query is in one of the halves like any other; its judgement stays in both.
    """
    every = judged.judgements
    row = np.repeat(np.arange(len(every.offsets) - 1), np.diff(every.offsets))
    random = np.random.default_rng([seed, split, 1])
    drawn, first = random.random(len(row)), random.random(documents) < 0.5
    at = np.flatnonzero((every.relevance >= 1) & (every.relevant() > 1)[row])
    order = at[np.lexsort((drawn[at], row[at]))]
    starts = np.searchsorted(row[order], row[order], side="left")
    sides = [np.full(len(row), -1), np.full(len(row), -1)]
    for parity, side in enumerate(sides):
        side[order] = (np.arange(len(order)) - starts) % 2 == parity
    halves = []
    for side, flags in zip(sides, (first, ~first), strict=True):
        wanted = side != 0
        offsets = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int64)[every.offsets]
        part = Judgements(offsets, every.docs[wanted], every.relevance[wanted], every.judged)
        halves.append(DocumentHalf(JudgedQueries(judged.query_ids, part), side, flags))
    return halves[0], halves[1]


def judged_places(lists: Rankings, judged: JudgedQueries) -> Ints:
    """Return for each entry of the lists the position of its judgement; -1 if it is not judged."""
    every = judged.judgements
    most = int(max(every.docs.max(initial=0), lists.docs.max(initial=0))) + 1
    rows = np.repeat(np.arange(len(every.offsets) - 1), np.diff(every.offsets))
    known = rows * most + every.docs
    queries = lists.query_ids if lists.queries is None else lists.queries
    row = pc.fill_null(pc.index_in(queries, value_set=judged.query_ids), -1).to_numpy().astype(np.int64)
    wanted = np.repeat(row, np.diff(lists.offsets)) * most + lists.docs
    # The judgements of a query are in the order of their documents.
    places = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    return np.where(known[places] == wanted, places, -1) if len(known) else np.full(len(wanted), -1)


STEP = "held-out"
SPLITS, SEED = 5, 0
NOT_CHOSEN = "chosen by no part"
_ROW = "_row"
Values = Mapping[str, Floats]


@dataclass(frozen=True)
class PartValues:
    """The values of all measures in one part of the data, by row.

    ``choosing`` has every measure; a measure that cannot be split has its value in the whole data. ``reported`` has
    only values that do not depend on the other part, and NaN elsewhere. ``held`` has the columns of pairs that hold.
    """

    choosing: Values
    reported: Values
    held: Mapping[str, Any] = field(default_factory=dict)


def chosen_subsets(select: Select) -> list[str]:
    """Return the subsets of chosen pairs: all except the negative pairs."""
    return [name for name in select.selector.subsets if name != NEGATIVE]


def choices_of(
    select: Select, scored: pl.DataFrame, number: int, first: PartValues, second: PartValues
) -> list[pl.DataFrame]:
    """Return the pairs that each half of a split chooses, with their old and new values in the other half."""
    subsets, tables = chosen_subsets(select), []
    originals = scored.with_row_index("_original").filter(pl.col("method") == ORIGINAL).select("query_id", "_original")
    for name, by, told in (("first", first, second), ("second", second, first)):
        columns = [pl.Series(column_of(text), values) for text, values in by.choosing.items()]
        columns += [pl.Series(column, values) for column, values in by.held.items()]
        pairs, _ = select.run(scored.with_columns(columns).with_row_index(_ROW).to_arrow())
        chosen = pl.DataFrame(pl.from_arrow(pairs)).filter(pl.any_horizontal(subsets))
        found = chosen.select("query_id", "variant_id", *subsets, _ROW)
        found = found.join(originals, on="query_id", how="left", maintain_order="left")
        sides = ((old_column, found["_original"].to_numpy()), (new_column, found[_ROW].to_numpy()))
        values = [pl.Series(side(text), told.reported[text][rows]) for text in told.reported for side, rows in sides]
        marks = [pl.lit(number, pl.Int32).alias("split"), pl.lit(name).alias("chosen_by")]
        tables.append(found.drop(_ROW, "_original").with_columns(values).with_columns(marks))
    return tables


class HeldOut:
    """Chooses pairs by one part of the data with the selector of the recipe, and reports them by the other part."""

    name = "held-out"
    version = 2
    together = "query_id"

    def __init__(self, evaluate: Evaluate, select: Select, resources: Resources) -> None:
        self._evaluate, self.select, self._resources = evaluate, select, resources

    def settings(self) -> Mapping[str, Any]:
        """Return the settings and versions of scoring and choosing, and how the data is split."""
        return {
            "evaluate": [Evaluate.version, self._evaluate.settings()],
            "select": [Select.version, self.select.settings()],
            "splits": SPLITS, "seed": SEED,
        }  # fmt: skip

    @cached_property
    def _split(self) -> list[MeasureRequest]:
        """The measures that can be computed on half of the documents, with half of their cutoff.

        Lists with half of the documents then reach the same depth. Effectiveness can be computed if a query has several
        relevant documents.
        """
        measures, judged = self._evaluate.asked, self._resources.judged_documents[1]
        several = bool((judged.judgements.relevant() > 1).any())
        split = [one for one in measures if "mentions" in one.family.reads]
        split += [one for one in measures if one.judged and several]
        return [
            one
            if one.measure.cutoff is None
            else replace(one, measure=replace(one.measure, cutoff=(one.measure.cutoff + 1) // 2))
            for one in split
        ]

    @cached_property
    def _document_halves(self) -> list[tuple[DocumentHalf, DocumentHalf]]:
        every, judged = self._resources.judged_documents
        return [document_halves(judged, len(every), split, SEED) for split in range(SPLITS)]

    def prepare(self) -> None:
        """Count the mentions of the collection once, before any worker reads the counts."""
        self._evaluate.prepare()

    def rows_used(self, table: pa.Table) -> int:
        """Count the variants that some part chose."""
        return pl.DataFrame(pl.from_arrow(table.select(["query_id", "variant_id"]))).n_unique()

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return one row for each pair and each part that chose it."""
        scored = pl.DataFrame(pl.from_arrow(self._evaluate.run(rows)[0]))
        values = [side(text) for text in self._evaluate.directions for side in (old_column, new_column)]
        schema = pa.schema([
            *((name, pa.string()) for name in ("query_id", "variant_id")), ("split", pa.int32()),
            ("chosen_by", pa.string()), *((name, pa.bool_()) for name in chosen_subsets(self.select)),
            *((name, pa.float64()) for name in values),
        ])  # fmt: skip
        found = [pl.DataFrame(pl.from_arrow(schema.empty_table()))]
        for number, halves in enumerate(self._halves(lists_of(rows), scored)):
            found += [one.select(schema.names) for one in choices_of(self.select, scored, number, *halves)]
        table = pl.concat(found).to_arrow().cast(schema)
        return table, {NOT_CHOSEN: rows.num_rows - self.rows_used(table)}

    def _halves(self, lists: Rankings, scored: pl.DataFrame) -> Iterator[tuple[PartValues, PartValues]]:
        whole = {text: scored[column_of(text)].to_numpy() for text in self._evaluate.directions}
        if not self._split:
            return
        places = judged_places(lists, self._resources.judged_documents[1])
        for first, second in self._document_halves:
            sides = (self._of_documents(lists, places, whole, half, scored) for half in (first, second))
            yield next(sides), next(sides)

    def _of_documents(
        self, lists: Rankings, places: Ints, whole: Values, half: DocumentHalf, scored: pl.DataFrame
    ) -> PartValues:
        queries, scorer = lists.query_ids if lists.queries is None else lists.queries, self._evaluate.scorer
        own = half.lists(lists, places)
        inputs = scorer.inputs(own, self._split)
        found = scorer.values(replace(inputs, judgements=half.judged.of_queries(queries)), self._split)
        several = self._resources.judged_documents[1].of_queries(queries).relevant() > 1
        judged = self._evaluate.judged
        known = {text: several if text in judged else np.ones(len(several), np.bool_) for text in found}
        # The only relevant document of a query cannot be split: its effectiveness is used to choose, but not reported.
        choosing = {text: np.where(known[text], values, whole[text]) for text, values in found.items()}
        nothing = np.full(len(next(iter(whole.values()))), np.nan)
        reported = {text: np.where(known[text], found[text], np.nan) if text in found else nothing for text in whole}
        return PartValues({**whole, **choosing}, reported, self._evaluate.held(scored, own))


PLACEBO = "placebo"
DRAWS = 10
LEANS = "leans"


class Placebo(HeldOut):
    """Chooses pairs on placebo lists with the selector of the recipe: what it finds where there is nothing to find.

    A placebo has the same result lists and effectiveness, but the direction of each article is drawn anew
    (``askew.measures.chance``), for all kinds of mentions together. ``leans`` says whether the original query leans
    beyond chance on the placebo lists; if pairs need not hold, it is true.
    """

    name = PLACEBO
    version = 1

    def __init__(
        self, evaluate: Evaluate, select: Select, resources: Resources, holding: Holding, originals: StepScores | None
    ) -> None:
        """``originals`` are the result lists of all original queries, if pairs must hold."""
        super().__init__(evaluate, select, resources)
        self._holding, self._originals = holding, originals

    def settings(self) -> Mapping[str, Any]:
        """Return the settings and versions of scoring and choosing, and how directions are drawn."""
        return {**super().settings(), "lean": self._holding.settings()["lean"], "draws": DRAWS}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return one row for each pair and each placebo that chose it."""
        scorer, subsets = self._evaluate.scorer, chosen_subsets(self.select)
        scored, lists = pl.DataFrame(pl.from_arrow(self._evaluate.run(rows)[0])), lists_of(rows)
        lean = [one for one in self._evaluate.asked if "mentions" in one.family.reads]
        keys = keys_of(self._evaluate.counted)
        schema = pa.schema([
            ("query_id", pa.string()), ("variant_id", pa.string()), ("draw", pa.int32()), (LEANS, pa.bool_()),
            *((name, pa.bool_()) for name in subsets),
        ])  # fmt: skip
        found = [pl.DataFrame(pl.from_arrow(schema.empty_table()))]
        for draw in range(DRAWS):
            with ExitStack() as placebo:
                for key in keys:
                    placebo.enter_context(scorer.with_mentions(key, self.mentions(draw, key)))
                values = {column_of(text): one for text, one in scorer.values(scorer.inputs(lists, lean), lean).items()}
                values |= self._evaluate.held(scored, lists)
                leaning = self._leaning()
            table = scored.with_columns(pl.Series(name, one) for name, one in values.items())
            # Whether the original leans decides for all of its pairs, so that it can be said of each chosen pair.
            table = table.with_columns(pl.lit(0.0).alias(CHANCE)) if CHANCE in table.columns else table
            chosen = pl.DataFrame(pl.from_arrow(self.select.run(table.to_arrow())[0])).filter(
                pl.any_horizontal(subsets)
            )
            leans = pl.lit(True) if leaning is None else pl.col("query_id").is_in(leaning.implode())
            found.append(
                chosen.with_columns(pl.lit(draw, pl.Int32).alias("draw"), leans.alias(LEANS)).select(schema.names)
            )
        table = pl.concat(found).to_arrow().cast(schema)
        return table, {NOT_CHOSEN: rows.num_rows - self.rows_used(table)}

    def mentions(self, draw: int, key: CountKey) -> DocMentions:
        """The mentions of a placebo."""
        null = self._holding.null(self._evaluate.scorer)
        return null.exchanged(null.draw(np.random.default_rng([SEED, draw, 2])), self._evaluate.scorer.mentions(*key))

    def _leaning(self) -> pl.Series | None:
        """The original queries that lean beyond chance, with the mentions of the moment; None if all count."""
        if self._originals is None:
            return None
        lists = self._original_lists
        return pl.Series(lists.query_ids.to_pylist(), dtype=pl.String).filter(
            pl.Series(self._holding.chances(self._evaluate.scorer, lists) <= LEVEL)
        )

    @cached_property
    def _original_lists(self) -> Rankings:
        assert self._originals is not None
        rows = self._originals.table()
        return lists_of(rows.append_column("variant_id", rows["query_id"]))
