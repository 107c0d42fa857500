"""Adapters of encoders: low-rank changes to linear layers and a head, in one file; and two networks with them.

A file has the weights of the head, and two matrices for each adapted linear layer: ``enc.LAYER.a`` (rank, inputs) and
``enc.LAYER.b`` (outputs, rank). Their product b a is added to the weights of the encoder when it is loaded. A network
is any module with the encoder as ``enc`` and the head as ``head``; other parts of it are in the file too. Needs
PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from askew.core.errors import ConfigError, DataError
from askew.core.files import DATA
from askew.models.find import best_device
from askew.models.mention import CASES, MOST_TOKENS, Window
from askew.models.relevance import open_encoder

WEIGHTS = "adapter.safetensors"
ADAPTERS = DATA / "adapters"
_FIRST = "head.1.weight"


def find_encoder_adapter(name: str, shipped: str) -> Path:
    """The folder of an adapter of an encoder, given as the name of a shipped adapter or as a folder."""
    folder = ADAPTERS / name if (ADAPTERS / name).is_dir() else Path(name)
    if not (folder / WEIGHTS).is_file():
        raise ConfigError(f"adapter {name!r}: expected {shipped!r} or a folder with the file {WEIGHTS}")
    return folder


def load_adapted(
    model: str, folder: Path, make: Callable[[Any, int], Any], most_tokens: int, device: str | None = None
) -> tuple[Any, Any]:
    """A network with the adapter of a folder added to the encoder's weights, and the tokenizer.

    ``make(encoder, hidden)`` builds the network. The default device is the GPU if there is one.
    """
    device = best_device(device)
    encoder, tokenizer = open_encoder(model, device, "neural")
    places = int(encoder.config.max_position_embeddings)
    if places < most_tokens:
        raise ConfigError(
            f"model {model!r}: expected an encoder that reads {most_tokens} tokens or more, found {places}",
            code="small-encoder",
            found=places,
        )
    file = folder / WEIGHTS
    try:
        weights: dict[str, Any] = load_file(file)
    except (OSError, SafetensorError) as error:
        raise _damaged(file, "the file cannot be read", error) from None
    unusable = next((name for name, one in weights.items() if not torch.isfinite(one.float()).all()), None)
    if unusable is not None:
        raise _damaged(file, "not all weights are finite numbers", ValueError(unusable))
    network = make(encoder, len(weights[_FIRST]) if _FIRST in weights else 1)
    try:
        add_adapter(network, weights)
    except (AttributeError, KeyError, ValueError, RuntimeError) as error:
        raise _damaged(file, f"the weights do not fit the model {model!r} or the number of classes", error) from None
    return network.to(device).eval(), tokenizer


def make_head(inputs: int, hidden: int, outputs: int, dropout: float) -> Any:
    """The layers from the features of an encoder to logits; the files of adapters number them so."""
    return nn.Sequential(
        nn.Dropout(dropout), nn.Linear(inputs, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, outputs)
    )


def logits_by_length(
    lengths: Sequence[int], outputs: int, batch_size: int, logits: Callable[[Sequence[int]], Any]
) -> npt.NDArray[np.float64]:
    """A row of logits for each text. Texts of similar length are batched together, to reduce padding."""
    found = np.zeros((len(lengths), outputs))
    order = np.argsort(-np.array(lengths, np.int64), kind="stable").tolist()
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        with torch.inference_mode():
            found[rows] = logits(rows).double().cpu().numpy()
    return found


def mean_over(states: Any, marked: Any) -> Any:
    """The mean of the states of marked tokens; zero if no token is marked."""
    weights = marked.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def add_adapter(network: Any, weights: Mapping[str, Any]) -> None:
    """Add each low-rank product to the weights of its layer, and load the weights of the head."""
    layers = {name[:-2] for name in weights if name.startswith("enc.") and name.endswith((".a", ".b"))}
    rest = {name: one.float() for name, one in weights.items() if not name.startswith("enc.")}
    if len(weights) != 2 * len(layers) + len(rest):
        raise ValueError("a tensor belongs to no adapted layer")
    with torch.no_grad():
        for layer in sorted(layers):
            target = network.get_submodule(layer).weight
            change = weights[f"{layer}.b"].float() @ weights[f"{layer}.a"].float()
            if change.shape != target.shape:
                raise ValueError(f"{layer} has the shape {tuple(change.shape)}, expected {tuple(target.shape)}")
            target += change.to(target.device)
    missing, unknown = network.load_state_dict(rest, strict=False)
    if wrong := [*unknown, *(name for name in missing if not name.startswith("enc."))]:
        raise ValueError(f"{wrong[0]} is unknown or missing")


def _damaged(file: Path, what: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return DataError(
        f"{file}: expected the adapter of an encoder, but {what} ({reason}); install askew again, or give "
        "adapter= another folder",
        code="damaged-adapter",
    )


# The network that predicts the group a query is about. The head reads the first token, the mean over all tokens, and
# counts of words and first names of each gender.

MOST_QUERY_TOKENS = 64
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
    return load_adapted(model, folder, QueryNetwork, MOST_QUERY_TOKENS, device)


def query_batch(network: QueryNetwork, tokenizer: Any, texts: Sequence[str], counts: npt.NDArray[np.float32]) -> Any:
    """The inputs of the network for some queries."""
    batch = tokenizer(list(texts), padding=True, truncation=True, max_length=MOST_QUERY_TOKENS, return_tensors="pt")
    return batch.to(network.enc.device), torch.from_numpy(counts).to(network.enc.device)


def query_logits(
    network: QueryNetwork, tokenizer: Any, texts: Sequence[str], counts: npt.NDArray[np.float32], batch_size: int
) -> npt.NDArray[np.float64]:
    """Logits of each query."""

    def logits(rows: Sequence[int]) -> Any:
        return network(*query_batch(network, tokenizer, [texts[row] for row in rows], counts[rows]))

    return logits_by_length([len(text) for text in texts], len(CLASSES), batch_size, logits)


# The network that classifies the referents of all mentions in a window of a document. The head reads the mean over the
# mention, the mean over all tokens and the first token; the cases of the tokens are added to their embeddings.

# Windows are padded to a multiple of this, and batches to this many rows, so that a product has the same shape, and the
# same rounding, whatever the other windows of a batch are.
_MULTIPLE, _ROWS = 32, 8


class MentionNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Logits of each class for each mention. Its parts are named as in the files of adapters."""

    def __init__(self, encoder: Any, hidden: int, classes: int, dropout: float = 0.2) -> None:
        super().__init__()
        self.enc = encoder
        self.case = nn.Embedding(CASES, encoder.config.hidden_size)
        nn.init.zeros_(self.case.weight)
        self.head = make_head(3 * encoder.config.hidden_size, hidden, classes, dropout)

    def forward(self, batch: Sequence[Window]) -> Any:
        """Logits (mentions, classes), in the order of the windows."""
        longest = -(-max(len(one.ids) for one in batch) // _MULTIPLE) * _MULTIPLE
        rows = -(-len(batch) // _ROWS) * _ROWS
        ids, cases, mask = torch.zeros((3, rows, longest), dtype=torch.long)
        for row, one in enumerate(batch):
            size = len(one.ids)
            ids[row, :size], cases[row, :size] = torch.tensor(one.ids), torch.tensor(one.cases)
            mask[row, :size] = 1
        mask[len(batch) :, 0] = 1
        ids, cases, mask = (one.to(self.enc.device) for one in (ids, cases, mask))
        words = self.enc.get_input_embeddings()(ids) + self.case(cases)
        states = self.enc(inputs_embeds=words, attention_mask=mask).last_hidden_state.float()
        means = mean_over(states, mask)
        features = [
            torch.cat([states[row, first:end].mean(0), means[row], states[row, 0]])
            for row, one in enumerate(batch)
            for _, first, end in one.mentions
        ]
        return self.head(torch.stack(features))

    def probabilities(self, found: Iterable[Window], mentions: int) -> npt.NDArray[np.float64]:
        """The probability of each class for each of so many mentions."""
        made = np.zeros((mentions, self.head[-1].out_features))
        waiting: dict[int, list[Window]] = {}

        def read(batch: list[Window]) -> None:
            rows = [row for one in batch for row, _, _ in one.mentions]
            made[rows] = self(batch).double().softmax(-1).cpu().numpy()

        with torch.inference_mode():
            for one in found:
                batch = waiting.setdefault(-(-len(one.ids) // _MULTIPLE), [])
                batch.append(one)
                if len(batch) == _ROWS:
                    read(batch)
                    batch.clear()
            for batch in waiting.values():
                if batch:
                    read(batch)
        return made


def load_network(model: str, folder: Path, classes: int, device: str | None = None) -> tuple[MentionNetwork, Any]:
    """The network with the adapter of a folder, and the tokenizer.

    On a CPU with products of bfloat16 numbers, the encoder has such numbers: it is three times as fast.
    """
    network, tokenizer = load_adapted(
        model, folder, lambda encoder, hidden: MentionNetwork(encoder, hidden, classes), MOST_TOKENS, device
    )
    if network.enc.device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        network.enc.to(torch.bfloat16)
        network.case.to(torch.bfloat16)
    return network, tokenizer
