"""Halves of what lean and effectiveness are measured with: the words of a lexicon, the relevant documents of a query.

Pairs are chosen by one half and reported by the other (``askew.app.build.crossfit``). Words are dealt within groups, by
how often they occur, so that both halves have frequent and rare words of every group; several splits are made, because
a few words (he, she) are most of what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from askew.app.scoring.lists import JudgedQueries
from askew.core.lexicon import Lexicon
from askew.core.ranking import Flags, Floats, Ints
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


def judgement_halves(judged: JudgedQueries, split: int, seed: int) -> tuple[JudgedQueries, JudgedQueries]:
    """The judgements with half of the relevant documents of each query, and with the other half.

    What is left out is as if it had not been judged. A query with one relevant document keeps it in both, and documents
    judged as not relevant stay in both.
    """
    every = judged.judgements
    row = np.repeat(np.arange(len(every.offsets) - 1), np.diff(every.offsets))
    relevant = (every.relevance >= 1) & have_several(judged)[row]
    drawn: Floats = np.random.default_rng([seed, split, 1]).random(len(row))
    at = np.flatnonzero(relevant)
    order = at[np.lexsort((drawn[at], row[at]))]
    starts = np.searchsorted(row[order], row[order], side="left")
    odd = np.zeros(len(row), np.bool_)
    odd[order] = (np.arange(len(order)) - starts) % 2 == 1
    return _kept(judged, ~relevant | ~odd), _kept(judged, ~relevant | odd)


def _kept(judged: JudgedQueries, wanted: Flags) -> JudgedQueries:
    every = judged.judgements
    running = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int64)
    part = Judgements(running[every.offsets], every.docs[wanted], every.relevance[wanted], every.judged)
    return JudgedQueries(judged.query_ids, part)
