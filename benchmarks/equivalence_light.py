"""Does a reformulation ask for the same, would a person type it? Fit the light model of equivalence, and measure it.

    python benchmarks/equivalence_light.py --data DATA/reformulation --out src/askew/data/equivalence-light.json
    python benchmarks/equivalence_light.py --data DATA/reformulation --predictions FILE.jsonl

Logistic regressions of the features of ``askew.filters.light_equivalence``, fit on the labels of BoolQ and SQuAD in the
split train. MS MARCO's rows are only measured on. The table has the area under the ROC curve by family of methods:
``train`` out of fold (five folds by query), ``dev`` and ``test`` with the model of all training rows; intervals are
from 1,000 samples of queries. ``similarity`` alone is shown beside it. All features are kept: to leave out those that
did not help on the folds of ``train`` made the figures better there only. The labels are by a large language model, not
by people.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from name_rule import family, read
from scipy.optimize import minimize
from scipy.stats import rankdata

from askew.filters.light_equivalence import FEATURES, light_equivalence, pair_features

FOLDS, PENALTY, DIGITS = 5, 3.0, 5
OPEN = ("boolq", "squad")
FAMILIES = ("others", "local", "trial")


def fit(x: Any, y: Any) -> tuple[Any, float]:
    """Weights of the features as they are, and the bias; the penalty is on scaled features."""
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    z = (x - mean) / scale

    def loss(flat: Any) -> tuple[float, Any]:
        logit = z @ flat[:-1] + flat[-1]
        wrong = 1 / (1 + np.exp(-logit)) - y
        value = (np.logaddexp(0, logit) - y * logit).sum() + PENALTY * (flat[:-1] ** 2).sum() / 2
        return value, np.append(z.T @ wrong + PENALTY * flat[:-1], wrong.sum())

    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    weights = found[:-1] / scale
    return weights, float(found[-1] - weights @ mean)


def fold_of(query: str) -> int:
    return int(hashlib.sha256(query.encode()).hexdigest(), 16) % FOLDS


def probability(x: Any, model: tuple[Any, float]) -> Any:
    return 1 / (1 + np.exp(-(x @ model[0] + model[1])))


def predict(x: Any, y: Any, train: Any, folds: Any) -> tuple[Any, tuple[Any, float]]:
    """Out of fold for the training rows, by the model of all of them for the others; and that model."""
    model = fit(x[train], y[train])
    found = probability(x, model)
    for fold in range(FOLDS):
        part = train & (folds == fold)
        found[part] = probability(x[part], fit(x[train & (folds != fold)], y[train & (folds != fold)]))
    return found, model


def auc(scores: Any, y: Any) -> float:
    positive = int(y.sum())
    if positive in (0, len(y)):
        return float("nan")
    ranks = rankdata(scores)[y > 0].sum() - positive * (positive + 1) / 2
    return float(ranks / (positive * (len(y) - positive)))


def interval(scores: Any, y: Any, queries: Any, samples: int = 1000) -> str:
    """The area under the curve, with an interval over samples of queries."""
    rng, of = np.random.default_rng(1), {q: np.flatnonzero(queries == q) for q in np.unique(queries)}
    groups = list(of.values())
    drawn = []
    for _ in range(samples):
        rows = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        drawn.append(auc(scores[rows], y[rows]))
    low, high = np.nanpercentile(drawn, [2.5, 97.5]) if not np.all(np.isnan(drawn)) else (np.nan, np.nan)
    return f"{auc(scores, y):.3f} [{low:.3f}, {high:.3f}]"


def table(rows: list[dict[str, Any]], target: str, scores: Any, y: Any, x: Any) -> None:
    queries, families = np.array([r["query"] for r in rows]), np.array([family(r) for r in rows])
    splits = np.array([r["split"] for r in rows])
    is_open = np.array([r["collection"] in OPEN for r in rows])
    print(f"\n{target:8} {'rows':12} {'family':7} {'n':>5} {'positive':>8}  AUC (95% interval)     similarity alone")
    for split in ("train", "dev", "test"):
        for of_open, name in ((True, "open"), (False, "msmarco")):
            for one in FAMILIES:
                here = (splits == split) & (families == one) & (is_open == of_open)
                if here.any():
                    shown = interval(scores[here], y[here], queries[here])
                    alone, share = auc(x[here, 0], y[here]), y[here].mean()
                    print(f"{'':8} {split + ' ' + name:12} {one:7} {here.sum():5} {share:8.1%}  {shown}   {alone:.3f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder with equivalence.jsonl")
    options.add_argument("--out", type=Path, help="the file of weights to write")
    options.add_argument("--predictions", type=Path, help="file for the predictions: out of fold, dev and test")
    options.add_argument("--splits", default="train,dev,test", help="splits to measure on, joined by commas")
    given = options.parse_args()
    rows = read(given.data / "equivalence.jsonl", set(given.splits.split(",")))
    originals, candidates = [r["query"] for r in rows], [r["candidate"] for r in rows]
    x, folds = pair_features(originals, candidates), np.array([fold_of(q) for q in originals])
    train = np.array([r["split"] == "train" and r["collection"] in OPEN for r in rows])
    targets = {"same": [r["need"] == "same" for r in rows], "natural": [r["natural"] == 1 for r in rows]}
    stored: dict[str, Any] = {"features": FEATURES, "weights": {}, "bias": {}}
    predictions = {}
    for target, labels in targets.items():
        y = np.array(labels, float)
        predictions[target], (weights, bias) = predict(x, y, train, folds)
        stored["weights"][target], stored["bias"][target] = weights.round(DIGITS).tolist(), round(bias, DIGITS)
        table(rows, target, predictions[target], y, x)
    if given.predictions:
        told = ({**r, **{f"p_{t}": round(float(p[i]), 6) for t, p in predictions.items()}} for i, r in enumerate(rows))
        given.predictions.write_text("".join(json.dumps(one) + "\n" for one in told), encoding="utf-8")
    if given.out:
        given.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        print(f"\n{train.sum():,} rows; {given.out}")
        start = time.process_time()
        light_equivalence(originals * 4, candidates * 4)
        print(f"{4 * len(rows) / (time.process_time() - start):,.0f} pairs a second, {len(set(originals)):,} queries")


if __name__ == "__main__":
    main()
