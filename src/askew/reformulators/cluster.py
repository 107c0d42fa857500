"""Feedback by clusters, after ReQue's docluster and termluster.

``docluster``    The top-ranked passages are a graph: an edge where the cosine of their tf-idf is above ``similarity``.
                 It is cut once (Girvan and Newman); each cluster of more than one passage adds the best ``words`` of
                 its passages' top words, by tf-idf.
``termcluster``  The terms of the top-ranked passages with a tf-idf above ``weight`` (without numbers and terms of one
                 or two letters) are a graph: an edge where two occur together in ``edges`` passages or more, which is
                 also its weight. Cut by Louvain; each term of the query that is in a cluster adds its best ``words``
                 neighbors there: most passages together first, then the highest tf-idf.

tf-idf is tf * ln(documents / document frequency); ReQue reads it cut to a whole number from Anserini. ReQue's last
passage never has an edge, by an off-by-one; here it has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from askew.core.errors import ConfigError
from askew.core.ranking import Floats
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.graphs import Clusters, first_split, louvain
from askew.reformulators.passages import Bag, Reading, Weights, append_terms, best_first, positive

_READS = frozenset({"passages", "statistics"})


class DocCluster:
    """Appends the top words of clusters of similar passages (ReQue's docluster)."""

    method = "docluster"
    reads = _READS

    def __init__(self, documents: int = 10, words: int = 3, similarity: float = 0.5) -> None:
        positive(self.method, documents=documents, words=words)
        if not 0 <= similarity < 1:
            raise ConfigError(f"docluster: expected similarity from 0 to less than 1, found {similarity}")
        self.mixes, self._words, self._similarity = documents, words, similarity

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries."""
        return {"documents": self.mixes, "words": self._words, "similarity": self._similarity}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """The query, then the words of its clusters, the cluster of the best passage first."""
        reading = Reading(asked, self.method, self.mixes)
        return append_terms(asked, reading, lambda row: self._chosen([reading.tf_idf(b) for b in reading.bags(row)]))

    def _chosen(self, passages: list[Weights]) -> list[str]:
        near = cosines(passages) > self._similarity
        neighbors = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(near)]
        chosen = []
        for cluster in first_split(neighbors):
            if len(cluster) > 1:
                chosen += best_first(_top_words([passages[i] for i in cluster]))[: self._words]
        return chosen


class TermCluster:
    """Appends the neighbors of each query word in a graph of words that occur together (ReQue's termluster)."""

    method = "termcluster"
    reads = _READS

    def __init__(self, documents: int = 5, words: int = 3, weight: float = 2.0, edges: int = 4) -> None:
        positive(self.method, documents=documents, words=words, edges=edges)
        if not weight >= 0:
            raise ConfigError(f"termcluster: expected weight of 0 or more, found {weight}")
        self.mixes, self._words, self._weight, self._edges = documents, words, weight, edges

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries."""
        return {"documents": self.mixes, "words": self._words, "weight": self._weight, "edges": self._edges}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """The query, then the neighbors of its words in the order of these."""
        reading = Reading(asked, self.method, self.mixes)
        return append_terms(asked, reading, lambda row: self._chosen(reading, row))

    def _chosen(self, reading: Reading, row: int) -> list[str]:
        passages = [self._heavy(reading, bag) for bag in reading.bags(row)]
        terms, together = co_occurrence(passages, self._edges)
        if not terms:
            return []
        total = {term: math.fsum(passage.get(term, 0.0) for passage in passages) for term in terms}
        clusters, places = louvain(together), {term: i for i, term in enumerate(terms)}
        chosen = []
        for term in reading.query(row).counts:
            if term in places:
                near = _cluster_of(clusters, places[term])
                ranks = {i: (-together[places[term], i], -total[terms[i]], terms[i]) for i in near}
                chosen += [terms[i] for i in sorted(ranks, key=ranks.__getitem__)][: self._words]
        return chosen

    def _heavy(self, reading: Reading, bag: Bag) -> Weights:
        weights = reading.tf_idf(bag)
        return {t: w for t, w in weights.items() if w > self._weight and len(t) > 2 and not t.isdigit()}


def cosines(vectors: list[Weights]) -> Floats:
    """The cosine of each two vectors; 0 with a vector of zeros."""
    terms = {term: i for i, term in enumerate(sorted({term for vector in vectors for term in vector}))}
    matrix = np.zeros((len(vectors), len(terms)))
    for i, vector in enumerate(vectors):
        matrix[i, [terms[term] for term in vector]] = list(vector.values())
    lengths = np.sqrt((matrix * matrix).sum(axis=1))
    units = matrix / np.where(lengths > 0, lengths, 1)[:, None]
    found: Floats = units @ units.T
    return found


def co_occurrence(passages: list[Weights], least: int) -> tuple[list[str], Floats]:
    """Terms that stand together in ``least`` passages or more, in order, and in how many each two do."""
    pairs = Counter(pair for passage in passages for pair in combinations(sorted(passage), 2))
    kept = {pair: count for pair, count in pairs.items() if count >= least}
    terms = sorted({term for pair in kept for term in pair})
    places = {term: i for i, term in enumerate(terms)}
    together = np.zeros((len(terms), len(terms)))
    for (one, other), count in kept.items():
        together[places[one], places[other]] = together[places[other], places[one]] = count
    return terms, together


def _top_words(passages: list[Weights]) -> Weights:
    """The top term of each passage, with the highest tf-idf it has as one."""
    top: Weights = {}
    for passage in passages:
        for term in best_first(passage)[:1]:
            if passage[term] > 0:
                top[term] = max(passage[term], top.get(term, 0.0))
    return top


def _cluster_of(clusters: Clusters, node: int) -> list[int]:
    return next([i for i in cluster if i != node] for cluster in clusters if node in cluster)
