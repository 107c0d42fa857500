"""Measure runs in every combination of choices (lexicon, tokenizer, ...), and compare the orders of systems."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from askew.core import defaults
from askew.core import plugins as registry
from askew.core.errors import ConfigError, Note, check_names
from askew.core.files import check_file, write_whole
from askew.core.groups import ANY, LEARNED, Groups, GroupsLike
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.measure import Direction, Measure, Value
from askew.core.protocols import Inputs, MeasureFamily
from askew.core.ranking import Floats, Ints
from askew.core.store.store import Store
from askew.measures.catalogue import Catalogue, MeasureRequest, find_family
from askew.measures.common import documents_read, known_to, way_of_reading
from askew.measures.counts import DocumentSource, Progress
from askew.measures.lists import RunLike, named_runs
from askew.measures.measure import as_runs, choose_measures, count_inputs, parts_of, read_runs, score_runs
from askew.measures.mentions import can_mark
from askew.measures.requested import MeasuresLike, fields_of, key_of, measure_texts, reads_as_published
from askew.measures.resolver import default_resolver
from askew.measures.statistics.significance import Signs, pair_signs, tau_b
from askew.report.charts import About, Heading, heat_map
from askew.report.markup import join, tag
from askew.report.page import PageParts, Section, check_out, document, figures, listed, paragraph, write_report
from askew.report.table import CODE, NAME, WORDS, Cell, Column, Table, columns, html_table, table, text_table

# The report of ``sensitivity``: the order of systems in each combination of choices, and the agreement of orders.

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
        taus = self.tau[first[chosen], second[chosen]]
        known = ~np.isnan(taus)
        sums, counts = np.zeros((size, size)), np.zeros((size, size))
        np.add.at(sums, (rows[known], columns[known]), taus[known])
        np.add.at(counts, (rows[known], columns[known]), 1.0)
        sums, counts = sums + sums.T, counts + counts.T
        means: Floats = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
        np.fill_diagonal(means, 1.0)
        return means

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
        firsts = np.unique(codes, return_index=True)[1]
        alone = (np.bincount(codes) == 1) & np.isnan(np.diag(found)) & ~np.isnan(np.diag(self.tau)[firsts])
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
            # The choices that all these combinations share, on axes with more than one value.
            several = [axis for axis in AXES if len(self.values(axis)) > 1]
            shared = {axis: {one.choices.get(axis) for one in self.undefined} for axis in several}
            common = ", ".join(
                f"{axis} {value}" for axis, (value, *others) in shared.items() if not others and value is not None
            )
            yield (
                f"In {len(self.undefined):,} combinations{f' (all with {common})' if common else ''}, all systems lean "
                "equally, so the systems have no order. Kendall's tau is undefined for the "
                f"{found['undefined_pairs']:,} pairs with such a combination, and these pairs are left out."
            )

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

    def __repr__(self) -> str:
        return "\n".join([*self.sentences(), "", text_table(axes_table(self))])

    def _repr_html_(self) -> str:
        return str(join([listed(list(self.sentences())), html_table(axes_table(self))]))


def signed(tau: float | None) -> str:
    """Format a tau with two decimals, or as "undefined"."""
    return "undefined" if tau is None or math.isnan(tau) else f"{tau:.2f}"


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


# The report of ``sensitivity`` as one self-contained HTML page, and its tables as files.

TITLE = "Sensitivity of the order of systems to the measure, the lexicon and other choices"
_AGREEMENT = "Agreement on the order of systems, by pair of combinations"
_LEANS_LESS = (
    "A system leans less than another system if its mean value is nearer to zero (signed measures), lower (absolute "
    "measures) or higher (NFaiRR and similar measures). This page does not test whether differences between systems "
    "are significant."
)


def write_pages(report: SensitivityReport, html: str | Path | None, out: str | Path | None) -> None:
    """Write the page as one file, and the page with all tables as a folder."""
    parts = PageParts()
    page = sensitivity_page(report, parts)
    if html is not None:
        write_whole(Path(html), page)
    if out is not None:
        tau = io.BytesIO()
        report.tau_table().write_parquet(tau)
        tables = {"tables/combinations.csv": report.to_polars().write_csv().encode(), **parts.files()}
        write_report(Path(out), {"report.html": page.encode(), **tables, "tables/tau.parquet": tau.getvalue()})


def sensitivity_page(report: SensitivityReport, parts: PageParts) -> str:
    """The page as HTML. Its tables are added to ``parts``."""
    pairs = pl.DataFrame([asdict(one) | {"flips": one.flips} for one in report.pairs])
    ranks = pl.DataFrame([asdict(one) for one in report.ranks])
    notes = [paragraph(note, kind="note") for note in report.notes]
    sections = [
        Section("summary", "Summary", [listed(list(report.sentences())), *notes]),
        _axes_section(report, parts),
        _agreement_section(report, parts),
        Section("flips", "Conclusions that change", [parts.table(pairs_table(report), pairs)]),
        Section("systems", "Systems", [parts.table(systems_table(report), ranks)]),
    ]
    if len(report.combinations) <= READABLE:
        names = [Column("combination", NAME), *map(Column, report.systems), Column("measure in full", CODE)]
        rows: list[list[Cell]] = [
            [f"{one.number} {one.label}", *one.means, one.signature] for one in report.combinations
        ]
        means = table("means", "Mean of each system; a row is one measure with one set of parameters", names, rows)
        sections.append(Section("combinations", "All combinations", [parts.table(means)]))
    head = paragraph("Does the order of systems depend on the word list, the tokenizer, the cutoff, or another choice?")
    return document(TITLE, [head], sections, [paragraph(_LEANS_LESS)])


def axes_table(report: SensitivityReport) -> Table:
    """The agreement of orders when only one choice changes, for each kind of choice."""
    head = [Column("axis", NAME), Column("values"), Column("pairs"), Column("mean tau", digits=2),
            Column("lowest tau", digits=2), Column("values compared", WORDS)]  # fmt: skip
    rows: list[list[Cell]] = [
        [one.axis, len(one.values), one.pairs, one.mean_tau, one.lowest_tau, ", ".join(map(str, one.values))]
        for one in report.axes
    ]
    note = (
        "A combination is one set of choices, such as a measure, a word list and a cutoff. Each row is one kind of "
        "choice. The column 'pairs' counts the pairs of combinations that are equal except for this choice. "
        "Some choices, such as the sign, exist only for some measures. A choice that only one of two "
        "combinations has is not compared. A low mean tau means that this kind of choice changes the order of systems "
        "much."
    )
    caption = (
        "Mean of Kendall's tau between two orders of systems by lean, over pairs of combinations that differ in one "
        "choice"
    )
    return table("axes", caption, head, rows, note)


def pairs_table(report: SensitivityReport, most: int | None = None) -> Table:
    """The pairs of systems whose order differs between combinations; at most ``most`` of them."""
    flips, total = report.flips, len(report.combinations)
    head = [Column("A", NAME), Column("B", NAME), Column("A leans less"), Column("B leans less"),
            Column("equal"), Column("share where B leans less", digits=0, unit="%")]  # fmt: skip
    rows: list[list[Cell]] = [
        [one.first, one.second, one.first_less, one.second_less, one.equal, 100 * one.second_less / total]
        for one in flips[:most]
    ]
    notes = [
        "The columns count combinations. "
        f"{len(report.pairs) - len(flips):,} of {len(report.pairs):,} pairs have the same order, or are equal, in all "
        "combinations."
    ]
    notes += [f"{len(flips) - len(rows):,} more pairs are not shown."] if len(rows) < len(flips) else []
    caption = "Pairs of systems (A and B) whose order by lean differs between combinations of choices"
    return table("pairs", caption, head, rows, *notes)


def systems_table(report: SensitivityReport) -> Table:
    """The ranks of each system over all combinations."""
    head = columns("system", "best rank", "median rank", "worst rank", "times least")
    rows: list[list[Cell]] = [[one.system, one.best, f"{one.median:g}", one.worst, one.least] for one in report.ranks]
    note = (
        "The system with rank 1 leans least. Systems with equal means share the better rank. Times least: the number "
        "of combinations where this system leans least."
    )
    return table("systems", "Ranks of the systems by lean, over all combinations of choices", head, rows, note)


def _axes_section(report: SensitivityReport, parts: PageParts) -> Section:
    data = [asdict(one) | {"values": ", ".join(map(str, one.values))} for one in report.axes]
    charts = []
    for one in report.axes:
        headings = [Heading(str(value), str(value)) for value in one.values]
        title = f"{one.axis}: mean tau where only this choice changes"
        about = About(f"axis-{one.axis}", title, _described(f"{one.axis} values"))
        drawn = heat_map(about, headings, report.within(one.axis), "mean tau")
        caption = (
            f"Rows and columns are choices of {one.axis}. A cell is the mean of Kendall's tau over all pairs "
            f"of combinations that differ only in {one.axis}: one combination has the choice of the row, and "
            "the other combination has the choice of the column."
        )
        charts.append(tag("div", parts.chart(about, drawn, caption), class_="own"))
    drawn_table = parts.table(axes_table(report), pl.DataFrame(data))
    return Section("axes", "Which choice matters", [drawn_table, figures(*charts)])


def _agreement_section(report: SensitivityReport, parts: PageParts) -> Section:
    combinations = report.combinations
    each = "Each row and each column"
    if len(combinations) <= READABLE:
        headings = [
            Heading(f"{one.number} {one.label}", str(one.number), str(one.choices["measure"])) for one in combinations
        ]
        values = report.tau
        caption = (
            f"{each} is one combination of choices, such as a measure, a word list and a cutoff. Each cell is "
            "Kendall's tau between the order of systems by the combination of the row and the order of systems by the "
            "combination of the column. Point at a cell to see the two combinations."
        )
    else:
        labels = [" ".join(str(one.choices[axis]) for axis in AXES[:2] if axis in one.choices) for one in combinations]
        firsts = {label: str(one.choices["measure"]) for label, one in zip(labels, combinations, strict=True)}
        headings = [Heading(label, label, group) for label, group in firsts.items()]
        values = report.between(labels)
        caption = (
            f"{each} names one measure and one lexicon, and stands for all combinations that have both. For each cell, "
            "every combination of the row is compared with every combination of the column. The cell is the mean of "
            "Kendall's tau over these comparisons. If the report is written to a folder (out=), the tau of all pairs "
            f"of the {len(combinations):,} combinations is in the file 'tables/tau.parquet'."
        )
    about = About("agreement", _AGREEMENT, _described("combinations"))
    drawn = heat_map(about, headings, values, "Kendall's tau-b")
    return Section("agreement", _AGREEMENT, [tag("div", parts.chart(about, drawn, caption), class_="own")])


def _described(things: str) -> str:
    return (
        f"A matrix of colored cells, one per pair of {things}: blue where the orders of systems agree, orange where "
        "the orders differ."
    )


# The combinations that ``sensitivity`` measures: all values of all axes that a measure has.

# A comma-separated text, or a sequence of values.
Listed: TypeAlias = str | Sequence[str]
LexiconLike: TypeAlias = str | Path | Lexicon
# More digits than any valid cutoff has. Longer texts are cut before they are converted to a number.
_DIGITS = 12
_NAMES = {"tokens": "tokens", "sign": "signs", "missing": "missing", "who": "who"}


@dataclass(frozen=True)
class Axes:
    """The values of each axis, before they are restricted to those that a measure accepts."""

    measures: list[Measure]
    lexicons: dict[str, Lexicon]
    given: Mapping[str, tuple[str, ...]]
    cutoffs: tuple[int, ...]

    def combinations(self) -> Iterator[tuple[Measure, dict[str, Value]]]:
        """Each measure with all its parameters, and its value on each axis."""
        for base in self.measures:
            family = find_family(base.name)
            named = {key: value for key, value in base.params if key not in AXES}
            shown = Measure(base.name, tuple(sorted(named.items())), None, base.positional).text
            options = {axis: self._values(base, family, axis) for axis in AXES[1:]}
            present = {axis: values for axis, values in options.items() if values}
            for chosen in itertools.product(*present.values()):
                choices = dict(zip(present, chosen, strict=True))
                # A tokenizer that cannot resolve mentions is skipped, unless the combination was requested explicitly.
                is_usual = base.param("who") is None and ANY in self.given["who"]
                if is_usual and choices.get("who", ANY) != ANY and not can_mark(str(choices["tokens"])):
                    continue
                params = {axis: value for axis, value in choices.items() if axis != "cutoff"}
                if params.get("lexicon") in self.lexicons:
                    params["lexicon"] = self.lexicons[str(params["lexicon"])].id
                every = tuple(sorted((dict(base.params) | params).items()))
                measure = Measure(base.name, every, int(choices["cutoff"]), base.positional)
                yield measure, {"measure": shown, **choices}

    def _values(self, base: Measure, family: MeasureFamily, axis: str) -> tuple[Value, ...]:
        """The values of a measure on an axis: the one in its text, or else all given ones.

        Empty if the measure does not have this axis.
        """
        if axis == "cutoff":
            return (base.cutoff,) if base.cutoff is not None else self.cutoffs
        if axis not in family.parameters:
            return ()
        own = base.param(axis)
        if own is not None:
            return (own,)
        if axis == "lexicon":
            return tuple(self.lexicons)
        return tuple(value for value in self.given[axis] if not family.parameters[axis].expected(value))


def axes_of(
    groups: Groups,
    measures: MeasuresLike | None,
    lexicons: Sequence[LexiconLike] | str | None,
    listed: Mapping[str, Listed | None],
    cutoffs: str | Sequence[int] | None,
) -> Axes:
    """Check the requested axes. An axis that is not given has its default values."""
    texts = measure_texts(measures)
    bases = [Measure.parse(text) for text in (defaults.SENSITIVITY_MEASURES if texts is None else texts)]
    for base in bases:
        if "mentions" not in find_family(base.name).reads:
            raise ConfigError(
                f"sensitivity: {base.name} is not a measure of lean, because it counts no words of a lexicon; leave "
                f"{base.name} out of ⟨measures⟩"
            )
    usual = {
        "tokens": defaults.SENSITIVITY_TOKENS, "sign": defaults.SENSITIVITY_SIGNS,
        # The resolver was trained on words for women and men. For other groups the axis must be requested.
        "who": defaults.SENSITIVITY_WHO if set(groups.names) <= set(LEARNED) and default_resolver() else (),
        "missing": ("error", *defaults.SENSITIVITY_MISSING),
    }  # fmt: skip
    given: dict[str, tuple[str, ...]] = {}
    for axis, values in usual.items():
        found = listed.get(axis)
        given[axis] = values if found is None else _split(found, _NAMES[axis])
        if found is not None:
            _check(axis, given[axis], bases)
    return Axes(bases, _lexicons(groups, lexicons), given, _cutoffs(cutoffs))


def _split(given: Listed, name: str) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    found = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not found:
        raise ConfigError(f"⟨{name}⟩: expected one value or more, found none")
    return found


def _check(axis: str, values: Sequence[str], bases: Sequence[Measure]) -> None:
    """Raise an error for a value that no measure accepts, because it would otherwise be ignored silently."""
    if axis == "tokens":
        check_names("tokenizer", values, registry.names("tokenizer"), f"{_NAMES[axis]}=")
    taken = [parameters[axis] for base in bases if axis in (parameters := find_family(base.name).parameters)]
    for value in values:
        if not any(not parameter.expected(value) for parameter in taken):
            known = sorted({str(choice) for parameter in taken for choice in parameter.choices})
            name = _NAMES[axis]
            if not known:
                raise ConfigError(f"⟨{name}⟩: no requested measure has this parameter; leave out ⟨{name}⟩")
            raise ConfigError(f"⟨{name}⟩: expected one or more of {', '.join(known)}; found {value!r}")


def _lexicons(groups: Groups, given: Sequence[LexiconLike] | str | None) -> dict[str, Lexicon]:
    """The lexicons by display name. Default: that of the groups and all shipped lexicons with these groups."""
    if given is None:
        found = lexicons_with(groups)
    else:
        found = [load_lexicon(one) for one in (_split(given, "lexicons") if isinstance(given, str) else given)]
        if not found:
            raise ConfigError("⟨lexicons⟩: expected one lexicon or more, found none")
    for one in found:
        check_names("group", groups.names, one.group_names, f"lexicon {one.name}")
    distinct = list({one.id: one for one in found}.values())
    names = [one.name for one in distinct]
    return {one.name if names.count(one.name) == 1 else one.id: one for one in distinct}


def lexicons_with(groups: Groups, without: Sequence[str] = ()) -> list[Lexicon]:
    """The lexicon of the groups, and all shipped lexicons with these groups; not those named in ``without``."""
    shipped = [load_lexicon(name) for name in shipped_lexicons() if name not in without]
    return [groups.lexicon, *(one for one in shipped if set(groups.names) <= set(one.group_names))]


def _cutoffs(given: str | Sequence[int] | None) -> tuple[int, ...]:
    if given is None:
        return defaults.SENSITIVITY_CUTOFFS
    texts = given.split(",") if isinstance(given, str) else [str(one) for one in given]
    found = tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not found or not all(text.isascii() and text.isdigit() and int(text[:_DIGITS]) > 0 for text in found):
        raise ConfigError(f"⟨cutoffs⟩: expected whole numbers of 1 or more, as in 5,10,20; found {', '.join(texts)!r}")
    return tuple((Measure("cutoffs") @ int(text[:_DIGITS])).cutoff or 0 for text in found)


__all__ = ["SensitivityReport", "sensitivity"]
# A mean that is smaller than this fraction of the mean absolute value counts as zero (rounding).
_ROUNDING = 1e-12


def sensitivity(
    runs: Sequence[RunLike] | Mapping[str, RunLike],
    collection: object = None,
    measures: MeasuresLike | None = None,
    *,
    groups: GroupsLike | None = None,
    docs: object = None,
    lexicons: Sequence[LexiconLike] | str | None = None,
    tokens: Listed | None = None,
    signs: Listed | None = None,
    cutoffs: str | Sequence[int] | None = None,
    missing: Listed | None = None,
    who: Listed | None = None,
    queries: str | Path | Sequence[str] | None = None,
    label: str | None = None,
    background: RunLike | None = None,
    order: str | None = None,
    fields: Sequence[str] = (),
    run_format: str = defaults.RUN_FORMAT,
    store: str | Path | None = None,
    html: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> SensitivityReport:
    """Test whether the order of systems depends on the lexicon, the tokenizer, the cutoff, or another choice.

    Two or more runs are measured with every combination of the values below. The orders of the systems are compared
    with Kendall's tau-b. A value that the text of a measure fixes, such as ``sign`` in ``"ARaB(tf,sign=abs)"``, is not
    varied.

    - ``measures``: measures of lean without a cutoff, as in ``"ARaB(tf) NFaiRR"``. Default: ARaB (tc, tf and bool),
      NFaiRR and LexiconShare.
    - ``lexicons``: lexicons by name, file or object. Default: all shipped lexicons that have all groups of ``groups``.
    - ``tokens``: tokenizers. Default: ``word``, ``blank``, ``unclipped`` and ``seyedsalehi``.
    - ``signs``: signed or absolute values. Default: ``signed``, ``abs`` (the absolute value of the measure for each
      query) and ``running-abs`` (ARaB takes the absolute value at every rank, before it averages over the ranks).
    - ``cutoffs``: cutoffs of the measures. Default: 5, 10, 20 and 50.
    - ``missing``: how to treat ranked documents without text. Default: ``zero``, ``drop`` and ``skip``. If all ranked
      documents have a text, ``missing`` is not varied.
    - ``who``: values of the parameter ``who`` (the classes of mentions to count). Default: ``any`` (all mentions) and
      ``generic`` (mentions of people in general).

    These arguments are not varied:

    - ``groups``: the groups to compare. Default: female and male.
    - ``html``: a file for a page with a heat map.
    - ``out``: a folder for the page and all tables.
    - ``runs``, ``collection``, ``docs``, ``queries``, ``label``, ``background``, ``order``, ``fields``, ``run_format``,
      ``store`` and ``progress``: as in ``measure``.
    """
    if html is not None and Path(html).is_dir():
        raise ConfigError(f"⟨html⟩ {html}: expected a file, found a folder; give a name such as sensitivity.html")
    if out is not None:
        check_out(Path(out))
    counted = Groups.of(defaults.SENSITIVITY_GROUPS if groups is None else groups)
    listed = {"tokens": tokens, "sign": signs, "missing": missing, "who": who}
    axes = axes_of(counted, measures, lexicons, listed, cutoffs)
    choices = _choices(axes)
    docs, _ = parts_of(collection, docs, None)
    named = named_runs(as_runs(runs))
    if len(named) < 2:
        raise ConfigError(
            f"sensitivity compares the order of systems: give two runs or more, found {len(named)}",
            code="too-few-runs",
            runs=len(named),
        )
    for run in named.values():
        if isinstance(run, str | Path):
            check_file(Path(run), "run")
    given = {key: value for key, value in (("order", order), ("fields", "+".join(fields))) if value}
    lexicons_by_id = {one.id: one for one in axes.lexicons.values()}
    catalogue = Catalogue(None, given, lexicons_by_id, counted, background is not None)
    asked, notes = choose_measures(catalogue, list(choices), docs is not None, False)
    published = reads_as_published(asked, None)
    measured = read_runs(
        asked, named, published=published, run_format=run_format, background=background, queries=queries, label=label,
        brief=True,
    )  # fmt: skip
    kept = Store(store) if store is not None and Path(store).is_dir() else None
    source = DocumentSource(docs, fields_of(asked, tuple(fields)), published, kept)
    inputs = count_inputs(asked, measured, source, catalogue.lexicons, progress=progress)
    absent = _without_text(inputs.asked, inputs.inputs)
    compared = _compared_rules(choices, missing is not None, inputs.asked, absent)
    scored = score_runs(inputs, compared, brief=True)
    notes += [*measured.notes, *inputs.notes, *scored.notes]
    if absent:
        rules = dict.fromkeys(str(one.measure.param("missing")) for one in compared)
        words = (
            f"{absent:,} ranked documents have no text; the report compares these ways to treat such documents "
            f"(values of ⟨missing⟩): {', '.join(map(repr, rules))}"
        )
        notes.append(Note(words, code="missing-texts", documents=absent, rules=[*rules]))
    else:
        # If every document has a text, all values of missing give the same result.
        for chosen in choices.values():
            chosen.pop("missing", None)
    combinations = [
        Combination(
            number, choices[one.text], one.signature, one.direction,
            tuple(_mean(run.values[one.text]) for run in scored.runs),
        )
        for number, one in enumerate(scored.asked, start=1)
    ]  # fmt: skip
    if len(axes.lexicons) == 1:
        words = (
            f"because no other shipped lexicon has the groups {', '.join(counted.names)}; add lexicons with ⟨lexicons⟩"
        )
        notes.append(Note(f"only one lexicon is compared, {words}", code="one-lexicon"))
    left = sum(any(np.isnan(run.values[one.text]).any() for run in scored.runs) for one in scored.asked)
    if left:
        notes.append(f"in {left:,} of {len(scored.asked):,} combinations, some queries of a run have no value")
    report = SensitivityReport([run.name for run in scored.runs], combinations, notes)
    if html is not None or out is not None:
        write_pages(report, html, out)
    return report


def _choices(axes: Axes) -> dict[str, dict[str, Value]]:
    """The choices of each combination, by the text of its measure."""
    found: dict[str, dict[str, Value]] = {}
    for measure, choices in axes.combinations():
        found[measure.text] = choices
        if len(found) > defaults.MOST_COMBINATIONS:
            raise ConfigError(
                f"sensitivity: more than {defaults.MOST_COMBINATIONS:,} combinations; give fewer values with "
                "⟨measures⟩, ⟨lexicons⟩, ⟨tokens⟩, ⟨signs⟩ or ⟨cutoffs⟩"
            )
    return found


def _compared_rules(
    choices: Mapping[str, dict[str, Value]], given: bool, asked: list[MeasureRequest], absent: int
) -> list[MeasureRequest]:
    """The measures to compare: with all values of ``missing`` if documents without text are read, else with one value.

    The value "error" is kept only if it was ``given``.
    """
    alike: dict[tuple[tuple[str, Value], ...], list[MeasureRequest]] = {}
    for one in asked:
        others = tuple(item for item in choices[one.text].items() if item[0] != "missing")
        alike.setdefault(others, []).append(one)
    kept = set()
    for same in alike.values():
        if not absent:
            compared = same[:1]
        elif given or len(same) == 1:
            compared = same
        else:
            compared = [one for one in same if one.measure.param("missing") != "error"]
        kept |= {one.text for one in compared}
    return [one for one in asked if one.text in kept]


def _without_text(asked: Sequence[MeasureRequest], inputs: Sequence[Inputs]) -> int:
    """The number of documents without text that the measures read, not counting those that move up with "drop"."""
    absent = np.zeros(len(inputs[0].doc_ids), np.bool_)
    read = [one for one in asked if one.measure.param("missing") != "drop"] or asked
    for one in {way_of_reading(one.measure): one for one in read}.values():
        key = key_of(one)
        for given in inputs if key is not None else ():
            assert key is not None
            absent |= documents_read(one.measure, given) & ~known_to(one.measure, given.mentions(*key))
    return int(absent.sum())


def _mean(values: Floats) -> float:
    """The mean over the queries that have a value."""
    known = values[~np.isnan(values)]
    mean = float(known.mean())
    return 0.0 if abs(mean) <= _ROUNDING * float(np.abs(known).mean()) else mean
