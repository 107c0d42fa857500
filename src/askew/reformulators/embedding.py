"""Expansion by word vectors: each query word is expanded with the words whose vectors are nearest to its own.

With a suitable file of vectors (see ``askew.reformulators.vectorfiles``) this covers four methods of ReQue: word2vec
and glove (``similarity`` "euclidean"; ReQue counts the word itself among its 3 nearest, so its 3 is ``topn=2`` here),
anchor (vectors trained on anchor texts), and the nearest-entities part of wiki (vectors of categories and entities).

These are not used as neighbors: words with the same stem (``rough_stem``) as the query word or as a nearer neighbor,
stop words, and strings that are not words. A word begins with a letter and consists of letters, digits, hyphens and
apostrophes; ``_`` joins several words and is written as a blank. A neighbor is also left out if its stems are already
in the query or were added for an earlier word. Stop words and words without a letter are not expanded. Neighbors are
written in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError
from askew.core.fingerprint import digest_file
from askew.core.text import is_word_character
from askew.core.text import word as words_of
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.lexical import one_line
from askew.reformulators.passages import NOTHING, positive
from askew.reformulators.vectors import SIMILARITIES, WordVectors, files_of, load_vectors

# Articles, pronouns, auxiliaries, question words, prepositions and conjunctions: words without useful synonyms.
_STOP_WORDS_LINES = """
a an the this that these those some any no each every all both such own same other another
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves one who whom whose which what when where why how
am is are was were be been being do does did done doing have has had having can could may might must shall should will
would not nor only just also too very so than then there here now again once more most much many few
about above across after against along among around at before behind below beneath beside besides between beyond but by
despite down during except for from if in inside into like near of off on onto or out outside over per since through
throughout till to toward towards under until up upon via with within without and as because while though although
whether yet s t d ll re ve m don
"""
STOP_WORDS = frozenset(_STOP_WORDS_LINES.split())
_JOINS = "-'’ "
# The first lookup reads this many neighbors more than topn: most of the nearest are forms of the word itself.
_AHEAD = 16


class Embedding:
    """Expands each query word with the words whose vectors are nearest, or replaces it by them.

    A query gets one candidate with the neighbors of all its words; with ``each``, one candidate per neighbor.
    ``replace`` puts the neighbors in the place of the word; a word without neighbors stays. ``vocabulary`` is the file
    with the words of an .npy matrix; the default is vocab.txt in the folder of the matrix.
    """

    method = "embedding"
    reads: frozenset[str] = frozenset()

    def __init__(
        self, vectors: str, vocabulary: str | None = None, topn: int = 3, replace: bool = False,
        similarity: str = "cosine", minimum: float = 0.0, each: bool = False,
    ) -> None:  # fmt: skip
        positive(self.method, topn=topn)
        if similarity not in SIMILARITIES:
            raise ConfigError(
                f"embedding: expected similarity= to be {' or '.join(map(repr, SIMILARITIES))}, found {similarity!r}"
            )
        if not -1 <= minimum <= 1:
            raise ConfigError(f"embedding: expected minimum= to be from -1 to 1, found {minimum}")
        self._path, self._words_path = Path(vectors), None if vocabulary is None else Path(vocabulary)
        files_of(self._path, self._words_path)
        self._topn, self._replace, self._each = topn, replace, each
        self._similarity, self._minimum = similarity, minimum
        # Only words that have a vector are cached, so the cache is never larger than the vocabulary.
        self._known: dict[str, list[str]] = {}

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates, with files identified by content."""
        return {
            "vectors": self._digests, "topn": self._topn, "replace": self._replace, "similarity": self._similarity,
            "minimum": self._minimum, "each": self._each,
        }  # fmt: skip

    @cached_property
    def _digests(self) -> str:
        return "+".join(digest_file(file)[:16] for file in files_of(self._path, self._words_path))

    @cached_property
    def _vectors(self) -> WordVectors:
        return load_vectors(self._path, self._words_path)

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """The query with the neighbors of its words."""
        queries = [_Query(text) for text in asked.texts]
        self._look_up(sorted({word for query in queries for word in query.expandable} - set(self._known)))
        found = Candidates()
        for row, query in enumerate(queries):
            texts = query.written(self._known, self._replace, self._each)
            for text in texts:
                found.add(row, text)
            if not texts:
                found.reject(NOTHING)
        return found

    def _look_up(self, words: Sequence[str]) -> None:
        """Find the neighbors of all words at once; look further for words with too few usable neighbors."""
        spelled = {word: form for word in words if (form := _spelled(word, self._vectors)) is not None}
        waiting, count = list(spelled), self._topn + _AHEAD
        while waiting:
            lists = self._vectors.nearest([spelled[word] for word in waiting], count, self._similarity)
            further = []
            for word, near in zip(waiting, lists, strict=True):
                self._known[word] = self._kept(word, near)
                exhausted = len(near) < count or near[-1][1] < self._minimum
                if len(self._known[word]) < self._topn and not exhausted:
                    further.append(word)
            waiting, count = further, count * 4

    def _kept(self, word: str, near: Sequence[tuple[str, float]]) -> list[str]:
        have, kept = {rough_stem(word)}, []
        for name, value in near:
            other = _plain(name)
            if value >= self._minimum and other is not None and _stems(other) - have:
                kept.append(other)
                have |= _stems(other)
        return kept[: self._topn]


class _Query:
    """A query split at blanks, and the words of it that may be expanded."""

    def __init__(self, text: str) -> None:
        self.text = one_line(text)
        self._pieces = [(piece, words_of(piece)) for piece in self.text.split(" ")]
        words = dict.fromkeys(word for _, found in self._pieces for word in found)
        self._stems = {rough_stem(word) for word in words}
        self.expandable = [word for word in words if word not in STOP_WORDS and any(map(str.isalpha, word))]

    def written(self, known: Mapping[str, Sequence[str]], replace: bool, each: bool) -> list[str]:
        """Return the candidate texts made with the neighbors of the query's words."""
        chosen = self._new(known)
        if each:
            alone = [{word: [other]} for word, near in chosen.items() for other in near]
            return [self._with(one, replace) for one in alone]
        return [self._with(chosen, replace)] if chosen else []

    def _new(self, known: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return the neighbors of each word that add a stem which is not there yet."""
        have, chosen = set(self._stems), {}
        for word in self.expandable:
            new = []
            for other in known.get(word, ()):
                if _stems(other) - have:
                    new.append(other)
                    have |= _stems(other)
            if new:
                chosen[word] = new
        return chosen

    def _with(self, chosen: Mapping[str, Sequence[str]], replace: bool) -> str:
        if not replace:
            return " ".join([self.text, *(other for near in chosen.values() for other in near)])
        written: list[str] = []
        for piece, words in self._pieces:
            if any(word in chosen for word in words):
                written += [other for word in words for other in chosen.get(word, [word])]
            else:
                written.append(piece)
        return " ".join(written)


def rough_stem(word: str) -> str:
    """Remove the most common English endings; for inflected words the result is close to Porter's stem.

    Harman's s-stemmer (1991) removes plurals. Then -ing or -ed is removed if three letters with a vowel remain: a
    doubled consonant becomes single, and a short stem gets its -e back (making, make). Then -ion is removed if five
    letters remain, and -e if four remain.
    """
    stem = _without_s(word)
    for ending in ("ing", "ed"):
        rest = stem.removesuffix(ending)
        if rest != stem and len(rest) >= 3 and any(letter in "aeiouy" for letter in rest):
            stem = _mended(rest)
            break
    if stem.endswith("ion") and len(stem) >= 8:
        stem = stem[:-3]
    return stem[:-1] if stem.endswith("e") and len(stem) >= 5 else stem


def _without_s(word: str) -> str:
    if len(word) <= 3:
        return word
    if word.endswith("ies") and not word.endswith(("aies", "eies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word[:-1] if word.endswith("s") and not word.endswith(("us", "ss")) else word


def _mended(rest: str) -> str:
    if rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    short = len(rest) == 3 and [letter in "aeiou" for letter in rest] == [False, True, False] and rest[-1] not in "wxy"
    return rest + "e" if short else rest


def _stems(phrase: str) -> set[str]:
    return {rough_stem(word) for word in words_of(phrase)}


def _spelled(word: str, vectors: WordVectors) -> str | None:
    """Return the word as the vectors spell it: lower case, else capitalized, else upper case; None if it is missing."""
    return next((form for form in (word, word.capitalize(), word.upper()) if form in vectors), None)


def _plain(name: str) -> str | None:
    """Return a word of the vectors as it is written in a query; None if it is not a word or only stop words."""
    text = one_line(name.replace("_", " ")).lower()
    if not text or not text[0].isalpha() or not all(is_word_character(c) or c in _JOINS for c in text):
        return None
    return None if set(words_of(text)) <= STOP_WORDS else text
