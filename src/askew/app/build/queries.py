"""The stage classify: keeps the queries with the wanted labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from askew.app.search.classify import ABSTAINS, named_classifier
from askew.core.errors import ConfigError
from askew.core.figures import counted
from askew.core.groups import Groups
from askew.plugins.methods import ClassifierPlugin

SCHEMA = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("label", pa.string())])


def with_named_classifier(sections: Mapping[str, Any], groups: Groups | None) -> Mapping[str, Any]:
    """Replace ``auto`` in the sections of a recipe by the name of the classifier, so that a store records it."""
    given = dict(sections.get("classify", {}))
    if not given:
        return sections
    named = named_classifier({name: value for name, value in given.items() if name != "keep"}, groups)
    return {**sections, "classify": {**given, **named}}


class Classify:
    """Keeps the queries with some labels; other queries are dropped and counted by label."""

    name = "classify"
    version = 1

    def __init__(self, classifier: ClassifierPlugin, keep: Sequence[str] = ("neutral",)) -> None:
        unknown = [label for label in keep if label not in classifier.labels]
        if unknown or not keep:
            known = ", ".join(classifier.labels)
            raise ConfigError(
                f"classify: the setting 'keep' should list one or more of the labels {known}; found "
                f"{', '.join(unknown) or 'none'}"
            )
        self.classifier, self.keep = classifier, tuple(keep)

    def settings(self) -> Mapping[str, Any]:
        """Return the classifier with its settings, and the labels that are kept."""
        return {"classifier": self.classifier.name, **self.classifier.settings(), "keep": list(self.keep)}

    def tied(self, texts: Iterable[Sequence[str]]) -> list[str]:
        """Return a note if some of the kept queries name several groups equally often and were therefore kept."""
        count = getattr(self.classifier, "tied", None)
        found = 0 if count is None else sum(count(some) for some in texts)
        if not found:
            return []
        queries = counted(found, "kept query names", "kept queries name")
        return [f"{queries} two or more groups equally often; to drop such queries, set classify.ties to 'abstain'"]

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the kept rows with their labels."""
        labels = [label or ABSTAINS for label in self.classifier.classify(rows["text"].to_pylist()).names()]
        kept = [label in self.keep for label in labels]
        dropped = Counter(f"label {label}" for label, stays in zip(labels, kept, strict=True) if not stays)
        table = pa.table([rows["query_id"], rows["text"], pa.array(labels, pa.string())], schema=SCHEMA)
        if "context" in rows.column_names:
            table = table.append_column("context", rows["context"])
        return table.filter(pa.array(kept)), dict(dropped)
