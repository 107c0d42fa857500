"""Chart functions, each from data to an SVG picture. Numbers that are not finite raise an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from askew.core.errors import DataError
from askew.core.ranking import Flags, Floats
from askew.publish.page.axes import Axis, Scale, axis, extent, shortened, text_width
from askew.publish.page.frame import (
    UNDER,
    VERDICTS,
    WIDTH,
    About,
    Key,
    Plot,
    below,
    fill,
    legend,
    line,
    mark,
    marks,
    numeric_frame,
    numeric_plot,
    picture,
    stroke,
    text,
    text_over,
    zero_lines,
)
from askew.publish.page.markup import Markup, number, tag

_LABEL_SIZE = 12.0
_LABEL_AWAY = 7.0
Box = tuple[float, float, float, float]
# The maximum number of steps in a sorted curve; more could not be seen.
COLUMNS = 400
_LONGEST_LABEL = 26


@dataclass(frozen=True)
class Interval:
    """A value and its interval, which may be missing."""

    value: float
    low: float | None = None
    high: float | None = None

    def ends(self) -> list[float]:
        """The value and the ends of its interval."""
        return [one for one in (self.value, self.low, self.high) if one is not None]


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


def bars(
    about: About, rows: Sequence[str], series: Mapping[str, Sequence[float]], label: str, room: Sequence[float] = ()
) -> Markup:
    """Horizontal bars from zero, one for each row and series, with their values beside them.

    ``room`` has further values that the axis must include, such as 0 and 1 for a share.
    """
    values = [*room, *(value for column in series.values() for value in column)]
    along = axis(label, values, zero=True)
    head, top = legend(_keys(list(series), "area"), 2.0)
    thick = 14.0
    plot = _row_plot(rows, along, top, thick * len(series) + 10, room=text_width("0.0000"))
    parts = [below(plot, along, grid=True), *_row_names(plot, rows)]
    for place, column in enumerate(series.values()):
        shapes, words = [], []
        for row, value in enumerate(column):
            y = plot.top + row * (thick * len(series) + 10) + 5 + place * thick
            left, right = sorted((plot.x(0), plot.x(value)))
            shapes.append(tag("rect", x=left, y=y + 1, width=right - left, height=thick - 2))
            words.append(text(right + 4, y + thick - 3, _value_text(value), size=11))
        parts += [tag("g", *shapes, **fill(place)), *words]
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts, *_upright_zero(plot))


def dots(about: About, rows: Sequence[str], series: Mapping[str, Sequence[Interval | None]], label: str) -> Markup:
    """A dot with its interval for each row and series; for None, no dot is drawn."""
    found = [end for column in series.values() for one in column if one is not None for end in one.ends()]
    along = axis(label, found, zero=True)
    head, top = legend(_keys(list(series)), 2.0)
    high = 15.0 * len(series) + 8
    plot = _row_plot(rows, along, top, high)
    parts = [below(plot, along, grid=True), *_row_names(plot, rows), *_upright_zero(plot)]
    for place, column in enumerate(series.values()):
        drawn = [
            _dot(plot, place, plot.top + row * high + 4 + 15.0 * (place + 0.5), one)
            for row, one in enumerate(column)
            if one is not None
        ]
        parts.append(marks(place, drawn))
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts)


def _dot(plot: Plot, series: int, y: float, one: Interval) -> Markup:
    parts = []
    if one.low is not None and one.high is not None:
        low, high = plot.x(one.low), plot.x(one.high)
        ends = "".join(f"M{number(x)} {number(y - 3)}v6" for x in (low, high))
        path = f"M{number(low)} {number(y)}H{number(high)}{ends}"
        parts.append(tag("path", d=path, **stroke(series, 1.5, dashed=False)))
    return tag("g", *parts, mark(series, plot.x(one.value), y))


def sorted_gains(
    about: About, gains: Floats, label: str, notes: Sequence[str] = (), room: Sequence[float] = ()
) -> Markup:
    """Gains from the highest to the lowest: an area above zero for improved queries, one below zero for worsened ones.

    If there are more than 400 values, 400 evenly spaced ones are drawn, including the first and the last. ``notes``
    name the areas. ``room`` has further values that the y axis must include, so that charts can be compared.
    """
    ranked = np.sort(gains)[::-1]
    n = len(ranked)
    across = Axis("queries, from the most improved to the most worsened", 0.0, float(max(n, 1)), _counts(n))
    upright = axis(label, [*extent([ranked]), *room], zero=True, most=5)
    head, top = legend([Key(kind, note, "area") for kind, note in zip(VERDICTS, notes, strict=False)], 2.0)
    plot = numeric_plot(across, upright, 170, top)
    parts = [numeric_frame(plot, across, upright)]
    for kind, part in zip(VERDICTS, (ranked > 0, ranked < 0), strict=True):
        path = _area(plot, ranked, part)
        parts += [tag("path", d=path, fill_opacity=0.85, **fill(kind))] if path else []
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts, *zero_lines(plot))


def _counts(n: int) -> tuple[tuple[float, str], ...]:
    """Ticks at integers from 0 to n; the last one is n itself."""
    inner = [value for value, _ in axis("", [0.0, float(max(n, 1))], most=4).ticks if value.is_integer()]
    return *((value, f"{value:,.0f}") for value in inner if value < 0.88 * n), (float(max(n, 1)), f"{n:,}")


def _area(plot: Plot, ranked: Floats, part: Flags) -> str:
    """The outline of some columns between the curve and zero; empty if there are none."""
    n = len(ranked)
    steps = min(n, COLUMNS)
    picked = np.round(np.linspace(0, n - 1, steps)).astype(np.int64)
    there = np.flatnonzero(part[picked])
    if not len(there):
        return ""
    edges = plot.x.places(np.linspace(0, n, steps + 1))
    heights = plot.y.places(ranked[picked])
    zero = number(plot.y(0))
    path = [f"M{number(edges[there[0]])} {zero}"]
    for i in there.tolist():
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
    wide, high = (np.asarray(one, np.float64) for one in room)
    along = axis(x_label, extent([*(one.x for one in groups), *(one.x for one in lines), wide]), zero)
    ends = [end for one in bands for end in (one.low, one.high)]
    upright = axis(y_label, extent([*(one.y for one in groups), *(one.y for one in lines), *ends, high]), zero)
    keys = _keys([one.name for one in groups], alone=bool(lines))
    head, top = legend([*keys, *_line_keys(lines)], 2.0)
    plot = numeric_plot(along, upright, height, top)
    parts = [numeric_frame(plot, along, upright), *zero_lines(plot), *(_band(plot, one) for one in bands)]
    parts += [_path(plot, one) for one in lines]
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


def steps(
    about: About, lines: Sequence[Line], x_label: str, y_label: str, height: float = 240, room: Sequence[float] = ()
) -> Markup:
    """Step lines: each keeps its height until the next value. At most 400 points of a line are drawn.

    ``room`` has further values that the x axis must include, so that charts can be compared.
    """
    lines = [thinned(one) for one in lines]
    along = axis(x_label, [*extent([one.x for one in lines]), *room])
    upright = axis(y_label, extent([one.y for one in lines]), zero=True)
    head, top = legend(_line_keys(lines), 2.0)
    plot = numeric_plot(along, upright, height, top)
    parts = [numeric_frame(plot, along, upright), *zero_lines(plot), *(_path(plot, one, stepped=True) for one in lines)]
    return picture(about, WIDTH, plot.bottom + UNDER, head, *parts)


def thinned(one: Line, most: int = COLUMNS) -> Line:
    """The line with at most ``most`` of its points, evenly spaced, including the first and the last."""
    if len(one.x) <= most or len(one.x) != len(one.y):
        return one
    picked = np.round(np.linspace(0, len(one.x) - 1, most)).astype(np.int64)
    return replace(one, x=one.x[picked], y=one.y[picked])


def _path(plot: Plot, one: Line, stepped: bool = False) -> Markup:
    if len(one.x) != len(one.y):
        raise DataError(
            f"chart, line {one.name!r}: expected as many x values as y values, found {len(one.x)} and {len(one.y)}"
        )
    xs, ys = (np.round(scale.places(values), 1) for scale, values in ((plot.x, one.x), (plot.y, one.y)))
    words = [
        f"H{number(x)}V{number(y)}" if stepped else f"L{number(x)} {number(y)}" for x, y in zip(xs, ys, strict=True)
    ]
    start = f"M{number(xs[0])} {number(ys[0])}" if len(xs) else ""
    return tag("path", d=start + "".join(words[1:]), **stroke(one.series, one.width))


def _band(plot: Plot, one: Band) -> Markup:
    xs = np.round(plot.x.places(one.x), 1)
    low, high = (np.round(plot.y.places(values), 1) for values in (one.low, one.high))
    corners = [*zip(xs, high, strict=True), *zip(xs[::-1], low[::-1], strict=True)]
    path = "".join(f"{'L' if at else 'M'}{number(x)} {number(y)}" for at, (x, y) in enumerate(corners))
    return tag("path", d=f"{path}Z", fill_opacity=0.12, **fill(one.series))


def _keys(names: Sequence[str], kind: str = "mark", alone: bool = False) -> list[Key]:
    """The keys of the legend; none if there is only one series and ``alone`` is false."""
    return [Key(series, name, kind) for series, name in enumerate(names)] if alone or len(names) > 1 else []


def _line_keys(lines: Sequence[Line]) -> list[Key]:
    return [Key(one.series, one.name, "line") for one in lines if one.name]


def _row_plot(rows: Sequence[str], along: Axis, top: float, high: float, room: float = 0.0) -> Plot:
    """The plot area of a chart with named rows; a width of ``room`` is kept free at the right."""
    left = max([text_width(shortened(name, _LONGEST_LABEL)) for name in rows], default=0.0) + 10
    right = WIDTH - max(8.0, text_width(along.ticks[-1][1]) / 2 + 2, room)
    upper, lower = top + 6, top + 6 + high * len(rows)
    return Plot(
        left, upper, right, lower, Scale(along.low, along.high, left, right), Scale(len(rows) or 1, 0, lower, upper)
    )


def _row_names(plot: Plot, rows: Sequence[str]) -> list[Markup]:
    high = (plot.bottom - plot.top) / max(len(rows), 1)
    words = [(plot.top + (i + 0.5) * high + 4, shortened(name, _LONGEST_LABEL)) for i, name in enumerate(rows)]
    return [text(plot.left - 8, y, name, "end") for y, name in words]


def _upright_zero(plot: Plot) -> list[Markup]:
    within = plot.x.low <= 0 <= plot.x.high
    return [line(plot.x(0), plot.top, plot.x(0), plot.bottom, faint=False)] if within else []


def _value_text(value: float) -> str:
    text_ = f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 2 else f"{value:.3g}"
    return text_.replace("-", "\N{MINUS SIGN}")


def place_labels(plot: Plot, points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[Markup]:
    """A name beside each point: right, left, above, below or further away, at the place with the least overlap."""
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    placed = []
    for (x, y), name in zip(points, names, strict=True):
        if not name:
            continue
        boxes = _places(x, y, text_width(name, _LABEL_SIZE))
        best = min(boxes, key=lambda box: _covered(box, taken) + _outside(box, plot))
        taken.append(best)
        placed.append(text_over(best[0], best[3] - 3, name, _LABEL_SIZE))
    return placed


def _places(x: float, y: float, width: float) -> list[Box]:
    half, high = width / 2, _LABEL_SIZE + 2
    corners = [(x + _LABEL_AWAY, y - high / 2), (x - _LABEL_AWAY - width, y - high / 2)]
    for off in (_LABEL_AWAY, _LABEL_AWAY + high, _LABEL_AWAY + 2 * high):
        for left in (x - half, x + _LABEL_AWAY / 2, x - _LABEL_AWAY / 2 - width):
            corners += [(left, y - off - high), (left, y + off)]
    return [(left, top, left + width, top + high) for left, top in corners]


def _covered(box: Box, taken: Sequence[Box]) -> float:
    return sum(
        max(0.0, min(box[2], one[2]) - max(box[0], one[0])) * max(0.0, min(box[3], one[3]) - max(box[1], one[1]))
        for one in taken
    )


def _outside(box: Box, plot: Plot) -> float:
    """How far a box extends beyond the plot area, weighted more than an overlap with another box."""
    over = max(0.0, plot.left - box[0]) + max(0.0, box[2] - plot.right)
    return 100 * (over + max(0.0, plot.top - box[1]) + max(0.0, box[3] - plot.bottom))
