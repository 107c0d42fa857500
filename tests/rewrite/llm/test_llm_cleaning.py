"""What counts as a query in an answer, and why the rest does not."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.rewrite.llm_answers import Sieve
from askew.rewrite.llm_client import Completion
from askew.rewrite.prompts import Prompt

QUERIES = Prompt("p", "", "{query}", answer="queries", max_chars=60)
KEYWORDS = Prompt("p", "", "{query}", answer="keywords", query_times=1, max_chars=60)
PASSAGE = Prompt("p", "", "{query}", answer="passage", query_times=1, max_chars=60)
ALONE = Prompt("p", "", "{query}", answer="passage", query_times=0, max_chars=60)


def taken(text, prompt=QUERIES, query="old words", count=5, **more):
    """The candidates and the rejects of one answer."""
    sieve = Sieve(query, prompt, count)
    return sieve.take(Completion(text, **more)), dict(sieve.rejected)


TWO = ["first query", "second query"]


@pytest.mark.parametrize(
    ("text", "rejected"),
    [
        ('{"queries": ["first query", "second query"]}', {}),
        ('["first query", "second query"]', {}),
        ('```json\n{"queries": ["first query", "second query"]}\n```', {}),
        ('```\n["first query", "second query"]', {}),
        ('Here you go:\n```json\n["first query", "second query"]\n```\nEnjoy!', {"preamble line": 1}),
        ('Sure! {"queries": ["first query", "second query"]} Anything else?', {"preamble line": 1}),
        ('{"queries": [{"query": "first query"}, {"text": "second query"}]}', {}),
        ('{"results": ["first query", "second query"]}', {}),
        ('{"1": "first query", "2": "second query"}', {}),
        ('{"queries": ["first query", 7, null, "second query"]}', {"not a text": 2}),
        ('{"queries": ["1. first query", "2. second query"]}', {}),
        ("1. first query\n2. second query", {}),
        ("1) first query\n2) second query", {}),
        ("(1) \"first query\"\n(2) 'second query'", {}),
        ("- first query\n- second query", {}),
        ("* **first query**\n* “second query”", {}),
        ("• first query\n\n• «second query»", {}),
        ("Query 1: first query\nQuery 2: second query", {}),
        ("first query\nsecond query\n", {}),
        ("first query\r\nsecond query", {}),
        ("Here is a list of queries:\n1. first query\n2. second query", {"preamble line": 1}),
        ("Here is a list of search queries\nfirst query\nsecond query", {"preamble line": 1}),
        ("Here are 2 alternatives:\n- first query\n- second query\nI hope this helps!", {"preamble line": 2}),
        ("Sure, here they are:\nfirst query\nsecond query\nLet me know if you need more.", {"preamble line": 2}),
        ("<think>they want\n1. nothing\n</think>\n1. first query\n2. second query", {}),
        ("they want\n1. nothing\n</think>\n1. first query\n2. second query", {}),
        ('{"queries": ["first query", "second query", "thi', {"broken JSON": 1}),
        ('{"queries": ["first query", "second query"', {"broken JSON": 1}),
        ('{"queries": ["Here is a list of queries:", "first query", "second query"]}', {"preamble line": 1}),
        ('{"queries": ["first query", "first  QUERY", "second query"]}', {"duplicate": 1}),
        ('{"queries": ["Old  Words", "first query", "second query"]}', {"same as the original": 1}),
        ('{"queries": ["first query", "two\\nlines", "second query"]}', {"not one line": 1}),
        ('{"queries": ["first query", "", "  ", "second query"]}', {"empty text": 2}),
        ('{"queries": ["...", "first query", "second query"]}', {"no words": 1}),
        ('{"queries": ["first query", "' + "x" * 61 + '", "second query"]}', {"too long": 1}),
        ('{"queries": ["\\u0000first\\u0007 query\\u202e", "second\\tquery"]}', {}),
    ],
)  # fmt: skip
def test_two_queries_are_found_in_every_form_of_list(text, rejected):
    assert taken(text) == (TWO, rejected)


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("", {}, "empty answer"),
        (" \n\t ", {}, "empty answer"),
        ("<think>so</think>", {}, "empty answer"),
        ("<think>and so on, without end", {}, "cut off"),
        ("I'm sorry, but I can't help with that.", {}, "refused"),
        ("I cannot assist with this request.", {}, "refused"),
        ("As an AI language model, I do not search.", {}, "refused"),
        ("whatever", {"refused": True}, "refused"),
        ("", {"refused": True}, "refused"),
        ('{"queries": ["I’m sorry, I cannot comply"]}', {}, "refused"),
        ("{'queries': ['a', 'b']}", {}, "broken JSON"),
        ("[" * 100_000, {}, "broken JSON"),
        ('{"queries": ["half a', {"finish": "length"}, "cut off"),
        ("half a quer", {"finish": "length"}, "cut off"),
        ('{"queries": []}', {}, "nothing found"),
        ("Here is a list of queries:", {}, "preamble line"),
        ("old words", {}, "same as the original"),
    ],
)
def test_an_answer_without_a_query_is_counted_by_its_reason(text, more, reason):
    assert taken(text, **more) == ([], {reason: 1})


@pytest.mark.parametrize(
    "query",
    [
        "i can't help falling in love lyrics",
        "sorry i can't stay tonight song",
        "as an ai engineer what do i earn",
        "ok, boomer meaning",
        "let me know lyrics",
        "feel free chords",
        "here comes the sun",
        "1984 summary",
        "9.11 attacks",
        'meaning of "to be" and "not to be"',
        "sort a list [1, 2] in python",
        "c++ vs c#",
        "می‌خواهم",
        "नमस्ते क्‍ष",
    ],
)
def test_a_query_that_looks_like_talk_is_kept(query):
    assert taken(json.dumps({"queries": [query]})) == ([query], {})
    assert taken(f"- {query}\n- other words")[0] == [query, "other words"]
    assert taken(query) == ([query], {})


def test_the_last_line_of_an_unfinished_list_is_not_taken():
    assert taken("1. first query\n2. second query\n3. thi", finish="length") == (TWO, {"cut off": 1})
    assert taken('{"queries": ["first query", "second query", "thi', finish="length") == (TWO, {"cut off": 1})


def test_no_more_are_taken_than_were_asked_for_and_the_rest_is_counted():
    assert taken('["a1", "a2", "a3", "a4"]', count=3) == (["a1", "a2", "a3"], {"more than asked": 1})


def test_a_second_answer_does_not_repeat_the_first():
    sieve = Sieve("old words", QUERIES, 5)
    assert sieve.take(Completion('["a", "b"]')) == ["a", "b"]
    assert sieve.take(Completion('["B", "c"]')) == ["c"]
    assert sieve.rejected == {"duplicate": 1}


def test_keywords_are_put_behind_the_query():
    assert taken('{"queries": ["rail", "hub", "Rail"]}', KEYWORDS) == (["old words rail hub"], {"duplicate": 1})
    assert taken("rail, train; hub", KEYWORDS) == (["old words rail train hub"], {})
    assert taken("Keywords: rail, hub", KEYWORDS) == (["old words rail hub"], {})
    assert taken('["a", "b", "c"]', KEYWORDS, count=2) == (["old words a b"], {"more than asked": 1})
    assert taken('{"queries": []}', KEYWORDS) == ([], {"nothing found": 1})


def test_a_passage_is_put_behind_the_query_or_stands_alone():
    assert taken("Trains stop\nhere.", PASSAGE) == (["old words Trains stop here."], {})
    assert taken("Trains stop\nhere.", ALONE) == (["Trains stop here."], {})
    assert taken("Here is a passage:\n\nTrains stop.", ALONE) == (["Trains stop."], {})
    assert taken("```\nTrains stop.\n```", ALONE) == (["Trains stop."], {})
    assert taken('Passage: "Trains stop."', ALONE) == (["Trains stop."], {})
    assert taken('{"passage": "Trains stop."}', ALONE) == (["Trains stop."], {})


def test_a_passage_can_repeat_the_query_before_it_as_query2doc_does_for_bm25():
    five = Prompt("p", "", "{query}", answer="passage", query_times=3)
    assert taken("Trains stop.", five) == (["old words old words old words Trains stop."], {})


def test_a_passage_is_clipped_between_words():
    text = "word " * 30
    (passage,), rejected = taken(text, ALONE)
    assert passage == " ".join(["word"] * 12)
    assert len(passage) <= 60 and rejected == {}
    assert taken("x" * 100, ALONE)[0] == ["x" * 60]


@pytest.mark.parametrize(("text", "reason"), [("Here is the passage:", "preamble line"), ("--", "no words")])
def test_a_passage_without_words_of_its_own_is_counted(text, reason):
    assert taken(text, ALONE) == ([], {reason: 1})


@pytest.mark.parametrize("prompt", [QUERIES, KEYWORDS, PASSAGE, ALONE])
@given(text=st.text() | st.text(alphabet='{}[]",:\\n\n\r\t\0 ab1.-*`'), finish=st.sampled_from(["stop", "length"]))
def test_every_candidate_of_any_answer_is_one_stripped_line_of_bounded_length(prompt, text, finish):
    sieve = Sieve("old words", prompt, 3)
    found = sieve.take(Completion(text, finish))
    assert len(found) <= 3
    assert len(found) + sum(sieve.rejected.values()) > 0, "nothing is dropped in silence"
    for candidate in found:
        assert candidate == candidate.strip() != ""
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in candidate)
        assert len(candidate) <= 60 + len("old words ")


@given(st.lists(st.from_regex(r"[a-z]{3,8}( [a-z]{3,8}){1,3}", fullmatch=True), min_size=1, max_size=6, unique=True))
def test_a_list_says_the_same_as_json_as_numbers_and_as_bullets(queries):
    forms = [
        json.dumps({"queries": queries}),
        "\n".join(f"{i}. {query}" for i, query in enumerate(queries, 1)),
        "\n".join(f'- "{query}"' for query in queries),
    ]
    results = [taken(form, count=6) for form in forms]
    assert results[0] == results[1] == results[2]
    assert len(results[0][0]) + sum(Counter(results[0][1]).values()) == len(queries)
