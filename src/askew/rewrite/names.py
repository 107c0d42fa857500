"""The names of a query that a reformulation must keep, and whether it keeps them in any spelling."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from askew.core.files import DATA
from askew.rewrite.words import FUNCTION_WORDS, LanguageCheck, is_number, names, plain_words

# Which words of an English query belong to a name, without the use of capitals: most queries are typed without them.

TABLE = DATA / "names" / "table.npz"
# Upper bounds of the classes of a word: its share of capitals (add-one-half estimate), and how often it was counted.
RATE_BOUNDS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
COUNT_BOUNDS = (2, 4, 10, 50, 300)
_RATES, _COUNTS = len(RATE_BOUNDS) + 1, len(COUNT_BOUNDS) + 1
UNSEEN = _RATES * _COUNTS
LETTER, NUMBER, MIXED, BOUNDARY = UNSEEN + 1, UNSEEN + 2, UNSEEN + 3, UNSEEN + 4
_FUNCTIONS = {word: BOUNDARY + 1 + i for i, word in enumerate(sorted(FUNCTION_WORDS))}
CLASSES = BOUNDARY + 1 + len(_FUNCTIONS)
# A coarser class: the share of capitals without the count, and one class for each kind of word outside the table.
GROUPS = _RATES + 6
_GROUP = [code // _COUNTS for code in range(UNSEEN)] + [_RATES + i for i in range(5)] + [GROUPS - 1] * len(_FUNCTIONS)
# A single letter is as often a typing error as an initial, and a word that never has a capital is no name.
_MAY_NAME = [_COUNTS <= code <= UNSEEN or code == MIXED for code in range(CLASSES)]
# The number of classes of word pairs by how often both words had a capital: never, a few times, often.
PAIRS = 3
# Where each kind of feature begins among the weights.
BEFORE = CLASSES
AFTER = BEFORE + GROUPS * CLASSES
BEFORE_2 = AFTER + GROUPS * CLASSES
AFTER_2 = BEFORE_2 + GROUPS * GROUPS
PAIR_BEFORE = AFTER_2 + GROUPS * GROUPS
PAIR_AFTER = PAIR_BEFORE + PAIRS
ENDING = PAIR_AFTER + PAIRS
# Words counted fewer than four times have a feature for their last letters.
_RARE = frozenset([UNSEEN, *(code for code in range(UNSEEN) if code % _COUNTS < 2)])
ENDING_LETTERS = 3


@dataclass(frozen=True)
class NameTable:
    """Classes of words and of pairs of words ("new york"), and the weights of the model; ``ends`` are last letters."""

    words: dict[str, int]
    pairs: dict[str, int]
    ends: dict[str, int]
    weights: list[float]
    bias: float

    def code(self, word: str) -> int:
        """The class of a word in lower case, without accents."""
        code = self.words.get(word)
        if code is None:
            code = _FUNCTIONS.get(word)
        if code is not None:
            return code
        if not word.isalpha():
            return NUMBER if word[0].isdigit() else MIXED
        return LETTER if len(word) == 1 else UNSEEN

    def codes(self, words: Sequence[str]) -> list[int]:
        """The classes of words, with two boundaries before and after."""
        return [BOUNDARY, BOUNDARY, *map(self.code, words), BOUNDARY, BOUNDARY]

    def scores(self, words: Sequence[str]) -> list[float]:
        """Return the log odds that each word (in lower case, without accents) belongs to a name."""
        codes, weights, pair, bias = self.codes(words), self.weights, self.pairs.get, self.bias
        before, after, before_2, after_2 = self._by_group
        log_odds = [-math.inf] * len(words)
        for i, word in enumerate(words):
            code = codes[i + 2]
            if not _MAY_NAME[code]:
                continue
            group, last, follows = _GROUP[code], codes[i + 1], codes[i + 3]
            score = (
                bias + weights[code] + before[group][last] + after[group][follows]
                + before_2[group][_GROUP[codes[i]]] + after_2[group][_GROUP[codes[i + 4]]]
                + weights[PAIR_BEFORE + (pair(f"{words[i - 1]} {word}", 0) if _MAY_NAME[last] else 0)]
                + weights[PAIR_AFTER + (pair(f"{word} {words[i + 1]}", 0) if _MAY_NAME[follows] else 0)]
            )  # fmt: skip
            if code in _RARE and (end := self.ends.get(word[-ENDING_LETTERS:])) is not None:
                score += weights[ENDING + end]
            log_odds[i] = score
        return log_odds

    @cached_property
    def _by_group(self) -> tuple[list[list[float]], ...]:
        """The weights of the neighboring words, as a list for each group of words."""
        starts = (BEFORE, AFTER, BEFORE_2, AFTER_2, PAIR_BEFORE)
        stretches = [self.weights[start:end] for start, end in pairwise(starts)]
        return tuple(np.reshape(stretch, (GROUPS, -1)).tolist() for stretch in stretches)

    def names(self, words: Sequence[str], certainty: float) -> list[str]:
        """The words that belong to a name with at least this probability."""
        least = math.log(certainty / (1 - certainty)) if certainty < 1 else math.inf
        return [word for word, score in zip(words, self.scores(words), strict=True) if score >= least]


@cache
def read_table(path: Path = TABLE) -> NameTable:
    """Read a table of tools/make_name_table.py; each file is read once."""
    with np.load(path, allow_pickle=False) as stored:
        weights = (stored["weights"] * stored["scale"]).tolist()
        ends = {end: i for i, end in enumerate(_texts(stored["ends"]))}
        words = dict(zip(_texts(stored["words"]), stored["word_codes"].tolist(), strict=True))
        pairs = dict(zip(_texts(stored["pairs"]), stored["pair_codes"].tolist(), strict=True))
        return NameTable(words, pairs, ends, weights, float(stored["bias"]))


def _texts(stored: np.ndarray) -> list[str]:
    return stored.tobytes().decode().split("\n") if len(stored) else []


# Endings that may be added to a name or removed from it: Korea and Korean, James and a stemmer's "jame".
_ENDS = frozenset(("s", "es", "n", "an", "ian", "ns", "ans", "ians", "ish", "ese", "e", "y", "i", "d", "r"))
# Endings that may replace the last letter of a name: Mexican, Chinese, Italian.
_CHANGED_ENDS = frozenset(("i", "an", "ian", "ians", "ic", "ies", "ese", "ish"))
_LEAST_STEM = 3
# English words that no other language in Latin script has. Most queries have one, so no language check is needed.
_ENGLISH = frozenset(
    ("the", "what", "how", "who", "does", "did", "are", "and", "with", "when", "which", "why", "where")
)
_LEAST_ACRONYM, _LONGEST_ACRONYM = 3, 6
# The minimum length of a misspelled name: a shorter word differs from too many others by one letter.
_LEAST_MISSPELLED = 5


class KeptNames:
    """The words of a query's names: those that the name model finds in any case, and those marked by capitals."""

    def __init__(self, text: str, certainty: float) -> None:
        self._words = plain_words(text)
        seen = {*names(text)}
        if certainty <= 1:
            likely = read_table().names(self._words, certainty)
            if likely and (not _ENGLISH.isdisjoint(self._words) or not _english().refuses(text, self._words)):
                seen.update(likely)
        self.wanted = frozenset([word for word in seen if word not in FUNCTION_WORDS and not is_number(word)])

    def lost_in(self, candidate: str, words: Collection[str]) -> bool:
        """Whether a candidate with these words lacks a name of the query."""
        missing = self.wanted.difference(words)
        if not missing:
            return False
        others = plain_words(candidate)
        distinct, text = set(others), f" {' '.join(others)} "
        absent = [
            word for word in missing
            if not (word in distinct or any(_is_form(word, other) for other in distinct) or self._has_alias(word, text))
        ]  # fmt: skip
        if not absent:
            return False
        covered = {word for whole in self._wholes.keys() & distinct for word in self._wholes[whole]}
        joined, initials = "".join(others), {word[0] for word in others}
        # Words are joined only if the result can be a missing name.
        if any(word in joined or initials.issuperset(word[:-1]) for word in absent):
            covered.update([whole for whole, _ in _wholes(others)])
        return not covered.issuperset(absent)

    @cached_property
    def _wholes(self) -> dict[str, list[str]]:
        return dict(_wholes(self._words))

    def _has_alias(self, word: str, candidate: str) -> bool:
        """Whether the candidate has another form of a name that a word belongs to: "nyc" for the york of new york."""
        groups = _aliases().get(word)
        if groups is None:
            return False
        own = f" {' '.join(self._words)} "
        return any(
            f" {form} " in own and any(f" {other} " in candidate for other in forms)
            for forms in groups
            for form in forms
            if word in form.split()
        )


def _wholes(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield short forms and the words they stand for: spiderman for "spider man", gdp for "gross domestic product"."""
    for start in range(len(words)):
        for size in (2, 3):
            if start + size <= len(words):
                yield "".join(words[start : start + size]), words[start : start + size]
        short, full = "", ""
        for end in range(start, min(len(words), start + _LONGEST_ACRONYM)):
            word = words[end]
            full += word[0]
            if word in FUNCTION_WORDS:
                continue
            short += word[0]
            for initials in (full, short):
                if len(initials) >= _LEAST_ACRONYM:
                    yield initials, words[start : end + 1]
                    yield initials + "s", words[start : end + 1]


def _is_form(word: str, other: str) -> bool:
    """Whether two words are forms of the same name: Simpsons and Simpson, Mexico and Mexican, "stanly" and Stanley."""
    if word[0] != other[0]:
        return False
    short, long = (word, other) if len(word) <= len(other) else (other, word)
    if len(short) < _LEAST_STEM:
        return False
    if long.startswith(short):
        return long[len(short) :] in _ENDS
    if long.startswith(short[:-1]) and long[len(short) - 1 :] in _CHANGED_ENDS:
        return True
    if len(word) < _LEAST_MISSPELLED or not _is_one_edit(word, other):
        return False
    # A rare or unknown word may be a misspelling of a known one.
    return read_table().code(word) in _RARE and other in read_table().words


def _is_one_edit(first: str, second: str) -> bool:
    """Whether one letter is changed, left out or added, or two neighbors are swapped."""
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    first, second = first[at:], second[at:]
    same_rest = first[1:] == second[1:] or first[1:] == second or first == second[1:]
    return same_rest or (first[1::-1] + first[2:]) == second


@cache
def _english() -> LanguageCheck:
    return LanguageCheck("en")


@cache
def _aliases() -> dict[str, list[list[str]]]:
    """Return, for each word, the groups of forms that contain it."""
    table = tomllib.loads((DATA / "names" / "aliases-en.toml").read_text(encoding="utf-8"))
    groups: dict[str, list[list[str]]] = {}
    for group in table["aliases"]:
        forms = group.split(" | ")
        for word in {word for form in forms for word in form.split()}:
            groups.setdefault(word, []).append(forms)
    return groups
