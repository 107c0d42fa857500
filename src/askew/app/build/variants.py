"""The stages reformulate and filter: make the variants of queries, and filter them. The original is a variant too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from askew.app.search.reformulate import FirstPass
from askew.core.address import without_secret_values
from askew.plugins.methods import FilterPlugin, JudgingFilter, QueryBatch, ReformulatorPlugin
from askew.plugins.registry import has_device

ORIGINAL = "original"
# The number of queries with their top-ranked passages in memory at a time.
_CHUNK = 1000
SCHEMA = pa.schema([(name, pa.string()) for name in ("query_id", "variant_id", "text", "method", "settings", "doc_id")])
# The documents that a candidate was made from; Parquet calls the values of a list "element".
SOURCES = pa.field("sources", pa.list_(pa.field("element", pa.string())))
KIND = "kind"
# The columns for the outputs of the filter equivalence.
PROBABILITIES = {"same": "p_same", "natural": "p_natural"}
_MADE = SCHEMA.append(SOURCES).append(pa.field(KIND, pa.string()))


class ReformulateStage:
    """Makes the variants of each query: the original, then the candidates of each method in turn.

    ``sources`` has the documents that a candidate was made from: its ``doc_id``, or the passages that its method mixed.
    ``kind`` is the kind of reformulation, if the method distinguishes kinds.
    """

    name = "reformulate"
    version = 3

    def __init__(
        self, methods: Mapping[str, ReformulatorPlugin], first_pass: Callable[[], FirstPass], first_key: str
    ) -> None:
        """``methods`` has the reformulators by name; the column ``method`` of their candidates has this name."""
        self.methods, self._first_pass, self._first_key = dict(methods), first_pass, first_key

    @cached_property
    def _first(self) -> FirstPass:
        return self._first_pass()

    def settings(self) -> Mapping[str, Any]:
        """Return every method with its settings, and the first pass if a method reads passages."""
        methods = [
            {"method": method.method, **method.settings(), **({"name": name} if name != method.method else {})}
            for name, method in self.methods.items()
        ]
        return {"methods": methods, "first_pass": self._first_key if self._reads else None}

    @property
    def neural(self) -> bool:
        """Whether a method runs a neural model."""
        return any(has_device("reformulator", method.method) for method in self.methods.values())

    @property
    def _reads(self) -> bool:
        return any(method.reads for method in self.methods.values())

    def prepare(self) -> None:
        """Build the index of the first pass once, before any worker opens it."""
        if self._reads:
            _ = self._first

    def rows_used(self, table: pa.Table) -> int:
        """Count the queries: each has one original."""
        return int(pc.sum(pc.equal(table["method"], ORIGINAL)).as_py() or 0)

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants, grouped by query."""
        parts = [self._variants(rows.slice(start, _CHUNK)) for start in range(0, rows.num_rows, _CHUNK)]
        return pa.concat_tables(parts) if parts else _MADE.empty_table(), {}

    def _variants(self, rows: pa.Table) -> pa.Table:
        ids, texts = rows["query_id"].to_pylist(), rows["text"].to_pylist()
        asked = self._first.ask(ids, texts) if self._reads else QueryBatch(tuple(ids), tuple(texts))
        if "context" in rows.column_names:
            asked = replace(asked, contexts=tuple(rows["context"].to_pylist()))
        made: list[list[tuple[Any, ...]]] = [
            [(query, query, text, ORIGINAL, None, None, None, None)] for query, text in zip(ids, texts, strict=True)
        ]
        for name, method in self.methods.items():
            settings = json.dumps(without_secret_values(dict(method.settings())), sort_keys=True)
            found = method.reformulate(asked)
            counts: Counter[int] = Counter()
            kinds = found.kinds or [None] * len(found)
            for row, text, doc_id, kind in zip(found.rows, found.texts, found.doc_ids, kinds, strict=True):
                counts[row] += 1
                sources = mixed_passages(method, asked, row) if doc_id is None else [doc_id]
                variant_id = f"{ids[row]}:{name}.{counts[row]}"
                made[row].append((ids[row], variant_id, text, name, settings, doc_id, sources, kind))
        columns = zip(*(variant for variants in made for variant in variants), strict=True)
        return pa.table([pa.array(one, kind) for one, kind in zip(columns, _MADE.types, strict=True)], schema=_MADE)


def mixed_passages(method: ReformulatorPlugin, asked: QueryBatch, row: int) -> list[str]:
    """Return the passages that a candidate without a ``doc_id`` was made from.

    The attribute ``mixes`` of a method is the number of passages that it uses; without it, all given passages count.
    """
    if "passages" not in method.reads or asked.passages is None:
        return []
    return [passage.doc_id for passage in asked.passages[row][: getattr(method, "mixes", None)]]


class Keep:
    """Drops the candidates that a filter refuses, and counts them by reason. The original is always kept.

    ``p_same`` and ``p_natural`` are the probabilities of the filter equivalence; null if it is not used.
    """

    name = "filter"
    version = 2
    together = "query_id"

    def __init__(self, filters: Sequence[FilterPlugin]) -> None:
        self.filters = list(filters)

    @property
    def neural(self) -> bool:
        """Whether a filter runs a neural model."""
        return any(has_device("filter", one.name) for one in self.filters)

    def settings(self) -> Mapping[str, Any]:
        """Return every filter with its settings, in order."""
        return {"filters": [{"filter": one.name, **one.settings()} for one in self.filters]}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the rows that every filter accepts."""
        rows, reasons = self.judge(rows)
        dropped = Counter(reason for reason in reasons if reason is not None)
        return rows.filter(pa.array([reason is None for reason in reasons], pa.bool_())), dict(dropped)

    def judge(self, rows: pa.Table) -> tuple[pa.Table, list[str | None]]:
        """Return all rows with their probabilities, and for each row why a filter refuses it; None if none does."""
        methods, texts, ids = (rows[name].to_pylist() for name in ("method", "text", "query_id"))
        originals = {query: text for query, text, method in zip(ids, texts, methods, strict=True) if method == ORIGINAL}
        numbers = {query: number for number, query in enumerate(originals)}
        left = [i for i, method in enumerate(methods) if method != ORIGINAL]
        found: dict[str, list[float | None]] = {name: [None] * len(ids) for name in PROBABILITIES}
        refused: list[str | None] = [None] * len(ids)
        for one in self.filters:
            pairs = [originals[ids[i]] for i in left], [texts[i] for i in left]
            if isinstance(one, JudgingFilter):
                scores = one.score(*pairs)
                reasons = [one.reason(each) for each in scores]
                for i, each in zip(left, scores, strict=True):
                    for name, values in found.items():
                        values[i] = each[name]
            else:
                reasons = one.check(*pairs, [numbers[ids[i]] for i in left])
            for i, reason in zip(left, reasons, strict=True):
                refused[i] = reason
            left = [i for i in left if refused[i] is None]
        for name, column in PROBABILITIES.items():
            rows = rows.append_column(column, pa.array(found[name], pa.float64()))
        return rows, refused
