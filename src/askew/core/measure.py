"""A measure is a name, parameters and a cutoff. Two measures with the same canonical text are equal.

``Measure`` computes nothing. Families (see ``askew.measures``) compute the scores and define the parameters.
``Direction`` defines what "better" means.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from askew.core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


Value = str | int | float | bool
# One score, or the scores of many queries at once.
Scores = TypeVar("Scores", float, "npt.NDArray[np.float64]")

# Some programs that compute measures store integers in 32 bits, and a larger number would overflow there.
LARGEST = 2**31 - 1
_LONGEST = 20

_NAMED = re.compile(r"([A-Za-z_α][A-Za-z0-9_]*)\s*=")
_DIGITS = re.compile(r"\d+")
# A measure of the user may be named by its file: mine.py:Mine@10.
_MEASURE_NAME = re.compile(r"(?:[^\s'\"(),@]+\.py:)?[A-Za-z_α][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_BARE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@/+-]*")


Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)


class Direction(enum.Enum):
    """Which values of a score are better: higher, lower, or closer to zero."""

    UP = "up"
    DOWN = "down"
    ZERO = "zero"

    def gain(self, old: Scores, new: Scores) -> Scores:
        """How much better ``new`` is than ``old``, for one score or for an array of scores; positive is better."""
        if self is Direction.UP:
            return new - old
        if self is Direction.DOWN:
            return old - new
        return abs(old) - abs(new)

    def after(self, old: Scores, gain: Scores) -> Scores:
        """The score that is better than ``old`` by ``gain``; for ``ZERO``, the positive one of two such scores."""
        if self is Direction.UP:
            return old + gain
        return old - gain if self is Direction.DOWN else abs(old) - gain


@dataclass(frozen=True)
class Measure:
    """A measure such as ``ARaB(tf)@10``. Two measures with the same text are equal.

    ``family`` computes the measure (``askew.core.protocols.MeasureFamily``), if it cannot be found by the name.
    """

    name: str
    params: tuple[tuple[str, Value], ...] = ()
    cutoff: int | None = None
    positional: tuple[Value, ...] = ()
    family: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, family: Any) -> Measure:
        """The measure of an object with the measure protocol, or of its class: ``Measure.of(Mine()) @ 10``."""
        instance = family() if isinstance(family, type) else family
        return cls(instance.name, family=instance)

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read ``Name(value, key=value)@cutoff``."""
        return _Parser(text.strip()).measure()

    def __str__(self) -> str:
        return self._written(_show)

    @property
    def text(self) -> str:
        """The shortest text of the measure: ``ARaB(tf)@10``. Parsing it gives the same measure."""
        return self._written(_short)

    def _written(self, show: Callable[[Value], str]) -> str:
        inner = ",".join([*map(show, self.positional), *(f"{key}={show(value)}" for key, value in self.params)])
        cut = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{self.name}({inner}){cut}" if inner else f"{self.name}{cut}"

    def __call__(self, *positional: Value, **params: Value) -> Measure:
        """The measure with these parameters: ``ARaB("tf", sign="abs")``."""
        merged = {**dict(self.params), **params}
        return replace(self, positional=(*self.positional, *positional), params=tuple(sorted(merged.items())))

    def __matmul__(self, cutoff: int) -> Measure:
        """The measure of the top ``cutoff`` documents: ``nDCG @ 10``."""
        if isinstance(cutoff, bool) or not isinstance(cutoff, int) or not 1 <= cutoff <= LARGEST:
            raise ConfigError(f"measure {self.name}: the cutoff must be from 1 to {LARGEST}, found {cutoff!r}")
        return replace(self, cutoff=cutoff)

    def param(self, key: str, default: Value | None = None) -> Value | None:
        """The value of a parameter, or the default."""
        return dict(self.params).get(key, default)

    def with_params(self, params: Mapping[str, Value]) -> Measure:
        """The same measure with these parameters, in canonical (sorted) order."""
        return replace(self, params=tuple(sorted(params.items())), positional=())


def split_measures(text: str) -> list[str]:
    """Split ``"RR@10 ARaB(tf, sign=abs)@10"`` on blanks and commas outside brackets and quotes."""
    parts: list[str] = []
    depth, quote, start = 0, "", 0
    for i, char in enumerate(text + " "):
        if quote:
            quote = "" if char == quote else quote
        elif depth and char in "'\"":
            quote = char
        else:
            # An extra ')' stays in the text of its measure, and the parser of that measure reports its position.
            depth = max(0, depth + (char == "(") - (char == ")"))
        if depth == 0 and (char.isspace() or char == ","):
            parts.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        what = f"the quote {quote}" if quote else "a bracket"
        raise ConfigError(f"measure {text[start:].strip()!r}: {what} is not closed")
    return [part for part in parts if part]


@lru_cache(1024)
def column_of(text: str) -> str:
    """The name of a measure's column in every table, an identifier in SQL and Python: ``RR@10`` is ``RR_10``.

    The measure cannot be recovered from this name; the facts that come with a table have the text of each measure.
    """
    identifier = "".join(char if f"x{char}".isidentifier() else "_" for char in text)
    return "_".join(part for part in identifier.split("_") if part)


def old_column(text: str) -> str:
    """The column with the score of the original query: ``old_RR_10``."""
    return f"old_{column_of(text)}"


def new_column(text: str) -> str:
    """The column with the score of the reformulated query: ``new_RR_10``."""
    return f"new_{column_of(text)}"


def gain_column(text: str) -> str:
    """The column with the gain of the reformulated query over the original: ``gain_RR_10``."""
    return f"gain_{column_of(text)}"


def held_out_gain_column(text: str) -> str:
    """The column with the gain on data that was not used to select the pair: ``held_out_gain_RR_10``."""
    return f"held_out_{gain_column(text)}"


def pair_columns(text: str) -> tuple[str, str, str]:
    """The three columns of a measure in a table of pairs: old, new and gain."""
    return old_column(text), new_column(text), gain_column(text)


def check_columns(texts: Iterable[str]) -> None:
    """Raise ``ConfigError`` if two measures have the same column name. As in SQL, case does not matter."""
    texts_by_column: dict[str, str] = {}
    for text in texts:
        column = column_of(text)
        if (first := texts_by_column.get(column.casefold())) is not None:
            if first == text:
                raise ConfigError(f"measures: {text} is requested twice; request it only once")
            raise ConfigError(f"measures: {first} and {text} have the same column name {column}; leave one out")
        texts_by_column[column.casefold()] = text


def _short(value: Value) -> str:
    """A value, without quotes if it is parsed as the same text without them."""
    bare = isinstance(value, str) and _BARE.fullmatch(value) and not _NUMBER.fullmatch(value)
    return str(value) if bare and value not in ("True", "False") else _show(value)


def _show(value: Value) -> str:
    if not isinstance(value, str):
        return repr(value)
    return f'"{value}"' if "'" in value else f"'{value}'"


class _Parser:
    """A small hand-written parser. Measure texts come from users and are never given to ``eval``."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, problem: str) -> ConfigError:
        rest = repr(self.text[self.at :][:20]) if self.at < len(self.text) else "the end"
        where = f"{problem} at character {self.at + 1}, found {rest}"
        return ConfigError(f"measure {self.text!r}: {where}; write Name(key=value)@cutoff, such as ARaB(tf)@10")

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.fail(f"expected {expected}")
        self.at = match.end()
        return match.group()

    def peek(self, char: str) -> bool:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        if self.text.startswith(char, self.at):
            self.at += 1
            return True
        return False

    def measure(self) -> Measure:
        name = self.take(_MEASURE_NAME, "a measure name")
        positional: list[Value] = []
        params: dict[str, Value] = {}
        inside = self.peek("(") and not self.peek(")")
        while inside:
            self.peek("\0")  # skips blanks
            named = _NAMED.match(self.text, self.at)
            if named is None:
                positional.append(self.value())
            elif named[1] in params:
                raise ConfigError(f"measure {self.text!r}: the parameter {named[1]!r} is given twice")
            else:
                self.at = named.end()
                params[named[1]] = self.value()
            inside = not self.peek(")")
            if inside and not self.peek(","):
                raise self.fail("expected ',' or ')'")
        cutoff = None
        if self.peek("@"):
            digits = self.take(_DIGITS, "a whole number after '@'")
            if len(digits) > _LONGEST or not 1 <= int(digits) <= LARGEST:
                raise ConfigError(f"measure {self.text!r}: the cutoff must be from 1 to {LARGEST}, found {digits[:40]}")
            cutoff = int(digits)
        if self.at != len(self.text):
            raise self.fail("expected the end of the measure")
        return Measure(name, tuple(sorted(params.items())), cutoff, tuple(positional))

    def value(self) -> Value:
        self.peek("\0")
        if self.at < len(self.text) and self.text[self.at] in "'\"":
            quote = self.text[self.at]
            end = self.text.find(quote, self.at + 1)
            if end < 0:
                raise self.fail(f"expected a closing {quote}")
            quoted = self.text[self.at + 1 : end]
            self.at = end + 1
            return quoted
        number = _NUMBER.match(self.text, self.at)
        bare = _BARE.match(self.text, self.at)
        if number is not None and (bare is None or bare.end() <= number.end()):
            self.at = number.end()
            text = number.group()
            # Python limits the number of digits of an integer. A longer number is read as a float, maybe as infinity.
            whole = len(text) <= _LONGEST and re.fullmatch(r"[+-]?\d+", text)
            return int(text) if whole else float(text)
        word = self.take(_BARE, "a value")
        return {"True": True, "False": False}.get(word, word)
