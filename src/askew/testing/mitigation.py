"""The contract of mitigation methods. Call ``check_mitigation`` from your own tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from askew.core.ranking import Hits
from askew.plugins.mitigation import MitigationPlugin, MitigationTask, check_lists

# Six documents by how often they name each of two groups, and lists of four queries, one of them empty.
COUNTS = np.array([[3, 0], [0, 2], [0, 0], [1, 1], [0, 5], [2, 0]], np.int32)
LISTS: tuple[list[int], ...] = ([0, 1, 2, 3, 4, 5], [5, 0, 2], [], [4])


def toy_task(groups: tuple[str, ...] = ("a", "b")) -> MitigationTask:
    """A small task without a search engine: lists, and counts of groups."""
    offsets = np.cumsum([0, *map(len, LISTS)]).astype(np.int64)
    docs = np.array([doc for one in LISTS for doc in one], np.int32)
    scores = np.array([10.0 - rank for one in LISTS for rank in range(len(one))], np.float32)
    ids = [f"q{row}" for row in range(len(LISTS))]
    return MitigationTask(ids, [f"text {one}" for one in ids], Hits(offsets, docs, scores), groups, COUNTS)


def check_mitigation(method: MitigationPlugin, task: MitigationTask | None = None) -> Hits:
    """Check that a method gives a list for each query, each document once, best first, alone as in a batch.

    A method that searches needs its own ``task``, with the functions that it calls.
    """
    assert isinstance(method, MitigationPlugin), (
        "the method lacks the function rank: see askew.plugins.mitigation.MitigationPlugin"
    )
    given = task or toy_task()
    before = given.first.docs.copy(), given.first.scores.copy()
    made = check_lists(method.rank(given), given, type(method).__name__)
    assert all((one == two).all() for one, two in zip(before, (given.first.docs, given.first.scores), strict=True)), (
        "the method must not change task.first (the ranked lists that the method receives)"
    )
    again = method.rank(given)
    assert (made.docs == again.docs).all(), "two calls with the same task must give the same results"
    for row in range(len(made)):
        part = slice(int(made.offsets[row]), int(made.offsets[row + 1]))
        assert (np.diff(made.scores[part]) <= 0).all(), "scores must not rise from one rank to the next"
        alone = method.rank(_one_query(given, row))
        assert alone.docs.tolist() == made.docs[part].tolist(), (
            "the results for one query must not depend on the other queries of the task"
        )
    return made


def _one_query(task: MitigationTask, row: int) -> MitigationTask:
    part = slice(int(task.first.offsets[row]), int(task.first.offsets[row + 1]))
    size = part.stop - part.start
    first = Hits(np.array([0, size], np.int64), task.first.docs[part], task.first.scores[part])
    return replace(task, query_ids=task.query_ids[row : row + 1], texts=task.texts[row : row + 1], first=first)
