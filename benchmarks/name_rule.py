"""How many reformulations the rules for names and numbers drop, rightly and wrongly, by labels of equivalence.

    python benchmarks/name_rule.py --data DATA/reformulation
    python benchmarks/name_rule.py --data DATA/reformulation --split test

Candidates that ask for the same must stay; those that ask for something else, or for a part, may go. All rewrites are
meant to ask for the same. The labels and the rewrites are by a large language model, not by people. Queries of MS MARCO
are only measured on: the table of names has nothing of them, while it has the passages of BoolQ and SQuAD.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from askew.rewrite.rules import NAME_LOST, NUMBER_ADDED, NUMBER_LOST, RulesFilter

LEAST = (2.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9)
Key = tuple[str, ...]


def family(row: dict[str, Any]) -> str:
    """The rewriter on trial, the local model, or one of the other methods."""
    method = row["method"].split(":")[0]
    return method if method in ("trial", "local") else "others"


def read(path: Path, splits: set[str]) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["split"] in splits]


def dropped(rule: RulesFilter, rows: list[dict[str, Any]], key: Callable[[dict[str, Any]], Key]) -> dict[Key, str]:
    """For each key how many are dropped, of how many, and why."""
    reasons = rule.check([r["query"] for r in rows], [r["candidate"] for r in rows], range(len(rows)))
    total, gone = Counter(map(key, rows)), Counter[Key]()
    for row, reason in zip(rows, reasons, strict=True):
        gone[key(row)] += reason in (NAME_LOST, NUMBER_LOST, NUMBER_ADDED)
    return {k: f"{gone[k]}/{total[k]} ({gone[k] / total[k]:.1%})" for k in sorted(total)}


def show(title: str, rows: list[dict[str, Any]], key: Callable[[dict[str, Any]], Key]) -> None:
    print(f"\n{title}")
    rules = {
        "names by capitals, no rule for numbers": {"certainty": 2.0, "numbers_kept": False, "added_numbers": True},
        "numbers lost": {"entities_kept": False, "added_numbers": True},
        "numbers added": {"entities_kept": False, "numbers_kept": False},
        **{f"all rules, certainty {least:g}": {"certainty": least} for least in LEAST},
    }
    for name, settings in rules.items():
        rule = RulesFilter(same_as_original=True, duplicates=True, **settings)  # type: ignore[arg-type]
        found = dropped(rule, rows, key)
        print(f"  {name:40}" + "".join(f"  {' '.join(k)} {v}" for k, v in found.items()))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder with equivalence.jsonl and rewrites.jsonl")
    options.add_argument("--split", default="train,dev", help="splits to measure on, joined by commas")
    given = options.parse_args()
    splits = set(given.split.split(","))
    labels = read(given.data / "equivalence.jsonl", splits)
    rewrites = [
        {"query": row["query"], "candidate": one["text"], "kind": one["kind"], "collection": row["collection"]}
        for row in read(given.data / "rewrites.jsonl", splits)
        for one in row["rewrites"]
    ]
    need = {"same": "same", "partly": "not", "different": "not"}
    show("labels, by need", labels, lambda row: (need[row["need"]],))
    show("labels, by family and need", labels, lambda row: (family(row), need[row["need"]]))
    show("labels, by collection and need", labels, lambda row: (row["collection"], need[row["need"]]))
    show("rewrites, by kind", rewrites, lambda row: (row["kind"],))
    show("rewrites, by collection", rewrites, lambda row: (row["collection"],))


if __name__ == "__main__":
    main()
