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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.lexicon import Lexicon
from askew.core.measure import column_of, new_column, old_column
from askew.core.protocols import DocMentions, Inputs, Judgements
from askew.core.ranking import Flags, Floats, Ints, Rankings
from askew.core.text import word
from askew.measures.catalogue import MeasureRequest
from askew.measures.counts import Annotate, stage_of
from askew.measures.lists import JudgedQueries
from askew.measures.mentions import counter_for
from askew.measures.requested import CountKey, keys_of
from askew.measures.scorer import Scorer
from askew.pairs.gains import ORIGINAL
from askew.pairs.resources import Resources
from askew.pairs.stages import NEGATIVE, Evaluate, Select, lists_of

# How often a split is drawn until each group has words in both halves; a few draws are enough if it is possible.
_TRIES = 50
# The bits of a mask of groups, without the one for all words, which makes phrases match as in the whole lexicon.
CELLS = 31
EVERY = "every"


def unit_of(term: str) -> str:
    """Return a normal form of a term, so that a word is in the same half for every lexicon."""
    return " ".join(word(term.rstrip("*"))) or term


def units_of(lexicons: Iterable[Lexicon]) -> dict[str, str]:
    """Return the unit of each term; terms that a prefix such as ``wom*`` matches share the unit of the prefix."""
    terms = {term for lexicon in lexicons for words in lexicon.groups.values() for term in words}
    prefixes = sorted({unit_of(term) for term in terms if term.endswith("*")}, key=lambda one: (len(one), one))
    found = {}
    for term in sorted(terms):
        unit = unit_of(term)
        found[term] = next((prefix for prefix in prefixes if unit.startswith(prefix)), unit)
    return found


def term_counts(lexicon: Lexicon, tokens: str, texts: pa.Array | pa.ChunkedArray) -> Counter[str]:
    """Count how often each term of a lexicon occurs in some texts."""
    terms = sorted({term for words in lexicon.groups.values() for term in words})
    found: Counter[str] = Counter()
    for start in range(0, len(terms), CELLS):
        some = terms[start : start + CELLS]
        groups = {EVERY: tuple(terms), **{f"t{place}": (term,) for place, term in enumerate(some)}}
        counts = counter_for(Lexicon(lexicon.name, groups), tokens, "all").count(texts).counts[:, 1:].sum(axis=0)
        found.update(dict(zip(some, counts.tolist(), strict=True)))
    return found


def can_split(lexicons: Sequence[Lexicon], groups: Iterable[str]) -> bool:
    """Whether each of these groups has at least two units in every lexicon that contains the group."""
    units, named = units_of(lexicons), set(groups)
    counted = [words for one in lexicons for group, words in one.groups.items() if group in named]
    return bool(counted) and all(len({units[term] for term in words}) > 1 for words in counted)


def word_halves(
    lexicons: Sequence[Lexicon], groups: Iterable[str], counts: Mapping[str, int], splits: int, seed: int
) -> dict[str, Flags]:
    """Return for each term the splits in which it is in the first half.

    The units that name the same groups are sorted by frequency. Of each two neighbors in this order, a random one goes
    to the first half and the other to the second. A split in which a group has no word in one half is drawn again.
    """
    units, named = units_of(lexicons), set(groups)
    frequency: Counter[str] = Counter()
    owners: dict[str, set[str]] = {}
    for term, count in sorted(counts.items()):
        frequency[units[term]] += count
    for lexicon in lexicons:
        for group, words in lexicon.groups.items():
            for term in words:
                owners.setdefault(units[term], set()).add(group)
    order = sorted(owners, key=lambda unit: (sorted(owners[unit]), -frequency[unit], unit))
    known: dict[tuple[str, ...], int] = {}
    strata = np.array([known.setdefault(tuple(sorted(owners[unit])), len(known)) for unit in order], np.int64)
    place = {unit: number for number, unit in enumerate(order)}
    members = [
        np.array(sorted({place[units[term]] for term in words}))
        for one in lexicons
        for group, words in one.groups.items()
        if group in named
    ]
    drawn = np.stack([_draw(strata, members, np.random.default_rng([seed, split])) for split in range(splits)], axis=1)
    return {term: drawn[place[unit]] for term, unit in units.items()}


def _draw(strata: Ints, members: Sequence[Ints], random: np.random.Generator) -> Flags:
    """Draw which units are in the first half."""
    first = np.zeros(len(strata), np.bool_)
    for _ in range(_TRIES):
        for stratum in np.unique(strata):
            rows = np.flatnonzero(strata == stratum)
            heads = random.random((len(rows) + 1) // 2) < 0.5
            first[rows] = np.repeat(heads, 2)[: len(rows)] ^ (np.arange(len(rows)) % 2 == 1)
        if all(first[rows].any() and not first[rows].all() for rows in members):
            break
    return first


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


def every_other(lists: Rankings, order: Ints, parity: int) -> Rankings:
    """Keep only the odd ranks (``parity`` 1) or the even ranks (0) of the lists; ``order`` has the entries by rank."""
    assert lists.scores is not None
    by_rank = replace(lists, docs=lists.docs[order], scores=lists.scores[order])
    return by_rank.keep(lists.ranks() % 2 == parity)


HALF_MENTIONS_STEP = "half-mentions"
# Word frequencies are counted in at most this number of documents: enough to separate frequent and rare words.
_MOST_DOCUMENTS = 100_000


class HalfCounts:
    """The halves of all words that the measures ``lean`` count, and the counts of mentions of one half of the words."""

    def __init__(
        self, resources: Resources, evaluate: Evaluate, lean: Sequence[MeasureRequest], splits: int, seed: int
    ) -> None:
        self.resources, self.keys, self.groups = resources, keys_of(lean), [name for one in lean for name in one.groups]
        self.lexicons, self._evaluate = {one.id: one for one in evaluate.lexicons()}, evaluate
        self.splits, self.seed = splits, seed
        self._first: dict[CountKey, DocMentions] = {}

    def settings(self) -> Mapping[str, Any]:
        """Return everything that the halves depend on, except the documents."""
        tokens = sorted({(key.lexicon, key.tokens) for key in self.keys})
        return {"words": [list(one) for one in tokens], "splits": self.splits, "seed": self.seed}

    @cached_property
    def first(self) -> dict[str, Flags]:
        """For each term, the splits in which it is in the first half."""
        used = [self.lexicons[name] for name in sorted({key.lexicon for key in self.keys})]
        counts, left = Counter[str](), _MOST_DOCUMENTS
        for batch in self.resources.documents.batches():
            texts = batch["text"].slice(0, left)
            for lexicon, tokenizer in sorted({(key.lexicon, key.tokens) for key in self.keys}):
                counts.update(term_counts(self.lexicons[lexicon], tokenizer, texts))
            left -= len(texts)
            if left <= 0:
                break
        return word_halves(used, self.groups, counts, self.splits, self.seed)

    def stage(self, key: CountKey) -> AnnotateHalves:
        """Return the stage that counts the halves for a key."""
        return AnnotateHalves(self, Annotate(self.lexicons[key.lexicon], *stage_of(key)[1:]))

    def store_keys(self) -> list[str]:
        """Return the keys of all counts in the store."""
        return [self.resources.mentions_key(self.stage(key)) for key in self.keys]

    def prepare(self) -> None:
        """Count the collection."""
        for key in self.keys:
            self._counted(key)

    def of(self, key: CountKey, split: int, first: bool) -> DocMentions:
        """Return the counts of the first half, or of the second: the whole minus the first half."""
        whole, found = self._evaluate.scorer.mentions(*key), self._counted(key)
        place = {name: at for at, name in enumerate(found.groups)}
        counts = np.zeros(whole.counts.shape, np.int32)
        for group in range(len(whole.groups)):
            at = place.get(cell_name(group, split))
            # A group may have no word in a half.
            if at is not None:
                counts[:, group] = found.counts[:, at]
        return replace(whole, counts=counts if first else np.subtract(whole.counts, counts, out=counts))

    def _counted(self, key: CountKey) -> DocMentions:
        if key not in self._first:
            self._first[key] = self.resources.mentions(self.stage(key), key.who, HALF_MENTIONS_STEP, by_group=True)
        return self._first[key]


class AnnotateHalves:
    """Counts, for every split, the words of each group that are in the first half."""

    name = "annotate-halves"
    version = 1

    def __init__(self, words: HalfCounts, whole: Annotate) -> None:
        self._words, self._whole = words, whole

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the whole count and of the split of words."""
        return {"whole": [Annotate.version, self._whole.settings()], "halves": self._words.settings()}

    @cached_property
    def _stages(self) -> list[Annotate]:
        whole = self._whole
        lexicon = whole.lexicon.exclusive() if whole.overlap == "first" else whole.lexicon
        every = tuple(term for words in lexicon.groups.values() for term in words)
        cells = {
            cell_name(group, split): tuple(term for term in words if self._words.first[term][split])
            for group, words in enumerate(lexicon.groups.values())
            for split in range(self._words.splits)
        }
        filled = [(name, words) for name, words in cells.items() if words]
        return [
            Annotate(
                Lexicon("halves", {EVERY: every, **dict(filled[at : at + CELLS])}), whole.tokens, "all", whole.resolver
            )
            for at in range(0, len(filled), CELLS)
        ]

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return one row of counts for each document; no document is dropped."""
        table = None
        for stage in self._stages:
            found, _ = stage.run(rows)
            names = [name for name in found.column_names if name != "clipped" and not name.endswith(f"_{EVERY}")]
            if table is None:
                table = found.select(names)
                continue
            for name in names:
                table = table if name in table.column_names else table.append_column(name, found[name])
        assert table is not None, "the stage 'annotate-halves' needs a lexicon whose words can be split into halves"
        return table, {}


def cell_name(group: int, split: int) -> str:
    """Return the name of a group for one split, in the lexicon that counts halves."""
    return f"g{group}s{split}"


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


def chosen_subsets(select: Select) -> list[str]:
    """Return the subsets of chosen pairs: all except the negative pairs."""
    return [name for name in select.selector.subsets if name != NEGATIVE]


def choices_of(select: Select, scored: pl.DataFrame, split: Split) -> list[pl.DataFrame]:
    """Return the pairs that each part chooses, with their old and new values in the other part."""
    subsets, (first, second), tables = chosen_subsets(select), split.parts, []
    originals = scored.with_row_index("_original").filter(pl.col("method") == ORIGINAL).select("query_id", "_original")
    for name, by, told in (("first", first, second), ("second", second, first)):
        columns = [pl.Series(column_of(text), values) for text, values in by.choosing.items()]
        pairs, _ = select.run(scored.with_columns(columns).with_row_index(_ROW).to_arrow())
        chosen = pl.DataFrame(pl.from_arrow(pairs)).filter(pl.any_horizontal(subsets))
        found = chosen.select("query_id", "variant_id", *subsets, _ROW)
        found = found.join(originals, on="query_id", how="left", maintain_order="left")
        sides = ((old_column, found["_original"].to_numpy()), (new_column, found[_ROW].to_numpy()))
        values = [pl.Series(side(text), told.reported[text][rows]) for text in told.reported for side, rows in sides]
        part = [pl.lit(split.scheme).alias("scheme"), pl.lit(split.number, pl.Int32).alias("split")]
        marks = [*part, pl.lit(name).alias("chosen_by")]
        tables.append(found.drop(_ROW, "_original").with_columns(values).with_columns(marks))
    return tables


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
            "halves": self._counts.store_keys() if self._words_split else [], "splits": self.splits, "seed": self.seed,
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
        return HalfCounts(self._resources, self._evaluate, self._lean, self.splits, self.seed)

    @property
    def _scorer(self) -> Scorer:
        return self._evaluate.scorer

    @cached_property
    def _has_several(self) -> bool:
        """Whether a measure reads judgements, and a query has several relevant documents."""
        return bool(self._judged) and bool((self._resources.judged_documents[1].judgements.relevant() > 1).any())

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
        values = [side(text) for text in self._evaluate.directions for side in (old_column, new_column)]
        schema = pa.schema([
            *((name, pa.string()) for name in ("query_id", "variant_id", "scheme")), ("split", pa.int32()),
            ("chosen_by", pa.string()), *((name, pa.bool_()) for name in chosen_subsets(self.select)),
            *((name, pa.float64()) for name in values),
        ])  # fmt: skip
        found = [pl.DataFrame(pl.from_arrow(schema.empty_table()))]
        for split in self._splits(lists_of(rows), scored):
            found += [one.select(schema.names) for one in choices_of(self.select, scored, split)]
        table = pl.concat(found).to_arrow().cast(schema)
        return table, {NOT_CHOSEN: rows.num_rows - self.rows_used(table)}

    def _splits(self, lists: Rankings, scored: pl.DataFrame) -> Iterator[Split]:
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
        count = cache(lambda *named: self._counts.of(CountKey(*named), number, first))
        return self._scorer.values(replace(inputs, find_mentions=count), self._lean)

    def _of_documents(self, lists: Rankings, places: Ints, whole: Values, half: DocumentHalf) -> PartValues:
        """Compute the lean and effectiveness of the lists with half of the documents."""
        judged = self._judged if self._has_several else []
        asked = [_with_half_cutoff(one) for one in [*self._lean, *judged]]
        queries = lists.query_ids if lists.queries is None else lists.queries
        inputs = self._scorer.inputs(half.lists(lists, places), asked)
        found = self._scorer.values(replace(inputs, judgements=half.judged.of_queries(queries)), asked)
        several = self._resources.judged_documents[1].of_queries(queries).relevant() > 1
        names = {one.text for one in judged}
        known = {text: several if text in names else np.ones(len(several), np.bool_) for text in found}
        # The only relevant document of a query cannot be split: its effectiveness is used to choose, but not reported.
        choosing = {text: np.where(known[text], values, whole[text]) for text, values in found.items()}
        return _part(whole, choosing, {text: np.where(known[text], found[text], np.nan) for text in found})

    def _of_ranks(self, lists: Rankings, whole: Values, parity: int) -> PartValues:
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
