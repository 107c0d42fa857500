"""The effect of a reformulation: clicks before and after, the rank of the clicked result, the exposure of sites.

The first page has the results of the original query, the second page those of the reformulated query.

To bound memory use, each part of a log is reduced to a few numbers per event and sums per site before the next part is
read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.logs.definition import SEVERAL
from askew.logs.numbers import NOTHING, Estimate, mean, median, ratio, ratio_of, share, share_of
from askew.logs.tables import ENTRIES

# How far result pages lean toward the added group, and the kind of each reformulation.

KINDS = ("seeks-specific", "corrects", "intensifies", "reinforces")


def own_shares(events: pl.DataFrame, groups: Sequence[str], side: str) -> Any:
    """The share of the added group on the page of each event; NaN if the page names no group."""
    counts = np.stack([events[f"{side}_{group}"].to_numpy() for group in groups], axis=1).astype(np.float64)
    place = {group: number for number, group in enumerate(groups)}
    own = counts[np.arange(len(counts)), [place[group] for group in events["group"].to_list()]]
    total = counts.sum(axis=1)
    return np.where(total > 0, own / np.where(total > 0, total, 1.0), np.nan)


def lean_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The mean share of the added group on both pages and the change, over events where both pages name a group."""
    single = events.filter(pl.col("group") != SEVERAL)
    old, new = own_shares(single, groups, "before"), own_shares(single, groups, "after")
    users, names = single["user"].to_numpy(), single["group"].to_numpy()
    rows = []
    for label in ("all", *groups):
        selected = ~np.isnan(old) & ~np.isnan(new) & ((names == label) | (label == "all"))
        row: dict[str, Any] = {"group": label, "n": int(selected.sum())}
        for name, values in (("before", old), ("after", new), ("change", new - old)):
            estimate = mean(values[selected], users[selected])
            # A share is never below 0, nor is a change below -1.
            ends = np.clip([estimate.low, estimate.high], -1.0 if name == "change" else 0.0, 1.0).tolist()
            row |= {name: estimate.value, f"{name}_low": ends[0], f"{name}_high": ends[1]}
        rows.append(row)
    return frame_of(rows)


def kind_table(events: pl.DataFrame, groups: Sequence[str], margin: float) -> pl.DataFrame:
    """The number and share of reformulations of each kind, for all groups and for each group."""
    single = events.filter((pl.col("group") != SEVERAL) & pl.col("page_before"))
    kinds = kinds_of(own_shares(single, groups, "before"), len(groups), margin)
    return share_table(single.with_columns(kind=pl.Series(np.array(KINDS)[kinds])), groups, "kind", KINDS)


def kinds_of(shares: Any, groups: int, margin: float) -> Any:
    """The index in ``KINDS`` of each event, from the share of its group on the first page."""
    even = 1.0 / groups
    low, high = even * (1 - margin), even + (1 - even) * margin
    defined = np.nan_to_num(shares, nan=even)
    return np.where(np.isnan(shares), 0, np.where(defined < low, 1, np.where(defined > high, 3, 2)))


CHANGES = ("absent", "lower", "same", "higher")
# Takes texts; returns the mentions of each group in each text.
CountMentions = Callable[[pa.Array], Any]

_HOST = r"(?i)^(?:[a-z][a-z0-9+.-]*://)?(?:[^/?#@]*@)?(?:www\.)?([^/:?#\s]+\.[^/:?#\s]+)"
_DIGITS = 12
_SUMS = ("before", "after", "before_2", "after_2", "both", "events", "users")
_PAGES = ("results_before", "results_after", "texts_before", "texts_after", "doc_before", "doc_after", "rank_before")


def reduce_events(
    events: pl.DataFrame, groups: Sequence[str], count: CountMentions | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace the result pages of events by numbers; also return sums of exposure per site (see ``site_table``)."""
    frame = events.with_row_index("event")
    names = {1 << number: group for number, group in enumerate(groups)}
    frame = frame.with_columns(group=pl.col("mask").replace_strict(names, default=SEVERAL, return_dtype=pl.String))
    if "entry" in frame.columns:
        frame = frame.with_columns(entry=pl.col("entry").replace_strict(dict(enumerate(ENTRIES)), default=""))
    if {"results_before", "clicked_after"} <= set(frame.columns):
        frame = frame.join(_rank_changes(frame), on="event", how="left", maintain_order="left")
    if count is not None and "texts_before" in frame.columns:
        frame = frame.with_columns(_mentions(frame, groups, count))
    sites = _site_sums(frame) if "results_before" in frame.columns else empty_sites()
    return frame.drop([*_PAGES, "mask", "event"], strict=False), sites


def _rank_changes(frame: pl.DataFrame) -> pl.DataFrame:
    """For the first click on the second page: the rank of its result on both pages, and how the rank changed.

    Null if there was no click or one of the pages is not known.
    """
    by_rank = pl.col("results_after").list.get(pl.col("rank_after") - 1, null_on_oob=True)
    logged_doc = pl.col("doc_after") if "doc_after" in frame.columns else pl.lit(None, pl.String)
    clicked = frame.filter(pl.col("clicked_after") & pl.col("results_before").list.len().fill_null(0).gt(0))
    clicked = clicked.select(
        "event", "results_before", "results_after", "rank_after",
        doc=pl.when(logged_doc.str.len_bytes() > 0).then(logged_doc).otherwise(by_rank),
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
    rows = clicked.select("event", "doc", pl.col(column), pl.int_ranges(1, pl.col(column).list.len() + 1).alias("rank"))
    rows = rows.filter(pl.col(column).list.len() > 0).explode(column, "rank")
    return rows.filter(pl.col(column) == pl.col("doc")).group_by("event").agg(pl.col("rank").min().cast(pl.Int64))


def _mentions(frame: pl.DataFrame, groups: Sequence[str], count: CountMentions) -> list[pl.Series]:
    columns = []
    for side in ("before", "after"):
        lists = frame[f"texts_{side}"].fill_null([])
        sizes = lists.list.len().to_numpy()
        texts = lists.filter(sizes > 0).explode().to_arrow() if sizes.sum() else pa.array([], pa.large_string())
        mentions = np.asarray(count(texts))
        totals = np.zeros((len(sizes), len(groups)), np.int64)
        np.add.at(totals, np.repeat(np.arange(len(sizes)), sizes), mentions)
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
    parts = []
    for side, other in (("before", "after"), ("after", "before")):
        column = f"results_{side}"
        rows = both.select(
            "event", "user", pl.col(column).alias("url"), rank=pl.int_ranges(1, pl.col(column).list.len() + 1)
        ).explode("url", "rank")
        weight = 1.0 / (pl.col("rank") + 1).cast(pl.Float64).log(2)
        site = pl.col("url").str.extract(_HOST).str.to_lowercase()
        parts.append(rows.select("event", "user", site=site, **{side: weight, other: pl.lit(0.0)}).drop_nulls("site"))
    sides = pl.concat(parts, how="diagonal")
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


def add_sites(first: pl.DataFrame, two: pl.DataFrame) -> pl.DataFrame:
    """Add the sums of two parts. No user is in both parts."""
    return pl.concat([first, two]).group_by("site").agg(pl.col(_SUMS).sum())


def site_table(sums: pl.DataFrame, least_events: int, least_users: int) -> pl.DataFrame:
    """Exposure share of each site before and after, and the ratio. Sites with few events or users are left out."""
    totals = sums.select(pl.col("before", "after").sum()).row(0) if sums.height else (0.0, 0.0)
    rows = []
    frequent = sums.filter((pl.col("events") >= least_events) & (pl.col("users") >= least_users))
    for row in frequent.sort("events", "site", descending=[True, False]).iter_rows(named=True):
        old, new = row["before"] / totals[0], row["after"] / totals[1]
        sizes = {"n": int(row["events"]), "users": int(row["users"]), "before": old, "after": new}
        estimate = Estimate(0.0 if old else math.nan, math.nan, math.nan, sizes["n"])
        if old and new:
            x, y, users = row["before"], row["after"], row["users"]
            spread = row["after_2"] / y**2 + row["before_2"] / x**2 - 2 * row["both"] / (x * y)
            variance = math.inf if users < 2 else max(spread, 0.0) * users / (users - 1)
            estimate = ratio_of(new / old, variance, sizes["n"])
        rows.append({"site": row["site"], **sizes, **estimate.cells("ratio")})
    values = ("before", "after", "ratio", "low", "high")
    schema = {"site": pl.String, "n": pl.Int64, "users": pl.Int64, **dict.fromkeys(values, pl.Float64)}
    # Sums depend on the order of users, which differs between runs. They agree to twelve digits.
    table = pl.DataFrame(rows, schema=schema).with_columns(pl.col(values).fill_nan(None).round_sig_figs(_DIGITS))
    return table.sort("ratio", "site", descending=[True, False], nulls_last=True)


def click_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The share of pages with a click before and after, and their ratio: overall, per group, per entry point."""
    rows = []
    for label, entry, part in slices(events, groups):
        users = part["user"].to_numpy()
        old, new = (part[f"clicked_{side}"].to_numpy() for side in ("before", "after"))
        rows.append(
            {"group": label, "entry": entry, "n": part.height}
            | share(old, users).cells("before", own=True)
            | share(new, users).cells("after", own=True)
            | ratio(old, new, users).cells("ratio")
        )
    return frame_of(rows)


def share_table(events: pl.DataFrame, groups: Sequence[str], column: str, values: Sequence[str]) -> pl.DataFrame:
    """The number and share of each value of a column, over all events and per group."""
    rows = []
    for label, part in by_group(events, groups):
        for value in values:
            hits = (part[column] == value).to_numpy()
            estimate = share(hits, part["user"].to_numpy())
            row = {"group": label, column: value, "hits": int(hits.sum()), "n": estimate.n}
            rows.append(row | estimate.cells("share"))
    return frame_of(rows)


def by_group(events: pl.DataFrame, groups: Sequence[str]) -> list[tuple[str, pl.DataFrame]]:
    """All events, then the events of each group."""
    return [("all", events), *((group, events.filter(pl.col("group") == group)) for group in groups)]


def slices(events: pl.DataFrame, groups: Sequence[str]) -> list[tuple[str, str, pl.DataFrame]]:
    """All events and the events of each group, over all entry points and, if the log has them, per entry point."""
    parts = by_group(events, groups)
    parts_by_entry = [(label, "all", part) for label, part in parts]
    if "entry" in events.columns:
        for label, part in parts:
            parts_by_entry += [(label, entry, part.filter(pl.col("entry") == entry)) for entry in ENTRIES if entry]
    return parts_by_entry


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a table, with null where a value is not defined."""
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def frequency_table(counts: Counter[str]) -> pl.DataFrame:
    """The share of search pairs that are specializing reformulations, and the share of these that are for a group.

    The intervals use the sums per user that were accumulated over the parts of the log.
    """
    rows = []
    for what, of in (("specializing", "pairs"), ("for_group", "specializing")):
        hits, n = counts[what], counts[of]
        estimate = NOTHING
        if n:
            p = hits / n
            squares = counts[f"{what}:2"] - 2 * p * counts[f"{what}:{of}"] + p * p * counts[f"{of}:2"]
            estimate = share_of(p, n, max(squares, 0.0), counts[f"{of}:users"])
        rows.append({"what": what, "of": of, "hits": hits, "n": n, **estimate.cells("share")})
    return frame_of(rows)


def group_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The share of each group among reformulations for exactly one group, and the number for several groups."""
    rows: list[dict[str, Any]] = []
    single = events.filter(pl.col("group") != SEVERAL)
    for group in groups:
        estimate = share((single["group"] == group).to_numpy(), single["user"].to_numpy())
        hits = single.filter(pl.col("group") == group)
        row = {"group": group, "hits": hits.height, "n": estimate.n, **estimate.cells("share")}
        rows.append({**row, "users": hits["user"].n_unique(), "two_terms": int((hits["terms"] > 1).sum())})
    rows.append({"group": SEVERAL, "hits": events.height - single.height, "n": None, "users": None, "two_terms": None})
    return frame_of(rows)


def gap_table(events: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """The median number of seconds between the two queries, overall, per group and per entry point."""
    rows = []
    for label, entry, part in slices(events, groups):
        estimate = median(part["gap"].to_numpy() / 1000.0, part["user"].to_numpy())
        rows.append({"group": label, "entry": entry, "n": estimate.n, **estimate.cells("median")})
    return frame_of(rows)


def block_table(events: pl.DataFrame) -> pl.DataFrame:
    """The added blocks of terms and prepositions: how often, and by how many users."""
    blocks = events.group_by("block", "group").agg(
        n=pl.len().cast(pl.Int64), users=pl.col("user").n_unique().cast(pl.Int64)
    )
    return blocks.sort("n", "block", descending=[True, False])
