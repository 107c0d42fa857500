"""The classifier of query gender: five-fold cross-validation on the annotated MS MARCO queries, next to the published.

    python benchmarks/classifier.py train --data QUERIES.csv --work WORK           the default settings
    python benchmarks/classifier.py train --data QUERIES.csv --work WORK --choose  and settings chosen inside each fold
    python benchmarks/classifier.py baseline --data QUERIES.csv --work WORK        nothing but a logistic regression
    python benchmarks/classifier.py show --data QUERIES.csv --work WORK            the table
    python benchmarks/classifier.py shipped --data QUERIES.csv                     the shipped classifier, and its card
    python benchmarks/classifier.py shipped --data QUERIES.csv --check             and run it on the queries

``train`` writes the held-out logits into WORK; it needs numpy, torch, transformers and accelerate, so it may run on a
machine with a GPU and nothing else of askew's. ``--model`` is a base model by name or folder, and may be repeated.
Settings are never chosen on a test fold: with ``--choose`` each fold tries all of CANDIDATES on a fifth of its own
training queries, takes the best of them and trains anew.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.files import digest_file
from askew.core.groups import Groups
from askew.models.find import MINILM, identify
from askew.train.card import hardware
from askew.train.classifier import (
    PACE,
    ClassifierSettings,
    LabeledTexts,
    cross_validate,
    fit,
    logits_of,
    stratified_folds,
)
from askew.train.common import choose_device, remembered

CLASSES = ("neutral", "female", "male")
LABELS = {"n": 0, "f": 1, "m": 2}
CANDIDATES: list[dict[str, Any]] = [
    {**words, "learning_rate": rate, "epochs": epochs}
    for words in ({}, {"marks": False})
    for rate, epochs in ((5e-5, 5.0), (1e-4, 5.0), (2e-4, 5.0), (1e-4, 8.0))
]


def read(path: Path) -> LabeledTexts:
    """The published file has no quoting: the first field is the id, the last the label."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(",".join(row[1:-1]), row[-1]) for row in csv.reader(file, quoting=csv.QUOTE_NONE) if row]
    print(f"{path.name}: {len(rows):,} queries, {dict(Counter(label for _, label in rows))}; label 'o' is left out")
    kept = [(text, LABELS[label]) for text, label in rows if label != "o"]
    return LabeledTexts(tuple(text for text, _ in kept), np.array([label for _, label in kept]), CLASSES)


def train(options: Any) -> None:
    data = read(options.data)
    device = choose_device(options.device)
    for model in options.model or [MINILM]:
        for seed in options.seeds:
            own = ClassifierSettings(model, Groups.of("gender:female,male"), marks=not options.no_marks)
            pace = replace(PACE, save_every=0, seed=seed)
            if options.learning_rate:
                pace = replace(pace, learning_rate=options.learning_rate, epochs=options.epochs)
            fold = stratified_folds(data, 5, 7)  # the folds stay the same: seeds change the training only
            place = options.work / "parts" / f"{identify(model)}-{seed}"
            about = {"data": digest_file(options.data)}
            began = time.monotonic()
            found = cross_validate(data, fold, replace(own, pace=pace), place, about, device)
            write(options, f"{identify(model).split('@')[0]}-{seed}", data, fold, found, began, device,
                  [own.facts() | asdict(pace)])  # fmt: skip
            if options.choose:
                began = time.monotonic()
                found, chosen = nested(data, fold, own, pace, place / "choose", about, device)
                write(options, f"{identify(model).split('@')[0]}-{seed}-chosen", data, fold, found, began, device,
                      chosen)  # fmt: skip


def nested(
    data: LabeledTexts, fold: Any, own: Any, pace: Any, place: Path, about: dict[str, Any], device: str
) -> tuple[Any, list[Any]]:
    found, chosen = np.zeros((len(data), len(CLASSES))), []
    for k in range(5):
        training = data.take(fold != k)
        inner = stratified_folds(training, 5, 100 + k)
        tried = []
        for at, one in enumerate(CANDIDATES):
            known = {**about, "fold": k, "candidate": at}
            logits = held_out(training, inner != 0, *apply(own, pace, one), place / f"{k}-{at}", known, device)
            tried.append(float((logits.argmax(1) == training.labels[inner == 0]).mean()))
        best = CANDIDATES[int(np.argmax(tried))]
        known = {**about, "fold": k, "candidate": "best"}
        found[fold == k] = held_out(data, fold != k, *apply(own, pace, best), place / f"{k}-best", known, device)
        chosen.append({**best, "inner": tried})
        print(f"fold {k}: inner {max(tried):.4f} by {best}", flush=True)
    return found, chosen


def held_out(
    data: LabeledTexts, training: Any, settings: Any, pace: Any, place: Path, about: dict[str, Any], device: str
) -> Any:
    """The logits of what is not in the training."""

    def make() -> list[list[float]]:
        model, tokenizer = fit(data.take(training), replace(settings, pace=pace), place, about, device)
        rest = data.take(~training)
        return [list(map(float, row)) for row in logits_of(model, tokenizer, rest, settings.most_tokens)]

    return np.array(remembered(place.with_suffix(".json"), {**about, **settings.facts(), **asdict(pace)}, make))


def apply(own: Any, pace: Any, one: dict[str, Any]) -> tuple[Any, Any]:
    mine = {name: value for name, value in one.items() if hasattr(own, name)}
    return replace(own, **mine), replace(pace, **{name: value for name, value in one.items() if name not in mine})


def write(
    options: Any, name: str, data: LabeledTexts, fold: Any, logits: Any, began: float, device: str, how: Any
) -> None:
    facts = {
        "name": name, "data": digest_file(options.data), "hardware": hardware(device),
        "seconds": time.monotonic() - began, "settings": how, "fold": fold.tolist(), "logits": logits.round(5).tolist(),
    }  # fmt: skip
    options.work.mkdir(parents=True, exist_ok=True)
    (options.work / f"logits-{name}.json").write_text(json.dumps(facts), encoding="utf-8")
    right = (logits.argmax(1) == data.labels).mean()
    print(f"{name}: accuracy {right:.4f}, {facts['seconds']:.0f} s on {facts['hardware']}", flush=True)


def baseline(options: Any) -> None:
    """The encoder as it is, and counts of known words and names beside it, under a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    from askew.core.lexicon import load_lexicon
    from askew.models import load_model
    from askew.rewrite.classifiers import TermCounter
    from askew.train.classifier import NAMES

    data, began = read(options.data), time.monotonic()
    fold = stratified_folds(data, 5, 7)
    vectors = load_model("dense", (options.model or [MINILM])[0]).encode(list(data.texts), batch_size=256)
    counters = (TermCounter(load_lexicon("gender"), load_lexicon(NAMES)), TermCounter(load_lexicon("gender")))
    counts = np.hstack([counter.count(data.texts) for counter in counters])
    for name, features in (
        ("frozen encoder", vectors * 5),
        ("frozen encoder and counts of words", np.hstack([vectors * 5, counts, counts > 0])),
    ):
        found = np.zeros((len(data), len(CLASSES)))
        for k in range(5):
            model = LogisticRegression(C=0.1, max_iter=2000).fit(features[fold != k], data.labels[fold != k])
            found[fold == k] = model.decision_function(features[fold == k])
        write(options, f"{name}-0", data, fold, found, began, "cpu", [{"C": 0.1}])


def show(options: Any) -> None:
    from askew.rewrite.classifiers import LexicalClassifier, softmax
    from askew.train.classifier import cross_calibrated
    from askew.train.common import read_published
    from askew.train.scores import classifier_scores

    data = read(options.data)
    print(f"data {digest_file(options.data)}; folds by seed 7; the number after a model is the seed of its training")
    lexical = LexicalClassifier().classify(data.texts).probabilities[:, :3]
    rows: list[tuple[str, Any, float | None]] = [
        ("words and names only (lexical)", classifier_scores(lexical, data.labels, CLASSES), None)
    ]
    together: dict[str, list[Any]] = {}
    trained: dict[str, None] = {}
    for file in sorted(options.work.glob("logits-*.json")):
        facts = json.loads(file.read_text(encoding="utf-8"))
        if facts["data"] != digest_file(options.data):
            raise SystemExit(f"{file}: logits of other data")
        how = {name: facts["settings"][0].get(name) for name in ("learning_rate", "epochs", "batch_size", "marks")}
        trained[f"{facts['name'].partition('-')[0]} on {facts['hardware']}: {how}"] = None
        logits, fold = np.array(facts["logits"]), np.array(facts["fold"])
        probabilities = cross_calibrated(logits, data.labels, fold)
        raw = classifier_scores(softmax(logits), data.labels, CLASSES)
        rows.append((facts["name"], classifier_scores(probabilities, data.labels, CLASSES), raw.ece.value))
        if not facts["name"].endswith(("-chosen", "-0")):
            together.setdefault(facts["name"].rpartition("-")[0], []).append(probabilities)
    for name, several in together.items():
        if len(several) > 1:
            mean = np.mean(several, axis=0)
            rows.append((f"{name}, mean of {len(several)} seeds", classifier_scores(mean, data.labels, CLASSES), None))
    if len(together) > 1:
        first = np.mean([several[0] for several in together.values()], axis=0)
        rows.append(("one of each model (together)", classifier_scores(first, data.labels, CLASSES), None))
        mean = np.mean([np.mean(several, axis=0) for several in together.values()], axis=0)
        rows.append(("mean of all models", classifier_scores(mean, data.labels, CLASSES), None))
    print("\n".join(trained))
    print(f"\n{'model':34} {'accuracy':24} {'F1 female':24} {'F1 male':24} {'F1 neutral':24} {'ECE':24} ECE as it is")
    for name, scores, raw_ece in rows:
        f1 = [str(scores.f1[one]) for one in ("female", "male", "neutral")]
        print(f"{name:34} {scores.accuracy!s:24} {f1[0]:24} {f1[1]:24} {f1[2]:24} {scores.ece!s:24} "
              f"{'-' if raw_ece is None else f'{raw_ece:.4f}'}")  # fmt: skip
    source, published = read_published("gender-classifier")
    print(f"\npublished ({source}):")
    for row in published:
        print(f"{row['model']:34} " + " ".join(f"{row[name] or '-':24}" for name in list(row)[1:]))


def shipped(options: Any) -> None:
    """The figures of the shipped classifier from its kept predictions; see classifier_shipped.py."""
    import classifier_shipped as kept

    data = read(options.data)
    print(f"data {digest_file(options.data)}; folds by seed 7")
    if options.calibrate:
        print(kept.calibrate())
    told = kept.measure(data, stratified_folds(data, 5, 7))
    kept.write(told)
    print(f"temperature {told['temperature']:.3f}; ECE without it {told['ECE without temperature']:.4f}")
    print(kept.show(told))
    if options.check:
        print(kept.check(data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("train", "baseline", "show", "shipped"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="where logits are kept; shipped needs none")
    parser.add_argument("--model", action="append")
    parser.add_argument("--seeds", nargs="*", type=int, default=[7])
    parser.add_argument("--no-marks", action="store_true", help="no names of classes before known words")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--epochs", type=float, default=PACE.epochs)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--calibrate", action="store_true", help="shipped: fit the temperature anew")
    parser.add_argument("--check", action="store_true", help="shipped: run the model and compare with the kept logits")
    options = parser.parse_args()
    if options.work is None and options.step != "shipped":
        parser.error(f"{options.step}: expected --work FOLDER")
    {"train": train, "baseline": baseline, "show": show, "shipped": shipped}[options.step](options)


if __name__ == "__main__":
    main()
