"""Does a reformulation ask for the same, would a person type it? Fit the three models of equivalence, and measure them.

    python benchmarks/equivalence.py --data DATA/reformulation --fit       write the weights and the measures
    python benchmarks/equivalence.py --data DATA/reformulation             measure what is shipped
    python benchmarks/equivalence.py --data DATA/reformulation --limits DATA/querygym    negation, and the range

``light`` is two logistic regressions on the features of ``askew.rewrite.equivalence``, fit on the training labels
of BoolQ, SQuAD and made-up queries. ``minilm`` is two regressions on the logits of ``light`` and of the adapter
minilm-equivalence, ``neural`` on those and the logits of the adapter smollm2-equivalence. The adapters were trained on
the training labels (``tools/train_equivalence.py``), so that these regressions are fit on the development labels.
MS MARCO's rows are for research only: they are measured on, and no weight or threshold is fit on them.
The threshold is the lowest at which kept reformulations are usable (same and natural) with the precision PRECISION, by
predictions of rows that were not fit on: for ``neural`` and ``minilm`` reformulations of the rewriting model one round
of training before the one that ships, for ``light`` those of other methods, since the rewriting model needs the same
libraries as ``neural``. Measured on the test split are the area under the ROC curve by family of methods with intervals
from samples of queries, and the calibration error (ten bins).
``unseen_labels.jsonl`` has candidates of other methods for queries of the development split, labeled after everything
was fit: no weight or threshold is fit on them, and each collection is measured alone.
``negation.jsonl`` has queries of BoolQ with two reformulations each: in one a negation or a quantifier is added, lost
or changed, so that it asks for something else, and its twin asks for the same. It was written before the rule on
negation of the filter ``rules``, and nothing was fit on it. ``--limits`` measures what the filters keep of it, and
which pairs are outside the range of the models; the published expansions of QueryGym are read from its folder.
The labels are by a large language model, not by people. ``tools/make_cards.py`` makes the card of what is measured.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.files import DATA
from askew.rewrite.equivalence import (
    ADAPTER,
    FEATURES,
    LIGHT,
    MINILM_ADAPTER,
    OUTPUTS,
    WEIGHTS,
    EquivalenceFilter,
    in_range,
    load_judge,
    read_weights,
)
from askew.rewrite.rules import RulesFilter

sys.path.append(str(Path(__file__).parent.parent / "tools"))
from training.logistic import fit_logistic, fold_of, out_of_fold, probabilities, roc_area

LABELS = Path(__file__).parent / "reformulation" / "labels.jsonl.gz"
UNSEEN, NEGATION = LABELS.with_name("unseen_labels.jsonl"), LABELS.with_name("negation.jsonl")
FOLDER = DATA / "adapters" / ADAPTER
PENALTY, DIGITS, PRECISION, LEAST = 10.0, 5, 0.87, 50
OPEN = ("boolq", "squad", "web")
_LOGITS = {one: [f"{one} logit {output}" for output in OUTPUTS] for one in ("neural", "minilm", "light")}
NAMES = {
    "light": list(FEATURES),
    "minilm": [*_LOGITS["minilm"], *_LOGITS["light"]],
    "neural": [*_LOGITS["neural"], *_LOGITS["minilm"], *_LOGITS["light"]],
}
FAMILIES = ("other methods", "local", "earlier rewriters", "last rewriter", "querygym")


def read(data: Path) -> list[dict[str, Any]]:
    lines = (data / "equivalence.jsonl").read_text(encoding="utf-8") + gzip.decompress(LABELS.read_bytes()).decode()
    return [json.loads(line) for line in lines.splitlines()]


def family(method: str) -> str:
    """Rewriters are a trial and the model that ships at stages of its training, the last one round before its end."""
    name = method.partition(":")[0]
    if name in ("trial", "supervised", "preferred"):
        return "earlier rewriters"
    if name == "round2":
        return "last rewriter"
    return name if name == "local" else "querygym" if "querygym" in method else "other methods"


def fit_model(rows: list[dict[str, Any]], x: Any, chosen: Any, names: list[str], kept: str) -> dict[str, Any]:
    """The regressions of one model on the chosen rows, and the threshold for candidates of the family ``kept``."""
    folds = np.array([fold_of(row["query"]) for row in rows])[chosen]
    stored: dict[str, Any] = {"features": names}
    unseen = []
    for output in OUTPUTS:
        y = labels(rows, output)
        weights, bias = fit_logistic(x[chosen], y[chosen], PENALTY)
        stored[output] = {"weights": weights.round(DIGITS).tolist(), "bias": round(bias, DIGITS)}
        found = probabilities(x, weights, bias)
        found[chosen] = out_of_fold(x[chosen], y[chosen], folds, PENALTY)
        unseen.append(found)
    of = [family(row["method"]) == kept and row["split"] != "test" and row["collection"] in OPEN for row in rows]
    threshold = lowest(np.minimum(*unseen)[of], usable(rows)[of])
    for output in OUTPUTS:
        stored[output]["threshold"] = threshold
    return stored


def lowest(scores: Any, good: Any) -> float:
    """The lowest threshold, in steps of 0.01, that keeps with the wanted precision, and no fewer than LEAST."""
    for step in range(5, 96):
        kept = scores >= step / 100
        if kept.sum() >= LEAST and good[kept].mean() >= PRECISION:
            return step / 100
    return 0.95


def labels(rows: list[dict[str, Any]], output: str) -> Any:
    return np.array([row["need"] == "same" if output == "same" else row["natural"] == 1 for row in rows], float)


def usable(rows: list[dict[str, Any]]) -> Any:
    return (labels(rows, "same") > 0) & (labels(rows, "natural") > 0)


def interval(scores: Any, y: Any, queries: Any, samples: int = 1000) -> dict[str, float]:
    """The area under the curve, with an interval over samples of queries."""
    rng = np.random.default_rng(1)
    _, group = np.unique(queries, return_inverse=True)
    members = [np.flatnonzero(group == one) for one in range(group.max() + 1)]
    drawn = []
    for _ in range(samples):
        rows = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        drawn.append(roc_area(scores[rows], y[rows]))
    drawn = [one for one in drawn if not np.isnan(one)]
    low, high = np.percentile(drawn, [2.5, 97.5]) if drawn else (float("nan"),) * 2
    return {"auc": roc_area(scores, y), "low": float(low), "high": float(high)}


def calibration_error(scores: Any, y: Any) -> float:
    """The mean distance between probability and frequency over ten bins of probability."""
    bins = np.minimum((scores * 10).astype(int), 9)
    parts = [(bins == one) for one in range(10) if (bins == one).any()]
    return float(sum(here.mean() * abs(scores[here].mean() - y[here].mean()) for here in parts))


def measure(rows: list[dict[str, Any]], x: Any, file: Path, parts: dict[str, Any]) -> dict[str, Any]:
    """What the shipped weights reach on each part of the rows, and on all that are in one of them."""
    weights, bias, thresholds = read_weights(file)
    found = {output: probabilities(x, weights[:, at], bias[at]) for at, output in enumerate(OUTPUTS)}
    queries, good = np.array([row["query"] for row in rows]), usable(rows)
    kept = np.all([found[output] >= thresholds[output] for output in OUTPUTS], axis=0)
    measured: dict[str, Any] = {"threshold": thresholds["same"]}
    for name, here in {**parts, "all": np.any(list(parts.values()), axis=0)}.items():
        if not here.any():
            continue
        one: dict[str, Any] = {"pairs": int(here.sum()), "queries": len(set(queries[here]))}
        for output in OUTPUTS:
            y = labels(rows, output)[here]
            one[output] = interval(found[output][here], y, queries[here])
            one[output]["calibration error"] = calibration_error(found[output][here], y)
        one["usable"], one["kept"] = float(good[here].mean()), float(kept[here].mean())
        one["usable of kept"] = float(good[here & kept].mean()) if (here & kept).any() else float("nan")
        measured[name] = one
    return measured


def families(rows: list[dict[str, Any]], split: str) -> dict[str, Any]:
    """Which rows of the split are of each family of methods."""
    splits, of = np.array([row["split"] for row in rows]), np.array([family(row["method"]) for row in rows])
    return {name: (splits == split) & (of == name) for name in FAMILIES}


def limits(rows: list[dict[str, Any]], querygym: Path) -> dict[str, Any]:
    """What each model keeps of the pairs with a changed negation or quantifier; which pairs are outside its range."""
    pairs = [json.loads(line) for line in NEGATION.read_text(encoding="utf-8").splitlines()]
    originals, candidates = [row["query"] for row in pairs], [row["candidate"] for row in pairs]
    kinds = np.array([row["kind"] for row in pairs])
    ruled = np.array([reason is None for reason in RulesFilter().check(originals, candidates, range(len(pairs)))])
    found: dict[str, Any] = {"negation": {}, "range": {}}
    for model in _LOGITS:
        judge = EquivalenceFilter(model=model)
        scores = judge.score(originals, candidates)
        kept = np.array([judge.reason(one) is None for one in scores])
        same = np.array([one["same"] for one in scores])
        found["negation"][model] = {
            str(kind): {
                "pairs": int((kinds == kind).sum()),
                "mean P(same)": float(same[kinds == kind].mean()),
                "kept": float(kept[kinds == kind].mean()),
                "kept with rules": float((kept & ruled)[kinds == kind].mean()),
            }
            for kind in dict.fromkeys(kinds)
        }
    expansions = []
    for split in ("dl19", "dl20"):
        lines = (querygym.parent / "msmarco_dl1920" / f"queries.{split}.tsv").read_text(encoding="utf-8").splitlines()
        queries = dict(line.split("\t")[:2] for line in lines)
        for line in (querygym / f"{split}.tsv").read_text(encoding="utf-8").split("\n")[1:]:
            parts = line.split("\t")
            if len(parts) > 4 and parts[3] in queries:
                expansions.append({"query": queries[parts[3]], "candidate": parts[4]})
    of = np.array([family(row["method"]) == "querygym" for row in rows])
    fit = np.array([row["split"] != "test" and row["collection"] in OPEN for row in rows])
    groups = {
        "pairs that models were fit on": fit, "other labeled pairs": ~fit & ~of, "labeled pairs of QueryGym": of,
    }  # fmt: skip
    named = {name: [row for row, here in zip(rows, which, strict=True) if here] for name, which in groups.items()}
    for name, some in {**named, "all expansions of QueryGym": expansions}.items():
        outside = sum(not in_range(row["query"], row["candidate"]) for row in some)
        found["range"][name] = {"pairs": len(some), "outside": outside, "share": outside / len(some)}
    return found


def show_limits(found: dict[str, Any]) -> None:
    print("pairs of negation.jsonl      pairs  mean P(same)   kept by the model   kept with the filter rules")
    for model, kinds in found["negation"].items():
        for kind, one in kinds.items():
            what = "twin that asks the same" if kind == "kept" else kind
            print(
                f"{model:7} {what:24} {one['pairs']:>3} {one['mean P(same)']:13.2f} {one['kept']:19.1%} "
                f"{one['kept with rules']:19.1%}"
            )
    print("\npairs outside the range of the models")
    for name, one in found["range"].items():
        print(f"{name:32} {one['outside']:>6,} of {one['pairs']:>6,}  {one['share']:.1%}")


def show(model: str, split: str, measured: dict[str, Any]) -> list[str]:
    lines = [
        f"| {model}, {split} | pairs | AUC same | calibration error | AUC natural | usable | kept | usable of kept |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, one in measured.items():
        if name == "threshold":
            continue
        same, natural = one["same"], one["natural"]
        lines.append(
            f"| {name} | {one['pairs']:,} | {same['auc']:.3f} [{same['low']:.3f}, {same['high']:.3f}] "
            f"| {same['calibration error']:.3f} | {natural['auc']:.3f} | {one['usable']:.1%} | {one['kept']:.1%} "
            f"| {one['usable of kept']:.1%} |"
        )
    return [*lines, ""]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder with equivalence.jsonl")
    options.add_argument("--fit", action="store_true", help="fit, and write the weights and the measures")
    options.add_argument("--limits", type=Path, metavar="QUERYGYM", help="measure negation and the range only")
    given = options.parse_args()
    rows = read(given.data)
    stored = FOLDER / "measured.json"
    if given.limits:
        found = limits(rows, given.limits)
        show_limits(found)
        kept = json.loads(stored.read_text(encoding="utf-8")) | found
        stored.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        return
    unseen = [json.loads(line) for line in UNSEEN.read_text(encoding="utf-8").splitlines()]
    collections = {name: np.array([row["collection"] == name for row in unseen]) for name in OPEN}
    later = [row for row in rows if row["split"] != "train"]
    measured: dict[str, Any] = {}
    # From the smallest: each reads the logits of those before it, which have been fit then.
    for model, file, split, used, kept in (
        ("light", LIGHT, "train", rows, "other methods"),
        ("minilm", DATA / "adapters" / MINILM_ADAPTER / WEIGHTS, "dev", later, "last rewriter"),
        ("neural", FOLDER / WEIGHTS, "dev", later, "last rewriter"),
    ):
        x = load_judge(model).features([row["query"] for row in used], [row["candidate"] for row in used])
        chosen = np.array([row["split"] == split and row["collection"] in OPEN for row in used])
        if given.fit:
            file.write_text(
                json.dumps(fit_model(used, x, chosen, NAMES[model], kept), indent=1) + "\n", encoding="utf-8"
            )
            load_judge.cache_clear()
        at = load_judge(model).features([row["query"] for row in unseen], [row["candidate"] for row in unseen])
        measured[model] = {
            "rows": int(chosen.sum()),
            "test": measure(used, x, file, families(used, "test")),
            "unseen": measure(unseen, at, file, collections),
        }
        for part in ("test", "unseen"):
            print("\n".join(show(model, part, measured[model][part])))
    if given.fit:
        stored.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
