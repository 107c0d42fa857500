"""Halves of what lean and effectiveness are measured with: the words of a lexicon, the documents, the ranks.

Pairs are chosen by one half and reported by the other (``askew.app.build.crossfit``). Words are dealt within groups, by
how often they occur, so that both halves have frequent and rare words of every group; several splits are made, because
a few words (he, she) are most of what is counted.
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

# Draws of a split until each group has words in both halves; more than a few are needed only where it cannot be.
_TRIES = 50
# A mask of groups has so many bits; one of them is for all words, so that phrases are matched as in the whole lexicon.
CELLS = 31
EVERY = "every"


def unit_of(term: str) -> str:
    """The words of a term as every lexicon writes them: a word is in the same half whichever lexicon has it."""
    return " ".join(word(term.rstrip("*"))) or term


def units_of(lexicons: Iterable[Lexicon]) -> dict[str, str]:
    """The unit that each term is dealt with. Terms that a prefix such as ``wom*`` matches too are dealt with it."""
    terms = {term for lexicon in lexicons for words in lexicon.groups.values() for term in words}
    prefixes = sorted({unit_of(term) for term in terms if term.endswith("*")}, key=lambda one: (len(one), one))
    found = {}
    for term in sorted(terms):
        unit = unit_of(term)
        found[term] = next((prefix for prefix in prefixes if unit.startswith(prefix)), unit)
    return found


def term_counts(lexicon: Lexicon, tokens: str, texts: pa.Array | pa.ChunkedArray) -> Counter[str]:
    """How often each term of a lexicon occurs in some texts."""
    terms = sorted({term for words in lexicon.groups.values() for term in words})
    found: Counter[str] = Counter()
    for start in range(0, len(terms), CELLS):
        some = terms[start : start + CELLS]
        groups = {EVERY: tuple(terms), **{f"t{place}": (term,) for place, term in enumerate(some)}}
        counts = counter_for(Lexicon(lexicon.name, groups), tokens, "all").count(texts).counts[:, 1:].sum(axis=0)
        found.update(dict(zip(some, counts.tolist(), strict=True)))
    return found


def can_split(lexicons: Sequence[Lexicon], groups: Iterable[str]) -> bool:
    """Whether each of these groups has two units or more in every lexicon that has it."""
    units, named = units_of(lexicons), set(groups)
    counted = [words for one in lexicons for group, words in one.groups.items() if group in named]
    return bool(counted) and all(len({units[term] for term in words}) > 1 for words in counted)


def word_halves(
    lexicons: Sequence[Lexicon], groups: Iterable[str], counts: Mapping[str, int], splits: int, seed: int
) -> dict[str, Flags]:
    """For each term, in which of the splits it is in the first half.

    The units that name the same groups are sorted by how often they occur; of each two neighbors, one goes to each
    half, by chance. A split in which a group has no word in one half is drawn again.
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
    """Which units are in the first half."""
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
    """Which queries have two relevant documents or more, so that half of them can be left out."""
    return judged.judgements.relevant() > 1


@dataclass(frozen=True)
class DocumentHalf:
    """Half of the documents, with half of the relevant ones of each query that has several.

    ``judged`` are the judgements with the relevant documents of this half; ``kept`` says of each of all judgements
    whether its document was dealt among the relevant ones of its query: 1 to this half, 0 to the other, -1 not at all.
    All other documents are in the half that ``documents`` says.
    """

    judged: JudgedQueries
    kept: Ints
    documents: Flags

    def lists(self, lists: ScoredLists, places: Ints) -> ScoredLists:
        """The lists with the documents of this half only; ``places`` as of ``judged_places``.

        If the documents of the other half stayed, they would take ranks from those of this one, and what one half gains
        the other would lose; if both halves had the same other documents, both would gain where those are ranked low.
        """
        dealt = np.where(places < 0, -1, self.kept[places]) if len(self.kept) else np.full(len(places), -1)
        return kept_entries(lists, np.where(dealt < 0, self.documents[lists.docs], dealt == 1))


def document_halves(judged: JudgedQueries, documents: int, split: int, seed: int) -> tuple[DocumentHalf, DocumentHalf]:
    """Two halves of the documents that have nothing in common.

    A query's only relevant document is in one of them like any other; its judgement stays in both.
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
    """For each entry of the lists the place of its judgement, -1 where it is not judged."""
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
    """The lists without the entries that are not wanted; what follows them moves up."""
    running = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int64)
    return replace(lists, offsets=running[lists.offsets], docs=lists.docs[wanted], scores=lists.scores[wanted])


def every_other(lists: ScoredLists, order: Ints, parity: int) -> ScoredLists:
    """The lists with their odd ranks (``parity`` 1) or their even ones (0) only; ``order`` has the entries by rank."""
    ranks = np.arange(len(order)) - np.repeat(lists.offsets[:-1], np.diff(lists.offsets)) + 1
    by_rank = replace(lists, docs=lists.docs[order], scores=lists.scores[order])
    return kept_entries(by_rank, ranks % 2 == parity)
