"""Feedback: the first passages of a query lend it their words.

``rm3``                 Anserini's RM3. Of each passage the most frequent ``terms`` terms count, as shares of them (L1),
                        times the passage's score; the best ``terms`` of the sum are brought to shares and mixed with
                        those of the query: weight = original * query share + (1 - original) * feedback share.
``rocchio``             Anserini's Rocchio without negative passages: the mean of the passages' terms, each brought to
                        length 1 (L2), its best brought to length 1 again: weight = alpha * query + beta * mean.
``relevancefeedback``   ReQue's: of each passage the one term of the highest tf-idf.
``fairfeedback``        RM3 by passages that lean less: instead of its score a passage counts
                        (1 - lambda) * relevance - lambda * lean, and nothing where that is below zero.

RM3 and Rocchio take terms of 2 to 20 letters a-z and digits that are in at most a tenth of the documents (``common``).
Relevance is the score brought to 0..1 within the query: divided by the highest, which changes no weight of RM3. Where a
score is below zero, scores are taken for logarithms, as those of query likelihood and of cross-encoders are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from askew.core.errors import ConfigError
from askew.plugins.asking import Asked, Candidates
from askew.reformulators.leaning import Leaning
from askew.reformulators.passages import Bag, Reading, Weights, append_terms, best_first, positive

_USABLE = re.compile(r"[a-z0-9]{2,20}")
_READS = frozenset({"passages", "statistics"})


class _Weighted:
    """What RM3 and Rocchio share: weights of terms, and the query with its new terms by falling weight."""

    method: str
    reads = _READS

    def __init__(self, documents: int, terms: int, common: float) -> None:
        positive(self.method, documents=documents, terms=terms)
        _share(self.method, common=common)
        self._documents, self._terms, self._common = documents, terms, common

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries."""
        return {"documents": self._documents, "terms": self._terms, "common": self._common}

    def weighted(self, asked: Asked) -> list[Weights]:
        """Each query as weighted terms: its own and those of its passages."""
        return self._weigh(self._read(asked))

    def reformulate(self, asked: Asked) -> Candidates:
        """The query, then its new terms by falling weight."""
        reading = self._read(asked)
        chosen = [{term: weight for term, weight in one.items() if weight > 0} for one in self._weigh(reading)]
        return append_terms(asked, reading, lambda row: best_first(chosen[row]))

    def _read(self, asked: Asked) -> Reading:
        return Reading(asked, self.method, self._documents)

    def _weigh(self, reading: Reading) -> list[Weights]:
        usable = _Usable(reading, self._common, self._terms)
        return [self._mix(reading, row, [usable(bag) for bag in reading.bags(row)]) for row in range(len(reading))]

    def _mix(self, reading: Reading, row: int, documents: Sequence[Weights]) -> Weights:
        raise NotImplementedError


class Rm3(_Weighted):
    """Appends the best terms of the first passages, counted by the passages' scores (RM3)."""

    method = "rm3"

    def __init__(self, documents: int = 10, terms: int = 10, original: float = 0.5, common: float = 0.1) -> None:
        super().__init__(documents, terms, common)
        _share(self.method, original=original)
        self._original = original

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries."""
        return {**super().settings(), "original": self._original}

    def _counted(self, reading: Reading, row: int) -> list[float]:
        """What each passage of a query counts."""
        return relevance([passage.score for passage in reading.passages[row]])

    def _mix(self, reading: Reading, row: int, documents: Sequence[Weights]) -> Weights:
        own = _to_sum_one(reading.query(row).counts)
        model = relevance_model(documents, self._counted(reading, row), self._terms)
        return _weighted_sum(own, self._original, model, 1 - self._original) if model else own


class FairFeedback(Rm3):
    """Appends the best terms of the first passages, counted by score less how far each passage leans to a group.

    ``lambda_`` 0 is RM3; 1 leaves nothing to count by. ``groups`` are the groups compared, such as male-female; "auto"
    is female and male where the lexicon has them, else all. Words that name a group of the lexicon take no part in the
    feedback, unless ``keep_group_terms``.
    """

    method = "fairfeedback"

    def __init__(
        self, documents: int = 10, terms: int = 10, original: float = 0.5, lambda_: float = 0.5,
        lexicon: str = "gender", groups: str = "auto", tokens: str = "word", keep_group_terms: bool = False,
        common: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(documents, terms, original, common)
        _share(self.method, lambda_=lambda_)
        self._lambda, self._tokens, self._keep = lambda_, tokens, keep_group_terms
        self._leaning = Leaning(lexicon, tokens, groups)

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries."""
        return {
            **super().settings(), "lambda_": self._lambda, "lexicon": self._leaning.lexicon.id,
            "groups": "-".join(self._leaning.groups), "tokens": self._tokens, "keep_group_terms": self._keep,
        }  # fmt: skip

    def _read(self, asked: Asked) -> Reading:
        return Reading(asked, self.method, self._documents, None if self._keep else self._leaning.names_group)

    def _counted(self, reading: Reading, row: int) -> list[float]:
        leans = [self._leaning.lean(passage.text) for passage in reading.passages[row]]
        scores = super()._counted(reading, row)
        return [less_lean(score, lean, self._lambda) for score, lean in zip(scores, leans, strict=True)]


class Rocchio(_Weighted):
    """Appends the best terms of the mean of the first passages (Rocchio)."""

    method = "rocchio"

    def __init__(
        self, documents: int = 10, terms: int = 10, alpha: float = 1.0, beta: float = 0.75, common: float = 0.1
    ) -> None:
        super().__init__(documents, terms, common)
        if not (0 <= alpha < math.inf and 0 <= beta < math.inf):
            raise ConfigError(f"rocchio: expected alpha and beta of 0 or more, found {alpha} and {beta}")
        self._alpha, self._beta = alpha, beta

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries."""
        return {**super().settings(), "alpha": self._alpha, "beta": self._beta}

    def _mix(self, reading: Reading, row: int, documents: Sequence[Weights]) -> Weights:
        mean = _to_length_one(_best(mean_vector(documents), self._terms))
        return _weighted_sum(_to_length_one(reading.query(row).counts), self._alpha, mean, self._beta)


class RelevanceFeedback:
    """Appends the word of the highest tf-idf of each of the first passages (ReQue's relevancefeedback)."""

    method = "relevancefeedback"
    reads = _READS

    def __init__(self, documents: int = 10) -> None:
        positive(self.method, documents=documents)
        self._documents = documents

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries."""
        return {"documents": self._documents}

    def reformulate(self, asked: Asked) -> Candidates:
        """The query, then the new top words in the order of the passages."""
        reading = Reading(asked, self.method, self._documents)
        tops = [[term for bag in reading.bags(row) for term in top_term(reading, bag)] for row in range(len(reading))]
        return append_terms(asked, reading, lambda row: tops[row])


def top_term(reading: Reading, bag: Bag) -> list[str]:
    """The term of the highest tf-idf of a passage; none where no term says more than another."""
    weights = reading.tf_idf(bag)
    return [term for term in best_first(weights)[:1] if weights[term] > 0]


def relevance(scores: Sequence[float]) -> list[float]:
    """Scores brought to 0..1 within a query: shares of the highest, or of logarithms their exponentials."""
    if not scores:
        return []
    highest = max(scores)
    if min(scores) < 0:
        return [math.exp(score - highest) for score in scores]
    return [score / highest for score in scores] if highest > 0 else [1.0] * len(scores)


def less_lean(relevance: float, lean: float, lambda_: float) -> float:
    """What a passage counts: its relevance less its lean, never below zero."""
    return max(0.0, (1 - lambda_) * relevance - lambda_ * lean)


def relevance_model(documents: Sequence[Mapping[str, float]], counted: Sequence[float], terms: int) -> Weights:
    """RM3's feedback: shares of the best terms, each document's shares counted by what the document counts."""
    parts: dict[str, list[float]] = {}
    for counts, weight in zip(documents, counted, strict=True):
        total = sum(counts.values())
        for term, count in counts.items():
            parts.setdefault(term, []).append(count / total * weight)
    # An exact sum: the order of the documents must not decide between equal terms.
    sums = {term: math.fsum(values) for term, values in parts.items()}
    return _to_sum_one(_best({term: value for term, value in sums.items() if value > 0}, terms))


def mean_vector(documents: Sequence[Mapping[str, float]]) -> Weights:
    """Rocchio's feedback: the mean of documents brought to length 1."""
    parts: dict[str, list[float]] = {}
    for counts in documents:
        for term, value in _to_length_one(counts).items():
            parts.setdefault(term, []).append(value)
    return {term: math.fsum(values) / len(documents) for term, values in parts.items()}


class _Usable:
    """The most frequent usable terms of a passage; equal counts in the order of the alphabet."""

    def __init__(self, reading: Reading, common: float, most: int) -> None:
        limit = common * reading.statistics.documents
        known = reading.document_frequency()
        self._usable = {term for term, n in known.items() if n <= limit and _USABLE.fullmatch(term)}
        self._most = most

    def __call__(self, bag: Bag) -> Weights:
        return _best({term: float(n) for term, n in bag.counts.items() if term in self._usable}, self._most)


def _share(name: str, **numbers: float) -> None:
    for key, value in numbers.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{name}: expected {key} from 0 to 1, found {value}")


def _best(values: Mapping[str, float], most: int) -> Weights:
    return {term: values[term] for term in best_first(values)[:most]}


def _to_sum_one(values: Mapping[str, float]) -> Weights:
    total = math.fsum(values.values())
    return {term: value / total for term, value in values.items()} if total else {}


def _to_length_one(values: Mapping[str, float]) -> Weights:
    length = math.sqrt(math.fsum(value * value for value in values.values()))
    return {term: value / length for term, value in values.items()} if length else {}


def _weighted_sum(one: Weights, a: float, other: Weights, b: float) -> Weights:
    return {term: a * one.get(term, 0.0) + b * other.get(term, 0.0) for term in {**one, **other}}
