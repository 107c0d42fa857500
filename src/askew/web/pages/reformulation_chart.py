"""A scatter plot of the reformulations of a query: lean on the x axis, effectiveness on the y axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from askew.app.explore.answers import Alternatives, Variant
from askew.publish.page.axes import axis, text_width
from askew.publish.page.frame import UNDER, About, Plot, line, numeric_frame, numeric_plot, picture, text
from askew.publish.page.frame import mark as shape
from askew.web.markup import Markup, element, tag

# The shape, size and label of points. Group colors are not used for points.
_KINDS = {"asked": (3, 7.0, "original query"), "front": (2, 6.0, "Pareto-optimal"), "rest": (0, 5.0, "others")}
_HEIGHT, _LEGEND = 250, 22.0
Link = Callable[[Variant], str]
Spots = Mapping[str, tuple[float, float]]


def scatter(found: Alternatives, link: Link, label: str) -> Markup:
    """Draw the chart. If lean is signed, the middle is balance. ``label`` is the label of the y axis."""
    every = (*found.candidates, found.original)
    spots = {one.variant_id: place for one in every if (place := _place(found, one)) is not None}
    signed, groups = found.setting.signed, found.setting.groups
    widest = max((abs(x) for x, _ in spots.values()), default=1.0) or 1.0
    sides = f"← {groups[0]} · {found.lean} · {groups[-1]} →"
    plain = f"{found.lean} ({found.better[found.lean]} is better)"
    across = axis(sides, [-widest, widest]) if signed else axis(plain, [x for x, _ in spots.values()], zero=True)
    upright = axis(label, [y for _, y in spots.values()], zero=True, most=5)
    plot = numeric_plot(across, upright, _HEIGHT, _LEGEND)
    rest, front = ([one for one in found.candidates if one.front is wanted] for wanted in (False, True))
    drawn = [
        *([line(plot.x(0), plot.top, plot.x(0), plot.bottom, faint=False)] if signed else []),
        _points(plot, found, spots, "rest", rest, link),
        _points(plot, found, spots, "front", front, link),
        _points(plot, found, spots, "asked", [found.original], None),
    ]
    about = About("candidates", "Reformulations by effectiveness and lean", _told(found))
    return picture(about, 460, plot.bottom + UNDER, _legend(), numeric_frame(plot, across, upright), *drawn)


def _place(found: Alternatives, one: Variant) -> tuple[float, float] | None:
    x, y = one.values.get(found.lean), one.values.get(found.effectiveness)
    return None if x is None or y is None else (x, y)


def _points(
    plot: Plot, found: Alternatives, spots: Spots, kind: str, chosen: Sequence[Variant], link: Link | None
) -> Markup:
    number, size, _ = _KINDS[kind]
    drawn = []
    for one in chosen:
        if one.variant_id not in spots:
            continue
        x, y = spots[one.variant_id]
        words = f"{one.text}: {found.effectiveness} {y:.3f}, {found.lean} {x:+.3f}"
        inner = [tag("title", words), shape(number, plot.x(x), plot.y(y), size)]
        if link is None:
            drawn.append(tag("g", *inner))
        else:
            drawn.append(
                element("a", *inner, href=link(one), class_="point", data_key=one.variant_id, aria_label=words)
            )
    return tag("g", *drawn, class_=f"points-{kind}")


def _legend() -> Markup:
    parts, x = [], 6.0
    for kind, (number, size, words) in _KINDS.items():
        parts += [tag("g", shape(number, x + 4, 9, size), class_=f"points-{kind}"), text(x + 16, 13, words)]
        x += 16 + text_width(words) + 18
    return tag("g", *parts)


def _told(found: Alternatives) -> str:
    front = sum(one.front for one in found.candidates)
    return (
        f"{len(found.candidates)} reformulations, {front} of them Pareto-optimal. Across: {found.lean}. "
        f"Up: {found.effectiveness}. {found.setting.sign} The table has the same values."
    )
