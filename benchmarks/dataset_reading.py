"""Are the chosen pairs of the datasets usable? 100 of each collection, read by two readers.

    python benchmarks/dataset_reading.py            print the shares from datasets/reading.jsonl
    python benchmarks/dataset_reading.py --draw F   draw pairs anew and write them to F, for readers to label

The pairs are drawn from all that were chosen (Optimal, Effective and Fair) of BoolQ, SQuAD, and DL 2019 and 2020
together. All were shuffled, and the readers saw the query and the reformulation only. Both readers were a large
language model under written instructions, not people; checks by people are pending. Usable: the same need, and a person
could type it; shares are means of the two readers with Wilson intervals.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
from rewrite_reading import READERS, kappa, share

DATASETS = Path(__file__).resolve().parent.parent / "datasets"
SHEET = DATASETS / "reading.jsonl"
COLLECTIONS = {"BoolQ": ("boolq",), "SQuAD": ("squad",), "DL 2019 and 2020": ("dl19", "dl20")}
NUMBER = 100


def chosen(name: str) -> list[dict[str, Any]]:
    """The chosen pairs of a dataset, in the order of their ids."""
    table = pl.read_parquet(DATASETS / name / "data" / "*.parquet")
    table = table.filter(pl.col("optimal") | pl.col("effective") | pl.col("fair")).sort("query_id", "text")
    return [{"dataset": name, "id": row["query_id"], "candidate": row["text"]} for row in table.iter_rows(named=True)]


def draw(seed: int = 0) -> list[dict[str, Any]]:
    """The pairs to read, shuffled."""
    rng, found = random.Random(seed), []
    for names in COLLECTIONS.values():
        pairs = [pair for name in names for pair in chosen(name)]
        found += rng.sample(pairs, min(NUMBER, len(pairs)))
    rng.shuffle(found)
    return found


def usable(row: dict[str, Any], reader: int) -> bool:
    return row["need"][reader] == "same" and row["natural"][reader] == 1


def shares() -> dict[str, Any]:
    """The share of usable pairs of each collection, and of all."""
    rows = [json.loads(line) for line in SHEET.read_text(encoding="utf-8").splitlines()]
    found = {
        title: share([row for row in rows if row["dataset"] in names], usable) for title, names in COLLECTIONS.items()
    }
    return {
        **found,
        "all": share(rows, usable),
        "kappa": kappa(*([usable(row, reader) for row in rows] for reader in READERS)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=Path, help="file for the pairs to read")
    given = parser.parse_args()
    if given.draw:
        given.draw.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in draw()), encoding="utf-8")
        return
    found = shares()
    for title, one in found.items():
        if title != "kappa":
            interval = f"[{one['low']:.3f}, {one['high']:.3f}]"
            print(f"{title:18} {one['reformulations']:4} pairs, usable {one['usable']:.3f} {interval}")
    print(f"Cohen's kappa of usable: {found['kappa']:.3f}")


if __name__ == "__main__":
    main()
