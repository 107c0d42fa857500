"""Train an equivalence model: does a reformulation have the same meaning as the query, and could a person type it?

    python tools/train_equivalence.py --rewrites FILE ... --labels FILE ... --soft FILE ... --out FOLDER

``--network smollm2`` is SmolLM2 as a judge (``models.pair_network``), which starts from the weights of a rewriting
adapter (``--init``). ``--network minilm`` is a cross-encoder on all-MiniLM-L6-v2 (``models.pair_network``), for
which ``--init`` may name an earlier adapter of the same kind. Both train a low-rank adapter and a head.

Positives are rewrites of one query. Negatives are texts with a word dropped, replaced or added, texts with two words
swapped, texts of similar queries, and shuffled words. Labeled candidates are repeated. From ``--soft`` (``soft.jsonl``
of ``tools/train_rewrite.py``) the model learns the probabilities of a teacher; a file that is given twice counts twice.

The adapter is written to ``FOLDER``, with ``training.json``, which has the areas under the ROC curve on the dev part.
With soft labels these areas are not on unseen data, since the teacher was fit on the dev part.
``benchmarks/equivalence.py`` fits the regressions of the filter.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from training.areas import areas
from training.data import (
    SOFT_FIELDS,
    Row,
    choose_device,
    read_reformulations,
    read_rows,
    rows_by_collection,
    say,
    write_training,
)
from training.low_rank import Pace, fit_epochs
from training.negatives import Mix, MixSettings, Pair, soft_pairs
from training.options import add_reformulations, make_parser, settings_of
from training.pair_learners import Judge, MinilmLearner, PairLearner, SmollmLearner, by_length


@dataclass(frozen=True)
class Settings(MixSettings):
    """How the judge on SmolLM2 is trained: the values of the adapter that askew ships."""

    rank: int = 16
    alpha: int = 32
    # Of the low-rank layers, and of the head
    dropout: float = 0.05
    head_dropout: float = 0.1
    hidden: int = 256
    epochs: int = 3
    # The steps after which training ends, also inside an epoch; 0: after all epochs
    most_steps: int = 900
    learning_rate: float = 5e-4
    batch_size: int = 256
    sorted_by_length: int = 1
    warmup: float = 60 / 900
    weight_decay: float = 0.01
    second_beta: float = 0.98
    largest_gradient: float = 1.0
    label_smoothing: float = 0.03
    label_repeats: int = 3
    label_weight: float = 1.5
    lower_case: float = 0.25
    positives: int = 3
    shuffled: float = 0.4
    words_of_neighbors: float = 0.7
    roles: float = 0.4
    # The share of the queries with rewrites, and the number of soft labels, that an epoch takes
    rewrites_per_epoch: float = 0.5
    soft_per_epoch: int = 70_000


@dataclass(frozen=True)
class MinilmSettings(Settings):
    """How the cross-encoder is trained from the beginning: where its values differ from those of the judge."""

    dropout: float = 0.1
    epochs: int = 6
    most_steps: int = 0
    learning_rate: float = 1e-3
    sorted_by_length: int = 0
    warmup: float = 0.08
    second_beta: float = 0.999
    roles: float = 0.0
    rewrites_per_epoch: float = 0.6
    soft_per_epoch: int = 80_000


NETWORKS: dict[str, tuple[Any, type[Settings]]] = {
    "smollm2": (SmollmLearner, Settings), "minilm": (MinilmLearner, MinilmSettings),
}  # fmt: skip


def pair_loss(logits: Any, pairs: Sequence[Pair], smoothing: float) -> Any:
    """The mean weighted cross entropy of the values that are known."""
    wanted = torch.tensor([[one.same, one.natural] for one in pairs], device=logits.device)
    weights = torch.tensor([[one.weight] for one in pairs], device=logits.device)
    known = (wanted >= 0).float()
    smooth = wanted.clamp(min=0) * (1 - 2 * smoothing) + smoothing
    losses = functional.binary_cross_entropy_with_logits(logits, smooth, reduction="none")
    return (losses * known * weights).sum() / known.sum()


def fit(learner: PairLearner, epochs: Sequence[Sequence[Pair]], settings: Settings, seed: int) -> list[float]:
    """Train on the pairs of each epoch; the mean loss of each."""
    chance, size = random.Random(seed), settings.batch_size
    if settings.sorted_by_length:
        epochs = [by_length(pairs, size, chance) for pairs in epochs]
    if settings.most_steps:
        epochs = first_steps(epochs, size, settings.most_steps)

    def loss(pairs: Sequence[Pair]) -> Any:
        return pair_loss(learner.logits(pairs), pairs, settings.label_smoothing)

    pace = Pace(
        settings.learning_rate, settings.warmup, settings.weight_decay, settings.largest_gradient, settings.second_beta
    )
    return fit_epochs(learner.network, epochs, loss, size, pace, say)


def first_steps(epochs: Sequence[Sequence[Pair]], size: int, most: int) -> list[Sequence[Pair]]:
    """The pairs of so many batches at most, by epoch; an epoch without any is left out."""
    kept, left = [], most
    for pairs in epochs:
        if left > 0:
            kept.append(pairs[: left * size])
            left -= -(-len(pairs) // size)
    return kept


def measure(judge: Judge, rows: Sequence[Row]) -> dict[str, Any]:
    """Areas of both outputs, and of the smaller one for usable."""
    logits = judge([row["query"] for row in rows], [row["candidate"] for row in rows])
    return areas(rows, {"same": logits[:, 0], "natural": logits[:, 1], "usable": logits.min(axis=1)})


def read_options(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, Any, Settings]:
    """What was given, the class of the network, and its settings, whose defaults depend on it."""
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--network", choices=NETWORKS, default="smollm2", help="the network to train")
    learner, settings = NETWORKS[first.parse_known_args(arguments)[0].network]
    parser = make_parser(__doc__, settings, [first])
    add_reformulations(parser)
    parser.add_argument("--soft", type=Path, nargs="*", default=[], help="files of soft labels, such as soft.jsonl")
    parser.add_argument("--model", default=learner.base, help="the base model by name or folder")
    parser.add_argument("--init", default=learner.first, help="the adapter to start from, by name or folder")
    given = parser.parse_args(arguments)
    return given, learner, settings_of(given, settings)


def main(arguments: Sequence[str] | None = None) -> None:
    given, make, settings = read_options(arguments)
    device = choose_device(given.device)
    data = read_reformulations(given.made, given.rewrites, given.labels)
    rows, labels = data.training_rewrites(), data.training_labels()
    soft = soft_pairs([row for file in given.soft for row in read_rows(file, SOFT_FIELDS)], data.held_out())
    mix = Mix(rows, labels, settings, random.Random(given.seed), soft)
    epochs = [mix.epoch() for _ in range(settings.epochs)]
    say(f"queries with rewrites: {rows_by_collection(rows)}")
    say(f"labeled candidates: {rows_by_collection(labels)}; soft labels: {len(soft):,}")
    torch.manual_seed(given.seed)
    learner = make(settings, device, given.model, given.init)
    losses = fit(learner, epochs, settings, given.seed)
    learner.save(given.out)
    dev = measure(learner.judge(given.out), [row for row in data.labels if row["split"] == "dev"])
    say(f"areas under the ROC curve, dev: {dev}")
    write_training(given.out, {
        "program": "tools/train_equivalence.py", "network": given.network, "base": given.model, "init": given.init,
        "settings": asdict(settings), "seed": given.seed,
        "rewrites": rows_by_collection(rows), "labels": rows_by_collection(labels), "soft labels": len(soft),
        "needs": dict(Counter(row["need"] for row in labels)), "losses": [round(one, 4) for one in losses], "dev": dev,
    }, device)  # fmt: skip


if __name__ == "__main__":
    main()
