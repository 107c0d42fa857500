"""Sentences on what the held-out values of selected pairs do not show, for a build, its report and its card."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from askew.core.figures import FEWEST, HELD_OUT
from askew.core.measure import Direction
from askew.publish.facts import SUBSETS
from askew.publish.numbers import PairNumbers, change_text, ends_text, held_out_rows

_WORSE = "on held-out data, these measures become worse (change, 95% interval)"
_NOT_BETTER = "held-out data do not show that these measures improve (change, 95% interval)"
_UNKNOWN = (
    "these measures of effectiveness have no held-out value, because too few selected queries have several relevant "
    "documents; their in-sample gain is too optimistic"
)
_MAIN = "fair"


@dataclass(frozen=True)
class Caution:
    """What held-out values do not show: the subset, the statement, and the measures that it is about."""

    subset: str
    said: str
    measures: tuple[str, ...]

    def __str__(self) -> str:
        return f"subset {self.subset}: {self.said}: {'; '.join(self.measures)}"


def cautions(
    rows: Iterable[Mapping[str, Any]],
    directions: Mapping[str, Direction],
    subsets: Sequence[str],
    lean: Collection[str],
    effectiveness: Collection[str],
) -> list[Caution]:
    """For each subset, the measures for which held-out data do not show what the pairs were selected for.

    These are measures that become worse, measures of ``lean`` of the selection that may not improve, and measures of
    ``effectiveness`` without held-out values. Of the subsets of Refairmulate, only the main one is
    considered, because it contains the others.
    """
    shown = [_MAIN] if tuple(subsets) == SUBSETS else list(subsets)
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["subset"] in shown and (doubt := _doubt(row, directions[row["measure"]], lean, effectiveness)):
            found.setdefault((row["subset"], doubt[0]), []).append(doubt[1])
    order = (_WORSE, _NOT_BETTER, _UNKNOWN)
    keys = sorted(found, key=lambda key: (shown.index(key[0]), order.index(key[1])))
    return [Caution(*key, tuple(found[key])) for key in keys]


def _doubt(
    row: Mapping[str, Any], direction: Direction, lean: Collection[str], effectiveness: Collection[str]
) -> tuple[str, str] | None:
    name = row["measure"]
    if row["figures"] != HELD_OUT:
        return (_UNKNOWN, name) if name in effectiveness else None
    few = row.get("held_out_queries", FEWEST) < FEWEST or None in (row.get("low"), row.get("high"))
    shown = f"{name} {change_text(row.get('change'))}, {'no interval' if few else ends_text(row)}"
    sign = 1 if direction is Direction.UP else -1
    ends = [] if few else [sign * row["low"], sign * row["high"]]
    if ends and max(ends) < 0:
        return _WORSE, shown
    return (_NOT_BETTER, shown) if name in lean and not (ends and min(ends) > 0) else None


def release_cautions(pairs: PairNumbers) -> list[Caution]:
    """The cautions of a release."""
    facts, chosen = pairs.facts, pairs.facts.selection
    by = (chosen.measure,) if chosen.measure else ()
    judged = {one.name for one in facts.measures if one.judged}
    effectiveness = judged.union(by or chosen.effectiveness)
    return cautions(held_out_rows(pairs), pairs.directions, facts.subsets, by or chosen.bias, effectiveness)
