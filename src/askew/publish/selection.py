"""The statements of a run on its selection, which ``verify`` checks. Each of them is optional.

For any selection
    ``effectiveness``, ``bias``   the measures of the two sides of the outcome, one or several for each side
    ``tolerance``                 gains of at most this size count as "same"
    ``outcomes``                  name of the outcome -> [sign of effectiveness, sign of bias]; a sign is better, same
                                  or worse. A side with several measures is worse if one measure is worse, and better if
                                  one is better and none is worse
    ``single``                    subsets with at most one pair per query
    ``at_least``                  subset -> measure -> the minimum gain of its pairs
    ``smaller_by``                subset -> measure -> the least share of its old size by which the measure decreases;
                                  it must decrease even if the share is 0
    ``fronts``                    subset -> {"measures": [...], "original": true}: no pair is dominated in these
                                  measures by another pair of its query; with ``original``, nor by the original query
For the scheme refairmulate
    ``labels``      name of the outcome -> label, if the outcome alone decides the label
    ``labels_by``   {"effectiveness": [...], "bias": [...]}: the measures that decide the label, if they are not the
                    measures of the outcome. If the measures of a side disagree, the label is the one for "mixed"
    ``accepted``    subset -> group -> accepted labels
    ``optimal``     measure -> the new value that every Optimal pair has
    ``groups``      {"effectiveness": {measure: threshold}, "bias": {measure: threshold}}: a query reaches a side if
                    each of its old values is as good as the threshold or better. Group 1 reaches both sides, 2
                    effectiveness only, 3 bias only, 4 neither
    ``weights``     measure -> weight: the score is the sum of weight times gain. Scores of Optimal pairs are not
                    checked, because they may be a constant, as in the published files
For the scheme boxes
    ``measure``     the measure of the boxes
    ``boxes``       box -> criterion on the refined and the original value (``askew.core.expression``)
    ``every``       true if every pair that meets the criterion is in the box; false if only the best pair of its query
                    can be, which the column ``is_best`` marks
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from askew.core.expression import Criterion
from askew.publish.stated import is_number, mapping, numbers, some_of, truth, wrong

Label = int | str
SIGNS = ("better", "same", "worse")
SIDES = ("effectiveness", "bias")
GROUPS = (1, 2, 3, 4)
MIXED = "mixed"


@dataclass(frozen=True)
class Front:
    """A Pareto front: no pair is dominated by another pair of its query; with ``original``, nor by the original."""

    measures: tuple[str, ...]
    original: bool


@dataclass(frozen=True)
class Selection:
    """The checked statements on the selection; see the module's docstring."""

    effectiveness: tuple[str, ...] = ()
    bias: tuple[str, ...] = ()
    tolerance: float = 0.0
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    single: tuple[str, ...] = ()
    at_least: dict[str, dict[str, float]] = field(default_factory=dict)
    smaller_by: dict[str, dict[str, float]] = field(default_factory=dict)
    fronts: dict[str, Front] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    labels_by: dict[str, tuple[str, ...]] = field(default_factory=dict)
    accepted: dict[str, dict[int, frozenset[Label]]] = field(default_factory=dict)
    optimal: dict[str, float] = field(default_factory=dict)
    groups: dict[str, dict[str, float]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    measure: str = ""
    boxes: dict[str, Criterion] = field(default_factory=dict)
    every: bool = False


class _Reader:
    """Reads the parts of a selection and checks their measures and subsets against the known names."""

    def __init__(self, stated: dict[str, Any], measures: Collection[str], subsets: Collection[str]) -> None:
        self.stated, self.known, self.subsets = stated, measures, subsets

    def part(self, name: str) -> dict[str, Any]:
        return mapping(self.stated.get(name, {}), f"selection.{name}")

    def by_subset(self, name: str) -> dict[str, Any]:
        found = self.part(name)
        for subset in found:
            some_of(subset, self.subsets, f"selection.{name}.{subset}", "subsets")
        return found

    def measures(self, name: str) -> tuple[str, ...]:
        if name not in self.stated:
            return ()
        return some_of(self.stated[name], self.known, f"selection.{name}", "measures")

    def numbers(self, name: str) -> dict[str, float]:
        return numbers(self.stated.get(name, {}), f"selection.{name}", self.known)

    def tolerance(self) -> float:
        found = self.stated.get("tolerance", 0.0)
        if not is_number(found) or found < 0:
            raise wrong("selection.tolerance", "a number that is 0 or more", found)
        return float(found)

    def outcomes(self) -> dict[str, tuple[str, str]]:
        found = self.part("outcomes")
        for name, signs in found.items():
            if not isinstance(signs, list) or len(signs) != 2 or any(sign not in SIGNS for sign in signs):
                raise wrong(
                    f"selection.outcomes.{name}",
                    "two values, first for effectiveness and then for bias, each 'better', 'same' or 'worse'",
                    signs,
                )
        return {name: (signs[0], signs[1]) for name, signs in found.items()}

    def labels(self, outcomes: Collection[str]) -> dict[str, Label]:
        found = self.part("labels")
        for name, label in found.items():
            if name not in (*outcomes, MIXED) or not _is_label(label):
                raise wrong(
                    f"selection.labels.{name}",
                    "an outcome as the key and its label (a number or a text) as the value",
                    label,
                )
        return found

    def sides(self, name: str) -> dict[str, Any]:
        found = self.part(name)
        if found and set(found) != set(SIDES):
            raise wrong(f"selection.{name}", "exactly two keys, 'effectiveness' and 'bias'", sorted(found))
        return found

    def labels_by(self) -> dict[str, tuple[str, ...]]:
        found = self.sides("labels_by")
        return {
            side: some_of(one, self.known, f"selection.labels_by.{side}", "measures") for side, one in found.items()
        }

    def groups(self) -> dict[str, dict[str, float]]:
        found = self.sides("groups")
        return {side: numbers(one, f"selection.groups.{side}", self.known) for side, one in found.items()}

    def accepted(self) -> dict[str, dict[int, frozenset[Label]]]:
        return {subset: _labels_by_group(one, subset) for subset, one in self.by_subset("accepted").items()}

    def single(self) -> tuple[str, ...]:
        found = self.stated.get("single", [])
        return some_of(found, self.subsets, "selection.single", "subsets") if found != [] else ()

    def by_measure(self, name: str) -> dict[str, dict[str, float]]:
        found = self.by_subset(name)
        return {subset: numbers(one, f"selection.{name}.{subset}", self.known) for subset, one in found.items()}

    def fronts(self) -> dict[str, Front]:
        return {
            subset: self._front(one, f"selection.fronts.{subset}") for subset, one in self.by_subset("fronts").items()
        }

    def _front(self, stated: Any, where: str) -> Front:
        one = mapping(stated, where)
        measures = some_of(one.get("measures"), self.known, f"{where}.measures", "measures")
        if len(measures) != 2:
            raise wrong(f"{where}.measures", "two measures", list(measures))
        return Front(measures, truth(one.get("original", False), f"{where}.original"))

    def boxes(self) -> dict[str, Criterion]:
        found = self.by_subset("boxes")
        for box, written in found.items():
            if not isinstance(written, str):
                raise wrong(f"selection.boxes.{box}", "a criterion such as 'refined > original'", written)
        if found and len(self.measures("measure")) != 1:
            raise wrong(
                "selection.measure",
                "exactly one measure, because the criteria in 'selection.boxes' are applied to its values",
                self.stated.get("measure"),
            )
        return {box: Criterion.parse(written) for box, written in found.items()}


def read_selection(stated: dict[str, Any], measures: Collection[str], subsets: Collection[str]) -> Selection:
    """Check the statements on a selection; a ConfigError names the wrong one."""
    read = _Reader(stated, measures, subsets)
    outcomes = read.outcomes()
    return Selection(
        effectiveness=read.measures("effectiveness"), bias=read.measures("bias"), tolerance=read.tolerance(),
        outcomes=outcomes, single=read.single(), at_least=read.by_measure("at_least"),
        smaller_by=read.by_measure("smaller_by"), fronts=read.fronts(),
        labels=read.labels(outcomes), labels_by=read.labels_by(), accepted=read.accepted(),
        optimal=read.numbers("optimal"), groups=read.groups(), weights=read.numbers("weights"),
        measure=next(iter(read.measures("measure")), ""), boxes=read.boxes(),
        every=truth(stated.get("every", False), "selection.every"),
    )  # fmt: skip


def _labels_by_group(stated: Any, subset: str) -> dict[int, frozenset[Label]]:
    where = f"selection.accepted.{subset}"
    groups = mapping(stated, where)
    for group, labels in groups.items():
        if group not in map(str, GROUPS) or not isinstance(labels, list) or not all(map(_is_label, labels)):
            raise wrong(
                f"{where}.{group}",
                "the number of a group of queries (1 to 4) as the key and a list of labels as the value",
                labels,
            )
    return {int(group): frozenset(labels) for group, labels in groups.items()}


def _is_label(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)
