"""Every number of a card, computed from the pairs; none is typed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from askew.core.measure import gain_column, old_column, pair_columns
from askew.core.shares import wilson
from askew.publish.escape import code
from askew.publish.facts import REFAIRMULATE, Facts
from askew.publish.selection import GROUPS

_MAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_DIGITS = re.compile(r"(?:\d[ -]?){7,}")
UNKNOWN = "not known"


@dataclass(frozen=True)
class MeanChange:
    """The means of one measure over the pairs that have it."""

    n: int
    old: float
    new: float
    gain: float


def mean(values: pl.Series) -> float:
    """The mean, summed exactly: the same on every machine. NaN where there is nothing."""
    known = values.drop_nulls()
    return math.fsum(known) / len(known) if len(known) else math.nan


def means(pairs: pl.DataFrame, measure: str) -> MeanChange:
    """The means of a measure."""
    known = pairs.filter(pl.col(gain_column(measure)).is_not_null())
    return MeanChange(known.height, *(mean(known[name]) for name in pair_columns(measure)))


def original_means(pairs: pl.DataFrame, facts: Facts) -> dict[str, tuple[int, float]]:
    """For each measure, how many original queries have a value and their mean; each query counts once."""
    queries = pairs.unique("query_id", keep="first", maintain_order=True)
    columns = {one.name: queries[old_column(one.name)].drop_nulls() for one in facts.measures}
    return {name: (len(values), mean(values)) for name, values in columns.items()}


def subsets_of(pairs: pl.DataFrame, facts: Facts) -> list[tuple[str, pl.DataFrame]]:
    """The pairs of each subset by the name that readers see, all of them first."""
    return [("all", pairs), *((facts.shown(name), pairs.filter(name)) for name in facts.subsets)]


def counts_table(pairs: pl.DataFrame, facts: Facts, splits: Iterable[str]) -> list[str]:
    """Pairs and queries of each subset, by split, and by group of the query where there are groups."""
    names = list(splits)
    groups = GROUPS if facts.scheme == REFAIRMULATE else ()
    rows = []
    for name, part in subsets_of(pairs, facts):
        by_split = [part.filter(pl.col("split") == split).height for split in names]
        by_group = [part.filter(pl.col("group") == group).height for group in groups]
        rows.append([name, part.height, part["query_id"].n_unique(), *by_split, *by_group])
    return table(["subset", "pairs", "queries", *names, *(f"group {group}" for group in groups)], rows)


def means_table(pairs: pl.DataFrame, facts: Facts) -> list[str]:
    """Mean old and new value and gain of each measure in each subset, with n."""
    rows = []
    for name, part in subsets_of(pairs, facts):
        for one in facts.measures:
            found = means(part, one.name)
            rows.append([name, code(one.name), found.n, *map(shown, (found.old, found.new, found.gain))])
    return table(["subset", "measure", "n", "mean old", "mean new", "mean gain"], rows)


def held_out_table(facts: Facts) -> list[str]:
    """The held-out change of each measure in each chosen subset, the in-sample one beside it; none where not stated."""
    rows = []
    for row in facts.rows("held_out"):
        means = (_stated(row.get(name)) for name in ("old_mean", "new_mean"))
        beside = (_change(row.get(name)) for name in ("words_change", "ranks_change", "in_sample_change"))
        named = facts.shown(row["subset"]), code(row["measure"]), row["figures"]
        rows.append([*named, *means, _change(row.get("change")), _ends(row), *beside])
    head = ["subset", "measure", "figures", "mean old", "mean new", "change", "95% interval"]
    return table([*head, "change by words", "change by ranks", "in-sample change"], rows) if rows else []


def _stated(value: float | None) -> str:
    return shown(math.nan if value is None else value)


def _change(percent: float | None) -> str:
    return "-" if percent is None else f"{percent:+.1f}%"


def _ends(row: Mapping[str, Any]) -> str:
    low, high = row.get("low"), row.get("high")
    return "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"


def robust_table(pairs: pl.DataFrame, facts: Facts) -> list[str]:
    """Of the pairs of each subset that are known under every ranker, how many are robust; none without rankers."""
    if not facts.robust_rankers:
        return []
    rows = []
    for name, part in subsets_of(pairs, facts):
        known = part["robust"].drop_nulls()
        n, hits = len(known), int(known.sum())
        low, high = wilson(hits, n)
        rows.append([name, part.height, n, hits, _percent(hits / n if n else math.nan), _percent(low), _percent(high)])
    return table(["subset", "pairs", "known (n)", "robust", "share", "low", "high"], rows)


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"


def column_counts(pairs: pl.DataFrame, column: str, subset: str) -> list[tuple[str, int, int]]:
    """Each value of a column with its pairs and those of them in the subset, most frequent first."""
    named = pairs.select(pl.col(column).fill_null(UNKNOWN), pl.col(subset).alias("inside"))
    found = named.group_by(column).agg(pl.len().alias("n"), pl.col("inside").sum())
    return [(str(one), n, inside) for one, n, inside in found.sort("n", column, descending=[True, False]).iter_rows()]


def personal_marks(pairs: pl.DataFrame) -> tuple[int, int, int]:
    """How many different texts there are, and how many of them hold an address for mail or seven digits in a row."""
    texts = pl.concat([pairs["original_text"], pairs["text"].alias("original_text")]).drop_nulls().unique().to_list()
    return (
        len(texts),
        sum(bool(_MAIL.search(text)) for text in texts),
        sum(bool(_DIGITS.search(text)) for text in texts),
    )


def size_category(rows: int) -> str:
    """The size as Hugging Face names it."""
    names = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"]
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def shown(value: float) -> str:
    """A number for a reader; a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:.4f}".replace("-0.0000", "0.0000")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table. The cells are escaped already."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]
