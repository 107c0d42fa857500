"""Choose the threshold of the semantic filter on labeled pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askew.filters.calibrate import read_labeled
from askew.filters.semantic import SemanticFilter
from askew.statistics.curves import Calibration, calibrate

_POINTS = 12


@dataclass(frozen=True)
class Calibrated:
    """A calibration, and the numbers of pairs and queries that it is based on."""

    found: Calibration
    pairs: int
    queries: int
    left_out: Mapping[str, int]

    def facts(self) -> dict[str, Any]:
        """All values as JSON values, with a dozen points of the precision-recall curve."""
        curve, cut, area = self.found.curve, self.found.cut, self.found.average_precision
        places = np.unique(np.linspace(0, len(curve.thresholds) - 1, _POINTS).round().astype(int))
        points = [
            {"threshold": float(curve.thresholds[i]), "precision": float(curve.precision[i]),
             "recall": float(curve.recall[i]), "kept": float(curve.kept[i] / self.pairs)}
            for i in places
        ]  # fmt: skip
        return {
            "pairs": self.pairs, "queries": self.queries, "left_out": dict(self.left_out), "base_rate": curve.base_rate,
            "average_precision": area.value, "low": area.low, "high": area.high, "threshold": cut.threshold,
            "precision": cut.precision, "recall": cut.recall, "curve": points,
        }  # fmt: skip


def calibrate_filter(
    labeled: Path, similarity: str, rule: str, least: float, seed: int, settings: Mapping[str, Any]
) -> Calibrated:
    """The precision-recall curve of a similarity on labeled pairs, its area, and the threshold chosen by a rule."""
    pairs = read_labeled(labeled)
    scores = SemanticFilter(similarity=similarity, **settings).score_pairs(pairs.originals, pairs.candidates)
    found = calibrate(scores, pairs.labels, pairs.queries, rule=rule, least_precision=least, seed=seed)
    return Calibrated(found, len(pairs), len(set(pairs.queries)), pairs.left_out)
