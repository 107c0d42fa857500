"""Does a reformulation look like a line of a query log? Fit the third probability of the filter equivalence.

    python benchmarks/naturalness.py --data DATA/reformulation --fit     write the weights and the measures
    python benchmarks/naturalness.py --data DATA/reformulation           measure what is shipped

``naturalness.jsonl`` has 2,901 reformulations in three levels: yes, stiff and no. *fluent* is the probability of yes.
For each model of the filter, a logistic regression reads the logits of the model and the logit of a regression on
phrases (runs of up to three words of the reformulation, and those that it adds or leaves out); that of ``neural`` reads
also the logit of a regression on the last state of SmolLM2 with the adapter smollm2-equivalence. Everything is fit on
the part train; the regressions on logits of others are fit on predictions out of fold. Penalties and the least count of
a phrase were chosen by cross-validation on the part train. The part dev was used to measure only. The adapters and the
regressions of *same* and *natural* were trained earlier, on labels of some of the same queries, those of dev too.
The labels are by a large language model, not by people.

``reformulation/ranked.jsonl.gz`` has reformulations of 28 queries on which nothing was trained: the five best that pass
the filter by the smaller of *same* and *natural*, as they were ranked before, and the five best of
``best_suggestions``. A large language model read them, query by query, in random order, without ranks and scores.
Strict: the same need, and the level yes.

``--features FILE`` keeps the features of the judge, which take minutes, in a file, or reads them if it exists.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit, logit

from askew.core.files import DATA
from askew.measures.statistics.intervals import wilson
from askew.rewrite.equivalence import (
    ADAPTER,
    FLUENT,
    OUTPUTS,
    WEIGHTS,
    load_judge,
    phrase_logits,
    phrases,
    read_fluent,
    read_weights,
)

sys.path.append(str(Path(__file__).parent.parent / "tools"))
sys.path.append(str(Path(__file__).parent))
from equivalence import calibration_error, interval
from training.data import plain
from training.logistic import fit_logistic, fold_of, out_of_fold

RANKED = Path(__file__).parent / "reformulation" / "ranked.jsonl.gz"
MEASURED = FLUENT.with_name("equivalence-fluent.measured.json")
PENALTY, STATE_PENALTY, PHRASE_PENALTY, LEAST = 10.0, 300.0, 3.0, 4
SHORT = 4
# The first column of the features of the judge that each model reads.
FIRST = {"neural": 0, "minilm": 2, "light": 4}


def features(rows: list[dict[str, Any]], kept: Path | None) -> tuple[Any, Any]:
    """The logits that the neural model reads, and the states of SmolLM2."""
    if kept is not None and kept.exists():
        with np.load(kept) as found:
            return found["x"], found["states"].astype(float)
    judge: Any = load_judge("neural")
    x, states = judge.with_states([row["query"] for row in rows], [row["candidate"] for row in rows])
    if kept is not None:
        np.savez(kept, x=x, states=states)
    return x, states.astype(float)


def fit_phrases(found: list[set[str]], y: Any) -> dict[str, float]:
    """The weights of phrases, with that of the empty phrase as the bias."""
    counts = Counter(one for some in found for one in some)
    known = {one: at for at, one in enumerate(sorted(one for one, count in counts.items() if count >= LEAST))}
    places = np.array([(row, known[one]) for row, some in enumerate(found) for one in some if one in known])
    x = csr_matrix((np.ones(len(places)), tuple(places.T)), shape=(len(found), len(known)))

    def loss(flat: Any) -> tuple[float, Any]:
        line = x @ flat[:-1] + flat[-1]
        value = (np.logaddexp(0, line) - y * line).sum() + PHRASE_PENALTY * (flat[:-1] ** 2).sum() / 2
        return float(value), np.append(x.T @ (expit(line) - y) + PHRASE_PENALTY * flat[:-1], (expit(line) - y).sum())

    weights = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    return {"": round(float(weights[-1]), 3), **{one: round(float(weights[at]), 3) for one, at in known.items()}}


def fit(rows: list[dict[str, Any]], x: Any, states: Any, y: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The stored weights, and the probability of each row by each model out of fold."""
    folds = np.array([fold_of(plain(row["query"])) for row in rows])
    queries, texts = [row["query"] for row in rows], [row["candidate"] for row in rows]
    found, by_phrases = [phrases(*pair) for pair in zip(queries, texts, strict=True)], np.zeros(len(rows))
    for fold in np.unique(folds):
        own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        weights = fit_phrases([found[row] for row in others], y[others])
        by_phrases[own] = phrase_logits([queries[row] for row in own], [texts[row] for row in own], weights)
    by_state = logit(np.clip(out_of_fold(states, y, folds, STATE_PENALTY), 1e-6, 1 - 1e-6))
    state, bias = fit_logistic(states, y, STATE_PENALTY)
    stored: dict[str, Any] = {"state": {"weights": state.round(4).tolist(), "bias": round(bias, 4)}}
    unseen = {}
    for model, first in FIRST.items():
        columns = [x[:, first:], *([by_state] if model == "neural" else []), by_phrases]
        joined = np.column_stack(columns)
        blend, bias = fit_logistic(joined, y, PENALTY)
        stored[model] = {"weights": blend.round(4).tolist(), "bias": round(bias, 4)}
        unseen[model] = out_of_fold(joined, y, folds, PENALTY)
    return {**stored, "phrases": fit_phrases(found, y)}, unseen


def shipped(rows: list[dict[str, Any]], x: Any, states: Any) -> dict[str, Any]:
    """The probability of each row by each model, with the weights that are shipped."""
    weights, queries, texts = read_fluent(), [row["query"] for row in rows], [row["candidate"] for row in rows]
    by_phrases = phrase_logits(queries, texts, weights["phrases"])
    by_state = states @ np.array(weights["state"]["weights"]) + weights["state"]["bias"]
    found = {}
    for model, first in FIRST.items():
        columns = np.column_stack([x[:, first:], *([by_state] if model == "neural" else []), by_phrases])
        found[model] = expit(columns @ np.array(weights[model]["weights"]) + weights[model]["bias"])
    return found


def measure(rows: list[dict[str, Any]], scores: Any, y: Any, here: Any) -> dict[str, Any]:
    queries = np.array([row["query"] for row in rows])
    return {
        "pairs": int(here.sum()), "queries": len(set(queries[here])), "yes": float(y[here].mean()),
        **interval(scores[here], y[here], queries[here]),
        "calibration error": calibration_error(scores[here], y[here]),
    }  # fmt: skip


def read_ranked() -> dict[str, Any]:
    """How well scores order the reformulations that were read, and the strict share of those ranked first."""
    rows = [json.loads(line) for line in gzip.decompress(RANKED.read_bytes()).decode().splitlines()]
    strict = np.array([row["strict"] for row in rows], float)
    queries = np.array([row["query"] for row in rows])
    scores = {
        "same x fluent": [row["same"] * row["fluent"] for row in rows], "fluent": [row["fluent"] for row in rows],
        "natural": [row["natural"] for row in rows],
        "smaller of same and natural": [min(row["same"], row["natural"]) for row in rows],
    }  # fmt: skip
    found: dict[str, Any] = {
        "scores": {
            name: {"pairs": len(rows), "yes": float(strict.mean()), **interval(np.array(values), strict, queries)}
            for name, values in scores.items()
        }
    }
    groups = {
        f"{name}, first {rank}": [row for row in rows if row[name] is not None and row[name] < rank]
        for rank in (1, 3, 5) for name in ("before", "now")
    }  # fmt: skip
    best = groups["now, first 5"]
    groups["now, as kept"] = [row for row in best if row["now"] < 3 or row["same"] * row["fluent"] >= 0.5]
    found["ranked"] = {}
    for name, own in groups.items():
        good = sum(row["strict"] for row in own)
        low, high = wilson(good, len(own))
        found["ranked"][name] = {"pairs": len(own), "strict": good / len(own), "low": low, "high": high}
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder with naturalness.jsonl")
    options.add_argument("--features", type=Path, help="a file for the features of the judge")
    options.add_argument("--fit", action="store_true", help="fit, and write the weights and the measures")
    given = options.parse_args()
    rows = [json.loads(line) for line in (given.data / "naturalness.jsonl").read_text(encoding="utf-8").splitlines()]
    x, states = features(rows, given.features)
    y = np.array([row["natural"] == "yes" for row in rows], float)
    train, dev = (np.array([row["split"] == part for row in rows]) for part in ("train", "dev"))
    short = np.array([len(row["query"].split()) <= SHORT for row in rows])
    measured: dict[str, Any] = {"rows": int(train.sum())}
    if given.fit:
        chosen = [row for row, here in zip(rows, train, strict=True) if here]
        stored, unseen = fit(chosen, x[train], states[train], y[train])
        FLUENT.write_text(json.dumps(stored, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        read_fluent.cache_clear()
        every = np.ones(len(chosen), bool)
        measured["train, out of fold"] = {
            name: measure(chosen, scores, y[train], every) for name, scores in unseen.items()
        }
    found = shipped(rows, x, states)
    weights, bias, _ = read_weights(DATA / "adapters" / ADAPTER / WEIGHTS)
    natural = expit(x @ weights + bias)[:, OUTPUTS.index("natural")]
    measured["dev"] = {name: measure(rows, scores, y, dev) for name, scores in found.items()}
    measured["dev"]["natural"] = measure(rows, natural, y, dev)
    strata = {"queries of at most four words": short, "longer queries": ~short}
    measured["strata"] = {name: measure(rows, found["neural"], y, dev & here) for name, here in strata.items()}
    measured["reading"] = read_ranked()
    for name, one in [*measured["reading"]["scores"].items(), *measured["reading"]["ranked"].items()]:
        value = one.get("auc", one.get("strict"))
        print(f"reading: {name:30} {one['pairs']:5} pairs, {value:.3f} [{one['low']:.3f}, {one['high']:.3f}]")
    for part in ("train, out of fold", "dev", "strata"):
        for name, one in measured.get(part, {}).items():
            print(
                f"{part}: {name:30} {one['pairs']:5} pairs, AUC {one['auc']:.3f} [{one['low']:.3f}, {one['high']:.3f}],"
                f" calibration error {one['calibration error']:.3f}, yes {one['yes']:.3f}"
            )
    if given.fit:
        MEASURED.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
