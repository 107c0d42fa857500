"""How many queries can yield a pair that holds, and how many pairs are chosen without and with this condition.

    python benchmarks/holding.py --data DATA --work WORK

The recipe ``demo``, and the recipe ``refairmulate`` with the kept candidates of ``datasets/candidates`` (of BoolQ for
500 queries drawn with a fixed seed) and the light filter of meaning, which needs no language model. *Placebo* is the
mean number of pairs that the same selection chooses if the direction of each article is drawn.
"""

from __future__ import annotations

import argparse
import gzip
import random
from pathlib import Path

from dataset import CANDIDATES, PARTS, make_collection

from askew.core.store.store import Store
from askew.pairs.build import Pairs, build
from askew.pairs.recipe import Recipe, read_recipe, with_settings

QUERIES, SEED = 500, 3


def recipe(name: str, data: Path, work: Path) -> Recipe:
    """The recipe refairmulate for a sample of queries with kept candidates."""
    folder, candidates = work / name, work / f"{name}.tsv"
    head, *lines = gzip.decompress((CANDIDATES / f"{name}.tsv.gz").read_bytes()).decode().splitlines()
    ids = sorted({line.split("\t")[0] for line in lines})
    kept = set(random.Random(SEED).sample(ids, min(QUERIES, len(ids))))
    chosen = [line for line in lines if line.split("\t")[0] in kept]
    candidates.write_text("\n".join([head, *chosen]) + "\n", encoding="utf-8")
    make_collection(PARTS[name], data, folder, candidates)
    plain = read_recipe("refairmulate")
    replay = {"method": "replay", "name": "rewrite", "file": str(candidates)}
    sections = {**plain.sections, "reformulate": [replay, *plain.tables("reformulate")[1:]]}
    changes = {"collection": {"source": str(folder)}, "filter.1": {"model": "light"}}
    return with_settings(Recipe("refairmulate", sections), changes)


def row(name: str, made: Recipe, store: Store) -> str:
    """A row of the table: the builds without and with the condition."""
    before, after = (build(with_settings(made, {"select": {"holds": holds}}), store=store) for holds in (False, True))
    steps = {one["step"]: one for one in after.steps}
    why = "; ".join(f"{count:,} {reason}" for reason, count in steps["promising"]["dropped"].items())
    sizes = [figures for pairs in (before, after) for figures in fair(pairs)]
    asked = steps["originals"]["in"]
    return f"| {name} | {asked:,} | {' | '.join(sizes[:2])} | {steps['promising']['out']:,} | {why} | {sizes[2]} |"


def fair(pairs: Pairs) -> tuple[str, str]:
    """The number of pairs in the subset fair, and on placebo lists."""
    assert pairs.placebo is not None
    (found,) = pairs.placebo.filter(subset="fair").to_dicts()
    return f"{found['pairs']:,}", f"{found['placebo']:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the collections")
    parser.add_argument("--work", type=Path, required=True, help="folder for samples and the store")
    parser.add_argument("--only", nargs="*", default=["boolq", "dl19", "dl20"], choices=PARTS)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    store = Store(given.work / "store")
    rows = [row("demo", read_recipe("demo"), store)]
    rows += [row(PARTS[name].title, recipe(name, given.data, given.work), store) for name in given.only]
    print(
        "| collection | neutral queries | fair | placebo | can yield a pair | others, by reason | fair, if pairs hold |"
    )
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
