"""Queries in, labels out: which group each asks about, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from askew.app.search.retrieve import queries_of
from askew.classifiers.lexical import LABEL
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.plugins.methods import ClassifierPlugin
from askew.plugins.registry import from_spec

ABSTAINS = "abstains"


@dataclass(frozen=True)
class Classification:
    """The labels of queries; ``right`` of ``judged`` agree with those the file has."""

    table: pl.DataFrame
    counts: Mapping[str, int]
    right: int
    judged: int


def make_classifier(spec: Mapping[str, Any], groups: Groups | None = None) -> ClassifierPlugin:
    """A classifier from ``{"classifier": name, setting: value, ...}``, of these groups."""
    made: ClassifierPlugin = from_spec("classifier", spec, groups=groups)
    if groups is not None and (other := set(made.labels) - {LABEL, *groups.names}):
        raise ConfigError(
            f"the classifier {made.name!r} knows the group {sorted(other)[0]!r}, and the groups are "
            f"{', '.join(groups.names)}: choose a classifier of these groups"
        )
    return made


def classify_queries(
    source: str, classifier: str, settings: Mapping[str, Any], groups: Groups | None = None
) -> Classification:
    """Label every query of a file or collection, and compare with the labels that the file has."""
    made = make_classifier({"classifier": classifier, **settings}, groups)
    queries = queries_of(source)
    found = made.classify(queries["text"].to_pylist())
    chosen = [name or ABSTAINS for name in found.names()]
    best = found.probabilities.max(axis=1) if chosen else np.zeros(0)
    table = pl.DataFrame(
        {"query_id": queries["query_id"].to_pylist(), "text": queries["text"].to_pylist(), "label": chosen,
         "probability": np.round(best, 6)}
    )  # fmt: skip
    given = queries["label"].to_pylist()
    pairs = [(meant, got) for want, got in zip(given, chosen, strict=True) if (meant := _meant(want, found.labels))]
    counts = Counter(chosen)
    ordered = {label: counts[label] for label in (*found.labels, ABSTAINS) if counts[label]}
    return Classification(table, ordered, sum(a == b for a, b in pairs), len(pairs))


def _meant(given: str | None, labels: tuple[str, ...]) -> str | None:
    """The label that a file's own stands for: its whole name, or the first that begins so (n is neutral)."""
    if not given:
        return None
    return given if given in labels else next((label for label in labels if label.startswith(given.lower())), None)
