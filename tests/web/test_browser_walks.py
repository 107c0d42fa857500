"""Every page for every reader, and three walks through the explorer, each of at most six clicks."""

import re

import polars as pl
import pytest

import askew
from askew.core.measure import gain_column
from askew.study.audit.page import write_audit
from askew.ui.explorer.opening import Sources
from askew.ui.web.settings import Settings
from conftest import DECIDING, FREE, JUDGED, expect, running

MOST_CLICKS = 6
RUN = "care-q02 Q0 care-07 1 2.0 t\ncare-q02 Q0 care-17 2 1.0 t\nlaw-q08 Q0 law-08 1 1.0 t\nlaw-q08 Q0 law-01 2 .5 t\n"
PATHS = [
    "/",
    "/?q=how+to+become+a+software+engineer",
    "/?q=zzqqx",
    "/compare?q=how+to+become+a+nurse&to=become+nurse",
    "/pairs",
    "/pairs?subset=all&sort=-lean&lean_min=0.05&lean_max=0.3",
    "/pairs?text=zzqqx",
    "/runs",
    "/runs?run=demo:bm25.run&run=demo:minilm.run&measure=ARaB(tf)@10",
    "/audit",
    "/logs",
    "/plan",
    "/nothing-here",
]


@pytest.fixture(scope="module")
def everything(store, log_folder, tmp_path_factory):
    """A service with something to show on every page."""
    folder = tmp_path_factory.mktemp("walks")
    texts = {"d1": "He is a nurse, and his brother is.", "d2": "Her school for nurses.", "d3": "The ward is open."}

    def find(query, k):
        return [(doc, 1.0 / place, text) for place, (doc, text) in enumerate(texts.items(), 1)][:k]

    settings = askew.AuditSettings(methods=["reduce"], method_settings={"equivalence": {"model": "light"}}, level=1.0)
    write_audit(askew.audit(find, {"q1": "how to become a nurse"}, settings=settings), folder / "audit", True)
    with running(Settings(Sources(logs=log_folder, audit=folder / "audit"), limits=FREE)) as url:
        yield url


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_serious_on_any_page(open_page, everything, theme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    page = open_page(base=everything, color_scheme=theme, viewport={"width": width, "height": 900})
    found = {}
    for path in PATHS:
        page.goto(everything + path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        told = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        serious = [one for one in told if one["impact"] in ("serious", "critical")]
        if serious:
            found[path] = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in serious]
    assert found == {}
    open_page.told[:] = [text for text in open_page.told if "404" not in text]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_overflows_a_phone_on_any_page_folded_or_open(open_page, everything, theme):
    page = open_page(base=everything, color_scheme=theme, viewport={"width": 390, "height": 844}, is_mobile=True)
    for path in PATHS:
        page.goto(everything + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    open_page.told[:] = [text for text in open_page.told if "404" not in text]


def test_on_a_phone_suggestions_come_before_the_tenth_result_and_results_first(open_page):
    page = open_page("/?q=how+to+become+a+software+engineer", viewport={"width": 390, "height": 844})
    suggestions = page.locator("#suggestions, #reformulations").first
    tops = [page.locator(".results > li").nth(place).bounding_box()["y"] for place in range(10)]
    assert tops == sorted(tops)
    assert tops[0] < suggestions.bounding_box()["y"] < tops[9]
    page.set_viewport_size({"width": 1280, "height": 900})
    beside = suggestions.bounding_box()
    assert beside["x"] > page.locator(".results").first.bounding_box()["x"] + 300


class Walk:
    """Counts the clicks of a person."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def click(self, place):
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS
        place.click()

    def see(self, words):
        self.page.get_by_text(words).first.wait_for()


def test_walk_check_a_run(open_page, tmp_path):
    """A person has a run and wants to know how far it leans, and on which query most."""
    (tmp_path / "mine.run").write_text(RUN)
    walk = Walk(open_page())
    page = walk.page
    walk.click(page.get_by_role("link", name="Runs", exact=True))
    walk.click(page.get_by_text("Upload your own runs", exact=True))
    walk.clicks += 1  # the dialog of the system in which the file is chosen
    page.get_by_label("Run files in TREC format, at most four").set_input_files(tmp_path / "mine.run")
    walk.click(page.get_by_role("button", name="Upload and measure"))
    walk.see("Means over queries with 95% intervals")
    walk.click(page.get_by_role("link", name="ARaB(tf)@10", exact=True))
    walk.see("Queries on which mine.run has the worst values")
    worst = page.locator("table:has(#table-worst-0) tbody a").first
    words = worst.inner_text()
    walk.click(worst)
    page.wait_for_url("**/?q=*")
    assert page.get_by_label("Query", exact=True).input_value() == words
    assert walk.clicks <= MOST_CLICKS


def test_walk_fix_a_query(open_page):
    """A person searches, sees that the results lean, and finds a reformulation that leans less."""
    walk = Walk(open_page())
    page = walk.page
    page.get_by_label("Query", exact=True).fill("how to become a software engineer")
    walk.click(page.locator("form[role=search] button[type=submit]"))
    page.wait_for_url("**/?q=*")
    suggestion = page.locator(".suggestions a").first
    walk.click(suggestion)
    page.wait_for_url("**/compare?**")
    assert re.search("leans? less", page.locator("main").inner_text())
    assert walk.clicks <= MOST_CLICKS


def test_walk_browse_pairs_and_download_a_selection(open_page, demo_pairs, tmp_path):
    """A person looks through the chosen pairs, narrows them down, and takes them away as a file."""
    walk = Walk(open_page())
    page = walk.page
    walk.click(page.get_by_role("link", name="Dataset", exact=True))
    filters = page.get_by_role("navigation", name="Filters")
    walk.click(filters.get_by_role("link", name=re.compile(r"^effective \d+")))
    page.wait_for_url("**subset=effective**")
    walk.click(page.get_by_role("columnheader", name="Gain in lean").get_by_role("link"))
    page.wait_for_url("**sort=-lean**")
    with page.expect_download() as download:
        walk.click(page.get_by_role("link", name="Parquet"))
    download.value.save_as(tmp_path / "pairs.parquet")
    found = pl.read_parquet(tmp_path / "pairs.parquet")
    assert found.height == demo_pairs["effective"].sum() and found["effective"].all()
    assert found[gain_column(DECIDING)].is_sorted(descending=True)
    assert walk.clicks <= MOST_CLICKS


def test_a_link_to_a_folded_section_of_a_log_opens_it(open_page, everything):
    page = open_page("/logs", base=everything)
    assert page.evaluate("document.documentElement.scrollHeight") < 2000
    expect(page.locator(".findings li")).to_have_count(3)
    expect(page.locator("#table-topics")).not_to_be_visible()
    page.goto(everything + "/logs#topics")
    expect(page.locator("#table-topics")).to_be_visible()
    page.get_by_text("What changes after people add terms of a group to a query", exact=True).click()
    expect(page.locator("#table-clicks")).to_be_visible()


def test_an_audit_opens_with_what_to_do_and_its_worst_queries(open_page, everything):
    page = open_page("/", base=everything)
    page.get_by_role("link", name="Audit", exact=True).click()
    expect(page.get_by_role("heading", name="What to do next")).to_be_visible()
    assert JUDGED in page.locator("table:has(#table-worst)").inner_text()
    page.get_by_text("Sensitivity", exact=True).click()
    expect(page.locator("#table-sensitivity")).to_be_visible()
