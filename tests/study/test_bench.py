"""askew bench: the same queries for all methods, a choice that reads no judgement, tests corrected together."""

import csv
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.measure import Direction
from askew.core.ranking import Hits
from askew.data.collection import demo_files
from askew.measures.catalogue import Catalogue
from askew.measures.measure import measure
from askew.measures.statistics.significance import holm
from askew.study.bench.bench import LIST, BenchSettings, bench
from askew.study.bench.methods import MitigationMethod, read_method, read_methods
from askew.study.bench.page import methods_table
from askew.study.bench.results import BenchMeasure, Cell, compared, pareto_optimal
from askew.study.bench.runs import Variants, choose_by_judgements, choose_by_results, choose_by_selector
from askew.study.bench.settings import DEFAULT_METHODS

LEAN, EFFECT = "ARaB(tf)@10", "RR@10"
WAYS = {LEAN: Direction.ZERO, EFFECT: Direction.UP}
DOCS = [
    "the nurse said she likes her work", "a nurse he met said he likes his work", "nurse pay and hours of work",
    "the doctor told him that he was ill", "a doctor and her patients she helps", "doctor pay and hours of work",
]  # fmt: skip
QUERIES = {"q1": "nurse likes", "q2": "doctor patients", "q3": "nurse pay"}
CANDIDATES = [("q1", "nurse pay hours"), ("q1", "nurse she"), ("q2", "doctor pay"), ("q2", "doctor told")]
QRELS = {"q1": 1, "q2": 5, "q3": 2}


def write_toy(place: Path, qrels=QRELS) -> Path:
    place.mkdir(exist_ok=True)
    (place / "docs.tsv").write_text("".join(f"d{i}\t{text}\n" for i, text in enumerate(DOCS)))
    (place / "queries.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    (place / "qrels.txt").write_text("".join(f"{query} 0 d{doc} 1\n" for query, doc in qrels.items()))
    return place


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def replay(toy):
    """The settings of a method whose candidates are written by hand."""
    lines = [f"{query}\t{text}\n" for query, text in CANDIDATES]
    (toy / "candidates.tsv").write_text("query_id\ttext\n" + "".join(lines))
    given = {"file": str(toy / "candidates.tsv")}
    return {"reformulate:replay": given, "reformulate:replay:oracle": given}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


DEMO_METHODS = ["qld", "detconstsort", "reformulate:reduce", "reformulate:reduce:oracle"]


@pytest.fixture(scope="module")
def written(store, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "bench"
    return bench("demo", DEMO_METHODS, settings=BenchSettings(out=out, store=store, equivalence="off")), out


# ---- the choice at query time


def lists(*rows):
    """Lists of documents as a ranker gives them; scores fall by one a place."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    docs = np.array([doc for row in rows for doc in row], np.int32)
    return Hits(offsets, docs, np.concatenate([-np.arange(len(row)) for row in rows]).astype(np.float32))


def variants(queries):
    """Queries, each a list of (documents, lean, effectiveness); the original first."""
    rows = [row for query in queries for row in query]
    query = np.repeat(np.arange(len(queries)), [len(one) for one in queries])
    first = np.cumsum([0, *(len(one) for one in queries)])[:-1]
    scores = {LEAN: np.array([row[1] for row in rows]), EFFECT: np.array([row[2] for row in rows])}
    names = [f"q{number}" for number in query.tolist()]
    ids = [f"v{row}" for row in range(len(rows))]
    table = pa.table({"query_id": names, "variant_id": ids, "text": [f"text {name}" for name in ids]})
    return Variants(table, query, first, lists(*(row[0] for row in rows)), scores)


TEN = list(range(10))
CHOICES = [
    [(TEN, 0.8, 0.5), ([*range(6), 20, 21, 22, 23], -0.1, 0.2), ([*range(4), *range(30, 36)], 0.0, 1.0),
     ([*range(5), *range(40, 45)], 0.3, 0.5)],
    [(TEN, 0.2, 1.0), (TEN, -0.3, 1.0), ([50], 0.1, 0.0)],
]  # fmt: skip


@pytest.mark.parametrize(
    ("agree", "rows"),
    [
        (0.5, [1, 4]),  # of those that keep five of ten the one at -0.1; the second query has none that leans less
        (0.6, [1, 4]),
        (0.61, [0, 4]),  # nobody keeps seven: the original
        (0.4, [2, 4]),  # four of ten are enough: the one at 0.0
        (0.0, [2, 6]),
    ],
)
def test_the_candidate_that_leans_least_is_taken_of_those_that_keep_enough(agree, rows):
    assert choose_by_results(variants(CHOICES), LEAN, Direction.ZERO, agree).tolist() == rows


def test_of_candidates_that_lean_as_much_the_one_that_keeps_most_is_taken():
    found = variants([[(TEN, 0.8, 1.0), ([*range(6), 20], 0.1, 1.0), ([*range(8), 30], -0.1, 1.0)]])
    assert choose_by_results(found, LEAN, Direction.ZERO, 0.5).tolist() == [2]


def test_a_candidate_that_finds_nothing_is_never_taken():
    found = variants([[(TEN, 0.8, 1.0), ([], np.nan, 0.0)]])
    assert choose_by_results(found, LEAN, Direction.ZERO, 0.0).tolist() == [0]
    assert choose_by_judgements(found, EFFECT, LEAN, WAYS).tolist() == [0]


def test_a_query_without_candidates_keeps_its_words():
    found = variants([[(TEN, 0.8, 1.0)], [([], np.nan, 0.0)]])
    assert choose_by_results(found, LEAN, Direction.ZERO, 0.5).tolist() == [0, 1]
    assert choose_by_judgements(found, EFFECT, LEAN, WAYS).tolist() == [0, 1]


def test_the_oracle_takes_the_least_lean_that_loses_no_effectiveness():
    # Of the first query -0.1 loses effectiveness; 0.0 gains it and leans least. The second loses with 0.1.
    assert choose_by_judgements(variants(CHOICES), EFFECT, LEAN, WAYS).tolist() == [2, 4]


some_list = st.lists(st.integers(0, 12), max_size=10, unique=True)
some_score = st.sampled_from([-0.5, -0.2, 0.0, 0.1, 0.2, 0.5])
some_variant = st.tuples(some_list.filter(len), some_score, st.sampled_from([0.0, 0.5, 1.0]))


@given(st.lists(st.lists(some_variant, min_size=1, max_size=5), min_size=1, max_size=4), st.floats(0, 1))
def test_what_is_taken_leans_less_and_keeps_enough_and_nothing_allowed_leans_less(queries, agree):
    found = variants(queries)
    rows = choose_by_results(found, LEAN, Direction.ZERO, agree)
    for number, query in enumerate(queries):
        start = int(found.original[number])
        original = set(query[0][0])

        def allowed(row, original=original, query=query):
            return abs(row[1]) < abs(query[0][1]) and len(original & set(row[0])) / len(original) >= agree

        sizes = [abs(row[1]) for row in query[1:] if allowed(row)]
        taken = query[int(rows[number]) - start]
        assert (abs(taken[1]) == min(sizes) and allowed(taken)) if sizes else int(rows[number]) == start


@given(st.lists(st.lists(some_variant, min_size=1, max_size=5), min_size=1, max_size=4))
def test_the_oracle_never_loses_on_either_side(queries):
    found = variants(queries)
    rows = choose_by_judgements(found, EFFECT, LEAN, WAYS)
    assert (found.scores[EFFECT][rows] >= found.scores[EFFECT][found.original]).all()
    assert (np.abs(found.scores[LEAN][rows]) <= np.abs(found.scores[LEAN][found.original])).all()


def test_a_trained_selector_sees_candidates_and_results_and_chooses_among_them(tmp_path, monkeypatch):
    seen = {}

    def choose(folder, built):
        seen.update(folder=folder, built=built)
        return np.array([1, -1])

    monkeypatch.setattr("askew.train.selector.choose", choose)
    queries = [*CHOICES, [(TEN, 0.5, 1.0)]]
    assert choose_by_selector(variants(queries), tmp_path, tmp_path).tolist() == [2, 4, 7]
    built = seen["built"]
    assert seen["folder"] == tmp_path
    assert built.query.tolist() == [0, 0, 0, 1, 1]
    assert built.query_ids == ["q0", "q1"]
    assert built.originals == ["text v0", "text v4"]
    assert built.table["text"].to_list() == [f"text v{row}" for row in (1, 2, 3, 5, 6)]
    assert built.found[0][0].tolist() == TEN
    assert built.found[1][4].tolist() == [50, *[-1] * 9]


# ---- comparing


def asked(*texts):
    return [BenchMeasure(one.text, one.signature, one.direction, one.bounds, one.judged)
            for one in Catalogue().complete(texts)]  # fmt: skip


def test_p_is_corrected_over_all_methods_and_the_measures_of_a_family_together():
    zero, one = np.zeros(6), np.ones(6)
    values = {
        "base": {EFFECT: zero, LEAN: one},
        "a": {EFFECT: one, LEAN: one},
        "b": {EFFECT: zero, LEAN: zero},
        "c": {EFFECT: np.array([1, 1, 1, 1, 1, 0.0]), LEAN: one},
    }
    cells = compared(values, asked(EFFECT, LEAN))
    # All of six gain 1: two of the 2^6 ways to swap the runs have as large a mean.
    ps = {(method, name): cells[method][name].against.p for method in "abc" for name in (EFFECT, LEAN)}
    assert ps["a", EFFECT] == pytest.approx(2 / 64)
    assert (ps["b", EFFECT], ps["c", EFFECT], ps["a", LEAN], ps["b", LEAN]) == (1.0, 4 / 64, 1.0, 2 / 64)
    for name in (EFFECT, LEAN):
        assert [cells[method][name].p_holm for method in "abc"] == holm([ps[method, name] for method in "abc"])
    assert cells["a"][EFFECT].p_holm == pytest.approx(3 * 2 / 64)


def test_a_bench_tests_differences_as_it_is_told(toy, store):
    reports = [bench(str(toy), ["qld"], f"{EFFECT} {LEAN}", settings=BenchSettings(k=6, store=store, test=test))
               for test in ("randomization", "t")]  # fmt: skip
    methods = [{row.cells[name].against.method for row in one.rows[1:] for name in (EFFECT, LEAN)} for one in reports]
    assert methods == [{"randomization"}, {"t"}] and reports[1].to_dict()["test"] == "t"
    with pytest.raises(ConfigError, match="expected one of randomization, t"):
        bench(str(toy), ["qld"], settings=BenchSettings(store=store, test="sign"))


def test_a_lean_counts_by_its_distance_from_zero():
    values = {"base": {LEAN: np.array([1.0, -1.0, 1.0])}, "half": {LEAN: np.array([0.5, 0.5, -0.5])}}
    cell = compared(values, asked(LEAN))["half"][LEAN]
    assert (cell.mean, cell.change, cell.low, cell.high) == (0.5, None, None, None)
    assert (cell.against.old, cell.against.gain, cell.against.improved) == (1.0, 0.5, 3)


def test_all_means_are_of_the_queries_for_which_every_method_has_a_value():
    values = {
        "base": {LEAN: np.array([1.0, 3.0, 5.0])}, "a": {LEAN: np.array([np.nan, 3.0, 7.0])},
        "b": {LEAN: np.array([1.0, 1.0, 1.0])},
    }  # fmt: skip
    cells = compared(values, asked(LEAN))
    assert [(cells[method][LEAN].mean, cells[method][LEAN].n) for method in values] == [(4.0, 2), (5.0, 2), (1.0, 2)]
    with pytest.raises(DataError) as error:
        compared({**values, "a": {LEAN: np.full(3, np.nan)}}, asked(LEAN))
    assert error.value.values == {"method": "a", "missing": 3, "queries": 3}


def cells_of(points):
    return {f"l{i}": {EFFECT: Cell(x, 9), LEAN: Cell(y, 9)} for i, (x, y) in enumerate(points)}


some_mean = st.sampled_from([0.0, 0.1, 0.2, 0.3])


@given(st.lists(st.tuples(some_mean, some_mean), min_size=1, max_size=7))
def test_a_method_is_pareto_optimal_if_and_only_if_no_other_dominates_it(points):
    found = pareto_optimal(cells_of(points), [f"l{i}" for i in range(len(points))], EFFECT, [LEAN], WAYS)
    for i, (x, y) in enumerate(points):
        dominated = any(a >= x and b <= y and (a > x or b < y) for a, b in points)
        assert (LEAN in found[f"l{i}"]) == (not dominated)
    assert any(found.values())


def test_an_upper_bound_takes_no_part_in_pareto_optimality():
    found = pareto_optimal(cells_of([(0.5, 0.5), (0.9, 0.1)]), ["l0"], EFFECT, [LEAN], WAYS)
    assert found == {"l0": {LEAN}, "l1": frozenset()}


# ---- methods


def test_methods_are_read_from_their_texts(tmp_path):
    (tmp_path / "selector.json").write_text("{}")
    assert read_method("qld") == MitigationMethod("qld", "ranker", "qld")
    assert read_method("detconstsort").name == "detconstsort"
    assert read_method("rerank:org/model").name == "org/model"
    assert read_method("reformulate:stem.porter") == MitigationMethod(
        "reformulate:stem.porter", "reformulate", "stem.porter"
    )
    assert read_method("reformulate:extract:oracle").bound
    assert read_method(f"reformulate:extract:{tmp_path}").trained
    assert read_methods(DEFAULT_METHODS, "bm25")[0].name == "bm25"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("bm52", "did you mean 'bm25'?"),
        ("detconstsrt", "did you mean 'detconstsort'?"),
        ("reformulate:extrat", "did you mean 'extract'?"),
        ("reformulate:extract:oracel", "did you mean 'oracle'?"),
        ("crossencoder", "unknown method"),
        ("reformulate:", "unknown method"),
    ],
)
def test_an_unknown_method_is_reported_with_the_nearest_name(text, meant):
    with pytest.raises(UnknownName) as error:
        read_method(text)
    assert meant in str(error.value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("rerank:./models/none", "no-model"), ("rerank:nowhere", "no-model"),
        ("reformulate:extract:none", "no-selector"), ("run:no.run", "missing-file"),
    ],
)  # fmt: skip
def test_a_missing_folder_or_file_is_reported_before_any_work(text, code):
    with pytest.raises(DataError) as error:
        read_method(text)
    assert error.value.code == code


def test_a_method_is_given_once_and_its_settings_belong_to_it():
    with pytest.raises(ConfigError, match="twice"):
        read_methods(["qld", "qld"], "bm25")
    with pytest.raises(UnknownName, match="did you mean 'qld'"):
        read_methods(["qld"], "bm25", {"qdl": {"mu": 10.0}})
    with pytest.raises(UnknownName, match="base ranker"):
        read_methods(["qld"], base="replay")
    base, others = read_methods(["bm25", "qld"], "bm25", {"qld": {"mu": 10.0}})
    assert (base.name, [one.text for one in others]) == ("bm25", ["qld"])
    assert others[0].settings == {"mu": 10.0}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"measures": "RR@10"}, "one of lean"),
        ({"measures": "ARaB(tf)@10"}, "one measure of effectiveness"),
        ({"measures": "RR@10 ARaB(tf)@10 ARaB@10"}, "given twice"),
        ({"agree": 1.5}, "from 0 to 1"),
        ({"k": 0}, "documents per query.*: expected 1 or more"),
        ({"method_settings": {"detconstsort": {"target": "even"}}}, "did you mean 'targets'"),
        ({"method_settings": {"qld": {"mue": 3}}}, "did you mean 'mu'"),
    ],
)
def test_wrong_settings_are_refused(given, words, toy, store):
    measures = given.pop("measures", None)
    with pytest.raises(ConfigError, match=words):
        bench(str(toy), ["qld", "detconstsort"], measures, settings=BenchSettings(store=store, **given))


# ---- the whole


def test_every_method_answers_the_same_queries(written):
    report, _ = written
    assert [row.method.text for row in report.rows] == ["bm25", *DEMO_METHODS]
    assert report.tests == {"effectiveness": 4 * 2, "lean": 4 * 2}
    for row in report.rows:
        assert {cell.n for cell in row.cells.values()} == {96}
        for cell in row.cells.values():
            found = cell.against
            assert found is None or found.improved + found.worsened + found.unchanged == 96
    oracle, plain = report.rows[4], report.rows[3]
    assert oracle.cells[EFFECT].against.worsened == oracle.cells[LEAN].against.worsened == 0
    assert plain.cells[LEAN].against.worsened == 0
    assert plain.cells[LEAN].against.improved == plain.costs.reformulated > 0
    assert oracle.pareto == frozenset()


def test_the_written_runs_have_the_scores_that_were_reported(written):
    report, out = written
    demo = demo_files()
    names = {"bm25": "bm25", "qld": "qld", "detconstsort": "detconstsort",
             "reformulate:reduce": "reformulate-reduce"}  # fmt: skip
    runs = {method: out / "runs" / f"{name}.run" for method, name in names.items()}
    again = measure(runs, demo.docs, qrels=demo.qrels, background=runs["bm25"], measures=[a.text for a in report.asked])
    # Values of queries have their sign, and the reported means are of absolute values.
    signed = [one.signature.replace("sign='abs'", "sign='signed'") for one in report.asked]
    assert [one.signature for one in again.asked] == signed
    for run in again.runs:
        for name, values in run.values.items():
            assert run.query_ids == report.query_ids
            np.testing.assert_allclose(values, report.values[run.name][name], atol=1e-12)


def test_a_run_of_the_base_is_the_base(written, store):
    report, out = written
    again = bench("demo", [f"run:{out / 'runs' / 'bm25.run'}"], settings=BenchSettings(store=store))
    for cell in again.rows[1].cells.values():
        assert (cell.change, cell.p_holm, cell.against.unchanged) == (0.0, 1.0, 96)
        assert (cell.low, cell.high, cell.against.low, cell.against.high) == (None, None, None, None)
    assert again.rows[0].cells[EFFECT].mean == report.rows[0].cells[EFFECT].mean


def test_the_page_and_the_tables_say_what_was_found(written):
    report, out = written
    page = ElementTree.fromstring((out / "report.html").read_text(encoding="utf-8"))
    # For each measure of lean: results reordered, queries reformulated, other rankers.
    assert len(page.findall(".//{*}svg")) == 3 * len(report.leans) == 6
    words = "".join(page.itertext())
    for rule in report.rules:
        assert rule in words
    rows = list(csv.DictReader((out / "tables" / "methods.csv").read_text().splitlines()))
    assert len(rows) == 5 * 4
    first = next(row for row in rows if (row["method"], row["measure"]) == ("qld", LEAN))
    cell = report.rows[1].cells[LEAN]
    assert (float(first["mean"]), float(first["change"])) == pytest.approx((cell.mean, cell.change))
    assert (out / "tables" / "queries.csv").read_text().count("\n") == 1 + 5 * 96


def test_the_same_bench_again_has_the_same_results_whatever_the_size_of_a_batch(written, store, tmp_path, monkeypatch):
    report, out = written
    monkeypatch.setattr("askew.study.bench.runs._CHUNK", 7)
    again = bench("demo", DEMO_METHODS, settings=BenchSettings(out=tmp_path, store=store, equivalence="off"))
    assert again.to_dict() == report.to_dict()
    assert (tmp_path / "runs" / LIST).read_text() == (out / "runs" / LIST).read_text()


def test_the_choice_reads_no_judgement_and_the_oracle_does(toy, replay, store, tmp_path):
    other = write_toy(tmp_path / "other", {"q1": 0, "q2": 3, "q3": 2})
    found = {}
    for name, place in (("one", toy), ("other", other)):
        out = tmp_path / f"out-{name}"
        given = BenchSettings(method_settings=replay, agree=0.0, equivalence="off", k=6, out=out, store=store)
        bench(str(place), list(replay), settings=given)
        found[name] = [(out / "runs" / f"reformulate-replay{end}.run").read_text() for end in ("", "-oracle")]
    assert found["one"][0] == found["other"][0]
    assert found["one"][1] != found["other"][1]


def test_queries_that_a_run_lacks_have_no_results_and_are_counted(toy, store):
    run = toy / "mine.run"
    run.write_text("q1 Q0 d1 1 2.0 me\nq1 Q0 d0 2 1.0 me\nq2 Q0 d5 1 1.0 me\nother Q0 d5 1 1.0 me\n")
    report = bench(str(toy), [f"run:{run}"], f"{EFFECT} {LEAN}", settings=BenchSettings(k=6, store=store))
    row = report.rows[1]
    assert row.costs.empty == 1
    assert report.values[row.method.text][EFFECT].tolist() == [1.0, 1.0, 0.0]
    assert (row.cells[EFFECT].n, row.cells[LEAN].n, report.rows[0].cells[LEAN].n) == (3, 2, 2)
    notes = {note.code: note.values["queries"] for note in report.notes if "queries" in note.values}
    assert notes == {"other-queries": 1, "no-results": 1, "fewer-queries": 2}


def test_a_run_of_other_queries_or_documents_is_refused(toy, store):
    run = toy / "wrong.run"
    run.write_text("x1 Q0 d1 1 2.0 me\n")
    with pytest.raises(DataError, match=r"\b1 .*\b3 ") as error:
        bench(str(toy), [f"run:{run}"], settings=BenchSettings(store=store))
    assert (error.value.code, error.value.values) == ("other-queries", {"query": "x1", "first": "q1"})
    run.write_text("q1 Q0 d1 1 2.0 me\nq1 Q0 d99 2 1.0 me\n")
    with pytest.raises(DataError) as error:
        bench(str(toy), [f"run:{run}"], settings=BenchSettings(store=store))
    assert (error.value.code, error.value.values) == ("unknown-documents", {"document": "d99", "query": "q1"})


def test_only_requested_queries_are_taken_and_the_rest_is_counted(toy, store, tmp_path):
    wanted = tmp_path / "some.tsv"
    wanted.write_text("q1\tnurse likes\nq9\tnobody\n")
    report = bench(str(toy), ["qld"], queries=wanted, settings=BenchSettings(store=store))
    assert report.query_ids == ["q1"]
    found = [(note.code, note.values["queries"]) for note in report.notes[:2]]
    assert found == [("not-judged", 1), ("not-requested", 2)]
    wanted.write_text("q9\tnobody\n")
    with pytest.raises(DataError) as error:
        bench(str(toy), ["qld"], queries=wanted, settings=BenchSettings(store=store))
    assert (error.value.code, error.value.values) == ("no-judged-query", {"queries": 1, "judged": 3})


def test_queries_without_a_judgement_are_left_out_and_counted(store, tmp_path):
    place = write_toy(tmp_path / "less", {"q1": 1, "q3": 2})
    report = bench(str(place), ["qld"], settings=BenchSettings(store=store))
    assert report.query_ids == ["q1", "q3"]
    assert (report.notes[0].code, report.notes[0].values) == ("no-judgement", {"queries": 1})


class LikesPay:
    """A cross-encoder that likes documents about pay, and nurses a little."""

    def predict(self, pairs, **_):
        return np.array([2.0 * ("pay" in text) + ("nurse" in text) for _, text in pairs], np.float32)


def test_a_cross_encoder_reranks_what_the_base_found(toy, store, tmp_path, monkeypatch):
    monkeypatch.setattr("askew.search.neural.load_model", lambda *_: LikesPay())
    folder = tmp_path / "model"
    folder.mkdir()
    out = tmp_path / "out"
    report = bench(str(toy), [f"rerank:{folder}"], settings=BenchSettings(out=out, k=3, store=store))
    lines = (next((out / "runs").glob("rerank-*.run"))).read_text().splitlines()
    first = {line.split()[0]: line.split()[2] for line in reversed(lines)}
    assert first == {"q1": "d2", "q2": "d5", "q3": "d2"}
    assert report.values[report.rows[1].method.text][EFFECT].tolist() == [0.5, 1.0, 1.0]


def test_the_base_alone_is_a_report_too(toy, store, tmp_path):
    report = bench(str(toy), ["bm25"], settings=BenchSettings(out=tmp_path / "out", store=store))
    assert [row.method.text for row in report.rows] == ["bm25"]
    assert (set(report.tests.values()), report.rows[0].pareto) == ({0}, {LEAN, "NFaiRR@10"})


def test_files_of_others_are_never_overwritten(toy, store, tmp_path):
    bench(str(toy), ["qld"], settings=BenchSettings(out=tmp_path, store=store))
    bench(str(toy), ["rm3"], settings=BenchSettings(out=tmp_path, store=store))
    runs = {path.name for path in (tmp_path / "runs").iterdir()}
    assert runs == {"bm25.run", "rm3.run", LIST}
    (tmp_path / "runs" / "qld.run").write_text("mine")
    with pytest.raises(ConfigError, match=r"qld\.run: this file exists"):
        bench(str(toy), ["qld"], settings=BenchSettings(out=tmp_path, store=store))
    assert (tmp_path / "runs" / "qld.run").read_text() == "mine"


# ---- models that know the queries


def test_a_model_that_is_evaluated_on_its_training_queries_is_noted(tmp_path):
    from askew.study.bench.bench import _seen
    from askew.train.common import write_held_out

    write_held_out(tmp_path, ["q1"], ["Nurse likes?"])
    methods = [
        MitigationMethod(f"rerank:{tmp_path}", "rerank", str(tmp_path)),
        MitigationMethod(f"reformulate:extract:{tmp_path}", "reformulate", "extract", str(tmp_path)),
        MitigationMethod("detconstsort", "rerank", "detconstsort"), MitigationMethod("qld", "ranker", "qld"),
    ]  # fmt: skip
    notes = _seen(methods, list(QUERIES.values()))
    held_out = {"queries": 2, "held_out": tmp_path / "held-out.jsonl"}
    assert [(note.code, note.values) for note in notes] == [("not-held-out", held_out)] * 2
    assert str(tmp_path / "held-out.jsonl") in notes[0]
    # The same words are the same query, whatever the punctuation.
    assert _seen(methods, ["nurse likes"]) == []


def test_a_model_of_which_no_query_was_held_out_may_be_one_of_another_collection(tmp_path):
    from askew.study.bench.bench import _seen
    from askew.train.common import write_held_out

    write_held_out(tmp_path, ["q1"], ["another question"])
    (note,) = _seen([MitigationMethod(f"rerank:{tmp_path}", "rerank", str(tmp_path))], list(QUERIES.values()))
    assert note.code == "none-held-out"


# ---- numbers that agree with each other and with askew measure


def test_the_size_of_a_signed_measure_has_the_signature_of_the_absolute_one_and_its_mean(written):
    report, out = written
    base, signature = report.rows[0], {one.text: one.signature for one in report.asked}[LEAN]
    (run,) = (out / "runs").glob("bm25.*")
    (found,) = measure(run, demo_files().docs, "ARaB(tf,sign=abs)@10").to_polars().to_dicts()
    assert signature == found["signature"] and "sign='abs'" in signature
    assert base.cells[LEAN].mean == pytest.approx(found["mean"])


def test_the_base_keeps_all_of_itself_where_it_has_no_results_for_some_queries(tmp_path, store):
    toy = write_toy(tmp_path / "toy", {**QRELS, "q4": 1})
    (toy / "queries.tsv").write_text((toy / "queries.tsv").read_text() + "q4\tzzz\n")
    report = bench(str(toy), ["greedy@2"], settings=BenchSettings(store=store))
    assert report.rows[0].costs.empty == 1 and report.rows[0].costs.kept == 1


REPLAY = "reformulate:replay"


def test_no_table_has_seconds_because_shared_work_would_count_for_each_method(written):
    report, _ = written
    assert not [name for name in report.to_polars().columns if "second" in name]
    assert "seconds" not in repr(methods_table(report)).lower()


def test_progress_names_a_method_before_it_runs(replay, toy, store, monkeypatch):
    from askew.study.bench import runs

    told, during, made = [], [], runs.ReformulateStage.run

    def noticed(self, rows):
        during.append(told[-1])
        return made(self, rows)

    monkeypatch.setattr(runs.ReformulateStage, "run", noticed)
    settings = BenchSettings(store=store, equivalence="off", method_settings={REPLAY: replay[REPLAY]})
    bench(str(toy), ["mmr", REPLAY], settings=settings, progress=lambda *one: told.append(one[2]))
    assert during == [REPLAY]
