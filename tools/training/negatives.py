"""Pairs of texts for the equivalence model: rewrites of one query, and texts that were made to differ.

A pair has two wanted values, *same* and *natural*: 0, 1, a probability (of a soft label), or ``UNKNOWN``.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Protocol

from training.data import Row, lower_some, plain

UNKNOWN = -1.0
_STOP_LINES = """a an the of in on at to for from by with and or is are was were be do does did can could will would
should has have had it its this that what who which when where why how many much there as if than"""
STOP = frozenset(_STOP_LINES.split())
# A word of more queries than this says little about what they share.
_MOST_QUERIES_OF_WORD = 60
_NEIGHBORS = 4
# How much a pair weighs in the loss: a text without one of its words, or with two in exchanged places, often asks for
# the same still.
_DROPPED, _ADDED, _ROLES = 0.5, 0.7, 0.7


@dataclass(frozen=True)
class Pair:
    """A query and a candidate, what is wanted of them, and how much they weigh."""

    query: str
    candidate: str
    same: float
    natural: float
    weight: float = 1.0


class MixSettings(Protocol):
    """What decides on the mix; see ``train_equivalence.Settings``."""

    label_repeats: int
    label_weight: float
    lower_case: float
    positives: int
    shuffled: float
    words_of_neighbors: float
    roles: float
    rewrites_per_epoch: float
    soft_per_epoch: int


def soft_pairs(rows: Sequence[Row], held_out: Container[str]) -> list[Pair]:
    """Pairs with the probabilities of a teacher (``soft.jsonl`` of ``tools/train_rewrite.py``)."""
    for row in rows:
        if not all(isinstance(row[name], int | float) and 0 <= row[name] <= 1 for name in ("same", "natural")):
            raise SystemExit(f"soft labels: expected same and natural from 0 to 1, found {row}; correct it")
    kept = [row for row in rows if plain(row["query"]) not in held_out]
    return [Pair(row["query"], row["text"], float(row["same"]), float(row["natural"])) for row in kept]


def is_content(word: str) -> bool:
    """Whether a word is none of the most frequent ones."""
    return word.lower() not in STOP


def texts_of(row: Row) -> list[str]:
    """A query and its rewrites."""
    return [row["query"], *(one["text"] for one in row["rewrites"])]


def drop_word(text: str, chance: random.Random) -> str | None:
    """The text without one of its content words; nothing where it has fewer than two."""
    words = text.split()
    content = [at for at, word in enumerate(words) if is_content(word)]
    if len(content) < 2:
        return None
    at = chance.choice(content)
    return " ".join(words[:at] + words[at + 1 :])


def swap_word(text: str, other: str, chance: random.Random) -> str | None:
    """The text with a content word replaced by one of another text."""
    words, foreign = text.split(), _foreign(text, other)
    content = [at for at, word in enumerate(words) if is_content(word)]
    if not content or not foreign:
        return None
    words[chance.choice(content)] = chance.choice(foreign)
    return " ".join(words)


def add_words(text: str, other: str, chance: random.Random) -> str | None:
    """The text with one to three words of another, anywhere or at the end."""
    words, foreign = text.split(), _foreign(text, other)
    if not foreign:
        return None
    for word in chance.sample(foreign, min(len(foreign), chance.choice((1, 1, 2, 3)))):
        words.insert(chance.randrange(len(words) + 1) if chance.random() < 0.5 else len(words), word)
    return " ".join(words)


def swap_roles(text: str, chance: random.Random) -> str | None:
    """The text with two of its content words in exchanged places; nothing where it has fewer than three."""
    words = text.split()
    content = [at for at, word in enumerate(words) if is_content(word)]
    if len(content) < 3:
        return None
    one, other = chance.sample(content, 2)
    words[one], words[other] = words[other], words[one]
    swapped = " ".join(words)
    return None if swapped == " ".join(text.split()) else swapped


def _foreign(text: str, other: str) -> list[str]:
    return [word for word in other.split() if is_content(word) and word.lower() not in text.lower()]


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z0-9'&.-]+", text)


class Mix:
    """The pairs of an epoch, drawn anew for each: rewrites as positives, made negatives, labels, and soft labels."""

    def __init__(
        self, rows: Sequence[Row], labels: Sequence[Row], settings: MixSettings, chance: random.Random,
        soft: Sequence[Pair] = (),
    ) -> None:  # fmt: skip
        self._rows, self._labels, self._settings, self._chance, self._soft = rows, labels, settings, chance, soft
        self._near = self._neighbors()
        self._all_words = [word for row in rows for word in _words(row["query"]) if is_content(word)]

    def epoch(self) -> list[Pair]:
        """The pairs of one epoch in random order."""
        settings, chance = self._settings, self._chance
        taken = (at for at in range(len(self._rows)) if chance.random() < settings.rewrites_per_epoch)
        pairs = [pair for at in taken for pair in self._pairs_of(at)]
        for row in self._labels:
            same, natural = float(row["need"] == "same"), float(row["natural"])
            pair = Pair(row["query"], row["candidate"], same, natural, settings.label_weight)
            pairs += [pair] * settings.label_repeats
        pairs = [self._lower(pair) for pair in pairs]
        pairs += chance.sample(self._soft, min(settings.soft_per_epoch, len(self._soft)))
        chance.shuffle(pairs)
        return pairs

    def _pairs_of(self, at: int) -> list[Pair]:
        """Of one query: pairs of its texts, and one of its texts beside texts that differ."""
        chance, texts = self._chance, texts_of(self._rows[at])
        twos = (chance.sample(texts, 2) for _ in range(self._settings.positives))
        found = [Pair(query, candidate, 1.0, 1.0) for query, candidate in twos]
        near = texts_of(self._rows[chance.choice(self._near[at])])
        query = chance.choice(texts)
        found.append(Pair(query, chance.choice(near), 0.0, 1.0))
        made = [(drop_word(chance.choice(texts), chance), UNKNOWN, _DROPPED)]
        made.append((swap_word(chance.choice(texts), chance.choice(near), chance), UNKNOWN, 1.0))
        longer = chance.choice(texts)
        from_near = chance.random() < self._settings.words_of_neighbors
        other = chance.choice(near) if from_near else " ".join(chance.sample(self._all_words, 3))
        made.append((add_words(longer, other, chance), 0.0, _ADDED))
        if chance.random() < self._settings.roles:
            made.append((swap_roles(texts[0], chance), UNKNOWN, _ROLES))
        found += [Pair(query, text, 0.0, natural, weight) for text, natural, weight in made if text]
        if chance.random() < self._settings.shuffled:
            words = chance.choice(texts).split()
            chance.shuffle(words)
            found.append(Pair(query, " ".join(words), UNKNOWN, 0.0))
        return found

    def _lower(self, pair: Pair) -> Pair:
        query, candidate = lower_some((pair.query, pair.candidate), self._settings.lower_case, self._chance)
        return Pair(query, candidate, pair.same, pair.natural, pair.weight)

    def _neighbors(self) -> list[list[int]]:
        """For each query those that share most of its rarer words; any other one where none does."""
        content = [sorted({word for word in _words(row["query"].lower()) if is_content(word)}) for row in self._rows]
        holding: dict[str, list[int]] = defaultdict(list)
        for at, words in enumerate(content):
            for word in words:
                holding[word].append(at)
        found = []
        for at, words in enumerate(content):
            shared = Counter(i for word in words if len(holding[word]) < _MOST_QUERIES_OF_WORD for i in holding[word])
            shared.pop(at, None)
            near = [i for i, _ in shared.most_common(_NEIGHBORS)]
            found.append(near or [self._chance.randrange(len(self._rows))])
        return found
