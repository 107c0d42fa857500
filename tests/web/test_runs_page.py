"""Runs: plain words, curves of a bounded number of points, scales that do not depend on what is drawn."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.data.collection import demo_files
from askew.data.memory import run_in_memory
from askew.data.runs import read_run
from askew.report.charts import COLUMNS, About, Line, sorted_gains, steps, thinned
from askew.ui.explorer.runs import audit
from askew.ui.web.pages.runs import RunsForm, runs_page
from askew.ui.web.pages.shell import render

ABOUT = About("x", "x", "x")


def points(svg):
    """The most points of a path."""
    return max(len(re.findall("[HLV]", path)) for path in re.findall(r' d="([^"]*)"', svg))


@given(st.integers(1, 5000))
def test_a_curve_has_a_bounded_number_of_points_whatever_the_number_of_queries(n):
    values = np.sort(np.random.default_rng(n).normal(size=n))
    drawn = steps(ABOUT, [Line("a", values, np.arange(1, n + 1) / n, 0)], "x", "y")
    assert points(drawn) <= 2 * COLUMNS
    assert points(sorted_gains(ABOUT, values, "gain")) <= 2 * COLUMNS + 2


def test_a_thinned_curve_keeps_its_ends_and_is_off_by_less_than_can_be_seen():
    n = 100_000
    values = np.sort(np.random.default_rng(0).normal(size=n))
    line = Line("a", values, np.arange(1, n + 1) / n, 0)
    found = thinned(line)
    assert len(found.x) == COLUMNS and (found.x[0], found.x[-1]) == (values[0], values[-1])
    drawn = found.y[np.searchsorted(found.x, values, side="right").clip(1) - 1]
    assert np.abs(drawn - line.y).max() <= 1.01 / (COLUMNS - 1)


def test_the_page_of_a_run_with_thousands_of_queries_is_no_larger_than_that_of_a_hundred(explorer):
    rng = np.random.default_rng(3)
    docs = [str(one) for one in explorer.searched.ranker.doc_ids.to_pylist()]

    def page(n):
        runs = {}
        for name in ("a", "b"):
            lists = {f"q{i}": {docs[j]: float(10 - r) for r, j in enumerate(rng.choice(len(docs), 3, False))}
                     for i in range(n)}  # fmt: skip
            runs[name] = run_in_memory(lists, name)
        return len(render(runs_page({}, RunsForm(("a", "b"), measure="ARaB(tf)@10"), audit(runs, explorer), "", "")))

    assert page(4000) < 1.6 * page(400)


@pytest.fixture(scope="module")
def both(explorer):
    return {path.name: read_run(path) for path in demo_files().runs}


def test_scales_are_those_of_the_measure_and_not_of_the_largest_bar(both, explorer):
    names = list(both)
    two, same = audit(both, explorer), audit({"a": both[names[0]], "b": both[names[0]]}, explorer)
    assert two.scale("RR@10") == same.scale("RR@10") == ((0.0, 1.0), (-1.0, 1.0))
    (low, high), gains = two.scale("ARaB(tf)@10")
    values = np.concatenate([two.values("ARaB(tf)@10", run) for run in (0, 1)])
    assert (low, high) == (min(values.min(), 0), max(values.max(), 0))
    assert gains == (-np.abs(values).max(), np.abs(values).max())


def test_counts_of_queries_have_their_unit_and_no_word_is_retired(client):
    text = client.get("/runs?run=demo:bm25.run&run=demo:minilm.run").text
    assert re.search("<th[^>]*counts-head[^>]*>[^<]*queries", text)
    assert "helped" not in text and "hurt" not in text and ">n<" not in text


def test_without_runs_the_upload_is_open_and_the_page_says_what_to_do(service, tmp_path):
    from askew.ui.explorer.opening import Sources

    text = service(sources=Sources(store=tmp_path)).get("/runs").text
    assert '<details open="">' in text and "Select one run" in text


def test_means_are_over_the_queries_of_the_runs_and_not_over_all_judged_ones(both, explorer):
    name, run = next(iter(both.items()))
    some = run.lines["query_id"].unique().sort().to_list()[:5]
    lists = {query: dict(run.lines.filter(query_id=query).select("doc_id", "score").iter_rows()) for query in some}
    part, whole = (audit({name: one}, explorer).report for one in (run_in_memory(lists, name), run))
    values = dict(zip(whole.runs[0].query_ids, whole.runs[0].values["RR@10"].tolist(), strict=True))
    found = part.mean(part.runs[0], next(one for one in part.asked if one.text == "RR@10"))
    assert found.n == 5 < len(values) and found.mean == pytest.approx(np.mean([values[query] for query in some]))
    assert [note.code for note in part.notes if note.startswith(f"{len(values) - 5:,} judged")] == ["no-results"]


def test_a_link_takes_the_other_run_as_the_baseline(client):
    text = client.get("/runs?run=demo:bm25.run&run=demo:minilm.run").text
    assert "minilm.run against bm25.run" in text
    (link,) = re.findall('href="(/runs[^"]*)">Take minilm.run as the baseline', text)
    swapped = client.get(link.replace("&amp;", "&")).text
    assert "bm25.run against minilm.run" in swapped and "Take bm25.run as the baseline" in swapped
