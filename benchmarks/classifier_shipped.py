"""How often the shipped classifier of queries (query-groups) is right, from kept predictions; writes its card.

The logits in ``reformulation/groups_predictions.npz`` are of three kinds, all of queries that were not trained on:

    open_rekabsaz     the shipped model on the annotated MS MARCO queries, rows as ``classifier.read`` gives them
    open_folds        five models of the same training on the open queries (groups.jsonl without the label o), each on
                      the fold that it has not seen: ``zlib.crc32`` of the query in small letters, modulo 5
    rekabsaz_folds    a variant for research, not shipped: trained on four folds of the annotated queries and all open
                      queries, on the fifth fold

The annotated queries are for research only: neither they nor their labels are part of the project.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.files import DATA, digest_file
from askew.measures.statistics.intervals import wilson
from askew.rewrite.classifiers import (
    ADAPTER,
    CLASSES,
    LexicalClassifier,
    QueryGroupsClassifier,
    read_temperature,
    softmax,
    write_calibration,
)
from askew.train.classifier import LabeledTexts
from askew.train.scores import classifier_scores

HERE = Path(__file__).parent / "reformulation"
KEPT, OPEN, CARD = HERE / "groups_predictions.npz", HERE / "groups.jsonl.gz", HERE / "groups_card.md"
FOLDER = DATA / "adapters" / ADAPTER
LABELS = {"n": 0, "f": 1, "m": 2}
FOLDS = 5
# The kept logits are of weights in 32 bits on a GPU; those that are shipped have 16 bits.
TOLERANCE = 0.05


def open_rows() -> tuple[list[dict[str, str]], Any, Any]:
    """The open queries of one class, their labels and folds."""
    rows = [json.loads(line) for line in gzip.decompress(OPEN.read_bytes()).decode().splitlines()]
    rows = [row for row in rows if row["label"] in LABELS]
    folds = np.array([zlib.crc32(row["query"].lower().encode()) % FOLDS for row in rows])
    return rows, np.array([LABELS[row["label"]] for row in rows]), folds


def share(right: Any) -> dict[str, Any]:
    low, high = wilson(int(right.sum()), len(right))
    return {"accuracy": float(right.mean()), "low": low, "high": high, "queries": len(right)}


def scores(probabilities: Any, labels: Any, folds: Any) -> dict[str, Any]:
    """Accuracy over all queries and by fold with Wilson's intervals, F1 and calibration error, and the confusion."""
    right = probabilities.argmax(1) == labels
    found = classifier_scores(probabilities, labels, CLASSES)
    confusion = np.zeros((len(CLASSES), len(CLASSES)), int)
    np.add.at(confusion, (labels, probabilities.argmax(1)), 1)
    intervals = {"macro F1": found.macro_f1, **{f"F1 {name}": one for name, one in found.f1.items()}, "ECE": found.ece}
    return {
        "all": share(right), "folds": [share(right[folds == k]) for k in range(FOLDS)],
        **{name: {"value": one.value, "low": one.low, "high": one.high} for name, one in intervals.items()},
        "confusion": {name: row.tolist() for name, row in zip(CLASSES, confusion, strict=True)},
    }  # fmt: skip


def measure(data: LabeledTexts, folds: Any) -> dict[str, Any]:
    """Everything that the card says, from the kept logits, the labels and the words alone."""
    from askew.train.classifier import cross_calibrated

    rows, open_labels, open_folds = open_rows()
    temperature = read_temperature(FOLDER)
    with np.load(KEPT) as kept:
        logits = {name: kept[name].astype(np.float64) for name in kept.files}
    shipped = logits["open_rekabsaz"]
    lexical = LexicalClassifier().classify(data.texts).probabilities[:, : len(CLASSES)]
    return {
        "weights": digest_file(FOLDER / "adapter.safetensors"), "temperature": temperature,
        "training": {"queries": len(rows), "sources": dict(Counter(row["source"] for row in rows)),
                     "classes": dict(zip(CLASSES, np.bincount(open_labels).tolist(), strict=True))},
        "shipped": scores(softmax(shipped, temperature), data.labels, folds),
        "ECE without temperature": classifier_scores(softmax(shipped), data.labels, CLASSES).ece.value,
        "lexical": scores(lexical, data.labels, folds),
        "open queries": scores(softmax(logits["open_folds"], temperature), open_labels, open_folds),
        "research variant": scores(cross_calibrated(logits["rekabsaz_folds"], data.labels, folds), data.labels, folds),
    }  # fmt: skip


def check(data: LabeledTexts) -> str:
    """Run the shipped adapter on the queries and compare with the kept logits."""
    found = QueryGroupsClassifier().logits(data.texts)
    with np.load(KEPT) as kept:
        wanted = kept["open_rekabsaz"]
    far, same = float(np.abs(found - wanted).max()), float((found.argmax(1) == wanted.argmax(1)).mean())
    if far > TOLERANCE:
        raise SystemExit(f"the shipped adapter gives other logits than those kept: {far:.4f} away, {TOLERANCE} allowed")
    return f"shipped adapter against the kept logits: at most {far:.4f} away, {same:.2%} of the labels are the same"


def write(told: dict[str, Any]) -> None:
    (FOLDER / "measured.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    (FOLDER / "README.md").write_text(card(told), encoding="utf-8")


def calibrate() -> dict[str, Any]:
    """The temperature, fit on the folds of the open queries: no annotated MS MARCO query is read."""
    _, labels, _ = open_rows()
    with np.load(KEPT) as kept:
        return write_calibration(FOLDER, kept["open_folds"].astype(np.float64), labels)


def card(told: dict[str, Any]) -> str:
    """What the adapter is and does, from what was measured: no number is typed by hand."""
    about = told["training"]
    return CARD.read_text(encoding="utf-8").format(
        queries=about["queries"], sources=_listed(about["sources"]), classes=_listed(about["classes"]),
        temperature=told["temperature"], raw=told["ECE without temperature"], tables=show(told),
        annotated=told["shipped"]["all"]["queries"],
    )  # fmt: skip


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in values.items())


_ROWS = {
    "shipped": "query-groups, annotated MS MARCO queries", "lexical": "lexical, the same queries",
    "research variant": "research variant, the same queries", "open queries": "same training, open queries, 5 folds",
}  # fmt: skip


def show(told: dict[str, Any]) -> str:
    """The tables of the card."""
    columns = ("macro F1", "F1 female", "F1 male", "F1 neutral", "ECE")
    lines = [
        f"| | queries | accuracy, higher is better | {' | '.join(columns)} |",
        "|---|" + "---|" * (2 + len(columns)),
    ]
    for key, name in _ROWS.items():
        one = told[key]
        cells = [f"{one[column]['value']:.4f}" for column in columns]
        lines.append(f"| {name} | {one['all']['queries']:,} | {_interval(one['all'])} | {' | '.join(cells)} |")
    lines += ["", f"| accuracy by fold | {' | '.join(str(k) for k in range(FOLDS))} |", "|---|" + "---|" * FOLDS]
    lines += [
        f"| {name} | {' | '.join(_interval(fold) for fold in told[key]['folds'])} |" for key, name in _ROWS.items()
    ]
    lines += ["", f"| {_ROWS['shipped']}, labeled as | {' | '.join(CLASSES)} |", "|---|" + "---|" * len(CLASSES)]
    lines += [
        f"| asks about {name} | {' | '.join(map(str, row))} |" for name, row in told["shipped"]["confusion"].items()
    ]
    return "\n".join(lines)


def _interval(one: dict[str, Any]) -> str:
    return f"{one['accuracy']:.4f} [{one['low']:.4f}, {one['high']:.4f}]"
