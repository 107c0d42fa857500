"""Criteria that users write, such as ``refined > original and refined == 1``: parsed by Python, never evaluated by it.

A criterion joins comparisons of numbers with ``and``, ``or`` and ``not``. Numbers are literals, names, ``+ - * /`` and
``abs``, ``min`` and ``max``. Names are ``refined`` and ``original``, or RePair's ``refined_q_metric`` and
``original_q_metric``. Comparisons cannot be chained. Types are checked before the computation: each part is a number or
a truth value. A criterion becomes the steps of a small stack machine that computes with whole columns.

A comparison with an undefined number (a missing score, a division by zero) is unknown. ``true or unknown`` is true and
``false and unknown`` is false. A criterion with an unknown result is not met.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

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
LONGEST = 1000
NAMES = {"refined": "refined", "refined_q_metric": "refined", "original": "original", "original_q_metric": "original"}
_NUMBER, _TRUTH = "a number", "true or false"


class _Truth(NamedTuple):
    """A column of truth values: where it is true and where it is false. If neither, the value is unknown."""

    yes: Any
    no: Any


def _not(value: _Truth) -> _Truth:
    return _Truth(value.no, value.yes)


def _and(left: _Truth, right: _Truth) -> _Truth:
    return _Truth(np.logical_and(left.yes, right.yes), np.logical_or(left.no, right.no))


def _or(left: _Truth, right: _Truth) -> _Truth:
    return _Truth(np.logical_or(left.yes, right.yes), np.logical_and(left.no, right.no))


def _compare(operator: Callable[[Any, Any], Any], left: Any, right: Any) -> _Truth:
    known = ~(np.isnan(left) | np.isnan(right))
    holds = operator(left, right)
    return _Truth(holds & known, ~holds & known)


def _divide(left: Any, right: Any) -> Any:
    return np.divide(left, np.where(np.equal(right, 0), np.nan, right))


_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: _divide,
}  # fmt: skip
# By name, and by whether there are several values.
_CALLS = {("abs", False): np.abs, ("min", True): np.minimum, ("max", True): np.maximum}
# A number, a name, or a function with the number of values that it takes from the stack.
_Step = float | str | tuple[Callable[..., Any], int]


@dataclass(frozen=True)
class Criterion:
    """A criterion on a refined and an original score. Two criteria with the same text are equal."""

    text: str
    steps: tuple[_Step, ...] = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Parse a criterion. A ``ConfigError`` says what is wrong, and at which character."""
        if len(text) > LONGEST:
            raise ConfigError(f"criterion: expected at most {LONGEST} characters, found {len(text)}", code="too-long")
        begin = len(text) - len(text.lstrip())
        steps: list[_Step] = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # Python only warns of 1and
                _add_steps(ast.parse(re.sub(r"\s", " ", text[begin:]), mode="eval").body, _TRUTH, steps)
        except SyntaxError as error:
            at = begin + (error.offset or len(text) - begin + 1)  # 0 at the end of the text
            raise ConfigError(
                f"criterion {text[:100]!r}: {error.msg} at character {at}", code="bad-criterion", at=at
            ) from None
        except (ValueError, RecursionError, MemoryError):
            message = f"criterion {text[:100]!r}: expected fewer nested parts and no NUL character"
            raise ConfigError(message, code="bad-criterion") from None
        return cls(text, tuple(steps))

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


def _add_steps(node: ast.expr, kind: str, steps: list[_Step]) -> None:
    """Add the steps of a part that must be of this kind. A SyntaxError has the place of anything else."""
    operands: Sequence[ast.expr] = ()
    found = needed = _NUMBER
    applied: list[_Step] = []
    match node:
        case ast.BoolOp(op=operator, values=operands):
            found = needed = _TRUTH
            applied = [(_and if isinstance(operator, ast.And) else _or, 2)] * (len(operands) - 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = needed = _TRUTH
            operands, applied = [operand], [(_not, 1)]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            operands, applied = [operand], [(np.negative, 1)] * isinstance(sign, ast.USub)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            operands, applied = [left, right], [(_ARITHMETIC[type(operator)], 2)]
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
            found, operands = _TRUTH, [left, right]
            applied = [(partial(_compare, _COMPARISONS[type(operator)]), 2)]
        case ast.Compare(comparators=[_, following, *_]):
            raise _refused("comparisons cannot be chained: join them with 'and'", following)
        case ast.Call(func=ast.Name(id=name), args=[_, *more] as operands, keywords=[]) if (name, bool(more)) in _CALLS:
            applied = [(_CALLS[name, True], 2)] * len(more) if more else [(np.abs, 1)]
        case ast.Name(id=name) if name in NAMES:
            applied = [NAMES[name]]
        case ast.Constant(value=int() | float() as value) if type(value) is not bool and value <= sys.float_info.max:
            applied = [float(value)]
        case _:
            known = f"{', '.join(NAMES)}, abs(number), min(numbers) or max(numbers)"
            raise _refused(f"expected a comparison, a finite number, {known}, found {ast.unparse(node)[:30]!r}", node)
    if found != kind:
        raise _refused(f"expected {kind}, found {found}", node)
    for operand in operands:
        _add_steps(operand, needed, steps)
    steps += applied


def _refused(problem: str, node: ast.expr) -> SyntaxError:
    return SyntaxError(problem, ("", 1, node.col_offset + 1, ""))
