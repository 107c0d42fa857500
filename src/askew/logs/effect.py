"""The effect of a reformulation: clicks before and after, the rank of the clicked result, the exposure of sites.

The first page has the results of the original query, the second page those of the reformulated query.

To bound memory use, each part of a log is reduced to a few numbers per event and sums per site before the next part is
read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.logs.definition import SEVERAL
from askew.logs.events import ENTRIES
from askew.logs.numbers import Estimate, ratio, ratio_of, share

CHANGES = ("absent", "lower", "same", "higher")
MOVES_SHOWN = 10
# Takes texts; returns the mentions of each group in each text.
CountMentions = Callable[[pa.Array], Any]

_HOST = r"(?i)^(?:[a-z][a-z0-9+.-]*://)?(?:[^/?#@]*@)?(?:www\.)?([^/:?#\s]+\.[^/:?#\s]+)"
_DIGITS = 12
_SUMS = ("before", "after", "before_2", "after_2", "both", "events", "users")
_PAGES = ("results_before", "results_after", "texts_before", "texts_after", "doc_before", "doc_after", "mask")


def reduce_events(
    events: pa.Table, groups: Sequence[str], count: CountMentions | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace the result pages of events by numbers; also return sums of exposure per site (see ``site_table``)."""
    frame = pl.DataFrame(pl.from_arrow(events)).with_row_index("event")
    frame = frame.with_columns(group=_group_names(frame["mask"], groups))
    if "entry" in frame.columns:
        frame = frame.with_columns(entry=pl.col("entry").replace_strict(dict(enumerate(ENTRIES)), default=""))
    if {"results_before", "clicked_after"} <= set(frame.columns):
        frame = frame.join(_rank_changes(frame), on="event", how="left", maintain_order="left")
    if count is not None and "texts_before" in frame.columns:
        frame = frame.with_columns(_mentions(frame, groups, count))
    sites = _site_sums(frame) if "results_before" in frame.columns else empty_sites()
    return frame.drop([name for name in (*_PAGES, "event") if name in frame.columns]), sites


def _group_names(masks: pl.Series, groups: Sequence[str]) -> pl.Series:
    names = {1 << number: group for number, group in enumerate(groups)}
    return masks.replace_strict(names, default=SEVERAL, return_dtype=pl.String)


def _rank_changes(frame: pl.DataFrame) -> pl.DataFrame:
    """For the first click on the second page: the rank of its result on both pages, and how the rank changed.

    Null if there was no click or one of the pages is not known.
    """
    by_rank = pl.col("results_after").list.get(pl.col("rank_after") - 1, null_on_oob=True)
    known = pl.col("doc_after") if "doc_after" in frame.columns else pl.lit(None, pl.String)
    clicked = frame.filter(pl.col("clicked_after") & pl.col("results_before").list.len().fill_null(0).gt(0))
    clicked = clicked.select(
        "event", "results_before", "results_after", "rank_after",
        doc=pl.when(known.str.len_bytes() > 0).then(known).otherwise(by_rank),
    )  # fmt: skip
    old, new = (_rank_of(clicked, f"results_{side}") for side in ("before", "after"))
    joined = clicked.select("event", "doc", "rank_after")
    joined = joined.join(old, on="event", how="left").join(new, on="event", how="left", suffix="_new")
    # Use the rank of the log, or else the position in the list of results.
    after = pl.when(pl.col("rank_after") > 0).then(pl.col("rank_after")).otherwise(pl.col("rank_new"))
    before = pl.col("rank").fill_null(0)
    change = (
        pl.when(pl.col("doc").is_null() | after.is_null()).then(None)
        .when(before == 0).then(pl.lit("absent"))
        .when(before > after).then(pl.lit("lower"))
        .when(before == after).then(pl.lit("same"))
        .otherwise(pl.lit("higher"))
    )  # fmt: skip
    return joined.select("event", old_rank=before, new_rank=after, change=change)


def _rank_of(clicked: pl.DataFrame, column: str) -> pl.DataFrame:
    """The first rank of the clicked document in a list of results."""
    rows = clicked.select("event", "doc", pl.col(column), pl.int_ranges(1, pl.col(column).list.len() + 1).alias("rank"))
    rows = rows.filter(pl.col(column).list.len() > 0).explode(column, "rank")
    return rows.filter(pl.col(column) == pl.col("doc")).group_by("event").agg(pl.col("rank").min().cast(pl.Int64))


def _mentions(frame: pl.DataFrame, groups: Sequence[str], count: CountMentions) -> list[pl.Series]:
    """The mentions of each group on both pages, and whether each page is known."""
    columns = []
    for side in ("before", "after"):
        lists = frame[f"texts_{side}"].fill_null([])
        sizes = lists.list.len().to_numpy()
        texts = lists.filter(sizes > 0).explode().to_arrow() if sizes.sum() else pa.array([], pa.large_string())
        found = np.asarray(count(texts))
        totals = np.zeros((len(sizes), len(groups)), np.int64)
        np.add.at(totals, np.repeat(np.arange(len(sizes)), sizes), found)
        columns.append(pl.Series(f"page_{side}", sizes > 0))
        columns += [pl.Series(f"{side}_{group}", totals[:, number]) for number, group in enumerate(groups)]
    return columns


def empty_sites() -> pl.DataFrame:
    """An empty table of exposure sums."""
    return pl.DataFrame(schema={"site": pl.String, **dict.fromkeys(_SUMS, pl.Float64)})


def _site_sums(frame: pl.DataFrame) -> pl.DataFrame:
    """Exposure per site: a result at rank i has the weight 1 / log2(i + 1), as in nDCG.

    Only events with both pages count. The squares are of sums per user, for the variance between users.
    """
    both = frame.filter(pl.all_horizontal(pl.col("results_before", "results_after").list.len().fill_null(0) > 0))
    sides = pl.concat([_exposure(both, side) for side in ("before", "after")])
    if not sides.height:
        return empty_sites()
    by_user = sides.group_by("site", "user").agg(
        pl.col("before").sum(), pl.col("after").sum(), events=pl.col("event").n_unique().cast(pl.Float64)
    )
    x, y = pl.col("before"), pl.col("after")
    sums = by_user.group_by("site").agg(
        x.sum(), y.sum(), before_2=(x * x).sum(), after_2=(y * y).sum(), both=(x * y).sum(),
        events=pl.col("events").sum(), users=pl.len().cast(pl.Float64),
    )  # fmt: skip
    return sums.select("site", *_SUMS)


def _exposure(frame: pl.DataFrame, side: str) -> pl.DataFrame:
    column = f"results_{side}"
    other = "after" if side == "before" else "before"
    rows = frame.select(
        "event", "user", pl.col(column).alias("url"), rank=pl.int_ranges(1, pl.col(column).list.len() + 1)
    ).explode("url", "rank")
    weight = 1.0 / (pl.col("rank") + 1).cast(pl.Float64).log(2)
    return rows.select(
        "event", "user", site=pl.col("url").str.extract(_HOST).str.to_lowercase(), **{side: weight, other: pl.lit(0.0)}
    ).drop_nulls("site").select("event", "user", "site", "before", "after")  # fmt: skip


def add_sites(one: pl.DataFrame, two: pl.DataFrame) -> pl.DataFrame:
    """Add the sums of two parts. No user is in both parts."""
    return pl.concat([one, two]).group_by("site").agg(pl.col(_SUMS).sum())


def site_table(sums: pl.DataFrame, least_events: int, least_users: int) -> pl.DataFrame:
    """Exposure share of each site before and after, and the ratio. Sites with few events or users are left out."""
    totals = sums.select(pl.col("before", "after").sum()).row(0) if sums.height else (0.0, 0.0)
    rows = []
    kept = sums.filter((pl.col("events") >= least_events) & (pl.col("users") >= least_users))
    for row in kept.sort("events", "site", descending=[True, False]).iter_rows(named=True):
        old, new = row["before"] / totals[0], row["after"] / totals[1]
        found = _exposure_ratio(row, old, new)
        rows.append(
            {
                "site": row["site"], "n": int(row["events"]), "users": int(row["users"]), "before": old, "after": new,
                "ratio": found.value, "low": found.low, "high": found.high,
            }
        )  # fmt: skip
    schema = {
        "site": pl.String,
        "n": pl.Int64,
        "users": pl.Int64,
        **dict.fromkeys(("before", "after", "ratio", "low", "high"), pl.Float64),
    }
    # Sums depend on the order of users, which differs between runs. They agree to twelve digits.
    return (
        pl.DataFrame(rows, schema=schema)
        .with_columns(pl.col("before", "after", "ratio", "low", "high").fill_nan(None).round_sig_figs(_DIGITS))
        .sort("ratio", "site", descending=[True, False], nulls_last=True)
    )


def _exposure_ratio(row: dict[str, Any], old: float, new: float) -> Estimate:
    if not old or not new:
        return Estimate(0.0 if old else math.nan, math.nan, math.nan, int(row["events"]))
    x, y, users = row["before"], row["after"], row["users"]
    spread = row["after_2"] / y**2 + row["before_2"] / x**2 - 2 * row["both"] / (x * y)
    variance = math.inf if users < 2 else max(spread, 0.0) * users / (users - 1)
    return ratio_of(new / old, variance, int(row["events"]))


def click_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The share of pages with a click before and after, and their ratio: overall, per group, per entry point."""
    rows = []
    for label, entry, part in slices(events, groups):
        users = part["user"].to_numpy()
        old, new = (part[f"clicked_{side}"].to_numpy() for side in ("before", "after"))
        before, after, change = share(old, users), share(new, users), ratio(old, new, users)
        rows.append(
            {
                "group": label, "entry": entry, "n": part.height,
                "before": before.value, "before_low": before.low, "before_high": before.high,
                "after": after.value, "after_low": after.low, "after_high": after.high,
                "ratio": change.value, "low": change.low, "high": change.high,
            }
        )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def rank_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The position on the first page of the result clicked on the second page: absent, lower, same, higher."""
    rows = []
    for label, part in [("all", events), *((g, events.filter(pl.col("group") == g)) for g in groups)]:
        known = part.filter(pl.col("change").is_not_null())
        for change in CHANGES:
            found = share((known["change"] == change).to_numpy(), known["user"].to_numpy())
            hits = int((known["change"] == change).sum())
            rows.append(
                {"group": label, "change": change, "hits": hits, "n": found.n,
                 "share": found.value, "low": found.low, "high": found.high}
            )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def move_table(events: pl.DataFrame, deepest: int = MOVES_SHOWN) -> pl.DataFrame:
    """The number of clicked results for each pair of old rank (0: absent) and new rank, down to ``deepest``."""
    known = events.filter(pl.col("change").is_not_null() & (pl.col("new_rank") <= deepest))
    known = known.with_columns(old_rank=pl.when(pl.col("old_rank") > deepest).then(0).otherwise(pl.col("old_rank")))
    return known.group_by("old_rank", "new_rank").agg(n=pl.len().cast(pl.Int64)).sort("old_rank", "new_rank")


def slices(events: pl.DataFrame, groups: Sequence[str]) -> list[tuple[str, str, pl.DataFrame]]:
    """All events and the events of each group, over all entry points and, if the log has them, per entry point."""
    parts = [("all", events), *((group, events.filter(pl.col("group") == group)) for group in groups)]
    found = [(label, "all", part) for label, part in parts]
    if "entry" in events.columns:
        for label, part in parts:
            found += [(label, entry, part.filter(pl.col("entry") == entry)) for entry in ENTRIES if entry]
    return found
