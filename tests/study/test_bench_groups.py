"""askew bench counts the groups that are given, everywhere; and it is a function with objects in and a table out."""

import json
import re
from functools import wraps

import polars as pl
import pytest

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.store.store import Store
from askew.data.collection import Collection
from askew.data.runs import Run
from askew.measures.catalogue import RR, ARaB, NFaiRR
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe
from askew.search.mitigation import DetConstSort
from askew.study.bench.bench import BenchSettings, bench

AGE = {"old": ["old", "elderly", "senior", "pensioner"], "young": ["young", "teenager", "youth", "junior"]}
DOCS = {
    "d1": "nurse jobs for the young and any teenager", "d2": "a junior nurse and her youth club for young nurses",
    "d3": "nurse pay and hours of work", "d4": "the old nurse is an elderly pensioner", "d5": "nurse training for all",
    "d6": "doctor visits of the elderly and old", "d7": "a senior doctor he met", "d8": "doctor pay and hours",
    "d9": "young doctor in a junior job",
}  # fmt: skip
QUERIES = {"q1": "nurse jobs", "q2": "doctor pay", "q3": "young nurse"}
QRELS = {"q1": {"d1": 1, "d3": 1}, "q2": {"d8": 1}, "q3": {"d2": 1}}
MEASURES = [RR @ 10, ARaB("tf") @ 10, NFaiRR @ 10]
GENDERED = re.compile(r"gender|male|rekabsaz|bigdeli|\b(wo)?m[ae]n\b|two groups", re.IGNORECASE)


def toy(docs=DOCS):
    return Collection.open(docs, queries=QUERIES, qrels=QRELS)


def in_store(folder, **given):
    return BenchSettings(store=folder, k=6, **{"equivalence": "off", **given})


def words_of(groups):
    """A word list as a file."""
    return "".join(f"{word},{group}\n" for group, words in groups.items() for word in words)


def recipe_of(folder, **sections):
    """A collection in a folder, and a recipe of it with its own groups."""
    folder.mkdir(exist_ok=True)
    (folder / "docs.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in DOCS.items()))
    (folder / "queries.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    lines = [f"{query} 0 {doc} 1\n" for query, docs in QRELS.items() for doc in docs]
    (folder / "qrels.txt").write_text("".join(lines))
    given = {
        "collection": {"source": str(folder)}, "groups": {"words": AGE}, "reformulate": [{"method": "reduce"}],
        "retrieve": {"ranker": "bm25"}, "evaluate": {"measures": ["RR@10", "ARaB(tf)@10"]},
    }  # fmt: skip
    return Recipe("age", {**given, **sections})


# ---- one set of groups for everything


def test_nothing_of_gender_is_in_any_output_when_other_groups_are_given(tmp_path):
    given = in_store(tmp_path / "store", out=tmp_path / "out")
    report = bench(toy(), groups=Groups(AGE, name="age"), settings=given)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    tables = [path.read_bytes().decode("utf-8", "replace") for path in (tmp_path / "out" / "tables").iterdir()]
    for text in (json.dumps(report.to_dict()), repr(report), report._repr_html_(), page, *tables):
        assert not GENDERED.findall(text)
    lexicon = Groups(AGE, name="age").lexicon
    assert report.to_dict()["groups"] == {"lexicon": lexicon.id, "lexicon_name": "age", "names": ["old", "young"]}
    lean = [one.signature for one in report.asked if not one.effectiveness]
    assert len(lean) == 2 and all("old" in one and "young" in one for one in lean)
    assert "old, young (lexicon age)" in page


@pytest.mark.parametrize("measures", [MEASURES, "RR@10 ARaB(tf,lexicon=rekabsaz2020,groups=male-female)@10"])
def test_the_reranker_gives_shares_to_the_groups_that_are_given(measures, tmp_path):
    out = tmp_path / "out"
    targets = {"detconstsort": {"targets": "neutral:0,old:1,young:0"}}
    given = in_store(tmp_path / "store", out=out, method_settings=targets)
    bench(toy(), ["detconstsort"], measures, groups=AGE, settings=given)
    lines = (out / "runs" / "detconstsort.run").read_text().splitlines()
    first = {line.split()[0]: line.split()[2] for line in reversed(lines)}
    assert first["q1"] == first["q3"] == "d4"
    assert first["q2"] in ("d6", "d7")


@pytest.mark.parametrize("names", [("female", "male", "nonbinary"), ("old", "young", "child")])
def test_with_three_groups_a_reranker_gives_shares_to_all_of_them(names, tmp_path, monkeypatch):
    seen = []
    rank = DetConstSort.rank

    def listening(self, task):
        seen.append(task.groups)
        return rank(self, task)

    monkeypatch.setattr(DetConstSort, "rank", listening)
    groups = Groups(dict(zip(names, (["young", "junior"], ["old", "elderly"], ["pay"]), strict=True)))
    pair = f"{names[0]}-{names[1]}"
    bench(toy(), ["detconstsort"], [RR @ 10, ARaB("tf", groups=pair) @ 10], groups=groups, settings=in_store(tmp_path))
    assert {frozenset(one) for one in seen} == {frozenset(names)}


def test_reformulators_count_the_groups_that_are_given(tmp_path, monkeypatch):
    from askew.rewrite.feedback import FairFeedback

    seen = []
    made = FairFeedback.__init__

    @wraps(made)
    def make(self, **given):
        seen.append(given)
        made(self, **given)

    monkeypatch.setattr(FairFeedback, "__init__", make)
    counted = Groups(AGE, tokens="blank")
    bench(toy(), ["reformulate:fairfeedback"], MEASURES, groups=counted, settings=in_store(tmp_path))
    assert [one["groups"] for one in seen] == [counted]


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("reformulate:fairfeedback", {"groups": "gender:female,male"}),
        ("reformulate:swap", {"pairs": "gender-en"}),
    ],
)
def test_a_method_that_counts_other_groups_is_refused(method, settings, tmp_path):
    given = in_store(tmp_path, method_settings={method: settings})
    with pytest.raises(ConfigError, match="female"):
        bench(toy(), [method], MEASURES, groups=AGE, settings=given)


def test_a_method_follows_groups_that_only_a_measure_names_or_is_refused(tmp_path):
    words = tmp_path / "age.csv"
    words.write_text(words_of(AGE))
    measures = f"RR@10 ARaB(tf,lexicon='{words}',groups=old-young)@10"
    found = {}
    for name, groups, asked in (("given", Groups(AGE, ["old", "young"]), MEASURES), ("measure", None, measures)):
        out = tmp_path / name
        bench(toy(), ["detconstsort"], asked, groups=groups, settings=in_store(tmp_path / "store", out=out))
        found[name] = (out / "runs" / "detconstsort.run").read_text()
    assert found["given"] == found["measure"]
    with pytest.raises(ConfigError, match="give groups=") as error:
        bench(toy(), ["reformulate:fairfeedback"], measures, settings=in_store(tmp_path / "store"))
    assert error.value.values == {"method": "reformulate:fairfeedback", "groups": ("old", "young")}


def test_a_reranker_of_groups_needs_two_of_them(tmp_path):
    with pytest.raises(ConfigError, match="groups=") as error:
        bench(toy(), ["detconstsort"], "RR@10 ARaB@10", groups=Groups(AGE, ["old"]), settings=in_store(tmp_path))
    assert (error.value.code, error.value.values) == ("too-few-groups", {"groups": ("old",)})


# ---- where a bench starts


def test_a_recipe_brings_its_collection_and_its_groups(tmp_path):
    recipe = recipe_of(tmp_path / "data")
    report = bench(recipe, ["detconstsort"], settings=in_store(tmp_path / "store"))
    assert report.groups["names"] == ["old", "young"]
    assert report.collection == str(tmp_path / "data")
    other = bench(recipe, [], groups="gender:female,male", settings=in_store(tmp_path / "store"))
    assert other.groups["names"] == ["female", "male"]
    written = tmp_path / "age.toml"
    (tmp_path / "age.csv").write_text(words_of(AGE))
    written.write_text(
        f"[collection]\nsource = '{tmp_path / 'data'}'\n[groups]\nlexicon = '{tmp_path / 'age.csv'}'\n"
        "[[reformulate]]\nmethod = 'reduce'\n[retrieve]\nranker = 'bm25'\n[evaluate]\nmeasures = ['ARaB(tf)@10']\n"
    )
    assert read_recipe(written).name == "age"
    assert bench(str(written), [], settings=in_store(tmp_path / "store")).groups["names"] == ["old", "young"]


def test_the_store_of_a_build_brings_its_collection_and_its_groups(tmp_path):
    folder = tmp_path / "built"
    prepare(recipe_of(tmp_path / "data"), Store(folder)).plan.run(Store(folder))
    report = bench(str(folder), ["detconstsort"], settings=in_store(tmp_path / "unused"))
    assert (report.collection, report.groups["names"]) == (str(tmp_path / "data"), ["old", "young"])
    assert not (tmp_path / "unused").exists()
    prepare(recipe_of(tmp_path / "data", groups={"lexicon": "gender"}), Store(folder)).plan.run(Store(folder))
    with pytest.raises(ConfigError, match="groups=") as error:
        bench(str(folder), [], settings=in_store(tmp_path / "unused"))
    assert error.value.code == "different-builds"


def test_collections_in_memory_do_not_share_what_a_store_keeps(tmp_path):
    first = bench(toy(), ["qld"], MEASURES, settings=in_store(tmp_path))
    second = bench(toy({**DOCS, "d8": "another text"}), ["qld"], MEASURES, settings=in_store(tmp_path))
    assert [one.values["bm25"]["RR@10"].tolist()[1] for one in (first, second)] == [1.0, 0.0]


def test_only_the_queries_with_these_ids_are_used(tmp_path):
    report = bench(toy(), [], MEASURES, queries=["q2", "q1"], settings=in_store(tmp_path))
    assert report.query_ids == ["q1", "q2"]


# ---- runs in, tables out


def test_runs_in_memory_are_compared_by_name(tmp_path):
    scores = {"q1": {"d3": 2.0, "d1": 1.0}, "q2": {"d8": 1.0}, "q3": {"d1": 2.0, "d2": 1.0}}
    frame = Run.of(scores, "mine")
    report = bench(toy(), [], MEASURES, runs={"own": scores, "same": frame}, settings=in_store(tmp_path))
    assert [row.method.text for row in report.rows] == ["bm25", "run:own", "run:same"]
    assert report.values["run:own"]["RR@10"].tolist() == report.values["run:same"]["RR@10"].tolist() == [1, 1, 0.5]
    with pytest.raises(ConfigError, match="unknown method 'run:other'"):
        given = in_store(tmp_path, method_settings={"run:other": {"k": 1}})
        bench(toy(), [], MEASURES, runs={"own": scores}, settings=given)


def test_a_report_is_a_frame_a_table_and_html(tmp_path):
    report = bench(toy(), ["qld"], MEASURES, runs={"<b>": {"q1": {"d3": 1.0}}}, settings=in_store(tmp_path))
    frame = report.to_polars()
    assert frame.height == 3 * 3
    assert frame.columns[:11] == [
        "method", "kind", "strength", "upper_bound", "seeds", "searches", "model_calls", "kept_top_10",
        "queries_without_results", "reformulated_queries", "measure",
    ]  # fmt: skip
    assert report.to_pandas().shape == frame.shape
    assert frame.filter(pl.col("method") == "run:<b>")["queries_without_results"].to_list() == [2, 2, 2]
    assert report.per_query().columns == ["method", "query_id", "RR@10", "ARaB(tf)@10", "NFaiRR@10"]
    head, base, *_ = repr(report).splitlines()
    assert head.split() == ["method", "RR@10", "↑", "|ARaB(tf)@10|", "↓", "NFaiRR@10", "↑"]
    assert base.startswith("bm25 (base)  ")
    assert "run:&lt;b&gt;" in report._repr_html_() and "<b>" not in report._repr_html_()
