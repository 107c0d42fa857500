"""Compare two runs query by query: gains with intervals, corrected tests, and tests of non-inferiority."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, Unpack

import numpy as np
import polars as pl

from askew.app.measure.gate import MAY_LOSE, check_measures, read_conditions, with_margins
from askew.app.measure.inputs import MeasuresLike
from askew.app.measure.measure import MeasureOptions, measure
from askew.app.measure.values import MeasureReport, RunScores
from askew.app.scoring.comparable import is_signed
from askew.app.scoring.texts import Progress
from askew.app.scoring.universe import RunLike, named_runs
from askew.core import defaults
from askew.core.errors import ConfigError, DataError, check_name
from askew.core.measure import Direction, Measure
from askew.core.ranking import Floats
from askew.core.text_tables import html_table, text_table, with_interval
from askew.corpora.runs import Run
from askew.measures.catalogue import MeasureRequest
from askew.statistics.intervals import gain_bounds, is_bounded
from askew.statistics.significance import ALPHA, MEAN, NULLS, TESTS, Paired, holm, paired, rounded_gains

# The keys of a signed change in a dictionary.
SHIFT = {"shift": "gain", "shift_low": "low", "shift_high": "high", "p_shift": "p"}
Margin: TypeAlias = float | Mapping[str, float] | None


@dataclass(repr=False)
class CompareReport:
    """The result of ``compare``: one comparison per measure.

    ``p_holm`` has p-values that are Holm-corrected for the number of measures. ``p_no_loss_holm`` and
    ``p_equivalent_holm`` have the p-values of the tests of non-inferiority and of equivalence, for each measure with a
    margin (the argument ``margin`` of ``compare``). They are Holm-corrected for the number of these measures. ``nulls``
    has the null hypothesis of each p-value. ``shifts`` has the change of the mean with its sign, for each measure whose
    sign shows toward which group results lean. In each entry of ``shifts``, ``gain`` is the new mean minus the old
    mean, and ``p`` is not Holm-corrected. ``tests`` is the number of tests that ``p_holm`` is corrected for.
    """

    old: str
    new: str
    asked: list[MeasureRequest]
    results: dict[str, Paired]
    p_holm: dict[str, float]
    p_no_loss_holm: dict[str, float]
    p_equivalent_holm: dict[str, float]
    test: str = MEAN
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    shifts: dict[str, Paired] = field(default_factory=dict)
    tests: int = 0

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

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        head = ["measure", self.old, self.new, "gain [95%]", "p (Holm)", "n"]
        rows = []
        for one in self.asked:
            found, p = self.results[one.text], self.p_holm.get(one.text)
            gain = with_interval(found.gain, found.low, found.high, "+")
            shown = "-" if p is None else f"{p:.3f}"
            rows.append([one.text, f"{found.old:.4f}", f"{found.new:.4f}", gain, shown, str(found.n)])
        return head, rows

    def __repr__(self) -> str:
        return f"{text_table(*self._rows())}\np: null hypothesis: {self.nulls['p']}"

    def _repr_html_(self) -> str:
        return f"{html_table(*self._rows())}<p>p: null hypothesis: {self.nulls['p']}</p>"

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
        whole = {"old": self.old, "new": self.new, "null_hypotheses": self.nulls, "measures": measures}
        return {**whole, "failures": self.failures}


def compare(
    old: RunLike,
    new: RunLike,
    collection: object = None,
    measures: MeasuresLike | None = None,
    *,
    test: str = defaults.TEST,
    margin: Margin = None,
    fail_if: str | Sequence[str] = (),
    unpaired: str = defaults.UNPAIRED,
    seed: int = 0,
    names: tuple[str, str] | None = None,
    testing: Progress | None = None,
    **options: Unpack[MeasureOptions],
) -> CompareReport:
    """Compare the run ``new`` with the run ``old``, query by query.

    - ``old``, ``new``: the two runs, each in a form that ``measure`` accepts.
    - ``collection``, ``measures``: as in ``measure``.
    - ``test``: ``"mean"`` (null hypothesis: the mean gain is 0) or ``"randomization"`` (null hypothesis: the two values
      of each query are exchangeable).
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
    _check_settings(test, seed, unpaired)
    conditions = read_conditions(fail_if)
    margin = with_margins(conditions, margin)
    _refuse_meaningless(margin)

    def check(asked: list[MeasureRequest]) -> None:
        check_measures(conditions, [one.text for one in asked])
        _refuse_unused(asked, margin, [one.measure for one in conditions if one.verb == MAY_LOSE])

    report = measure(_named(old, new, names), collection, measures, before_scoring=check, **options)
    rows_a, rows_b, notes = _pair(report, unpaired)
    results: dict[str, Paired] = {}
    tests = _DistinctTests()
    shifts: dict[str, Paired] = {}
    missing: dict[str, int] = {}
    for number, asked in enumerate(report.asked):
        if testing:
            testing(number, len(report.asked))
        a, b = report.runs[0].values[asked.text][rows_a], report.runs[1].values[asked.text][rows_b]
        there = ~np.isnan(a) & ~np.isnan(b)
        if not there.any():
            raise DataError(f"{asked.text}: none of the shared queries has a value in both runs")
        if not there.all():
            notes.append(f"{asked.text}: over the {int(there.sum())} of {len(there)} queries with a value in both runs")
            # A measure of effectiveness leaves out the same queries in both runs, because only judgements decide which.
            missing[asked.text] = 0 if asked.judged else int((~there).sum())
        limit = _margin_for(asked, margin)
        results[asked.text] = paired(
            a[there], b[there], asked.direction, asked.bounds, test=test, margin=limit, seed=seed
        )
        tests.add(asked, a, b)
        if is_signed(asked):
            shifts[asked.text] = paired(a[there], b[there], Direction.UP, asked.bounds)
    old_name, new_name = (run.name for run in report.runs)
    by_p = tests.spread(_corrected({text: results[text] for text in tests.distinct}, "p"))
    by_no_loss, by_equivalent = (_corrected(results, name) for name in ("p_no_loss", "p_equivalent"))
    failed = [
        one.failure(results[one.measure], by_no_loss.get(one.measure), missing.get(one.measure, 0))
        for one in conditions
    ]
    notes += _disagreement(report.asked, results, by_p)
    notes += tests.notes()
    return CompareReport(
        old_name, new_name, report.asked, results, by_p, by_no_loss, by_equivalent, test, [*report.notes, *notes],
        [text for text in failed if text], shifts, len(set(by_p) & set(tests.distinct)),
    )  # fmt: skip


class _DistinctTests:
    """Measures by their gains: ARaB with and without ``sign=abs`` has the same gains, so both are one test."""

    def __init__(self) -> None:
        self._by_gains: dict[tuple[str, bytes], list[str]] = {}

    def add(self, asked: MeasureRequest, old: Floats, new: Floats) -> None:
        gains = rounded_gains(old, new, asked.direction).tobytes()
        self._by_gains.setdefault((asked.measure.name, gains), []).append(asked.text)

    @property
    def distinct(self) -> list[str]:
        """One measure of each test."""
        return [texts[0] for texts in self._by_gains.values()]

    def spread(self, ps: Mapping[str, float]) -> dict[str, float]:
        """Give every measure the p of its test."""
        return {text: ps[texts[0]] for texts in self._by_gains.values() if texts[0] in ps for text in texts}

    def notes(self) -> list[str]:
        return [
            f"{' and '.join(texts)} have the same gain for every query; Holm's method counts them as one test"
            for texts in self._by_gains.values()
            if len(texts) > 1
        ]


def _disagreement(
    asked: Sequence[MeasureRequest], results: Mapping[str, Paired], p_holm: Mapping[str, float]
) -> list[str]:
    """A note if the new run is significantly better by one measure of lean and significantly worse by another."""
    leans = [one.text for one in asked if one.groups and p_holm.get(one.text, 1.0) < ALPHA]
    better, worse = ([text for text in leans if sign * results[text].gain > 0] for sign in (1, -1))
    if not better or not worse:
        return []
    return [
        f"measures of lean disagree: the new run is significantly better by {', '.join(better)} and significantly "
        f"worse by {', '.join(worse)}; report both, or choose the measure that matters to you before you compare"
    ]


def _check_settings(test: str, seed: int, unpaired: str) -> None:
    if test not in TESTS:
        raise ConfigError(f"test=: expected {' or '.join(map(repr, TESTS))}, found {test!r}")
    if seed < 0:
        raise ConfigError(f"seed=: expected 0 or a positive whole number, found {seed}")
    if unpaired not in ("error", "drop"):
        raise ConfigError(f"unpaired=: expected 'error' or 'drop', found {unpaired!r}")


def _named(old: RunLike, new: RunLike, names: tuple[str, str] | None) -> dict[str, RunLike]:
    if names is None and isinstance(old, Run) and isinstance(new, Run) and old.name == new.name:
        # Two searches by the same ranker have the same name.
        names = f"{old.name} (old)", f"{new.name} (new)"
    if names is None:
        return named_runs([old, new], others=("old", "new"))
    if names[0] == names[1]:
        raise ConfigError(f"both runs are called {names[0]!r}: give them different names")
    return {names[0]: old, names[1]: new}


def _corrected(results: Mapping[str, Paired], name: str) -> dict[str, float]:
    """Holm-corrected p-values, over the measures that have this p."""
    ps = {text: getattr(found, name) for text, found in results.items() if getattr(found, name) is not None}
    return dict(zip(ps, holm(list(ps.values())), strict=True))


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
        only = _first_alone(a, b)
        message = f"{alone} queries are in one run only, such as {only!r}"
        if unpaired == "error":
            raise DataError(f"{message}; compare only the shared queries with unpaired='drop'")
        notes.append(f"{message}; left out")
    rows = np.array(shared)
    return rows[:, 0], rows[:, 1], notes


def _first_alone(a: RunScores, b: RunScores) -> str:
    alone = set(a.query_ids) ^ set(b.query_ids)
    return next(query for query in [*a.query_ids, *b.query_ids] if query in alone)


def _margin_for(asked: MeasureRequest, margin: Margin) -> float | None:
    if isinstance(margin, Mapping):
        return margin.get(asked.text)
    return margin if asked.judged and is_bounded(asked.bounds) else None


def _refuse_meaningless(margin: Margin) -> None:
    values = margin.values() if isinstance(margin, Mapping) else [] if margin is None else [margin]
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"margin=: expected a number above 0 (the largest acceptable loss), found {value!r}")


@dataclass(frozen=True)
class _Reach:
    """Whether a measure has bounds, and the largest possible loss of a query."""

    finite: bool
    most: float

    @classmethod
    def of(cls, asked: MeasureRequest) -> _Reach:
        return cls(is_bounded(asked.bounds), gain_bounds(asked.bounds, asked.direction is Direction.ZERO)[1])


def _refuse_unused(asked: list[MeasureRequest], margin: Margin, may_lose: Sequence[str]) -> None:
    """Raise an error for a margin that no measure uses or that is too large to have a meaning.

    ``may_lose`` are the measures of conditions of ``fail_if``, which give margins too.
    """
    bounded = {one.text: _Reach.of(one) for one in asked}
    for text in margin if isinstance(margin, Mapping) else ():
        if text not in bounded:
            raise ConfigError(
                f"margin= names the measure {text!r}, which is not compared; the compared measures are "
                f"{', '.join(bounded)}"
            )
        if not bounded[text].finite:
            where = "a condition 'may lose' of fail_if=" if text in may_lose else "margin="
            remedy = "Use 'loses' instead of 'may lose'" if text in may_lose else "Leave out this margin"
            raise ConfigError(
                f"{where} names the measure {text!r}, which has no upper bound. A single query can change the mean of "
                f"such a measure by any amount, so no test can rule out a loss. {remedy}, or compare the runs by a "
                "bounded measure such as ARaB(bool)@10 or FaiRR@10"
            )
    for one in asked:
        limit = _margin_for(one, margin)
        if limit is not None and limit >= bounded[one.text].most:
            raise ConfigError(
                f"margin=: {one.text} cannot lose more than {bounded[one.text].most:g}, so a margin of {limit:g} is "
                "never exceeded; give a smaller margin"
            )
    if margin is not None and all(_margin_for(one, margin) is None for one in asked):
        raise ConfigError(
            "margin= without the name of a measure applies only to bounded measures of effectiveness, but no such "
            "measure is compared. For another bounded measure, give the name and the margin, as in 'FaiRR@10=0.05'"
        )
