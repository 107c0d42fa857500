"""Agreement of rankings: Kendall's tau-b between every two of many rankings of the same items.

With s(p) = 1, 0 or -1 for each pair p of items (which of the two is lower, 0 if they are equal):

    tau_b(x, y) = sum_p s_x(p) s_y(p) / sqrt(number of p with s_x != 0  *  number of p with s_y != 0)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from askew.core.ranking import Floats

Signs = npt.NDArray[np.int8]
# Values with a smaller difference, relative to the largest value of their row, are equal up to rounding.
_ROUNDING = 1e-12


def pair_signs(values: Floats) -> Signs:
    """For each row and each pair of columns i < j: 1 if i is lower, -1 if j is lower, 0 if they are equal."""
    first, second = np.triu_indices(values.shape[1], 1)
    gaps = values[:, second] - values[:, first]
    rounding = _ROUNDING * np.abs(values).max(axis=1, initial=0.0)
    return np.where(np.abs(gaps) <= rounding[:, None], 0, np.sign(gaps)).astype(np.int8)


def tau_b(signs: Signs) -> Floats:
    """Kendall's tau-b between every two rows; NaN if all columns of one of them are equal."""
    # These sums of small integers are exact in 32-bit floats.
    plain = signs.astype(np.float32)
    untied = np.count_nonzero(signs, axis=1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((plain @ plain.T) / np.sqrt(np.outer(untied, untied)), np.float64)
