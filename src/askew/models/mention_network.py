"""The network that says who a mention points to: an encoder with a low-rank adapter, and a head. Needs PyTorch.

The head reads three vectors: the mean over the mention, the mean over all tokens, the first token. A file of an
adapter has for each adapted linear layer two matrices, ``enc.LAYER.a`` (rank, inputs) and ``enc.LAYER.b`` (outputs,
rank), which are added to the weights of the encoder as b times a when it is loaded; and the weights of the head.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from askew.core.errors import ConfigError, DataError
from askew.models.mention import MOST_TOKENS, MentionBatch
from askew.models.relevance import open_encoder

WEIGHTS = "adapter.safetensors"
_FIRST = "head.1.weight"


class MentionNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Logits of each class for each mention. Its parts are named as in the files of adapters."""

    def __init__(self, encoder: Any, hidden: int, classes: int, dropout: float = 0.2) -> None:
        super().__init__()
        self.enc = encoder
        read = nn.Linear(3 * encoder.config.hidden_size, hidden)
        self.head = nn.Sequential(
            nn.Dropout(dropout), read, nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, classes)
        )  # fmt: skip

    def forward(self, batch: MentionBatch) -> Any:
        """Logits (mentions, classes)."""
        ids, segments, mask, mention = (torch.from_numpy(one).to(self.enc.device) for one in batch)
        states = self.enc(input_ids=ids, token_type_ids=segments, attention_mask=mask).last_hidden_state
        return self.head(torch.cat([_mean(states, mention), _mean(states, mask), states[:, 0]], dim=1))

    def probabilities(self, batch: MentionBatch) -> npt.NDArray[np.float64]:
        """The probability of each class for each mention."""
        with torch.inference_mode():
            found: npt.NDArray[np.float64] = self(batch).double().softmax(-1).cpu().numpy()
        return found


def _mean(states: Any, marked: Any) -> Any:
    weights = marked.unsqueeze(-1).to(states.dtype)
    # A mention without any token, such as one of control characters, has the mean zero.
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def load_network(model: str, folder: Path, classes: int, device: str | None = None) -> tuple[MentionNetwork, Any]:
    """The network with the adapter of a folder added to the encoder's weights, and the tokenizer.

    Without a device: the GPU where there is one.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    encoder, tokenizer = open_encoder(model, device, "neural")
    places = int(encoder.config.max_position_embeddings)
    if places < MOST_TOKENS:
        raise ConfigError(f"model {model!r}: expected an encoder of {MOST_TOKENS} tokens or more, found {places}")
    file = folder / WEIGHTS
    weights = _read(file)
    hidden = len(weights[_FIRST]) if _FIRST in weights else 1
    network = MentionNetwork(encoder, hidden, classes)
    try:
        add_adapter(network, weights)
    except (AttributeError, KeyError, ValueError, RuntimeError) as error:
        raise _damaged(file, f"the weights do not fit {model} and {classes} classes", error) from None
    return network.to(device).eval(), tokenizer


def add_adapter(network: MentionNetwork, weights: Mapping[str, Any]) -> None:
    """Add each low-rank product to the weights it belongs to, and put the head in place."""
    layers = {name[:-2] for name in weights if name.startswith("enc.") and name.endswith((".a", ".b"))}
    head = {name.removeprefix("head."): one.float() for name, one in weights.items() if name.startswith("head.")}
    if len(weights) != 2 * len(layers) + len(head):
        raise ValueError("a tensor of no known part")
    with torch.no_grad():
        for layer in sorted(layers):
            target = network.get_submodule(layer).weight
            change = weights[f"{layer}.b"].float() @ weights[f"{layer}.a"].float()
            if change.shape != target.shape:
                raise ValueError(f"{layer} has the shape {tuple(change.shape)}, expected {tuple(target.shape)}")
            target += change.to(target.device)
    network.head.load_state_dict(head)


def _read(file: Path) -> dict[str, Any]:
    try:
        weights: dict[str, Any] = load_file(file)
    except (OSError, SafetensorError) as error:
        raise _damaged(file, "it cannot be read", error) from None
    unusable = next((name for name, one in weights.items() if not torch.isfinite(one.float()).all()), None)
    if unusable is not None:
        raise _damaged(file, "not all weights are finite numbers", ValueError(unusable))
    return weights


def _damaged(file: Path, what: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return DataError(
        f"{file}: expected the adapter of a mention model, but {what} ({reason}); install askew again, or give "
        "adapter= another folder"
    )
