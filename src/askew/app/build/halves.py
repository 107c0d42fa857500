"""Split the words of a lexicon, the documents or the ranks into two halves.

Pairs are chosen with one half and measured on the other (``askew.app.build.crossfit``). Words are split within groups
and by frequency, so that both halves have frequent and rare words of every group. Several splits are made, because a
few words (he, she) are most of the mentions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.scoring.lists import JudgedQueries, ScoredLists
from askew.core.lexicon import Lexicon
from askew.core.ranking import Flags, Ints
from askew.core.text import word
from askew.mentions.count import counter_for
from askew.plugins.kinds import Judgements

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
    strata = _numbered([tuple(sorted(owners[unit])) for unit in order])
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


def _numbered(names: Sequence[tuple[str, ...]]) -> Ints:
    known: dict[tuple[str, ...], int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def have_several(judged: JudgedQueries) -> Flags:
    """Return which queries have two or more relevant documents, which can be split into halves."""
    return judged.judgements.relevant() > 1


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

    def lists(self, lists: ScoredLists, places: Ints) -> ScoredLists:
        """Return the lists with only the documents of this half; ``places`` is the result of ``judged_places``.

        If the documents of the other half stayed in the lists, they would compete for ranks with those of this half, so
        that a gain of one half would be a loss of the other. If both halves had the same non-relevant documents, both
        would gain when these are ranked low.
        """
        dealt = np.where(places < 0, -1, self.kept[places]) if len(self.kept) else np.full(len(places), -1)
        return kept_entries(lists, np.where(dealt < 0, self.documents[lists.docs], dealt == 1))


def document_halves(judged: JudgedQueries, documents: int, split: int, seed: int) -> tuple[DocumentHalf, DocumentHalf]:
    """Split the documents into two disjoint halves.

    The only relevant document of a query is in one of the halves like any other; its judgement stays in both.
    """
    every = judged.judgements
    row = np.repeat(np.arange(len(every.offsets) - 1), np.diff(every.offsets))
    random = np.random.default_rng([seed, split, 1])
    drawn, first = random.random(len(row)), random.random(documents) < 0.5
    at = np.flatnonzero((every.relevance >= 1) & have_several(judged)[row])
    order = at[np.lexsort((drawn[at], row[at]))]
    starts = np.searchsorted(row[order], row[order], side="left")
    sides = [np.full(len(row), -1), np.full(len(row), -1)]
    for parity, side in enumerate(sides):
        side[order] = (np.arange(len(order)) - starts) % 2 == parity
    return tuple(  # type: ignore[return-value]
        DocumentHalf(_with_judgements(judged, side != 0), side, flags)
        for side, flags in zip(sides, (first, ~first), strict=True)
    )


def _with_judgements(judged: JudgedQueries, wanted: Flags) -> JudgedQueries:
    every = judged.judgements
    running = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int64)
    part = Judgements(running[every.offsets], every.docs[wanted], every.relevance[wanted], every.judged)
    return JudgedQueries(judged.query_ids, part)


def judged_places(lists: ScoredLists, judged: JudgedQueries) -> Ints:
    """Return for each entry of the lists the position of its judgement; -1 if it is not judged."""
    every = judged.judgements
    most = int(max(every.docs.max(initial=0), lists.docs.max(initial=0))) + 1
    rows = np.repeat(np.arange(len(every.offsets) - 1), np.diff(every.offsets))
    known = rows * most + every.docs
    queries = lists.ids if lists.queries is None else lists.queries
    row = pc.fill_null(pc.index_in(queries, value_set=judged.query_ids), -1).to_numpy().astype(np.int64)
    wanted = np.repeat(row, np.diff(lists.offsets)) * most + lists.docs
    # The judgements of a query are in the order of their documents.
    places = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    return np.where(known[places] == wanted, places, -1) if len(known) else np.full(len(wanted), -1)


def kept_entries(lists: ScoredLists, wanted: Flags) -> ScoredLists:
    """Remove the entries that are not wanted; the entries after them move up."""
    running = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int64)
    return replace(lists, offsets=running[lists.offsets], docs=lists.docs[wanted], scores=lists.scores[wanted])


def every_other(lists: ScoredLists, order: Ints, parity: int) -> ScoredLists:
    """Keep only the odd ranks (``parity`` 1) or the even ranks (0) of the lists; ``order`` has the entries by rank."""
    ranks = np.arange(len(order)) - np.repeat(lists.offsets[:-1], np.diff(lists.offsets)) + 1
    by_rank = replace(lists, docs=lists.docs[order], scores=lists.scores[order])
    return kept_entries(by_rank, ranks % 2 == parity)
