"""Train the equivalence model: does a reformulation ask for the same as the query, and could a person type it?

    python tools/train_equivalence.py --rewrites FILE ... --labels FILE ... --soft FILE ... --out FOLDER

A cross-encoder on all-MiniLM-L6-v2 (``askew.models.pair_network``) with a low-rank adapter. Rewrites of one query are
positives; texts with a word dropped, replaced or added, texts of similar queries and shuffled words are negatives;
labeled candidates are repeated; and of ``--soft`` (``soft.jsonl`` of ``tools/train_rewrite.py``) it learns the
probabilities of a teacher. ``FOLDER`` gets the adapter and ``training.json`` with the areas under the ROC curve on the
dev part; where there are soft labels these are not those of unseen rows, since the teacher was fit on that part.
"""

from __future__ import annotations

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
from training.negatives import Mix, Pair, soft_pairs
from training.options import add_reformulations, make_parser, settings_of

from askew.models.find import MINILM
from askew.models.pair_network import MOST_TOKENS, PairNetwork, pair_logits
from askew.models.relevance import open_encoder
from askew.trainers.low_rank import Pace, adapt, fit_epochs, half_precision, save_encoder_adapter


@dataclass(frozen=True)
class Settings:
    """How the model is trained: the values of the adapter that askew ships."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.1
    hidden: int = 256
    epochs: int = 6
    learning_rate: float = 1e-3
    batch_size: int = 256
    warmup: float = 0.08
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    label_smoothing: float = 0.03
    label_repeats: int = 3
    label_weight: float = 1.5
    lower_case: float = 0.25
    positives: int = 3
    shuffled: float = 0.4
    words_of_neighbors: float = 0.7
    # The share of the queries with rewrites, and the number of soft labels, that an epoch takes
    rewrites_per_epoch: float = 0.6
    soft_per_epoch: int = 80_000


def make_network(model: str, settings: Settings, device: str) -> tuple[PairNetwork, Any]:
    """The product's network with layers that learn, and its tokenizer."""
    encoder, tokenizer = open_encoder(model)
    adapt(encoder, "encoder.layer", settings.rank, settings.alpha, settings.dropout)
    return PairNetwork(encoder, settings.hidden, settings.dropout).to(device), tokenizer


def pair_loss(logits: Any, pairs: Sequence[Pair], smoothing: float) -> Any:
    """The mean weighted cross entropy of the values that are known."""
    wanted = torch.tensor([[one.same, one.natural] for one in pairs], device=logits.device)
    weights = torch.tensor([[one.weight] for one in pairs], device=logits.device)
    known = (wanted >= 0).float()
    smooth = wanted.clamp(min=0) * (1 - 2 * smoothing) + smoothing
    losses = functional.binary_cross_entropy_with_logits(logits, smooth, reduction="none")
    return (losses * known * weights).sum() / known.sum()


def fit(
    epochs: Sequence[Sequence[Pair]], settings: Settings, seed: int, device: str, model: str = MINILM
) -> tuple[PairNetwork, Any, list[float]]:
    """Train on the pairs of each epoch; the network, its tokenizer and the mean loss of each epoch."""
    torch.manual_seed(seed)
    network, tokenizer = make_network(model, settings, device)

    def loss(pairs: Sequence[Pair]) -> Any:
        batch = tokenizer(
            [one.query for one in pairs], [one.candidate for one in pairs], padding=True, truncation=True,
            max_length=MOST_TOKENS, return_tensors="pt", return_token_type_ids=True,
        ).to(device)  # fmt: skip
        with half_precision(device):
            logits = network(batch).float()
        return pair_loss(logits, pairs, settings.label_smoothing)

    pace = Pace(settings.learning_rate, settings.warmup, settings.weight_decay, settings.largest_gradient)
    return network, tokenizer, fit_epochs(network, epochs, loss, settings.batch_size, pace, say)


def measure(network: PairNetwork, tokenizer: Any, rows: Sequence[Row]) -> dict[str, Any]:
    """Areas of both outputs, and of the smaller one for usable."""
    logits = pair_logits(network, tokenizer, [r["query"] for r in rows], [r["candidate"] for r in rows], 64)
    return areas(rows, {"same": logits[:, 0], "natural": logits[:, 1], "usable": logits.min(axis=1)})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, Settings)
    add_reformulations(parser)
    parser.add_argument("--soft", type=Path, nargs="*", default=[], help="files of soft labels, as soft.jsonl")
    parser.add_argument("--model", default=MINILM, help="the encoder by name or folder")
    given = parser.parse_args(arguments)
    settings, device = settings_of(given, Settings), choose_device(given.device)
    data = read_reformulations(given.made, given.rewrites, given.labels)
    rows, labels = data.training_rewrites(), data.training_labels()
    soft = soft_pairs([row for file in given.soft for row in read_rows(file, SOFT_FIELDS)], data.held_out())
    mix = Mix(rows, labels, settings, random.Random(given.seed), soft)
    epochs = [mix.epoch() for _ in range(settings.epochs)]
    say(f"queries with rewrites: {rows_by_collection(rows)}")
    say(f"labeled candidates: {rows_by_collection(labels)}; soft labels: {len(soft):,}")
    network, tokenizer, losses = fit(epochs, settings, given.seed, device, given.model)
    dev = measure(network, tokenizer, [row for row in data.labels if row["split"] == "dev"])
    say(f"areas under the ROC curve, dev: {dev}")
    save_encoder_adapter(given.out, network)
    write_training(given.out, {
        "program": "tools/train_equivalence.py", "base": given.model, "settings": asdict(settings), "seed": given.seed,
        "rewrites": rows_by_collection(rows), "labels": rows_by_collection(labels), "soft labels": len(soft),
        "needs": dict(Counter(row["need"] for row in labels)), "losses": [round(one, 4) for one in losses], "dev": dev,
    }, device)  # fmt: skip


if __name__ == "__main__":
    main()
