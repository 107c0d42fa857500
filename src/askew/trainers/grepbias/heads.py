"""Train many linear heads on frozen encodings together, on the same batches.

There is one head for each setting of the alphas, which are the weights of the pairwise penalty.

The encodings are computed once. Each head has its own weights and loss, and AdamW updates every weight separately, so
heads that are trained together are the same as heads that are trained alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError
from askew.core.ranking import Flags, Floats, Ints
from askew.trainers.common import TrainingStopped
from askew.trainers.grepbias.pairs import RowPairs, batch_pairs, pair_penalty, same_query_pairs

PAIR_SETS = ("batch", "query")
STARTS = ("uniform", "zero")


@dataclass(frozen=True)
class HeadSettings:
    """The training of a head; the defaults are the published settings.

    ``batch_size``  rows per step; 0 means all rows: gradient descent to the unique minimum, the same for every seed.
    ``ridge``       L2 penalty: ridge / 2 times the squared norm of the weights, divided by the number of rows.
    ``start``       initial weights: uniform (as in PyTorch's linear layer) or zero.
    ``pairs``       pairs of the penalty: batch (published: any two rows of a batch) or query (the versions of one
                    document, which differ only in gender).
    ``decay``       whether the learning rate falls to zero along a cosine.
    """

    epochs: int = 8
    learning_rate: float = 1e-4
    batch_size: int = 8
    weight_decay: float = 0.01
    ridge: float = 0.0
    start: str = "uniform"
    pairs: str = "batch"
    decay: bool = False
    seed: int = 7

    def __post_init__(self) -> None:
        if self.pairs not in PAIR_SETS or self.start not in STARTS:
            raise ConfigError(
                f"adapter: expected pairs= to be {' or '.join(map(repr, PAIR_SETS))} and start= to be "
                f"{' or '.join(map(repr, STARTS))}, found pairs={self.pairs!r} and start={self.start!r}"
            )
        fine = self.epochs >= 1 and self.batch_size >= 0 and self.learning_rate > 0
        if not fine or min(self.weight_decay, self.ridge) < 0:
            raise ConfigError(
                "adapter: expected epochs= and learning_rate= to be above 0, and batch_size=, weight_decay= and ridge= "
                f"to be 0 or more; found {self}"
            )


PUBLISHED = HeadSettings()
CONVERGED = HeadSettings(
    epochs=200, learning_rate=0.1, batch_size=0, weight_decay=0.0, ridge=1.0, start="zero", pairs="query", decay=True
)


@dataclass(frozen=True)
class HeadInputs:
    """The training data of a head: encodings, relevance, gender and query of each row."""

    encodings: npt.NDArray[np.float32]
    relevant: Flags
    gender: npt.NDArray[np.str_]
    query: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.relevant)

    def take(self, rows: Flags | Ints) -> HeadInputs:
        """Some of the rows."""
        return HeadInputs(self.encodings[rows], self.relevant[rows], self.gender[rows], self.query[rows])


@dataclass(frozen=True)
class Heads:
    """Weights (heads by features) and biases."""

    weights: Floats
    bias: Floats

    def logits(self, encodings: npt.NDArray[np.float32]) -> Floats:
        """The logits, rows by heads."""
        return np.asarray(encodings.astype(np.float64) @ self.weights.T + self.bias)


class _Learner:
    """The heads during training."""

    def __init__(self, rows: HeadInputs, alphas: Floats, settings: HeadSettings) -> None:
        import torch

        self.rows, self.settings = rows, settings
        self.x = torch.tensor(rows.encodings, dtype=torch.float32)
        self.y = torch.tensor(rows.relevant, dtype=torch.float32)
        self.alphas = torch.tensor(alphas, dtype=torch.float32)
        self.versions = same_query_pairs(rows.query, rows.relevant, rows.gender)
        self.rng = np.random.default_rng(settings.seed)
        bound = 0.0 if settings.start == "zero" else self.x.shape[1] ** -0.5
        first = torch.tensor(self.rng.uniform(-bound, bound, self.x.shape[1] + 1), dtype=torch.float32)
        self.weights = first[:-1].repeat(len(alphas), 1).requires_grad_()
        self.bias = first[-1:].repeat(len(alphas)).requires_grad_()

    def batches(self) -> list[Ints]:
        """The rows of each step of an epoch."""
        size = self.settings.batch_size
        order = self.rng.permutation(len(self.rows)) if size else np.arange(len(self.rows))
        return [order[start : start + (size or len(order))] for start in range(0, len(order), size or len(order))]

    def loss(self, batch: Ints) -> Any:
        """The loss of each head."""
        import torch

        z = self.x[batch] @ self.weights.T + self.bias
        wrong = torch.nn.functional.binary_cross_entropy_with_logits(
            z, self.y[batch][:, None].expand_as(z), reduction="none"
        ).mean(0)
        ridge = self.settings.ridge / (2 * len(self.rows)) * (self.weights**2).sum(1)
        return wrong + self._penalty(batch, z) + ridge

    def _penalty(self, batch: Ints, z: Any) -> Any:
        if self.settings.pairs == "batch":
            return pair_penalty(z, batch_pairs(batch, self.rows.gender, self.rng), self.alphas)
        size, there = self.settings.batch_size, len(self.versions)
        if not size:
            return pair_penalty(z, self.versions, self.alphas)
        chosen = self.versions.take(self.rng.choice(there, min(size, there), replace=False))
        rows, places = np.unique(np.concatenate([chosen.left, chosen.right]), return_inverse=True)
        local = RowPairs(places[: len(chosen)], places[len(chosen) :], chosen.kind)
        return pair_penalty(self.x[rows] @ self.weights.T + self.bias, local, self.alphas)


def fit_heads(rows: HeadInputs, alphas: Floats, settings: HeadSettings) -> Heads:
    """Train one head for each row of ``alphas``; the loss is mean binary cross-entropy plus the pairwise penalty."""
    import torch

    learner = _Learner(rows, alphas, settings)
    steps = settings.epochs * len(learner.batches())
    learner.rng = np.random.default_rng([settings.seed, 1])
    optimizer = torch.optim.AdamW(
        [learner.weights, learner.bias], lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps) if settings.decay else None
    for _ in range(settings.epochs):
        for batch in learner.batches():
            loss = learner.loss(batch)
            if not bool(torch.isfinite(loss).all()):
                found = loss.sum().item()
                raise TrainingStopped(f"adapter: expected a finite loss, found {found}; try a smaller learning_rate")
            optimizer.zero_grad()
            loss.sum().backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()
    return Heads(learner.weights.detach().double().numpy(), learner.bias.detach().double().numpy())
