"""The tables of Sundararaman and Subramanian (2022) with our values next to the published ones, and further tables.

A cell is the mean over seeds. Published values are in brackets. For tables 2, 3, 5 and 6 the published encoder is
BERT-base; the title of each table names our encoder. Every table of a method has a row for the untrained baseline, the
cosine with one threshold. Its cells are means over the training categories, each of which has its own threshold.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askew.core.ranking import Floats
from askew.trainers.card import CardTable
from askew.trainers.grepbias.scores import (
    GENDERS,
    RowIndex,
    average_zero_shot,
    cell_accuracy,
    cell_fractions,
    male_minus_female,
    nan_mean,
    summarize,
    winners,
)
from askew.trainers.published import read_published

# How the intervals of a table were computed.
INTERVALS = "by a test for bounded means; for the distance of logits, by a corrected bootstrap"
_WORD = re.compile(r"[a-z]{2,}")


@dataclass(frozen=True)
class MethodLogits:
    """The logits of a method, seeds by trainings by rows; ``inside`` has those of held-out folds, seeds by rows."""

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
        cells = [_both(accuracy[t, c], theirs.get((train, test, "accuracy"))) for c, test in enumerate(groups.names)]
        rows.append((train, *cells, _both(zero_shot[t], theirs.get((train, "Average*", "accuracy")))))
    mean = [v for (_, test, _), v in theirs.items() if test == "Average*"]
    # By test category: the same average with the axes exchanged.
    rows.append(("mean", *_short(average_zero_shot(accuracy.T)), _both(zero_shot.mean(), float(np.mean(mean)))))
    by_test = average_zero_shot(untrained.T)
    rows.append((baseline.name, *_short(by_test), f"{by_test.mean():.3f}"))
    return CardTable(
        f"Table {number}: {result.name}, published values in brackets",
        ("train / test", *groups.names, "Average*"),
        tuple(rows),
    )


def fractions_table(result: MethodLogits, groups: RowIndex, baseline: MethodLogits) -> CardTable:
    """Table 3: the shares of M, F and N versions that win, for each cell; the average includes the diagonal."""
    theirs = published_cells("3")
    shares = _fractions(result, groups)
    rows: list[tuple[Any, ...]] = []
    for t, train in enumerate(groups.names):
        cells = [_three(shares[t, c]) for c in range(len(groups.names))]
        rows.append((train, *cells, _three(nan_mean(shares[t : t + 1], 1)[0])))
        known = [[theirs.get((train, test, g)) for g in GENDERS] for test in (*groups.names, "Average")]
        if known[0][0] is not None:
            rows.append((f"{train} [published]", *(_three(np.array(one, float)) for one in known)))
    untrained = nan_mean(_fractions(baseline, groups), 0)
    rows.append((baseline.name, *(_three(one) for one in untrained), _three(untrained.mean(0))))
    return CardTable(
        f"Table 3: {result.name}, shares of queries that the versions M/F/N win",
        ("train / test", *groups.names, "Average"),
        tuple(rows),
    )


def before_after_table(
    before: MethodLogits, after: MethodLogits, groups: RowIndex, baseline: MethodLogits
) -> CardTable:
    """Table 6: average shares of M, F, N and |M - F|, without and with the penalty. The baseline has no penalty."""
    theirs = published_cells("6")
    one, two = (nan_mean(_fractions(result, groups), 1) for result in (before, after))
    gaps = [_gaps(result, groups) for result in (before, after)]
    names = ("before M", "before F", "before N", "after M", "after F", "after N", "before |M-F|", "after |M-F|")
    rows = []
    for t, train in enumerate(groups.names):
        ours = (*one[t], *two[t], gaps[0][t], gaps[1][t])
        rows.append((train, *(_both(v, theirs.get((train, "Average", n))) for v, n in zip(ours, names, strict=True))))
    mean = [float(np.mean([v for (_, _, name), v in theirs.items() if name == wanted])) for wanted in names[-2:]]
    rows.append(("mean", *([""] * 6), *(_both(gap.mean(), m) for gap, m in zip(gaps, mean, strict=True))))
    untrained = nan_mean(_fractions(baseline, groups), 1).mean(0)
    rows.append((baseline.name, *_short(untrained), "", "", "", f"{_gaps(baseline, groups).mean():.3f}", ""))
    return CardTable(
        f"Table 6: {before.name} and {after.name}, published values in brackets", ("train", *names), tuple(rows)
    )


def words_table(names: Sequence[str], documents: dict[str, list[str]], stop_words: frozenset[str]) -> CardTable:
    """Table 4: the top three words of each category by TF-IDF over the categories' joined documents."""
    published = published_cells("4")
    counts = {name: Counter(_WORD.findall(" ".join(documents[name]).lower())) for name in names}
    rows = []
    for name in names:
        scores = {word: n * _idf(word, counts) for word, n in counts[name].items() if word not in stop_words}
        length = math.sqrt(sum(score**2 for score in scores.values())) or 1.0
        top = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:3]
        ours = ", ".join(f"{word} ({score / length:.2f})" for word, score in top)
        theirs = ", ".join(f"{word} ({value:.2f})" for (train, _, word), value in published.items() if train == name)
        rows.append((name, ours, theirs))
    return CardTable("Table 4: top words by TF-IDF", ("category", "ours", "published"), tuple(rows))


def _idf(word: str, counts: dict[str, Counter[str]]) -> float:
    found = sum(word in one for one in counts.values())
    return math.log((1 + len(counts)) / (1 + found)) + 1


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


def _fractions(result: MethodLogits, groups: RowIndex) -> Floats:
    return nan_mean(np.stack([cell_fractions(winners(one, groups), groups) for one in result.logits]), 0)


def _gaps(result: MethodLogits, groups: RowIndex) -> Floats:
    """|M - F| of each training: the mean of the absolute values of the seeds, because seeds may differ in sign."""
    leans = [male_minus_female(cell_fractions(winners(one, groups), groups)) for one in result.logits]
    return np.asarray(np.abs(leans).mean(0))


def _accuracy(result: MethodLogits, groups: RowIndex) -> Floats:
    return np.asarray(np.mean([cell_accuracy(one, groups) for one in result.logits], axis=0))


def _short(values: Floats) -> list[str]:
    return [f"{one:.3f}" for one in values]


def _both(ours: float, published: float | None) -> str:
    return f"{ours:.3f}" if published is None else f"{ours:.3f} [{published:.3f}]"


def _three(shares: Floats) -> str:
    return "/".join("-" if math.isnan(one) else f"{one:.2f}" for one in shares)
