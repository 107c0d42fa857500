"""Collect the reformulations of queries: those of the store, then new ones that pass the filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from askew.app.build.variants import ORIGINAL, Keep, ReformulateStage
from askew.app.explore.english import NOT_ENGLISH, is_english
from askew.app.explore.known import words_of
from askew.app.explore.searched import SearchedCollection
from askew.app.explore.stored import COLUMNS
from askew.app.search.reformulate import FirstPass
from askew.filters.equivalence import EquivalenceFilter
from askew.plugins.methods import JudgingFilter

# If the store has this number of reformulations, no more are generated: a language model takes seconds.
ENOUGH = 3
# The id of a query that is not one of the collection.
NEW = "asked"
_SCHEMA = pa.schema(list(zip(COLUMNS, [pa.string()] * 5 + [pa.float64()] * 2, strict=True)))


@dataclass(frozen=True)
class Written:
    """The original query and its reformulations as a table, the dropped candidates by reason, and the methods used."""

    table: pa.Table
    dropped: Mapping[str, int]
    methods: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Writer:
    """Generates reformulations with the methods and filters of a collection; ``english`` if these are for English."""

    def __init__(self, searched: SearchedCollection, english: bool) -> None:
        self._searched, self._english = searched, english
        self._keep = Keep(list(searched.filters))
        self._stage = ReformulateStage(dict(searched.methods), self._first_pass, "")

    def _first_pass(self) -> FirstPass:
        assert self._searched.first_pass is not None
        return self._searched.first_pass

    def candidates(self, queries: Sequence[tuple[str | None, str]]) -> list[Written]:
        """Return each query and its reformulations, without duplicate texts. A query is its id, if known, and its text.

        The reformulations of all queries are made together, which takes less time than one query after the other.
        """
        known = [self._known(*query) for query in queries]
        few = [row for row, one in enumerate(known) if one.num_rows <= ENOUGH]
        foreign = {row for row in few if self._english and not is_english(queries[row][1])}
        rows = [row for row in few if row not in foreign]
        made = dict(zip(rows, self._written([queries[row] for row in rows]), strict=True))
        tables = [pa.concat_tables([one, made[row][0]]) if row in made else one for row, one in enumerate(known)]
        scored = self._scored([_distinct(table) for table in tables])
        return [
            Written(table, made[row][1], tuple(self._stage.methods)) if row in made
            else Written(table, {}, (), (NOT_ENGLISH,) if row in foreign else ())
            for row, table in enumerate(scored)
        ]  # fmt: skip

    def _known(self, query_id: str | None, text: str) -> pa.Table:
        """Return the query and its reformulations in the store."""
        name = query_id or NEW
        original = {"query_id": name, "variant_id": name, "text": text, "method": ORIGINAL}
        first = _flagged(pa.Table.from_pylist([original], schema=_SCHEMA), False)
        stored = None
        if query_id is not None and self._searched.stored is not None:
            stored = self._searched.stored(query_id, text)
        return first if stored is None else pa.concat_tables([first, _flagged(_plain(stored), True)])

    def _written(self, queries: Sequence[tuple[str | None, str]]) -> list[tuple[pa.Table, dict[str, int]]]:
        """Return for each query the candidates that pass the filters, and the others by reason."""
        if not queries:
            return []
        rows = pa.table({"query_id": [one or NEW for one, _ in queries], "text": [text for _, text in queries]})
        made = self._stage.run(rows)[0]
        starts = np.flatnonzero([method == ORIGINAL for method in made["method"].to_pylist()])
        ends = [*starts[1:].tolist(), made.num_rows]
        # Several queries may have the same id, and filters need one for each query.
        numbers = np.repeat(np.arange(len(starts)), np.diff([*starts, made.num_rows])).astype(str)
        at = made.column_names.index("query_id")
        judged, reasons = self._keep.judge(made.set_column(at, "query_id", pa.array(numbers, pa.string())))
        plain = _flagged(_plain(judged.set_column(at, "query_id", made["query_id"])), False)
        found = []
        for start, end in zip(starts.tolist(), ends, strict=True):
            kept = [row for row in range(start + 1, end) if reasons[row] is None]
            dropped = Counter(reason for reason in reasons[start + 1 : end] if reason is not None)
            found.append((plain.take(pa.array(kept, pa.int64())), dict(dropped)))
        return found

    def _scored(self, tables: Sequence[pa.Table]) -> list[pa.Table]:
        """Add the probabilities of the filter equivalence where no filter computed them."""
        texts = [table["text"].to_pylist() for table in tables]
        places = [
            [row for row, known in enumerate(table["p_same"].to_pylist()) if row and known is None] for table in tables
        ]
        pairs = [(one[0], one[row]) for one, rows in zip(texts, places, strict=True) for row in rows]
        if not pairs:
            return list(tables)
        scores = iter(self._judge.score(*map(list, zip(*pairs, strict=True))))
        return [
            _with_scores(table, {row: next(scores) for row in rows}) for table, rows in zip(tables, places, strict=True)
        ]

    @cached_property
    def _judge(self) -> JudgingFilter:
        """The filter of the recipe that judges the meaning; by default the light model."""
        own = next((one for one in self._searched.filters if isinstance(one, JudgingFilter)), None)
        return own or EquivalenceFilter(model="light")

    def judge(self, text: str, other: str) -> tuple[float | None, float | None]:
        """Return the probabilities that two queries ask for the same thing and that a person would type the second."""
        if self._english and not (is_english(text) and is_english(other)):
            return None, None
        (found,) = EquivalenceFilter(model="light").score([text], [other])
        return found["same"], found["natural"]


def _plain(table: pa.Table) -> pa.Table:
    return table.select(COLUMNS).cast(_SCHEMA)


def _flagged(table: pa.Table, stored: bool) -> pa.Table:
    return table.append_column("stored", pa.array([stored] * table.num_rows, pa.bool_()))


def _with_scores(table: pa.Table, scores: Mapping[int, Mapping[str, float]]) -> pa.Table:
    """Set the probabilities of some rows."""
    for column, output in (("p_same", "same"), ("p_natural", "natural")):
        values = table[column].to_pylist()
        for row, one in scores.items():
            values[row] = one[output]
        table = table.set_column(table.column_names.index(column), column, pa.array(values, pa.float64()))
    return table


def _distinct(table: pa.Table) -> pa.Table:
    """Remove duplicate texts, keeping the first."""
    words = pa.array([words_of(text) for text in table["text"].to_pylist()], pa.string())
    first = {word: row for row, word in reversed(list(enumerate(words.to_pylist())))}
    return table.take(pa.array(sorted(first.values()), pa.int64()))
