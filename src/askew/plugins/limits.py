"""Limits on the values of a setting, as part of its annotation. The registry checks them before it builds a plugin.

``def ranker(index: Path, b: Share = 0.4)`` refuses b = 1.5 when a recipe is read, and not when the first query is
searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable


@runtime_checkable
class Limit(Protocol):
    """A condition on a value; its text completes the sentence "the setting should be ..."."""

    def allows(self, value: Any) -> bool:
        """Whether the value meets the condition."""


@dataclass(frozen=True)
class Between:
    """Finite numbers from ``low`` to ``high``, both included; with ``above``, ``low`` is not allowed."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def allows(self, value: Any) -> bool:
        """Whether the number is in the range."""
        return math.isfinite(value) and self.low <= value <= self.high and not (self.above and value == self.low)

    def __str__(self) -> str:
        if self.above:
            return f"above {self.low:g}" + (f" and at most {self.high:g}" if math.isfinite(self.high) else "")
        if math.isfinite(self.high):
            return f"from {self.low:g} to {self.high:g}"
        return f"{self.low:g} or more" if math.isfinite(self.low) else "a finite number"


@dataclass(frozen=True)
class OneOf:
    """One of several texts; a function instead of a list is called only when the texts are needed."""

    choices: Sequence[str] | Callable[[], Sequence[str]]

    def _known(self) -> Sequence[str]:
        return self.choices() if callable(self.choices) else self.choices

    def allows(self, value: Any) -> bool:
        """Whether the text is one of the allowed texts."""
        return value in self._known()

    def __str__(self) -> str:
        return f"one of {', '.join(self._known())}"


Count = Annotated[int, Between(1)]
Share = Annotated[float, Between(0, 1)]
NotNegative = Annotated[float, Between(0)]
Positive = Annotated[float, Between(0, above=True)]
