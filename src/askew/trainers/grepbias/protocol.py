"""The zero-shot protocol: train on one category and test on the others.

The alphas (weights of the pairwise penalty) are chosen by cross-validation over the queries of the training category:
among the settings that lose at most ``most_loss`` of held-out accuracy, the one with the least held-out lean. The test
categories are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError
from askew.core.ranking import Floats, Ints
from askew.trainers.grepbias.heads import HeadInputs, HeadSettings, fit_heads
from askew.trainers.grepbias.pairs import KINDS, alpha_grid, same_query_pairs

FOLDS = 5
Progress = Callable[..., None]


@dataclass(frozen=True)
class ChosenAlphas:
    """The chosen alphas, their row in the grid, and the held-out accuracy and lean with and without the penalty."""

    row: int
    alphas: tuple[float, ...]
    accuracy: float
    lean: float
    accuracy_without: float
    lean_without: float


@dataclass(frozen=True)
class ZeroShot:
    """The logits of every row, with shape seeds by training categories by rows.

    ``inside`` has the logits of each row by a model that was trained on other queries of the same category, with alphas
    chosen on other queries. ``chosen`` has the alphas of each seed and training category.
    """

    logits: Floats
    inside: Floats
    chosen: tuple[tuple[tuple[float, ...], ...], ...]


def query_folds(query: npt.NDArray[np.str_], folds: int, seed: int) -> Ints:
    """The fold of each row; all documents of a query are in the same fold."""
    names = np.unique(query)
    if len(names) < folds:
        raise DataError(f"folds: expected at least {folds} queries, one for each fold, found {len(names)}")
    order = np.random.default_rng([seed, len(names)]).permutation(len(names))
    fold_of = np.empty(len(names), np.int64)
    fold_of[order] = np.arange(len(names)) % folds
    return np.asarray(fold_of[np.searchsorted(names, query)])


def choose_alphas(
    rows: HeadInputs, settings: HeadSettings, grid: Floats | None = None, most_loss: float = 0.02, folds: int = FOLDS
) -> ChosenAlphas:
    """The alphas for a training category, by cross-validation inside it."""
    alphas = alpha_grid() if grid is None else grid
    return _least_lean(held_out_logits(rows, alphas, settings, folds), rows, alphas, most_loss)


def _least_lean(held_out: Floats, rows: HeadInputs, alphas: Floats, most_loss: float) -> ChosenAlphas:
    """The setting with the least held-out lean among those that lose at most ``most_loss`` of accuracy."""
    if alphas[0].any():
        raise DataError(
            "alphas (the weights of the penalty): expected zeros in the first row, because the first row is the "
            f"training without a penalty; found {alphas[0].tolist()}"
        )
    accuracy = ((held_out > 0) == rows.relevant[:, None]).mean(0)
    lean = relative_gap(held_out, rows)
    allowed = np.flatnonzero(accuracy >= accuracy[0] - most_loss)
    best = int(allowed[np.lexsort((alphas[allowed].sum(1), -accuracy[allowed], lean[allowed]))[0]])
    return ChosenAlphas(
        best, tuple(alphas[best].tolist()), float(accuracy[best]), float(lean[best]), float(accuracy[0]), float(lean[0])
    )


def held_out_logits(rows: HeadInputs, alphas: Floats, settings: HeadSettings, folds: int = FOLDS) -> Floats:
    """The logits of each row (rows by heads) by heads that were trained on other queries."""
    fold = query_folds(rows.query, folds, settings.seed)
    found = np.zeros((len(rows), len(alphas)))
    for k in range(folds):
        heads = fit_heads(rows.take(fold != k), alphas, settings)
        found[fold == k] = heads.logits(rows.encodings[fold == k])
    return found


def relative_gap(logits: Floats, rows: HeadInputs) -> Floats:
    """The root mean squared difference between the male and the female version of a relevant document, in standard
    deviations of the logits: one number for each head. It needs no threshold, so for few queries it is more precise
    than a count of the higher-ranked versions.
    """
    pairs = same_query_pairs(rows.query, rows.relevant, rows.gender)
    chosen = pairs.take(np.flatnonzero((pairs.kind == KINDS.index("MF")) & rows.relevant[pairs.left]))
    if len(chosen) == 0:
        raise DataError(
            "choice of the alphas (weights of the penalty): expected queries with a male and a female version of a "
            "relevant document, found none"
        )
    gaps = np.sqrt(((logits[chosen.left] - logits[chosen.right]) ** 2).mean(0))
    return np.asarray(gaps / np.maximum(logits.std(0), 1e-12))


def zero_shot_heads(
    rows: HeadInputs, category: npt.NDArray[np.str_], names: Sequence[str], settings: HeadSettings,
    seeds: Sequence[int] = (7,), grid: Floats | None = None, most_loss: float = 0.02, progress: Progress | None = None,
) -> ZeroShot:  # fmt: skip
    """Run the complete protocol with linear heads; without a grid there is no penalty."""
    alphas = np.zeros((1, len(KINDS))) if grid is None else grid
    logits = np.zeros((len(seeds), len(names), len(rows)))
    inside = np.zeros((len(seeds), len(rows)))
    chosen: list[tuple[tuple[float, ...], ...]] = []
    for s, seed in enumerate(seeds):
        own = replace(settings, seed=seed)
        picked = []
        for c, name in enumerate(names):
            there = category == name
            training = rows.take(there)
            held_out = held_out_logits(training, alphas, own)
            picked.append(_least_lean(held_out, training, alphas, most_loss).alphas)
            logits[s, c] = fit_heads(training, np.array([picked[-1]]), own).logits(rows.encodings)[:, 0]
            inside[s, there] = _chosen_elsewhere(held_out, training, alphas, own, most_loss)
            if progress is not None:
                progress(s * len(names) + c + 1, len(seeds) * len(names), "training heads")
        chosen.append(tuple(picked))
    return ZeroShot(logits, inside, tuple(chosen))


def _chosen_elsewhere(
    held_out: Floats, rows: HeadInputs, alphas: Floats, settings: HeadSettings, most_loss: float
) -> Floats:
    """The held-out logit of each row, with alphas chosen on the other folds only."""
    fold = query_folds(rows.query, FOLDS, settings.seed)
    found = np.zeros(len(rows))
    for k in range(FOLDS):
        others = fold != k
        found[~others] = held_out[~others, _least_lean(held_out[others], rows.take(others), alphas, most_loss).row]
    return found
