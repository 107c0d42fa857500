"""``askew compare``: two runs, query by query."""

import json
import shutil
from pathlib import Path

import pytest

import askew as askew_package
from askew.data.collection import demo_files
from askew.measures.statistics.significance import TESTS

ALL = "--docs docs.tsv --qrels qrels.txt"
DISTANCE = "ARaB(tf,sign=abs)@10"
KEYS = [
    "n", "nonzero", "old", "new", "relative", "gain", "low", "high", "method", "p", "p_bounded", "skewness", "d_z",
    "improved", "worsened", "unchanged",
    "smallest_margin", "not_ruled_out", "detectable", "margin", "p_no_loss", "p_equivalent", "p_holm", "p_no_loss_holm",
    "p_equivalent_holm", "shift", "shift_low", "shift_high", "p_shift", "signature",
]  # fmt: skip
DEMO = demo_files()
NOT_RULED_OUT = (
    "nDCG@10 may lose 0.01: the test cannot rule out a mean loss of 0.01 or more (p = 0.381, Holm-corrected)"
)
COMPARE_DEMO = f"compare {DEMO.runs[0]} {DEMO.runs[1]} --docs {DEMO.docs} --qrels {DEMO.qrels}"


def test_json_has_exactly_the_promised_keys(askew):
    report = askew(f"compare old.run new.run {ALL} --measures 'RR@10 ARaB(tf)@10' --json").json
    assert list(report) == ["old", "new", "null_hypotheses", "tests", "measures", "failures"]
    assert list(report["null_hypotheses"]) == ["p"]
    assert (report["old"], report["new"]) == ("old.run", "new.run")
    assert list(report["measures"]) == ["RR@10", "ARaB(tf)@10"]
    assert [list(row) for row in report["measures"].values()] == [KEYS, KEYS]


def test_the_mean_of_a_signed_measure_is_also_compared_with_its_sign(askew):
    command = f"{COMPARE_DEMO} --measures 'nDCG@10 ARaB(tf)@10 ARaB(tf,sign=abs)@10'"
    rows = askew(f"{command} --json").json["measures"]
    found = rows["ARaB(tf)@10"]
    assert found["shift"] == pytest.approx(found["new"] - found["old"]) and found["shift"] < 0 < found["gain"]
    assert (
        found["shift_low"] < found["shift"] < 0 < found["shift_high"]
        and 0.05 < found["p_shift"] < 0.1
        and found["relative"] is None
    )
    assert all(rows[name]["shift"] is None for name in ("nDCG@10", DISTANCE))
    said = " ".join(askew(command).table.split())
    assert " -0.0758 [-0.153, +0.001], toward female (p 0.054," in said
    assert said.count("with its sign") == 1


def test_two_names_of_the_same_test_have_a_note(askew):
    command = f"{COMPARE_DEMO} --measures"
    twice = askew(f"{command} 'nDCG@10 ARaB(tf)@10 ARaB(tf,sign=abs)@10'")
    assert twice.noted("ARaB(tf)@10", DISTANCE, "the same gain")
    assert "(1 of effectiveness and 1 of lean)" in " ".join(twice.table.split())
    once, both = (
        askew(f"{command} 'nDCG@10 ARaB(tf)@10{more}' --json").json["measures"]
        for more in ("", " ARaB(tf,sign=abs)@10")
    )
    assert both[DISTANCE]["p_holm"] == both["ARaB(tf)@10"]["p_holm"] == once["ARaB(tf)@10"]["p_holm"]
    others = askew(f"{command} 'nDCG@10 ARaB(tf)@10 ARaB(tc)@10'")
    assert "the same gain" not in others.err


def test_a_condition_that_needs_a_bounded_measure_is_named_itself(askew):
    refused = askew(f"{COMPARE_DEMO} --measures 'ARaB(tf)@10' --fail-if 'ARaB(tf)@10 may lose 0.01'")
    refused.refused(2, "a condition 'may lose' of --fail-if names the measure 'ARaB(tf)@10', which has no upper bound")
    assert "Use 'loses' instead" in refused.err and "--margin" not in refused.err


def test_the_numbers_are_those_computed_by_hand(askew):
    row = askew(f"compare old.run new.run {ALL} --measures RR@10 --json").json["measures"]["RR@10"]
    assert (row["n"], row["improved"], row["worsened"], row["unchanged"], row["p"]) == (2, 1, 1, 0, 1.0)
    assert row["old"] == 0.75
    assert row["new"] == pytest.approx(2 / 3)
    assert row["gain"] == pytest.approx(-1 / 12)
    assert row["relative"] is None


def test_improved_worsened_and_unchanged_add_up_to_n_for_every_measure(askew):
    for row in askew(f"{COMPARE_DEMO} --json").json["measures"].values():
        assert row["improved"] + row["worsened"] + row["unchanged"] == row["n"] == 96
        is_shown = row["improved"] + row["worsened"] >= 20
        assert (row["low"] <= row["gain"] <= row["high"]) if is_shown else row["low"] is None
        assert 0 < row["p"] <= row["p_holm"] <= 1


def test_a_lean_nearer_to_zero_is_a_gain_whichever_side_it_was_on(askew, files):
    files.run("old.run", {"q1": ["d1"], "q2": ["d2"]})
    files.run("new.run", {"q1": ["d3"], "q2": ["d4"]})
    command = "compare old.run new.run --docs docs.tsv --measures 'RaB(tc)@1 RaB(tc,sign=abs)@1' --json"
    for row in askew(command).json["measures"].values():
        assert (row["gain"], row["improved"], row["worsened"]) == (2.0, 2, 0)


def test_the_other_way_round_the_gain_has_the_other_sign(askew):
    there = askew(f"compare old.run new.run {ALL} --json").json["measures"]
    back = askew(f"compare new.run old.run {ALL} --json").json["measures"]
    for text, row in there.items():
        assert back[text]["gain"] == pytest.approx(-row["gain"])
        assert (back[text]["improved"], back[text]["worsened"]) == (row["worsened"], row["improved"])
        assert back[text]["p"] == pytest.approx(row["p"])


@pytest.mark.parametrize("test", TESTS)
def test_identical_runs_have_no_gain_and_a_p_of_one(askew, test):
    shutil.copy("old.run", "copy.run")
    for row in askew(f"compare old.run copy.run {ALL} --test {test} --json").json["measures"].values():
        assert (row["gain"], row["d_z"], row["method"]) == (0, None, test)
        # Two queries say little about others: of bounded measures almost anything is left open, of others all.
        bounded = test == "bounded" and row["p_bounded"] is not None
        assert (row["low"] < -0.8 < 0.8 < row["high"]) if bounded else row["low"] is None
        assert (row["p"], row["p_holm"]) == ((None, None) if test == "bounded" and not bounded else (1, 1))
        assert (row["improved"], row["worsened"], row["unchanged"]) == (0, 0, row["n"])


def test_the_same_file_twice_is_compared_or_refused_but_never_a_crash(askew):
    assert askew(f"compare old.run old.run {ALL}").code in (0, 2)


def test_a_margin_is_for_measures_of_effectiveness_and_adds_two_tests(askew):
    report = askew(f"compare old.run new.run {ALL} --measures 'RR@10 ARaB(tf)@10' --margin 0.5 --json").json
    row, lean = report["measures"].values()
    assert row["margin"] == 0.5
    assert 0 < row["p_no_loss"] <= row["p_equivalent"] <= 1
    assert (lean["margin"], lean["p_no_loss"], lean["p_equivalent"]) == (None, None, None)
    assert "p_no_loss" in report["null_hypotheses"]


def test_a_margin_can_be_given_for_each_measure(askew):
    measures = "'RR@10 AP@10 ARaB(bool)@10'"
    report = askew(f"compare old.run new.run {ALL} --measures {measures} --margin 'RR@10=0.1 ARaB(bool)@10=0.9' --json")
    assert [row["margin"] for row in report.json["measures"].values()] == [0.1, None, 0.9]


def test_a_margin_can_be_given_for_a_measure_with_blanks_in_its_text(askew):
    text = "ARaB(bool, sign=abs)@10"
    command = ["compare", "old.run", "new.run", *ALL.split(), "--measures", text, "--margin", f"{text}=0.1", "--json"]
    assert askew(command).json["measures"][text]["margin"] == 0.1


def test_a_loss_of_a_measure_without_bounds_cannot_be_ruled_out(askew):
    command = ["compare", "old.run", "new.run", *ALL.split(), "--measures", "RR@10 ARaB(tf)@10", "--margin"]
    askew([*command, "ARaB(tf)@10=1"]).refused(
        2, "--margin names the measure 'ARaB(tf)@10', which has no upper bound", "ARaB(bool)@10"
    )


def test_unchanged_results_rule_out_a_loss_only_where_the_queries_are_many_enough(askew):
    shutil.copy(DEMO.runs[0], "copy.run")
    command = f"compare {DEMO.runs[0]} copy.run --docs {DEMO.docs} --qrels {DEMO.qrels} --measures RR@10"
    row = askew(f"{command} --margin 0.01 --json").json["measures"]["RR@10"]
    # 96 unchanged queries: a loss of everything on one query in a hundred would have gone unseen this often.
    assert row["p_no_loss"] == pytest.approx(0.99**96)
    assert row["smallest_margin"] == pytest.approx(1 - 0.05 ** (1 / 96))
    assert row["not_ruled_out"] == pytest.approx(row["smallest_margin"])
    assert askew(f"{command} --margin 0.05 --json").json["measures"]["RR@10"]["p_equivalent"] < 0.05


def test_a_margin_that_no_measure_uses_is_not_ignored_in_silence(askew):
    result = askew("compare old.run new.run --docs docs.tsv --measures 'ARaB(tf)@10' --margin 0.01")
    assert "margin" in result.err


@pytest.mark.parametrize("margin", ["0", "-0.1", "nan", "inf", "much", "RR@10=", "=0.1", "AP@10=0.1", "RR@10=0.1 0.2"])
def test_a_margin_that_means_nothing_is_refused(askew, margin):
    command = ["compare", "old.run", "new.run", *ALL.split(), "--measures", "RR@10", "--margin", margin]
    askew(command).refused(2, "margin")


def test_a_run_that_fails_on_judged_queries_is_not_called_no_loss(askew, files):
    ranked = {f"q{i}": [f"d{i % 3 + 1}"] for i in range(20)}
    files.text("qrels.txt", "".join(f"{query} 0 {docs[0]} 1\n" for query, docs in ranked.items()))
    files.run("old.run", ranked)
    files.run("new.run", dict(list(ranked.items())[:15]))
    for more in ("", " --unpaired drop"):
        result = askew(f"compare old.run new.run --qrels qrels.txt --measures RR@10 --margin 0.2{more} --json")
        row = result.json["measures"]["RR@10"]
        assert (row["n"], row["new"], row["worsened"]) == (20, 0.75, 5)
        assert row["p_no_loss"] > 0.5
        assert "new.run: no document for 5 of 20 judged queries" in result.err


def test_a_gate_fails_with_exit_code_one_where_the_loss_is_reached(askew):
    command = ["compare", *map(str, reversed(DEMO.runs)), "--qrels", str(DEMO.qrels), "--measures", "nDCG@10 RR@10"]
    failed = askew([*command, "--fail-if", "nDCG@10 loses 0.01"])
    assert failed.code == 1
    assert "failed: nDCG@10 loses 0.2453, which is 0.01 or more" in failed.err
    passed = askew([*command, "--fail-if", "nDCG@10 loses 0.3"])
    assert passed.code == 0 and "askew: passed: " in passed.err and passed.err.endswith(": nDCG@10 loses 0.3\n")


def test_a_gate_can_ask_that_a_loss_is_ruled_out(askew):
    shutil.copy(DEMO.runs[0], "copy.run")
    command = ["compare", str(DEMO.runs[0]), "copy.run", "--qrels", str(DEMO.qrels), "--measures", "nDCG@10", "--json"]
    assert askew([*command, "--fail-if", "nDCG@10 loses 0.01"]).code == 0
    failed = askew([*command, "--fail-if", "nDCG@10 may lose 0.01"])
    assert (failed.code, failed.err) == (1, f"askew: failed: {NOT_RULED_OUT}\n")
    assert json.loads(failed.out)["failures"] == [NOT_RULED_OUT]
    assert askew([*command, "--fail-if", "nDCG@10 may lose 0.05"]).code == 0


def test_two_amounts_that_one_measure_may_lose_are_refused(askew):
    command = ["compare", "old.run", "new.run", *ALL.split(), "--measures", "nDCG@10"]
    for amounts in (("0.01", "0.9"), ("0.9", "0.01")):
        conditions = [word for amount in amounts for word in ("--fail-if", f"nDCG@10 may lose {amount}")]
        askew([*command, *conditions]).refused(2, "keep only the condition with the smaller amount")


def test_a_gate_on_lean_fails_where_queries_have_no_value_in_both_runs(askew, files):
    files.run("new.run", {"q1": ["d1"]})
    command = ["compare", "old.run", "new.run", *ALL.split(), "--measures", "RR@10 ARaB(bool)@10"]
    failed = askew([*command, "--fail-if", "ARaB(bool)@10 loses 5e-1"])
    assert failed.code == 1 and "askew: failed: ARaB(bool)@10" in failed.err and " 1 of 2 queries" in failed.err


def test_a_margin_beyond_what_can_be_lost_is_refused(askew):
    command = ["compare", "old.run", "new.run", *ALL.split(), "--measures", "nDCG@10", "--margin", "2"]
    askew(command).refused(2, "cannot lose more than 1")


@pytest.mark.parametrize(
    "condition",
    ["nDCG@10 loses \u0661", "nDCG@10", "nDCG@10 loses", "nDCG@10 loses -1", "nDCG@10 wins 1", "AP@10 loses 1"],
)
def test_a_condition_that_cannot_be_read_is_refused(askew, condition):
    command = ["compare", "old.run", "new.run", *ALL.split(), "--measures", "nDCG@10", "--fail-if", condition]
    askew(command).refused(2, "--fail-if")


def test_a_query_in_one_run_only_is_an_error_that_names_it(askew, files):
    files.run("new.run", {"q1": ["d1"], "q3": ["d1"]})
    askew("compare old.run new.run --docs docs.tsv --measures ARaB@10").refused(
        3, "2 queries", "'q2'", "--unpaired drop"
    )


def test_a_query_in_one_run_only_can_be_dropped_and_is_told(askew, files):
    files.run("new.run", {"q1": ["d2"]})
    result = askew("compare old.run new.run --docs docs.tsv --unpaired drop --measures 'RaB(tc)@1' --json")
    row = result.json["measures"]["RaB(tc)@1"]
    assert (row["n"], row["old"], row["new"]) == (1, 2.0, -2.0)
    assert result.noted("1 queries")


def test_an_unknown_way_with_unpaired_queries_is_refused(askew):
    askew(f"compare old.run new.run {ALL} --unpaired bogus").refused(2, "bogus")


def test_runs_without_a_common_query_are_refused(askew, files):
    files.run("new.run", {"q9": ["d1"]})
    askew("compare old.run new.run --docs docs.tsv --measures ARaB@10 --unpaired drop").refused(3, "no query in common")


def test_an_unknown_test_is_refused(askew):
    askew(f"compare old.run new.run {ALL} --test mean").refused(2, *map(repr, TESTS), "'mean'")


def test_tsv_has_the_numbers_of_json(askew):
    command = f"compare old.run new.run {ALL} --measures 'RR@10 ARaB(tf)@10' --margin 0.1"
    header, *lines = [line.split("\t") for line in askew(f"{command} --tsv").out.splitlines()]
    assert header[0] == "measure"
    assert sorted(header[1:]) == sorted(KEYS)
    for line, (text, row) in zip(lines, askew(f"{command} --json").json["measures"].items(), strict=True):
        shown = dict(zip(header, line, strict=True))
        assert shown.pop("measure") == text
        assert shown.pop("signature") == row.pop("signature")
        assert shown == {key: "" if value is None else str(value) for key, value in row.items()}


def test_the_table_fits_eighty_columns_and_shows_all_there_is(askew):
    table = askew(f"{COMPARE_DEMO} --margin 0.01").table
    for heading in ("change", "gain [95%]", "p (Holm)", "worsened", "unchanged", "n", "no loss: p"):
        assert heading in table
    assert "bm25.run" in table and "minilm.run" in table


def test_the_table_keeps_a_long_measure_whole(askew):
    long = "ARaB(tf, lexicon=rekabsaz2020, tokens=word, overlap=first, missing=zero, groups=male-female)@10"
    table = askew(["compare", "old.run", "new.run", *ALL.split(), "--measures", long]).table
    first_column = "".join(line[:29] for line in table.splitlines())
    assert long.replace(" ", "") in "".join(first_column.split())


def test_a_preset_can_be_compared(askew):
    report = askew(f"compare old.run new.run {ALL} --background new.run --preset bigdeli2022 --json").json
    assert list(report["measures"]) == list(askew("show preset bigdeli2022 --json").json["measures"])


def test_a_measure_missing_for_a_query_in_one_run_leaves_that_pair_out(askew, files):
    files.run("new.run", {"q1": ["d1"], "q2": ["lost"]})
    command = "compare old.run new.run --docs docs.tsv --missing drop --measures 'RaB(tc)@1' --json"
    row = askew(command).json["measures"]["RaB(tc)@1"]
    assert row["n"] == row["improved"] + row["worsened"] + row["unchanged"] == 1


def test_the_same_command_gives_the_same_bytes(askew):
    assert askew(f"{COMPARE_DEMO} --json").out == askew(f"{COMPARE_DEMO} --json").out


@pytest.mark.parametrize("name", ["[red]x[-red]", "\x1b[31mred\x1b[0m", ":cat:"])
def test_a_run_name_is_shown_as_text_and_never_obeyed(askew, name):
    shutil.copy("old.run", f"{name}.run")
    result = askew(["compare", f"{name}.run", "new.run", *ALL.split(), "--measures", "RR@10"])
    assert "".join(char if char.isprintable() else "\ufffd" for char in name) in result.out
    assert result.out.replace("\n", "").isprintable()


def test_comparing_leaves_no_file_behind(askew):
    before = sorted(Path().iterdir())
    assert askew(f"compare old.run new.run {ALL}").code == 0
    assert sorted(Path().iterdir()) == before


def test_a_signed_lean_has_no_change_in_percent_for_its_mean_can_cancel(askew):
    command = f"{COMPARE_DEMO} --measures 'RR@10 ARaB(tf)@10 ARaB(tf,sign=abs)@10'"
    rows = askew(f"{command} --json").json["measures"]
    assert [row["relative"] is None for row in rows.values()] == [False, True, False]
    first = askew(command).table.partition("d_z")[0]
    shown = [line.split()[-4:] for line in first.splitlines() if line.strip().startswith(("RR", "ARaB"))]
    assert ["%" in "".join(cells) for cells in shown] == [True, False, True]


def test_the_table_says_what_a_gain_is_and_keeps_no_loss_to_the_measures_concerned(askew):
    table = askew(f"{COMPARE_DEMO} --measures 'RR@10 ARaB(tf)@10' --margin 0.01").table
    assert "gain: " in table
    before, _, after = table.partition("ruled out?")
    assert "ARaB(tf)@10" in before and "RR@10" in after and "ARaB" not in after
    without = askew(f"{COMPARE_DEMO} --measures 'RR@10 ARaB(tf)@10'").table
    assert "ruled out?" not in without


def test_the_test_of_no_loss_is_corrected_for_the_measures_that_have_a_margin(askew):
    measures = "--measures 'RR@10 AP@10 ARaB(tf)@10' --margin 0.05"
    first, second, lean = askew(f"{COMPARE_DEMO} {measures} --json").json["measures"].values()
    low, high = sorted([first, second], key=lambda row: row["p_no_loss"])
    corrected = "p_no_loss_holm"
    assert low[corrected] == pytest.approx(min(1, 2 * low["p_no_loss"]))
    assert high[corrected] >= high["p_no_loss"]
    assert (lean[corrected], lean["p_equivalent_holm"]) == (None, None)


def test_comparing_tells_how_far_it_is():
    told = []
    askew_package.compare(
        DEMO.runs[0], DEMO.runs[1], DEMO.docs, measures="ARaB@10 RaB@10", testing=lambda *done: told.append(done)
    )
    assert told == [(0, 2), (1, 2)]


def test_identical_top_documents_differ_against_their_own_background_and_that_is_told(askew, files):
    files.run("old.run", {"q1": ["d5", "d1"], "q2": ["d1", "d5"]})
    files.run("new.run", {"q1": ["d5", "d1", "d3"], "q2": ["d1", "d5", "d3"]})
    command = "compare old.run new.run --docs docs.tsv --measures NFaiRR@1 --json"
    own, same = askew(command), askew(f"{command} --background new.run")
    assert own.json["measures"]["NFaiRR@1"]["gain"] < 0
    assert own.noted("NFaiRR@1", "--background")
    assert same.json["measures"]["NFaiRR@1"]["gain"] == 0
    assert same.err == ""


def test_the_table_says_what_a_gain_is_of_a_measure_that_is_best_at_zero(askew):
    command = f"compare old.run new.run {ALL} --measures"
    signed = " ".join(askew(f"{command} 'RR@10 RaB(tc)@2'").table.split())
    assert "distance from 0" in signed
    assert "distance from 0" not in askew(f"{command} 'RR@10 RaB(tc,sign=abs)@2'").table


def test_what_a_preset_changes_stands_below_the_table_of_a_comparison(askew):
    table = askew("compare old.run new.run --docs docs.tsv --measures 'ARaB@2' --preset refairmulate2025").table
    shown = " ".join(table.split())
    assert "ARaB@2: sign=running-abs, tokens=blank, overlap=first, missing=drop, order=file, digits=4" in shown
    assert "preset: refairmulate2025" in table


@pytest.mark.parametrize("command", ["measure old.run new.run", "compare old.run new.run"])
def test_tables_and_charts_are_written_where_asked(askew, tmp_path, command):
    given = f"{command} {ALL} --measures 'RR@10 ARaB(tf)@10' --latex a.tex --csv a.csv --figures charts --json"
    assert askew(given).code == 0
    assert (tmp_path / "a.tex").read_text().count("ARaB(tf)@10") >= 1
    header, *rows = (tmp_path / "a.csv").read_text().splitlines()
    assert header.startswith(("run,RR@10,", "measure,old,new")) and len(rows) == 2
    assert len(list((tmp_path / "charts").glob("*.svg"))) == 2


def test_the_smallest_margin_is_shown_only_with_a_margin(askew):
    command = f"{COMPARE_DEMO} --measures nDCG@10"
    plain, margin = (askew(f"{command}{more}").table for more in ("", " --margin 0.05"))
    assert "smallest margin" not in plain and "loss not ruled out" not in plain and "detectable gain" in plain
    assert "smallest margin" in margin and "loss not ruled out" in margin
