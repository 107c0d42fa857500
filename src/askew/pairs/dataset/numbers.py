"""Compute every number of a card from the pairs. Pairs are added in blocks; a block has all pairs of its queries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from askew.core.defaults import FEWEST, IN_SAMPLE
from askew.core.measure import Direction, gain_column, old_column, pair_columns
from askew.core.ranking import Floats
from askew.measures.statistics.intervals import wilson
from askew.pairs.dataset.facts import GROUPS, REFAIRMULATE, Facts
from askew.report.markup import code


class Mean:
    """The mean of finite values that are added in blocks."""

    def __init__(self) -> None:
        self.n, self._total = 0, 0.0

    def add(self, values: Floats) -> None:
        """Add numbers."""
        self.n += len(values)
        self._total += float(values.sum())

    @property
    def value(self) -> float:
        """The mean; NaN if there are no numbers. Blocks of other sizes, which round otherwise, give the same value."""
        return round(self._total / self.n, 12) if self.n else math.nan


_MAIL, _DIGITS = r"[^\s@]+@[^\s@]+\.[^\s@]+", r"(?:\d[ -]?){7,}"
# About this many texts are in memory at a time.
_HELD = 1 << 18
_EXAMPLES = 5
UNKNOWN = "not known"
ALL = "all"


def distinct_texts(rows: pl.LazyFrame, columns: Sequence[str], *patterns: str) -> tuple[int, ...]:
    """Count the distinct texts of some columns, then for each pattern those with a match.

    The texts are read as often as needed, each time those of one range of hashes, so that they fit into memory.
    """
    passes = 1 + rows.select(pl.len()).collect().item() * len(columns) // _HELD
    texts = pl.concat([rows.select(text=pl.col(name)) for name in columns]).drop_nulls()
    counts = [pl.len(), *(pl.col("text").str.contains(one).sum() for one in patterns)]
    named = [one.alias(str(number)) for number, one in enumerate(counts)]
    found = [
        texts.filter(pl.col("text").hash(0) % passes == number)
        .unique()
        .select(named)
        .collect(engine="streaming")
        .row(0)
        for number in range(passes)
    ]
    return tuple(map(sum, zip(*found, strict=True)))


class SubsetNumbers:
    """The counts and sums of one subset, or of all pairs."""

    def __init__(self, facts: Facts) -> None:
        self._measures = [one.name for one in facts.measures]
        self._has_robust = bool(facts.robust_rankers)
        self.pairs = self.queries = self.known = self.robust = 0
        self.splits: Counter[str] = Counter()
        self.groups: Counter[int] = Counter()
        self.means = {name: tuple(Mean() for _ in range(3)) for name in self._measures}

    def add(self, part: pl.DataFrame) -> None:
        """Add pairs of the subset."""
        self.pairs += part.height
        self.queries += part["query_id"].n_unique()
        self.splits.update(dict(part["split"].value_counts().iter_rows()))
        if "group" in part.columns and part.schema["group"].is_integer():
            self.groups.update(dict(part["group"].value_counts().iter_rows()))
        if self._has_robust:
            known = part["robust"].drop_nulls()
            self.known += len(known)
            self.robust += int(known.sum())
        for name in self._measures:
            there = part.filter(pl.col(gain_column(name)).is_not_null())
            for column, total in zip(pair_columns(name), self.means[name], strict=True):
                total.add(there[column].drop_nulls().to_numpy())


class PairNumbers:
    """All numbers of a release."""

    def __init__(self, facts: Facts, splits: Iterable[str]) -> None:
        self.facts, self.splits = facts, list(splits)
        self.schema: Mapping[str, Any] = {}
        self.subsets = {ALL: SubsetNumbers(facts), **{name: SubsetNumbers(facts) for name in facts.subsets}}
        self.originals = {one.name: Mean() for one in facts.measures}
        self.counts: dict[str, Counter[tuple[str, bool]]] = {"method": Counter(), "outcome": Counter()}
        self.examples: list[dict[str, Any]] = []
        self.echoes = self.contexts = 0
        # Distinct texts, those with an email address and those with many digits; distinct values of the context.
        self.texts: tuple[int, ...] = (0, 0, 0)
        self.senders = 0

    @classmethod
    def of(cls, pairs: pl.DataFrame, facts: Facts, splits: Iterable[str]) -> PairNumbers:
        """The numbers of pairs that are given in one table."""
        found = cls(facts, splits)
        found.add(pairs)
        return found

    @property
    def directions(self) -> dict[str, Direction]:
        """The direction of each measure."""
        return {one.name: one.direction for one in self.facts.measures}

    @property
    def every(self) -> SubsetNumbers:
        """All pairs."""
        return self.subsets[ALL]

    def add(self, block: pl.DataFrame) -> None:
        """Add a block of pairs; it must have all pairs of its queries."""
        self.schema = self.schema or dict(block.schema)
        main = self.facts.main
        for name, one in self.subsets.items():
            one.add(block if name == ALL else block.filter(name))
        queries = block.unique("query_id", keep="first", maintain_order=True)
        for name, total in self.originals.items():
            total.add(queries[old_column(name)].drop_nulls().to_numpy())
        for column, counts in self.counts.items():
            named = block.select(pl.col(column).fill_null(UNKNOWN), pl.col(main).alias("inside"))
            counts.update(
                {(str(one), bool(inside)): n for one, inside, n in named.group_by(pl.all()).len().iter_rows()}
            )
        if len(self.examples) < _EXAMPLES:
            first = block.filter(main).unique("query_id", keep="first", maintain_order=True)
            self.examples += first.head(_EXAMPLES - len(self.examples)).to_dicts()
        self.contexts += block["context"].count() if "context" in block.columns else 0

    def count_texts(self, rows: pl.LazyFrame) -> None:
        """Count the distinct texts of all pairs."""
        self.texts = distinct_texts(rows, ["original_text", "text"], _MAIL, _DIGITS)
        self.senders = distinct_texts(rows, ["context"])[0] if "context" in self.schema else 0

    def sizes(self, subset: str) -> dict[str, int]:
        """The number of pairs of a subset in each split."""
        return {split: self.subsets[subset].splits[split] for split in self.splits}

    def column_counts(self, column: str) -> list[tuple[str, int, int]]:
        """For each value of a column, the number of pairs and of pairs in the main subset; most frequent first."""
        counts = self.counts[column]
        values = {value for value, _ in counts}
        found = [(one, counts[one, True] + counts[one, False], counts[one, True]) for one in values]
        return sorted(found, key=lambda row: (-row[1], row[0].encode()))


def counts_table(found: PairNumbers) -> list[str]:
    """A table of the pairs and queries of each subset, by split, and by group of the query if there are groups."""
    groups = GROUPS if found.facts.scheme == REFAIRMULATE else ()
    rows = [
        [name, one.pairs, one.queries, *(one.splits[split] for split in found.splits),
         *(one.groups[group] for group in groups)]
        for name, one in found.subsets.items()
    ]  # fmt: skip
    return table(["subset", "pairs", "queries", *found.splits, *(f"group {group}" for group in groups)], rows)


def means_table(found: PairNumbers) -> list[str]:
    """A table of the mean old value, new value and gain of each measure in each subset with pairs; n counts pairs."""
    rows = [
        [name, code(measure), means[2].n, *(shown(one.value) for one in means)]
        for name, subset in found.subsets.items()
        if subset.pairs
        for measure, means in subset.means.items()
    ]
    return table(["subset", "measure", "n", "mean old", "mean new", "mean gain"], rows)


def held_out_rows(found: PairNumbers) -> list[dict[str, Any]]:
    """The stated held-out figures of the subsets with pairs, without intervals of too few queries."""
    rows = []
    for row in found.facts.rows("held_out"):
        subset = found.subsets[row["subset"]]
        queries = subset.queries if row["figures"] == IN_SAMPLE else row.get("held_out_queries", FEWEST)
        if subset.pairs:
            rows.append(row if queries >= FEWEST else {**row, "low": None, "high": None})
    return rows


def held_out_table(found: PairNumbers) -> list[str]:
    """A table of the held-out and in-sample change of each measure in each subset; empty without figures."""
    stated, rows = held_out_rows(found), list[list[Any]]()
    for row in stated:
        means = ("-" if row.get(name) is None else shown(row[name]) for name in ("old_mean", "new_mean"))
        named = row["subset"], code(row["measure"]), row["figures"]
        changes = change_text(row.get("change")), ends_text(row), change_text(row.get("in_sample_change"))
        rows.append([*named, *means, *changes])
    head = ["subset", "measure", "figures", "mean old", "mean new", "change", "95% interval"]
    if not has_intervals(stated):
        head, rows = head[:-1], [[*row[:6], *row[7:]] for row in rows]
    return table([*head, "in-sample change"], rows) if rows else []


def placebo_table(found: PairNumbers) -> list[str]:
    """A table of the pairs of each subset, and of those that the same selection chooses on placebo lists."""
    rows = []
    for row in found.facts.rows("placebo"):
        pairs = found.subsets[row["subset"]].pairs
        share = f"{row['placebo'] / pairs:.0%}" if pairs else "-"
        ends = f"{row['placebo']:.1f} ({row['fewest']:,} to {row['most']:,})"
        rows.append([row["subset"], pairs, ends, share, f"{row['untested']:.1f}"])
    head = ["subset", "pairs", "on placebo lists: mean (least to most)", "share", "if any original query counts"]
    return table(head, rows) if rows else []


def has_intervals(stated: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of the held-out figures has an interval."""
    return any(ends_text(row) != "-" for row in stated)


def change_text(percent: float | None) -> str:
    """A change in percent with its sign; a dash if it is not known."""
    return "-" if percent is None else f"{percent:+.1f}%"


def ends_text(row: Mapping[str, Any]) -> str:
    """The ends of the interval of a change; a dash if there is no interval."""
    low, high = row.get("low"), row.get("high")
    return "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"


def robust_table(found: PairNumbers) -> list[str]:
    """A table of the share of robust pairs in each subset, of the pairs with a value under every ranker.

    It is empty if the facts name no rankers for ``robust``.
    """
    if not found.facts.robust_rankers:
        return []
    rows = []
    for name, one in found.subsets.items():
        share = one.robust / one.known if one.known else math.nan
        figures = ("-" if math.isnan(x) else f"{100 * x:.1f}%" for x in (share, *wilson(one.robust, one.known)))
        rows.append([name, one.pairs, one.known, one.robust, *figures])
    return table(["subset", "pairs", "known (n)", "robust", "share", "low", "high"], rows)


def size_category(rows: int) -> str:
    """The size category of Hugging Face for a number of rows."""
    names = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"]
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def shown(value: float) -> str:
    """A number with four decimals; a dash for NaN."""
    return "-" if math.isnan(value) else f"{value:.4f}".replace("-0.0000", "0.0000")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table; the caller escapes the cells."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]
