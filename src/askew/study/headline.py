"""The headline of runs: classify the queries, then measure the lean of the neutral ones beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from askew.core.groups import GroupsLike
from askew.measures.headline import Headline, headlines
from askew.measures.lists import RunLike
from askew.rewrite.classifiers import query_labels


def headline(
    runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike],
    collection: object = None,
    *,
    docs: object = None,
    queries: str | Path | Mapping[str, str] | Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    groups: GroupsLike | None = None,
    **options: Any,
) -> list[Headline]:
    """Return what is said first about runs: how far the results of neutral queries lean beyond chance.

    - ``runs``, ``collection``, ``docs``, ``groups``: as in ``measure``.
    - ``queries``: use only these queries: a file, ``{id: text}`` or a list of ids. The texts of the queries are these,
      or those of the collection.
    - ``labels``: the group that each query asks about, or ``neutral``, by query id. By default these are the labels of
      the queries; without them, the best installed classifier classifies the queries.
    - ``options``: ``label``, ``cutoff``, ``tokens``, ``missing``, ``order``, ``fields``, ``run_format``,
      ``store`` and ``progress``, as in ``measure``.
    """
    classifier = "given labels"
    if labels is None:
        place = docs if collection is None else collection
        labels, classifier = query_labels(queries if isinstance(queries, str | Path | Mapping) else place, groups)
    return headlines(
        runs,
        collection,
        docs=docs,
        queries=list(queries) if isinstance(queries, Mapping) else queries,
        labels=labels,
        classifier=classifier,
        groups=groups,
        **options,
    )
