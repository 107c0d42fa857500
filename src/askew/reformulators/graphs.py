"""Two algorithms that cluster a small graph. Nodes are numbers; ties go to the lowest number.

Girvan and Newman (2002): remove the edge on the largest number of shortest paths until a component splits.
Louvain (Blondel et al. 2008): move each node to the cluster where modularity grows most, then treat each cluster as one
node, and repeat. Both are implemented here because the graphs have about ten nodes, the result must not depend on a
library's random order, and the Louvain of networkx 3.6 never ends on about one small graph in ten thousand (rounding
moves nodes back and forth).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askew.core.ranking import Flags, Floats

Neighbors = list[set[int]]
Clusters = list[list[int]]
_LEAST_GAIN = 1e-12


def components(neighbors: Sequence[set[int]]) -> Clusters:
    """Return the connected components, each sorted, in the order of their lowest nodes."""
    seen: set[int] = set()
    parts = []
    for node in range(len(neighbors)):
        if node in seen:
            continue
        part, waiting = {node}, [node]
        while waiting:
            new = neighbors[waiting.pop()] - part
            part |= new
            waiting += new
        seen |= part
        parts.append(sorted(part))
    return parts


def edge_betweenness(neighbors: Sequence[set[int]]) -> dict[tuple[int, int], float]:
    """For each edge (lower node first) the number of shortest paths between two nodes that use it (Brandes 2001)."""
    flows = {(a, b): 0.0 for a in range(len(neighbors)) for b in sorted(neighbors[a]) if a < b}
    for source in range(len(neighbors)):
        order, paths, before = _shortest_paths(neighbors, source)
        flow = dict.fromkeys(order, 0.0)
        for node in reversed(order):
            for previous in before[node]:
                part = paths[previous] / paths[node] * (1 + flow[node])
                flow[previous] += part
                # Each path is counted from both of its ends.
                flows[min(previous, node), max(previous, node)] += part / 2
    return flows


def _shortest_paths(
    neighbors: Sequence[set[int]], source: int
) -> tuple[list[int], dict[int, int], dict[int, list[int]]]:
    """Return the nodes by distance from the source, the number of shortest paths to each, and its predecessors."""
    order, distance, paths = [source], {source: 0}, {source: 1}
    before: dict[int, list[int]] = {source: []}
    for node in order:
        for other in sorted(neighbors[node]):
            if other not in distance:
                distance[other], paths[other], before[other] = distance[node] + 1, 0, []
                order.append(other)
            if distance[other] == distance[node] + 1:
                paths[other] += paths[node]
                before[other].append(node)
    return order, paths, before


def first_split(neighbors: Sequence[set[int]]) -> Clusters:
    """Return the components after the first split of Girvan and Newman; without edges, each node is a component."""
    left: Neighbors = [set(near) for near in neighbors]
    whole = len(components(left))
    while any(left):
        flows = edge_betweenness(left)
        # Rounded, because sums of the same values in another order differ in the last digits.
        a, b = min(flows, key=lambda edge: (-round(flows[edge], 9), edge))
        left[a].discard(b)
        left[b].discard(a)
        if len(components(left)) > whole:
            break
    return components(left)


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
    moved = bool(weights.any())
    while moved:
        moved = False
        for node in range(len(weights)):
            own = int(labels[node])
            labels[node] = -1
            near = sorted({own, *labels[weights[node] > 0].tolist()} - {-1})
            gains = [_gain(weights[node], degrees, node, labels == name) for name in near]
            best = int(np.argmax(np.round(gains, 12)))
            if gains[best] > gains[near.index(own)] + _LEAST_GAIN:
                labels[node], moved = near[best], True
            else:
                labels[node] = own
    return [int(label) for label in labels]


def _gain(weights: Floats, degrees: Floats, node: int, inside: Flags) -> float:
    """Return the gain in modularity, up to a constant factor, if a node with these weights joins the nodes inside."""
    total = degrees.sum()
    return float((weights[inside].sum() - degrees[node] * degrees[inside].sum() / total) / total)
