"""Tables of the reformulations for a group: frequency, groups, time gaps, entry points, added terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl

from askew.logs.definition import SEVERAL
from askew.logs.effect import slices
from askew.logs.events import ENTRIES
from askew.logs.numbers import NOTHING, Estimate, median, share, share_of


def frequency_table(counts: Counter[str]) -> pl.DataFrame:
    """The share of search pairs that are specializing reformulations, and the share of these that are for a group."""
    rows = []
    for what, of in (("specializing", "pairs"), ("for_group", "specializing")):
        found = _streamed_share(counts, what, of)
        rows.append(
            {"what": what, "of": of, "hits": counts[what], "n": counts[of], "share": found.value,
             "low": found.low, "high": found.high}
        )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def _streamed_share(counts: Counter[str], what: str, of: str) -> Estimate:
    """A share with its interval, from sums per user that were accumulated over the parts."""
    hits, n = counts[what], counts[of]
    if not n:
        return NOTHING
    p = hits / n
    squares = counts[f"{what}:2"] - 2 * p * counts[f"{what}:{of}"] + p * p * counts[f"{of}:2"]
    return share_of(p, n, max(squares, 0.0), counts[f"{of}:users"])


def group_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The share of each group among reformulations for exactly one group, and the number for several groups."""
    rows = []
    one = events.filter(pl.col("group") != SEVERAL)
    for group in groups:
        found = share((one["group"] == group).to_numpy(), one["user"].to_numpy())
        hits = one.filter(pl.col("group") == group)
        rows.append(
            {"group": group, "hits": hits.height, "n": found.n, "share": found.value, "low": found.low,
             "high": found.high, "users": hits["user"].n_unique(), "two_terms": int((hits["terms"] > 1).sum())}
        )  # fmt: skip
    rows.append({"group": SEVERAL, "hits": events.height - one.height, "n": None, "users": None, "two_terms": None})
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def gap_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The median number of seconds between the two queries, overall, per group and per entry point."""
    rows = []
    for label, entry, part in slices(events, groups):
        found = median(part["gap"].to_numpy() / 1000.0, part["user"].to_numpy())
        rows.append(
            {"group": label, "entry": entry, "n": found.n, "median": found.value, "low": found.low, "high": found.high}
        )
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def entry_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The share of each entry point of the second query, among events with a known entry point."""
    rows = []
    said = events.filter(pl.col("entry") != "")
    for label in ("all", *groups):
        part = said if label == "all" else said.filter(pl.col("group") == label)
        for entry in ENTRIES[1:]:
            found = share((part["entry"] == entry).to_numpy(), part["user"].to_numpy())
            rows.append(
                {"group": label, "entry": entry, "hits": int((part["entry"] == entry).sum()), "n": found.n,
                 "share": found.value, "low": found.low, "high": found.high}
            )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def block_table(events: pl.DataFrame) -> pl.DataFrame:
    """The added blocks of terms and prepositions: how often, and by how many users."""
    found = events.group_by("block", "group").agg(
        n=pl.len().cast(pl.Int64), users=pl.col("user").n_unique().cast(pl.Int64)
    )
    return found.sort("n", "block", descending=[True, False])
