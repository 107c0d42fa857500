"""Queries extracted from passages, without a model.

The sentences of a passage are ranked by the idf of the terms that they share with the query. Each sentence gives up to
four candidates: its words with the highest idf; the content words of the query followed by a strong phrase of the
passage; for a question, its opening ("how long does") followed by words of the sentence; and the phrase followed by the
query words in the sentence. The passages take turns until there are enough candidates.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from askew.core.errors import ConfigError
from askew.core.plugins import Count
from askew.core.protocols import Candidates, CollectionStatistics, Passage, QueryBatch
from askew.rewrite.lexical import question_rules
from askew.rewrite.words import QUESTION_WORDS

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\s+--+\s+|\n+")
_LETTERS = re.compile(r"\w*[^\W\d_]\w*")
_MOST_PHRASE = 3
# A word: how it is written, and its term (None for a stop word).
Word = tuple[str, str | None]


class _Sentence:
    """A sentence and the idf of its terms, independent of the query."""

    def __init__(self, words: Sequence[Word], statistics: CollectionStatistics) -> None:
        self.words = words
        self.values = _idf(statistics, [term for _, term in words if term])
        self.base = sum(self.values.values()) / (10 * len(self.values)) if self.values else 0.0
        self._first: dict[str, int] = {}
        for place, (word, term) in enumerate(words):
            if term and _LETTERS.fullmatch(word) and term not in self._first:
                self._first[term] = place
        self._weightiest = sorted(self._first, key=lambda term: (-self.values[term], self._first[term]))

    def worth(self, own: set[str]) -> float:
        """Return the summed idf of the terms shared with the query, plus a tenth of the mean idf of all terms."""
        return sum(value for term, value in self.values.items() if term in own) + self.base

    def cut(self, own: set[str], most: int) -> list[str]:
        """Choose up to ``most`` words, query terms first, then by idf; return them in the order of the sentence."""
        chosen = sorted(self._weightiest, key=lambda term: term not in own)[:most]
        return [self.words[place][0] for place in sorted(self._first[term] for term in chosen)]

    def shared(self, own: set[str]) -> list[str]:
        """Return the words of the sentence that are in the query."""
        return list(dict.fromkeys(word for word, term in self.words if term in own))


class _Passage:
    """The sentences of a passage, and its runs of up to three content words, the strongest first."""

    def __init__(self, sentences: Sequence[Sequence[Word]], statistics: CollectionStatistics) -> None:
        self.sentences = [_Sentence(words, statistics) for words in sentences]
        counts: Counter[tuple[str, ...]] = Counter()
        shown: dict[tuple[str, ...], list[str]] = {}
        for words in sentences:
            # A stop word or a number ends a run.
            usable = [(word, term if term and _LETTERS.fullmatch(word) else None) for word, term in words]
            for start in range(len(usable)):
                key: tuple[str, ...] = ()
                for _, term in usable[start : start + _MOST_PHRASE]:
                    if term is None:
                        break
                    key = (*key, term)
                    counts[key] += 1
                    if key not in shown:
                        shown[key] = [word for word, _ in usable[start : start + len(key)]]
        values = _idf(statistics, [term for key in counts for term in key])
        scored = {key: n * sum(values[term] for term in key) / math.sqrt(len(key)) for key, n in counts.items()}
        self._phrases = [(key, shown[key]) for key in sorted(scored, key=lambda key: (-scored[key], key))]

    def phrases(self, own: set[str]) -> Iterator[list[str]]:
        """Yield phrases without query terms; frequent in the passage and rare in the collection come first."""
        used = set(own)
        for key, words in self._phrases:
            # Each word is used once: "glass roof" and "roof" would be almost the same proposal.
            if used.isdisjoint(key):
                yield words
                used.update(key)


class ExtractReformulator:
    """Makes queries from the words of the best sentences and phrases of the top-ranked passages, without a model.

    ``count`` is the maximum number of candidates per query, ``words`` the maximum number of words from a sentence.
    """

    method = "extract"
    reads = frozenset({"passages", "statistics"})

    def __init__(self, count: Count = 20, words: Count = 8, passages: Count = 10) -> None:
        self._count, self._words, self._passages = count, words, passages

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the candidates."""
        return {"count": self._count, "words": self._words, "passages": self._passages}

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return up to ``count`` candidates for each query; the passages take turns in rank order."""
        if batch.statistics is None or batch.passages is None:
            raise ConfigError(
                "extract: expected the top-ranked passages of each query, found none; give the collection (⟨docs⟩)",
                code="no-passages",
            )
        candidates = Candidates()
        read = _read(batch.statistics, [passage.text for some in batch.passages for passage in some[: self._passages]])
        for row, query in enumerate(_split(batch.statistics, batch.texts)):
            # Candidates with the same set of words retrieve the same documents.
            seen = {frozenset(word for word, _ in query)}
            count = 0
            for words, doc_id in self._proposals(query, batch.passages[row][: self._passages], read):
                if count == self._count:
                    break
                if frozenset(words) in seen:
                    candidates.reject("duplicate")
                    continue
                seen.add(frozenset(words))
                candidates.add(row, " ".join(words), doc_id)
                count += 1
            if not count:
                candidates.reject("nothing found")
        return candidates

    def _proposals(
        self, query: Sequence[Word], passages: Sequence[Passage], read: Mapping[str, _Passage]
    ) -> Iterator[tuple[list[str], str]]:
        """Yield the first candidate of every passage, then the second of every passage, and so on."""
        own = {term for _, term in query if term}
        content = [word for word, term in query if term]
        # The words of a question before its first content word; empty if the query is not a question.
        opening = [word for word, _ in takewhile(lambda pair: not pair[1] or pair[0] in QUESTION_WORDS, query)]
        if not opening or opening[0] not in QUESTION_WORDS | _ASKING:
            opening = []
        waiting = [(self._of_passage(read[p.text], own, content, opening), p.doc_id) for p in passages]
        while waiting:
            still = []
            for queue, doc_id in waiting:
                words = next(queue, None)
                if words is not None:
                    yield words, doc_id
                    still.append((queue, doc_id))
            waiting = still

    def _of_passage(
        self, passage: _Passage, own: set[str], content: list[str], opening: list[str]
    ) -> Iterator[list[str]]:
        phrases = passage.phrases(own)
        for sentence in sorted(passage.sentences, key=lambda sentence: -sentence.worth(own)):
            phrase, cut = next(phrases, None), sentence.cut(own, self._words)
            if len(cut) > 1:
                yield cut
            if phrase is not None and content:
                yield [*content, *phrase]
            if opening and len(cut) > 1:
                yield [*opening, *sentence.cut(own, max(2, self._words - 3))]
            if phrase is not None:
                yield [*phrase, *(word for word in sentence.shared(own) if word not in phrase)]


def _read(statistics: CollectionStatistics, texts: Sequence[str]) -> dict[str, _Passage]:
    """Return parsed passages by their text; all sentences are split in one call."""
    sentences = {text: [part for part in _SENTENCE.split(text) if part.strip()] for text in texts}
    words = iter(_split(statistics, [part for parts in sentences.values() for part in parts]))
    return {text: _Passage([next(words) for _ in parts], statistics) for text, parts in sentences.items()}


def _split(statistics: CollectionStatistics, texts: Sequence[str]) -> list[list[Word]]:
    """Split texts into words with their terms. There are more stop words here than in an index: do, you, have."""
    stop = question_rules().stop_words
    return [[(word, None if word in stop else term) for word, term in words] for words in statistics.split_many(texts)]


def _idf(statistics: CollectionStatistics, terms: Sequence[str]) -> dict[str, float]:
    """The inverse document frequency of each term, in the order of the terms."""
    names = list(dict.fromkeys(terms))
    counts = statistics.document_frequency(names).tolist() if names else []
    total = statistics.documents
    return {t: math.log(1 + (total - n + 0.5) / (n + 0.5)) for t, n in zip(names, counts, strict=True)}


_ASKING_LINE = "are can could did do does had has have is may must should was were will would"
_ASKING = frozenset(_ASKING_LINE.split())
