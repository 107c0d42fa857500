"""A recipe whose measures count some classes of mentions: the values of askew measure for the same lists."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import askew
from askew.core.errors import ConfigError
from askew.core.measure import column_of
from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe

DEMO = demo_files()
MEASURES = ["ARaB(tf,who=generic)@10", "ARaB(tf,who=real+fictional)@10", "ARaB(tf)@10", "FaiRR(who=generic)@10"]


def test_a_build_gives_the_values_of_askew_measure_and_counts_the_classes_once(tmp_path):
    store = Store(tmp_path)
    sections = read_recipe("demo").sections
    sections = {
        **sections, "reformulate": [{"method": "reduce"}], "evaluate": {"measures": ["RR@10", *MEASURES]},
        "select": {"selector": "refairmulate-paper", "effectiveness": "RR@10", "bias": MEASURES[0]},
    }  # fmt: skip
    outcomes = prepare(Recipe("who", sections), store).plan.run(store)
    assert outcomes["pairs"].manifest.rows_out > 0
    table = pl.from_arrow(pa.concat_tables(store.read(outcomes["scores"].manifest)))
    originals = table.filter(pl.col("method") == "original")
    assert originals.height > 50
    bm25 = next(run for run in DEMO.runs if run.stem == "bm25")
    (run,) = askew.measure([bm25], DEMO.docs, measures=MEASURES).runs
    place = {query: i for i, query in enumerate(run.query_ids)}
    rows = [place[query] for query in originals["query_id"]]
    for name, values in run.values.items():
        assert originals[column_of(name)].to_list() == pytest.approx(values[rows].tolist(), abs=1e-12)
    generic, both, every = (run.values[name] for name in MEASURES[:3])
    assert generic.any()
    assert both.any()
    assert not np.array_equal(generic, every)
    # One count for all classes, one for the measure of all mentions, one for the other lexicon of FaiRR.
    assert len(list(tmp_path.glob("mentions-*/manifest.json"))) == 3


def test_a_recipe_refuses_measures_on_relevant_documents_before_it_runs(tmp_path):
    sections = {**read_recipe("demo").sections, "evaluate": {"measures": ["RR@10", "ARaB(tf,on=judged)@10"]}}
    with pytest.raises(ConfigError, match=r"ARaB\(tf,on=judged\)@10.* 'on'"):
        prepare(Recipe("on", sections), Store(tmp_path))
