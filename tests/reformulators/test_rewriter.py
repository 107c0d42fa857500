"""The reformulator that uses a trained rewriter: the contract, distinct candidates, what is counted."""

from collections import Counter
from pathlib import Path

import pytest

from askew.core.errors import ConfigError
from askew.models.rewrite import Sizes, WordRewriter, Words
from askew.plugins.methods import QueryBatch
from askew.reformulators.rewriter import RewriterReformulator
from askew.testing.contracts import check_reformulator, toy_asked

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")


@pytest.fixture(params=["acg", "hred-qs"])
def folder(request, tmp_path):
    torch.manual_seed(5)
    sizes = Sizes(8, 12, 10, 0.0, written=8, read=20, most_words=5)
    words = Words.of(list(toy_asked().texts), ["good nurse station history", "his brother"], sizes)
    WordRewriter.new(request.param, words, sizes).save(tmp_path / "rewriter")
    return str(tmp_path / "rewriter")


def test_it_keeps_the_contract(folder):
    found = check_reformulator(RewriterReformulator(folder, count=3, beams=6))
    assert max(Counter(found.rows).values()) == 3
    assert found.rejected["nothing to read"] == 1


def test_candidates_of_a_query_are_distinct_and_none_is_the_query(folder):
    asked = toy_asked()
    found = RewriterReformulator(folder, count=6, beams=6).reformulate(asked)
    texts = list(zip(found.rows, found.texts, strict=True))
    assert len(set(texts)) == len(texts)
    assert not {(row, text.lower()) for row, text in enumerate(asked.texts)} & set(texts)


def test_the_settings_name_the_weights(folder):
    first = RewriterReformulator(folder).settings()
    assert first["model"].startswith("rewriter@") and first["base"] is None
    torch.manual_seed(6)
    sizes = Sizes(8, 12, 10, 0.0, written=8, read=20, most_words=5)
    WordRewriter.new("acg", Words.of(["a"], ["b"], sizes), sizes).save(Path(folder + "2"))
    assert RewriterReformulator(folder + "2").settings()["model"] != first["model"]


def test_what_cannot_be_is_refused(tmp_path):
    for wrong in ({"count": 0}, {"count": 5, "beams": 4}):
        with pytest.raises(ConfigError, match="expected count of 1 or more and beams of count or more"):
            RewriterReformulator("x", **wrong)
    with pytest.raises(ConfigError, match=r"expected a folder with rewriter\.json"):
        RewriterReformulator(str(tmp_path)).reformulate(QueryBatch(("q",), ("who",)))
