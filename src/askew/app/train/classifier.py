"""train classifier: labelled queries in, a calibrated classifier out. The whole of ``askew train classifier``."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from askew.classifiers.temperature import fit_temperature, softmax, write_calibration
from askew.core.errors import ConfigError, DataError, StoreError
from askew.core.fingerprint import digest_file
from askew.core.ranking import Floats, Ints
from askew.corpora.queries import read_queries
from askew.models import identify
from askew.trainers.card import WORK, Card, CardTable, claim, read_measured, write_card
from askew.trainers.classifier import (
    PACE,
    ClassifierSettings,
    LabeledTexts,
    contradictions,
    cross_validate,
    fit,
    known_words,
    stratified_folds,
)
from askew.trainers.common import Progress, Schedule, choose_device
from askew.trainers.published import read_published
from askew.trainers.scores import ClassifierScores, classifier_scores

CLASSES = ("neutral", "female", "male")


@dataclass(frozen=True)
class ClassifierJob:
    """How a classifier is trained. Queries with a label of ``drop`` are left out and counted."""

    settings: ClassifierSettings = field(default_factory=ClassifierSettings)
    pace: Schedule = PACE
    folds: int = 5
    classes: tuple[str, ...] = CLASSES
    drop: tuple[str, ...] = ("o",)

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ConfigError(f"folds: expected two or more, found {self.folds}")


def train_classifier(
    source: Path, out: Path, job: ClassifierJob, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Cross-validate, then train on all queries. The facts of the model; where it was trained before, they are read."""
    chosen = choose_device(device)
    data, notes = read_labelled_queries(source, job)
    identity = {"data": digest_file(source), "weights": identify(job.settings.model), **_plain(job)}
    found = claim(out, identity)
    if found is not None:
        return found
    work = out / WORK
    fold = stratified_folds(data, job.folds, job.pace.seed)
    logits = cross_validate(data, fold, job.settings, job.pace, work, identity, chosen, progress)
    scores = classifier_scores(cross_calibrated(logits, data.labels, fold), data.labels, data.classes)
    raw = classifier_scores(softmax(logits), data.labels, data.classes)
    model, tokenizer = fit(data, job.settings, job.pace, work / "all", identity, chosen, progress)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    calibration = write_calibration(out, logits, data.labels)
    measured = {"cross_validation": asdict(scores), "ece_without_temperature": asdict(raw.ece), **calibration}
    write_card(out, _card(source, data, job, identity, chosen, command, measured, scores, notes))
    shutil.rmtree(work, ignore_errors=True)
    made = read_measured(out)
    if made is None:
        raise StoreError(f"{out}: expected the facts that were just written, found none")
    return made


def read_labelled_queries(source: Path, job: ClassifierJob) -> tuple[LabeledTexts, dict[str, int]]:
    """The queries with a class, and what was left out, counted by reason."""
    table = read_queries(source)
    texts, labels = [], []
    notes: Counter[str] = Counter()
    for query_id, text, label in zip(*(table[name].to_pylist() for name in ("query_id", "text", "label")), strict=True):
        if label is None:
            raise DataError(f"{source}: expected a label for every query, found none for {query_id!r}")
        if label in job.drop:
            notes[f"label {label!r}"] += 1
            continue
        meant = [i for i, name in enumerate(job.classes) if name == label or name.startswith(label.lower())]
        if len(meant) != 1 or not label:
            raise DataError(
                f"{source}: expected a label of {', '.join(job.classes)} or its beginning, found {label!r} for the "
                f"query {query_id!r}; leave such queries out with --set drop={label}"
            )
        texts.append(text)
        labels.append(meant[0])
    return LabeledTexts(tuple(texts), np.array(labels, np.int64), job.classes), dict(notes)


def cross_calibrated(logits: Floats, labels: Ints, fold: Ints) -> Floats:
    """Probabilities of each fold with the temperature that fits the other folds."""
    found = np.zeros_like(logits)
    for k in range(int(fold.max()) + 1):
        temperature = fit_temperature(logits[fold != k], labels[fold != k])
        found[fold == k] = softmax(logits[fold == k], temperature)
    return found


def _plain(job: ClassifierJob) -> dict[str, Any]:
    return {**asdict(job.settings), **asdict(job.pace), "folds": job.folds, "classes": list(job.classes),
            "drop": list(job.drop)}  # fmt: skip


def _card(
    source: Path, data: LabeledTexts, job: ClassifierJob, identity: Mapping[str, Any], device: str, command: str,
    measured: Mapping[str, Any], scores: ClassifierScores, notes: Mapping[str, int],
) -> Card:  # fmt: skip
    counts = np.bincount(data.labels, minlength=len(data.classes)).tolist()
    rows = {
        "file": source.name, "sha256": identity["data"], "queries": len(data),
        **dict(zip(data.classes, counts, strict=True)), "two classes for one text": contradictions(data),
        **{f"left out: {why}": n for why, n in notes.items()},
    }  # fmt: skip
    return Card(
        title="Which group a query asks about",
        about="A classifier of queries, fine-tuned as a whole. Open it with "
        "`askew classify QUERIES --classifier transformer --set model=FOLDER`.",
        command=command,
        base=identity["weights"],
        data=(rows, {"words added as examples": len(known_words(job.settings, data.classes))}),
        seed=job.pace.seed,
        settings=_plain(job),
        device=device,
        measured=measured,
        tables=(scores_table(scores, job.folds),),
        limits=(
            "A label is what one reader thought a short text asks about; readers differ, and so will the model.",
            "First names are a guess about a person.",
            "The temperature was fitted on the held-out logits of the cross-validation; in the table each fold has the "
            "temperature of the others.",
        ),
        extra={"identity": dict(identity)},
    )


def scores_table(scores: ClassifierScores, folds: int) -> CardTable:
    """Ours next to the published."""
    names = [name for name in ("female", "male", "neutral") if name in scores.f1]
    ours = ("this model", str(scores.accuracy), *(str(scores.f1[name]) for name in names), str(scores.ece))
    rows: list[tuple[Any, ...]] = [ours]
    if len(names) == len(CLASSES):
        _, listed = read_published("gender-classifier")
        rows += [
            (f"{r['model']} (published)", r["accuracy"], *(r[f"f1_{name}"] or None for name in names), None)
            for r in listed
        ]
    columns = ("model", "accuracy", *(f"F1 {name}" for name in names), "ECE")
    return CardTable(f"{folds}-fold cross-validation, {scores.n} queries, 95 % intervals", columns, tuple(rows))
