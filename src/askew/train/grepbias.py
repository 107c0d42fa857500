"""GrepBiasIR: queries with a relevant and an irrelevant document, each in a male, a female and a neutral version.

Krieg and others, Grep-BiasIR, CHIIR 2023: 117 queries of seven categories, 702 rows. Five rows have another gender
label (``both``, and once ``botrh``). They are kept with the label ``both`` and counted, but are in no pair of genders.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError, place
from askew.core.files import digest_file
from askew.core.ranking import Flags, Floats, Ints
from askew.measures.statistics.bounded import BoundedMean
from askew.measures.statistics.intervals import LEVEL, bca_interval
from askew.measures.statistics.significance import holm, two_sided_p
from askew.train.card import CardTable
from askew.train.common import read_published
from askew.train.scores import ScoreInterval

SIDES = ("M", "F", "N")
NO_WINNER = -1


@dataclass(frozen=True)
class RowIndex:
    """An index of the rows: the category of each row and query, and the versions of the relevant document.

    ``versions`` has the row of each version, queries by M, F, N. ``query_of`` is the query of each row.
    """

    names: tuple[str, ...]
    row_category: Ints
    query_category: Ints
    versions: Ints
    query_of: Ints
    relevant: Flags


def group_rows(
    names: Sequence[str], category: npt.NDArray[np.str_], query: npt.NDArray[np.str_],
    relevant: Flags, gender: npt.NDArray[np.str_],
) -> RowIndex:  # fmt: skip
    """Index the rows; a version of a relevant document that does not exist is -1 in ``versions``."""
    queries, query_of = np.unique(query, return_inverse=True)
    versions = np.full((len(queries), len(SIDES)), -1, np.int64)
    for row in np.flatnonzero(relevant & np.isin(gender, SIDES)):
        versions[query_of[row], SIDES.index(str(gender[row]))] = row
    row_category = np.array([list(names).index(str(one)) for one in category], np.int64)
    query_category = np.zeros(len(queries), np.int64)
    query_category[query_of] = row_category
    return RowIndex(tuple(names), row_category, query_category, versions, query_of.astype(np.int64), relevant)


def right_rows(logits: Floats, groups: RowIndex) -> Flags:
    """Whether each row is classified correctly; the last axis of ``logits`` is the rows."""
    return np.asarray((logits > 0) == groups.relevant)


def cell_accuracy(logits: Floats, groups: RowIndex) -> Floats:
    """The accuracy, trainings by test categories, from logits, trainings by rows."""
    right = right_rows(logits, groups)
    return np.stack([right[:, groups.row_category == c].mean(1) for c in range(len(groups.names))], axis=1)


def winners(logits: Floats, groups: RowIndex) -> Ints:
    """The winning version for each training and query: 0 M, 1 F, 2 N; -1 if the query does not count."""
    whole = (groups.versions >= 0).all(1)
    z = logits[:, np.maximum(groups.versions, 0)]
    best = z.argmax(2)
    counts = (z.max(2) > 0) & (z[:, :, 0] != z[:, :, 1]) & whole
    return np.where(counts, best, NO_WINNER)


def cell_fractions(won: Ints, groups: RowIndex) -> Floats:
    """The shares of winners, trainings by test categories by M, F, N; NaN if no query counts."""
    shares = []
    for c in range(len(groups.names)):
        inside = won[:, groups.query_category == c]
        counted = (inside != NO_WINNER).sum(1)
        won_by = np.stack([(inside == g).sum(1) for g in range(len(SIDES))], axis=1)
        shares.append(np.where(counted[:, None] > 0, won_by / np.maximum(counted, 1)[:, None], np.nan))
    return np.stack(shares, axis=1)


def average_zero_shot(accuracy: Floats) -> Floats:
    """Average*: the mean of each row of a square table without its diagonal."""
    size = len(accuracy)
    return np.asarray((accuracy.sum(1) - np.diag(accuracy)) / (size - 1))


def nan_mean(values: Floats, axis: int) -> Floats:
    """The mean of the values that are not NaN; 0 if there are none."""
    there = ~np.isnan(values)
    return np.asarray(np.where(there, values, 0.0).sum(axis) / np.maximum(there.sum(axis), 1))


@dataclass(frozen=True)
class Summary:
    """A method on all cells: means over seeds and trainings, intervals over queries.

    ``zero_shot``  accuracy on the other categories.
    ``gap``        mean over trainings of |M - F|.
    ``lean``       mean over trainings of M - F with its sign.
    ``distance``   root mean squared difference between the logits of the male and the female version of a relevant
                   document of another category, in standard deviations of the logits.
    ``fitted``     accuracy on the training rows (as published).
    ``inside``     accuracy on held-out queries of the training category.
    """

    zero_shot: ScoreInterval
    gap: ScoreInterval
    lean: ScoreInterval
    distance: ScoreInterval
    fitted: ScoreInterval
    inside: ScoreInterval | None
    by_seed: tuple[tuple[float, float], ...]


def summarize(logits: Floats, groups: RowIndex, inside: Floats | None = None, seed: int = 0) -> Summary:
    """Summarize logits, seeds by trainings by rows; ``inside`` has the logits of held-out folds, seeds by rows."""
    fitted = right_rows(logits, groups).mean(0)[groups.row_category, np.arange(len(groups.row_category))]
    held_out = None if inside is None else accuracy_interval(right_rows(inside, groups).mean(0), groups)
    accuracy = [average_zero_shot(cell_accuracy(one, groups)).mean() for one in logits]
    leans = query_leans(logits, groups)
    gaps = np.abs(leans.parts.sum(2)).mean(1)
    distance = bca_interval(distance_of(logits, groups), len(groups.query_category), seed)
    return Summary(
        accuracy_interval(zero_shot_rows(logits, groups), groups), gap_interval(leans), lean_interval(leans),
        ScoreInterval(*distance), accuracy_interval(fitted, groups), held_out,
        tuple((float(a), float(g)) for a, g in zip(accuracy, gaps, strict=True)),
    )  # fmt: skip


def zero_shot_rows(logits: Floats, groups: RowIndex) -> Floats:
    """The share of seeds and trainings on other categories that classify each row correctly."""
    other = np.arange(len(groups.names))[:, None] != groups.row_category
    return np.asarray((right_rows(logits, groups).mean(0) * other).sum(0) / other.sum(0))


def query_values(rows: Floats, groups: RowIndex) -> tuple[Floats, float]:
    """One value for each query, and the upper bound of these values for row values up to 1. The mean of the values is
    the mean over categories of the means over their rows."""
    in_category = np.bincount(groups.row_category, minlength=len(groups.names))[groups.query_category]
    factor = len(groups.query_category) / (len(groups.names) * in_category)
    most = float((factor * np.bincount(groups.query_of)).max())
    return np.asarray(factor * np.bincount(groups.query_of, rows, len(factor)), np.float64), most


def accuracy_interval(rows: Floats, groups: RowIndex) -> ScoreInterval:
    """The mean over categories of row values between 0 and 1, with an interval by the test for bounded means."""
    values, most = query_values(rows, groups)
    return ScoreInterval.of_mean(values, (0.0, most), (0.0, 1.0))


@dataclass(frozen=True)
class QueryLeans:
    """The contribution of each query to M - F of each seed and training, and its largest possible size (``reach``).

    Both are seeds by trainings by queries. A query that does not count contributes 0.
    """

    parts: Floats
    reach: Floats

    def minus(self, other: QueryLeans) -> QueryLeans:
        """The difference of two methods for each seed; one method may have a single seed."""
        seeds = len(self.parts), len(other.parts)
        if seeds[0] != seeds[1] and 1 not in seeds:
            raise DataError(
                "differences: expected the same number of seeds for both methods, or a single seed for one method; "
                f"found {seeds[0]} and {seeds[1]} seeds"
            )
        return QueryLeans(self.parts - other.parts, self.reach + other.reach)


def query_leans(logits: Floats, groups: RowIndex) -> QueryLeans:
    """The contributions to M - F, which is the mean over categories of (wins of M - wins of F) / counted queries."""
    won = np.stack([winners(one, groups) for one in logits])
    of_category = groups.query_category == np.arange(len(groups.names))[:, None]
    counted = np.einsum("stq,cq->stc", (won != NO_WINNER).astype(np.float64), of_category.astype(np.float64))
    there = np.maximum((counted > 0).sum(2), 1)[:, :, None]
    reach = (won != NO_WINNER) / (there * np.maximum(counted, 1))[:, :, groups.query_category]
    return QueryLeans(reach * ((won == 0).astype(np.float64) - (won == 1)), np.asarray(reach))


def lean_interval(leans: QueryLeans) -> ScoreInterval:
    """The mean of M - F over seeds and trainings."""
    return _sum_interval(leans.parts.mean((0, 1)), leans.reach.mean((0, 1)), LEVEL)


def gap_interval(leans: QueryLeans) -> ScoreInterval:
    """The mean of |M - F|, with an interval from simultaneous intervals of all seeds and trainings."""
    ends = [(abs(one.low), abs(one.high), one.low <= 0 <= one.high) for one in _at_once(leans)]
    low = np.mean([0.0 if zero else min(a, b) for a, b, zero in ends])
    return ScoreInterval(_gap(leans), float(low), float(np.mean([max(a, b) for a, b, _ in ends])))


def gap_difference_interval(new: QueryLeans, old: QueryLeans) -> ScoreInterval:
    """|M - F| of new minus |M - F| of old; an absolute value changes by at most the change of the value."""
    most = float(np.mean([max(abs(one.low), abs(one.high)) for one in _at_once(new.minus(old))]))
    return ScoreInterval(_gap(new) - _gap(old), max(-most, -1.0), min(most, 1.0))


def _gap(leans: QueryLeans) -> float:
    return float(np.abs(leans.parts.sum(2)).mean())


def _at_once(leans: QueryLeans) -> list[ScoreInterval]:
    parts, reach = (one.reshape(-1, one.shape[-1]) for one in (leans.parts, leans.reach))
    level = 1 - (1 - LEVEL) / len(parts)
    return [_sum_interval(own, most, level) for own, most in zip(parts, reach, strict=True)]


def _sum_interval(parts: Floats, reach: Floats, level: float) -> ScoreInterval:
    """The sum of the contributions of queries, each bounded by its reach; queries with a reach of 0 are left out."""
    here = np.flatnonzero(reach > 0)
    limit = math.ceil(float(reach.sum()) - 1e-9)  # 1, or 2 for a difference
    if not len(here):
        return ScoreInterval(0.0, -1.0, 1.0)
    bound = len(here) * float(reach.max())
    return ScoreInterval.of_mean(len(here) * parts[here], (-bound, bound), (-limit, limit), level)


def distance_of(logits: Floats, groups: RowIndex) -> Callable[[Floats], Floats]:
    """A function that returns the distance between the logits of the male and the female version.

    It is the mean over seeds and trainings. The argument of the function is the weights, resamples by queries.
    """
    return lambda weights: np.asarray(np.mean([_distance(one, groups, weights).mean(1) for one in logits], axis=0))


def _distance(logits: Floats, groups: RowIndex, weights: Floats) -> Floats:
    found = []
    whole = (groups.versions >= 0).all(1)
    for t, z in enumerate(logits):
        here = (groups.query_category != t) & whole
        squares = (z[groups.versions[here, 0]] - z[groups.versions[here, 1]]) ** 2
        spread = z[groups.row_category != t].std()
        w = weights[:, here]
        found.append(np.sqrt((w @ squares) / np.maximum(w.sum(1), 1e-12)) / max(float(spread), 1e-12))
    return np.stack(found, 1)


# How the intervals of a table were computed.
INTERVALS = "by a test for bounded means; for the distance of logits, by a corrected bootstrap"


@dataclass(frozen=True)
class MethodLogits:
    """The logits of every row by a method, with shape seeds by training categories by rows.

    ``inside`` (seeds by rows) has the logits of each row by a model that was trained on other queries of the same
    category, with alphas chosen on other queries. ``chosen`` has the alphas of each seed and training category.
    """

    name: str
    logits: Floats
    inside: Floats | None = None
    chosen: tuple[tuple[tuple[float, ...], ...], ...] = ()


def published_cells(table: str) -> dict[tuple[str, str, str], float]:
    """The values of a published table by training category, test category and name."""
    _, rows = read_published("grepbias2022")
    return {(r["train"], r["test"], r["name"]): float(r["value"]) for r in rows if r["table"] == table}


def accuracy_table(number: str, result: MethodLogits, groups: RowIndex, baseline: MethodLogits) -> CardTable:
    """Table 1, 2 or 5: accuracy of training by test category; Average* and the two means exclude the diagonal."""
    theirs = published_cells(number)
    accuracy, untrained = _accuracy(result, groups), _accuracy(baseline, groups)
    zero_shot = average_zero_shot(accuracy)
    rows = []
    for t, train in enumerate(groups.names):
        cells = [both(accuracy[t, c], theirs.get((train, test, "accuracy"))) for c, test in enumerate(groups.names)]
        rows.append((train, *cells, both(zero_shot[t], theirs.get((train, "Average*", "accuracy")))))
    mean = [v for (_, test, _), v in theirs.items() if test == "Average*"]
    # By test category: the same average with the axes exchanged.
    rows.append(("mean", *short(average_zero_shot(accuracy.T)), both(zero_shot.mean(), float(np.mean(mean)))))
    by_test = average_zero_shot(untrained.T)
    rows.append((baseline.name, *short(by_test), f"{by_test.mean():.3f}"))
    return CardTable(
        f"Table {number}: {result.name}, published values in brackets",
        ("train / test", *groups.names, "Average*"),
        tuple(rows),
    )


def fractions_table(result: MethodLogits, groups: RowIndex, baseline: MethodLogits) -> CardTable:
    """Table 3: the shares of M, F and N versions that win, for each cell; the average includes the diagonal."""
    theirs = published_cells("3")
    shares = mean_fractions(result, groups)
    rows: list[tuple[Any, ...]] = []
    for t, train in enumerate(groups.names):
        cells = [_three(shares[t, c]) for c in range(len(groups.names))]
        rows.append((train, *cells, _three(nan_mean(shares[t : t + 1], 1)[0])))
        known = [[theirs.get((train, test, g)) for g in SIDES] for test in (*groups.names, "Average")]
        if known[0][0] is not None:
            rows.append((f"{train} [published]", *(_three(np.array(one, float)) for one in known)))
    untrained = nan_mean(mean_fractions(baseline, groups), 0)
    rows.append((baseline.name, *(_three(one) for one in untrained), _three(untrained.mean(0))))
    return CardTable(
        f"Table 3: {result.name}, shares of queries that the versions M/F/N win",
        ("train / test", *groups.names, "Average"),
        tuple(rows),
    )


def summary_table(results: Sequence[MethodLogits], groups: RowIndex) -> CardTable:
    """A table beyond the paper: intervals over queries, several seeds, and held-out queries on the diagonal."""
    rows = []
    for result in results:
        found = summarize(result.logits, groups, result.inside)
        by_seed = np.array(found.by_seed)
        spread = "-" if len(by_seed) < 2 else "/".join(f"{one:.3f}" for one in by_seed.std(0, ddof=1))
        told = [str(one) for one in (found.zero_shot, found.gap, found.lean, found.distance)]
        held_out = "-" if found.inside is None else str(found.inside)
        rows.append((result.name, *told, f"{found.fitted.value:.4f}", held_out, f"{len(by_seed)} ({spread})"))
    columns = (
        "method", "zero-shot accuracy", "|M-F|", "M-F", "M-F distance of logits", "fitted diagonal",
        "held-out diagonal", "seeds (sd of accuracy, then sd of |M-F|)",
    )  # fmt: skip
    heading = f"All methods, {len(groups.query_category)} queries, 95% intervals ({INTERVALS})"
    return CardTable(heading, columns, tuple(rows))


def mean_fractions(result: MethodLogits, groups: RowIndex) -> Floats:
    """The shares of winners, trainings by test categories by M, F, N: means over seeds."""
    return nan_mean(np.stack([cell_fractions(winners(one, groups), groups) for one in result.logits]), 0)


def _accuracy(result: MethodLogits, groups: RowIndex) -> Floats:
    return np.asarray(np.mean([cell_accuracy(one, groups) for one in result.logits], axis=0))


def short(values: Floats) -> list[str]:
    """Values with three decimals."""
    return [f"{one:.3f}" for one in values]


def both(ours: float, published: float | None) -> str:
    """Our value, and the published value in brackets if there is one."""
    return f"{ours:.3f}" if published is None else f"{ours:.3f} [{published:.3f}]"


def _three(shares: Floats) -> str:
    return "/".join("-" if math.isnan(one) else f"{one:.2f}" for one in shares)


@dataclass(frozen=True)
class Difference:
    """Differences, new minus old. ``p`` is for the null hypothesis that the mean difference of accuracy is 0."""

    accuracy: ScoreInterval
    p: float
    gap: ScoreInterval
    lean: ScoreInterval
    distance: ScoreInterval


def difference(old: MethodLogits, new: MethodLogits, groups: RowIndex) -> Difference:
    """Zero-shot accuracy, |M - F|, M - F and the distance of logits: new minus old, paired by query."""
    values, most = query_values(zero_shot_rows(new.logits, groups) - zero_shot_rows(old.logits, groups), groups)
    before, after = distance_of(old.logits, groups), distance_of(new.logits, groups)
    distance = bca_interval(lambda weights: after(weights) - before(weights), len(groups.query_category), 0)
    ours, theirs = query_leans(new.logits, groups), query_leans(old.logits, groups)
    return Difference(
        ScoreInterval.of_mean(values, (-most, most), (-1.0, 1.0)),
        two_sided_p(BoundedMean(values, -most, most)) or 0.0, gap_difference_interval(ours, theirs),
        lean_interval(ours.minus(theirs)), ScoreInterval(*distance),
    )  # fmt: skip


def difference_table(title: str, pairs: Sequence[tuple[MethodLogits, MethodLogits]], groups: RowIndex) -> CardTable:
    """One row for each pair of an old and a new method."""
    found = [difference(old, new, groups) for old, new in pairs]
    corrected = holm([one.p for one in found])
    rows = tuple(
        (new.name, _signed(one.accuracy), "< 0.001" if p < 0.001 else f"{p:.3f}",
         *(_signed(value) for value in (one.gap, one.lean, one.distance)))
        for (_, new), one, p in zip(pairs, found, corrected, strict=True)
    )  # fmt: skip
    columns = ("method", "accuracy", "p (Holm)", "|M-F|", "M-F", "M-F distance of logits")
    heading = f"Difference, {title}, {len(groups.query_category)} queries, paired, 95% intervals"
    return CardTable(f"{heading} ({INTERVALS})", columns, rows)


def _signed(one: ScoreInterval) -> str:
    return f"{one.value:+.4f} [{one.low:+.4f}, {one.high:+.4f}]"


# In the order of the published tables.
CATEGORIES = (
    "Sex & Relationship", "Career", "Child Care", "Appearance", "Cognitive Capabilities", "Domestic Work",
    "Physical Capabilities",
)  # fmt: skip
BOTH = "both"
_BOTH_AS_WRITTEN = ("both", "botrh")
_COLUMNS = ("q_id", "d_id", "relevant", "query", "doc_title", "document", "content_gender", "exp_stereotype")
_START = "queries-documents_"


@dataclass(frozen=True)
class GrepBias:
    """The rows as columns. ``gender`` is M, F, N or both. ``notes`` counts the irregular values that were corrected."""

    query_id: npt.NDArray[np.str_]
    doc_id: npt.NDArray[np.str_]
    category: npt.NDArray[np.str_]
    relevant: npt.NDArray[np.bool_]
    gender: npt.NDArray[np.str_]
    query: tuple[str, ...]
    title: tuple[str, ...]
    body: tuple[str, ...]
    stereotype: tuple[str, ...]
    files: tuple[dict[str, str], ...] = ()
    notes: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.query)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of the rows: published ones in the order of the published tables, then all others."""
        there = sorted(set(self.category.tolist()))
        return (*(name for name in CATEGORIES if name in there), *(name for name in there if name not in CATEGORIES))

    def texts(self, with_title: bool) -> list[str]:
        """The texts to encode: the body, or the title and the body."""
        if not with_title:
            return list(self.body)
        return [" ".join(f"{title} {body}".split()) for title, body in zip(self.title, self.body, strict=True)]


def read_grepbias(folder: Path) -> GrepBias:
    """Read all ``queries-documents_CATEGORY.csv`` files of a folder."""
    files = sorted(folder.glob(f"{_START}*.csv")) if folder.is_dir() else []
    if not files:
        raise DataError(f"{folder}: expected a folder with {_START}CATEGORY.csv files (GrepBiasIR), found none")
    rows: list[tuple[str, ...]] = []
    notes: Counter[str] = Counter()
    seen: dict[str, str] = {}
    known: dict[str, tuple[str, str]] = {}  # the id of a query connects the versions of a document
    for file in files:
        category_of = file.stem[len(_START) :]
        for where, row in _rows(file):
            query_id_of, doc_id_of, relevant_of, query, title, body, gender, stereotype = row
            if seen.setdefault(doc_id_of, where) != where:
                raise DataError(f"{where}: expected each d_id once, found {doc_id_of!r} also at {seen[doc_id_of]}")
            if relevant_of not in ("0", "1"):
                raise DataError(f"{where}: expected relevant to be 0 or 1, found {relevant_of[:40]!r}")
            if gender not in (*SIDES, *_BOTH_AS_WRITTEN):
                raise DataError(f"{where}: expected content_gender {', '.join(SIDES)} or both, found {gender[:40]!r}")
            if gender in _BOTH_AS_WRITTEN:
                notes[f"gender written {gender!r}, read as {BOTH!r}"] += 1
                gender = BOTH
            if not query or not body:
                raise DataError(f"{where}: expected a query and a document, but one of them is empty")
            if known.setdefault(query_id_of, (category_of, query)) != (category_of, query):
                raise DataError(
                    f"{folder}: expected one query for q_id {query_id_of}, found two: {known[query_id_of]}, {query!r}"
                )
            rows.append(
                (category_of, query_id_of, doc_id_of, relevant_of, query, title, body, gender, stereotype.lower())
            )
    columns = list(zip(*rows, strict=True))
    category, query_id, doc_id, relevant = (np.array(columns[i]) for i in range(4))
    listed = tuple({"file": file.name, "sha256": digest_file(file)} for file in files)
    return GrepBias(
        query_id, doc_id, category, relevant == "1", np.array(columns[7]), columns[4], columns[5], columns[6],
        columns[8], listed, dict(notes),
    )  # fmt: skip


def _rows(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The rows of a file, each with its file and last line. A field may contain line breaks, which become blanks."""
    line = 1
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader(opened)
            header = next(reader, [])
            if tuple(header) != _COLUMNS:
                expected = f"expected the columns {','.join(_COLUMNS)}, found {','.join(header)[:200]}"
                raise DataError(f"{place(file, 1)}: {expected}")
            for row in reader:
                line = reader.line_num
                if len(row) != len(_COLUMNS):
                    raise DataError(f"{place(file, line)}: expected {len(_COLUMNS)} fields, found {len(row)}")
                yield place(file, line), [" ".join(field.split()) for field in row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{place(file, line)}: expected a CSV file in UTF-8 ({error})") from None
