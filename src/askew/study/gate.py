"""Conditions of ``fail_if``, under which a comparison or an audit fails, for use in continuous integration.

``nDCG@10 loses 0.01``      compare: the mean loss is 0.01 or more
``nDCG@10 may lose 0.01``   compare: a mean loss of 0.01 or more is not ruled out
``ARaB(tf)@10 > 0.2``       audit: the mean is above 0.2 (its absolute value, if zero is the best value; then no '<')
``nDCG@10 < -5%``           audit: the mean is more than 5% below the mean of the baseline
``ARaB(tf)@10 worse``       audit: significantly worse than in the baseline (5% level, queries of both audits)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from askew.core.errors import ConfigError

ABOVE, BELOW, WORSE, LOSES, MAY_LOSE = ">", "<", "worse", "loses", "may lose"
# The forms of the conditions of each command.
OF_COMPARE = {LOSES: "'MEASURE loses 0.01'", MAY_LOSE: "'MEASURE may lose 0.01'"}
OF_AUDIT = {
    ABOVE: "'MEASURE > 0.2', 'MEASURE > +10%'", BELOW: "'MEASURE < 0.8', 'MEASURE < -5%'", WORSE: "'MEASURE worse'",
}  # fmt: skip
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_CONDITION = re.compile(
    rf"(?P<measure>[^\s<>][^<>]*?)(?:\s*(?P<sign>[<>])\s*|\s+(?P<verb>loses|may\s+lose)\s+|\s+(?P<worse>worse))"
    rf"(?P<amount>(?(worse)|{_NUMBER}))(?P<percent>(?(sign)%?))"
)


@dataclass(frozen=True)
class Condition:
    """A condition on one measure; ``relative`` if the amount is a percentage of the value of the baseline."""

    measure: str
    verb: str
    amount: float = 0.0
    relative: bool = False

    @property
    def needs_baseline(self) -> bool:
        """Whether the condition compares with an earlier audit."""
        return self.relative or self.verb == WORSE


def read_conditions(texts: str | Sequence[str], forms: dict[str, str]) -> list[Condition]:
    """Parse one or several conditions, written as on the command line; ``forms`` has the verbs that are known."""
    conditions = []
    for text in [texts] if isinstance(texts, str) else texts:
        match = _CONDITION.fullmatch(text.strip())
        verb = "" if match is None else " ".join((match["sign"] or match["verb"] or match["worse"]).split())
        amount = float(match["amount"] or 0) if match is not None else 0.0
        if match is None or verb not in forms or not isfinite(amount) or (verb in OF_COMPARE and amount <= 0):
            raise ConfigError(f"⟨fail_if⟩: expected {', '.join(forms.values())}; found {text!r}")
        conditions.append(Condition(match["measure"].strip(), verb, amount, bool(match["percent"])))
    return conditions


def check_measures(conditions: Sequence[Condition], measures: Sequence[str]) -> None:
    """Raise an error for a condition on a measure that is not measured, because it could never fail."""
    for one in conditions:
        if one.measure not in measures:
            raise ConfigError(f"⟨fail_if⟩: {one.measure!r} is not measured; the measures are {', '.join(measures)}")
