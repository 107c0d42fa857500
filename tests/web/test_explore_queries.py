"""One query: its results, what the measures say, other ways to ask it."""

import math
import re
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

from askew.core.errors import ConfigError, DataError
from askew.core.measure import gain_column, new_column
from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.measures.measure import measure
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe
from askew.ui.explorer.answers import WarrantRules
from askew.ui.explorer.explorer import AGREEMENT, Explorer
from askew.ui.explorer.opening import NO_INDEX, Sources, open_sources
from askew.ui.explorer.searched import words_of
from conftest import DECIDING, JUDGED, LIGHT


def test_the_measures_of_a_page_are_those_of_askew_measure(explorer):
    queries = dict(list(explorer.searched.known.texts.items())[::12])
    ids = explorer.searched.ranker.doc_ids
    run = {}
    for query_id, text in queries.items():
        hits = explorer.searched.ranker.search([text], 100)
        run[query_id] = {ids[d].as_py(): s for d, s in zip(hits.docs.tolist(), hits.scores.tolist(), strict=True)}
    wanted = [one.text for one in explorer.scorer.asked]
    report = measure({"r": run}, demo_files().docs, qrels=demo_files().qrels, measures=wanted, unanswered="absent")
    for row, query_id in enumerate(report.runs[0].query_ids):
        found = {one.measure: one.value for one in explorer.search(queries[query_id]).values}
        expected = {name: values[row] for name, values in report.runs[0].values.items()}
        assert found == {name: None if math.isnan(v) else pytest.approx(v, abs=1e-12) for name, v in expected.items()}


@pytest.fixture(scope="module")
def writing(explorer):
    """The demo without the reformulations that it brings, so that all are written."""
    return Explorer(replace(explorer.searched, stored=None), explorer.counting)


def test_candidates_and_their_scores_are_those_of_a_build(writing, tmp_path):
    store = Store(tmp_path / "store")
    typed = {name: read_recipe(LIGHT).sections[name] for name in ("reformulate", "filter")}
    recipe = Recipe("typed", {**read_recipe("demo").sections, **typed})
    step = prepare(recipe, store, until="pairs").plan.run(store)["pairs"].manifest
    pairs = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(step)))).filter(query_id="law-q08")
    found = writing.reformulate("how to become a lawyer")
    assert [one.text for one in found.candidates] == pairs["text"].to_list()
    assert [one.variant_id for one in found.candidates] == pairs["variant_id"].to_list()
    for name in ("RR@10", "AP@10", "ARaB(tf)@10", "LexiconShare@10"):
        assert [one.values[name] for one in found.candidates] == pytest.approx(pairs[new_column(name)].to_list())
        assert [one.gains[name] for one in found.candidates] == pytest.approx(pairs[gain_column(name)].to_list())


def test_a_judged_query_is_found_by_its_words_whatever_blanks_and_capitals(explorer):
    found = explorer.search("  How to become\ta NURSE ", 3)
    assert (found.query_id, found.judged) == ("care-q02", True)
    assert {one.kind for one in found.values} == {"effectiveness", "lean"}
    assert found.results[0].relevance == explorer.searched.known.grades["care-q02"].get(found.results[0].doc_id)
    assert words_of("A  b") == words_of("a B")


def test_results_carry_their_marks_and_the_sum_of_their_mentions(explorer):
    found = explorer.search("famous women in nursing history", 5)
    assert [one.rank for one in found.results] == [1, 2, 3, 4, 5]
    for one in found.results:
        assert not one.cut and explorer.marker.count(one.marks) == one.mentions
    assert found.mentions == {g: sum(one.mentions[g] for one in found.results) for g in ("female", "male")}
    assert found.setting.groups == ("female", "male") and found.setting.signed
    assert [*re.findall(r"male|female", found.setting.sign)] == ["male", "female"]
    assert found.setting.sign.startswith(DECIDING)


def test_a_query_without_judgements_is_placed_by_agreement_and_says_so(explorer):
    found = explorer.reformulate("women nursing school")
    assert found.proxy and found.effectiveness == AGREEMENT and "nDCG@10" not in found.original.values
    assert found.original.values[AGREEMENT] == 1.0
    assert "no judgements" in found.signatures[AGREEMENT]
    for one in found.candidates:
        assert 0 <= one.values[AGREEMENT] <= 1 and one.gains[AGREEMENT] == one.values[AGREEMENT] - 1


def test_every_candidate_that_was_made_is_kept_or_counted_by_reason(writing):
    query = JUDGED
    rows = pa.table({"query_id": ["q"], "text": [query]})
    made = writing._writer._stage.run(rows)[0].num_rows - 1
    found = writing.reformulate(query)
    assert len(found.candidates) + sum(found.dropped.values()) == made
    assert all(found.dropped.values())


def test_reformulations_of_several_queries_are_those_of_each_query_alone(explorer, writing):
    judged, typed = (
        list(explorer.searched.known.texts.values())[:5],
        ["nurse pay by age", "zzqqx", "how long is a law degree"],
    )
    queries = [judged[0], *typed, *judged, judged[0].upper(), typed[0]]
    for one in (explorer, writing):
        for query, found in zip(queries, one.reformulate_many(queries), strict=True):
            if query == "zzqqx":
                assert isinstance(found, DataError) and "finds nothing" in str(found)
                continue
            alone = one.reformulate(query)
            # The probabilities may differ in the last digit: a product of matrices depends on the number of rows.
            for a, b in zip(found.candidates, alone.candidates, strict=True):
                assert (a.same, a.natural) == pytest.approx((b.same, b.natural), abs=1e-12)
            without = [replace(one, same=None, natural=None) for one in alone.candidates]
            assert [replace(one, same=None, natural=None) for one in found.candidates] == without
            assert replace(found, candidates=()) == replace(alone, candidates=())


def test_comparing_a_query_with_itself_moves_nothing(explorer):
    found = explorer.compare("how to lower blood pressure", "how to lower blood pressure", 7)
    assert found.agreement == 1 and found.outcome == "same-same"
    assert [(one.old, one.new) for one in found.moves] == [(rank, rank) for rank in range(1, 8)]
    assert set(found.gains.values()) <= {0.0, None}


def test_moves_tell_where_each_shown_document_stands_in_both_lists(explorer):
    found = explorer.compare(JUDGED, "how to become a lawyer", 4)
    old = [one.doc_id for one in found.old.results]
    new = [one.doc_id for one in found.new.results]
    assert [one.doc_id for one in found.moves if one.old and one.old <= 4] == old
    assert sorted(one.doc_id for one in found.moves if one.new and one.new <= 4) == sorted(new)
    assert found.new.judged and found.new.query_id == "care-q02"
    assert found.outcome.startswith("worse")


def test_a_query_without_a_known_word_finds_nothing_and_has_no_candidates(explorer):
    found = explorer.search("zzqqx")
    assert found.results == () and found.values == () and found.found == 0
    with pytest.raises(DataError, match="finds nothing"):
        explorer.reformulate("zzqqx")
    compared = explorer.compare("zzqqx", "nurse")
    assert compared.outcome is None and compared.old.results == ()


def test_the_first_query_of_an_explorer_may_find_nothing(explorer):
    new = Explorer(explorer.searched, explorer.counting)
    with pytest.raises(DataError, match="finds nothing"):
        new.reformulate("zzqqx")
    assert [type(one) for one in new.reformulate_many(["zzqqx", "qqzzx"])] == [DataError, DataError]


def test_a_comparison_with_a_query_that_finds_nothing_has_no_outcome(explorer):
    found = explorer.compare("nurse", "zzqqx")
    assert found.new.results == () and found.outcome is None and found.agreement == 0
    assert all(one.new is None for one in found.moves)


def test_texts_are_found_by_id_and_unknown_ones_are_left_out(explorer):
    found = explorer.texts_by_id(["care-01", "no-such", "care-01"])
    assert list(found) == ["care-01"] and found["care-01"].startswith("When comparing")


def test_results_are_shown_by_a_measure_that_counts_words(explorer):
    with pytest.raises(ConfigError) as error:
        Explorer(explorer.searched, replace(explorer.counting, lean="RR@10"))
    assert (error.value.code, error.value.values) == ("counts-no-words", {"measure": "RR@10"})


@pytest.mark.parametrize(
    ("query", "status", "rules"),
    [
        (JUDGED, "none", {}),
        ("best running shoes for women", "added", {}),
        ("prostate cancer screening for men", "warranted", {"biology": ("prostate",)}),
        ("was Florence Nightingale a nurse and Diana her friend", "warranted", {"named person": ("Diana",)}),
        ("burger king menu", "warranted", {"fixed name": ("king",)}),
        ("henry viii and his wives", "warranted", {"named person": ("henry",)}),
        ("ovarian cyst", "warranted", {"biology": ("ovarian",)}),
    ],
)
def test_a_reason_for_gender_in_a_query_is_found_by_a_named_rule(query, status, rules):
    found = WarrantRules().look(query)
    assert found.status == status
    assert {one.rule: one.words for one in found.reasons} == rules


def test_a_store_of_the_demo_is_known_as_the_demo(store):
    found = open_sources(Sources(store=store.root))
    assert found.demo and found.explorer.search(JUDGED).judged
    assert list(found.runs) == ["demo:bm25.run", "demo:minilm.run"]


def test_an_index_alone_can_be_asked_and_knows_no_judgements(store):
    index = next(store.root.glob("index-bm25-*"))
    found = open_sources(Sources(index=index))
    assert not found.demo and not found.explorer.search(JUDGED).judged
    assert found.explorer.reformulate(JUDGED).proxy


def test_a_collection_of_ones_own_is_indexed_and_judged(tmp_path):
    (tmp_path / "docs.tsv").write_text("d1\tshe is a nurse\nd2\the is a nurse\n")
    (tmp_path / "queries.tsv").write_text("q1\tnurse\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d2 1\n")
    (tmp_path / "store").mkdir()
    found = open_sources(Sources(store=tmp_path / "store", collection=str(tmp_path))).explorer.search("nurse")
    assert {one.doc_id: one.relevance for one in found.results} == {"d1": None, "d2": 1}
    assert found.mentions == {"female": 1, "male": 1}


def test_a_store_without_an_index_says_what_to_do(tmp_path):
    found = open_sources(Sources(store=tmp_path))
    assert found.explorer is None and found.reason == NO_INDEX
    with pytest.raises(DataError, match="no such folder"):
        open_sources(Sources(store=tmp_path / "nowhere"))
