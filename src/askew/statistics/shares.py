"""Shares of classes from a classifier, corrected for its known errors.

A classifier that confuses classes gives wrong shares even for very many items. If the confusion matrix is known from
labeled items, expectation maximization finds the true shares under which the classifier's results are most likely
(Saerens, Latinne and Decaestecker, 2002, give the method for probabilities). Corrected shares are never negative, and a
classifier without errors needs no correction. The method assumes that each class is confused as often here as in the
labeled items.
"""

from __future__ import annotations

import numpy as np

from askew.core.ranking import Floats

_STEPS = 300
# Half an item is added to each count, because a confusion that was never observed is still possible.
_PRIOR = 0.5


def corrected(found: Floats, confusion: Floats) -> Floats:
    """Correct the amounts that a classifier found for each class (last axis). Their sum does not change.

    ``confusion[i, j]`` is the number of labeled items of class i that were classified as class j. Each row of ``found``
    may have its own confusion matrix (rows x classes x classes).
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
    """Random confusion matrices, as other labeled items of the same number might give (draws x classes x classes)."""
    found = np.empty((draws, *confusion.shape))
    for row, counts in enumerate(confusion):
        found[:, row] = rng.dirichlet(counts + _PRIOR, size=draws) * counts.sum()
    return found
