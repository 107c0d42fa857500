"""Choosing across rankers: acceptable under every one of them, and by the smallest gain."""

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import AskewError
from askew.core.measure import Direction, gain_column
from askew.core.plugins import from_spec
from askew.core.store.store import Store
from askew.pairs.build import Pairs
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe
from askew.pairs.stages import acceptable, choose_across, smallest_gains
from askew.pairs.verify import verify

WAYS = {"RR@10": Direction.UP, "ARaB(tf)@10": Direction.ZERO}
LESS = {"selector": "boxes", "measure": "ARaB(tf)@10", "boxes": "less: refined < original"}
SELECTORS = [
    {"selector": "refairmulate", "bias": "ARaB(tf)@10", "agreeing": 1},
    {"selector": "refairmulate-paper", "bias": "ARaB(tf)@10"},
    {"selector": "refairmulate-repo", "effectiveness": "RR@10", "bias": "ARaB(tf)@10", "valid_bias": "ARaB(tf)@10"},
    {"selector": "boxes", "measure": "RR@10", "bias": "ARaB(tf)@10"}, LESS,
]  # fmt: skip


def scores(*rows):
    """Of one query: RR and lean of the original, then of each candidate."""
    return pl.DataFrame({
        "query_id": ["q"] * len(rows), "variant_id": [f"q:{i}" for i in range(len(rows))],
        "text": [f"text {i}" for i in range(len(rows))], "method": ["original"] + ["m"] * (len(rows) - 1),
        "RR_10": [row[0] for row in rows], "ARaB_tf_10": [row[1] for row in rows],
    }, schema_overrides={"RR_10": pl.Float64, "ARaB_tf_10": pl.Float64})  # fmt: skip


def chosen(spec, first, *others):
    selector = from_spec("selector", spec)
    tables = {f"other{i}": one for i, one in enumerate(others)}
    pairs = choose_across(selector, first, tables, WAYS)
    subsets = [name for name in selector.subsets if name != "negative"]
    return pairs.filter(pl.any_horizontal(subsets))["variant_id"].to_list()


def test_the_candidate_with_the_largest_smallest_gain_is_chosen():
    bm25 = scores((0.5, 2.0), (0.5, 0.0), (0.5, 1.0))
    dense = scores((0.25, 1.0), (0.25, 0.75), (0.25, 0.5))
    assert chosen(LESS, bm25) == ["q:1"]
    assert chosen(LESS, bm25, dense) == ["q:2"]


def test_a_candidate_that_is_not_acceptable_under_one_ranker_is_not_chosen():
    bm25 = scores((0.5, 2.0), (0.5, 0.0), (0.5, 1.5))
    dense = scores((0.25, 1.0), (0.25, 1.5), (0.25, 0.75))
    assert chosen(LESS, bm25, dense) == ["q:2"]
    assert chosen(LESS, bm25, scores((0.25, 1.0), (0.25, 1.5), (0.25, 1.25))) == []


def test_a_candidate_or_an_original_that_another_ranker_has_not_found_is_not_chosen():
    bm25 = scores((0.5, 2.0), (0.5, 0.0), (0.5, 1.0))
    assert chosen(LESS, bm25, bm25[[0, 2]]) == ["q:2"]
    assert chosen(LESS, bm25, bm25[1:]) == []


def test_smallest_gains_are_those_of_the_ranker_where_least_is_gained():
    bm25 = scores((0.5, -2.0), (1.0, 0.5), (0.5, 1.75))
    dense = scores((0.25, 1.0), (0.5, 0.75), (1.0, 0.0))
    found = smallest_gains(bm25, {"dense": dense}, WAYS)
    assert found["RR_10"].to_list() == [0.5, 0.75, 0.5]
    # A quarter of the lean is gone under dense: of 2 that would leave 1.5.
    assert found["ARaB_tf_10"].to_list() == [-2.0, 1.5, 1.75]
    without = scores((0.25, 0.0), (0.5, 0.75), (1.0, 0.0))
    assert smallest_gains(bm25, {"dense": without}, WAYS)["ARaB_tf_10"].to_list() == [-2.0, 2.75, 2.0]


value = st.tuples(st.sampled_from([0.25, 0.5, 1.0]), st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0]))
two_rankers = st.integers(1, 6).flatmap(
    lambda n: st.tuples(*(st.lists(value, min_size=n, max_size=n) for _ in range(2)))
)


@pytest.mark.parametrize("spec", SELECTORS, ids=lambda spec: spec["selector"])
@given(two_rankers)
def test_whatever_is_chosen_is_acceptable_under_every_ranker(spec, rows):
    selector, tables = from_spec("selector", spec), [scores(*one) for one in rows]
    both = set.intersection(*(set(acceptable(selector, one, WAYS)["variant_id"]) for one in tables))
    assert set(chosen(spec, *tables)) <= both
    if spec["selector"] == "refairmulate":
        assert bool(chosen(spec, *tables)) == bool(both)


@pytest.mark.parametrize("spec", SELECTORS, ids=lambda spec: spec["selector"])
@given(st.lists(value, min_size=1, max_size=6))
def test_the_same_ranker_twice_chooses_as_it_does_once(spec, rows):
    assert chosen(spec, scores(*rows), scores(*rows)) == chosen(spec, scores(*rows))


# --- in a recipe -----------------------------------------------------------------------------------------------------


def recipe_of(**select):
    sections = dict(read_recipe("demo").sections)
    sections["reformulate"] = [{"method": "reduce"}, {"method": "extract", "count": 3}]
    sections["filter"] = []
    sections["cross"] = [{"ranker": "qld"}, {"ranker": "bm25-msmarco", "name": "tuned"}]
    sections["select"] = {"selector": "refairmulate", "bias": "ARaB(tf)@10", "agreeing": 1, **select}
    return Recipe("r", sections)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("across"))
    build = prepare(recipe_of(across=["qld"]), store)
    return build, store, build.plan.run(store, 100)


def table_of(built, step):
    return pl.DataFrame(pl.from_arrow(pa.concat_tables(built[1].read(built[2][step].manifest))))


def gains_under(built, step, pairs):
    scored = table_of(built, step)
    old = dict(scored.filter(pl.col("method") == "original").select("query_id", "ARaB_tf_10").iter_rows())
    new = dict(scored.select("variant_id", "ARaB_tf_10").iter_rows())
    return [abs(old[q]) - abs(new[v]) for q, v in pairs.select("query_id", "variant_id").iter_rows()]


def test_all_candidates_are_searched_with_the_rankers_that_the_choice_reads(built):
    names = [step.name for step in built[0].plan.steps]
    assert names.index("cross-qld") < names.index("pairs") < names.index("cross-tuned")
    assert table_of(built, "cross-qld").height == table_of(built, "kept").height


def test_chosen_pairs_lean_less_under_both_rankers(built):
    pairs = table_of(built, "pairs")
    best = pairs.filter("is_best")
    assert best.height > 3
    assert not best["source_judged"].any()
    assert (best[gain_column("ARaB(tf)@10")] > 0).all()
    assert min(gains_under(built, "cross-qld", best)) > 0
    alone = prepare(recipe_of(), built[1])
    other = pl.DataFrame(pl.from_arrow(pa.concat_tables(built[1].read(alone.plan.run(built[1])["pairs"].manifest))))
    assert other.height == pairs.height
    assert other["is_best"].sum() >= best.height


def test_the_report_and_the_dataset_have_the_other_rankers(built, tmp_path):
    Pairs(*built).report(tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "qld" in page and "tuned" in page
    Pairs(*built).publish(tmp_path / "out")
    assert verify(str(tmp_path / "out")).wrong == []


def test_shards_do_not_change_the_choice(built, tmp_path):
    store = Store(tmp_path)
    outcomes = prepare(recipe_of(across=["qld"]), store).plan.run(store)
    pairs = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(outcomes["pairs"].manifest))))
    assert pairs.equals(table_of(built, "pairs"), null_equal=True)


@pytest.mark.parametrize(
    ("select", "cross", "said"),
    [
        ({"across": ["dens"]}, {}, "unknown ranker of"),
        ({"across": "qld"}, {}, "select.across should be a list of names"),
        ({"across": ["qld"]}, {"of": ["is_best"]}, "the setting 'of'"),
    ],
)
def test_a_wrong_choice_of_rankers_is_refused_before_any_work(tmp_path, select, cross, said):
    recipe = recipe_of(**select)
    recipe.sections["cross"][0].update(cross)
    with pytest.raises(AskewError, match=said):
        prepare(recipe, Store(tmp_path))
