"""Relevance models with little gender preference, trained on GrepBiasIR: heads on a frozen encoder, LoRA, all weights.

A head reads features of a query and a document, in one of two layouts:

``joint``  the query and the document as one sequence; the feature vector is the one of the first token. This was
           published for BERT, which is pretrained on pairs of texts. It works poorly for encoders of single texts.
``apart``  the query and the document are encoded separately; the features are the elementwise products of their
           vectors and the cosine.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from grepbias_data import SIDES, MethodLogits

from askew.core.errors import ConfigError, DataError, one_of
from askew.core.files import fingerprint
from askew.core.ranking import Flags, Floats, Ints
from askew.models.encode import MOST_TOKENS, open_encoder, room
from askew.models.find import MINILM, identify, need
from askew.train.common import Progress, Schedule, TrainingStopped, open_classifier, remembered, run, seed_all

Names = npt.NDArray[np.str_]
Vectors = npt.NDArray[np.float32]
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


def least_lean(held_out: Floats, rows: LabeledRows, alphas: Floats, most_loss: float) -> int:
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
            picked.append(tuple(alphas[least_lean(held_out, training, alphas, most_loss)].tolist()))
            logits[s, c] = fit_heads(training, np.array([picked[-1]]), own).logits(rows.inputs)[:, 0]
            # The held-out logit of each row, with alphas chosen on the other folds only.
            fold, rows_there = query_folds(training.query, FOLDS, seed), np.flatnonzero(there)
            for k in range(FOLDS):
                others = fold != k
                row = least_lean(held_out[others], training.take(others), alphas, most_loss)
                inside[s, rows_there[~others]] = held_out[~others, row]
            if progress is not None:
                progress(s * len(names) + c + 1, len(seeds) * len(names), "training heads")
        chosen.append(tuple(picked))
    return MethodLogits("head", logits, inside, tuple(chosen))


_FOLD_SEED = 7


LAYOUTS = ("joint", "apart")


def encode_pairs(
    queries: Sequence[str], documents: Sequence[str], model: str, layout: str, cache: Path | None = None,
    device: str = "cpu",
) -> Vectors:  # fmt: skip
    """One row of features for each query and its document. ``cache`` is a folder that stores the features."""
    if layout not in LAYOUTS:
        raise ConfigError(
            "adapter: expected the setting 'layout' (whether the encoder reads the query and the document together) to "
            f"be {' or '.join(map(repr, LAYOUTS))}, found {layout!r}"
        )
    key = fingerprint([identify(model), layout, list(queries), list(documents), MOST_TOKENS])
    file = cache / f"{layout}-{key}.npy" if cache is not None else None
    if file is not None and file.is_file():
        kept: Vectors = np.load(file, allow_pickle=False)
        return kept
    encoder, tokenizer = open_encoder(model, device)
    if layout == "joint":
        rows = [
            _states(encoder, tokenizer, queries[at : at + _BATCH], documents[at : at + _BATCH])[0][:, 0]
            for at in range(0, len(queries), _BATCH)
        ]
        made = np.concatenate(rows).astype(np.float32)
    else:
        made = combine(*(_means(encoder, tokenizer, texts) for texts in (queries, documents)))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part.npy")
        np.save(unfinished, made, allow_pickle=False)
        unfinished.replace(file)
    return made


def combine(left: Vectors, right: Vectors) -> Vectors:
    """The features of pairs of unit vectors, scaled to a standard deviation of about one."""
    width = np.sqrt(left.shape[1])
    products = left * right
    return np.hstack([products * width, products.sum(1, keepdims=True) * width / 4]).astype(np.float32)


def _means(encoder: Any, tokenizer: Any, texts: Sequence[str]) -> Vectors:
    """The unit vector of each text; each distinct text is encoded once."""
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    found = []
    for at in range(0, len(distinct), _BATCH):
        states, mask = _states(encoder, tokenizer, distinct[at : at + _BATCH])
        found.append((states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True))
    vectors = np.concatenate(found)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    places = {text: row for row, text in enumerate(distinct)}
    return vectors[[places[text] for text in texts]].astype(np.float32)


def _states(encoder: Any, tokenizer: Any, texts: Sequence[str], others: Sequence[str] | None = None) -> tuple[Any, Any]:
    import torch

    batch = tokenizer(
        list(texts), list(others) if others is not None else None, padding=True, truncation=True,
        max_length=room(encoder, tokenizer), return_tensors="pt",
    ).to(encoder.device)  # fmt: skip
    with torch.inference_mode():
        states = encoder(**batch).last_hidden_state
    return states.float().cpu().numpy(), batch["attention_mask"].cpu().numpy().astype(np.float32)


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
