"""Format numbers for readers: a dash for a missing number, a typographic minus sign for a negative one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from askew.core.figures import FEWEST

NONE = "–"
_MINUS = "\N{MINUS SIGN}"


def count(value: float | None) -> str:
    """A whole number, in groups of three."""
    return NONE if _absent(value) else f"{value:,.0f}".replace("-", _MINUS)


def mean(value: float | None, digits: int = 4) -> str:
    """A mean of scores."""
    return NONE if value is None or _absent(value) else _signless(f"{value:,.{digits}f}")


def change(value: float | None) -> str:
    """A change in percent, always with its sign."""
    return NONE if value is None or _absent(value) else _signless(f"{value:+,.1f}", "+0.0") + "%"


def change_interval(low: float | None, high: float | None) -> str:
    """The ends of an interval of a change in percent."""
    return NONE if low is None or high is None else f"[{change(low)[:-1]}, {change(high)[:-1]}]"


def interval_of(row: Mapping[str, Any], n: str = "queries") -> str:
    """The interval of the change in a row of a table; a dash if there are too few queries."""
    return NONE if row[n] < FEWEST else change_interval(row["low"], row["high"])


def share(value: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return NONE if value is None or _absent(value) else f"{100 * value:.{digits}f}%"


def share_interval(low: float | None, high: float | None) -> str:
    """The ends of an interval of a share, in percent."""
    return NONE if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"


def p_value(value: float | None) -> str:
    """A p-value."""
    if value is None or _absent(value):
        return NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _absent(value: float | None) -> bool:
    return value is None or not math.isfinite(value)


def _signless(text: str, zero: str = "") -> str:
    """The text of a number; zero has no minus sign."""
    if float(text.replace(",", "")) == 0:
        return zero or text.lstrip("-")
    return text.replace("-", _MINUS)
