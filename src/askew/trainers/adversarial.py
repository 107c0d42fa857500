"""An adversary beside the ranker, after Rekabsaz, Kopeinik and Schedl (2021).

A small head reads the vector from which the score is made and learns to tell which group the document leans to. On the
way back its gradient is reversed: what helps the head is unlearned by the encoder. Published with two classes (neutral
or not); here a class for each group and one for neutral. The head is not part of the ranker that is kept.
"""

from __future__ import annotations

import math
from typing import Any

_STEEPNESS = 10.0


def ramp(done: float) -> float:
    """How strong the reversal is after a share of the training: 0 at first, then 1 (Ganin et al. 2016)."""
    return 2.0 / (1.0 + math.exp(-_STEEPNESS * done)) - 1.0


def with_adversary(ranker: Any, classes: int, strength: float) -> Any:
    """The ranker with an adversary; ``forward`` is the ranker's own, with the vectors of its last layer."""
    import torch
    from torch import nn

    class Reversed(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
        @staticmethod
        def forward(ctx: Any, vectors: Any, scale: float) -> Any:
            ctx.scale = scale
            return vectors.view_as(vectors)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override, unused-ignore]
            return -ctx.scale * gradient, None

    class WithAdversary(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.ranker = ranker
            width = int(ranker.config.hidden_size)
            layers = nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, classes)
            self.adversary = nn.Sequential(*layers)

        def forward(self, **inputs: Any) -> Any:
            return self.ranker(**inputs, output_hidden_states=True)

        def adversary_loss(self, answer: Any, group: Any, there: Any, done: float) -> Any:
            """What the head gets wrong about the documents that are there."""
            first = answer.hidden_states[-1][:, 0]
            found = self.adversary(Reversed.apply(first, strength * ramp(done))).float()
            each = nn.functional.cross_entropy(found, group, reduction="none")
            return (each * there).sum() / there.sum()

    return WithAdversary()
