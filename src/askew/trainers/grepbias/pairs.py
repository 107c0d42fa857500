"""The pairwise penalty: R = mean of alpha(g, g') (z - z')^2 over pairs of texts of different groups.

It works with the logits of any model and any set of pairs: pairs within a batch, as published, or the versions of one
document.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.ranking import Flags, Floats, Ints

Names = npt.NDArray[np.str_]
# The kinds of a pair of genders, in the order of their alphas.
KINDS = ("MF", "MN", "FN")
GENDERS = ("M", "F", "N")
_KIND_OF = {frozenset(kind): at for at, kind in enumerate(KINDS)}
GRID = tuple(np.arange(0.0, 2.01, 0.25).tolist())


@dataclass(frozen=True)
class RowPairs:
    """Rows ``left[i]`` and ``right[i]`` are a pair of the kind ``kind[i]``, an index into the alphas."""

    left: Ints
    right: Ints
    kind: Ints

    def __len__(self) -> int:
        return len(self.left)

    def take(self, places: Ints) -> RowPairs:
        """Some of the pairs."""
        return RowPairs(self.left[places], self.right[places], self.kind[places])


def alpha_grid(values: tuple[float, ...] = GRID) -> Floats:
    """All settings of the three alphas, one per row; the first one has no penalty."""
    return np.array(list(product(values, repeat=len(KINDS))))


def pair_penalty(logits: Any, pairs: RowPairs, alphas: Any) -> Any:
    """R for each head: ``logits`` are rows by heads, ``alphas`` are heads by kinds. Without pairs the penalty is 0.

    A single head may be given as a vector of logits and a vector of alphas.
    """
    import torch

    z = logits if logits.ndim == 2 else logits[:, None]
    weights = torch.as_tensor(alphas, dtype=z.dtype, device=z.device).reshape(z.shape[1], -1)
    if len(pairs) == 0:
        return z.sum() * 0.0 if logits.ndim == 1 else z.sum(0) * 0.0
    left, right, kind = (torch.as_tensor(one, device=z.device) for one in (pairs.left, pairs.right, pairs.kind))
    found = (weights.T[kind] * (z[left] - z[right]) ** 2).mean(0)
    return found[0] if logits.ndim == 1 else found


def same_query_pairs(query: Names, relevant: Flags, gender: Names) -> RowPairs:
    """All pairs of versions of the same document: same query, same relevance, different genders."""
    versions: dict[tuple[str, bool], list[int]] = {}
    for row, key in enumerate(zip(query.tolist(), relevant.tolist(), strict=True)):
        versions.setdefault(key, []).append(row)
    return _of(gender, [pair for rows in versions.values() for pair in combinations(rows, 2)])


def batch_pairs(rows: Ints, gender: Names, rng: np.random.Generator) -> RowPairs:
    """Pairs of different genders within a batch, sampled without replacement: a row is in at most one pair.

    The rows of the pairs are positions within the batch.
    """
    known = {name: code for code, name in enumerate(GENDERS)}
    codes = [known.get(str(one), -1) for one in gender[rows]]
    order = [place for place in rng.permutation(len(rows)).tolist() if codes[place] >= 0]
    drawn = []
    while order:
        first = order.pop()
        other = next((at for at in reversed(range(len(order))) if codes[order[at]] != codes[first]), None)
        if other is not None:
            drawn.append((first, order.pop(other)))
    return _of(gender[rows], drawn)


def kind_of(one: str, other: str) -> int:
    """The kind of a pair of genders; -1 if they are equal or one of them is not M, F or N."""
    return _KIND_OF.get(frozenset((str(one), str(other))), -1)


def _of(gender: Names, drawn: list[tuple[int, int]]) -> RowPairs:
    kinds = [kind_of(gender[left], gender[right]) for left, right in drawn]
    kept = [(left, right, kind) for (left, right), kind in zip(drawn, kinds, strict=True) if kind >= 0]
    columns = np.array(kept, np.int64).reshape(-1, 3)
    return RowPairs(columns[:, 0], columns[:, 1], columns[:, 2])
