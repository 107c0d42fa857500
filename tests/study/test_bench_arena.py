"""Mitigation methods with strengths, seeds and costs; methods of one's own; reports from kept scores."""

import re

import numpy as np
import pytest

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.ranking import Hits
from askew.data.collection import Collection
from askew.study.bench.bench import bench, show_bench
from askew.study.bench.methods import read_method, read_methods
from askew.study.bench.page import curves_of
from askew.study.bench.results import SCORES
from askew.study.bench.settings import BenchSettings

DOCS = {
    "d0": "the nurse said he likes he and he", "d1": "the nurse said she likes she", "d2": "a nurse likes work",
    "d3": "the doctor and he and he", "d4": "a doctor she likes", "d5": "doctor work hours",
}  # fmt: skip
QUERIES = {"q1": "nurse likes", "q2": "doctor work", "q3": "nurse work"}
QRELS = {"q1": {"d1": 1}, "q2": {"d5": 1}, "q3": {"d2": 1}}
MEASURES = "nDCG@10 RR@10 ARaB(tf)@10 NFaiRR@10"
OWN = '''
"""Takes the last document first; as often as its strength says."""
from askew.core.ranking import Hits
import numpy as np

class Backwards:
    strengths = (1, 2)
    def __init__(self, strength=1):
        self.times = strength
    def rank(self, task):
        order = np.arange(len(task.first.docs))
        if self.times % 2:
            order = np.concatenate([np.arange(end - 1, start - 1, -1)
                                    for start, end in zip(task.first.offsets, task.first.offsets[1:])])
        return task.reordered(order)
'''


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def toy():
    return Collection.open(DOCS, queries=QUERIES, qrels=QRELS)


def run_bench(methods, store, runs=None, **given):
    settings = BenchSettings(store=store, k=6, **{"equivalence": "off", **given})
    return bench(toy(), methods, MEASURES, runs=runs, settings=settings)


def texts_of(report):
    return [row.method.row_text for row in report.rows]


# ---- how methods are written


def test_a_method_may_have_a_strength_several_or_those_of_a_sweep():
    assert read_method("greedy@5").strength == 5
    assert (read_method("greedy@5").family, read_method("greedy").family) == ("greedy", "greedy")
    assert [one.text for one in read_methods(["mmr@0.25,0.5"], "bm25")[1]] == ["mmr@0.25", "mmr@0.5"]
    swept = [one.text for one in read_methods(["greedy", "qld", "mmr@0.1"], "bm25", sweep=True)[1]]
    assert swept == ["greedy@2", "greedy@3", "greedy@5", "greedy@10", "qld", "mmr@0.1"]


def test_a_method_may_reorder_the_results_of_another():
    method = read_method("reformulate:reduce:oracle+greedy@3")
    assert (method.name, method.strength, method.first.choice) == ("greedy", 3, "oracle")
    assert method.bound and [one.text for one in method.parts][1] == "reformulate:reduce:oracle"
    assert read_method("qld+greedy+mmr").first.first.name == "qld"


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("greedy@0", ConfigError, "strength"),
        ("mmr@7", ConfigError, "strength"),
        ("reformulate:reduce@0.5", ConfigError, "N is the number of reformulations to search"),
        ("reformulate:reduce:one-search@3", ConfigError, "N is the number of reformulations to search"),
        ("fusion:bm25", ConfigError, "two or more different rankers"),
        ("fusion:bm25,bm52", UnknownName, "did you mean 'bm25'"),
        ("bm25+qld", UnknownName, "unknown method"),
        ("rerank:greedy", ConfigError, "write 'greedy'"),
        ("missing.py:Method", DataError, r"missing\.py"),
        ("reformulate:reduce:one-serach", UnknownName, "did you mean 'one-search'"),
    ],
)
def test_a_method_that_cannot_be_is_refused_before_any_work(text, error, words):
    with pytest.raises(error, match=words):
        read_method(text)


# ---- costs


def test_costs_are_searches_and_model_calls_of_a_query(store):
    report = run_bench(
        ["qld", "fusion:bm25,qld", "greedy", "reformulate:reduce", "reformulate:reduce:one-search"], store
    )
    costs = {row.method.text: (row.costs.searches, row.costs.model_calls) for row in report.rows}
    assert costs["bm25"] == costs["qld"] == costs["greedy"] == (1.0, 0.0)
    assert costs["fusion:bm25,qld"] == (2.0, 0.0)
    assert costs["reformulate:reduce:one-search"] == (1.0, 0.0)
    assert costs["reformulate:reduce"][0] >= 1.0


def test_a_method_that_searches_and_reads_with_a_model_is_charged_for_it(store):
    class Costly:
        name = "costly"

        def rank(self, task):
            count_model_calls(4 * len(task.query_ids))
            assert [task.text_of(int(doc)) for doc in task.first.docs[:1]] == [DOCS["d2"]]
            assert len(task.reformulate("reduce")) == len(task.query_ids)
            return task.search(list(task.texts))

    report = run_bench([Costly()], store)
    assert texts_of(report) == ["bm25", "costly"]
    assert (report.rows[1].costs.searches, report.rows[1].costs.model_calls) == (2.0, 4.0)
    assert report.rows[1].cells["RR@10"].mean == report.rows[0].cells["RR@10"].mean
    assert report.rows[1].costs.kept == 1.0


def test_what_a_run_cost_is_what_the_user_says(store):
    runs = {"own": {"q1": {"d1": 1.0}}, "other": {"q1": {"d1": 1.0}}}
    report = run_bench([], store, runs, method_settings={"run:own": {"searches": 1, "model_calls": 100}})
    own, other = report.rows[1:]
    assert (own.costs.searches, own.costs.model_calls) == (1.0, 100.0)
    assert (other.costs.searches, other.costs.model_calls) == (None, None)


# ---- methods of one's own


def test_a_method_in_a_file_takes_part_with_its_strengths(store, tmp_path):
    file = tmp_path / "backwards.py"
    file.write_text(OWN)
    report = run_bench([f"{file}:Backwards", f"greedy@2+{file}:Backwards"][:1], store, sweep=True)
    assert texts_of(report) == ["bm25", f"{file}:Backwards@1", f"{file}:Backwards@2"]
    base, back, same = (report.values[text]["RR@10"] for text in texts_of(report))
    assert (same == base).all() and not (back == base).all()


def test_a_file_without_the_class_or_with_an_error_is_one_clear_line(store, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("x = 1\n")
    with pytest.raises(ConfigError, match=r"Method in .*broken\.py"):
        read_method(f"{file}:Method")
    file.write_text("import nothing_of_this_name\n")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        read_method(f"{file}:Method")


def test_a_method_that_gives_wrong_lists_is_refused_by_its_name(store):
    class Wrong:
        name = "wrong"

        def rank(self, task):
            return Hits(np.array([0]), np.zeros(0, np.int32), np.zeros(0, np.float32))

    with pytest.raises(DataError) as error:
        run_bench([Wrong()], store)
    assert (error.value.code, error.value.values) == ("wrong-lists", {"method": "wrong", "queries": 3})


# ---- seeds and curves


def test_seeds_of_one_method_are_one_row_with_the_mean_of_distances(store):
    # One seed leans to one group, the other to the other: the signed mean would be none.
    runs = {"m@0.5#1": {"q1": {"d0": 1.0}}, "m@0.5#2": {"q1": {"d1": 1.0}}, "m@1#1": {"q1": {"d2": 1.0}}}
    report = run_bench([], store, runs)
    assert texts_of(report) == ["bm25", "run:m@0.5", "run:m@1"]
    row = report.rows[1]
    assert (row.method.strength, row.method.family) == (0.5, "run:m")
    sizes = row.seeds["ARaB(tf)@10"]
    assert len(sizes) == 2 and row.cells["ARaB(tf)@10"].mean == pytest.approx(np.mean(sizes)) and min(sizes) > 0
    assert report.rows[2].seeds == {}
    curves, single = curves_of(report.rows)
    assert [[one.method.strength for one in curve] for curve in curves] == [[0.5, 1.0]]
    assert [one.method.text for one in single] == ["bm25"]


def test_files_of_runs_are_seeds_by_their_names(store, tmp_path):
    for seed in (1, 2):
        (tmp_path / f"m@2#{seed}.run").write_text("q1 Q0 d1 1 2.0 me\n")
    report = run_bench([f"run:{tmp_path}/m@2#{seed}.run" for seed in (1, 2)], store)
    assert texts_of(report) == ["bm25", f"run:{tmp_path}/m@2"]
    assert len(report.rows[1].seeds["RR@10"]) == 2


def test_more_candidates_searched_never_lean_more(store):
    report = run_bench(["reformulate:reduce@1,3,10", "reformulate:reduce"], store, agree=0.0)
    leans = [row.cells["ARaB(tf)@10"].mean for row in report.rows]
    assert leans == sorted(leans, reverse=True)


# ---- kept scores


def test_a_report_is_computed_again_from_its_kept_scores(store, tmp_path):
    out = tmp_path / "first"
    runs = {"m@0.5#1": {"q1": {"d0": 1.0}}, "m@0.5#2": {"q1": {"d1": 1.0}}}
    methods = ["greedy@2,3", "reformulate:reduce:oracle+greedy"]
    settings = BenchSettings(store=store, k=6, equivalence="off", out=out)
    report = bench(toy(), methods, MEASURES, runs=runs, groups="gender:female,male", settings=settings)
    (again,) = show_bench([out], tmp_path / "second")
    assert again.to_dict() == report.to_dict()
    names = ("report.html", "tables/methods.csv", "tables/queries.csv", SCORES)
    assert all((out / name).read_bytes() == (tmp_path / "second" / name).read_bytes() for name in names)


def test_one_page_shows_several_collections(store, tmp_path):
    for name in ("one", "two"):
        bench(toy(), ["greedy"], MEASURES, settings=BenchSettings(store=store, k=6, out=tmp_path / name))
    reports = show_bench([tmp_path / "one", tmp_path / "two" / SCORES], tmp_path / "page")
    assert len(reports) == 2
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 2 * len(reports[0].leans)


def test_two_benches_of_one_collection_are_told_by_their_base(store, tmp_path):
    for base in ("bm25", "qld"):
        bench(toy(), ["greedy"], MEASURES, settings=BenchSettings(base, 6, store=store, out=tmp_path / base))
    show_bench([tmp_path / "bm25", tmp_path / "qld"], tmp_path / "page")
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    titles = re.findall(r"<h2[^>]*>([^<]*, base [^<]*)</h2>", page)
    assert [title.rpartition(", ")[2] for title in titles] == ["base bm25", "base qld"]


def test_what_is_no_file_of_scores_is_one_clear_line(tmp_path):
    with pytest.raises(DataError) as error:
        show_bench([tmp_path])
    assert error.value.code == "no-scores"
    with pytest.raises(ConfigError, match="found none"):
        show_bench([])
