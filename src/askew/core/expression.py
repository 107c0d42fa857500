"""Criteria that users write, such as ``refined > original and refined == 1``, read by hand and never evaluated.

    criterion  = all-of { "or" all-of }          sum     = product { ("+" | "-") product }
    all-of     = negation { "and" negation }     product = signed { ("*" | "/") signed }
    negation   = { "not" } comparison            signed  = { "-" | "+" } atom
    comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
    atom       = number | name | ("abs" | "min" | "max") "(" sum { "," sum } ")" | "(" criterion ")"

Names are ``refined`` and ``original``, also as published: ``refined_q_metric`` and ``original_q_metric``. Precedence is
Python's; comparisons cannot be chained. Everything is numbers (64-bit floats) or truth values, told apart before
anything is computed. A criterion is read into steps for a small stack machine over whole columns.

Where a number is undefined (a missing score, a division by zero) a comparison with it is neither true nor false;
``true or unknown`` is true, ``false and unknown`` is false, and what is unknown in the end is not met.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from askew.core.errors import ConfigError
from askew.core.ranking import Flags, Floats

# RePair's boxes by name: as its distributed files have them, and Eq. 1 of the paper, which is strict.
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
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign><=|>=|==|!=|[-+*/()<>,]))"
)
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_FUNCTIONS = {"abs": (1, 1), "min": (2, LONGEST), "max": (2, LONGEST)}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Truth(NamedTuple):
    """Where something is true and where it is false; where neither, it is unknown."""

    yes: Any
    no: Any


class _Step(NamedTuple):
    what: str
    value: Any = None


@dataclass(frozen=True)
class Criterion:
    """A criterion on a refined and an original score; two with the same text are the same."""

    text: str
    steps: tuple[_Step, ...]

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Read a criterion; ConfigError says what was expected, and at which character."""
        return cls(text, tuple(_Parser(text).criterion()))

    def met(self, refined: Floats, original: Floats) -> Flags:
        """Where the criterion is met."""
        columns = {"refined": np.asarray(refined, np.float64), "original": np.asarray(original, np.float64)}
        stack: list[Any] = []
        with np.errstate(all="ignore"):
            for step in self.steps:
                _run(step, stack, columns)
        return np.array(np.broadcast_to(stack.pop().yes, columns["refined"].shape))


def _run(step: _Step, stack: list[Any], columns: dict[str, Floats]) -> None:
    if step.what == "number":
        stack.append(step.value)
    elif step.what == "name":
        stack.append(columns[step.value])
    elif step.what == "call":
        name, count = step.value
        arguments = [stack.pop() for _ in range(count)]
        stack.append(_call(name, arguments))
    elif step.what == "not":
        found = stack.pop()
        stack.append(_Truth(found.no, found.yes))
    elif step.what == "minus":
        stack.append(np.negative(stack.pop()))
    else:
        right, left = stack.pop(), stack.pop()
        stack.append(_combine(step.what, left, right))


def _call(name: str, arguments: list[Any]) -> Any:
    if name == "abs":
        return np.abs(arguments[0])
    return reduce(np.minimum if name == "min" else np.maximum, arguments)


def _combine(what: str, left: Any, right: Any) -> Any:
    if what == "and":
        return _Truth(np.logical_and(left.yes, right.yes), np.logical_or(left.no, right.no))
    if what == "or":
        return _Truth(np.logical_or(left.yes, right.yes), np.logical_and(left.no, right.no))
    if what in _COMPARE:
        known = ~(np.isnan(left) | np.isnan(right))
        found = _COMPARE[what](left, right)
        return _Truth(found & known, ~found & known)
    if what == "/":
        return np.divide(left, np.where(np.equal(right, 0), np.nan, right))
    return {"+": np.add, "-": np.subtract, "*": np.multiply}[what](left, right)


class _Parser:
    """Recursive descent; each method emits steps and tells what they leave: a number or a truth value."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ConfigError(f"criterion: expected at most {LONGEST} characters, found {len(text)}")
        self.text, self.at, self.depth = text, 0, 0
        self.steps: list[_Step] = []
        self.tokens = self._tokens()

    def criterion(self) -> list[_Step]:
        found = self._any_of()
        if self._next().kind != "end":
            chained = self._next().text in _COMPARE
            raise self._fail("the end" + (" (join comparisons with 'and')" if chained else ""), self._next())
        self._want(_TRUTH, found, self.tokens[0])
        return self.steps

    def _tokens(self) -> list[_Token]:
        found, at, end = [], 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                raise self._fail(
                    "a number, a name, an operator such as == or a bracket", _Token("?", self.text[at], at)
                )
            kind = str(match.lastgroup)
            found.append(_Token(kind, match.group(kind), match.start(kind)))
            glued = kind == "number" and re.match(r"[A-Za-z_.]", self.text[match.end() :])
            if glued:
                raise self._fail("a blank after the number", _Token("?", glued.group(), match.end()))
            at = match.end()
        return [*found, _Token("end", "", len(self.text))]

    def _fail(self, expected: str, token: _Token) -> ConfigError:
        found = repr(token.text) if token.text else "the end"
        shown = self.text if len(self.text) <= 100 else f"{self.text[:100]}..."
        return ConfigError(f"criterion {shown!r}: expected {expected} at character {token.at + 1}, found {found}")

    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, *texts: str) -> str:
        """The next token's text where it is one of these, otherwise nothing."""
        token = self._next()
        if token.kind == "number" or token.text not in texts or not token.text:
            return ""
        self.at += 1
        return token.text

    def _want(self, kind: str, found: str, token: _Token) -> None:
        if kind != found:
            raise self._fail(f"{kind} beginning", token)

    def _any_of(self) -> str:
        return self._chain(self._all_of, ("or",), _TRUTH)

    def _all_of(self) -> str:
        return self._chain(self._negation, ("and",), _TRUTH)

    def _sum(self) -> str:
        return self._chain(self._product, ("+", "-"), _NUMBER)

    def _product(self) -> str:
        return self._chain(self._signed, ("*", "/"), _NUMBER)

    def _chain(self, part: Callable[[], str], operators: tuple[str, ...], kind: str) -> str:
        start = self._next()
        found = part()
        while operator := self._take(*operators):
            self._want(kind, found, start)
            start = self._next()
            found = part()
            self._want(kind, found, start)
            self.steps.append(_Step(operator))
        return found

    def _negation(self) -> str:
        count = 0
        while self._take("not"):
            count += 1
        start = self._next()
        found = self._comparison()
        if count:
            self._want(_TRUTH, found, start)
        if count % 2:
            self.steps.append(_Step("not"))
        return found

    def _comparison(self) -> str:
        start = self._next()
        found = self._sum()
        operator = self._take(*_COMPARE)
        if not operator:
            return found
        self._want(_NUMBER, found, start)
        start = self._next()
        self._want(_NUMBER, self._sum(), start)
        self.steps.append(_Step(operator))
        return _TRUTH

    def _signed(self) -> str:
        signs = ""
        while sign := self._take("-", "+"):
            signs += sign
        start = self._next()
        found = self._atom()
        if signs:
            self._want(_NUMBER, found, start)
        if signs.count("-") % 2:
            self.steps.append(_Step("minus"))
        return found

    def _atom(self) -> str:
        token = self._next()
        if self._take("("):
            return self._inside(token)
        self.at += 1
        if token.kind == "number":
            value = float(token.text)
            if not math.isfinite(value):
                raise self._fail("a finite number", token)
            self.steps.append(_Step("number", value))
        elif token.text in _FUNCTIONS:
            self._arguments(token)
        elif token.text in NAMES:
            self.steps.append(_Step("name", NAMES[token.text]))
        else:
            known = ", ".join(["a number", *NAMES, *_FUNCTIONS])
            raise self._fail(f"one of {known}, 'not' or a bracket", token)
        return _NUMBER

    def _inside(self, bracket: _Token) -> str:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._fail(f"at most {DEEPEST} brackets within each other", bracket)
        found = self._any_of()
        if not self._take(")"):
            raise self._fail("')'", self._next())
        self.depth -= 1
        return found

    def _arguments(self, name: _Token) -> None:
        bracket, count = self._next(), 0
        least, most = _FUNCTIONS[name.text]
        if not self._take("("):
            raise self._fail(f"'(' after {name.text}", self._next())
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._fail(f"at most {DEEPEST} brackets within each other", bracket)
        while not count or self._take(","):
            start = self._next()
            self._want(_NUMBER, self._sum(), start)
            count += 1
        if not self._take(")"):
            raise self._fail("',' or ')'", self._next())
        self.depth -= 1
        if not least <= count <= most:
            wanted = f"{least} value" if least == most else f"{least} values or more"
            raise self._fail(f"{name.text} of {wanted} instead of {count}", name)
        self.steps.append(_Step("call", (name.text, count)))
