"""Chosen pairs asked of another ranker."""

import polars as pl
import pyarrow as pa
import pytest

from askew.core.errors import AskewError
from askew.core.measure import column_of
from askew.core.store.store import Store
from askew.pairs.plan import ChosenPairs, prepare
from askew.pairs.recipe import read_recipe, with_settings


def pairs(rows):
    """Pairs of (query, number of the candidate, gain, chosen)."""
    return pl.DataFrame(
        [
            {"query_id": q, "variant_id": f"{q}:m.{n}", "text": f"{q} text {n}", "original_text": f"{q} text",
             "method": "m", "gain_RR_10": gain, "fair": fair, "negative": False}
            for q, n, gain, fair in rows
        ],
        schema_overrides={"gain_RR_10": pl.Float64},
    ).to_arrow().cast(pa.schema([
        *((name, pa.string()) for name in ("query_id", "variant_id", "text", "original_text", "method")),
        ("gain_RR_10", pa.float64()), ("fair", pa.bool_()), ("negative", pa.bool_()),
    ]))  # fmt: skip


def ids(table):
    return table["variant_id"].to_pylist()


ROWS = [("b", 1, 0.5, True), ("b", 2, 0.1, False), ("b", 3, 0.2, True), ("a", 1, -0.5, False), ("a", 2, -0.25, False),
        ("c", 1, 0.0, False), ("d", 1, float("nan"), False)]  # fmt: skip


def test_the_chosen_pairs_come_with_their_originals_first_in_the_order_of_the_pairs():
    table, dropped = ChosenPairs(["fair"]).run(pairs(ROWS))
    assert ids(table) == ["b", "b:m.1", "b:m.3"]
    assert table["text"].to_pylist() == ["b text", "b text 1", "b text 3"]
    assert table["method"].to_pylist() == ["original", "m", "m"]
    assert dropped == {"not chosen": 5}
    assert ChosenPairs(["fair"]).rows_used(table) + 5 == len(ROWS)


def test_all_takes_every_candidate():
    table, dropped = ChosenPairs(["all"]).run(pairs(ROWS))
    assert table.num_rows == len(ROWS) + 4
    assert dropped == {}


@pytest.fixture(scope="module")
def asked_again(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    recipe = read_recipe("demo")
    recipe.sections["cross"] = [{"ranker": "qld"}, {"ranker": "bm25-msmarco", "name": "tuned", "of": ["all"]}]
    build = prepare(with_settings(recipe, {"reformulate.0": {"count": 3}}), store)
    return build, store, build.plan.run(store)


def read(store, outcomes, step):
    return pl.from_arrow(pa.concat_tables(store.read(outcomes[step].manifest)))


def test_chosen_pairs_are_scored_under_every_other_ranker(asked_again):
    build, store, outcomes = asked_again
    chosen = read(store, outcomes, "pairs").filter("fair")
    other = read(store, outcomes, "cross-qld")
    assert chosen.height > 0
    assert set(chosen["variant_id"]) == set(other.filter(pl.col("method") != "original")["variant_id"])
    assert set(chosen["query_id"]) == set(other.filter(pl.col("method") == "original")["variant_id"])
    assert set(map(column_of, build.evaluate.directions)) <= set(other.columns)
    every = read(store, outcomes, "cross-tuned")
    assert every.filter(pl.col("method") != "original").height == outcomes["pairs"].manifest.rows_out


def test_the_same_ranker_gives_the_same_scores_again(asked_again, tmp_path):
    _, store, outcomes = asked_again
    recipe = read_recipe("demo")
    recipe.sections["cross"] = [{"ranker": "bm25", "name": "same"}]
    build = prepare(with_settings(recipe, {"reformulate.0": {"count": 3}}), store)
    again = read(store, build.plan.run(store), "cross-same")
    first = read(store, outcomes, "scores").filter(pl.col("variant_id").is_in(again["variant_id"].implode()))
    measures = list(map(column_of, build.evaluate.directions))
    assert again.sort("variant_id").select(measures).equals(first.sort("variant_id").select(measures), null_equal=True)


@pytest.mark.parametrize(
    ("section", "value", "said"),
    [
        ("cross", [{"ranker": "dens"}], "dense"),
        ("cross", [{"ranker": "qld", "of": ["fare"]}], "'cross.0.of' should be one or more of optimal"),
        ("cross", [{"ranker": "qld", "name": "../up"}], "cross.0 needs a name"),
        ("cross", [{"ranker": "qld"}, {"ranker": "qld"}], "two steps or sources named 'cross-qld-chosen'"),
        ("cross", [{"ranker": "qld", "mu2": 3}], "cross.0"),
    ],
)
def test_a_wrong_cross_ranker_is_refused_before_any_work(section, value, said, tmp_path):
    recipe = read_recipe("demo")
    recipe.sections[section] = value
    with pytest.raises(AskewError) as caught:
        prepare(recipe, Store(tmp_path))
    assert said in str(caught.value)
    assert not list(tmp_path.glob("index*"))


def test_asking_again_needs_a_selection(tmp_path):
    recipe = read_recipe("demo")
    del recipe.sections["select"]
    recipe.sections["cross"] = [{"ranker": "qld"}]
    with pytest.raises(AskewError, match=r"section \[select\]"):
        prepare(recipe, Store(tmp_path))


def test_another_ranker_can_be_added_on_the_command_line(tmp_path):
    recipe = with_settings(read_recipe("demo"), {"cross.0": {"ranker": "qld"}, "cross.1": {"ranker": "bm25-msmarco"}})
    steps = [step.name for step in prepare(recipe, Store(tmp_path)).plan.steps]
    assert steps[-6:] == ["cross-qld-chosen", "cross-qld-runs", "cross-qld", "cross-bm25-msmarco-chosen",
                          "cross-bm25-msmarco-runs", "cross-bm25-msmarco"]  # fmt: skip
    with pytest.raises(AskewError, match=r"reformulate\.7: .* 2 tables"):
        with_settings(read_recipe("demo"), {"reformulate.7": {"count": 1}})
