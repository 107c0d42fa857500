"""What two readers found in reformulations of 200 queries: shares of usable ones, agreement, and the filter's measures.

    python benchmarks/rewrite_reading.py            print the tables
    python benchmarks/rewrite_reading.py --write    also write the measures for the card of smollm2-rewrite

``reformulation/sheet.jsonl`` has the reformulations that were read: those of ``rewrite`` that pass the default filters
(three of a query where there are so many), two of a query drawn before the filter equivalence (which count among the
former where they pass), and those of ``extract``, of the former method ``local`` and of SmolLM2 without an adapter,
shown a prompt. The queries are of DL 2019/2020, FairytaleQA and the
test split of BoolQ; no model had seen them. All rows were shuffled, and the readers saw the query and the reformulation
only. Both readers were a large language model under written instructions, not people.
``reformulation/survivors.json`` has the number of reformulations of each query that pass. Usable: same need and
natural, by a reader; shares are means of the two readers with Wilson intervals over reformulations.
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
from askew.measures.statistics.intervals import wilson

sys.path.append(str(Path(__file__).parent.parent / "tools"))
from training.logistic import roc_area

FOLDER = Path(__file__).parent / "reformulation"
MEASURED = DATA / "adapters" / "smollm2-rewrite" / "measured.json"
READERS = (0, 1)


def read(name: str) -> Any:
    data = (FOLDER / name).read_bytes()
    return (
        [json.loads(line) for line in gzip.decompress(data).splitlines()] if name.endswith("gz") else json.loads(data)
    )


def usable(row: dict[str, Any], reader: int) -> bool:
    return row["need"][reader] == "same" and row["natural"][reader] == 1


def kappa(first: Any, second: Any) -> float:
    """Cohen's kappa of two lists of labels."""
    names = sorted({*first, *second})
    table = np.array(
        [[sum(a == x and b == y for a, b in zip(first, second, strict=True)) for y in names] for x in names]
    )
    total = table.sum()
    expected = float((table.sum(0) * table.sum(1)).sum()) / total**2
    return (float(np.trace(table)) / total - expected) / (1 - expected)


def share(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The share of usable rows, the mean of both readers."""
    good = [np.mean([usable(row, reader) for row in rows]) for reader in READERS]
    low, high = wilson(float(np.mean(good)) * len(rows), len(rows))
    return {"reformulations": len(rows), "queries": len({row["id"] for row in rows}), "usable": float(np.mean(good)),
            "low": low, "high": high, "reader 1": float(good[0]), "reader 2": float(good[1])}  # fmt: skip


def areas(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The area under the ROC curve of P(same) and of the smaller probability, each the mean of both readers."""
    same = [roc_area([r["p_same"] for r in rows], np.array([r["need"][k] == "same" for r in rows])) for k in READERS]
    least = [min(row["p_same"], row["p_natural"]) for row in rows]
    good = [roc_area(least, np.array([usable(row, k) for row in rows])) for k in READERS]
    return {"same": float(np.mean(same)), "usable": float(np.mean(good))}


def measure() -> dict[str, Any]:
    rows, survivors = read("sheet.jsonl.gz"), read("survivors.json")
    sets = {
        "rewrite, filtered": [row for row in rows if row["method"] == "rewrite" and row["kept"]],
        "rewrite, unfiltered": [row for row in rows if row["method"] == "rewrite" and row["sampled"]],
        **{name: [row for row in rows if row["method"] == name] for name in ("extract", "local", "prompt")},
    }
    found: dict[str, Any] = {"methods": {name: share(of) for name, of in sets.items() if of}}
    collections = sorted({row["collection"] for row in rows})
    kept = sets["rewrite, filtered"]
    found["filtered"] = {name: share([row for row in kept if row["collection"] == name]) for name in collections}
    found["areas"] = areas(sets["rewrite, unfiltered"])
    found["agreement"] = {
        name: kappa(*[[value(row, reader) for row in rows] for reader in READERS])
        for name, value in (("need", lambda row, k: row["need"][k]), ("natural", lambda row, k: row["natural"][k]),
                            ("usable", usable))
    }  # fmt: skip
    found["survivors"] = {
        name: {
            "queries": len(of),
            "three or more": float(np.mean([one >= 3 for one in of])),
            "mean": float(np.mean(of)),
        }
        for name, of in {**survivors, "all": [one for of in survivors.values() for one in of]}.items()
    }
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="write the measures for the card")
    given = options.parse_args()
    found = measure()
    for title in ("methods", "filtered"):
        print(f"{title:22}{'n':>6}{'usable':>9}{'95% interval':>18}{'reader 1':>10}{'reader 2':>10}")
        for name, one in found[title].items():
            interval = f"[{one['low']:.3f}, {one['high']:.3f}]"
            readers = "".join(f"{one[f'reader {k}']:10.3f}" for k in (1, 2))
            print(f"{name:22}{one['reformulations']:6}{one['usable']:9.3f}{interval:>18}{readers}")
        print()
    print("AUC on unfiltered reformulations of rewrite:", {k: round(v, 3) for k, v in found["areas"].items()})
    print("Cohen's kappa of the readers:", {k: round(v, 3) for k, v in found["agreement"].items()})
    for name, one in found["survivors"].items():
        print(
            f"{name}: {one['queries']} queries, {one['three or more']:.1%} with three or more, mean {one['mean']:.1f}"
        )
    if given.write:
        MEASURED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
