"""A mitigation method in one file: documents of the groups in turn.

askew bench demo --method docs/contributing/interleave.py:Interleave --sweep
"""

import numpy as np

from askew.core.protocols import MitigationTask
from askew.core.ranking import Hits


class Interleave:
    """The group of each rank in the top ``strength`` is the one with the fewest documents so far; the rest by score.

    A document belongs to the group that it names most. Documents that name none stay where they are.
    """

    strengths = (5, 10, 20)

    def __init__(self, strength: int = 10) -> None:
        self.top = int(strength)

    def rank(self, task: MitigationTask) -> Hits:
        """The first results in another order."""
        lists = zip(task.first.offsets[:-1], task.first.offsets[1:], strict=True)
        return task.reordered(np.concatenate([self._order(task, *one) for one in lists]))

    def _order(self, task: MitigationTask, start: int, stop: int) -> np.ndarray:
        counts = task.counts[task.first.docs[start:stop]]
        group = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
        left, order, taken = list(range(stop - start)), [], np.zeros(counts.shape[1], int)
        while left:
            named = [place for place in left if group[place] >= 0] if len(order) < self.top else []
            place = left[0]
            if named and group[place] >= 0:
                place = min(named, key=lambda one: (taken[group[one]], one))
            if group[place] >= 0:
                taken[group[place]] += 1
            left.remove(place)
            order.append(place)
        return np.array(order, np.int64) + start
