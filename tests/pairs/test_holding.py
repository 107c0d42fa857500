"""Pairs that hold: which queries can yield a pair, which pairs may be chosen, and what placebo lists yield."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engines import content

from askew.core.errors import ConfigError
from askew.core.folders import CHECKSUMS
from askew.core.protocols import DocMentions
from askew.core.ranking import Rankings
from askew.core.store.store import Store
from askew.measures.catalogue import Catalogue
from askew.measures.chance import discoveries
from askew.measures.scorer import Scorer
from askew.pairs.build import build
from askew.pairs.held_out import DRAWS, LEANS
from askew.pairs.holding import (
    ALL,
    BY_CHANCE,
    CHANCE,
    DOCUMENTS,
    FEW,
    LEAST,
    MORE_BY_ALL,
    NO_EFFECT,
    NO_RELEVANT,
    ONE_DOCUMENT,
    REFUSED,
    Holding,
    corrected,
    refusals,
)
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe, shipped_recipes, with_settings
from askew.pairs.verify import verify

# --- the conditions, by hand ------------------------------------------------------------------------------------------


def columns_of(counts, lists, originals, articles=None, measure="ARaB(tf)@10"):
    """The columns of some lists; ``counts`` are the female and male words of each document of ten words."""
    counts = np.array(counts, np.int32)
    size = len(counts)
    mentions = DocMentions(("female", "male"), counts, np.full(size, 10, np.int32), np.ones(size, np.bool_))
    (asked,) = Catalogue().complete([measure])
    found = None if articles is None else lambda docs: (np.array(articles, np.int64)[docs], True)
    scorer = Scorer([asked], pa.array([f"d{doc}" for doc in range(size)]), lambda _: mentions, articles=found)
    docs = np.array([doc for ranked in lists for doc in ranked], np.int64)
    ids = pa.array([f"q:{row}" for row in range(len(lists))])
    scores = np.concatenate([-np.arange(len(ranked), dtype=float) for ranked in lists])
    rankings = Rankings(ids, np.cumsum([0, *map(len, lists)]), docs, scores, pa.array(["q"] * len(lists)))
    return Holding(asked, ()).columns(scorer, rankings, np.array(originals)), rankings, scorer, asked


def lean_without(scorer, asked, rankings, left_out, articles):
    """The size of the lean of each list, if the words of one article are not counted."""
    key = next(iter(scorer._counted))
    mentions = scorer.mentions(*key)
    counts = np.where((articles == left_out)[:, None], 0, mentions.counts)
    with scorer.with_mentions(key, DocMentions(mentions.groups, counts, mentions.tokens, mentions.known)):
        return np.abs(scorer.values(scorer.inputs(rankings, [asked]), [asked])[asked.text])


FEMALE, MALE, NOBODY = (2, 0), (0, 2), (0, 0)


def test_less_lean_in_one_document_is_owed_to_it_and_in_two_documents_it_is_not():
    # The original finds three documents about women; candidates find one or two fewer.
    counts = [FEMALE, FEMALE, FEMALE, NOBODY, NOBODY, NOBODY]
    found, *_ = columns_of(counts, [[0, 1, 2], [0, 1, 3], [3, 4, 2], [3, 4, 5]], [0, 0, 0, 0])
    # Without document 2, the second list leans as much as the first.
    assert found[LEAST][1] == pytest.approx(0.0) and found[ALL][1] > 0
    assert found[LEAST][2] > 0 and found[LEAST][3] > 0
    assert [None if one is None else json.loads(one) for one in found[DOCUMENTS]] == [
        None, None, ["d0", "d1"], ["d0", "d1", "d2"]
    ]  # fmt: skip


def test_two_passages_of_one_article_are_one():
    counts = [FEMALE, FEMALE, FEMALE, NOBODY, NOBODY]
    apart, *_ = columns_of(counts, [[0, 1, 2], [3, 4, 2]], [0, 0], articles=[0, 1, 2, 3, 4])
    together, *_ = columns_of(counts, [[0, 1, 2], [3, 4, 2]], [0, 0], articles=[0, 0, 2, 3, 4])
    assert apart[LEAST][1] > 0 and together[LEAST][1] <= 1e-9
    assert together[DOCUMENTS][1] is None


def test_a_document_that_adds_the_other_group_carries_less_lean_too():
    found, *_ = columns_of([FEMALE, FEMALE, MALE, FEMALE], [[0, 1, 3], [0, 2, 3]], [0, 0])
    assert json.loads(found[DOCUMENTS][1]) == ["d1", "d2"] and found[ALL][1] > 0


@given(
    counts=st.lists(st.sampled_from([FEMALE, MALE, NOBODY, (1, 0), (1, 2)]), min_size=8, max_size=8),
    lists=st.lists(st.permutations(range(8)), min_size=2, max_size=4),
    articles=st.lists(st.integers(0, 5), min_size=8, max_size=8),
    measure=st.sampled_from(["ARaB(tf)@5", "ARaB(bool)@3", "LexiconShare@4"]),
)
@settings(max_examples=60, deadline=None)
def test_the_least_gain_is_that_of_all_ways_to_leave_out_an_article(counts, lists, articles, measure):
    articles = np.array(articles)
    found, rankings, scorer, asked = columns_of(counts, lists, [0] * len(lists), articles, measure)
    plain = lean_without(scorer, asked, rankings, -1, articles)
    assert found[ALL] == pytest.approx(plain[0] - plain)
    left_out = [lean_without(scorer, asked, rankings, one, articles) for one in np.unique(articles)]
    least = np.min([plain[0] - plain, *(one[0] - one for one in left_out)], axis=0)
    assert found[LEAST] == pytest.approx(least)


def table(**values):
    row = {CHANCE: 0.01, ALL: 0.5, LEAST: 0.25, "old_RR_10": 0.0, "new_RR_10": 0.5} | values
    return pl.DataFrame([row])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, None),
        ({"old_RR_10": 0.5, "new_RR_10": 0.0}, None),
        ({CHANCE: 0.06}, BY_CHANCE),
        ({"new_RR_10": 0.0}, NO_EFFECT),
        ({ALL: 0.0}, MORE_BY_ALL),
        ({ALL: -0.5, LEAST: -0.5}, MORE_BY_ALL),
        ({LEAST: 0.0}, ONE_DOCUMENT),
    ],
)
def test_the_first_condition_that_fails_is_the_reason(values, reason):
    assert refusals(table(**values), ["RR@10"]).to_list() == [reason]


def test_without_a_measure_of_effectiveness_no_pair_is_refused_for_it():
    assert refusals(table(new_RR_10=0.0), []).to_list() == [None]


@given(st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), min_size=1, max_size=30))
def test_corrected_p_values_find_what_benjamini_and_hochberg_find(p):
    p = np.array(p)
    assert ((corrected(p) <= 0.05) == discoveries(p, 0.05)).all()


# --- a build ----------------------------------------------------------------------------------------------------------

WORDS = {"female": "she she", "male": "he he", "": "it it"}


def add(docs, words, group, count):
    """Documents with these words, each about its own subject."""
    for _ in range(count):
        number = len(docs)
        docs[f"{number}:1"] = f"{words} subject{number} other{number} {WORDS[group]}"


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """Queries that lean beyond chance (alpha, gamma), one about two documents, one about nobody, and one by chance."""
    docs = {}
    for word, group in (("alpha", "female"), ("gamma", "male")):
        add(docs, f"{word} {word} {word}", group, 9)
        add(docs, f"{word} {word}1", group, 1)  # relevant, for the query and for its candidates
    # beta1 finds both groups equally often, beta2 finds the documents of alpha but one.
    for group in ("female", "male", "female", "male", "female", "male", "female", "male"):
        add(docs, "beta1 beta1", group, 1)
        add(docs, "delta1 delta1", group, 1)
    add(docs, "chance", "female", 2)
    add(docs, "chance", "male", 1)
    add(docs, "nobody", "", 4)
    add(docs, "other text", "male", 6)
    add(docs, "other text", "female", 6)
    queries = {"a": "alpha", "g": "gamma", "c": "chance", "n": "nobody", "u": "gamma unjudged"}
    folder = tmp_path_factory.mktemp("collection")
    (folder / "docs.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in docs.items()))
    (folder / "queries.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in queries.items()))
    relevant = {"a": 9, "g": 19, "c": len(docs) - 17, "n": len(docs) - 14}
    (folder / "qrels.txt").write_text(
        "".join(f"{query} 0 {doc}:1 1\n" for query, doc in relevant.items()) + "u 0 1:1 0\n"
    )
    made = [("a", "beta1 alpha1"), ("a", "beta1"), ("a", "alpha1 alpha"), ("g", "delta1 gamma1"), ("g", "gamma1"),
            ("c", "other chance")]  # fmt: skip
    (folder / "made.tsv").write_text("query_id\ttext\n" + "".join(f"{name}\t{text}\n" for name, text in made))
    return folder


def recipe(folder, **select):
    return Recipe("own", {
        "collection": {"source": str(folder)},
        "reformulate": [{"method": "replay", "file": str(folder / "made.tsv")}],
        "retrieve": {"ranker": "bm25", "k": 10},
        "evaluate": {"measures": ["RR@10", "ARaB(tf)@10", "ARaB(tc)@10"]},
        "select": {"selector": "refairmulate", "bias": "ARaB(tf)@10 ARaB(tc)@10", "holds": True, **select},
    })  # fmt: skip


@pytest.fixture(scope="module")
def built(collection, tmp_path_factory):
    return build(recipe(collection), store=tmp_path_factory.mktemp("store"))


def test_only_queries_that_can_yield_a_pair_are_reformulated_and_others_are_counted(built):
    steps = {one["step"]: one for one in built.steps}
    assert steps["promising"]["in"] == 5 and steps["promising"]["out"] == steps["variants"]["in"] == 2
    assert steps["promising"]["dropped"] == {NO_RELEVANT: 1, FEW: 1, BY_CHANCE: 1}
    assert set(built.table("variants")["query_id"]) == {"a", "g"}
    names = list(steps)
    assert names.index("promising") < names.index("variants")


def test_a_chosen_pair_leans_beyond_chance_before_and_less_after_through_several_documents(built):
    pairs = built.table()
    chosen = pairs.filter("fair")
    assert sorted(chosen["text"]) == ["beta1 alpha1", "delta1 gamma1"]
    for row in chosen.rows(named=True):
        assert row[CHANCE] <= 0.05 and row[ALL] > 0 and row[LEAST] > 0 and row[REFUSED] is None
        assert row["old_RR_10"] > 0 or row["new_RR_10"] > 0
        assert len(json.loads(row[DOCUMENTS])) > 1
        assert abs(row["new_ARaB_tf_10"]) < abs(row["old_ARaB_tf_10"])
    left = pairs.filter(pl.col(REFUSED).is_not_null())
    assert not left.select(pl.any_horizontal("optimal", "effective", "fair", "is_best")).to_series().any()
    accepted = left.filter("accepted")
    assert accepted["negative"].all()


def test_placebo_lists_are_treated_by_the_same_selection(built, collection, tmp_path):
    (row,) = built.placebo.filter(subset="fair").to_dicts()
    assert (row["pairs"], row["fewest"] <= row["placebo"] <= row["most"]) == (2, True)
    assert row["placebo"] <= row["untested"] and row["share"] == row["placebo"] / 2
    drawn = built.table("placebo")
    assert drawn["draw"].is_between(0, DRAWS - 1).all()
    # Without the conditions, every drawn pair counts, and directions alone make the same candidates win.
    free = build(recipe(collection, holds=False), store=tmp_path)
    assert free.table("placebo")[LEANS].all()
    (plain,) = free.placebo.filter(subset="fair").to_dicts()
    assert plain["placebo"] == plain["untested"] > row["placebo"]


def test_the_steps_do_not_depend_on_the_shards(built, collection, tmp_path):
    store = Store(tmp_path)
    ready = prepare(recipe(collection), store)
    outcomes = ready.plan.run(store, shard_rows=2)
    assert len(outcomes["scores"].manifest.parts) > 1
    for step in ("promising", "pairs", "placebo"):
        found = pl.concat(pl.from_arrow(part) for part in store.read(outcomes[step].manifest))
        assert found.sort(pl.all()).equals(built.table(step).sort(pl.all())), step


def test_a_build_that_is_stopped_resumes_with_the_same_bytes(built, collection, tmp_path):
    for stop in ("promising", "scores", "placebo"):

        def interrupt(step, done, total, at=stop):
            if step == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build(recipe(collection), store=tmp_path, progress=interrupt)
    build(recipe(collection), store=tmp_path)
    names = [name for name in content(tmp_path) if name.split("-")[0] in ("promising", "scores", "pairs", "placebo")]
    assert names and {name: content(tmp_path)[name] for name in names} == {
        name: content(built.store.local)[name] for name in names
    }


def test_a_published_dataset_has_the_reasons_and_the_selector_that_is_run_again_finds_a_changed_one(built, tmp_path):
    folder = tmp_path / "dataset"
    built.publish(folder)
    assert verify(str(folder)).ok
    stated = json.loads((folder / "askew.json").read_text())
    assert stated["facts"]["placebo"] and stated["facts"]["selection"]["holds"]["effectiveness"] == ["RR@10"]
    (file,) = [one for one in sorted((folder / "data").glob("*.parquet")) if pl.read_parquet(one)["fair"].any()][:1]
    rows = pl.read_parquet(file)
    assert {CHANCE, ALL, LEAST, DOCUMENTS, REFUSED} <= set(rows.columns)
    rows.with_columns(pl.when("fair").then(-1.0).otherwise(LEAST).alias(LEAST)).write_parquet(file)
    lines = [line for line in verify(str(folder)).wrong if CHECKSUMS not in line]
    assert any("'fair'" in line for line in lines) and any(f"'{REFUSED}'" in line for line in lines)


def test_a_collection_without_a_promising_query_ends_without_pairs(collection, tmp_path):
    queries = tmp_path / "collection"
    queries.mkdir()
    for name in ("docs.tsv", "qrels.txt", "made.tsv"):
        (queries / name).write_text((collection / name).read_text())
    (queries / "queries.tsv").write_text("c\tchance\nn\tnobody\n")
    found = build(recipe(queries), store=tmp_path / "store")
    assert found.table().is_empty() and found.summary is None
    assert all(row["placebo"] == 0 for row in found.placebo.to_dicts())


@pytest.mark.parametrize("select", [{"holds": "yes"}, {"placebo": 3}])
def test_a_switch_is_true_or_false(collection, tmp_path, select):
    with pytest.raises(ConfigError, match="should be true or false"):
        prepare(recipe(collection, **select), Store(tmp_path))


def test_a_selection_without_a_difference_of_two_groups_cannot_hold(collection, tmp_path):
    with pytest.raises(ConfigError, match=r"select\.holds needs"):
        prepare(recipe(collection, selector="boxes", bias="", measure="RR@10"), Store(tmp_path))


def test_a_build_prints_how_many_queries_can_yield_a_pair(askew_cli):
    done = askew_cli(["run", "demo", "--set", "select.holds=true"])
    assert "note: 0 of 72 queries can yield a pair\n" in done.err and done.code == 0


# --- recipes ----------------------------------------------------------------------------------------------------------


def test_the_recipes_of_papers_have_their_definitions_and_the_usual_one_asks_for_pairs_that_hold():
    holds = {name for name in shipped_recipes() if read_recipe(name).table("select").get("holds")}
    assert holds == {"refairmulate"}


def test_a_recipe_of_a_paper_can_ask_for_pairs_that_hold(tmp_path):
    plain = prepare(read_recipe("refairmulate-paper"), Store(tmp_path)).plan.keys()
    asked = with_settings(read_recipe("refairmulate-paper"), {"select": {"holds": True}})
    again = prepare(asked, Store(tmp_path)).plan.keys()
    assert "promising" in again and "promising" not in plain


def test_no_recipe_computes_nfairr_without_another_run():
    for name in shipped_recipes():
        measures = read_recipe(name).table("evaluate")["measures"]
        assert not [one for one in measures if one.startswith("NFaiRR")], name
