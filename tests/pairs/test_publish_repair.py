"""The files of the RePair paper: names, columns, and that they say what the pairs say."""

import shutil

import polars as pl
import pytest
from toy_choices import aggregated, boxed_facts, boxed_pairs, repair_tables
from toy_release import contents, facts, resign, toy_pairs

from askew.core.errors import ConfigError, DataError
from askew.pairs.dataset.checking import verify
from askew.pairs.dataset.facts import read_facts
from askew.pairs.dataset.layouts import Tables, agg_file, box_file, read_agg, value_name
from askew.pairs.dataset.release import publish

VALUE = "bm25-k1-0.82-b-0.68.RR10"
ALL, GOLD = f"repair/Q.{VALUE}.agg.all.tsv", f"repair/Q.{VALUE}.agg.gold.tsv"
BOXES = f"repair/{VALUE}.boxes"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "out"
    publish(boxed_pairs(), boxed_facts(), out, repair=repair_tables())
    return out


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "copy")


def test_boxes_are_published_in_the_published_layout_and_verify(original):
    found = contents(original)
    boxes = [f"{BOXES}/{box}.{end}" for box in ("diamond", "far", "gold") for end in ("qrels.tsv", "tsv")]
    assert [name for name in found if name.startswith("repair/")] == [ALL, GOLD, *boxes]
    assert not [name for name in found if name.startswith(("json/", "tsv/"))]
    report = verify(original)
    assert report.ok, report.wrong
    assert report.notes == []
    assert report.facts["subsets"] == {"gold": 3, "diamond": 1, "far": 1}


def test_a_box_has_its_five_columns_and_no_header(original):
    about = "what about topic {0}\t{1}\ttell me of topic {0} way {2}\t{3}"
    assert contents(original)[f"{BOXES}/gold.tsv"].decode().splitlines() == [
        "q1\t" + about.format("q1", 0.5, "v0", 1.0),
        "q2\t" + about.format("q2", 0.5, "v0", 0.5),
        "q3\t" + about.format("q3", 0.0, "v1", 0.25),
    ]
    assert contents(original)[f"{BOXES}/diamond.tsv"].decode().count("\n") == 1


def test_the_judgements_of_a_box_are_those_of_its_queries_as_trec_writes_them(original):
    assert contents(original)[f"{BOXES}/gold.qrels.tsv"] == b"q1\t0\td1\t0\nq1\t0\td2\t1\nq2\t0\td1\t2\n"
    assert contents(original)[f"{BOXES}/diamond.qrels.tsv"] == b"q1\t0\td1\t0\nq1\t0\td2\t1\n"


def test_the_aggregated_tables_have_the_original_first_and_the_value_under_its_name(original):
    lines = contents(original)[ALL].decode().splitlines()
    assert lines[0] == f"qid\torder\tquery\t{VALUE}"
    assert lines[1] == "q1\t-1\twhat about topic q1\t0.5"
    assert lines[2] == "q1\tpred.0\ttell me of topic q1 way v0\t1.0"
    gold = contents(original)[GOLD].decode().splitlines()
    assert [line.split("\t")[:2] for line in gold[1:]] == [
        ["q1", "-1"], ["q1", "pred.0"], ["q1", "pred.1"], ["q2", "-1"], ["q2", "pred.0"], ["q3", "-1"],
        ["q3", "pred.1"], ["q4", "-1"],
    ]  # fmt: skip


def test_without_tables_the_boxes_alone_are_written(tmp_path):
    publish(boxed_pairs(), boxed_facts(), tmp_path / "out")
    assert verify(tmp_path / "out").ok
    found = [name for name in contents(tmp_path / "out") if name.startswith("repair/")]
    assert found == [f"{BOXES}/{box}.tsv" for box in ("diamond", "far", "gold")]


@pytest.mark.parametrize(
    ("ranker", "part"),
    [
        ("bm25", "bm25"),
        ("../../etc/passwd", "etc-passwd"),
        ("a b\tc", "a-b-c"),
        ("///", "unnamed"),
        ("x" * 300, "x" * 80),
    ],
)
def test_a_ranker_of_any_name_is_part_of_a_file_name_inside_the_folder(ranker, part):
    read = read_facts({**boxed_facts(), "ranker": ranker})
    assert value_name(read) == f"{part}.RR10"
    assert agg_file(read, "gold") == f"repair/Q.{part}.RR10.agg.gold.tsv"
    assert box_file(read, "far") == f"repair/{part}.RR10.boxes/far.tsv"


def test_tables_of_repair_need_its_scheme(tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"'boxes' .* found 'refairmulate'",
    ):
        publish(toy_pairs(), facts(), tmp_path / "out", repair=repair_tables())


ROWS = pl.DataFrame(
    {"qid": ["1", "1", "2"], "order": ["-1", "pred.0", "-1"], "query": ["a", "b", "c"], "v": [0.5, 0.5, 0.0]}
)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"order": ["pred.1", "pred.0", "-1"]}, "one original"),
        ({"order": ["-1", "-1", "-1"]}, "one original"),
        ({"qid": ["1", "2", "2"]}, "one original"),
        ({"qid": ["2", "2", "2"]}, "one original"),
        ({"order": ["-1", "0", "-1"]}, "the order -1 or pred.i, found '0'"),
    ],
)
def test_an_aggregated_table_without_its_originals_is_refused(changed, said):
    table = ROWS.with_columns(pl.Series(name, values) for name, values in changed.items())
    with pytest.raises(DataError, match=said):
        read_agg(table.write_csv(separator="\t"), "x.tsv", "v")


@pytest.mark.parametrize(
    "text", ["", "qid\n1\n", "qid\torder\tquery\tv\n1\t-1\ta\tx\n", "qid\torder\tquery\tv\n1\n", 'qid\t"']
)
def test_a_damaged_table_is_told(text):
    with pytest.raises(DataError, match=r"^x\.tsv: expected"):
        read_agg(text, "x.tsv", "v")


def replace(name, old, new):
    def edit(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return edit


def append(name, text):
    return lambda folder: (folder / name).write_text((folder / name).read_text() + text)


CAREFUL = {
    "a value in a box": (replace(f"{BOXES}/gold.tsv", "0.25", "0.5"), f"{BOXES}/gold.tsv: 1 lines do not agree"),
    "a pair more in a box": (append(f"{BOXES}/far.tsv", "q9\ta\t0\tb\t1\n"), f"{BOXES}/far.tsv: 2 lines do not agree"),
    "a box gone": (lambda f: (f / BOXES / "far.tsv").unlink(), f"{BOXES}/far.tsv: missing"),
    "a chosen candidate's value": (
        replace(ALL, "way v0\t1.0", "way v0\t0.9"),
        f"{ALL}: 1 candidates of the Parquet rows are missing or differ; first: query 'q1'",
    ),
    "an original's text": (
        replace(ALL, "what about topic q3", "what of topic q3"),
        f"{ALL}: 1 originals of the Parquet rows are missing or differ",
    ),
    "a candidate gone from gold": (
        replace(GOLD, "q2\tpred.0\ttell me of topic q2 way v0\t0.5\n", ""),
        f"{GOLD}: ",
    ),
    "a candidate that is not gold": (
        append(GOLD, "q4\tpred.0\ttell me of topic q4 way v0\t0.5\n"),
        f"{GOLD}: 2 lines do not agree",
    ),
    "another header": (replace(ALL, "RR10\n", "MRR\n"), f"{ALL}: expected the header qid, order, query, {VALUE}"),
    "a judgement of another query": (
        append(f"{BOXES}/far.qrels.tsv", "q7\t0\td1\t1\n"),
        f"{BOXES}/far.qrels.tsv: 2 lines do not agree",
    ),
    "a judgement twice": (
        append(f"{BOXES}/far.qrels.tsv", "q1\t0\td1\t1\n"),
        f"{BOXES}/far.qrels.tsv: 2 lines do not agree",
    ),
    "a grade that is none": (replace(f"{BOXES}/far.qrels.tsv", "\t1\n", "\thigh\n"), "a whole number in every line"),
}


@pytest.mark.parametrize("what", CAREFUL)
def test_a_change_with_new_checksums_is_found(folder, what):
    edit, said = CAREFUL[what]
    edit(folder)
    resign(folder)
    report = verify(folder)
    assert any(said in line for line in report.wrong), report.wrong


def test_texts_with_tabs_quotes_and_line_breaks_agree_with_the_rows(tmp_path):
    nasty = 'a\tb "c"\nd\re'
    pairs = boxed_pairs().with_columns(text=pl.when(pl.col("query_id") == "q1").then(pl.lit(nasty)).otherwise("text"))
    said = "tell me of topic q1 way v0"
    table = aggregated().with_columns(query=pl.when(pl.col("query") == said).then(pl.lit(nasty)).otherwise("query"))
    publish(pairs, boxed_facts(), tmp_path / "out", repair=Tables(table))
    assert verify(tmp_path / "out").ok
