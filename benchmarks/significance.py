"""Are the tests and intervals of askew valid for IR data? Simulated false positives, coverage, width and power.

python benchmarks/significance.py [--replications 10000] [--data FOLDER]
python benchmarks/significance.py --differences [--replications 10000] [--data FOLDER]

Values are drawn from distributions whose mean is known; a test that is valid at the 5% level rejects a true null
hypothesis in at most 5% of the samples, and a 95% interval holds the mean in at least 95% of them. "before" are the
tests that askew had until they were simulated (signs flipped, percentile bootstrap); "betting" is a mixture of bets
with fixed stakes, of which Waudby-Smith and Ramdas (2024) is the predictable kind, also shown ("hedged"). ``--data``
adds differences of nDCG@10 between real runs, thinned: a fifth of them is kept, the rest is zero.

``--differences`` is about the test of a difference that askew has now, the paired randomization test, on real
differences between methods and BM25 (the scores of every query in ``benchmarks/arena``). Each null hypothesis is made
true: (a) by random signs of the differences; (b) by resampling them after subtracting their mean, which keeps their
skewness; (c) by pairing the values of one method on two random halves of the topics. In (b) the differences are not
exchangeable, and the share of the rejections that have the warning of askew is shown.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.measure import Direction
from askew.measures.statistics.bounded import BoundedMean, probability_below_zero, studentized_ends
from askew.measures.statistics.randomization import RandomSets
from askew.measures.statistics.significance import SKEWED, paired

Floats = Any
SIZES = (10, 30, 100, 300)
ALPHA = 0.05
BOUNDED = (-1.0, 1.0)
_PART = 2000


@dataclass(frozen=True)
class Law:
    """A distribution of per-query values: how it is drawn, its mean, and its bounds."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    mean: float
    low: float = -1.0
    high: float = 1.0


def discrete(name: str, values: list[float], chances: list[float], low: float = -1.0, high: float = 1.0) -> Law:
    """A distribution over a few values."""
    found, weights = np.array(values, np.float64), np.array(chances, np.float64)
    weights = weights / weights.sum()
    # Rounded, since an interval that ends at 0 should hold a mean of 0 that was computed as 1e-18.
    mean = round(float(found @ weights), 12)
    return Law(name, lambda rng, shape: rng.choice(found, shape, p=weights), mean, low, high)


def losses(data: Path | None) -> list[Law]:
    """Differences with a negative mean: what "no loss beyond the margin" is tried on, the margin being that mean."""
    laws = [
        Law("normal", lambda rng, shape: np.clip(rng.normal(-0.02, 0.15, shape), -1, 1), -0.02),
        discrete("RR-like", [0, -0.5, 0.5, -2 / 3, 1 / 6, -0.75, -1], [0.78, 0.07, 0.06, 0.02, 0.04, 0.01, 0.02]),
        discrete("92% zero", [0, 0.05, -0.05, -0.8], [0.92, 0.03, 0.02, 0.03]),
        Law("rare exponential", _rare_exponential, -0.02),
        discrete("ARaB(bool)-like", [0, 0.1, -0.1, 0.2, -0.9], [0.7, 0.14, 0.1, 0.03, 0.03]),
    ]
    return [*laws, *thinned(data)]


def _rare_exponential(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    # The mean of an exponential of 0.4 that is cut at 1 is 0.4 (1 - exp(-2.5)).
    hit = rng.random(shape) < 0.02 / (0.4 * (1 - math.exp(-2.5)))
    return -np.where(hit, np.minimum(rng.exponential(0.4, shape), 1.0), 0.0)


def thinned(data: Path | None) -> Iterator[Law]:
    """Real differences between runs of DL19 and DL20, most of them put to zero."""
    if data is None:
        return
    import askew

    folder = data / "msmarco_dl1920"
    rng = np.random.default_rng(0)
    for other in ("BM25_RM3", "D_BERT_KD_TASB"):
        differences: list[float] = []
        for year in ("dl19", "dl20"):
            runs = [folder / "runs" / f"{year}.{name}.trec" for name in ("BM25", other)]
            found = askew.measure(runs, qrels=folder / f"qrels.{year}.txt", measures="nDCG@10").runs
            by_query = [dict(zip(run.query_ids, run.values["nDCG@10"].tolist(), strict=True)) for run in found]
            differences += [by_query[0][query] - value for query, value in by_query[1].items()]
        kept = np.array(differences) * (rng.random(len(differences)) < 0.2)
        kept = kept if kept.mean() < 0 else -kept
        yield discrete(f"real: {other}, thinned", kept.tolist(), [1.0] * len(kept))


def no_differences() -> list[Law]:
    """Differences with a mean of zero, symmetric or not."""
    return [
        Law("normal", lambda rng, shape: np.clip(rng.normal(0, 0.15, shape), -1, 1), 0.0),
        discrete("RR-like", [0, -0.5, 0.5, 0.1, -0.9], [0.60, 0.05, 0.05, 0.27, 0.03]),
        discrete("92% zero", [0, 0.1, -0.7], [0.92, 0.07, 0.01]),
        discrete("small gains, rare large losses", [0.02, 0, -0.9], [0.9, 0.08, 0.02]),
    ]


def means() -> list[Law]:
    """Values of one run."""
    return [
        Law("normal (bounded)", lambda rng, shape: np.clip(rng.normal(0.5, 0.15, shape), 0, 1), 0.5, 0.0),
        discrete("RR-like", [0, 1, 0.5, 1 / 3, 0.25, 0.1], [0.35, 0.3, 0.15, 0.08, 0.07, 0.05], 0.0),
        discrete("92% zero", [0, 0.3, 0.9], [0.92, 0.05, 0.03], 0.0),
        discrete("ARaB(bool)-like", [0, 0.1, 0.3, 1.0], [0.75, 0.15, 0.07, 0.03], 0.0),
    ]


def unbounded() -> list[Law]:
    """Values and differences of measures without bounds."""
    sparse = 0.3 * math.exp(-1 + 0.32)
    return [
        Law("normal", lambda rng, shape: rng.normal(0.1, 1, shape), 0.1),
        Law("sparse |ARaB(tf)|-like", lambda r, s: r.lognormal(-1, 0.8, s) * (r.random(s) < 0.3), sparse, 0.0),
        Law("92% zero, exponential", lambda r, s: r.exponential(0.5, s) * (r.random(s) < 0.08), 0.04, 0.0),
        Law("differences, few large losses", _skewed, 0.0),
    ]


def _skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    kind = rng.random(shape)
    large, small = -rng.exponential(0.6, shape), rng.exponential(0.1, shape)
    return np.where(kind < 0.05, large, np.where(kind < 0.35, small, 0.0))


# Tests: one p for each row of values. "at most m": the null hypothesis is that the mean is at most m.


def ours_at_most(x: Floats, m: float, low: float = -1.0, high: float = 1.0) -> Floats:
    """The test for bounded means of askew."""
    return np.array([BoundedMean(row, low, high).p_at_most(m) for row in x])


def ours_at_least(x: Floats, m: float, low: float = -1.0, high: float = 1.0) -> Floats:
    """The other side."""
    return np.array([BoundedMean(row, low, high).p_at_least(m) for row in x])


def flip_at_most(x: Floats, m: float) -> Floats:
    """Before: signs of the differences from m flipped at random."""
    flips = np.random.default_rng(7).choice(np.array([-1.0, 1.0], np.float32), (4000, x.shape[1]))
    away = (x - m).astype(np.float32)
    observed = away.sum(axis=1)
    as_large = ((away @ flips.T) >= observed[:, None] - 1e-6).sum(axis=1)
    return (as_large + 1) / (len(flips) + 1)


def flip_two_sided(x: Floats) -> Floats:
    """The randomization test of no difference."""
    flips = np.random.default_rng(7).choice(np.array([-1.0, 1.0], np.float32), (4000, x.shape[1]))
    observed = np.abs(x.astype(np.float32).sum(axis=1))
    as_large = (np.abs(x.astype(np.float32) @ flips.T) >= observed[:, None] - 1e-6).sum(axis=1)
    return (as_large + 1) / (len(flips) + 1)


def mixture_at_most(x: Floats, m: float, low: float = -1.0) -> Floats:
    """A bet with a fixed stake against "the mean is at most m", averaged over stakes: symmetric in the values."""
    most = 1.0 / (m - low)
    stakes = most * np.concatenate([np.geomspace(0.002, 0.9, 40), [0.95, 1.0]])
    with np.errstate(divide="ignore"):
        wealth = np.stack([np.log1p(stake * (x - m)).sum(axis=1) for stake in stakes], axis=1)
    return np.minimum(1.0, 1.0 / np.maximum(np.exp(wealth).mean(axis=1), 1e-300))


def hedged_at_most(x: Floats, m: float, low: float = -1.0, high: float = 1.0) -> Floats:
    """Predictable bets (Waudby-Smith and Ramdas 2024) against "the mean is at most m", in the order of the values."""
    n = x.shape[1]
    y, at = (x - low) / (high - low), (m - low) / (high - low)
    total, squares = np.full(len(x), 0.5), np.full(len(x), 0.25)
    wealth, best = np.zeros(len(x)), np.zeros(len(x))
    for t in range(n):
        stake = np.sqrt(2 * math.log(1 / ALPHA) / (n * squares / (t + 1)))
        wealth += np.log1p(np.minimum(stake, 0.9 / at) * (y[:, t] - at))
        best = np.maximum(best, wealth)
        total += y[:, t]
        squares += (y[:, t] - total / (t + 2)) ** 2
    return np.exp(-best)


def t_at_most(x: Floats, m: float) -> Floats:
    """Student's t."""
    from scipy.stats import t as student

    error = x.std(axis=1, ddof=1) / math.sqrt(x.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = student.sf((x.mean(axis=1) - m) / error, x.shape[1] - 1)
    return np.where(error > 0, found, np.where(x.mean(axis=1) > m, 0.0, 1.0))


def percentile(x: Floats) -> tuple[Floats, Floats]:
    """Before: percentile bootstrap, 2,000 resamples."""
    n = x.shape[1]
    weights = np.random.default_rng([0, n]).multinomial(n, np.full(n, 1.0 / n), size=2000) / n
    return tuple(np.quantile(x @ weights.T, [0.025, 0.975], axis=1))


def t_interval(x: Floats) -> tuple[Floats, Floats]:
    """Student's t."""
    from scipy.stats import t as student

    half = student.ppf(0.975, x.shape[1] - 1) * x.std(axis=1, ddof=1) / math.sqrt(x.shape[1])
    return x.mean(axis=1) - half, x.mean(axis=1) + half


def studentized(x: Floats) -> tuple[Floats, Floats]:
    """What askew does without bounds; a point where all values are equal."""
    ends = np.array([studentized_ends(row, 0.025) for row in x])
    ends = np.where(np.isnan(ends), x.mean(axis=1)[:, None], ends)
    return ends[:, 0], ends[:, 1]


def parts(law: Law, n: int, replications: int, seed: int) -> Iterator[Floats]:
    """Samples of a law, some at a time."""
    rng = np.random.default_rng([seed, n])
    for start in range(0, replications, _PART):
        yield law.draw(rng, (min(_PART, replications - start), n))


def share(law: Law, n: int, replications: int, seed: int, holds: Callable[[Floats], Floats]) -> float:
    """In how many samples something holds."""
    return float(np.mean(np.concatenate([holds(x) for x in parts(law, n, replications, seed)])))


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    """Print a table."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}\n")
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())
    sys.stdout.flush()


def false_no_loss(replications: int, data: Path | None) -> None:
    """The true mean loss is the margin: how often is it ruled out?"""
    tests: dict[str, Callable[[Floats, float], Floats]] = {
        "before": flip_at_most, "t": t_at_most, "hedged": hedged_at_most, "betting": mixture_at_most,
        "ours": ours_at_most,
    }  # fmt: skip
    rows = []
    for law in losses(data):
        for n in SIZES:
            found = [
                share(law, n, replications, 1, lambda x, test=test, at=law.mean: test(x, at) < ALPHA)
                for test in tests.values()
            ]
            rows.append([law.name, str(n), f"{-law.mean:.4f}", *(f"{one:.3f}" for one in found)])
    table("No loss beyond the margin, where the true mean loss is the margin: false positives at 0.05",
          ["differences", "n", "margin", *tests], rows)  # fmt: skip


def false_differences(replications: int) -> None:
    """The true mean difference is zero: how often is there a difference?"""
    rows = []
    for law in no_differences():
        for n in SIZES:
            flip = share(law, n, replications, 2, lambda x: flip_two_sided(x) < ALPHA)
            student = share(
                law, n, replications, 2, lambda x: 2 * np.minimum(t_at_most(x, 0), 1 - t_at_most(x, 0)) < ALPHA
            )
            ours = share(
                law, n, replications, 2, lambda x: 2 * np.minimum(ours_at_most(x, 0), ours_at_least(x, 0)) < ALPHA
            )
            rows.append([law.name, str(n), f"{flip:.3f}", f"{student:.3f}", f"{ours:.3f}"])
    table("Mean difference, where it is truly 0: false positives at 0.05 (the null hypothesis of randomization is true "
          "in the rows normal only)", ["differences", "n", "randomization (before)", "t", "ours"], rows)  # fmt: skip


def coverage(replications: int) -> None:
    """How often intervals of bounded means hold the mean, and how wide they are."""
    rows = []
    named = [*(("one run", law) for law in means()), *(("two runs", law) for law in no_differences()[1:])]
    for kind, law in named:
        for n in SIZES:
            held = share(law, n, replications, 3, lambda x, law=law: _inside(percentile(x), law.mean))
            student = share(law, n, replications, 3, lambda x, law=law: _inside(t_interval(x), law.mean))
            ours = share(law, n, replications, 3, lambda x, law=law: _held(x, law))
            wide = [_widths(law, n, 200, interval) for interval in (t_interval, _bounded_interval(law))]
            width = f"{wide[1] / wide[0]:.2f}" if wide[0] else "-"
            rows.append([f"{kind}: {law.name}", str(n), f"{held:.3f}", f"{student:.3f}", f"{ours:.3f}", width])
    table("95% intervals of bounded means: coverage, and the median width relative to Student's t",
          ["values", "n", "percentile bootstrap (before)", "t", "ours", "width, ours / t"], rows)  # fmt: skip


def _inside(ends: tuple[Floats, Floats], mean: float) -> Floats:
    return (ends[0] <= mean) & (mean <= ends[1])


def _held(x: Floats, law: Law) -> Floats:
    below, above = (test(x, law.mean, law.low, law.high) for test in (ours_at_most, ours_at_least))
    return (below > ALPHA / 2) & (above > ALPHA / 2)


def _bounded_interval(law: Law) -> Callable[[Floats], tuple[Floats, Floats]]:
    def interval(x: Floats) -> tuple[Floats, Floats]:
        found = [BoundedMean(row, law.low, law.high) for row in x]
        return np.array([one.lower(0.025) for one in found]), np.array([one.upper(0.025) for one in found])

    return interval


def _widths(law: Law, n: int, count: int, interval: Callable[[Floats], tuple[Floats, Floats]]) -> float:
    low, high = interval(law.draw(np.random.default_rng([4, n]), (count, n)))
    return float(np.median(high - low))


def unbounded_coverage(replications: int) -> None:
    """Intervals of means without bounds: as they are."""
    rows = []
    for law in unbounded():
        for n in SIZES:
            found = [
                share(law, n, replications, 5, lambda x, law=law, way=way: _inside(way(x), law.mean))
                for way in (percentile, t_interval, studentized)
            ]
            rows.append([law.name, str(n), *(f"{one:.3f}" for one in found)])
    table("95% intervals of means without bounds: coverage (no claim of validity)",
          ["values", "n", "percentile bootstrap (before)", "t", "ours (studentized, Hall)"], rows)  # fmt: skip


# The test of a difference that askew has now, on real differences.

ARENA = Path(__file__).with_name("arena")
METHODS = ("dense", "greedy@3", "reformulate:reduce")
MEASURES = ("nDCG@10", "RR@10", "ARaB(tf)@10", "NFaiRR@10")
EXCESS = "ARaB(tf,sign=abs,excess=collection)@10"
# More queries of BoolQ than this are not drawn in a sample, and so many sets of signs are drawn for each sample.
MOST, FLIPS = 100, 999


def flip_p(x: Floats, rng: np.random.Generator) -> Floats:
    """The p of the randomization test of each row; new signs for every 500 rows."""
    found = []
    for start in range(0, len(x), 500):
        rows = x[start : start + 500].astype(np.float32)
        drawn = np.abs(rows @ rng.choice(np.array([-1, 1], np.float32), (x.shape[1], FLIPS)))
        observed = np.abs(rows.sum(axis=1))
        found.append(((drawn >= observed[:, None] - 1e-5).sum(axis=1) + 1) / (FLIPS + 1))
    return np.concatenate(found)


def t_p(x: Floats) -> Floats:
    """The two-sided p of Student's t."""
    return 2 * np.minimum(t_at_most(x, 0.0), 1 - t_at_most(x, 0.0))


def excess_lean(runs: list[Any], docs: Path, **how: Any) -> tuple[Floats, Floats]:
    """The excess lean of the queries that have it in both runs."""
    import askew

    first, second = askew.measure(runs, docs=docs, measures=EXCESS, **how).runs
    old = dict(zip(first.query_ids, first.values[EXCESS].tolist(), strict=True))
    pairs = np.array([
        (old[query], value)
        for query, value in zip(second.query_ids, second.values[EXCESS].tolist(), strict=True)
        if query in old
    ])  # fmt: skip
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    return pairs[:, 0], pairs[:, 1]


def real_scores(data: Path | None) -> Iterator[tuple[str, str, str, Floats, Floats]]:
    """Collection, measure and method, with the values of BM25 and of the method for the queries that have both."""
    import polars as pl

    import askew

    years: dict[str, str] = {}
    folder, known = (data or Path()) / "msmarco_dl1920", () if data is None else ("dl19", "dl20")
    for year in known:
        lines = (folder / f"qrels.{year}.txt").read_text(encoding="utf-8").splitlines()
        years |= {line.split()[0]: year.upper() for line in lines}
    for name in ("dl", "boolq"):
        frame = pl.read_parquet(ARENA / f"{name}.parquet").sort("query_id")
        base = frame.filter(method="bm25")
        where = np.array([years.get(query, "BoolQ" if name == "boolq" else "DL") for query in base["query_id"]])
        for method in METHODS:
            other = frame.filter(method=method)
            for measure in MEASURES:
                old, new = (side[measure].cast(pl.Float64).fill_null(np.nan).to_numpy() for side in (base, other))
                for collection in sorted(set(where.tolist())):
                    there = (where == collection) & ~np.isnan(old) & ~np.isnan(new)
                    sizes = np.abs if measure.startswith("ARaB") else np.asarray
                    yield collection, measure, method, sizes(old[there]), sizes(new[there])
    for year in known:
        runs = [folder / "runs" / f"{year}.{one}.trec" for one in ("BM25", "D_BERT_KD_TASB")]
        old, new = excess_lean(runs, folder / "docs.tsv", missing="zero")
        yield year.upper(), "excess lean", "D_BERT_KD_TASB", old, new
    if data is None:
        return
    # Query likelihood beside BM25, as the collection comes without runs of other rankers.
    runs = [askew.Ranker(name).index(data / "boolq" / "docs.tsv").search(data / "boolq" / "queries.tsv", k=10)
            for name in ("bm25", "qld")]  # fmt: skip
    old, new = excess_lean(runs, data / "boolq" / "docs.tsv")
    yield "BoolQ", "excess lean", "qld", old, new


def skewness_of(x: Floats) -> Floats:
    """The skewness of each row, 0 if its values are equal."""
    away = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt((away**2).mean(axis=1))
    return (away**3).mean(axis=1) / np.where(spread > 1e-12, spread, np.inf) ** 3


def differences(replications: int, data: Path | None) -> None:
    """False positives on real differences, the coverage of the interval on sparse ones, and power beside t."""
    rng = np.random.default_rng(20)
    rows, own, halves = [], [], []
    for collection, measure, method, old, new in real_scores(data):
        gains = new - old
        gains[np.abs(gains) < 1e-12] = 0.0
        n = min(len(gains), MOST)
        if np.count_nonzero(gains) < 2:
            continue
        signed = rng.choice(gains, (replications, n)) * rng.choice([-1.0, 1.0], (replications, n))
        centered = rng.choice(gains - gains.mean(), (replications, n))
        own += [RandomSets(row, seed=place).p() for place, row in enumerate(signed[: replications // 100])]
        ps = flip_p(signed, rng), flip_p(centered, rng), t_p(centered)
        warned = np.abs(skewness_of(centered)) > SKEWED * math.sqrt(n)
        wrong = ps[1] < ALPHA
        shown = [np.mean(p < level) for p in ps for level in (0.05, 0.01)]
        shown += [warned.mean(), np.mean(wrong & ~warned)]
        skewness = skewness_of(gains[None])[0] / math.sqrt(n)
        rows.append([f"{collection}: {measure}, {method}", str(n), f"{np.mean(gains != 0):.2f}", f"{skewness:+.2f}",
                     *(f"{one:.3f}" for one in shown)])  # fmt: skip
        if method in (METHODS[0], "D_BERT_KD_TASB", "qld"):
            half = min(len(new) // 2, MOST)
            drawn = rng.permuted(np.broadcast_to(new, (replications, len(new))), axis=1)[:, : 2 * half]
            x = drawn[:, :half] - drawn[:, half:]
            found = [np.mean(p < level) for p in (flip_p(x, rng), t_p(x)) for level in (0.05, 0.01)]
            halves.append([f"{collection}: {measure}", str(half), *(f"{one:.3f}" for one in found)])
    table("Real differences from BM25 whose true mean is 0: false positives at 0.05 and 0.01. (a): random signs, (b): "
          "resampled after centering. skew: skewness / square root of n of all differences", [
              "differences", "n", "nonzero", "skew", "(a) 5%", "(a) 1%", "(b) 5%", "(b) 1%", "(b) t 5%", "(b) t 1%",
              "(b) warned", "(b) wrong at 5% without warning",
          ], rows)  # fmt: skip
    print(f"\naskew's own function on {len(own):,} of the samples (a): {np.mean(np.array(own) < 0.05):.4f} at 0.05, "
          f"{np.mean(np.array(own) < 0.01):.4f} at 0.01")  # fmt: skip
    table("(c) One method on random halves of the topics: false positives",
          ["values", "n", "5%", "1%", "t 5%", "t 1%"], halves)  # fmt: skip
    rows = []
    for law in no_differences():
        for n in (30, 100):
            samples = [row for x in parts(law, n, replications // 25, 8) for row in x]
            found = [RandomSets(row).ends(ALPHA) for row in samples]
            student = share(law, n, replications, 8, lambda x, at=law.mean: _inside(t_interval(x), at))
            held = np.array([low <= law.mean <= high for low, high in found])
            # What askew shows: no interval where few queries differ.
            has_ends = np.array([paired(np.zeros(n), row, Direction.UP).low is not None for row in samples])
            outside = [BoundedMean(row, *BOUNDED) for row in np.array(samples)[~has_ends]]
            bounded = [one.lower(0.025) <= law.mean <= one.upper(0.025) for one in outside]
            rows.append([law.name, str(n), f"{held.mean():.3f}", f"{student:.3f}", f"{has_ends.mean():.3f}",
                         f"{held[has_ends].mean():.3f}" if has_ends.any() else "-",
                         f"{np.mean(~held & has_ends):.3f}",
                         f"{np.mean(bounded):.3f}" if bounded else "-"])  # fmt: skip
    table("95% intervals of a mean difference: coverage of all intervals; the share that askew shows (not where fewer "
          "than 20 and fewer than half of the queries differ), their coverage, and the share of the samples with a "
          "shown interval that is wrong; coverage of the bounded interval where none is shown", [
              "differences", "n", "randomization", "t", "shown", "coverage if shown", "shown and wrong",
              "bounded if not shown",
          ], rows)  # fmt: skip
    rows = []
    for name, kept in (("all queries gain", 1.0), ("a third of the queries gain", 1 / 3)):
        for n in (10, 30, 50, 100):
            x = rng.normal(0.05 / kept, 0.15, (replications, n)) * (rng.random((replications, n)) < kept)
            rows.append([name, str(n), *(f"{np.mean(p < ALPHA):.3f}" for p in (flip_p(x, rng), t_p(x)))])
    table("Power at 0.05: mean gain of 0.05, standard deviation of those that gain 0.15",
          ["gains", "n", "randomization", "t"], rows)  # fmt: skip


def power(replications: int) -> None:
    """What validity costs: how often a real gain or an unchanged effectiveness is shown."""
    rows = []
    gain = Law("normal gain of 0.05, deviation 0.15", lambda r, s: np.clip(r.normal(0.05, 0.15, s), -1, 1), 0.05)
    for n in SIZES:
        flip = share(gain, n, replications, 6, lambda x: flip_two_sided(x) < ALPHA)
        hedged = share(gain, n, replications, 6, lambda x: hedged_at_most(x, 0.0) < ALPHA / 2)
        bets = share(gain, n, replications, 6, lambda x: mixture_at_most(x, 0.0) < ALPHA / 2)
        ours = share(gain, n, replications, 6, lambda x: ours_at_most(x, 0.0) < ALPHA / 2)
        rows.append([gain.name, str(n), *(f"{one:.3f}" for one in (flip, hedged, bets, ours))])
    table("Power at 0.05, two-sided", ["truth", "n", "randomization", "hedged", "betting", "ours"], rows)
    rows = []
    for margin in (0.01, 0.02, 0.05):
        sizes = [_fewest(margin, test) for test in (hedged_at_most, mixture_at_most, ours_at_most)]
        rows.append([f"{margin:g}", *map(str, sizes)])
    table(
        "Queries needed to rule out a loss of the margin where no result changes",
        ["margin", "hedged", "betting", "ours"],
        rows,
    )


def _fewest(margin: float, test: Callable[[Floats, float], Floats]) -> int:
    low, high = 1, 20_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test(np.zeros((1, middle)), -margin)[0] < ALPHA else (middle, high)
    return high


def counterexamples(climbs: int) -> None:
    """A search for a distribution on three values, and n of 2 to 8, for which the test rejects too often: none found.

    Levels are exact, by enumerating all samples.
    """
    rng = np.random.default_rng(0)
    alphas = np.array([0.01, 0.025, 0.05, 0.1, 0.2])
    worst = np.zeros(len(alphas))
    for _ in range(climbs):
        n, values, chances = int(rng.integers(2, 9)), np.sort(rng.random(3)), rng.dirichlet(np.ones(3))
        values[0] *= rng.random() < 0.5
        found = _levels(n, values, chances, alphas)
        for _ in range(6):
            other = np.clip(values * np.exp(rng.normal(0, 0.1, 3)), 0, 1), chances * np.exp(rng.normal(0, 0.2, 3))
            level, at = _levels(n, other[0], other[1] / other[1].sum(), alphas), int(rng.integers(len(alphas)))
            if level[at] > found[at]:
                values, chances, found = other[0], other[1] / other[1].sum(), level
        worst = np.maximum(worst, found)
    told = ", ".join(f"{level:.4f} at {alpha:g}" for level, alpha in zip(worst, alphas, strict=True))
    print(f"\nHighest level found in {climbs:,} climbs over distributions on three values, n = 2 to 8 (exact): {told}")


def _levels(n: int, values: Floats, chances: Floats, alphas: Floats) -> Floats:
    mean, found = float(values @ chances), np.zeros(len(alphas))
    for a in range(n + 1):
        for b in range(n + 1 - a):
            counts = np.array([a, b, n - a - b])
            log = (
                math.lgamma(n + 1) - sum(math.lgamma(k + 1) for k in counts) + float(counts @ np.log(chances + 1e-300))
            )
            if log > -20:
                p = probability_below_zero(np.append(values, 0.0) - mean, np.append(counts, 1.0))
                found += math.exp(log) * (p <= alphas + 1e-12)
    return found


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=10_000)
    parser.add_argument("--climbs", type=int, default=2000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--differences", action="store_true", help="only the test of real differences")
    given = parser.parse_args()
    print(f"{given.replications:,} replications; standard error of a share near 0.05: "
          f"{math.sqrt(0.05 * 0.95 / given.replications):.4f}")  # fmt: skip
    if given.differences:
        differences(given.replications, given.data)
        return
    false_no_loss(given.replications, given.data)
    false_differences(given.replications)
    coverage(given.replications)
    unbounded_coverage(given.replications)
    power(min(given.replications, 2000))
    counterexamples(given.climbs)


if __name__ == "__main__":
    main()
