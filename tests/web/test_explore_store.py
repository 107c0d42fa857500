"""Pairs of a dataset, steps of a store, runs side by side, tables of a log."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from askew.core.errors import ConfigError, DataError, StoreError, UnknownName
from askew.core.measure import gain_column
from askew.core.store.manifest import key_of
from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.data.memory import run_in_memory
from askew.data.runs import read_run
from askew.logs.page import read_log_report, report_page
from askew.ui.explorer.explorer import Explorer
from askew.ui.explorer.opening import Sources, open_sources
from askew.ui.explorer.pairs import PairFilter, as_tsv, datasets, open_pairs
from askew.ui.explorer.plan import plan_of, step_of
from askew.ui.explorer.runs import audit
from conftest import DECIDING


@pytest.fixture(scope="module")
def table(store):
    return open_pairs(store)


@pytest.fixture(scope="module")
def rows(store):
    manifest = next(one for one in store.steps() if one.step == "pairs")
    return pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(manifest))))


def test_all_pages_together_are_all_pairs(table, rows):
    first = table.page(PairFilter(size=200))
    every = [row for page in range(1, first.pages + 1) for row in table.page(PairFilter(page=page, size=200)).rows]
    assert first.total == len(rows) == len(every)
    assert [row["variant_id"] for row in every] == rows["variant_id"].to_list()
    assert table.page(PairFilter(page=first.pages + 1, size=200)).rows == []


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (
            PairFilter(text="NURSE"),
            pl.col("text").str.contains("nurse") | pl.col("original_text").str.contains("nurse"),
        ),
        (PairFilter(subset="fair"), pl.col("fair")),
        (PairFilter(outcome="same-less"), pl.col("outcome") == "same-less"),
        (PairFilter(method="rewrite", label="4"), (pl.col("method") == "rewrite") & (pl.col("label") == 4)),
        (
            PairFilter(group="4", lean_min=0.1),
            (pl.col("group") == 4) & (pl.col(gain_column(DECIDING)) >= 0.1),
        ),
        (PairFilter(text="%_[("), pl.lit(False)),
    ],
)
def test_a_filter_keeps_the_pairs_that_fit_and_no_other(table, rows, wanted, kept):
    found = table.page(wanted.but(size=200))
    expected = rows.filter(kept)
    assert found.total == len(expected)
    assert [row["variant_id"] for row in found.rows] == expected["variant_id"].head(200).to_list()


def test_pairs_are_sorted_by_what_they_gain_or_lose(table):
    for sort, sign in (("-effectiveness", -1), ("effectiveness", 1)):
        found = table.page(PairFilter(sort=sort, size=200))
        gains = [row["measures"]["RR@10"]["gain"] for row in found.rows]
        assert gains == sorted(gains, key=lambda gain: sign * gain)


def test_the_counts_of_a_filter_are_those_of_the_table(table, rows):
    assert table.counts["subset"]["fair"] == rows["fair"].sum()
    assert sum(table.counts["outcome"].values()) == rows["outcome"].is_not_null().sum()
    assert table.measures[:2] == ["RR@10", "AP@10"]


@pytest.mark.parametrize("wanted", [PairFilter(subset="nix"), PairFilter(outcome="1"), PairFilter(kind="x")])
def test_a_filter_that_the_dataset_cannot_have_is_refused(table, wanted):
    with pytest.raises(UnknownName):
        table.page(wanted)


def test_a_selection_is_written_as_parquet_and_tsv(table, rows, tmp_path):
    chosen = table.selection(PairFilter(subset="fair"))
    chosen.sink_parquet(tmp_path / "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet").equals(rows.filter("fair"))
    harmful = chosen.head(1).with_columns(text=pl.lit("=1+1\tx"))
    as_tsv(harmful, tmp_path / "a.tsv")
    assert pl.read_csv(tmp_path / "a.tsv", separator="\t")["text"].to_list() == ["'=1+1\tx"]


def test_a_damaged_part_is_an_error(store, tmp_path):
    manifest = datasets(store)[0]
    folder = tmp_path / f"{manifest.step}-{manifest.key}"
    shutil.copytree(store.folder(manifest.step, manifest.key), folder)
    assert open_pairs(Store(tmp_path)).name == folder.name
    part = folder / manifest.parts[0].file
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match="damaged"):
        open_pairs(Store(tmp_path))


def test_pairs_of_an_earlier_version_are_not_shown_for_their_columns_have_other_names(store, tmp_path):
    manifest = datasets(store)[0]
    key = key_of(manifest.stage, 1, manifest.settings, manifest.input_key)
    folder = tmp_path / f"{manifest.step}-{key}"
    shutil.copytree(store.folder(manifest.step, manifest.key), folder)
    (folder / "manifest.json").write_text(replace(manifest, version=1, key=key).to_json())
    assert len(Store(tmp_path).steps()) == 1
    with pytest.raises(DataError) as error:
        open_pairs(Store(tmp_path))
    assert error.value.code == "no-pairs"


def test_a_store_without_pairs_says_how_they_are_made(tmp_path):
    with pytest.raises(DataError, match="askew run"):
        open_pairs(Store(tmp_path))


def test_the_plan_has_every_step_after_the_one_it_reads_with_all_rows_accounted_for(store):
    nodes = plan_of(store)
    places = {node.name: place for place, node in enumerate(nodes)}
    chain = [node.step for node in nodes if node.step not in ("mentions", "half-mentions")]
    assert chain == ["neutral", "variants", "kept", "runs", "scores", "pairs", "held-out", "placebo"]
    for place, node in enumerate(nodes):
        if node.step == "placebo":
            assert places[node.reads] < place
            continue
        before = places["runs-" + node.reads.partition("-")[2]] if node.step == "held-out" else place - 1
        assert node.reads is None or places[node.reads] == before
    kept = next(node for node in nodes if node.step == "kept")
    assert kept.rows_in == kept.rows_out + sum(kept.dropped.values())
    assert {node.name for node in nodes} == {f"{one.step}-{one.key}" for one in store.steps()}


def test_steps_that_read_the_same_one_branch_off(store, tmp_path):
    for node in plan_of(store):
        shutil.copytree(store.root / node.name, tmp_path / node.name)
    kept = next(path for path in tmp_path.iterdir() if path.name.startswith("kept-"))
    other = json.loads((kept / "manifest.json").read_text())
    key = key_of(other["stage"], 2, other["settings"], other["input_key"])
    other |= {"step": "other", "version": 2, "key": key}
    (tmp_path / f"other-{key}").mkdir()
    (tmp_path / f"other-{key}" / "manifest.json").write_text(json.dumps(other))
    found = {node.step: node for node in plan_of(Store(tmp_path))}
    assert found["other"].reads == found["kept"].reads


def test_only_steps_that_the_store_lists_can_be_looked_at(store):
    name = plan_of(store)[0].name
    assert step_of(store, name)[1]["askew"]
    for wrong in ("../../etc", "nix", ""):
        with pytest.raises(UnknownName):
            step_of(store, wrong)


@pytest.fixture(scope="module")
def audited(explorer):
    return audit({path.name: read_run(path) for path in demo_files().runs}, explorer)


def test_two_runs_are_measured_and_compared(audited):
    assert [run.name for run in audited.report.runs] == ["bm25.run", "minilm.run"]
    assert audited.comparison.old == "bm25.run"
    queries, gains = audited.gains("ARaB(tf)@10")
    old, new = (dict(zip(r.query_ids, r.values["ARaB(tf)@10"], strict=True)) for r in audited.report.runs)
    assert gains.tolist() == pytest.approx([abs(old[q]) - abs(new[q]) for q in queries])
    assert audited.comparison.results["ARaB(tf)@10"].gain == pytest.approx(gains.mean())


def test_the_worst_queries_are_those_furthest_from_the_best(audited):
    for name, key in (("AP@10", lambda v: v), ("ARaB(tf)@10", lambda v: -abs(v)), ("LexiconShare@10", lambda v: -v)):
        scores = audited.report.runs[0]
        known = [v for v in scores.values[name].tolist() if not math.isnan(v)]
        found = audited.worst(name, 0, 5)
        assert [one.value for one in found] == pytest.approx(sorted(known, key=key)[:5])
        assert all(one.gain is None and one.text for one in found)
    lost = audited.worst("AP@10", 1, 3)
    assert [one.gain for one in lost] == pytest.approx(np.sort(audited.gains("AP@10")[1])[:3])
    every = audited.worst("AP@10", 1, 10_000)
    assert len(every) == (audited.gains("AP@10")[1] < 0).sum() and all(one.gain < 0 for one in every)


def test_a_measure_that_is_not_defined_for_these_runs_is_left_out_and_told(explorer):
    run = run_in_memory({"care-q02": {"care-07": 2.0, "care-17": 1.0}}, "mine")
    counting = replace(explorer.counting, measures=(*explorer.counting.measures, "NFaiRR@10"))
    found = audit({"mine": run}, Explorer(explorer.searched, counting))
    assert "NFaiRR@10" not in found.measures and "RR@10" in found.measures
    assert any("NFaiRR@10" in note for note in found.report.notes)
    assert found.comparison is None
    with pytest.raises(ConfigError) as error:
        found.values("x", 0)
    assert error.value.code == "unknown-measure" and error.value.values == {"measure": "x"}


def test_documents_that_are_not_here_are_an_error_or_left_out_as_asked(explorer):
    run = run_in_memory({"care-q02": {"care-07": 2.0, "nowhere": 1.0}, "law-q08": {"law-01": 1.0}}, "mine")
    with pytest.raises(DataError, match="nowhere"):
        audit({"mine": run}, explorer)
    assert "ARaB(tf)@10" in audit({"mine": run}, explorer, missing="drop").measures
    with pytest.raises(DataError) as error:
        audit({"mine": run_in_memory({"q": {"nowhere": 1.0}}, "mine")}, explorer)
    assert error.value.code == "other-collection"


def test_runs_of_a_folder_can_be_chosen_beside_those_of_the_demo(store, tmp_path):
    (tmp_path / "mine.run").write_text("care-q02 Q0 care-07 1 2.0 t\n")
    (tmp_path / ".hidden").write_text("no run")
    (tmp_path / "folder").mkdir()
    found = open_sources(Sources(runs=tmp_path)).runs
    assert list(found) == ["demo:bm25.run", "demo:minilm.run", "file:mine.run"]
    assert found["file:mine.run"] == tmp_path / "mine.run"
    with pytest.raises(DataError, match="runs="):
        open_sources(Sources(runs=tmp_path / "nowhere"))


def test_without_texts_and_judgements_there_is_nothing_to_measure_with():
    with pytest.raises(DataError) as error:
        audit({"mine": run_in_memory({"q": {"d": 1.0}}, "mine")}, None)
    assert error.value.code == "nothing-to-measure"


def test_a_folder_of_log_tables_is_read_back_as_the_report_it_was(log_folder):
    assert report_page(read_log_report(log_folder)) == (log_folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("facts", ["", "[]", "{}", '{"settings": 1}'])
def test_a_folder_that_is_no_log_result_is_refused_in_one_line(tmp_path, facts):
    (tmp_path / "report.json").write_text(facts)
    with pytest.raises(DataError, match="askew logs --out"):
        read_log_report(tmp_path)
    with pytest.raises(DataError, match="askew logs --out"):
        read_log_report(tmp_path / "nowhere")
