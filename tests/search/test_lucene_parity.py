"""Lists are those of Lucene: BM25, query likelihood, RM3 and Rocchio next to Anserini's own code."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import UnknownName
from askew.core.plugins import build
from askew.data.collection import demo_files
from askew.data.documents import read_documents
from askew.data.queries import read_queries
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.ranker import make_index

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from anserini import RANKERS, Anserini, is_available, java_classes

pytestmark = pytest.mark.skipif(not is_available(), reason="Lucene is not installed (extra 'lucene')")

EMPTY = ("", " \t\n", "the of and", "... !", "\u00a0")
ODD = ("naïve café", "日 本 語", "😀 smile", "x" * 20 + " " + "y" * 21, "it's 2020 a1b2")


def demo():
    documents = pa.concat_tables(list(read_documents(demo_files().docs)))
    return documents["text"].to_pylist(), read_queries(demo_files().queries_file)["text"].to_pylist()


def with_empty():
    """The demo with every tenth text empty or without a term, and accents, ideographs and emoji in others.

    One word is put into exactly a tenth of the documents that are not blank, another into one document more.
    """
    texts, queries = demo()
    texts = [EMPTY[i // 10 % 5] if i % 10 == 0 else f"{text} {ODD[i % 5]}" for i, text in enumerate(texts)]
    texts += ["filler"] * (-sum(1 for text in texts if text.strip(" \t\n")) % 10)
    counted = sum(1 for text in texts if text.strip(" \t\n"))
    filled = [i for i, text in enumerate(texts) if i % 10]
    for word, size in (("atlimit", counted // 10), ("overlimit", counted // 10 + 1)):
        for i in filled[:: len(filled) // size][:size]:
            texts[i] += f" {word} {word}"
    return texts, [*queries, "café", "smile", "語 naïve", "the", "", "unheard"]


@pytest.fixture(scope="module", params=[demo, with_empty])
def collection(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parity")
    texts, queries = request.param()
    ids = [f"d{i}" for i in range(len(texts))]
    make_index([pa.table({"doc_id": ids, "text": pa.array(texts, pa.large_string())})], folder / "askew")
    return folder / "askew", Anserini(folder / "anserini", texts), queries


def lists(hits):
    return [hits.docs[a:b].tolist() for a, b in zip(hits.offsets[:-1], hits.offsets[1:], strict=True)]


@pytest.mark.parametrize("name", RANKERS)
def test_the_top_10_of_every_query_are_those_of_anserini(collection, name):
    index, anserini, queries = collection
    ours = lists(build("ranker", name, {"index": index}).search(queries, 10))
    assert any(ours)
    assert ours == lists(anserini.search(name, queries, 10))


def test_a_ranker_that_anserini_does_not_have_is_refused(collection):
    _, anserini, _ = collection
    with pytest.raises(UnknownName, match="rocchio"):
        anserini.search("dense", ["apple"])


@settings(deadline=None, max_examples=500)
@given(st.text(st.characters(blacklist_categories=("Cs", "Cn", "Co")), max_size=40))
def test_any_text_is_analysed_as_by_lucene_itself(text):
    java = java_classes()
    analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    assert Analyzer().terms(text) == list(java("io.anserini.analysis.AnalyzerUtils").analyze(analyzer, text).toArray())
