"""The chart of the deciding measure of lean: how each result changes its value, the final value, and typical values."""

from __future__ import annotations

from collections.abc import Sequence

from askew.app.explore.answers import Setting
from askew.app.explore.leaning import LeanPicture
from askew.app.explore.reasons import CountedPart
from askew.publish.page import numerals as n
from askew.publish.page.axes import Axis, Scale, tick_step, tick_text
from askew.publish.page.frame import LINE, UNDER, WIDTH, About, Plot, below, line, picture, text
from askew.publish.page.frame import mark as shape
from askew.web.markup import Markup, tag
from askew.web.pages import parts as p

_LEFT, _RIGHT, _STEP = 26.0, WIDTH - 14.0, 13.0
_DIAMOND = 3


def lean_picture(one: LeanPicture, setting: Setting, name: str = "lean") -> Markup:
    """Draw the value from rank to rank, top to bottom: left of balance is the first group, right of it the last."""
    top = LINE * 1.7
    bottom = top + _STEP * (len(one.running) + 1)
    plot = Plot(_LEFT, top, _RIGHT, bottom, Scale(*one.scale, _LEFT, _RIGHT), Scale(0, 1, bottom, top))
    drawn = [*_typical(one, plot), *_ranks(one, plot), line(plot.x(one.best), top, plot.x(one.best), bottom, False)]
    drawn += [*_steps(one, setting, plot), _marker(one, plot), _sides(setting, plot), below(plot, _axis(one))]
    about = About(name, f"{one.measure}, result by result", _described(one))
    return tag("div", picture(about, WIDTH, bottom + UNDER, *drawn), class_="chart lean-picture")


def _axis(one: LeanPicture) -> Axis:
    low, high = one.scale
    step = tick_step(low, high)
    count = round((high - low) / step)
    ticks = tuple((low + place * step, tick_text(low + place * step, step)) for place in range(count + 1))
    return Axis(one.measure, low, high, ticks)


def _typical(one: LeanPicture, plot: Plot) -> list[Markup]:
    """Draw the range of nine in ten queries, the range of the middle half, and the median."""
    if one.typical is None:
        return []
    low, lower, median, upper, high = (_at(plot, value) for value in one.typical.quantiles)
    tall = plot.bottom - plot.top
    return [
        tag("rect", x=low, y=plot.top, width=max(high - low, 1), height=tall, class_="typical-most"),
        tag("rect", x=lower, y=plot.top, width=max(upper - lower, 1), height=tall, class_="typical-half"),
        tag("line", x1=median, y1=plot.top, x2=median, y2=plot.bottom, class_="typical-middle"),
    ]


def _at(plot: Plot, value: float) -> float:
    """Return the x coordinate of a value, limited to the scale."""
    return plot.x(min(max(value, plot.x.low), plot.x.high))


def _ranks(one: LeanPicture, plot: Plot) -> list[Markup]:
    every = len(one.running)
    return [text(2, _row(plot, rank) + 4, str(rank), size=10.0) for rank in range(1, every + 1)
            if rank in (1, every) or rank % 5 == 0]  # fmt: skip


def _row(plot: Plot, rank: int) -> float:
    return plot.top + _STEP * (rank - 0.5)


def _steps(one: LeanPicture, setting: Setting, plot: Plot) -> list[Markup]:
    """Draw a line from rank to rank, in the color of the group that a result moves the value toward."""
    x, y, before = _at(plot, one.best), plot.top, one.best
    drawn = []
    for rank, value in enumerate(one.running, 1):
        if value is None:
            continue
        to = _at(plot, value), _row(plot, rank)
        drawn.append(tag("line", x1=x, y1=y, x2=to[0], y2=to[1], class_=_kind(before, value, setting)))
        told = f"with {rank} result{'s' if rank > 1 else ''}: {n.mean(value, 3)}"
        drawn.append(tag("g", tag("title", told), tag("circle", cx=to[0], cy=to[1], r=2.6, class_="step-dot")))
        x, y, before = *to, value
    return drawn


def _kind(before: float, value: float, setting: Setting) -> str:
    if not setting.signed or value == before:
        return "step"
    return f"step stroke-{p.color_of(len(setting.groups) - 1 if value > before else 0)}"


def _marker(one: LeanPicture, plot: Plot) -> Markup:
    if one.value is None:
        return Markup()
    x, y = _at(plot, one.value), plot.bottom
    words = n.mean(one.value, 3)
    end = "end" if x > (plot.left + plot.right) / 2 else "start"
    label = text(x + (-10 if end == "end" else 10), y - 5, words, end)
    return tag("g", shape(_DIAMOND, x, y, 6.5), label, class_="lean-marker")


def _sides(setting: Setting, plot: Plot) -> Markup:
    if not setting.signed:
        return Markup()
    left, right = setting.groups[0], setting.groups[-1]
    y = plot.top - LINE * 0.6
    return tag("g", text(plot.left, y, f"← {left}"), text(plot.right, y, f"{right} →", "end"))


def _described(one: LeanPicture) -> str:
    steps = ", ".join(n.mean(value, 3) for value in one.running)
    typical = ""
    if one.typical is not None:
        low, high = one.typical.quantiles[0], one.typical.quantiles[-1]
        typical = (
            f" For nine in ten of {one.typical.queries:,} queries, {one.measure} is between {n.mean(low, 3)} and "
            f"{n.mean(high, 3)}."
        )
    return f"{one.measure} is {n.mean(one.value, 3)}. With one result, two and so on: {steps}.{typical}"


def picture_note(pictures: Sequence[LeanPicture | None]) -> Markup:
    """Explain the chart and its shaded ranges."""
    one = next((one for one in pictures if one is not None and one.typical is not None), None)
    if one is None or one.typical is None:
        return Markup()
    words = (
        "Each line shows how one result changes the value of the measure; the diamond is the final value. The shaded "
        f"range contains the final values of nine in ten of {one.typical.queries:,} queries of this collection. The "
        "darker range contains the middle half of these values. The scale is the same for all queries."
    )
    return tag("p", words, class_="note")


def parts_line(parts: Sequence[CountedPart], measure: str | None) -> Markup:
    """State which shares of the words that a measure counts are off topic and on topic."""
    if not parts or measure is None:
        return Markup()
    told = ", ".join(f"about {one.share:.0%} are {one.part}" for one in parts)
    words = (
        f"Of the words that {measure} counts, {told}. These shares are estimated with small models and may be off by "
        "up to 16 percentage points. In documents that are about the query, the models do not distinguish stereotypes "
        "from other words."
    )
    return tag("p", words, class_="note")
