"""The lean-aware selector that has left askew, against simple rules on BoolQ: tables from the kept values.

    python benchmarks/selector.py evaluate

``askew train selector`` once had a rule that chose, of the candidates that probably lose no effectiveness, the one
whose results lean least. It was measured with ``askew bench`` at commit 69236d5b of 2026-11-16, whose version of this
program trains and measures, and lost to a rule that needs no training. ``arena/selector`` keeps the values of every
query. Candidates are those of ``datasets/candidates`` that pass the filters of the recipe (see dataset.py). Trained on
SQuAD, the selector was measured on all BoolQ queries that have a candidate; trained on BoolQ, on those held out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).resolve().parent / "arena" / "selector"
SEEDS = (1, 2, 3)
TRAINED_ON = {"squad": "SQuAD", "boolq": "BoolQ"}
TESTED = "boolq"
LEANS = ("ARaB(tf)@10", "ARaB(tf,who=generic)@10")
EFFECTIVENESS = ("RR@10", "nDCG@10")
MEASURES = (*EFFECTIVENESS, *LEANS)
TOP10 = "share of the original top 10 kept"
# The share of the original top 10 that the simple rule demands; askew bench uses the first by default.
AGREE = (0.5, 0.7, 0.9)
ORIGINAL, RULE = "original query", "least leaning by results, top 10 kept"
# Stated beforehand: the largest loss of mean RR@10 that would not matter.
MARGIN = 0.01


def evaluate() -> None:
    """The tables of both trainings, from the kept values."""
    for name, title in TRAINED_ON.items():
        about, values = read_kept(name)
        where = "the held-out BoolQ queries" if name == TESTED else "all BoolQ queries"
        print(f"== trained on {title}, measured on {where} that have a candidate: "
              f"{about['queries']:,} queries, {about['candidates']:,} candidates")  # fmt: skip
        print_training(about)
        print("\nchange against the original query, of the mean [95%]; p: null hypothesis: the mean gain is 0, without")
        print(f"correction; *: the method chooses by {LEANS[0]}; a lean counts by its distance from zero")
        for method in values:
            print_method(method, values, about["changed"])
        print_against(values, "selector, mean of seeds", f"{RULE} >= {AGREE[0]:.0%}")
        print()


def read_kept(name: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What is told of a training, and by method and measure the values of every query; leans without their sign.

    Methods with several seeds also have the mean of their seeds, query by query.
    """
    with np.load(KEPT / f"{name}.npz") as file:
        found = {key: file[key] for key in file.files}
    about = json.loads(str(found.pop("about")))
    del found["query_ids"]
    values: dict[str, dict[str, Any]] = {}
    for key, one in found.items():
        method, measured = key.split(" | ")
        values.setdefault(method, {})[measured] = np.abs(one) if measured in LEANS else one
    for kind in ("random candidate", "selector"):
        seeds = [f"{kind}, seed {seed}" for seed in SEEDS]
        mean = f"{kind}, mean of seeds"
        values[mean] = {one: np.mean([values[seed][one] for seed in seeds], axis=0) for one in (*MEASURES, TOP10)}
        about["changed"][mean] = np.mean([about["changed"][seed] for seed in seeds])
    shown = [ORIGINAL, "random candidate, mean of seeds", "highest P(same)"]
    rules = [f"{RULE} >= {agree:.0%}" for agree in AGREE]
    selectors = [*(f"selector, seed {seed}" for seed in SEEDS), "selector, mean of seeds"]
    return about, {name: values[name] for name in (*shown, *rules, *selectors, "oracle (reads the judgements)")}


def print_training(about: dict[str, Any]) -> None:
    """Average precision of each cross-encoder beside guessing, and what it learned from."""
    for seed, trained, apart in zip(SEEDS, about["trained"], about["apart"], strict=True):
        own = trained["told apart"]
        print(
            f"seed {seed}: {trained['examples']:,} examples of {trained['queries']['train']:,} queries; average "
            f"precision of the cross-encoder here {interval(apart)} (guessing {apart['guessing']:.4f}), on the "
            f"held-out queries of its own collection {interval(own)} (guessing {own['positive']:.4f}); chance "
            f"{trained['threshold']:.4f} or more"
        )


def interval(one: dict[str, float]) -> str:
    return f"{one['value']:.4f} [{one['low']:.4f}, {one['high']:.4f}]"


def compare(values: dict[str, dict[str, Any]], measured: str, old: str, new: str) -> tuple[Any, Any]:
    """The paired comparison of two methods and the interval of the change of the mean in percent."""
    from askew.core.measure import Direction
    from askew.measures.catalogue import Catalogue
    from askew.measures.statistics.intervals import change_interval, size_bounds
    from askew.measures.statistics.significance import paired

    (asked,) = Catalogue().complete([measured])
    direction, bounds = asked.direction, asked.bounds
    if direction is Direction.ZERO:
        direction, bounds = Direction.DOWN, size_bounds(bounds)
    # As askew bench: a mean is over the queries for which every method has a value.
    there = ~np.isnan([one[measured] for one in values.values()]).any(axis=0)
    before, after = values[old][measured][there], values[new][measured][there]
    margin = MARGIN if measured == EFFECTIVENESS[0] else None
    found = paired(before, after, direction, bounds, margin=margin)
    return found, change_interval(np.arange(len(before)), before, after)


def print_method(method: str, values: dict[str, dict[str, Any]], changed: dict[str, float]) -> None:
    count = len(values[method][TOP10])
    print(
        f"\n{method}: {changed[method]:,.0f} of {count:,} queries reformulated; {TOP10}: "
        f"{values[method][TOP10].mean():.1%}"
    )
    chooses = method.startswith((RULE, "selector", "oracle"))
    for measured in MEASURES:
        found, ends = compare(values, measured, ORIGINAL, method)
        name = f"|{measured}|{'*' if chooses and measured == LEANS[0] else ''}" if measured in LEANS else measured
        line = f"  {name:27} {found.new:.4f}"
        if method != ORIGINAL:
            line += f"  {change(found, ends)}; improved {found.improved:,}, worsened {found.worsened:,}"
        print(f"{line}; n = {found.n:,}")
    if method != ORIGINAL:
        found, _ = compare(values, EFFECTIVENESS[0], ORIGINAL, method)
        ruled = "is" if found.p_no_loss is not None and found.p_no_loss < 0.05 else "is not"
        print(
            f"  a loss of {MARGIN} or more of mean {EFFECTIVENESS[0]} {ruled} ruled out (p {p_text(found.p_no_loss)})"
        )


def change(found: Any, ends: tuple[float | None, float | None]) -> str:
    low, high = (or_dash(end) for end in ends)
    told = "-" if found.relative is None else f"{100 * found.relative:+.1f}%"
    return f"{told} [{low}, {high}] p {p_text(found.p)}"


def or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


def p_text(value: float | None) -> str:
    return "-" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def print_against(values: dict[str, dict[str, Any]], selector: str, rule: str) -> None:
    """The selector against the simple rule, query by query."""
    print(f"\n{selector}, against: {rule}")
    for measured in MEASURES:
        found, _ = compare(values, measured, rule, selector)
        name = f"|{measured}|" if measured in LEANS else measured
        low, high = ("-" if end is None else f"{end:+.4f}" for end in (found.low, found.high))
        print(
            f"  {name:27} {found.old:.4f} -> {found.new:.4f}; gain {found.gain:+.4f} [{low}, {high}] "
            f"p {p_text(found.p)}; improved {found.improved:,}, worsened {found.worsened:,}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["evaluate"])
    parser.parse_args()
    evaluate()


if __name__ == "__main__":
    main()
