"""The headline is the same in measure, audit and the report of a build, to the last digit."""

import dataclasses

import pytest

import askew
from askew.pairs.report import headline_of_originals
from askew.study.headline import headline

KEPT = "work-q"
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


@pytest.fixture(scope="module")
def ranker():
    return askew.Ranker("bm25").index("demo")


@pytest.fixture(scope="module")
def queries():
    table = askew.Collection.open("demo").queries
    found = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    return {query: text for query, text in found.items() if query.startswith(KEPT)}


def figures(found):
    """All figures. The name of the run is another; where documents come from is a note."""
    return dataclasses.asdict(dataclasses.replace(found, run="", notes=()))


def audited(ranker, queries):
    settings = askew.AuditSettings(k=20, methods=(), tries=0, worst=0)
    return askew.audit(ranker, queries, docs="demo", measures="ARaB(tf)@10", settings=settings).headline


@pytest.mark.usefixtures("all_mentions")
def test_measure_audit_and_report_have_the_same_headline(ranker, queries, tmp_path):
    (measured,) = headline(ranker.search(queries, k=20), "demo", queries=queries)
    assert measured.deciding.lists > 2
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    few = askew.Collection.open("demo", queries=queries)
    built = askew.build(recipe, few, store=tmp_path / "store")
    assert figures(audited(ranker, queries)) == figures(measured)
    assert figures(headline_of_originals(built)) == figures(measured)
    page = built.report(tmp_path / "out").html.read_text(encoding="utf-8")
    assert measured.sentence in page
