"""Scales from numbers to positions in a picture, and axes with ticks at round numbers."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from askew.core.errors import DataError
from askew.core.ranking import Floats

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
    found = [*values, *([0.0] if zero else [])]
    if not all(map(math.isfinite, found)):
        raise DataError(
            f"chart, {label!r}: expected finite numbers, found infinite or missing numbers; leave these numbers out "
            "and say how many were left out"
        )
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
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
    return text.replace("-", "\N{MINUS SIGN}") if float(text.replace(",", "")) else text.lstrip("-")


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
