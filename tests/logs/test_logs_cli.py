"""``askew logs``: a screen of 80 columns, JSON, files, and one line for every mistake."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import polars as pl
import pytest
import typer
from log_generator import Planted, SyntheticLog, write_log

from askew.core.errors import AskewError, ConfigError, DataError
from askew.logs.page import TITLE
from askew.ui.cli import logs


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


PLACES = str(Path(__file__).parent / "places.csv")


@pytest.fixture
def small(tmp_path):
    return str(
        write_log(SyntheticLog(Planted(sessions=2000, users=600, queries_per_topic=3)), tmp_path / "log.parquet")
    )


def test_the_summary_fits_80_columns_and_has_all_tables(askew_logs, small):
    out, err = askew_logs(small, "--format", "parquet")
    assert max(map(len, out.splitlines())) <= 80
    for words in (
        "4,000 rows, 0 left out", "specializing reformulations", "recommended", "absent", "seeks-specific",
        "shopping and fashion",
    ):  # fmt: skip
        assert words in out
    assert "queries not shown: few users" in out
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
    assert page.count("<svg") >= 1
    assert f"<h1>{TITLE}</h1>" in page
    assert out.rstrip().endswith(f" {len(names)} tables")
    assert pl.read_csv(folder / "tables" / "groups.csv")["group"].to_list() == ["female", "male", "several"]
    with pytest.raises(ConfigError) as error:
        askew_logs(small, "--format", "parquet", "--out", "report")
    assert error.value.code == "not-empty"


def test_a_review_is_written_decided_and_fed_back(askew_logs, small, tmp_path):
    out, _ = askew_logs(small, "--format", "parquet", "--review", "terms.tsv", "--min-users", "2")
    assert "phrases in terms.tsv, " in out
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
    assert "100.0%" in out
    found = json.loads(askew_logs(*words, "--json")[0])
    assert found["tables"]["clicks"][0]["high"] is None
    assert (tmp_path / "report" / "report.html").exists()


def test_rows_left_out_are_told_by_reason_on_stderr(askew_logs, tmp_path):
    (tmp_path / "log.tsv").write_text("user\ttime\tquery\nu\tnever\tx\nu\t5\ty\nu\n")
    out, err = askew_logs("log.tsv")
    assert "3 rows, 2 left out" in out
    assert "unparseable time (log.tsv:2: time 'aaaaa')" in err
    assert "columns (log.tsv:4)" in err
    assert "no reformulation" in err


@pytest.mark.parametrize(
    "words",
    [
        ["--topics", "none"],
        ["--min-users", "100000"],
        ["--min-events", "100000"],
        ["--topics", "words"],
    ],
)
def test_the_demo_takes_other_settings(askew_logs, words):
    out, _ = askew_logs("--demo", *words)
    assert "8,000 rows" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_demo_takes_another_lexicon_with_its_groups(askew_logs, tmp_path):
    terms = [("female", "women"), ("female", "women's"), ("male", "men"), ("male", "male"), ("young", "kids")]
    (tmp_path / "three.csv").write_text("term,group\n" + "".join(f"{word},{group}\n" for group, word in terms))
    assert "young" in askew_logs("--demo", "--lexicon", "three.csv")[0]


def test_decisions_survive_a_log_that_could_not_be_read(askew_logs, tmp_path):
    decided = "keyphrase\tscore\tn\tusers\tdecision\nkids\t0.1\t9\t9\tyoung\n"
    (tmp_path / "terms.tsv").write_text(decided)
    (tmp_path / "log.tsv").write_text("user\ttime\tquery\nu\tnever\tx\n")
    with pytest.raises(DataError):
        askew_logs("log.tsv", "--review", "terms.tsv")
    assert (tmp_path / "terms.tsv").read_text() == decided


def test_a_log_whose_rows_are_all_left_out_is_told_with_reasons_and_an_example(askew_logs, tmp_path):
    head = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    (tmp_path / "log.tsv").write_text(head + "u\tx\tnever\t\t\nu\ty\tnever\t\t\nu\n")
    with pytest.raises(DataError) as found:
        askew_logs("log.tsv", "--format", "aol", "--out", "report")
    assert (found.value.code, sorted(found.value.values["rejected"].values())) == ("all-left-out", [1, 2])
    assert all(part in str(found.value) for part in ("log.tsv:2: time 'aaaaa'", "format=", "columns="))
    assert found.value.exit_code == 3 and not (tmp_path / "report").exists()


def test_a_log_without_a_reformulation_is_no_mistake(askew_logs, tmp_path):
    (tmp_path / "log.tsv").write_text("user\ttime\tquery\nu\t5\tx\n")
    out, err = askew_logs("log.tsv")
    assert "1 rows, 0 left out" in out and "no reformulation" in err


def test_topics_and_several_groups_are_told_with_their_intervals(askew_logs, tmp_path):
    asked = ((1, "boots"), (9, "boots men"), (4000, "hat"), (4009, "hat men women"))
    rows = [(f"u{i}", time, query) for i in range(6) for time, query in asked]
    text = "user\ttime\tquery\n" + "".join(f"{u}\t{t}\t{q}\n" for u, t, q in rows)
    (tmp_path / "log.tsv").write_text(text)
    out, _ = askew_logs("log.tsv")
    rows = [line.split() for line in out.splitlines()]
    assert ["several", "6"] in [row[:2] for row in rows]
    # Of the six events for one group none is for women.
    assert "0.0%   [0.0, 39.0]" in out
    found = json.loads(askew_logs("log.tsv", "--json")[0])["tables"]["topics"][0]
    assert (found["n"], found["share_female"], found["share_male"]) == (12, 0.0, 1.0)


def test_the_demo_says_that_its_log_is_made_up(askew_logs):
    out, err = askew_logs("--demo")
    assert "8,000 rows" in out and "made up" in err
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--demo"),
        (["x", "--demo"], "--demo"),
        (["absent.tsv"], "no such file"),
        (["--demo", "--columns", "user"], "PART=COLUMN"),
        (["--demo", "--columns", "user=a,user=b"], "named twice"),
        (["--demo", "--gap", "0"], "gap=.* found 0"),
        (["--demo", "--min-users", "0"], "min_users=.* found 0"),
        (["--demo", "--min-events", "0"], "min_events=.* found 0"),
        (["--demo", "--lexicon", "nobody"], "unknown lexicon"),
        (["--demo", "--topics", "none", "--page-lexicon", "nobody"], "unknown lexicon"),
        (["--demo", "--vectors", "absent.npy"], "absent.npy"),
        (["--demo", "--columns", "user=a"], "columns= names 'a'"),
        (["--demo", "--lexicon", PLACES], "not for britain"),
        (["--demo", "--threads", "0"], "threads=.* found 0"),
        (["--demo", "--threads", "-1"], "threads=.* found -1"),
        (["--demo", "--out", f"{PLACES}/report"], f"{PLACES}, found a file"),
        (["--demo", "--review", "nowhere/terms.tsv"], "review=.* nowhere/terms.tsv"),
    ],
)
def test_mistakes_are_one_line(askew_logs, words, message):
    with pytest.raises(AskewError, match=message) as found:
        askew_logs(*words)
    assert "\n" not in str(found.value)


def test_the_same_log_gives_the_same_numbers_though_users_have_other_numbers_each_time(askew_logs, small):
    first, second = (askew_logs(small, "--format", "parquet", "--json")[0] for _ in range(2))
    assert first == second
