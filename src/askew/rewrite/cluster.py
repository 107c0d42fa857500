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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components, shortest_path

from askew.core.plugins import Count, NotNegative, Share
from askew.core.ranking import Floats
from askew.rewrite.feedback import Feedback, Reading, Weights, best_first

# Two algorithms that cluster a small graph, given as a symmetric matrix. Ties go to the lowest node.

Bools = npt.NDArray[np.bool_]
Clusters = list[list[int]]
_LEAST_GAIN = 1e-12


def components(edges: Bools) -> Clusters:
    """Return the connected components, each sorted, in the order of their lowest nodes."""
    count, labels = connected_components(edges, directed=False) if len(edges) else (0, np.zeros(0))
    return sorted(np.flatnonzero(labels == label).tolist() for label in range(count))


def edge_betweenness(edges: Bools) -> Floats:
    """For each edge the number of shortest paths between two nodes that use it (Newman and Girvan 2004).

    Between two nodes with several shortest paths, each of these paths has the same part of one.
    """
    distance = shortest_path(edges, unweighted=True)
    paths = np.eye(len(edges))
    for length in range(1, len(edges)):
        paths += np.where(distance == length, (paths * (distance == length - 1)) @ edges, 0.0)
    flows = np.zeros(edges.shape)
    for start, end in combinations(range(len(edges)), 2):
        # On a shortest path, the distances from both ends add up to its length.
        uses = (distance[start][:, None] + 1 + distance[end] == distance[start, end]) & edges
        flows += uses * np.outer(paths[start], paths[end]) / max(paths[start, end], 1.0)
    return flows + flows.T


def first_split(edges: Bools) -> Clusters:
    """Return the components after the first split of Girvan and Newman; without edges, each node is a component."""
    edges = edges.copy()
    whole = len(components(edges))
    while edges.any() and len(components(edges)) == whole:
        # Rounded, because sums of the same values in another order differ in the last digits.
        first, second = np.unravel_index(edge_betweenness(edges).round(9).argmax(), edges.shape)
        edges[first, second] = edges[second, first] = False
    return components(edges)


def louvain(weights: Floats) -> Clusters:
    """Return clusters of high modularity; the graph is a symmetric matrix of weights, without loops."""
    clusters: Clusters = [[node] for node in range(len(weights))]
    while True:
        labels = _move_nodes(weights)
        names = sorted(set(labels))
        if len(names) == len(weights):
            return sorted(sorted(cluster) for cluster in clusters)
        member = np.array([[label == name for name in names] for label in labels], np.float64)
        clusters = [[node for i in np.flatnonzero(column) for node in clusters[i]] for column in member.T]
        weights = member.T @ weights @ member


def _move_nodes(weights: Floats) -> list[int]:
    """Move each node in turn to the neighboring cluster with the highest gain in modularity, until no move gains."""
    degrees, labels = weights.sum(axis=1), np.arange(len(weights))
    total = degrees.sum()
    moved = bool(weights.any())
    while moved:
        moved = False
        for node in range(len(weights)):
            own = int(labels[node])
            labels[node] = -1
            near = sorted({own, *labels[weights[node] > 0].tolist()} - {-1})
            # The gain in modularity, up to a constant factor, if the node joins the nodes of a cluster.
            inside = [labels == name for name in near]
            gains = [
                float((weights[node][flags].sum() - degrees[node] * degrees[flags].sum() / total) / total)
                for flags in inside
            ]
            best = int(np.argmax(np.round(gains, 12)))
            if gains[best] > gains[near.index(own)] + _LEAST_GAIN:
                labels[node], moved = near[best], True
            else:
                labels[node] = own
    return [int(label) for label in labels]


@dataclass
class DocCluster(Feedback):
    """Appends the top words of clusters of similar passages (ReQue's docluster)."""

    method = "docluster"

    documents: Count = 10
    words: Count = 3
    similarity: Share = 0.5

    def chosen(self, reading: Reading) -> Iterable[Iterable[str]]:
        """The words of the clusters of each query, the cluster of the top-ranked passage first."""
        for row in range(len(reading)):
            passages = [reading.tf_idf(bag) for bag in reading.bags(row)]
            edges = (cosines(passages) > self.similarity) & ~np.eye(len(passages), dtype=bool)
            chosen = []
            for cluster in first_split(edges):
                if len(cluster) == 1:
                    continue
                # The top term of each passage with its tf-idf, or the highest one if it tops several passages.
                top: Weights = {}
                for passage in (passages[i] for i in cluster):
                    for term in best_first(passage)[:1]:
                        if passage[term] > 0:
                            top[term] = max(passage[term], top.get(term, 0.0))
                chosen += best_first(top)[: self.words]
            yield chosen


@dataclass
class TermCluster(Feedback):
    """Appends the neighbors of each query word in a graph of words that occur together (ReQue's termluster)."""

    method = "termcluster"

    documents: Count = 5
    words: Count = 3
    weight: NotNegative = 2.0
    edges: Count = 4

    def chosen(self, reading: Reading) -> Iterable[Iterable[str]]:
        """The neighbors of the words of each query, in the order of the words."""
        for row in range(len(reading)):
            passages = [
                {t: w for t, w in reading.tf_idf(bag).items() if w > self.weight and len(t) > 2 and not t.isdigit()}
                for bag in reading.bags(row)
            ]
            yield self._neighbors(list(reading.query(row).counts), passages)

    def _neighbors(self, query: list[str], passages: list[Weights]) -> Iterator[str]:
        terms, together = co_occurrence(passages, self.edges)
        places = {term: i for i, term in enumerate(terms)}
        total = {term: math.fsum(passage.get(term, 0.0) for passage in passages) for term in terms}
        clusters = louvain(together) if terms else []
        for node in (places[term] for term in query if term in places):
            near = next([i for i in cluster if i != node] for cluster in clusters if node in cluster)
            near.sort(key=lambda i: (-together[node, i], -total[terms[i]], terms[i]))
            yield from (terms[i] for i in near[: self.words])


def cosines(vectors: list[Weights]) -> Floats:
    """Return the cosine of every pair of vectors; 0 if one of them is all zeros."""
    terms = {term: i for i, term in enumerate(sorted({term for vector in vectors for term in vector}))}
    matrix = np.zeros((len(vectors), len(terms)))
    for i, vector in enumerate(vectors):
        matrix[i, [terms[term] for term in vector]] = list(vector.values())
    lengths = np.sqrt((matrix * matrix).sum(axis=1))
    units = matrix / np.where(lengths > 0, lengths, 1)[:, None]
    cosine: Floats = units @ units.T
    return cosine


def co_occurrence(passages: list[Weights], least: int) -> tuple[list[str], Floats]:
    """Return the sorted terms that occur together in ``least`` passages or more, and the matrix of these counts."""
    pairs = Counter(pair for passage in passages for pair in combinations(sorted(passage), 2))
    frequent = {pair: count for pair, count in pairs.items() if count >= least}
    terms = sorted({term for pair in frequent for term in pair})
    places = {term: i for i, term in enumerate(terms)}
    together = np.zeros((len(terms), len(terms)))
    for (first, other), count in frequent.items():
        together[places[first], places[other]] = together[places[other], places[first]] = count
    return terms, together
