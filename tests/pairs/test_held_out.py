"""Pairs are chosen by one part of the data and reported by the other."""

import json
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import AskewError
from askew.core.measure import Direction, column_of, held_out_gain_column, new_column, old_column
from askew.core.ranking import Rankings
from askew.core.store.store import Store
from askew.measures.lists import JudgedQueries
from askew.pairs.boxes import Boxes
from askew.pairs.build import Pairs
from askew.pairs.build import build as build_pairs
from askew.pairs.held_out import PartValues, choices_of, document_halves, judged_places
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe, with_settings
from askew.pairs.refairmulate import Refairmulate
from askew.pairs.stages import Select
from askew.pairs.summary import summarize
from askew.pairs.verify import verify

EFFECTIVENESS, LEAN, GENERIC = "RR@10", "ARaB(tf)@10", "ARaB(tf,who=generic)@10"
DIRECTIONS = {EFFECTIVENESS: Direction.UP, LEAN: Direction.ZERO}


def read(store, outcomes, step):
    return pl.from_arrow(pa.concat_tables(store.read(outcomes[step].manifest)))


def run_demo(folder, changes=None, shard_rows=65_536):
    store = Store(folder)
    build = prepare(with_settings(read_recipe("demo"), changes or {}), store)
    return build, store, build.plan.run(store, shard_rows)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("store"))


# The documents


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), min_size=1, max_size=5), st.integers(0, 4))
def test_each_half_has_half_of_the_relevant_documents_and_all_others(grades, split):
    queries = pa.array([f"q{row}" for row, some in enumerate(grades) for _ in some])
    relevance = np.array([grade for some in grades for grade in some])
    docs = np.arange(len(relevance))
    judged = JudgedQueries.of(queries, docs, relevance)
    halves = [half.judged for half in document_halves(judged, len(docs), split, 0)]
    for row, some in enumerate(grades):
        sides = []
        for half in halves:
            of = slice(half.judgements.offsets[row], half.judgements.offsets[row + 1])
            kept = half.judgements.docs[of][half.judgements.relevance[of] > 0]
            assert (half.judgements.relevance[of] == 0).sum() == some.count(0)
            sides.append(set(kept.tolist()))
        relevant = sum(grade > 0 for grade in some)
        if relevant < 2:
            assert sides[0] == sides[1]
        else:
            assert not sides[0] & sides[1]
            assert abs(len(sides[0]) - len(sides[1])) <= 1
            assert len(sides[0] | sides[1]) == relevant


def random_lists(queries, variants, seed):
    """Random results: each variant of a query ranks the same ten documents, four of them relevant."""
    random = np.random.default_rng(seed)
    ids = [f"q{query}:{variant}" for query in range(queries) for variant in range(variants)]
    docs = np.concatenate([10 * query + random.permutation(10) for query in range(queries) for _ in range(variants)])
    names = pa.array([f"q{query}" for query in range(queries)])
    lists = Rankings(
        pa.array(ids), np.arange(len(ids) + 1) * 10, docs, np.tile(np.arange(10.0, 0, -1), len(ids)),
        names.take(pa.array(np.repeat(np.arange(queries), variants))),
    )  # fmt: skip
    judged = np.concatenate([10 * query + np.arange(4) for query in range(queries)])
    rows = names.take(pa.array(np.repeat(np.arange(queries), 4)))
    return lists, JudgedQueries.of(rows, judged, np.ones(len(judged), np.int64))


def first_relevant(lists, half):
    """The reciprocal rank of the first relevant document of a half."""
    relevant = set(half.judged.judgements.docs.tolist())
    parts = np.split(lists.docs, lists.offsets[1:-1])
    return np.array([1 / (1 + next(rank for rank, doc in enumerate(part) if doc in relevant)) for part in parts])


@given(st.integers(0, 4), st.integers(0, 10**6))
def test_the_only_relevant_document_of_a_query_is_in_one_half_too(split, seed):
    lists, _ = random_lists(20, 2, seed)
    names = pa.array([f"q{query}" for query in range(20)])
    judged = JudgedQueries.of(names, 10 * np.arange(20), np.ones(20, np.int64))
    parts = [half.lists(lists, judged_places(lists, judged)) for half in document_halves(judged, 200, split, 0)]
    assert not set(parts[0].docs.tolist()) & set(parts[1].docs.tolist())
    assert len(parts[0].docs) + len(parts[1].docs) == len(lists.docs)


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_the_half_that_chooses_among_random_results_takes_nothing_from_the_other_half(seed):
    lists, judged = random_lists(400, 6, seed)
    places = judged_places(lists, judged)
    assert (places >= 0).sum() == 400 * 6 * 4
    halves = document_halves(judged, 4000, 0, 0)
    parts = [half.lists(lists, places) for half in halves]
    assert len(parts[0].docs) + len(parts[1].docs) == len(lists.docs)
    assert not set(parts[0].docs.tolist()) & set(parts[1].docs.tolist())
    values = [first_relevant(part, half) for part, half in zip(parts, halves, strict=True)]
    by, told = (one.reshape(400, 6) for one in values)
    best = np.argmax(by, axis=1)
    gained, kept = by.max(axis=1).mean() / by[:, 0].mean(), told[np.arange(400), best].mean() / told[:, 0].mean()
    assert gained > 1.3
    # Means of 400 values between 1/9 and 1: five standard errors or more.
    assert abs(kept - 1) < 0.2


def chosen_by_lean(parts, lean, depth):
    """The size of the lean that the first part chooses, and that of the other part, relative to the originals."""
    sizes = []
    for part in parts:
        ends = zip(part.offsets[:-1], part.offsets[1:], strict=True)
        means = [lean[part.docs[start:end][:depth]].mean() if end > start else 0.0 for start, end in ends]
        sizes.append(np.abs(means).reshape(400, 6))
    best = np.argmin(sizes[0], axis=1)
    return [one[np.arange(400), best].mean() / one[:, 0].mean() for one in sizes]


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_less_lean_by_chance_in_half_of_the_documents_is_none_in_the_other_half(seed):
    lists, judged = random_lists(400, 6, seed)
    lean = np.random.default_rng([seed, 1]).normal(size=4000)
    places = judged_places(lists, judged)
    halves = [half.lists(lists, places) for half in document_halves(judged, 4000, 0, 0)]
    chosen, other = chosen_by_lean(halves, lean, 2)
    assert chosen < 0.6
    # Means of 400 sizes: five standard errors.
    assert abs(other - 1) < 0.25


# The choice


def noise(queries, candidates, seed):
    """Variants whose lean is noise, drawn anew for each part of the data."""
    random = np.random.default_rng(seed)
    ids = np.repeat(np.arange(queries), candidates + 1)
    place = np.tile(np.arange(candidates + 1), queries)
    scored = pl.DataFrame({
        "query_id": [f"q{number}" for number in ids],
        "variant_id": [f"q{number}:{which}" for number, which in zip(ids, place, strict=True)],
        "text": [f"{number} {which}" for number, which in zip(ids, place, strict=True)],
        "method": np.where(place == 0, "original", "toy"),
    })  # fmt: skip
    values = [{EFFECTIVENESS: np.ones(len(ids)), LEAN: random.normal(size=len(ids))} for _ in range(2)]
    return scored, [PartValues(one, one) for one in values]


def in_sample(select, scored, part):
    table = scored.with_columns([pl.Series(column_of(text), one) for text, one in part.choosing.items()])
    return pl.from_arrow(select.run(table.to_arrow())[0])


# The candidate with the least lean.
LEAST = {"measure": LEAN, "boxes": "least: refined < 99"}
SELECTORS = [
    (Boxes(**LEAST), "least"),
    (Refairmulate(EFFECTIVENESS, LEAN, theta_bias=0.1, agreeing=1), "fair"),
]


@pytest.mark.parametrize(("selector", "subset"), SELECTORS)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_what_is_chosen_by_noise_gains_in_sample_and_nothing_held_out(selector, subset, seed):
    select = Select(selector, DIRECTIONS)
    scored, parts = noise(400, 6, seed)
    found = pl.concat(choices_of(select, scored, 0, *parts))
    (held_out,) = summarize(found, {LEAN: Direction.ZERO}, [subset]).to_dicts()
    (seen,) = summarize(in_sample(select, scored, parts[0]), {LEAN: Direction.ZERO}, [subset]).to_dicts()
    assert seen["change"] < -50
    # Some 700 pairs of independent values: a change of this size would be more than five standard errors.
    assert abs(held_out["change"]) < 25


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_each_part_chooses_as_the_selector_does_and_the_other_part_reports(seed):
    select = Select(Boxes(**LEAST), DIRECTIONS)
    scored, parts = noise(12, 4, seed)
    found = choices_of(select, scored, 0, *parts)
    rows = {variant: row for row, variant in enumerate(scored["variant_id"])}
    assert [one["chosen_by"].unique().to_list() for one in found] == [["first"], ["second"]]
    for table, by, told in ((found[0], *parts), (found[1], *reversed(parts))):
        expected = in_sample(select, scored, by).filter("is_best")["variant_id"].to_list()
        assert table["variant_id"].to_list() == expected
        for query, variant, old, new in table.select(
            "query_id", "variant_id", "old_ARaB_tf_10", "new_ARaB_tf_10"
        ).rows():
            assert old == told.reported[LEAN][rows[f"{query}:0"]]
            assert new == told.reported[LEAN][rows[variant]]


# The step


def test_the_step_is_after_the_pairs_and_every_row_is_accounted_for(demo):
    build, _, outcomes = demo
    names = [step.name for step in build.plan.steps]
    assert names[names.index("pairs") + 1] == "held-out"
    manifest = outcomes["held-out"].manifest
    assert manifest.rows_in == outcomes["runs"].manifest.rows_out


def test_every_split_chooses_in_both_directions(demo):
    _, store, outcomes = demo
    found = read(store, outcomes, "held-out").select("split", "chosen_by").unique().sort(pl.all()).rows()
    assert found == [(split, by) for split in range(5) for by in ("first", "second")]


def test_the_shards_do_not_matter(demo, tmp_path):
    _, store, outcomes = demo
    _, other, cut = run_demo(tmp_path, shard_rows=200)
    keys = ["query_id", "variant_id", "split", "chosen_by"]
    assert len(cut["held-out"].manifest.parts) > 1
    assert read(other, cut, "held-out").sort(keys).equals(read(store, outcomes, "held-out").sort(keys))


def test_lean_falls_less_held_out_than_in_sample(demo):
    build, store, outcomes = demo
    results = Pairs(build, store, outcomes)
    seen, found = results.in_sample, results.held_out
    change = {
        name: table.filter((pl.col("subset") == "effective") & (pl.col("measure") == LEAN))["change"][0]
        for name, table in (("in-sample", seen), ("held-out", found))
    }
    assert change["in-sample"] < change["held-out"]


def test_a_recipe_can_leave_it_out_and_must_say_so_by_true_or_false(tmp_path):
    recipe = with_settings(read_recipe("demo"), {"select": {"held_out": False}})
    assert "held-out" not in [step.name for step in prepare(recipe, Store(tmp_path)).plan.steps]
    with pytest.raises(AskewError, match=r"select\.held_out .*'no'"):
        prepare(with_settings(recipe, {"select": {"held_out": "no"}}), Store(tmp_path))


def toy(folder, qrels, words=None):
    """A collection in which lean and effectiveness of reformulations differ."""
    names = ["she sells shells", "he sells bells", "her shells and bells", "his bells", "sells shells", "bells"]
    (folder / "docs.tsv").write_text("".join(f"d{place}\t{text}\n" for place, text in enumerate(names)))
    (folder / "queries.tsv").write_text("a\tsells bells\nb\tshells and bells\n")
    (folder / "qrels.txt").write_text(qrels)
    rows = ["a\tshells", "a\tbells bells", "b\tshells", "b\tand bells", "b\tsells"]
    (folder / "candidates.tsv").write_text("query_id\ttext\n" + "".join(f"{row}\n" for row in rows))
    sections = {
        "collection": {"source": str(folder)},
        "reformulate": [{"method": "replay", "file": str(folder / "candidates.tsv")}],
        "retrieve": {"ranker": "bm25", "k": 6}, "evaluate": {"measures": [EFFECTIVENESS, LEAN]},
        "select": {"selector": "boxes", **LEAST},
    }  # fmt: skip
    return Recipe("toy", sections | ({"groups": {"words": words}} if words else {}))


ONE_EACH = "a 0 d1 1\nb 0 d2 1\n"


def figures(recipe, folder):
    pairs = build_pairs(recipe, store=folder / "store")
    return pairs, dict(pairs.summary.select("measure", "figures").iter_rows())


def test_effectiveness_is_in_sample_where_a_query_has_one_relevant_document(tmp_path):
    pairs, found = figures(toy(tmp_path, ONE_EACH), tmp_path)
    assert found == {EFFECTIVENESS: "in-sample", LEAN: "held-out"}
    rows = pairs.table("held-out")
    assert rows.height
    assert rows["old_RR_10"].is_nan().all()


def test_effectiveness_is_held_out_for_the_queries_that_have_several(tmp_path):
    pairs, found = figures(toy(tmp_path, ONE_EACH + "a 0 d3 1\n"), tmp_path)
    assert found[EFFECTIVENESS] == "held-out"
    rows = pairs.table("held-out")
    assert rows.filter(pl.col("query_id") == "b")["new_RR_10"].is_nan().all()
    assert not rows.filter(pl.col("query_id") == "a")["new_RR_10"].is_nan().any()


def test_the_first_figures_are_held_out(demo):
    pairs = Pairs(*demo)
    known = pairs.held_out.filter((pl.col("subset") == "fair") & pl.col("change").is_not_null())
    chosen = pairs.summary.filter(pl.col("subset") == "fair")
    chosen = chosen.join(known.select("measure"), on="measure", maintain_order="left", how="semi")
    assert chosen.height
    assert chosen["change"].equals(known["change"])


def test_a_run_and_its_report_say_what_held_out_values_do_not_show(askew_cli, tmp_path):
    said = "subset fair: held-out data do not show that these measures improve (change, 95% interval): ARaB(tf,"
    assert said in " ".join(askew_cli(["run", "demo"]).out.split())
    assert any(line.startswith(said) for line in json.loads(askew_cli(["run", "demo", "--json"]).out)["cautions"])
    askew_cli(["report", "demo", "--out", "r"])
    assert f"S{said[1:]}" in (tmp_path / "r" / "report.html").read_text()


def test_a_run_shows_the_changes_of_all_candidates_as_a_baseline(askew_cli):
    said = " ".join(askew_cli(["run", "demo"]).out.split())
    assert "baseline, all candidates (" in said
    assert re.search(r"in-sample\), [^:]*: RR@10", said)
    rows = json.loads(askew_cli(["run", "demo", "--json"]).out)["all_candidates"]
    table = build_pairs("demo").table()
    for row in rows:
        old, new = (table[side(row["measure"])] for side in (old_column, new_column))
        if row["of"] == "distance from zero":
            old, new = old.abs(), new.abs()
        assert row["pairs"] == table.height and row["queries"] == table["query_id"].n_unique()
        assert row["change"] == pytest.approx(100 * (new.sum() / old.sum() - 1))


def test_without_the_held_out_step_nothing_is_said_of_held_out_values(askew_cli):
    found = json.loads(askew_cli(["run", "demo", "--set", "select.held_out=false", "--json"]).out)
    assert found["summary"] and found["cautions"] == []


def test_the_command_gives_both_figures_as_json(askew_cli):
    found = json.loads(askew_cli(["run", "demo", "--json"]).out)
    row = next(one for one in found["summary"] if (one["subset"], one["measure"]) == ("effective", LEAN))
    assert row["figures"] == "held-out"
    held_out = next(one for one in found["held_out"] if (one["subset"], one["measure"]) == ("effective", LEAN))
    assert held_out["change"] == row["change"]
    assert held_out["choices"] == 10
    assert row["in_sample_change"] < row["change"]


def test_a_damaged_part_is_repaired_to_the_same_bytes(tmp_path):
    build_pairs(toy(tmp_path, ONE_EACH), store=tmp_path / "store")
    part = next((tmp_path / "store").glob("held-out-*/part-*"))
    before = part.read_bytes()
    part.write_bytes(before[:-9] + b"x" + before[-8:])
    assert not verify(str(tmp_path / "store")).ok
    assert verify(str(tmp_path / "store"), repair=True).ok
    assert part.read_bytes() == before


def test_the_card_begins_with_the_held_out_figures_and_verify_checks_them(tmp_path):
    pairs = build_pairs("demo", store=tmp_path / "store")
    pairs.publish(tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.index("Held-out figures") < card.index("are in-sample:")
    stated = json.loads((tmp_path / "out" / "askew.json").read_text())["facts"]["held_out"]
    row = next(one for one in stated if (one["subset"], one["measure"]) == ("effective", LEAN))
    assert (row["figures"], row["held_out_pairs"] > 0) == ("held-out", True)
    assert "| change | 95% interval | in-sample change |" in card
    assert f"| effective | `{LEAN}` | held-out |" in card
    assert f"{row['change']:+.1f}%" in card
    assert verify(str(tmp_path / "out")).ok
    line = next(one for one in card.splitlines() if one.startswith(f"| effective | `{LEAN}` | held-out |"))
    (tmp_path / "out" / "README.md").write_text(card.replace(line, line.replace("held-out", "in-sample")))
    wrong = verify(str(tmp_path / "out")).wrong
    assert any(line.startswith("README.md: ") and "'held_out'" in line for line in wrong)


def test_a_published_pair_has_its_mean_gain_in_the_halves_of_documents_that_did_not_choose_it(demo, tmp_path):
    pairs = Pairs(*demo)
    pairs.publish(tmp_path / "out")
    rows = pl.read_parquet(tmp_path / "out" / "data" / "*.parquet")
    by_choice = {}
    for one in pairs.table("held-out").iter_rows(named=True):
        by_choice.setdefault((one["query_id"], one["variant_id"]), []).append(one)
    for measure, direction in ((EFFECTIVENESS, Direction.UP), (GENERIC, Direction.ZERO)):
        names = old_column(measure), new_column(measure)
        for query, variant, gain in rows.select("query_id", "variant_id", held_out_gain_column(measure)).iter_rows():
            gains = [direction.gain(*(one[name] for name in names)) for one in by_choice.get((query, variant), [])]
            known = [one for one in gains if not np.isnan(one)]
            assert gain == (pytest.approx(np.mean(known)) if known else None)
    gains = rows[held_out_gain_column(GENERIC)]
    assert 0 < gains.null_count() < len(gains)
    assert verify(str(tmp_path / "out")).wrong == []


def test_only_the_measures_of_the_selection_have_held_out_gains(demo, tmp_path):
    Pairs(*demo).publish(tmp_path / "out")
    stated = json.loads((tmp_path / "out" / "askew.json").read_text())["facts"]["held_out_gains"]
    assert set(stated) == {EFFECTIVENESS, *(f"ARaB({kind},who=generic)@10" for kind in ("tf", "tc", "bool"))}
    schema = pl.read_parquet_schema(next((tmp_path / "out" / "data").iterdir()))
    assert {name for name in schema if name.startswith("held_out_")} == {held_out_gain_column(one) for one in stated}


def test_a_release_without_held_out_figures_says_nothing_of_them(tmp_path):
    pairs = build_pairs("demo", store=tmp_path / "store", settings={"select": {"held_out": False}})
    pairs.publish(tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Held-out figures" not in card and "held_out_gain" not in card
    assert set(pairs.summary["figures"]) == {"in-sample"}
    assert pairs.summary["change"].equals(pairs.summary["in_sample_change"])
