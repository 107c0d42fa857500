"""Confidence intervals of shares."""

from __future__ import annotations

import math
from statistics import NormalDist

from askew.core.errors import ConfigError


def wilson(count: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval (1927) of the share ``count / n``. It is within 0 and 1; for ``n = 0`` both ends are NaN."""
    if not 0 <= count <= n:
        raise ConfigError(f"share: expected a count from 0 to {n}, found {count}")
    if not n:
        return math.nan, math.nan
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = count / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    # Without these two cases, rounding could put a share of 0 or 1 outside its interval.
    return (middle - half if count else 0.0), (middle + half if count < n else 1.0)
