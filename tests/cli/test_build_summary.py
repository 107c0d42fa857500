"""What a build prints of its subsets."""

import pytest

from askew.ui.cli.build import show_summary


def row(subset, pairs, new):
    return {
        "subset": subset, "pairs": pairs, "queries": pairs, "measure": "RR@10", "of": "value", "old_mean": 0.5,
        "new_mean": new, "change": 10.0, "low": 5.0, "high": 15.0, "improved_pairs": 3, "worsened_pairs": 0,
        "figures": "in-sample", "in_sample_change": 10.0, "zero_pairs": 0,
    }  # fmt: skip


def test_a_subset_with_the_figures_of_another_is_told_and_not_shown_again(capsys):
    show_summary([row("optimal", 0, 0.0), row("effective", 7, 0.6), row("fair", 7, 0.6), row("negative", 7, 0.4)])
    said = capsys.readouterr().out
    assert "optimal: 0 pairs of 0 queries\n" in said
    (same,) = [line for line in said.splitlines() if line.startswith("fair: 7 pairs")]
    assert same.endswith(" effective")
    assert said.count("RR@10") == 2


def test_one_pair_of_one_query_is_not_in_the_plural(capsys):
    show_summary([row("fair", 1, 0.6), row("effective", 1200, 0.6)])
    said = capsys.readouterr().out
    assert " 1 pair " in said and " 1 query\n" in said
    assert " 1,200 pairs " in said and " 1,200 queries\n" in said


def test_the_held_out_change_comes_first_and_the_in_sample_one_is_named_so(capsys, snapshot):
    lean = {**row("fair", 7, 0.4), "measure": "ARaB(tf)@10", "figures": "held-out", "change": -20.0, "low": -25.0,
            "high": -15.0, "in_sample_change": -60.0, "held_out_queries": 41}  # fmt: skip
    show_summary([row("fair", 7, 0.6), lean])
    said = capsys.readouterr().out
    tables = [" ".join(line.split()) for line in said.splitlines() if "measure" in line or "@10" in line]
    head, effectiveness, measured = tables[:3]
    assert head == "measure old new held out [95%] in-sample"
    assert measured.endswith("-20.0% [-25, -15] -60.0%")
    assert effectiveness.endswith("in-sample [+5, +15] +10.0%")
    snapshot(said)


def test_a_subset_states_the_number_of_held_out_queries_and_where_it_is_smaller(capsys):
    held = [{**row("fair", 25, 0.4), "figures": "held-out", "measure": name, "held_out_queries": queries}
            for name, queries in (("RR@10", 7), ("AP@10", 7), ("ARaB(tf)@10", 65))]  # fmt: skip
    show_summary(held)
    said = capsys.readouterr().out
    assert " 25 queries\nheld-out queries: 65\n" in said and " 7 for RR@10, AP@10\n" in said
    show_summary(held[2:])
    assert "held-out queries: 65\n\n" in capsys.readouterr().out


def test_a_subset_states_how_many_pairs_find_no_relevant_document_before_and_after(capsys):
    zero = {"RR@10": 4, "AP@10": 4, "nDCG@5": 6, "P@1": 0, "ARaB(tf)@10": 2}
    rows = [{**row("fair", 9, 0.6), "measure": name, "zero_pairs": count} for name, count in zero.items()]
    show_summary(rows, judged=["RR@10", "AP@10", "nDCG@5", "P@1"])
    assert ": 6 for nDCG@5; 4 for RR@10, AP@10\n" in capsys.readouterr().out


def test_an_interval_without_one_of_its_ends_is_not_shown(capsys):
    show_summary([{**row("fair", 9, 0.6), "high": None}])
    said = capsys.readouterr().out
    assert "+10.0% " in said
    assert "[+5" not in said


@pytest.mark.parametrize("command", ["publish", "report"])
def test_a_forgotten_setting_starts_no_build(askew, tmp_path, command):
    store = ["--store", str(tmp_path / "store")]
    run = [*store, "--set", "reformulate.0.count=2", "--set", "publish.license=CC0-1.0"]
    assert askew(["run", "demo", *run]).code == 0
    other = askew([command, "demo", *store, "--out", str(tmp_path / "other")])
    assert other.code == 2 and not (tmp_path / "other").exists()
    assert " reformulate.0.count (2 " in other.err and "askew run" in other.err
    assert len(list((tmp_path / "store" / "plans").iterdir())) == 1
    same = askew([command, "demo", *run, "--out", str(tmp_path / "same")])
    assert same.code == 0 and "finished build" not in same.err


def test_forgotten_groups_are_named_as_the_option_that_sets_them(askew, tmp_path, files):
    files.text("age.toml", "[groups]\nyoung = ['young', 'child']\nold = ['old', 'elderly']\n")
    store = ["--store", str(tmp_path / "store")]
    assert askew(["run", "demo", *store, "--groups", "age.toml"]).code == 0
    askew(["publish", "demo", *store, "--out", "ds"]).refused(2, "--groups", "--lexicon", "young, old")


@pytest.mark.parametrize("settings", [(), ("--set", "retrieve.k=50")])
def test_a_build_that_stopped_early_is_continued_by_publish(askew, tmp_path, settings):
    store = ["--store", str(tmp_path / "store")]
    assert askew(["run", "demo", *store, "--until", "kept"]).code == 0
    done = askew(["publish", "demo", *store, *settings, "--out", str(tmp_path / "ds")])
    assert done.code == 0 and "other settings" not in done.err


def test_a_recipe_that_was_never_built_is_built_by_publish(askew, tmp_path):
    done = askew(["publish", "demo", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "ds")])
    assert done.code == 0
    assert done.noted(str(tmp_path / "store"), " demo,", "collection demo")


def test_a_query_with_two_fair_pairs_is_explained(capsys):
    show_summary([row("fair", 9, 0.6) | {"queries": 8}])
    explained = capsys.readouterr().out
    show_summary([row("fair", 9, 0.6)])
    assert "'optimal'" in explained and "'optimal'" not in capsys.readouterr().out


def test_a_change_of_few_queries_has_no_interval_and_the_notes_say_why(capsys):
    show_summary([row("effective", 4, 0.6)])
    said = " ".join(capsys.readouterr().out.split())
    assert "+10.0% 3 0" in said and "[+5, +15]" not in said
    assert "fewer than 5 queries" in said
    show_summary([row("effective", 5, 0.6)])
    said = capsys.readouterr().out
    assert "+10.0% [+5, +15]" in said and "fewer than" not in said


def test_an_end_of_an_interval_keeps_its_sign(capsys):
    show_summary([row("fair", 9, 0.6) | {"low": -33.4, "high": -0.4}])
    assert "[-33, -0.4]" in capsys.readouterr().out


def test_an_in_sample_change_beside_held_out_ones_has_its_interval(capsys):
    held = row("fair", 9, 0.6) | {"figures": "held-out", "measure": "ARaB(tf)@10", "held_out_queries": 9}
    show_summary([row("fair", 9, 0.6), held])
    assert "in-sample [+5, +15]" in capsys.readouterr().out


def test_queries_without_any_reformulation_are_counted(askew, tmp_path):
    done = askew(["run", "demo", "--store", str(tmp_path / "store"), "--set", "filter.1.same=0.99"])
    assert done.noted(" of 72 queries")
