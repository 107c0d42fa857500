"""Small releases of other selections, that keep every rule: RePair's boxes, and a selector of a user."""

import polars as pl
from toy_release import MEASURES, facts, frame, row

from askew.core.measure import pair_columns
from askew.pairs.dataset.layouts import Tables

BOXES = {
    "gold": "refined >= original and refined > 0",
    "diamond": "refined > original and refined == 1",
    "far": "refined - original >= 0.5",
}
BASE = ("query_id", "variant_id", "original_text", "text", "method", "doc_id", "outcome")
SIDES = {"effectiveness": "RR@10", "bias": "ARaB(tf)@10", "tolerance": 0.0}


def plain(rows, **flags):
    """The pairs without what belongs to groups, with flags of their own."""
    table = frame(rows).select(*BASE, *(column for name in MEASURES for column in pair_columns(name)))
    return table.with_columns(pl.Series(name, values, pl.Boolean) for name, values in flags.items())


# Query, variant, old RR, new RR, old and new ARaB; the best candidate of a query first.
BOXED = [
    ("q1", "v0", 0.5, 1.0, 0.5, 0.25),
    ("q2", "v0", 0.5, 0.5, 0.5, 0.5),
    ("q3", "v1", 0.0, 0.25, -0.5, 0.0),
]
# The candidates that were not the best of their query.
OTHERS = [("q1", "v1", 0.5, 0.5, 0.5, 0.25), ("q3", "v0", 0.0, 0.0, -0.5, 0.0), ("q4", "v0", 1.0, 0.5, 0.0, 0.0)]


def boxed_rows(rows=BOXED):
    return [row(q, v, (old, lean, 1.0), (new, less, 1.0)) for q, v, old, new, lean, less in rows]


def boxed_pairs():
    news, olds = [one[3] for one in BOXED], [one[2] for one in BOXED]
    return plain(
        boxed_rows(),
        is_best=[True] * 3,
        gold=[new >= old and new > 0 for new, old in zip(news, olds, strict=True)],
        diamond=[new > old and new == 1 for new, old in zip(news, olds, strict=True)],
        far=[new - old >= 0.5 for new, old in zip(news, olds, strict=True)],
    )


def boxed_facts(**more):
    selection = {"selector": "boxes", "measure": "RR@10", "bias": ["ARaB(tf)@10"], "boxes": BOXES, "every": False}
    return facts(scheme="boxes", subsets=list(BOXES), selection={**selection, **more}, ranker="bm25(k1=0.82,b=0.68)")


def aggregated():
    """RePair's table of all candidates: each original first, then its candidates, best first."""
    found = []
    everyone = sorted([*boxed_rows(), *boxed_rows(OTHERS)], key=lambda one: (one["query_id"], -one["new_RR_10"]))
    for one in everyone:
        if (one["query_id"], "-1") not in {(old[0], old[1]) for old in found}:
            found.append((one["query_id"], "-1", one["original_text"], one["old_RR_10"]))
        found.append((one["query_id"], f"pred.{one['variant_id'][1]}", one["text"], one["new_RR_10"]))
    return pl.DataFrame(found, schema=["qid", "order", "query", "bm25.RR@10"], orient="row")


def repair_tables():
    judged = pl.DataFrame(
        {"query_id": ["q1", "q1", "q2", "q9"], "doc_id": ["d2", "d1", "d1", "d1"], "relevance": [1, 0, 2, 1]}
    )
    return Tables(aggregated(), judged)


def own_pairs():
    """Pairs of a selector that is not part of askew: two of q1, one of q2."""
    rows = [
        row("q1", "v0", (0.5, 0.5, 1.0), (1.0, 0.5, 1.0)),
        row("q1", "v1", (0.5, 0.5, 1.0), (0.5, 0.25, 1.0)),
        row("q2", "v0", (0.5, 0.5, 1.0), (0.25, 0.0, 1.0)),
    ]
    return plain(rows, own=[True] * 3)


def own_facts():
    return facts(subsets=["own"], selection={"selector": "own", **SIDES})
