"""The network that classifies the referent of a mention: an encoder with a low-rank adapter, and a head. Needs PyTorch.

The head reads three vectors: the mean over the mention, the mean over all tokens, the first token.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from askew.models.adapted import load_adapted, make_head, mean_over
from askew.models.mention import MOST_TOKENS, MentionBatch


class MentionNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Logits of each class for each mention. Its parts are named as in the files of adapters."""

    def __init__(self, encoder: Any, hidden: int, classes: int, dropout: float = 0.2) -> None:
        super().__init__()
        self.enc = encoder
        self.head = make_head(3 * encoder.config.hidden_size, hidden, classes, dropout)

    def forward(self, batch: MentionBatch) -> Any:
        """Logits (mentions, classes)."""
        ids, segments, mask, mention = (torch.from_numpy(one).to(self.enc.device) for one in batch)
        states = self.enc(input_ids=ids, token_type_ids=segments, attention_mask=mask).last_hidden_state
        return self.head(torch.cat([mean_over(states, mention), mean_over(states, mask), states[:, 0]], dim=1))

    def probabilities(self, batch: MentionBatch) -> npt.NDArray[np.float64]:
        """The probability of each class for each mention."""
        with torch.inference_mode():
            found: npt.NDArray[np.float64] = self(batch).double().softmax(-1).cpu().numpy()
        return found


def load_network(model: str, folder: Path, classes: int, device: str | None = None) -> tuple[MentionNetwork, Any]:
    """The network with the adapter of a folder, and the tokenizer."""
    return load_adapted(
        model, folder, lambda encoder, hidden: MentionNetwork(encoder, hidden, classes), MOST_TOKENS, device
    )
