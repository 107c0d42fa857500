"""Agreement of orders: Kendall's tau-b between many orders of the same things at once.

With s(p) = 1, 0 or -1 for each pair p of things (which of the two is lower, 0 where they are equal):

    tau_b(x, y) = sum_p s_x(p) s_y(p) / sqrt(number of p with s_x != 0  *  number of p with s_y != 0)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from askew.core.ranking import Floats

Signs = npt.NDArray[np.int8]
# Values that differ by no more than rounding are equal; relative to the largest of their row.
_ROUNDING = 1e-12


def pair_signs(values: Floats) -> Signs:
    """For each row and each pair of columns i < j: 1 where i is the lower, -1 where j is, 0 where they are equal."""
    first, second = np.triu_indices(values.shape[1], 1)
    gaps = values[:, second] - values[:, first]
    rounding = _ROUNDING * np.abs(values).max(axis=1, initial=0.0)
    return np.where(np.abs(gaps) <= rounding[:, None], 0, np.sign(gaps)).astype(np.int8)


def tau_b(signs: Signs) -> Floats:
    """Kendall's tau-b between each two rows; NaN where one of them has all columns equal."""
    # Sums of so few whole numbers are exact in 32 bits.
    plain = signs.astype(np.float32)
    untied = np.count_nonzero(signs, axis=1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((plain @ plain.T) / np.sqrt(np.outer(untied, untied)), np.float64)
