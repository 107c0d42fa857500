"""Make candidates: reformulate queries with any methods, filter the results, and count them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.ranking import Hits
from askew.plugins.kinds import RankerPlugin
from askew.plugins.methods import Candidates, FilterPlugin, Passage, QueryBatch, ReformulatorPlugin
from askew.plugins.registry import from_spec
from askew.rankers.bm25.analyze import Analyzer
from askew.rankers.bm25.index import Index
from askew.rankers.disk import StoredTexts, read_header

_CHUNK = 1000
SCHEMA = {
    "query_id": pl.String,
    "variant_id": pl.String,
    "text": pl.String,
    "method": pl.String,
    "settings": pl.String,
    "doc_id": pl.String,
}


class IndexStatistics:
    """The statistics of a BM25 index for reformulators."""

    def __init__(self, folder: Path) -> None:
        self._index = Index.open(folder)
        self._analyzer = Analyzer(self._index.header["analyzer"])
        self.documents, self.tokens = self._index.with_text, int(self._index.header["tokens"])
        self._totals = self._index.statistics().totals

    def split(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text in order, each with its term; None for a stop word."""
        return self._analyzer.pairs(text)

    def split_many(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``split``, for many texts at once."""
        return self._analyzer.pairs_of(texts)

    def document_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """The number of documents that contain each term."""
        return self._of(terms, self._documents)

    def collection_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """The number of occurrences of each term in the collection."""
        return self._of(terms, self._totals)

    @cached_property
    def _documents(self) -> npt.NDArray[np.int64]:
        return np.diff(self._index.offsets)

    def _of(self, terms: Sequence[str], values: Any) -> npt.NDArray[np.int64]:
        numbers = self._index.term_numbers(list(terms))
        found = np.zeros(len(numbers), np.int64)
        found[numbers >= 0] = values[numbers[numbers >= 0]]
        return found


@dataclass
class Tally:
    """The counts of one method's candidates. Each one is kept, or rejected by the method itself or by a filter."""

    method: str
    made: int = 0
    kept: int = 0
    queries: int = 0
    seconds: float = 0.0
    rejected: Counter[str] = field(default_factory=Counter)


class FirstPass:
    """What reformulators can read of a collection: the top-ranked passages of each query, and term statistics."""

    def __init__(self, index: Path, ranker: RankerPlugin, depth: int = defaults.PASSAGES) -> None:
        self._ranker, self._depth = ranker, depth
        self._texts = StoredTexts(index, read_header(index)["documents"])
        self.statistics = IndexStatistics(index)

    def ask(self, query_ids: Sequence[str], texts: Sequence[str]) -> QueryBatch:
        """Queries with their top-ranked passages."""
        hits = self._ranker.search(list(texts), self._depth)
        passages = tuple(tuple(self._passages(hits, row)) for row in range(len(texts)))
        return QueryBatch(tuple(query_ids), tuple(texts), passages, self.statistics)

    def _passages(self, hits: Hits, row: int) -> Iterator[Passage]:
        for at in range(int(hits.offsets[row]), int(hits.offsets[row + 1])):
            doc = int(hits.docs[at])
            yield Passage(self._ranker.doc_ids[doc].as_py(), self._texts[doc], float(hits.scores[at]))


def make_reformulator(spec: Mapping[str, Any], groups: Groups | None = None) -> ReformulatorPlugin:
    """Build a reformulator from ``{"method": name, setting: value, ...}``. ``groups`` are those that it counts."""
    made: ReformulatorPlugin = from_spec("reformulator", spec, "method", groups)
    return made


def make_filter(spec: Mapping[str, Any], groups: Groups | None = None) -> FilterPlugin:
    """Build a filter from ``{"filter": name, setting: value, ...}``. ``groups`` are those that it counts."""
    made: FilterPlugin = from_spec("filter", spec, groups=groups)
    return made


def reformulate(
    queries: pa.Table,
    methods: Sequence[ReformulatorPlugin],
    filters: Sequence[FilterPlugin] = (),
    first_pass: FirstPass | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[pl.DataFrame, list[Tally]]:
    """The candidates of every query by every method, and the counts of each method."""
    for method in methods:
        if method.reads and first_pass is None:
            raise ConfigError(
                f"the reformulator {method.method!r} reads {' and '.join(sorted(method.reads))}: give docs= or index="
            )
    tallies = [Tally(method.method) for method in methods]
    parts = []
    for start in range(0, queries.num_rows, _CHUNK):
        part = queries.slice(start, _CHUNK)
        ids, texts = part["query_id"].to_pylist(), part["text"].to_pylist()
        reading = any(method.reads for method in methods)
        asked = first_pass.ask(ids, texts) if first_pass and reading else QueryBatch(tuple(ids), tuple(texts))
        made = [(method, _timed(method, asked, tally)) for method, tally in zip(methods, tallies, strict=True)]
        parts.append(_kept(asked, made, tallies, filters))
        if progress:
            progress(start + part.num_rows, queries.num_rows)
    return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA), tallies


def _timed(method: ReformulatorPlugin, asked: QueryBatch, tally: Tally) -> Candidates:
    start = time.perf_counter()
    found = method.reformulate(asked)
    tally.seconds += time.perf_counter() - start
    return found


def _kept(
    asked: QueryBatch,
    made: Sequence[tuple[ReformulatorPlugin, Candidates]],
    tallies: Sequence[Tally],
    filters: Sequence[FilterPlugin],
) -> pl.DataFrame:
    """The candidates of a batch that pass every filter, sorted by query and method."""
    flat = [
        (row, number, text, doc_id)
        for number, (_, found) in enumerate(made)
        for row, text, doc_id in zip(found.rows, found.texts, found.doc_ids, strict=True)
    ]
    flat.sort(key=lambda one: (one[0], one[1]))
    for tally, (_, found) in zip(tallies, made, strict=True):
        tally.made += len(found) + found.rejected.total()
        tally.rejected.update(found.rejected)
    for check in filters:
        originals = [asked.texts[row] for row, *_ in flat]
        reasons = check.check(originals, [text for _, _, text, _ in flat], [row for row, *_ in flat])
        for (_, number, _, _), reason in zip(flat, reasons, strict=True):
            if reason is not None:
                tallies[number].rejected[reason] += 1
        flat = [one for one, reason in zip(flat, reasons, strict=True) if reason is None]
    settings = [json.dumps(dict(method.settings()), sort_keys=True) for method, _ in made]
    counts: Counter[tuple[int, int]] = Counter()
    rows = []
    for row, number, text, doc_id in flat:
        counts[row, number] += 1
        name, query_id = made[number][0].method, asked.query_ids[row]
        rows.append((query_id, f"{query_id}:{name}.{counts[row, number]}", text, name, settings[number], doc_id))
    for number, tally in enumerate(tallies):
        tally.kept += sum(count for (_, n), count in counts.items() if n == number)
        tally.queries += sum(n == number for _, n in counts)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
