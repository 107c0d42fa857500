"""Queries cut out of passages."""

import pytest

from askew.core.errors import ConfigError
from askew.core.protocols import QueryBatch
from askew.rewrite.extract import ExtractReformulator
from askew.testing.contracts import check_reformulator, toy_asked


def test_it_keeps_the_contract():
    found = check_reformulator(ExtractReformulator())
    assert found.rejected["nothing found"] == 1  # the empty query has no passage


def test_every_word_of_a_candidate_stands_in_its_passage_or_in_the_query():
    asked = toy_asked()
    found = ExtractReformulator().reformulate(asked)
    for row, text, doc_id in zip(found.rows, found.texts, found.doc_ids, strict=True):
        (passage,) = [p for p in asked.passages[row] if p.doc_id == doc_id]
        source = {word for word, _ in asked.statistics.split(f"{passage.text} {asked.texts[row]}")}
        assert set(text.split()) <= source


def test_the_best_sentence_is_cut_down_to_its_weighty_words_in_their_order():
    asked = toy_asked()
    found = ExtractReformulator(words=4).reformulate(asked)
    first = found.texts[found.rows.index(1)]
    assert first == "railway station opened north"


def test_a_question_keeps_its_opening():
    found = ExtractReformulator().reformulate(toy_asked())
    questions = [text for row, text in zip(found.rows, found.texts, strict=True) if row == 3]
    assert any(text.startswith("who was ") for text in questions)


def test_no_two_candidates_of_a_query_have_the_same_words():
    found = ExtractReformulator().reformulate(toy_asked())
    for row in set(found.rows):
        words = [frozenset(t.split()) for at, t in zip(found.rows, found.texts, strict=True) if at == row]
        assert len(words) == len(set(words))


def test_no_more_candidates_than_asked_for_and_the_same_ones_first():
    asked = toy_asked()
    few, many = ExtractReformulator(count=2).reformulate(asked), ExtractReformulator(count=20).reformulate(asked)
    for row in set(many.rows):
        ours = [t for at, t in zip(few.rows, few.texts, strict=True) if at == row]
        assert len(ours) <= 2
        assert ours == [t for at, t in zip(many.rows, many.texts, strict=True) if at == row][:2]


def test_the_candidates_of_a_query_do_not_depend_on_the_others():
    asked = toy_asked()
    fresh = ExtractReformulator().reformulate(asked)
    single = QueryBatch(asked.query_ids[1:2], asked.texts[1:2], asked.passages[1:2], asked.statistics)
    alone = [text for row, text in zip(fresh.rows, fresh.texts, strict=True) if row == 1]
    assert ExtractReformulator().reformulate(single).texts == alone


def test_without_passages_it_says_what_it_needs():
    with pytest.raises(ConfigError, match="give the collection"):
        ExtractReformulator().reformulate(QueryBatch(("q",), ("text",)))
