"""Train a ranker with an adversary, after Rekabsaz, Kopeinik and Schedl (2021).

A small head reads the vector from which the score is computed, and learns to predict the group that the document leans
to. In backpropagation its gradient is reversed, so the encoder removes the information that helps the head. The paper
has two classes (neutral or not); here there is a class for each group and one for neutral. The head is not part of the
saved ranker.
"""

from __future__ import annotations

import math
from typing import Any

_STEEPNESS = 10.0


def ramp(done: float) -> float:
    """The strength of the reversal after a share of the training; it rises from 0 to 1 (Ganin et al. 2016)."""
    return 2.0 / (1.0 + math.exp(-_STEEPNESS * done)) - 1.0


def with_adversary(ranker: Any, classes: int, strength: float) -> Any:
    """The ranker with an adversary; ``forward`` is that of the ranker and also returns its hidden states."""
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
            """The loss of the head, over the documents that are not padding."""
            first = answer.hidden_states[-1][:, 0]
            found = self.adversary(Reversed.apply(first, strength * ramp(done))).float()
            each = nn.functional.cross_entropy(found, group, reduction="none")
            return (each * there).sum() / there.sum()

    return WithAdversary()
