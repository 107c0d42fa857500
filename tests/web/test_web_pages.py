"""The pages, as a browser without scripts gets them."""

import html
import os
import re
from html.parser import HTMLParser

import polars as pl
import pytest

from askew.ui.explorer.answers import Move, ShownMark
from askew.ui.explorer.opening import Sources
from askew.ui.web.markup import address, element, is_local
from askew.ui.web.pages.compare import moved
from askew.ui.web.pages.parts import explained, lean_bar, outcome_words
from conftest import JUDGED

RUN = "care-q02 Q0 care-07 1 2.0 t\ncare-q02 Q0 care-17 2 1.0 t\nlaw-q08 Q0 law-08 1 1.0 t\nlaw-q08 Q0 law-01 2 .5 t\n"


class Checker(HTMLParser):
    """Every element is closed, every id is there once, every control has a label, nothing is inline."""

    VOID = {"meta", "link", "input", "br", "wbr", "img", "hr", "path", "rect", "circle", "line", "polygon"}

    def __init__(self, text):
        super().__init__()
        self.stack, self.ids, self.labelled, self.controls, self.links, self.headings = [], [], set(), [], [], []
        self.text, self.title = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert "style" not in given and not any(name.startswith("on") for name in given), (tag, given)
        self.ids += [given["id"]] if "id" in given else []
        if tag == "label":
            self.labelled.add(given.get("for"))
        if tag in ("input", "select", "textarea") and given.get("type") not in ("hidden", "submit"):
            inside = any(name == "label" for name in self.stack)
            self.controls.append(given.get("id") if not inside else None)
        if tag == "a":
            self.links.append(given.get("href"))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)
        if tag == "script":
            assert given.get("src", "").startswith("/static/")
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def check(self):
        assert self.stack == []
        assert len(self.ids) == len(set(self.ids)), [one for one in self.ids if self.ids.count(one) > 1]
        assert all(one is None or one in self.labelled for one in self.controls)
        assert self.headings.count("h1") == 1 and self.headings[0] == "h1"
        assert all(is_local(link) or link.startswith("#") for link in self.links)
        return self


def page(client, path, status=200, **params):
    reply = client.get(path, params=params or None)
    assert reply.status_code == status, reply.text[:500]
    return Checker(reply.text).check()


@pytest.fixture(scope="module")
def logged(log_folder, store):
    from fastapi.testclient import TestClient

    from askew.ui.web.app import create_app
    from askew.ui.web.settings import Settings

    with TestClient(create_app(Settings(Sources(logs=log_folder))), base_url="http://127.0.0.1:8642") as found:
        yield found


PATHS = [
    "/",
    "/?q=how+to+become+a+nurse",
    "/?q=women+nursing+school&k=20&reformulations=now",
    "/?q=zzqqx",
    "/?q=prostate+cancer+screening+for+men",
    "/compare?q=how+to+become+a+nurse&to=become+nurse",
    "/compare?q=a&to=zzqqx",
    "/compare?q=zzqqx&to=qqzzx",
    "/pairs",
    "/pairs?subset=all&sort=-lean&lean_min=0.1&effectiveness_max=0",
    "/pairs?subset=fair&sort=effectiveness&page=2",
    "/pairs?text=zzqqx",
    "/pairs?page=999",
    "/runs",
    "/audit",
    "/runs?run=demo:bm25.run",
    "/runs?run=demo:bm25.run&run=demo:minilm.run&measure=AP@10",
    "/plan",
    "/logs",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_page_is_whole_labelled_and_leads_nowhere_else(client, path):
    found = page(client, path)
    assert "Search" in "".join(found.text)


@pytest.mark.parametrize("path", PATHS)
def test_the_same_link_shows_the_same_page(client, path):
    assert client.get(path).text == client.get(path).text


def test_every_link_of_the_pages_leads_to_a_page(client):
    seen, waiting = set(), ["/", "/?q=how+to+become+a+nurse", "/pairs?subset=fair", "/runs?run=demo:bm25.run", "/plan"]
    while waiting and len(seen) < 40:
        path = waiting.pop(0).partition("#")[0]
        if not path or path in seen:
            continue
        seen.add(path)
        reply = client.get(path)
        assert reply.status_code == 200, path
        if "text/html" in reply.headers["content-type"]:
            waiting += Checker(reply.text).links[:60]
    assert len(seen) == 40


def test_search_shows_marks_bars_measures_and_candidates(client):
    text = client.get("/", params={"q": JUDGED, "reformulations": "now"}).text
    assert re.search('<mark class="g1[^"]*" title="female; ', text)
    assert re.search('<mark class="g2[^"]*" title="male; ', text)
    assert text.count('class="bar"') == 10
    assert "ARaB(groups=" in text and "Effectiveness, by judgements" in text
    link = address("/compare", {"q": JUDGED, "to": "what is the way to become a nurse", "query_id": "care-q02"})
    assert f'href="{html.escape(link)}"' in text
    assert text.count('class="point"') == text.count("data-key=") / 3


def test_search_says_that_agreement_is_a_proxy(client):
    text = client.get("/", params={"q": "women nursing school", "reformulations": "now"}).text
    assert "A proxy." in text and "no judgements" in text and "retrieves" not in text


def test_search_says_why_gender_is_warranted_and_by_which_rule(client):
    assert "bodies, birth" in client.get("/", params={"q": "prostate cancer screening for men"}).text
    assert "names a person" in client.get("/", params={"q": "henry viii and his wives"}).text
    added = client.get("/", params={"q": "best running shoes for women"}).text
    assert 'class="notice plain"' in added
    assert 'class="notice plain"' not in client.get("/", params={"q": JUDGED}).text


def test_nothing_found_and_nothing_open_are_told(client, service, tmp_path):
    assert 'role="status"' in client.get("/", params={"q": "zzqqx"}).text
    bare = service(sources=Sources(store=tmp_path))
    assert "--index" in bare.get("/").text
    assert "askew run demo" in bare.get("/pairs").text and "askew run demo" in bare.get("/plan").text
    assert "askew logs --demo" in bare.get("/logs").text
    assert bare.get("/?q=nurse").status_code == 200 and bare.get("/compare?q=a&to=b").status_code == 400


def test_a_text_that_is_markup_stays_text(client):
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
    for path in ("/", "/compare", "/pairs"):
        reply = client.get(
            path,
            params={"q": f"nurse {evil}", "to": f"nurse {evil}", "text": evil} if path != "/pairs" else {"text": evil},
        )
        assert "<script>alert" not in reply.text and "<img" not in reply.text
        Checker(reply.text).check()


WRONG = [
    "/nix",
    "/plan/nix",
    "/plan/..%2F..%2Fetc",
    "/static/nix.js",
    "/static/..%2Fapp.py",
    "/compare",
    "/compare?q=a",
    "/?k=0",
    "/?q=" + "x" * 501,
    "/pairs?subset=nix",
    "/pairs?page=0",
    "/pairs?lean_max=inf",
    "/pairs?lean_min=nan",
    "/pairs?sort=nix",
    "/pairs?kind=nix",
    "/pairs/selection.exe",
    "/runs?run=demo:nix",
    "/runs?run=upload:nix",
    "/runs?run=demo:bm25.run&measure=nix",
    "/runs?run=demo:bm25.run&missing=nix",
    "/runs?run=demo:bm25.run&qrels=nix",
]


@pytest.mark.parametrize("path", WRONG)
def test_an_error_page_says_what_is_wrong_and_leads_on(client, path):
    reply = client.get(path)
    assert reply.status_code in (400, 404, 422)
    found = Checker(reply.text).check()
    assert 'role="alert"' in reply.text and "/" in found.links


def test_the_files_of_the_pages_are_those_of_the_package_and_may_be_kept(client):
    text = client.get("/").text
    for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
        reply = client.get(path)
        assert reply.status_code == 200 and "immutable" in reply.headers["cache-control"]
    assert "unsafe" not in client.get("/static/app.js").text


def test_pairs_are_filtered_by_a_form_whose_empty_fields_mean_all(client, demo_pairs):
    total = len(demo_pairs)
    every = "text=&subset=all&outcome=&group=&kind=&method=&lean_min=&lean_max=&sort=&size=25"
    assert f"{total} of {total} pairs" in client.get(f"/pairs?{every}").text
    text = client.get("/pairs", params={"subset": "fair", "text": "nurs"}).text
    assert re.search(rf"\d+ of {total} pairs", text)
    assert re.search(r'<a href="[^"]*" class="value" title="subset=fair" aria-current="true">', text)
    assert '<input type="hidden" name="subset" value="fair"/>' in text


def test_a_selection_can_be_taken_along(client, demo_pairs, tmp_path):
    reply = client.get("/pairs/selection.parquet", params={"subset": "fair"})
    (tmp_path / "x.parquet").write_bytes(reply.content)
    found = pl.read_parquet(tmp_path / "x.parquet")
    assert found["fair"].all() and found.height == demo_pairs["fair"].sum()
    assert reply.headers["content-disposition"] == 'attachment; filename="pairs.parquet"'
    tsv = client.get("/pairs/selection.tsv", params={"subset": "fair"}).text
    assert tsv.count("\n") == found.height + 1 and tsv.split("\t")[:2] == found.columns[:2]


def test_runs_are_uploaded_measured_and_compared_under_a_link(client):
    files = [("files", ("a.run", RUN)), ("files", ("a.run", RUN.replace("2.0", "0.5")))]
    reply = client.post("/runs", files=files, follow_redirects=False)
    assert reply.status_code == 303
    link = reply.headers["location"]
    text = client.get(link).text
    assert "a.run (2)" in text and "p (Holm)" in text and "care-q02" not in text
    assert client.get(link).text == text
    assert JUDGED in text


def test_a_run_of_the_folder_is_measured_again_when_it_has_changed(service, tmp_path):
    file = tmp_path / "<mine>.run"
    file.write_text(RUN)
    client = service(sources=Sources(runs=tmp_path))
    assert "&lt;mine&gt;.run" in page_text(client, "/runs")
    link = address("/runs", {"run": ["file:<mine>.run"], "measure": "RR@10"})
    first = page_text(client, link)
    file.write_text(RUN.replace("2.0", "0.5"))
    os.utime(file, (1, 1))
    assert page_text(client, link) != first
    assert client.get("/runs?run=file:../<mine>.run").status_code == 400


def page_text(client, path):
    reply = client.get(path)
    assert reply.status_code == 200
    return reply.text


def test_uploaded_judgements_are_used(client):
    files = [("files", ("mine.run", RUN)), ("qrels", ("mine.qrels", "care-q02 0 care-17 1\nlaw-q08 0 law-01 1\n"))]
    link = client.post("/runs", files=files, follow_redirects=False).headers["location"]
    assert "qrels=" in link
    assert ">0.5000<" in client.get(link).text.replace("<br/>", "<")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([("files", ("x.run", b"not a run\n"))], "x.run"),
        ([("files", ("x.run", b"\x1f\x8b\x08\x00"))], "compressed or in Parquet format"),
        ([("files", ("x.run", b""))], "empty"),
        ([("files", ("x.run", RUN)), ("qrels", ("q", b"nonsense"))], "q"),
        ([("qrels", ("q", b"q 0 d 1"))], "files"),
    ],
)
def test_an_upload_that_cannot_be_read_is_told(client, files, says):
    reply = client.post("/runs", files=files)
    assert reply.status_code in (400, 422) and says in Checker(reply.text).check().text.__str__()


def test_an_upload_that_is_not_kept_any_more_is_told_and_works_again_after_uploading(client):
    link = client.post("/runs", files=[("files", ("u.run", RUN))], follow_redirects=False).headers["location"]
    uploads = client.app.state.site.uploads
    kept = dict(uploads._kept)
    uploads._kept.clear()
    other = link.replace("run=", "measure=RR%4010&run=", 1)
    assert "no longer kept" in client.get(other).text
    uploads._kept.update(kept)
    assert client.get(other).status_code == 200


def test_the_plan_shows_counts_and_what_was_dropped(client, store):
    found = page(client, "/plan")
    text = " ".join(found.text)
    kept = next(one for one in store.steps() if one.step == "kept")
    lost = kept.dropped["other meaning"]
    assert f"{kept.rows_in:,}" in text and f"{lost} other meaning" in text and "12 label female" in text
    step = next(link for link in found.links if link.startswith("/plan/kept-"))
    assert "other meaning" in client.get(step).text
    manifest = client.get(f"{step}/manifest.json").json()
    assert manifest["step"] == "kept" and manifest["totals"]["rows_in"] == kept.rows_in


def test_the_tables_of_a_log_are_shown(logged):
    found = page(logged, "/logs")
    assert any("specializing" in text for text in found.text) and found.headings.count("h2") >= 4


def test_elements_that_could_do_harm_are_refused():
    for name in ("iframe", "object", "style", "base"):
        with pytest.raises(ValueError, match=repr(name)):
            element(name)
    for attributes in ({"onclick": "x"}, {"style": "x"}):
        with pytest.raises(ValueError, match="attribute"):
            element("a", "x", **attributes)
    for place in ("https://evil.example", "//evil.example", "javascript:alert(1)", "/\\evil", " /x", "data:x", ""):
        with pytest.raises(ValueError, match="href="):
            element("a", "x", href=place)
    with pytest.raises(ValueError, match="file"):
        element("script", "alert(1)", src="/static/app.js")
    assert element("a", "<b>", href=address("/", {"q": '"><'})) == '<a href="/?q=%22%3E%3C">&lt;b&gt;</a>'


def test_marked_text_keeps_every_character_and_escapes_it(explorer):
    text = 'she said <b>"he"</b> & left'
    marks = [ShownMark(0, 3, ("female",)), ShownMark(13, 15, ("male",), counted=False)]
    found = explained(text, marks, explorer.setting)
    assert re.sub(' (title|data-why|tabindex)="[^"]*"', "", found) == (
        '<bdi dir="auto"><mark class="g1">she</mark> said &lt;b&gt;&quot;'
        '<mark class="g2 uncounted">he</mark>&quot;&lt;/b&gt; &amp; left</bdi>'
    )


def test_a_bar_says_its_counts_to_those_who_cannot_see(explorer):
    found = lean_bar({"female": 5, "male": 10}, explorer.setting)
    assert 'aria-label="5 female, 10 male words"' in found
    assert 'x="50" y="0" width="50"' in found and 'x="100" y="0" width="100"' in found


@pytest.mark.parametrize(
    ("move", "is_new", "words"),
    [
        (Move("d", 3, 3), True, "same place"), (Move("d", 5, 2), True, "was 5, ▲ 3"),
        (Move("d", 2, 5), True, "was 2, ▼ 3"),
        (Move("d", None, 2), True, "not in the top 100 of the original query"),
        (Move("d", 2, None), False, "not in the top 100 of the reformulated query"),
        (Move("d", 2, 5), False, "now 5"), (Move("d", 2, 17), False, "now 17, below"),
    ],
)  # fmt: skip
def test_a_move_is_told_in_words(move, is_new, words):
    assert moved(move, 10, 100, is_new) == words


def test_an_outcome_by_a_proxy_says_nothing_of_retrieval():
    assert outcome_words("better-less", None) == "retrieves better and leans less"
    assert outcome_words(None, "more") == "leans more"
    assert outcome_words(None, None) == "–"


def test_candidates_that_lean_less_without_a_loss_come_first(explorer):
    found = explorer.reformulate("how to become a software engineer")
    best = found.ordered()
    kept = [one.outcome in ("better-less", "same-less") for one in best]
    assert kept == sorted(kept, reverse=True) and any(kept) and not all(kept)
    rest = [one.lean_verdict == "less" for one, loses_nothing in zip(best, kept, strict=True) if not loses_nothing]
    assert rest == sorted(rest, reverse=True)
