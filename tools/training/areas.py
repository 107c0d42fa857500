"""Areas under the ROC curve of labeled candidates, of all and by the family of their methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from training.data import Row
from training.logistic import roc_area

# The rewriting model after preference training, before it, and all other methods.
FAMILIES = ("rewrite", "supervised", "others")
_FAMILY = {
    **dict.fromkeys(("rewrite", "round2", "preferred"), "rewrite"),
    **dict.fromkeys(("supervised", "trial"), "supervised"),
}


def family(method: str) -> str:
    """The family of a method."""
    return _FAMILY.get(method.partition(":")[0], "others")


def wanted_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Whether each candidate asks for the same, is natural, and is both: usable."""
    same = np.array([row["need"] == "same" for row in rows], bool)
    natural = np.array([bool(row["natural"]) for row in rows], bool)
    return {"same": same, "natural": natural, "usable": same & natural}


def areas(rows: Sequence[Row], scores: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The area of each score by what is wanted under its name; nothing where only one class is there."""
    wanted, of = wanted_of(rows), np.array([family(row["method"]) for row in rows])
    found: dict[str, dict[str, Any]] = {}
    for name in ("all", *FAMILIES):
        here = (of == name) | (name == "all")
        found[name] = {"rows": int(here.sum())}
        for output, values in scores.items():
            area = roc_area(values[here], wanted[output][here])
            found[name][output] = None if math.isnan(area) else round(area, 4)
    return found
