"""Who does a word for women or men point to, without a neural network? Train the light resolver, and measure it.

    python benchmarks/mention_light.py --data DATA --labels FILE ... --out src/askew/shipped/mentions/light.npz
    python benchmarks/mention_light.py --data DATA --labels FILE ... --measure [--keep FILE]
    python benchmarks/mention_light.py --data DATA --labels FILE ... --folds FOLDER

A linear model on the features of the resolver, trained on the labels of ``mention_model.py`` (same rows:
no passage of MS MARCO, no document of the test split) and on what the shipped adapter ``minilm-who`` says of further
mentions in BoolQ, SQuAD, GAP and FairytaleQA: 4,000 labels are too few for a model of single words. ``--teacher FILE``
keeps what the adapter said, which takes minutes. ``--folds`` cross-validates over documents, and writes
FOLDER/K/out_of_fold_light.npy. ``--keep`` writes what was measured; that of the shipped resolver is in
``src/askew/shipped/mentions/light.measured.json``.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from mention_model import (
    FOLDS,
    KINDS,
    LABELS,
    WRITTEN,
    Label,
    fold_of,
    measure_with,
    positions,
    read_labels,
    read_texts,
    show,
    training_rows,
)
from scipy import sparse
from scipy.optimize import minimize

from askew.core.groups import WHO
from askew.core.lexicon import load_lexicon
from askew.measures.mentions import Marker
from askew.measures.resolver import WHO_ADAPTER, LightResolver, NeuralResolver, as_bytes
from askew.measures.resolver_features import MOST_FEATURES, extract

# Mentions for the adapter to label: at most so many of a collection, and so many of a document.
UNLABELED = {"boolq": (26_000, 14), "squad_part": (16_000, 14), "gap": (9_000, 4), "fairytaleqa": (9_000, 4)}
# A label counts as much as so many answers of the adapter, and is right with this probability.
LABEL_WEIGHT, LABEL_CERTAINTY = 6.0, 0.92
PENALTY, LEAST_MENTIONS, ITERATIONS = 8.0, 3, 120
# Features whose largest weight is below this are left out.
SMALLEST = 0.02


def unlabeled(data: Path, held_out: set[tuple[str, str]], seed: int = 5) -> list[Label]:
    """Mentions that nobody read, of documents outside the test split."""
    marker, rng, found = Marker(load_lexicon("rekabsaz2020"), "word"), random.Random(seed), []
    for collection, (most, per_document) in UNLABELED.items():
        documents = list(read_texts(data, collection).items())
        rng.shuffle(documents)
        taken: list[Label] = []
        for doc, text in documents:
            if (collection, doc) in held_out or len(taken) >= most:
                continue
            marks = marker.find(text)
            rng.shuffle(marks)
            taken += [
                Label(collection, doc, mark.start, text[mark.start : mark.end], "", "train", "", text)
                for mark in marks[:per_document]
            ]
        found += taken
    return found


def features(labels: list[Label]) -> tuple[Any, Any]:
    """Hashes of the features, a row for each mention, and how many there are."""
    data, bounds, spans = as_bytes(*positions(labels))
    found, counts = np.zeros((len(labels), MOST_FEATURES), np.uint32), np.zeros(len(labels), np.int64)
    extract(data, bounds, spans, found, counts)
    return found, counts


def matrix(found: Any, counts: Any, keys: Any) -> Any:
    """One column for each key, by how often the mention has it."""
    there = np.arange(found.shape[1])[None, :] < counts[:, None]
    rows, values = np.nonzero(there)[0], found[there]
    place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    known = keys[place] == values
    ones = np.ones(int(known.sum()))
    return sparse.csr_matrix((ones, (rows[known], place[known])), shape=(len(found), len(keys)))


def fit(x: Any, y: Any, weights: Any) -> tuple[Any, Any]:
    """Multinomial regression with a squared penalty: weights of the features, and the bias."""
    size, transposed = x.shape[1], x.T.tocsr()

    def loss(flat: Any) -> tuple[float, Any]:
        w = flat.reshape(size + 1, len(WHO))
        logits = x @ w[:-1] + w[-1]
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        wrong = weights[:, None] * (p - y)
        value = -(weights[:, None] * y * np.log(p + 1e-12)).sum() + PENALTY * (w[:-1] ** 2).sum() / 2
        return value, np.vstack([transposed @ wrong + PENALTY * w[:-1], wrong.sum(axis=0)]).ravel()

    start = np.zeros((size + 1) * len(WHO))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    return found.reshape(size + 1, len(WHO))[:-1], found.reshape(size + 1, len(WHO))[-1]


def train(rows: list[Label], further: list[Label], answers: Any, out: Path) -> None:
    found, counts = features([*rows, *further])
    used, often = np.unique(found[np.arange(found.shape[1])[None, :] < counts[:, None]], return_counts=True)
    keys = used[(often >= LEAST_MENTIONS) & (used != 0)]
    rest = (1 - LABEL_CERTAINTY) / (len(WHO) - 1)
    read = np.full((len(rows), len(WHO)), rest)
    read[np.arange(len(rows)), [WHO.index(one.who) for one in rows]] = LABEL_CERTAINTY
    weights = np.concatenate([np.full(len(rows), LABEL_WEIGHT), np.ones(len(further))])
    w, bias = fit(matrix(found, counts, keys), np.vstack([read, answers]), weights)
    kept = np.abs(w).max(axis=1) >= SMALLEST
    scale = np.abs(w).max() / 127
    small = np.round(w[kept] / scale).astype(np.int8)
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out, keys=keys[kept], weights=small, scale=np.float32(scale), bias=bias)
    print(f"{len(rows):,} labels, {len(further):,} answers; {kept.sum():,} of {len(keys):,} features; {out}")


def answers_of(adapter: str, further: list[Label], kept: Path | None) -> Any:
    """What an adapter says of the mentions that nobody read."""
    if kept is not None and kept.is_file():
        found = np.load(kept).astype(np.float64)
    else:
        found = NeuralResolver(adapter).probabilities(*positions(further))
        if kept is not None:
            np.save(kept, found.astype(np.float16))
    if len(found) != len(further):
        raise SystemExit(f"{kept}: expected {len(further)} rows, found {len(found)}")
    return found


def cross_validate(labels: list[Label], further: list[Label], answers: Any, folder: Path) -> None:
    """Write out_of_fold_light.npy for each fold of the documents; the adapter's answers in these are left out."""
    rows = training_rows(labels)
    for fold in range(FOLDS):
        place = folder / str(fold)
        seen = np.array([fold_of(label) != fold for label in further])
        weights = place / "light.npz"
        kept = [label for label, use in zip(further, seen, strict=True) if use]
        train([label for label in rows if fold_of(label) != fold], kept, answers[seen], weights)
        left = [label for label in rows if fold_of(label) == fold and label.collection != "written"]
        found = LightResolver(weights).probabilities(*positions(left))
        np.save(place / "out_of_fold_light.npy", found)
        right = np.mean(found.argmax(axis=1) == [WHO.index(one.who) for one in left])
        print(f"fold {fold}: {right:.3f} of {len(left)} right", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path, nargs="+", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--teacher", type=Path, help="a .npy file: read where it is there, else written")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--keep", type=Path, help="a .json file: what was measured")
    parser.add_argument("--folds", type=Path)
    given = parser.parse_args()
    labels = read_labels([LABELS, WRITTEN, KINDS, *given.labels], given.data)
    if given.out or given.folds:
        further = unlabeled(given.data, {one.document for one in labels if one.split == "test"})
        answers = answers_of(WHO_ADAPTER, further, given.teacher)
    if given.folds:
        cross_validate(labels, further, answers, given.folds)
    if given.out:
        train(training_rows(labels), further, answers, given.out)
    if given.measure or given.out:
        measured = measure_with(LightResolver(given.out), labels, with_test_documents=False)
        print(show(measured))
        if given.keep:
            given.keep.write_text(json.dumps({"test": measured}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
