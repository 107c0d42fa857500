"""Train cross-encoders: models that read two texts together and return one score.

An example is a group: a text on the left (a query), texts on the right (its relevant document first, then negatives),
and their labels. The losses, where s+ is the score of the relevant document and s- the
score of a negative:

    bce         binary cross-entropy of each score against its label
    hinge       mean of max(0, margin - s+ + s-)
    bias-aware  mean of max(0, margin - s+ + s- + lean_weight * lean of the negative); published by Seyedsalehi et al.
                (2022) with the boolean lean and a weight of 1
    lean-list   bce, plus lean_weight times the mean lean of the group, weighted by the softmax of the scores

The models are trained with the trainer of transformers. They are saved as folders that the class CrossEncoder of
sentence-transformers can open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, one_of
from askew.models.find import MINILM, identify
from askew.models.relevance import room
from askew.train.common import Progress, Schedule, choose_device, open_classifier, run, seed_all

if TYPE_CHECKING:
    from askew.core.ranking import Floats, Ints


_STEEPNESS = 10.0


def ramp(done: float) -> float:
    """The strength of the reversal after a share of the training; it rises from 0 to 1 (Ganin et al. 2016)."""
    return 2.0 / (1.0 + math.exp(-_STEEPNESS * done)) - 1.0


def with_adversary(ranker: Any, classes: int, strength: float) -> Any:
    """The ranker with an adversary, after Rekabsaz, Kopeinik and Schedl (2021).

    ``forward`` is that of the ranker and also returns its hidden states.
    """
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


LOSSES = ("bce", "hinge", "bias-aware", "lean-list")
# Batches are padded to a multiple of this width, which is faster on the matrix units of a GPU.
_ALIGNED = 8


@dataclass(frozen=True)
class RankerSettings:
    """The model and the loss. ``adversary`` above 0 is the strength of an adversary that predicts the lean."""

    model: str = MINILM
    loss: str = "bce"
    margin: float = 1.0
    lean_weight: float = 1.0
    adversary: float = 0.0
    most_tokens: int = 256
    most_left_tokens: int = 64

    def __post_init__(self) -> None:
        one_of(self.loss, LOSSES, "loss")
        for name in ("margin", "lean_weight", "adversary"):
            if getattr(self, name) < 0:
                raise ConfigError(f"⟨{name}⟩: expected a number of 0 or more, found {getattr(self, name)}")
        if not 8 <= self.most_left_tokens <= self.most_tokens - 8:
            raise ConfigError(
                "⟨most_left_tokens⟩ (the largest number of tokens of the query): expected a number from 8 to "
                f"{self.most_tokens - 8}, because ⟨most_tokens⟩ is {self.most_tokens}; found {self.most_left_tokens}"
            )


# The published cross-encoder script: batches of 32 pairs, one epoch, learning rate 2e-5, 20 million pairs, a warm-up of
# 5,000 steps. With less data, the warm-up is a share of the steps. Groups of five documents give the script's ratio of
# 1 relevant document to 4 negatives.
PACE = Schedule(epochs=1.0, batch_size=8, learning_rate=2e-5, warmup=0.1, weight_decay=0.01, save_every=2000)


def first_tokens(tokenizer: Any, texts: Sequence[str], most: int) -> list[str]:
    """The beginning of each text, up to its token number ``most``."""
    made = tokenizer(
        list(texts), add_special_tokens=False, truncation=True, max_length=most, return_offsets_mapping=True
    )
    return [text[: places[-1][1]] if places else "" for text, places in zip(texts, made["offset_mapping"], strict=True)]


@dataclass(frozen=True)
class Examples:
    """Groups: the left text of each, its right texts (padded with -1) and their labels."""

    left: Ints
    right: Ints
    labels: Floats
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class RankerTexts:
    """The texts of both sides; ``lean`` and ``group`` have a value for each right text, if the loss needs them."""

    left: Sequence[str]
    right: Sequence[str]
    lean: Floats | None = None
    group: Ints | None = None


class CrossEncoder:
    """A model that returns one score for two texts, with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, settings: RankerSettings, device: str) -> None:
        if tokenizer.num_special_tokens_to_add(pair=True) <= tokenizer.num_special_tokens_to_add(pair=False):
            raise ConfigError(
                "tokenizer: expected a tokenizer that puts special tokens between the two texts of a pair, found no "
                "such tokens"
            )
        self.model, self.tokenizer, self.settings, self.device = model, tokenizer, settings, device

    @classmethod
    def load(cls, settings: RankerSettings, device: str | None = None) -> CrossEncoder:
        """Load an encoder, with a new head that depends on the current seed, or a trained cross-encoder."""
        where = choose_device(device)
        # In 32 bits, whatever the file has: in fewer bits, small updates of the weights would be lost.
        model, tokenizer = open_classifier(settings.model, "cross", num_labels=1, dtype="float32")
        # Scores are logits: after a sigmoid, high scores would round to the same value.
        model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
        return cls(model.to(where), tokenizer, settings, where)

    def batch(self, left: Sequence[str], right: Sequence[str]) -> dict[str, Any]:
        """The input of the model for pairs of texts; a right text is cut if the pair has too many tokens."""
        most = self.settings.most_tokens
        made = self.tokenizer(
            first_tokens(self.tokenizer, left, self.settings.most_left_tokens), list(right), truncation="only_second",
            max_length=most, padding=True, pad_to_multiple_of=_ALIGNED, return_tensors="pt",
        )  # fmt: skip
        width = made["input_ids"].shape[1]
        places = room(self.model, self.tokenizer, width)
        if places < width:
            raise ConfigError(
                f"model {self.settings.model!r}: the model reads at most {places} tokens, but an input has {width} "
                "tokens; use another model, or set a smaller ⟨most_tokens⟩ (for a selector: smaller ⟨text_tokens⟩ and "
                "⟨passage_tokens⟩)"
            )
        return dict(made)

    def score(self, left: Sequence[str], right: Sequence[str], batch_size: int = 256) -> npt.NDArray[Any]:
        """One score for each pair of texts. The longest texts come first, so that a lack of memory shows early.

        Scores are computed in 32 bits, because in 16 bits many near scores would be ties.
        """
        import torch

        self.model.eval()
        order = sorted(range(len(left)), key=lambda pair: -len(left[pair]) - len(right[pair]))
        scores = np.zeros(len(order), np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), batch_size):
                pairs = order[start : start + batch_size]
                inputs = self.batch([left[pair] for pair in pairs], [right[pair] for pair in pairs])
                answer = self.model(**{name: values.to(self.device) for name, values in inputs.items()})
                scores[pairs] = answer.logits.float().reshape(-1).cpu().numpy()
        return scores

    def save(self, folder: Path) -> None:
        """Write a folder that sentence-transformers can open as a CrossEncoder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def fit(
    texts: RankerTexts, examples: Examples, settings: RankerSettings, pace: Schedule, work: Path,
    device: str | None = None, identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> CrossEncoder:  # fmt: skip
    """Train a cross-encoder."""
    _check(texts, examples, settings)
    seed_all(pace.seed)
    encoder = CrossEncoder.load(settings, device)
    import torch
    from transformers import Trainer, TrainingArguments

    network = encoder.model
    if settings.adversary:
        assert texts.group is not None
        network = with_adversary(encoder.model, int(texts.group.max()) + 1, settings.adversary).to(encoder.device)
    lean = np.zeros(len(texts.right)) if texts.lean is None else texts.lean
    group = np.zeros(len(texts.right), np.int64) if texts.group is None else texts.group

    def collate(numbers: list[int]) -> dict[str, Any]:
        """The batch of some examples: every right text with its left text, and the inputs of the losses."""
        some = np.asarray(numbers)
        chosen = examples.right[some]
        docs = np.maximum(chosen, 0).reshape(-1)
        left = [texts.left[row] for row in np.repeat(examples.left[some], chosen.shape[1]).tolist()]
        batch = encoder.batch(left, [texts.right[row] for row in docs.tolist()])
        batch["labels"] = torch.from_numpy(examples.labels[some].astype(np.float32))
        batch["there"] = torch.from_numpy((chosen >= 0).astype(np.float32))
        batch["lean"] = torch.from_numpy(lean[docs].reshape(chosen.shape).astype(np.float32))
        batch["group"] = torch.from_numpy(group[docs])
        return batch

    class Ranks(Trainer):  # type: ignore[misc, unused-ignore]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
            labels, there, lean, group = (inputs.pop(name) for name in ("labels", "there", "lean", "group"))
            answer = model(**inputs)
            scores = answer.logits.float().reshape(labels.shape)
            loss = loss_of(settings, scores, labels, there, lean)
            if settings.adversary:
                done = float(self.state.global_step / max(1, self.state.max_steps))
                loss = loss + model.adversary_loss(answer, group, there.reshape(-1), done)
            return (loss, answer) if return_outputs else loss

    # Training steps on a GPU are computed in 16 bits; the weights are stored in 32 bits.
    half = encoder.device.startswith("cuda")
    arguments = TrainingArguments(**pace.arguments(work, encoder.device), bf16=half, remove_unused_columns=False)
    rows = list(range(len(examples)))
    trainer = Ranks(model=network, args=arguments, train_dataset=rows, data_collator=collate)
    # The loss is already a mean over the batch, whatever arguments the forward of the model accepts.
    trainer.model_accepts_loss_kwargs = False
    about = {**asdict(settings), "model": identify(settings.model), **(identity or {})}
    run(trainer, pace, about, progress)
    # The trainer replaces forward by a version in 16 bits; scores are computed in 32 bits.
    trainer.accelerator.unwrap_model(network, keep_fp32_wrapper=False)
    return encoder


def _check(texts: RankerTexts, examples: Examples, settings: RankerSettings) -> None:
    if not len(examples):
        why = ", ".join(f"{count} queries with {reason}" for reason, count in examples.left_out.items())
        raise DataError(f"training: expected examples, found none ({why or 'there are no queries'})")
    if not (examples.labels > 0).any() or (examples.labels[examples.right >= 0] > 0).all():
        found = "negative" if not (examples.labels > 0).any() else "positive"
        raise DataError(f"training: expected positive and negative examples, found only {found} examples")
    if settings.loss in ("bias-aware", "lean-list") and texts.lean is None:
        raise ConfigError(f"loss {settings.loss!r}: it needs the lean of the documents, found none")
    if settings.loss in ("hinge", "bias-aware") and examples.right.shape[1] < 2:
        raise ConfigError(
            f"loss {settings.loss!r}: expected examples of one relevant document and several other documents, found "
            "pairs of a query and one document"
        )
    if settings.adversary and texts.group is None:
        raise ConfigError("adversary: expected the group that each document leans toward, found none")


def loss_of(settings: RankerSettings, scores: Any, labels: Any, there: Any, lean: Any) -> Any:
    """The loss of groups of scores; padding does not count."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    if settings.loss in ("hinge", "bias-aware"):
        more = settings.lean_weight * lean[:, 1:] if settings.loss == "bias-aware" else 0.0
        short = torch.relu(settings.margin - scores[:, :1] + scores[:, 1:] + more)
        return (short * there[:, 1:]).sum() / there[:, 1:].sum().clamp(min=1.0)
    each = binary_cross_entropy_with_logits(scores, labels, reduction="none")
    loss = (each * there).sum() / there.sum()
    if settings.loss == "lean-list":
        shown = torch.softmax(scores.masked_fill(there == 0, -torch.inf), dim=1)
        loss = loss + settings.lean_weight * (shown * lean).sum(dim=1).mean()
    return loss
