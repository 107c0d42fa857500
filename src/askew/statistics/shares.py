"""Shares of classes that a classifier found, corrected for its known errors.

A classifier that takes one class for another gives wrong shares even of very many items. Where the confusion of the
classes is known from labeled items, the shares that make what was found most likely are computed by expectation
maximization (Saerens, Latinne and Decaestecker, 2002, give the method for probabilities): they are never negative, and
with a classifier without errors they are what was found. It assumes that a class is mistaken as often here as in the
labeled items.
"""

from __future__ import annotations

import numpy as np

from askew.core.ranking import Floats

_STEPS = 300
# Half an item of each kind: a confusion that was never seen is not impossible.
_PRIOR = 0.5


def corrected(found: Floats, confusion: Floats) -> Floats:
    """Amounts of each class (last axis), from amounts as found; the sum stays.

    ``confusion[i, j]`` counts labeled items of class i that were taken for class j. A confusion for each row of
    ``found`` may be given (rows x classes x classes).
    """
    likely = confusion + _PRIOR
    likely = likely / likely.sum(axis=-1, keepdims=True)
    total = found.sum(axis=-1, keepdims=True)
    observed = np.divide(found, total, out=np.full(found.shape, 1.0 / found.shape[-1]), where=total > 0)
    shares = np.full(observed.shape, 1.0 / observed.shape[-1])
    for _ in range(_STEPS):
        expected = np.einsum("...i,...ij->...j", shares, likely)
        shares = shares * np.einsum("...j,...ij->...i", observed / np.maximum(expected, 1e-300), likely)
    return np.asarray(shares * total)


def drawn_confusions(confusion: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Confusions as they might have come out with as many other labeled items (draws x classes x classes)."""
    found = np.empty((draws, *confusion.shape))
    for row, counts in enumerate(confusion):
        found[:, row] = rng.dirichlet(counts + _PRIOR, size=draws) * counts.sum()
    return found
