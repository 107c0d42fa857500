"""Train the equivalence model: does a reformulation ask for the same as the query, and could a person type it?

    python tools/train_equivalence.py --rewrites REWRITES --labels LABELS --out FOLDER

A cross-encoder on all-MiniLM-L6-v2 (``askew.models.pair_network``) with a low-rank adapter. Rewrites of one query are
positives; texts with a word dropped, replaced or added, texts of similar queries and shuffled words are negatives; and
labeled candidates are repeated. ``FOLDER`` gets the adapter and ``training.json`` with the areas under the ROC curve on
the dev part.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch.nn import functional
from training.data import Row, choose_device, read_reformulations, rows_by_collection, say, write_training
from training.negatives import Mix, Pair
from training.options import make_parser, settings_of

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
    learning_rate: float = 7e-4
    batch_size: int = 192
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


def area(scores: Any, right: Any) -> float | None:
    """The area under the ROC curve; nothing where only one class is there."""
    positive = int(right.sum())
    if positive in (0, len(right)):
        return None
    above = rankdata(scores)[right].sum() - positive * (positive + 1) / 2
    return round(float(above / (positive * (len(right) - positive))), 4)


def measure(network: PairNetwork, tokenizer: Any, rows: Sequence[Row]) -> dict[str, Any]:
    """Areas of both outputs for all rows, and for texts of rewriting models and of other methods apart."""
    logits = pair_logits(network, tokenizer, [r["query"] for r in rows], [r["candidate"] for r in rows], 64)
    wanted = np.array([[row["need"] == "same", bool(row["natural"])] for row in rows]).reshape(-1, 2)
    rewritten = np.array([row["method"].startswith(("rewrite", "trial")) for row in rows], bool)
    found = {}
    for name, of in (("all", np.ones(len(rows), bool)), ("rewriting", rewritten), ("others", ~rewritten)):
        same, natural = (area(logits[of, i], wanted[of, i]) for i in range(2))
        found[name] = {"rows": int(of.sum()), "same": same, "natural": natural}
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, Settings)
    parser.add_argument("--rewrites", type=Path, help="further queries with rewrites, as in queries.jsonl")
    parser.add_argument("--labels", type=Path, help="further labeled candidates, as in labels.jsonl")
    parser.add_argument("--model", default=MINILM, help="the encoder by name or folder")
    given = parser.parse_args(arguments)
    settings, device = settings_of(given, Settings), choose_device(given.device)
    data = read_reformulations(given.made, given.rewrites, given.labels)
    rows, labels = data.training_rewrites(), data.training_labels()
    mix = Mix(rows, labels, settings, random.Random(given.seed))
    epochs = [mix.epoch() for _ in range(settings.epochs)]
    say(f"queries with rewrites: {rows_by_collection(rows)}")
    say(f"labeled candidates: {rows_by_collection(labels)}")
    network, tokenizer, losses = fit(epochs, settings, given.seed, device, given.model)
    dev = measure(network, tokenizer, [row for row in data.labels if row["split"] == "dev"])
    say(f"areas under the ROC curve, dev: {dev}")
    save_encoder_adapter(given.out, network)
    write_training(given.out, {
        "program": "tools/train_equivalence.py", "base": given.model, "settings": asdict(settings), "seed": given.seed,
        "rewrites": rows_by_collection(rows), "labels": rows_by_collection(labels),
        "needs": dict(Counter(row["need"] for row in labels)), "losses": [round(one, 4) for one in losses], "dev": dev,
    }, device)  # fmt: skip


if __name__ == "__main__":
    main()
