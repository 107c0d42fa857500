"""The frame of every chart: the picture with its title and description, axes, a legend, marks of several shapes.

Colors are written as attributes, which any style sheet overrides. A picture therefore works as a separate file, and a
page can show it in dark colors by the classes ``f1`` (filled with the first color), ``l1`` (drawn with it), ``ink``,
``faint`` and ``ground``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from askew.publish.page.axes import FONT_SIZE, Axis, Scale, text_width
from askew.publish.page.markup import Markup, number, tag

WIDTH = 460
INK, FAINT, GROUND = "#24292f", "#d0d7de", "#ffffff"
# Okabe and Ito's colors, which color-blind readers can distinguish; the first two differ most.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d00")
# Better and worse have colors of their own, which no series and no group has.
VERDICTS = {"better": "#1a7f37", "worse": "#8e2a86"}
SHAPES = ("circle", "triangle", "square", "diamond", "cross", "ring")
DASHES = (None, "6 3", "2 3", "8 3 2 3", "1 2", "10 4")
_FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_SLUG = re.compile(r"[a-z][a-z0-9-]*")
LINE = 20.0
_GAP = 8.0


@dataclass(frozen=True)
class About:
    """The name of a picture, for its file and its ids in a page, and a title and description for screen readers."""

    name: str
    title: str
    description: str

    def __post_init__(self) -> None:
        if not _SLUG.fullmatch(self.name):
            raise ValueError(
                f"the name of a chart must have only lowercase letters, digits and hyphens, found {self.name!r}"
            )


@dataclass(frozen=True)
class Plot:
    """The area between the axes, and its scales."""

    left: float
    top: float
    right: float
    bottom: float
    x: Scale
    y: Scale


def fill(series: int | str) -> dict[str, str]:
    """The attributes that fill a shape with the color of a series, counted from 0, or of ``better`` or ``worse``."""
    if isinstance(series, str):
        return {"class_": f"f-{series}", "fill": VERDICTS[series]}
    return {"class_": f"f{series % len(COLORS) + 1}", "fill": COLORS[series % len(COLORS)]}


def stroke(series: int, width: float = 2, dashed: bool = True) -> dict[str, str | float | None]:
    """The attributes of a line in the color and dash pattern of a series."""
    place = series % len(COLORS)
    dash = DASHES[place] if dashed else None
    return {"class_": f"l{place + 1}", "stroke": COLORS[place], "stroke_width": width, "stroke_dasharray": dash,
            "fill": "none"}  # fmt: skip


def picture(about: About, width: float, height: float, *children: Markup) -> Markup:
    """The picture as one SVG element with title and description; its role is a group if it contains links."""
    ids = f"{about.name}-title", f"{about.name}-desc"
    role = "group" if any("<a " in child for child in children) else "img"
    return tag(
        "svg", tag("title", about.title, id=ids[0]), tag("desc", about.description, id=ids[1]),
        tag("rect", class_="ground", fill=GROUND, width=width, height=height), *children,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {number(width)} {number(height)}", width=width, height=height,
        role=role, aria_labelledby=" ".join(ids), font_family=_FONTS, font_size=FONT_SIZE,
    )  # fmt: skip


def text(x: float, y: float, words: str, anchor: str = "start", size: float | None = None) -> Markup:
    """A text with its base line at the given place."""
    return tag("text", words, x=x, y=y, text_anchor=anchor, font_size=size, class_="ink", fill=INK)


def text_over(x: float, y: float, words: str, size: float) -> Markup:
    """A text that stays readable on top of other marks: each letter has an outline in the background color."""
    return tag("text", words, x=x, y=y, font_size=size, class_="ink rim", fill=INK, stroke=GROUND, stroke_width=3,
               stroke_linejoin="round", paint_order="stroke")  # fmt: skip


def line(x1: float, y1: float, x2: float, y2: float, faint: bool = True) -> Markup:
    """A line of the frame."""
    color, name = (FAINT, "lfaint") if faint else (INK, "link")
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=name, stroke=color, stroke_width=1)


def mark(series: int, x: float, y: float, size: float = 4.5) -> Markup:
    """A mark in the shape of a series; it takes the color of the surrounding element."""
    shape = SHAPES[series % len(SHAPES)]
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=size)
    if shape == "ring":
        return tag("circle", cx=x, cy=y, r=0.8 * size, fill="none", stroke="currentColor", stroke_width=2)
    if shape == "square":
        return tag("rect", x=x - 0.9 * size, y=y - 0.9 * size, width=1.8 * size, height=1.8 * size)
    corners = {
        "triangle": [(0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
        "diamond": [(0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)],
        "cross": [(-1, -0.4), (-0.4, -1), (0, -0.6), (0.4, -1), (1, -0.4), (0.6, 0), (1, 0.4), (0.4, 1), (0, 0.6),
                  (-0.4, 1), (-1, 0.4), (-0.6, 0)],
    }[shape]  # fmt: skip
    return tag("polygon", points=" ".join(f"{number(x + size * a)},{number(y + size * b)}" for a, b in corners))


@dataclass(frozen=True)
class Key:
    """An entry of a legend: its series, its name, and whether it is drawn as marks, a line or an area.

    A series is a number; for an area it may also be ``better`` or ``worse``.
    """

    series: int | str
    name: str
    kind: str = "mark"


def legend(keys: Sequence[Key], top: float, left: float = 2.0, right: float = WIDTH - 2.0) -> tuple[Markup, float]:
    """The legend, with a sign and a name for each series, on as many lines as needed; and its lower end."""
    if not keys:
        return Markup(), top
    parts, x, y = [], left, top + LINE * 0.7
    for key in keys:
        sign = 26.0 if key.kind == "line" else 15.0
        width = sign + text_width(key.name) + 14
        if x > left and x + width > right:
            x, y = left, y + LINE
        parts += [_sign(key, x, y - 4), text(x + sign, y, key.name)]
        x += width
    return tag("g", *parts), y + LINE * 0.5


def _sign(key: Key, x: float, y: float) -> Markup:
    if key.kind == "area" or isinstance(key.series, str):
        return tag("rect", x=x, y=y - 5, width=10, height=10, **fill(key.series))
    if key.kind == "line":
        return tag("path", d=f"M{number(x)} {number(y)}h20", **stroke(key.series))
    return marks(key.series, [mark(key.series, x + 5, y)])


def marks(series: int, drawn: Sequence[Markup], opacity: float | None = None) -> Markup:
    """A group of marks in the color of their series."""
    return tag("g", *drawn, fill_opacity=opacity, color=COLORS[series % len(COLORS)], **fill(series))


def numeric_plot(x: Axis, y: Axis, height: float, top: float = 0.0) -> Plot:
    """The plot area of a chart with two numeric axes, with room above it for the label of the y axis."""
    left = max(text_width(words) for _, words in y.ticks) + _GAP + 2
    right = WIDTH - max(_GAP, text_width(x.ticks[-1][1]) / 2 + 2)
    upper, lower = top + LINE * 1.6, top + LINE * 1.6 + height
    return Plot(left, upper, right, lower, Scale(x.low, x.high, left, right), Scale(y.low, y.high, lower, upper))


def numeric_frame(plot: Plot, x: Axis, y: Axis) -> Markup:
    """Grid, ticks and labels. The label of the y axis is written horizontally above the axis."""
    parts = [text(2, plot.top - LINE * 0.75, y.label)]
    for value, words in y.ticks:
        at = plot.y(value)
        parts += [line(plot.left, at, plot.right, at), text(plot.left - _GAP + 2, at + 4, words, "end")]
    return tag("g", *parts, below(plot, x))


def below(plot: Plot, x: Axis, grid: bool = False) -> Markup:
    """The x axis: ticks, their numbers and the label; with ``grid`` also a vertical line at each tick."""
    parts = []
    for value, words in x.ticks:
        at = plot.x(value)
        parts += [line(at, plot.top if grid else plot.bottom, at, plot.bottom + 4)]
        parts += [text(at, plot.bottom + LINE * 0.85, words, "middle")]
    label = text((plot.left + plot.right) / 2, plot.bottom + LINE * 1.8, x.label, "middle")
    return tag("g", *parts, line(plot.left, plot.bottom, plot.right, plot.bottom, faint=False), label)


def zero_lines(plot: Plot) -> list[Markup]:
    """Lines through zero, if zero is inside the axes."""
    lines = []
    if plot.x.low < 0 < plot.x.high:
        lines.append(line(plot.x(0), plot.top, plot.x(0), plot.bottom, faint=False))
    if plot.y.low < 0 < plot.y.high:
        lines.append(line(plot.left, plot.y(0), plot.right, plot.y(0), faint=False))
    return lines


# The height below the plot area, for the numbers of the ticks and the label.
UNDER = LINE * 2.2
