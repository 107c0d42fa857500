"""How the rewriting model learns: from rewrites in all directions, then from pairs of better and worse texts.

The first is supervised training on the tokens of the target. The second is direct preference optimization (DPO,
Rafailov et al. 2023), with the loss of the chosen text added so that it does not become less probable.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn import functional

from askew.core.address import without_local_paths
from askew.models.generate import SMOLLM, open_generator
from askew.models.prompts import kind_ending, query_prefix
from training.data import Report, Row, lower_some
from training.graphed import TrainingStep
from training.low_rank import adapt, cosine_pace, linear_pace, merge_peft_tensors, peft_tensors, put_peft_tensors
from training.preferences import Preference

HUB_ID = f"HuggingFaceTB/{SMOLLM}"
ORIGINAL = "original"
IGNORED = -100
_ROWS_WITHOUT_GRADIENTS = 256
_DEV_TOKENS = 72
_REPORT_EVERY = 50
Tokens = tuple[list[int], list[int]]


class LowRankSettings(Protocol):
    """What decides on layers that learn."""

    rank: int
    alpha: int
    dropout: float


class RewriteSettings(LowRankSettings, Protocol):
    """What decides on both kinds of training; see ``train_queries.Settings``."""

    most_tokens: int
    epochs: int
    learning_rate: float
    batch_size: int
    warmup: float
    more_directions: int
    lower_case: float
    weight_decay: float
    largest_gradient: float
    preference_epochs: int
    preference_learning_rate: float
    preference_batch_size: int
    preference_warmup: float
    beta: float
    chosen_weight: float


@dataclass(frozen=True)
class Base:
    """The model that stays as it is, with its tokenizer, on the CPU in 32 bits; and the device to train on."""

    model: Any
    tokenizer: Any
    device: str

    def halved(self, model: Any) -> Any:
        """The model on the device, there in 16 bits (bfloat16) if it is a GPU."""
        return model.to(self.device, torch.bfloat16 if torch.device(self.device).type == "cuda" else torch.float32)

    def adapted(self, settings: LowRankSettings, dropout: float, seed: int | None = None) -> Any:
        """A copy with layers that learn."""
        model = self.halved(copy.deepcopy(self.model))
        if seed is not None:
            torch.manual_seed(seed)
        adapt(model, "model.layers", settings.rank, settings.alpha, dropout)
        return model.train()

    def merged(self, tensors: Mapping[str, Any], settings: LowRankSettings) -> Any:
        """A copy with an adapter added to its weights; they are added in 32 bits."""
        model = copy.deepcopy(self.model)
        merge_peft_tensors(model, tensors, settings.alpha / settings.rank)
        return self.halved(model).eval()


def open_base(model: str, device: str) -> Base:
    """The base model by name or folder. It stays on the CPU, and copies of it go to the device."""
    loaded = open_generator(model, "causal", device="cpu")
    return Base(loaded.model, loaded.tokenizer, device)


def base_name(model: str) -> str:
    """How files name the base model: no path of this machine."""
    return HUB_ID if model == SMOLLM else without_local_paths(model)


def examples_of(row: Row, settings: RewriteSettings, chance: random.Random) -> list[tuple[str, str, str]]:
    """Text, wanted kind and target: the query to each rewrite, and some further directions between the six texts."""
    texts = [(ORIGINAL, row["query"]), *((one["kind"], one["text"]) for one in row["rewrites"])]
    found = [(row["query"], kind, text) for kind, text in texts[1:]]
    for _ in range(settings.more_directions):
        (_, one), (kind, other) = chance.sample(texts, 2)
        found.append((one, kind, other))
    kept = [(one, kind, other) for one, kind, other in found if one.strip().lower() != other.strip().lower()]
    lowered = [(lower_some((one, other), settings.lower_case, chance), kind) for one, kind, other in kept]
    return [(one, kind, other) for (one, other), kind in lowered]


def encode(tokenizer: Any, examples: Sequence[tuple[str, str, str]]) -> list[Tokens]:
    """The tokens of the prompt and of the target of each example."""
    if not examples:
        return []
    prompts = [query_prefix(text) + kind_ending(kind) for text, kind, _ in examples]
    targets = [f" {target}" for *_, target in examples]
    shown, wanted = (tokenizer(texts, add_special_tokens=False)["input_ids"] for texts in (prompts, targets))
    return [(one, [*other, tokenizer.eos_token_id]) for one, other in zip(shown, wanted, strict=True)]


def pack(encoded: Sequence[Tokens], most: int, filler: int) -> tuple[Any, Any]:
    """Tokens and wanted tokens in two tables of ``most`` columns; a prompt that is too long loses its beginning."""
    tokens = torch.full((len(encoded), most), filler)
    wanted = torch.full((len(encoded), most), IGNORED)
    for row, (prompt, whole) in enumerate(encoded):
        target = whole[:most]
        shown = prompt[max(0, len(prompt) + len(target) - most) :]
        end = len(shown) + len(target)
        tokens[row, :end] = torch.tensor(shown + target)
        wanted[row, len(shown) : end] = torch.tensor(target)
    return tokens, wanted


def log_probabilities(model: Any, tokens: Any, wanted: Any) -> tuple[Any, Any, Any]:
    """The log probability of each target, how many tokens it has, and the log probability of the least likely one."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
    labels = wanted[:, 1:]
    flat = logits.reshape(-1, logits.shape[-1]).float()
    losses = functional.cross_entropy(flat, labels.reshape(-1), ignore_index=IGNORED, reduction="none")
    losses = losses.view(labels.shape)
    return -losses.sum(1), (labels != IGNORED).sum(1), -losses.amax(1)


@torch.no_grad()
def token_log_probabilities(model: Any, base: Base, encoded: Sequence[Tokens], most: int) -> Any:
    """Sum, count and least of the log probabilities of the tokens of each target, on the CPU.

    Examples of similar length are read together, so that little is padded.
    """
    lengths = [min(most, len(prompt) + len(target)) for prompt, target in encoded]
    order = sorted(range(len(encoded)), key=lambda row: lengths[row])
    found = torch.zeros(len(encoded), 3)
    for first in range(0, len(order), _ROWS_WITHOUT_GRADIENTS):
        rows = order[first : first + _ROWS_WITHOUT_GRADIENTS]
        part = pack([encoded[row] for row in rows], lengths[rows[-1]], base.tokenizer.eos_token_id)
        read = log_probabilities(model, *(one.to(base.device) for one in part))
        found[rows] = torch.stack([one.float() for one in read], 1).cpu()
    return found


def dev_losses(model: Any, base: Base, rows: Sequence[Row]) -> dict[str, float]:
    """The mean loss of a token of the rewrites of each collection."""
    was_training = model.training
    model.eval()
    found = {}
    for name in sorted({row["collection"] for row in rows}):
        some = [row for row in rows if row["collection"] == name]
        examples = [(row["query"], one["kind"], one["text"]) for row in some for one in row["rewrites"]]
        total, count, _ = token_log_probabilities(model, base, encode(base.tokenizer, examples), _DEV_TOKENS).sum(0)
        found[name] = round(-(total / count).item(), 4)
    model.train(was_training)
    return found


def train_supervised(
    base: Base, rows: Sequence[Row], dev: Sequence[Row], settings: RewriteSettings, seed: int, report: Report
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Learn from rewrites; the tensors of the adapter, and what was measured after each epoch."""
    model, chance, size = base.adapted(settings, settings.dropout, seed), random.Random(seed), settings.batch_size

    def loss(tokens: Any, wanted: Any) -> Any:
        likely, count, _ = log_probabilities(model, tokens, wanted)
        return -likely.sum() / count.sum()

    shape = ((size, settings.most_tokens), torch.long)
    step = TrainingStep(
        model, loss, [shape, shape], settings.learning_rate, settings.weight_decay, settings.largest_gradient,
        base.device,
    )  # fmt: skip
    epochs = [
        encode(base.tokenizer, [one for row in rows for one in examples_of(row, settings, chance)])
        for _ in range(settings.epochs)
    ]
    steps, done, measured = sum(len(one) // size for one in epochs), 0, []
    for number, encoded in enumerate(epochs, start=1):
        chance.shuffle(encoded)
        batches, total = _full(len(encoded), size, "batch_size"), torch.zeros((), device=base.device)
        for first in batches:
            part = pack(encoded[first : first + size], settings.most_tokens, base.tokenizer.eos_token_id)
            total += step(cosine_pace(done, steps, settings.warmup), *part)
            done += 1
        measured.append({"train": round(total.item() / len(batches), 4), "dev": dev_losses(model, base, dev)})
        report(f"supervised, epoch {number} of {settings.epochs}, {done} steps: loss {measured[-1]}")
    return peft_tensors(model), measured


def train_preferences(
    base: Base, start: Mapping[str, Any], pairs: Sequence[Preference], dev: Sequence[Row], settings: RewriteSettings,
    seed: int, report: Report,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # fmt: skip
    """Learn from pairs, from the adapter ``start`` on; the same as of ``train_supervised``."""
    model, chance, size = base.adapted(settings, 0.0), random.Random(seed), settings.preference_batch_size
    put_peft_tensors(model, start)
    chosen = encode(base.tokenizer, [(one.query, one.kind, one.chosen) for one in pairs])
    rejected = encode(base.tokenizer, [(one.query, one.kind, one.rejected) for one in pairs])
    before = torch.stack(
        [token_log_probabilities(model, base, one, settings.most_tokens)[:, 0] for one in (chosen, rejected)], 1
    )
    told = torch.zeros(2, device=base.device)

    def loss(tokens: Any, wanted: Any, reference: Any) -> Any:
        likely, count, _ = log_probabilities(model, tokens, wanted)
        gains = likely.view(2, size).T - reference
        margin = settings.beta * (gains[:, 0] - gains[:, 1])
        told.add_(torch.stack([(margin > 0).float().mean(), gains[:, 0].mean()]).detach())
        return preference_loss(margin) - settings.chosen_weight * (likely[:size] / count[:size]).mean()

    shape = ((2 * size, settings.most_tokens), torch.long)
    step = TrainingStep(
        model, loss, [shape, shape, ((size, 2), torch.float)], settings.preference_learning_rate,
        settings.weight_decay, settings.largest_gradient, base.device,
    )  # fmt: skip
    told.zero_()
    order, batches, done, measured = list(range(len(pairs))), _full(len(pairs), size, "preference_batch_size"), 0, []
    steps = settings.preference_epochs * len(batches)
    for number in range(1, settings.preference_epochs + 1):
        chance.shuffle(order)
        total = torch.zeros((), device=base.device)
        for first in batches:
            rows = order[first : first + size]
            both = [chosen[row] for row in rows] + [rejected[row] for row in rows]
            part = pack(both, settings.most_tokens, base.tokenizer.eos_token_id)
            total += step(linear_pace(done, steps, settings.preference_warmup), *part, before[rows])
            done += 1
            if done % _REPORT_EVERY == 0:
                right, gain = (one / _REPORT_EVERY for one in told.tolist())
                report(f"preferences, {done} of {steps} steps: {right:.3f} in order, chosen {gain:+.3f}")
                told.zero_()
        measured.append({"train": round(total.item() / len(batches), 4), "dev": dev_losses(model, base, dev)})
        report(f"preferences, epoch {number} of {settings.preference_epochs}: loss {measured[-1]}")
    return peft_tensors(model), measured


def preference_loss(margin: Any) -> Any:
    """The loss of DPO: low where chosen texts have gained more than rejected ones."""
    return -functional.logsigmoid(margin).mean()


def _full(rows: int, size: int, name: str) -> range:
    """Where the full batches begin; a batch that is not full would not fit the recorded step."""
    if rows < size:
        raise SystemExit(
            f"{name}: expected as many rows as a batch has or more, found {rows} rows for {size}; lower it"
        )
    return range(0, rows - size + 1, size)
