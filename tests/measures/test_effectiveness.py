"""Effectiveness: the columnar path is trec_eval's answer, ties and cut-offs included."""

import subprocess
from math import log2

import ir_measures
import numpy as np
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError, DataError
from askew.measures.effectiveness import quiet_programs

DOC_IDS = ["a", "b", "c", "d1", "d10", "d2", "é", "Z", "~"]


def frame(qrels):
    rows = [(q, d, r) for q, docs in qrels.items() for d, r in docs.items()]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")


def values(run, qrels, *measures, **options):
    report = askew.measure({"r": run}, qrels=frame(qrels), measures=list(measures), **options)
    return report.to_dict(per_query=True)["runs"][0]["per_query"]


scores = st.sampled_from([1.0, 1.0 + 1e-9, 1.5, 2.0, -3.0, 1e30, 0.1, 0.30000000000000004, 0.3])
rankings = st.dictionaries(st.sampled_from(DOC_IDS), scores, min_size=1)
judgements = st.dictionaries(st.sampled_from(DOC_IDS), st.integers(-1, 3), min_size=1)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from("qrs"), rankings, min_size=1), judgements, st.integers(1, 10))
def test_rr_and_ap_are_those_of_trec_eval_with_its_ties_and_cutoffs(run, judged, cutoff):
    qrels = dict.fromkeys(run, judged)
    peer = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank", "map", "map_cut_3", "map_cut_5"}).evaluate(run)
    mine = values(run, qrels, "RR", "AP", "AP@3", "AP@5", f"RR@{cutoff}", no_relevant="zero")
    for query in run:
        full = peer[query]["recip_rank"]
        assert mine[query]["RR"] == full
        assert mine[query][f"RR@{cutoff}"] == (full if full >= 1 / cutoff else 0.0)
        assert mine[query]["AP"] == pytest.approx(peer[query]["map"], abs=1e-15)
        assert mine[query]["AP@3"] == pytest.approx(peer[query]["map_cut_3"], abs=1e-15)
        assert mine[query]["AP@5"] == pytest.approx(peer[query]["map_cut_5"], abs=1e-15)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from("qrs"), rankings, min_size=1), judgements)
def test_measures_of_ir_measures_see_the_same_ranking(run, judged):
    qrels = dict.fromkeys(run, judged)
    names = {"ndcg_cut_5", "P_5", "recall_5", "success_1"}
    peer = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    mine = values(run, qrels, "nDCG@5", "P@5", "R@5", "Success@1", "Judged@5", no_relevant="zero")
    for query in run:
        for text, name in (("nDCG@5", "ndcg_cut_5"), ("P@5", "P_5"), ("R@5", "recall_5"), ("Success@1", "success_1")):
            assert mine[query][text] == pytest.approx(peer[query][name], abs=1e-9)


def test_relevance_levels_are_a_parameter():
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 2}}
    got = values(run, qrels, "RR(rel=2)", "RR", "P(rel=2)@1")
    assert got["q"] == {"RR(rel=2)": 0.5, "RR": 1.0, "P(rel=2)@1": 0.0}


def test_file_order_ignores_the_scores():
    got = values({"q": {"a": 1.0, "b": 2.0}}, {"q": {"a": 1}}, "RR(order=file)", "RR", "nDCG(order=file)@1")
    assert got["q"] == {"RR(order=file)": 1.0, "RR": 0.5, "nDCG(order=file)@1": 1.0}


def test_a_query_without_judgements_is_an_error_zero_or_left_out():
    run, qrels = {"q": {"a": 1.0}, "u": {"a": 1.0}}, {"q": {"a": 1}}
    with pytest.raises(DataError, match=r"1 of 2 .* 'u'"):
        values(run, qrels, "RR@10")
    assert values(run, qrels, "RR@10", unjudged="zero")["u"] == {"RR@10": 0.0}
    assert values(run, qrels, "RR@10", "nDCG@10", unjudged="absent")["u"] == {}


def test_judged_queries_that_the_run_lacks_count_as_zero_unless_they_are_left_out():
    run, qrels = {"q": {"a": 1.0}}, {"q": {"a": 1}, "gone": {"a": 1}}
    assert values(run, qrels, "RR@10", "nDCG@10") == {
        "q": {"RR@10": 1.0, "nDCG@10": 1.0}, "gone": {"RR@10": 0.0, "nDCG@10": 0.0}
    }  # fmt: skip
    assert values(run, qrels, "RR@10", unanswered="absent") == {"q": {"RR@10": 1.0}}


def test_a_list_of_no_documents_is_an_unanswered_query():
    run, qrels = {"q": {"a": 1.0}, "u": {"b": 1.0}}, {"q": {"a": 1}, "u": {"a": 1}, "gone": {"c": 0}}
    found = values(run, qrels, "RR@10", "RR(unanswered=absent)@10", "RR(no_relevant=zero)@10")
    assert found["u"] == {"RR@10": 0.0, "RR(unanswered=absent)@10": 0.0, "RR(no_relevant=zero)@10": 0.0}
    assert found["gone"] == {"RR(no_relevant=zero)@10": 0.0}


def test_where_no_query_has_a_relevant_document_the_error_says_so():
    with pytest.raises(DataError, match=r"2 .* no relevant"):
        values({"q": {"a": 1.0}, "r": {"a": 1.0}}, {"q": {"a": 0}, "r": {"b": -1}}, "RR@10")


def test_effectiveness_without_judgements_says_what_to_give():
    with pytest.raises(ConfigError, match="qrels="):
        askew.measure({"r": {"q": {"a": 1.0}}}, measures=["RR@10"])


def test_a_parameter_that_ir_measures_refuses_is_one_clear_error():
    with pytest.raises(ConfigError, match="nDCG"):
        values({"q": {"a": 1.0}}, {"q": {"a": 1}}, "nDCG(dcg='nonsense')@10")


def test_a_whole_number_will_do_where_ir_measures_wants_a_fraction():
    got = values({"q": {"a": 1.0}}, {"q": {"a": 1}}, "SetF(beta=2)", "SetF(beta=2.0)")
    assert got["q"]["SetF(beta=2)"] == got["q"]["SetF(beta=2.0)"] > 0


@pytest.fixture
def gdeval():
    if not ir_measures.providers.registry["gdeval"].is_available():
        pytest.skip("perl is not installed")


GDEVAL = ["ERR@10", "nDCG(dcg='exp-log2')@10"]


@pytest.mark.usefixtures("gdeval")
def test_a_grade_below_zero_is_not_relevant_and_ids_may_have_any_letters():
    run = {"frage ä": {"dé": 4.0, "Ω": 3.0, "文 1": 2.0, "d-4": 1.0}, "q-2": {"dé": 2.0, "Ω": 1.0}}
    qrels = {"frage ä": {"dé": -2, "Ω": 1, "文 1": -1, "d-4": 3, "not ranked": 2}, "q-2": {"dé": -1, "Ω": -2}}
    clipped = {query: {doc: max(0, grade) for doc, grade in docs.items()} for query, docs in qrels.items()}
    got = values(run, qrels, *GDEVAL, no_relevant="zero")
    assert got == values(run, clipped, *GDEVAL, no_relevant="zero")
    # ERR: the grade g stops the user with probability (2^g - 1) / 2^4; here g is 0, 1, 0, 3.
    assert got["frage ä"]["ERR@10"] == pytest.approx((1 / 16) / 2 + (15 / 16) * (7 / 16) / 4, abs=5e-6)
    dcg, ideal = 1 / log2(3) + 7 / log2(5), 7 / log2(2) + 3 / log2(3) + 1 / log2(4)
    assert got["frage ä"]["nDCG(dcg='exp-log2')@10"] == pytest.approx(dcg / ideal, abs=5e-6)
    assert got["q-2"] == dict.fromkeys(GDEVAL, 0.0)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(DOC_IDS), st.integers(-3, 4), min_size=1))
def test_a_grade_below_zero_is_not_relevant_to_any_measure_and_not_judged_for_those_of_pools(judged):
    run = {"q": {doc: -float(i) for i, doc in enumerate(DOC_IDS)}}
    names = ["RR", "AP", "nDCG@5", "P@5", "R@5", "Rprec", "Success@2", "Judged@5", "SetF"]
    clipped = {doc: max(0, grade) for doc, grade in judged.items()}
    zero = {"no_relevant": "zero"}
    assert values(run, {"q": judged}, *names, **zero) == values(run, {"q": clipped}, *names, **zero)
    unjudged = {doc: max(-1, grade) for doc, grade in judged.items()}
    peer = pytrec_eval.RelevanceEvaluator({"q": unjudged}, {"bpref", "infAP"}).evaluate(run)["q"]
    assert values(run, {"q": judged}, "Bpref", "infAP", **zero)["q"] == {"Bpref": peer["bpref"], "infAP": peer["infAP"]}


@pytest.mark.parametrize("measure", ["nDCG@10", "P@5", "Bpref", "infAP", "ERR@10"])
def test_a_query_whose_judged_documents_are_all_junk_has_the_value_zero(measure):
    # Grades that are all below -1 can end the process in trec_eval's code, after a query that had others.
    junk = {f"q{number}": {"a": -2, "b": -3, "c": -2} for number in range(50)}
    run = {query: {"a": 2.0, "b": 1.0} for query in ["first", *junk]}
    got = values(run, {"first": {"a": 2}, **junk}, measure, no_relevant="zero")
    assert [got[query][measure] for query in junk] == [0.0] * len(junk)
    assert got["first"][measure] > 0


@pytest.mark.usefixtures("gdeval")
@pytest.mark.parametrize("measure", GDEVAL)
def test_a_grade_above_those_that_gdeval_knows_is_named_with_its_query(measure):
    qrels = {"q": {"a": 4}, "r é": {"a": 1, "b": -1, "c": 5}}
    run = {query: {"a": 2.0, "b": 1.0} for query in qrels}
    with pytest.raises(DataError, match=r"up to 4,.* 'r é' .* 5\..* nDCG@10"):
        values(run, qrels, measure)
    assert values(run, {**qrels, "r é": {"a": 1, "c": 4}}, measure)["r é"][measure] > 0


@pytest.mark.usefixtures("gdeval")
def test_a_provider_that_takes_only_numbers_for_queries_is_given_numbers():
    got = values({"a query": {"a doc": 2.0, "b": 1.0}}, {"a query": {"b": 1}}, "ERR@10")
    assert 0 < got["a query"]["ERR@10"] < 1


def test_whatever_a_provider_raises_and_says_is_one_clear_error(monkeypatch, capfd):
    def breaks(*_):
        subprocess.run(["sh", "-c", "echo first line >&2; echo second line >&2; exit 3"], check=True)

    monkeypatch.setattr(ir_measures, "iter_calc", breaks)
    with quiet_programs(), pytest.raises(DataError, match=r"nDCG.*: first line$"):
        values({"q": {"a": 1.0}}, {"q": {"a": 1}}, "nDCG@10")
    monkeypatch.setattr(ir_measures, "iter_calc", lambda *_: {}["lost"])
    with quiet_programs(), pytest.raises(DataError, match=r"nDCG.*: 'lost'$"):
        values({"q": {"a": 1.0}}, {"q": {"a": 1}}, "nDCG@10")
    assert capfd.readouterr().err == ""


def test_a_library_call_leaves_the_file_descriptors_of_its_caller_alone(monkeypatch):
    turned = []
    monkeypatch.setattr("os.dup2", lambda *ends: turned.append(ends))
    assert values({"q": {"a": 1.0}}, {"q": {"a": 1}}, "nDCG@10") == {"q": {"nDCG@10": 1.0}}
    assert turned == []


def test_the_order_of_lines_and_of_queries_does_not_matter():
    run = {f"q{i}": {d: float((i * 7 + j * 3) % 5) for j, d in enumerate(DOC_IDS)} for i in range(20)}
    qrels = {q: {"a": 1, "d2": 2} for q in run}
    turned = {q: dict(reversed(docs.items())) for q, docs in reversed(run.items())}
    assert values(run, qrels, "RR@3", "AP@3") == values(turned, qrels, "RR@3", "AP@3")


def test_rankings_are_scored_the_same_in_blocks_of_any_size(monkeypatch):
    run = {f"q{i}": {d: float((i * 7 + j * 3) % 5) for j, d in enumerate(DOC_IDS)} for i in range(50)}
    docs = {d: "he she her"[: 2 + i] for i, d in enumerate(DOC_IDS)}
    qrels = {q: {"a": 1, "d2": 2} for q in run}
    texts = ["RR@3", "AP@3", "ARaB(tf)@5", "NFaiRR@5", "LexiconShare@4"]
    whole = askew.measure({"r": run}, docs, qrels=frame(qrels), measures=texts).runs[0].values
    monkeypatch.setattr("askew.core.ranking._PART", 7)
    parts = askew.measure({"r": run}, docs, qrels=frame(qrels), measures=texts).runs[0].values
    for text in texts:
        np.testing.assert_array_equal(whole[text], parts[text])


def test_askew_inside_ir_measures():
    from askew.irm import ARaB, NFaiRR, use_documents

    docs = {"a": "he said he", "b": "she", "c": "x"}
    run = {"q": {"a": 2.0, "b": 1.0}, "r": {"c": 1.0}}
    qrels = {"q": {"b": 1}, "r": {"c": 1}, "unasked": {"c": 1}}
    use_documents(docs)
    got = ir_measures.calc_aggregate([ir_measures.RR @ 10, ARaB(kind="tc") @ 10, NFaiRR @ 10], qrels, run)
    own = askew.measure({"r": run}, docs, measures=["ARaB(tc)@10", "NFaiRR@10"])
    assert got[ARaB(kind="tc") @ 10] == pytest.approx(own.mean(own.runs[0], own.asked[0]).mean)
    assert got[NFaiRR @ 10] == pytest.approx(own.mean(own.runs[0], own.asked[1]).mean)
    assert got[ir_measures.RR @ 10] == pytest.approx((0.5 + 1 + 0) / 3)
    assert ir_measures.parse_measure("ARaB(kind='tc')@10") == ARaB(kind="tc") @ 10


def test_inside_ir_measures_a_measure_may_name_its_own_documents(tmp_path):
    from askew.irm import ARaB

    path = tmp_path / "docs.tsv"
    path.write_text("a\tshe\n")
    asked = ARaB(kind="tc", docs=str(path)) @ 10
    assert asked.calc_aggregate({"q": {"a": 1}}, {"q": {"a": 1.0}}) == -1.0
