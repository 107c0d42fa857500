"""Find the sessions, searches, pairs and reformulations for a group in the rows of some users."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.compiled import compiled
from askew.logs.columns import bytes_of, list_sizes, text_array
from askew.logs.definition import LogVocabulary
from askew.logs.scan import gather
from askew.logs.termtable import TermTable, vocabulary_table
from askew.logs.walk import FOR_GROUP, OTHER, SPECIALIZING, find_searches, group_rows, match_pairs, mix, sort_times

KEYPHRASE = "[KEYPHRASE]"
_LATE_SHOWN = 3


class TopicsOf(Protocol):
    """A source of query topics."""

    def topics(self, queries: pa.Array) -> pa.Array:
        """A topic for each query, as texts."""


@dataclass(frozen=True)
class Walk:
    """The settings of an analysis: the terms, the gap in milliseconds that ends a session, and what to collect."""

    vocabulary: LogVocabulary
    gap: int
    topics: TopicsOf | None = None
    templates: bool = False
    with_topics: bool = True

    @property
    def table(self) -> TermTable:
        """The hash table of the terms for the compiled loops."""
        return vocabulary_table(self.vocabulary)


@dataclass
class Walked:
    """The result for the rows of some users.

    ``counts`` has the numbers of rows, users, sessions, searches, pairs, specializing and for_group. ``late`` has the
    line numbers of a few rows that came after a later row of the same user.
    """

    counts: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    topic_users: Counter[str] = field(default_factory=Counter)
    late: list[int] = field(default_factory=list)
    events: pa.Table | None = None
    templates: pa.Table | None = None


def walk(rows: pa.Table, how: Walk, table: TermTable) -> Walked:
    """Analyze all rows of some users."""
    user = rows["user"].combine_chunks().to_numpy()
    time = rows["time"].combine_chunks().to_numpy()
    given = "session" in rows.column_names
    order, starts = group_rows(mix(user, rows["session"].combine_chunks().to_numpy()) if given else user)
    examples = np.full(_LATE_SHOWN, -1, np.int64)
    late = sort_times(order, starts, time, examples)
    query = rows["query"].combine_chunks()
    data, offsets = bytes_of(query)
    first, new = np.empty(len(order) + 1, np.int64), np.empty(len(order), np.bool_)
    searches, sessions = find_searches(order, starts, time, -1 if given else how.gap, data, offsets, first, new)
    found = _FoundPairs(rows, query, order, first[: searches + 1], time)
    found.match(new, data, offsets, table)
    owner = _owners(group_rows(user)) if given else _owners((order, starts))
    counts = Counter(
        rows=len(order), users=int(owner.max()) + 1, sessions=sessions, searches=searches, out_of_order=late
    )
    counts.update(found.kinds(owner))
    topics = found.topic_column(how.topics) if how.with_topics else None
    walked = Walked(counts, _count(topics), events=found.events(topics))
    walked.late = rows["line"].combine_chunks().take(pa.array(examples[examples >= 0])).to_pylist()
    if topics is not None and how.topics is None:
        walked.topic_users = found.topic_users(topics, owner)
    if how.templates:
        walked.templates = found.templates(data, offsets, how.vocabulary)
    return walked


def _owners(grouped: tuple[Any, Any]) -> Any:
    """The group number (the user) of each row."""
    order, starts = grouped
    owner = np.empty(len(order), np.int64)
    owner[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return owner


def _count(topics: pa.Array | None) -> Counter[str]:
    if topics is None:
        return Counter()
    return Counter({row["values"]: row["counts"] for row in pc.value_counts(topics).to_pylist()})


class _FoundPairs:
    """The searches of some rows, and the relation of each to the previous search."""

    def __init__(self, rows: pa.Table, query: pa.Array, order: Any, first: Any, time: Any) -> None:
        self.rows, self.query, self.order, self.first, self.time = rows, query, order, first, time
        n = len(first) - 1
        self.kind = np.zeros(n, np.uint8)
        self.start, self.end, self.mask, self.terms = np.zeros((4, n), np.int64)

    def match(self, new: Any, data: Any, offsets: Any, table: TermTable) -> None:
        match_pairs(
            len(self.kind), self.first, new, self.order, data, offsets, *table.arrays,
            self.kind, self.start, self.end, self.mask, self.terms,
        )  # fmt: skip

    def kinds(self, owner: Any) -> dict[str, int]:
        """The number of searches of each kind, and the sums per user that the intervals of their shares need."""
        user = owner[self.order[self.first[:-1]]]
        users = int(user.max()) + 1
        named = {
            name: np.bincount(user[self.kind >= least], minlength=users)
            for name, least in (("pairs", OTHER), ("specializing", SPECIALIZING), ("for_group", FOR_GROUP))
        }
        found = {name: int(each.sum()) for name, each in named.items()}
        for hits, of in (("specializing", "pairs"), ("for_group", "specializing")):
            found[f"{hits}:{of}"] = int(named[hits] @ named[of])
            found[f"{of}:users"] = int((named[of] > 0).sum())
        return found | {f"{name}:2": int(each @ each) for name, each in named.items()}

    def topic_column(self, topics: TopicsOf | None) -> pa.Array | None:
        """The topic of each search, from a classifier or from the column of the log."""
        rows = pa.array(self.order[self.first[:-1]])
        if topics is not None:
            return topics.topics(self.query.take(rows))
        if "topic" not in self.rows.column_names:
            return None
        return self.rows["topic"].combine_chunks().take(rows).fill_null("")

    def topic_users(self, topics: pa.Array, owner: Any) -> Counter[str]:
        """The number of users of each topic. It is needed to hide topics of the log that few users have."""
        both = pa.table({"topic": topics, "user": owner[self.order[self.first[:-1]]]})
        found = both.group_by("topic").aggregate([("user", "count_distinct")])
        return Counter(dict(zip(found["topic"].to_pylist(), found["user_count_distinct"].to_pylist(), strict=True)))

    def events(self, topics: pa.Array | None) -> pa.Table:
        """One row for each reformulation for a group."""
        at = np.flatnonzero(self.kind == FOR_GROUP)
        one, two = self.order[self.first[at - 1]], self.order[self.first[at]]
        second = self.query.take(pa.array(two))
        named = {
            "user": self.rows["user"].combine_chunks().take(pa.array(two)),
            "line": self.rows["line"].combine_chunks().take(pa.array(two)),
            "original": self.query.take(pa.array(one)),
            "reformulated": second,
            "block": self._blocks(at, two),
            "mask": pa.array(self.mask[at]),
            "terms": pa.array(self.terms[at], pa.int32()),
            "gap": pa.array(self.time[two] - self.time[one]),
        }
        if "entry" in self.rows.column_names:
            named["entry"] = self.rows["entry"].combine_chunks().take(pa.array(two))
        if topics is not None:
            named["topic"] = topics.take(pa.array(at - 1))
        self._pages(named, at)
        return pa.table(named)

    def _blocks(self, at: Any, rows: Any) -> pa.Array:
        """The added terms of each reformulation."""
        data, offsets = bytes_of(self.query)
        return text_array(*gather(data, offsets[rows] + self.start[at], offsets[rows] + self.end[at]))

    def _pages(self, named: dict[str, Any], at: Any) -> None:
        """Add the clicks, results and texts of both pages that the log has."""
        for side, search in (("before", at - 1), ("after", at)):
            if "click_rank" in self.rows.column_names:
                row = self._first_filled("click_rank", search)
                named[f"clicked_{side}"] = pa.array(row >= 0)
                named[f"rank_{side}"] = self._first_values("click_rank", row)
                if "click_doc" in self.rows.column_names:
                    named[f"doc_{side}"] = self._first_values("click_doc", row)
            for column in ("results", "texts"):
                if column in self.rows.column_names:
                    row = self._first_filled(column, search)
                    values = self.rows[column].combine_chunks()
                    named[f"{column}_{side}"] = values.take(pa.array(row, mask=row < 0))

    def _first_filled(self, column: str, search: Any) -> Any:
        """The first row of each search with a non-empty list in this column, or -1."""
        return _first_filled(self.order, self.first, search, list_sizes(self.rows[column].combine_chunks()))

    def _first_values(self, column: str, row: Any) -> pa.Array:
        """The first value of the list of each row; null if the list is empty or the row is -1."""
        lists = self.rows[column].combine_chunks()
        there = (row >= 0) & (list_sizes(lists)[row] > 0)
        values = pc.list_element(lists.take(pa.array(row[there])), 0)
        return values.take(pa.array(np.cumsum(there) - 1, mask=~there))

    def templates(self, data: Any, offsets: Any, vocabulary: LogVocabulary) -> pa.Table:
        """Template and keyphrase of each specializing reformulation, with the user who made it."""
        at = np.flatnonzero((self.kind == SPECIALIZING) | (self.kind == FOR_GROUP))
        rows = self.order[self.first[at]]
        begin, stop = offsets[rows], offsets[rows + 1]
        start, end = begin + self.start[at], begin + self.end[at]
        before = text_array(*gather(data, begin, start))
        block = text_array(*gather(data, start, end))
        after = text_array(*gather(data, end, stop))
        lead, phrase, trail = split_keyphrases(block, vocabulary)
        template = pc.binary_join_element_wise(before, lead, KEYPHRASE, trail, after, "")
        user = self.rows["user"].combine_chunks().take(pa.array(rows))
        whole = pa.table({"user": user, "template": template, "keyphrase": phrase, "line": self._lines(rows)})
        return whole.filter(pc.not_equal(phrase, ""))

    def _lines(self, rows: Any) -> pa.Array:
        return self.rows["line"].combine_chunks().take(pa.array(rows))


def split_keyphrases(blocks: pa.Array, vocabulary: LogVocabulary) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Split blocks into leading prepositions, keyphrase and trailing prepositions; spaces stay with prepositions."""
    words = "|".join(sorted((text.replace(".", r"\.") for text in vocabulary.prepositions), key=len, reverse=True))
    if not words:
        empty = pa.array([""] * len(blocks), pa.string())
        return empty, blocks, empty
    pattern = f"^(?P<lead>(?:(?:{words}) )*)(?P<phrase>.*?)(?P<trail>(?: (?:{words}))*)$"
    only = pc.match_substring_regex(blocks, f"^(?:{words})(?: (?:{words}))*$")
    found = pc.extract_regex(blocks, pattern)
    lead, phrase, trail = (found.field(i) for i in range(3))
    return lead, pc.if_else(only, "", phrase), trail


@compiled
def _first_filled(order: Any, first: Any, search: Any, lengths: Any) -> Any:
    found = np.full(len(search), -1, np.int64)
    for i in range(len(search)):
        for at in range(first[search[i]], first[search[i] + 1]):
            if lengths[order[at]] > 0:
                found[i] = order[at]
                break
    return found
