"""The files of the Refairmulate paper: names, keys, columns and what stands in them."""

import csv
import io

import pytest
from toy_release import facts, frame, row

from askew.pairs.dataset.facts import key_of, read_facts
from askew.pairs.dataset.layouts import entries, group_lines, header

FACTS = read_facts(facts())


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("RR@10", "RR10"),
        ("AP@10", "AP10"),
        ("ARaB(tf)@10", "ARAB-tf10"),
        ("ARaB('tc')@20", "ARAB-tc20"),
        ("ARaB(kind=bool)@10", "ARAB-bool10"),
        ("LexiconShare@10", "LIWC10"),
        ("NFaiRR@20", "NFaiRR20"),
        ("nDCG@10", "nDCG10"),
        ("ARaB(tf,sign=abs)@10", "ARAB-tf-sign=abs10"),
        ("my own score", "my own score"),
    ],
)
def test_a_measure_has_the_key_of_the_papers(name, key):
    assert key_of(name) == key


def test_the_published_measures_come_first_and_in_the_published_order():
    names = ["nDCG@10", "ARaB(bool)@10", "ARaB(tf)@10", "ARaB(tc)@10", "LexiconShare@10", "AP@10", "RR@10"]
    stated = {name: {"signature": name, "direction": "up"} for name in names}
    found = header(read_facts({**facts(selection={}), "measures": stated}))
    assert found[:9] == ["Query ID", "Query Text", "Label", "Orig_RR10", "Orig_AP10", "Orig_LIWC10", "Orig_ARAB-tc10",
                         "Orig_ARAB-tf10", "Orig_ARAB-bool10"]  # fmt: skip
    assert found[9] == "Orig_nDCG10"
    assert found[10] == "New_RR10"
    assert found[-1] == "Original Query Text"


def pair(query="q", variant="v", **flags):
    return {**row(query, variant, (0.5, 0.5, 1.0), (1.0, 0.25, 0.5)), **flags}


def test_an_entry_has_the_published_shape():
    found = entries(frame([pair(effective=True, fair=True)]), FACTS, "effective")
    assert found == {
        "1": {},
        "2": {},
        "3": {},
        "4": {
            "q": {
                "query_text": "tell me of topic q way v",
                "metrics": {
                    "Orig_RR10": 0.5, "Orig_LIWC10": 1.0, "Orig_ARAB-tf10": 0.5,
                    "New_RR10": 1.0, "New_LIWC10": 0.5, "New_ARAB-tf10": 0.25, "Label": 0, "Group": 4,
                },
                "score": 0.75,
                "org_query_text": "what about topic q",
            }
        },
    }  # fmt: skip


def test_fair_keeps_both_pairs_of_a_query():
    rows = [pair(variant="a", effective=True, fair=True), pair(variant="b", optimal=True, fair=True)]
    (entry,) = entries(frame(rows), FACTS, "fair")["4"].values()
    assert entry["query_text"].endswith("way b")
    assert [other["query_text"][-1] for other in entry["also"]] == ["a"]


def test_texts_with_tabs_quotes_and_line_breaks_read_back_from_the_tsv():
    nasty = 'a\tb "c"\nd\re'
    table = frame([{**pair(), "text": nasty}])
    rows = list(csv.reader(io.StringIO(group_lines(table, FACTS, 4), newline=""), delimiter="\t"))
    assert [row[1] for row in rows] == [nasty]
    assert group_lines(table, FACTS, 1) == ""


def test_a_value_that_was_not_measured_is_null_and_empty_and_not_zero():
    missing = {"new_LexiconShare_10": None, "gain_LexiconShare_10": None, "effective": True, "fair": True}
    table = frame([{**pair(), **missing}])
    assert entries(table, FACTS, "fair")["4"]["q"]["metrics"]["New_LIWC10"] is None
    fields = group_lines(table, FACTS, 4).splitlines()[0].split("\t")
    assert fields[header(FACTS).index("New_LIWC10")] == ""
