"""Write and read the scores of every query, from which a report is recomputed without searching."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.app.bench.methods import MitigationMethod
from askew.app.bench.results import BenchMeasure, BenchReport, Costs, Scored, make_report
from askew.core.errors import DataError
from askew.core.measure import Bounds, Direction

SCORES = "tables/scores.parquet"
_ABOUT = b"askew.bench"
_VERSION = 1


def write_scores(report: BenchReport) -> dict[str, bytes]:
    """Return the file by its name: one row for each method, seed and query, and one column for each measure."""
    parts = [
        pa.table({
            "method": pa.array([one.method.text] * len(report.query_ids)).dictionary_encode(),
            "query_id": pa.array(report.query_ids, pa.string()),
            **{text: pa.array(values, pa.float64(), from_pandas=True) for text, values in one.values.items()},
        })
        for one in report.scored
    ]  # fmt: skip
    about = {
        "version": _VERSION, "collection": report.collection, "k": report.k, "agree": report.agree,
        "groups": report.groups, "rules": list(report.rules), "notes": list(report.notes),
        "measures": [
            {**asdict(one), "direction": one.direction.value, "bounds": [_finite(end) for end in one.bounds]}
            for one in report.asked
        ],
        "methods": [{"method": _plain(one.method), "costs": asdict(one.costs)} for one in report.scored],
    }  # fmt: skip
    table = pa.concat_tables(parts, promote_options="default").unify_dictionaries()
    kept = {**(table.schema.metadata or {}), _ABOUT: json.dumps(about).encode()}
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(kept), out, compression="zstd", compression_level=19)
    return {SCORES: out.getvalue()}


def read_scores(place: str | Path) -> BenchReport:
    """Recompute the report of a bench from its scores; ``place`` is the output folder of the bench, or the file."""
    path = Path(place)
    file = path / SCORES if path.is_dir() else path
    try:
        table = pq.read_table(file)
        about = json.loads((table.schema.metadata or {})[_ABOUT])
        if about["version"] != _VERSION:
            raise DataError(f"{file}: this file was written by another version of askew; run askew bench again")
        return _report(pl.DataFrame(pl.from_arrow(table)), about)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: expected the scores of askew bench --out ({type(error).__name__}: {error})") from None


def _report(table: pl.DataFrame, about: Mapping[str, Any]) -> BenchReport:
    measures = [
        BenchMeasure(
            one["text"], one["signature"], Direction(one["direction"]), _bounds(*one["bounds"]), one["effectiveness"]
        )
        for one in about["measures"]
    ]  # fmt: skip
    scored, ids = [], table.filter(pl.col("method") == about["methods"][0]["method"]["text"])["query_id"].to_list()
    for one in about["methods"]:
        mine = table.filter(pl.col("method") == one["method"]["text"])
        if mine["query_id"].to_list() != ids:
            raise ValueError(
                f"the queries of the method {one['method']['text']} differ from the queries of the base ranker"
            )
        values = {each.text: mine[each.text].fill_null(float("nan")).to_numpy().copy() for each in measures}
        scored.append(Scored(_method(one["method"]), values, Costs(**one["costs"])))
    return make_report(
        about["collection"], ids, about["k"], about["agree"], measures, scored, about["rules"], about["notes"],
        about["groups"],
    )  # fmt: skip


def _plain(method: MitigationMethod) -> dict[str, Any]:
    """Return a method as JSON values, without its settings."""
    first = None if method.first is None else _plain(method.first)
    names = ("text", "kind", "name", "choice", "strength", "seed")
    return {**{name: getattr(method, name) for name in names}, "first": first}


def _method(facts: Mapping[str, Any]) -> MitigationMethod:
    first = None if facts["first"] is None else _method(facts["first"])
    return MitigationMethod(
        facts["text"], facts["kind"], facts["name"], facts["choice"], {}, facts["strength"], first, facts["seed"]
    )


def _finite(end: float) -> float | None:
    return end if np.isfinite(end) else None


def _bounds(low: float | None, high: float | None) -> Bounds:
    return -np.inf if low is None else low, np.inf if high is None else high
