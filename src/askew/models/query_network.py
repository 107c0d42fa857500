"""The network that predicts the group a query is about: an encoder with a low-rank adapter, and a head. Needs PyTorch.

The head reads the first token, the mean over all tokens, and counts of words and first names of each gender.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from askew.models.adapted import load_adapted, make_head, mean_over

MOST_TOKENS = 64
CLASSES = ("neutral", "female", "male")
COUNTS = 4


class QueryNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Logits of each class for each query. Its parts are named as in the files of adapters."""

    def __init__(self, encoder: Any, hidden: int, dropout: float = 0.2) -> None:
        super().__init__()
        self.enc = encoder
        self.head = make_head(2 * encoder.config.hidden_size + COUNTS, hidden, len(CLASSES), dropout)

    def forward(self, batch: Any, counts: Any) -> Any:
        """Logits (queries, classes) for tokenized queries and the counts of each query."""
        states = self.enc(**batch).last_hidden_state
        mean = mean_over(states, batch["attention_mask"])
        return self.head(torch.cat([states[:, 0], mean, counts.to(states.dtype)], dim=1))


@cache
def load_query_network(model: str, folder: Path, device: str | None = None) -> tuple[QueryNetwork, Any]:
    """The network with the adapter of a folder, and the tokenizer. The same model is loaded once."""
    return load_adapted(model, folder, QueryNetwork, MOST_TOKENS, device)


def query_batch(network: QueryNetwork, tokenizer: Any, texts: Sequence[str], counts: npt.NDArray[np.float32]) -> Any:
    """The inputs of the network for some queries."""
    batch = tokenizer(list(texts), padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt")
    return batch.to(network.enc.device), torch.from_numpy(counts).to(network.enc.device)


def query_logits(
    network: QueryNetwork, tokenizer: Any, texts: Sequence[str], counts: npt.NDArray[np.float32], batch_size: int
) -> npt.NDArray[np.float64]:
    """Logits of each query. Queries of similar length are batched together, to reduce padding."""
    found = np.zeros((len(texts), len(CLASSES)))
    order = np.argsort([-len(text) for text in texts], kind="stable")
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        batch = query_batch(network, tokenizer, [texts[row] for row in rows], counts[rows])
        with torch.inference_mode():
            found[rows] = network(*batch).double().cpu().numpy()
    return found
