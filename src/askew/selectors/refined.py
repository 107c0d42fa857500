"""The tables of the RePair paper: queries, boxes, hard queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from askew.core.measure import UNBOUNDED, Bounds, Direction, new_column, old_column
from askew.core.outcome import UNKNOWN_SIGN, verdicts
from askew.core.ranking import Floats
from askew.selectors.parts import PairParts, parts_of
from askew.selectors.tables import best_pairs, share, under
from askew.statistics.intervals import change_interval


def queries_table(queries: pl.DataFrame, documents: int, judgements: pl.DataFrame | None) -> pl.DataFrame:
    """RePair's Table 2: queries, their mean length in words, documents, judgements per query, users if known."""
    words = queries.select(_word_counts("text")).to_series()
    users = queries.get_column("user_id").n_unique() if "user_id" in queries.columns else None
    judged = None if judgements is None else judgements.filter(pl.col("query_id").is_in(queries["query_id"].implode()))
    return pl.DataFrame([{
        "queries": len(queries), "mean_words": words.mean(), "documents": documents,
        "judgements": None if judged is None else len(judged) / max(len(queries), 1), "users": users,
    }])  # fmt: skip


def refined_table(
    pairs: pl.DataFrame | PairParts,
    originals: Floats,
    boxes: Sequence[str],
    measure: str,
    direction: Direction,
    bounds: Bounds = UNBOUNDED,
) -> pl.DataFrame:
    """RePair's Table 4: for each box the best refined query of each original in it.

    ``originals`` are the values of all originals. ``refined`` and ``oracles`` (of value 1) are shares of all originals.
    The means before and after, and their change, are over the originals that have a refined query.
    """
    known = originals[~np.isnan(originals)]
    rows = []
    for box in boxes:
        part = parts_of(pairs).filter(box).map(
            ["query_id", "text", old_column(measure), new_column(measure)],
            lambda frame: best_pairs(frame, measure, direction).with_columns(_word_counts("text")),
        )  # fmt: skip
        old, new = (part.get_column(name(measure)).to_numpy() for name in (old_column, new_column))
        words = part.get_column("text")
        low, high = change_interval(np.arange(len(part)), old, new, bounds) if len(part) else (None, None)
        before, after = (float(values.mean()) if len(part) else None for values in (old, new))
        rows.append({
            "box": box, "originals": len(known), "all_mean": float(known.mean()) if len(known) else None,
            **share("refined", len(part), len(known)), "mean_words": words.mean(), "old_mean": before,
            "new_mean": after, "change": 100 * (after / before - 1) if before and after is not None else None,
            "low": low, "high": high, **share("oracles", int((new == 1).sum()), len(known)),
        })  # fmt: skip
    return pl.DataFrame(rows)


def _word_counts(name: str) -> pl.Expr:
    return pl.col(name).str.extract_all(r"\S+").list.len()


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
