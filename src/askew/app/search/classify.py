"""Classify queries: the group that each query is about, or neutral."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from askew.app.search.retrieve import as_queries
from askew.classifiers.lexical import LABEL, LexicalClassifier
from askew.classifiers.query_groups import QueryGroupsClassifier, takes_groups
from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.models.find import has_minilm
from askew.plugins.methods import ClassifierPlugin
from askew.plugins.registry import from_spec, settings_of

ABSTAINS = "abstains"


@dataclass(frozen=True)
class Classification:
    """The result of ``classify``: a label for each query.

    ``table`` has query_id, text, label and probability. ``counts`` has the number of queries per label. ``judged``
    is the number of queries that already had a label in the input. ``right`` is the number of these queries for which
    the classifier returned that label. ``classifier`` is the name of the classifier that was used.
    """

    table: pl.DataFrame
    counts: Mapping[str, int]
    right: int
    judged: int
    classifier: str


def named_classifier(spec: Mapping[str, Any], groups: Groups | None = None) -> dict[str, Any]:
    """Replace ``auto`` by the name of a classifier.

    This is ``query-groups`` if its model is installed, the groups are female and male (or not given) and it has all the
    given settings; otherwise ``lexical``.
    """
    named = dict(spec)
    if named.get("classifier") != defaults.CLASSIFIER:
        return named
    counted = groups if named.get("groups") is None else Groups.of(named["groups"])
    known = {"classifier", *settings_of("classifier", QueryGroupsClassifier.name)}
    learned = takes_groups(counted) and set(named) <= known and has_minilm()
    return {**named, "classifier": QueryGroupsClassifier.name if learned else LexicalClassifier.name}


def make_classifier(spec: Mapping[str, Any], groups: Groups | None = None) -> ClassifierPlugin:
    """Build a classifier from ``{"classifier": name, setting: value, ...}`` for these groups."""
    made: ClassifierPlugin = from_spec("classifier", named_classifier(spec, groups), groups=groups)
    if groups is not None and (other := set(made.labels) - {LABEL, *groups.names}):
        raise ConfigError(
            f"the classifier {made.name!r} has labels for the group {sorted(other)[0]!r}, but the requested groups are "
            f"{', '.join(groups.names)}: choose a classifier for the requested groups"
        )
    return made


def classify(
    queries: object, classifier: str = defaults.CLASSIFIER, *, groups: GroupsLike | None = None, **settings: Any
) -> Classification:
    """Label each query with the group that it is about, or with ``neutral``.

    ``queries`` is a collection, a file, ``{id: text}``, a data frame or a list of texts. If the queries already have
    labels, the result also has the number of queries whose predicted label equals the given label. ``settings`` are the
    settings of the classifier (``askew show classifier NAME``). The classifier ``auto`` is ``query-groups`` for the
    groups female and male if its model is installed; otherwise it is ``lexical``.
    """
    made = make_classifier({"classifier": classifier, **settings}, None if groups is None else Groups.of(groups))
    asked = as_queries(queries)
    found = made.classify(asked["text"].to_pylist())
    chosen = [name or ABSTAINS for name in found.names()]
    best = found.probabilities.max(axis=1) if chosen else np.zeros(0)
    table = pl.DataFrame(
        {"query_id": asked["query_id"].to_pylist(), "text": asked["text"].to_pylist(), "label": chosen,
         "probability": np.round(best, 6)}
    )  # fmt: skip
    given = asked["label"].to_pylist()
    pairs = [(meant, got) for want, got in zip(given, chosen, strict=True) if (meant := _meant(want, found.labels))]
    counts = Counter(chosen)
    ordered = {label: counts[label] for label in (*found.labels, ABSTAINS) if counts[label]}
    return Classification(table, ordered, sum(a == b for a, b in pairs), len(pairs), made.name)


def _meant(given: str | None, labels: tuple[str, ...]) -> str | None:
    """The label for a label of the file: the same name, or the first label that begins with it (n is neutral)."""
    if not given:
        return None
    return given if given in labels else next((label for label in labels if label.startswith(given.lower())), None)
