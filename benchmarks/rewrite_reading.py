"""What two readers found in the reformulations that ``askew reformulate`` shows for 200 queries.

    python benchmarks/rewrite_reading.py            print the tables
    python benchmarks/rewrite_reading.py --write    also write the measures for the card of smollm2-rewrite

The part ``shown`` of ``reformulation/outputs.jsonl.gz`` has all that the command keeps by default (at most five of a
query) for 50 queries each of DL 2019/2020, FairytaleQA, ANTIQUE (``query_variations``) and the TREC session track 2013
(queries of at most three words); nothing was trained on these collections. Queries of MS MARCO, ANTIQUE and the session
track are there as ids only. Both readers were a large language model under written instructions, not people; they saw
the query and the reformulation, in random order. Strict: the same need, and naturalness yes. Shares are means of the
two readers with Wilson intervals over reformulations. A new word is a content word that the query does not have.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from equivalence import calibration_error, interval

from askew.core.files import DATA
from askew.measures.statistics.intervals import wilson

OUTPUTS = Path(__file__).parent / "reformulation" / "outputs.jsonl.gz"
MEASURED = DATA / "adapters" / "smollm2-rewrite" / "measured.json"
READERS = (0, 1)
Row = dict[str, Any]


def strict(row: Row, reader: int) -> bool:
    return row["need"][reader] == "same" and row["natural"][reader] == "yes"


def kappa(first: Any, second: Any) -> float:
    """Cohen's kappa of two lists of labels."""
    names = sorted({*first, *second})
    table = np.array(
        [[sum(a == x and b == y for a, b in zip(first, second, strict=True)) for y in names] for x in names]
    )
    total = table.sum()
    expected = float((table.sum(0) * table.sum(1)).sum()) / total**2
    return (float(np.trace(table)) / total - expected) / (1 - expected)


def share(rows: list[Row], good: Callable[[Row, int], bool]) -> Row:
    """The share of good rows, the mean of both readers."""
    shares = [float(np.mean([good(row, reader) for row in rows])) for reader in READERS]
    mean = float(np.mean(shares))
    low, high = wilson(mean * len(rows), len(rows))
    queries = len({row.get("id", row.get("query")) for row in rows})
    return {"reformulations": len(rows), "queries": queries, "usable": mean, "low": low, "high": high,
            "reader 1": shares[0], "reader 2": shares[1]}  # fmt: skip


def measure() -> Row:
    """The shares by collection, kind and rank, agreement, and how many queries have three reformulations."""
    every = [json.loads(line) for line in gzip.decompress(OUTPUTS.read_bytes()).splitlines()]
    rows = [row for row in every if row["split"] == "shown"]
    asked = dict.fromkeys(dict.fromkeys(row["collection"] for row in rows), 50)
    groups: dict[str, Callable[[Row], bool]] = {
        "all": lambda row: True, "first three": lambda row: row["rank"] <= 3, "first": lambda row: row["rank"] == 1,
    }  # fmt: skip
    found: Row = {"shown": {name: share([row for row in rows if here(row)], strict) for name, here in groups.items()}}
    for part in ("collection", "kind"):
        names = sorted({row[part] for row in rows})
        found[part] = {name: share([row for row in rows if row[part] == name], strict) for name in names}
    found["agreement"] = {
        name: kappa(*[[value(row, reader) for row in rows] for reader in READERS])
        for name, value in (("need", lambda row, k: row["need"][k] == "same"),
                            ("natural", lambda row, k: row["natural"][k] == "yes"), ("strict", strict))
    }  # fmt: skip
    queries = np.array([row["id"] for row in rows])
    found["filter"] = {}
    for output, wanted in (("same", "same"), ("natural", "yes")):
        name = "need" if output == "same" else output
        # Each reader's labels, one after the other.
        y = np.array([row[name][reader] == wanted for reader in READERS for row in rows], float)
        scores = np.tile([row[f"p_{output}"] for row in rows], len(READERS))
        found["filter"][output] = {
            **interval(scores, y, np.tile(queries, len(READERS))), "calibration error": calibration_error(scores, y),
            "reformulations": len(rows),
        }  # fmt: skip
    counts = Counter(row["id"] for row in rows)
    found["queries"] = {
        "asked": sum(asked.values()), "with one or more": len(counts),
        "with three or more": sum(count >= 3 for count in counts.values()) / sum(asked.values()),
        "new word": float(np.mean([row["new_word"] for row in rows])),
    }  # fmt: skip
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="write the measures for the card")
    given = options.parse_args()
    found = measure()
    for title in ("shown", "collection", "kind"):
        print(f"{title:22}{'n':>6}{'strict':>9}{'95% interval':>18}{'reader 1':>10}{'reader 2':>10}")
        for name, one in found[title].items():
            interval = f"[{one['low']:.3f}, {one['high']:.3f}]"
            readers = "".join(f"{one[f'reader {k}']:10.3f}" for k in (1, 2))
            print(f"{name:22}{one['reformulations']:6}{one['usable']:9.3f}{interval:>18}{readers}")
        print()
    print("Cohen's kappa of the readers:", {k: round(v, 3) for k, v in found["agreement"].items()})
    print(found["queries"])
    for output, one in found["filter"].items():
        values = f"AUC {one['auc']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
        print(f"filter, {output}: {values}, calibration error {one['calibration error']:.3f}")
    if given.write:
        MEASURED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
