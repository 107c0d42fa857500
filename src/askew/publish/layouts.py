"""The same pairs in the papers' own files.

JSON (Optimal, Effective, Fair): {group: {query id: {query_text, metrics, score, org_query_text}}} with groups "1" to
"4", metrics Orig_KEY and New_KEY for each measure, then Label and Group. One pair stands on one line. A query may have
an Optimal and an Effective pair; the published layout has one place for each query, so Fair.json has the Optimal one
there and the Effective one in a list under ``also``: nothing is lost, and what reads the published files reads ours.

TSV (group_1 to group_4): every pair of the group, the published six measures first, further measures behind them in
both blocks; a measure that was not taken has no column, and a value that could not be measured is an empty field.

RePair (Q.RANKER.METRIC.agg.gold.tsv): qid, order (-1 for the original, pred.i for candidates), query, RANKER.METRIC.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.publish.facts import GROUPS, Facts

SUBSET_FILES = {"optimal": "Optimal.json", "effective": "Effective.json", "fair": "Fair.json"}
GOLD = re.compile(r"Q\.(?P<value>[A-Za-z0-9_+-][A-Za-z0-9_.+-]*\.[A-Za-z0-9_.+-]+)\.agg\.gold\.tsv")
Entries = dict[str, dict[str, Any]]


def entries(pairs: pl.DataFrame, facts: Facts, subset: str) -> Entries:
    """A subset in the published nesting."""
    found: Entries = {str(group): {} for group in GROUPS}
    # Optimal pairs come first, so that they take the place of their query.
    rows = pairs.filter(subset).sort("query_id", pl.col("optimal").not_(), "variant_id")
    for row in rows.iter_rows(named=True):
        place, one = found[str(row["group"])], _entry(row, facts)
        first = place.setdefault(row["query_id"], one)
        if first is not one:
            first.setdefault("also", []).append(one)
    return found


def _entry(row: dict[str, Any], facts: Facts) -> dict[str, Any]:
    metrics = {f"Orig_{one.key}": row[f"old:{one.name}"] for one in facts.measures}
    metrics |= {f"New_{one.key}": row[f"new:{one.name}"] for one in facts.measures}
    metrics |= {"Label": row["label"], "Group": row["group"]}
    return {
        "query_text": row["text"],
        "metrics": metrics,
        "score": row["score"],
        "org_query_text": row["original_text"],
    }


def json_text(subset: Entries) -> str:
    """The text of a subset's file: one pair a line."""
    groups = []
    for group, queries in subset.items():
        lines = ",\n".join(f"        {_dump(query)}: {_dump(entry)}" for query, entry in queries.items())
        groups.append(f'    "{group}": {{\n{lines}\n    }}' if lines else f'    "{group}": {{}}')
    return "{\n" + ",\n".join(groups) + "\n}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def entry_problems(found: Any, expected: Entries, name: str) -> Iterator[str]:
    """One line if a JSON file says something else than the Parquet rows."""
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        yield f"{name}: expected groups of queries, found another layout"
        return
    here, there = (
        {(group, query): entry for group, queries in side.items() for query, entry in queries.items()}
        for side in (found, expected)
    )
    wrong = sorted({key for key in here.keys() | there.keys() if here.get(key) != there.get(key)})
    if wrong or set(found) != set(expected):
        first = f"; first: group {wrong[0][0][:20]!r}, query {wrong[0][1][:60]!r}" if wrong else ""
        yield f"{name}: {len(wrong)} of {len(there)} entries do not agree with the Parquet rows{first}"


def header(facts: Facts) -> list[str]:
    """The columns of a group's TSV."""
    keys = [one.key for one in facts.measures]
    blocks = [f"{side}_{key}" for side in ("Orig", "New") for key in keys]
    return ["Query ID", "Query Text", "Label", *blocks, "Original Query Text"]


def group_tsv(pairs: pl.DataFrame, facts: Facts, group: int) -> str:
    """All pairs of a group as TSV."""
    values = [f"{side}:{one.name}" for side in ("old", "new") for one in facts.measures]
    rows = pairs.filter(pl.col("group") == group).select("query_id", "text", "label", *values, "original_text")
    return _tsv([header(facts), *rows.iter_rows()])


def tsv_problems(found: str, expected: str, name: str) -> Iterator[str]:
    """One line if a TSV file says something else than the Parquet rows."""
    here, there = found.split("\n"), expected.split("\n")
    if here == there:
        return
    wrong = [i for i, (one, other) in enumerate(zip(here, there, strict=False)) if one != other]
    wrong += range(min(len(here), len(there)), max(len(here), len(there)))
    yield f"{name}: {len(wrong)} lines do not agree with the Parquet rows; first: line {wrong[0] + 1}"


def gold_name(ranker: str, metric: str) -> str:
    """The published name of a RePair file."""
    name = f"Q.{ranker}.{metric}.agg.gold.tsv"
    if not ranker or not metric or not GOLD.fullmatch(name):
        raise ConfigError(f"RePair file: expected plain names of ranker and metric, found {ranker!r} and {metric!r}")
    return name


def gold_tsv(table: pl.DataFrame, ranker: str, metric: str) -> str:
    """A ready table (qid, order, query and the value as RANKER.METRIC) in RePair's layout; rows keep their order."""
    names = ["qid", "order", "query", f"{ranker}.{metric}"]
    if table.columns != names:
        raise DataError(f"RePair table: expected the columns {', '.join(names)}; found {', '.join(table.columns)}")
    text = _tsv([names, *table.iter_rows()])
    broken = next(gold_problems(text, gold_name(ranker, metric)), None)
    if broken:
        raise DataError(broken)
    return text


def gold_problems(text: str, name: str) -> Iterator[str]:
    """One line for each rule that a RePair file breaks."""
    stated = GOLD.fullmatch(name.rpartition("/")[2])
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True))
        values = [float(row[3]) for row in rows[1:]]
    except (csv.Error, ValueError, IndexError):
        yield f"{name}: expected four fields a line, the last of them a number"
        return
    if stated is None or not rows or rows[0] != ["qid", "order", "query", stated["value"]]:
        yield f"{name}: expected the header qid, order, query and the name of the value"
        return
    originals = {row[0]: value for row, value in zip(rows[1:], values, strict=True) if row[1] == "-1"}
    alone = [row[0] for row in rows[1:] if row[0] not in originals]
    if alone or sum(row[1] == "-1" for row in rows[1:]) != len(originals):
        yield f"{name}: expected one original (order -1) for each query; first without: {next(iter(alone), '')[:60]!r}"
        return
    kept = [(row[0], value) for row, value in zip(rows[1:], values, strict=True) if row[1] != "-1"]
    worse = [query for query, value in kept if not (value > 0 and value >= originals[query])]
    if worse:
        yield f"{name}: {len(worse)} candidates are not above zero or below their original; first: {worse[0][:60]!r}"


def _tsv(rows: Iterable[Any]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    return text.getvalue()
