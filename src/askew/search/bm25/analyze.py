"""Convert texts to terms. ``english`` gives the same terms as Anserini's default analysis; ``plain`` does not stem.

The steps are: Unicode word breaks, removal of a final 's, lower case, Lucene's English stop words, Porter stemming.
Stop words and stems are computed once per distinct word.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core import text as porter
from askew.core.compiled import compiled
from askew.core.errors import UnknownName
from askew.core.plugins import load, names
from askew.search.bm25.wordbreak import read_tokens
from askew.search.bm25.wordtable import WordTable
from askew.search.disk import bytes_of

# Porter's stemmer, compiled, for many words at once. It gives the stems of ``askew.core.text``, which explains it.

_Y, _MARKED_Y = ord("y"), ord("Y")


def _table(endings: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Endings with their replacements, the longest first."""
    ordered = sorted(endings.items(), key=lambda one: -len(one[0]))
    return [(ending.encode(), new.encode()) for ending, new in ordered]


_STEPS = [_table(rules.endings) for rules in (porter.PLURALS, porter.STEP_2, porter.STEP_3, porter.STEP_4)]
_EDGES = np.cumsum([0, *map(len, _STEPS)])
_ENDINGS = np.array([list(ending[::-1].ljust(8, b"\0")) for step in _STEPS for ending, _ in step], np.uint8)
_LENGTHS = np.array([len(ending) for step in _STEPS for ending, _ in step], np.int64)
_NEW = np.array([list(new.ljust(8, b"\0")) for step in _STEPS for _, new in step], np.uint8)
_NEW_LENGTHS = np.array([len(new) for step in _STEPS for _, new in step], np.int64)


def stems(words: Sequence[str]) -> list[str]:
    """The stems of lower-cased words."""
    if not words:
        return []
    data, offsets = bytes_of(pa.array(words, pa.large_string()))
    out, ends, plain = _stem_all(data, offsets)
    text, starts = out.tobytes(), offsets[:-1].tolist()
    return [
        text[start:end].decode("ascii") if ascii_only else porter.stem(word)
        for word, start, end, ascii_only in zip(words, starts, ends.tolist(), plain.tolist(), strict=True)
    ]


@compiled
def _stem_all(data: Any, offsets: Any) -> Any:
    """Stem a copy of the words. Return its bytes, the ends of the stems, and which words are ASCII; others are kept."""
    out, count = data.copy(), len(offsets) - 1
    ends, plain = np.empty(count, np.int64), np.ones(count, np.bool_)
    for row in range(count):
        start, end = offsets[row], offsets[row + 1]
        for at in range(start, end):
            if out[at] >= 128:
                plain[row] = False
        ends[row] = _stem(out, start, end) if plain[row] and end - start > 2 else end
    return out, ends, plain


@compiled
def _stem(b: Any, start: int, end: int) -> Any:
    """Stem the word between two offsets in place; the end of the stem."""
    _mark_y(b, start, end)
    r1 = _region_after(b, start, end)
    r2 = _region_after(b, r1, end)
    end = _step_1b(b, start, _replace(b, start, end, start, 0), r1)
    if _is_y(b[end - 1]) and _has_vowel(b, start, end - 1):
        b[end - 1] = 105
    end = _replace(b, start, _replace(b, start, end, r1, 1), r1, 2)
    end = _step_5(b, start, _step_4(b, start, end, r2), r1, r2)
    for at in range(start, end):
        if b[at] == _MARKED_Y:
            b[at] = _Y
    return end


@compiled
def _is_vowel(byte: Any) -> Any:
    return byte in (97, 101, 105, 111, 117, _Y)


@compiled
def _is_y(byte: Any) -> Any:
    return byte in (_Y, _MARKED_Y)


@compiled
def _mark_y(b: Any, start: int, end: int) -> None:
    """Write Y for every y at the start or after a vowel."""
    at = start
    if b[at] == _Y:
        b[at] = _MARKED_Y
        at += 1
    while at < end - 1:
        if _is_vowel(b[at]) and b[at + 1] == _Y:
            b[at + 1] = _MARKED_Y
            at += 1
        at += 1


@compiled
def _region_after(b: Any, start: int, end: int) -> Any:
    at = start
    while at < end and not _is_vowel(b[at]):
        at += 1
    while at < end and _is_vowel(b[at]):
        at += 1
    return min(at + 1, end)


@compiled
def _has_vowel(b: Any, start: int, end: int) -> Any:
    at = start
    while at < end and not _is_vowel(b[at]):
        at += 1
    return at < end


@compiled
def _is_short(b: Any, start: int, end: int) -> Any:
    """Whether the word ends in consonant, vowel, consonant, and the last is not w, x or y."""
    if end - start < 3:
        return False
    last = b[end - 1]
    if _is_vowel(last) or last in (119, 120, _MARKED_Y):
        return False
    return _is_vowel(b[end - 2]) and not _is_vowel(b[end - 3])


@compiled
def _replace(b: Any, start: int, end: int, region: int, step: int) -> Any:
    """Replace the longest ending of a step, if it starts in the region; the new end."""
    for rule in range(_EDGES[step], _EDGES[step + 1]):
        length = _LENGTHS[rule]
        if length > end - start or b[end - 1] != _ENDINGS[rule, 0]:
            continue
        same = True
        for at in range(1, length):
            same = same and b[end - 1 - at] == _ENDINGS[rule, at]
        if same:
            if end - length < region:
                return end
            for at in range(_NEW_LENGTHS[rule]):
                b[end - length + at] = _NEW[rule, at]
            return end - length + _NEW_LENGTHS[rule]
    return end


@compiled
def _ends(b: Any, start: int, end: int, ending: Any) -> Any:
    size, same = len(ending), 0
    while same < size <= end - start and b[end - size + same] == ending[same]:
        same += 1
    return same == size


@compiled
def _step_1b(b: Any, start: int, end: int, r1: int) -> Any:
    if _ends(b, start, end, b"eed"):
        return end - 1 if end - 3 >= r1 else end
    cut = 2 if _ends(b, start, end, b"ed") else 3 if _ends(b, start, end, b"ing") else 0
    if cut == 0 or not _has_vowel(b, start, end - cut):
        return end
    end -= cut
    last = b[end - 1]
    if _ends(b, start, end, b"at") or _ends(b, start, end, b"bl") or _ends(b, start, end, b"iz"):
        add = True
    elif end - start > 1 and _is_double(b, end) and last not in (108, 115, 122):
        return end - 1
    else:
        add = end == r1 and _is_short(b, start, end)
    if add:
        b[end] = 101
        end += 1
    return end


@compiled
def _is_double(b: Any, end: int) -> Any:
    last, before = b[end - 1], b[end - 2]
    same = last == before or (_is_y(last) and _is_y(before))
    return same and not _is_vowel(last)


@compiled
def _step_4(b: Any, start: int, end: int, r2: int) -> Any:
    if _ends(b, start, end, b"sion") or _ends(b, start, end, b"tion"):
        return end - 3 if end - 3 >= r2 else end
    return _replace(b, start, end, r2, 3)


@compiled
def _step_5(b: Any, start: int, end: int, r1: int, r2: int) -> Any:
    at = end - 1
    if b[at] == 101 and (at >= r2 or (at >= r1 and not _is_short(b, start, at))):
        end, at = end - 1, at - 1
    return end - 1 if _ends(b, start, end, b"ll") and at >= r2 else end


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

    def vocabulary(self) -> TermVocabulary:
        """An empty vocabulary for this analyzer."""
        return TermVocabulary(self.to_terms)

    def split(self, texts: pa.Array) -> tuple[list[str], Ints, Ints]:
        """The distinct words, the word numbers of all tokens, and the number of tokens per text. It is thread-safe."""
        if self.function is None:
            table = WordTable()
            ids, counts = read_tokens(texts, table)
            return table.words(), ids, counts
        numbers: dict[str, int] = {}
        lists = [[numbers.setdefault(t, len(numbers)) for t in self.function(text)] for text in texts.to_pylist()]
        flat = np.array([number for one in lists for number in one], np.int32)
        return list(numbers), flat, np.array([len(one) for one in lists], np.int32)

    def pairs(self, text: str) -> list[tuple[str, str | None]]:
        """The words of one text in order, each with its term; None for a stop word."""
        return self.pairs_of([text])[0]

    def pairs_of(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """Do the same as ``pairs`` for many texts. Each distinct word is converted to a term once."""
        words, ids, counts = self.split(pa.array(list(texts), pa.large_string()))
        found = list(zip(words, self.to_terms(words), strict=True))
        tokens = iter(ids.tolist())
        return [[found[next(tokens)] for _ in range(count)] for count in counts.tolist()]

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
            known = self._table.known
            if known > len(self._terms):
                self._terms = np.concatenate([self._terms[:first], np.empty(2 * known - first, np.int32)])
            self._terms[first:known] = self._vocabulary.number(self._table.words(first))
            numbers = self._terms
        terms, sizes = _keep_terms(numbers, ids, counts)
        return terms, sizes, counts


@compiled
def _keep_terms(terms: Any, ids: Any, counts: Any) -> Any:
    """The terms of the tokens in order, without dropped words, and the number of terms per document."""
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


def _english(words: Sequence[str]) -> Sequence[str | None]:
    return [None if word in STOP_WORDS else term for word, term in zip(words, stems(words), strict=True)]


def _plain(words: Sequence[str]) -> Sequence[str | None]:
    return [None if word in STOP_WORDS else word for word in words]


_CHAINS: dict[str, Chain] = {"english": _english, "plain": _plain}


def analyzer_names() -> list[str]:
    """The names of all analyzers."""
    return [*_CHAINS, *names("analyzer")]
