"""The arena's rows in benchmarks/results.md, computed again from the kept scores of every query."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "benchmarks" / "arena"
LEAN = ("ARaB(tf)@10", "ARaB(tf,lexicon=rekabsaz2021)@10", "ARaB(tf,who=generic)@10")
CHANGE = r"([+-][\d.]+)%"


@pytest.fixture(scope="module")
def recorded():
    """The block of the arena by collection and base, each a text."""
    text = (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8")
    found = re.search(r"^## arena\.py show\n(.*?)(?:^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        pytest.skip("the block of the arena is not recorded: python benchmarks/record.py 'arena.py show'")
    tables = found[1].partition("\nmethods of")[0]
    parts = re.split(r"^(\w+), base (\w+): ([\d,]+) queries$", tables, flags=re.MULTILINE)
    rows = zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True)
    return {(name, base): (int(count.replace(",", "")), text) for name, base, count, text in rows}


def kept_files():
    """Every collection with its base: the file of another base than BM25 ends in its name."""
    files = sorted(file for file in KEPT.glob("*.parquet") if "-seed" not in file.stem)
    assert files, "expected kept scores of the arena"
    return [(file, file.stem.partition("-")[0], file.stem.partition("-")[2] or "bm25") for file in files]


def means(scores, method, measure, there):
    """Straight from the definition: the mean over queries, of a lean of its distance from zero; of seeds their mean."""
    mine = scores.filter(pl.col("method").cast(pl.String).str.replace(r"#\d+$", "") == method)
    seeds = mine.partition_by("method", maintain_order=True)
    size = np.abs if measure in LEAN else np.asarray
    return np.mean([size(seed[measure].to_numpy()) for seed in seeds], axis=0)[there].mean()


def queries_with_values(scores, measure):
    """Which queries have a value from every method, in the order of the base."""
    there = scores.group_by("query_id", maintain_order=True).agg(pl.col(measure).is_not_null().all().alias("all"))
    return there["all"].to_numpy()


METHODS = (
    "greedy@3", "mmr@0.75", "reformulate:rewrite:one-search", "reformulate:rewrite+greedy@3", "run:negatives@0.5",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("file", "name", "base"), kept_files(), ids=lambda one: getattr(one, "stem", None))
def test_a_row_of_the_arena_is_computed_again_from_the_kept_scores(recorded, file, name, base, method):
    scores = pl.read_parquet(file)
    if not scores["method"].cast(pl.String).str.starts_with(method).any():
        pytest.skip(f"{method} is not in {file.name}")
    assert (name, base) in recorded, f"record the arena again: {file.name} is not in its block"
    count, text = recorded[name, base]
    assert count == scores["query_id"].n_unique()
    shown = method.removeprefix("run:")
    line = next(line for line in text.splitlines() if line.startswith(f"{shown} "))
    told = re.findall(CHANGE + r"(?: \[|(?= ))", line)
    for measure, change in zip(("nDCG@10", *LEAN), told, strict=True):
        there = queries_with_values(scores, measure)
        old, new = (means(scores, one, measure, there) for one in (base, method))
        # Not a text: of a change near a half of the last digit, another order of summation may round otherwise.
        assert float(change) == pytest.approx(100 * (new / old - 1), abs=0.0501), measure


@pytest.mark.parametrize(("file", "name", "base"), kept_files(), ids=lambda one: getattr(one, "stem", None))
def test_the_base_of_the_arena_has_the_means_of_the_kept_scores(recorded, file, name, base):
    scores = pl.read_parquet(file)
    assert (name, base) in recorded, f"record the arena again: {file.name} is not in its block"
    line = next(line for line in recorded[name, base][1].splitlines() if line.startswith(f"{base} (base)"))
    told = [float(one) for one in re.findall(r" (\d\.\d{4})", line)]
    found = [means(scores, base, one, queries_with_values(scores, one)) for one in ("nDCG@10", *LEAN)]
    assert told == pytest.approx(found, abs=5.1e-5)


SEEDS = sorted(KEPT.glob("*-seed*.parquet"))
NAMES = {"boolq": "BoolQ", "fairytaleqa": "FairytaleQA", "dl": "DL"}


@pytest.mark.parametrize("strength", ["1", "3", "5", "10"])
@pytest.mark.parametrize("name", sorted({file.stem.partition("-")[0] for file in SEEDS}))
def test_the_sweep_of_the_rewriting_model_has_three_seeds_and_their_changes(name, strength):
    files = [KEPT / f"{name}.parquet", *(file for file in SEEDS if file.stem.startswith(f"{name}-"))]
    assert len(files) == 3
    text = (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| `reformulate:rewrite@{strength}` \| {NAMES[name]} \| 3 \| (.*) \|$", text, re.MULTILINE)
    for measure, cell in zip(("nDCG@10", *LEAN), line.split(" | "), strict=True):
        for file, change in zip(files, re.findall(CHANGE, cell), strict=True):
            scores = pl.read_parquet(file)
            there = queries_with_values(scores, measure)
            old, new = (means(scores, one, measure, there) for one in ("bm25", f"reformulate:rewrite@{strength}"))
            assert float(change) == pytest.approx(100 * (new / old - 1), abs=0.0501), (file.name, measure)
