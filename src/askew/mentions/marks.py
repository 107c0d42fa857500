"""The positions of group words in a text. They are the same words that the measures count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from askew.core.defaults import TOKENIZER
from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon
from askew.core.text import Tokenizer, blank, unclipped, without_clipped, word, word_pattern
from askew.core.vocabulary import build_vocabulary

# Tokenizers with tokens that occur in the lower-cased text. ``seyedsalehi`` deletes characters inside words.
_KNOWN: dict[str, Tokenizer] = {"unclipped": unclipped, "word": word, "blank": blank}


@dataclass(frozen=True)
class Mark:
    """A word of a lexicon in a text: ``text[start:end]`` names these groups."""

    start: int
    end: int
    groups: tuple[str, ...]


def can_mark(tokens: str) -> bool:
    """Whether the words that this tokenizer finds can be marked in the text."""
    return tokens in _KNOWN


class Marker:
    """Finds the words of a lexicon in texts, for all its groups or for the groups in ``names``."""

    def __init__(
        self, lexicon: Lexicon, tokens: str = TOKENIZER, overlap: str = "all", names: Sequence[str] | None = None
    ) -> None:
        if not can_mark(tokens):
            raise ConfigError(
                f"group words can be marked only with one of the tokenizers {', '.join(_KNOWN)}, found {tokens!r}"
            )
        self.lexicon, self._tokenize = lexicon, _KNOWN[tokens]
        counted = lexicon.exclusive() if overlap == "first" else lexicon
        self._vocabulary = build_vocabulary(counted, self._tokenize, tokens)
        self.groups = self._vocabulary.groups if names is None else tuple(names)
        many = self._vocabulary.phrases or self._vocabulary.prefixes
        self._single = not many and self._tokenize is not blank

    def find(self, text: str) -> list[Mark]:
        """The words of the groups in the order of the text, by the same rule as counts of mentions."""
        found = []
        for start, end, mask in self.spans(text):
            # As in counts of mentions, the words of groups that are not compared are also matched.
            every = [name for bit, name in enumerate(self._vocabulary.groups) if mask >> bit & 1]
            groups = tuple(name for name in every if name in self.groups)
            found += [Mark(start, end, groups)] if groups else []
        return found

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """The start and end of each word of the lexicon, and a mask with one bit for each group that it names."""
        read = without_clipped(text) if self._tokenize is unclipped else text
        lowered = read.lower()
        if self._single and len(lowered) == len(text):
            # Without phrases and prefixes each token is looked up separately, which is four times as fast.
            words = self._vocabulary.words
            each = word_pattern(text.isascii()).finditer(lowered)
            return [(*token.span(), words[token[0]]) for token in each if token[0] in words]
        tokens = self._tokenize(text)
        places = _places(read, tokens)
        found, at = [], 0
        while at < len(tokens):
            mask, used = self._vocabulary.match(tokens, at)
            if mask:
                found.append((places[at][0], places[at + used - 1][1], mask))
            at += used
        return found

    def count(self, marks: Iterable[Mark]) -> dict[str, int]:
        """How often each group is named; a word of two groups counts for both."""
        counts = Counter(group for mark in marks for group in mark.groups)
        return {group: counts[group] for group in self.groups}


def _places(text: str, tokens: list[str]) -> list[tuple[int, int]]:
    """The start and end of each token. No token occurs in the text between tokens, so each is found at its place."""
    lowered = text.lower()
    # A few characters become two in lower case. Positions in the lowered text then differ from those in the text.
    back = list(range(len(text) + 1)) if len(lowered) == len(text) else _origins(text)
    places, at = [], 0
    for token in tokens:
        start = lowered.index(token, at)
        at = start + len(token)
        places.append((back[start], back[at - 1] + 1 if token else back[start]))
    return places


def _origins(text: str) -> list[int]:
    """The position in the text of each character of the lowered text, and of the end."""
    return [number for number, char in enumerate(text) for _ in char.lower()] + [len(text)]
