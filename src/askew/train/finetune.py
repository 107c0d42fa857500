"""Fine-tune a model of transformers to write a target text for an input text.

All weights of a sequence-to-sequence model (T5, mT5, BART) are trained. A causal model gets a LoRA adapter and its base
is not changed, so SmolLM2 can be trained although the weights in its package cannot be written. Only the tokens of the
target count in the loss.
"""

from __future__ import annotations

import math
import re
import string
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, DataError, one_of
from askew.core.measure import Bounds
from askew.core.ranking import Floats
from askew.core.text import stem
from askew.models.find import identify, need
from askew.models.generate import SMOLLM, Generator, Sampling, open_generator
from askew.models.generate import kind_of as kind_of_model
from askew.train.common import Progress, Schedule, choose_device, run, seed_all

MEASURES = ("rouge1", "rougeL", "bleu_sentence", "rougeL_beta", "f1", "exact", "copies")
_BETA = 1.2
_ORDERS = 4
_K = 5  # the parameter of smoothing 4, which is the first step of smoothing 7
_SMALL, _TINY = 1e-9, 1e-15
_OTHER = re.compile(r"[^a-z0-9]+")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def bounds_of(measure: str) -> Bounds:
    """The lowest and highest value of a measure; without an upper bound for measures not in ``pair_scores``."""
    return (0.0, 1.0 if measure in MEASURES and measure != "bleu_sentence" else math.inf)


def pair_scores(wanted: Sequence[str], written: Sequence[str], originals: Sequence[str]) -> dict[str, Floats]:
    """One value for each pair and measure. ``copies`` is 1 if the written query equals the original query."""
    rows = []
    for want, made, asked in zip(wanted, written, originals, strict=True):
        left, right = stemmed(want), stemmed(made)
        rows.append((
            f_measure((Counter(left) & Counter(right)).total(), len(left), len(right)),
            f_measure(common_length(left, right), len(left), len(right)),
            sentence_bleu(want.lower().split(), made.lower().split()),
            rouge_l_beta(want, made), squad_f1(want, made), float(plain(want) == plain(made)),
            float(made.lower().split() == asked.lower().split()),
        ))  # fmt: skip
    columns = np.array(rows, np.float64).reshape(-1, len(MEASURES)).T
    return dict(zip(MEASURES, columns, strict=True))


def f_measure(common: float, ours: int, theirs: int) -> float:
    """The harmonic mean of precision and recall."""
    return 2.0 * common / (ours + theirs) if common else 0.0


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(right) + 1)
    for word in left:
        before = 0
        for i, other in enumerate(right, start=1):
            before, row[i] = row[i], before + 1 if word == other else max(row[i], row[i - 1])
    return row[-1]


def stemmed(text: str) -> list[str]:
    """Words of letters and digits, lower-cased; those of more than three letters stemmed."""
    return [stem(word) if len(word) > 3 else word for word in _OTHER.sub(" ", text.lower()).split()]


def rouge_l_beta(wanted: str, written: str) -> float:
    """ROUGE-L with recall weighted by beta 1.2, on words between blanks."""
    left, right = wanted.lower().split(), written.lower().split()
    common = common_length(left, right)
    if not common:
        return 0.0
    precision, recall = common / len(right), common / len(left)
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def plain(text: str) -> list[str]:
    """Words without punctuation and articles, lower-cased, as SQuAD compares answers."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def squad_f1(wanted: str, written: str) -> float:
    """F of common words, as in SQuAD."""
    left, right = plain(wanted), plain(written)
    return f_measure((Counter(left) & Counter(right)).total(), len(left), len(right))


def sentence_bleu(wanted: Sequence[str], written: Sequence[str]) -> float:
    """Sentence BLEU of four orders with smoothing 7 of Chen and Cherry (2014), as in NLTK."""
    if not set(wanted) & set(written):
        return 0.0
    counts = [_right(wanted, written, n) for n in range(1, _ORDERS + 2)]
    shares = [right / max(1, total) for right, total in counts]
    again = 1
    for i, (right, total) in enumerate(counts[:_ORDERS]):
        if right == 0 and len(written) > 1:
            shares[i] = math.log(len(written)) / (2**again * _K) / max(1, total)
            again += 1
    before, logs = shares[0] + 1, []
    for i in range(_ORDERS):
        # The mean of the previous order (already smoothed), this order and the next one.
        before = (before + shares[i] + shares[i + 1]) / 3
        logs.append(math.log(before))
    short = min(0.0, 1 - len(wanted) / len(written))
    return math.exp(short + math.fsum(logs) / _ORDERS)


def _right(wanted: Sequence[str], written: Sequence[str], n: int) -> tuple[int, int]:
    """The number of correct n-grams, and the number of all n-grams of the written text."""
    ours, theirs = (Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1)) for side in (wanted, written))
    return (ours & theirs).total(), theirs.total()


def bleu_counts(wanted: Sequence[str], written: Sequence[str]) -> Floats:
    """The counts for corpus BLEU of each pair: correct and written n-grams by order, and target and written words."""
    rows = []
    for want, made in zip(wanted, written, strict=True):
        left, right = want.lower().split(), made.lower().split()
        orders = [_right(left, right, n) for n in range(1, _ORDERS + 1)]
        rows.append([*(one for one, _ in orders), *(all_ for _, all_ in orders), len(left), len(right)])
    return np.array(rows, np.float64).reshape(-1, 2 * _ORDERS + 2)


def bleu_mean(counts: Floats) -> Floats:
    """Mean of corpus BLEU-1 to BLEU-4 from summed counts, which are on the last axis."""
    right, total = counts[..., :_ORDERS], counts[..., _ORDERS : 2 * _ORDERS]
    products = np.cumprod((right + _TINY) / (total + _SMALL), axis=-1)
    bleus = products ** (1.0 / np.arange(1, _ORDERS + 1))
    ratio = (counts[..., -1] + _TINY) / (counts[..., -2] + _SMALL)
    with np.errstate(over="ignore"):
        short = np.where(ratio < 1, np.exp(1 - 1 / ratio), 1.0)
    return np.asarray(bleus.mean(axis=-1) * short)


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
    """seq2seq or causal, from the settings or, for ``auto``, from the model."""
    return kind_of_model(settings.model) if settings.kind == "auto" else settings.kind


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
            need("peft", f"the training of an adapter for the model {settings.model!r}", "train")
            from peft import LoraConfig, get_peft_model

            # The weights of the model are frozen, so it does not matter that they come from a quantized file.
            shape = LoraConfig(
                r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.lora_dropout,
                target_modules="all-linear", task_type="CAUSAL_LM",
            )  # fmt: skip
            model = get_peft_model(model, shape)
            # The name of the base, not its local path, so that the adapter does not depend on the machine.
            model.peft_config["default"].base_model_name_or_path = settings.model
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


@contextmanager
def _without_hints() -> Iterator[None]:
    """Suppress PEFT's warnings about the configuration of the base, which is inside the GGUF file."""
    with warnings.catch_warnings():
        for words in ("Could not find a config file", "Unable to fetch remote file"):
            warnings.filterwarnings("ignore", message=words)
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
        from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

        half = made.device.startswith("cuda")
        arguments = Seq2SeqTrainingArguments(
            **own.arguments(work, made.device), optim=settings.optimizer, remove_unused_columns=False, bf16=half
        )
        trainer = Seq2SeqTrainer(
            model=made.model, args=arguments, train_dataset=rows, data_collator=made.collator(),
            processing_class=made.tokenizer,
        )  # fmt: skip
        run(trainer, own, about, progress)
    return made


def epochs_for(examples: int, steps: int, pace: Schedule) -> float:
    """The number of epochs for ``steps`` training steps; the epochs of the schedule if ``steps`` is 0."""
    batches = -(-examples // pace.batch_size)
    return steps / -(-batches // pace.accumulate) if steps else pace.epochs
