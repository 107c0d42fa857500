"""One rule for which queries count: the same means from measure, compare, bench and ir_measures."""

import ir_measures
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import askew
from askew.core.errors import Note
from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.pairs.gains import NO_EFFECTIVENESS
from askew.pairs.plan import prepare
from askew.pairs.recipe import read_recipe, with_settings
from askew.study.bench.bench import BenchSettings, bench

# RR without a cutoff: for RR@10 ir_measures takes another program, which breaks ties in another way.
MEASURES = ("nDCG@10", "RR", "AP@10", "P@5")
LEAN = "ARaB(tf)@10"


@pytest.fixture(scope="module")
def partial(tmp_path_factory):
    """A run of the demo that answers 80 of the 96 judged queries."""
    demo = demo_files()
    lines = demo.runs[0].read_text(encoding="utf-8").splitlines(keepends=True)
    queries = list(dict.fromkeys(line.split()[0] for line in lines))
    left_out = set(queries[::6])
    assert (len(queries), len(left_out)) == (96, 16)
    path = tmp_path_factory.mktemp("runs") / "partial.run"
    path.write_text("".join(line for line in lines if line.split()[0] not in left_out), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def expected(partial):
    """What ir_measures says."""
    found = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(text) for text in MEASURES],
        ir_measures.read_trec_qrels(str(demo_files().qrels)),
        ir_measures.read_trec_run(str(partial)),
    )
    return {str(measure): value for measure, value in found.items()}


def test_measure_has_the_means_of_ir_measures(partial, expected):
    demo = demo_files()
    report = askew.measure([partial], demo.docs, qrels=demo.qrels, measures=[*MEASURES, LEAN]).to_dict()
    found = report["runs"][0]["measures"]
    assert {text: found[text]["mean"] for text in MEASURES} == pytest.approx(expected)
    assert [found[text]["n"] for text in (*MEASURES, LEAN)] == [96, 96, 96, 96, 80]


def test_compare_has_the_means_of_ir_measures(partial, expected):
    demo = demo_files()
    found = askew.compare(demo.runs[0], partial, demo.docs, qrels=demo.qrels, measures=[*MEASURES, LEAN])
    assert {text: found.results[text].new for text in MEASURES} == pytest.approx(expected)
    assert [found.results[text].n for text in (*MEASURES, LEAN)] == [96, 96, 96, 96, 80]
    assert found.results["nDCG@10"].worsened == 16
    assert {"measure": LEAN, "queries": 80} in [note.values for note in found.notes if isinstance(note, Note)]


def test_bench_has_the_means_of_ir_measures(partial, expected, tmp_path):
    found = bench("demo", [f"run:{partial}"], " ".join([*MEASURES, LEAN]), settings=BenchSettings(store=tmp_path))
    row = found.rows[1]
    assert {text: row.cells[text].mean for text in MEASURES} == pytest.approx(expected)
    assert [row.cells[text].n for text in (*MEASURES, LEAN)] == [96, 96, 96, 96, 80]


def test_left_out_they_are_over_the_answered_queries(partial):
    demo = demo_files()
    kept = askew.measure([partial], qrels=demo.qrels, measures="nDCG@10", unanswered="absent")
    whole = askew.measure(demo.runs[:1], qrels=demo.qrels, measures="nDCG@10")
    values = dict(zip(whole.runs[0].query_ids, whole.runs[0].values["nDCG@10"].tolist(), strict=True))
    answered = [values[query] for query in kept.runs[0].query_ids]
    assert len(answered) == 80
    assert kept.mean(kept.runs[0], kept.asked[0]).mean == pytest.approx(np.mean(answered))


def test_a_query_without_a_relevant_document_is_in_no_mean_and_in_no_pair(tmp_path):
    demo = demo_files()
    folder = tmp_path / "collection"
    folder.mkdir()
    for name in ("docs.tsv", "queries.tsv"):
        (folder / name).write_bytes((demo.docs.parent / name).read_bytes())
    lines = demo.qrels.read_text(encoding="utf-8").splitlines()
    empty = {line.split()[0] for line in lines[::5]}
    marked = [" ".join([*line.split()[:3], "0"]) if line.split()[0] in empty else line for line in lines]
    (folder / "qrels.txt").write_text("\n".join(marked) + "\n", encoding="utf-8")
    recipe, store = read_recipe("demo"), Store(tmp_path / "store")
    recipe.sections["collection"] = {"source": str(folder)}
    pairs = prepare(with_settings(recipe, {"reformulate.0": {"count": 2}}), store).plan.run(store)["pairs"].manifest
    table = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(pairs))))
    assert not set(table["query_id"].unique().to_list()) & empty
    assert pairs.dropped[NO_EFFECTIVENESS] > 0


def test_measures_of_lean_that_disagree_significantly_are_noted():
    # The new run names only one group: a smaller difference in words, but less neutral results.
    docs = {f"both{i}": "she she she " + "he " * (6 + i) for i in range(3)} | {"one": "he he", "two": "he he he"}
    old = {f"q{i}": {f"both{i % 3}": 1.0} for i in range(60)}
    new = {f"q{i}": {("one", "two")[i % 2]: 1.0} for i in range(60)}
    (note,) = askew.compare(old, new, docs, ["ARaB(tc)@10", "FaiRR@10"]).notes
    assert (note.code, note.values) == ("disagreement", {"better": ["ARaB(tc)@10"], "worse": ["FaiRR@10"]})
    assert askew.compare(old, new, docs, ["ARaB(tc)@10"]).notes == []


def test_what_holds_for_several_runs_is_one_note_that_names_them():
    run = {"q1": {"d": 1.0}, "q2": {"d": 1.0}}
    runs = {"a": run, "b": run, "c": {"q1": {"d": 1.0}}}
    notes = askew.measure(runs, {"d": "he"}, qrels={"q1": {"d": 1}}, unjudged="absent").notes
    found = [note for note in notes if "no judgement" in note]
    assert found == ["a, b: 1 of 2 queries of the run have no judgement; these queries are left out of the measures of effectiveness"]  # fmt: skip # noqa: E501
