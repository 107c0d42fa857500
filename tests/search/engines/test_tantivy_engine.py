"""An index of tantivy as a ranker: fields, boosts, and what is wrong with settings."""

import pytest

from askew.core.errors import ConfigError
from askew.search.engines.client import EngineError
from askew.search.engines.databases import TantivyEngine, tantivy

DOCS = [("d1", "nurse", "a station"), ("d2", "station", "a nurse"), ("d3", "bridge", "")]


@pytest.fixture
def folder(tmp_path):
    library = pytest.importorskip("tantivy", reason="the extra 'tantivy' is not installed")
    builder = library.SchemaBuilder()
    builder.add_unsigned_field("number", stored=True)
    builder.add_text_field("key", stored=True, tokenizer_name="raw")
    builder.add_text_field("title", stored=True)
    builder.add_text_field("text", stored=True)
    writer = library.Index(builder.build(), path=str(tmp_path)).writer(num_threads=1)
    for number, (key, title, text) in enumerate(DOCS):
        writer.add_document(library.Document(number=number, key=key, title=title, text=text))
    writer.commit()
    writer.wait_merging_threads()
    return str(tmp_path)


def order(ranker, query):
    hits = ranker.search([query], 3)
    return [ranker.doc_ids[i].as_py() for i in hits.docs.tolist()]


def test_boosts_of_fields_change_the_order(folder):
    assert order(tantivy(folder, fields="title^5,text", id_field="key"), "nurse") == ["d1", "d2"]
    assert order(tantivy(folder, fields="title,text^5", id_field="key"), "nurse") == ["d2", "d1"]


def test_a_document_may_be_known_by_a_number_and_its_text_come_from_several_fields(folder):
    ranker = tantivy(folder, fields="text", id_field="number", text_fields="title,text")
    assert order(ranker, "nurse") == ["1"]
    assert ranker.texts == {"1": "station a nurse"}


def test_scores_are_those_of_tantivy(folder):
    library = pytest.importorskip("tantivy")
    index = library.Index.open(folder)
    hits = index.searcher().search(index.parse_query("nurse station", ["title", "text"]), 3).hits
    found = tantivy(folder, fields="title,text", id_field="key").search(["nurse, station!"], 3)
    assert found.scores.tolist() == pytest.approx([score for score, _ in hits], abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"fields": "body"}, "request-failed"),
        ({"fields": "title^x"}, "request-failed"),
        ({"id_field": "id"}, "no-id"),
    ],
)
def test_fields_that_are_not_there_are_errors(folder, settings, code):
    with pytest.raises(EngineError) as caught:
        tantivy(folder, **{"fields": "text", "id_field": "key", **settings}).search(["nurse"], 3)
    assert caught.value.code == code


def test_a_folder_without_an_index_is_one_clear_line(tmp_path):
    pytest.importorskip("tantivy", reason="the extra 'tantivy' is not installed")
    with pytest.raises(ConfigError) as caught:
        TantivyEngine(str(tmp_path / "no"))
    assert caught.value.code == "no-place"
    with pytest.raises(EngineError) as caught:
        tantivy(str(tmp_path)).search(["nurse"], 3)
    assert caught.value.code == "request-failed" and "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []
