"""Retrievers of LangChain and LlamaIndex themselves, audited as they are."""

import pytest

import askew
from askew.core.errors import StageError
from search_server import ToyEngine

DOCS = {
    "d1": "what a nurse does : he helps him , his patients and the man",
    "d2": "a nurse works in a ward",
    "d3": "the nurse said she would do it",
    "d4": "a lawyer and his client , he is a man",
    "d5": "engineer <b>he</b> & his father",
}
QUERIES = {"q1": "what does a nurse do", "q2": "lawyer", "q3": "engineer"}
TOY = ToyEngine(DOCS)
K = 4


def audited(engine, **options):
    how = askew.AuditSettings(methods=("reduce",), method_settings={"equivalence": {"model": "light"}})
    return askew.audit(engine, QUERIES, settings=how, **options)


def failing(query):
    raise ValueError(f"the engine said: {query}")


@pytest.fixture
def langchain():
    return pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")


def langchain_retriever(langchain, find):
    from langchain_core.documents import Document

    class FilmRetriever(langchain.BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(page_content=text, metadata={"source": doc}, id=doc) for doc, _, text in find(query)]

    return FilmRetriever()


@pytest.fixture
def llamaindex():
    return pytest.importorskip("llama_index.core.retrievers", reason="llama-index-core is not installed")


def llamaindex_retriever(llamaindex, find):
    from llama_index.core.schema import NodeWithScore, TextNode

    class FilmRetriever(llamaindex.BaseRetriever):
        def _retrieve(self, query_bundle):
            found = find(query_bundle.query_str)
            return [NodeWithScore(node=TextNode(text=text, id_=doc), score=score) for doc, score, text in found]

    return FilmRetriever()


@pytest.fixture(params=["langchain", "llamaindex"])
def retriever_of(request):
    """Makes a retriever of the library from a function."""
    make = {"langchain": langchain_retriever, "llamaindex": llamaindex_retriever}[request.param]
    library = request.getfixturevalue(request.param)
    return lambda find: make(library, find)


def test_a_retriever_is_measured_as_the_function_behind_it(retriever_of):
    found = audited(retriever_of(lambda query: TOY.search(query, K)))
    same = audited(lambda query, k: TOY.search(query, K))
    assert found.engine.endswith("FilmRetriever")
    assert found["ARaB(tf)@10"] == same["ARaB(tf)@10"]
    assert found.per_query().equals(same.per_query())
    assert [one.text for one in found.reformulations] == [one.text for one in same.reformulations]
    assert found.worst[0].results[0].doc_id in DOCS


def test_a_retriever_that_fails_is_one_line_without_the_query(retriever_of):
    with pytest.raises(StageError, match="failed with ValueError; 0 of 3 queries were answered") as caught:
        audited(retriever_of(failing))
    assert "nurse" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_retriever_is_gated_like_any_engine(retriever_of):
    engine = retriever_of(lambda query: TOY.search(query, K))
    limit = abs(audited(engine)["ARaB(tf)@10"].mean)
    assert len(audited(engine, fail_if=f"ARaB(tf)@10 > {limit / 2}").failures) == 1
    assert audited(engine, fail_if=f"ARaB(tf)@10 > {limit * 2}").failures == []


def test_a_vector_store_of_langchain_is_audited_by_its_retriever(langchain):
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_texts(list(DOCS.values()), ids=list(DOCS))
    found = audited(store.as_retriever(search_kwargs={"k": 3}))
    assert {len(one.results) for one in found.worst} == {3}
    assert {one.doc_id for worst in found.worst for one in worst.results} <= set(DOCS)


def test_an_index_of_llamaindex_is_audited_by_its_retriever(llamaindex):
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode

    nodes = [TextNode(text=text, id_=doc, metadata={"secret": "label"}) for doc, text in DOCS.items()]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    found = audited(index.as_retriever(similarity_top_k=3))
    assert {one.doc_id for worst in found.worst for one in worst.results} <= set(DOCS)
    shown = "".join(text for worst in found.worst for one in worst.results for text, _ in one.pieces)
    assert "label" not in shown, "metadata is no part of the text"
