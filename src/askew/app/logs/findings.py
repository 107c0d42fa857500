"""The main findings of a log report, in at most three sentences with numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from askew.app.logs.report import LogReport
from askew.publish.page import numerals as n

MOST = 3
Row = dict[str, Any]


def findings(report: LogReport) -> list[str]:
    """The main findings, at most three: how often a group is added, what changes, and when.

    A finding without data is left out.
    """
    found = [sentence for tell in (_how_often, _what_changes) for sentence in tell(report)]
    for tell in _WHEN:
        if len(found) < MOST:
            found += list(tell(report))
    return found[:MOST]


def _row(report: LogReport, table: str, **where: str) -> Row | None:
    data = report.tables.get(table)
    rows = [] if data is None or not set(where) <= set(data.columns) else data.filter(**where).to_dicts()
    return rows[0] if rows else None


def _share(row: Row, name: str = "share") -> str:
    """A share with its interval, where there is one."""
    own = name != "share"
    low, high = row[f"{name}_low" if own else "low"], row[f"{name}_high" if own else "high"]
    interval = n.share_interval(low, high)
    return n.share(row[name]) + ("" if interval == n.NONE else f" {interval}")


def _number(row: Row, name: str, digits: int = 2, prefix: str = "") -> str:
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    ends = "" if low is None or high is None else f" [{n.mean(low, digits)}, {n.mean(high, digits)}]"
    return n.mean(row[name], digits) + ends


def _how_often(report: LogReport) -> Iterator[str]:
    row, counts = _row(report, "frequency", what="for_group"), report.counts
    if row is None or not counts["for_group"]:
        yield (
            f"None of the {n.count(counts['specializing'])} reformulations that make a query more specific adds a "
            "term of a group. This log shows nothing about how people add such terms."
        )
        return
    told = (
        f"When people make a query more specific, they add a term of a group in {_share(row)} of the cases "
        f"({n.count(row['hits'])} of {n.count(row['n'])} reformulations)"
    )
    groups = [one for one in (_row(report, "groups", group=name) for name in report.groups) if one is not None]
    known = [one for one in groups if one["share"] is not None]
    if known:
        most = max(known, key=lambda one: one["share"])
        told += f". The group that they add most often is {most['group']}: {_share(most)} of these reformulations"
    yield f"{told}."


def _what_changes(report: LogReport) -> Iterator[str]:
    clicks, ranks = (
        _row(report, "clicks", group="all", entry="all"),
        _row(report, "ranks", group="all", change="absent"),
    )
    absent = ""
    if ranks is not None and ranks["share"] is not None:
        absent = f"{_share(ranks)} of the results that they then click were not among the results of the original query"
    if clicks is not None and clicks["ratio"] is not None:
        told = (
            f"After people add a term of a group, {_how_much(clicks)}: on {n.share(clicks['after'])} of the result "
            f"pages, compared with {n.share(clicks['before'])} before the reformulation "
            f"(ratio {_number(clicks, 'ratio')})"
        )
        yield told + (f". {absent}." if absent else ".")
    elif absent:
        yield f"After people add a term of a group, they click other results: {absent}."


def _how_much(clicks: Row) -> str:
    """How the number of clicks changes; a change in either direction needs an interval without 1."""
    low, high = clicks["low"], clicks["high"]
    if clicks["ratio"] == 1 or (low is not None and high is not None and low <= 1 <= high):
        return "it is not clear whether they click more or less often"
    return "they click more often" if clicks["ratio"] > 1 else "they click less often"


def _association(report: LogReport) -> Iterator[str]:
    row = _row(report, "association", topic="overall")
    if row is None or row["rho"] is None or row["low"] is None:
        return
    figures = (
        f"Over {n.count(row['n'])} queries, Spearman's correlation between the association of a query with a group and "
        f"the share of this group in its reformulations that add terms of a group is {_number(row, 'rho')}."
    )
    if row["low"] <= 0 <= row["high"]:
        yield f"The group whose terms people add is not clearly associated with the words of the query. {figures}"
    elif row["rho"] > 0:
        yield f"People more often add a term of the group that the words of the query are associated with. {figures}"
    else:
        yield f"People more often add a term of a group that the words of the query are not associated with. {figures}"


def _topics(report: LogReport) -> Iterator[str]:
    data = report.tables.get("topics")
    known = None if data is None else data.drop_nulls("rate_low").filter(pl.col("rate_low") > 1)
    if known is not None and known.height:
        row = known.sort("rate", descending=True).to_dicts()[0]
        rate = _number(row, "rate", prefix="rate_")
        yield f"Terms of groups are added most to queries about {row['topic']}: {rate} times as often as on average."


def _pages(report: LogReport) -> Iterator[str]:
    rows = {kind: _row(report, "kinds", group="all", kind=kind) for kind in ("corrects", "reinforces")}
    corrects, reinforces = rows["corrects"], rows["reinforces"]
    if corrects is not None and reinforces is not None and corrects["share"] is not None:
        yield (
            "An even share is 1 divided by the number of groups. In "
            f"{_share(corrects)} of the reformulations that add a term of a group, this group has clearly less than an "
            "even share of the mentions in the results of the original query. In "
            f"{_share(reinforces)} of these reformulations, the group has clearly more than an even share."
        )


def _how_soon(report: LogReport) -> Iterator[str]:
    row = _row(report, "gaps", group="all", entry="all")
    if row is not None and row["median"] is not None:
        yield (
            "Half of the reformulations that add a term of a group follow the original query within "
            f"{_number(row, 'median', 1)} seconds."
        )


_WHEN: tuple[Callable[[LogReport], Iterator[str]], ...] = (_association, _pages, _topics, _how_soon)
