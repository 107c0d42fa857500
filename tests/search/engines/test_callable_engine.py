"""Functions and retrievers as engines."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from askew.core.errors import ConfigError
from askew.search.engines.callables import as_found, callable_ranker
from askew.search.engines.client import EngineError
from askew.testing.contracts import TOY_DOCS, check_ranker
from search_server import ToyEngine

TOY = ToyEngine(TOY_DOCS)


@dataclass
class LangChainDocument:
    """As langchain_core.documents.Document."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


class LangChainRetriever:
    """As langchain_core.retrievers.BaseRetriever: it knows itself how many documents to give."""

    def invoke(self, query, config=None, **kwargs):
        return [LangChainDocument(text, {"source": doc}) for doc, _, text in TOY.search(query, 4)]


@dataclass
class Node:
    """As llama_index.core.schema.TextNode."""

    node_id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)

    def get_content(self):
        return self.text


@dataclass
class NodeWithScore:
    """As llama_index.core.schema.NodeWithScore."""

    node: Node
    score: float | None = None


class LlamaIndexRetriever:
    """As llama_index.core.retrievers.BaseRetriever."""

    def retrieve(self, query):
        return [NodeWithScore(Node(doc, text), score) for doc, score, text in TOY.search(query, 4)]


def ids(query, k):
    return [doc for doc, _, _ in TOY.search(query, k)]


FORMS = {
    "ids": ids,
    "ids and scores": lambda query, k: [one[:2] for one in TOY.search(query, k)],
    "all three": TOY.search,
    "dictionaries": lambda query, k: [{"id": d, "score": s, "text": t} for d, s, t in TOY.search(query, k)],
    "a generator": lambda query, k: (one for one in TOY.search(query, k)),
    "the query alone": lambda query: TOY.search(query, 1000),
    "documents and scores": lambda query, k: [(LangChainDocument(t, id=d), s) for d, s, t in TOY.search(query, k)],
    "LangChain": LangChainRetriever(),
    "LlamaIndex": LlamaIndexRetriever(),
}


@pytest.mark.parametrize("form", FORMS)
def test_whatever_searches_keeps_the_contract_of_rankers(form):
    check_ranker(callable_ranker(FORMS[form], id_field="source" if form == "LangChain" else None))


def test_texts_of_a_retriever_are_kept():
    ranker = callable_ranker(LangChainRetriever(), id_field="source")
    ranker.search(["station"], 3)
    assert ranker.texts == {"d3": TOY_DOCS["d3"]}


def test_a_document_without_an_id_is_named_by_its_text():
    one, same, other = (as_found(LangChainDocument(text)).doc_id for text in ("a", "a", "b"))
    assert one == same != other
    assert one.startswith("text-")


def test_passages_may_be_plain_texts():
    found = as_found("He is a nurse.")
    assert found.text == "He is a nurse." and " " not in found.doc_id
    assert as_found("d1") == ("d1", None, None) and as_found(("d 1", 0.5, "text")) == ("d 1", 0.5, "text")


def test_the_text_beside_a_score_is_an_id_even_with_blanks():
    assert as_found(("doc 1", 0.5)) == ("doc 1", 0.5, None)
    assert as_found(["doc 1", "0.5"]) == ("doc 1", 0.5, None)
    assert as_found(["doc 1", -(10**400)]) == ("doc 1", -float("inf"), None)
    assert as_found(("He is a nurse.", None)).text == "He is a nurse."


def test_the_id_of_a_document_is_its_own_or_that_of_its_metadata():
    assert as_found(LangChainDocument("t", {"id": "m"})).doc_id == "m"
    assert as_found(LangChainDocument("t", {"id": "m"}, "own")).doc_id == "own"
    assert as_found(LangChainDocument("t", {"url": 7}, "own"), "url").doc_id == "7"
    assert as_found({"docno": 5}).doc_id == "5"
    assert as_found(12).doc_id == "12"


@pytest.mark.parametrize("wrong", [None, True, 1.5, object(), [], ("a", 1.0, "t", "more"), {"score": 1.0}])
def test_what_is_no_document_is_refused(wrong):
    with pytest.raises(EngineError):
        as_found(wrong)


@pytest.mark.parametrize("wrong", [None, "d1", {"d1": 1.0}, 5])
def test_what_is_no_list_of_documents_is_refused(wrong):
    with pytest.raises(EngineError) as caught:
        callable_ranker(lambda query, k: wrong).search(["a"], 3)
    assert caught.value.code == "no-list" and caught.value.values["kind"] == type(wrong).__name__


def test_a_function_is_found_by_its_module():
    ranker = callable_ranker("askew.data.collection:demo_files")
    assert ranker.id == "callable-askew.data.collection_demo_files"


def test_a_function_is_found_by_its_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("class Engines:\n    @staticmethod\n    def find(query, k):\n        return [query]\n")
    ranker = callable_ranker(f"{path}:Engines.find")
    ranker.search(["a"], 3)
    assert ranker.doc_ids.to_pylist() == ["a"]
    assert ranker.id == "callable-mine.py_Engines.find"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nothing", "'module:name' or 'file.py:name'"),
        ("no_such_module_here:find", "cannot be loaded"),
        ("askew.data.collection:nothing", "cannot be loaded"),
        ("nothing.py:find", "there is no file"),
        ("askew.core.defaults:STORE", "should be a function"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(path, words):
    with pytest.raises(ConfigError, match=words):
        callable_ranker(path).search(["a"], 1)


def test_answers_of_a_function_are_kept_only_in_a_file_that_is_named(tmp_path):
    assert callable_ranker(ids).keep_answers(tmp_path / "a") is None
    assert callable_ranker(ids, cache=str(tmp_path / "b")).keep_answers(tmp_path / "a") == tmp_path / "b"
