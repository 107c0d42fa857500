"""The datasets under datasets/ hold all rules, and what their cards and the reading say of them is true."""

import json
import re
import sys
from pathlib import Path

import polars as pl
import pytest

from askew.pairs.dataset.checking import verify

ROOT = Path(__file__).resolve().parent.parent
DATASETS = ROOT / "datasets"
NAMES = ("boolq", "squad", "dl19", "dl20")


def rows(name: str) -> pl.DataFrame:
    return pl.read_parquet(DATASETS / name / "data" / "*.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_all_rules_hold(name):
    assert verify(DATASETS / name).wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_every_pair_says_how_sure_its_meaning_is_and_what_it_gains_held_out(name):
    table = rows(name)
    assert table.height > 0
    assert table.select(pl.min_horizontal("p_same", "p_natural").min()).item() >= 0.9
    assert not table["source_judged"].any()
    assert any(column.startswith("held_out_gain_ARaB") for column in table.columns)
    assert set(table.filter(pl.col("method") == "rewrite")["kind"]) <= {
        "paraphrase", "vocabulary", "keywords", "explicit", "neutral",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["dl19", "dl20"])
def test_no_text_of_ms_marco_is_published(name):
    assert rows(name)["original_text"].is_null().all()
    read = [json.loads(line) for line in (DATASETS / "reading.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(row["query"] is None for row in read if row["dataset"] == name)


@pytest.mark.parametrize("name", NAMES)
def test_the_hub_library_loads_them(name, tmp_path):
    datasets = pytest.importorskip("datasets", reason="the library datasets is not installed")
    loaded = datasets.load_dataset(str(DATASETS / name), cache_dir=str(tmp_path))
    assert sum(len(part) for part in loaded.values()) == rows(name).height


def test_the_pairs_that_were_read_are_chosen_pairs_and_the_cards_give_their_share(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "dataset_reading", raising=False)
    import dataset_reading as reading

    read = [json.loads(line) for line in reading.SHEET.read_text(encoding="utf-8").splitlines()]
    chosen = {(pair["dataset"], pair["id"], pair["candidate"]) for name in NAMES for pair in reading.chosen(name)}
    assert {(row["dataset"], row["id"], row["candidate"]) for row in read} <= chosen
    for title, names in reading.COLLECTIONS.items():
        share = f"{reading.shares()[title]['usable']:.0%}"
        for name in names:
            card = (DATASETS / name / "README.md").read_text(encoding="utf-8")
            assert re.search(rf"chosen pairs of {title}, drawn at random .*, {share} ", card)
