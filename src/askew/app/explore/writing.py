"""Collect the reformulations of one query: those of the store, then new ones that pass the filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

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
_KINDS = dict(zip(COLUMNS, [pa.string()] * 5 + [pa.float64()] * 2, strict=True))


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

    def candidates(self, query_id: str | None, text: str) -> Written:
        """Return the query and its reformulations, without duplicate texts."""
        name = query_id or "asked"
        original = {"query_id": name, "variant_id": name, "text": text, "method": ORIGINAL}
        first = pa.Table.from_pylist([original], schema=pa.schema(_KINDS.items()))
        stored = self._stored(query_id, text)
        known = pa.concat_tables([_flagged(first, False), stored])
        if stored.num_rows >= ENOUGH:
            return Written(self._scored(text, _distinct(known)), {}, ())
        if self._english and not is_english(text):
            return Written(self._scored(text, _distinct(known)), {}, (), (NOT_ENGLISH,))
        made, dropped = self._written(name, text)
        table = self._scored(text, _distinct(pa.concat_tables([known, made])))
        return Written(table, dropped, tuple(self._stage.methods))

    def _stored(self, query_id: str | None, text: str) -> pa.Table:
        found = None
        if query_id is not None and self._searched.stored is not None:
            found = self._searched.stored(query_id, text)
        return _flagged(pa.schema(_KINDS.items()).empty_table() if found is None else _plain(found), True)

    def _written(self, name: str, text: str) -> tuple[pa.Table, dict[str, int]]:
        rows = pa.table({"query_id": [name], "text": [text]})
        kept, dropped = self._keep.run(self._stage.run(rows)[0])
        return _flagged(_plain(kept.slice(1)), False), dict(Counter(dropped))

    def _scored(self, text: str, table: pa.Table) -> pa.Table:
        """Add the probabilities of the filter equivalence where no filter computed them."""
        missing = pc.and_(pc.is_null(table["p_same"]), pc.not_equal(table["method"], ORIGINAL)).to_pylist()
        places = [row for row, is_missing in enumerate(missing) if is_missing]
        if not places:
            return table
        texts = table["text"].to_pylist()
        found = self._judge.score([text] * len(places), [texts[row] for row in places])
        for column, output in (("p_same", "same"), ("p_natural", "natural")):
            values = table[column].to_pylist()
            for row, one in zip(places, found, strict=True):
                values[row] = one[output]
            table = table.set_column(table.column_names.index(column), column, pa.array(values, pa.float64()))
        return table

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
    return table.select(COLUMNS).cast(pa.schema(_KINDS.items()))


def _flagged(table: pa.Table, stored: bool) -> pa.Table:
    return table.append_column("stored", pa.array([stored] * table.num_rows, pa.bool_()))


def _distinct(table: pa.Table) -> pa.Table:
    """Remove duplicate texts, keeping the first."""
    words = pa.array([words_of(text) for text in table["text"].to_pylist()], pa.string())
    first = {word: row for row, word in reversed(list(enumerate(words.to_pylist())))}
    return table.take(pa.array(sorted(first.values()), pa.int64()))
