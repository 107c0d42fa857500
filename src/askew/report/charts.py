"""Chart functions, each from data to an SVG picture. Numbers that are not finite raise an error."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from askew.core.errors import DataError
from askew.core.ranking import Flags, Floats
from askew.report.markup import MINUS, Markup, count, mean, number, tag
from askew.report.table import Estimate

# Scales from numbers to positions in a picture, and axes with ticks at round numbers.

_STEPS = (1.0, 2.0, 5.0, 10.0)
FONT_SIZE = 13
# The average width of a letter relative to the font size, with some margin.
_LETTER = 0.57


@dataclass(frozen=True)
class Scale:
    """A linear scale: ``low`` and ``high`` of the data are at ``start`` and ``end`` in the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def places(self, values: Floats) -> Floats:
        """The positions of many values."""
        return np.asarray(self.start + (values - self.low) / (self.high - self.low) * (self.end - self.start))


@dataclass(frozen=True)
class Axis:
    """An axis: its label, its ends, and its ticks with their texts."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


def axis(label: str, values: Iterable[float], zero: bool = False, most: int = 6) -> Axis:
    """An axis that includes all values and begins and ends at a round number; with ``zero`` it also includes zero."""
    included = [*values, *([0.0] if zero else [])]
    if not all(map(math.isfinite, included)):
        raise DataError(
            f"chart, {label!r}: expected finite numbers, found infinite or missing numbers; leave these numbers out "
            "and say how many were left out"
        )
    low, high = (min(included), max(included)) if included else (0.0, 1.0)
    # Values that differ only by the rounding error count as one value.
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)
    step = tick_step(low, high, most)
    first, last = math.floor(round(low / step, 9)), math.ceil(round(high / step, 9))
    ticks = [i * step for i in range(first, last + 1)]
    return Axis(label, ticks[0], ticks[-1], tuple((value, tick_text(value, step)) for value in ticks))


def tick_step(low: float, high: float, most: int = 6) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten that divides the range into at most ``most`` parts."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))


def tick_text(value: float, step: float) -> str:
    """The text of a tick, with as many decimals as its step needs and a typographic minus sign."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:,.{digits}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) else text.lstrip("-")


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """The approximate width of a text; full-width characters count more than others."""
    units = sum(1.75 if unicodedata.east_asian_width(char) in "WF" else 1.0 for char in text)
    return units * _LETTER * size


def shortened(text: str, letters: int) -> str:
    """The text, cut if it is longer than ``letters`` characters."""
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def extent(columns: Sequence[Floats]) -> list[float]:
    """The minimum and maximum of every column; nothing for empty columns."""
    return [float(end) for column in columns if len(column) for end in (column.min(), column.max())]


# The frame of every chart: the picture with its title and description, axes, a legend, marks of several shapes.

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


def legend(keys: Sequence[Key], top: float) -> tuple[Markup, float]:
    """The legend, with a sign and a name for each series, on as many lines as needed; and its lower end."""
    if not keys:
        return Markup(), top
    left, parts = 2.0, []
    x, y = left, top + LINE * 0.7
    for key in keys:
        sign = 26.0 if key.kind == "line" else 15.0
        width = sign + text_width(key.name) + 14
        if x > left and x + width > WIDTH - left:
            x, y = left, y + LINE
        if key.kind == "area" or isinstance(key.series, str):
            parts.append(tag("rect", x=x, y=y - 9, width=10, height=10, **fill(key.series)))
        elif key.kind == "line":
            parts.append(tag("path", d=f"M{number(x)} {number(y - 4)}h20", **stroke(key.series)))
        else:
            parts.append(marks(key.series, [mark(key.series, x + 5, y - 4)]))
        parts.append(text(x + sign, y, key.name))
        x += width
    return tag("g", *parts), y + LINE * 0.5


def marks(series: int, drawn: Sequence[Markup], opacity: float | None = None) -> Markup:
    """A group of marks in the color of their series."""
    return tag("g", *drawn, fill_opacity=opacity, color=COLORS[series % len(COLORS)], **fill(series))


def numeric_plot(x: Axis, y: Axis, height: float, top: float = 0.0) -> Plot:
    """The plot area of a chart with two numeric axes, with room above it for the label of the y axis."""
    x_start = max(text_width(words) for _, words in y.ticks) + _GAP + 2
    right = WIDTH - max(_GAP, text_width(x.ticks[-1][1]) / 2 + 2)
    upper, lower = top + LINE * 1.6, top + LINE * 1.6 + height
    return Plot(x_start, upper, right, lower, Scale(x.low, x.high, x_start, right), Scale(y.low, y.high, lower, upper))


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


# A heat map of a square matrix of agreement from -1 to 1; each cell shows its value as a tooltip.

UNDEFINED = "undefined"
_LONGEST = 60
_LEGEND_STEPS, _LEGEND_LEFT = 21, 10.0
_LEGEND_HEIGHT = 46.0
# Colors for disagreement, zero and agreement. Both ends are darker than the middle, so that gray prints show it too.
_LOW, _MIDDLE, _HIGH = COLORS[1], "#f7f7f7", COLORS[0]
_LETTER_SIZE = 11.0


@dataclass(frozen=True)
class Heading:
    """A row and column of the matrix: its name, a short name above the column, and its group."""

    name: str
    short: str
    group: str = ""


def heat_map(about: About, headings: Sequence[Heading], values: Floats, what: str) -> Markup:
    """The matrix with names at the left of rows and short names above columns; ``what`` says what a value is.

    Lines separate groups. A NaN is gray and is marked as undefined.
    """
    size, cell = len(headings), 30.0 if len(headings) <= 30 else 14.0
    names = [shortened(heading.name, _LONGEST) for heading in headings]
    margin = max(text_width(name, _LETTER_SIZE) for name in names) + 12
    above = max(text_width(heading.short, _LETTER_SIZE) for heading in headings)
    slanted = max(len(heading.short) for heading in headings) > 4
    top = _LEGEND_HEIGHT + (0.9 if slanted else 1.05) * above + 10
    parts = [_legend(what)]
    for place, (head, name) in enumerate(zip(headings, names, strict=True)):
        middle = (place + 0.5) * cell
        parts.append(text(margin - 6, top + middle + 4, name, "end", _LETTER_SIZE))
        x, y = margin + middle + 4, top - 6
        turned = f"rotate({-60 if slanted else -90} {number(x)} {number(y)})"
        parts.append(
            tag("text", head.short, x=x, y=y, font_size=_LETTER_SIZE, transform=turned, class_="ink", fill=INK)
        )
    for row, column in product(range(size), repeat=2):
        value, x, y = float(values[row, column]), margin + column * cell, top + row * cell
        words = UNDEFINED if math.isnan(value) else mean(value, 2)
        title = tag("title", f"{headings[row].name} / {headings[column].name}: {words}")
        parts.append(tag("rect", title, x=x, y=y, width=cell - 1, height=cell - 1, fill=color_of(value)))
        if cell >= 2 * _LETTER_SIZE:
            parts.append(tag(
                "text", mean(value, 2), x=x + (cell - 1) / 2, y=y + cell / 2 + 3, text_anchor="middle", font_size=10,
                fill=_ink_on(color_of(value)), pointer_events="none",
            ))  # fmt: skip
    for place in range(1, size):
        if headings[place].group != headings[place - 1].group:
            x, y = margin + place * cell, top + place * cell
            parts += [line(2, y, margin + size * cell, y, False), line(x, top, x, top + size * cell, False)]
    # Names over the columns are slanted to the right.
    legend_width = _LEGEND_LEFT + 8.0 * _LEGEND_STEPS + 10 + max(text_width(what, FONT_SIZE), 120)
    width = max(margin + size * cell + 8 + 0.5 * above, legend_width)
    return picture(about, width, top + size * cell + 8, *parts)


def _ink_on(color: str) -> str:
    """The color of a text in a cell of this color: fixed, because the cell has the same color on a dark page."""
    ground = _luminance(color)
    return max(("#ffffff", INK), key=lambda letters: abs(math.log((_luminance(letters) + 0.05) / (ground + 0.05))))


def color_of(value: float) -> str:
    """The color of a value from -1 to 1; gray for NaN."""
    if math.isnan(value):
        return FAINT
    share = min(abs(value), 1.0)
    ends = zip(_parts(_MIDDLE), _parts(_HIGH if value > 0 else _LOW), strict=True)
    return "#" + "".join(f"{round(start + share * (end - start)):02x}" for start, end in ends)


def _luminance(color: str) -> float:
    """The luminance of a color, as the accessibility guidelines WCAG define it for the contrast of two colors."""
    shares = [part / 255 for part in _parts(color)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _parts(color: str) -> list[int]:
    return [int(color[at : at + 2], 16) for at in (1, 3, 5)]


def _legend(what: str) -> Markup:
    parts = []
    for step in range(_LEGEND_STEPS):
        value = -1 + 2 * step / (_LEGEND_STEPS - 1)
        parts.append(tag("rect", x=_LEGEND_LEFT + 8.0 * step, y=4, width=8.0, height=12, fill=color_of(value)))
    for value in (-1, 0, 1):
        parts.append(text(_LEGEND_LEFT + 4 + 8.0 * 10 * (value + 1), 30, count(value), "middle", _LETTER_SIZE))
    after = _LEGEND_LEFT + 8.0 * _LEGEND_STEPS + 10
    parts.append(text(after, 15, what, size=_LETTER_SIZE))
    parts.append(tag("rect", x=after, y=21, width=12, height=12, fill=FAINT))
    return tag("g", *parts, text(after + 17, 31, UNDEFINED, size=_LETTER_SIZE))


_LABEL_SIZE = 12.0
_LABEL_AWAY = 7.0
Box = tuple[float, float, float, float]
# The maximum number of steps in a sorted curve; more could not be seen.
COLUMNS = 400
_LONGEST_LABEL = 26


@dataclass(frozen=True)
class Points:
    """A series of points; if ``labels`` are given, each point has its name beside it."""

    name: str
    x: Floats
    y: Floats
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Line:
    """A series that is drawn as a line, from left to right, in the color and dash pattern of number ``series``.

    A line without a name is not in the legend.
    """

    name: str
    x: Floats
    y: Floats
    series: int
    width: float = 2.0


@dataclass(frozen=True)
class Band:
    """The area between two lines, for the interval along a curve, in the color of a series."""

    x: Floats
    low: Floats
    high: Floats
    series: int


def dots(about: About, rows: Sequence[str], series: Mapping[str, Sequence[Estimate | None]], label: str) -> Markup:
    """A dot with its interval for each row and series; for None, no dot is drawn."""
    values = [end for column in series.values() for dot in column if dot for end in dot[:3] if end is not None]
    along = axis(label, values, zero=True)
    head, top = legend(_keys(list(series)), 2.0)
    high = 15.0 * len(series) + 8
    margin = max([text_width(shortened(name, _LONGEST_LABEL)) for name in rows], default=0.0) + 10
    right = WIDTH - max(8.0, text_width(along.ticks[-1][1]) / 2 + 2)
    upper, lower = top + 6, top + 6 + high * len(rows)
    scales = Scale(along.low, along.high, margin, right), Scale(len(rows) or 1, 0, lower, upper)
    plot = Plot(margin, upper, right, lower, *scales)
    parts = [below(plot, along, grid=True)]
    for row, name in enumerate(rows):
        middle = plot.top + (row + 0.5) * high + 4
        parts.append(text(plot.left - 8, middle, shortened(name, _LONGEST_LABEL), "end"))
    # The axis includes zero.
    parts.append(line(plot.x(0), plot.top, plot.x(0), plot.bottom, faint=False))
    for place, column in enumerate(series.values()):
        drawn = []
        for row, dot in enumerate(column):
            if dot is None:
                continue
            y, bar = plot.top + row * high + 4 + 15.0 * (place + 0.5), Markup()
            if dot.low is not None and dot.high is not None:
                low, high_end = plot.x(dot.low), plot.x(dot.high)
                ends = "".join(f"M{number(x)} {number(y - 3)}v6" for x in (low, high_end))
                path = f"M{number(low)} {number(y)}H{number(high_end)}{ends}"
                bar = tag("path", d=path, **stroke(place, 1.5, dashed=False))
            drawn.append(tag("g", bar, mark(place, plot.x(dot.mean), y)))
        parts.append(marks(place, drawn))
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts)


def sorted_gains(
    about: About, gains: Floats, label: str, notes: Sequence[str] = (), room: Sequence[float] = ()
) -> Markup:
    """Gains from the highest to the lowest: an area above zero for improved queries, one below zero for worsened ones.

    If there are more than 400 values, 400 evenly spaced ones are drawn, including the first and the last. ``notes``
    name the areas. ``room`` has further values that the y axis must include, so that charts can be compared.
    """
    ranked = np.sort(gains)[::-1]
    n = len(ranked)
    last = float(max(n, 1))
    # Ticks at integers from 0 to n; the last one is n itself.
    inner = [value for value, _ in axis("", [0.0, last], most=4).ticks if value.is_integer() and value < 0.88 * n]
    ticks = *((value, f"{value:,.0f}") for value in inner), (last, f"{n:,}")
    across = Axis("queries, from the most improved to the most worsened", 0.0, last, ticks)
    upright = axis(label, [*extent([ranked]), *room], zero=True, most=5)
    head, top = legend([Key(kind, note, "area") for kind, note in zip(VERDICTS, notes, strict=False)], 2.0)
    plot = numeric_plot(across, upright, 170, top)
    parts = [numeric_frame(plot, across, upright)]
    for kind, part in zip(VERDICTS, (ranked > 0, ranked < 0), strict=True):
        path = _area(plot, ranked, part)
        parts += [tag("path", d=path, fill_opacity=0.85, **fill(kind))] if path else []
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts, *zero_lines(plot))


def _area(plot: Plot, ranked: Floats, part: Flags) -> str:
    """The outline of some columns between the curve and zero; empty if there are none."""
    n = len(ranked)
    steps = min(n, COLUMNS)
    picked = np.round(np.linspace(0, n - 1, steps)).astype(np.int64)
    steps_in_part = np.flatnonzero(part[picked])
    if not len(steps_in_part):
        return ""
    edges = plot.x.places(np.linspace(0, n, steps + 1))
    heights = plot.y.places(ranked[picked])
    zero = number(plot.y(0))
    path = [f"M{number(edges[steps_in_part[0]])} {zero}"]
    for i in steps_in_part.tolist():
        path.append(f"V{number(round(float(heights[i]), 1))}H{number(round(float(edges[i + 1]), 1))}")
    return "".join([*path, f"V{zero}Z"])


def scatter(
    about: About, groups: Sequence[Points], x_label: str, y_label: str, lines: Sequence[Line] = (),
    size: float = 4.5, opacity: float = 1.0, height: float = 300, zero: bool = False, bands: Sequence[Band] = (),
    room: tuple[Sequence[float], Sequence[float]] = ((), ()),
) -> Markup:  # fmt: skip
    """Points of several series, with lines and bands; with ``zero`` both axes include zero.

    ``room`` has further values that the x axis and the y axis must include, so that several charts have equal axes.
    """
    wide, high = (np.asarray(values, np.float64) for values in room)
    along = axis(x_label, extent([*(series.x for series in groups), *(one.x for one in lines), wide]), zero)
    ends = [end for band in bands for end in (band.low, band.high)]
    upright = axis(y_label, extent([*(series.y for series in groups), *(one.y for one in lines), *ends, high]), zero)
    keys = _keys([group.name for group in groups], alone=bool(lines))
    head, top = legend([*keys, *_line_keys(lines)], 2.0)
    plot = numeric_plot(along, upright, height, top)
    parts = [numeric_frame(plot, along, upright), *zero_lines(plot)]
    for band in bands:
        xs = np.round(plot.x.places(band.x), 1)
        lower, upper = (np.round(plot.y.places(values), 1) for values in (band.low, band.high))
        corners = [*zip(xs, upper, strict=True), *zip(xs[::-1], lower[::-1], strict=True)]
        path = "".join(f"{'L' if at else 'M'}{number(x)} {number(y)}" for at, (x, y) in enumerate(corners))
        parts.append(tag("path", d=f"{path}Z", fill_opacity=0.12, **fill(band.series)))
    parts += [_path(plot, line_series) for line_series in lines]
    spots: list[tuple[float, float]] = []
    names: list[str] = []
    for place, group in enumerate(groups):
        at = list(
            zip(np.round(plot.x.places(group.x), 1).tolist(), np.round(plot.y.places(group.y), 1).tolist(), strict=True)
        )
        parts.append(marks(place, [mark(place, x, y, size) for x, y in at], opacity))
        spots, names = [*spots, *(at if group.labels else [])], [*names, *group.labels]
    shown = [shortened(name, _LONGEST_LABEL) for name in names]
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts, *place_labels(plot, spots, shown))


def steps(about: About, lines: Sequence[Line], x_label: str, y_label: str, room: Sequence[float] = ()) -> Markup:
    """Step lines: each keeps its height until the next value. At most 400 points of a line are drawn.

    ``room`` has further values that the x axis must include, so that charts can be compared.
    """
    lines = [thinned(curve) for curve in lines]
    along = axis(x_label, [*extent([curve.x for curve in lines]), *room])
    upright = axis(y_label, extent([curve.y for curve in lines]), zero=True)
    head, top = legend(_line_keys(lines), 2.0)
    plot = numeric_plot(along, upright, 240, top)
    drawn = [_path(plot, curve, stepped=True) for curve in lines]
    parts = [numeric_frame(plot, along, upright), *zero_lines(plot), *drawn]
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts)


def thinned(curve: Line) -> Line:
    """The line with at most ``COLUMNS`` of its points, evenly spaced, including the first and the last."""
    if len(curve.x) <= COLUMNS or len(curve.x) != len(curve.y):
        return curve
    picked = np.round(np.linspace(0, len(curve.x) - 1, COLUMNS)).astype(np.int64)
    return replace(curve, x=curve.x[picked], y=curve.y[picked])


def _path(plot: Plot, curve: Line, stepped: bool = False) -> Markup:
    if len(curve.x) != len(curve.y):
        sizes = f"{len(curve.x)} and {len(curve.y)}"
        raise DataError(f"chart, line {curve.name!r}: expected as many x values as y values, found {sizes}")
    xs, ys = (np.round(scale.places(values), 1) for scale, values in ((plot.x, curve.x), (plot.y, curve.y)))
    words = [
        f"H{number(x)}V{number(y)}" if stepped else f"L{number(x)} {number(y)}" for x, y in zip(xs, ys, strict=True)
    ]
    start = f"M{number(xs[0])} {number(ys[0])}" if len(xs) else ""
    return tag("path", d=start + "".join(words[1:]), **stroke(curve.series, curve.width))


def _keys(names: Sequence[str], alone: bool = False) -> list[Key]:
    """The keys of the legend; none if there is only one series and ``alone`` is false."""
    return [Key(series, name) for series, name in enumerate(names)] if alone or len(names) > 1 else []


def _line_keys(lines: Sequence[Line]) -> list[Key]:
    return [Key(series.series, series.name, "line") for series in lines if series.name]


def place_labels(plot: Plot, points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[Markup]:
    """A name beside each point: right, left, above, below or further away, at the place with the least overlap."""
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    placed = []
    high = _LABEL_SIZE + 2

    def cost(box: Box) -> float:
        """The overlap with other boxes, and how far the box extends beyond the plot area, which weighs more."""
        over = max(0.0, plot.left - box[0]) + max(0.0, box[2] - plot.right)
        over += max(0.0, plot.top - box[1]) + max(0.0, box[3] - plot.bottom)
        return 100 * over + sum(
            max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
            * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
            for other in taken
        )

    for (x, y), name in zip(points, names, strict=True):
        if not name:
            continue
        width = text_width(name, _LABEL_SIZE)
        corners = [(x + _LABEL_AWAY, y - high / 2), (x - _LABEL_AWAY - width, y - high / 2)]
        for off in (_LABEL_AWAY, _LABEL_AWAY + high, _LABEL_AWAY + 2 * high):
            for corner_x in (x - width / 2, x + _LABEL_AWAY / 2, x - _LABEL_AWAY / 2 - width):
                corners += [(corner_x, y - off - high), (corner_x, y + off)]
        boxes = [(corner_x, top, corner_x + width, top + high) for corner_x, top in corners]
        best = min(boxes, key=cost)
        taken.append(best)
        # The name stays readable on top of other marks: each letter has an outline in the background color.
        placed.append(
            tag("text", name, x=best[0], y=best[3] - 3, font_size=_LABEL_SIZE, class_="ink rim", fill=INK,
                stroke=GROUND, stroke_width=3, stroke_linejoin="round", paint_order="stroke")
        )  # fmt: skip
    return placed
