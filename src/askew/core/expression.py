"""Criteria that users write, such as ``refined > original and refined == 1``: parsed by Python, never evaluated by it.

A criterion joins comparisons of numbers with ``and``, ``or`` and ``not``. Numbers are literals, names, ``+ - * /`` and
``abs``, ``min`` and ``max``. Names are ``refined`` and ``original``, or RePair's ``refined_q_metric`` and
``original_q_metric``. Comparisons cannot be chained. Types are checked before the computation: each part is a number or
a truth value. Whole columns are computed at once.

A comparison with an undefined number (a missing score, a division by zero) is unknown. ``true or unknown`` is true and
``false and unknown`` is false. A criterion with an unknown result is not met.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

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
# A truth value is 1 or 0, so that "and" is the minimum, "or" the maximum, and an unknown one lies between them.
_UNKNOWN = 0.5


def _compare(operator: Callable[[Any, Any], Any], first: Any, right: Any) -> Any:
    return np.where(np.isnan(first) | np.isnan(right), _UNKNOWN, operator(first, right))


def _divide(first: Any, right: Any) -> Any:
    return np.divide(first, np.where(np.equal(right, 0), np.nan, right))


_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: _divide,
}  # fmt: skip
# By name, and by whether there are several values.
_CALLS = {("abs", False): np.abs, ("min", True): np.minimum, ("max", True): np.maximum}


@dataclass(frozen=True)
class Criterion:
    """A criterion on a refined and an original score. Two criteria with the same text are equal."""

    text: str
    tree: ast.expr = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Parse a criterion. A ``ConfigError`` says what is wrong, and at which character."""
        if len(text) > LONGEST:
            raise ConfigError(f"criterion: expected at most {LONGEST} characters, found {len(text)}", code="too-long")
        begin = len(text) - len(text.lstrip())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # Python only warns of 1and
                criterion = cls(text, ast.parse(re.sub(r"\s", " ", text[begin:]), mode="eval").body)
            # To compute it once checks it.
            criterion.met(np.ones(1), np.ones(1))
        except SyntaxError as error:
            at = begin + (error.offset or len(text) - begin + 1)  # 0 at the end of the text
            raise ConfigError(
                f"criterion {text[:100]!r}: {error.msg} at character {at}", code="bad-criterion", at=at
            ) from None
        except (ValueError, RecursionError, MemoryError):
            message = f"criterion {text[:100]!r}: expected fewer nested parts and no NUL character"
            raise ConfigError(message, code="bad-criterion") from None
        return criterion

    def met(self, refined: Floats, original: Floats) -> Flags:
        """Whether each pair of scores meets the criterion."""
        columns = {"refined": np.asarray(refined, np.float64), "original": np.asarray(original, np.float64)}
        with np.errstate(all="ignore"):
            return np.array(np.broadcast_to(_computed(self.tree, _TRUTH, columns) == 1, columns["refined"].shape))


def _computed(node: ast.expr, kind: str, columns: Mapping[str, Floats]) -> Any:
    """The values of a part that must be of this kind. A SyntaxError has the place of anything else."""
    operands: Sequence[ast.expr] = ()
    actual = needed = _NUMBER
    function: Callable[..., Any]
    match node:
        case ast.BoolOp(op=operator, values=operands):
            actual = needed = _TRUTH
            function = np.minimum if isinstance(operator, ast.And) else np.maximum
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            actual = needed = _TRUTH
            operands, function = [operand], partial(np.subtract, 1.0)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            operands, function = [operand], np.negative if isinstance(sign, ast.USub) else np.positive
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            operands, function = [left, right], _ARITHMETIC[type(operator)]
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
            actual, operands, function = _TRUTH, [left, right], partial(_compare, _COMPARISONS[type(operator)])
        case ast.Compare(comparators=[_, following, *_]):
            raise _refused("comparisons cannot be chained: join them with 'and'", following)
        case ast.Call(func=ast.Name(id=name), args=[_, *more] as operands, keywords=[]) if (name, bool(more)) in _CALLS:
            function = _CALLS[name, bool(more)]
        case ast.Name(id=name) if name in NAMES:
            function = partial(columns.__getitem__, NAMES[name])
        case ast.Constant(value=int() | float() as value) if type(value) is not bool and value <= sys.float_info.max:
            function = partial(np.float64, value)
        case _:
            allowed = f"{', '.join(NAMES)}, abs(number), min(numbers) or max(numbers)"
            raise _refused(f"expected a comparison, a finite number, {allowed}, found {ast.unparse(node)[:30]!r}", node)
    if actual != kind:
        raise _refused(f"expected {kind}, found {actual}", node)
    values = [_computed(operand, needed, columns) for operand in operands]
    return reduce(function, values) if len(values) > 1 else function(*values)


def _refused(problem: str, node: ast.expr) -> SyntaxError:
    return SyntaxError(problem, ("", 1, node.col_offset + 1, ""))
