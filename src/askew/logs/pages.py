"""How far result pages lean toward the added group, and the kind of each reformulation.

The share on a page is the number of mentions of the added group divided by the mentions of all groups. The first page
has the results of the original query, the second page those of the reformulated query. The share on the first page
gives the kind of the reformulation. The authors of the GSQR paper assigned these kinds by hand (appendix B):

``seeks-specific``  the first page names no group;
``corrects``        the share is clearly below the even share;
``intensifies``     the share is about the even share;
``reinforces``      the share is clearly above the even share.

The even share is e = 1/groups. "Clearly below" is a share under e * (1 - ``margin``), "clearly above" a share over
e + (1 - e) * ``margin``. Images, videos and advertisements are not in a log and are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from askew.logs.definition import SEVERAL
from askew.logs.numbers import mean, share

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
    one = events.filter(pl.col("group") != SEVERAL)
    old, new = own_shares(one, groups, "before"), own_shares(one, groups, "after")
    users, names = one["user"].to_numpy(), one["group"].to_numpy()
    rows = []
    for label in ("all", *groups):
        here = ~np.isnan(old) & ~np.isnan(new) & ((names == label) | (label == "all"))
        row: dict[str, Any] = {"group": label, "n": int(here.sum())}
        for name, values in (("before", old), ("after", new), ("change", new - old)):
            found = mean(values[here], users[here])
            # A share is never below 0, nor is a change below -1.
            ends = np.clip([found.low, found.high], -1.0 if name == "change" else 0.0, 1.0).tolist()
            row |= {name: found.value, f"{name}_low": ends[0], f"{name}_high": ends[1]}
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def kind_table(events: pl.DataFrame, groups: Sequence[str], margin: float) -> pl.DataFrame:
    """The number and share of reformulations of each kind, for all groups and for each group."""
    one = events.filter((pl.col("group") != SEVERAL) & pl.col("page_before"))
    kinds = kinds_of(own_shares(one, groups, "before"), len(groups), margin)
    names, users = one["group"].to_numpy(), one["user"].to_numpy()
    rows = []
    for label in ("all", *groups):
        here = (names == label) | (label == "all")
        for number, kind in enumerate(KINDS):
            found = share(kinds[here] == number, users[here])
            rows.append(
                {"group": label, "kind": kind, "hits": int((kinds[here] == number).sum()), "n": found.n,
                 "share": found.value, "low": found.low, "high": found.high}
            )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def kinds_of(shares: Any, groups: int, margin: float) -> Any:
    """The index in ``KINDS`` of each event, from the share of its group on the first page."""
    even = 1.0 / groups
    low, high = even * (1 - margin), even + (1 - even) * margin
    known = np.nan_to_num(shares, nan=even)
    return np.where(np.isnan(shares), 0, np.where(known < low, 1, np.where(known > high, 3, 2)))
