"""askew index and askew search, from documents to a run that askew measures."""

import polars as pl
import pytest

from askew.corpora.demo import demo_files

DEMO = demo_files()


@pytest.fixture
def index(askew, tmp_path):
    assert askew(["index", str(DEMO.docs), "--out", "ix"]).code == 0
    return tmp_path / "ix"


def test_index_says_what_it_indexed(askew):
    done = askew(["index", str(DEMO.docs), "--out", "ix"])
    assert done.code == 0
    assert f"indexed {DEMO.documents:,} documents" in done.out


def test_a_run_is_written_and_can_be_measured(askew, index):
    done = askew(["search", str(DEMO.queries_file), "--index", "ix", "--out", "bm25.run", "-k", "20"])
    assert done.code == 0
    assert f"{DEMO.queries} queries" in done.out
    measured = askew(["measure", "bm25.run", "--docs", str(DEMO.docs), "--qrels", str(DEMO.qrels), "--json"])
    assert measured.code == 0


def test_parquet_holds_the_same_run_as_trec(askew, index, tmp_path):
    for name in ("a.run", "a.parquet"):
        askew(["search", str(DEMO.queries_file), "--index", "ix", "--out", name, "-k", "5"])
    table = pl.read_parquet(tmp_path / "a.parquet")
    lines = [line.split() for line in (tmp_path / "a.run").read_text().splitlines()]
    assert [(q, d) for q, d in table.select("query_id", "doc_id").rows()] == [(line[0], line[2]) for line in lines]
    assert table["rank"].to_list() == [int(line[3]) for line in lines]


@pytest.mark.parametrize("ranker", ["bm25", "bm25-msmarco", "qld"])
def test_every_named_ranker_writes_its_name_into_the_run(askew, index, tmp_path, ranker):
    askew(["search", str(DEMO.queries_file), "--index", "ix", "--out", "r.run", "--ranker", ranker, "-k", "3"])
    tag = (tmp_path / "r.run").read_text().splitlines()[0].split()[5]
    assert tag.startswith(ranker.partition("-")[0])


def test_queries_without_a_known_word_are_counted(askew, index, tmp_path):
    (tmp_path / "q.tsv").write_text("1\tnurse\n2\tzzzzqqq\n")
    done = askew(["search", "q.tsv", "--index", "ix", "--out", "r.run"])
    assert done.code == 0
    assert "1 of 2 queries have no word that the index knows" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--ranker", "bm26"], 2, "expected one of bm25"),
        (["--mu", "5"], 2, "no parameter 'mu'"),
        (["--k1", "-1"], 2, "k1 >= 0"),
        (["-k", "2000"], 2, "from 1 to 1000"),
        (["--index", "nowhere"], 3, "there is no index"),
    ],
)
def test_wrong_settings_are_one_line(askew, index, arguments, code, message):
    done = askew(["search", str(DEMO.queries_file), "--index", "ix", "--out", "r.run", *arguments])
    assert done.code == code
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_an_id_with_a_blank_cannot_go_into_a_trec_run(askew, tmp_path):
    (tmp_path / "d.jsonl").write_text('{"id": "a b", "text": "cat"}\n')
    (tmp_path / "q.tsv").write_text("1\tcat\n")
    askew(["index", "d.jsonl", "--out", "ix"])
    assert askew(["search", "q.tsv", "--index", "ix", "--out", "r.run"]).code == 3
    assert askew(["search", "q.tsv", "--index", "ix", "--out", "r.parquet"]).code == 0


def test_the_run_that_comes_with_the_demo_is_what_these_commands_write(askew, index, tmp_path):
    askew(["search", str(DEMO.queries_file), "--index", "ix", "--out", "again.run", "-k", "50"])
    assert (tmp_path / "again.run").read_bytes() == DEMO.runs[0].read_bytes()
