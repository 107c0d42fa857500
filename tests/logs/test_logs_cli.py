"""``askew logs``: a screen of 80 columns, JSON, files, and one line for every mistake."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import polars as pl
import pytest
import typer

from askew.cli import logs
from askew.core.errors import AskewError, ConfigError
from askew.logs.planted import Planted
from askew.logs.synthetic import SyntheticLog, write_log


@pytest.fixture
def askew_logs(tmp_path, monkeypatch):
    """Runs the command in an empty folder and gives what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    app = typer.Typer()
    app.command("logs")(logs.command)
    command = typer.main.get_command(app)

    def run(*words):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), command.make_context("logs", list(words)) as context:
            command.invoke(context)
        return out.getvalue(), err.getvalue()

    return run


@pytest.fixture
def small(tmp_path):
    return str(
        write_log(SyntheticLog(Planted(sessions=2000, users=600, queries_per_topic=3)), tmp_path / "log.parquet")
    )


def test_the_summary_fits_80_columns_and_has_all_tables(askew_logs, small):
    out, err = askew_logs(small, "--format", "parquet")
    assert max(map(len, out.splitlines())) <= 80
    for words in (
        "4,000 rows, 0 left out", "specialising, of pairs", "recommended", "absent", "seeks-specific",
        "exposure after/before", "shopping and fashion", "Spearman of rate and % recommended",
    ):  # fmt: skip
        assert words in out
    assert "few users" in out
    assert err == ""


def test_json_has_every_table_and_nothing_that_is_no_number(askew_logs, small):
    out, _ = askew_logs(small, "--format", "parquet", "--json")
    assert out.count("\n") == 1
    found = json.loads(out)
    assert {"frequency", "groups", "gaps", "entries", "clicks", "ranks", "sites", "topics", "kinds"} <= set(
        found["tables"]
    )
    assert found["counts"]["rows_read"] == 4000
    assert found["settings"]["lexicon"].startswith("gsqr2023@")


def test_the_folder_has_a_page_and_each_table_twice(askew_logs, small, tmp_path):
    out, _ = askew_logs(small, "--format", "parquet", "--out", "report")
    folder = tmp_path / "report"
    names = {path.stem for path in (folder / "tables").glob("*.csv")}
    assert names == {path.stem for path in (folder / "tables").glob("*.parquet")}
    assert json.loads((folder / "report.json").read_text())["counts"]["sessions"] == 2000
    page = (folder / "report.html").read_text()
    assert page.count("<svg") >= 2
    assert "How people add a group" in page
    assert out.rstrip().endswith(f"in report: report.html, report.json and {len(names)} tables")
    assert pl.read_csv(folder / "tables" / "groups.csv")["group"].to_list() == ["female", "male", "several"]
    with pytest.raises(ConfigError, match="expected a new or an empty folder"):
        askew_logs(small, "--format", "parquet", "--out", "report")


def test_a_review_is_written_decided_and_fed_back(askew_logs, small, tmp_path):
    out, _ = askew_logs(small, "--format", "parquet", "--review", "terms.tsv", "--min-users", "2")
    assert "decide in terms.tsv" in out
    path = tmp_path / "terms.tsv"
    lines = path.read_text().splitlines()
    assert any(line.startswith("kids\t") for line in lines)
    path.write_text(
        "\n".join(line + "young" if line.startswith(("kids\t", "teens\t")) else line for line in lines) + "\n"
    )
    found = json.loads(
        askew_logs(small, "--format", "parquet", "--review", "terms.tsv", "--min-users", "2", "--json")[0]
    )
    groups = {row["group"]: row["hits"] for row in found["tables"]["groups"]}
    assert groups["young"] > 50
    assert found["settings"]["lexicon"].startswith("gsqr2023+review@")
    kept = [line for line in path.read_text().splitlines() if line.endswith("young")]
    assert len(kept) == 2
    assert "for kids" in {row["block"] for row in found["tables"]["blocks"]}


def test_a_log_of_one_user_is_told_with_what_it_can_tell(askew_logs, tmp_path):
    header = "user\ttime\tquery\tclick_rank\tclick_doc\tresults"
    pages = "http://a.example http://b.example"
    rows = [f"u\t1\tboots\t1\thttp://a.example\t{pages}", f"u\t9\tboots men\t2\thttp://b.example\t{pages}"]
    (tmp_path / "log.tsv").write_text("\n".join([header, *rows]) + "\n")
    words = ("log.tsv", "--min-users", "1", "--min-events", "1")
    out, _ = askew_logs(*words, "--out", "report")
    assert "1 of 1" in out
    found = json.loads(askew_logs(*words, "--json")[0])
    assert found["tables"]["clicks"][0]["high"] is None
    assert (tmp_path / "report" / "report.html").exists()


def test_rows_left_out_are_told_by_reason_on_stderr(askew_logs, tmp_path):
    (tmp_path / "log.tsv").write_text("user\ttime\tquery\nu\tnever\tx\nu\t5\ty\nu\n")
    out, err = askew_logs("log.tsv")
    assert "3 rows, 2 left out" in out
    assert "note: 1 row left out: unparseable time (log.tsv:2: time 'aaaaa')" in err
    assert "note: 1 row left out: wrong number of columns (log.tsv:4)" in err
    assert "there is no reformulation for a group" in err


def test_the_demo_says_how_many_planted_effects_were_found(askew_logs, monkeypatch):
    monkeypatch.setattr(
        "askew.stages.logs.demo.Planted", lambda: Planted(sessions=3000, users=900, queries_per_topic=3)
    )
    out, err = askew_logs("--demo")
    assert "planted effects within their 95% intervals:" in out
    assert "made up (seed 0)" in err
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a log, or --demo"),
        (["x", "--demo"], "and not both"),
        (["absent.tsv"], "no such file"),
        (["--demo", "--columns", "user"], "expected PART=COLUMN"),
        (["--demo", "--columns", "user=a,user=b"], "named twice"),
        (["--demo", "--gap", "0"], "--gap"),
        (["--demo", "--min-users", "0"], "--min-users"),
        (["--demo", "--min-events", "0"], "--min-events"),
        (["--demo", "--lexicon", "nobody"], "unknown lexicon"),
        (["--demo", "--vectors", "absent.npy", "--topics", "none", "--page-lexicon", "nobody"], "unknown lexicon"),
    ],
)
def test_mistakes_are_one_line(askew_logs, words, message):
    with pytest.raises(AskewError, match=message) as found:
        askew_logs(*words)
    assert "\n" not in str(found.value)
