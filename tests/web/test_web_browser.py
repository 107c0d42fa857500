"""The explorer in a real browser."""

import re

import pytest

from askew.ui.explorer.opening import Sources
from askew.ui.web.markup import address
from askew.ui.web.replies import ERRORS
from askew.ui.web.settings import Settings
from conftest import FREE, JUDGED, expect, running

RUN = "care-q02 Q0 care-07 1 2.0 t\ncare-q02 Q0 care-17 2 1.0 t\nlaw-q08 Q0 law-08 1 1.0 t\nlaw-q08 Q0 law-01 2 .5 t\n"
EVIL = [
    "<script>window.pwned=1</script> she is a nurse",
    '"><img src=x onerror="window.pwned=2"> he is a nurse',
    "nurse <svg onload=window.pwned=3> </script><script>window.pwned=4</script> {{7*7}} ${7*7} &lt;b&gt;",
    "nurse javascript:window.pwned=5 \u202e esrever <style>body{display:none}</style><!-- ",
]
PAGES = [
    "/",
    "/?q=how+to+become+a+software+engineer",
    "/compare?q=how+to+become+a+nurse&to=become+nurse",
    "/pairs?subset=fair",
    "/runs?run=demo:bm25.run&run=demo:minilm.run",
    "/plan",
    "/logs",
]


def test_a_query_is_asked_and_its_words_are_marked_in_two_ways(open_page):
    page = open_page()
    box = page.get_by_label("Query", exact=True)
    assert box.evaluate("box => box === document.activeElement")
    box.fill(JUDGED)
    page.get_by_role("button", name="Search").click()
    page.wait_for_url(f"**{address('/', {'q': JUDGED, 'k': 10})}")
    expect(page.locator(".results > li")).to_have_count(10)
    assert page.title().startswith(JUDGED)
    styles = {
        side: page.locator(f".results mark.{side}").first.evaluate(
            "m => [getComputedStyle(m).textDecorationStyle, getComputedStyle(m).textDecorationColor]"
        )
        for side in ("g1", "g2")
    }
    assert styles["g1"][0] == "solid" and styles["g2"][0] == "dashed" and styles["g1"][1] != styles["g2"][1]
    page.reload()
    assert page.get_by_label("Query", exact=True).input_value() == JUDGED


def test_a_point_leads_to_both_lists_side_by_side_with_lines_between_the_same_documents(open_page):
    page = open_page("/?q=how+to+become+a+software+engineer")
    page.locator(".reformulations").get_by_text("Details", exact=True).click()
    point = page.locator(".points-rest a.point").first
    key = point.get_attribute("data-key")
    point.hover()
    assert "lit" in (page.locator(f'tr:has([data-key="{key}"])').get_attribute("class") or "")
    point.click()
    page.wait_for_url("**/compare?**")
    rows = page.locator(".side > li")
    expect(rows).to_have_count(20)
    both = page.locator(".lines path.same, .lines path.rose, .lines path.fell")
    assert both.count() >= 1
    moved = both.first.get_attribute("data-key")
    page.locator(f'.side > li[data-key="{moved}"]').first.hover()
    expect(page.locator(f'[data-key="{moved}"].lit')).to_have_count(3)
    line = both.first.bounding_box()
    ends = [page.locator(f'.side > li[data-key="{moved}"]').nth(side).bounding_box() for side in (0, 1)]
    for end in ends:
        # The line begins and ends within the height of the rows that it joins.
        assert line["y"] - 3 <= end["y"] + end["height"] and end["y"] <= line["y"] + line["height"] + 3


def test_runs_are_uploaded_and_the_link_shows_them_again(open_page, tmp_path):
    for name, text in (("one.run", RUN), ("<b>two</b>.run", RUN.replace("2.0", "0.5"))):
        (tmp_path / name.replace("/", "_")).write_text(text)
    page = open_page("/runs")
    page.get_by_text("Upload your own runs", exact=True).click()
    page.get_by_label("Run files in TREC format, at most four").set_input_files(sorted(tmp_path.iterdir()))
    page.get_by_role("button", name="Upload and measure").click()
    page.wait_for_url("**/runs?run=upload*")
    expect(page.get_by_role("columnheader", name="p (Holm)")).to_be_visible()
    before = page.locator("main").inner_text()
    page.reload()
    assert page.locator("main").inner_text() == before


def test_error_pages_are_pages_and_lead_on(open_page, tmp_path):
    # The browser itself complains of each page with an error, sometimes after the page is drawn.
    open_page.expected.append("status of 40")
    page = open_page("/nothing-here")
    expect(page.get_by_role("alert")).to_have_text(ERRORS[404][1])
    page.locator("main").get_by_role("link", name="Search").click()
    expect(page.get_by_label("Query", exact=True)).to_be_visible()
    (tmp_path / "x.run").write_text("this is no run\n")
    page.goto(page.url + "runs")
    page.get_by_text("Upload your own runs", exact=True).click()
    page.get_by_label("Run files in TREC format, at most four").set_input_files(tmp_path / "x.run")
    page.get_by_role("button", name="Upload and measure").click()
    expect(page.get_by_role("alert")).to_contain_text("x.run")


def test_everything_can_be_done_with_the_keyboard_alone(open_page):
    page = open_page("/pairs")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(page.url.partition("/pairs")[0] + "/plan")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/$"))
    page.keyboard.press("Escape")
    page.locator("body").press("/")
    page.keyboard.type("how to become a nurse")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=*")
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#reformulations .suggestions a')"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?**")


def test_results_are_there_before_the_reformulations_and_a_card_leads_to_the_comparison(open_page):
    page = open_page("/?q=how+to+become+a+software+engineer")
    expect(page.locator(".results > li")).to_have_count(10)
    page.wait_for_selector(".suggestions")
    expect(page.locator(".reformulations > .suggestions > li")).to_have_count(3)
    expect(page.locator(".waiting[aria-busy]")).to_have_count(0)
    page.locator(".suggestions a").first.click()
    page.wait_for_url("**/compare?**query_id=*")
    expect(page.locator(".lean-picture svg")).to_have_count(2)


def test_a_typed_reformulation_gets_its_verdict_while_it_is_typed(open_page):
    page = open_page("/?q=how+to+become+a+nurse")
    page.get_by_label("Your own reformulation").fill("nurse training")
    verdict = page.locator(".verdict-live .notice")
    verdict.wait_for()
    assert "The reformulation" in verdict.inner_text() and "same meaning" in verdict.inner_text()
    page.get_by_label("Your own reformulation").fill("")
    verdict.wait_for(state="detached")
    page.get_by_label("Your own reformulation").fill("nurse training")
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?q=how+to+become+a+nurse&query_id=care-q02&to=nurse+training")


def test_a_marked_word_says_why_when_it_has_the_focus(open_page):
    page = open_page("/?q=women+nursing+school")
    word = page.locator(".results mark").first
    shown = "m => getComputedStyle(m, '::after').content"
    assert word.evaluate(shown) == "none"
    page.locator("#f-k").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.results mark')"):
            break
    told = page.evaluate("getComputedStyle(document.activeElement, '::after').content")
    assert "refers to" in told and page.evaluate("document.activeElement.title") in told
    word.hover()
    assert "refers to" in word.get_attribute("title")


def test_on_a_phone_reformulations_come_before_the_fourth_result(open_page):
    page = open_page("/?q=how+to+become+a+nurse", viewport={"width": 390, "height": 844}, is_mobile=True)
    page.wait_for_selector(".suggestions")
    places = [page.locator(one).bounding_box()["y"] for one in ("#r3", "#reformulations", "#r4")]
    assert places == sorted(places)


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    lines = [f'd{number}"<b>\t{text}' for number, text in enumerate(EVIL)]
    (folder / "docs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "queries.tsv").write_text("q1\tnurse <img src=x onerror=window.pwned=6>\n")
    (folder / "qrels.txt").write_text('q1 0 d0"<b> 1\n')
    (folder / "store").mkdir()
    sources = Sources(store=folder / "store", collection=str(folder))
    with running(Settings(sources, limits=FREE)) as url:
        yield url


def test_a_hostile_document_stays_text(open_page, evil):
    for path in ("/", "/?q=nurse", "/compare?q=nurse&to=nurse+she", "/?q=nurse+<img+src=x+onerror=window.pwned=6>"):
        page = open_page(path, base=evil)
        assert page.evaluate("typeof window.pwned") == "undefined"
        expect(page.locator("main script, main img, main style, main svg[onload]")).to_have_count(0)
        if "q=" in path:
            text = page.locator("main").inner_text()
            assert "<script>window.pwned=1</script>" in text and '"><img src=x onerror=' in text
            assert "{{7*7}}" in text and 'd0"<b>' in text


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_fits_a_phone_and_nothing_jumps(open_page, theme):
    watch = """
        window.jumps = 0;
        new PerformanceObserver(list => { for (const one of list.getEntries()) window.jumps += one.value; })
            .observe({type: 'layout-shift', buffered: true});
    """
    page = open_page(viewport={"width": 390, "height": 844}, color_scheme=theme, is_mobile=True, has_touch=True)
    page.add_init_script(watch)
    base = page.url.rstrip("/")
    for path in PAGES:
        page.goto(base + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.evaluate("window.jumps") == 0, path
        expect(page.get_by_role("link", name="Dataset", exact=True)).to_be_visible()


CONTRAST = """
() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const one = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((v) => one(v / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const low = [];
  const texts = "a, p, td, th, label, button, summary, mark, code, li, h1, h2, h3, .chip, .gain";
  for (const one of document.querySelectorAll(texts)) {
    if (!one.textContent.trim() || !one.checkVisibility() || one.closest("svg")) continue;
    const a = light(parts(getComputedStyle(one).color)), b = light(ground(one));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${one.tagName} ${one.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(low)];
}
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_enough_from_its_ground(open_page, theme):
    page = open_page(color_scheme=theme)
    base = page.url.rstrip("/")
    for path in PAGES[:5]:
        page.goto(base + path)
        assert page.evaluate(CONTRAST) == [], path


def test_who_wants_no_motion_gets_none(open_page):
    page = open_page("/compare?q=how+to+become+a+nurse&to=become+nurse", reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert page.locator(".lines path").first.evaluate("p => getComputedStyle(p).transitionDuration") == "0s"


def test_without_scripts_everything_still_works(open_page, demo_pairs):
    page = open_page("/pairs", java_script_enabled=False)
    page.get_by_role("navigation", name="Filters").get_by_role("link", name="fair").click()
    counts = f"{demo_pairs['fair'].sum()} of {len(demo_pairs)} pairs"
    expect(page.get_by_role("status")).to_contain_text(counts)
    page.goto(page.url.partition("/pairs")[0])
    page.get_by_label("Query", exact=True).fill("how to become a nurse")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".results > li")).to_have_count(10)
    page.get_by_role("link", name="Show reformulations").click()
    page.locator(".suggestions > li").nth(2).wait_for()
    page.get_by_label("Your own reformulation").fill("nurse training")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("The reformulation")).to_be_visible()
