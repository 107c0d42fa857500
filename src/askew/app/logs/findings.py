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
        absent = (
            f"{_share(ranks)} of the results that people click after they add a term of a group were not among the "
            "results of the original query."
        )
    if clicks is not None and clicks["ratio"] is not None:
        told = (
            f"{_how_much(clicks)} People click a result on {n.share(clicks['after'])} of the result pages after the "
            f"reformulation, and on {n.share(clicks['before'])} of the result pages before the reformulation "
            f"(ratio {_number(clicks, 'ratio')})."
        )
        yield f"{told} {absent}".rstrip()
    elif absent:
        yield absent


def _how_much(clicks: Row) -> str:
    """How the number of clicks changes; a change in either direction needs an interval without 1."""
    low, high = clicks["low"], clicks["high"]
    if clicks["ratio"] == 1 or (low is not None and high is not None and low <= 1 <= high):
        return "It is not clear whether people click more or less often after they add a term of a group than before."
    if clicks["ratio"] > 1:
        return "People click more often after they add a term of a group than before."
    return "People click less often after they add a term of a group than before."


def _association(report: LogReport) -> Iterator[str]:
    row = _row(report, "association", topic="overall")
    if row is None or row["rho"] is None or row["low"] is None:
        return
    first = report.settings["first_group"]
    figures = (
        f"For each of {n.count(row['n'])} queries, the report has two values: how strongly the words of the query are "
        f"associated with {first}, and the share of {first} among the reformulations that add a term of a group to "
        f"the query. Spearman's correlation of the two values is {_number(row, 'rho')}."
    )
    if row["low"] <= 0 <= row["high"]:
        yield (
            "It is not clear whether people add a term of a group more often if the words of the query are more "
            f"strongly associated with this group. {figures}"
        )
    else:
        often = "more often" if row["rho"] > 0 else "less often"
        yield (
            "The more strongly the words of a query are associated with a group, the "
            f"{often} people add a term of this group. {figures}"
        )


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
        even = f"1/{len(report.groups)}"
        yield (
            f"In {_share(corrects)} of the reformulations that add terms of one group, the added group has less than "
            f"{even} of all mentions of groups in the results of the original query. In {_share(reinforces)}, the "
            f"added group has more than {even}. The setting 'margin' says how close to {even} counts as equal."
        )


def _how_soon(report: LogReport) -> Iterator[str]:
    row = _row(report, "gaps", group="all", entry="all")
    if row is not None and row["median"] is not None:
        yield (
            "Half of the reformulations that add a term of a group follow the original query within "
            f"{_number(row, 'median', 1)} seconds."
        )


_WHEN: tuple[Callable[[LogReport], Iterator[str]], ...] = (_association, _pages, _topics, _how_soon)
