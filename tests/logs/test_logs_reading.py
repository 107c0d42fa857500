"""Every form of log comes to the same events; what cannot be read is counted by reason, and nothing is lost."""

import gzip
import json
import re
from collections import Counter
from datetime import datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.logs.analyze import logs
from askew.logs.definition import terms
from askew.logs.delimited import WRONG_WIDTH, DelimitedLog
from askew.logs.formats import _NOT_JSON
from askew.logs.settings import LogSettings
from askew.logs.tables import NO_TERM, NOT_A_RANK, NOT_UTF8, NUL, hashed, new_key, parse_times, shape

AOL = """AnonID\tQuery\tQueryTime\tItemRank\tClickURL
7\tboots\t2006-03-01 10:00:00\t\t
7\tboots\t2006-03-01 10:00:00\t2\thttp://a.example
7\tboots for women\t2006-03-01 10:00:20\t1\thttp://b.example
7\tboots for women\t2006-03-01 10:00:20\t3\thttp://c.example
8\tgolf\t2006-03-01 11:00:00\t\t
8\tgolf men\t2006-03-01 11:31:00\t\t
8\tgolf men\t2006-03-01 11:31:00\t\t
"""


def analyze(path, form, **settings):
    return logs([path], format=form, settings=LogSettings(**{"min_users": 1, "min_events": 1, **settings}))


def written(tmp_path, text, name="log.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_aol_rows_become_searches_sessions_and_pairs(tmp_path):
    report = analyze(written(tmp_path, AOL), "aol")
    # User 8 pauses for 31 minutes, so that the second query opens a session.
    assert report.counts == {
        "rows_read": 7, "rows": 7, "users": 2, "sessions": 3, "searches": 4, "pairs": 1, "specializing": 1,
        "for_group": 1, "out_of_order": 0,
    }  # fmt: skip
    assert report.tables["gaps"].row(0)[2:4] == (1, 20.0)
    assert report.tables["clicks"].select("before", "after").row(0) == (1.0, 1.0)


def test_a_longer_gap_keeps_a_session_open(tmp_path):
    report = analyze(written(tmp_path, AOL), "aol", gap=31)
    assert (report.counts["sessions"], report.counts["for_group"]) == (2, 2)


def test_a_log_may_be_packed_and_in_several_files(tmp_path):
    folder = tmp_path / "aol"
    folder.mkdir()
    (folder / "a.txt.gz").write_bytes(gzip.compress(AOL.encode()))
    (folder / "b.txt").write_text(AOL.replace("\n7\t", "\n9\t"))
    (folder / "readme.md").write_text("not a log")
    report = analyze(folder, "aol")
    assert (report.counts["rows_read"], report.counts["users"], report.counts["for_group"]) == (14, 3, 2)
    assert any("2 files" in note for note in report.notes)


def test_bad_rows_are_counted_by_reason_with_their_places(tmp_path):
    rows = AOL.encode() + (
        b"7\tone column too many\t2006-03-01 10:00:20\t1\thttp://b.example\tmore\n"
        b"7\ttwo columns\n"
        b"7\tsecret query\t2006-13-01 10:00:20\t\t\n"
        b"7\tno time\tyesterday\t\t\n"
        b"7\tnul\x00\t2006-03-01 10:00:20\t\t\n"
        b"7\tbad \xff\xfe\t2006-03-01 10:00:20\t\t\n"
        b"7\trank\t2006-03-01 10:00:20\tfirst\thttp://b.example\n"
        b"\tnobody\t2006-03-01 10:00:20\t\t\n"
        b"7\t-\t2006-03-01 10:00:20\t\t\n"
        b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
        b"\n"
    )
    report = analyze(written(tmp_path, rows), "aol")
    assert report.rejected == {
        "NUL byte": 1, NOT_A_RANK: 1, "header line again": 1, "no user": 1, "not UTF-8": 1, NO_TERM: 1,
        "unparseable time": 2, WRONG_WIDTH: 2,
    }  # fmt: skip
    assert report.counts["rows_read"] == report.counts["rows"] + sum(report.rejected.values()) == 17
    places = report.examples["unparseable time"]
    assert places[0].endswith("log.txt:11: time '9999-99-99 99:99:99'")
    assert places[1].endswith("log.txt:12: time 'aaaaaaaaa'")
    assert "secret" not in json.dumps(report.to_dict())


def test_rows_out_of_order_are_put_in_place_and_told(tmp_path):
    lines = AOL.splitlines(keepends=True)
    report = analyze(written(tmp_path, "".join([lines[0], lines[3], lines[1], *lines[4:]])), "aol")
    assert report.counts["for_group"] == 1
    assert report.counts["out_of_order"] == 1
    assert any("log.txt:3" in note for note in report.notes)


def test_aol_columns_may_be_missing_at_the_end_and_so_may_the_header(tmp_path):
    text = "\n".join(line.rstrip("\t") for line in AOL.splitlines()[1:])
    assert analyze(written(tmp_path, text), "aol").counts["for_group"] == 1


def test_line_ends_of_windows_and_a_byte_order_mark_do_not_matter(tmp_path):
    text = b"\xef\xbb\xbf" + AOL.replace("\n", "\r\n").encode()
    report = analyze(written(tmp_path, text), "aol")
    assert (report.counts["for_group"], report.rejected) == (1, {})


def tsv(rows, header="user\ttime\tquery\tentry\ttopic"):
    return "\n".join([header, *("\t".join(row) for row in rows)]) + "\n"


def test_a_tsv_names_its_columns_in_the_first_line(tmp_path):
    first = ("u", "2021-01-01T10:00:00.250Z", "boots", "", "shop")
    rows = [first, ("u", "1609495220", "boots men", "Suggestion", "shop")]
    report = analyze(written(tmp_path, tsv(rows)), "tsv")
    assert report.tables["gaps"].filter(group="male", entry="all")["median"][0] == pytest.approx(19.75)
    assert report.tables["entries"].filter(group="all", entry="recommended")["share"][0] == 1.0
    assert report.settings["topics"].startswith("a column")


def test_an_empty_field_of_results_is_no_page(tmp_path):
    rows = [
        ("u", "1", "boots", ""),
        ("u", "1", "boots", "http://a.example"),
        ("u", "9", "boots men", "http://a.example"),
    ]
    report = analyze(written(tmp_path, tsv(rows, "user\ttime\tquery\tresults")), "tsv")
    assert report.tables["sites"].select("n", "before", "after").rows() == [(1, 1.0, 1.0)]


def test_columns_may_have_other_names(tmp_path):
    rows = [("1", "a", "100", "boots"), ("1", "a", "130", "men boots"), ("1", "b", "131", "men boots x")]
    path = written(tmp_path, tsv(rows, "who\tsid\tts\tq"))
    named = {"user": "who", "session": "sid", "time": "ts", "query": "q"}
    report = analyze(path, "tsv", columns=named)
    assert (report.counts["sessions"], report.counts["pairs"], report.counts["for_group"]) == (2, 1, 1)


def test_given_sessions_are_kept_apart_even_where_they_alternate(tmp_path):
    queries = ["boots", "golf", "boots men", "golf men"]
    rows = [("u", session, str(i), query) for i, (session, query) in enumerate(zip("abab", queries, strict=True))]
    report = analyze(written(tmp_path, tsv(rows, "user\tsession\ttime\tquery")), "tsv")
    assert (report.counts["users"], report.counts["sessions"], report.counts["for_group"]) == (1, 2, 2)


@pytest.mark.parametrize(
    ("header", "columns", "error", "words"),
    [
        ("who\ttime\tquery", None, DataError, "user or session"),
        ("user\tquery", None, DataError, "expected a column time"),
        ("user\ttime\tquery", {"query": "text"}, DataError, "expected a column text"),
        ("user\ttime\tquery", {"qury": "query"}, UnknownName, "did you mean 'query'"),
        ("user\ttime\tquery", {"session": "user"}, ConfigError, "used for two fields"),
    ],
)
def test_wrong_columns_are_refused_without_quoting_the_line(tmp_path, header, columns, error, words):
    path = written(tmp_path, header + "\n")
    with pytest.raises(error, match=words) as found:
        analyze(path, "tsv", columns=columns)
    assert "who" not in str(found.value)


def test_an_empty_log_an_unknown_format_and_a_folder_without_logs_are_errors(tmp_path):
    with pytest.raises(DataError, match="found none"):
        analyze(written(tmp_path, "", "empty.tsv"), "tsv")
    with pytest.raises(UnknownName, match="known: aol"):
        analyze(written(tmp_path, AOL), "aool")
    with pytest.raises(DataError, match="no such file"):
        analyze(tmp_path / "absent", "aol")
    with pytest.raises(DataError, match=r"ending in \.parquet"):
        analyze(tmp_path, "parquet")
    with pytest.raises(ConfigError, match="columns=") as error:
        analyze(written(tmp_path, "{}", "x.json"), "tripclick", columns={"user": "x"})
    assert error.value.code == "fixed-columns"


TRIP = [
    {"DateCreated": "/Date(1372634155000)/", "SessionId": "s1", "Keywords": "asthma", "DocumentId": 5,
     "Documents": [4, 5]},
    {"DateCreated": "/Date(1372634165000)/", "SessionId": "s1", "Keywords": "asthma in women", "DocumentId": 5,
     "Documents": [5, 6], "Url": "http://x", "Title": "x"},
    {"DateCreated": "/Date(1372634175000)/", "SessionId": "s1", "Keywords": "asthma in women", "DocumentId": 6,
     "Documents": [5, 6]},
    {"DateCreated": "/Date(1372634155000)/", "SessionId": "s2", "Keywords": "gout", "DocumentId": 0, "Documents": []},
]  # fmt: skip


def test_tripclick_records_are_read_with_clicks_and_results(tmp_path):
    lines = "".join(json.dumps(row) + "\n" for row in TRIP)
    report = analyze(written(tmp_path, lines, "2013-07-01.json"), "tripclick")
    assert (report.counts["users"], report.counts["searches"], report.counts["for_group"]) == (2, 3, 1)
    # The document clicked first on the second page stood second on the first page, and is now first.
    assert report.tables["ranks"].filter(group="all", change="lower")["hits"][0] == 1
    assert "sessions-as-users" in [getattr(note, "code", "") for note in report.notes]


def test_tripclick_lines_that_are_no_records_are_counted_and_the_others_read(tmp_path):
    lines = [json.dumps(TRIP[0]), "{broken", "[1]", json.dumps(TRIP[1]), '{"Keywords": "x", "SessionId": "s"}', ""]
    report = analyze(written(tmp_path, "\n".join(lines), "x.json"), "tripclick")
    assert report.rejected == {_NOT_JSON: 2, "unparseable time": 1}
    assert report.counts["for_group"] == 1
    assert report.counts["rows_read"] == 5


XML = """<track><session num="1" starttime="0"><topic num="3"><desc>x</desc></topic>
<interaction num="1" starttime="9.5"><query>boots</query><results>
<result rank="1"><url>http://a.example/1</url><title>men</title><snippet>men and women</snippet></result>
<result rank="2"><url>http://b.example/2</url><title></title><snippet>&lt;b&gt;</snippet></result></results>
<clicked><click num="1" starttime="10" endtime="11"><rank>2</rank></click></clicked></interaction>
<interaction num="2" starttime="30"><query>boots women</query><results>
<result rank="1"><url>http://b.example/2</url><title>women</title><snippet></snippet></result></results>
<clicked><click num="1" starttime="31" endtime="32"><rank>1</rank></click></clicked></interaction>
<currentquery starttime="60.25"><query>boots women red</query></currentquery></session></track>"""


def test_trec_sessions_are_read_with_times_results_texts_and_clicks(tmp_path):
    report = analyze(written(tmp_path, XML, "s.xml"), "trec-session")
    assert (report.counts["sessions"], report.counts["searches"], report.counts["for_group"]) == (1, 3, 1)
    tables = report.tables
    assert tables["gaps"]["median"][0] == pytest.approx(20.5)
    assert tables["ranks"].filter(group="all", change="lower")["share"][0] == 1.0
    # One woman and two men on the first page: the added group is the smaller.
    assert tables["kinds"].filter(group="all", kind="corrects")["hits"][0] == 1
    assert tables["lean"].select("before", "after").row(0) == (pytest.approx(1 / 3), 1.0)


def test_xml_that_is_cut_short_is_an_error_with_its_place(tmp_path):
    with pytest.raises(DataError, match=r"s\.xml:\d+: not well-formed"):
        analyze(written(tmp_path, XML[:300], "s.xml"), "trec-session")
    with pytest.raises(DataError, match="expected <session> elements"):
        analyze(written(tmp_path, "<a/>", "t.xml"), "trec-session")


def test_parquet_columns_may_be_texts_numbers_times_or_lists(analyzed):
    rows = {
        "user": [1, 1], "time": [100.5, 110.0], "query": ["boots", "women boots"], "click_rank": [None, 2],
        "click_doc": [None, "http://b.example"], "results": [["http://a.example", "http://b.example"]] * 2,
    }  # fmt: skip
    report = analyzed(rows)
    assert report.tables["gaps"]["median"][0] == 9.5
    assert report.tables["ranks"].filter(group="all", change="same")["hits"][0] == 1


def test_bad_rows_of_parquet_are_counted_by_reason(analyzed):
    rows = {
        "user": ["a", None, "c", "d", "e"], "time": [1, 2, None, 4, 5], "query": ["x", "x", "x", "nul\0", None],
        "click_rank": [[1], [2], [3], [4], [0]],
    }  # fmt: skip
    report = analyzed(rows)
    assert report.rejected == {
        "NUL byte": 1, NOT_A_RANK: 1, "no user": 1, "unparseable time": 1,
    }  # fmt: skip
    assert report.examples["no user"][0].endswith("log.parquet, row 2")


def test_a_file_that_is_no_parquet_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"x\.parquet") as error:
        analyze(written(tmp_path, "x", "x.parquet"), "parquet")
    assert error.value.code == "damaged"


def test_files_with_different_columns_are_not_read_as_one(tmp_path):
    written(tmp_path, tsv([("u", "1", "a", "", "")]), "a.tsv")
    written(tmp_path, tsv([("u", "1", "a")], "user\ttime\tquery"), "b.tsv")
    with pytest.raises(DataError) as error:
        analyze(tmp_path, "tsv")
    assert (error.value.code, error.value.values) == ("other-columns", {"columns": "entry, topic"})


NOT_TIMES = (
    "", "x", "2006-02-29 00:00:00", "2006-03-01", "2006-03-01 24:00:00", "1.", "2006-03-01 07:17:12 am", "-5",
    "2006-03-01T07:17:12+2", "1e9", "12345678901234567",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2006-03-01 07:17:12", 1141197432000),
        ("2006-03-01T07:17:12Z", 1141197432000),
        ("2006-03-01T07:17:12.5", 1141197432500),
        ("2006-03-01T09:17:12+02:00", 1141197432000),
        ("2006-03-01T02:47:12-0430", 1141197432000),
        (" 1141197432 ", 1141197432000),
        ("1141197432000", 1141197432000),
        ("99.396003", 99396),
        ("2004-02-29 00:00:00", 1078012800000),
        *((wrong, None) for wrong in NOT_TIMES),
    ],
)
def test_times_are_read_in_all_their_forms(text, expected):
    # Beside a text of another form, so that each is read by its own form.
    assert parse_times(pl.Series([text, "5", "x"])).to_list() == [expected, 5000, None]


@given(st.datetimes(min_value=datetime(1600, 1, 1)))
def test_every_date_is_read_as_python_reads_it(moment):
    moment = moment.replace(microsecond=0)
    texts = pl.Series([moment.isoformat(" "), moment.isoformat() + ".5"])
    expected = round((moment - datetime(1970, 1, 1)).total_seconds()) * 1000
    assert parse_times(texts).to_list() == [expected, expected + 500]


FIELDS = st.sampled_from(
    [b"", b"u", b"7", b" 9", b"x y", b"\r", b"\xc3\xa9", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"-", b"\0"]
)
LINES = st.lists(FIELDS, min_size=1, max_size=4).map(b"\t".join)


@given(st.lists(st.binary(max_size=12) | LINES), st.booleans())
def test_lines_are_cut_and_told_from_noise_as_python_does(lines, windows):
    lines = [line.replace(b"\n", b"") for line in lines]
    header, end = b"user\ttime\tquery\n", b"\r\n" if windows else b"\n"
    log = DelimitedLog([(1, header + b"".join(line + end for line in lines))], "log.tsv")
    expected = Counter(why for line in lines if (why := reason(line if windows else line.removesuffix(b"\r"))))
    batches = [log.parse(block, new_key()) for block in log.blocks()]
    assert sum(batch.rows for batch in batches) == sum(expected.values())
    found = Counter()
    for batch in batches:
        found.update(batch.rejected.counts)
        found["row"] += batch.table.num_rows
    assert +found == expected


def reason(line):
    """Why a line of user, time and query is left out; "row" for a good line, "" for a blank one."""
    if b"\0" in line:
        return NUL
    try:
        fields = line.decode().split("\t")
    except UnicodeDecodeError:
        return NOT_UTF8
    if len(fields) == 1 and not line.strip(bytes(range(33))):
        return ""
    if len(fields) != 3:
        return WRONG_WIDTH
    user, time, query = fields
    if not re.fullmatch("[0-9]+", time.strip(" ")):
        return "unparseable time"
    return "no user" if not user else "row" if terms(query) else NO_TERM


def test_ids_are_hashed_with_the_key():
    ids = pa.array(["u", None, "v", "u", "", b"\xff".decode("latin-1")])
    one, two = (hashed(ids, key).to_pylist() for key in (b"1" * 16, b"2" * 16))
    assert not set(one) & set(two)
    for hashes in (one, two):
        assert (hashes[0], hashes[1], len(set(hashes))) == (hashes[3], hashes[4], 4)


def test_the_shape_of_a_value_tells_nothing_of_it():
    assert shape("Secret-42 é\x07") == "'aaaaaa-99 ??'"
    assert shape("x" * 100) == "'" + "a" * 40 + "'..."


def test_the_order_of_a_log_and_the_room_in_memory_change_nothing(tmp_path, monkeypatch):
    from log_generator import Planted, SyntheticLog, write_log

    from askew.logs import reading

    log = SyntheticLog(Planted(sessions=3000, users=700, queries_per_topic=3), pages=False)
    by_user = write_log(log, tmp_path / "user.tsv", "tsv", "user")
    lines = by_user.read_bytes().splitlines(keepends=True)
    rng = np.random.default_rng(0)
    shuffled = [lines[0], *(lines[1 + i] for i in rng.permutation(len(lines) - 1))]
    any_order = written(tmp_path, b"".join(shuffled), "any.tsv")
    found = [analyze(by_user, "tsv", min_users=2)]
    monkeypatch.setattr(reading, "_BLOCK", 20_000)
    monkeypatch.setattr("askew.logs.reading._PART_BYTES", 30_000)
    monkeypatch.setattr("askew.logs.reading._IN_MEMORY", 0)
    found.append(analyze(any_order, "tsv", min_users=2, threads=3))
    first, second = found
    assert first.counts | {"out_of_order": 0} == second.counts | {"out_of_order": 0}
    assert second.counts["out_of_order"] > 0
    for name, table in first.tables.items():
        other = second.tables[name]
        keys = [c for c in table.columns if table[c].dtype == pl.String]
        one, two = (t.sort(keys) if keys else t for t in (table, other))
        assert_frame_equal(one, two, check_row_order=True, rel_tol=1e-9)
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == []
