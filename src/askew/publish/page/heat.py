"""A heat map of a square matrix of agreement from -1 to 1; each cell shows its value as a tooltip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from askew.core.ranking import Floats
from askew.publish.page.axes import FONT_SIZE, shortened, text_width
from askew.publish.page.frame import COLORS, FAINT, INK, About, line, picture, text
from askew.publish.page.markup import Markup, number, tag

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
    names = [shortened(one.name, _LONGEST) for one in headings]
    left = max(text_width(name, _LETTER_SIZE) for name in names) + 12
    above = max(text_width(one.short, _LETTER_SIZE) for one in headings)
    slanted = max(len(one.short) for one in headings) > 4
    top = _LEGEND_HEIGHT + (0.9 if slanted else 1.05) * above + 10
    parts = [_legend(what)]
    for place, (one, name) in enumerate(zip(headings, names, strict=True)):
        middle = (place + 0.5) * cell
        parts.append(text(left - 6, top + middle + 4, name, "end", _LETTER_SIZE))
        parts.append(_upright(left + middle + 4, top - 6, one.short, slanted))
    for row in range(size):
        parts += [_cell(headings, values, row, column, left, top, cell) for column in range(size)]
    for place in range(1, size):
        if headings[place].group != headings[place - 1].group:
            x, y = left + place * cell, top + place * cell
            parts += [line(2, y, left + size * cell, y, False), line(x, top, x, top + size * cell, False)]
    # Names over the columns are slanted to the right.
    width = max(left + size * cell + 8 + 0.5 * above, _legend_width(what))
    return picture(about, width, top + size * cell + 8, *parts)


def _cell(
    headings: Sequence[Heading], values: Floats, row: int, column: int, left: float, top: float, cell: float
) -> Markup:
    value = float(values[row, column])
    said = UNDEFINED if math.isnan(value) else _two_places(value)
    x, y = left + column * cell, top + row * cell
    title = tag("title", f"{headings[row].name} / {headings[column].name}: {said}")
    box = tag("rect", title, x=x, y=y, width=cell - 1, height=cell - 1, fill=color_of(value))
    if cell < 2 * _LETTER_SIZE:
        return box
    # A cell has the same color on a dark page, so the color of its text is fixed too.
    ink = max(("#ffffff", INK), key=lambda letters: _contrast(letters, color_of(value)))
    words = "\N{EN DASH}" if math.isnan(value) else _two_places(value)
    inside = tag("text", words, x=x + (cell - 1) / 2, y=y + cell / 2 + 3, text_anchor="middle", font_size=10, fill=ink,
                 pointer_events="none")  # fmt: skip
    return Markup(box + inside)


def color_of(value: float) -> str:
    """The color of a value from -1 to 1; gray for NaN."""
    if math.isnan(value):
        return FAINT
    share = min(abs(value), 1.0)
    ends = zip(_parts(_MIDDLE), _parts(_HIGH if value > 0 else _LOW), strict=True)
    return "#" + "".join(f"{round(start + share * (end - start)):02x}" for start, end in ends)


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of two colors as defined by the accessibility guidelines WCAG: 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    shares = [part / 255 for part in _parts(color)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _parts(color: str) -> list[int]:
    return [int(color[at : at + 2], 16) for at in (1, 3, 5)]


def _upright(x: float, y: float, words: str, slanted: bool) -> Markup:
    """A text that is rotated to read upward."""
    turned = f"rotate({-60 if slanted else -90} {number(x)} {number(y)})"
    return tag("text", words, x=x, y=y, font_size=_LETTER_SIZE, transform=turned, class_="ink", fill=INK)


def _legend(what: str) -> Markup:
    """A strip of colors with numbers and a label, and the color of undefined values."""
    parts = []
    for step in range(_LEGEND_STEPS):
        value = -1 + 2 * step / (_LEGEND_STEPS - 1)
        parts.append(tag("rect", x=_LEGEND_LEFT + 8.0 * step, y=4, width=8.0, height=12, fill=color_of(value)))
    for value in (-1, 0, 1):
        parts.append(text(_LEGEND_LEFT + 4 + 8.0 * 10 * (value + 1), 30, _whole(value), "middle", _LETTER_SIZE))
    after = _LEGEND_LEFT + 8.0 * _LEGEND_STEPS + 10
    parts.append(text(after, 15, what, size=_LETTER_SIZE))
    parts.append(tag("rect", x=after, y=21, width=12, height=12, fill=FAINT))
    return tag("g", *parts, text(after + 17, 31, UNDEFINED, size=_LETTER_SIZE))


def _legend_width(what: str) -> float:
    return _LEGEND_LEFT + 8.0 * _LEGEND_STEPS + 10 + max(text_width(what, FONT_SIZE), 120)


def _whole(value: int) -> str:
    return str(value).replace("-", "\N{MINUS SIGN}")


def _two_places(value: float) -> str:
    said = f"{value:.2f}"
    return ("0.00" if said == "-0.00" else said).replace("-", "\N{MINUS SIGN}")
