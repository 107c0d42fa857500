"""The names of a query that a reformulation must keep, and whether it keeps them in any spelling."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import cache, cached_property

from askew.core.shipped import DATA
from askew.filters.language import LanguageCheck
from askew.filters.namewords import read_table
from askew.filters.numbers import is_number
from askew.filters.words import FUNCTION_WORDS, names, plain_words

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
            told = read_table().names(self._words, certainty)
            if told and (not _ENGLISH.isdisjoint(self._words) or not _english().refuses(text, self._words)):
                seen.update(told)
        self.wanted = frozenset([word for word in seen if word not in FUNCTION_WORDS and not is_number(word)])

    def lost_in(self, candidate: str, words: Collection[str]) -> bool:
        """Whether a candidate with these words lacks a name of the query."""
        missing = self.wanted.difference(words)
        return bool(missing) and self._are_lost(missing, plain_words(candidate))

    def _are_lost(self, missing: Iterable[str], found: list[str]) -> bool:
        there, text = set(found), f" {' '.join(found)} "
        left = [
            word for word in missing
            if not (word in there or any(_is_form(word, other) for other in there) or self._has_alias(word, text))
        ]  # fmt: skip
        if not left:
            return False
        covered = {word for whole in self._wholes.keys() & there for word in self._wholes[whole]}
        joined, initials = "".join(found), {word[0] for word in found}
        # Words are joined only if the result can be a missing name.
        if any(word in joined or initials.issuperset(word[:-1]) for word in left):
            covered.update([whole for whole, _ in _wholes(found)])
        return not covered.issuperset(left)

    @cached_property
    def _wholes(self) -> dict[str, list[str]]:
        return dict(_wholes(self._words))

    def _has_alias(self, word: str, found: str) -> bool:
        """Whether the candidate has another form of a name that a word belongs to: "nyc" for the york of new york."""
        groups = _aliases().get(word)
        if groups is None:
            return False
        own = f" {' '.join(self._words)} "
        return any(
            f" {form} " in own and any(f" {other} " in found for other in forms)
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
    return read_table().is_rare(word) and other in read_table().words


def _is_one_edit(one: str, two: str) -> bool:
    """Whether one letter is changed, left out or added, or two neighbors are swapped."""
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    one, two = one[at:], two[at:]
    return one[1:] == two[1:] or one[1:] == two or one == two[1:] or (one[1::-1] + one[2:]) == two


@cache
def _english() -> LanguageCheck:
    return LanguageCheck("en")


@cache
def _aliases() -> dict[str, list[list[str]]]:
    """Return, for each word, the groups of forms that contain it."""
    known = tomllib.loads((DATA / "names" / "aliases-en.toml").read_text(encoding="utf-8"))
    found: dict[str, list[list[str]]] = {}
    for group in known["aliases"]:
        forms = group.split(" | ")
        for word in {word for form in forms for word in form.split()}:
            found.setdefault(word, []).append(forms)
    return found
