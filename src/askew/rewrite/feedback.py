"""Pseudo-relevance feedback: words of the top-ranked passages are added to the query.

``rm3``                 Anserini's RM3. The ``terms`` most frequent terms of each passage are L1-normalized and
                        multiplied by the passage's score. The ``terms`` best of the sum are L1-normalized again and
                        interpolated with the query: weight = original * query + (1 - original) * feedback.
``rocchio``             Anserini's Rocchio without negative passages. The passages with all their terms are
                        L2-normalized and averaged; the ``terms`` best of the mean are L2-normalized again:
                        weight = alpha * query (L2-normalized) + beta * mean.
``relevancefeedback``   ReQue's method: the term with the highest tf-idf of each passage.
``fairfeedback``        RM3 with less weight for passages that lean: the weight of a passage is not its score but
                        (1 - lambda) * relevance - lambda * lean, or 0 if that is negative.

RM3 and Rocchio use terms of 2 to 20 UTF-16 code units that occur in at most a tenth (``common``) of the documents;
documents with a blank text are not counted. RM3 uses only terms of the letters a-z and digits. The rankers ``rm3`` and
``rocchio`` round as Anserini does. Here nothing is rounded, so the order of passages with equal scores has no effect.
Relevance is the score scaled to 0..1 within the query: it is divided by the highest score, which does not change the
weights of RM3. If a score is negative, the scores are treated as logarithms, such as those of query likelihood and of
cross-encoders.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, cast

from askew.core import plugins as registry
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.plugins import Count, NotNegative, Share
from askew.core.protocols import Candidates, CollectionStatistics, Passage, QueryBatch
from askew.core.text import Tokenizer, build_vocabulary
from askew.rewrite.lexical import one_line
from askew.search.feedback import (
    best,
    has_usable_length,
    is_common,
    mean_vector,
    relevance_model,
    to_length_one,
    to_sum_one,
)

# Queries and passages as terms, for reformulators that append words of the top-ranked passages to a query.

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


# Expansion by divergence from randomness, after He and Ounis (2007) and ReQue's onfields.

NOT_TELLING = "no expansion preferred"


class OnFields:
    """Appends the words of the top-ranked passages with the highest Bose-Einstein weight (Bo1, ReQue's onfields)."""

    method = "onfields"
    reads = frozenset({"passages", "statistics"})

    def __init__(self, documents: Count = 3, words: Count = 10) -> None:
        self.mixes, self._words = documents, words

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {"documents": self.mixes, "words": self._words}

    def weighted(self, asked: QueryBatch) -> list[Weights]:
        """The best terms of the top-ranked passages of each query with their weights."""
        return self._weigh(Reading(asked, self.method, self.mixes))

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the query followed by its new words, by decreasing weight."""
        reading = Reading(asked, self.method, self.mixes)
        weights = self._weigh(reading)
        return append_terms(asked, reading, lambda row: weights[row])

    def _weigh(self, reading: Reading) -> list[Weights]:
        counts = [_summed(reading, row) for row in range(len(reading))]
        known = _collection_frequency(reading.statistics, sorted({term for one in counts for term in one}))
        documents = max(1, reading.statistics.documents)
        found = []
        for one in counts:
            weights = {term: bose_einstein(tf, known[term] / documents) for term, tf in one.items()}
            found.append({term: weights[term] for term in best_first(weights)[: self._words]})
        return found


class AdaptiveOnFields(OnFields):
    """Appends the words of onfields to queries with rare terms, and does not expand other queries (adaponfields)."""

    method = "adaponfields"

    def __init__(self, documents: Count = 3, words: Count = 10, limit: NotNegative = 10.0) -> None:
        super().__init__(documents, words)
        self._limit = limit

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {**super().settings(), "limit": self._limit}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the expanded query if its AvICTF is ``limit`` or more; other queries are counted as rejected."""
        reading = Reading(asked, self.method, self.mixes)
        weights, telling = self._weigh(reading), rarity(reading)
        found = Candidates()
        for row, text in enumerate(asked.texts):
            if reading.query(row).counts and telling[row] < self._limit:
                found.reject(NOT_TELLING)
            else:
                add_expanded(found, row, text, reading.new_words(row, weights[row]))
        return found


def bose_einstein(tf: float, mean: float) -> float:
    """Return the Bo1 weight of a term that occurs ``tf`` times in the passages and ``mean`` times per document."""
    return tf * math.log2((1 + mean) / mean) + math.log2(1 + mean)


def rarity(reading: Reading) -> list[float]:
    """Return the AvICTF of each query; 0 for a query without terms."""
    terms = sorted({term for row in range(len(reading)) for term in reading.query(row).counts})
    known, tokens = _collection_frequency(reading.statistics, terms), max(1, reading.statistics.tokens)
    found = []
    for row in range(len(reading)):
        counts = reading.query(row).counts
        total = math.fsum(n * math.log2(tokens / known[term]) for term, n in counts.items())
        found.append(total / counts.total() if counts else 0.0)
    return found


def _summed(reading: Reading, row: int) -> Counter[str]:
    total: Counter[str] = Counter()
    for bag in reading.bags(row):
        total.update({term: n for term, n in bag.counts.items() if term.isalnum()})
    return total


def _collection_frequency(statistics: CollectionStatistics, terms: Sequence[str]) -> dict[str, int]:
    found = statistics.collection_frequency(terms).tolist() if terms else []
    return {term: max(1, n) for term, n in zip(terms, found, strict=True)}


_LETTERS_AND_DIGITS = re.compile(r"[a-z0-9]+")
_MOST_KEPT = 500
_READS = frozenset({"passages", "statistics"})


class _Weighted:
    """Base of RM3 and Rocchio: weights the terms, and appends the new terms to the query by decreasing weight."""

    method: str
    reads = _READS

    def __init__(self, documents: int, terms: int, common: float) -> None:
        self.mixes, self._terms, self._common = documents, terms, common

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {"documents": self.mixes, "terms": self._terms, "common": self._common}

    def weighted(self, asked: QueryBatch) -> list[Weights]:
        """Return the weighted terms of each query: its own terms and those of its passages."""
        return self._weigh(self._read(asked))

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the query followed by its new terms, by decreasing weight."""
        reading = self._read(asked)
        chosen = [{term: weight for term, weight in one.items() if weight > 0} for one in self._weigh(reading)]
        return append_terms(asked, reading, lambda row: best_first(chosen[row]))

    def _read(self, asked: QueryBatch) -> Reading:
        return Reading(asked, self.method, self.mixes)

    def _weigh(self, reading: Reading) -> list[Weights]:
        usable = self._usable(reading)
        return [
            self._mix(reading, row, [self._counts(bag, usable) for bag in reading.bags(row)])
            for row in range(len(reading))
        ]

    def _usable(self, reading: Reading) -> set[str]:
        """Return the terms of the passages that may be used as feedback terms."""
        known = reading.document_frequency()
        common = is_common(list(known.values()), reading.statistics.documents, self._common).tolist()
        return {term for term, often in zip(known, common, strict=True) if not often and has_usable_length(term)}

    def _counts(self, bag: Bag, usable: set[str]) -> Weights:
        """Return how often each usable term occurs in a passage."""
        return {term: float(n) for term, n in bag.counts.items() if term in usable}

    def _mix(self, reading: Reading, row: int, documents: Sequence[Weights]) -> Weights:
        raise NotImplementedError


class Rm3Reformulator(_Weighted):
    """Appends the best terms of the top-ranked passages, weighted by the passages' scores (RM3)."""

    method = "rm3"

    def __init__(self, documents: Count = 10, terms: Count = 10, original: Share = 0.5, common: Share = 0.1) -> None:
        super().__init__(documents, terms, common)
        self._original = original

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {**super().settings(), "original": self._original}

    def _usable(self, reading: Reading) -> set[str]:
        return {term for term in super()._usable(reading) if _LETTERS_AND_DIGITS.fullmatch(term)}

    def _counts(self, bag: Bag, usable: set[str]) -> Weights:
        return best(super()._counts(bag, usable), self._terms)

    def _counted(self, reading: Reading, row: int) -> list[float]:
        """Return the weight of each passage of a query."""
        return relevance([passage.score for passage in reading.passages[row]])

    def _mix(self, reading: Reading, row: int, documents: Sequence[Weights]) -> Weights:
        own = to_sum_one(reading.query(row).counts)
        model = relevance_model(documents, self._counted(reading, row), self._terms)
        return _weighted_sum(own, self._original, model, 1 - self._original) if model else own


class FairFeedback(Rm3Reformulator):
    """Appends the best terms of the top-ranked passages (RM3), with less weight for passages that lean toward a group.

    With ``lambda_=0`` the weights are those of RM3. With ``lambda_=1`` every passage has weight 0, so nothing is
    appended.
    ``groups`` are the compared groups of a lexicon, which is given by name or file, as in "age:old,young"; the default
    is female and male of the lexicon gender. Words that name a group of the lexicon are not used as feedback terms,
    unless ``keep_group_terms`` is set.
    """

    method = "fairfeedback"

    def __init__(
        self, documents: Count = 10, terms: Count = 10, original: Share = 0.5, lambda_: Share = 0.5,
        groups: GroupsLike | None = None, keep_group_terms: bool = False, common: Share = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(documents, terms, original, common)
        self._lambda, self._keep = lambda_, keep_group_terms
        self._leaning = Leaning(Groups.of("gender:female,male" if groups is None else groups))

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {
            **super().settings(), "lambda_": self._lambda, "lexicon": self._leaning.lexicon.id,
            "groups": "-".join(self._leaning.groups), "tokens": self._leaning.tokens, "keep_group_terms": self._keep,
        }  # fmt: skip

    def _read(self, asked: QueryBatch) -> Reading:
        return Reading(asked, self.method, self.mixes, None if self._keep else self._leaning.names_group)

    def _counted(self, reading: Reading, row: int) -> list[float]:
        leans = [self._leaning.lean(passage.text) for passage in reading.passages[row]]
        scores = super()._counted(reading, row)
        return [less_lean(score, lean, self._lambda) for score, lean in zip(scores, leans, strict=True)]


class RocchioReformulator(_Weighted):
    """Appends the best terms of the mean of the top-ranked passages (Rocchio)."""

    method = "rocchio"

    def __init__(
        self,
        documents: Count = 10,
        terms: Count = 10,
        alpha: NotNegative = 1.0,
        beta: NotNegative = 0.75,
        common: Share = 0.1,
    ) -> None:
        super().__init__(documents, terms, common)
        self._alpha, self._beta = alpha, beta

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {**super().settings(), "alpha": self._alpha, "beta": self._beta}

    def _mix(self, reading: Reading, row: int, documents: Sequence[Weights]) -> Weights:
        mean = to_length_one(best(mean_vector(documents), self._terms))
        return _weighted_sum(to_length_one(reading.query(row).counts), self._alpha, mean, self._beta)


class RelevanceFeedback:
    """Appends the word with the highest tf-idf of each top-ranked passage (ReQue's relevancefeedback)."""

    method = "relevancefeedback"
    reads = _READS

    def __init__(self, documents: Count = 10) -> None:
        self.mixes = documents

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {"documents": self.mixes}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the query followed by the new top words, in the order of the passages."""
        reading = Reading(asked, self.method, self.mixes)

        def tops(row: int) -> list[str]:
            weighted = [reading.tf_idf(bag) for bag in reading.bags(row)]
            return [term for weights in weighted for term in best_first(weights)[:1] if weights[term] > 0]

        return append_terms(asked, reading, tops)


def relevance(scores: Sequence[float]) -> list[float]:
    """Scale the scores of a query to 0..1: score / highest, or exp(score - highest) if a score is negative."""
    if not scores:
        return []
    highest = max(scores)
    if min(scores) < 0:
        return [math.exp(score - highest) for score in scores]
    return [score / highest for score in scores] if highest > 0 else [1.0] * len(scores)


def less_lean(relevance: float, lean: float, lambda_: float) -> float:
    """Return the weight of a passage: its weighted relevance minus its weighted lean, never below zero."""
    return max(0.0, (1 - lambda_) * relevance - lambda_ * lean)


def _weighted_sum(one: Weights, a: float, other: Weights, b: float) -> Weights:
    return {term: a * one.get(term, 0.0) + b * other.get(term, 0.0) for term in {**one, **other}}


class Leaning:
    """Measures with a lexicon how far a passage leans toward a group, and whether a word names a group.

        lean = (mentions of the group named most - mentions of the group named least) / mentions of all groups compared

    The lean is between 0 (all groups are named equally often, or none is named) and 1 (only one group is named). For
    two groups it is |a - b| / (a + b), which is one minus the neutrality of NFaiRR (Rekabsaz et al. 2021) with equal
    targets and without its threshold.
    """

    def __init__(self, groups: Groups) -> None:
        if len(groups.names) < 2:
            raise ConfigError(f"groups: expected two groups or more to compare, found {', '.join(groups.names)}")
        self.lexicon, self.groups, self.tokens = groups.lexicon, groups.names, groups.tokenizer
        self._tokenize = cast(Tokenizer, registry.load("tokenizer", groups.tokenizer))
        self._vocabulary = build_vocabulary(self.lexicon, self._tokenize, groups.tokenizer)
        # Many queries retrieve the same passages and words.
        self.lean = lru_cache(_MOST_KEPT)(self._lean)
        self.names_group = cache(self._names_group)

    def counts(self, text: str) -> list[int]:
        """How often a text names each group of the lexicon, in the lexicon's order."""
        return self._vocabulary.count(self._tokenize(text))

    def _lean(self, text: str) -> float:
        """How far a text leans, from 0 to 1."""
        counts = self.counts(text)
        compared = [counts[self.lexicon.group_names.index(group)] for group in self.groups]
        total = sum(compared)
        return (max(compared) - min(compared)) / total if total else 0.0

    def _names_group(self, word: str) -> bool:
        """Whether a word by itself names any group of the lexicon."""
        return any(self.counts(word))
