"""The tables of the papers, as data frames. Those of RePair are in ``refined``.

There are tables for the comparison with effectiveness-only selection, for other rankers, for improved and worsened
queries, for each method, and for the nine outcomes.

As in ``summary``, a change is that of the means relative to the old mean, in percent, with an interval over queries,
and a measure that is best at zero counts by its distance from zero. A share of queries has Wilson's interval. A share
of pairs has an interval over queries by the randomization test, because the pairs of a query are similar.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import DataError
from askew.core.files import parse_json
from askew.core.measure import Direction, column_of, gain_column, new_column, old_column
from askew.core.outcome import OUTCOMES, UNKNOWN_SIGN, signs, verdicts
from askew.core.ranking import Floats, Ints
from askew.measures.statistics.intervals import LEVEL, change_interval, wilson
from askew.measures.statistics.randomization import RandomSets
from askew.pairs.gains import ORIGINAL, QUERY, PairParts, best_rows, parts_of
from askew.pairs.recipe import flat_settings
from askew.pairs.summary import EVERY, summarize

SIDES = ("improved_queries", "unchanged_queries", "worsened_queries")
_USE = ["method", "settings"]
_NUMBERED = re.compile(r"-\d+$")


def _ends(count: int, n: int) -> tuple[float | None, float | None]:
    """Return Wilson's interval of a share; None if n is 0."""
    return wilson(count, n) if n else (None, None)


def share_interval(sizes: Ints, hits: Ints) -> tuple[float | None, float | None]:
    """Return an interval of the share of pairs that have a flag, by the randomization test over queries.

    ``sizes`` and ``hits`` are the number of pairs of each query and of its pairs that have the flag. It is Wilson's
    interval over queries if each query has one pair, or if the flag is the same in all pairs, so that there is no
    variance.
    """
    queries, pairs, count = len(sizes), int(sizes.sum()), int(hits.sum())
    if queries == pairs:
        return _ends(count, queries)
    if count in (0, pairs):
        return _ends(queries if count else 0, queries)
    low, high = RandomSets(hits.astype(np.float64), sizes.astype(np.float64)).ends(1 - LEVEL)
    if not math.isfinite(high - low):  # with so few queries, the share of pairs is used as a share of queries
        return wilson(count / pairs * queries, queries)
    return low, min(1.0, high)


def share(name: str, count: int, n: int) -> dict[str, Any]:
    """Return a count, its share of n and the interval of the share, for a table."""
    low, high = _ends(count, n)
    return {name: count, f"{name}_share": count / n if n else None, f"{name}_low": low, f"{name}_high": high}


def _size(name: str, direction: Direction) -> pl.Expr:
    """Return a score as it is averaged: its distance from zero if zero is best; null if it is missing."""
    value = pl.col(name).fill_nan(None)
    return value.abs() if direction is Direction.ZERO else value


def against_effectiveness(
    pairs: pl.DataFrame | PairParts, subset: str, measure: str, directions: Mapping[str, Direction],
    of: Sequence[str] | None = None,
) -> pl.DataFrame:  # fmt: skip
    """For each query of a subset, return its original, its most effective candidate, and its chosen pair.

    The most effective candidate is the first one with the best ``measure``; Matches Made in Heaven selects this way.
    There is one row per query, with columns such as ``old_RR_10``, ``other_RR_10`` and ``chosen_RR_10`` (the mean of
    several chosen pairs) for each measure, or for those named by ``of``, and ``agree``: whether the most effective
    candidate is a chosen one.
    """
    told = {name: directions[name] for name in (directions if of is None else of)}
    sides = [side(name) for name in told for side in (old_column, new_column)]

    def found(part: pl.DataFrame) -> pl.DataFrame:
        old = [_size(old_column(name), one).first().alias(old_column(name)) for name, one in told.items()]
        new = [_size(new_column(name), one).mean().alias(f"chosen_{column_of(name)}") for name, one in told.items()]
        chosen = part.filter(subset).group_by("query_id", maintain_order=True).agg(*old, *new)
        other = [_size(new_column(name), one).alias(f"other_{column_of(name)}") for name, one in told.items()]
        rivals = best_pairs(part, measure, directions[measure]).select(
            "query_id", pl.col(subset).alias("agree"), *other
        )
        return chosen.join(rivals, on="query_id", how="left", maintain_order="left")

    return parts_of(pairs).map(["query_id", subset, new_column(measure), *sides], found)


def best_pairs(pairs: pl.DataFrame, measure: str, direction: Direction) -> pl.DataFrame:
    """The best candidate of each query, the first of several."""
    worth = direction.gain(np.zeros(len(pairs)), pairs.get_column(new_column(measure)).to_numpy())
    query = pairs.get_column("query_id").rank("dense").to_numpy().astype(np.int64) - 1
    return pairs.filter(pl.Series(best_rows(query, int(query.max(initial=-1)) + 1, [worth], ~np.isnan(worth))))


def against_table(rows: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """Table 3: means of the rows of ``against_effectiveness``; ``change`` is from the most effective to the chosen."""
    found = []
    for name, direction in directions.items():
        there = rows.select(old_column(name), f"other_{column_of(name)}", f"chosen_{column_of(name)}").drop_nulls()
        old, other, chosen = (there.get_column(column).to_numpy() for column in there.columns)
        means = [float(values.mean()) if len(there) else None for values in (old, other, chosen)]
        low, high = change_interval(np.arange(len(there)), other, chosen) if len(there) else (None, None)
        of = "distance from zero" if direction is Direction.ZERO else "score"
        change = 100 * (means[2] / means[1] - 1) if means[1] and means[2] is not None else None
        found.append({
            "measure": name, "of": of, "queries": len(there), "old_mean": means[0], "other_mean": means[1],
            "chosen_mean": means[2], "change": change, "low": low, "high": high,
        })  # fmt: skip
    return pl.DataFrame(
        found,
        schema_overrides=dict.fromkeys(("old_mean", "other_mean", "chosen_mean", "change", "low", "high"), pl.Float64),
    )


def cross_table(
    pairs: pl.DataFrame, rankers: Mapping[str, pl.DataFrame], directions: Mapping[str, Direction],
    subsets: Sequence[str],
) -> pl.DataFrame:  # fmt: skip
    """The chosen pairs under other rankers: the result of ``summarize`` for each ranker, subset and measure.

    ``rankers`` maps names to the scores of variants (``query_id``, ``variant_id``, ``method``, a column for each
    measure). ``chosen`` counts the pairs of the subset. Pairs without a score of the original (``no_original``) or of
    the variant (``no_variant``) under the other ranker are counted, and are in no mean.
    """
    parts = []
    for ranker, scores in rankers.items():
        for subset in subsets:
            chosen = pairs.filter(subset).select("query_id", "variant_id")
            joined = under(chosen, scores, list(directions), ranker).with_columns(pl.lit(True).alias(subset))
            asked, found = joined.get_column("has_original"), joined.get_column("has_variant")
            told = {
                "chosen": len(chosen),
                "no_original": int((~asked).sum()),
                "no_variant": int((asked & ~found).sum()),
            }
            parts.append(_told(summarize(joined, directions, [subset]), ranker=ranker, **told))
    return pl.concat(parts) if parts else pl.DataFrame()


def _told(table: pl.DataFrame, **facts: str | float | None) -> pl.DataFrame:
    kinds = {str: pl.String, int: pl.Int64}
    front = {name: pl.lit(value, kinds.get(type(value), pl.Float64)) for name, value in facts.items()}
    return table.select(**front, **{name: pl.col(name) for name in table.columns})


def under(chosen: pl.DataFrame, scores: pl.DataFrame, measures: Sequence[str], ranker: str) -> pl.DataFrame:
    """Return pairs with the old and new scores of the measures under another ranker; NaN for missing scores."""
    needed = ("query_id", "variant_id", "method", *map(column_of, measures))
    missing = [name for name in needed if name not in scores.columns]
    if missing:
        raise DataError(f"scores of {ranker}: expected a column {missing[0]!r}, found {', '.join(scores.columns)}")
    is_original = pl.col("method") == ORIGINAL
    before, after = (
        [pl.col(column_of(name)).alias(side(name)) for name in measures] for side in (old_column, new_column)
    )
    old = scores.filter(is_original).select("query_id", *before, has_original=pl.lit(True))
    new = scores.filter(~is_original).select("query_id", "variant_id", *after, has_variant=pl.lit(True))
    for table, keys in ((old, ["query_id"]), (new, ["query_id", "variant_id"])):
        twice = table.select(keys).is_duplicated()
        if twice.any():
            raise DataError(
                f"scores of {ranker}: expected one row for each original query and for each reformulation, found two "
                f"rows for {table.filter(twice).row(0)[:2]}"
            )
    joined = chosen.join(old, on="query_id", how="left", maintain_order="left")
    joined = joined.join(new, on=["query_id", "variant_id"], how="left", maintain_order="left")
    values = [
        pl.col(column(name)).cast(pl.Float64).fill_null(math.nan)
        for name in measures
        for column in (old_column, new_column)
    ]
    return joined.with_columns(pl.col("has_original", "has_variant").fill_null(False), *values)


def query_gains(pairs: pl.DataFrame | PairParts, subset: str, measure: str) -> Floats:
    """Return the gain of each query of a subset: the mean over its pairs. Queries without a score are left out."""
    gain = pl.col(gain_column(measure)).fill_nan(None)
    means = parts_of(pairs).map(
        ["query_id", subset, gain_column(measure)],
        lambda part: (
            part.filter(subset).group_by("query_id", maintain_order=True).agg(gain.mean().alias("gain")).select("gain")
        ),
    )
    return means.get_column("gain").drop_nulls().to_numpy()


def shares_of(gains: Mapping[str, Floats], tolerance: float = 0.0) -> pl.DataFrame:
    """For each measure how many queries improve, stay unchanged and worsen, as shares with intervals."""
    rows = []
    for measure, values in gains.items():
        sign = signs(values, tolerance)
        n = len(sign)
        parts = [share(side, int((sign == value).sum()), n) for side, value in zip(SIDES, (1, 0, -1), strict=True)]
        rows.append({"measure": measure, "queries": n} | parts[0] | parts[1] | parts[2])
    floats = [f"{side}_{what}" for side in SIDES for what in ("share", "low", "high")]
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(floats, pl.Float64))


def named_uses(pairs: PairParts) -> pl.DataFrame:
    """Return the distinct uses of methods (method, settings) in the order of the pairs, each with its name."""
    used = pairs.map(_USE, lambda part: part.unique(maintain_order=True)).unique(maintain_order=True)
    read = [(method, settings, _settings(settings)) for method, settings in used.iter_rows()]
    names = []
    for method, _, settings in read:
        others = [each for name, _, each in read if _base(name) == _base(method)]
        apart = {key: value for key, value in settings.items() if any(each.get(key) != value for each in others)}
        told = ", ".join(
            f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in apart.items()
        )
        names.append(f"{method} ({told})" if told else method)
    return used.with_columns(name=pl.Series(names, dtype=pl.String))


def _base(method: str) -> str:
    """Remove the number that distinguishes several uses of a method in one recipe."""
    return _NUMBERED.sub("", method)


def _settings(text: str | None) -> dict[str, str]:
    try:
        found = parse_json(text or "{}")
    except ValueError:
        found = text
    if not isinstance(found, dict):
        return {"settings": str(found)}
    flat = {name.rpartition(".")[2]: value for name, value in flat_settings(found).items()}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in flat.items()}


def method_table(pairs: pl.DataFrame | PairParts, subset: str, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """The effect of each method: the result of ``summarize`` for all its candidates and for the chosen ones.

    ``method_queries`` counts the queries with a candidate of the method. ``won`` counts those of them for
    which a candidate of the method was chosen, with the share and its interval.
    """
    every = parts_of(pairs)
    methods: dict[str, pl.Expr] = {}
    if "settings" not in every.columns:
        names = every.map(["method"], lambda part: part.unique(maintain_order=True))
        methods = {name: pl.col("method") == name for name in names["method"].unique(maintain_order=True)}
    else:
        for method, settings, name in named_uses(every).iter_rows():
            same = (pl.col("method") == method) & pl.col("settings").eq_missing(pl.lit(settings, pl.String))
            methods[name] = methods[name] | same if name in methods else same
    own = {name: every.filter(wanted) for name, wanted in methods.items()}
    parts = [_method(rows, name, subset, directions) for name, rows in own.items()]
    # Without pairs there is no method, and the empty table has the same columns.
    return pl.concat(parts) if parts else _method(every, "", subset, directions).clear()


def _method(own: PairParts, method: str, subset: str, directions: Mapping[str, Direction]) -> pl.DataFrame:
    seen = np.zeros((2, own.queries), np.bool_)
    for place, part in enumerate((own, own.filter(subset))):
        for frame in part.numbered([]):
            seen[place, frame[QUERY].to_numpy()] = True
    queries, won = (int(flags.sum()) for flags in seen)
    found = summarize(own, directions, [EVERY, subset])
    return _told(found, method=method, method_queries=queries, **share("won", won, queries))


def outcome_table(pairs: pl.DataFrame | PairParts, subset: str) -> pl.DataFrame:
    """The nine outcomes among all candidates and among the chosen: pairs, share, interval; without unknown outcomes."""
    every, rows = parts_of(pairs), []
    for name, part in ((EVERY, every), (subset, every.filter(subset))):
        hits = np.zeros((len(OUTCOMES), part.queries), np.int32)
        for frame in part.numbered(["outcome"]):
            known = frame.filter(pl.col("outcome").is_not_null())
            for place, outcome in enumerate(OUTCOMES):
                np.add.at(hits[place], known.filter(outcome=outcome)[QUERY].to_numpy(), 1)
        sizes = hits.sum(axis=0, dtype=np.int64)
        n, there = int(sizes.sum()), sizes > 0
        for outcome, of_query in zip(OUTCOMES if n else (), hits, strict=False):
            low, high = share_interval(sizes[there], of_query[there].astype(np.int64))
            count = int(of_query.sum())
            rows.append({"of": name, "outcome": outcome, "pairs": count, "n": n, "share": count / n, "low": low,
                         "high": high})  # fmt: skip
    return pl.DataFrame(rows)


def extreme_pairs(
    pairs: pl.DataFrame | PairParts, measures: Sequence[str], count: int = 5, worst: bool = False,
    shown: Sequence[str] | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Return the pairs that gain most, or with ``worst`` lose most, by the first measure, then the next; one per query.

    Pairs without a gain (with ``worst``: without a loss) are left out. With ``shown``, only the texts and the values of
    these measures are read.
    """
    gains = [gain_column(name) for name in measures]
    first = pl.col(gains[0]).fill_nan(None)

    def extreme(part: pl.DataFrame) -> pl.DataFrame:
        kept = part.filter(first < 0 if worst else first > 0)
        ranked = kept.sort(gains, descending=not worst, nulls_last=True, maintain_order=True)
        return ranked.unique("query_id", keep="first", maintain_order=True).head(count)

    every = parts_of(pairs)
    sides = [side(name) for name in shown or () for side in (old_column, new_column)]
    columns = every.columns if shown is None else ["query_id", "original_text", "text", "method", *sides, *gains]
    # The most extreme pairs of the table are among the most extreme pairs of each part.
    return extreme(every.map(columns, extreme))


# The tables of the RePair paper: boxes, hard queries.


def refined_table(
    pairs: pl.DataFrame | PairParts, originals: Floats, boxes: Sequence[str], measure: str, direction: Direction,
) -> pl.DataFrame:  # fmt: skip
    """RePair's Table 4: for each box the best refined query of each original in it.

    ``originals`` are the values of all originals. ``refined`` and ``oracles`` (of value 1) are shares of all originals.
    The means before and after, and their change, are over the originals that have a refined query.
    """
    known = originals[~np.isnan(originals)]
    words = pl.col("text").str.extract_all(r"\S+").list.len().alias("words")
    rows = []
    for box in boxes:
        part = parts_of(pairs).filter(box).map(
            ["query_id", "text", old_column(measure), new_column(measure)],
            lambda frame: best_pairs(frame, measure, direction).with_columns(words),
        )  # fmt: skip
        old, new = (part.get_column(name(measure)).to_numpy() for name in (old_column, new_column))
        low, high = change_interval(np.arange(len(part)), old, new) if len(part) else (None, None)
        before, after = (float(values.mean()) if len(part) else None for values in (old, new))
        rows.append({
            "box": box, "originals": len(known), "all_mean": float(known.mean()) if len(known) else None,
            **share("refined", len(part), len(known)), "mean_words": part["words"].mean(), "old_mean": before,
            "new_mean": after, "change": 100 * (after / before - 1) if before and after is not None else None,
            "low": low, "high": high, **share("oracles", int((new == 1).sum()), len(known)),
        })  # fmt: skip
    return pl.DataFrame(rows)


HARD = {"original better": -1, "none better": 0}


def hard_table(
    pairs: pl.DataFrame | PairParts, rankers: Mapping[str, pl.DataFrame], measure: str,
    direction: Direction = Direction.UP,
) -> pl.DataFrame:  # fmt: skip
    """RePair's Table 5: hard queries, and their scores under other rankers.

    ``which``: "original better" means that the original is better than its best candidate (as published); "none better"
    is Eq. 1 and includes ties. Queries without a candidate are in neither. The means are those of the originals and
    their best candidates, under the ranker of ``pairs`` and under each other ranker. They are over the ``scored``
    queries for which the other ranker has both scores. ``improved`` is the share of these queries whose candidate is
    better under the other ranker.
    """
    best = best_of(parts_of(pairs), measure, direction)
    old, new = (best.get_column(name(measure)).to_numpy() for name in (old_column, new_column))
    sign = verdicts(old, new, direction)
    rows = []
    for which, most in HARD.items():
        hard = best.filter(pl.Series((sign != UNKNOWN_SIGN) & (sign <= most)))
        told = {"which": which, "queries": len(best), **share("hard", len(hard), len(best))}
        rows += [
            {**told, "ranker": name, **_there(hard, scores, measure, direction, name)}
            for name, scores in rankers.items()
        ] or [told]
    return pl.DataFrame(rows, infer_schema_length=None)


def best_of(pairs: PairParts, measure: str, direction: Direction) -> pl.DataFrame:
    """The best candidate of each query with its old and new value."""
    columns = ["query_id", "variant_id", old_column(measure), new_column(measure)]
    return pairs.map(columns, lambda part: best_pairs(part, measure, direction))


def _there(hard: pl.DataFrame, scores: pl.DataFrame, measure: str, direction: Direction, ranker: str) -> dict[str, Any]:
    joined = under(hard.select("query_id", "variant_id"), scores, [measure], ranker)
    here = hard.select(old=old_column(measure), new=new_column(measure))
    table = here.with_columns(other_old=joined[old_column(measure)], other_new=joined[new_column(measure)])
    known = table.filter(~pl.any_horizontal(pl.all().is_nan()))
    means = {f"{name}_mean": known.get_column(name).mean() for name in ("old", "other_old", "new", "other_new")}
    sign = verdicts(known.get_column("other_old").to_numpy(), known.get_column("other_new").to_numpy(), direction)
    return {"scored": len(known), **means, **share("improved", int((sign == 1).sum()), len(known))}
