"""``logs`` from Python: files, data frames and rows say the same, and a report is tables, text and files."""

import json

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from askew.core.errors import ConfigError, DataError
from askew.logs.analyze import logs
from askew.logs.settings import LogSettings

ROWS = [
    {"user": f"u{user}", "time": 100 * at + 9 * side, "query": f"{query}{' for women' if side else ''}", "topic": query}
    for user in range(6)
    for at, query in enumerate(("boots", "golf"))
    for side in range(2)
]
FRAME = pl.DataFrame(ROWS)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    FRAME.write_csv(path, separator="\t")
    return logs(path)


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame(ROWS)


@pytest.mark.parametrize(
    "made",
    [
        lambda: FRAME, FRAME.lazy, lambda: pa.Table.from_pylist(ROWS), lambda: ROWS, pandas_frame,
        lambda: {name: FRAME[name].to_list() for name in FRAME.columns},
        lambda: FRAME.with_columns(time=pl.from_epoch("time", time_unit="s")),
        lambda: FRAME.with_columns(pl.col("topic").cast(pl.Categorical)),
    ],
)  # fmt: skip
def test_what_is_in_memory_says_the_same_as_a_file(report, made):
    found = logs(made())
    assert (found.counts, found.notes, found.settings["format"]) == (report.counts, report.notes, "table")
    assert list(found.tables) == list(report.tables)
    for name, table in found.tables.items():
        assert_frame_equal(table, report.tables[name])


def test_columns_of_a_data_frame_may_have_other_names(report):
    found = logs(FRAME.rename({"user": "UID"}), settings=LogSettings(columns={"user": "UID"}))
    assert found.counts == report.counts


def test_rows_that_cannot_be_read_are_counted_with_their_numbers():
    found = logs([*ROWS, {"user": "u9", "time": None, "query": "x"}])
    assert found.examples == {"unparseable time": ["in memory, row 25"]}


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (7, "found int"), ([], "expected a log"), (FRAME.clear(), "expected at least one row, found none"),
        ([1, 2], "expected a column"), ([{"user": "u"}], "expected a column time, query"),
    ],
)  # fmt: skip
def test_what_is_no_log_is_refused_in_one_line(log, words):
    with pytest.raises((DataError, ConfigError), match=words) as found:
        logs(log)
    assert "\n" not in str(found.value)


def test_a_report_is_short_as_text_and_as_html(report):
    text = repr(report)
    assert text.splitlines()[:2] == [
        "24 rows, 0 left out; 6 users, 6 sessions, 24 searches",
        f"lexicon gsqr2023@7e3270300f95; topics: {report.settings['topics']}",
    ]
    assert "for a group     12  12  100.0% [" in text
    assert len(text.splitlines()) <= 9
    html = report._repr_html_()
    assert html.count("<table>") == 1 and all(line in html for line in report.lead)


def test_tables_are_polars_frames_and_pandas_frames_where_it_is_installed(report):
    assert all(isinstance(table, pl.DataFrame) for table in report.tables.values())
    pytest.importorskip("pandas")
    assert report.to_pandas()["groups"]["hits"].tolist() == [12, 0, 0]


def test_a_report_writes_what_the_command_writes(report, tmp_path):
    out = report.report(tmp_path / "out")
    assert json.loads((out / "report.json").read_text())["counts"] == report.counts
    assert (out / "report.html").is_file()
    assert pl.read_parquet(out / "tables" / "groups.parquet").equals(report.tables["groups"])


def test_a_review_needs_a_log_that_was_analyzed_for_one(report, tmp_path):
    with pytest.raises(ConfigError) as error:
        report.review(tmp_path / "terms.tsv")
    assert error.value.code == "no-keyphrases"
    path = tmp_path / "terms.tsv"
    found = logs(ROWS, settings=LogSettings(review=str(path)))
    assert found.review(path).read_text().startswith("keyphrase\t")


def test_format_and_groups_that_are_given_come_before_those_of_the_settings(tmp_path):
    path = tmp_path / "log"
    FRAME.write_parquet(path)
    settings = LogSettings(format="aol", groups={"old": ["seniors"]})
    found = logs(path, format="parquet", groups={"x": ["women"], "y": ["men"]}, settings=settings)
    assert (found.groups, found.settings["format"]) == (("x", "y"), "parquet")
    assert logs(FRAME, settings=settings).groups == ("old",)
