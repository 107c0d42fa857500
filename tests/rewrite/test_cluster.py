"""Clusters of passages and of words, on graphs that can be drawn on paper."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.protocols import Passage, QueryBatch
from askew.rewrite.cluster import (
    DocCluster,
    TermCluster,
    co_occurrence,
    components,
    cosines,
    edge_betweenness,
    first_split,
    louvain,
)
from askew.testing.contracts import ToyStatistics, check_reformulator

FILLER = [f"other{i} thing{i}" for i in range(60)]


def asked(query, *passages, collection=()):
    found = tuple(Passage(f"d{i}", text, 9.0 - i) for i, text in enumerate(passages))
    return QueryBatch(("q",), (query,), (found,), ToyStatistics([*passages, *collection, *FILLER]))


def graph(nodes, *edges):
    return matrix(nodes, *edges) > 0


def matrix(nodes, *edges, weight=1.0):
    found = np.zeros((nodes, nodes))
    for a, b in edges:
        found[a, b] = found[b, a] = weight
    return found


SECOND_OPINION = "networkx is not installed: it is asked for a second opinion only"
TWO_TRIANGLES = ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5))
edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda e: e[0] < e[1]), unique=True)


# Graphs


def test_paths_over_an_edge_are_counted_by_hand():
    assert edge_betweenness(graph(3, (0, 1), (1, 2))).tolist() == [[0, 2, 0], [2, 0, 2], [0, 2, 0]]
    flows = edge_betweenness(graph(6, *TWO_TRIANGLES))
    assert flows[2, 3] == 9.0
    assert flows[0, 1] == 1.0
    assert flows[0, 2] == 4.0
    # In a square two shortest paths join the corners across; each edge has 1 + 2 halves.
    square = graph(4, (0, 1), (1, 2), (2, 3), (0, 3))
    assert (edge_betweenness(square) == 2.0 * square).all()


def test_the_first_split_cuts_the_bridge():
    assert first_split(graph(6, *TWO_TRIANGLES)) == [[0, 1, 2], [3, 4, 5]]


def test_the_first_split_is_one_more_than_there_was():
    assert first_split(graph(4, (0, 1), (2, 3))) == [[0], [1], [2, 3]]
    assert first_split(graph(3)) == [[0], [1], [2]]
    assert first_split(graph(0)) == []


@given(edges)
def test_a_split_has_all_nodes_once_and_one_part_more_at_least(found):
    one = graph(8, *found)
    parts = first_split(one)
    assert sorted(node for part in parts for node in part) == list(range(8))
    assert not found or len(parts) > len(components(one))


def test_louvain_finds_the_triangles():
    assert louvain(matrix(6, *TWO_TRIANGLES)) == [[0, 1, 2], [3, 4, 5]]


def test_louvain_leaves_nodes_without_edges_alone():
    assert louvain(matrix(4, (1, 3))) == [[0], [1, 3], [2]]
    assert louvain(np.zeros((0, 0))) == []


def test_louvain_follows_the_weights():
    chain = matrix(4, (0, 1), (2, 3), weight=5.0) + matrix(4, (1, 2))
    assert louvain(chain) == [[0, 1], [2, 3]]


def test_louvain_joins_clusters_where_that_is_better():
    # A ring of 30 cliques of five nodes: pairs of neighboring cliques have the higher modularity (Fortunato 2007).
    nodes, cliques = 150, 30
    inner = [(5 * c + i, 5 * c + j) for c in range(cliques) for i in range(5) for j in range(i + 1, 5)]
    ring = [(5 * c, (5 * (c + 1)) % nodes) for c in range(cliques)]
    found = louvain(matrix(nodes, *(tuple(sorted(e)) for e in [*inner, *ring])))
    assert all(len(part) % 5 == 0 for part in found)
    assert len(found) < cliques


def modularity(weights, labels):
    degrees = weights.sum(axis=1)
    expected = np.outer(degrees, degrees) / degrees.sum()
    return float(((weights - expected) * (np.array(labels)[:, None] == np.array(labels))).sum() / degrees.sum())


def labeled(clusters, nodes):
    return [next(i for i, part in enumerate(clusters) if node in part) for node in range(nodes)]


# The largest gap over all 32,767 graphs of six nodes is 1/6: a greedy method can be caught in a poor cut.
NEAR = 1 / 6 + 1e-9
six = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda edge: edge[0] < edge[1])


@given(st.lists(six, unique=True, min_size=1), st.integers(1, 5))
def test_louvain_comes_near_the_best_of_all_ways_to_cut(found, weight):
    # networkx is no second opinion here: its louvain_communities runs for ever on one such graph in ten thousand.
    weights = matrix(6, *found, weight=float(weight))
    clusters = louvain(weights)
    assert sorted(node for part in clusters for node in part) == list(range(6))
    best = max(modularity(weights, labels) for labels in product(range(4), repeat=6) if labels[0] == 0)
    assert modularity(weights, labeled(clusters, 6)) >= best - NEAR


@given(edges)
def test_paths_over_edges_are_those_of_networkx(found):
    networkx = pytest.importorskip("networkx", reason=SECOND_OPINION)
    drawn = networkx.Graph(found)
    flows = edge_betweenness(graph(8, *found))
    expected = networkx.edge_betweenness_centrality(drawn, normalized=False)
    assert {edge: flows[edge] for edge in expected} == pytest.approx(expected)
    assert np.count_nonzero(flows) == 2 * len(expected)


# Passages


def test_cosines_are_those_computed_by_hand():
    found = cosines([{"a": 3.0, "b": 4.0}, {"b": 2.0}, {}, {"a": 0.0}])
    assert found[0, 1] == pytest.approx(0.8)
    assert found[0, 0] == pytest.approx(1.0)
    assert not found[2:].any()


# With tf-idf of ln(66/3) for fig, kiwi, plum and ln(66/2) for the others the graph is a triangle A B C with a tail D E.
A, B, C = "fig kiwi plum", "plum fig kiwi", "fig kiwi plum lemon lemon"
D, E = "lemon lemon melon papaya pear", "melon papaya pear"


def test_each_cluster_of_passages_lends_the_top_words_of_its_passages():
    # C and D: lemon, 2 ln(33) = 6.99; A and B: fig, ln(22) = 3.09; E: melon, ln(33) = 3.50
    assert DocCluster().reformulate(asked("quark", A, B, C, D, E)).texts == ["quark lemon fig melon"]
    assert DocCluster(words=1).reformulate(asked("quark", A, B, C, D, E)).texts == ["quark lemon"]


def test_passages_beyond_the_first_ones_make_no_cluster():
    # Of the triangle alone every edge has the same flow: A falls off, and then B and C are left.
    assert DocCluster(documents=3).reformulate(asked("quark", A, B, C, D, E)).texts == ["quark lemon fig"]
    assert DocCluster(documents=1).reformulate(asked("quark", A, B)).rejected == {"nothing found": 1}


def test_passages_that_are_not_alike_lend_nothing():
    assert DocCluster().reformulate(asked("quark", "fig", "kiwi", "plum")).rejected == {"nothing found": 1}
    assert DocCluster(similarity=0.99).reformulate(asked("quark", A, C, D, E)).rejected == {"nothing found": 1}


def test_more_words_of_clusters_are_more_words_of_the_query():
    found = [set(DocCluster(words=n).reformulate(asked("quark", A, B, C, D, E)).texts[0].split()) for n in (1, 2, 3)]
    assert found[0] < found[1] <= found[2]


# Words


def test_words_that_stand_together_in_enough_passages_are_joined():
    passages = [{"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 1.0}, {"a": 1.0, "c": 1.0}]
    assert co_occurrence(passages, 3)[0] == []
    terms, together = co_occurrence(passages, 2)
    assert terms == ["a", "b", "c"]
    assert together.tolist() == [[0, 2, 2], [2, 0, 0], [2, 0, 0]]


def test_each_word_of_the_query_brings_its_best_neighbors():
    # kiwi is with fig in all five, lemon and plum in four; plum twice in one, so that its tf-idf is the higher.
    one = asked("Fig tart", *["fig kiwi plum lemon"] * 3, "fig kiwi plum plum lemon", "fig kiwi")
    assert TermCluster().reformulate(one).texts == ["Fig tart kiwi plum lemon"]
    assert TermCluster(words=2).reformulate(one).texts == ["Fig tart kiwi plum"]
    assert TermCluster(edges=5).reformulate(one).texts == ["Fig tart kiwi"]
    assert TermCluster(documents=3).reformulate(one).rejected == {"nothing found": 1}


def test_words_of_another_cluster_are_no_neighbors():
    one = asked("fig", *["fig kiwi plum"] * 4, *["lemon melon pear"] * 4)
    assert TermCluster(documents=8).reformulate(one).texts == ["fig kiwi plum"]


def test_numbers_short_terms_and_light_terms_are_no_neighbors():
    common = ["kiwi"] * 40
    one = asked("fig", *["fig 1984 ox kiwi plum"] * 4, collection=common)
    # 104 documents: fig and plum ln(104/4) = 3.26, kiwi ln(104/44) = 0.86
    assert TermCluster().reformulate(one).texts == ["fig plum"]
    assert TermCluster(weight=0.5).reformulate(one).texts == ["fig plum kiwi"]
    assert TermCluster(weight=3.3).reformulate(one).rejected == {"nothing found": 1}
    assert math.log(104 / 4) == pytest.approx(3.258, abs=1e-3)


def test_a_query_without_a_word_in_the_graph_is_counted():
    assert TermCluster().reformulate(asked("quark", *["fig kiwi"] * 5)).rejected == {"nothing found": 1}


@given(
    st.permutations(["fig kiwi plum", "fig kiwi plum lemon", "fig kiwi lemon", "fig kiwi plum plum", "plum fig pear"])
)
def test_the_order_of_passages_plays_no_part_for_words(passages):
    one = TermCluster(edges=2).reformulate(asked("fig", *passages)).texts
    assert one == TermCluster(edges=2).reformulate(asked("fig", *sorted(passages))).texts
    # Both are with fig in four passages; plum stands five times in them.
    assert one == ["fig plum kiwi lemon"]


# The contract


@pytest.mark.parametrize("method", [DocCluster(), DocCluster(similarity=0.0), TermCluster(), TermCluster(2, 2, 0.0, 1)])
def test_clusters_keep_the_contract_of_reformulators(method):
    found = check_reformulator(method)
    assert sum(found.rejected.values()) + len(set(found.rows)) == 5


def test_clusters_of_the_toy_collection_are_found():
    assert len(check_reformulator(TermCluster(documents=3, weight=0.0, edges=1))) >= 2
