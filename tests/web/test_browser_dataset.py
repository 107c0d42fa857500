"""Dataset in a real browser: facets, order, and a rectangle in the chart that selects rows."""

import re
from urllib.parse import parse_qs, urlsplit

from askew.core.measure import gain_column
from conftest import DECIDING, expect


def total(page):
    return int(re.search(r"([\d,]+) of", page.get_by_role("status").first.inner_text())[1].replace(",", ""))


def facet(page, name):
    return page.get_by_role("navigation", name="Filters").get_by_role("link", name=name)


def test_facets_words_and_heads_narrow_and_sort_and_a_pair_opens(open_page, demo_pairs):
    page = open_page("/pairs")
    facet(page, "all pairs").click()
    page.wait_for_url("**/pairs?subset=all")
    assert total(page) == len(demo_pairs)
    facet(page, "retrieves as well and leans less").click()
    page.wait_for_url("**/pairs?subset=all&outcome=same-less")
    assert total(page) == (demo_pairs["outcome"] == "same-less").sum()
    page.get_by_label("Words in the original query or in the reformulation").fill("engineer")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile(r"text=engineer"))
    # Empty fields are not in the link, and facets stay.
    assert parse_qs(urlsplit(page.url).query).keys() == {"subset", "outcome", "text", "size"}
    page.get_by_role("columnheader", name="P(same)").get_by_role("link").click()
    page.wait_for_url(re.compile("sort=-same"))
    assert page.get_by_role("columnheader", name="P(same)").get_attribute("aria-sort") == "descending"
    shares = [int(cell[:-1]) for cell in page.locator("table:has(#table-pairs) td:nth-of-type(4)").all_inner_texts()]
    assert shares == sorted(shares, reverse=True) and len(shares) > 1
    page.locator("#table-pairs ~ tbody a").first.click()
    page.wait_for_url("**/compare?**")


def test_a_rectangle_in_the_chart_becomes_bounds_in_the_link(open_page, demo_pairs):
    page = open_page("/pairs?subset=all", viewport={"width": 1280, "height": 1400})
    everything = total(page)
    chart = page.locator("[data-brush] svg")
    box, edge = chart.bounding_box(), page.locator("[data-brush]").evaluate("chart => ({...chart.dataset})")
    scale = box["width"] / 460
    edge = {name: float(value) for name, value in edge.items() if name != "brush"}

    def at(lean, effectiveness):
        x = edge["left"] + (lean - edge["xLow"]) / (edge["xHigh"] - edge["xLow"]) * (edge["right"] - edge["left"])
        up = (effectiveness - edge["yLow"]) / (edge["yHigh"] - edge["yLow"])
        return box["x"] + scale * x, box["y"] + scale * (edge["bottom"] - up * (edge["bottom"] - edge["top"]))

    page.mouse.move(*at(0.05, 0.2))
    page.mouse.down()
    page.mouse.move(*at(0.2, -0.2), steps=4)
    assert page.locator(".brushed").bounding_box()["width"] > 20
    page.mouse.up()
    page.wait_for_url(re.compile("lean_min="))
    given = {name: float(values[0]) for name, values in parse_qs(urlsplit(page.url).query).items() if "_m" in name}
    assert abs(given["lean_min"] - 0.05) < 0.01 and abs(given["effectiveness_max"] - 0.2) < 0.01
    lean, effect = demo_pairs[gain_column(DECIDING)], demo_pairs["gain_RR_10"]
    inside = lean.is_between(given["lean_min"], given["lean_max"])
    inside &= effect.is_between(given["effectiveness_min"], given["effectiveness_max"])
    assert total(page) == inside.sum() < everything
    assert page.get_by_label("Gain in lean, at least").input_value() == f"{given['lean_min']:g}"
    expect(page.locator("path.brushed")).to_have_count(1)
    page.get_by_role("link", name="Clear the rectangle").click()
    page.wait_for_url("**/pairs?subset=all")
    assert total(page) == everything


def test_a_click_or_escape_in_the_chart_selects_nothing(open_page):
    page = open_page("/pairs", viewport={"width": 1280, "height": 1400})
    box = page.locator("[data-brush] svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)
    page.keyboard.press("Escape")
    page.mouse.up()
    assert page.url.endswith("/pairs") and page.locator(".brushed").count() == 0


def test_without_scripts_the_same_bounds_are_typed(open_page, demo_pairs):
    page = open_page("/pairs?subset=all", java_script_enabled=False)
    expect(page.get_by_text("Drag a rectangle")).not_to_be_visible()
    page.get_by_label("Gain in lean, at least").fill("0.1")
    page.get_by_role("button", name="Show").click()
    assert total(page) == (demo_pairs[gain_column(DECIDING)] >= 0.1).sum()
    expect(page.locator("path.brushed")).to_have_count(1)
