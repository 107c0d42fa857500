"""train classifier: train and calibrate a classifier on labeled queries. This is ``askew train classifier``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.app.train.trained import Trained, finished, found_before
from askew.classifiers.lexical import LABEL
from askew.classifiers.temperature import fit_temperature, softmax, write_calibration
from askew.core.errors import ConfigError, DataError
from askew.core.fingerprint import digest_file
from askew.core.groups import Groups
from askew.core.ranking import Floats, Ints
from askew.corpora.memory import queries_in_memory
from askew.corpora.queries import read_queries
from askew.models import identify
from askew.trainers.card import WORK, Card, CardTable, claim
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

_PUBLISHED = "gender:female,male"
_NAMES_LIMIT = (
    "The training examples include first names, each with one gender. A person with such a name may have another "
    "gender."
)


@dataclass(frozen=True)
class ClassifierJob:
    """How a classifier is trained. Queries with a label in ``drop`` that is not a class are left out and counted.

    The classes are ``classes`` if given, or neutral and the groups of the settings, or else the labels of the data. If
    the data has the labels of the published queries (f, m, n) and no groups are given, the groups are female and male.
    """

    settings: ClassifierSettings = field(default_factory=ClassifierSettings)
    pace: Schedule = PACE
    folds: int = 5
    classes: tuple[str, ...] = ()
    drop: tuple[str, ...] = ("o",)

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ConfigError(f"folds: expected two or more, found {self.folds}")

    def settled(self, labels: Collection[str]) -> ClassifierJob:
        """The job with its classes, which may depend on the labels of the data."""
        if self.classes:
            return self
        if self.settings.groups is not None:
            return replace(self, classes=(LABEL, *self.settings.groups.names))
        published = replace(self, settings=replace(self.settings, groups=Groups.of(_PUBLISHED))).settled(())
        if all(_class_of(label, published.classes) is not None for label in labels):
            return published
        return replace(self, classes=tuple(sorted(labels)))


def train_classifier(
    data: object, out: Path, settings: ClassifierJob | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Cross-validate, then train on all queries of a file, a data frame or a table with query_id, text and label."""
    chosen = choose_device(device)
    texts, job, notes = read_labeled_queries(data, settings or ClassifierJob())
    digest = digest_file(Path(data)) if isinstance(data, str | Path) else texts.data()
    identity = {"data": digest, "weights": identify(job.settings.model), **_plain(job)}
    found = claim(out, identity)
    if found is not None:
        return found_before(out, found)
    work = out / WORK
    fold = stratified_folds(texts, job.folds, job.pace.seed)
    logits = cross_validate(texts, fold, job.settings, job.pace, work, identity, chosen, progress)
    scores = classifier_scores(cross_calibrated(logits, texts.labels, fold), texts.labels, texts.classes)
    raw = classifier_scores(softmax(logits), texts.labels, texts.classes)
    model, tokenizer = fit(texts, job.settings, job.pace, work / "all", identity, chosen, progress)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    calibration = write_calibration(out, logits, texts.labels)
    measured = {"cross_validation": asdict(scores), "ece_without_temperature": asdict(raw.ece), **calibration}
    name = Path(data).name if isinstance(data, str | Path) else "in memory"
    return finished(out, _card(name, texts, job, identity, chosen, command, measured, scores, notes))


def read_labeled_queries(
    source: object, job: ClassifierJob
) -> tuple[LabeledTexts, ClassifierJob, dict[str, int]]:  # fmt: skip
    """The queries with their classes, the job with its classes, and the number of left-out queries by reason."""
    is_file = isinstance(source, str | Path)
    table = read_queries(Path(str(source))) if is_file else queries_in_memory(source)
    rows = list(zip(*(table[name].to_pylist() for name in ("query_id", "text", "label")), strict=True))
    where = str(source) if is_file else "queries in memory"
    for query_id, _, label in rows:
        if label is None:
            raise DataError(f"{where}: expected a label for every query, found none for {query_id!r}")
    settled = job.settled({label for _, _, label in rows} - set(job.drop))
    dropped = {label for label in job.drop if _class_of(label, settled.classes) is None}
    notes = Counter(f"label {label!r}" for _, _, label in rows if label in dropped)
    rows = [row for row in rows if row[2] not in dropped]
    meant = [_class_of(label, settled.classes) for _, _, label in rows]
    for (query_id, _, label), one in zip(rows, meant, strict=True):
        if one is None:
            raise DataError(
                f"{where}: expected one of the labels {', '.join(settled.classes)}, or the beginning of one of them; "
                f"found {label!r} for the query {query_id!r}; give other groups= or classes=, or leave such queries "
                "out with drop="
            )
    texts = tuple(text for _, text, _ in rows)
    return LabeledTexts(texts, np.array(meant, np.int64), settled.classes), settled, dict(notes)


def _class_of(label: str, classes: Sequence[str]) -> int | None:
    """The class with this label as name or as unique prefix; None if there is no such class."""
    if label in classes:
        return classes.index(label)
    found = [at for at, name in enumerate(classes) if label and name.startswith(label.lower())]
    return found[0] if len(found) == 1 else None


def cross_calibrated(logits: Floats, labels: Ints, fold: Ints) -> Floats:
    """The probabilities of each fold, with the temperature fitted on the other folds."""
    found = np.zeros_like(logits)
    for k in range(int(fold.max()) + 1):
        temperature = fit_temperature(logits[fold != k], labels[fold != k])
        found[fold == k] = softmax(logits[fold == k], temperature)
    return found


def _plain(job: ClassifierJob) -> dict[str, Any]:
    return {**job.settings.facts(), **asdict(job.pace), "folds": job.folds, "classes": list(job.classes),
            "drop": list(job.drop)}  # fmt: skip


def _card(
    source: str, data: LabeledTexts, job: ClassifierJob, identity: Mapping[str, Any], device: str, command: str,
    measured: Mapping[str, Any], scores: ClassifierScores, notes: Mapping[str, int],
) -> Card:  # fmt: skip
    counts = np.bincount(data.labels, minlength=len(data.classes)).tolist()
    rows = {
        "file": source, "sha256": identity["data"], "queries": len(data),
        **dict(zip(data.classes, counts, strict=True)), "texts labeled with several classes": contradictions(data),
        **{f"left out: {why}": n for why, n in notes.items()},
    }  # fmt: skip
    by_name = known_words(replace(job.settings, words=False), data.classes)
    return Card(
        title="A classifier of the group that a query is about",
        about="An encoder that classifies queries; all its weights were fine-tuned. Use it with "
        "`askew classify QUERIES --classifier transformer --set model=FOLDER`.",
        command=command,
        base=identity["weights"],
        data=(rows, {"lexicon words added as training examples": len(known_words(job.settings, data.classes))}),
        seed=job.pace.seed,
        settings=_plain(job),
        device=device,
        measured=measured,
        tables=(scores_table(scores, job.folds),),
        limits=(
            "Each label is the judgement of one annotator about a short text. Annotators disagree with each other, and "
            "the model will disagree with some of the annotators.",
            *((_NAMES_LIMIT,) if by_name else ()),
            "The temperature of the model was fitted on the held-out logits of the cross-validation. In the "
            "table of the cross-validation, the temperature for each fold was fitted on the other folds.",
        ),
        extra={"identity": dict(identity)},
    )


def scores_table(scores: ClassifierScores, folds: int) -> CardTable:
    """The scores of this model, with the published scores if they have the same classes."""
    names = sorted(scores.f1)
    ours = ("this model", str(scores.accuracy), *(str(scores.f1[name]) for name in names), str(scores.ece))
    rows: list[tuple[Any, ...]] = [ours]
    _, listed = read_published("gender-classifier")
    if all({f"f1_{name}" for name in names} <= set(row) for row in listed):
        rows += [
            (f"{r['model']} (published)", r["accuracy"], *(r[f"f1_{name}"] or None for name in names), None)
            for r in listed
        ]
    columns = ("model", "accuracy", *(f"F1 {name}" for name in names), "ECE")
    return CardTable(f"{folds}-fold cross-validation, {scores.n} queries, 95% intervals", columns, tuple(rows))
