"""Audit: the numbers of askew audit --out, drawn anew; a file is data, never markup."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_web_pages import Checker

import askew
from askew.core.errors import DataError
from askew.report.table import html_table
from askew.study.audit import page as t
from askew.study.audit.page import write_audit
from askew.study.audit.report import read_audit
from askew.study.tables import parts_table
from askew.ui.explorer.opening import Sources, open_sources
from askew.ui.web.pages.audit import audit_page
from askew.ui.web.pages.shell import render
from conftest import JUDGED

TEXTS = {
    "d1": "A nurse helps his patients and he is kind.", "d2": "He is a nurse, and his brother is a nurse.",
    "d3": "The ward opens at nine.", "d4": "Her school for nurses.",
}  # fmt: skip
EVIL = '<script>window.pwned=1</script>"><img src=x onerror=alert(1)> \u202e'


def find(query, k):
    words = query.split()
    found = [(doc, sum(text.lower().count(word) for word in words), text) for doc, text in TEXTS.items()]
    return [one for one in sorted(found, key=lambda one: -one[1]) if one[1]][:k]


@pytest.fixture(scope="module")
def report():
    # With so few documents, only a high rate of false discoveries leaves worst queries.
    settings = askew.AuditSettings(methods=["reduce"], method_settings={"equivalence": {"model": "light"}}, level=1.0)
    queries = {"q1": "how to become a nurse", "q2": "nurse school", "q3": "ward of a hospital"}
    return askew.audit(find, queries, settings=settings)


@pytest.fixture(scope="module")
def folder(report, tmp_path_factory):
    found = tmp_path_factory.mktemp("audits")
    write_audit(report, found / "plain", keep_queries=False)
    write_audit(report, found / "kept", keep_queries=True)
    return found


def test_the_numbers_of_a_file_are_those_of_the_audit(report, folder):
    assert read_audit(folder / "kept").to_dict(keep_queries=True) == report.to_dict(keep_queries=True)
    assert read_audit(folder / "plain").to_dict() == report.to_dict()


def test_the_explorer_draws_the_same_tables_as_the_page_of_the_audit(folder):
    found, page = read_audit(folder / "kept"), (folder / "kept" / "report.html").read_text()
    tables = [t.means_table(found), *(parts_table(one, place) for place, one in enumerate(found.parts, 1))]
    tables += [t.sensitivity_table(found), *([t.tried_table(found)] if found.reformulations else [])]
    for one in tables:
        assert html_table(one) in page, one.name


def test_a_folder_of_audits_is_listed_and_each_opens(service, folder):
    client = service(sources=Sources(audit=folder))
    first = client.get("/audit").text
    assert 'href="/audit?name=plain"' in first and 'href="/audit?name=kept" aria-current="true"' in first
    Checker(first).check()
    plain = client.get("/audit", params={"name": "plain"}).text
    assert JUDGED in first and JUDGED not in plain and "q1" in plain
    assert "<h2 " in plain and plain.count('<details class="folded">') >= 4
    one = service(sources=Sources(audit=folder / "plain")).get("/audit").text
    assert "q1" in one and "?name=" not in one


def test_only_audits_that_are_listed_can_be_opened(service, folder):
    client = service(sources=Sources(audit=folder))
    for name in ("nix", "../plain", "/etc", ".."):
        reply = client.get("/audit", params={"name": name})
        assert reply.status_code in (400, 404) and "kept, plain" in reply.text, name


def hostile(value):
    """The same values with every text replaced by markup."""
    if isinstance(value, dict):
        return {(EVIL if key not in _KEYS else key): hostile(one) for key, one in value.items()}
    if isinstance(value, list):
        return [hostile(one) for one in value]
    return EVIL if isinstance(value, str) else value


# The names that the file has by itself; any other key is a text from elsewhere.
_NAMES = """
askew engine k queries unanswered groups deciding verdict measures per_query parts worst reformulations
dropped_reformulations sensitivity effects next_steps failures reading effectiveness agree model notes mean
low high n interval better signature run measure resolver mentions judged value kind name share found amounts
net net_low net_high query_id lean named text method same natural kept lean_verdict outcome gain suggested
lean_before lean_after effectiveness_before effectiveness_after holds of combinations label toward
change by_chance excess excess_change words nobody
"""
_KEYS = frozenset(_NAMES.split())


def test_a_hostile_file_stays_text(service, folder, tmp_path):
    shutil.copytree(folder / "kept", tmp_path / "evil")
    read = json.loads((tmp_path / "evil" / "audit.json").read_text())
    (tmp_path / "evil" / "audit.json").write_text(json.dumps(hostile(read)))
    (tmp_path / "evil" / "report.html").write_text("<script>window.pwned=2</script>")
    reply = service(sources=Sources(audit=tmp_path)).get("/audit")
    assert reply.status_code == 200 and "pwned=2" not in reply.text
    assert "<script>window" not in reply.text and "<img" not in reply.text and "\u202e" not in reply.text
    assert "&lt;script&gt;window.pwned=1&lt;/script&gt;" in reply.text
    Checker(reply.text).check()
    assert "unsafe" not in reply.headers["content-security-policy"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"engine": 1}', "null", '{"measures": {"a": 1}}'])
def test_a_file_that_is_no_audit_is_refused_in_one_line(service, tmp_path, text):
    (tmp_path / "audit.json").write_text(text)
    with pytest.raises(DataError, match="askew audit --out") as told:
        read_audit(tmp_path)
    assert "\n" not in str(told.value)
    assert service(sources=Sources(audit=tmp_path)).get("/audit").status_code == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(_KEYS)), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_whatever_one_value_of_a_file_becomes_it_is_a_page_or_one_line(report, folder, data):
    read = json.loads((folder / "kept" / "audit.json").read_text())
    read[data.draw(st.sampled_from(sorted(read)))] = data.draw(JSON)
    path = folder / "changed"
    path.mkdir(exist_ok=True)
    (path / "audit.json").write_text(json.dumps(read))
    try:
        found = read_audit(path)
    except DataError:
        return
    finally:
        shutil.rmtree(path)
    Checker(render(audit_page(found, "x", {})).decode()).check()


def test_a_folder_without_an_audit_is_refused_before_anything_is_opened(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=r"audit= .*askew audit --out"):
            open_sources(Sources(audit=folder))


def test_without_an_audit_the_page_says_how_one_is_made(client):
    text = client.get("/audit").text
    assert "askew audit" in text and "--audit" in text
