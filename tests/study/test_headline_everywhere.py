"""The headline is the same in measure, audit, the report of a build and the explorer, to the last digit."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import askew
from askew.pairs.report import headline_of_originals
from askew.study.headline import headline
from askew.ui.explorer.opening import Sources, open_sources

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
RECIPE = """
[collection]
source = "demo"
[[reformulate]]
method = "reduce"
[retrieve]
ranker = "bm25"
k = 20
[evaluate]
measures = ["RR@10", "ARaB(tf)@10"]
[select]
selector = "refairmulate-paper"
effectiveness = "RR@10"
bias = "ARaB(tf)@10"
"""
# All queries of these collections would take minutes.
QUERIES, SHOWN = 300, 3


@pytest.fixture(params=["demo", "boolq", "fairytaleqa"])
def source(request):
    """The demo, or a collection of public data that lies beside the checkout."""
    if request.param != "demo" and not (DATA / request.param).is_dir():
        pytest.skip(f"the real data is not there: expected ../shared/data/{request.param} beside the checkout")
    return request.param if request.param == "demo" else str(DATA / request.param)


@pytest.fixture
def queries(source):
    table = askew.Collection.open(source).queries
    found = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    if source == "demo":
        return {query: text for query, text in found.items() if query.startswith("work-q")}
    kept = np.random.default_rng(5).choice(sorted(found), QUERIES, replace=False).tolist()
    return {query: found[query] for query in kept}


def figures(found):
    """All figures. The name of the run is another; where documents come from is a note."""
    return dataclasses.asdict(dataclasses.replace(found, run="", notes=()))


@pytest.mark.usefixtures("all_mentions")
def test_measure_audit_report_and_explorer_have_the_same_headline(source, queries, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ranker = askew.Ranker("bm25").index(source)
    (measured,) = headline(ranker.search(queries, k=20), source, queries=queries)
    assert measured.deciding.lists > 2
    settings = askew.AuditSettings(k=20, methods=(), tries=0, worst=0)
    audited = askew.audit(ranker, queries, docs=source, measures="ARaB(tf)@10", settings=settings).headline
    assert figures(audited) == figures(measured)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    built = askew.build(recipe, askew.Collection.open(source, queries=queries), store=tmp_path / "store")
    assert figures(headline_of_originals(built)) == figures(measured)
    assert measured.sentence in built.report(tmp_path / "out").html.read_text(encoding="utf-8")
    explorer = open_sources(Sources(store=tmp_path / "store")).explorer
    for query in list(queries)[:SHOWN]:
        one = {query: queries[query]}
        (alone,) = headline(ranker.search(one, k=10), source, queries=one)
        found = figures(explorer.search(queries[query]).headline)
        assert found == figures(alone)
