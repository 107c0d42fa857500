"""Who does a word for women or men point to? Train the adapter minilm-who from labels, and measure it.

    python benchmarks/mention_model.py --data DATA --labels FILE ... --out FOLDER --seed 0     train, measure
    python benchmarks/mention_model.py --data DATA --labels FILE ... --measure FOLDER          measure again
    python benchmarks/mention_model.py --data DATA --labels FILE ... --out FOLDER/K --fold K   without a fold, 0 to 4

``FILE`` holds one label per line (README.md in ``benchmarks/mentions`` has the fields). The labels of askew,
``benchmarks/mentions/labels.jsonl.gz``, are for training; a row with the field ``split`` belongs to that split.
``DATA`` has the collections (``NAME/docs.tsv``: id, TAB, text) and GrepBiasIR in ``gender_queries/grepbiasir``.
MS MARCO's passages are for research only, so that no row of them is trained on; nor are clipped words, which a rule
finds. Documents of the test split are left out of training; ``--with-test-documents`` trains on what other queries
found in them too, and the measures tell the documents apart. ``--fold`` leaves a fifth of the documents out of training
and writes the probabilities of their mentions to ``out_of_fold.npy``: the known errors are counted by these.
The card of the shipped adapter is made of measured.json by ``tools/make_cards.py``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.groups import WHO
from askew.core.text import is_clipped
from askew.measures.resolver import Resolver
from askew.models.find import MINILM
from askew.models.mention import Window, windows

# training.low_rank is in tools/, which is not a package of askew.
sys.path.append(str(Path(__file__).parent.parent / "tools"))

LABELS = Path(__file__).parent / "mentions" / "labels.jsonl.gz"
GREPBIAS = "grepbiasir"
# Of these no row is trained on: their terms allow research alone.
TEST_ONLY = ("msmarco_dl1920",)


@dataclass(frozen=True)
class Settings:
    """How the adapter is trained."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    hidden: int = 256
    epochs: int = 5
    learning_rate: float = 7e-4
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    label_smoothing: float = 0.05
    largest_gradient: float = 1.0


@dataclass(frozen=True)
class Label:
    """Who the word at a character of a document points to; ``query`` is that of the search that found it."""

    collection: str
    doc: str
    at: int
    word: str
    who: str
    split: str
    query: str
    text: str

    @property
    def document(self) -> tuple[str, str]:
        return self.collection, self.doc

    @property
    def clipped(self) -> bool:
        """A lower-case word right after a full stop that itself follows a word or a closing sign."""
        return is_clipped(self.text, self.at)


def opened(file: Path) -> list[str]:
    """The lines of a file, which may be gzipped."""
    read = file.read_bytes()
    return (gzip.decompress(read) if file.suffix == ".gz" else read).decode().splitlines()


def read_labels(files: Iterable[Path], data: Path) -> list[Label]:
    """The labels with the texts of their documents."""
    rows = [json.loads(line) for file in files for line in opened(file)]
    texts = {name: read_texts(data, name) for name in sorted({row["collection"] for row in rows if "text" not in row})}
    found = []
    for row in rows:
        text = row["text"] if "text" in row else texts[row["collection"]][row["doc"]]
        end = row["at"] + len(row["word"])
        if text[row["at"] : end].lower() != row["word"].lower() or row["who"] not in WHO:
            raise SystemExit(f"expected {row['word']!r} at {row['at']} and one of {', '.join(WHO)}: {row}")
        found.append(
            Label(
                row["collection"], row["doc"], row["at"], row["word"], row["who"], row.get("split", "train"),
                row.get("query", ""), text,
            )
        )  # fmt: skip
    return found


def read_texts(data: Path, collection: str) -> dict[str, str]:
    """The documents of a collection; those of GrepBiasIR as title, full stop, text."""
    if collection != GREPBIAS:
        with (data / collection / "docs.tsv").open(encoding="utf-8", newline="\n") as lines:
            return dict(line.rstrip("\n").split("\t", 1) for line in lines)
    found = {}
    for file in sorted((data / "gender_queries" / GREPBIAS).glob("queries-documents_*.csv")):
        with file.open(encoding="utf-8-sig", newline="") as lines:
            found |= {row["d_id"].strip(): f"{row['doc_title']}. {row['document']}" for row in csv.DictReader(lines)}
    return found


FOLDS = 5


def fold_of(label: Label) -> int:
    """A fifth of the documents, whatever the labels are."""
    return zlib.crc32("\t".join(label.document).encode()) % FOLDS


def training_rows(labels: Sequence[Label], with_test_documents: bool = False) -> list[Label]:
    held_out = set() if with_test_documents else {one.document for one in labels if one.split == "test"}
    return [
        one
        for one in labels
        if one.split != "test" and one.collection not in TEST_ONLY and not one.clipped and one.document not in held_out
    ]


def positions(labels: Sequence[Label]) -> tuple[list[str], Any, Any, Any]:
    """The labels as ``NeuralResolver.probabilities`` takes them."""
    texts = list(dict.fromkeys(one.text for one in labels))
    numbers = {text: number for number, text in enumerate(texts)}
    starts = np.array([one.at for one in labels])
    ends = starts + np.array([len(one.word) for one in labels])
    return texts, np.array([numbers[one.text] for one in labels]), starts, ends


def make_network(model: str, settings: Settings, device: str, classes: int = len(WHO)) -> tuple[Any, Any]:
    """The product's network with layers that learn, and its tokenizer."""
    import torch
    from training.low_rank import adapt

    from askew.models.adapted import MentionNetwork
    from askew.models.relevance import open_encoder

    encoder, tokenizer = open_encoder(model)
    # Attention without dropout has a kernel that is three times as fast on a CPU.
    for part in encoder.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    adapt(encoder, "encoder.layer", settings.rank, settings.alpha, settings.dropout)
    return MentionNetwork(encoder, settings.hidden, classes).to(device), tokenizer


def fit(
    labels: Sequence[Label], settings: Settings, seed: int, device: str, model: str = MINILM,
    names_of: Sequence[str] = WHO,
) -> dict[str, Any]:  # fmt: skip
    """Train; the tensors of the adapter, with the scale multiplied into ``b``."""
    import torch
    from training.low_rank import Pace, encoder_tensors, fit_epochs

    torch.manual_seed(seed)
    network, tokenizer = make_network(model, settings, device, len(names_of))
    read = list(windows(tokenizer, *positions(labels)))
    classes = [names_of.index(one.who) for one in labels]

    def loss(chosen: Sequence[int]) -> Any:
        return _loss(network, [read[number] for number in chosen], classes, settings)

    chance = random.Random(seed)
    orders = [_alike(chance, [len(one.ids) for one in read], settings.batch_size) for _ in range(settings.epochs)]
    pace = Pace(settings.learning_rate, settings.warmup, settings.weight_decay, settings.largest_gradient)
    fit_epochs(network, orders, loss, settings.batch_size, pace, partial(print, flush=True))
    return encoder_tensors(network)


def _alike(chance: random.Random, lengths: Sequence[int], batch_size: int) -> list[int]:
    """A random order whose batches have windows of similar length."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row] + chance.random() * 32)
    batches = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    last = [batches.pop()]
    chance.shuffle(batches)
    return [row for batch in batches + last for row in batch]


def _loss(network: Any, batch: Sequence[Window], classes: Sequence[int], settings: Settings) -> Any:
    import torch

    with torch.autocast(network.enc.device.type, torch.bfloat16):
        logits = network(batch).float()
    wanted = torch.tensor([classes[row] for one in batch for row, _, _ in one.mentions], device=logits.device)
    return torch.nn.functional.cross_entropy(logits, wanted, label_smoothing=settings.label_smoothing)


def measure(folder: Path, labels: Sequence[Label], with_test_documents: bool) -> dict[str, Any]:
    """Accuracy on the test split, each with its interval and how many rows and queries there are."""
    from askew.measures.resolver import NeuralResolver

    return measure_with(NeuralResolver(str(folder)), labels, with_test_documents)


def measure_with(resolver: Resolver, labels: Sequence[Label], with_test_documents: bool) -> dict[str, Any]:
    """The same of any resolver."""
    test = [one for one in labels if one.split == "test"]
    chosen = resolver.probabilities(*positions(test)).argmax(1)
    wanted = np.array([WHO.index(one.who) for one in test])
    ruled = np.where([one.clipped for one in test], WHO.index("other"), chosen)
    read = {one.document for one in training_rows(labels, with_test_documents)}
    fresh = np.array([one.document not in read for one in test])
    of_collection = np.array([one.collection for one in test])
    share: Callable[..., Any] = partial(accuracy, queries=[one.query for one in test])
    table = Counter((WHO[i], WHO[j]) for i, j in zip(wanted, ruled, strict=True))
    return {
        "model alone": share(chosen == wanted),
        "with the rule for clipped words": share(ruled == wanted),
        "with the rule, documents not in training": share(ruled == wanted, of=fresh),
        "by class": {name: share(ruled == wanted, of=wanted == i) for i, name in enumerate(WHO)},
        "by collection": {
            name: share(ruled == wanted, of=of_collection == name) for name in sorted(set(of_collection.tolist()))
        },
        "confusion": {name: [table[name, other] for other in WHO] for name in WHO},
    }


def accuracy(right: Any, queries: Sequence[str], of: Any = None) -> dict[str, float]:
    """The share of right rows with an interval; queries are drawn, since rows of one query are alike.

    Where all rows are right or all wrong, no draw differs: an end is then that of as many such rows as queries.
    """
    from askew.measures.statistics.intervals import bca_interval

    chosen = np.ones(len(right), bool) if of is None else of
    _, unit = np.unique(np.array(queries)[chosen], return_inverse=True)
    rows, hits = np.bincount(unit), np.bincount(unit, right[chosen])
    with np.errstate(invalid="ignore"):
        value, low, high = bca_interval(lambda weights: (weights @ hits) / (weights @ rows), len(rows))
    if hits.sum() == rows.sum():
        low = 0.025 ** (1 / len(rows))
    elif not hits.sum():
        high = 1 - 0.025 ** (1 / len(rows))
    return {"accuracy": value, "low": low, "high": high, "rows": int(rows.sum()), "queries": len(rows)}


def show(measured: dict[str, Any]) -> str:
    """The measures as Markdown."""
    lines = ["| test split | accuracy | 95% interval | mentions | queries |", "|---|---|---|---|---|"]
    flat = {name: one for name, one in measured.items() if "accuracy" in one}
    flat |= {f"class {name}": one for name, one in measured["by class"].items()}
    flat |= {f"collection {name}": one for name, one in measured["by collection"].items()}
    for name, one in flat.items():
        interval = f"{one['low']:.3f} to {one['high']:.3f}"
        lines.append(f"| {name} | {one['accuracy']:.3f} | {interval} | {one['rows']} | {one['queries']} |")
    lines += ["", f"| read as | {' | '.join(WHO)} |", "|---|" + "---|" * len(WHO)]
    lines += [f"| label {name} | {' | '.join(map(str, row))} |" for name, row in measured["confusion"].items()]
    return "\n".join(lines)


def describe(rows: Sequence[Label], options: argparse.Namespace, hardware: str) -> dict[str, Any]:
    """What an adapter was trained on, and how."""
    return {
        "program": "`benchmarks/mention_model.py`", "settings": asdict(options.settings), "seed": options.seed,
        "hardware": hardware, "rows": len(rows),
        "with test documents": options.with_test_documents, "collections": dict(Counter(r.collection for r in rows)),
        "classes": dict(Counter(r.who for r in rows)),
    }  # fmt: skip


def train(labels: Sequence[Label], options: argparse.Namespace) -> None:
    import torch
    from safetensors.torch import save_file

    from askew.models.adapted import WEIGHTS
    from askew.train.card import hardware

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    rows = training_rows(labels, options.with_test_documents)
    if options.fold is not None:
        rows = [one for one in rows if fold_of(one) != options.fold]
    print(f"{len(rows):,} rows to train on: {dict(Counter(one.collection for one in rows))}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    save_file(fit(rows, options.settings, options.seed, device), options.out / WEIGHTS)
    write(options.out, {"training": describe(rows, options, hardware(device))})


def write_out_of_fold(labels: Sequence[Label], folder: Path, fold: int) -> None:
    from askew.measures.resolver import NeuralResolver

    rows = [one for one in training_rows(labels) if fold_of(one) == fold]
    found = NeuralResolver(str(folder)).probabilities(*positions(rows))
    np.save(folder / "out_of_fold.npy", found)
    right = np.mean(found.argmax(axis=1) == [WHO.index(one.who) for one in rows])
    print(f"fold {fold}: {right:.3f} of {len(rows)} right")


def write(folder: Path, measured: dict[str, Any]) -> None:
    (folder / "measured.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path, nargs="+", default=[LABELS])
    folders = parser.add_mutually_exclusive_group(required=True)
    folders.add_argument("--out", type=Path, help="train, and write the adapter to this folder")
    folders.add_argument("--measure", type=Path, help="measure the adapter in this folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fold", type=int, choices=range(FOLDS))
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--device")
    parser.add_argument("--with-test-documents", action="store_true")
    options = parser.parse_args()
    options.settings = Settings(epochs=options.epochs)
    labels = read_labels(options.labels, options.data)
    if options.out:
        train(labels, options)
    if options.fold is not None:
        write_out_of_fold(labels, options.out, options.fold)
        return
    folder = options.out or options.measure
    told = json.loads((folder / "measured.json").read_text(encoding="utf-8"))
    told["test"] = measure(folder, labels, told["training"]["with test documents"])
    write(folder, told)
    print(show(told["test"]))


if __name__ == "__main__":
    main()
