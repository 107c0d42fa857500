"""The network that says which group a query asks about: an encoder with a low-rank adapter, and a head. Needs PyTorch.

The head reads the first token, the mean over all tokens, and four numbers that were counted in the query.
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

from askew.models.adapted import load_adapted, mean_over

MOST_TOKENS = 64
COUNTS = 4
CLASSES = 3


class QueryNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Logits of each class for each query. Its parts are named as in the files of adapters."""

    def __init__(self, encoder: Any, hidden: int, dropout: float = 0.2) -> None:
        super().__init__()
        self.enc = encoder
        read = nn.Linear(2 * encoder.config.hidden_size + COUNTS, hidden)
        self.head = nn.Sequential(
            nn.Dropout(dropout), read, nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, CLASSES)
        )  # fmt: skip

    def forward(self, batch: Any, counts: Any) -> Any:
        """Logits (queries, classes) of what a tokenizer made of queries, and the numbers of each."""
        states = self.enc(**batch).last_hidden_state
        return self.head(torch.cat([states[:, 0], mean_over(states, batch["attention_mask"]), counts], dim=1))


@cache
def load_query_network(model: str, folder: Path, device: str | None = None) -> tuple[QueryNetwork, Any]:
    """The network with the adapter of a folder, and the tokenizer. The same model is loaded once."""
    return load_adapted(model, folder, QueryNetwork, MOST_TOKENS, device)


def query_logits(
    network: QueryNetwork, tokenizer: Any, queries: Sequence[str], counts: npt.NDArray[np.float64], batch_size: int
) -> npt.NDArray[np.float64]:
    """Logits of each query. Queries of about the same length are read together, so that little is padded."""
    found = np.zeros((len(queries), CLASSES))
    order = np.argsort([-len(query) for query in queries], kind="stable")
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size].tolist()
        batch = tokenizer(
            [queries[row] for row in rows], padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt"
        ).to(network.enc.device)
        numbers = torch.from_numpy(counts[rows].astype(np.float32)).to(network.enc.device)
        with torch.inference_mode():
            found[rows] = network(batch, numbers).double().cpu().numpy()
    return found
