"""The public interface in Python: what a script or a notebook uses."""

import subprocess
import sys

import polars as pl
import pytest

import askew
from askew import ARaB, Collection, Groups, NFaiRR, Run, nDCG
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.data.collection import demo_files

RUN = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 1.0}}
DOCS = {"d1": "he said old men", "d2": "she said young girls"}
QRELS = {"q1": {"d2": 1}, "q2": {"d2": 1}}
AGE = {"old": ["old", "elderly"], "young": ["young", "girls"]}


def values(report, text):
    return report.per_query()[text].to_list()


def test_a_run_alone_may_be_a_path_a_mapping_a_frame_or_a_run():
    frame = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d2"], "score": [2.0, 1.0, 1.0]})
    expected = values(askew.measure({"named": RUN}, DOCS, "RaB(tc)@1"), "RaB(tc)@1")
    for run in (RUN, frame, frame.to_arrow(), frame.to_pandas(), Run.of(RUN, "mine"), [RUN]):
        assert values(askew.measure(run, DOCS, "RaB(tc)@1"), "RaB(tc)@1") == expected
    path = str(demo_files().runs[0])
    assert askew.measure(path, "demo", nDCG @ 10).runs[0].name == "bm25.run"


def test_measures_are_texts_or_objects_with_the_same_numbers():
    demo = Collection.open("demo")
    objects = askew.measure(demo_files().runs[0], demo, [nDCG @ 10, ARaB("tf") @ 10, ARaB("tf", sign="abs") @ 10])
    asked = ["nDCG@10", "ARaB(tf)@10", "ARaB(tf,sign=abs)@10"]
    texts = askew.measure(demo_files().runs[0], demo, " ".join(asked))
    assert objects.to_dict() == texts.to_dict()
    assert [one.text for one in objects.asked] == asked


def test_a_cutoff_that_is_none_is_refused():
    for wrong in (0, -1, True, 2**40):
        with pytest.raises(ConfigError, match=r"cutoff must be.*1"):
            nDCG @ wrong


def test_a_collection_brings_its_judgements_and_documents_alone_bring_none():
    whole = askew.measure(demo_files().runs[0], "demo")
    assert {"nDCG@10", "RR@10"} & {one.text for one in whole.asked}
    alone = askew.measure(demo_files().runs[0], demo_files().docs)
    assert not any("judgements" in one.family.reads for one in alone.asked)
    with pytest.raises(ConfigError, match="given twice"):
        askew.measure(RUN, DOCS, docs=DOCS)


def test_the_split_of_a_folder_brings_its_judgements(tmp_path):
    (tmp_path / "docs.tsv").write_text("d1\the\nd2\tshe\n")
    for split, doc in (("dev", "d1"), ("test", "d2")):
        (tmp_path / f"qrels.{split}").write_text(f"q1 0 {doc} 1\n")
    for split, rank in (("dev", 1.0), ("test", 0.5)):
        found = askew.measure({"q1": {"d1": 2.0, "d2": 1.0}}, f"{tmp_path}@{split}", "RR@10 ARaB@10")
        assert values(found, "RR@10") == [rank]


def test_a_collection_can_be_made_of_what_is_in_memory():
    frame = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["what", "who"]})
    for queries in ({"q1": "what", "q2": "who"}, frame, frame.to_arrow()):
        made = Collection.open(DOCS, queries=queries, qrels=QRELS)
        assert made.queries["text"].to_pylist() == ["what", "who"]
        assert made.judged_queries().num_rows == 2
    report = askew.measure(RUN, made, [askew.RR @ 10, ARaB @ 10])
    assert values(report, "RR@10") == [0.5, 1.0]
    with pytest.raises(DataError, match="for the query 'q1'"):
        _ = Collection.open(DOCS, queries={"q1": 7}).queries
    with pytest.raises(DataError, match=r"found query_id$"):
        _ = Collection.open(DOCS, queries=pl.DataFrame({"query_id": ["q1"]})).queries


def test_groups_may_be_words_a_lexicon_a_name_or_a_file(tmp_path):
    (tmp_path / "age.csv").write_text("old,old\nelderly,old\nyoung,young\ngirls,young\n")
    own = Groups(AGE, name="age")
    assert own == Groups.load(tmp_path / "age.csv") == Groups.of(own.lexicon) == Groups(AGE, name="age")
    assert Groups.load("gender").names == ("female", "male", "nonbinary")
    for given in (own, AGE, str(tmp_path / "age.csv")):
        assert values(askew.measure(RUN, DOCS, "RaB(tc)@1", groups=given), "RaB(tc)@1") == [1.0, -2.0]


def test_groups_say_which_is_taken_from_which():
    gender = Groups.load("gender")
    assert (gender.difference, gender.together) == ("male-female", "female+male+nonbinary")
    assert Groups({"a": ["x"], "b": ["y"], "c": ["z"]}).difference == "auto"
    assert Groups(AGE).difference == Groups(AGE, ["old", "young"]).difference == "old-young"
    assert Groups(AGE, ["young", "old"]).difference == "young-old"
    pair = {"female": ["she"], "male": ["he"]}
    assert (Groups(pair).difference, Groups(pair, ["female", "male"]).difference) == ("male-female", "female-male")
    assert Groups(AGE, ["old"]).difference == "old"
    with pytest.raises(UnknownName, match="middle"):
        Groups(AGE, ["middle"])
    with pytest.raises(ConfigError, match="no group twice"):
        Groups(AGE, ["old", "old"])
    found = askew.measure(RUN, DOCS, "RaB(tc)@1", groups=Groups(AGE, ["old", "young"]))
    assert values(found, "RaB(tc)@1") == [1.0, -2.0]


def test_groups_reach_every_measure_and_leave_no_other_lexicon():
    report = askew.measure(RUN, DOCS, [ARaB @ 10, NFaiRR @ 10, askew.LexiconShare @ 10], groups=Groups(AGE, name="age"))
    for one in report.asked:
        assert "age@" in one.signature and "male" not in one.signature and "gender" not in one.signature
    assert "groups='old+young'" in report.asked[1].signature


def test_a_measure_that_names_its_own_lexicon_keeps_it():
    report = askew.measure(RUN, DOCS, "ARaB(lexicon=rekabsaz2020,groups=male-female)@10", groups=AGE)
    assert "rekabsaz2020@" in report.asked[0].signature


def test_a_report_is_a_table_a_frame_and_html():
    report = askew.measure({"<b>": RUN}, DOCS, "RR@10 ARaB(tf)@10", qrels=QRELS)
    frame = report.to_polars()
    assert frame.columns == ["run", "measure", "mean", "low", "high", "n", "interval", "signature"]
    assert report.to_pandas().shape == (2, 8)
    assert report["<b>", "RR@10"].mean == report["<b>", askew.RR @ 10].mean == 0.75
    assert repr(report).splitlines()[0].split() == ["run", "RR@10", "ARaB(tf)@10"]
    assert "&lt;b&gt;" in report._repr_html_() and "<b>" not in report._repr_html_()
    with pytest.raises(ConfigError, match="is no run 'x'"):
        report["x", "RR@10"]


def test_a_comparison_is_a_table_a_frame_and_html():
    other = {"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d2": 1.0}}
    found = askew.compare(RUN, other, DOCS, [askew.RR @ 10, ARaB("bool") @ 10], qrels=QRELS, margin=0.5)
    assert found.to_polars()["measure"].to_list() == ["RR@10", "ARaB(bool)@10"]
    assert "null hypothesis: " in repr(found) and "<table>" in found._repr_html_()
    assert found.results["RR@10"].margin == 0.5
    assert askew.compare(other, RUN, DOCS, "RR@10", qrels=QRELS, fail_if="RR@10 loses 0.1").failures == [
        "RR@10 loses 0.2500, which is 0.1 or more"
    ]


def test_a_run_can_be_read_named_and_looked_at(tmp_path):
    run = Run.read(demo_files().runs[0], name="mine")
    assert repr(run).startswith("Run('mine', 96 queries, ")
    assert run.to_polars().columns == ["query_id", "doc_id", "score"]
    assert askew.measure(run, "demo", "RR@10").runs[0].name == "mine"


def test_a_ranker_indexes_a_collection_and_searches_it(tmp_path):
    demo = Collection.open("demo")
    bm25 = askew.Ranker("bm25").index(demo)
    run = bm25.search(demo.queries, k=100)
    assert len(run.query_ids) == 96
    expected = askew.measure(demo_files().runs[0], demo, "nDCG@10").runs[0].values["nDCG@10"]
    assert askew.measure(run, demo, "nDCG@10").runs[0].values["nDCG@10"] == pytest.approx(expected, abs=1e-6)
    kept = askew.Ranker("qld").index(demo, tmp_path / "index")
    again = askew.Ranker.open(tmp_path / "index", "qld")
    assert again.search({"q": "nurse"}, k=3).to_polars().equals(kept.search(["nurse"], k=3).to_polars().with_columns(
        query_id=pl.lit("q")))  # fmt: skip
    assert askew.Ranker.open(tmp_path / "index").name == "bm25"
    with pytest.raises(ConfigError, match="no index yet"):
        askew.Ranker("bm25").search(["nurse"])


def test_queries_that_find_nothing_are_noted():
    run = askew.Ranker("bm25").index(DOCS).search({"q1": "girls", "q2": "zebra"}, k=1)
    assert run.query_ids == ["q1"] and run.notes == ["1 of 2 queries find nothing"]


def test_a_reformulator_makes_candidates_with_a_ranker_or_without():
    alone = askew.Reformulator("reduce")
    made = alone.reformulate({"q": "how to become a nurse in a large hospital"})
    assert made.columns[:4] == ["query_id", "variant_id", "text", "method"] and made.height == alone.tally.kept > 0
    reading = askew.Reformulator("extract", count=2)
    with pytest.raises(ConfigError, match=r"give ranker=Ranker"):
        reading.reformulate(["nurse"])
    demo = Collection.open("demo")
    found = reading.reformulate({"q": "how to become a nurse"}, askew.Ranker("bm25").index(demo))
    assert 0 < found.height <= 2


RIGHT = """
import askew
from askew import ARaB, NFaiRR, RR, nDCG

groups = askew.Groups.load("gender")
c = askew.Collection.open("demo")
run = askew.Run.read("bm25.run")
report = askew.measure(run, c, [nDCG @ 10, ARaB("tf") @ 10], groups=groups)
mean: float = report["bm25.run", "nDCG@10"].mean
report.per_query().columns
found = askew.compare(run, "other.run", c, [RR @ 10, NFaiRR @ 10], margin=0.01)
p: float | None = found.results["RR@10"].p
bm25 = askew.Ranker("bm25").index(c)
other: askew.Run = bm25.search(c.queries, k=100)
askew.Reformulator("extract").reformulate(c.queries, bm25)
kept: list[bool] = askew.Filter("rules").keep([("shoes", "best shoes")])
pairs = askew.build("refairmulate", c, groups=groups)
pairs.report("out")
pairs.publish("dataset")
labels = askew.classify(["shoes"], groups="age").table["label"].to_list()
askew.bench("demo", ["qld"], [RR @ 10, ARaB("tf") @ 10], groups=groups).to_polars()
tables = askew.logs("log.tsv", settings=askew.LogSettings(min_users=5)).tables
predicted: list[str | None] = askew.Classifier("lexical").predict(["shoes"])
askew.check(c, "age").naming["old"]
"""
WRONG = {
    'askew.measure("a.run", "demo", mesures="RR@10")': "mesures",
    "askew.Groups.load(7)": "arg-type",
    'askew.compare("a.run", "b.run", margin="much")': "arg-type",
    'askew.compare("a.run", "b.run", mising="zero")': "mising",
    'askew.build("demo", group="age")': "group",
}


def mypy(tmp_path, text):
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*command, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_type_checker_sees_the_types_and_finds_wrong_calls(tmp_path):
    lines = RIGHT.strip().count("\n") + 1
    wrong = "\n".join(WRONG)
    code, told = mypy(tmp_path, f"{RIGHT.strip()}\n{wrong}\n")
    assert code == 1
    found = [line for line in told.splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) - lines for line in found] == [1, 2, 3, 4, 5], told
    assert all(word in line for word, line in zip(WRONG.values(), found, strict=True))
