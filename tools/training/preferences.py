"""Which of two sampled texts is the better reformulation: rewards of texts, and pairs of a chosen and a rejected one.

A reward is the probability of a teacher that a text is usable, and at most a limit where a rule says that it is not.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# The highest reward of a text with such a fault.
COPY, NUMBER_LOST, NUMBER_ADDED, REPEATS, NO_KEYWORDS, ONE_WORD = 0.15, 0.1, 0.5, 0.2, 0.4, 0.3
MOST_KEYWORDS = 7
MOST_REPEATS = 2
QUESTION_WORDS = frozenset(
    ["who", "what", "when", "where", "why", "how", "is", "are", "does", "do", "did", "can", "which"]
)


@dataclass(frozen=True)
class Sample:
    """A text that the model wrote for a query (by its number), and the log probability of its tokens."""

    query: int
    kind: str
    text: str
    log_probability: float


@dataclass(frozen=True)
class Preference:
    """A text of a kind that is to become more probable, and one that is to become less so."""

    query: str
    kind: str
    chosen: str
    rejected: str


class PairSettings(Protocol):
    """What decides on pairs; see ``train_queries.Settings``."""

    least_reward: float
    least_margin: float
    chosen_per_kind: int
    draw_chosen: int
    most_pairs: int


def words_of(text: str) -> list[str]:
    """The words of a text in lower case."""
    return re.findall(r"[a-z0-9']+", text.lower())


def limit(query: str, kind: str, text: str) -> float:
    """The highest reward that a text may have, whatever the teacher says; 1 where no rule applies."""
    asked, written = words_of(query), words_of(text)
    found = [1.0]
    if not written or set(asked) == set(written):
        found.append(COPY)
    wanted, numbers = (set(re.findall(r"\d+", one)) for one in (query, text))
    if wanted != numbers:
        found.append(NUMBER_ADDED if wanted <= numbers else NUMBER_LOST)
    if len(asked) == len(set(asked)) and max(Counter(written).values(), default=0) > MOST_REPEATS:
        found.append(REPEATS)
    if kind == "keywords" and (len(written) > MOST_KEYWORDS or QUESTION_WORDS & set(written[:1])):
        found.append(NO_KEYWORDS)
    if kind != "keywords" and len(written) < 2:
        found.append(ONE_WORD)
    return min(found)


def make_pairs(
    samples: Sequence[Sample], rewards: Sequence[float], queries: Sequence[str], settings: PairSettings,
    chance: random.Random,
) -> list[Preference]:  # fmt: skip
    """Pairs of texts of one query and kind, in random order.

    Chosen are the best texts with a reward of ``least_reward`` or more, or with ``draw_chosen`` any of these, so that
    the model keeps writing different texts. Rejected is one of those whose reward is lower by ``least_margin`` or more:
    in half of the cases the most probable one, which the model has to unlearn first.
    """
    texts: dict[tuple[int, str], dict[str, tuple[float, str, float]]] = defaultdict(dict)
    for one, reward in zip(samples, rewards, strict=True):
        per_word = one.log_probability / max(1, len(one.text.split()))
        if one.text:
            texts[one.query, one.kind].setdefault(one.text.lower(), (reward, one.text, per_word))
    found = []
    for (query, kind), known in texts.items():
        ordered = sorted(known.values(), reverse=True)
        good = [one for one in ordered if one[0] >= settings.least_reward]
        if settings.draw_chosen:
            chance.shuffle(good)
        for reward, text, _ in good[: settings.chosen_per_kind]:
            worse = [one for one in ordered if one[0] <= reward - settings.least_margin]
            if worse:
                likeliest = chance.random() < 0.5
                rejected = max(worse, key=lambda one: one[2]) if likeliest else chance.choice(worse)
                found.append(Preference(queries[query], kind, text, rejected[1]))
    chance.shuffle(found)
    return found[: settings.most_pairs]
