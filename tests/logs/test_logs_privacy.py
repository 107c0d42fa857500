"""No id, and no text that few users typed, is in anything that is printed or written."""

import json
import re

import polars as pl
import pytest

from askew.core.errors import ConfigError
from askew.logs.planted import Planted
from askew.logs.privacy import NAME, RARE, SPECULATION, Privacy
from askew.logs.synthetic import SyntheticLog, write_log
from askew.stages.logs.analyse import LogSettings, analyse_log
from askew.stages.logs.demo import write_vectors
from askew.stages.logs.writing import write_review, write_tables

PLANTED = Planted(sessions=6_000, users=1_500, queries_per_topic=4, rare=0.2)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Everything that comes of a log in which a fifth of the reformulations is of queries typed once."""
    folder = tmp_path_factory.mktemp("private")
    log = write_log(SyntheticLog(PLANTED), folder / "log.parquet")
    vectors = write_vectors(PLANTED, folder)
    review, out = folder / "review.tsv", folder / "out"
    report = analyse_log([log], "parquet", LogSettings(review=review, vectors=vectors, min_users=5))
    write_tables(report, out)
    write_review(report, review)
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
    assert {"report.html", "report.json", "queries.csv", "queries.parquet", "funnel.csv"} <= set(names)
    for text in texts(out, review, report):
        assert "person-" not in text
        assert "onlyone" not in text


def test_every_query_shown_was_typed_by_enough_users(outputs):
    log, _, review, report = outputs
    rows = pl.read_parquet(log)
    users = dict(rows.group_by("query").agg(pl.col("user").n_unique()).iter_rows())
    shown = [*report.tables["queries"]["original"], *report.tables["funnel"]["original"]]
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
    again = analyse_log([log], "parquet", LogSettings(min_users=5, topics="column"))
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
    report = analyse_log([path], "parquet", LogSettings(min_users=5))
    assert sorted(report.tables["topics"]["topic"]) == ["(few users)", "shop"]
    assert "my own words" not in json.dumps(report.to_dict())
    without = analyse_log([path], "parquet", LogSettings(min_users=5, topics="none"))
    assert "topics" not in without.tables


def test_queries_with_names_or_about_who_a_person_is_are_withheld():
    texts = ["boots", "paul malone tie", "mary's boots", "is she a man", "born a woman", "marys", "transit map", "rare"]
    reasons = Privacy(5).reasons(pl.Series(texts), pl.Series([9] * 7 + [4]))
    assert reasons.to_list() == [None, NAME, NAME, SPECULATION, SPECULATION, None, None, RARE]


def test_the_least_number_of_users_is_at_least_one():
    with pytest.raises(ConfigError, match="--min-users"):
        Privacy(0)


def test_a_query_that_looks_like_a_formula_or_like_markup_stays_text(tmp_path):
    rows = {
        "user": [f"u{i}" for i in range(5) for _ in range(2)],
        "time": [1, 2] * 5,
        "query": ["=cmd x<script>alert(1)</script>", "=cmd x<script>alert(1)</script> men"] * 5,
    }
    path, out = tmp_path / "log.parquet", tmp_path / "out"
    pl.DataFrame(rows).write_parquet(path)
    write_tables(analyse_log([path], "parquet", LogSettings()), out)
    assert "'=cmd" in (out / "tables" / "queries.csv").read_text()
    page = (out / "report.html").read_text()
    assert "<script" not in page
    assert "x&lt;script&gt;alert(1)&lt;/script" in page
