"""``askew bench``: one table that fits the terminal, JSON, a folder, and errors in one line."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from askew.study.bench.settings import BenchSettings
from askew.ui.cli.bench import bench_command

METHODS = "-m qld -m detconstsort -m reformulate:reduce -m reformulate:reduce:oracle"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def test_the_table_fits_the_terminal_and_says_the_rule(askew, store):
    table = askew(f"bench demo {METHODS} --store {store}").table
    for word in (
        "bm25 (base)",
        "reformulate:reduce:oracle †",
        "|ARaB(tf)@10|",
        "n queries",
        "Pareto",
        "reformulated",
    ):
        assert word in table
    plain = " ".join(table.split())
    assert "8 of effectiveness and 8 of lean" in plain
    for words in ("50% of the top 10", "not a usable system", "A query without results"):
        assert words in plain


def test_json_has_every_number(askew, store):
    found = askew(f"bench demo -m qld -m reformulate:reduce --agree 0.8 --store {store} --json --out o").json
    assert (found["base"], found["queries"], found["agree"], found["tests"]["lean"]) == ("bm25", 96, 0.8, 4)
    method = found["methods"][1]
    cell = method["measures"]["ARaB(tf)@10"]
    assert method["method"] == "qld"
    assert cell["n"] == 96 == cell["improved"] + cell["worsened"] + cell["unchanged"]
    assert cell["low"] <= cell["change"] <= cell["high"]
    assert cell["p"] <= cell["p_holm"]
    assert found["html"] == "o/report.html"


def test_an_error_is_one_line(askew, files, store):
    askew("bench demo -m bm52").refused(2, "did you mean 'bm25'?")
    askew("bench demo -m rerank:./none").refused(3, "there is no folder")
    askew("bench demo -m qld --agree 2").refused(
        2, "--agree", "from 0 to 1 (the share of the top 10 that must be kept), found 2"
    )
    askew("bench demo -m qld --measures RR@10").refused(2, "one of lean")
    askew(f"bench demo -m run:old.run --store {store}").refused(3, "queries of this bench")
    askew("bench nowhere -m qld").refused(3, "nowhere")
    files.text("o/report.html", "mine")
    askew("bench demo -m qld --out o").refused(2, "o/report.html")
    askew("bench docs.tsv -m qld").refused(3, "it has no queries")


def test_a_hostile_run_name_is_printed_without_control_characters(askew, files, store):
    name = "x\x1b[2J<b>.run"
    files.text(name, "care-q01 Q0 care-25 1 1.0 me\n")
    found = askew(["bench", "demo", "-m", f"run:{name}", "--store", str(store), "--out", "o"])
    assert found.code == 0
    assert "\x1b" not in found.out + found.err
    page = Path("o/report.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "\x1b" not in page


AGE = "old,old\nelderly,old\nsenior,old\nparent,old\nyoung,young\nchild,young\nchildren,young\nteenager,young\n"
GENDERED = re.compile(r"gender|male|rekabsaz|\b(wo)?m[ae]n\b|two groups", re.IGNORECASE)


def test_groups_from_a_word_list_are_the_only_ones_in_any_output(askew, files, store):
    files.text("age.csv", AGE)
    given = "-m detconstsort -m reformulate:fairfeedback -m reformulate:fairfeedback:oracle --lexicon age.csv"
    table = askew(f"bench demo {given} --groups young,old --store {store} --out o")
    found = askew(f"bench demo {given} --groups young,old --store {store} --json")
    assert found.json["groups"]["names"] == ["young", "old"]
    assert "groups='young-old'" in found.json["signatures"]["ARaB(tf)@10"]
    written = [
        path.read_bytes().decode("utf-8", "replace") for path in (Path("o/report.html"), *Path("o/tables").iterdir())
    ]
    for text in (table.table, table.err, found.out, found.err, *written):
        assert not GENDERED.findall(text)


def test_a_method_of_other_groups_is_refused(askew, files, store):
    files.text("age.csv", AGE)
    other = "reformulate:fairfeedback.groups=gender:female,male"
    given = f"bench demo --groups age.csv --store {store}"
    askew(f"{given} -m reformulate:fairfeedback --set {other}").refused(2, "counts the groups female, male", "old")
    askew(f"{given} -m reformulate:swap --set reformulate:swap.pairs=gender-en").refused(
        2, "gender-en", "the counted groups are old, young"
    )


def test_the_defaults_of_the_command_are_those_of_the_function():
    shown = inspect.signature(bench_command).parameters
    for one in fields(BenchSettings):
        if one.name != "method_settings":
            assert shown[one.name].default == one.default


def test_tables_and_charts_are_written_where_asked(askew, tmp_path, store):
    assert askew(f"bench demo -m qld --store {store} --latex a.tex --csv a.csv --figures charts --json").code == 0
    header, *rows = (tmp_path / "a.csv").read_text().splitlines()
    assert header.startswith("group,method,n queries,mean") and len(rows) == 8
    assert (tmp_path / "a.tex").read_text().count("begin{table}") == 3
    assert list((tmp_path / "charts").glob("pareto-*.svg"))
