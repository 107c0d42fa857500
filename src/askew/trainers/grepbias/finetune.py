"""Fine-tune encoders for relevance with the penalty of ``pairs.pair_penalty``: all weights, or LoRA adapters.

``full``  a cross-encoder: the query and the document are one sequence, and all weights are trained. It was published
          as the baseline that overfits.
``lora``  a dense encoder: the query and the document are encoded separately, and the logit is a scaled cosine. Only
          low-rank matrices (PEFT) are trained, so it starts from the similarities of the base encoder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, one_of
from askew.core.ranking import Floats, Ints
from askew.core.whole_files import write_whole
from askew.models.encode import LOADING
from askew.models.find import MINILM, cannot_load, locate, need
from askew.models.relevance import open_encoder, room
from askew.trainers.common import Progress, Schedule, run, seed_all
from askew.trainers.grepbias.pairs import Names, batch_pairs, pair_penalty, same_query_pairs

METHODS = ("full", "lora")
_BATCH = 64
# The file with the scale and the threshold, to compute a logit: scale * (cosine - threshold).
LINE = "relevance.json"
# The initial values of the scale and the threshold; both are trained.
FIRST_SCALE, FIRST_THRESHOLD = 10.0, 0.4


@dataclass(frozen=True)
class FinetuneSettings:
    """The settings of fine-tuning, with the alphas: the penalty weights of gender pairs (MF, MN, FN; N is neutral).

    ``pairs`` is batch or query, as in ``heads.HeadSettings``.
    """

    method: str = "lora"
    model: str = MINILM
    alpha_mf: float = 0.0
    alpha_mn: float = 0.0
    alpha_fn: float = 0.0
    pairs: str = "query"
    rank: int = 8

    def __post_init__(self) -> None:
        one_of(self.method, METHODS, "adapter, method=")
        one_of(self.pairs, ("batch", "query"), "adapter, pairs=")
        if self.rank < 1:
            raise ConfigError(f"adapter, rank=: expected 1 or more, found {self.rank}")

    @property
    def alphas(self) -> tuple[float, float, float]:
        """In the order of ``pairs.KINDS``."""
        return self.alpha_mf, self.alpha_mn, self.alpha_fn


# The published schedule for full fine-tuning, and a higher learning rate for the few weights of LoRA.
PACES = {
    "full": Schedule(epochs=2.0, batch_size=8, learning_rate=2e-5, warmup=0.0, weight_decay=0.01, save_every=0),
    "lora": Schedule(epochs=8.0, batch_size=4, learning_rate=1e-3, warmup=0.1, weight_decay=0.01, save_every=0),
}


@dataclass(frozen=True)
class FinetuneTexts:
    """Rows for training or scoring."""

    query: tuple[str, ...]
    document: tuple[str, ...]
    relevant: Any
    gender: Names
    query_id: Names

    def __len__(self) -> int:
        return len(self.query)

    def take(self, rows: Any) -> FinetuneTexts:
        """Some of the rows, by a mask or by positions."""
        places = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        return FinetuneTexts(
            tuple(self.query[i] for i in places), tuple(self.document[i] for i in places), self.relevant[places],
            self.gender[places], self.query_id[places],
        )  # fmt: skip


def make_model(settings: FinetuneSettings, device: str) -> tuple[Any, Any]:
    """A new model and its tokenizer."""
    if settings.method == "lora":
        return _tower(settings, device)
    need("transformers", f"the model {settings.model!r}", "train")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    place = locate(settings.model)
    try:
        model = AutoModelForSequenceClassification.from_pretrained(place, num_labels=1, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    except LOADING as error:
        raise cannot_load(settings.model, "encoder", error) from error
    return model.float().to(device), tokenizer


def _tower(settings: FinetuneSettings, device: str) -> tuple[Any, Any]:
    need("peft", "training with LoRA", "train")
    import torch
    from peft import LoraConfig, get_peft_model

    encoder, tokenizer = open_encoder(settings.model, device)
    shape = {"r": settings.rank, "lora_alpha": 2 * settings.rank, "lora_dropout": 0.1, "target_modules": "all-linear"}
    adapted = get_peft_model(encoder, LoraConfig(**shape))

    class Tower(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        """Encodes two texts with one encoder; the logit is a linear function of their cosine."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = adapted
            self.scale = torch.nn.Parameter(torch.tensor(FIRST_SCALE))
            self.threshold = torch.nn.Parameter(torch.tensor(FIRST_THRESHOLD))

        def vectors(self, batch: Mapping[str, Any]) -> Any:
            states = self.encoder(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).to(states.dtype)
            return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)

        def forward(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> Any:
            return self.scale * ((self.vectors(left) * self.vectors(right)).sum(-1) - self.threshold)

    return Tower().to(device), tokenizer


def scored(model: Any, tokenizer: Any, method: str, queries: Sequence[str], documents: Sequence[str]) -> Any:
    """The logits of a batch, with gradients."""
    device = next(model.parameters()).device
    most = room(model.encoder if method == "lora" else model, tokenizer)

    def ready(*texts: list[str]) -> Any:
        return tokenizer(*texts, padding=True, truncation=True, max_length=most, return_tensors="pt").to(device)

    if method == "lora":
        return model(ready(list(queries)), ready(list(documents)))
    return model(**ready(list(queries), list(documents))).logits[:, 0]


def logits_of(model: Any, tokenizer: Any, method: str, texts: FinetuneTexts) -> Floats:
    """The logit of every row."""
    import torch

    model.eval()
    found = []
    with torch.inference_mode():
        for at in range(0, len(texts), _BATCH):
            part = slice(at, at + _BATCH)
            z = scored(model, tokenizer, method, texts.query[part], texts.document[part])
            found.append(z.float().cpu().numpy())
    return np.concatenate(found).astype(np.float64) if found else np.zeros(0)


def groups_for(texts: FinetuneTexts, pairs: str) -> list[Ints]:
    """The units of a batch: single rows, or all versions of a document together, so that a batch has their pairs."""
    if pairs == "batch":
        return [np.array([row]) for row in range(len(texts))]
    together: dict[tuple[str, bool], list[int]] = {}
    for row in range(len(texts)):
        together.setdefault((str(texts.query_id[row]), bool(texts.relevant[row])), []).append(row)
    return [np.array(rows) for rows in together.values()]


def finetune(
    texts: FinetuneTexts, settings: FinetuneSettings, pace: Schedule, work: Path, identity: Mapping[str, Any],
    device: str = "cpu", progress: Progress | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Train a model; return it with its tokenizer. A stopped training is resumed (see ``common.run``)."""
    need("accelerate", "training", "train")
    from transformers import Trainer, TrainingArguments

    seed_all(pace.seed)
    model, tokenizer = make_model(settings, device)

    class RelevanceTrainer(Trainer):  # type: ignore[misc, unused-ignore]
        """A trainer with the loss of a batch: binary cross-entropy plus the pairwise penalty."""

        def compute_loss(self, model: Any, inputs: Mapping[str, Any], return_outputs: bool = False, **_: Any) -> Any:
            # The seed depends on the step, so that a resumed training samples the same pairs.
            rng = np.random.default_rng([pace.seed, self.state.global_step])
            loss, z = _loss(model, tokenizer, texts, inputs["rows"].cpu().numpy(), settings, rng)
            return (loss, {"logits": z}) if return_outputs else loss

    arguments = TrainingArguments(**pace.arguments(work, device), remove_unused_columns=False)
    examples = [{"rows": rows} for rows in groups_for(texts, settings.pairs)]
    trainer = RelevanceTrainer(model=model, args=arguments, train_dataset=examples, data_collator=_together)
    run(trainer, pace, {**identity, **asdict(settings)}, progress)
    return trainer.model, tokenizer


def _together(examples: list[dict[str, Ints]]) -> dict[str, Any]:
    import torch

    return {"rows": torch.tensor(np.concatenate([one["rows"] for one in examples]))}


def _loss(
    model: Any, tokenizer: Any, texts: FinetuneTexts, rows: Ints, settings: FinetuneSettings, rng: np.random.Generator
) -> tuple[Any, Any]:
    import torch

    part = texts.take(rows)
    z = scored(model, tokenizer, settings.method, part.query, part.document)
    wanted = torch.tensor(np.asarray(part.relevant, np.float32), device=z.device)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, wanted)
    if any(settings.alphas):
        drawn = (
            same_query_pairs(part.query_id, np.asarray(part.relevant, bool), part.gender)
            if settings.pairs == "query"
            else batch_pairs(np.arange(len(part)), part.gender, rng)
        )
        loss = loss + pair_penalty(z, drawn, settings.alphas)
    return loss, z


def save_trained(model: Any, tokenizer: Any, method: str, out: Path) -> None:
    """Save a cross-encoder in the format of transformers, or a sentence encoder with merged adapters."""
    if method == "full":
        model.cpu().save_pretrained(out)
        tokenizer.save_pretrained(out)
        return
    need("sentence_transformers", "saving a sentence encoder", "train")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    merged = out / "merged"
    encoder = model.encoder.merge_and_unload().cpu()
    encoder.save_pretrained(merged)
    tokenizer.save_pretrained(merged)
    transformer = Transformer(str(merged), max_seq_length=room(encoder, tokenizer))
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu").save(str(out))
    shutil.rmtree(merged)
    line = {"scale": model.scale.item(), "threshold": model.threshold.item()}
    write_whole(out / LINE, json.dumps(line) + "\n")
