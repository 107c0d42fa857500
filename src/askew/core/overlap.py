"""What two sequences of words have in common."""

from __future__ import annotations

from collections.abc import Sequence


def f_measure(common: float, ours: int, theirs: int) -> float:
    """Precision and recall weighed equally."""
    return 2.0 * common / (ours + theirs) if common else 0.0


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(right) + 1)
    for word in left:
        before = 0
        for i, other in enumerate(right, start=1):
            before, row[i] = row[i], before + 1 if word == other else max(row[i], row[i - 1])
    return row[-1]
