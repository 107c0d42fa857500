"""Train the model that classifies which group a query asks about: neutral, female or male.

    python tools/train_query_groups.py --out FOLDER [--cross-validate]

The model is a head and a low-rank adapter on all-MiniLM-L6-v2 (``askew.models.adapted``). The head also gets the
counts of ``askew.rewrite.classifiers``. The training data is the file ``groups.jsonl`` in the folder ``--made``,
with rows ``{"query", "label", "source"}``. Labels are n (neutral), f, m and o (both groups; left out). Sources are
written, read:boolq, read:squad_part and read:fairytaleqa; rows of other sources are left out. ``--cross-validate``
measures the accuracy by cross-validation over five folds of the queries.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from training.data import choose_device, read_rows, rows_by_collection, say, write_training
from training.low_rank import Pace, adapt, fit_epochs, half_precision, save_encoder_adapter
from training.options import make_parser, settings_of

from askew.models.adapted import CLASSES, QueryNetwork, query_batch, query_logits
from askew.models.find import MINILM
from askew.models.relevance import open_encoder
from askew.rewrite.classifiers import log_counts

LABELS = {"n": "neutral", "f": "female", "m": "male"}
LICENSES = {
    "written": "CC-BY-SA-4.0", "read:boolq": "CC-BY-SA-3.0", "read:squad_part": "CC-BY-SA-4.0",
    "read:fairytaleqa": "Apache-2.0",
}  # fmt: skip
FOLDS = 5


@dataclass(frozen=True)
class Settings:
    """How the model is trained: the values of the adapter that askew ships."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.1
    head_dropout: float = 0.2
    hidden: int = 128
    epochs: int = 8
    learning_rate: float = 7e-4
    batch_size: int = 96
    warmup: float = 0.1
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    label_smoothing: float = 0.05


@dataclass(frozen=True)
class Query:
    """A query and the class it belongs to."""

    text: str
    label: int
    collection: str

    @property
    def fold(self) -> int:
        return zlib.crc32(self.text.lower().encode()) % FOLDS


def read_queries(file: Path) -> list[Query]:
    """The rows to train on."""
    rows = read_rows(file, ("query", "label", "source"))
    kept = [row for row in rows if row["label"] in LABELS and row["source"] in LICENSES]
    return [Query(row["query"], CLASSES.index(LABELS[row["label"]]), row["source"]) for row in kept]


def fit(
    queries: Sequence[Query], settings: Settings, seed: int, device: str, model: str = MINILM
) -> tuple[QueryNetwork, Any, list[float]]:
    """Train; the network, its tokenizer and the mean loss of each epoch."""
    torch.manual_seed(seed)
    chance = random.Random(seed)
    encoder, tokenizer = open_encoder(model)
    adapt(encoder, "encoder.layer", settings.rank, settings.alpha, settings.dropout)
    network = QueryNetwork(encoder, settings.hidden, settings.head_dropout).to(device)
    counts = log_counts([one.text for one in queries])

    def loss(rows: Sequence[int]) -> Any:
        wanted = torch.tensor([queries[row].label for row in rows], device=device)
        batch = query_batch(network, tokenizer, [queries[row].text for row in rows], counts[list(rows)])
        with half_precision(device):
            logits = network(*batch).float()
        return torch.nn.functional.cross_entropy(logits, wanted, label_smoothing=settings.label_smoothing)

    orders = [list(range(len(queries))) for _ in range(settings.epochs)]
    for order in orders:
        chance.shuffle(order)
    pace = Pace(settings.learning_rate, settings.warmup, settings.weight_decay, settings.largest_gradient)
    return network, tokenizer, fit_epochs(network, orders, loss, settings.batch_size, pace, say)


def accuracy_of_folds(queries: Sequence[Query], settings: Settings, device: str, model: str) -> dict[str, float]:
    """The share of right answers by models that have not read the query; of all, and of each class."""
    right = np.zeros(len(queries), bool)
    labels = np.array([one.label for one in queries])
    for fold in range(FOLDS):
        rows = [row for row, one in enumerate(queries) if one.fold == fold]
        network, tokenizer, _ = fit([one for one in queries if one.fold != fold], settings, fold, device, model)
        texts = [queries[row].text for row in rows]
        right[rows] = query_logits(network, tokenizer, texts, log_counts(texts), 256).argmax(1) == labels[rows]
        say(f"fold {fold + 1} of {FOLDS}: {right[rows].mean():.4f} of {len(rows)} right")
    classes = {
        name: round(float(right[labels == i].mean()), 4) for i, name in enumerate(CLASSES) if (labels == i).any()
    }
    return {"all": round(float(right.mean()), 4), **classes}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, Settings)
    parser.add_argument("--model", default=MINILM, help="the encoder by name or folder")
    parser.add_argument("--cross-validate", action="store_true", help="also measure the accuracy over five folds")
    given = parser.parse_args(arguments)
    settings, device = settings_of(given, Settings), choose_device(given.device)
    queries = read_queries(given.made / "groups.jsonl")
    counted = rows_by_collection([{"collection": one.collection} for one in queries], LICENSES)
    say(f"queries: {counted}")
    network, _, losses = fit(queries, settings, given.seed, device, given.model)
    save_encoder_adapter(given.out, network)
    write_training(given.out, {
        "program": "tools/train_query_groups.py", "base": given.model, "settings": asdict(settings), "seed": given.seed,
        "data": counted, "classes": dict(Counter(CLASSES[one.label] for one in queries)),
        "losses": [round(one, 4) for one in losses],
        "cross-validated accuracy": (
            accuracy_of_folds(queries, settings, device, given.model) if given.cross_validate else None
        ),
    }, device)  # fmt: skip


if __name__ == "__main__":
    main()
