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
from collections.abc import Mapping, Sequence
from typing import Any, cast

from askew.core.errors import ConfigError
from askew.core.feedback import (
    best,
    has_usable_length,
    is_common,
    mean_vector,
    relevance_model,
    to_length_one,
    to_sum_one,
)
from askew.core.groups import Groups, GroupsLike
from askew.core.text import Tokenizer
from askew.core.vocabulary import build_vocabulary
from askew.plugins import registry
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.passages import Bag, Reading, Weights, append_terms, best_first, positive

_LETTERS_AND_DIGITS = re.compile(r"[a-z0-9]+")
_MOST_KEPT = 500
_READS = frozenset({"passages", "statistics"})


class _Weighted:
    """Base of RM3 and Rocchio: weights the terms, and appends the new terms to the query by decreasing weight."""

    method: str
    reads = _READS

    def __init__(self, documents: int, terms: int, common: float) -> None:
        positive(self.method, documents=documents, terms=terms)
        _share(self.method, common=common)
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

    def __init__(self, documents: int = 10, terms: int = 10, original: float = 0.5, common: float = 0.1) -> None:
        super().__init__(documents, terms, common)
        _share(self.method, original=original)
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
        self, documents: int = 10, terms: int = 10, original: float = 0.5, lambda_: float = 0.5,
        groups: GroupsLike | None = None, keep_group_terms: bool = False, common: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(documents, terms, original, common)
        _share(self.method, lambda_=lambda_)
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
        self, documents: int = 10, terms: int = 10, alpha: float = 1.0, beta: float = 0.75, common: float = 0.1
    ) -> None:
        super().__init__(documents, terms, common)
        if not (0 <= alpha < math.inf and 0 <= beta < math.inf):
            raise ConfigError(f"rocchio: expected alpha= and beta= to be 0 or more, found alpha={alpha}, beta={beta}")
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

    def __init__(self, documents: int = 10) -> None:
        positive(self.method, documents=documents)
        self.mixes = documents

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {"documents": self.mixes}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the query followed by the new top words, in the order of the passages."""
        reading = Reading(asked, self.method, self.mixes)
        tops = [[term for bag in reading.bags(row) for term in top_term(reading, bag)] for row in range(len(reading))]
        return append_terms(asked, reading, lambda row: tops[row])


def top_term(reading: Reading, bag: Bag) -> list[str]:
    """Return the term with the highest tf-idf of a passage; none if no tf-idf is above 0."""
    weights = reading.tf_idf(bag)
    return [term for term in best_first(weights)[:1] if weights[term] > 0]


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


def _share(name: str, **numbers: float) -> None:
    for key, value in numbers.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{name}: expected {key} from 0 to 1, found {value}")


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
        self._named: dict[str, bool] = {}
        # Many queries retrieve the same passage, so recent leans are cached.
        self._leans: dict[str, float] = {}

    def counts(self, text: str) -> list[int]:
        """How often a text names each group of the lexicon, in the lexicon's order."""
        return self._vocabulary.count(self._tokenize(text))

    def lean(self, text: str) -> float:
        """How far a text leans, from 0 to 1."""
        known = self._leans.get(text)
        if known is None:
            if len(self._leans) >= _MOST_KEPT:
                self._leans.clear()
            known = self._leans[text] = self._lean(text)
        return known

    def _lean(self, text: str) -> float:
        counts = self.counts(text)
        compared = [counts[self.lexicon.group_names.index(group)] for group in self.groups]
        total = sum(compared)
        return (max(compared) - min(compared)) / total if total else 0.0

    def names_group(self, word: str) -> bool:
        """Whether a word by itself names any group of the lexicon."""
        known = self._named.get(word)
        if known is None:
            known = self._named[word] = any(self.counts(word))
        return known
