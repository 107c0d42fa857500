"""``askew measure``: what it prints, and what each option does to the numbers."""

import gzip
import json
import math
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from rich.cells import cell_len

from askew.data.collection import demo_files
from askew.measures.decompose import Decomposition, LeanPart
from askew.measures.relevance import WHY
from askew.study.tables import parts_table

ALL = "--docs docs.tsv --qrels qrels.txt"
PRESETS = ("rekabsaz2020", "bigdeli2022", "refairmulate2025")


def means(report, run=0):
    return {text: found["mean"] for text, found in report["runs"][run]["measures"].items()}


def test_json_has_exactly_the_promised_keys(askew):
    report = askew(f"measure old.run new.run {ALL} --measures 'RR@10 ARaB(tf)@10' --json").json
    assert list(report) == ["runs"]
    assert [list(run) for run in report["runs"]] == [["run", "measures"]] * 2
    assert [run["run"] for run in report["runs"]] == ["old.run", "new.run"]
    for run in report["runs"]:
        assert list(run["measures"]) == ["RR@10", "ARaB(tf)@10"]
        assert all(
            list(found) == ["mean", "low", "high", "n", "interval", "signature"] for found in run["measures"].values()
        )


def test_json_numbers_are_those_computed_by_hand(askew):
    report = askew(f"measure old.run {ALL} --measures 'RR@10 RaB(tc)@2 ARaB(tc)@10' --json").json
    assert means(report) == pytest.approx({"RR@10": 0.75, "RaB(tc)@2": 0.5, "ARaB(tc)@10": (2 / 3 + 11 / 9) / 2})


def test_json_holds_the_values_of_each_query_only_when_asked(askew):
    report = askew(f"measure old.run {ALL} --measures 'RR@10 RaB(tc)@2' --json --per-query").json
    assert list(report["runs"][0]) == ["run", "measures", "per_query"]
    assert report["runs"][0]["per_query"] == {
        "q1": {"RR@10": 0.5, "RaB(tc)@2": 0.0},
        "q2": {"RR@10": 1.0, "RaB(tc)@2": 1.0},
    }


def test_measures_are_named_as_they_were_asked_for(askew):
    asked = ["ARaB(tf, sign=abs)@10", "LIWC@10", "MRR@10", "NFaiRR( threshold = 2 )@5"]
    report = askew(["measure", "old.run", *ALL.split(), "--measures", " ".join(asked), "--json"]).json
    assert list(report["runs"][0]["measures"]) == asked


def test_the_interval_holds_the_mean_and_n_counts_the_queries(askew):
    for found in askew(f"measure old.run {ALL} --json").json["runs"][0]["measures"].values():
        assert found["low"] <= found["mean"] <= found["high"]
        assert found["n"] == 2


def test_without_a_choice_lean_is_measured_with_docs_and_effectiveness_with_qrels(askew):
    with_docs = list(means(askew("measure old.run --docs docs.tsv --json").json))
    with_qrels = list(means(askew("measure old.run --qrels qrels.txt --json").json))
    assert "ARaB(tf)@10" in with_docs and "RR@10" not in with_docs
    assert "RR@10" in with_qrels and "ARaB(tf)@10" not in with_qrels
    assert list(means(askew(f"measure old.run {ALL} --json").json)) == with_qrels + with_docs


def test_tsv_has_a_header_and_the_numbers_of_json_to_the_last_digit(askew):
    command = f"measure old.run new.run {ALL} --measures 'RR@10 ARaB(tf)@10'"
    header, *lines = [line.split("\t") for line in askew(f"{command} --tsv").out.splitlines()]
    assert header == ["run", "measure", "mean", "low", "high", "n", "signature"]
    expected = [
        [run["run"], text, repr(m["mean"]), repr(m["low"]), repr(m["high"]), str(m["n"]), m["signature"]]
        for run in askew(f"{command} --json").json["runs"]
        for text, m in run["measures"].items()
    ]
    assert lines == expected


def test_tsv_per_query_has_one_value_a_line(askew):
    result = askew(f"measure old.run {ALL} --measures 'RR@10' --tsv --per-query")
    assert result.out == "run\tquery_id\tmeasure\tvalue\nold.run\tq1\tRR@10\t0.5\nold.run\tq2\tRR@10\t1.0\n"


def test_the_table_shows_several_runs_side_by_side(askew):
    table = askew(f"measure old.run new.run {ALL} --measures 'RR@10 RaB(tc)@2'").table
    assert "RR@10" in table and "RaB(tc)@2" in table
    assert [line.split()[:3] for line in table.splitlines() if ".run" in line] == [
        ["old.run", "0.7500", "0.5000"],
        ["new.run", "0.6667", "-0.5000"],
    ]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_table_fits_eighty_columns_however_many_measures_there_are(askew, preset):
    result = askew(f"measure old.run new.run {ALL} --background new.run --preset {preset} --per-query")
    listed = askew(f"show preset {preset} --json").json["measures"]
    assert all(text in result.table for text in listed)


def test_a_measure_wider_than_the_terminal_loses_neither_its_text_nor_the_run(askew):
    long = "ARaB(tf, lexicon=rekabsaz2020, tokens=word, overlap=first, missing=zero, groups=male-female)@10"
    table = askew(["measure", "old.run", *ALL.split(), "--measures", long]).table
    assert "old.run" in table
    assert long.replace(" ", "") in "".join(table.split())


def test_a_run_name_longer_than_its_column_is_shown_whole(askew, files):
    name = "a-very-long-name-of-a-run-that-does-not-fit-into-its-column-at-all.run"
    files.run(name, {"q1": ["d1"]})
    first_column = [
        line[:30].strip() for line in askew(f"measure {name} --docs docs.tsv --measures ARaB@10").table.splitlines()
    ]
    assert name in "".join(first_column)


def test_wide_letters_are_counted_as_wide_when_the_table_is_made_to_fit(askew, files):
    files.run("old.run", {"検索語" * 9: ["d1"], "q2": ["d2"]})
    result = askew("measure old.run --docs docs.tsv --measures 'ARaB(tc)@10 ARaB(tf)@10 ARaB(bool)@10' --per-query")
    assert max(map(cell_len, result.out.splitlines())) <= 80


def test_per_query_shows_each_query_in_the_table(askew):
    table = askew(f"measure old.run {ALL} --measures 'RaB(tc)@2' --per-query").table
    assert [line.split() for line in table.splitlines() if line.strip().startswith("q")] == [
        ["query", "RaB(tc)@2"],
        ["q1", "0.0000"],
        ["q2", "1.0000"],
    ]


def test_signature_tells_what_a_measure_stands_for(askew):
    result = askew(f"measure old.run {ALL} --measures 'RR@10' --signature")
    assert "RR@10 = RR(no_relevant='absent',order='score',rel=1,unanswered='zero',unjudged='error')@10\n" in result.out


def test_signature_stays_out_of_the_columns_of_tsv(askew):
    result = askew(f"measure old.run {ALL} --measures 'RR@10' --signature --tsv")
    assert result.err == "RR@10 = RR(no_relevant='absent',order='score',rel=1,unanswered='zero',unjudged='error')@10\n"
    assert all(line.count("\t") == 6 for line in result.out.splitlines())


def test_measuring_leaves_no_file_behind(askew):
    before = sorted(Path().iterdir())
    assert askew(f"measure old.run {ALL} --json").code == 0
    assert sorted(Path().iterdir()) == before


def test_the_order_of_the_lines_changes_neither_means_nor_intervals(askew):
    demo = demo_files()
    lines = Path(demo.runs[0]).read_text(encoding="utf-8").splitlines(keepends=True)
    Path("reversed.run").write_text("".join(reversed(lines)), encoding="utf-8")
    command = f"--docs {demo.docs} --qrels {demo.qrels} --measures 'RR@10 ARaB(tf)@10 NFaiRR@10' --json"
    there, back = (askew(f"measure {run} {command}").json["runs"][0] for run in (demo.runs[0], "reversed.run"))
    assert there["measures"] == back["measures"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_measures_all_it_lists_with_the_signatures_it_shows(askew, preset):
    report = askew(f"measure old.run new.run {ALL} --background new.run --preset {preset} --json").json
    listed = askew(f"show preset {preset} --json").json["measures"]
    for run in report["runs"]:
        signatures = {text: found["signature"] for text, found in run["measures"].items()}
        assert {text: re.sub("run@[0-9a-f]{12}", "run", found) for text, found in signatures.items()} == listed
        assert all(math.isfinite(found["mean"]) for found in run["measures"].values())


def test_a_preset_tells_what_it_leaves_out_for_want_of_a_background(askew):
    result = askew("measure old.run --docs docs.tsv --preset rekabsaz2020 --json")
    assert not any(text.startswith("NFaiRR") for text in means(result.json))
    assert "note: " in result.err and "--background" in result.err and "NFaiRR@50" in result.err


def test_a_preset_and_own_measures_go_together(askew):
    report = askew(f"measure old.run {ALL} --preset rekabsaz2020 --measures 'ARaB(tc)@3' --json").json
    assert "tokens='blank'" in report["runs"][0]["measures"]["ARaB(tc)@3"]["signature"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("age.toml", "[groups]\nyoung = ['kid', 'teen*']\nold = ['elder', 'old age']\n"),
        ("age.csv", "term,group\nkid,young\nteen*,young\nelder,old\nold age,old\n"),
    ],
)
def test_a_lexicon_of_ones_own_with_other_groups_is_first_minus_second_named_or_not(askew, files, name, text):
    files.text(name, text)
    files.docs("docs.tsv", {"d1": "Teenagers and a kid", "d2": "an elder, in old age, and more old age"})
    files.run("old.run", {"q1": ["d1"], "q2": ["d2"]})
    for given in ("", ":young,old"):
        command = f"measure old.run --docs docs.tsv --groups {name}{given} --measures 'RaB(tc)@1' --json --per-query"
        result = askew(command).json
        assert result["runs"][0]["per_query"] == {"q1": {"RaB(tc)@1": 2.0}, "q2": {"RaB(tc)@1": -3.0}}
        assert "groups='young-old'" in result["runs"][0]["measures"]["RaB(tc)@1"]["signature"]


def test_a_lexicon_of_three_groups_asks_for_a_pair_and_takes_the_one_it_suggests(askew, files):
    files.text("age.toml", "[groups]\nyoung = ['he']\nmiddle = ['is']\nold = ['she']\n")
    command = "measure old.run --docs docs.tsv --lexicon age.toml --json --measures"
    askew(f"{command} RaB@10").refused(2, "young, middle, old", "RaB(groups='young-old')")
    assert "groups='young-old'" in askew(f"""{command} "RaB(groups='young-old')@10" """).out


def test_a_table_with_several_lexicons_says_which_measures_use_which(askew):
    command = "measure old.run --docs docs.tsv --measures 'ARaB(tf)@10 NFaiRR(background=self)@10 ARaB(bool)@10'"
    said = " ".join(askew(command).out.split())
    assert " rekabsaz2020 for ARaB(tf)@10, " in said and "; rekabsaz2021 for NFaiRR(" in said
    assert "lexicons: rekabsaz2020 for" in askew(command.replace("measure old.run", "compare old.run new.run")).out
    assert "lexicons:" not in askew(f"{command} --lexicon gender").out
    single = askew("measure old.run --docs docs.tsv --measures 'ARaB(tf)@10'")
    assert "lexicons:" not in single.out


def test_the_default_measures_take_a_lexicon_of_other_groups(askew, files):
    files.text("age.toml", "[groups]\nyoung = ['he']\nold = ['she']\n")
    report = askew("measure old.run --docs docs.tsv --lexicon age.toml --json").json
    assert all("lexicon='age@" in found["signature"] for found in report["runs"][0]["measures"].values())


def test_queries_restrict_the_run_and_what_is_left_out_is_told(askew, files):
    files.text("queries.tsv", "q2\tsecond\nq9\tnot in the run\n")
    result = askew(f"measure old.run {ALL} --queries queries.tsv --measures RR@10 --json --per-query")
    assert list(result.json["runs"][0]["per_query"]) == ["q2"]
    assert "'q9'" in result.err and result.noted("1 queries", "not requested")


def test_a_label_chooses_among_annotated_queries(askew, files):
    files.text("queries.csv", "q1,a query, with commas,n\nq2,another,m\n")
    report = askew(f"measure old.run {ALL} --queries queries.csv --label n --measures RR@10 --json --per-query").json
    assert report["runs"][0]["per_query"] == {"q1": {"RR@10": 0.5}}


def test_a_label_that_is_a_number_in_json_can_be_chosen(askew, files):
    files.text("queries.jsonl", '{"query_id": "q1", "text": "x", "label": 1}\n{"query_id": "q2", "text": "y"}\n')
    result = askew(f"measure old.run {ALL} --queries queries.jsonl --label 1 --measures RR@10 --json --per-query")
    assert list(result.json["runs"][0]["per_query"]) == ["q1"]


def test_a_background_run_is_what_nfairr_compares_with(askew, files):
    files.run("old.run", {"q1": ["d5"]})
    files.run("background.run", {"q1": ["d3"]})
    command = "measure old.run --docs docs.tsv --measures NFaiRR@1 --json"
    assert means(askew(command).json) == {"NFaiRR@1": 1.0}
    assert means(askew(f"{command} --background background.run").json) == pytest.approx({"NFaiRR@1": 2 / 3})


@pytest.mark.parametrize(("policy", "expected"), [("zero", 1.0), ("drop", 0.0), ("skip", 2.0)])
def test_a_document_without_text_is_treated_as_asked(askew, files, policy, expected):
    files.run("old.run", {"q1": ["d1", "lost", "d2"]})
    result = askew(f"measure old.run --docs docs.tsv --measures 'RaB(tc)@2' --missing {policy} --json")
    assert means(result.json) == {"RaB(tc)@2": expected}


def test_by_default_a_document_without_text_is_an_error_that_names_it(askew, files):
    files.run("old.run", {"q1": ["d1", "lost", "d2"]})
    result = askew("measure old.run --docs docs.tsv --measures 'RaB(tc)@2' --json")
    result.refused(3, "'lost'", "rank 2", "'q1'", "--missing")


def test_a_document_without_text_beyond_the_cutoff_does_not_matter(askew, files):
    files.run("old.run", {"q1": ["d1", "d2", "lost"]})
    result = askew("measure old.run --docs docs.tsv --measures 'RaB(tc)@2' --json")
    assert means(result.json) == {"RaB(tc)@2": 0.0}


@pytest.mark.parametrize(("policy", "mean", "n"), [("zero", 0.25, 2), ("absent", 0.5, 1)])
def test_a_query_without_judgements_is_treated_as_asked_and_told(askew, files, policy, mean, n):
    files.text("qrels.txt", "q1 0 d2 1\n")
    result = askew(f"measure old.run --qrels qrels.txt --measures RR@10 --unjudged {policy} --json")
    found = result.json["runs"][0]["measures"]["RR@10"]
    assert (found["mean"], found["n"]) == (mean, n)
    assert result.noted("1 of 2 queries")


def test_a_query_left_out_is_not_among_the_values_of_each_query(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\n")
    result = askew("measure old.run --qrels qrels.txt --measures RR@10 --unjudged absent --json --per-query")
    assert result.json["runs"][0]["per_query"] == {"q1": {"RR@10": 0.5}, "q2": {}}


def test_runs_with_different_numbers_of_values_each_show_their_own_n(askew, files):
    files.run("new.run", {"q1": ["d1"], "q9": ["d1"]})
    table = askew(f"measure old.run new.run {ALL} --measures RR@10 --unjudged absent --unanswered absent").table
    assert "n=2" in table and "n=1" in table


@pytest.mark.parametrize(("order", "expected"), [("score", -2.0), ("file", 2.0)])
def test_the_order_is_by_score_or_by_line(askew, files, order, expected):
    files.text("old.run", "q1 Q0 d1 1 1.0 tag\nq1 Q0 d2 2 5.0 tag\n")
    result = askew(f"measure old.run --docs docs.tsv --measures 'RaB(tc)@1' --order {order} --json")
    assert means(result.json) == {"RaB(tc)@1": expected}
    assert ("rank column disagrees" in result.err) == (order == "score")


def test_a_parameter_in_the_measure_wins_over_the_option(askew, files):
    files.text("old.run", "q1 Q0 d1 1 1.0 tag\nq1 Q0 d2 2 5.0 tag\n")
    command = "measure old.run --docs docs.tsv --measures 'RaB(tc,order=file)@1' --order score --json"
    assert means(askew(command).json) == {"RaB(tc,order=file)@1": 2.0}


@pytest.mark.parametrize(("tokens", "expected"), [("word", 2.0), ("blank", 1.0), ("seyedsalehi", 2.0)])
def test_the_tokenizer_decides_whether_a_word_before_a_full_stop_counts(askew, tokens, expected):
    result = askew(f"measure old.run --docs docs.tsv --tokens {tokens} --measures 'RaB(tc)@1' --json")
    assert means(result.json) == {"RaB(tc)@1": expected}


def test_fields_choose_what_makes_up_the_text(askew, files):
    rows = [{"id": doc, "title": "She", "text": "he he"} for doc in ("d1", "d2", "d3", "d4")]
    files.text("docs.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    command = "measure old.run --docs docs.jsonl --measures 'RaB(tc)@1' --json"
    assert means(askew(command).json) == {"RaB(tc)@1": 2.0}
    assert means(askew(f"{command} --fields title,text").json) == {"RaB(tc)@1": 1.0}


def test_the_format_of_a_run_does_not_change_the_numbers(askew, files):
    expected = means(askew(f"measure old.run {ALL} --json").json)
    lines = [line.split() for line in Path("old.run").read_text().splitlines()]
    rows = [{"query_id": q, "doc_id": d, "score": float(s)} for q, _, d, _, s, _ in lines]
    Path("old.run.gz").write_bytes(gzip.compress(Path("old.run").read_bytes()))
    files.text("old.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    files.text("old.tsv", "".join(f"{q}\t{d}\t{rank}\n" for q, _, d, rank, _, _ in lines))
    pl.DataFrame(rows).write_parquet("old.parquet")
    report = askew(f"measure old.run.gz old.jsonl old.tsv old.parquet {ALL} --json").json
    assert [means(report, run) for run in range(4)] == [expected] * 4


def test_two_runs_of_the_same_file_name_are_shown_by_their_paths(askew):
    Path("other").mkdir()
    shutil.copy("new.run", "other/old.run")
    report = askew(f"measure old.run other/old.run new.run {ALL} --json").json
    assert [run["run"] for run in report["runs"]] == ["old.run", "other/old.run", "new.run"]
    assert means(report, 1) == means(report, 2)
    assert [askew(f"compare old.run other/old.run {ALL} --json").json[key] for key in ("old", "new")] == [
        "old.run",
        "other/old.run",
    ]


def test_a_background_that_no_measure_uses_is_told(askew):
    result = askew("measure old.run --docs docs.tsv --background new.run --measures ARaB@10 --json")
    assert len(result.notes) == 1 and result.noted("background run")


def test_nothing_piped_has_blanks_at_the_end_of_a_line(askew):
    for command in (f"measure old.run new.run {ALL} --per-query", f"compare old.run new.run {ALL}", "list presets"):
        assert not [line for line in askew(command).out.splitlines() if line != line.rstrip()]


def test_the_title_of_a_narrow_table_stays_on_its_line(askew):
    table = askew(f"measure old.run {ALL} --measures RR@10").table
    assert table.partition("\n")[0].endswith(" [95% interval]")


def test_on_a_very_narrow_screen_nothing_is_cut(askew, monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    out = askew(f"measure old.run {ALL} --measures 'ARaB(tf, sign=running-abs)@10'").out
    assert max(map(len, out.splitlines())) <= 24
    assert "old.run" in out and "ARaB(tf,sign=running-abs)@10" in "".join(out.split())


def test_notes_go_to_stderr_so_that_json_can_be_piped(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\nq1 0 d2 1\nq2 0 d1 1\n")
    result = askew(f"measure old.run {ALL} --json")
    assert result.json
    assert len(result.err.splitlines()) == 1 and result.noted("qrels.txt: 1 judgements")


@pytest.mark.parametrize("name", ["[red]x[-red]", "\x1b[31mred\x1b[0m", ":cat:", "\x9b31m", "a\tb\rc\x07"])
def test_a_run_name_is_shown_as_text_and_never_obeyed(askew, files, name):
    files.run(f"{name}.run", {"q1": ["d1"]})
    result = askew(["measure", f"{name}.run", "--docs", "docs.tsv", "--measures", "ARaB@10", "--per-query"])
    shown = "".join(char if char.isprintable() else "\ufffd" for char in name)
    assert result.out.count(f"{shown}.run") == 2
    assert result.out.replace("\n", "").isprintable()


@pytest.mark.parametrize("query", ["[red]x[/red]", "\x1b[31mred\x1b[0m", ":cat:", "\x9b31m", "bell\x07"])
def test_a_query_id_is_shown_as_text_and_never_obeyed(askew, files, query):
    files.run("old.run", {query: ["d1"]})
    shown = "".join(char if char.isprintable() else "\ufffd" for char in query)
    for form in ("", "--tsv"):
        result = askew(f"measure old.run --docs docs.tsv --measures ARaB@10 --per-query {form}")
        assert shown in result.out
        assert result.out.replace("\n", "").replace("\t", "").isprintable()


def test_json_keeps_a_strange_query_id_exactly(askew, files):
    files.run("old.run", {"\x1b[31mred": ["d1"]})
    result = askew("measure old.run --docs docs.tsv --measures ARaB@10 --per-query --json")
    assert list(result.json["runs"][0]["per_query"]) == ["\x1b[31mred"]
    assert "\x1b" not in result.out


def test_a_note_with_a_strange_query_id_is_shown_as_text(askew, files):
    files.text("queries.tsv", "q1\tfirst\n\x1b[31mred\tnot in the run\n")
    result = askew(f"measure old.run {ALL} --queries queries.tsv --measures RR@10")
    assert "red" in result.err and "\x1b" not in result.err


def test_several_runs_each_against_their_own_documents_are_told(askew):
    command = "measure old.run new.run --docs docs.tsv --json --measures"
    told = askew(f"{command} 'NFaiRR@2 NFaiRR@3 ARaB@2'")
    assert len(told.err.splitlines()) == 1 and told.noted("NFaiRR@2, NFaiRR@3: ", " --background ")
    assert askew(f"{command} NFaiRR@2 --background old.run").err == ""
    assert askew(f"{command} ARaB@2").err == ""
    single = askew("measure old.run --docs docs.tsv --measures NFaiRR@2 --json")
    assert single.err == ""


@pytest.mark.parametrize("asked", ["--measures 'NFaiRR(background=self)@2'", "--preset refairmulate2025"])
def test_where_the_measure_itself_says_self_the_note_tells_how_to_ask_otherwise(askew, asked):
    assert askew(f"measure old.run new.run {ALL} {asked} --json").noted("NFaiRR(background=run)", " --background ")


def test_what_a_preset_changes_stands_below_the_table(askew):
    command = "measure old.run --docs docs.tsv --measures 'ARaB(tf)@10 ARaB(tf,tokens=word)@10'"
    below = " ".join(askew(f"{command} --preset refairmulate2025").table.rpartition("]\n")[2].split())
    changed = "overlap=first, missing=drop, order=file, digits=4"
    assert f"ARaB(tf)@10: sign=running-abs, tokens=blank, {changed} " in below
    assert f"tokens=word)@10: sign=running-abs, {changed} " in below
    assert "preset: refairmulate2025" in below
    assert "preset" not in askew(command).table


def test_measures_with_the_same_changes_share_a_line(askew):
    table = askew("measure old.run --docs docs.tsv --measures 'RaB@1 FaiRR@2 RaB@2' --tokens blank").table
    assert table.splitlines()[-1] == "RaB@1, FaiRR@2, RaB@2: tokens=blank"


def test_what_is_changed_stays_out_of_what_machines_read(askew):
    for form in ("--json", "--tsv"):
        assert "askew show preset" not in askew(f"measure old.run {ALL} --preset refairmulate2025 {form}").out


def test_what_is_changed_is_wrapped_to_the_terminal(askew, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    out = askew("measure old.run --docs docs.tsv --measures 'ARaB@2' --preset refairmulate2025").out
    assert max(map(len, out.splitlines())) <= 30
    assert "sign=running-abs," in out.split()


def test_liwc_without_its_dictionary_is_told_to_be_another_thing(askew, files):
    command = "measure old.run --docs docs.tsv --json --measures"
    told = askew(f"{command} 'LIWC@10 LIWC@5 LexiconShare@3'")
    assert told.noted("LIWC@10, LIWC@5: ", " gender ", "--lexicon") and told.err.count("\n") == 1
    assert askew(f"{command} LexiconShare@10").err == ""
    files.text("liwc.dic", "%\n1\tfemale\n2\tmale\n%\nshe\t1\nhe\t2\n")
    assert askew(f"{command} LIWC@10 --lexicon liwc.dic").err == ""


def test_a_judged_query_that_the_run_lacks_has_effectiveness_zero_and_no_lean(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\nq2 0 d1 1\nq8 0 d1 1\n")
    command = "measure old.run --docs docs.tsv --qrels qrels.txt --json --per-query --measures"
    result = askew(f"{command} 'RR@10 ARaB@2'")
    assert len(result.err.splitlines()) == 1
    assert result.noted("old.run: ", "1 of 3 judged", "'q8'", "--queries", "--unanswered absent")
    found = result.json["runs"][0]
    assert (found["measures"]["RR@10"]["n"], found["measures"]["ARaB@2"]["n"]) == (3, 2)
    assert found["per_query"]["q8"] == {"RR@10": 0.0}
    other = askew(f"{command} 'RR@10 ARaB@2' --unanswered absent")
    assert other.json["runs"][0]["measures"]["RR@10"]["n"] == 2
    assert other.noted("1 of 3 judged", "'q8'", "--unanswered zero")
    assert askew(f"{command} ARaB@2").err == ""


def test_a_query_without_any_relevant_document_is_left_out_of_effectiveness_and_counted(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\nq2 0 d1 0\n")
    command = "measure old.run --docs docs.tsv --qrels qrels.txt --json --measures 'RR@10 nDCG@10 Judged@10 ARaB@2'"
    result = askew(command)
    assert {text: found["n"] for text, found in result.json["runs"][0]["measures"].items()} == {
        "RR@10": 1, "nDCG@10": 1, "Judged@10": 2, "ARaB@2": 2
    }  # fmt: skip
    assert len(result.err.splitlines()) == 1
    assert result.noted("old.run: 1 of 2 judged", " RR@10, nDCG@10 ", "--no-relevant zero")
    zero = askew(f"{command} --no-relevant zero")
    assert zero.json["runs"][0]["measures"]["RR@10"]["n"] == 2
    assert zero.noted("1 of 2 judged", " 0 in RR@10, nDCG@10")


def test_queries_of_the_run_without_judgement_are_told_once_and_counted_among_those_of_the_run(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\nq8 0 d1 1\n")
    told = askew("measure old.run --qrels qrels.txt --measures RR@10 --unjudged absent --json")
    assert told.noted("1 of 2 queries") and "is not defined" not in told.err


def test_judged_documents_of_a_run_that_misses_a_query_are_measured(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\nq2 0 d1 1\nq8 0 d1 1\n")
    found = askew("measure old.run --qrels qrels.txt --measures Judged@10 --json").json["runs"][0]["measures"]
    assert found["Judged@10"]["n"] == 3


def test_a_rounded_value_may_lie_past_its_bound(askew, files):
    files.text("docs.tsv", "".join(f"d{i}\tplain text\n" for i in range(20)))
    files.run("old.run", {"q1": [f"d{i}" for i in range(20)], "q2": ["d1"]})
    files.text("qrels.txt", "q1 0 d2 1\nq2 0 d1 1\n")
    found = askew("measure old.run --docs docs.tsv --qrels qrels.txt --preset refairmulate2025 --json --per-query").json
    assert found["runs"][0]["per_query"]["q1"]["FaiRR@10"] == 4.5436
    assert found["runs"][0]["measures"]["FaiRR@10"]["interval"] == "bounded"


def test_the_level_of_relevance_decides_which_queries_have_a_relevant_document(askew, files):
    files.text("qrels.txt", "q1 0 d2 2\nq2 0 d1 1\n")
    found = askew("measure old.run --qrels qrels.txt --json --measures 'RR@10 RR(rel=2)@10'").json["runs"][0][
        "measures"
    ]
    assert (found["RR@10"]["n"], found["RR(rel=2)@10"]["n"]) == (2, 1)


@pytest.mark.parametrize("option", ["--unanswered", "--no-relevant"])
def test_an_unknown_way_to_count_queries_is_refused(askew, option):
    askew(f"measure old.run {ALL} {option} perhaps").refused(2, option, "'perhaps'", "absent")


def test_judged_queries_that_nobody_asked_for_are_not_missed(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\nq2 0 d1 1\nq9 0 d1 0\n")
    files.text("queries.tsv", "q1\tfirst\nq2\tsecond\n")
    assert askew("measure old.run --qrels qrels.txt --queries queries.tsv --measures RR@10 --json").err == ""


def test_the_groups_of_positive_and_negative_values_are_told(askew, files):
    files.text("age.toml", "[groups]\nyoung = ['he']\nold = ['she']\n")
    command = "measure old.run --docs docs.tsv --lexicon age.toml --measures"
    said = " ".join(askew(f"{command} 'RaB(tc)@1 RaB(tc,sign=abs)@1 FaiRR@1'").table.split())
    assert " RaB(tc)@1: positive " in said and said.index("toward young, ") < said.index("toward old; ")
    assert "sign=abs)@1: positive" not in said and "FaiRR@1: positive" not in said and "compared groups" not in said
    said = " ".join(askew(f"{command} 'RaB(tc,groups=old-young)@1'").table.split())
    assert said.index("toward old, ") < said.index("toward young; ")
    said = " ".join(askew("measure old.run --docs docs.tsv --measures RaB@1").table.split())
    assert said.index("toward male, ") < said.index("toward female; ")


def test_the_groups_of_a_measure_of_more_than_two_are_told(askew):
    said = " ".join(askew("measure old.run --docs docs.tsv --groups gender --measures 'RaB@1 FaiRR@1'").table.split())
    assert re.search(r"RaB(\(tf\))?@1: [^.]*toward male", said)
    assert "FaiRR@1: compared groups: female, male and nonbinary." in said


def test_a_measure_is_shown_with_the_background_it_has_when_none_is_given(askew):
    facts = askew("show measure NFaiRR --json").json
    assert "background='self'" in facts["signature"]
    assert facts["parameters"]["background"].startswith("self [run, self]: ")


def test_parts_fit_the_terminal_and_add_up_to_the_measure(askew):
    demo = demo_files()
    given = f"measure {demo.runs[0]} --docs {demo.docs} --qrels {demo.qrels} --queries {demo.queries_file}"
    printed = askew(f"{given} --measures 'ARaB(tf)@10' --decompose").table
    assert "why: off topic" in printed
    assert "who: people in general" in " ".join(printed.split())
    report = askew(f"{given} --measures 'ARaB(tf)@10' --decompose --json").json
    nets = [part["net"] for part in report["parts"][0]["parts"] if part["kind"] == "why"]
    assert sum(nets) == pytest.approx(means(report)["ARaB(tf)@10"])


def test_parts_have_no_form_as_columns(askew):
    found = askew(f"measure old.run {ALL} --measures 'ARaB(tf)@10' --decompose --tsv")
    found.refused(2, "--decompose and --tsv exclude each other")


def test_the_note_on_parts_names_a_row_that_the_table_of_the_resolver_has():
    parts = [LeanPart("why", name, 0.5, 0.4, 0.6, 0.5, {"male": 0.1}, 0.1, 0.0, 0.2) for name in WHY[::2]]
    made = parts_table(Decomposition("a.run", "ARaB(tf)@10", "s", "neural", 2, 3, 0.0, 0.1, parts), 1)
    assert f'"{str(made.rows[1][0]).removeprefix("why: ")}"' in made.notes[0]
