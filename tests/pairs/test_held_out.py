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
from askew.core.lexicon import Lexicon, load_lexicon
from askew.core.measure import Direction, column_of, held_out_gain_column, new_column, old_column
from askew.core.ranking import Rankings
from askew.core.store.store import Store
from askew.measures.lists import JudgedQueries
from askew.measures.requested import keys_of
from askew.pairs.build import Pairs
from askew.pairs.build import build as build_pairs
from askew.pairs.dataset.facts import read_facts
from askew.pairs.held_out import (
    DOCUMENTS,
    RANKS,
    WORDS,
    PartValues,
    Split,
    can_split,
    choices_of,
    document_halves,
    every_other,
    judged_places,
    term_counts,
    units_of,
    word_halves,
)
from askew.pairs.pareto import Epsilon
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe, with_settings
from askew.pairs.refairmulate import Refairmulate
from askew.pairs.stages import Select
from askew.pairs.summary import summarize
from askew.pairs.verify import verify

EFFECTIVENESS, LEAN, GENERIC = "RR@10", "ARaB(tf)@10", "ARaB(tf,who=generic)@10"
DIRECTIONS = {EFFECTIVENESS: Direction.UP, LEAN: Direction.ZERO}
GENDER = ("female", "male")
SOME_WORDS = st.sets(st.text("abcdefg", min_size=2, max_size=4), min_size=2, max_size=12)


def read(store, outcomes, step):
    return pl.from_arrow(pa.concat_tables(store.read(outcomes[step].manifest)))


def run_demo(folder, changes=None, shard_rows=65_536):
    store = Store(folder)
    build = prepare(with_settings(read_recipe("demo"), changes or {}), store)
    return build, store, build.plan.run(store, shard_rows)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("store"))


def stage_of(build):
    return next(step.stage for step in build.plan.steps if step.name == "held-out")


# The words


@given(SOME_WORDS, SOME_WORDS, st.integers(0, 5), st.data())
def test_halves_cover_the_lexicon_and_no_group_is_without_words_in_a_half(female, male, seed, data):
    lexicon = Lexicon("own", {"female": tuple(female), "male": tuple(male)})
    counts = {term: data.draw(st.integers(0, 9)) for term in sorted(female | male)}
    if not can_split([lexicon], GENDER):
        return
    first = word_halves([lexicon], GENDER, counts, 3, seed)
    assert set(first) == female | male
    for split in range(3):
        for words in (female, male):
            inside = {term for term in words if first[term][split]}
            assert inside
            assert inside != words


@given(SOME_WORDS, st.integers(0, 20))
def test_both_halves_of_a_group_have_as_many_words_and_neighbors_in_frequency_are_apart(words, seed):
    lexicon = Lexicon("own", {"one": tuple(words)})
    counts = {term: place for place, term in enumerate(sorted(words))}
    first = word_halves([lexicon], ("one",), counts, 2, seed)
    by_frequency = sorted(words, reverse=True)
    for split in range(2):
        assert abs(sum(first[term][split] for term in words) - len(words) / 2) <= 0.5
        for a, b in zip(by_frequency[::2], by_frequency[1::2], strict=False):
            assert first[a][split] != first[b][split]


def test_the_same_seed_gives_the_same_halves_and_another_seed_others():
    lexicon = load_lexicon("rekabsaz2020")
    one, same, other = (word_halves([lexicon], GENDER, {}, 5, seed) for seed in (3, 3, 4))
    assert all((one[term] == same[term]).all() for term in one)
    assert any((one[term] != other[term]).any() for term in one)


def test_a_word_of_two_lexicons_is_in_the_same_half_and_so_is_what_a_prefix_matches():
    lexicons = [Lexicon("one", {"female": ("she", "woman"), "male": ("he", "man")}),
                Lexicon("two", {"female": ("wom*", "she"), "male": ("he", "men")})]  # fmt: skip
    assert units_of(lexicons)["woman"] == units_of(lexicons)["wom*"]
    first = word_halves(lexicons, GENDER, {}, 8, 0)
    assert (first["woman"] == first["wom*"]).all()


def test_a_group_of_one_word_cannot_be_split():
    assert not can_split([Lexicon("own", {"female": ("she",), "male": ("he", "man")})], GENDER)
    assert not can_split([], ())


def test_terms_are_counted_as_in_the_whole_lexicon():
    words = tuple(f"w{number}" for number in range(40))
    lexicon = Lexicon("own", {"a": words, "b": ("new york", "york", "pre*")})
    found = term_counts(lexicon, "word", pa.array(["w3 w3 new york york prefix", "w39 pre"]))
    assert {term: count for term, count in found.items() if count} == {
        "w3": 2, "new york": 1, "york": 1, "pre*": 2, "w39": 1,
    }  # fmt: skip


def test_the_mentions_of_both_halves_add_up_to_all_mentions(demo):
    build, _, _ = demo
    stage = stage_of(build)
    for key in keys_of(build.evaluate.asked):
        whole = build.evaluate.scorer.mentions(*key)
        for split in range(stage.splits):
            first, second = (stage._counts.of(key, split, one).counts for one in (True, False))
            assert (first + second == whole.counts).all()
            assert min(first.min(), second.min()) >= 0
            assert first.sum() > 0
            assert second.sum() > 0


def test_halves_are_counted_for_resolved_mentions_and_for_terms_of_the_first_group_only(tmp_path):
    text, first = "ARaB(tf,who=generic+real)@10", "ARaB(tf,overlap=first)@10"
    changes = {
        "evaluate": {"measures": [EFFECTIVENESS, text, first]},
        "select": {"bias": f"{text} {first}"},
        "reformulate.0": {"count": 2},
    }
    build, _, outcomes = run_demo(tmp_path, changes)
    assert outcomes["held-out"].manifest.rows_out
    stage = stage_of(build)
    for key in keys_of(build.evaluate.asked):
        whole = build.evaluate.scorer.mentions(*key).counts
        first_half, second_half = (stage._counts.of(key, 1, one).counts for one in (True, False))
        assert (first_half + second_half == whole).all()
        assert 0 < first_half.sum() < whole.sum()
        assert min(first_half.min(), second_half.min()) >= 0


# The documents and the ranks


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
def test_less_lean_by_chance_in_half_of_the_documents_is_none_in_the_other_half_but_more_at_the_other_ranks(seed):
    lists, judged = random_lists(400, 6, seed)
    lean = np.random.default_rng([seed, 1]).normal(size=4000)
    places = judged_places(lists, judged)
    halves = [half.lists(lists, places) for half in document_halves(judged, 4000, 0, 0)]
    chosen, other = chosen_by_lean(halves, lean, 2)
    assert chosen < 0.6
    # Means of 400 sizes: five standard errors.
    assert abs(other - 1) < 0.25
    ranks = [every_other(lists, np.arange(len(lists.docs)), parity) for parity in (1, 0)]
    chosen, other = chosen_by_lean(ranks, lean, 5)
    assert chosen < 0.6
    assert other > 1.05


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_odd_and_even_ranks_are_the_list_without_every_second_document(lengths):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    docs = np.random.default_rng(0).permutation(int(offsets[-1])).astype(np.int64)
    lists = Rankings(pa.array([str(i) for i in range(len(lengths))]), offsets, docs, -docs.astype(np.float64))
    for parity, start in ((1, 0), (0, 1)):
        part = every_other(lists, np.arange(len(docs)), parity)
        for row in range(len(lengths)):
            expected = docs[offsets[row] : offsets[row + 1]][start::2]
            assert part.docs[part.offsets[row] : part.offsets[row + 1]].tolist() == expected.tolist()


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


SELECTORS = [
    (Epsilon(EFFECTIVENESS, LEAN), "is_best"),
    (Refairmulate(EFFECTIVENESS, LEAN, theta_bias=0.1, agreeing=1), "fair"),
]


@pytest.mark.parametrize(("selector", "subset"), SELECTORS)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_what_is_chosen_by_noise_gains_in_sample_and_nothing_held_out(selector, subset, seed):
    select = Select(selector, DIRECTIONS)
    scored, parts = noise(400, 6, seed)
    found = pl.concat(choices_of(select, scored, Split(WORDS, 0, tuple(parts))))
    (held_out,) = summarize(found, {LEAN: Direction.ZERO}, [subset]).to_dicts()
    (seen,) = summarize(in_sample(select, scored, parts[0]), {LEAN: Direction.ZERO}, [subset]).to_dicts()
    assert seen["change"] < -50
    # Some 700 pairs of independent values: a change of this size would be more than five standard errors.
    assert abs(held_out["change"]) < 25


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_each_part_chooses_as_the_selector_does_and_the_other_part_reports(seed):
    select = Select(Epsilon(EFFECTIVENESS, LEAN), DIRECTIONS)
    scored, parts = noise(12, 4, seed)
    found = choices_of(select, scored, Split(RANKS, 0, tuple(parts)))
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
    found = read(store, outcomes, "held-out").select("scheme", "split", "chosen_by").unique().sort(pl.all()).rows()
    both = ("first", "second")
    several = [(scheme, split, by) for scheme in (DOCUMENTS, WORDS) for split in range(5) for by in both]
    assert found == sorted([(RANKS, 0, by) for by in both] + several)


def test_the_shards_do_not_matter(demo, tmp_path):
    _, store, outcomes = demo
    _, other, cut = run_demo(tmp_path, shard_rows=200)
    keys = ["query_id", "variant_id", "scheme", "split", "chosen_by"]
    assert len(cut["held-out"].manifest.parts) > 1
    assert read(other, cut, "held-out").sort(keys).equals(read(store, outcomes, "held-out").sort(keys))


def test_lean_falls_less_held_out_than_in_sample(demo):
    build, store, outcomes = demo
    results = Pairs(build, store, outcomes)
    seen, found = results.in_sample, results.held_out
    change = {
        name: table.filter((pl.col("subset") == "effective") & (pl.col("measure") == LEAN))["change"][0]
        for name, table in (("in-sample", seen), ("held-out", found.filter(pl.col("scheme") == DOCUMENTS)))
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
        "select": {"selector": "epsilon", "epsilon": 1.0},
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
    words = pairs.table("held-out").filter(pl.col("scheme") == WORDS)
    assert words.filter(pl.col("query_id") == "b")["new_RR_10"].is_nan().all()
    assert not words.filter(pl.col("query_id") == "a")["new_RR_10"].is_nan().any()


def test_documents_are_held_out_where_a_group_has_one_word(tmp_path):
    words = {"female": ["she"], "male": ["he", "his"]}
    pairs, found = figures(toy(tmp_path, ONE_EACH, words), tmp_path)
    assert set(pairs.table("held-out")["scheme"]) <= {DOCUMENTS, RANKS}
    assert found[LEAN] == "held-out"
    assert pairs.summary["words_change"].is_null().all()


def test_the_first_figures_are_by_documents_and_those_by_words_and_ranks_are_beside_them(demo):
    build, store, outcomes = demo
    pairs = Pairs(build, store, outcomes)
    assert pairs.held_out["scheme"].unique(maintain_order=True).to_list() == [DOCUMENTS, WORDS, RANKS]
    chosen = pairs.summary.filter(pl.col("subset") == "fair")
    for scheme, column in ((DOCUMENTS, "change"), (WORDS, "words_change"), (RANKS, "ranks_change")):
        found = pairs.held_out.filter((pl.col("subset") == "fair") & (pl.col("scheme") == scheme))
        known = found.filter(pl.col("change").is_not_null())
        expected = chosen.join(known.select("measure"), on="measure", maintain_order="left", how="semi")
        assert expected.height
        assert expected[column].equals(known["change"])


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
    assert (held_out["scheme"], held_out["change"]) == (DOCUMENTS, row["change"])
    assert held_out["choices"] == 10
    assert row["in_sample_change"] < row["change"]


@pytest.mark.parametrize("step", ["held-out", "half-mentions"])
def test_a_damaged_part_is_repaired_to_the_same_bytes(tmp_path, step):
    build_pairs(toy(tmp_path, ONE_EACH), store=tmp_path / "store")
    part = next((tmp_path / "store").glob(f"{step}-*/part-*"))
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
    assert {"words_change", "ranks_change", "in_sample_change"} < set(row)
    assert "| change | 95% interval | change by words | change by ranks | in-sample change |" in card
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
    for one in pairs.table("held-out").filter(pl.col("scheme") == DOCUMENTS).iter_rows(named=True):
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


@pytest.mark.parametrize(
    ("name", "value"), [("measure", "other"), ("subset", "other"), ("figures", "x"), ("change", "1")]
)
def test_wrong_held_out_facts_are_refused(name, value):
    measures = {LEAN: {"signature": LEAN, "direction": "zero"}}
    row = {"subset": "fair", "measure": LEAN, "figures": "held-out", "change": -1.0, name: value}
    facts = {"title": "t", "description": "d", "collection": "c", "ranker": "r", "measures": measures}
    with pytest.raises(AskewError, match=f"held_out, {name}"):
        read_facts({**facts, "held_out": [row]})
