"""What every plugin of a kind must do. Call these from your own tests.

from askew.testing.contracts import check_measure_family
def test_my_measure_keeps_the_contract():
    check_measure_family(MyMeasure)
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

import polars as pl
import pyarrow as pa

from askew.core.measure import Direction, Measure
from askew.measures.catalogue import Catalogue
from askew.plugins.kinds import MeasureFamily, Stage
from askew.stages.measure import measure

TOY_DOCS = {
    "d1": "He said that he would bring his brother.",
    "d2": "She asked her mother and her sister.",
    "d3": "The station opens at nine.",
    "d4": "A man and a woman met; she smiled, he waved.",
    "d5": "",
    "d6": "Die Mutter, naïve façade, 100 %: she’s here",
}
TOY_RUN = {
    "q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0},
    "q2": {"d4": 2.5, "d5": 2.5, "d6": 0.5, "d1": 0.1},
    "q3": {"d3": 1.0},
}
TOY_QRELS = [("q1", "d2", 1), ("q2", "d6", 2), ("q2", "d1", 1), ("q3", "d1", 1)]


def check_measure_family(family: MeasureFamily) -> None:
    """A family scores the toy collection, whole and finite, and its text survives being read back."""
    assert isinstance(family, MeasureFamily), "the family lacks an attribute: see askew.plugins.kinds.MeasureFamily"
    (asked,) = Catalogue(overrides={"background": "self"}).complete([f"{family.name}@3"])
    assert asked.direction in Direction
    assert str(Measure.parse(asked.signature)) == asked.signature, "the signature must survive being read back"
    first = _scores(family.name, TOY_RUN)
    assert set(first) == set(TOY_RUN), "every query of the run must have a value or a reason"
    assert all(math.isfinite(value) for value in first.values()), "a value must be a finite number"
    shuffled = {query: dict(_shuffled(docs)) for query, docs in _shuffled(TOY_RUN)}
    assert _scores(family.name, shuffled) == first, "the order of the lines must not matter"


def check_stage(stage: Stage, rows: pa.Table) -> None:
    """A stage accounts for every row, gives the same answer twice, and does not care how rows are cut."""
    assert isinstance(stage, Stage), "the stage lacks an attribute: see askew.plugins.kinds.Stage"
    json.dumps(dict(stage.settings()), sort_keys=True)
    whole, dropped = stage.run(rows)
    again, _ = stage.run(rows)
    assert whole.equals(again), "the same rows must give the same answer"
    used = getattr(stage, "rows_used", None)
    kept = used(whole) if used is not None else whole.num_rows
    assert kept + sum(dropped.values()) == rows.num_rows, "rows in = rows kept + rows dropped"
    halves = [stage.run(part)[0] for part in (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2))]
    assert pa.concat_tables(halves).equals(whole), "the size of a shard must not matter"


def _shuffled(items: dict[str, Any]) -> list[tuple[str, Any]]:
    pairs = list(items.items())
    random.Random(7).shuffle(pairs)
    return pairs


def _scores(name: str, run: dict[str, dict[str, float]]) -> dict[str, float]:
    qrels = pl.DataFrame(TOY_QRELS, schema=["query_id", "doc_id", "relevance"], orient="row")
    report = measure({"toy": run}, TOY_DOCS, qrels=qrels, measures=[f"{name}@3"])
    (scores,) = report.runs
    return dict(zip(scores.query_ids, scores.values[f"{name}@3"].tolist(), strict=True))
