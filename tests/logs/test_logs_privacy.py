"""No id, and no text that few users typed, is in anything that is printed or written."""

import json
import re

import polars as pl
import pytest
from log_generator import Planted, SyntheticLog, write_log, write_vectors

from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon
from askew.logs.analyze import logs
from askew.logs.association import Decision, read_review, review_text
from askew.logs.numbers import NAME, RARE, SPECULATION, Privacy
from askew.logs.settings import LogSettings

PLANTED = Planted(sessions=6_000, users=1_500, queries_per_topic=4, rare=0.2)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Everything that comes of a log in which a fifth of the reformulations is of queries typed once."""
    folder = tmp_path_factory.mktemp("private")
    log = write_log(SyntheticLog(PLANTED), folder / "log.parquet")
    vectors = write_vectors(PLANTED, folder)
    review, out = folder / "review.tsv", folder / "out"
    report = logs([log], format="parquet", settings=LogSettings(review=review, vectors=vectors, min_users=5))
    report.report(out)
    report.review(review)
    return log, out, review, report


def texts(out, review, report):
    yield json.dumps(report.to_dict())
    yield review.read_text()
    for path in out.rglob("*"):
        if path.suffix == ".parquet":
            yield pl.read_parquet(path).write_json()
        elif path.is_file():
            yield path.read_text()


def test_no_user_id_and_no_rare_query_is_in_any_output(outputs):
    log, out, review, report = outputs
    rows = pl.read_parquet(log)
    rare = rows.filter(pl.col("query").str.contains("onlyone"))
    assert rare.height > 500
    assert rows["user"].str.starts_with("person-").all()
    names = sorted(path.name for path in out.rglob("*") if path.is_file())
    assert {"report.html", "report.json", "queries.csv", "queries.parquet"} <= set(names)
    for text in texts(out, review, report):
        assert "person-" not in text
        assert "onlyone" not in text


def test_every_query_shown_was_typed_by_enough_users(outputs):
    log, _, review, report = outputs
    rows = pl.read_parquet(log)
    users = dict(rows.group_by("query").agg(pl.col("user").n_unique()).iter_rows())
    shown = report.tables["queries"]["original"]
    assert len(shown) > 50
    assert min(users[query] for query in shown) >= 5
    assert min(int(line.split("\t")[3]) for line in review.read_text().splitlines()[1:]) >= 5


def test_what_is_withheld_is_counted_and_counts_in_the_figures(outputs):
    log, _, _, report = outputs
    rare = report.tables["withheld"].filter(what="queries", reason=RARE)["n"][0]
    rows = pl.read_parquet(log)
    events = rows.filter(pl.col("query").str.contains("onlyone") & pl.col("query").str.contains(r"\b(wo)?men|male\b"))
    assert rare >= events.height
    assert report.tables["groups"].filter(group="female")["n"][0] == report.counts["for_group"]


def test_the_key_of_a_run_leaves_no_trace_in_the_figures(outputs):
    log, _, _, report = outputs
    again = logs([log], format="parquet", settings=LogSettings(min_users=5, topics="column"))
    assert not any(re.search("user(?!s)", column) for table in report.tables.values() for column in table.columns)
    assert again.tables["groups"].equals(report.tables["groups"])


def test_topics_of_the_log_that_few_users_have_are_put_together(tmp_path):
    rows = {
        "user": [f"u{i}" for i in range(6) for _ in range(2)],
        "time": [1, 2] * 6,
        "query": ["boots", "boots men"] * 6,
        "topic": ["shop"] * 10 + ["my own words"] * 2,
    }
    path = tmp_path / "log.parquet"
    pl.DataFrame(rows).write_parquet(path)
    report = logs([path], format="parquet", settings=LogSettings(min_users=5))
    assert sorted(report.tables["topics"]["topic"]) == ["(few users)", "shop"]
    assert "my own words" not in json.dumps(report.to_dict())
    without = logs([path], format="parquet", settings=LogSettings(min_users=5, topics="none"))
    assert "topics" not in without.tables


def test_queries_with_names_or_about_who_a_person_is_are_withheld():
    texts = ["boots", "paul malone tie", "mary's boots", "is she a man", "born a woman", "marys", "transit map", "rare"]
    reasons = Privacy(5).reasons(pl.Series(texts), pl.Series([9] * 7 + [4]))
    assert reasons.to_list() == [None, NAME, NAME, SPECULATION, SPECULATION, None, None, RARE]


def test_the_least_number_of_users_is_at_least_one():
    with pytest.raises(ConfigError, match="min_users="):
        LogSettings(min_users=0)


def test_a_query_that_looks_like_a_formula_or_like_markup_stays_text(tmp_path):
    rows = {
        "user": [f"u{i}" for i in range(5) for _ in range(2)],
        "time": [1, 2] * 5,
        "query": ["=cmd x<script>alert(1)</script>", "=cmd x<script>alert(1)</script> men"] * 5,
    }
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    pl.DataFrame(rows).write_parquet(path)
    logs(path, format="parquet").report(out)
    assert "'=cmd" in (out / "tables" / "queries.csv").read_text()
    page = (out / "report.html").read_text()
    assert "<script" not in page
    assert "x&lt;script&gt;alert(1)&lt;/script" in page


def test_a_name_is_found_however_it_is_joined_to_other_words():
    texts = ["mary-ann boots", "mary/john", "@mary", "mary_smith", "o'paul", "mary's-boots", "marymount", "t-shirt"]
    reasons = Privacy(1).reasons(pl.Series(texts), pl.Series([9] * len(texts)))
    assert reasons.to_list() == [NAME] * 6 + [None, None]


def people(queries, **more):
    """Six users who each ask all of these queries, one after the other."""
    users = [f"u{i}" for i in range(6) for _ in queries]
    rows = {"user": users, "time": [10 * i for i in range(len(users))], "query": list(queries) * 6}
    return rows | {name: list(values) * 6 for name, values in more.items()}


def test_a_query_is_withheld_when_it_speculates_only_with_what_was_added(analyzed):
    report = analyzed(people(["zaphod male or", "zaphod male or female", "golf", "golf women"]), min_users=5)
    assert report.tables["queries"]["original"].to_list() == ["golf"]
    assert report.tables["withheld"].filter(what="queries", reason=SPECULATION)["n"].to_list() == [1]


def test_names_in_topics_of_the_log_are_not_shown(analyzed):
    report = analyzed(people(["boots", "boots men"], topic=["about john", "about john"]), min_users=5)
    assert "john" not in json.dumps(report.to_dict())
    assert report.tables["topics"]["topic"].to_list() == ["(not shown)"]
    assert report.tables["withheld"].filter(what="topics", reason=NAME)["n"].to_list() == [1]


def test_words_that_a_prefix_of_the_lexicon_lets_in_are_shown_only_where_they_may_be(analyzed):
    lexicon = Lexicon("x", {"m": ("ma*",), "z": ("zz",)})
    rows = people(["boots", "boots mary", "golf", "golf mature"])
    rows = {name: [*values, *some] for (name, values), some in zip(
        rows.items(), (["once", "once"], [900, 910], ["boots", "boots magenta"]), strict=True
    )}  # fmt: skip
    report = analyzed(rows, groups=lexicon, min_users=5)
    assert report.tables["blocks"]["block"].to_list() == ["mature"]
    counted = report.tables["withheld"].filter(what="blocks")
    assert dict(counted.select("reason", "n").iter_rows()) == {NAME: 1, RARE: 1}


def test_sites_that_are_not_shown_are_counted(analyzed):
    pages = ["http://a.example", "http://b.example"]
    rows = people(["boots", "boots men"], results=[pages, pages[:1]])
    rows = {name: [*values, *some] for (name, values), some in zip(
        rows.items(), (["once"] * 2, [900, 910], ["boots", "boots men"], [["http://c.example"]] * 2), strict=True
    )}  # fmt: skip
    report = analyzed(rows, min_users=5, min_events=1)
    assert sorted(report.tables["sites"]["site"]) == ["a.example", "b.example"]
    assert report.tables["withheld"].filter(what="sites")["n"].to_list() == [1]


def test_where_sessions_stand_for_users_this_is_said(tmp_path):
    session = '<session num="{0}"><interaction starttime="1"><query>boots</query></interaction></session>'
    path = tmp_path / "s.xml"
    path.write_text("<t>" + "".join(session.format(i) for i in range(3)) + "</t>")
    notes = logs([path], format="trec-session", settings=LogSettings()).notes
    assert ["min_users=" in note for note in notes if getattr(note, "code", "") == "sessions-as-users"] == [True]


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_no_cell_of_a_written_table_is_a_formula(analyzed, tmp_path, mark):
    query = f"{mark}cmd;{mark}x"
    rows = people([query, f"{query} men", query, f"{query} {mark}kids"])
    report = analyzed(rows, review=tmp_path / "review.tsv")
    report.report(tmp_path / "out")
    report.review(tmp_path / "review.tsv")
    table = (tmp_path / "out" / "tables" / "queries.csv").read_text()
    assert f'"\'{query}"' in table
    lines = (tmp_path / "review.tsv").read_text().splitlines()
    assert any(line.startswith(f"'{mark}kids\t") for line in lines)
    assert not any(cell.startswith(mark) for line in lines for cell in line.split("\t"))


def test_a_keyphrase_that_looks_like_a_formula_can_be_decided_on(tmp_path):
    path = tmp_path / "review.tsv"
    path.write_text(review_text([Decision("=kids", "young"), Decision("-teens", "")]))
    assert [(one.keyphrase, one.decision) for one in read_review(path)] == [("=kids", "young"), ("-teens", "")]
