"""From texts to terms. ``english`` is Anserini's default chain, word for word; ``plain`` leaves out stemming.

The chain: Unicode word breaks, final 's removed, lower case, Lucene's English stop words, Porter stems. All that comes
after the word breaks is done once per distinct word and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import UnknownName
from askew.core.porter import stem
from askew.plugins.registry import load, names
from askew.rankers.bm25.wordbreak import tokenize

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
_STOP_WORDS_LINE = """a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with"""
STOP_WORDS = frozenset(_STOP_WORDS_LINE.split())
DROPPED = -1
Ints = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Analyzed:
    """Term numbers of a batch in order; document i has ``counts[i]`` of them. Stop words are gone."""

    terms: Ints
    counts: Ints


@dataclass
class TermVocabulary:
    """Terms by number, growing as texts are read; remembers what became of each distinct word."""

    to_term: Callable[[str], str | None]
    numbers: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)

    def number(self, word: str) -> int:
        """The number of a word's term, or DROPPED."""
        known = self.words.get(word)
        if known is None:
            term = self.to_term(word)
            known = DROPPED if term is None else self.numbers.setdefault(term, len(self.numbers))
            self.words[word] = known
        return known


class Analyzer:
    """A named way from texts to terms, or a user's own function from a text to its terms.

    A name may also be that of an installed plugin (entry point ``askew.analyzer``): a function from a text to terms.
    """

    def __init__(self, name: str = "english", function: Callable[[str], list[str]] | None = None) -> None:
        if function is None and name not in _CHAINS:
            if name not in names("analyzer"):
                raise UnknownName("analyzer", name, analyzer_names())
            function = load("analyzer", name)
        self.name, self.function = name, function
        self.to_term: Callable[[str], str | None] = _as_it_is if function is not None else _CHAINS[name]

    def vocabulary(self) -> TermVocabulary:
        """An empty vocabulary for this analyzer."""
        return TermVocabulary(self.to_term)

    def split(self, texts: pa.Array) -> tuple[list[str], Ints, Ints]:
        """Distinct words, the word numbers of all tokens, tokens per text. Safe to call from several threads."""
        if self.function is None:
            found = tokenize(texts)
            return found.words, found.ids, found.counts
        numbers: dict[str, int] = {}
        lists = [[numbers.setdefault(t, len(numbers)) for t in self.function(text)] for text in texts.to_pylist()]
        flat = np.array([number for one in lists for number in one], np.int32)
        return list(numbers), flat, np.array([len(one) for one in lists], np.int32)

    def analyze(self, texts: pa.Array, vocabulary: TermVocabulary) -> Analyzed:
        """The terms of a batch of texts."""
        return number_terms(self.split(texts), vocabulary)

    def pairs(self, text: str) -> list[tuple[str, str | None]]:
        """The words of one text in order, each with its term; None for a stop word."""
        return self.pairs_of([text])[0]

    def pairs_of(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``pairs`` for many texts; each distinct word becomes a term once."""
        words, ids, counts = self.split(pa.array(list(texts), pa.large_string()))
        found = [(word, self.to_term(word)) for word in words]
        tokens = iter(ids.tolist())
        return [[found[next(tokens)] for _ in range(count)] for count in counts.tolist()]

    def terms(self, text: str) -> list[str]:
        """The terms of one text, for people and tests."""
        return [term for _, term in self.pairs(text) if term is not None]


def number_terms(split: tuple[list[str], Ints, Ints], vocabulary: TermVocabulary) -> Analyzed:
    """Words to terms: one look-up per distinct word of the batch."""
    words, ids, counts = split
    numbers = np.fromiter((vocabulary.number(word) for word in words), np.int32, len(words))
    terms = numbers[ids] if len(words) else np.zeros(0, np.int32)
    kept = terms != DROPPED
    document = np.repeat(np.arange(len(counts)), counts)
    return Analyzed(terms[kept], np.bincount(document[kept], minlength=len(counts)).astype(np.int32))


def _as_it_is(word: str) -> str | None:
    return word


def _english(word: str) -> str | None:
    return None if word in STOP_WORDS else stem(word)


def _plain(word: str) -> str | None:
    return None if word in STOP_WORDS else word


_CHAINS: dict[str, Callable[[str], str | None]] = {"english": _english, "plain": _plain}


def analyzer_names() -> list[str]:
    """The names of all analyzers."""
    return [*_CHAINS, *names("analyzer")]
