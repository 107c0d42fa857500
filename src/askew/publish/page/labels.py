"""Names beside points: each where it covers least of what is there already."""

from __future__ import annotations

from collections.abc import Sequence

from askew.publish.page.axes import text_width
from askew.publish.page.frame import Plot, text_over
from askew.publish.page.markup import Markup

_SIZE = 12.0
_AWAY = 7.0
Box = tuple[float, float, float, float]


def place_labels(plot: Plot, points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[Markup]:
    """A name beside each point: right, left, above, below or further off, wherever it overlaps least."""
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    placed = []
    for (x, y), name in zip(points, names, strict=True):
        boxes = _places(x, y, text_width(name, _SIZE))
        best = min(boxes, key=lambda box: _covered(box, taken) + _outside(box, plot))
        taken.append(best)
        placed.append(text_over(best[0], best[3] - 3, name, _SIZE))
    return placed


def _places(x: float, y: float, width: float) -> list[Box]:
    half, high = width / 2, _SIZE + 2
    corners = [(x + _AWAY, y - high / 2), (x - _AWAY - width, y - high / 2)]
    for off in (_AWAY, _AWAY + high, _AWAY + 2 * high):
        for left in (x - half, x + _AWAY / 2, x - _AWAY / 2 - width):
            corners += [(left, y - off - high), (left, y + off)]
    return [(left, top, left + width, top + high) for left, top in corners]


def _covered(box: Box, taken: Sequence[Box]) -> float:
    return sum(
        max(0.0, min(box[2], one[2]) - max(box[0], one[0])) * max(0.0, min(box[3], one[3]) - max(box[1], one[1]))
        for one in taken
    )


def _outside(box: Box, plot: Plot) -> float:
    """How far it leaves the field, weighed so that covering another name is the lesser evil."""
    over = max(0.0, plot.left - box[0]) + max(0.0, box[2] - plot.right)
    return 100 * (over + max(0.0, plot.top - box[1]) + max(0.0, box[3] - plot.bottom))
