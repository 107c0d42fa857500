"""The network that compares a reformulation with its query: a cross-encoder with a low-rank adapter. Needs PyTorch.

Both texts are read together; the head reads the first token, the mean over each text, and the absolute difference and
the product of the two means. Its two logits are for *same* (the reformulation expresses the same information need) and
*natural* (it looks like a line of a query log).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from askew.core.costs import count_model_calls
from askew.core.errors import DataError
from askew.models.adapted import load_adapted, logits_by_length, make_head, mean_over
from askew.models.decode import Llama
from askew.models.generate import SMOLLM, open_generator
from askew.models.prompts import kind_ending, query_prefix

# The network that compares a reformulation with its query: SmolLM2 with a low-rank adapter and a head. Needs PyTorch.

OUTPUTS = ("same", "natural")
HEAD = "head.safetensors"
MOST_QUERY, MOST_TEXT = 64, 48
_KIND = "paraphrase"
# Tokens of one pass: more tokens make attention slower, fewer do not use the CPU's matrix products fully.
_COLUMNS = 384
_PASSES_ON_GPU = 64
_PADDING = (0, 0, -1, -1)


class PairTokens:
    """The tokens of queries and reformulations for the network."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._before, self._after = self._of(kind_ending(_KIND)), self._of("\n")

    def query(self, text: str) -> list[int]:
        """The tokens of a query, which its reformulations share."""
        return self._of(query_prefix(text))[:MOST_QUERY]

    def reformulation(self, text: str) -> list[int]:
        """The tokens of a reformulation, which follow those of the query."""
        return [*self._before, *self._of(" " + " ".join(text.split()))[:MOST_TEXT], *self._after]

    def _of(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


class PairJudge:
    """Two logits for each pair of a query and a reformulation."""

    def __init__(self, network: Llama, tokenizer: Any, head: Any) -> None:
        self._network, self._tokens, self._head = network, PairTokens(tokenizer), head.to(network.device).eval()

    def logits(self, originals: Sequence[str], candidates: Sequence[str]) -> npt.NDArray[np.float64]:
        """A row for each pair, a column for each output."""
        states = self._states(originals, candidates)
        with torch.inference_mode():
            found = self._head(torch.from_numpy(states).to(self._network.device))
        logits: npt.NDArray[np.float64] = found.double().cpu().numpy()
        return logits

    def _states(self, originals: Sequence[str], candidates: Sequence[str]) -> npt.NDArray[np.float32]:
        """The state after the last token of each pair, which the head reads."""
        count_model_calls(len(originals))
        states = np.zeros((len(originals), self._head[1].in_features), np.float32)
        at_once = _PASSES_ON_GPU if self._network.device.type == "cuda" else 1
        passes = self._passes(originals, candidates)
        while some := list(islice(passes, at_once)):
            self._judge(some, states)
        return states

    def _passes(self, originals: Sequence[str], candidates: Sequence[str]) -> Iterator[_Pass]:
        """The pairs, divided into passes; pairs of the same query are adjacent."""
        by_query: dict[str, list[int]] = {}
        for row, original in enumerate(originals):
            by_query.setdefault(original, []).append(row)
        current = _Pass()
        for original, rows in by_query.items():
            query, group = self._tokens.query(original), None
            for row in rows:
                text = self._tokens.reformulation(candidates[row])
                needed = len(text) + (len(query) if group is None else 0)
                if current.columns and len(current.columns) + needed > _COLUMNS:
                    yield current
                    current, group = _Pass(), None
                if group is None:
                    group = len(current.rows)
                    current.put(query, 0, group, -1)
                current.put(text, len(query), group, len(current.rows))
                current.rows.append(row)
                current.last.append(len(current.columns) - 1)
        if current.columns:
            yield current

    def _judge(self, passes: Sequence[_Pass], found: npt.NDArray[np.float32]) -> None:
        device, width = self._network.device, max(len(judged.columns) for judged in passes)
        padded = [[*judged.columns, *[_PADDING] * (width - len(judged.columns))] for judged in passes]
        tokens, positions, group, text = torch.tensor(padded, device=device).unbind(-1)
        order = torch.arange(width, device=device)
        same_group = group.unsqueeze(-1) == group.unsqueeze(1)
        visible = same_group & ((text.unsqueeze(1) == -1) | (text.unsqueeze(-1) == text.unsqueeze(1)))
        visible &= order <= order.unsqueeze(-1)
        mask = torch.zeros(visible.shape, device=device).masked_fill_(~visible, -torch.inf).unsqueeze(1)
        with torch.inference_mode():
            memory = self._network.memory(len(passes), width)
            states = self._network.states(tokens, positions, mask, memory)
            for at, judged in enumerate(passes):
                found[judged.rows] = states[at, judged.last].float().cpu().numpy()


class _Pass:
    """The pairs of one pass: for each column its token, its position, its query and its reformulation (or -1)."""

    def __init__(self) -> None:
        self.columns: list[tuple[int, int, int, int]] = []
        # The row of the result of each pair, and the column of its last token.
        self.rows: list[int] = []
        self.last: list[int] = []

    def put(self, tokens: Sequence[int], start: int, group: int, text: int) -> None:
        """Add the tokens of a query or of a reformulation."""
        self.columns += [(token, position, group, text) for position, token in enumerate(tokens, start)]


def load_pair_judge(folder: Path, model: str = SMOLLM, device: str | None = None) -> PairJudge:
    """Load a judge from a folder with an adapter and a head. By default it uses the GPU if there is one."""
    generator = open_generator(model, "causal", str(folder), None, device)
    try:
        head = _read_head(folder / HEAD, generator.model.config.hidden_size)
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(
            f"{folder / HEAD}: expected the weights of the equivalence head ({reason}); install askew again, or give "
            "adapter= another folder",
            code="damaged-head",
            file=HEAD,
        ) from None
    # In 32 bits: in 16 bits, the second digit of a probability would depend on the other pairs of the pass.
    return PairJudge(Llama(generator.model, torch.float32), generator.tokenizer, head)


def _read_head(file: Path, width: int) -> nn.Module:
    weights = {name: weight.float() for name, weight in load_file(file).items()}
    if not all(torch.isfinite(weight).all() for weight in weights.values()):
        raise ValueError("not all weights are finite numbers")
    head: nn.Module = make_head(width, len(weights["1.weight"]), len(OUTPUTS), 0.1)
    head.load_state_dict(weights)
    return head


MOST_TOKENS = 96
# Scales the products of means, which are small, to about the spread of the other inputs.
_PRODUCT = 10.0


class PairNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """Two logits for each pair of texts. Its parts are named as in the files of adapters."""

    def __init__(self, encoder: Any, hidden: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.enc = encoder
        self.head = make_head(5 * encoder.config.hidden_size, hidden, len(OUTPUTS), dropout)

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
    """Logits of each pair."""
    count_model_calls(len(originals))

    def logits(rows: Sequence[int]) -> Any:
        batch = tokenizer(
            [originals[row] for row in rows], [candidates[row] for row in rows], padding=True, truncation=True,
            max_length=MOST_TOKENS, return_tensors="pt", return_token_type_ids=True,
        )  # fmt: skip
        return network(batch.to(network.enc.device))

    lengths = [len(a) + len(b) for a, b in zip(originals, candidates, strict=True)]
    return logits_by_length(lengths, len(OUTPUTS), batch_size, logits)
