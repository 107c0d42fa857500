"""The untrained baseline: a document is relevant if its cosine with the query is above a threshold.

No weights are trained. The threshold is chosen on the training category only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from askew.core.ranking import Flags, Floats
from askew.models.relevance import Vectors
from askew.trainers.grepbias.pairs import Names
from askew.trainers.grepbias.protocol import FOLDS, ZeroShot, query_folds

_FOLD_SEED = 7


def cosines(apart: Vectors) -> npt.NDArray[np.float32]:
    """The cosine of each row of features of the layout ``apart``, where the last feature is a scaled cosine."""
    width = np.sqrt(apart.shape[1] - 1)
    return np.asarray(apart[:, -1] * 4 / width, np.float32)


def best_threshold(cosine: Floats, relevant: Flags) -> float:
    """The threshold with the most correct rows: a midpoint between two adjacent values; the median one of equals."""
    values = np.unique(cosine)
    between = np.concatenate([values[:1] - 1.0, (values[:-1] + values[1:]) / 2, values[-1:] + 1.0])
    right = ((cosine[None, :] > between[:, None]) == relevant).sum(1)
    best = np.flatnonzero(right == right.max())
    return float(between[best[len(best) // 2]])


def zero_shot_cosine(cosine: Floats, relevant: Flags, query: Names, category: Names, names: Sequence[str]) -> ZeroShot:
    """Run the complete protocol: a logit is the cosine minus the threshold of the training category."""
    logits = np.zeros((1, len(names), len(cosine)))
    inside = np.zeros((1, len(cosine)))
    for c, name in enumerate(names):
        there = np.flatnonzero(category == name)
        logits[0, c] = cosine - best_threshold(cosine[there], relevant[there])
        fold = query_folds(query[there], FOLDS, _FOLD_SEED)
        for k in range(FOLDS):
            own, others = there[fold == k], there[fold != k]
            inside[0, own] = cosine[own] - best_threshold(cosine[others], relevant[others])
    return ZeroShot(logits, inside, ())
