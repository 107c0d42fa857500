"""The chart of a dataset: gain in lean against gain in effectiveness. Users select pairs by drawing a rectangle.

The script only fills in the four bounds of the form and submits it. Without scripts, users type the bounds.
"""

from __future__ import annotations

import numpy as np

from askew.app.explore.gain_cells import GainCells
from askew.publish.page import numerals as n
from askew.publish.page.axes import axis
from askew.publish.page.frame import UNDER, WIDTH, About, Plot, numeric_frame, numeric_plot, picture, zero_lines
from askew.publish.page.markup import number
from askew.web.markup import Markup, address, element, join, tag
from askew.web.pages import parts as p
from askew.web.schemas import PairFilter

_HIGH = 250
# The smallest and largest radius of a circle, and the share of all pairs at which a circle has the largest radius.
_LEAST, _MOST, _FULL = 2.2, 11.0, 0.25
BOUNDS = ("lean_min", "lean_max", "effectiveness_min", "effectiveness_max")


def gain_chart(cells: GainCells, asked: PairFilter, clear: str) -> Markup:
    """Draw the chart with its caption. ``clear`` is the link to the same pairs without bounds."""
    across = axis("gain in lean (right: less lean)", cells.span[0], zero=True)
    upright = axis("gain in effectiveness (up: retrieves better)", cells.span[1], zero=True, most=5)
    plot = numeric_plot(across, upright, _HIGH)
    found = cells.fitting
    less, more = (n.count(int(found.counts[found.x_signs == sign].sum())) for sign in (1, -1))
    told = (
        f"{n.count(int(found.counts.sum()))} pairs by gain in {cells.lean} and in {cells.effectiveness}: {less} lean "
        f"less, {more} lean more."
    )
    about = About("gains", "Gain in lean (less lean) against gain in effectiveness", told)
    drawn = [numeric_frame(plot, across, upright), *zero_lines(plot), _context(cells, plot), *_circles(cells, plot),
             *_chosen(plot, asked)]  # fmt: skip
    svg = picture(about, WIDTH, plot.bottom + UNDER, *drawn)
    place = {"left": plot.left, "right": plot.right, "top": plot.top, "bottom": plot.bottom}
    ends = {"x_low": plot.x.low, "x_high": plot.x.high, "y_low": plot.y.low, "y_high": plot.y.high}
    given = {f"data_{name}": f"{value:.6g}" for name, value in {**place, **ends}.items()}
    box = tag("div", svg, class_="chart", data_brush="pairs", **given)
    return tag("figure", box, _caption(cells, asked, clear), class_="gains")


def _caption(cells: GainCells, asked: PairFilter, clear: str) -> Markup:
    signs = [
        join([tag("span", "●", class_=f"dot-{kind}", aria_hidden="true"), f" {words}"])
        for kind, words in (
            ("better", "the reformulation is better than the original query in lean or effectiveness, and worse in "
             "neither"),
            ("worse", "the reformulation is worse than the original query in lean or effectiveness, and better in "
             "neither"),
            ("mixed", "one of the two queries is better in lean and the other in effectiveness, or they are equal in "
             "both"),
        )
    ]  # fmt: skip
    words: list[object] = [
        "Filled circles show the in-sample gains of the pairs that match the filters. Larger circles stand for more "
        "pairs. Rings show the gains of all pairs of the dataset. ",
        join(signs, "; "),
        ". ",
    ]
    if cells.unknown:
        words.append(f"{n.count(cells.unknown)} pairs that lack a gain in lean or effectiveness are not drawn. ")
    words.append(tag("span", "Drag a rectangle to select pairs. ", class_="with-script"))
    if any(getattr(asked, name) is not None for name in BOUNDS):
        words.append(element("a", "Clear the rectangle", href=clear))
    return tag("figcaption", *words)


def _context(cells: GainCells, plot: Plot) -> Markup:
    """Draw a ring for each cell of the whole dataset."""
    xs, ys = np.round(plot.x.places(cells.every.x), 1).tolist(), np.round(plot.y.places(cells.every.y), 1).tolist()
    return tag("g", *(tag("circle", cx=x, cy=y, r=_LEAST) for x, y in zip(xs, ys, strict=True)), class_="cells-every")


def _circles(cells: GainCells, plot: Plot) -> list[Markup]:
    """Draw a circle for each cell. Its area shows the share of pairs, on the same scale for every selection."""
    found = cells.fitting
    shares = found.counts / max(int(found.counts.sum()), 1)
    sizes = np.round(np.clip(_MOST * np.sqrt(shares / _FULL), _LEAST, _MOST), 1)
    xs, ys = np.round(plot.x.places(found.x), 1), np.round(plot.y.places(found.y), 1)
    groups: dict[str, list[Markup]] = {"mixed": [], "worse": [], "better": []}
    for place in np.argsort(-found.counts, kind="stable").tolist():
        signs = int(found.x_signs[place]), int(found.y_signs[place])
        words = (
            f"{n.count(int(found.counts[place]))} pairs: lean {p.signed(float(found.x[place]))}, "
            f"effectiveness {p.signed(float(found.y[place]))}"
        )
        circle = tag("circle", cx=xs[place], cy=ys[place], r=sizes[place])
        groups[_kind(*signs)].append(tag("g", tag("title", words), circle))
    return [tag("g", *drawn, class_=f"cells-{kind}") for kind, drawn in groups.items() if drawn]


def _kind(lean: int, effectiveness: int) -> str:
    both = {lean, effectiveness} - {0}
    return {frozenset({1}): "better", frozenset({-1}): "worse"}.get(frozenset(both), "mixed")


def _chosen(plot: Plot, asked: PairFilter) -> list[Markup]:
    """Draw the rectangle of the given bounds. A side without a bound is at the edge."""
    given = [getattr(asked, name) for name in BOUNDS]
    if all(value is None for value in given):
        return []
    ends = (plot.x.low, plot.x.high, plot.y.low, plot.y.high)
    x0, x1, y0, y1 = (edge if value is None else value for value, edge in zip(given, ends, strict=True))
    left, right = (min(max(plot.x(value), plot.left), plot.right) for value in (x0, x1))
    bottom, top = (min(max(plot.y(value), plot.top), plot.bottom) for value in (y0, y1))
    path = f"M{number(left)} {number(top)}H{number(right)}V{number(bottom)}H{number(left)}Z"
    return [tag("path", d=path, class_="brushed")]


def without_bounds(path: str, given: dict[str, object]) -> str:
    """Make the link without the bounds."""
    return address(path, {key: value for key, value in given.items() if key not in (*BOUNDS, "page")})
