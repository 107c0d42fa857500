"""askew publish and askew verify: a released dataset keeps its promises, and one that was touched is found out."""

import json
import tomllib

import polars as pl
import pyarrow as pa
import pytest

from askew.core.measure import column_of, gain_column
from askew.core.store.store import Store
from askew.pairs.build import Pairs
from askew.pairs.plan import prepare
from askew.pairs.publish import UNSELECTED, recipe_text
from askew.pairs.recipe import Recipe, read_recipe, with_settings
from askew.pairs.resources import TableSource


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def published(askew_cli, store, *more, recipe="demo"):
    done = askew_cli(["publish", recipe, "--out", "ds", "--store", str(store), *more])
    assert done.code == 0, done.err
    return done


def rows_of(folder):
    return pl.concat([pl.read_parquet(path) for path in sorted((folder / "data").iterdir())])


def verified(askew_cli):
    """What verify has to remark; nothing may be wrong."""
    done = json.loads(askew_cli(["verify", "ds", "--json"]).out)
    assert done["wrong"] == []
    return done["notes"]


@pytest.mark.parametrize(
    ("recipe", "lean"), [("demo", "gain_ARaB_tf_who_generic_10"), ("refairmulate-repo", "gain_ARaB_tf_10")]
)
def test_a_dataset_is_published_and_everything_it_promises_is_checked(askew_cli, store, tmp_path, recipe, lean):
    facts = json.loads(published(askew_cli, store, "--json", recipe=recipe).out)
    rows = rows_of(tmp_path / "ds")
    assert rows.height == sum(facts["splits"].values())
    steps = json.loads(askew_cli(["run", recipe, "--store", str(store), "--json"]).out)["steps"]
    built = next(row["out"] for row in steps if row["step"] == "pairs")
    assert facts["unselected"] == built - rows.height > 0
    card = (tmp_path / "ds" / "README.md").read_text()
    assert f"| publish&#58; {UNSELECTED} | {facts['unselected']} |" in card
    effective = rows.filter(pl.col("effective"))
    assert effective.height == facts["subsets"]["effective"] > 0
    assert (effective["gain_RR_10"] >= 0).all()
    assert (effective[lean] >= 0).all()
    assert verified(askew_cli) == []


def test_a_dataset_names_its_collection_and_the_licenses_of_its_sources(askew_cli, store, tmp_path):
    sections = dict(read_recipe("demo").sections)
    sections["publish"] = {
        "title": "Mine", "collection": "BoolQ, 80 queries",
        "sources": [{"name": "BoolQ", "license": "CC-BY-SA-3.0", "note": "queries"}],
    }  # fmt: skip
    (tmp_path / "mine.toml").write_text(recipe_text(sections))
    facts = json.loads(published(askew_cli, tmp_path / "store", "--json", recipe="mine.toml").out)
    card = (tmp_path / "ds" / "README.md").read_text()
    assert "queries of `BoolQ, 80 queries`:" in card and "| BoolQ | `CC-BY-SA-3.0` | queries |" in card
    assert "not stated here" not in card and facts["notes"]
    assert verified(askew_cli) == []


def test_the_same_recipe_publishes_the_same_bytes(askew_cli, store, tmp_path):
    published(askew_cli, store)
    (tmp_path / "ds").rename(tmp_path / "first")
    published(askew_cli, store)
    for path in sorted((tmp_path / "first").rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "ds" / path.relative_to(tmp_path / "first")).read_bytes()


def test_one_changed_number_is_found(askew_cli, store, tmp_path):
    published(askew_cli, store)
    path = tmp_path / "ds" / "json" / "Effective.json"
    path.write_text(path.read_text().replace("1.0", "0.9", 1))
    done = askew_cli(["verify", "ds", "--json"])
    assert done.code == 3
    assert any("Effective.json" in line for line in json.loads(done.out)["wrong"])


BOXES = "gold; platinum; diamond; far: refined - original >= 0.2"


def test_boxes_are_published_as_repair_publishes_them(askew_cli, store, tmp_path):
    facts = json.loads(published(askew_cli, store, "--json", "--set", f"select.boxes={BOXES}", recipe="repair").out)
    rows, old, new = rows_of(tmp_path / "ds"), pl.col("old_AP_100"), pl.col("new_AP_100")
    assert facts["subsets"] == {name: int(rows[name].sum()) for name in ("gold", "platinum", "diamond", "far")}
    assert rows.filter(~((new >= old) & (new > 0)), "gold").height == 0
    assert rows.filter(~(new > old), "platinum").height == 0
    assert rows.filter(~((new > old) & (new == 1)), "diamond").height == 0
    assert rows.filter(~(new - old >= 0.2), "far").height == 0
    repair = tmp_path / "ds" / "repair"
    every = pl.read_csv(repair / "Q.bm25-msmarco.AP100.agg.all.tsv", separator="\t", infer_schema=False)
    assert every.columns == ["qid", "order", "query", "bm25-msmarco.AP100"]
    assert every.filter(pl.col("order") == "-1").height == 96
    box = pl.read_csv(repair / "bm25-msmarco.AP100.boxes" / "far.tsv", separator="\t", has_header=False)
    assert (box.height, box.width) == (facts["subsets"]["far"], 5)
    judged = pl.read_csv(repair / "bm25-msmarco.AP100.boxes" / "far.qrels.tsv", separator="\t", has_header=False)
    assert set(judged.to_series(0)) == set(box.to_series(0))
    assert verified(askew_cli) == []


def test_where_every_candidate_is_tested_a_query_has_several(askew_cli, store, tmp_path):
    published(askew_cli, store, recipe="reque")
    rows = rows_of(tmp_path / "ds").filter("platinum")
    assert rows.height > rows["query_id"].n_unique() > 0
    assert verified(askew_cli) == []


def crossed(name, store, **select):
    sections = dict(read_recipe(name).sections)
    sections["select"] = {**sections["select"], **select}
    sections["cross"] = [{"ranker": "qld"}, {"ranker": "bm25", "name": "bm25", "k1": 2.0}]
    build = prepare(Recipe(name, sections), store)
    return build, build.plan.run(store)


def test_pairs_that_help_under_every_ranker_are_robust(askew_cli, store, tmp_path):
    held = Store(store)
    build, outcomes = crossed("demo", held)
    Pairs(build, held, outcomes).publish(tmp_path / "ds")
    rows = rows_of(tmp_path / "ds")
    assert rows.filter("negative")["robust"].null_count() == rows.filter("negative").height
    fair = rows.filter("fair")
    assert fair["robust"].null_count() == 0
    wanted = robust_by_hand(fair, [scores_of(held, outcomes, step) for step in ("cross-qld", "cross-bm25")])
    assert dict(fair.select("variant_id", "robust").iter_rows()) == wanted
    assert 0 < sum(wanted.values()) < len(wanted)
    stated = json.loads((tmp_path / "ds" / "askew.json").read_text())["facts"]
    assert stated["robust_rankers"] == ["bm25", "qld", "bm25"]
    assert verified(askew_cli) == []


def scores_of(store, outcomes, step):
    table = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(outcomes[step].manifest))))
    return {row["variant_id"]: row for row in table.iter_rows(named=True)}


MEASURES = ("RR@10", *(f"ARaB({kind},who=generic)@10" for kind in ("tf", "tc", "bool")))


def robust_by_hand(fair, others):
    found = {}
    for row in fair.iter_rows(named=True):
        gains = [[row[gain_column(name)] for name in MEASURES]]
        for scores in others:
            old, new = scores[row["query_id"]], scores[row["variant_id"]]
            lean = [abs(old[column_of(name)]) - abs(new[column_of(name)]) for name in MEASURES[1:]]
            gains.append([new["RR_10"] - old["RR_10"], *lean])
        worse = [any(gain < 0 for gain in one) for one in gains]
        better = [any(gain > 0 for gain in one) and not bad for one, bad in zip(gains, worse, strict=True)]
        found[row["variant_id"]] = not any(worse) and any(better)
    return found


def test_where_nothing_is_chosen_there_is_nothing_robust_and_an_empty_dataset(askew_cli, store, tmp_path):
    held = Store(store)
    build, outcomes = crossed("repair", held, boxes="never: refined > 2")
    done = Pairs(build, held, outcomes).publish(tmp_path / "ds")
    assert done.subsets == {"never": 0}
    assert verified(askew_cli) == []


def test_a_license_of_the_command_replaces_that_of_the_recipe(askew_cli, tmp_path):
    of_recipe = ["--set", "publish.license=CC0-1.0"]
    for given, expected in ((["--license", "CC-BY-4.0"], "CC-BY-4.0"), ([], "CC0-1.0")):
        done = askew_cli(["publish", "demo", *of_recipe, *given, "--out", f"ds-{expected}"])
        assert done.code == 0 and "license" not in done.err
        assert json.loads((tmp_path / f"ds-{expected}" / "askew.json").read_text())["facts"]["license"] == expected


def test_who_asked_and_when_is_released_where_the_queries_say_it(askew_cli, store, tmp_path):
    held = Store(store)
    build = prepare(with_settings(read_recipe("demo"), {}), held)
    outcomes = build.plan.run(held)
    queries = build.resources.queries.table
    said = pa.array([f"user {i % 3}" if i % 2 else None for i in range(queries.num_rows)], pa.string())
    build.resources.queries = TableSource(queries.append_column("context", said))
    Pairs(build, held, outcomes).publish(tmp_path / "ds")
    wanted = dict(zip(queries["query_id"].to_pylist(), said.to_pylist(), strict=True))
    found = rows_of(tmp_path / "ds").select("query_id", "context").unique()
    assert found.height > 1
    assert all(wanted[query] == context for query, context in found.iter_rows())
    assert verified(askew_cli) == []


def test_nothing_that_came_as_far_as_pairs_is_told(askew_cli, tmp_path):
    (tmp_path / "docs.tsv").write_text("d1\tshe sells shells\n")
    (tmp_path / "queries.tsv").write_text("a\this mother\n")
    (tmp_path / "qrels.txt").write_text("a 0 d1 1\n")
    done = askew_cli(["publish", "demo", "--out", "ds", "--set", f"collection.source={tmp_path}"])
    assert (done.code, "step 'pairs'" in done.err) == (3, True)
    assert not (tmp_path / "ds").exists()


def test_the_recipe_in_a_card_reads_back_as_toml():
    sections = {
        "title": 'a "b"',
        "retrieve": {"ranker": "bm25", "index": {"analyzer": "plain", "deep": {"x y": [1, True]}}},
        "reformulate": [{"method": "reduce"}, {"method": "swap", "count": 2.5}],
    }
    assert tomllib.loads(recipe_text(sections)) == sections


def test_a_folder_that_is_full_is_not_written_over(askew_cli, store, tmp_path):
    (tmp_path / "ds").mkdir()
    (tmp_path / "ds" / "mine.txt").write_text("x")
    assert askew_cli(["publish", "demo", "--out", "ds", "--store", str(store)]).code in (2, 3)
    assert (tmp_path / "ds" / "mine.txt").read_text() == "x"
