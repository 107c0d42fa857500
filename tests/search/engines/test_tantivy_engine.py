"""An index of tantivy as a ranker: fields, boosts, its query language, and what is wrong with settings."""

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


def test_the_query_language_of_tantivy_is_used_where_it_is_wanted(folder):
    ranker = tantivy(folder, fields="title,text", id_field="key", syntax="tantivy")
    assert order(ranker, "+nurse -title:station") == ["d1"]
    with pytest.raises(EngineError, match="not valid") as caught:
        ranker.search(["(marple"], 3)
    assert "marple" not in str(caught.value)
    kind = tantivy(folder, fields="title,text", id_field="key", syntax="tantivy", refused="empty")
    assert len(kind.search(["(marple"], 3).docs) == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fields": "body"}, "fields="),
        ({"id_field": "id"}, "no value in 'id'"),
    ],
)
def test_fields_that_are_not_there_are_named(folder, settings, words):
    with pytest.raises(EngineError, match=words):
        tantivy(folder, **{"fields": "text", "id_field": "key", **settings}).search(["nurse"], 3)


def test_a_folder_without_an_index_is_one_clear_line(tmp_path):
    pytest.importorskip("tantivy", reason="the extra 'tantivy' is not installed")
    with pytest.raises(ConfigError, match=r"folder= .*no does not exist"):
        TantivyEngine(str(tmp_path / "no"))
    with pytest.raises(EngineError, match="folder=") as caught:
        tantivy(str(tmp_path)).search(["nurse"], 3)
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fields", ["", "title^x"])
def test_settings_that_cannot_work_are_refused_before_anything_is_opened(tmp_path, fields):
    with pytest.raises(ConfigError, match="fields="):
        TantivyEngine(str(tmp_path), fields=fields)
