"""Words that the collection does not know, replaced by near ones that it does.

The collection tells how often a term stands in it, not which terms it has; so the near words come from the passages
that a first search found for the query, and from a list of words that the user gives. There is no model of the
language, of sounds or of keyboards, and one candidate for each query.
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

# Longer words may have two mistakes.
_LONG = 8


class SpellingReformulator:
    """Replaces each word that the collection does not know by the nearest one that it does.

    Near is one change (a letter added, removed, replaced, or two exchanged), or two for words of eight letters or more.
    Known words come from the top-ranked passages of the query and from ``words``, a file with one word per line. Words
    shorter than ``shortest`` and words with digits stay as they are.
    """

    method = "spelling"
    reads = frozenset({"passages", "statistics"})

    def __init__(self, words: str | None = None, shortest: int = 4) -> None:
        if shortest < 1:
            raise ConfigError(f"spelling: expected shortest of 1 or more, found {shortest}")
        self._shortest = shortest
        self._listed = WordList(word(read_text(Path(words), "words")) if words else ())

    def settings(self) -> dict[str, Any]:
        """What the candidates depend on, the list of words by its content."""
        return {"shortest": self._shortest, "words": fingerprint(self._listed.words)}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """One candidate for each query with an unknown word that is near a known one."""
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
        """The known word with the fewest changes; then the one in more documents; then by the alphabet."""
        most = 2 if len(wrong) >= _LONG else 1
        changes = {**near.within(wrong, most), **self._listed.within(wrong, most)}
        terms = {one: next((term for _, term in statistics.split(one) if term), None) for one in changes}
        fit = [one for one in changes if terms[one]]
        counts = statistics.document_frequency([str(terms[one]) for one in fit]).tolist()
        known = [(changes[one], -count, one) for one, count in zip(fit, counts, strict=True) if count]
        return min(known)[2] if known else None


class WordList:
    """Words that can be asked for those near another, without comparing with each."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self.words = sorted({one for one in words if one.isalpha()})
        self._letters = np.array([_letters(one) for one in self.words], np.uint64)
        self._lengths = np.array([len(one) for one in self.words], np.int64)

    def within(self, wrong: str, most: int) -> dict[str, int]:
        """The words that are one or more changes away, and no more than ``most``, each with how many."""
        if not self.words:
            return {}
        # One change makes at most one letter go and one come.
        other = np.bitwise_count(self._letters ^ np.uint64(_letters(wrong))) <= 2 * most
        fit = np.flatnonzero(other & (np.abs(self._lengths - len(wrong)) <= most))
        changes = {self.words[at]: distance(wrong, self.words[at]) for at in fit.tolist()}
        return {one: count for one, count in changes.items() if 0 < count <= most}


def _letters(one: str) -> int:
    """Which letters a word has, as bits; several letters may share a bit."""
    bits = 0
    for letter in one:
        bits |= 1 << (ord(letter) % 64)
    return bits


def distance(one: str, other: str) -> int:
    """How many letters are to be added, dropped, changed, or changed about with their neighbor (each letter once)."""
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
