"""The network that compares a reformulation with its query: a cross-encoder with a low-rank adapter. Needs PyTorch.

Both texts are read together; the head reads the first token, the mean over each text, and the absolute difference and
the product of the two means. Its two logits are for *same* (the reformulation expresses the same information need) and
*natural* (a person could type it).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from askew.core.costs import count_model_calls
from askew.models.adapted import load_adapted, mean_over

MOST_TOKENS = 96
OUTPUTS = ("same", "natural")
# Scales the products of means, which are small, to about the spread of the other inputs.
_PRODUCT = 10.0


class PairNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Two logits for each pair of texts. Its parts are named as in the files of adapters."""

    def __init__(self, encoder: Any, hidden: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.enc = encoder
        read = nn.Linear(5 * encoder.config.hidden_size, hidden)
        self.head = nn.Sequential(
            nn.Dropout(dropout), read, nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, len(OUTPUTS))
        )  # fmt: skip

    def forward(self, batch: Any) -> Any:
        """Logits (pairs, outputs) for tokenized pairs."""
        states = self.enc(**batch).last_hidden_state
        second = batch["token_type_ids"] * batch["attention_mask"]
        left, right = mean_over(states, batch["attention_mask"] - second), mean_over(states, second)
        return self.head(torch.cat([states[:, 0], left, right, (left - right).abs(), left * right * _PRODUCT], dim=1))


def load_pair_network(model: str, folder: Path, device: str | None = None) -> tuple[PairNetwork, Any]:
    """The network with the adapter of a folder, and the tokenizer."""
    return load_adapted(model, folder, PairNetwork, MOST_TOKENS, device)


def pair_logits(
    network: PairNetwork, tokenizer: Any, originals: Sequence[str], candidates: Sequence[str], batch_size: int = 64
) -> npt.NDArray[np.float64]:
    """Logits of each pair. Pairs of similar length are batched together, to reduce padding."""
    count_model_calls(len(originals))
    found = np.zeros((len(originals), len(OUTPUTS)))
    lengths = np.array([len(a) + len(b) for a, b in zip(originals, candidates, strict=True)])
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size].tolist()
        batch = tokenizer(
            [originals[row] for row in rows], [candidates[row] for row in rows], padding=True, truncation=True,
            max_length=MOST_TOKENS, return_tensors="pt", return_token_type_ids=True,
        ).to(network.enc.device)  # fmt: skip
        with torch.inference_mode():
            found[rows] = network(batch).double().cpu().numpy()
    return found
