"""Documents of a run in another order, in memory."""

import polars as pl
import pytest

from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups
from askew.data.collection import demo_files
from askew.search.rerank import RerankSettings, reorder, rerank

DOCS = {"a": "he said old", "b": "his old dog", "c": "she was young", "d": "her young cat"}
RUN = {"q1": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}, "q2": {"c": 2.0, "a": 1.0}}


def order(lines, query):
    return lines.filter(pl.col("query_id") == query)["doc_id"].to_list()


def test_documents_are_reordered_in_memory_with_falling_scores_and_ranks_from_one():
    lines = reorder(RUN, DOCS)
    assert order(lines, "q1") == ["a", "c", "b", "d"]
    assert order(lines, "q2") == ["c", "a"]
    assert lines["rank"].to_list() == [1, 2, 3, 4, 1, 2]
    assert lines["score"].to_list() == [4.0, 3.0, 2.0, 1.0, 2.0, 1.0]


def test_documents_are_reordered_by_the_groups_that_are_given():
    docs = {"a": "old men", "b": "old women", "c": "young men", "d": "a young dog"}
    age = Groups({"old": ["old"], "young": ["young"]}, ["old", "young"])
    assert order(reorder(RUN, docs, age), "q1") == ["a", "c", "b", "d"]
    assert order(reorder(RUN, docs, age, "neutral:0,old:0,young:1"), "q1")[0] == "c"
    with pytest.raises(ConfigError) as error:
        reorder(RUN, docs, age, "neutral:0,male:0.5,female:0.5")
    assert error.value.code == "bad-shares"


def test_a_term_of_two_groups_counts_as_the_groups_say():
    docs = {**DOCS, "a": "both", "b": "nothing", "c": "nothing", "d": "nothing"}
    words = {"x": ["both"], "y": ["both", "other"]}
    for overlap, first in (("all", "b"), ("first", "a")):
        own = Groups(words, ["x", "y"], overlap=overlap)
        # All places go to documents that lean toward x, if there are any, and then to neutral ones.
        assert order(reorder({"q": {"b": 2.0, "a": 1.0}}, docs, own, "neutral:0,x:1,y:0"), "q")[0] == first


def test_the_order_in_memory_is_that_of_the_run_which_the_command_writes(tmp_path):
    files = demo_files()
    rerank(files.runs[0], files.docs, tmp_path / "fair.run", settings=RerankSettings(method="detconstsort", depth=1000))
    written = [line.split() for line in (tmp_path / "fair.run").read_text().splitlines()]
    lines = reorder(files.runs[0], files.docs)
    assert [(line[0], line[2], int(line[3])) for line in written] == lines.select("query_id", "doc_id", "rank").rows()


def test_a_ranked_document_without_a_text_is_refused():
    with pytest.raises(DataError) as error:
        reorder(RUN, {key: text for key, text in DOCS.items() if key != "b"})
    assert (error.value.code, error.value.values) == ("no-text", {"missing": 1, "documents": 4})
