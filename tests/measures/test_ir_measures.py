"""Measures of lean for ir_measures that hold their documents and groups."""

import math

import ir_measures
import pytest

import askew
from askew.core.errors import ConfigError, DataError
from askew.irm import ARaB as irm_ARaB
from askew.irm import measures

DOCS = {"a": "he said he old", "b": "she old", "c": "x young"}
RUN = {"q": {"a": 2.0, "b": 1.0}, "r": {"c": 1.0}, "unjudged": {"a": 1.0}}
QRELS = {"q": {"b": 1}, "r": {"c": 1}}
AGE = askew.Groups({"old": ["old"], "young": ["young"]}, ["old", "young"])


def values(requested, qrels=QRELS, run=RUN):
    return {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(requested, qrels, run)}


def test_bound_measures_have_the_values_of_askew_for_each_judged_query():
    requested = measures(["ARaB(tc)@10", askew.NFaiRR @ 10], DOCS)
    own = askew.measure({"r": {q: RUN[q] for q in QRELS}}, DOCS, "ARaB(tc)@10 NFaiRR@10").per_query()
    found = values([*requested, ir_measures.RR @ 10])
    for text in ("ARaB(tc)@10", "NFaiRR@10"):
        assert [found[text, q] for q in own["query_id"]] == own[text].to_list()
    assert {q for _, q in found} == {"q", "r"} and found["RR@10", "q"] == 0.5


def test_one_measure_may_be_requested_for_several_groups_under_several_names():
    gender = measures({"gender": "RaB(tc)@1"}, DOCS)
    age = measures({"age": askew.RaB("tc") @ 1}, DOCS, AGE)
    found = values([*gender, *age])
    assert (found["gender", "q"], found["age", "q"], found["age", "r"]) == (2.0, 1.0, -1.0)


def test_two_measures_of_one_name_are_refused():
    with pytest.raises(ConfigError, match=r"2 measures are called 'RaB\(tc\)@1'"):
        values([*measures("RaB(tc)@1", DOCS), *measures("RaB(tc)@1", DOCS, AGE)])


def test_a_query_without_a_value_is_nan_or_what_the_caller_says():
    qrels = {**QRELS, "unanswered": {"a": 1}}
    with pytest.warns(UserWarning, match="1 of 3"):
        found = ir_measures.calc(measures("ARaB(tc)@10", DOCS), qrels, RUN)
    assert sum(math.isnan(one.value) for one in found.per_query) == 1
    (mean,) = found.aggregated.values()
    assert not math.isnan(mean)
    assert values(measures("ARaB(tc)@10", DOCS, undefined=0.0), qrels)["ARaB(tc)@10", "unanswered"] == 0.0
    assert values(measures("ARaB(tc)@10", DOCS, undefined=0.0), qrels, {})["ARaB(tc)@10", "q"] == 0.0


def test_settings_are_those_of_measure():
    run = {"q": {"a": 2.0, "gone": 1.0}}
    with pytest.raises(DataError, match="gone"):
        values(measures("ARaB(tc)@10", DOCS), {"q": {"a": 1}}, run)
    assert values(measures("RaB(tc)@2", DOCS, missing="zero"), {"q": {"a": 1}}, run) == {("RaB(tc)@2", "q"): 1.0}


def test_a_measure_that_is_wrong_is_refused_when_it_is_made():
    with pytest.raises(ConfigError, match="from ir_measures"):
        measures(["nDCG@10"], DOCS)
    with pytest.raises(ConfigError, match="unknown measure"):
        measures(["AraB@10"], DOCS)
    with pytest.raises(ConfigError, match="cutoff"):
        _ = measures("ARaB@10", DOCS)[0] @ 5


def test_measures_of_ir_measures_are_understood_too():
    (bound,) = measures([irm_ARaB(kind="tc") @ 10], DOCS)
    assert values([bound])[str(bound), "q"] == values(measures("ARaB(tc)@10", DOCS))["ARaB(tc)@10", "q"]


def test_values_come_in_the_order_in_which_the_measures_were_made():
    # ir_measures passes measures on as a set, whose order differs from one process to the next.
    texts = [f"{name}@{cutoff}" for cutoff in (3, 1, 2) for name in ("RaB(tc)", "ARaB(tf)", "NFaiRR")]
    requested = [*measures(texts, DOCS), *measures({"age": "ARaB(tf)@10"}, DOCS, AGE)]
    found = [str(one.measure) for one in ir_measures.iter_calc(requested[::-1], QRELS, RUN)]
    assert list(dict.fromkeys(found)) == [*texts, "age"]


def test_a_name_stands_for_one_measure():
    with pytest.raises(ConfigError) as caught:
        measures({"both": "RaB(tc)@1 ARaB(tf)@10"}, DOCS)
    assert (caught.value.code, caught.value.values) == ("several", {"name": "both"})
