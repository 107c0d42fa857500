"""Compare two runs query by query: gains with intervals, corrected tests, and tests of non-inferiority."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np
import polars as pl

from askew.core import defaults
from askew.core.errors import ConfigError, DataError, Note, check_name
from askew.core.measure import Direction, Measure
from askew.core.ranking import Floats
from askew.data.runs import Run
from askew.measures.catalogue import MeasureRequest
from askew.measures.counts import Progress
from askew.measures.lists import RunLike, named_runs
from askew.measures.measure import MeasureOptions, MeasureReport, measure
from askew.measures.requested import MeasuresLike, is_signed
from askew.measures.statistics.intervals import SAME, gain_bounds, is_bounded
from askew.measures.statistics.significance import (
    ALPHA,
    FEWEST_NONZERO,
    NULLS,
    TESTS,
    Paired,
    holm_by_family,
    paired,
    rounded_gains,
)
from askew.report.charts import About, sorted_gains
from askew.report.markup import p_value
from askew.report.page import slug
from askew.report.table import CODE, Cell, Column, Estimate, Table, TableView, columns, table
from askew.study.gate import LOSES, MAY_LOSE, OF_COMPARE, Condition, check_measures, read_conditions
from askew.study.tables import measure_notes, skew_notes

_REACH = (
    "smallest margin: the smallest mean loss that n queries can rule out with 95% confidence if both runs have the "
    "same value for every query. If the new run is better for many queries, a smaller loss can be ruled out. No "
    "value: the measure has no upper bound.",
    "loss not ruled out: the upper end of the one-sided 95% confidence interval of the mean loss. Both come from the "
    "test for bounded means.",
)
_DETECTABLE = "detectable gain: a true mean gain of this size gives p < 0.05 with a probability of 80%."
# The families of tests that Holm's method corrects apart.
EFFECTIVENESS, LEAN = "effectiveness", "lean"
# The keys of a signed change in a dictionary.
SHIFT = {"shift": "gain", "shift_low": "low", "shift_high": "high", "p_shift": "p"}
_p = partial(Column, digits=3, least=0.001)
Margin: TypeAlias = float | Mapping[str, float] | None


@dataclass(repr=False)
class CompareReport(TableView):
    """The result of ``compare``: one comparison per measure.

    ``p_holm`` has p-values that are Holm-corrected for the number of measures of effectiveness, or of lean.
    ``p_no_loss_holm`` and ``p_equivalent_holm`` have the p-values of the tests of non-inferiority and of equivalence,
    corrected in the same way, for each measure with a margin (the argument ``margin`` of ``compare``). ``nulls`` has
    the null hypothesis of each p-value. ``shifts`` has the change of the mean with its sign, for each measure whose
    sign shows toward which group results lean. In each entry of ``shifts``, ``gain`` is the new mean minus the old
    mean, and ``p`` is not Holm-corrected. ``tests`` has the number of tests of each family that ``p_holm`` is corrected
    for. ``gains`` has the gain of each query with a value in both runs. ``passed`` has a line for each condition that
    does not hold.
    """

    old: str
    new: str
    asked: list[MeasureRequest]
    results: dict[str, Paired]
    p_holm: dict[str, float]
    p_no_loss_holm: dict[str, float]
    p_equivalent_holm: dict[str, float]
    test: str = defaults.TEST
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    shifts: dict[str, Paired] = field(default_factory=dict)
    tests: dict[str, int] = field(default_factory=dict)
    gains: dict[str, Floats] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)

    @property
    def nulls(self) -> dict[str, str]:
        """The null hypothesis of each p that is reported."""
        stated = {"p": NULLS[self.test]}
        if self.p_no_loss_holm:
            stated |= {f"p_{name}": NULLS[name] for name in ("no_loss", "equivalent")}
        return stated

    def __getitem__(self, key: str | Measure) -> Paired:
        """The comparison by one measure: ``report["nDCG@10"].gain``."""
        text = key.text if isinstance(key, Measure) else key
        check_name("measure", text, self.results, "the report")
        return self.results[text]

    def to_polars(self) -> pl.DataFrame:
        """One row per measure, with all values of the comparison."""
        rows = [{"measure": text, **found} for text, found in self.to_dict()["measures"].items()]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_pandas(self) -> Any:
        """As ``to_polars``, for pandas, which must be installed."""
        return self.to_polars().to_pandas()

    def table(self) -> Table:
        """The gain of each measure with its interval and test; ``tables`` have more columns."""
        head = [Column("measure", CODE), Column(self.old), Column(self.new), Column("gain [95%]", signed=True), _p("p"),
                _p("p (Holm)"), Column("nonzero"), Column("n")]  # fmt: skip
        rows: list[list[Cell]] = []
        for text, found in self.results.items():
            gain = Estimate(found.gain, found.low, found.high)
            rows.append([text, found.old, found.new, gain, found.p, self.p_holm.get(text), found.nonzero, found.n])
        return table("comparison", f"{self.old} and {self.new}", head, rows, f"p: null hypothesis: {self.nulls['p']}")

    def tables(self) -> list[Table]:
        """The gains, what this number of queries can rule out, and the tests against a margin if there is one."""
        rows = [(one, self.results[one.text]) for one in self.asked]
        changes = [None if found.relative is None else 100 * found.relative for _, found in rows]
        head = [Column("measure", CODE), Column("old"), Column("new"),
                Column("change", digits=1, signed=True, unit="%"), Column("gain [95%]", signed=True),
                _p("p"), _p("p (Holm)"), Column("d_z", digits=2), Column("improved"), Column("worsened"),
                Column("unchanged"), Column("nonzero"), Column("n")]  # fmt: skip
        gains = [
            [one.text, found.old, found.new, change, Estimate(found.gain, found.low, found.high),
             found.p, self.p_holm.get(one.text), found.d_z, found.improved, found.worsened, found.unchanged,
             found.nonzero, found.n]
            for (one, found), change in zip(rows, changes, strict=True)
        ]  # fmt: skip
        detectable = [[one.text, found.detectable] for one, found in rows]
        tables = [
            table("gains", f"old: {self.old}   new: {self.new}", head, gains, *self._gain_notes()),
            table(
                "reach", "mean gains that n queries can detect", columns("measure", "detectable gain", kind=CODE),
                detectable, _DETECTABLE,
            ),
        ]  # fmt: skip
        if self.p_no_loss_holm:
            margins = [
                [text, found.margin, found.smallest_margin, found.not_ruled_out, p, self.p_equivalent_holm[text]]
                for text, p in self.p_no_loss_holm.items()
                for found in [self.results[text]]
            ]
            head = [
                *columns("measure", "margin", "smallest margin", "loss not ruled out", kind=CODE),
                _p("no loss: p (Holm)"),
                _p("equivalent: p (Holm)"),
            ]
            nulls = [
                f"Column '{name}': p-value of the null hypothesis that {self.nulls[key]}."
                for name, key in (("no loss", "p_no_loss"), ("equivalent", "p_equivalent"))
            ]
            caption = "can a mean loss as large as the margin be ruled out?"
            tables.append(table("margins", caption, head, margins, *nulls, *_REACH))
        return tables

    def _gain_notes(self) -> list[str]:
        notes = ["gain: how much better the new run is, as a mean over queries. For every measure, positive is better."]
        if any(one.direction is Direction.ZERO for one in self.asked):
            notes.append(
                "If the best value of a measure is 0, the gain is the mean decrease of the distance from 0. For such a "
                "measure, no change in percent is shown: positive and negative values cancel in the mean."
            )
        notes.append(
            f"p: p-value of the null hypothesis that {self.nulls['p']} (test: {self.test}). The interval of the gain "
            "comes from the same test and is not corrected."
        )
        tests = " and ".join(f"{number} of {family}" for family, number in self.tests.items())
        notes.append(f"p (Holm): p corrected by Holm's method within each family of tests ({tests}).")
        notes.append("d_z: mean gain / standard deviation of the gains.")
        notes.append(
            "improved, worsened, unchanged: numbers of queries. nonzero: number of queries with a value other than 0 "
            f"in one of the runs; for fewer than {FEWEST_NONZERO} of them, no change in percent is shown."
        )
        if any(found.low is None for found in self.results.values()):
            notes.append(
                f"No interval: all gains are equal, queries are too few, or fewer than {FEWEST_NONZERO} and fewer than "
                "half of the queries differ. For bounded measures, the test 'bounded' gives an interval."
            )
        notes += measure_notes(self.asked)
        for one in self.asked:
            found = self.shifts.get(one.text)
            if found is not None and found.gain:
                ends = "" if found.low is None else f" [{found.low:+.3f}, {found.high:+.3f}]"
                notes.append(
                    f"{one.text}: with its sign, the mean changes by {found.gain:+.4f}{ends}, toward "
                    f"{one.groups[0] if found.gain > 0 else one.groups[1]} (p {p_value(found.p)}, not corrected)."
                )
        return notes

    def charts(self) -> dict[str, str]:
        """A chart of each measure: the gains of the queries, from the highest to the lowest."""
        drawn: dict[str, str] = {}
        for text, gains in self.gains.items():
            found = self.results[text]
            about = About(
                slug(text, drawn, before="gains"), f"Gain of each query by {text}",
                "An area above zero for improved queries, and one below zero for worsened ones.",
            )  # fmt: skip
            keys = [f"{found.improved:,} improved", f"{found.worsened:,} worsened"]
            drawn[about.name] = sorted_gains(about, gains, "gain", keys)
        return drawn

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        measures = {
            a.text: {
                **asdict(self.results[a.text]),
                "p_holm": self.p_holm.get(a.text),
                "p_no_loss_holm": self.p_no_loss_holm.get(a.text),
                "p_equivalent_holm": self.p_equivalent_holm.get(a.text),
                **{key: getattr(self.shifts.get(a.text), name, None) for key, name in SHIFT.items()},
                "signature": a.signature,
            }
            for a in self.asked
        }
        whole = {"old": self.old, "new": self.new, "null_hypotheses": self.nulls, "tests": self.tests}
        return {**whole, "measures": measures, "failures": self.failures}


def _outcome(one: Condition, found: Paired, p_no_loss: float | None, missing: int) -> tuple[bool, str]:
    """Whether the comparison fails, and the compared value. ``missing``: queries without a value in a run."""
    if missing:
        return True, f"{one.measure} lacks a value in one or both runs for {missing} of {found.n + missing} queries"
    if one.verb == LOSES:
        lost = found.gain <= -one.amount + SAME
        return lost, f"{one.measure} loses {-found.gain:.4f}, which is {one.amount:g} or more" if lost else (
            f"{one.measure} has a gain of {found.gain:+.4f}, which is no loss of {one.amount:g} or more"
        )
    p = "not computed" if p_no_loss is None else f"{p_no_loss:.3f}"
    lost = p_no_loss is None or p_no_loss >= ALPHA
    can = "cannot rule" if lost else "rules"
    why = f"the test {can} out a mean loss of {one.amount:g} or more (p = {p}, Holm-corrected)"
    return lost, f"{one.measure} {'may' if lost else 'does not'} lose {one.amount:g}: {why}"


def _with_margins(conditions: Sequence[Condition], margin: Margin) -> Margin:
    """The margins of a comparison, with the margins of the 'may lose' conditions added."""
    wanted: dict[str, float] = {}
    for one in conditions:
        if one.verb == MAY_LOSE and wanted.setdefault(one.measure, one.amount) != one.amount:
            raise ConfigError(
                f"⟨fail_if⟩: two 'may lose' conditions for {one.measure}, with the amounts {wanted[one.measure]:g} and "
                f"{one.amount:g}; keep only the condition with the smaller amount"
            )
    if not wanted:
        return margin
    if margin is not None and not isinstance(margin, Mapping):
        raise ConfigError(
            f"a 'may lose' condition of ⟨fail_if⟩ already gives a margin for {next(iter(wanted))}, so ⟨margin⟩ cannot "
            "be one number for all measures. Give ⟨margin⟩ a number for each measure, as in 'RR@10=0.01'"
        )
    for name, amount in wanted.items():
        if margin is not None and margin.get(name, amount) != amount:
            raise ConfigError(
                f"⟨fail_if⟩ and ⟨margin⟩ give different margins for {name}: {amount:g} and {margin[name]:g}. Give "
                "the same margin in both, or leave out ⟨margin⟩"
            )
    return {**(margin or {}), **wanted}


def compare(
    old: RunLike, new: RunLike, collection: object = None, measures: MeasuresLike | None = None, *,
    test: str = defaults.TEST, margin: Margin = None, fail_if: str | Sequence[str] = (),
    unpaired: str = defaults.UNPAIRED, seed: int = 0, names: tuple[str, str] | None = None,
    testing: Progress | None = None, **options: Unpack[MeasureOptions],
) -> CompareReport:  # fmt: skip
    """Compare the run ``new`` with the run ``old``, query by query.

    - ``old``, ``new``: the two runs, each in a form that ``measure`` accepts.
    - ``collection``, ``measures``: as in ``measure``.
    - ``test``: ``"randomization"`` (the paired randomization test, with the interval that inverts it), ``"t"``
      (Student's paired t-test), ``"wilcoxon"`` (the signed-rank test, without an interval) or ``"bounded"`` (the test
      for bounded means, which is conjectured to be valid for every distribution).
    - ``margin``: the largest acceptable loss: one number for all bounded measures of effectiveness, or a
      dict from the text of a measure to a number. With a margin, the report also has tests of non-inferiority ("no
      loss beyond the margin") and of equivalence.
    - ``fail_if``: one or several conditions under which the comparison fails. The attribute ``failures`` of the report
      lists the conditions that hold. ``"nDCG@10 loses 0.01"`` holds if the mean loss is 0.01 or more.
      ``"nDCG@10 may lose 0.01"`` holds if the test of non-inferiority does not rule out a mean loss of 0.01 or more at
      the 5% level. Such a condition needs a bounded measure. A condition on a measure of lean also holds if, in at
      least one of the two runs, one or more queries have no value of this measure.
    - ``unpaired``: how to treat a query that is in only one of the runs: ``"error"`` (stop) or ``"drop"`` (leave it
      out).
    - ``seed``: the seed of the test ``"randomization"``.
    - ``names``: the names of the two runs in the report. By default, the names of the files or of the ``Run`` objects.
    - ``testing``: a function that is called before each measure is compared, with the number of measures compared so
      far and the total number of measures.
    - ``options``: further arguments of ``measure``, such as ``qrels`` and ``groups``.
    """
    if test not in TESTS:
        raise ConfigError(f"⟨test⟩: expected {' or '.join(map(repr, TESTS))}, found {test!r}")
    if seed < 0:
        raise ConfigError(f"⟨seed⟩: expected 0 or a positive whole number, found {seed}")
    if unpaired not in ("error", "drop"):
        raise ConfigError(f"⟨unpaired⟩: expected 'error' or 'drop', found {unpaired!r}")
    conditions = read_conditions(fail_if, OF_COMPARE)
    margin = _with_margins(conditions, margin)
    for value in margin.values() if isinstance(margin, Mapping) else [] if margin is None else [margin]:
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"⟨margin⟩: expected a number above 0 (the largest acceptable loss), found {value!r}")

    def check(asked: list[MeasureRequest]) -> None:
        check_measures(conditions, [one.text for one in asked])
        _refuse_unused(asked, margin, [one.measure for one in conditions if one.verb == MAY_LOSE])

    report = measure(_named(old, new, names), collection, measures, before_scoring=check, **options)
    rows_a, rows_b, notes = _pair(report, unpaired)
    results: dict[str, Paired] = {}
    # Measures with the same gains are one test, as ARaB with and without ``sign=abs``.
    alike: dict[tuple[str, bool, bytes], list[str]] = {}
    shifts: dict[str, Paired] = {}
    gains: dict[str, Floats] = {}
    missing: dict[str, int] = {}
    for number, asked in enumerate(report.asked):
        if testing:
            testing(number, len(report.asked))
        a, b = report.runs[0].values[asked.text][rows_a], report.runs[1].values[asked.text][rows_b]
        there = ~np.isnan(a) & ~np.isnan(b)
        if not there.any():
            raise DataError(f"{asked.text}: none of the shared queries has a value in both runs")
        if not there.all():
            words = f"{asked.text}: over the {int(there.sum())} of {len(there)} queries with a value in both runs"
            notes.append(Note(words, code="fewer-queries", measure=asked.text, queries=int(there.sum())))
            # A measure of effectiveness leaves out the same queries in both runs, because only judgements decide which.
            missing[asked.text] = 0 if asked.judged else int((~there).sum())
        limit = _margin_for(asked, margin)
        results[asked.text] = paired(
            a[there], b[there], asked.direction, asked.bounds, test=test, margin=limit, seed=seed
        )
        same = asked.measure.name, is_bounded(asked.bounds), rounded_gains(a, b, asked.direction).tobytes()
        alike.setdefault(same, []).append(asked.text)
        gains[asked.text] = rounded_gains(a[there], b[there], asked.direction)
        if is_signed(asked):
            shifts[asked.text] = paired(a[there], b[there], Direction.UP, asked.bounds, test=test, seed=seed)
    old_name, new_name = (run.name for run in report.runs)
    families = {one.text: EFFECTIVENESS if one.judged else LEAN for one in report.asked}
    by_test = holm_by_family({texts[0]: results[texts[0]].p for texts in alike.values()}, families.__getitem__)
    by_p = {text: by_test[texts[0]] for texts in alike.values() if texts[0] in by_test for text in texts}
    by_no_loss, by_equivalent = (
        holm_by_family({text: getattr(found, name) for text, found in results.items()}, families.__getitem__)
        for name in ("p_no_loss", "p_equivalent")
    )
    checked = [
        _outcome(one, results[one.measure], by_no_loss.get(one.measure), missing.get(one.measure, 0))
        for one in conditions
    ]
    notes += _disagreement(report.asked, results, by_p)
    notes += [note for text, found in results.items() for note in skew_notes(text, {new_name: found})]
    notes += [
        f"{' and '.join(texts)} have the same gain for every query; Holm's method counts them as one test"
        for texts in alike.values()
        if len(texts) > 1
    ]
    return CompareReport(
        old_name, new_name, report.asked, results, by_p, by_no_loss, by_equivalent, test, [*report.notes, *notes],
        [text for failed, text in checked if failed], shifts,
        dict(Counter(families[text] for text in by_test)), gains,
        [text for failed, text in checked if not failed],
    )  # fmt: skip


def _disagreement(
    asked: Sequence[MeasureRequest], results: Mapping[str, Paired], p_holm: Mapping[str, float]
) -> list[str]:
    """A note if the new run is significantly better by one measure of lean and significantly worse by another."""
    leans = [one.text for one in asked if one.groups and p_holm.get(one.text, 1.0) < ALPHA]
    better, worse = ([text for text in leans if sign * results[text].gain > 0] for sign in (1, -1))
    if not better or not worse:
        return []
    words = (
        f"measures of lean disagree: the new run is significantly better by {', '.join(better)} and significantly "
        f"worse by {', '.join(worse)}; report both, or choose the measure that matters to you before you compare"
    )
    return [Note(words, code="disagreement", better=better, worse=worse)]


def _named(old: RunLike, new: RunLike, names: tuple[str, str] | None) -> dict[str, RunLike]:
    if names is None and isinstance(old, Run) and isinstance(new, Run) and old.name == new.name:
        # Two searches by the same ranker have the same name.
        names = f"{old.name} (old)", f"{new.name} (new)"
    if names is None:
        return named_runs([old, new], others=("old", "new"))
    if names[0] == names[1]:
        raise ConfigError(f"both runs are called {names[0]!r}: give them different names")
    return {names[0]: old, names[1]: new}


def _pair(report: MeasureReport, unpaired: str) -> tuple[Floats, Floats, list[str]]:
    """The rows of the shared queries in both runs, and notes on queries of one run only."""
    a, b = report.runs
    where = {query: row for row, query in enumerate(b.query_ids)}
    shared = [(row, where[query]) for row, query in enumerate(a.query_ids) if query in where]
    alone = len(a.query_ids) + len(b.query_ids) - 2 * len(shared)
    if not shared:
        raise DataError(f"{a.name} and {b.name} have no query in common")
    notes = []
    if alone:
        # The first in the order of the runs.
        single = set(a.query_ids) ^ set(b.query_ids)
        only = next(query for query in [*a.query_ids, *b.query_ids] if query in single)
        message = f"{alone} queries are in one run only, such as {only!r}"
        if unpaired == "error":
            raise DataError(f"{message}; compare only the shared queries with ⟨unpaired=drop⟩")
        notes.append(f"{message}; left out")
    rows = np.array(shared)
    return rows[:, 0], rows[:, 1], notes


def _margin_for(asked: MeasureRequest, margin: Margin) -> float | None:
    if isinstance(margin, Mapping):
        return margin.get(asked.text)
    return margin if asked.judged and is_bounded(asked.bounds) else None


def _refuse_unused(asked: list[MeasureRequest], margin: Margin, may_lose: Sequence[str]) -> None:
    """Raise an error for a margin that no measure uses or that is too large to have a meaning.

    ``may_lose`` are the measures of conditions of ``fail_if``, which give margins too.
    """
    known = {one.text: one for one in asked}
    for text in margin if isinstance(margin, Mapping) else ():
        if text not in known:
            raise ConfigError(
                f"⟨margin⟩ names the measure {text!r}, which is not compared; the compared measures are "
                f"{', '.join(known)}"
            )
        if not is_bounded(known[text].bounds):
            where = "a condition 'may lose' of ⟨fail_if⟩" if text in may_lose else "⟨margin⟩"
            remedy = "Use 'loses' instead of 'may lose'" if text in may_lose else "Leave out this margin"
            raise ConfigError(
                f"{where} names the measure {text!r}, which has no upper bound. A single query can change the mean of "
                f"such a measure by any amount, so no test can rule out a loss. {remedy}, or compare the runs by a "
                "bounded measure such as ARaB(bool)@10 or FaiRR@10"
            )
    limits = {one.text: limit for one in asked if (limit := _margin_for(one, margin)) is not None}
    for text, limit in limits.items():
        most = gain_bounds(known[text].bounds, known[text].direction is Direction.ZERO)[1]
        if limit >= most:
            raise ConfigError(
                f"⟨margin⟩: {text} cannot lose more than {most:g}, so a margin of {limit:g} is never exceeded; give a "
                "smaller margin"
            )
    if margin is not None and not limits:
        raise ConfigError(
            "⟨margin⟩ without the name of a measure applies only to bounded measures of effectiveness, but no such "
            "measure is compared. For another bounded measure, give the name and the margin, as in 'FaiRR@10=0.05'"
        )
