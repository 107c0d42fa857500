"""A gate cannot pass by mistake: conditions that cannot hold are refused, and a baseline has finite numbers."""

import json
from dataclasses import replace

import pytest

import askew
from askew.core.errors import ConfigError, DataError
from askew.measures.catalogue import Catalogue
from askew.study.audit.gate import check_conditions, outcomes
from askew.study.audit.report import read_audit
from askew.study.gate import OF_AUDIT, read_conditions
from search_server import ToyEngine

TOY = ToyEngine({"d1": "a nurse helps him , his patients and the man", "d2": "a nurse works in a ward"})
QUERIES = {f"q{number}": f"what does a nurse do {number}" for number in range(12)}


def find(query, k):
    return TOY.search(query, k)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("audit") / "out"
    askew.audit(find, QUERIES, measures="ARaB(tf)@10 FaiRR@10",
                settings=askew.AuditSettings(methods=("reduce",), worst=1, out=out))  # fmt: skip
    return out


@pytest.fixture
def changed(folder, tmp_path):
    def change(edit):
        facts = json.loads((folder / "audit.json").read_text())
        edit(facts)
        (tmp_path / "last.json").write_text(json.dumps(facts))
        return tmp_path / "last.json"

    return change


def checked(text, baseline=None):
    asked = Catalogue().complete(["ARaB(tf)@10", "ARaB(tf,sign=abs)@10", "FaiRR@10"])
    check_conditions(read_conditions(text, OF_AUDIT), asked, baseline, ["q1"])


@pytest.mark.parametrize(
    "text",
    ["ARaB(tf)@10 < -0.2", "ARaB(tf)@10 < 0.2", "ARaB(tf)@10 > -0.2", "FaiRR@10 < 0", "FaiRR@10 < -1",
     "FaiRR@10 > 4.6", "FaiRR@10 > 9", "ARaB(tf,sign=abs)@10 < 0", "FaiRR@10 < -100%", "FaiRR@10 < 1e999"],
)  # fmt: skip
def test_a_condition_that_can_never_hold_or_reads_otherwise_than_written_is_refused(text, folder):
    with pytest.raises(ConfigError):
        checked(text, replace(read_audit(folder), scores={}))


@pytest.mark.parametrize("text", ["ARaB(tf)@10 > 0.2", "ARaB(tf,sign=abs)@10 < 9", "FaiRR@10 < 0.8", "FaiRR@10 > 0"])
def test_a_condition_that_can_hold_is_accepted(text):
    checked(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
@pytest.mark.parametrize("place", ["mean", "query"])
def test_a_baseline_with_a_number_that_is_not_finite_is_an_error(number, place, changed):
    def edit(facts):
        if place == "mean":
            facts["measures"]["ARaB(tf)@10"]["mean"] = 424242.5
        else:
            facts["per_query"]["q1"]["ARaB(tf)@10"] = 424242.5

    path = changed(edit)
    path.write_text(path.read_text().replace("424242.5", number))
    with pytest.raises(DataError):
        askew.audit(find, QUERIES, measures="ARaB(tf)@10 FaiRR@10", baseline=path, fail_if="ARaB(tf)@10 > +10%")


def test_queries_that_are_all_worse_by_the_same_amount_fail(changed):
    def edit(facts):
        for values in facts["per_query"].values():
            values["ARaB(tf)@10"] /= 2

    light = askew.AuditSettings(methods=("reduce",), worst=1)
    done = askew.audit(find, QUERIES, measures="ARaB(tf)@10 FaiRR@10", baseline=changed(edit),
                       fail_if=["ARaB(tf)@10 worse", "FaiRR@10 worse", "FaiRR@10 < 0.2"], settings=light)  # fmt: skip
    assert len(done.failures) == 1 and "ARaB(tf)@10" in done.failures[0]
    assert len(done.passed) == 2
    value = done["FaiRR@10"].mean
    assert f"{value:.4f}" in done.passed[1]
    assert outcomes([], None, None) == ([], [])
