"""What the chosen pairs do under the other rankers of a recipe is reported with every build."""

import json

import polars as pl
import pytest

from askew.core.measure import column_of
from askew.core.store.store import Store
from askew.pairs.build import Pairs
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe
from askew.ui.cli.build import show_summary

LEAN, EFFECTIVENESS = "ARaB(tf,who=generic)@10", "RR@10"
QLD = ["--set", "cross.0.ranker=qld"]


def crossed(store, **changes):
    build = prepare(Recipe("demo", {**read_recipe("demo").sections, "cross": [{"ranker": "qld"}], **changes}), store)
    return Pairs(build, store, build.plan.run(store))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def pairs(folder):
    return crossed(Store(folder))


def test_each_subset_has_the_first_measure_of_lean_and_of_effectiveness_under_each_other_ranker(pairs):
    found = pairs.other_rankers
    assert found.select("ranker", "subset", "measure").rows() == [
        ("qld", subset, measure) for subset in ("optimal", "effective", "fair") for measure in (LEAN, EFFECTIVENESS)
    ]


def test_the_change_is_that_of_both_queries_of_the_pairs_searched_with_the_other_ranker(pairs):
    scores = {row["variant_id"]: row for row in pairs.table("cross-qld").iter_rows(named=True)}
    fair = pairs.table().filter("fair").select("query_id", "variant_id").rows()
    for measure in (LEAN, EFFECTIVENESS):
        old, new = (sum(abs(scores[pair[side]][column_of(measure)]) for pair in fair) for side in (0, 1))
        row = pairs.other_rankers.filter((pl.col("subset") == "fair") & (pl.col("measure") == measure))
        assert row["change"][0] == pytest.approx(100 * (new / old - 1))


def test_the_command_has_a_line_for_each_subset_and_other_ranker(askew_cli, pairs, folder):
    # The same recipe finds its steps in the store. A subset without pairs has no line.
    said = askew_cli(["run", "demo", *QLD, "--store", str(folder)]).out
    start = "change from the original queries to the reformulations, both searched with qld: "
    lines = [" ".join(line.split()) for line in said.splitlines() if line.startswith(start)]
    assert len(lines) == sum(pairs.table()[name].any() for name in ("optimal", "effective", "fair"))
    row = pairs.other_rankers.row(by_predicate=(pl.col("subset") == "fair") & (pl.col("measure") == LEAN), named=True)
    change = f"{row['change']:+.1f}% [{row['low']:+.0f}, {row['high']:+.0f}]"
    assert lines[-1].startswith(f"{start}|{LEAN}| {change}, ")
    assert "RR@10" in lines[-1]
    assert "searched with R:" in said
    found = json.loads(askew_cli(["run", "demo", *QLD, "--store", str(folder), "--json"]).out)
    assert found["other_rankers"] == pairs.other_rankers.to_dicts()


@pytest.mark.parametrize("until", ["scores", "pairs"])
def test_a_build_without_other_rankers_says_nothing_of_them(folder, until):
    build = prepare(read_recipe("demo"), Store(folder), until)
    assert Pairs(build, Store(folder), build.plan.run(Store(folder))).other_rankers is None


def test_pairs_without_a_score_under_another_ranker_are_said_to_have_none(capsys):
    figures = {"old_mean": None, "new_mean": None, "change": None, "low": None, "high": None}
    counts = {"pairs": 2, "queries": 2, "improved_pairs": 0, "worsened_pairs": 0, "zero_pairs": 0}
    row = {"subset": "fair", "measure": LEAN, "of": "distance from zero", "figures": "in-sample", **figures, **counts}
    show_summary([row], [{**row, "ranker": "qld", "pairs": 0, "took_part": False}])
    assert "searched with qld: unknown" in capsys.readouterr().out


def test_where_nothing_is_chosen_the_report_leaves_other_rankers_out(tmp_path):
    store = Store(tmp_path / "store")
    found = crossed(store, select={"selector": "boxes", "measure": "RR@10", "boxes": "never: refined > 2"})
    assert found.other_rankers is None
    found.report(tmp_path / "out")


def test_a_ranker_that_took_part_in_the_choice_is_named_so(tmp_path, capsys):
    select = {**read_recipe("demo").sections["select"], "across": ["qld"]}
    found = crossed(Store(tmp_path / "store"), select=select)
    assert found.other_rankers["took_part"].all()
    show_summary(found.summary.to_dicts(), found.other_rankers.to_dicts())
    assert "searched with qld (" in capsys.readouterr().out
    page = found.report(tmp_path / "out").html.read_text()
    assert "the results of qld" in page
