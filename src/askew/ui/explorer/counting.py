"""Choose the groups and measures of the explorer, and the measures that decide about a reformulation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew.core.defaults import RESOLVER
from askew.core.errors import ConfigError
from askew.core.groups import Groups, resolver_id
from askew.core.measure import Direction, split_measures
from askew.core.protocols import DocMentions
from askew.core.ranking import Floats, Hits, Rankings
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.decompose import Decomposition, decompose_run
from askew.measures.lists import JudgedQueries
from askew.measures.mentions import MentionCounter
from askew.measures.relevance import RelevanceSource
from askew.measures.requested import CountKey, comparable, keys_of, listed, named_groups
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
        kept = self._kept
        if kept is None or len(kept.known) != documents:
            kept = None
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


# Score a few result lists; only the documents in them are counted, so the collection can be of any size.

Grades = Mapping[str, int]
# Returns the texts of some documents by their ordinals.
TextsOf = Callable[[Sequence[int]], list[str]]


@dataclass(frozen=True)
class SearchedLists:
    """The result lists of some queries: the first ``sizes[0]`` lists belong to the first query, and so on.

    ``grades`` has the judgements of each query; None for a query without judgements.
    """

    hits: Hits
    sizes: Sequence[int]
    grades: Sequence[Grades | None]

    @classmethod
    def of_one(cls, hits: Hits, grades: Grades | None) -> SearchedLists:
        """All lists belong to one query."""
        return cls(hits, [len(hits)], [grades])

    @property
    def names(self) -> pa.Array:
        """The query of each list."""
        return pa.array([str(query) for query, size in enumerate(self.sizes) for _ in range(size)], pa.string())


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

    def those(self, judged: bool) -> list[MeasureRequest]:
        """Return the measures that can be computed; without judgements, only those that read none."""
        return [one for one in self.asked if judged or "judgements" not in one.family.reads]

    def directions(self, judged: bool) -> dict[str, Direction]:
        """Return the better direction of each of these measures."""
        return {one.text: one.direction for one in self.those(judged)}

    def score(
        self, lists: SearchedLists, doc_ids: pa.Array, texts: TextsOf, also: Sequence[MeasureRequest] = ()
    ) -> dict[str, Floats]:
        """Return one value of each measure for each list; NaN where a measure needs judgements and there are none.

        ``also`` has further measures, which count the same words as the others.
        """
        found = self._lists(lists, doc_ids, texts)
        wanted = [*self.those(found.judged is not None), *also]
        scorer = Scorer(wanted, pa.array(found.ids, pa.string()), found.count, found.judged)
        return scorer.score(found.lists)

    def decompose(
        self, one: MeasureRequest, lists: SearchedLists, doc_ids: pa.Array, texts: TextsOf, query: str
    ) -> Decomposition:
        """Return the parts of a measure for one list, as in ``askew measure --decompose``, without intervals."""
        found = self._lists(lists, doc_ids, texts)
        scorer = Scorer([one], pa.array(found.ids, pa.string()), found.count, found.judged)
        source = RelevanceSource(found.judged, lambda: {"0": query}, found.texts)
        lexicon = self.lexicons[str(one.measure.param("lexicon"))]
        inputs = scorer.inputs(found.lists, [one])
        return decompose_run(one, inputs, source, lexicon, resolver_id(RESOLVER), found.lists.queries, draws=0)

    def _lists(self, lists: SearchedLists, doc_ids: pa.Array, texts: TextsOf) -> _Lists:
        places, docs = np.unique(lists.hits.docs, return_inverse=True)
        numbered = replace(lists.hits, docs=docs.astype(np.int32))
        found = [str(one) for one in doc_ids.take(pa.array(places)).to_pylist()]
        # Only these documents are numbered; documents that are judged but not in the lists come last, without texts.
        ids = list(dict.fromkeys([*found, *(doc for grades in lists.grades for doc in grades or {})]))
        columns: dict[bytes, pa.Array] = {}

        def column(docs: Ordinals) -> pa.Array:
            # Counters that share work identify it by the array, so all keys get the same array.
            if (key := docs.tobytes()) not in columns:
                columns[key] = pa.array(texts(docs.tolist()), pa.large_string())
            return columns[key]

        def count(key: CountKey) -> DocMentions:
            return self._counted[key].of(places, len(doc_ids), column)

        def read() -> pa.Array:
            return pa.array(texts(places.tolist()), pa.large_string())

        rows = pa.array([str(row) for row in range(len(numbered))], pa.string())
        return _Lists(ids, read, count, Rankings.of(numbered, rows, lists.names), _judged(ids, lists.grades))


@dataclass(frozen=True)
class _Lists:
    """Lists with only their own documents numbered, and the texts and counts of these documents."""

    ids: list[str]
    texts: Callable[[], pa.Array]
    count: Callable[[CountKey], DocMentions]
    lists: Rankings
    judged: JudgedQueries | None


def _judged(ids: Sequence[str], grades: Sequence[Grades | None]) -> JudgedQueries | None:
    if all(one is None for one in grades):
        return None
    number = {doc: place for place, doc in enumerate(ids)}
    rows = [(str(query), number[doc], grade) for query, one in enumerate(grades) for doc, grade in (one or {}).items()]
    docs, relevance = (np.array([row[part] for row in rows], np.int64) for part in (1, 2))
    return JudgedQueries.of(pa.array([row[0] for row in rows], pa.string()), docs, relevance)


WITH_JUDGEMENTS = ("nDCG@10", "RR@10", "AP@10")
LEANING = ("ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "NFaiRR@10", "LexiconShare@10")


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
    chosen, notes, sides = list(measures or ()), list[str](), None
    if groups is not None or recorded is None:
        counted = groups
    elif counted is None:
        counted = groups_of(recorded)
    if not chosen and recorded is not None:
        wanted = list(recorded.table("evaluate")["measures"])
        chosen = wanted if groups is None else comparable(wanted, groups)
        notes = [f"{text} does not compare {listed(counted.names)} and is left out."
                 for text in wanted if counted is not None and text not in chosen]  # fmt: skip
        sides = _decided(recorded)
    if not chosen:
        chosen = [*WITH_JUDGEMENTS, *comparable(LEANING, counted)]
    catalogue = Catalogue(groups=counted)
    asked = catalogue.complete(chosen)
    sides = _sides(asked, sides)
    effectiveness = next(iter((*sides.effectiveness, *_first(asked, "judgements"))), None)
    lean = next(iter((*sides.lean, *_first(asked, "mentions"))), None)
    if lean is None:
        raise ConfigError(
            f"explore: none of the measures {', '.join(chosen)} counts words of groups; use measures= to "
            "give a measure that counts words, such as ARaB(tf)@10"
        )
    named = counted or named_groups(next(one for one in asked if one.text == lean), catalogue)
    return ExplorerCounts(counted, named, tuple(chosen), effectiveness, lean, sides, tuple(notes))


def _decided(recipe: Recipe) -> Sides | None:
    """Return the measures that the selector of a recipe decides by; None without a selector."""
    if not recipe.sections.get("select"):
        return None
    given = selector_of(recipe).settings()
    effectiveness = _texts(given.get("effectiveness", given.get("measure")))
    return Sides(effectiveness, _texts(given.get("bias")), float(given.get("tolerance", 0.0)))


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(split_measures(given) if isinstance(given, str) else given or ())


def _sides(asked: Sequence[MeasureRequest], decided: Sides | None) -> Sides:
    """Return the measures of effectiveness and lean, as named in the scores; without a selector, the first of each."""
    if decided is None:
        return Sides(_first(asked, "judgements"), _first(asked, "mentions"))
    directions = {one.text: one.direction for one in asked}

    def known(side: Sequence[str]) -> tuple[str, ...]:
        names: list[str] = []
        for text in side:
            # A measure that was left out for these groups has no name in the scores.
            with contextlib.suppress(ConfigError):
                names += find_measures([text], directions, "explore")
        return tuple(names)

    return Sides(known(decided.effectiveness), known(decided.lean), decided.tolerance)


def _first(asked: Sequence[MeasureRequest], reads: str) -> tuple[str, ...]:
    return tuple(one.text for one in asked if reads in one.family.reads)[:1]
