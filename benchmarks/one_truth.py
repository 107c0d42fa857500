"""Whether the explorer shows the numbers of its store: values and verdicts of pairs in four places, compared.

``python benchmarks/one_truth.py DATA`` builds a store of each of boolq and squad_part below DATA, publishes it, serves
it, and compares the first 400 pairs (those published first): the page Dataset and the REST service (both read the same
table), Compare by the REST service, Compare as a page, and the published Parquet files.
"""

from __future__ import annotations

import argparse
import html
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
from fastapi.testclient import TestClient

import askew
from askew.core.measure import pair_columns
from askew.report import markup as n
from askew.ui.explorer.opening import Sources
from askew.ui.web.app import create_app
from askew.ui.web.pages.parts import signed
from askew.ui.web.settings import ServerLimits, Settings

RECIPE = """
[collection]
source = "demo"
[classify]
classifier = "lexical"
keep = ["neutral"]
[[reformulate]]
method = "reduce"
[[filter]]
filter = "rules"
[retrieve]
ranker = "bm25-msmarco"
k = 100
[evaluate]
measures = [
    "RR@10", "AP@10", "ARaB(tf,who=generic)@10", "ARaB(tc,who=generic)@10", "ARaB(bool,who=generic)@10",
    "ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "LexiconShare@10", "NFaiRR@10",
]
[select]
selector = "refairmulate"
effectiveness = "RR@10"
bias = "ARaB(tf,who=generic)@10 ARaB(tc,who=generic)@10 ARaB(bool,who=generic)@10"
held_out = false
"""
_CELLS = re.compile(r'<th scope="row" class="code"><code>([^<]+)</code></th>(.*?)</tr>')


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("data", type=Path, help="the folder that holds boolq and squad_part")
    asked.add_argument("--pairs", type=int, default=400)
    given = asked.parse_args()
    for name in ("boolq", "squad_part"):
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {compare(given.data / name, Path(folder), given.pairs)}", flush=True)


def compare(collection: Path, folder: Path, most: int) -> str:
    """What differs, in words."""
    (folder / "recipe.toml").write_text(RECIPE)
    start = time.perf_counter()
    made = askew.build(folder / "recipe.toml", collection, store=folder / "store")
    made.publish(folder / "published")
    built = time.perf_counter() - start
    files = sorted((folder / "published").rglob("*.parquet"))
    rows = pl.concat([pl.read_parquet(file) for file in files], how="diagonal").iter_rows(named=True)
    published = {row["variant_id"]: row for row in rows}
    counts = {"numbers": 0, "verdicts": 0, "published pairs": 0, "other numbers": 0, "other verdicts": 0}
    sources = Sources(store=folder / "store")
    limits = ServerLimits(rate=1e6, burst=1_000_000)
    with TestClient(create_app(Settings(sources, limits=limits)), base_url="http://127.0.0.1:8642") as client:
        pairs = _pairs(client, list(published), most)
        for row in pairs:
            _check(client, row, published.get(row["variant_id"]), counts)
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    return f"{made.table().height:,} pairs built in {built:.0f} s; {len(pairs)} pairs compared: {told}"


def _pairs(client: TestClient, first: list[str], most: int) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    page: int | None = 1
    while page is not None:
        reply = client.get("/api/pairs", params={"page": page, "size": 200}).json()
        found |= {row["variant_id"]: row for row in reply["rows"]}
        page = reply["next"]
    return [found[name] for name in dict.fromkeys([*first, *found])][:most]


def _check(client: TestClient, row: dict[str, Any], released: dict[str, Any] | None, counts: dict[str, int]) -> None:
    asked = {"q": row["original_text"], "to": row["text"], "query_id": row["query_id"], "k": 1}
    compared = client.get("/api/compare", params=asked).json()
    cells = {html.unescape(name): rest for name, rest in _CELLS.findall(client.get("/compare", params=asked).text)}
    sides = {side: {one["measure"]: one["value"] for one in compared[side]["values"]} for side in ("old", "new")}
    for name, values in row["measures"].items():
        told = [[sides["old"].get(name), sides["new"].get(name), compared["gains"].get(name)]]
        told += [] if released is None else [[released[column] for column in pair_columns(name)]]
        shown = re.findall(r">([^<>▲▼]+)<", re.sub(r"<span aria-hidden.*?</span>", "", cells.get(name, "")))
        page = [n.mean(values["old"], 3), n.mean(values["new"], 3), signed(values["gain"])]
        counts["numbers"] += 3
        counts["other numbers"] += any(one != list(values.values()) for one in told) or shown != page
    outcomes = {row["outcome"], compared["outcome"], *([] if released is None else [released["outcome"]])}
    counts["verdicts"] += 1
    counts["published pairs"] += released is not None
    counts["other verdicts"] += len(outcomes) > 1


if __name__ == "__main__":
    main()
