"""Choose the groups and measures of the explorer, and the measures that decide about a reformulation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew.core.errors import ConfigError, Note
from askew.core.groups import ANY, Groups
from askew.core.measure import Direction, Measure, split_measures
from askew.core.protocols import DocMentions
from askew.core.ranking import Floats, Hits, Rankings
from askew.measures.articles import Articles
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.counts import group_shares
from askew.measures.decompose import Decomposition, decompose_run
from askew.measures.headline import Headline, headline_of
from askew.measures.lists import JudgedQueries
from askew.measures.mentions import MentionCounter
from askew.measures.relevance import RelevanceSource
from askew.measures.requested import CountKey, comparable, count_key, keys_of, listed, named_groups
from askew.measures.resolver import Counters, WhoCounter
from askew.measures.scorer import Scorer
from askew.pairs.gains import find_measures
from askew.pairs.plan import selector_of
from askew.pairs.recipe import Recipe, groups_of
from askew.ui.explorer.answers import Sides

# Count the mentions of a document once, even if several queries retrieve it.

Ordinals = npt.NDArray[np.integer[Any]]


class CountedOnce:
    """Counts the mentions of a document when it is first needed, and keeps them. May be used by several threads.

    A counted document takes a few bytes for each group; documents that are not counted take no memory.
    """

    def __init__(self, counter: MentionCounter | WhoCounter) -> None:
        self._counter = counter
        self._kept: DocMentions | None = None

    def of(self, docs: Ordinals, documents: int, texts: Callable[[Ordinals], pa.Array]) -> DocMentions:
        """Return the mentions in some documents; ``documents`` is the size of the collection."""
        kept = self._kept if self._kept is not None and len(self._kept.known) == documents else None
        new = docs if kept is None else docs[~kept.known[docs]]
        # Without documents the groups are still needed, so the first call counts even an empty list.
        if len(new) or kept is None:
            counted = self._counter.count(texts(new))
            if kept is None:
                shape = (documents, counted.counts.shape[1])
                kept = self._kept = DocMentions(
                    counted.groups, np.zeros(shape, counted.counts.dtype), np.zeros(documents, counted.tokens.dtype),
                    np.zeros(documents, np.bool_),
                )  # fmt: skip
            kept.counts[new], kept.tokens[new] = counted.counts, counted.tokens
            # Set last, so that a thread that finds a document known also finds its counts.
            kept.known[new] = True
        return DocMentions(kept.groups, kept.counts[docs], kept.tokens[docs], np.ones(len(docs), np.bool_))


# From this many documents the shares of a collection are estimated, in batches.
# Of a large collection, so many documents stand for its shares; fewer where a model reads each.
_SHARES_MOST, _RESOLVED_MOST, _BATCH = 200_000, 2_000, 5_000

# Score a few result lists; only the documents in them are counted, so the collection can be of any size.

Grades = Mapping[str, int]
# Returns the texts of some documents by their ordinals.
TextsOf = Callable[[Sequence[int]], list[str]]


class ListScorer:
    """Scores result lists by measures; the values are the same as those of ``askew measure``."""

    def __init__(self, measures: Sequence[str], groups: Groups | None = None) -> None:
        self._catalogue = Catalogue(groups=groups)
        self.asked: list[MeasureRequest] = self._catalogue.complete(list(measures))
        for one in self.asked:
            one.check()
        self.lexicons = self._catalogue.lexicons
        # Compiled even for few texts: without it, counting would take a third of the time of a query.
        known = Counters(threads=1, engine="compiled")
        self._counted = {
            key: CountedOnce(known.of(self.lexicons[key.lexicon], *key[1:])) for key in keys_of(self.asked)
        }

        self._shares: dict[tuple[CountKey, tuple[int, ...]], Floats] = {}

    def those(self, judged: bool) -> list[MeasureRequest]:
        """Return the measures that can be computed; without judgements, only those that read none."""
        return [one for one in self.asked if judged or "judgements" not in one.family.reads]

    def directions(self, judged: bool) -> dict[str, Direction]:
        """Return the better direction of each of these measures."""
        return {one.text: one.direction for one in self.those(judged)}

    def score(
        self, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Sequence[Grades | None] = (None,),
        sizes: Sequence[int] = (), also: Sequence[MeasureRequest] = (),
    ) -> dict[str, Floats]:  # fmt: skip
        """Return one value of each measure for each list; NaN where a measure needs judgements and there are none.

        The first ``sizes[0]`` lists belong to the first query, and so on; by default all lists belong to one query.
        ``grades`` has the judgements of each query, None for a query without judgements. ``also`` has further measures,
        which count the same words as the others.
        """
        asked = [*self.those(any(one is not None for one in grades)), *also]
        scorer, lists, _ = self._prepare(asked, hits, doc_ids, texts, grades, sizes or [len(hits)])
        return scorer.score(lists)

    def decompose(
        self, one: MeasureRequest, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Grades | None, query: str
    ) -> Decomposition:
        """Return the parts of a measure for one list, as in ``askew measure --decompose``, without intervals."""
        scorer, lists, relevance = self._prepare([one], hits, doc_ids, texts, [grades], [1], query)
        lexicon = self.lexicons[str(one.measure.param("lexicon"))]
        inputs = scorer.inputs(lists, [one])
        return decompose_run(one, inputs, relevance, lexicon, lists.queries, draws=0)

    def headline(self, label: str, hits: Hits, doc_ids: pa.Array, texts: TextsOf, classifier: str) -> Headline:
        """Return the headline of one list, whose measures must be those of a headline."""
        scorer, lists, _ = self._prepare(self.asked, hits, doc_ids, texts, [None], [1])
        inputs = scorer.inputs(lists, scorer.asked)
        shown = texts(np.unique(hits.docs).tolist())
        every = np.arange(len(shown))
        articles = Articles(scorer.doc_ids, lambda docs: [shown[doc] for doc in docs.tolist()], lambda: every)

        def batches(most: int) -> Iterator[pa.Table]:
            # Documents at equal distances.
            sample = list(range(0, len(doc_ids), -(-len(doc_ids) // most)))
            for first in range(0, len(sample), _BATCH):
                part = sample[first : first + _BATCH]
                ids = doc_ids.take(pa.array(part)).cast(pa.string())
                yield pa.table({"doc_id": ids, "text": pa.array(texts(part), pa.large_string())})

        def shares(one: Measure, columns: Sequence[int]) -> Floats:
            key = count_key(one), tuple(columns)
            if key not in self._shares:
                most = _SHARES_MOST if key[0].who == ANY else _RESOLVED_MOST
                self._shares[key] = group_shares(lambda: batches(most), self.lexicons[key[0].lexicon], *key)
            return self._shares[key]

        inputs = replace(inputs, find_articles=articles.of, find_shares=shares)
        return headline_of("results", inputs, self.asked, {"0": label}, classifier)

    def _prepare(
        self, asked: Sequence[MeasureRequest], hits: Hits, doc_ids: pa.Array, texts: TextsOf,
        grades: Sequence[Grades | None], sizes: Sequence[int], query: str = "",
    ) -> tuple[Scorer, Rankings, RelevanceSource]:  # fmt: skip
        """Number only the documents of the lists; judged documents that are not in them come last, without texts."""
        places, docs = np.unique(hits.docs, return_inverse=True)
        found = [str(one) for one in doc_ids.take(pa.array(places)).to_pylist()]
        ids = list(dict.fromkeys([*found, *(doc for judged in grades for doc in judged or {})]))
        columns: dict[bytes, pa.Array] = {}

        def column(docs: Ordinals) -> pa.Array:
            # Counters that share work identify it by the array, so all keys get the same array.
            if (key := docs.tobytes()) not in columns:
                columns[key] = pa.array(texts(docs.tolist()), pa.large_string())
            return columns[key]

        judged = None
        if any(one is not None for one in grades):
            number = {doc: place for place, doc in enumerate(ids)}
            rows = [
                (str(row), number[doc], grade) for row, one in enumerate(grades) for doc, grade in (one or {}).items()
            ]
            judged_docs, relevance = (np.array([row[part] for row in rows], np.int64) for part in (1, 2))
            judged = JudgedQueries.of(pa.array([row[0] for row in rows], pa.string()), judged_docs, relevance)
        names = pa.array([str(row) for row, size in enumerate(sizes) for _ in range(size)], pa.string())
        rows_of = pa.array([str(row) for row in range(len(hits))], pa.string())
        lists = Rankings.of(replace(hits, docs=docs.astype(np.int32)), rows_of, names)
        scorer = Scorer(
            asked, pa.array(ids, pa.string()), lambda key: self._counted[key].of(places, len(doc_ids), column), judged
        )
        source = RelevanceSource(
            judged, lambda: {"0": query}, lambda: pa.array(texts(places.tolist()), pa.large_string())
        )
        return scorer, lists, source


WITH_JUDGEMENTS = ("nDCG@10", "RR@10", "AP@10")
LEANING = ("ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "LexiconShare@10")
LEANING_OF_SEVERAL = ("AWRF@10", "LexiconShare@10")


@dataclass(frozen=True)
class ExplorerCounts:
    """The groups and measures of the explorer.

    ``groups`` are the groups that the measures count; None if each measure counts its published groups. ``named`` are
    the groups that methods and rules count; None only for the published pair of groups. ``effectiveness`` is None if no
    measure reads judgements. ``sides`` has all measures that decide about a reformulation. ``notes`` say which measures
    were left out.
    """

    groups: Groups | None
    named: Groups | None
    measures: tuple[str, ...]
    effectiveness: str | None
    lean: str
    sides: Sides
    notes: tuple[str, ...] = ()


def counting_of(
    groups: Groups | None = None,
    measures: Sequence[str] | None = None,
    recorded: Recipe | None = None,
    counted: Groups | None = None,
) -> ExplorerCounts:
    """Return the given groups and measures, else those of the recipe of a store, else the default measures.

    ``counted`` are the groups that the store recorded; by default they are read from its recipe.
    """
    chosen, notes = list(measures or ()), list[Note]()
    decided: Sides | None = None
    if groups is not None or recorded is None:
        counted = groups
    elif counted is None:
        counted = groups_of(recorded)
    if not chosen and recorded is not None:
        wanted = list(recorded.table("evaluate")["measures"])
        chosen = wanted if groups is None else comparable(wanted, groups)
        notes = [
            Note(
                f"{text} does not compare {listed(counted.names)} and is left out.", code="measure-left-out",
                measure=text, groups=counted.names,
            )
            for text in wanted if counted is not None and text not in chosen
        ]  # fmt: skip
        if recorded.sections.get("select"):
            # The measures that the selector decides by.
            given = selector_of(recorded).settings()
            effective = _texts(given.get("effectiveness", given.get("measure")))
            decided = Sides(effective, _texts(given.get("bias")), float(given.get("tolerance", 0.0)))
    if not chosen:
        several = counted is not None and len(counted.names) > 2
        chosen = [*WITH_JUDGEMENTS, *comparable(LEANING_OF_SEVERAL if several else LEANING, counted)]
    catalogue = Catalogue(groups=counted)
    asked = catalogue.complete(chosen)
    directions = {one.text: one.direction for one in asked}

    def known(side: Sequence[str]) -> tuple[str, ...]:
        """Return the measures as they are named in the scores."""
        names: list[str] = []
        for text in side:
            # A measure that was left out for these groups has no name in the scores.
            with contextlib.suppress(ConfigError):
                names += find_measures([text], directions, "explore")
        return tuple(names)

    reading = {
        reads: tuple(one.text for one in asked if reads in one.family.reads)[:1] for reads in ("judgements", "mentions")
    }
    sides = Sides(reading["judgements"], reading["mentions"])
    if decided is not None:
        sides = Sides(known(decided.effectiveness), known(decided.lean), decided.tolerance)
    effectiveness = next(iter((*sides.effectiveness, *reading["judgements"])), None)
    lean = next(iter((*sides.lean, *reading["mentions"])), None)
    if lean is None:
        raise ConfigError(
            f"explore: none of the measures {', '.join(chosen)} counts words of groups; use ⟨measures⟩ to "
            "give a measure that counts words, such as ARaB(tf)@10"
        )
    named = counted or named_groups(next(one for one in asked if one.text == lean), catalogue)
    return ExplorerCounts(counted, named, tuple(chosen), effectiveness, lean, sides, tuple(notes))


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(split_measures(given) if isinstance(given, str) else given or ())
