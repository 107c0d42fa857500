"""Feedback by clusters, after ReQue's docluster and termluster.

``docluster``    Makes a graph of the top-ranked passages, with an edge between two passages if the cosine of their
                 tf-idf vectors is above ``similarity``, and splits it once (Girvan and Newman). For each cluster of
                 more than one passage it takes the top term of each passage and adds the ``words`` best by tf-idf.
``termcluster``  Makes a graph of the terms of the top-ranked passages with a tf-idf above ``weight``, without numbers
                 and terms of one or two letters. Two terms have an edge if they occur together in ``edges`` passages
                 or more; the number of these passages is the weight of the edge. Louvain finds the clusters. Each
                 query term adds its ``words`` best neighbors in its cluster: those with the highest edge weight first,
                 then those with the highest tf-idf.

tf-idf is tf * ln(documents / document frequency). ReQue reads it from Anserini, truncated to a whole number. In ReQue
the last passage never has an edge because of an off-by-one error; here it can have edges.
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
            raise ConfigError(f"docluster: expected similarity= to be at least 0 and below 1, found {similarity}")
        self.mixes, self._words, self._similarity = documents, words, similarity

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {"documents": self.mixes, "words": self._words, "similarity": self._similarity}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the query followed by the words of its clusters, the cluster of the top-ranked passage first."""
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
            raise ConfigError(f"termcluster: expected weight= to be 0 or more, found {weight}")
        self.mixes, self._words, self._weight, self._edges = documents, words, weight, edges

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {"documents": self.mixes, "words": self._words, "weight": self._weight, "edges": self._edges}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the query followed by the neighbors of its words, in the order of the words."""
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
    """Return the cosine of every pair of vectors; 0 if one of them is all zeros."""
    terms = {term: i for i, term in enumerate(sorted({term for vector in vectors for term in vector}))}
    matrix = np.zeros((len(vectors), len(terms)))
    for i, vector in enumerate(vectors):
        matrix[i, [terms[term] for term in vector]] = list(vector.values())
    lengths = np.sqrt((matrix * matrix).sum(axis=1))
    units = matrix / np.where(lengths > 0, lengths, 1)[:, None]
    found: Floats = units @ units.T
    return found


def co_occurrence(passages: list[Weights], least: int) -> tuple[list[str], Floats]:
    """Return the sorted terms that occur together in ``least`` passages or more, and the matrix of these counts."""
    pairs = Counter(pair for passage in passages for pair in combinations(sorted(passage), 2))
    kept = {pair: count for pair, count in pairs.items() if count >= least}
    terms = sorted({term for pair in kept for term in pair})
    places = {term: i for i, term in enumerate(terms)}
    together = np.zeros((len(terms), len(terms)))
    for (one, other), count in kept.items():
        together[places[one], places[other]] = together[places[other], places[one]] = count
    return terms, together


def _top_words(passages: list[Weights]) -> Weights:
    """Return the top term of each passage with its tf-idf, or the highest one if it tops several passages."""
    top: Weights = {}
    for passage in passages:
        for term in best_first(passage)[:1]:
            if passage[term] > 0:
                top[term] = max(passage[term], top.get(term, 0.0))
    return top


def _cluster_of(clusters: Clusters, node: int) -> list[int]:
    return next([i for i in cluster if i != node] for cluster in clusters if node in cluster)
