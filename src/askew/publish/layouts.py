"""Write and check the pairs in the file layouts of Refairmulate; ``askew.publish.repair`` has the layouts of RePair.

JSON (Optimal, Effective, Fair): {group: {query id: {query_text, metrics, score, org_query_text}}} with groups "1" to
"4", metrics Orig_KEY and New_KEY for each measure, then Label and Group. Each pair is one line. A query may have an
Optimal and an Effective pair, but the published layout has one entry for each query. Fair.json therefore has the
Optimal pair as the entry, and the Effective pair in a list under the key ``also`` of that entry. No pair is lost, and
code that reads the published files can read these files.

TSV (group_1 to group_4): every pair of the group. The six published measures come first in both blocks of columns
(Orig, New), further measures after them. A measure that was not computed has no column, and a missing value is an empty
field.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from askew.core.measure import new_column, old_column
from askew.publish.facts import Facts
from askew.publish.selection import GROUPS

SUBSET_FILES = {"optimal": "Optimal.json", "effective": "Effective.json", "fair": "Fair.json"}
Entries = dict[str, dict[str, Any]]


def entries(pairs: pl.DataFrame, facts: Facts, subset: str) -> Entries:
    """The pairs of a subset in the nesting of the published JSON files."""
    found: Entries = {str(group): {} for group in GROUPS}
    # Optimal pairs are sorted first, so that they become the entry of their query.
    rows = pairs.filter(subset).sort("query_id", pl.col("optimal").not_(), "variant_id")
    for row in rows.iter_rows(named=True):
        place, one = found[str(row["group"])], _entry(row, facts)
        first = place.setdefault(row["query_id"], one)
        if first is not one:
            first.setdefault("also", []).append(one)
    return found


def _entry(row: dict[str, Any], facts: Facts) -> dict[str, Any]:
    metrics = {f"Orig_{one.key}": row[old_column(one.name)] for one in facts.measures}
    metrics |= {f"New_{one.key}": row[new_column(one.name)] for one in facts.measures}
    metrics |= {"Label": row["label"], "Group": row["group"]}
    return {
        "query_text": row["text"],
        "metrics": metrics,
        "score": row["score"],
        "org_query_text": row["original_text"],
    }


def json_lines(queries: Mapping[str, Any]) -> str:
    """The queries of a group as JSON, one pair per line."""
    return ",\n".join(f"        {_dump(query)}: {_dump(entry)}" for query, entry in queries.items())


def json_pieces(groups: Mapping[str, Iterator[str]]) -> Iterator[str]:
    """The text of a subset's file in pieces; the lines of each group are given in pieces."""
    for number, (group, pieces) in enumerate(groups.items()):
        yield f'{"," if number else "{"}\n    "{group}": {{'
        first = next(pieces, "")
        yield f"\n{first}" if first else ""
        yield from pieces
        yield "\n    }" if first else "}"
    yield "\n}\n"


def json_text(subset: Entries) -> str:
    """The text of a subset's file, one pair per line."""
    return "".join(json_pieces({group: iter([json_lines(queries)]) for group, queries in subset.items()}))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def entry_problems(found: Any, expected: Entries, name: str) -> Iterator[str]:
    """One line if a JSON file differs from the Parquet rows."""
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
    return tsv_text([header(facts)]) + group_lines(pairs, facts, group)


def group_lines(pairs: pl.DataFrame, facts: Facts, group: int) -> str:
    """The pairs of a group as lines of TSV."""
    values = [name(one.name) for name in (old_column, new_column) for one in facts.measures]
    rows = pairs.filter(pl.col("group") == group).select("query_id", "text", "label", *values, "original_text")
    return tsv_text(rows.iter_rows())


def tsv_problems(found: str, expected: str, name: str) -> Iterator[str]:
    """One line if a TSV file differs from the Parquet rows."""
    here, there = found.split("\n"), expected.split("\n")
    if here == there:
        return
    wrong = [i for i, (one, other) in enumerate(zip(here, there, strict=False)) if one != other]
    wrong += range(min(len(here), len(there)), max(len(here), len(there)))
    yield f"{name}: {len(wrong)} lines do not agree with the Parquet rows; first: line {wrong[0] + 1}"


def tsv_text(rows: Iterable[Any]) -> str:
    """Rows as lines of tab-separated fields; a field with a tab, a quote or a line break is quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    return text.getvalue()
