"""askew index and askew search, from documents to a run that askew measures."""

import polars as pl
import pytest

from askew.data.collection import demo_files

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
    assert "1 of 2 queries found nothing" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--ranker", "bm26"], 2, "unknown ranker 'bm26': did you mean 'bm25'?"),
        (["--mu", "5"], 2, "no setting 'mu'"),
        (["--k1", "-1"], 2, "'k1' should be 0 or more, found -1.0"),
        (["-k", "2000"], 2, "from 1 to 1000"),
        (["--index", "nowhere"], 3, "there is no index"),
        (["--ranker", "replay"], 2, "(--index), 0 runs"),
        (["--ranker", "crossencoder", "--set", "depth=0"], 2, "1 or more"),
        (["--set", "k1"], 2, "expected NAME=VALUE"),
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


def documents(path):
    return [line.split()[2] for line in path.read_text().splitlines() if int(line.split()[3]) <= 10]


def test_two_indexes_are_fused(askew, index, tmp_path):
    askew(["index", "demo", "--out", "plain", "--analyzer", "plain"])
    done = askew(["search", "demo", "--index", "ix", "--index", "plain", "--out", "f.run", "-k", "5"])
    assert done.code == 0
    assert "rrf-bm25-0.9-0.4-lucene+bm25-0.9-0.4-lucene" in done.out


def test_a_run_is_replayed_as_it_is(askew, tmp_path):
    done = askew(["search", "demo", "--run", str(DEMO.runs[0]), "--out", "again.run", "-k", "50"])
    assert done.code == 0
    was = [line.split()[:4] for line in DEMO.runs[0].read_text().splitlines()]
    assert sorted(was) == sorted(line.split()[:4] for line in (tmp_path / "again.run").read_text().splitlines())


def test_queries_and_documents_of_the_demo_have_a_name(askew, tmp_path):
    assert askew(["index", "demo", "--out", "ix"]).code == 0
    assert askew(["search", "demo", "--index", "ix", "--out", "again.run", "-k", "50"]).code == 0
    assert (tmp_path / "again.run").read_bytes() == DEMO.runs[0].read_bytes()


def test_an_index_for_no_known_ranker_is_one_line(askew):
    done = askew(["index", "demo", "--out", "ix", "--ranker", "dence"])
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "did you mean 'dense'" in done.err


def test_rankers_are_listed_and_shown_with_their_settings(askew):
    listed = askew(["list", "rankers"])
    assert listed.code == 0
    assert "Reranks the top" in listed.out
    shown = askew(["show", "ranker", "dense"])
    assert "settings when indexing" in shown.out
    assert "model: 'all-MiniLM-L6-v2'" in shown.out


def test_the_dense_run_that_comes_with_the_demo_is_what_these_commands_write(askew, tmp_path):
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    assert askew(["index", "demo", "--out", "dx", "--ranker", "dense"]).code == 0
    assert askew(["search", "demo", "--index", "dx", "--out", "again.run", "-k", "50"]).code == 0
    shipped = {run.stem: run for run in DEMO.runs}["minilm"]
    # Documents, not bytes: another processor rounds the last digit of a score otherwise.
    assert documents(tmp_path / "again.run") == documents(shipped)


def test_reranking_needs_texts_that_were_kept(askew, tmp_path):
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    askew(["index", "demo", "--out", "bare", "--no-texts"])
    done = askew(["search", "demo", "--index", "bare", "--ranker", "crossencoder", "--out", "r.run"])
    done.refused(3, "bare", "no texts")
