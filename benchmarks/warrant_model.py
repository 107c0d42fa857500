"""Is a document about what was asked, and why does a mention stand there? Fit the two regressions, and measure them.

    python benchmarks/warrant_model.py --data DATA --labels FILE ... --folds FOLDER --out src/askew/shipped/mentions
    python benchmarks/warrant_model.py --data DATA --labels FILE ... --folds FOLDER
    python benchmarks/warrant_model.py --data DATA --labels FILE ... [--keep FILE]

Fitted on the labels with ``why`` (README.md in ``benchmarks/mentions``) outside MS MARCO and outside the test split;
five-fold cross-validation over queries gives the confusion of why that shares are corrected by, and FOLDER (see
``mention_model.py``) that of who; training rows have the classes of the fold in which their document was left out.
Rarity of words is from the documents of BoolQ, SQuAD and FairytaleQA. A row of rank 0 was found in a judged document:
its relevance is known. Without ``--folds`` what is shipped is measured on the test split, and ``--keep`` writes the
figures (those that are shipped: ``src/askew/shipped/adapters/minilm-why/measured.json``) with the errors of the
cross-validation, which are kept in ``relevance.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from mention_model import LABELS, TEST_ONLY, Label, accuracy, fold_of, read_labels, read_texts, training_rows
from sklearn.linear_model import LogisticRegression
from why_model import MERGED, Row, fold_of_query, read_rows, usable

from askew.core.groups import WHO
from askew.core.text import is_clipped
from askew.measures import relevance as r
from askew.measures.relevance import WHY, Estimator, _stems
from askew.measures.resolver import class_probabilities, open_resolver

ENCYCLOPEDIA = ("boolq", "squad_part", "fairytaleqa")
LEAST = 3
FOLDS = 5


def write_frequencies(data: Path, out: Path) -> None:
    """In how many documents each stem stands, as rarity in sixteenths."""
    often: Counter[str] = Counter()
    documents = 0
    for name in ENCYCLOPEDIA:
        for text in read_texts(data, name).values():
            documents += 1
            often.update(set(_stems(text)))
    kept = sorted(word for word, count in often.items() if count >= LEAST)
    rarity = [math.log(1 + documents / (1 + often[word])) for word in kept]
    np.savez_compressed(
        out / "frequencies.npz", stems=np.frombuffer("\n".join(kept).encode(), np.uint8),
        rarity=np.round(np.array(rarity) * 16).astype(np.uint8),
    )  # fmt: skip
    print(f"{documents:,} documents, {len(kept):,} stems")


def out_of_fold(labels: list[Label], folder: Path) -> tuple[dict[tuple[str, str, int], Any], Any]:
    """What a resolver trained without a document says of its mentions, and how often classes are mistaken."""
    found, counts = {}, np.zeros((len(WHO), len(WHO)), int)
    for fold in range(FOLDS):
        rows = [one for one in training_rows(labels) if fold_of(one) == fold]
        for one, p in zip(rows, np.load(folder / str(fold) / "out_of_fold.npy"), strict=True):
            found[one.collection, one.doc, one.at] = p
            counts[WHO.index(one.who), p.argmax()] += 1
    print(f"\nwho, out of fold: {np.trace(counts) / counts.sum():.3f} of {counts.sum():,} right")
    print(f"\n| read as | {' | '.join(WHO)} |\n|---|" + "---|" * len(WHO))
    for place, who in enumerate(WHO):
        print(f"| label {who} | {' | '.join(map(str, counts[place].tolist()))} |")
    return found, counts


def who_of(rows: list[Row], known: dict[tuple[str, str, int], Any]) -> Any:
    texts = [one.text for one in rows]
    starts = np.array([one.at for one in rows])
    ends = starts + np.array([len(one.word) for one in rows])
    found = class_probabilities(open_resolver(), texts, np.arange(len(rows)), starts, ends)
    for place, one in enumerate(rows):
        found[place] = known.get((one.collection, one.doc, one.at), found[place])
    return found


def fit(x: Any, y: Any, weights: Any) -> dict[str, Any]:
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=2000).fit((x - mean) / spread, y, sample_weight=weights)
    found, bias = model.coef_, model.intercept_
    if len(found) == 1:
        found, bias = np.vstack([0 * found, found]), np.array([0.0, bias[0]])
    made = {"mean": mean, "spread": spread, "weights": found, "bias": bias}
    return {key: np.round(value, 6).tolist() for key, value in made.items()}


def rank_weights(rows: list[Row], used: Any) -> Any:
    """First ranks were read more often; weighted, each rank of a collection's top 10 counts alike."""
    often = Counter((one.collection, one.rank) for one, use in zip(rows, used, strict=True) if use)
    ranks = Counter(collection for collection, _ in often)
    size = Counter(one.collection for one, use in zip(rows, used, strict=True) if use)
    return np.array([
        size[one.collection] / ranks[one.collection] / often[one.collection, one.rank]
        if (one.collection, one.rank) in often else 1.0
        for one in rows
    ])  # fmt: skip


def is_fitted(row: Row) -> bool:
    """Whether the regressions are fit on a row. Documents of the test split are not left out, its queries are."""
    return row.split == "train" and row.collection not in TEST_ONLY and not row.judged


@dataclass
class Task:
    """The features of all rows."""

    rows: list[Row]
    known: dict[tuple[str, str, int], Any]
    folds: Path | None

    def __post_init__(self) -> None:
        self.estimator = Estimator()
        self.queries, self.texts = [one.query for one in self.rows], [one.text for one in self.rows]
        self.starts = [one.at for one in self.rows]
        self.who = who_of(self.rows, self.known)
        self.read = self._read()
        self.x = self.estimator.relevance_features(self.queries, self.texts)
        self.why = np.array([WHY.index(MERGED.get(one.why, one.why)) for one in self.rows])
        self.judged = np.array([one.judged for one in self.rows])
        self.train = np.array([is_fitted(one) for one in self.rows])
        self.weights = rank_weights(self.rows, self.train)
        names = sorted({one.query for one in self.rows})
        random.Random(1).shuffle(names)
        fold = {query: number % FOLDS for number, query in enumerate(names)}
        self.fold = np.array([fold[one.query] for one in self.rows])

    def _read(self) -> Any:
        """What the adapter minilm-why says, of training rows without their query in its training."""
        found = self.estimator.read(self.queries, self.texts, self.starts)
        if self.folds is None:
            return found
        rows = usable(self.rows)
        known = {}
        for fold in range(FOLDS):
            here = [one for one in rows if fold_of_query(one) == fold]
            answers = np.load(self.folds / "why" / str(fold) / "out_of_fold.npy")
            known |= {(one.query, one.doc, one.at): p for one, p in zip(here, answers, strict=True)}
        for place, one in enumerate(self.rows):
            found[place] = known.get((one.query, one.doc, one.at), found[place])
        return found

    def models(self, rows: Any) -> dict[str, Any]:
        """Both regressions, from these rows; why learns from estimates of relevance that are as good as in use."""
        weights = self.weights[rows]
        relevance = fit(self.x[rows], (self.why[rows] != r.OFFTOPIC).astype(int), weights)
        p = r.apply(relevance, self.x)[:, 1]
        x = self.estimator.why_features(self.queries, self.texts, self.starts, self.who, p, self.read)
        return {"relevance": relevance, "why": fit(x[rows], self.why[rows], weights)}

    def predict(self, models: dict[str, Any], judged: bool) -> tuple[Any, Any]:
        """Relevance and why of all rows; with ``judged``, what is judged is taken as such."""
        p = r.apply(models["relevance"], self.x)[:, 1]
        if judged:
            p = np.where(self.judged, 1.0, p)
        with mock.patch.object(r, "trained", lambda: models):
            return p, self.estimator.why(self.queries, self.texts, self.starts, self.who, p, self.read)

    def crossed(self) -> tuple[Any, Any]:
        p, why = np.zeros(len(self.rows)), np.zeros((len(self.rows), len(WHY)))
        for number in range(FOLDS):
            here = self.fold == number
            found = self.predict(self.models(self.train & ~here), judged=True)
            p[here], why[here] = found[0][here], found[1][here]
        return p, why


def table(wanted: Any, got: Any, names: tuple[str, ...]) -> Any:
    found = np.zeros((len(names), len(names)), int)
    np.add.at(found, (wanted, got), 1)
    return found


def measured(task: Task, why: Any, rows: Any) -> dict[str, Any]:
    """Accuracy of why by class and collection, with intervals clustered by query, and the confusion table."""
    got = why.argmax(axis=1)
    queries = [one.query for one, use in zip(task.rows, rows, strict=True) if use]
    right = (got == task.why)[rows]
    label = np.array([one.why for one in task.rows])[rows]
    collection = np.array([one.collection for one in task.rows])[rows]
    names = (*WHY, "stereotype")
    parts = {
        "by class": {name: label == name for name in names},
        "by collection": {name: collection == name for name in sorted(set(collection.tolist()))},
    }
    found: dict[str, Any] = {"all": accuracy(right, queries)}
    for part, chosen in parts.items():
        found[part] = {name: accuracy(right, queries, one) for name, one in chosen.items() if one.any()}
    counts = {name: np.bincount(got[rows][label == name], minlength=len(WHY)) for name in names}
    return {**found, "confusion": {name: one.tolist() for name, one in counts.items()}}


def report(found: dict[str, Any], title: str) -> None:
    """Print what was measured."""
    print(f"\n{title}\n\n| why | accuracy | 95% interval | mentions | queries |\n|---|---|---|---|---|")
    parts = {"all": found["all"]}
    parts |= {f"class {name}": one for name, one in found["by class"].items()}
    parts |= {f"collection {name}": one for name, one in found["by collection"].items()}
    for name, one in parts.items():
        interval = f"{one['low']:.3f} to {one['high']:.3f}"
        print(f"| {name} | {one['accuracy']:.3f} | {interval} | {one['rows']} | {one['queries']} |")
    print(f"\n| read as | {' | '.join(WHY)} |\n|---|" + "---|" * len(WHY))
    for name, counts in found["confusion"].items():
        print(f"| label {name} | {' | '.join(map(str, counts))} |")


def on_test(task: Task, models: dict[str, Any]) -> dict[str, Any]:
    """The test split, with judgements where there are and without, printed."""
    test = np.array([one.split == "test" for one in task.rows])
    titles = {True: "judgements used where there are", False: "without judgements"}
    found = {}
    for judged, title in titles.items():
        found[title] = measured(task, task.predict(models, judged)[1], test)
        report(found[title], f"test split, {title}")
    return found


def crossed_accuracy(confusion: list[list[int]]) -> dict[str, Any]:
    """What the counts of a cross-validation say of accuracy."""
    counts = np.array(confusion)
    share = np.diag(counts) / counts.sum(axis=1)
    return {
        "accuracy": float(np.trace(counts) / counts.sum()), "rows": int(counts.sum()),
        "by class": dict(zip(WHY, share.tolist(), strict=True)),
    }  # fmt: skip


def overlap(rows: list[Row]) -> dict[str, int]:
    """How many rows the regressions are fit on, and how many of these the documents of the test split have."""
    test = [one for one in rows if one.split == "test"]
    documents = {(one.collection, one.doc) for one in test}
    mentions = {(one.collection, one.doc, one.at) for one in test}
    used = [one for one in rows if is_fitted(one)]
    return {
        "rows": len(used),
        "in documents of the test split": sum((one.collection, one.doc) in documents for one in used),
        "same mention, other query": sum((one.collection, one.doc, one.at) in mentions for one in used),
    }


def measure_shipped(rows: list[Row], keep: Path | None) -> None:
    """What is shipped, on the test split; the cross-validation as it was counted when it was fitted."""
    test = [one for one in rows if one.split == "test"]
    found = on_test(Task(test, {}, None), r.trained())
    crossed = crossed_accuracy(r.trained()["confusion"]["why"])
    told: dict[str, Any] = {"neural": {"test": found, "cross-validated": crossed}}
    told["regressions"] = overlap(rows)
    if keep:
        keep.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path, nargs="+", default=[LABELS])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folds", type=Path)
    parser.add_argument("--keep", type=Path, help="a .json file: what is measured without --folds")
    given = parser.parse_args()
    if given.out and not given.folds:
        parser.error("--out needs --folds: the errors of the classes are counted out of fold")
    labels = read_labels(given.labels, given.data)
    rows = [one for one in read_rows(given.labels, given.data) if not is_clipped(one.text, one.at)]
    if not given.folds:
        measure_shipped(rows, given.keep)
        return
    if given.out:
        write_frequencies(given.data, given.out)
    known, mistaken = out_of_fold(labels, given.folds)
    task = Task(rows, known, given.folds)
    _, crossed = task.crossed()
    counted = task.train
    report(measured(task, crossed, counted), "cross-validated on the training rows, no judgements")
    models = task.models(task.train) if given.out else r.trained()
    on_test(task, models)
    if given.out:
        errors = {
            "who": mistaken.tolist(),
            "why": table(task.why[counted], crossed[counted].argmax(axis=1), WHY).tolist(),
        }
        text = json.dumps({**models, "confusion": errors}, indent=1)
        (given.out / "relevance.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
