"""The two networks that learn to judge a reformulation beside its query, with the layers, tokens and files of use.

Each has a ``network`` with the weights that learn, gives the logits of pairs, and writes a folder that ``judge`` reads
as the filter does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from askew.models.adapted import WEIGHTS, find_encoder_adapter, make_head
from askew.models.find import MINILM
from askew.models.generate import SMOLLM, find_adapter
from askew.models.pair_network import (
    HEAD,
    MOST_TOKENS,
    OUTPUTS,
    PairNetwork,
    PairTokens,
    load_pair_judge,
    load_pair_network,
    pair_logits,
)
from askew.models.relevance import open_encoder
from training.low_rank import (
    adapt,
    half_precision,
    peft_tensors,
    put_encoder_tensors,
    put_peft_tensors,
    read_peft_tensors,
    save_encoder_adapter,
    save_peft_adapter,
)
from training.negatives import Pair
from training.rewriting import base_name, open_base

Judge = Callable[[Sequence[str], Sequence[str]], Any]


class LearnerSettings(Protocol):
    """What decides on the layers; see ``train_equivalence.Settings``."""

    rank: int
    alpha: int
    dropout: float
    head_dropout: float
    hidden: int


class PairLearner(Protocol):
    """A network in training."""

    network: Any

    def logits(self, pairs: Sequence[Pair]) -> Any:
        """Two logits for each pair, in 32 bits."""

    def save(self, folder: Path) -> None:
        """Write the adapter and the head."""

    def judge(self, folder: Path) -> Judge:
        """What was written, as it is used: logits of queries and reformulations."""


class MinilmLearner:
    """The cross-encoder on MiniLM (``askew.models.pair_network``); ``init`` is an adapter to start from."""

    base, first = MINILM, None

    def __init__(self, settings: LearnerSettings, device: str, model: str = MINILM, init: str | None = None) -> None:
        self._model, self._device = model, device
        encoder, self._tokenizer = open_encoder(model)
        adapt(encoder, "encoder.layer", settings.rank, settings.alpha, settings.dropout)
        self.network = PairNetwork(encoder, settings.hidden, settings.head_dropout).to(device)
        if init is not None:
            file = find_encoder_adapter(init, "an equivalence adapter") / WEIGHTS
            _start(file, lambda: put_encoder_tensors(self.network, load_file(file)))

    def logits(self, pairs: Sequence[Pair]) -> Any:
        """Two logits for each pair, in 32 bits."""
        batch = self._tokenizer(
            [one.query for one in pairs], [one.candidate for one in pairs], padding=True, truncation=True,
            max_length=MOST_TOKENS, return_tensors="pt", return_token_type_ids=True,
        ).to(self._device)  # fmt: skip
        with half_precision(self._device):
            return self.network(batch).float()

    def save(self, folder: Path) -> None:
        """Write the adapter with the head."""
        save_encoder_adapter(folder, self.network)

    def judge(self, folder: Path) -> Judge:
        """What was written, as it is used."""
        loaded = load_pair_network(self._model, folder, self._device)
        return lambda queries, texts: pair_logits(*loaded, queries, texts)


class SmollmLearner:
    """SmolLM2 as a judge (``askew.models.pair_network``), from the weights of a rewriting adapter ``init`` on."""

    base, first = SMOLLM, "smollm2-rewrite"

    def __init__(self, settings: LearnerSettings, device: str, model: str = SMOLLM, init: str | None = first) -> None:
        self._model, self._device, self._settings = model, device, settings
        base = open_base(model, device)
        self._tokens, self._filler = PairTokens(base.tokenizer), base.tokenizer.eos_token_id
        body = base.adapted(settings, settings.dropout)
        if init is not None:
            folder = find_adapter(init)
            _start(folder, lambda: put_peft_tensors(body, read_peft_tensors(folder)))
        head = make_head(body.config.hidden_size, settings.hidden, len(OUTPUTS), settings.head_dropout).to(device)
        self.network = nn.ModuleDict({"body": body, "head": head})

    def logits(self, pairs: Sequence[Pair]) -> Any:
        """Two logits for each pair, in 32 bits: the head reads the state after the last token."""
        rows = [[*self._tokens.query(one.query), *self._tokens.reformulation(one.candidate)] for one in pairs]
        longest = max(map(len, rows))
        # No token sees what follows it, so that the padding after a pair needs no mask.
        padded = torch.tensor([[*row, *[self._filler] * (longest - len(row))] for row in rows], device=self._device)
        states = self.network["body"].model(input_ids=padded, use_cache=False).last_hidden_state
        last = torch.tensor([len(row) - 1 for row in rows], device=self._device)
        return self.network["head"](states[torch.arange(len(rows), device=self._device), last].float())

    def save(self, folder: Path) -> None:
        """Write the adapter as PEFT reads it, and the head."""
        tensors = peft_tensors(self.network["body"])
        save_peft_adapter(folder, tensors, base_name(self._model), self._settings.alpha, self._settings.dropout)
        head = self.network["head"].state_dict()
        save_file({name: one.half().cpu().contiguous() for name, one in head.items()}, folder / HEAD)

    def judge(self, folder: Path) -> Judge:
        """What was written, as it is used."""
        return load_pair_judge(folder, self._model, self._device).logits


def by_length(pairs: Sequence[Pair], size: int, chance: Any) -> list[Pair]:
    """Batches of pairs of about the same length, in random order; what fills no batch is left out."""
    ordered = sorted(pairs, key=lambda one: len(one.query) + len(one.candidate))
    starts = list(range(0, max(1, len(ordered) - size + 1), size))
    chance.shuffle(starts)
    return [one for start in starts for one in ordered[start : start + size]]


def _start(where: Path, put: Callable[[], None]) -> None:
    try:
        put()
    except (KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise SystemExit(
            f"{where}: expected an adapter of this model and rank ({reason}); give --init or --rank"
        ) from None
