"""Convert texts to terms. ``english`` gives the same terms as Anserini's default analysis; ``plain`` does not stem.

The steps are: Unicode word breaks, removal of a final 's, lower case, Lucene's English stop words, Porter stemming.
Stop words and stems are computed once per distinct word.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.compiled import compiled
from askew.core.errors import UnknownName
from askew.core.plugins import load, names
from askew.core.porter import stem
from askew.search.bm25.wordbreak import WordTable, read_tokens

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
_STOP_WORDS_LINE = """a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with"""
STOP_WORDS = frozenset(_STOP_WORDS_LINE.split())
DROPPED = -1
Ints = np.ndarray[Any, np.dtype[np.int32]]
# The terms of words; None for a word that is dropped.
Chain = Callable[[Sequence[str]], Sequence[str | None]]


class TermVocabulary:
    """Numbers terms as texts are read, and remembers the term of each distinct word. It is thread-safe."""

    def __init__(self, to_terms: Chain) -> None:
        self._to_terms, self._lock = to_terms, threading.Lock()
        self.numbers: dict[str, int] = {}
        self._words: dict[str, int] = {}

    def number(self, words: Sequence[str]) -> Ints:
        """The term number of each word, or DROPPED."""
        with self._lock:
            new = [word for word in words if word not in self._words]
            for word, term in zip(new, self._to_terms(new), strict=True):
                self._words[word] = DROPPED if term is None else self.numbers.setdefault(term, len(self.numbers))
            return np.fromiter(map(self._words.__getitem__, words), np.int32, len(words))

    def terms(self) -> pa.Array:
        """All terms so far, in the order of their numbers."""
        with self._lock:
            return pa.array(list(self.numbers), pa.string())


class Analyzer:
    """Converts texts to terms: a named analyzer, or a user's function from a text to its terms.

    A name may also be that of an installed plugin (entry point ``askew.analyzer``), which is such a function.
    """

    def __init__(self, name: str = "english", function: Callable[[str], list[str]] | None = None) -> None:
        if function is None and name not in _CHAINS:
            if name not in names("analyzer"):
                raise UnknownName("analyzer", name, analyzer_names())
            function = load("analyzer", name)
        self.name, self.function = name, function
        self.to_terms: Chain = list if function is not None else _CHAINS[name]

    def split(self, texts: pa.Array) -> tuple[list[str], Ints, Ints]:
        """The distinct words, the word numbers of all tokens, and the number of tokens per text. It is thread-safe."""
        if self.function is None:
            table = WordTable()
            ids, counts = read_tokens(texts, table)
            return table.words(), ids, counts
        numbers: dict[str, int] = {}
        lists = [[numbers.setdefault(t, len(numbers)) for t in self.function(text)] for text in texts.to_pylist()]
        flat = np.array([number for numbers_of_text in lists for number in numbers_of_text], np.int32)
        return list(numbers), flat, np.array([len(numbers_of_text) for numbers_of_text in lists], np.int32)

    def pairs(self, text: str) -> list[tuple[str, str | None]]:
        """The words of one text in order, each with its term; None for a stop word."""
        return self.pairs_of([text])[0]

    def pairs_of(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """Do the same as ``pairs`` for many texts. Each distinct word is converted to a term once."""
        words, ids, counts = self.split(pa.array(list(texts), pa.large_string()))
        words_and_terms = list(zip(words, self.to_terms(words), strict=True))
        tokens = iter(ids.tolist())
        return [[words_and_terms[next(tokens)] for _ in range(count)] for count in counts.tolist()]

    def terms(self, text: str) -> list[str]:
        """The terms of one text."""
        return [term for _, term in self.pairs(text) if term is not None]


class TermReader:
    """Converts batches of texts to the term numbers of a vocabulary, in one thread.

    Words are looked up as bytes in a table of this reader. Only words that are new to this table become strings.
    """

    def __init__(self, analyzer: Analyzer, vocabulary: TermVocabulary) -> None:
        self._analyzer, self._vocabulary, self._table = analyzer, vocabulary, WordTable()
        self._terms = np.empty(1 << 12, np.int32)

    def read(self, texts: pa.Array) -> tuple[Ints, Ints, Ints]:
        """The term numbers of texts (large strings) without stop words, and how many terms and words each text has."""
        if self._analyzer.function is not None:
            words, ids, counts = self._analyzer.split(texts)
            numbers = self._vocabulary.number(words)
        else:
            first = self._table.known
            ids, counts = read_tokens(texts, self._table)
            end = self._table.known
            if end > len(self._terms):
                self._terms = np.concatenate([self._terms[:first], np.empty(2 * end - first, np.int32)])
            self._terms[first:end] = self._vocabulary.number(self._table.words(first))
            numbers = self._terms
        terms, sizes = _keep_terms(numbers, ids, counts)
        return terms, sizes, counts


@compiled
def _keep_terms(terms: Any, ids: Any, counts: Any) -> Any:
    """The terms of the tokens in order, without dropped words, and the number of terms per document."""
    used_terms, sizes = np.empty(len(ids), np.int32), np.empty(len(counts), np.int32)
    at, used = 0, 0
    for doc in range(len(counts)):
        before = used
        for i in range(at, at + counts[doc]):
            used_terms[used] = terms[ids[i]]
            used += used_terms[used] != DROPPED
        at += counts[doc]
        sizes[doc] = used - before
    return used_terms[:used].copy(), sizes


def _english(words: Sequence[str]) -> Sequence[str | None]:
    return [None if word in STOP_WORDS else stem(word) for word in words]


def _plain(words: Sequence[str]) -> Sequence[str | None]:
    return [None if word in STOP_WORDS else word for word in words]


_CHAINS: dict[str, Chain] = {"english": _english, "plain": _plain}


def analyzer_names() -> list[str]:
    """The names of all analyzers."""
    return [*_CHAINS, *names("analyzer")]
