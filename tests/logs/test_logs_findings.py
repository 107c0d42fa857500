"""The main findings of a log: three sentences whose figures are those of the tables."""

from dataclasses import replace

import polars as pl
import pytest

from askew.logs.analyze import analyze_sample, logs
from askew.logs.page import MOST, findings, report_page
from askew.logs.settings import LogSettings
from askew.report import markup as n
from askew.report.markup import escape


@pytest.fixture(scope="module")
def report():
    return analyze_sample(LogSettings(min_events=5))


def without(report, *names):
    return replace(report, tables={name: table for name, table in report.tables.items() if name not in names})


def test_a_page_begins_with_three_findings_and_folds_the_tables(report):
    page = report_page(report)
    told = [escape(sentence) for sentence in findings(report)]
    assert len(told) == MOST and page.index(told[0]) < page.index(told[2]) < page.index("<table")
    body = page.partition("<main>")[2]
    assert body.index("<details") < body.index("<table") and body.count('<details class="folded">') >= 6
    assert " log is synthetic." in page


def test_every_figure_of_a_finding_is_in_a_table(report):
    often, changes, topic = findings(report)
    row = report.tables["frequency"].filter(what="for_group").to_dicts()[0]
    assert f"{n.share(row['share'])} {n.share_interval(row['low'], row['high'])}" in often
    groups = report.tables["groups"].filter(pl.col("group").is_in(report.groups)).sort("share", descending=True)
    assert f"most often is {groups['group'][0]}: {n.share(groups['share'][0])}" in often
    clicks = report.tables["clicks"].filter(group="all", entry="all").to_dicts()[0]
    assert n.share(clicks["after"]) in changes and n.mean(clicks["ratio"], 2) in changes
    most = report.tables["topics"].filter(pl.col("rate_low") > 1).sort("rate").to_dicts()[-1]
    assert most["topic"] in topic and n.mean(most["rate"], 2) in topic


@pytest.mark.parametrize(
    ("low", "ratio", "high", "words"),
    [
        (1.1, 1.3, 1.5, "People click more often after"),
        (0.4, 0.5, 0.6, "People click less often after"),
        (0.9, 1.3, 1.8, "It is not clear whether people click more or less often after"),
        (None, 1.0, None, "It is not clear whether people click more or less often after"),
        (None, 1.3, None, "People click more often after"),
    ],
)
def test_a_change_of_clicks_is_said_only_where_its_interval_excludes_one(report, low, ratio, high, words):
    values = {name: pl.lit(value, pl.Float64) for name, value in (("low", low), ("ratio", ratio), ("high", high))}
    clicks = report.tables["clicks"].with_columns(**values)
    assert words in findings(replace(report, tables={**report.tables, "clicks": clicks}))[1]


def test_what_was_not_measured_is_replaced_by_what_was(report):
    fewer = findings(without(report, "topics"))
    assert len(fewer) == MOST and fewer[2].startswith("Half of ")
    least = findings(without(report, "topics", "clicks", "ranks"))
    assert len(least) == 2 and least[1].startswith("Half of ")


def test_a_log_without_a_group_says_so(tmp_path):
    lines = ["user\ttime\tquery"]
    lines += [f"u{i}\t2024-01-01 10:0{j}:00\t{text}" for i in range(8) for j, text in enumerate(("shoes", "red shoes"))]
    (tmp_path / "log.tsv").write_text("\n".join(lines) + "\n")
    found = findings(logs(tmp_path / "log.tsv", format="tsv", settings=LogSettings(topics="none")))
    assert len(found) == 1 and found[0].startswith("None of the 8 reformulations")
