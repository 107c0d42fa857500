"""Who does a word for women or men point to? Train the adapter minilm-who from labels, and measure it.

    python benchmarks/mention_model.py --data DATA --labels FILE ... --out FOLDER --seed 0     train, measure
    python benchmarks/mention_model.py --data DATA --labels FILE ... --measure FOLDER          measure again
    python benchmarks/mention_model.py --data DATA --labels FILE ... --out FOLDER/K --fold K   without a fold, 0 to 4

``FILE`` holds one label per line (README.md in ``benchmarks/mentions`` has the fields), beside those of askew in
``benchmarks/mentions``: ``labels`` and ``written`` are for training, ``kinds`` is a test of three kinds of texts. A row
with the field ``split`` belongs to that split.
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
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from askew.core.groups import WHO
from askew.core.text import is_clipped
from askew.models.find import MINILM
from askew.models.mention import Window, windows

if TYPE_CHECKING:
    from askew.measures.resolver import Resolver

# training.low_rank is in tools/, which is not a package of askew.
sys.path.append(str(Path(__file__).parent.parent / "tools"))

LABELS, WRITTEN, KINDS = (
    Path(__file__).parent / "mentions" / f"{name}.jsonl.gz" for name in ("labels", "written", "kinds")
)
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
    epochs: int = 8
    learning_rate: float = 7e-4
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    label_smoothing: float = 0.05
    largest_gradient: float = 1.0
    # The share of documents, drawn anew in each epoch, whose words for women and men are exchanged, and the share of
    # mentions that are read in their sentence alone.
    exchanged: float = 0.5
    alone: float = 0.35


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
    kind: str = ""
    group: str = ""
    round: int = 1

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
        # A row may be about a part of its document; ``at`` is the place in this part.
        text = row["text"] if "text" in row else texts[row["collection"]][row["doc"]][slice(*row.get("part", [None]))]
        end = row["at"] + len(row["word"])
        if text[row["at"] : end].lower() != row["word"].lower() or row["who"] not in WHO:
            raise SystemExit(f"expected {row['word']!r} at {row['at']} and one of {', '.join(WHO)}: {row}")
        found.append(
            Label(
                row["collection"], row["doc"], row["at"], row["word"], row["who"], row.get("split", "train"),
                row.get("query", ""), text, row.get("kind", ""), row.get("group", ""), row.get("round", 1),
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
    classes = [names_of.index(label.who) for label in labels]
    chance, both = random.Random(seed), (labels, exchange_groups(labels))
    read: list[Window] = []
    orders = []
    for _ in range(settings.epochs):
        turned = {document: chance.random() < settings.exchanged for document in {label.document for label in labels}}
        shown = [both[turned[label.document]][row] for row, label in enumerate(labels)]
        shown = [in_sentence(label) if chance.random() < settings.alone else label for label in shown]
        first = len(read)
        read += windows(tokenizer, *positions(shown))
        order = _alike(chance, [len(window.ids) for window in read[first:]], settings.batch_size)
        orders.append([first + row for row in order])

    def loss(chosen: Sequence[int]) -> Any:
        return _loss(network, [read[number] for number in chosen], classes, settings)

    pace = Pace(settings.learning_rate, settings.warmup, settings.weight_decay, settings.largest_gradient)
    fit_epochs(network, orders, loss, settings.batch_size, pace, partial(print, flush=True))
    return encoder_tensors(network)


def exchange_groups(labels: Sequence[Label]) -> list[Label]:
    """The labels with each word for women in their texts replaced by that for men, and the reverse."""
    from askew.rewrite.swap import key_of, load_swaps

    swaps = load_swaps("gender-en").swaps
    longest_first = "|".join(sorted(map(re.escape, swaps), key=len, reverse=True))
    words = re.compile(rf"(?<!\w)({longest_first})(?!\w)", re.IGNORECASE)
    exchanged = []
    for label in labels:
        parts, last, at, length = [], 0, label.at, len(label.word)
        for match in words.finditer(label.text):
            near, far = swaps[key_of(match[0])]
            new = near if re.match(r"\s+\w", label.text[match.end() :]) else far
            new = new.upper() if match[0].isupper() and len(match[0]) > 1 else new
            new = new[0].upper() + new[1:] if match[0][0].isupper() else new
            if match.start() == label.at:
                length = len(new) + len(label.word) - len(match[0])
            elif match.start() < label.at:
                at += len(new) - len(match[0])
            parts += [label.text[last : match.start()], new]
            last = match.end()
        text = "".join([*parts, label.text[last:]])
        exchanged.append(replace(label, text=text, at=at, word=text[at : at + length]))
    return exchanged


_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+")


def in_sentence(label: Label) -> Label:
    """The label with the sentence of the mention alone."""
    ends = [match.end() for match in _SENTENCE_END.finditer(label.text)]
    start = max((end for end in ends if end <= label.at), default=0)
    stop = min((end for end in ends if end >= label.at + len(label.word)), default=len(label.text))
    return replace(label, text=label.text[start:stop], at=label.at - start)


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
    by_query = [label for label in labels if label.split == "test" and not label.kind]
    read = {label.document for label in training_rows(labels, with_test_documents)}
    chosen, wanted, ruled = classes_of_test(resolver, by_query)
    fresh = np.array([label.document not in read for label in by_query])
    of_collection = np.array([label.collection for label in by_query])
    share: Callable[..., Any] = partial(accuracy, queries=[label.query for label in by_query])
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
        **measure_kinds(resolver, [label for label in labels if label.split == "test" and label.kind]),
    }


def classes_of_test(resolver: Resolver, test: Sequence[Label]) -> tuple[Any, Any, Any]:
    """The estimated classes, the labels, and the estimates after the rule for clipped words."""
    chosen = resolver.probabilities(*positions(test)).argmax(1)
    ruled = np.where([label.clipped for label in test], WHO.index("other"), chosen)
    return chosen, np.array([WHO.index(label.who) for label in test]), ruled


def measure_kinds(resolver: Resolver, test: Sequence[Label]) -> dict[str, Any]:
    """Accuracy, and precision and recall of ``generic``, for each kind of text and words for each gender."""
    _, wanted, ruled = classes_of_test(resolver, test)
    generic = WHO.index("generic")
    share: Callable[..., Any] = partial(accuracy, queries=["\t".join(label.document) for label in test])
    kinds, groups = (np.array([getattr(label, part) for label in test]) for part in ("kind", "group"))
    parts = {
        ", ".join(part for part in (kind or "all kinds", group) if part): (kinds == kind if kind else kinds != "")
        & (groups == group if group else groups != "")
        for kind in ("", *sorted(set(kinds.tolist())))
        for group in ("", *sorted(set(groups.tolist())))
    }
    return {
        "kinds": {name: share(ruled == wanted, of=part) for name, part in parts.items()},
        "recall of generic": {
            name: share(ruled == wanted, of=part & (wanted == generic)) for name, part in parts.items()
        },
        "precision of generic": {
            name: share(ruled == wanted, of=part & (ruled == generic)) for name, part in parts.items()
        },
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
    nested = {"by class": "class", "by collection": "collection", "kinds": "kind"}
    for part, title in (nested | {name: name for name in ("recall of generic", "precision of generic")}).items():
        flat |= {f"{title} {name}": one for name, one in measured[part].items()}
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

    rows = [label for label in training_rows(labels) if fold_of(label) == fold and label.collection != "written"]
    found = NeuralResolver(str(folder)).probabilities(*positions(rows))
    np.save(folder / "out_of_fold.npy", found)
    right = np.mean(found.argmax(axis=1) == [WHO.index(one.who) for one in rows])
    print(f"fold {fold}: {right:.3f} of {len(rows)} right")


def write(folder: Path, measured: dict[str, Any]) -> None:
    (folder / "measured.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path, nargs="+", default=[])
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
    labels = read_labels([LABELS, WRITTEN, KINDS, *options.labels], options.data)
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
