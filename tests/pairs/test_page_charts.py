"""Charts: marks stand where the numbers say, axes are labelled, texts are escaped."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import DataError
from askew.report.charts import (
    COLORS,
    FAINT,
    GROUND,
    INK,
    SHAPES,
    VERDICTS,
    WIDTH,
    About,
    Heading,
    Line,
    Plot,
    Points,
    Scale,
    axis,
    color_of,
    dots,
    heat_map,
    mark,
    place_labels,
    scatter,
    shortened,
    sorted_gains,
    steps,
    text_width,
    tick_text,
)
from askew.report.page import CSS, check_formats, picture_file
from askew.report.table import Estimate

SVG = "{http://www.w3.org/2000/svg}"
ABOUT = About("toy", "A <toy>", 'What "it" shows & more')


def read(drawn):
    return ElementTree.fromstring(drawn)


def texts(svg):
    return [element.text for element in svg.iter(f"{SVG}text")]


def found(svg, name):
    return list(svg.iter(f"{SVG}{name}"))


def at(element, *names):
    return tuple(float(element.get(name)) for name in names)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 10.0], ["0", "2", "4", "6", "8", "10"]),
        ([-0.34, 0.81], ["−0.4", "−0.2", "0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([12_000.0, 41_000.0], ["10,000", "15,000", "20,000", "25,000", "30,000", "35,000", "40,000", "45,000"]),
        ([5.0, 5.0], ["2", "3", "4", "5", "6", "7", "8"]),
        ([0.1 + 0.2, 0.3], ["0.15", "0.20", "0.25", "0.30", "0.35", "0.40", "0.45"]),
        ([], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_ticks_stand_at_round_numbers_and_hold_all_values(values, ticks):
    assert [words for _, words in axis("x", values).ticks] == ticks


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=5), st.integers(2, 10))
def test_an_axis_holds_every_value_with_few_evenly_spaced_ticks(values, most):
    made = axis("x", values, most=most)
    slack = 1e-6 * max(1e-9, made.high - made.low)
    assert made.low - slack <= min(values) and max(values) <= made.high + slack
    gaps = np.diff([value for value, _ in made.ticks])
    assert 1 <= len(gaps) <= most + 2
    assert gaps == pytest.approx(np.full(len(gaps), gaps[0]))
    assert len({words for _, words in made.ticks}) == len(made.ticks)


def test_a_tick_has_as_many_places_as_its_step_and_zero_no_sign():
    assert [tick_text(value, step) for value, step in ((-0.0, 0.1), (-5.0, 1.0), (0.25, 0.05))] == ["0.0", "−5", "0.25"]


def test_numbers_that_are_not_finite_are_refused():
    for value in (math.nan, math.inf):
        with pytest.raises(DataError, match="finite"):
            scatter(ABOUT, [Points("a", np.array([1.0]), np.array([value]))], "x", "y")


def test_points_stand_where_their_numbers_say():
    svg = read(scatter(ABOUT, [Points("a", np.array([0.0, 5.0, 10.0]), np.array([0.0, 0.5, 1.0]))], "across", "up"))
    # Left of the field: three letters of "0.0" and room; right: half of "10"; above: a line for the label.
    left, right = text_width("0.0") + 10, WIDTH - text_width("10") / 2 - 2
    low, high = 2 + 32 + 300, 2 + 32
    expected = [(left, low), ((left + right) / 2, (low + high) / 2), (right, high)]
    points = [at(one, "cx", "cy") for one in found(svg, "circle")]
    assert np.array(points) == pytest.approx(np.array(expected), abs=0.06)
    assert {"across", "up", "0", "10", "0.0", "1.0"} <= set(texts(svg))


def test_a_picture_tells_its_title_and_description_and_escapes_them():
    svg = read(scatter(ABOUT, [], "<x>", "y & z"))
    assert svg.get("role") == "img"
    ids = svg.get("aria-labelledby").split()
    assert [svg.find(f"{SVG}title").get("id"), svg.find(f"{SVG}desc").get("id")] == ids
    assert (svg.find(f"{SVG}title").text, svg.find(f"{SVG}desc").text) == ("A <toy>", 'What "it" shows & more')
    assert {"<x>", "y & z"} <= set(texts(svg))


def test_a_name_that_is_no_name_of_a_file_is_refused():
    with pytest.raises(ValueError, match="lowercase letters"):
        About("../x", "t", "d")


def test_series_differ_in_colour_and_in_shape():
    group = [Points(name, np.array([1.0]), np.array([1.0])) for name in "abcdef"]
    svg = read(scatter(ABOUT, group, "x", "y"))
    drawn = [one for one in found(svg, "g") if one.get("fill-opacity")]
    assert [one.get("fill") for one in drawn] == list(COLORS)
    assert len({(one[0].tag, one[0].get("points", ""), one[0].get("fill", "")) for one in drawn}) == len(SHAPES)
    assert set("abcdef") <= set(texts(svg))


def test_lines_run_through_their_points_and_only_named_ones_are_in_the_legend():
    line = Line("front", np.array([0.0, 10.0]), np.array([1.0, 0.0]), 2)
    svg = read(
        scatter(ABOUT, [Points("a", np.array([0.0]), np.array([0.0]))], "x", "y", [line, Line("", line.x, line.y, 3)])
    )
    left, right = text_width("0.0") + 10, WIDTH - text_width("10") / 2 - 2
    top = 2 + 24 + 32
    paths = [one.get("d") for one in found(svg, "path") if "L" in one.get("d")]
    assert paths[0] == f"M{round(left, 1):g} {top}L{round(right, 1):g} {top + 300}"
    assert len(paths) == 2
    assert texts(svg).count("front") == 1 and "" not in texts(svg)


def test_a_line_with_more_x_than_y_is_refused():
    with pytest.raises(DataError, match="'a'"):
        steps(ABOUT, [Line("a", np.arange(3.0), np.arange(2.0), 0)], "x", "y")


def test_intervals_are_drawn_around_their_dots_and_empty_places_stay_empty():
    series = {"one": [Estimate(0.0, -50.0, 50.0), None], "two": [Estimate(100.0), Estimate(-100.0, -100.0, 0.0)]}
    svg = read(dots(ABOUT, ["RR", "<AP>"], series, "change"))
    left, right = text_width("<AP>") + 10, WIDTH - text_width("100") / 2 - 2
    middle = (left + right) / 2
    assert len(found(svg, "circle")) == 2  # one in the legend, one dot
    assert at(found(svg, "circle")[1], "cx") == pytest.approx((middle,), abs=0.01)
    (first, second) = [one.get("d") for one in found(svg, "path")]
    quarter = (right - left) / 4
    assert first.startswith(f"M{middle - quarter:.2f}".rstrip("0"))
    assert f"H{middle + quarter:.2f}".rstrip("0") in first
    assert second.startswith(f"M{left:.2f}".rstrip("0"))
    assert {"RR", "<AP>", "one", "two", "change"} <= set(texts(svg))


def test_gains_in_order_make_one_area_above_and_one_below_zero():
    svg = read(sorted_gains(ABOUT, np.array([0.0, 1.0, -0.5, 1.0]), "gain", ["helped 2", "hurt 1"]))
    helped, hurt = (one.get("d") for one in found(svg, "path"))
    left, right = text_width("−0.5") + 10, WIDTH - 8
    top, low = 2 + 24 + 32, 2 + 24 + 32 + 170
    zero = top + 170 * 2 / 3
    quarter = (right - left) / 4
    assert helped == (
        f"M{left:.2f} {zero:.2f}V{top}H{round(left + quarter, 1):g}V{top}H{round(left + 2 * quarter, 1):g}V{zero:.2f}Z"
    )
    assert hurt == f"M{left + 3 * quarter:.2f} {zero:.2f}V{low}H{round(right, 1):g}V{zero:.2f}Z"
    assert {"helped 2", "hurt 1", "gain", "4"} <= set(texts(svg))


def test_many_gains_are_thinned_and_keep_their_ends():
    values = np.linspace(-1, 1, 10_001)
    svg = read(sorted_gains(ABOUT, values, "gain"))
    helped, hurt = (one.get("d") for one in found(svg, "path"))
    assert 190 < helped.count("H") < 210
    assert f"V{2 + 32}H" in helped  # the highest reaches the top
    assert f"V{2 + 32 + 170}H" in hurt


def test_no_gains_at_all_make_an_empty_picture():
    svg = read(sorted_gains(ABOUT, np.zeros(0), "gain"))
    assert found(svg, "path") == []


def test_steps_keep_their_height_until_the_next_value():
    svg = read(steps(ABOUT, [Line("a", np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0]), 0)], "x", "y"))
    left, right = text_width("0.0") + 10, WIDTH - text_width("2.0") / 2 - 2
    top, low, middle = 2 + 24 + 32, 2 + 24 + 32 + 240, round((left + right) / 2, 1)
    path = next(one.get("d") for one in found(svg, "path") if "V" in one.get("d"))
    assert path == f"M{round(left, 1):g} {low}H{middle:g}V{top}H{round(right, 1):g}V{low}"


def test_names_beside_points_do_not_cover_one_another():
    plot = Plot(0, 0, 400, 300, Scale(0, 1, 0, 400), Scale(0, 1, 300, 0))
    points = [(200.0, 150.0), (202.0, 151.0), (204.0, 149.0), (390.0, 5.0)]
    placed = [ElementTree.fromstring(one) for one in place_labels(plot, points, ["first", "second", "third", "corner"])]
    boxes = [(*at(one, "x", "y"), text_width(one.text, 12)) for one in placed]
    for i, (x, y, width) in enumerate(boxes):
        assert x >= 0 and x + width <= 400 and 0 <= y <= 300
        for other_x, other_y, other_width in boxes[i + 1 :]:
            assert x + width <= other_x or other_x + other_width <= x or abs(y - other_y) >= 12


def test_a_long_name_is_cut():
    assert shortened("a" * 40, 10) == "a" * 9 + "…"
    assert mark(7, 0, 0) == mark(1, 0, 0)  # beyond the last shape they begin anew


def test_the_same_data_draw_the_same_bytes():
    values = np.random.default_rng(0).normal(size=50)
    drawn = [scatter(ABOUT, [Points("a", values, values, ["n"] * 50)], "x", "y") for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_a_picture_is_an_svg_file_and_a_png_file():
    drawn = sorted_gains(ABOUT, np.array([1.0, -1.0]), "gain")
    assert ElementTree.fromstring(picture_file(drawn, "svg")).tag == f"{SVG}svg"
    pytest.importorskip("vl_convert", reason="PNG needs the extra figures")
    assert picture_file(drawn, "png").startswith(b"\x89PNG")


def test_a_format_that_nobody_writes_and_a_missing_extra_are_told(monkeypatch):
    with pytest.raises(Exception, match="expected some of svg, png, found 'pdf'"):
        check_formats(["pdf"])
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    with pytest.raises(Exception, match=r"\.\[figures\]"):
        check_formats(["svg", "png"])


def test_a_heat_map_has_a_cell_with_its_value_for_each_two_rows():
    headings = [Heading("ARaB <tc>", "1", "ARaB"), Heading("NFaiRR", "2", "NFaiRR")]
    values = np.array([[1.0, -0.25], [-0.25, np.nan]])
    drawn = heat_map(About("heat", "heat", "about it"), headings, values, "tau")
    titles = [one.text for one in found(read(drawn), "title")]
    assert "ARaB <tc> / NFaiRR: \N{MINUS SIGN}0.25" in titles
    assert "NFaiRR / NFaiRR: undefined" in titles
    assert "&lt;tc&gt;" in drawn


def test_the_colors_of_a_heat_map_tell_agreement_from_disagreement():
    assert color_of(1.0) == COLORS[0]
    assert color_of(-1.0) == COLORS[1]
    assert len({color_of(value) for value in (-1.0, -0.5, 0.0, 0.5, 1.0, np.nan)}) == 6


def test_the_style_sheet_has_the_colors_of_charts():
    light = dict(re.findall(r"--([a-z0-9-]+):(#[0-9a-f]{6})", CSS.partition("@media")[0]))
    assert [light[f"c{number}"] for number in range(1, len(COLORS) + 1)] == list(COLORS)
    assert {name: light[name] for name in VERDICTS} == VERDICTS
    assert (light["ink"], light["faint"], light["ground"]) == (INK, FAINT, GROUND)
    for number in range(1, len(COLORS) + 1):
        assert f".f{number}{{fill:var(--c{number});color:var(--c{number})}}" in CSS
        assert f".l{number}{{stroke:var(--c{number})}}" in CSS
