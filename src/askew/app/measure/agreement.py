"""The report of ``sensitivity``: the order of systems in each combination of choices, and the agreement of orders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from askew.core.measure import Direction, Value
from askew.core.ranking import Floats, Ints
from askew.core.text_tables import html_table, text_table
from askew.statistics.agreement import Signs, pair_signs, tau_b

# The axes of a combination: what is varied, the family of the measure first. A measure need not have all axes.
AXES = ("measure", "lexicon", "tokens", "sign", "cutoff", "missing", "who")
# The largest number of combinations for which the full tau matrix is printed and drawn.
READABLE = 150
_ROWS = 512


@dataclass(frozen=True)
class Combination:
    """One choice on every axis that the measure has, and the mean of each system with these choices."""

    number: int
    choices: Mapping[str, Value]
    signature: str
    direction: Direction
    means: tuple[float, ...]

    @property
    def label(self) -> str:
        """The choices in one line."""
        return " ".join(f"@{value}" if axis == "cutoff" else str(value) for axis, value in self.choices.items())

    @property
    def leans(self) -> tuple[float, ...]:
        """The distance of each system from the best value, by the measure's direction. Lower leans less."""
        return tuple(self.direction.gain(mean, 0.0) for mean in self.means)


@dataclass(frozen=True)
class AxisEffect:
    """The agreement over ``pairs`` of combinations that differ in one axis only; ``undefined`` of them have no tau."""

    axis: str
    values: tuple[Value, ...]
    pairs: int
    mean_tau: float | None
    lowest_tau: float | None
    undefined: int


@dataclass(frozen=True)
class PairOrder:
    """Two systems: the numbers of combinations in which the first leans less, the second leans less, or both equal."""

    first: str
    second: str
    first_less: int
    second_less: int
    equal: int

    @property
    def flips(self) -> bool:
        """Whether each of the two leans less in some combination."""
        return self.first_less > 0 and self.second_less > 0


@dataclass(frozen=True)
class SystemRanks:
    """The ranks of a system over all combinations. Rank 1 leans least; equal systems share the better rank.

    ``least`` is the number of combinations with rank 1.
    """

    system: str
    best: int
    median: float
    worst: int
    least: int


@dataclass(repr=False)
class SensitivityReport:
    """The report of ``sensitivity``.

    ``tau[i, j]`` is Kendall's tau-b between the orders of the systems in combinations i and j.
    A tau is NaN if all systems are equal in one of the two combinations.
    """

    systems: list[str]
    combinations: list[Combination]
    notes: list[str] = field(default_factory=list)

    @cached_property
    def signs(self) -> Signs:
        """For each combination and pair of systems: 1 if the first leans less, -1 if the second does, 0 if equal."""
        return pair_signs(np.array([one.leans for one in self.combinations], np.float64))

    @cached_property
    def tau(self) -> Floats:
        """Kendall's tau-b between each two combinations."""
        return tau_b(self.signs)

    @cached_property
    def _above(self) -> Floats:
        """The tau of each pair of different combinations: the upper triangle, row by row."""
        return np.concatenate([self.tau[row, row + 1 :] for row in range(len(self.tau))])

    @property
    def undefined(self) -> list[Combination]:
        """The combinations in which all systems are equal."""
        return [one for one, value in zip(self.combinations, np.diag(self.tau), strict=True) if math.isnan(value)]

    @cached_property
    def lowest(self) -> tuple[Combination, Combination] | None:
        """The two combinations that agree least."""
        if not len(self._above) or np.isnan(self._above).all():
            return None
        lows = np.where(np.isnan(self.tau), np.inf, self.tau)
        np.fill_diagonal(lows, np.inf)
        first, second = np.unravel_index(int(lows.argmin()), lows.shape)
        return self.combinations[int(first)], self.combinations[int(second)]

    def summary(self) -> dict[str, Any]:
        """The range and median of tau, the two combinations that agree least, and the numbers of undefined values."""
        known = self._above[~np.isnan(self._above)]
        low, median, high = (known.min(), np.median(known), known.max()) if len(known) else (None, None, None)
        return {
            "systems": len(self.systems), "combinations": len(self.combinations),
            "lowest_tau": _plain(low), "median_tau": _plain(median), "highest_tau": _plain(high),
            "lowest_pair": None if self.lowest is None else [one.number for one in self.lowest],
            "undefined_combinations": len(self.undefined), "undefined_pairs": len(self._above) - len(known),
        }  # fmt: skip

    def values(self, axis: str) -> tuple[Value, ...]:
        """The values of an axis, in order of first occurrence."""
        return tuple(dict.fromkeys(one.choices[axis] for one in self.combinations if axis in one.choices))

    @cached_property
    def _codes(self) -> Ints:
        """The index of each combination's value on each axis; -1 if its measure does not have the axis."""
        places = [{value: place for place, value in enumerate(self.values(axis))} for axis in AXES]
        return np.array(
            [
                [at[one.choices[axis]] if axis in one.choices else -1 for axis, at in zip(AXES, places, strict=True)]
                for one in self.combinations
            ],
            np.int64,
        )

    @cached_property
    def neighbors(self) -> tuple[Ints, Ints, Ints]:
        """The pairs of combinations that differ in one axis only, and that axis. Axes that one lacks are ignored."""
        codes = self._codes
        found: list[tuple[Ints, Ints, Ints]] = []
        for start in range(0, len(codes), _ROWS):
            part = codes[start : start + _ROWS, None, :]
            differs = (part != codes[None]) & (part >= 0) & (codes[None] >= 0)
            rows, columns = np.nonzero(differs.sum(axis=2) == 1)
            above = columns > rows + start
            rows, columns = rows[above], columns[above]
            found.append((rows + start, columns, differs[rows, columns].argmax(axis=1)))
        first, second, axis = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return first, second, axis

    @cached_property
    def axes(self) -> list[AxisEffect]:
        """The axes with more than one value, sorted by mean tau: the axis that changes the order most comes first."""
        first, second, which = self.neighbors
        effects = []
        for place, axis in enumerate(AXES):
            taus = self.tau[first[which == place], second[which == place]]
            known = taus[~np.isnan(taus)]
            mean, low = (known.mean(), known.min()) if len(known) else (None, None)
            if len(self.values(axis)) > 1:
                undefined = len(taus) - len(known)
                effects.append(AxisEffect(axis, self.values(axis), len(taus), _plain(mean), _plain(low), undefined))
        return sorted(effects, key=lambda one: math.inf if one.mean_tau is None else one.mean_tau)

    def within(self, axis: str) -> Floats:
        """The mean tau between two values of an axis, over pairs that differ in this axis only; NaN without pairs."""
        first, second, which = self.neighbors
        place, size = AXES.index(axis), len(self.values(axis))
        chosen = which == place
        rows, columns = self._codes[first[chosen], place], self._codes[second[chosen], place]
        return _means(rows, columns, self.tau[first[chosen], second[chosen]], size)

    def between(self, labels: Sequence[str]) -> Floats:
        """The mean tau between the combinations of each two labels. Labels are in order of first occurrence."""
        at = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        codes = np.array([at[label] for label in labels])
        member = np.eye(len(at))[codes]
        known = ~np.isnan(self.tau)
        np.fill_diagonal(known, False)
        sums = member.T @ np.where(known, self.tau, 0.0) @ member
        counts = member.T @ known.astype(np.float64) @ member
        found: Floats = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
        alone = (np.bincount(codes) == 1) & np.isnan(np.diag(found)) & ~np.isnan(np.diag(self.tau)[_firsts(codes)])
        found[alone, alone] = 1.0
        return found

    @cached_property
    def pairs(self) -> list[PairOrder]:
        """Each pair of systems, sorted by the number of combinations that contradict the majority order."""
        first, second = np.triu_indices(len(self.systems), 1)
        found = []
        for place, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            less, more = (int((self.signs[:, place] == sign).sum()) for sign in (1, -1))
            # The system that leans less in more combinations comes first, whatever the order of the runs.
            a, b = (one, other) if (-less, self.systems[one]) <= (-more, self.systems[other]) else (other, one)
            less, more = max(less, more), min(less, more)
            equal = len(self.combinations) - less - more
            found.append(PairOrder(self.systems[a], self.systems[b], less, more, equal))
        return sorted(found, key=lambda pair: (-pair.second_less, pair.first_less, pair.first, pair.second))

    @property
    def flips(self) -> list[PairOrder]:
        """The pairs of systems whose order differs between combinations."""
        return [pair for pair in self.pairs if pair.flips]

    @cached_property
    def _ranks(self) -> Ints:
        """The rank of each system in each combination: 1 plus the systems that lean less."""
        first, second = np.triu_indices(len(self.systems), 1)
        ranks = np.ones((len(self.combinations), len(self.systems)), np.int64)
        for place, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            ranks[:, other] += self.signs[:, place] == 1
            ranks[:, one] += self.signs[:, place] == -1
        return ranks

    @cached_property
    def ranks(self) -> list[SystemRanks]:
        """The ranks of each system, sorted by median rank."""
        found = [
            SystemRanks(name, int(row.min()), float(np.median(row)), int(row.max()), int((row == 1).sum()))
            for name, row in zip(self.systems, self._ranks.T, strict=True)
        ]
        return sorted(found, key=lambda one: (one.median, one.best, one.worst, one.system))

    def order(self, one: Combination) -> list[list[str]]:
        """The systems in one combination, from the one that leans least. Equal systems share a list."""
        ranks = self._ranks[one.number - 1]
        return [
            [name for name, own in zip(self.systems, ranks, strict=True) if own == rank] for rank in np.unique(ranks)
        ]

    def sentences(self) -> Iterator[str]:
        """The main results as sentences."""
        found = self.summary()
        yield f"{found['systems']:,} systems, measured in {found['combinations']:,} combinations of choices."
        if self.lowest is not None:
            low, median, high = (signed(found[f"{which}_tau"]) for which in ("lowest", "median", "highest"))
            between = "Kendall's tau between the orders of the systems by lean, over all pairs of combinations"
            yield f"{between}: median {median}, from {low} to {high}."
            first, second = self.lowest
            yield (
                f"Lowest tau: between combination {first.number} ({first.label}) and combination {second.number} "
                f"({second.label})."
            )
        known = [one for one in self.axes if one.mean_tau is not None]
        if known:
            tau = signed(known[0].mean_tau)
            yield f"The order of systems depends most on: {known[0].axis} (mean tau {tau} if only this choice changes)."
        if len(known) > 1:
            yield f"The order of systems depends least on: {known[-1].axis} (mean tau {signed(known[-1].mean_tau)})."
        yield f"{len(self.flips):,} of {len(self.pairs):,} pairs of systems change their order in some combination."
        if self.undefined:
            common = ", ".join(f"{axis} {value}" for axis, value in self._common(self.undefined).items())
            yield (
                f"In {len(self.undefined):,} combinations{f' (all with {common})' if common else ''}, all systems lean "
                "equally, so the systems have no order. Kendall's tau is undefined for the "
                f"{found['undefined_pairs']:,} pairs with such a combination, and these pairs are left out."
            )

    def _common(self, some: Sequence[Combination]) -> dict[str, Value]:
        """The choices that all these combinations share, on axes with more than one value."""
        shared = {axis: {one.choices.get(axis) for one in some} for axis in AXES if len(self.values(axis)) > 1}
        return {
            axis: value
            for axis, values in shared.items()
            if len(values) == 1 and (value := next(iter(values))) is not None
        }

    def to_polars(self) -> pl.DataFrame:
        """One row for each combination: its number, its choices, the mean of each system, the order, the signature."""
        rows = [
            {"combination": one.number}
            | {axis: None if axis not in one.choices else str(one.choices[axis]) for axis in AXES}
            | {f"mean {name}": mean for name, mean in zip(self.systems, one.means, strict=True)}
            | {"order": " < ".join(" = ".join(same) for same in self.order(one)), "signature": one.signature}
            for one in self.combinations
        ]
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(AXES, pl.String))

    def to_pandas(self) -> Any:
        """As ``to_polars``, for pandas, which must be installed."""
        return self.to_polars().to_pandas()

    def tau_table(self) -> pl.DataFrame:
        """One row per pair of combinations: their numbers and their tau, null where it is undefined."""
        first, second = np.triu_indices(len(self.combinations), 1)
        columns = {"first": (first + 1).astype(np.int32), "second": (second + 1).astype(np.int32), "tau": self._above}
        return pl.DataFrame(columns).with_columns(pl.col("tau").fill_nan(None))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values. The tau matrix is null for many combinations; ``tau_table`` always has it."""
        combinations = [
            {
                "combination": one.number, "choices": dict(one.choices), "signature": one.signature,
                "better": one.direction.value, "means": dict(zip(self.systems, one.means, strict=True)),
                "order": self.order(one),
            }
            for one in self.combinations
        ]  # fmt: skip
        matrix = None
        if len(self.combinations) <= READABLE:
            matrix = [[_plain(value) for value in row] for row in self.tau.tolist()]
        return {
            "summary": self.summary(), "axes": [asdict(one) | {"values": list(one.values)} for one in self.axes],
            "pairs": [asdict(one) | {"flips": one.flips} for one in self.pairs],
            "systems": [asdict(one) for one in self.ranks], "combinations": combinations, "tau": matrix,
        }  # fmt: skip

    def axis_rows(self) -> list[list[str]]:
        """The rows of the table of axes, as texts."""
        return [
            [one.axis, f"{len(one.values)}", f"{one.pairs:,}", signed(one.mean_tau), signed(one.lowest_tau)]
            for one in self.axes
        ]

    def __repr__(self) -> str:
        return "\n".join([*self.sentences(), "", text_table(AXIS_HEAD, self.axis_rows())])

    def _repr_html_(self) -> str:
        return html_table(("sensitivity",), [[one] for one in self.sentences()]) + html_table(
            AXIS_HEAD, self.axis_rows()
        )


AXIS_HEAD = ("axis", "values", "pairs", "mean tau", "lowest tau")


def signed(tau: float | None) -> str:
    """Format a tau with two decimals, or as "undefined"."""
    return "undefined" if tau is None or math.isnan(tau) else f"{tau:.2f}"


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _firsts(codes: Ints) -> Ints:
    return np.unique(codes, return_index=True)[1]


def _means(rows: Ints, columns: Ints, taus: Floats, size: int) -> Floats:
    """The symmetric matrix of mean taus, with 1 on the diagonal."""
    known = ~np.isnan(taus)
    sums, counts = np.zeros((size, size)), np.zeros((size, size))
    np.add.at(sums, (rows[known], columns[known]), taus[known])
    np.add.at(counts, (rows[known], columns[known]), 1.0)
    sums, counts = sums + sums.T, counts + counts.T
    found = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    np.fill_diagonal(found, 1.0)
    return found
