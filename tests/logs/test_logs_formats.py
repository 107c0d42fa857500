"""Log formats are plugins: those that come with askew keep the contract, and another is a class and an entry point."""

import gzip
import json

import pyarrow as pa
import pytest
from log_generator import Planted, SyntheticLog, write_log

from askew.core import plugins as registry
from askew.core.errors import UnknownName
from askew.core.protocols import LogRows
from askew.logs.analyze import logs
from askew.testing.contracts import check_log_format

XML = """<sessiontrack><session num="1" userid="u"><topic num="3"/>
<interaction starttime="1.5"><query>boots</query><results><result rank="1"><url>http://a.example</url></result></results>
<clicked><click><rank>1</rank></click></clicked></interaction>
<currentquery starttime="9"><query>boots men</query></currentquery></session></sessiontrack>"""


@pytest.fixture
def files(tmp_path):
    """A small file of each format."""
    log = SyntheticLog(Planted(sessions=40, users=9, queries_per_topic=2), pages=True)
    made = {form: write_log(log, tmp_path / f"log.{form}", form) for form in ("parquet", "tsv")}
    made["aol"] = write_log(log, tmp_path / "log.txt", "aol")
    made["trec-session"] = tmp_path / "log.xml"
    made["trec-session"].write_text(XML)
    record = {"DateCreated": "/Date(1372629600000)/", "SessionId": "s", "Keywords": "boots", "DocumentId": 7}
    made["tripclick"] = tmp_path / "log.json"
    made["tripclick"].write_text(json.dumps(record) + "\nno record\n")
    return made


@pytest.mark.parametrize("name", ["aol", "parquet", "trec-session", "tripclick", "tsv"])
def test_every_format_that_comes_with_askew_keeps_the_contract(files, name):
    rows = check_log_format(registry.build("log_format", name, {}), files[name])
    assert all(row["query"] and isinstance(row["time"], int) for row in rows)


def test_the_registry_knows_all_formats_and_what_they_read():
    assert {"aol", "parquet", "trec-session", "tripclick", "tsv"} <= set(registry.names("log_format"))
    for name in registry.names("log_format"):
        assert registry.load("log_format", name).name == name
        assert registry.about("log_format", name) != "no description"


class PipeFormat:
    """Lines of user|seconds|query."""

    name, endings = "pipe", (".log",)

    def read(self, file, columns=None):
        """The lines of a file."""
        rows = [line.decode().split("|") for _, block in file.lines() for line in block.splitlines()]
        table = pa.table(dict(zip(("user", "time", "query"), map(list, zip(*rows, strict=True)), strict=True)))
        return LogRows(frozenset(table.column_names), [table.slice(0, 1), table.slice(1)])


@pytest.fixture
def pipe(monkeypatch, tmp_path_factory):
    """A package that announces the format, as pip installs one."""
    site = tmp_path_factory.mktemp("site")
    facts = site / "pipe_log-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pipe-log\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[askew.log_format]\npipe = {__name__}:PipeFormat\n")
    monkeypatch.syspath_prepend(site)
    registry._found.cache_clear()
    yield
    registry._found.cache_clear()


def test_a_format_of_ones_own_is_read_as_any_other(pipe, tmp_path):
    path = tmp_path / "one.log"
    path.write_text("u|1|boots\nu|9|boots for men\nu|never|golf\n")
    (tmp_path / "two.log").write_bytes(gzip.compress(path.read_bytes().replace(b"u|", b"v|")))
    report = logs(tmp_path, format="pipe")
    assert (report.counts["rows_read"], report.counts["for_group"], report.settings["format"]) == (6, 2, "pipe")
    # Rows are numbered over the tables of a file.
    places = [f"{file}, row 3: 'aaaaa'" for file in (path, tmp_path / "two.log")]
    assert report.examples == {"unparseable time": places}
    assert registry.origin("log_format", "pipe").startswith("pipe-log 1.0")
    with pytest.raises(UnknownName, match="unknown format 'pipes' in format=: did you mean 'pipe'"):
        logs(path, format="pipes")


def test_the_contract_returns_the_rows_as_they_are_kept(tmp_path):
    path = tmp_path / "one.log"
    path.write_text("u|1|Boots!\nu|9|boots for men\n")
    assert check_log_format(PipeFormat(), path) == [
        {"time": 1000, "line": 1, "query": "boots"},
        {"time": 9000, "line": 2, "query": "boots for men"},
    ]


def broken(**parts):
    return type("Broken", (PipeFormat,), {"__doc__": "Broken.", **parts})()


def rows(*tables, columns=("user", "time", "query")):
    return lambda *_: LogRows(frozenset(columns), list(tables))


GOOD = pa.table({"user": ["u"], "time": [1], "query": ["boots"]})


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (object(), "protocols.LogFormat"),
        (broken(name="Two words"), "lower-case letters"),
        (broken(__doc__=""), "docstring"),
        (broken(endings=(".xml",)), "endings"),
        (broken(read=rows(GOOD, columns=("user", "time", "query", "color"))), "unknown columns: color"),
        (broken(read=rows(GOOD, columns=("user", "query"))), "a row needs"),
        (
            broken(read=rows(GOOD, columns=("user", "time", "query", "topic"))),
            "all of ``columns``",
        ),
        (broken(read=rows(GOOD.set_column(1, "time", pa.array(["never"])))), "no row"),
        (broken(read=rows(*[GOOD.append_column("line", pa.array([5]))] * 2)), "``line`` must rise"),
    ],
)
def test_a_format_that_does_not_keep_the_contract_is_told_why(tmp_path, form, words):
    path = tmp_path / "one.log"
    path.write_text("u|1|boots\n")
    with pytest.raises(AssertionError, match=words):
        check_log_format(form, path)
