"""The source of query topics: a column of the log, word lists, or a classifier."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa

from askew.app.search.classify import make_classifier
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.logs.pairs import TopicsOf
from askew.logs.topics import OTHER, load_topics
from askew.plugins.registry import names

COLUMN, WORDS, NONE, AUTO = "column", "words", "none", "auto"
_AT_A_TIME = 4096
_REMEMBERED = 1_000_000


class ClassifierTopics:
    """The labels of a classifier as topics. Each distinct query is classified once and cached."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        # The model of a classifier may not be thread-safe.
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}

    def topics(self, queries: pa.Array) -> pa.Array:
        """A topic for each query."""
        encoded = queries.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        with self._lock:
            fresh = [text for text in texts if text not in self._known]
            if len(self._known) + len(fresh) > _REMEMBERED:
                self._known, fresh = {}, texts
            for at in range(0, len(fresh), _AT_A_TIME):
                some = fresh[at : at + _AT_A_TIME]
                labels = self._classifier.classify(some).names()
                self._known.update(zip(some, (label or OTHER for label in labels), strict=True))
            found = pa.array([self._known[text] for text in texts], pa.string())
        return found.take(encoded.indices)


def topic_source(spec: str, has_column: bool, groups: Groups | None = None) -> tuple[TopicsOf | None, str]:
    """The source of topics (None: the topic column of the log) and its description.

    ``groups`` are passed to a classifier of groups; None keeps the classifier's own groups.
    """
    if spec == AUTO:
        spec = COLUMN if has_column else WORDS
    if spec == COLUMN:
        if not has_column:
            raise ConfigError("topics='column': the log has no column for the topic; name the column with columns=")
        return None, "a column of the log"
    if spec == WORDS:
        found = load_topics()
        return found, f"words of {found.name}"
    if spec.lower().endswith(".toml"):
        found = load_topics(Path(spec))
        return found, f"words of {found.name}"
    if spec in names("classifier"):
        return ClassifierTopics(make_classifier({"classifier": spec}, groups)), f"classifier {spec}"
    known = ", ".join([COLUMN, WORDS, NONE, "a .toml file", *names("classifier")])
    raise ConfigError(f"topics={spec!r}: expected one of: {known}")
