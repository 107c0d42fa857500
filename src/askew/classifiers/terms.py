"""How often a short text names each group of a lexicon.

The matching rule is the one for mentions in documents. At each word the longest phrase that matches is counted, and
matching continues after the phrase; otherwise the shortest term that ends in ``*``; otherwise the word itself. A term
of several groups counts for each. One rule is added for queries: people type ``womens`` for ``women's``, so a
possessive ``s`` without its apostrophe is accepted after a term of three letters or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from askew.core.errors import DataError
from askew.core.lexicon import Lexicon
from askew.core.text import word

if TYPE_CHECKING:
    from askew.core.ranking import Ints

Groups = frozenset[int]
_NONE: Groups = frozenset()


class TermCounter:
    """Counts the terms of a lexicon, and names of its groups if given. A name that is also a term counts as a term."""

    def __init__(self, lexicon: Lexicon, names: Lexicon | None = None) -> None:
        self.groups = lexicon.group_names
        self._words: dict[str, Groups] = {}
        self._prefixes: dict[str, Groups] = {}
        self._phrases: dict[str, dict[tuple[str, ...], Groups]] = {}
        for group, terms in enumerate(lexicon.groups.values()):
            for term in terms:
                self._add(term, group, lexicon.name)
        self._add_possessives()
        if names is not None:
            self._words = {**_names(names, self.groups), **self._words}
        longest_first = {
            start: sorted(phrases.items(), key=lambda item: (-len(item[0]), item[0]))
            for start, phrases in self._phrases.items()
        }
        self._starts = longest_first

    def count(self, texts: Sequence[str]) -> Ints:
        """Return the counts: one row for each text, one column for each group."""
        counts = np.zeros((len(texts), len(self.groups)), np.int64)
        for row, text in enumerate(texts):
            for groups in self._found(word(text)):
                for group in groups:
                    counts[row, group] += 1
        return counts

    def _found(self, tokens: list[str]) -> Iterator[Groups]:
        at = 0
        while at < len(tokens):
            groups, used = self._match(tokens, at)
            if groups:
                yield groups
            at += used

    def _match(self, tokens: list[str], at: int) -> tuple[Groups, int]:
        token = tokens[at]
        for phrase, groups in self._starts.get(token, ()):
            if tuple(tokens[at : at + len(phrase)]) == phrase:
                return groups, len(phrase)
        if self._prefixes:
            for end in range(1, len(token) + 1):
                if token[:end] in self._prefixes:
                    return self._prefixes[token[:end]], 1
        return self._words.get(token, _NONE), 1

    def _add(self, term: str, group: int, lexicon: str) -> None:
        tokens = word(term.rstrip("*"))
        if not tokens or (term.endswith("*") and len(tokens) > 1):
            why = "a term that ends in '*' must be one word" if tokens else "a term must have a letter or a digit"
            raise DataError(f"lexicon {lexicon!r}: the term {term!r} can never match a text: {why}")
        if len(tokens) > 1:
            phrases = self._phrases.setdefault(tokens[0], {})
            phrases[tuple(tokens)] = phrases.get(tuple(tokens), _NONE) | {group}
        else:
            known = self._prefixes if term.endswith("*") else self._words
            known[tokens[0]] = known.get(tokens[0], _NONE) | {group}

    def _add_possessives(self) -> None:
        for term, groups in list(self._words.items()):
            if len(term) >= 3 and not term.endswith("s"):
                self._words.setdefault(term + "s", groups)


def _names(names: Lexicon, groups: tuple[str, ...]) -> dict[str, Groups]:
    found: dict[str, Groups] = {}
    for name, terms in names.groups.items():
        if name in groups:
            for term in terms:
                found[term] = found.get(term, _NONE) | {groups.index(name)}
    return found
