"""train adapter: train a relevance model with little gender preference on GrepBiasIR."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, one_of
from askew.core.files import fingerprint, write_whole
from askew.core.ranking import Flags, Floats, Ints
from askew.models.find import MINILM, identify, need
from askew.models.relevance import FILE, LAYOUTS, Vectors, encode_pairs, open_encoder, room
from askew.train.card import WORK, Card, claim
from askew.train.common import (
    GREPBIASIR,
    Progress,
    Schedule,
    Trained,
    TrainingStopped,
    choose_device,
    finished,
    found_before,
    open_classifier,
    remembered,
    run,
    seed_all,
)
from askew.train.grepbias import (
    SIDES,
    GrepBias,
    MethodLogits,
    accuracy_table,
    difference,
    difference_table,
    fractions_table,
    group_rows,
    read_grepbias,
    summarize,
    summary_table,
)

Names = npt.NDArray[np.str_]
# The kinds of a pair of genders, in the order of their alphas (the weights of the penalty).
KINDS = ("MF", "MN", "FN")
_KIND_OF = {frozenset(kind): at for at, kind in enumerate(KINDS)}
GRID = tuple(np.arange(0.0, 2.01, 0.25).tolist())


@dataclass(frozen=True)
class LabeledRows:
    """Pairs of a query and a document: encodings or texts (query, document), relevance, gender and id of the query."""

    inputs: npt.NDArray[Any]
    relevant: Flags
    gender: Names
    query: Names

    def __len__(self) -> int:
        return len(self.relevant)

    def take(self, rows: Flags | Ints) -> LabeledRows:
        """Some of the rows."""
        return LabeledRows(self.inputs[rows], self.relevant[rows], self.gender[rows], self.query[rows])


def alpha_grid(values: tuple[float, ...] = GRID) -> Floats:
    """All settings of the three alphas, one per row; the first one has no penalty."""
    return np.array(list(product(values, repeat=len(KINDS))))


def pair_penalty(logits: Any, pairs: Ints, alphas: Any) -> Any:
    """The pairwise penalty R = mean of alpha(g, g') (z - z')^2 over pairs of texts of different groups, for each head.

    ``logits`` are rows by heads, ``alphas`` are heads by kinds. Without pairs the penalty is 0. A single head may be
    given as a vector of logits and a vector of alphas. A pair is two rows and its kind, an index into the alphas.
    """
    import torch

    z = logits if logits.ndim == 2 else logits[:, None]
    weights = torch.as_tensor(alphas, dtype=z.dtype, device=z.device).reshape(z.shape[1], -1)
    if len(pairs) == 0:
        return z.sum() * 0.0 if logits.ndim == 1 else z.sum(0) * 0.0
    left, right, kind = torch.as_tensor(pairs.T, device=z.device)
    penalty = (weights.T[kind] * (z[left] - z[right]) ** 2).mean(0)
    return penalty[0] if logits.ndim == 1 else penalty


def same_query_pairs(rows: LabeledRows) -> Ints:
    """All pairs of versions of the same document: same query, same relevance, different genders."""
    return _of(rows.gender, [pair for versions in document_versions(rows) for pair in combinations(versions, 2)])


def document_versions(rows: LabeledRows) -> list[list[int]]:
    """The rows of each document: its versions have the same query and the same relevance."""
    versions: dict[tuple[str, bool], list[int]] = {}
    for row, key in enumerate(zip(rows.query.tolist(), rows.relevant.tolist(), strict=True)):
        versions.setdefault(key, []).append(row)
    return list(versions.values())


def batch_pairs(rows: Ints, gender: Names, rng: np.random.Generator) -> Ints:
    """Pairs of different genders within a batch, sampled without replacement: a row is in at most one pair.

    The rows of the pairs are positions within the batch.
    """
    own = gender[rows]
    order = [place for place in rng.permutation(len(rows)).tolist() if own[place] in SIDES]
    drawn = []
    while order:
        first = order.pop()
        other = next((at for at in reversed(range(len(order))) if own[order[at]] != own[first]), None)
        if other is not None:
            drawn.append((first, order.pop(other)))
    return _of(own, drawn)


def _of(gender: Names, drawn: list[tuple[int, int]]) -> Ints:
    """The pairs of different genders among these, each with its kind."""
    kinds = [(*pair, _KIND_OF.get(frozenset(gender[list(pair)].tolist()), -1)) for pair in drawn]
    return np.array([pair for pair in kinds if pair[2] >= 0], np.int64).reshape(-1, 3)


PAIR_SETS = ("batch", "query")
STARTS = ("uniform", "zero")


@dataclass(frozen=True)
class HeadSettings:
    """The training of a head; the defaults are the published settings.

    ``batch_size``  rows per step; 0 means all rows: gradient descent to the unique minimum, the same for every seed.
    ``ridge``       L2 penalty: ridge / 2 times the squared norm of the weights, divided by the number of rows.
    ``start``       initial weights: uniform (as in PyTorch's linear layer) or zero.
    ``pairs``       pairs of the penalty: batch (published: any two rows of a batch) or query (the versions of one
                    document, which differ only in gender).
    ``decay``       whether the learning rate falls to zero along a cosine.
    """

    epochs: int = 8
    learning_rate: float = 1e-4
    batch_size: int = 8
    weight_decay: float = 0.01
    ridge: float = 0.0
    start: str = "uniform"
    pairs: str = "batch"
    decay: bool = False
    seed: int = 7

    def __post_init__(self) -> None:
        one_of(self.pairs, PAIR_SETS, "adapter, ⟨pairs⟩")
        one_of(self.start, STARTS, "adapter, ⟨start⟩")
        fine = self.epochs >= 1 and self.batch_size >= 0 and self.learning_rate > 0
        if not fine or min(self.weight_decay, self.ridge) < 0:
            raise ConfigError(
                "adapter: expected ⟨epochs⟩ and ⟨learning_rate⟩ to be above 0, and ⟨batch_size⟩, ⟨weight_decay⟩ and "
                f"⟨ridge⟩ to be 0 or more; found {self}"
            )


PUBLISHED = HeadSettings()
CONVERGED = HeadSettings(
    epochs=200, learning_rate=0.1, batch_size=0, weight_decay=0.0, ridge=1.0, start="zero", pairs="query", decay=True
)


@dataclass(frozen=True)
class Heads:
    """Weights (heads by features) and biases."""

    weights: Floats
    bias: Floats

    def logits(self, encodings: npt.NDArray[np.float32]) -> Floats:
        """The logits, rows by heads."""
        return np.asarray(encodings.astype(np.float64) @ self.weights.T + self.bias)


def fit_heads(rows: LabeledRows, alphas: Floats, settings: HeadSettings) -> Heads:
    """Train one head for each row of ``alphas``; the loss is mean binary cross-entropy plus the pairwise penalty."""
    import torch

    x, y = (torch.tensor(one, dtype=torch.float32) for one in (rows.inputs, rows.relevant))
    penalties = torch.tensor(alphas, dtype=torch.float32)
    versions = same_query_pairs(rows)
    size = settings.batch_size or len(rows)
    bound = 0.0 if settings.start == "zero" else x.shape[1] ** -0.5
    start = np.random.default_rng(settings.seed).uniform(-bound, bound, x.shape[1] + 1)
    first = torch.tensor(start, dtype=torch.float32)
    weights = first[:-1].repeat(len(alphas), 1).requires_grad_()
    bias = first[-1:].repeat(len(alphas)).requires_grad_()
    rng = np.random.default_rng([settings.seed, 1])

    def logits_of_rows(batch: Ints) -> Any:
        return x[batch] @ weights.T + bias

    def penalty(batch: Ints, z: Any) -> Any:
        if settings.pairs == "batch":
            return pair_penalty(z, batch_pairs(batch, rows.gender, rng), penalties)
        if not settings.batch_size:
            return pair_penalty(z, versions, penalties)
        chosen = versions[rng.choice(len(versions), min(size, len(versions)), replace=False)]
        used, places = np.unique(chosen[:, :2], return_inverse=True)
        return pair_penalty(logits_of_rows(used), np.column_stack([places.reshape(-1, 2), chosen[:, 2]]), penalties)

    optimizer = torch.optim.AdamW([weights, bias], lr=settings.learning_rate, weight_decay=settings.weight_decay)
    steps = settings.epochs * -(-len(rows) // size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps) if settings.decay else None
    for _ in range(settings.epochs):
        order = rng.permutation(len(rows)) if settings.batch_size else np.arange(len(rows))
        for begin in range(0, len(order), size):
            batch = order[begin : begin + size]
            z = logits_of_rows(batch)
            wrong = torch.nn.functional.binary_cross_entropy_with_logits(
                z, y[batch][:, None].expand_as(z), reduction="none"
            ).mean(0)
            loss = wrong + penalty(batch, z) + settings.ridge / (2 * len(rows)) * (weights**2).sum(1)
            if not bool(torch.isfinite(loss).all()):
                found = loss.sum().item()
                raise TrainingStopped(f"adapter: expected a finite loss, found {found}; try a smaller learning_rate")
            optimizer.zero_grad()
            loss.sum().backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()
    return Heads(weights.detach().double().numpy(), bias.detach().double().numpy())


FOLDS = 5


def query_folds(query: Names, folds: int, seed: int) -> Ints:
    """The fold of each row; all documents of a query are in the same fold."""
    names = np.unique(query)
    if len(names) < folds:
        raise DataError(f"folds: expected at least {folds} queries, one for each fold, found {len(names)}")
    order = np.random.default_rng([seed, len(names)]).permutation(len(names))
    fold_of = np.empty(len(names), np.int64)
    fold_of[order] = np.arange(len(names)) % folds
    return np.asarray(fold_of[np.searchsorted(names, query)])


def choose_alphas(
    rows: LabeledRows, settings: HeadSettings, grid: Floats | None = None, most_loss: float = 0.02
) -> tuple[float, ...]:
    """The alphas for a training category, by cross-validation inside it."""
    alphas = alpha_grid() if grid is None else grid
    return tuple(alphas[_least_lean(held_out_logits(rows, alphas, settings), rows, alphas, most_loss)].tolist())


def _least_lean(held_out: Floats, rows: LabeledRows, alphas: Floats, most_loss: float) -> int:
    """The row of the grid with the least held-out lean among those that lose at most ``most_loss`` of accuracy."""
    if alphas[0].any():
        raise DataError(
            "alphas (the weights of the penalty): expected zeros in the first row, because the first row is the "
            f"training without a penalty; found {alphas[0].tolist()}"
        )
    accuracy = ((held_out > 0) == rows.relevant[:, None]).mean(0)
    lean = relative_gap(held_out, rows)
    allowed = np.flatnonzero(accuracy >= accuracy[0] - most_loss)
    return int(allowed[np.lexsort((alphas[allowed].sum(1), -accuracy[allowed], lean[allowed]))[0]])


def held_out_logits(rows: LabeledRows, alphas: Floats, settings: HeadSettings, folds: int = FOLDS) -> Floats:
    """The logits of each row (rows by heads) by heads that were trained on other queries."""
    fold = query_folds(rows.query, folds, settings.seed)
    found = np.zeros((len(rows), len(alphas)))
    for k in range(folds):
        heads = fit_heads(rows.take(fold != k), alphas, settings)
        found[fold == k] = heads.logits(rows.inputs[fold == k])
    return found


def relative_gap(logits: Floats, rows: LabeledRows) -> Floats:
    """The root mean squared difference between the male and the female version of a relevant document, in standard
    deviations of the logits: one number for each head. It needs no threshold, so for few queries it is more precise
    than a count of the higher-ranked versions.
    """
    left, right, kind = same_query_pairs(rows).T
    chosen = (kind == KINDS.index("MF")) & rows.relevant[left]
    if not chosen.any():
        raise DataError(
            "choice of the alphas (weights of the penalty): expected queries with a male and a female version of a "
            "relevant document, found none"
        )
    gaps = np.sqrt(((logits[left[chosen]] - logits[right[chosen]]) ** 2).mean(0))
    return np.asarray(gaps / np.maximum(logits.std(0), 1e-12))


def zero_shot_heads(
    rows: LabeledRows, category: Names, names: Sequence[str], settings: HeadSettings,
    seeds: Sequence[int] = (7,), grid: Floats | None = None, most_loss: float = 0.02, progress: Progress | None = None,
) -> MethodLogits:  # fmt: skip
    """Run the complete protocol with linear heads; without a grid there is no penalty."""
    alphas = np.zeros((1, len(KINDS))) if grid is None else grid
    logits = np.zeros((len(seeds), len(names), len(rows)))
    inside = np.zeros((len(seeds), len(rows)))
    chosen: list[tuple[tuple[float, ...], ...]] = []
    for s, seed in enumerate(seeds):
        own = replace(settings, seed=seed)
        picked = []
        for c, name in enumerate(names):
            there = category == name
            training = rows.take(there)
            held_out = held_out_logits(training, alphas, own)
            picked.append(tuple(alphas[_least_lean(held_out, training, alphas, most_loss)].tolist()))
            logits[s, c] = fit_heads(training, np.array([picked[-1]]), own).logits(rows.inputs)[:, 0]
            # The held-out logit of each row, with alphas chosen on the other folds only.
            fold, rows_there = query_folds(training.query, FOLDS, seed), np.flatnonzero(there)
            for k in range(FOLDS):
                others = fold != k
                row = _least_lean(held_out[others], training.take(others), alphas, most_loss)
                inside[s, rows_there[~others]] = held_out[~others, row]
            if progress is not None:
                progress(s * len(names) + c + 1, len(seeds) * len(names), "training heads")
        chosen.append(tuple(picked))
    return MethodLogits("head", logits, inside, tuple(chosen))


_FOLD_SEED = 7


def cosines(apart: Vectors) -> npt.NDArray[np.float32]:
    """The cosine of each row of features of the layout ``apart``, where the last feature is a scaled cosine."""
    width = np.sqrt(apart.shape[1] - 1)
    return np.asarray(apart[:, -1] * 4 / width, np.float32)


def best_threshold(cosine: Floats, relevant: Flags) -> float:
    """The threshold with the most correct rows: a midpoint between two adjacent values; the median one of equals."""
    values = np.unique(cosine)
    between = np.concatenate([values[:1] - 1.0, (values[:-1] + values[1:]) / 2, values[-1:] + 1.0])
    right = ((cosine[None, :] > between[:, None]) == relevant).sum(1)
    best = np.flatnonzero(right == right.max())
    return float(between[best[len(best) // 2]])


def zero_shot_cosine(
    cosine: Floats, relevant: Flags, query: Names, category: Names, names: Sequence[str]
) -> MethodLogits:
    """The protocol for the untrained baseline: a logit is the cosine minus the threshold of the training category."""
    logits = np.zeros((1, len(names), len(cosine)))
    inside = np.zeros((1, len(cosine)))
    for c, name in enumerate(names):
        there = np.flatnonzero(category == name)
        logits[0, c] = cosine - best_threshold(cosine[there], relevant[there])
        fold = query_folds(query[there], FOLDS, _FOLD_SEED)
        for k in range(FOLDS):
            own, others = there[fold == k], there[fold != k]
            inside[0, own] = cosine[own] - best_threshold(cosine[others], relevant[others])
    return MethodLogits("cosine", logits, inside)


FINETUNE_METHODS = ("full", "lora")
_BATCH = 64
# The file with the scale and the threshold, to compute a logit: scale * (cosine - threshold).
LINE = "relevance.json"
# The initial values of the scale and the threshold; both are trained.
FIRST_SCALE, FIRST_THRESHOLD = 10.0, 0.4


@dataclass(frozen=True)
class FinetuneSettings:
    """The settings of fine-tuning, with the alphas: the penalty weights of gender pairs (MF, MN, FN; N is neutral).

    ``pairs`` is batch or query, as in ``HeadSettings``.
    """

    method: str = "lora"
    model: str = MINILM
    alpha_mf: float = 0.0
    alpha_mn: float = 0.0
    alpha_fn: float = 0.0
    pairs: str = "query"
    rank: int = 8

    def __post_init__(self) -> None:
        one_of(self.method, FINETUNE_METHODS, "adapter, ⟨method⟩")
        one_of(self.pairs, PAIR_SETS, "adapter, ⟨pairs⟩")
        if self.rank < 1:
            raise ConfigError(f"adapter, ⟨rank⟩: expected 1 or more, found {self.rank}")

    @property
    def alphas(self) -> tuple[float, float, float]:
        """In the order of ``KINDS``."""
        return self.alpha_mf, self.alpha_mn, self.alpha_fn


# The published schedule for full fine-tuning, and a higher learning rate for the few weights of LoRA.
PACES = {
    "full": Schedule(epochs=2.0, batch_size=8, learning_rate=2e-5, warmup=0.0, weight_decay=0.01, save_every=0),
    "lora": Schedule(epochs=8.0, batch_size=4, learning_rate=1e-3, warmup=0.1, weight_decay=0.01, save_every=0),
}


def make_model(settings: FinetuneSettings, device: str) -> tuple[Any, Any]:
    """A new model and its tokenizer."""
    if settings.method == "full":
        model, tokenizer = open_classifier(settings.model, "encoder", num_labels=1)
        return model.to(device), tokenizer
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


def scored(model: Any, tokenizer: Any, method: str, texts: LabeledRows) -> Any:
    """The logits of a batch, with gradients."""
    device = next(model.parameters()).device
    most = room(model.encoder if method == "lora" else model, tokenizer)

    def ready(*texts: list[str]) -> Any:
        return tokenizer(*texts, padding=True, truncation=True, max_length=most, return_tensors="pt").to(device)

    queries, documents = texts.inputs.T.tolist()
    if method == "lora":
        return model(ready(queries), ready(documents))
    return model(**ready(queries, documents)).logits[:, 0]


def logits_of(model: Any, tokenizer: Any, method: str, texts: LabeledRows) -> Floats:
    """The logit of every row."""
    import torch

    model.eval()
    with torch.inference_mode():
        batches = [texts.take(rows) for rows in np.split(np.arange(len(texts)), range(_BATCH, len(texts), _BATCH))]
        logits = [scored(model, tokenizer, method, batch).float().cpu().numpy() for batch in batches]
    return np.concatenate(logits).astype(np.float64)


def groups_for(texts: LabeledRows, pairs: str) -> list[Ints]:
    """The units of a batch: single rows, or all versions of a document together, so that a batch has their pairs."""
    if pairs == "batch":
        return [np.array([row]) for row in range(len(texts))]
    return [np.array(rows) for rows in document_versions(texts)]


def finetune(
    texts: LabeledRows, settings: FinetuneSettings, pace: Schedule, work: Path, identity: Mapping[str, Any],
    device: str = "cpu", progress: Progress | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Train a model; return it with its tokenizer. A stopped training is resumed (see ``common.run``)."""
    need("accelerate", "training", "train")
    import torch
    from transformers import Trainer, TrainingArguments

    seed_all(pace.seed)
    model, tokenizer = make_model(settings, device)

    class RelevanceTrainer(Trainer):  # type: ignore[misc, unused-ignore]
        """A trainer with the loss of a batch: binary cross-entropy plus the pairwise penalty."""

        def compute_loss(self, model: Any, inputs: Mapping[str, Any], return_outputs: bool = False, **_: Any) -> Any:
            part = texts.take(inputs["rows"].cpu().numpy())
            z = scored(model, tokenizer, settings.method, part)
            relevant = torch.tensor(part.relevant.astype(np.float32), device=z.device)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(z, relevant)
            if any(settings.alphas):
                # The seed depends on the step, so that a resumed training samples the same pairs.
                rng = np.random.default_rng([pace.seed, self.state.global_step])
                of_batch = settings.pairs == "batch"
                pairs = batch_pairs(np.arange(len(part)), part.gender, rng) if of_batch else same_query_pairs(part)
                loss = loss + pair_penalty(z, pairs, settings.alphas)
            return (loss, {"logits": z}) if return_outputs else loss

    def together(examples: list[dict[str, Ints]]) -> dict[str, Any]:
        return {"rows": torch.tensor(np.concatenate([one["rows"] for one in examples]))}

    arguments = TrainingArguments(**pace.arguments(work, device), remove_unused_columns=False)
    examples = [{"rows": rows} for rows in groups_for(texts, settings.pairs)]
    trainer = RelevanceTrainer(model=model, args=arguments, train_dataset=examples, data_collator=together)
    run(trainer, pace, {**identity, **asdict(settings)}, progress)
    return trainer.model, tokenizer


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


def zero_shot_finetuned(
    texts: LabeledRows, category: Names, names: Sequence[str], settings: FinetuneSettings, pace: Schedule, work: Path,
    identity: Mapping[str, Any], seeds: Sequence[int] = (7,), held_out: bool = True, device: str = "cpu",
    progress: Progress | None = None,
) -> MethodLogits:  # fmt: skip
    """Train on each category and score every row; with ``held_out`` also cross-validate within the category.

    The logits of each finished training are stored.
    """
    logits = np.zeros((len(seeds), len(names), len(texts)))
    inside = np.full((len(seeds), len(texts)), np.nan)
    parts = 1 + FOLDS * held_out
    total, done = len(seeds) * len(names) * parts, 0
    for s, seed in enumerate(seeds):
        own = replace(pace, seed=seed)
        for c, name in enumerate(names):
            there = np.flatnonzero(category == name)
            fold = query_folds(texts.query[there], FOLDS, seed)
            for part in range(parts):
                # Part 0 is the training on all queries of the category, the other parts leave one fold out.
                training, rows = there[fold != part - 1], there[fold == part - 1]
                found = _logits_of_training(
                    texts, training, settings, own, work, {**identity, "train": name, "part": part}, device
                )
                if part == 0:
                    logits[s, c] = found
                else:
                    inside[s, rows] = found[rows]
                done += 1
                if progress is not None:
                    progress(done, total, f"{settings.method}: {name}")
    chosen = (tuple(settings.alphas for _ in names),) * len(seeds)
    return MethodLogits(settings.method, logits, inside if held_out else np.zeros((0, len(texts))), chosen)


def _logits_of_training(
    texts: LabeledRows, training: Any, settings: FinetuneSettings, pace: Schedule, work: Path,
    about: Mapping[str, Any], device: str,
) -> Floats:  # fmt: skip
    """The logits of all rows by one training."""
    whole = {**about, **asdict(settings), **asdict(pace), "model": identify(settings.model)}
    label = f"{settings.method}-{'-'.join(f'{a:g}' for a in settings.alphas)}-{pace.seed}"
    place = work / label / f"{fingerprint(about['train'], 8)}-{about['part']}"

    def make() -> Any:
        model, tokenizer = finetune(texts.take(training), settings, pace, place, whole, device)
        logits = logits_of(model, tokenizer, settings.method, texts)
        shutil.rmtree(place, ignore_errors=True)
        return logits.tolist()

    return np.array(remembered(place.with_suffix(".json"), whole, make))


METHODS = ("head", "lora", "full")


@dataclass(frozen=True)
class AdapterJob:
    """The settings of the training.

    ``method``      head (the encoder is frozen), lora (adapter weights) or full (all weights).
    ``with_title``  documents with their titles; the published values are for bodies only.
    ``penalty``     for a head: choose weights (alphas) from the grid 0 to 2, by cross-validation on training queries.
    ``most_loss``   for a head: the largest loss of held-out accuracy that the alphas may cause.
    ``seeds``       the number of measured seeds, starting with ``seed``; the first one trains the model.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: {"method": name, "pace": PACES.get(name)} for name in METHODS
    }
    preset_name: ClassVar[str] = "method"
    method: str = "head"
    model: str = MINILM
    layout: str = "apart"
    with_title: bool = True
    penalty: bool = True
    most_loss: float = 0.02
    head: HeadSettings = CONVERGED
    finetune: FinetuneSettings = field(default_factory=FinetuneSettings)
    pace: Schedule | None = None
    seed: int = 7
    seeds: int = 1

    def __post_init__(self) -> None:
        one_of(self.method, METHODS, "adapter, ⟨method⟩")
        one_of(self.layout, tuple(LAYOUTS), "adapter, ⟨layout⟩")
        if self.seeds < 1 or self.seed < 0:
            raise ConfigError(
                "adapter: expected ⟨seeds⟩ (the number of seeds) of 1 or more and ⟨seed⟩ (the first one) of 0 or more; "
                f"found {self.seeds} and {self.seed}"
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the settings that the method uses."""
        return ("head",) if self.method == "head" else ("finetune", "pace")

    @property
    def text_name(self) -> str:
        """The text of a document in the names of methods."""
        return "title and body" if self.with_title else "body"

    @property
    def trained(self) -> tuple[FinetuneSettings, Schedule]:
        """The settings for training the encoder itself (lora or full)."""
        return replace(self.finetune, method=self.method, model=self.model), self.pace or PACES[self.method]


def train_adapter(
    data: str | Path, out: Path, settings: AdapterJob | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Run the zero-shot protocol for the model card, then train a model on all rows of GrepBiasIR."""
    chosen, job = choose_device(device), settings or AdapterJob()
    grepbias = read_grepbias(Path(data))
    known = {"data": [one["sha256"] for one in grepbias.files], "weights": identify(job.model), **asdict(job)}
    identity = json.loads(json.dumps(known))
    found = claim(out, identity)
    if found is not None:
        return found_before(out, found)
    protocol = _protocol(grepbias, job, out / WORK, identity, chosen, progress)
    if job.method == "head":
        rows, how = _encoded(grepbias, job, out / WORK, chosen), replace(job.head, seed=job.seed)
        alphas = choose_alphas(rows, how, None, job.most_loss) if job.penalty else (0.0,) * len(KINDS)
        heads = fit_heads(rows, np.array([alphas]), how)
        facts = {
            "model": job.model, "layout": job.layout, "with_title": job.with_title,
            "alphas": dict(zip(KINDS, alphas, strict=True)), "weights": heads.weights[0].tolist(),
            "bias": float(heads.bias[0]),
        }  # fmt: skip
        write_whole(out / FILE, json.dumps(facts) + "\n")
    else:
        tuned, pace = job.trained
        alphas, pace = tuned.alphas, replace(pace, seed=job.seed)
        trained = finetune(_texts(grepbias, job), tuned, pace, out / WORK / "all", identity, chosen, progress)
        save_trained(*trained, tuned.method, out)
    # The baseline of every trained model: the cosine of its encoder before any training.
    cosine = cosines(_encoded(grepbias, replace(job, layout="apart"), out / WORK, chosen).inputs).astype(np.float64)
    untrained = replace(
        zero_shot_cosine(cosine, grepbias.relevant, grepbias.query_id, grepbias.category, grepbias.categories),
        name=f"cosine, {job.text_name}, untrained",
    )
    groups = group_rows(grepbias.categories, grepbias.category, grepbias.query_id, grepbias.relevant, grepbias.gender)
    result = replace(protocol, name=f"{job.method}, {job.text_name}")
    summary = summarize(result.logits, groups, result.inside)
    opened = {
        "head": "Open the model with `askew.models.relevance.read_head(FOLDER)`.",
        "lora": "The model is a sentence encoder: use it as `--ranker dense` with the setting `model=FOLDER`.",
        "full": "The model is a cross-encoder: use it as the ranker `crossencoder` with the setting `model=FOLDER`.",
    }
    card = Card(
        title=f"A relevance model trained to prefer neither gender (method {job.method})",
        about=f"The model was trained on GrepBiasIR with the pairwise penalty of Sundararaman and Subramanian (2022). "
        f"{opened[job.method]}",
        command=command,
        base=identity["weights"],
        data=(
            GREPBIASIR,
            *grepbias.files,
            {"rows": len(grepbias), "queries": len(groups.query_category), **grepbias.notes},
        ),
        seed=job.seed,
        settings=identity,
        device=chosen,
        measured={
            "summary": asdict(summary),
            "untrained cosine": asdict(summarize(untrained.logits, groups, untrained.inside)),
            "trained - untrained cosine": asdict(difference(untrained, result, groups)),
            "alphas": dict(zip(KINDS, alphas, strict=True)),
            "chosen": protocol.chosen,
        },
        tables=(
            summary_table([untrained, result], groups),
            difference_table("trained - untrained cosine", [(untrained, result)], groups),
            accuracy_table("5" if any(alphas) else "2", result, groups, untrained),
            fractions_table(result, groups, untrained),
        ),
        limits=(
            "The tables show models that were trained on one category of GrepBiasIR and tested on the other "
            "categories. The model in this folder was trained on all categories, so no query of GrepBiasIR is left to "
            "test it on.",
            f"The row 'cosine, {job.text_name}, untrained' shows the encoder before any training. In this row, a "
            "document counts as relevant if its cosine with the query is above a threshold that was chosen on the "
            "training category. Only an improvement over this row is an effect of the training.",
            *((_FOLDS_LIMIT,) if job.method == "head" and job.penalty else ()),
            f"{len(groups.query_category)} queries are few: differences of a few hundredths of |M-F| may be due to "
            "chance.",
        ),
        extra={"identity": dict(identity)},
    )
    return finished(out, card)


def _encoded(data: GrepBias, job: AdapterJob, work: Path, device: str) -> LabeledRows:
    vectors = encode_pairs(data.query, data.texts(job.with_title), job.model, job.layout, work / "vectors", device)
    return LabeledRows(vectors, data.relevant, data.gender, data.query_id)


def _texts(data: GrepBias, job: AdapterJob) -> LabeledRows:
    texts = np.array([data.query, data.texts(job.with_title)], object).T
    return LabeledRows(texts, data.relevant, data.gender, data.query_id)


def _protocol(
    data: GrepBias, job: AdapterJob, work: Path, identity: Mapping[str, Any], device: str, progress: Progress | None
) -> MethodLogits:
    seeds, split = range(job.seed, job.seed + job.seeds), (data.category, data.categories)
    if job.method != "head":
        return zero_shot_finetuned(
            _texts(data, job), *split, *job.trained, work / "parts", identity, seeds, True, device, progress
        )

    def make() -> dict[str, Any]:
        grid = alpha_grid() if job.penalty else None
        rows = _encoded(data, job, work, device)
        found = zero_shot_heads(rows, *split, job.head, seeds, grid, job.most_loss, progress)
        return {"logits": found.logits.tolist(), "inside": np.asarray(found.inside).tolist(), "chosen": found.chosen}

    made = remembered(work / "protocol.json", identity, make)
    chosen = tuple(tuple(map(tuple, seed)) for seed in made["chosen"])
    return MethodLogits("head", np.array(made["logits"]), np.array(made["inside"]), chosen)


_FOLDS_LIMIT = (
    "In the diagonal cells of the tables, a model is tested on held-out folds of its training category. The alphas "
    "(the weights of the pairwise penalty in the training loss) for a held-out fold are chosen by the results on "
    "the other folds. The models that are tested on the other folds are trained on data that includes the held-out "
    "fold, so the choice of the alphas depends indirectly on the held-out fold. In all other cells, no setting was "
    "chosen with data of the test category."
)
