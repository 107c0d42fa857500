"""Spelling correction: words that do not occur in the collection are replaced by similar words that do.

The collection's statistics give the frequency of a term but do not list the terms. So the similar words come from the
passages of a first search and from a word list of the user. There is no language model and no model of sounds or
keyboards. A query gets at most one candidate.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError
from askew.core.fingerprint import fingerprint
from askew.core.text import word
from askew.plugins.methods import Candidates, CollectionStatistics, QueryBatch
from askew.reformulators.lexical import read_text

# Words of this length or more may have two errors.
_LONG = 8


class SpellingReformulator:
    """Replaces each word that does not occur in the collection by the most similar word that does.

    A similar word is one edit away (a letter added, removed or replaced, or two neighbors exchanged), or two edits for
    words of eight letters or more. Similar words come from the top-ranked passages of the query and from ``words``, a
    file with one word per line. Words shorter than ``shortest`` and words with digits are not changed.
    """

    method = "spelling"
    reads = frozenset({"passages", "statistics"})

    def __init__(self, words: str | None = None, shortest: int = 4) -> None:
        if shortest < 1:
            raise ConfigError(f"spelling: expected shortest= to be 1 or more, found {shortest}")
        self._shortest = shortest
        self._listed = WordList(word(read_text(Path(words), "words")) if words else ())

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the word list identified by its content."""
        return {"shortest": self._shortest, "words": fingerprint(self._listed.words)}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return one candidate for each query with an unknown word that is similar to a known one."""
        found, statistics = Candidates(), asked.statistics
        if not len(asked):
            return found
        if statistics is None:
            raise ConfigError("spelling needs the statistics of a collection, found none")
        for row, text in enumerate(asked.texts):
            pairs = statistics.split(text)
            wrong = self._unknown(pairs, statistics)
            passages = asked.passages[row] if wrong and asked.passages else ()
            near = WordList(one for passage in passages for one, term in statistics.split(passage.text) if term)
            right = {one: self._nearest(one, near, statistics) for one in wrong}
            if any(right.values()):
                found.add(row, " ".join(right.get(one) or one for one, _ in pairs))
            else:
                found.reject("nothing found" if wrong else "no unknown word")
        return found

    def _unknown(self, pairs: list[tuple[str, str | None]], statistics: CollectionStatistics) -> list[str]:
        fit = {one: term for one, term in pairs if term and one.isalpha() and len(one) >= self._shortest}
        counts = statistics.document_frequency(list(fit.values()))
        return [one for one, count in zip(fit, counts.tolist(), strict=True) if not count]

    def _nearest(self, wrong: str, near: WordList, statistics: CollectionStatistics) -> str | None:
        """Return the known word with the fewest edits; ties by document frequency, then alphabetically."""
        most = 2 if len(wrong) >= _LONG else 1
        changes = {**near.within(wrong, most), **self._listed.within(wrong, most)}
        terms = {one: next((term for _, term in statistics.split(one) if term), None) for one in changes}
        fit = [one for one in changes if terms[one]]
        counts = statistics.document_frequency([str(terms[one]) for one in fit]).tolist()
        known = [(changes[one], -count, one) for one, count in zip(fit, counts, strict=True) if count]
        return min(known)[2] if known else None


class WordList:
    """A word list that finds the words similar to another word without comparing it with each of them."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self.words = sorted({one for one in words if one.isalpha()})
        self._letters = np.array([_letters(one) for one in self.words], np.uint64)
        self._lengths = np.array([len(one) for one in self.words], np.int64)

    def within(self, wrong: str, most: int) -> dict[str, int]:
        """Return the words that are 1 to ``most`` edits away, each with its number of edits."""
        if not self.words:
            return {}
        # One edit removes at most one letter and adds at most one.
        other = np.bitwise_count(self._letters ^ np.uint64(_letters(wrong))) <= 2 * most
        fit = np.flatnonzero(other & (np.abs(self._lengths - len(wrong)) <= most))
        changes = {self.words[at]: distance(wrong, self.words[at]) for at in fit.tolist()}
        return {one: count for one, count in changes.items() if 0 < count <= most}


def _letters(one: str) -> int:
    """Return the set of a word's letters as bits; several letters may share a bit."""
    bits = 0
    for letter in one:
        bits |= 1 << (ord(letter) % 64)
    return bits


def distance(one: str, other: str) -> int:
    """Return the edit distance with exchanges of neighboring letters; no letter is edited twice."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, against in enumerate(other, start=1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
