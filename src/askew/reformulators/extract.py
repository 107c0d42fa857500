"""Queries taken out of passages without any model: the words of a passage, arranged as a person would type them.

Of each passage the sentence that shares most with the query is cut down to its weightiest words, in their order; the
passage's strongest phrase is put behind the words of the query; and where the query is a question, its opening ("how
long does") is put before the sentence. Passages take turns until there are enough.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from askew.core.errors import ConfigError
from askew.plugins.methods import Candidates, CollectionStatistics, Passage, QueryBatch
from askew.reformulators.lexical import question_rules

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\s+--+\s+|\n+")
_LETTERS = re.compile(r"\w*[^\W\d_]\w*")
_MOST_PHRASE = 3
# A word: how it is written, and its term (None for a stop word).
Word = tuple[str, str | None]


@dataclass(frozen=True)
class _Sentence:
    """A sentence and what it is worth to the query."""

    words: tuple[Word, ...]
    worth: float


class ExtractReformulator:
    """Queries cut out of the top-ranked passages: weighty words of the best sentence, strong phrases; no model needed.

    ``count`` candidates at most for each query; ``words`` is the longest a cut sentence may be.
    """

    method = "extract"
    reads = frozenset({"passages", "statistics"})

    def __init__(self, count: int = 20, words: int = 8, passages: int = 10) -> None:
        if min(count, words, passages) < 1:
            raise ConfigError(
                f"extract: expected count, words and passages of 1 or more; found {count}, {words}, {passages}"
            )
        self._count, self._words, self._passages = count, words, passages

    def settings(self) -> dict[str, Any]:
        """What the candidates depend on."""
        return {"count": self._count, "words": self._words, "passages": self._passages}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Up to ``count`` candidates for each query, those of the top-ranked passages first."""
        if asked.statistics is None or asked.passages is None:
            raise ConfigError("extract: it reads the top-ranked passages of each query; give the documents")
        found, weights = Candidates(), _Weights(asked.statistics)
        weights.read_all([passage for some in asked.passages for passage in some[: self._passages]])
        for row, query in enumerate(weights.split(asked.texts)):
            seen = {_key(word for word, _ in query)}
            kept = 0
            for words, doc_id in self._proposals(query, asked.passages[row][: self._passages], weights):
                if kept == self._count:
                    break
                if _key(words) in seen:
                    found.reject("duplicate")
                    continue
                seen.add(_key(words))
                found.add(row, " ".join(words), doc_id)
                kept += 1
            if not kept:
                found.reject("nothing found")
        return found

    def _proposals(
        self, query: Sequence[Word], passages: Sequence[Passage], weights: _Weights
    ) -> Iterator[tuple[list[str], str]]:
        """Candidates in the order of their promise: the first of every passage, then the second, and so on."""
        own = {term for _, term in query if term}
        content = [word for word, term in query if term]
        opening = _opening(query)
        queues = [self._of_passage(weights.read(p), own, content, opening, weights) for p in passages]
        waiting = [(iter(queue), p.doc_id) for queue, p in zip(queues, passages, strict=True)]
        while waiting:
            still = []
            for queue, doc_id in waiting:
                words = next(queue, None)
                if words is not None:
                    yield words, doc_id
                    still.append((queue, doc_id))
            waiting = still

    def _of_passage(
        self,
        sentences: Sequence[tuple[Word, ...]],
        own: set[str],
        content: list[str],
        opening: list[str],
        weights: _Weights,
    ) -> Iterator[list[str]]:
        ranked = sorted((_Sentence(words, _worth(words, own, weights)) for words in sentences), key=lambda s: -s.worth)
        phrases = _phrases(sentences, own, weights)
        for i, sentence in enumerate(ranked):
            cut = _cut(sentence.words, own, self._words, weights)
            if len(cut) > 1:
                yield cut
            if i < len(phrases) and content:
                yield [*content, *phrases[i]]
            if opening and len(cut) > 1:
                yield [*opening, *_cut(sentence.words, own, max(2, self._words - 3), weights)]
            if i < len(phrases):
                yield [*phrases[i], *(word for word in _shared(sentence.words, own) if word not in phrases[i])]


class _Weights:
    """What terms are worth in the collection; passages are split once, however many queries found them."""

    def __init__(self, statistics: CollectionStatistics) -> None:
        self._statistics = statistics
        self._stop = question_rules(None).stop_words
        self._known: dict[str, float] = {}
        self._read: dict[str, list[tuple[Word, ...]]] = {}

    def read_all(self, passages: Sequence[Passage]) -> None:
        """Split the sentences of many passages together."""
        parts = {passage.text: [part for part in _SENTENCE.split(passage.text) if part.strip()] for passage in passages}
        words = iter(self.split([part for some in parts.values() for part in some]))
        self._read = {text: [tuple(next(words)) for _ in some] for text, some in parts.items()}

    def read(self, passage: Passage) -> list[tuple[Word, ...]]:
        """The sentences of a passage as words."""
        return self._read[passage.text]

    def split(self, texts: Sequence[str]) -> list[list[Word]]:
        """Words with their terms. More words are without content here than in an index: do, you, have."""
        stop = self._stop
        return [
            [(word, None if word in stop else term) for word, term in words]
            for words in self._statistics.split_many(texts)
        ]

    def of(self, terms: Sequence[str]) -> list[float]:
        """The inverse document frequency of each term."""
        new = [term for term in dict.fromkeys(terms) if term not in self._known]
        if new:
            counts = self._statistics.document_frequency(new).tolist()
            total = self._statistics.documents
            self._known.update(
                {t: math.log(1 + (total - n + 0.5) / (n + 0.5)) for t, n in zip(new, counts, strict=True)}
            )
        return [self._known[term] for term in terms]


def _opening(query: Sequence[Word]) -> list[str]:
    """The words before the first with content, where the query is a question of several words."""
    opening = []
    for word, term in query:
        if term and word not in _QUESTION:
            break
        opening.append(word)
    return opening if opening and opening[0] in _QUESTION | _ASKING else []


_QUESTION = frozenset(["how", "what", "when", "where", "which", "who", "whom", "whose", "why"])
_ASKING_LINE = "are can could did do does had has have is may must should was were will would"
_ASKING = frozenset(_ASKING_LINE.split())


def _worth(words: Sequence[Word], own: set[str], weights: _Weights) -> float:
    """What a sentence shares with the query, and a little for what it says besides."""
    terms = list(dict.fromkeys(term for _, term in words if term))
    if not terms:
        return 0.0
    values = weights.of(terms)
    shared = sum(value for term, value in zip(terms, values, strict=True) if term in own)
    return shared + sum(values) / (10 * len(values))


def _cut(words: Sequence[Word], own: set[str], most: int, weights: _Weights) -> list[str]:
    """The weightiest words of a sentence in their order; those of the query come first into the choice."""
    first: dict[str, int] = {}
    for place, (word, term) in enumerate(words):
        if term and _LETTERS.fullmatch(word) and term not in first:
            first[term] = place
    terms = list(first)
    values = dict(zip(terms, weights.of(terms), strict=True))
    chosen = sorted(terms, key=lambda term: (term not in own, -values[term], first[term]))[:most]
    return [words[first[term]][0] for term in sorted(chosen, key=first.__getitem__)]


def _shared(words: Sequence[Word], own: set[str]) -> list[str]:
    return list(dict.fromkeys(word for word, term in words if term in own))


def _phrases(sentences: Sequence[Sequence[Word]], own: set[str], weights: _Weights) -> list[list[str]]:
    """Runs of up to three content words that are not the query's, the strongest first: often said, seldom elsewhere."""
    counts: Counter[tuple[str, ...]] = Counter()
    shown: dict[tuple[str, ...], list[str]] = {}
    for words in sentences:
        for start in range(len(words)):
            for size in range(1, _MOST_PHRASE + 1):
                run = words[start : start + size]
                if len(run) < size or any(not term or term in own or not _LETTERS.fullmatch(w) for w, term in run):
                    break
                key = tuple(str(term) for _, term in run)
                counts[key] += 1
                shown.setdefault(key, [word for word, _ in run])
    scored = {key: count * sum(weights.of(key)) / math.sqrt(len(key)) for key, count in counts.items()}
    strongest, used = [], set[str]()
    for key in sorted(scored, key=lambda key: (-scored[key], key)):
        # Each word serves once: "glass roof" and "roof" would be the same proposal twice.
        if used.isdisjoint(key):
            strongest.append(shown[key])
            used.update(key)
    return strongest


def _key(words: Any) -> frozenset[str]:
    """Two candidates of the same words retrieve the same."""
    return frozenset(words)
