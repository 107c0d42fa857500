"""Conditions under which a comparison fails, for a gate in continuous integration.

``nDCG@10 loses 0.01``      the observed mean loss is 0.01 or more
``nDCG@10 may lose 0.01``   a mean loss of 0.01 or more is not ruled out at the 5% level (bounded measures only). This
                            needs many queries: at least 299, with unchanged results, to rule out 0.01.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from askew.core.errors import ConfigError
from askew.statistics.significance import ALPHA, SAME, Paired

_CONDITION = re.compile(
    r"(?P<measure>.+?)\s+(?P<verb>loses|may\s+lose)\s+(?P<amount>([0-9]+\.?[0-9]*|\.[0-9]+)([eE]-?[0-9]+)?)"
)
LOSES, MAY_LOSE = "loses", "may lose"


@dataclass(frozen=True)
class Condition:
    """One measure, and the loss at which the comparison fails."""

    measure: str
    verb: str
    amount: float

    def failure(self, found: Paired, p_no_loss: float | None, missing: int = 0) -> str:
        """Why the comparison fails, or an empty text. ``missing`` is the number of queries without a value in a run."""
        if missing:
            return f"{self.measure} lacks a value in one or both runs for {missing} of {found.n + missing} queries"
        if self.verb == LOSES:
            lost = found.gain <= -self.amount + SAME
            return f"{self.measure} loses {-found.gain:.4f}, which is {self.amount:g} or more" if lost else ""
        open_still = p_no_loss is None or p_no_loss >= ALPHA
        why = f"the test cannot rule out a mean loss of {self.amount:g} or more (p = {p_no_loss:.3f}, Holm-corrected)"
        return f"{self.measure} may lose {self.amount:g}: {why}" if open_still else ""


def read_conditions(texts: str | Sequence[str]) -> list[Condition]:
    """Parse one or several conditions in the syntax of the command line."""
    found = []
    for text in [texts] if isinstance(texts, str) else texts:
        match = _CONDITION.fullmatch(text.strip())
        if match is None or float(match["amount"]) <= 0:
            raise ConfigError(
                f"fail_if=: {text!r} is not a condition. Write 'MEASURE loses AMOUNT' to fail if the mean loss is "
                "AMOUNT or more. Write 'MEASURE may lose AMOUNT' to fail if such a loss cannot be ruled out. AMOUNT "
                "must be above 0, as in 'nDCG@10 loses 0.01'"
            )
        verb = LOSES if match["verb"] == LOSES else MAY_LOSE
        found.append(Condition(match["measure"].strip(), verb, float(match["amount"])))
    return found


def with_margins(
    conditions: Sequence[Condition], margin: float | Mapping[str, float] | None
) -> float | Mapping[str, float] | None:
    """The margins of a comparison, with the margins of the 'may lose' conditions added."""
    wanted: dict[str, float] = {}
    for one in conditions:
        if one.verb == MAY_LOSE and wanted.setdefault(one.measure, one.amount) != one.amount:
            raise ConfigError(
                f"fail_if=: two 'may lose' conditions for {one.measure}, with the amounts {wanted[one.measure]:g} and "
                f"{one.amount:g}; keep only the condition with the smaller amount"
            )
    if not wanted:
        return margin
    if margin is not None and not isinstance(margin, Mapping):
        raise ConfigError(
            f"a 'may lose' condition of fail_if= already gives a margin for {next(iter(wanted))}, so margin= cannot be "
            "one number for all measures. Give margin= a number for each measure, as in 'RR@10=0.01'"
        )
    for measure, amount in wanted.items():
        if margin is not None and margin.get(measure, amount) != amount:
            raise ConfigError(
                f"fail_if= and margin= give different margins for {measure}: {amount:g} and {margin[measure]:g}. Give "
                "the same margin in both, or leave out margin="
            )
    return {**(margin or {}), **wanted}


def check_measures(conditions: Sequence[Condition], measures: Sequence[str]) -> None:
    """Raise an error for a condition on a measure that is not compared, because it could never fail."""
    for one in conditions:
        if one.measure not in measures:
            raise ConfigError(
                f"fail_if=: {one.measure!r} is not compared; the compared measures are {', '.join(measures)}"
            )
