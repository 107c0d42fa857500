"""How far a passage leans toward a group, counted with a lexicon, and whether a word names a group.

    lean = (mentions of the group named most - mentions of the group named least) / mentions of all the groups compared

It is between 0 (all named alike, or none at all) and 1 (only one is named). Of two groups it is the size of the signed
balance |a - b| / (a + b): one minus the neutrality of NFaiRR (Rekabsaz et al. 2021) for equal targets without its
threshold. Terms are found as everywhere in askew: at each token the longest phrase, else the shortest prefix term, else
the token itself.
"""

from __future__ import annotations

from typing import cast

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.text import Tokenizer
from askew.core.vocabulary import build_vocabulary
from askew.plugins import registry


class Leaning:
    """Counts groups in texts."""

    def __init__(self, groups: Groups) -> None:
        if len(groups.names) < 2:
            raise ConfigError(f"groups: expected two groups or more to compare, found {', '.join(groups.names)}")
        self.lexicon, self.groups, self.tokens = groups.lexicon, groups.names, groups.tokenizer
        self._tokenize = cast(Tokenizer, registry.load("tokenizer", groups.tokenizer))
        self._vocabulary = build_vocabulary(self.lexicon, self._tokenize, groups.tokenizer)
        self._named: dict[str, bool] = {}

    def counts(self, text: str) -> list[int]:
        """How often a text names each group of the lexicon, in the lexicon's order."""
        return self._vocabulary.count(self._tokenize(text))

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
