"""A folder of documents means the same to every command: the documents of a collection, or nothing but documents."""

import json
from pathlib import Path

import pytest

from askew.search.disk import StoredTexts

# Some queries have the ids of documents: where they are read as documents, it cannot go unnoticed.
DOCS = {"d1": "He is a man.", "d2": "She is a woman.", "d3": "The weather is fine.", "d4": "He met a woman."}
QUERIES = "d1\twho is a man\nd2\twho is a woman\n"
QRELS = "d1 0 d1 1\nd2 0 d2 1\n"
MEASURES = "'RR@10 RaB(tc)@3 LexiconShare@3'"


@pytest.fixture(autouse=True)
def world(files):
    files.docs("both/docs.tsv", DOCS)
    files.text("both/queries.tsv", QUERIES)
    files.text("both/qrels.txt", QRELS)
    files.run("a.run", {"d1": ["d1", "d2", "d3"], "d2": ["d1", "d4", "d2"]})
    files.run("b.run", {"d1": ["d3", "d1", "d4"], "d2": ["d2", "d1", "d3"]})
    return files


COMMANDS = {
    "measure": f"measure a.run --docs DOCS --qrels both/qrels.txt --measures {MEASURES} --per-query --json",
    "measure, as published": "measure a.run --docs DOCS --preset rekabsaz2020 --measures 'RaB(tc)@3' --json",
    "compare": f"compare a.run b.run --docs DOCS --qrels both/qrels.txt --measures {MEASURES} --json",
    "annotate": "annotate DOCS --tokens word --store NEW --json",
    "index": "index DOCS --out NEW",
    "reformulate": "reformulate both --docs DOCS --method extract --out NEW.tsv",
    "negatives": "negatives a.run --docs DOCS --queries both/queries.tsv --qrels both/qrels.txt --out NEW.jsonl --json",
    "rerank": "rerank a.run --docs DOCS --out NEW.run --method detconstsort",
    "bench": "bench both -m qld --store NEW",
}


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS.values() if "DOCS" in c], ids=[c for c in COMMANDS if c != "bench"]
)
def test_a_collection_is_its_documents_to_every_command(askew, command):
    of_folder = askew(command.replace("DOCS", "both").replace("NEW", "new1"))
    of_file = askew(command.replace("DOCS", "both/docs.tsv").replace("NEW", "new2"))
    assert of_folder.code == 0, of_folder.err
    assert of_folder.out.replace("new1", "new2") == of_file.out
    for made in Path().glob("new1.*"):
        assert made.read_bytes() == Path(made.name.replace("new1", "new2")).read_bytes()


def test_a_collection_is_its_judged_queries_to_bench_and_its_queries_to_search(askew):
    assert "over 2 queries" in askew(COMMANDS["bench"].replace("NEW", "store")).table
    assert askew("index both --out ix").code == 0
    assert "2 queries" in askew("search both --index ix --out c.run").out


def test_the_titles_of_a_beir_folder_are_read_by_measure_as_by_index(askew, files):
    rows = [{"_id": doc, "title": "He", "text": text} for doc, text in DOCS.items()]
    files.text("beir/corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    files.text("beir/queries.jsonl", '{"_id": "d1", "text": "who"}\n')
    files.text("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nd1\td1\t1\n")
    assert askew("index beir --out ix").code == 0
    assert StoredTexts("ix")[2] == "He The weather is fine."
    counts = {}
    for docs in ("beir", "beir/corpus.jsonl"):
        command = f"measure b.run --docs {docs} --measures 'RaB(tc)@1' --per-query --json --store counted"
        counts[docs] = [run["per_query"]["d1"]["RaB(tc)@1"] for run in askew(command).json["runs"]]
        assert askew(f"annotate {docs} --tokens word --store counted").out.startswith("counted 4 documents")
        # What is read from the store is what was counted of the same texts.
        again = askew(command).json
        assert [run["per_query"]["d1"]["RaB(tc)@1"] for run in again["runs"]] == counts[docs]
    assert counts == {"beir": [1.0], "beir/corpus.jsonl": [0.0]}


def test_a_folder_of_documents_in_parts_is_still_all_of_them(askew, files):
    files.docs("parts/1.tsv", {doc: text for doc, text in DOCS.items() if doc < "d3"})
    files.docs("parts/2.tsv", {doc: text for doc, text in DOCS.items() if doc >= "d3"})
    for name in ("measure", "annotate", "rerank"):
        whole = askew(COMMANDS[name].replace("DOCS", "both/docs.tsv").replace("NEW", "new1"))
        parts = askew(COMMANDS[name].replace("DOCS", "parts").replace("NEW", "new2"))
        assert parts.code == 0, parts.err
        if name == "annotate":
            assert [count["rows"] for count in parts.json["counts"]] == [4]
        else:
            assert parts.out == whole.out.replace("new1", "new2")


@pytest.mark.parametrize("name", ["measure", "compare", "annotate", "index", "reformulate", "negatives", "rerank"])
def test_a_folder_with_queries_and_no_documents_is_refused_by_every_command(askew, files, name):
    files.text("less/queries.tsv", QUERIES)
    files.docs("less/texts.tsv", DOCS)
    askew(COMMANDS[name].replace("DOCS", "less").replace("NEW", "new")).refused(
        3, "less: expected documents (a file named docs.* or corpus.*", "found queries.tsv, texts.tsv"
    )
