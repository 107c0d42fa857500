"""Criteria that users write, such as ``refined > original and refined == 1``, parsed here and never given to ``eval``.

    criterion  = all-of { "or" all-of }          sum     = product { ("+" | "-") product }
    all-of     = negation { "and" negation }     product = signed { ("*" | "/") signed }
    negation   = { "not" } comparison            signed  = { "-" | "+" } atom
    comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
    atom       = number | name | ("abs" | "min" | "max") "(" sum { "," sum } ")" | "(" criterion ")"

Names are ``refined`` and ``original``, or RePair's ``refined_q_metric`` and ``original_q_metric``. Precedence is
Python's; comparisons cannot be chained. Values are numbers (64-bit floats) or truth values, and their types are checked
before the computation. A criterion is parsed into steps of a small stack machine that computes with whole columns.

A comparison with an undefined number (a missing score, a division by zero) is unknown. ``true or unknown`` is true and
``false and unknown`` is false. A criterion with an unknown result is not met.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from askew.core.errors import ConfigError
from askew.core.ranking import Flags, Floats

# The criteria of RePair's boxes (sets of selected pairs): gold, platinum and diamond as in its distributed files, and
# Eq. 1 of the RePair paper, which requires a strict improvement.
CRITERIA = {
    "gold": "refined >= original and refined > 0",
    "platinum": "refined > original",
    "diamond": "refined > original and refined == 1",
    "eq1": "refined > original",
}
LONGEST, DEEPEST = 1000, 30
NAMES = {"refined": "refined", "refined_q_metric": "refined", "original": "original", "original_q_metric": "original"}
_NUMBER, _TRUTH = "a number", "true or false"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign><=|>=|==|!=|[-+*/()<>,])|(?P<other>\S))"
)
_Found = TypeVar("_Found")


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Truth(NamedTuple):
    """A column of truth values: where it is true and where it is false. If neither, the value is unknown."""

    yes: Any
    no: Any


def _not(found: _Truth) -> _Truth:
    return _Truth(found.no, found.yes)


def _and(left: _Truth, right: _Truth) -> _Truth:
    return _Truth(np.logical_and(left.yes, right.yes), np.logical_or(left.no, right.no))


def _or(left: _Truth, right: _Truth) -> _Truth:
    return _Truth(np.logical_or(left.yes, right.yes), np.logical_and(left.no, right.no))


def _compare(operator: Callable[[Any, Any], Any], left: Any, right: Any) -> _Truth:
    known = ~(np.isnan(left) | np.isnan(right))
    found = operator(left, right)
    return _Truth(found & known, ~found & known)


def _divide(left: Any, right: Any) -> Any:
    return np.divide(left, np.where(np.equal(right, 0), np.nan, right))


# The precedence of each operator, and the function that it applies.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT = range(6)
_COMPARE = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_OPERATORS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "or": (_OR, _or),
    "and": (_AND, _and),
    **{sign: (_COMPARISON, partial(_compare, operator)) for sign, operator in _COMPARE.items()},
    "+": (_SUM, np.add),
    "-": (_SUM, np.subtract),
    "*": (_PRODUCT, np.multiply),
    "/": (_PRODUCT, _divide),
}
_FUNCTIONS = {"abs": np.abs, "min": np.minimum, "max": np.maximum}
# A number, a name, or a function with the number of values that it takes from the stack.
_Step = float | str | tuple[Callable[..., Any], int]


@dataclass(frozen=True)
class Criterion:
    """A criterion on a refined and an original score. Two criteria with the same text are equal."""

    text: str
    steps: tuple[_Step, ...] = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Parse a criterion. A ``ConfigError`` says what was expected, and at which character."""
        return cls(text, tuple(_CriteriaParser(text).criterion()))

    def met(self, refined: Floats, original: Floats) -> Flags:
        """Whether each pair of scores meets the criterion."""
        columns = {"refined": np.asarray(refined, np.float64), "original": np.asarray(original, np.float64)}
        stack: list[Any] = []
        with np.errstate(all="ignore"):
            for step in self.steps:
                if isinstance(step, tuple):
                    function, count = step
                    stack[-count:] = [function(*stack[-count:])]
                else:
                    stack.append(columns[step] if isinstance(step, str) else step)
        return np.array(np.broadcast_to(stack.pop().yes, columns["refined"].shape))


class _CriteriaParser:
    """Precedence climbing. Methods add steps and return the type of the result: a number or a truth value."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ConfigError(f"criterion: expected at most {LONGEST} characters, found {len(text)}")
        self.text, self.at, self.depth = text, 0, 0
        self.steps: list[_Step] = []
        self.tokens = self._tokens()

    def criterion(self) -> list[_Step]:
        found, end = self._expression(_OR), self._next()
        if end.kind != "end":
            raise self._fail(
                "expected the end" + (" (join comparisons with 'and')" if end.text in _COMPARE else ""), end
            )
        self._want(_TRUTH, found, self.tokens[0])
        return self.steps

    def _tokens(self) -> list[_Token]:
        found = []
        for match in _TOKEN.finditer(self.text.rstrip()):
            kind = str(match.lastgroup)
            found.append(_Token(kind, match[kind], match.start(kind)))
            if kind == "other":
                raise self._fail("expected a number, a name, an operator such as ==, or a bracket", found[-1])
            if kind == "number" and (glued := re.match(r"[A-Za-z_.]", self.text[match.end() :])):
                raise self._fail("expected a space after the number", _Token("other", glued.group(), match.end()))
        return [*found, _Token("end", "", len(self.text))]

    def _fail(self, problem: str, token: _Token, found: str = "") -> ConfigError:
        found = found or (repr(token.text) if token.text else "the end")
        shown = self.text if len(self.text) <= 100 else f"{self.text[:100]}..."
        return ConfigError(f"criterion {shown!r}: {problem} at character {token.at + 1}, found {found}")

    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, *texts: str) -> str:
        """Consume the next token and return its text if it is one of these, otherwise return an empty text."""
        text = self._next().text
        if text not in texts:
            return ""
        self.at += 1
        return text

    def _want(self, kind: str, found: str, token: _Token) -> None:
        if kind != found:
            raise self._fail(f"expected {kind} beginning", token)

    def _operand(self, kind: str, least: int) -> None:
        start = self._next()
        self._want(kind, self._expression(least), start)

    def _expression(self, least: int) -> str:
        """Parse an expression of operators with at least this precedence."""
        start, most = self._next(), _PRODUCT
        if least <= _NOT and start.text == "not":
            found, most = self._negation(), _AND
        else:
            found = self._signed()
        while self._next().text in _OPERATORS:
            level, apply = _OPERATORS[self._next().text]
            if not least <= level <= most:
                break
            kind = _TRUTH if level <= _AND else _NUMBER
            self._want(kind, found, start)
            self.at += 1
            self._operand(kind, level + 1)
            self.steps.append((apply, 2))
            if level <= _COMPARISON:
                found, most = _TRUTH, min(level, _AND)
        return found

    def _negation(self) -> str:
        count = 0
        while self._take("not"):
            count += 1
        self._operand(_TRUTH, _COMPARISON)
        self.steps += [(_not, 1)] * (count % 2)
        return _TRUTH

    def _signed(self) -> str:
        signs = ""
        while sign := self._take("-", "+"):
            signs += sign
        start, found = self._next(), self._atom()
        if signs:
            self._want(_NUMBER, found, start)
        self.steps += [(np.negative, 1)] * (signs.count("-") % 2)
        return found

    def _atom(self) -> str:
        token = self._next()
        if token.text == "(":
            return self._inside(partial(self._expression, _OR), "')'")
        self.at += 1
        if token.kind == "number":
            value = float(token.text)
            if not math.isfinite(value):
                raise self._fail("expected a finite number", token)
            self.steps.append(value)
        elif token.text in _FUNCTIONS:
            self._call(token)
        elif token.text in NAMES:
            self.steps.append(NAMES[token.text])
        else:
            known = ", ".join([*NAMES, *_FUNCTIONS])
            raise self._fail(f"expected a number, '(', 'not' or one of the names {known}", token)
        return _NUMBER

    def _inside(self, part: Callable[[], _Found], end: str) -> _Found:
        """Parse a part in brackets."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._fail(f"expected at most {DEEPEST} nested brackets", self._next())
        self.at += 1
        found = part()
        if not self._take(")"):
            raise self._fail(f"expected {end}", self._next())
        self.depth -= 1
        return found

    def _call(self, name: _Token) -> None:
        if self._next().text != "(":
            raise self._fail(f"expected '(' after {name.text}", self._next())
        count = self._inside(self._arguments, "',' or ')'")
        if name.text == "abs" and count != 1:
            raise self._fail("expected exactly one value in abs(...)", name, str(count))
        if name.text != "abs" and count < 2:
            raise self._fail(f"expected at least two values in {name.text}(...)", name, str(count))
        self.steps += [(np.abs, 1)] if count == 1 else [(_FUNCTIONS[name.text], 2)] * (count - 1)

    def _arguments(self) -> int:
        count = 0
        while not count or self._take(","):
            self._operand(_NUMBER, _SUM)
            count += 1
        return count
