"""Queries and passages as terms, for reformulators that append words of the top-ranked passages to a query.

A term is the form of a word in the collection's statistics (for the default index a stem). A term is appended as a
word: its most frequent form in the passages. A term that the query contains is never appended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from askew.core.errors import ConfigError
from askew.plugins.methods import Candidates, CollectionStatistics, Passage, QueryBatch
from askew.reformulators.lexical import one_line

Weights = dict[str, float]
NOTHING = "nothing found"


@dataclass(frozen=True)
class Bag:
    """The terms of a text: how often each occurs, and in which word forms."""

    counts: Counter[str] = field(default_factory=Counter)
    forms: Counter[tuple[str, str]] = field(default_factory=Counter)


class Reading:
    """The queries of a batch and their top-ranked passages as terms; each distinct text is split once.

    Words of passages for which ``left_out`` is true are ignored.
    """

    def __init__(
        self, asked: QueryBatch, method: str, documents: int, left_out: Callable[[str], bool] | None = None
    ) -> None:
        self.statistics, passages = needed(asked, method)
        self.passages = [found[:documents] for found in passages]
        self._queries = [_bag(words, None) for words in self.statistics.split_many(asked.texts)]
        # A dict keeps the order of the passages; a set would have another order in each process.
        self.texts = tuple(dict.fromkeys(passage.text for found in self.passages for passage in found))
        split = self.statistics.split_many(self.texts)
        self._bags = {text: _bag(words, left_out) for text, words in zip(self.texts, split, strict=True)}
        self._documents: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._queries)

    def query(self, row: int) -> Bag:
        """The terms of a query."""
        return self._queries[row]

    def bags(self, row: int) -> list[Bag]:
        """The terms of each top-ranked passage of a query, best first."""
        return [self._bags[passage.text] for passage in self.passages[row]]

    def document_frequency(self) -> Mapping[str, int]:
        """Return the document frequency of each term of the passages; all are looked up at once."""
        if self._documents is None:
            terms = sorted({term for bag in self._bags.values() for term in bag.counts})
            found = self.statistics.document_frequency(terms).tolist() if terms else []
            self._documents = dict(zip(terms, found, strict=True))
        return self._documents

    def tf_idf(self, bag: Bag) -> Weights:
        """Return tf * ln(documents / document frequency) of each term; an unknown term has document frequency 1."""
        known, documents = self.document_frequency(), max(1, self.statistics.documents)
        return {term: n * math.log(max(1.0, documents / max(1, known[term]))) for term, n in bag.counts.items()}

    def new_words(self, row: int, terms: Iterable[str]) -> list[str]:
        """Return the terms that a query lacks, in their order, each as its most frequent word in the passages."""
        own = self.query(row)
        wanted = {term: Counter[str]() for term in terms if term not in own.counts}
        for bag in self.bags(row):
            for (term, word), count in bag.forms.items():
                if term in wanted:
                    wanted[term][word] += count
        # Ties: the shorter word, then alphabetically, so that the order of the passages has no effect.
        best = [min(forms, key=lambda word: (-forms[word], len(word), word)) for forms in wanted.values() if forms]
        words = {word for _, word in own.forms}
        return [word for word in dict.fromkeys(best) if word not in words]


def _bag(words: Iterable[tuple[str, str | None]], left_out: Callable[[str], bool] | None) -> Bag:
    kept = [(term, word) for word, term in words if term is not None and not (left_out is not None and left_out(word))]
    return Bag(Counter([term for term, _ in kept]), Counter(kept))


def needed(asked: QueryBatch, method: str) -> tuple[CollectionStatistics, Sequence[Sequence[Passage]]]:
    """Return the statistics and passages of a batch; raise a ``ConfigError`` if one is missing."""
    if asked.statistics is None or asked.passages is None:
        missing = (
            "the passages that a search with the original queries retrieved"
            if asked.passages is None
            else "the statistics of the collection, such as document frequencies"
        )
        raise ConfigError(f"{method}: expected {missing}, found none")
    return asked.statistics, asked.passages


def append_terms(asked: QueryBatch, reading: Reading, best: Callable[[int], Iterable[str]]) -> Candidates:
    """Make one candidate for each query: its text, then the words of the terms that ``best(row)`` returns."""
    found = Candidates()
    for row, text in enumerate(asked.texts):
        add_expanded(found, row, text, reading.new_words(row, best(row)) if text.strip() else [])
    return found


def add_expanded(found: Candidates, row: int, text: str, words: Sequence[str], doc_id: str | None = None) -> None:
    """Add the query followed by words; without words the query is rejected with the reason ``NOTHING``."""
    query, added = one_line(text), one_line(" ".join(words))
    if query and added:
        found.add(row, f"{query} {added}", doc_id)
    else:
        found.reject(NOTHING)


def best_first(values: Mapping[str, float]) -> list[str]:
    """Sort terms by decreasing value, ties alphabetically."""
    return sorted(values, key=lambda term: (-values[term], term))


def positive(name: str, **numbers: int) -> None:
    """Refuse counts below one."""
    for key, value in numbers.items():
        if value < 1:
            raise ConfigError(f"{name}: expected {key} of 1 or more, found {value}")
