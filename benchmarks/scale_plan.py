"""What a build of the size of MS MARCO takes: measured on a sample of its queries over a collection of its true size.

Makes ``--docs`` synthetic passages (8,841,823 as in MS MARCO), and runs ``askew run`` twice in one store: once with a
few queries, which makes the index and counts all mentions (the part that depends on the passages alone), and once with
``--sample`` candidates of other queries, when only the work for each candidate is left. The rest is arithmetic, and is
printed as extrapolated: ``--queries`` times ``--per-query`` candidates, other numbers of cores (in proportion for the
work for candidates and for counting; the index is not), writing reformulations at ``--texts`` a second, and the price.

    python benchmarks/scale_plan.py --keep FOLDER --price 1.50
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from scale import RECIPE, Used, disk, environment_of, measured
from scale_text import write_collection

PASSAGES, QUERIES = 8_841_823, 502_939
_FEW = 20
_CORES = (2, 16)


@dataclass(frozen=True)
class Sample:
    """What was measured: the part that depends on the passages, the candidates of the sample, and the files."""

    fixed: Used
    rest: Used
    candidates: int
    fixed_disk: float
    rest_disk: float


def measure(options: argparse.Namespace, folder: Path) -> Sample:
    """Run the two builds."""
    sample = max(_FEW, options.sample // options.per_query)
    whole = folder / "collection"
    if not whole.exists():
        write_collection(whole, options.docs, sample + _FEW, options.seed)
    few = _part(whole, folder / "few", 0, _FEW)
    rest = _part(whole, folder / "rest", _FEW, sample + _FEW)
    store = folder / "store"
    shutil.rmtree(store, ignore_errors=True)
    fixed = _run(few, store, options, folder)
    before = disk(store)
    used = _run(rest, store, options, folder)
    # The same command finds all steps finished: what it takes then is starting, and the tables of the sample.
    used = replace(used, seconds=used.seconds - _run(rest, store, options, folder).seconds)
    return Sample(fixed, used, sample * options.per_query, before, disk(store) - before)


def _part(whole: Path, place: Path, first: int, stop: int) -> Path:
    """The collection with some of its queries."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "docs.tsv").symlink_to((whole / "docs.tsv").resolve())
    lines = (whole / "queries.tsv").read_text().splitlines(keepends=True)[first:stop]
    names = {line.split("\t")[0] for line in lines}
    (place / "queries.tsv").write_text("".join(lines))
    judged = (line for line in (whole / "qrels.txt").read_text().splitlines(keepends=True))
    (place / "qrels.txt").write_text("".join(line for line in judged if line.split(" ")[0] in names))
    return place


def _run(source: Path, store: Path, options: argparse.Namespace, folder: Path) -> Used:
    recipe = source / "scale.toml"
    recipe.write_text(RECIPE.format(source=source, count=options.per_query - 1, k=options.k))
    words = ["run", str(recipe), "--store", str(store), "--workers", str(options.workers)]
    return measured(words, environment_of(folder), source / "run.log")


def tell(options: argparse.Namespace, found: Sample) -> None:
    """Print what was measured, and what follows from it."""
    candidates = options.queries * options.per_query
    each = found.rest.seconds / found.candidates
    bytes_each = found.rest_disk * 2**20 / found.candidates
    print(f"measured, {options.workers} workers, k={options.k}:")
    print(
        f"  {options.docs:,} passages, indexed and counted: {found.fixed.seconds / 60:.1f} min; {_memory(found.fixed)}"
    )
    print(f"  {found.candidates:,} candidates: {1e6 * each:.0f} us each; {_memory(found.rest)}")
    print(f"  disk: {found.fixed_disk / 1024:.1f} GiB for the passages, {bytes_each:.0f} bytes for each candidate")
    size = found.fixed_disk / 1024 + found.rest_disk / 1024 * candidates / found.candidates
    print(f"extrapolated to {options.queries:,} queries x {options.per_query} = {candidates:,} candidates:")
    print(f"  disk {size:.0f} GiB; memory as measured")
    for cores in _CORES:
        hours = (found.fixed.seconds + candidates * each * options.workers / cores) / 3600
        # The price is that of the machine that was measured. Others have other prices.
        known = options.price and cores == options.workers
        price = f", {hours * options.price:.2f} at {options.price:.2f} an hour" if known else ""
        print(f"  {cores} cores: {hours:.1f} h without writing the reformulations{price}")
    if options.texts:
        hours = candidates / options.texts / 3600
        price = f", {hours * options.gpu_price:.2f} at {options.gpu_price:.2f} an hour" if options.gpu_price else ""
        print(f"  writing {candidates:,} reformulations at {options.texts:,.0f} a second: {hours:.1f} h{price}")


def _memory(used: Used) -> str:
    return f"driver {used.driver:,.0f} MiB, largest worker {used.worker:,.0f} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=PASSAGES)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--per-query", type=int, default=50)
    parser.add_argument("--sample", type=int, default=100_000, help="candidates that are measured")
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--price", type=float, default=0.0, help="of one hour of a machine")
    parser.add_argument("--texts", type=float, default=0.0, help="reformulations a second, as gpu.py prints them")
    parser.add_argument("--gpu-price", type=float, default=0.0, help="of one hour of a machine with that GPU")
    parser.add_argument("--keep", type=Path, help="work in this folder and keep what was made")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        tell(options, measure(options, options.keep))
        return
    with tempfile.TemporaryDirectory() as folder:
        tell(options, measure(options, Path(folder)))


if __name__ == "__main__":
    main()
