"""Which group a query asks about, by the group words that it contains.

Probabilities are computed from the counts. With c(g) mentions of each of G groups, and c2 the second highest count, the
weights are::

    neutral      NEUTRAL + c2
    each group   c(g) + OTHERS / G

and a probability is a weight divided by the sum of all weights. Mentions of several groups raise the probability of
neutral, and the label with the highest probability is the group named most, or neutral. NEUTRAL and OTHERS are
set so that the probabilities for no mention and for one mention are close to the accuracy on the 3,709 annotated MS
MARCO queries of Rekabsaz and Schedl (2020) with the lexicon ``gender`` and first names: 0.63 and 0.93 (two mentions,
not fitted: 0.97). That sample has more gendered queries than a query log, so in a log "neutral" is right more often
than its probability says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askew.classifiers.terms import TermCounter
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.lexicon import load_lexicon
from askew.core.ranking import Floats, Ints
from askew.core.shipped import DATA
from askew.plugins.methods import Classified

NEUTRAL = 0.05
OTHERS = 0.03
LABEL = "neutral"
DEFAULT_LEXICON = "gender"
NAMES = DATA / "names" / "en.toml"


class LexicalClassifier:
    """Counts the words of each group in a query and chooses the group with the most; no mention or a tie is neutral.

    ``groups``         a lexicon by name or file, with any number of groups; the lexicon gender if not given.
    ``names``          count common first names too, for the groups female and male if the lexicon has them. The label
                       is right for 71 % of the annotated queries with names and for 50 % without names. The gender of
                       a name is a guess about a person.
    ``ties``           ``neutral`` or ``abstain``, if two groups are named equally often.
    ``abstain_below``  abstain if the probability of the label is lower; 0: never. See the module for the formula.
    """

    name = "lexical"

    def __init__(
        self, groups: GroupsLike | None = None, names: bool = True, ties: str = "neutral", abstain_below: float = 0.0
    ) -> None:
        if ties not in ("neutral", "abstain"):
            raise ConfigError(f"lexical: expected ties= to be 'neutral' or 'abstain', found {ties!r}")
        if not 0 <= abstain_below <= 1:
            raise ConfigError(f"lexical: expected abstain_below= to be from 0 to 1, found {abstain_below}")
        self._lexicon = Groups.of(DEFAULT_LEXICON if groups is None else groups).counted
        if LABEL in self._lexicon.groups:
            where = f"the lexicon {self._lexicon.name!r}"
            raise ConfigError(
                f"lexical: rename the group {LABEL!r} of {where}; askew uses this name for texts that name no group"
            )
        listed = load_lexicon(NAMES) if names else None
        self._names = listed if listed and set(listed.groups) & set(self._lexicon.groups) else None
        self._ties, self._least = ties, float(abstain_below)
        self._counter = TermCounter(self._lexicon, self._names)
        self.labels = (LABEL, *self._lexicon.group_names)

    def settings(self) -> Mapping[str, Any]:
        """Return the word lists, identified by their content, the rule for ties and the threshold."""
        return {
            "lexicon": self._lexicon.id, "names": self._names.id if self._names else None, "ties": self._ties,
            "abstain_below": self._least,
        }  # fmt: skip

    def tied(self, texts: Sequence[str]) -> int:
        """Return how many texts name two or more groups equally often, and no group more often."""
        first, second = _two_highest(self._counter.count(texts))
        return int(((first == second) & (first > 0)).sum())

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return for each text the group that the text names most often, or the label ``neutral``."""
        counts = self._counter.count(texts)
        first, second = _two_highest(counts)
        probabilities = _probabilities(counts, second)
        chosen = np.where(first > second, counts.argmax(axis=1) + 1, 0).astype(np.int64)
        if self._ties == "abstain":
            chosen[(first == second) & (first > 0)] = -1
        sure = np.take_along_axis(probabilities, np.maximum(chosen, 0)[:, None], axis=1)[:, 0]
        chosen[sure < self._least] = -1
        return Classified(self.labels, probabilities, chosen)


def _two_highest(counts: Ints) -> tuple[Ints, Ints]:
    ordered = np.sort(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    return ordered[:, -1], ordered[:, -2]


def _probabilities(counts: Ints, second: Ints) -> Floats:
    weights = np.column_stack([NEUTRAL + second, counts + OTHERS / counts.shape[1]])
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
