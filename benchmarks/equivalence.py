"""Does a reformulation ask for the same, would a person type it? Fit the three models of equivalence, and measure them.

    python benchmarks/equivalence.py --data DATA/reformulation --fit       write the weights and the measures
    python benchmarks/equivalence.py --data DATA/reformulation             measure what is shipped
    python benchmarks/equivalence.py --data DATA/reformulation --limits DATA/querygym    negation, and the range

``light`` is two logistic regressions on the features of ``askew.rewrite.equivalence``, ``minilm`` two on the logits of
``light`` and of the adapter minilm-equivalence, ``neural`` two on those and the logits of the adapter
smollm2-equivalence. *Same* is fit on labels of need: that of ``light`` on the training labels, and those of the others,
whose adapters were trained on them, on the development labels. *Natural* is fit on labels in three levels (yes, stiff
and no, of which only yes counts): that of ``light`` on those of the part train, and those of the others on the readings
of ``outputs.jsonl.gz``, part ``calibration``: unfiltered outputs of the rewriting model that ships, for queries on
which nothing was trained. MS MARCO's rows are for research only: they are measured on, and nothing is fit on them.
Thresholds are 0.5: more likely than not; ``light`` drops nothing as not natural, because it hardly tells. Measured are
the area under the ROC curve with intervals from samples of queries, and the calibration error (ten bins): *same* on the
test split by family of methods and on ``unseen_labels.jsonl`` (candidates of other methods, labeled after everything
was fit), *natural* on the part dev of ``naturalness.jsonl``. ``rewrite_reading.py`` measures both on what is shown by
default for queries of other collections. ``negation.jsonl`` has queries of BoolQ with two reformulations each: in one a
negation or a quantifier is added, lost or changed, so that it asks for something else, and its twin asks for the same.
``--limits`` measures what the filters keep of it, and which pairs are outside the range of the models; the published
expansions of QueryGym are read from its folder. The labels are by a large language model, not by people.
``tools/make_cards.py`` makes the card of what is measured.
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
from training.logistic import fit_logistic, probabilities, roc_area

LABELS = Path(__file__).parent / "reformulation" / "labels.jsonl.gz"
UNSEEN, NEGATION = LABELS.with_name("unseen_labels.jsonl"), LABELS.with_name("negation.jsonl")
LEVELS, READINGS = LABELS.with_name("levels.jsonl.gz"), LABELS.with_name("outputs.jsonl.gz")
FOLDER = DATA / "adapters" / ADAPTER
PENALTY, DIGITS, THRESHOLD = 10.0, 5, 0.5
OPEN = ("boolq", "squad", "web")
_LOGITS = {one: [f"{one} logit {output}" for output in OUTPUTS] for one in ("neural", "minilm", "light")}
NAMES = {
    "light": list(FEATURES),
    "minilm": [*_LOGITS["minilm"], *_LOGITS["light"]],
    "neural": [*_LOGITS["neural"], *_LOGITS["minilm"], *_LOGITS["light"]],
}
FAMILIES = ("other methods", "local", "earlier rewriters", "last rewriter", "querygym")


def read(data: Path) -> list[dict[str, Any]]:
    """Labels of need in two levels of naturalness, of which the upper one says nothing; then those in three levels."""
    rows = read_rows(data / "equivalence.jsonl") + read_rows(LABELS)
    for row in rows:
        row["natural"] = None if row["natural"] else "no"
    return (
        rows
        + read_rows(data / "naturalness.jsonl")
        + read_rows(LEVELS)
        + [row for row in read_rows(READINGS) if row["split"] == "calibration"]
    )


def read_rows(file: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return [json.loads(line) for line in content.decode("utf-8").splitlines()]


def family(method: str) -> str:
    """Rewriters are a trial and the model that ships at stages of its training, the last one round before its end."""
    name = method.partition(":")[0]
    if name in ("trial", "supervised", "preferred"):
        return "earlier rewriters"
    if name == "round2":
        return "last rewriter"
    return name if name == "local" else "querygym" if "querygym" in method else "other methods"


def fit_model(rows: list[dict[str, Any]], x: Any, chosen: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The regressions of one model, each on its chosen rows."""
    stored: dict[str, Any] = {"features": names}
    for output in OUTPUTS:
        y = labels(rows, output)
        here = chosen[output] & ~np.isnan(y)
        weights, bias = fit_logistic(x[here], y[here], PENALTY)
        stored[output] = {
            "weights": weights.round(DIGITS).tolist(), "bias": round(bias, DIGITS), "threshold": THRESHOLD
        }  # fmt: skip
    return stored


def labels(rows: list[dict[str, Any]], output: str) -> Any:
    if output == "same":
        return np.array([row["need"] == "same" for row in rows], float)
    return np.array([np.nan if row["natural"] is None else row["natural"] == "yes" for row in rows], float)


def strict(rows: list[dict[str, Any]]) -> Any:
    """Whether a row has the same need and is natural; NaN where it is not known."""
    same, natural = labels(rows, "same"), labels(rows, "natural")
    return np.where(same == 0, 0.0, natural)


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
    """What the shipped weights reach on each part of the rows."""
    weights, bias, thresholds = read_weights(file)
    found = {output: probabilities(x, weights[:, at], bias[at]) for at, output in enumerate(OUTPUTS)}
    queries, good = np.array([row["query"] for row in rows]), strict(rows)
    kept = np.all([found[output] >= thresholds[output] for output in OUTPUTS], axis=0)
    measured: dict[str, Any] = {"threshold": thresholds["same"]}
    for name, here in parts.items():
        if not here.any():
            continue
        one: dict[str, Any] = {"pairs": int(here.sum()), "queries": len(set(queries[here]))}
        for output in OUTPUTS:
            y = labels(rows, output)
            known = here & ~np.isnan(y)
            if len(set(y[known])) == 2 and (output == "same" or (y[here] == y[here]).all()):
                one[output] = interval(found[output][known], y[known], queries[known])
                one[output]["calibration error"] = calibration_error(found[output][known], y[known])
        if not np.isnan(good[here]).any():
            one["strict"], one["kept"] = float(good[here].mean()), float(kept[here].mean())
            one["strict of kept"] = float(good[here & kept].mean()) if (here & kept).any() else float("nan")
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


def features_of(model: str, rows: list[dict[str, Any]], folder: Path | None) -> Any:
    """The features of a model; the logits of networks are kept in a folder, and those of ``light`` are new."""
    queries, texts = [row["query"] for row in rows], [row["candidate"] for row in rows]
    file = folder and folder / f"{model}.npy"
    if file is None or model == "light" or not file.exists():
        x = load_judge(model).features(queries, texts)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, x)
        return x
    x = np.load(file)
    x[:, -len(OUTPUTS) :] = load_judge("light").logits(queries, texts)
    return x


def show(model: str, measured: dict[str, Any]) -> None:
    print(f"{model}, threshold {measured['threshold']}")
    for name, one in measured.items():
        if name not in ("threshold", "rows"):
            outputs = ", ".join(
                f"AUC {output} {one[output]['auc']:.3f} [{one[output]['low']:.3f}, {one[output]['high']:.3f}], "
                f"calibration error {one[output]['calibration error']:.3f}"
                for output in OUTPUTS if output in one
            )  # fmt: skip
            shares = "".join(
                f"; {part} {one[part]:.1%}" for part in ("strict", "kept", "strict of kept") if part in one
            )
            print(f"  {name}: {one['pairs']:,} pairs; {outputs}{shares}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder with equivalence.jsonl")
    options.add_argument("--fit", action="store_true", help="fit, and write the weights and the measures")
    options.add_argument("--features", type=Path, help="a folder for the features, which take minutes")
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
    for row in read_rows(UNSEEN):
        rows.append({**row, "natural": None if row["natural"] else "no", "split": "unseen"})
    split = np.array([row["split"] for row in rows])
    free = np.array([row["collection"] in OPEN for row in rows])
    train, later, calibration = split == "train", split != "train", split == "calibration"
    read_in_levels = np.array(["readers" in row for row in rows])
    parts = {
        **{f"test: {name}": here for name, here in families(rows, "test").items()}, "test: all": split == "test",
        **{f"unseen: {name}": (split == "unseen") & (np.array([row["collection"] for row in rows]) == name)
           for name in OPEN}, "unseen: all": split == "unseen",
        "levels: dev": (split == "dev") & read_in_levels,
    }  # fmt: skip
    measured: dict[str, Any] = {}
    # From the smallest: each reads the logits of those before it, which have been fit then.
    for model, file in (
        ("light", LIGHT), ("minilm", DATA / "adapters" / MINILM_ADAPTER / WEIGHTS), ("neural", FOLDER / WEIGHTS)
    ):  # fmt: skip
        used = np.flatnonzero(later | (model == "light"))
        some = [rows[at] for at in used]
        x = features_of(model, some, given.features)
        chosen = {
            "same": free & (train if model == "light" else (split == "dev") & ~read_in_levels),
            "natural": train & read_in_levels if model == "light" else calibration,
        }
        if given.fit:
            fitted = fit_model(some, x, {name: here[used] for name, here in chosen.items()}, NAMES[model])
            if model == "light":
                fitted["natural"]["threshold"] = 0.0
            file.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
            load_judge.cache_clear()
        measured[model] = measure(some, x, file, {name: here[used] for name, here in parts.items()})
        measured[model]["rows"] = int((chosen["same"] & ~read_in_levels).sum())
        show(model, measured[model])
    if given.fit:
        stored.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
