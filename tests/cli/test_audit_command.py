"""askew audit: a live engine over HTTP, stopped and gone on with, a gate, and what must not come out."""

import html
import json
import logging
import shutil

import pytest

from search_server import SearchServer, ServerFault

DOCS = {
    "d1": "what a nurse does : he helps him , his patients and the man",
    "d2": "a nurse works in a ward of marple",
    "d3": "the nurse said she would do it",
    "d4": "a lawyer and his client , he is a man",
    "d5": "lawyer : he and his brother",
}
QUERIES = {"q1": "what does a nurse do", "q2": "what does a lawyer do", "q3": "ward of marple"}
# With so few documents, only a high rate of false discoveries leaves queries to reformulate.
LIGHT = ("--method", "reduce", "--set", "equivalence.model=light", "--level", "1")
TOKEN = "tok-3141592653589793"


@pytest.fixture
def server(files, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    files.text("queries.tsv", "".join(f"{query}\t{text}\n" for query, text in QUERIES.items()))
    with SearchServer(DOCS) as server:
        yield server


def command(server, *more, out="audit"):
    files = ("--queries", "queries.tsv", *(() if out is None else ("--out", out)))
    return ["audit", f"{server.url}/search?q={{query}}&size={{k}}", *files, *LIGHT, *more]


class DownAfter:
    """Answers so many requests, then closes every connection without a word."""

    def __init__(self, answers):
        self.left = answers

    def popleft(self):
        self.left -= 1
        return None if self.left >= 0 else ServerFault(closes=True)

    def __bool__(self):
        return True


QUICK = ("--set=concurrency=1", "--set=attempts=2", "--set=backoff_s=0.0")


def test_an_audit_is_a_summary_of_80_columns_and_a_page(askew, server, tmp_path):
    done = askew(command(server))
    assert "ARaB(tf)@10" in done.table
    assert "written to audit/report.html" in done.out
    assert {path.name for path in (tmp_path / "audit").iterdir()} == {
        "report.html", "audit.json", "report.sha256", "tables",
    }  # fmt: skip
    assert not list(tmp_path.glob("*.answers*"))


def test_an_audit_goes_on_where_the_engine_stopped(askew, server, tmp_path):
    server.failures = DownAfter(2)
    stopped = askew(command(server, *QUICK))
    stopped.refused(6, "2 of 3 queries were answered", "audit.answers: run again to continue", "no connection")
    assert not (tmp_path / "audit").exists()
    server.failures = []
    done = askew(command(server, *QUICK))
    assert done.code == 0
    notes = json.loads((tmp_path / "audit" / "audit.json").read_text())["notes"]
    kept = next(note for note in notes if "interrupted" in note)
    assert kept in done.notes and kept in html.unescape((tmp_path / "audit" / "report.html").read_text())
    assert len(server.queries) == len(set(server.queries)) and set(server.queries) > set(QUERIES.values())
    assert not list(tmp_path.glob("*.answers*"))


def test_an_audit_goes_on_where_the_engine_stopped_among_reformulations(askew, server):
    server.failures = DownAfter(4)
    askew(command(server, *QUICK)).refused(6, "searching reformulations", "were answered")
    server.failures = []
    assert askew(command(server, *QUICK)).code == 0
    assert len(server.queries) == len(set(server.queries))


def test_without_a_folder_for_the_report_answers_are_kept_in_the_store(askew, server, tmp_path):
    server.failures = DownAfter(2)
    askew(command(server, *QUICK, out=None)).refused(6, ".askew/audit-", "run again to continue")
    server.failures = []
    assert askew(command(server, *QUICK, out=None)).code == 0
    assert len(server.queries) == len(set(server.queries))
    assert not list((tmp_path / ".askew").iterdir())


def test_a_complete_audit_asks_the_engine_anew_the_next_time(askew, server):
    assert askew(command(server)).code == 0
    first = len(server.queries)
    assert askew(command(server)).code == 0
    assert len(server.queries) == 2 * first


def test_a_cache_that_the_user_names_stays(askew, server, tmp_path):
    for _ in range(2):
        assert askew(command(server, "--set=cache=mine.answers")).code == 0
    assert (tmp_path / "mine.answers").exists()
    assert len(server.queries) == len(set(server.queries))


def test_settings_of_an_engine_may_be_in_a_file(askew, server, files):
    files.text("engine.toml", f'url = "{server.url}/search"\nparams = {{q = "{{query}}", size = "{{k}}"}}\n')
    done = askew(["audit", "http:engine.toml", "--queries", "queries.tsv", *LIGHT, "--json"])
    assert done.json["queries"] == 3


def test_a_function_in_a_file_can_be_audited(askew, server, files):
    files.text("mine.py", f"DOCS = {DOCS!r}\ndef find(query, k):\n    return [(d, 1.0, t) for d, t in DOCS.items()]\n")
    done = askew(["audit", "callable:mine.py:find", "--queries", "queries.tsv", *LIGHT, "--json"])
    assert done.json["measures"]["ARaB(tf)@10"]["n"] == 3


@pytest.mark.parametrize("engine", ["http:none.toml", "bm25:whatever", "nosuch"])
def test_an_engine_that_cannot_be_opened_is_one_line(askew, server, engine):
    askew(["audit", engine, "--queries", "queries.tsv"]).refused(2)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("plain.txt", "ward of marple\n", "found 1; put an id and a TAB before each text"),
        ("tabs.tsv", "1\tward\tof marple\n", "found 3; the text must not contain a TAB"),
        ("a.jsonl", '{"query_id": 1, "text": ["marple"]}\n', "found a list"),
        ("b.jsonl", '"ward of marple"\n', "found a text"),
        ("a.csv", "1,ward of marple\n", "found 2 fields"),
    ],
)
def test_a_file_of_queries_that_cannot_be_read_is_not_quoted(askew, server, files, name, text, said):
    files.text(name, text)
    done = askew([*command(server), "--queries", name])
    done.refused(3, f"{name}:1: ", said)
    assert "marple" not in done.err and server.queries == []


def test_a_file_of_queries_that_is_not_there_is_named(askew, server):
    askew([*command(server), "--queries", "none.tsv"]).refused(3, "queries none.tsv: there is no such file; check --q")


def test_a_template_is_no_engine_but_says_which(askew, server):
    askew(["audit", "solr", "--queries", "queries.tsv"]).refused(
        2, "use the engine 'http' with the setting template='solr'"
    )


def test_a_setting_of_a_method_that_does_not_take_part_is_refused(askew, server):
    askew(command(server, "--set", "stem.porter.x=1")).refused(
        2, "--set: 'stem.porter' is not one of the reformulators of this audit"
    )
    askew(command(server, "--set", "equivalence.modle=light")).refused(2, "modle")
    assert server.queries == []


def baseline(tmp_path, change):
    """The numbers of a complete audit, changed."""
    told = json.loads((tmp_path / "audit" / "audit.json").read_text())
    change(told)
    (tmp_path / "last.json").write_text(json.dumps(told))


def test_a_gate_of_a_fixed_limit_fails_with_code_1_and_its_line(askew, server):
    passed = askew(command(server, "--fail-if", "ARaB(tf)@10 > 5"))
    assert passed.code == 0
    assert "askew: passed: " in passed.err and passed.err.endswith("ARaB(tf)@10 > 5\n")
    assert "askew: compared: " in passed.err
    done = askew(command(server, "--fail-if", "ARaB(tf)@10 > 0.01", "--fail-if", "ARaB(tf, sign=abs)@10 < 9"))
    assert done.code == 1
    lines = [line for line in done.err.splitlines() if line.startswith("askew: failed: ")]
    assert len(lines) == 2
    assert "|ARaB(tf)@10|" in lines[0] and "above 0.01" in lines[0]
    assert "sign=abs)@10" in lines[1] and "below 9" in lines[1]
    assert "ARaB(tf)@10" in done.out


def test_a_gate_compares_with_the_baseline_in_percent(askew, server, tmp_path, files):
    files.text("judged.txt", "q1 0 d1 1\nq2 0 d4 1\n")
    judged = ("--qrels", "judged.txt")
    assert askew(command(server, *judged)).code == 0
    gate = ("--baseline", "last.json", "--fail-if", "ARaB(tf)@10 > +10%", "--fail-if", "nDCG@10 < -5%")
    baseline(tmp_path, lambda told: None)
    assert askew(command(server, *judged, *gate)).code == 0

    def halve(told):
        told["measures"]["ARaB(tf)@10"]["mean"] /= -2
        told["measures"]["nDCG@10"]["mean"] *= 2

    baseline(tmp_path, halve)
    done = askew(command(server, *judged, *gate))
    assert done.code == 1
    assert "+10% of" in done.err and "-5% of" in done.err
    assert "not significant (p = " in done.err and ", n = 2 queries)" in done.err


def test_an_audit_with_a_baseline_shows_the_change_of_each_measure_also_if_no_condition_is_given(
    askew, server, tmp_path
):
    first = askew(command(server))
    assert "Detectable gain:" not in first.out

    def double(told):
        for values in told["per_query"].values():
            values["ARaB(tf)@10"] *= 2
        told["measures"]["LexiconShare@10"]["signature"] = "another"

    baseline(tmp_path, double)
    done = askew(command(server, "--baseline", "last.json", "--json")).json
    found = done["against_baseline"]
    assert "LexiconShare@10" not in found and "ARaB(tf)@10" in found
    row = found["ARaB(tf)@10"]
    assert row["old"] == pytest.approx(2 * row["new"]) and row["n"] == done["measures"]["ARaB(tf)@10"]["n"]
    shown = askew(command(server, "--baseline", "last.json"))
    assert "Detectable gain:" in shown.out and "Detectable gain:" in (tmp_path / "audit" / "report.html").read_text()


def test_a_gate_on_significance_compares_query_by_query(askew, server, tmp_path, files):
    many = "".join(f"a{place}\twhat does a {'nurse' if place % 2 else 'lawyer'} do\n" for place in range(40))
    files.text("queries.tsv", many)
    assert askew(command(server)).code == 0
    gate = ("--baseline", "last.json", "--fail-if", "ARaB(tf)@10 worse", "--fail-if", "LexiconShare@10 worse")
    baseline(tmp_path, lambda told: None)
    assert askew(command(server, *gate)).code == 0

    def balanced(told):
        for values in told["per_query"].values():
            values["ARaB(tf)@10"] = 0.0

    baseline(tmp_path, balanced)
    done = askew(command(server, *gate))
    assert done.code == 1
    assert "askew: failed: ARaB(tf)@10 is worse" in done.err
    assert "n = 40 queries" in done.err and "askew: passed: 1 of 2 conditions" in done.err
    assert "LexiconShare@10 is worse" not in done.err

    def fewer(told):
        del told["per_query"]["a3"]["LexiconShare@10"]

    baseline(tmp_path, fewer)
    again = askew(command(server, *gate))
    assert again.noted("LexiconShare@10", "40 queries", " 39 ") and not again.noted("ARaB(tf)@10", "40 queries", " 39 ")


def test_a_baseline_of_other_queries_is_refused_before_any_query_is_sent(askew, server, tmp_path, files):
    assert askew(command(server)).code == 0
    shutil.copy(tmp_path / "audit" / "audit.json", tmp_path / "last.json")
    sent = len(server.queries)
    files.text("queries.tsv", "x1\twhat does a nurse do\nx2\twhat does a lawyer do\n")
    askew(command(server, "--baseline", "last.json")).refused(2, "it has no query in common with this audit")
    assert len(server.queries) == sent


def test_a_baseline_that_was_measured_otherwise_is_refused(askew, server, tmp_path):
    assert askew(command(server, "--groups", "gender:female,male")).code == 0
    shutil.copy(tmp_path / "audit" / "audit.json", tmp_path / "last.json")
    sent = len(server.queries)
    gate = ("--baseline", "last.json", "--fail-if", "ARaB(tf)@10 > +10%")
    askew(command(server, *gate)).refused(2, "--baseline", "same settings")
    askew(command(server, "--fail-if", "ARaB(tf)@10 > +10%")).refused(2, "give --baseline")
    (tmp_path / "last.json").write_text('{"measures": 3}')
    askew(command(server, *gate)).refused(3, "last.json")
    assert len(server.queries) == sent


def test_neither_query_nor_token_nor_document_comes_out_but_on_the_page(askew, server, tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("SEARCH_TOKEN", TOKEN)
    server.token = f"Bearer {TOKEN}"
    with caplog.at_level(logging.DEBUG):
        done = askew(command(server, "--set=auth_env=SEARCH_TOKEN", "--set=name=live"))
    assert done.code == 0
    told = [done.out, done.err, caplog.text, *map(repr, caplog.records)]
    page = tmp_path / "audit" / "report.html"
    written = {
        path: path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".html", ".json", ".csv", ".sha256")
    }
    assert len(written) >= 7
    for secret in (TOKEN, "nurse", "marple", "helps him"):
        assert all(secret not in text for text in told), secret
        assert all(secret not in text for path, text in written.items() if path != page), secret
    assert TOKEN not in written[page] and QUERIES["q1"] in written[page]


def test_an_engine_that_fails_quotes_nothing(askew, server, caplog, monkeypatch):
    monkeypatch.setenv("SEARCH_TOKEN", TOKEN)
    server.token = "Bearer of another token"
    with caplog.at_level(logging.DEBUG):
        done = askew(command(server, "--set=auth_env=SEARCH_TOKEN"))
    done.refused(6, "HTTP status 401", "0 of 3 queries were answered")
    for secret in (TOKEN, "marple", "nurse"):
        assert secret not in done.err + caplog.text


def test_an_audit_that_stops_leaves_nothing_to_read_in_an_encrypted_cache(askew, server, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCH_TOKEN", TOKEN)
    monkeypatch.setenv("CACHE_SECRET", "a long enough secret of ours")
    monkeypatch.setenv("ASKEW_DEBUG", "1")
    server.token, server.failures = f"Bearer {TOKEN}", DownAfter(2)
    own = ("--set=auth_env=SEARCH_TOKEN", "--set=cache_key_env=CACHE_SECRET", *QUICK)
    stopped = askew(command(server, *own))
    stopped.refused(6, "2 of 3 queries were answered")
    held = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "queries.tsv"}
    assert any(path.name.startswith("audit.answers") for path in held)
    for secret in (TOKEN, "a long enough secret", "nurse", "marple", "helps him"):
        assert secret not in stopped.err + stopped.out
        assert all(secret.encode() not in data for path, data in held.items()), secret
    server.failures = []
    assert askew(command(server, *own)).code == 0
    assert len(server.queries) == len(set(server.queries))


def test_a_function_that_quotes_the_query_in_its_error_is_not_quoted(askew, server, files, caplog, monkeypatch):
    monkeypatch.setenv("ASKEW_DEBUG", "1")
    files.text("broken.py", "def find(query, k):\n    raise ValueError(f'no such thing as {query}')\n")
    with caplog.at_level(logging.DEBUG):
        done = askew(["audit", "callable:broken.py:find", "--queries", "queries.tsv", *LIGHT])
    done.refused(6, "failed with ValueError")
    assert not [text for text in ("nurse", "marple", "no such thing") if text in done.err + done.out + caplog.text]


def test_json_has_the_numbers_and_texts_of_queries_only_where_they_are_to_be_kept(askew, server):
    assert "nurse" not in askew(command(server, "--json")).out
    kept = askew(command(server, "--json", "--keep-queries")).json
    assert {one["text"] for one in kept["worst"]} <= set(QUERIES.values())


def test_other_groups_are_audited_by_their_words(askew, server, files):
    files.text("work.csv", "lawyer,law\nclient,law\nnurse,care\nward,care\n")
    told = askew(command(server, "--groups", "work.csv", "--json")).json
    assert told["groups"] == ["care", "law"] or told["groups"] == ["law", "care"]
    assert all(set(one["mentions"]) == {"law", "care"} for one in told["worst"])


def test_an_audit_that_finds_nothing_is_one_line(askew, server, files):
    files.text("queries.tsv", "q1\tzebra\n")
    askew(command(server)).refused(3, "none of the 1 queries finds a document")
