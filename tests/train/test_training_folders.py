"""The folder of a training: what is in it already is never written over, and it says which queries were held out."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import StoreError
from askew.train.card import Card, claim, write_card

WHO = {"data": "1"}


def card(identity):
    return Card("A model", "It tells.", "askew train", "base", (), 7, {}, "cpu", {}, extra={"identity": identity})


@pytest.mark.parametrize("name", ["new", ""])
def test_a_new_or_empty_folder_is_taken_and_a_stopped_training_finds_it_again(tmp_path, name):
    assert claim(tmp_path / name, WHO) is None
    (tmp_path / name / "model.safetensors").write_text("half a model")
    assert claim(tmp_path / name, WHO) is None


@pytest.mark.parametrize("name", ["README.md", "checkpoints"])
def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path, name):
    mine = tmp_path / name
    mine.mkdir() if name == "checkpoints" else mine.write_text("mine")
    with pytest.raises(StoreError, match="an empty folder") as told:
        claim(tmp_path, WHO)
    assert name in str(told.value) and [one.name for one in tmp_path.iterdir()] == [name]


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(StoreError, match="found a file"):
        claim(tmp_path / "out", WHO)


def test_the_same_finished_training_is_read_and_another_is_refused(tmp_path):
    write_card(tmp_path, card(WHO))
    assert claim(tmp_path, WHO)["extra"] == {"identity": WHO}
    with pytest.raises(StoreError, match="another training"):
        claim(tmp_path, {"data": "2"})


@pytest.mark.parametrize("text", ["{", json.dumps([1])])
def test_facts_that_cannot_be_read_are_told(tmp_path, text):
    (tmp_path / "measured.json").write_text(text)
    with pytest.raises(StoreError, match=r"measured.json: "):
        claim(tmp_path, WHO)


def test_means_over_questions_do_not_count_a_question_for_each_of_its_passages():
    from askew.train.generator import by_question

    assert by_question(np.array([1.0, 3.0, 5.0]), ["Who is she?", "who is she", "cars"]).tolist() == [5.0, 2.0]


@given(st.text(max_size=20))
def test_what_a_ranker_holds_out_a_selector_and_a_rewriter_hold_out_too(text):
    from askew.core.tables import part_of
    from askew.core.text import SALT, normal
    from askew.train.ranker import _part
    from askew.train.selector import SHARES

    if _part(text) != "train":
        assert part_of(normal(text), SHARES, SALT) == "test"
