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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, cast

from askew.core import plugins as registry
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.plugins import Count, NotNegative, Share
from askew.core.protocols import Candidates, QueryBatch
from askew.core.text import Tokenizer, build_vocabulary
from askew.rewrite.lexical import one_line
from askew.search.feedback import EXACT, Rm3, Rocchio, has_usable_length, is_common, to_sum_one

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
        self, batch: QueryBatch, method: str, documents: int, left_out: Callable[[str], bool] | None = None
    ) -> None:
        if batch.statistics is None or batch.passages is None:
            missing, code = (
                ("the passages that a search with the original queries retrieved", "no-passages")
                if batch.passages is None
                else ("the statistics of the collection, such as document frequencies", "no-statistics")
            )
            raise ConfigError(f"{method}: expected {missing}, found none", code=code)
        self.statistics = batch.statistics
        self.passages = [passages[:documents] for passages in batch.passages]
        self._queries = [_bag(words, None) for words in self.statistics.split_many(batch.texts)]
        # A dict keeps the order of the passages; a set would have another order in each process.
        self.texts = tuple(dict.fromkeys(passage.text for passages in self.passages for passage in passages))
        split = self.statistics.split_many(self.texts)
        self._bags = {text: _bag(words, left_out) for text, words in zip(self.texts, split, strict=True)}

    def __len__(self) -> int:
        return len(self._queries)

    def query(self, row: int) -> Bag:
        """The terms of a query."""
        return self._queries[row]

    def bags(self, row: int) -> list[Bag]:
        """The terms of each top-ranked passage of a query, best first."""
        return [self._bags[passage.text] for passage in self.passages[row]]

    @cached_property
    def document_frequency(self) -> Mapping[str, int]:
        """The document frequency of each term of the passages; all are looked up at once."""
        terms = sorted({term for bag in self._bags.values() for term in bag.counts})
        return dict(zip(terms, self.statistics.document_frequency(terms).tolist() if terms else [], strict=True))

    def tf_idf(self, bag: Bag) -> Weights:
        """Return tf * ln(documents / document frequency) of each term; an unknown term has document frequency 1."""
        frequency, documents = self.document_frequency, max(1, self.statistics.documents)
        return {term: n * math.log(max(1.0, documents / max(1, frequency[term]))) for term, n in bag.counts.items()}

    def new_words(self, row: int, terms: Iterable[str]) -> list[str]:
        """Return the terms that a query lacks, in their order, each as its most frequent word in the passages."""
        own = self.query(row)
        forms_of = {term: Counter[str]() for term in terms if term not in own.counts}
        for bag in self.bags(row):
            for (term, word), count in bag.forms.items():
                if term in forms_of:
                    forms_of[term][word] += count
        # Ties: the shorter word, then alphabetically, so that the order of the passages has no effect.
        best = [min(forms, key=lambda word: (-forms[word], len(word), word)) for forms in forms_of.values() if forms]
        words = {word for _, word in own.forms}
        return [word for word in dict.fromkeys(best) if word not in words]


def _bag(words: Iterable[tuple[str, str | None]], left_out: Callable[[str], bool] | None) -> Bag:
    pairs = [(term, word) for word, term in words if term is not None and not (left_out is not None and left_out(word))]
    return Bag(Counter([term for term, _ in pairs]), Counter(pairs))


def add_expanded(candidates: Candidates, row: int, text: str, words: Sequence[str], doc_id: str | None = None) -> None:
    """Add the query followed by words; without words the query is rejected with the reason ``NOTHING``."""
    query, added = one_line(text), one_line(" ".join(words))
    if query and added:
        candidates.add(row, f"{query} {added}", doc_id)
    else:
        candidates.reject(NOTHING)


def best_first(values: Mapping[str, float]) -> list[str]:
    """Sort terms by decreasing value, ties alphabetically."""
    return sorted(values, key=lambda term: (-values[term], term))


class Feedback:
    """Base of the methods that append words of the top-ranked passages. The fields of a method are its settings."""

    method: str
    reads = frozenset({"passages", "statistics"})
    documents: int

    @property
    def mixes(self) -> int:
        """The number of top-ranked passages that are used."""
        return self.documents

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return dict(vars(self))

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return the query followed by the new words of its terms, the best terms first."""
        reading = self.read(batch)
        candidates = Candidates()
        for row, (text, terms) in enumerate(zip(batch.texts, self.chosen(reading), strict=True)):
            add_expanded(candidates, row, text, reading.new_words(row, terms))
        return candidates

    def read(self, batch: QueryBatch) -> Reading:
        """The queries and their passages as terms."""
        return Reading(batch, self.method, self.documents)

    def chosen(self, reading: Reading) -> Iterable[Iterable[str]]:
        """The terms to append to each query, best first; by default those with a positive weight."""
        for weights in self.weigh(reading):
            yield best_first({term: weight for term, weight in weights.items() if weight > 0})

    def weigh(self, reading: Reading) -> list[Weights]:
        """The weighted terms of each query."""
        raise NotImplementedError


# Expansion by divergence from randomness, after He and Ounis (2007) and ReQue's onfields.


@dataclass
class OnFields(Feedback):
    """Appends the words of the top-ranked passages with the highest Bose-Einstein weight (Bo1, ReQue's onfields)."""

    method = "onfields"

    documents: Count = 3
    words: Count = 10

    def weigh(self, reading: Reading) -> list[Weights]:
        """The best terms of the top-ranked passages of each query with their weights."""
        bags = [reading.bags(row) for row in range(len(reading))]
        counts = [Counter(term for bag in some for term in bag.counts.elements() if term.isalnum()) for some in bags]
        terms = sorted({term for of_query in counts for term in of_query})
        found = reading.statistics.collection_frequency(terms).tolist() if terms else []
        frequency = {term: max(1, n) for term, n in zip(terms, found, strict=True)}
        documents = max(1, reading.statistics.documents)
        weighted = []
        for of_query in counts:
            weights = {term: bose_einstein(tf, frequency[term] / documents) for term, tf in of_query.items()}
            weighted.append({term: weights[term] for term in best_first(weights)[: self.words]})
        return weighted


def bose_einstein(tf: float, mean: float) -> float:
    """Return the Bo1 weight of a term that occurs ``tf`` times in the passages and ``mean`` times per document."""
    return tf * math.log2((1 + mean) / mean) + math.log2(1 + mean)


_MOST_KEPT = 500


def _usable_counts(reading: Reading, row: int, common: float) -> list[Weights]:
    """Return how often each term that may be a feedback term occurs in each passage of a query."""
    frequency = reading.document_frequency
    bags = [bag.counts for bag in reading.bags(row)]
    terms = [term for term in {term for counts in bags for term in counts} if has_usable_length(term)]
    too_common = is_common([frequency[term] for term in terms], reading.statistics.documents, common).tolist()
    usable = {term for term, often in zip(terms, too_common, strict=True) if not often}
    return [{term: float(n) for term, n in counts.items() if term in usable} for counts in bags]


@dataclass
class Rm3Reformulator(Feedback):
    """Appends the best terms of the top-ranked passages, weighted by the passages' scores (RM3)."""

    method = "rm3"

    documents: Count = 10
    terms: Count = 10
    original: Share = 0.5
    common: Share = 0.1

    def weights_of_passages(self, reading: Reading, row: int) -> list[float]:
        """Return the weight of each passage of a query."""
        return relevance([passage.score for passage in reading.passages[row]])

    def weigh(self, reading: Reading) -> list[Weights]:
        """Return the weighted terms of each query: its own terms and those of its passages."""
        method, weighted = Rm3(self.documents, self.terms, self.original), []
        for row in range(len(reading)):
            frequent = map(method.read, _usable_counts(reading, row, self.common))
            passages = zip(frequent, self.weights_of_passages(reading, row), strict=True)
            used = [(terms, weight) for terms, weight in passages if terms and weight > 0]
            own = {term: float(n) for term, n in reading.query(row).counts.items()}
            weighted.append(method.mix(own, used, EXACT) if used else to_sum_one(own))
        return weighted


@dataclass
class FairFeedback(Rm3Reformulator):
    """Appends the best terms of the top-ranked passages (RM3), with less weight for passages that lean toward a group.

    With ``lambda_=0`` the weights are those of RM3. With ``lambda_=1`` every passage has weight 0, so nothing is
    appended.
    ``groups`` are the compared groups of a lexicon, which is given by name or file, as in "age:old,young"; the default
    is female and male of the lexicon gender. Words that name a group of the lexicon are not used as feedback terms,
    unless ``keep_group_terms`` is set.
    """

    method = "fairfeedback"

    lambda_: Share = 0.5
    groups: GroupsLike | None = None
    keep_group_terms: bool = False

    def __post_init__(self) -> None:
        self._leaning = Leaning(Groups.of("gender:female,male" if self.groups is None else self.groups))

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {
            "documents": self.documents, "terms": self.terms, "common": self.common, "original": self.original,
            "lambda_": self.lambda_, "lexicon": self._leaning.lexicon.id, "groups": "-".join(self._leaning.groups),
            "tokens": self._leaning.tokens, "keep_group_terms": self.keep_group_terms,
        }  # fmt: skip

    def read(self, batch: QueryBatch) -> Reading:
        """The queries and their passages as terms, without the words of groups."""
        left_out = None if self.keep_group_terms else self._leaning.names_group
        return Reading(batch, self.method, self.documents, left_out)

    def weights_of_passages(self, reading: Reading, row: int) -> list[float]:
        """Return the relevance of each passage minus its lean."""
        leans = [self._leaning.lean(passage.text) for passage in reading.passages[row]]
        scores = super().weights_of_passages(reading, row)
        return [less_lean(score, lean, self.lambda_) for score, lean in zip(scores, leans, strict=True)]


@dataclass
class RocchioReformulator(Feedback):
    """Appends the best terms of the mean of the top-ranked passages (Rocchio)."""

    method = "rocchio"

    documents: Count = 10
    terms: Count = 10
    alpha: NotNegative = 1.0
    beta: NotNegative = 0.75
    common: Share = 0.1

    def weigh(self, reading: Reading) -> list[Weights]:
        """Return the weighted terms of each query: its own terms and those of its passages."""
        method, weighted = Rocchio(self.documents, self.terms, self.alpha, self.beta), []
        for row in range(len(reading)):
            own = {term: float(n) for term, n in reading.query(row).counts.items()}
            passages = [(terms, 1.0) for terms in _usable_counts(reading, row, self.common)]
            weighted.append(method.mix(own, passages, EXACT))
        return weighted


@dataclass
class RelevanceFeedback(Feedback):
    """Appends the word with the highest tf-idf of each top-ranked passage (ReQue's relevancefeedback)."""

    method = "relevancefeedback"

    documents: Count = 10

    def chosen(self, reading: Reading) -> Iterable[Iterable[str]]:
        """The top term of each passage of a query, in the order of the passages."""
        for row in range(len(reading)):
            weighted = [reading.tf_idf(bag) for bag in reading.bags(row)]
            yield [term for weights in weighted for term in best_first(weights)[:1] if weights[term] > 0]


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


class Leaning:
    """Measures with a lexicon how far a passage leans toward a group, and whether a word names a group.

        lean = (mentions of the group named most - mentions of the group named least) / mentions of all groups compared

    The lean is between 0 (all groups are named equally often, or none is named) and 1 (only one group is named). For
    two groups it is |a - b| / (a + b), which is one minus the neutrality of NFaiRR (Rekabsaz et al. 2021) with equal
    targets and without its threshold.
    """

    def __init__(self, groups: Groups) -> None:
        if len(groups.names) < 2:
            raise ConfigError(
                f"groups: expected two groups or more to compare, found {', '.join(groups.names)}", code="one-group"
            )
        self.lexicon, self.groups, self.tokens = groups.lexicon, groups.names, groups.tokenizer
        self._tokenize = cast(Tokenizer, registry.load("tokenizer", groups.tokenizer))
        self._vocabulary = build_vocabulary(self.lexicon, self._tokenize, groups.tokenizer)
        # Many queries retrieve the same passages and words.
        self.lean = lru_cache(_MOST_KEPT)(self._lean)
        self.names_group = cache(lambda word: any(self.counts(word)))

    def counts(self, text: str) -> list[int]:
        """How often a text names each group of the lexicon, in the lexicon's order."""
        return self._vocabulary.count(self._tokenize(text))

    def _lean(self, text: str) -> float:
        """How far a text leans, from 0 to 1."""
        counts = self.counts(text)
        compared = [counts[self.lexicon.group_names.index(group)] for group in self.groups]
        total = sum(compared)
        return (max(compared) - min(compared)) / total if total else 0.0
