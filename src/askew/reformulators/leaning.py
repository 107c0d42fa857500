"""How far a passage leans toward a group, counted with a lexicon, and whether a word names a group.

    lean = (mentions of the group named most - mentions of the group named least) / mentions of all the groups compared

It is between 0 (all named alike, or none at all) and 1 (only one is named). Of two groups it is the size of the signed
balance |a - b| / (a + b): one minus the neutrality of NFaiRR (Rekabsaz et al. 2021) for equal targets without its
threshold. Terms are found as everywhere in askew: at each token the longest phrase, else the shortest prefix term, else
the token itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups
from askew.core.text import Tokenizer
from askew.plugins import registry


class Leaning:
    """Counts groups in texts."""

    def __init__(self, groups: Groups) -> None:
        if len(groups.names) < 2:
            raise ConfigError(f"groups: expected two groups or more to compare, found {', '.join(groups.names)}")
        self.lexicon, self.groups, self.tokens = groups.lexicon, groups.names, groups.tokenizer
        self._tokenize = cast(Tokenizer, registry.load("tokenizer", groups.tokenizer))
        self._terms: dict[tuple[str, ...], list[int]] = {}
        self._prefixes: dict[str, list[int]] = {}
        self._longest: dict[str, int] = {}
        self._named: dict[str, bool] = {}
        for group, terms in enumerate(self.lexicon.groups.values()):
            for term in terms:
                self._add(term, group)

    def counts(self, text: str) -> list[int]:
        """How often a text names each group of the lexicon, in the lexicon's order."""
        tokens, at = self._tokenize(text), 0
        counts = [0] * len(self.lexicon.groups)
        while at < len(tokens):
            named, used = self._match(tokens, at)
            for group in named:
                counts[group] += 1
            at += used
        return counts

    def lean(self, text: str) -> float:
        """How far a text leans, from 0 to 1."""
        counts = self.counts(text)
        compared = [counts[self.lexicon.group_names.index(group)] for group in self.groups]
        total = sum(compared)
        return (max(compared) - min(compared)) / total if total else 0.0

    def names_group(self, word: str) -> bool:
        """Whether a word by itself names any group of the lexicon."""
        known = self._named.get(word)
        if known is None:
            known = self._named[word] = any(self.counts(word))
        return known

    def _add(self, term: str, group: int) -> None:
        tokens = tuple(token for token in self._tokenize(term.rstrip("*")) if token)
        if not tokens or (term.endswith("*") and len(tokens) > 1):
            expected = "a prefix of one token" if tokens else "a term with a token"
            raise DataError(f"lexicon {self.lexicon.name!r}: expected {expected} under its tokenizer, found {term!r}")
        if term.endswith("*"):
            self._prefixes.setdefault(tokens[0], []).append(group)
            return
        self._terms.setdefault(tokens, []).append(group)
        self._longest[tokens[0]] = max(len(tokens), self._longest.get(tokens[0], 1))

    def _match(self, tokens: Sequence[str], at: int) -> tuple[Sequence[int], int]:
        """The groups named at a token, and how many tokens that uses up."""
        token = tokens[at]
        for length in range(self._longest.get(token, 1), 1, -1):
            phrase = tuple(tokens[at : at + length])
            if phrase in self._terms:
                return self._terms[phrase], len(phrase)
        if self._prefixes:
            for end in range(1, len(token) + 1):
                if token[:end] in self._prefixes:
                    return self._prefixes[token[:end]], 1
        return self._terms.get((token,), ()), 1
