"""Fine-tune a model of transformers to write a target text for an input text.

All weights of a sequence-to-sequence model (T5, mT5, BART) are trained. A causal model gets a LoRA adapter and its base
is not changed, so SmolLM2 can be trained although the weights in its package cannot be written. Only the tokens of the
target count in the loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError, one_of
from askew.models.encode import LOADING
from askew.models.find import cannot_load, identify, locate, need
from askew.models.generate import SMOLLM, Generator, Sampling, open_generator
from askew.trainers.common import Progress, Schedule, choose_device, run, seed_all

KINDS = ("auto", "seq2seq", "causal")
_IGNORED = -100
_LOSS_BATCH = 16
_LONGEST_LINE = 64


@dataclass(frozen=True)
class TextSettings:
    """The model and its fine-tuning. ``rank`` and ``alpha`` are for the adapter of a causal model.

    ``steps`` above 0 is the number of training steps and replaces the epochs; ``optimizer`` is a name of transformers.
    """

    model: str = SMOLLM
    kind: str = "auto"
    most_input: int = 512
    most_target: int = 64
    rank: int = 8
    alpha: int = 16
    lora_dropout: float = 0.05
    optimizer: str = "adamw_torch"
    steps: int = 0

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, "model, kind")
        fine = min(self.most_input, self.most_target, self.rank, self.alpha) >= 1 and self.steps >= 0
        if not fine or not 0 <= self.lora_dropout < 1:
            raise ConfigError(
                "model: expected most_input, most_target, rank and alpha of 1 or more, steps of 0 or more and "
                f"0 <= lora_dropout < 1; found {self}"
            )


def kind_of(settings: TextSettings) -> str:
    """seq2seq or causal, from the settings or, for ``auto``, from the configuration of the model."""
    if settings.kind != "auto":
        return settings.kind
    if settings.model == SMOLLM:
        return "causal"
    need("transformers", f"the model {settings.model!r}", "train")
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(locate(settings.model), trust_remote_code=False)
    except LOADING as error:
        raise cannot_load(settings.model, "text", error) from error
    return "seq2seq" if config.is_encoder_decoder else "causal"


@dataclass(frozen=True)
class TextModel:
    """A model with its tokenizer, for training and evaluation."""

    kind: str
    model: Any
    tokenizer: Any
    settings: TextSettings
    device: str

    @classmethod
    def load(cls, settings: TextSettings, device: str | None = None) -> TextModel:
        """Load a separate copy of the model; a causal model gets a new adapter."""
        where, kind = choose_device(device), kind_of(settings)
        found = open_generator(settings.model, kind, device=where)
        model = found.model
        # Weights from a GGUF file are plain floats here, but the model is still marked as quantized.
        model.is_quantized = False
        model = model.float()  # in 32 bits, because small updates would be lost in fewer
        if found.tokenizer.pad_token is None:
            found.tokenizer.pad_token = found.tokenizer.eos_token
        if kind == "causal":
            model = _with_adapter(model, settings)
        return cls(kind, model.to(where), found.tokenizer, settings, where)

    def encode(self, prompt: str, target: str) -> dict[str, list[int]]:
        """One example; the tokens of the prompt do not count in the loss."""
        most, seq2seq = self.settings, self.kind == "seq2seq"
        shown = self.tokenizer(prompt, truncation=True, max_length=most.most_input, add_special_tokens=seq2seq)
        given = list(shown["input_ids"])
        if seq2seq:
            wanted = self.tokenizer(text_target=target, truncation=True, max_length=most.most_target)["input_ids"]
            return {"input_ids": given, "attention_mask": [1] * len(given), "labels": list(wanted)}
        # The target begins with a blank, because the prompt ends without one; the end token is trained too.
        said = self.tokenizer(" " + target, truncation=True, max_length=most.most_target, add_special_tokens=False)
        wanted = [*said["input_ids"], self.tokenizer.eos_token_id]
        both = given + wanted
        return {"input_ids": both, "attention_mask": [1] * len(both), "labels": [_IGNORED] * len(given) + wanted}

    def collator(self) -> Any:
        """Pads a batch of examples."""
        from transformers import DataCollatorForSeq2Seq

        model = self.model if self.kind == "seq2seq" else None
        return DataCollatorForSeq2Seq(self.tokenizer, model=model, padding=True, label_pad_token_id=_IGNORED)

    def losses(self, prompts: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The mean loss per token of each target."""
        import torch

        self.model.eval()
        collate, found = self.collator(), []
        rows = [self.encode(prompt, target) for prompt, target in zip(prompts, targets, strict=True)]
        for start in range(0, len(rows), _LOSS_BATCH):
            batch = collate(rows[start : start + _LOSS_BATCH]).to(self.device)
            with torch.inference_mode():
                logits = self.model(**batch).logits.float()
            labels = batch["labels"]
            if self.kind == "causal":
                logits, labels = logits[:, :-1], labels[:, 1:]
            each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
            there = labels != _IGNORED
            found += ((each * there).sum(1) / there.sum(1).clamp(min=1)).tolist()
        return found

    def generator(self) -> Generator:
        """The model as a generator, for inference."""
        self.model.eval()
        return Generator("", self.model, self.tokenizer, self.kind == "seq2seq", self.settings.most_input)

    def write(self, prompts: Sequence[str]) -> list[str]:
        """The text of greedy decoding for each prompt."""
        writer = self.generator()
        how = Sampling(max_new_tokens=min(self.settings.most_target, _LONGEST_LINE), temperature=0.0)
        return [" ".join(writer.sample(prompt, 1, 0, how)[0].split()) for prompt in prompts]

    def save(self, folder: Path) -> None:
        """Write a folder that transformers can open; for a causal model, only the adapter is written."""
        folder.mkdir(parents=True, exist_ok=True)
        with _without_hints():
            self.model.save_pretrained(folder)
        if self.kind == "seq2seq":
            self.tokenizer.save_pretrained(folder)


def _with_adapter(model: Any, settings: TextSettings) -> Any:
    need("peft", f"the training of an adapter for the model {settings.model!r}", "train")
    from peft import LoraConfig, get_peft_model

    # The weights of the model are frozen, so it does not matter that they come from a quantized file.
    shape = LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.lora_dropout, target_modules="all-linear",
        task_type="CAUSAL_LM",
    )  # fmt: skip
    made = get_peft_model(model, shape)
    # The name of the base, not its local path, so that the adapter does not depend on the machine.
    made.peft_config["default"].base_model_name_or_path = settings.model
    return made


@contextmanager
def _without_hints() -> Iterator[None]:
    """Suppress PEFT's warnings about the configuration of the base, which is inside the GGUF file."""
    with warnings.catch_warnings():
        for said in ("Could not find a config file", "Unable to fetch remote file"):
            warnings.filterwarnings("ignore", message=said)
        yield


def fit_texts(
    prompts: Sequence[str], targets: Sequence[str], settings: TextSettings, pace: Schedule, work: Path,
    device: str | None = None, identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> TextModel:  # fmt: skip
    """Train on pairs of texts. If it was stopped, the same call resumes from the last complete checkpoint."""
    if not prompts:
        raise DataError("training: expected pairs of texts, found none")
    where = choose_device(device)
    seed_all(pace.seed)
    made = TextModel.load(settings, where)
    rows = [made.encode(prompt, target) for prompt, target in zip(prompts, targets, strict=True)]
    own = replace(pace, epochs=epochs_for(len(rows), settings.steps, pace))
    about = {**asdict(settings), "model": identify(settings.model), **(identity or {})}
    with _without_hints():
        run(_trainer(made, rows, own, work), own, about, progress)
    return made


def epochs_for(examples: int, steps: int, pace: Schedule) -> float:
    """The number of epochs for ``steps`` training steps; the epochs of the schedule if ``steps`` is 0."""
    batches = -(-examples // pace.batch_size)
    return steps / -(-batches // pace.accumulate) if steps else pace.epochs


def _trainer(made: TextModel, rows: list[dict[str, list[int]]], pace: Schedule, work: Path) -> Any:
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    arguments = Seq2SeqTrainingArguments(
        **pace.arguments(work, made.device),
        optim=made.settings.optimizer,
        remove_unused_columns=False,
        bf16=made.device.startswith("cuda"),
    )
    return Seq2SeqTrainer(
        model=made.model, args=arguments, train_dataset=rows, data_collator=made.collator(),
        processing_class=made.tokenizer,
    )  # fmt: skip
