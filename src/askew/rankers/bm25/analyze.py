"""From texts to terms. ``english`` is Anserini's default chain, word for word; ``plain`` leaves out stemming.

The chain: Unicode word breaks, final 's removed, lower case, Lucene's English stop words, Porter stems. All that comes
after the word breaks is done once per distinct word and remembered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from askew.compiled import compiled
from askew.core.errors import UnknownName
from askew.core.porter import stem
from askew.plugins.registry import load, names
from askew.rankers.bm25.wordbreak import read_tokens, tokenize
from askew.rankers.bm25.wordtable import WordTable

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
_STOP_WORDS_LINE = """a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with"""
STOP_WORDS = frozenset(_STOP_WORDS_LINE.split())
DROPPED = -1
Ints = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Analyzed:
    """Term numbers of a batch in order; document i has ``counts[i]`` of them. Stop words are gone.

    ``words`` counts the words of each document before they are.
    """

    terms: Ints
    counts: Ints
    words: Ints


class TermVocabulary:
    """Terms by number, growing as texts are read; remembers the term of each distinct word. For several threads."""

    def __init__(self, to_term: Callable[[str], str | None]) -> None:
        self._to_term, self._lock = to_term, threading.Lock()
        self.numbers: dict[str, int] = {}
        self._words: dict[str, int] = {}

    def number(self, words: Sequence[str]) -> Ints:
        """The number of each word's term, or DROPPED."""
        with self._lock:
            return np.fromiter(map(self._number, words), np.int32, len(words))

    def terms(self) -> pa.Array:
        """All terms so far, by number."""
        with self._lock:
            return pa.array(list(self.numbers), pa.string())

    def _number(self, word: str) -> int:
        known = self._words.get(word)
        if known is None:
            term = self._to_term(word)
            known = DROPPED if term is None else self.numbers.setdefault(term, len(self.numbers))
            self._words[word] = known
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


class TermReader:
    """Reads texts to the term numbers of a vocabulary, batch after batch, in one thread.

    A word is looked up as bytes in a table of the reader's own; only words that are new to it become strings.
    """

    def __init__(self, analyzer: Analyzer, vocabulary: TermVocabulary) -> None:
        self._analyzer, self._vocabulary, self._table = analyzer, vocabulary, WordTable()
        self._terms = np.empty(1 << 12, np.int32)

    def read(self, texts: pa.Array) -> Analyzed:
        """The terms of a batch of texts (a large_string array)."""
        if self._analyzer.function is not None:
            words, ids, counts = self._analyzer.split(texts)
            terms, sizes = _keep_terms(self._vocabulary.number(words), ids, counts)
            return Analyzed(terms, sizes, counts)
        before = self._table.known
        ids, counts = read_tokens(texts, self._table)
        self._learn(before)
        terms, sizes = _keep_terms(self._terms, ids, counts)
        return Analyzed(terms, sizes, counts)

    def _learn(self, first: int) -> None:
        """The terms of the words from a number on."""
        known = self._table.known
        if known > len(self._terms):
            self._terms = np.concatenate([self._terms[:first], np.empty(2 * known - first, np.int32)])
        self._terms[first:known] = self._vocabulary.number(self._table.words(first))


@compiled
def _keep_terms(terms: Any, ids: Any, counts: Any) -> Any:
    """The terms of words in order without those that were dropped, and how many each document has."""
    kept, sizes = np.empty(len(ids), np.int32), np.empty(len(counts), np.int32)
    at, used = 0, 0
    for doc in range(len(counts)):
        before = used
        for i in range(at, at + counts[doc]):
            kept[used] = terms[ids[i]]
            used += kept[used] != DROPPED
        at += counts[doc]
        sizes[doc] = used - before
    return kept[:used].copy(), sizes


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
