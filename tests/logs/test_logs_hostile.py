"""Logs that are broken on purpose: one clear line or a count by reason, and never more memory than a log needs."""

import gzip
import json
import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from askew.core.errors import DataError
from askew.data import files
from askew.data.files import line_blocks
from askew.logs import formats as trecsession
from askew.logs import reading
from askew.logs.analyze import logs
from askew.logs.delimited import DelimitedLog
from askew.logs.reading import Parts
from askew.logs.settings import LogSettings
from askew.logs.tables import NOT_A_RANK, new_key

PLAIN = {"user": ["u", "u"], "time": [1, 9], "query": ["boots", "boots men"]}


def analyze(path, form="tsv", **settings):
    return logs([path], format=form, settings=LogSettings(**{"min_users": 1, "min_events": 1, **settings}))


@pytest.fixture
def parquet(tmp_path):
    """Analyzes a log of two rows, some of whose columns are others."""

    def go(**columns):
        path = tmp_path / "log.parquet"
        pq.write_table(pa.table(PLAIN | columns), path)
        return analyze(path, "parquet")

    return go


def test_bytes_are_read_as_texts_and_counted_where_they_are_none(parquet):
    report = parquet(query=pa.array([b"boots", b"boots \xff men"]), user=pa.array([b"\xff", b"\xff"]))
    assert report.rejected == {"not UTF-8": 1}
    report = parquet(query=pa.array([b"boots", b"boots men"], pa.large_binary()), user=pa.array([b"\xff", b"\xff"]))
    assert report.counts["for_group"] == 1


@pytest.mark.parametrize("name", ["user", "query", "entry", "topic", "results", "time", "click_rank"])
def test_columns_of_a_kind_that_is_no_text_are_refused_in_one_line(parquet, name):
    with pytest.raises(DataError, match=rf"log\.parquet: expected .*{name.split('_')[0]}.*, found .*struct") as found:
        parquet(**{name: pa.array([{"secret": 1}, {"secret": 2}])})
    assert "\n" not in str(found.value)


def test_a_query_that_is_a_list_is_refused(parquet):
    with pytest.raises(DataError, match="found list"):
        parquet(entry=pa.array([["edited"], ["edited"]]))


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1609495220000000, 1609495221000000]),
        pa.array([1609495220000000001, 1609495221000000001]),
        pa.array([2**64 - 1, 2**64 - 2], pa.uint64()),
        pa.array(["1609495220000000", "1609495221000000"]),
        pa.array([1e300, float("inf")]),
    ],
)
def test_times_beyond_the_year_9999_are_no_times(parquet, times):
    # Microseconds taken for milliseconds would make every gap a thousand times longer, and nobody would know.
    with pytest.raises(DataError, match=r"left out: 2 unparseable time \("):
        parquet(time=times)


def test_a_click_rank_too_large_to_be_one_is_counted(parquet):
    report = parquet(click_rank=pa.array([1, 2**40]))
    assert report.rejected == {NOT_A_RANK: 1}


def test_a_click_may_be_known_by_its_document_in_one_row_and_by_its_rank_in_another(parquet):
    results = pa.array([["http://a.example", "http://b.example"]] * 2)
    lists = pa.list_(pa.string())
    by_doc = parquet(
        click_rank=pa.array([None, None], pa.int64()), click_doc=pa.array([None, "http://b.example"]), results=results
    )
    by_rank = parquet(
        click_rank=pa.array([[], [2]], pa.list_(pa.int64())), click_doc=pa.array([[], []], lists), results=results
    )
    no_doc = parquet(click_rank=pa.array([None, 2]), click_doc=pa.array([None, None], lists), results=results)
    for report in (by_doc, by_rank, no_doc):
        assert report.tables["clicks"]["after"][0] == 1.0
        assert report.tables["ranks"].filter(group="all", change="same")["hits"][0] == 1


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 1 << 12)
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 14)
    path = tmp_path / "log.tsv.gz"
    good = b"user\ttime\tquery\nu\t1\tx\nu\t5\t" + b"y" * 10_000 + b"\n"
    path.write_bytes(gzip.compress(good + b"z" * 100_000))
    with pytest.raises(DataError, match=r"log\.tsv\.gz:4: ") as error:
        analyze(path)
    assert (error.value.code, error.value.values) == ("long-line", {"line": 4})
    path.write_bytes(gzip.compress(good))
    assert analyze(path).counts["rows"] == 2


def test_blocks_of_very_short_lines_are_made_smaller(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_bytes(b"user\ttime\tquery\n" + b"\n" * 50_000 + b"u\t1\tx\n" * 10)
    log = DelimitedLog(line_blocks(path), "log.tsv", most_lines=1000)
    blocks = list(log.blocks())
    assert max(text.count(b"\n") for _, text in blocks) <= 1000
    assert b"".join(text for _, text in blocks) == b"\n" * 50_000 + b"u\t1\tx\n" * 10
    at = 2
    for first, text in blocks:
        assert first == at
        at += text.count(b"\n")
    assert sum(log.parse(block, new_key()).table.num_rows for block in blocks) == 10


def test_one_user_with_everything_stays_in_one_part(monkeypatch):
    monkeypatch.setattr("askew.logs.reading._PART_BYTES", 1000)
    with Parts(1, in_memory=0) as parts:
        parts.add(parts.split(pa.table({"user": np.full(5000, 7, np.uint64), "line": np.arange(5000)})))
        assert [parts.take(number).num_rows for number in parts.numbers()] == [5000]


ASKED = '<session num="{0}"><interaction starttime="1"><query>boots</query></interaction></session>'


def test_a_session_without_an_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(trecsession, "_LARGEST_SESSION", 100_000)
    monkeypatch.setattr(reading, "_BLOCK", 1 << 12)
    path = tmp_path / "s.xml.gz"
    path.write_bytes(gzip.compress(f"<t>{ASKED.format(1)}<session><interaction>{'x' * 300_000}".encode()))
    with pytest.raises(DataError, match=r"s\.xml\.gz: .* 100,000 ") as error:
        analyze(path, "trec-session")
    assert error.value.code == "long-session"
    path.write_bytes(gzip.compress(f"<t>{''.join(map(ASKED.format, range(5000)))}</t>".encode()))
    assert analyze(path, "trec-session").counts["sessions"] == 5000


def test_elements_between_sessions_are_not_kept():
    blocks = [b"<t><all>", *([b"<other a='1'>x</other>" * 1000] * 50), ASKED.format(1).encode(), b"</all></t>"]
    tracemalloc.start()
    rows = [row for some in trecsession.session_queries(blocks, "s.xml") for row in some]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [row["query"] for row in rows] == ["boots"]
    assert peak < 2_000_000


def test_lines_of_nothing_but_noise_are_all_accounted_for(tmp_path):
    rng = np.random.default_rng(5)
    path = tmp_path / "log.tsv"
    noise = rng.integers(0, 256, 200_000).astype(np.uint8).tobytes()
    path.write_bytes(b"user\ttime\tquery\nu\t1\tx\n" + noise)
    report = analyze(path)
    lines = [line for line in path.read_bytes().split(b"\n")[1:] if line.strip(bytes(range(33)) + b"\x7f")]
    assert report.counts["rows_read"] == report.counts["rows"] + sum(report.rejected.values())
    assert abs(report.counts["rows_read"] - len(lines)) <= 5
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_column_of_topics_that_is_as_long_as_the_log_is_refused(parquet, monkeypatch, tmp_path):
    monkeypatch.setattr(reading, "_MOST_TOPICS", 1)
    assert parquet(topic=["shop", "shop"]).tables["topics"].height == 1
    with pytest.raises(DataError, match=r"more than 1 different values.*topics='none'"):
        parquet(topic=["shop", "shop at 9"])
    assert "topics" not in analyze(tmp_path / "log.parquet", "parquet", topics="none").tables


def test_a_topic_that_steers_a_terminal_or_a_page_is_text(tmp_path):
    from askew.logs.page import write_tables

    rows = {name: values * 6 for name, values in PLAIN.items()}
    rows |= {"user": [f"u{i // 2}" for i in range(12)], "topic": ["\x1b[31m<img src=x onerror=alert(1)>"] * 12}
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    pl.DataFrame(rows).write_parquet(path)
    write_tables(analyze(path, "parquet"), out)
    page = (out / "report.html").read_text()
    assert "<img" not in page
    assert "\x1b" not in page
