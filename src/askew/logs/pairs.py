"""Find the sessions, searches, pairs and reformulations for a group in the rows of some users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.compiled import compiled, sort_rows
from askew.logs.definition import MOST_WORDS, LogVocabulary
from askew.logs.tables import bytes_of, list_sizes, text_array

# Hash tables of terms for the compiled loops. A term of any number of words is looked up by its bytes.

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class TermTable:
    """A hash table. Slots point to entries; entry i is the text from ``bounds[i]`` to ``bounds[i + 1]``, with a value.

    ``prefixes`` are the lengths in bytes of the prefix terms.
    """

    slots: Any
    texts: Any
    bounds: Any
    values: Any
    is_prefix: Any
    prefixes: Any
    longest: int

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments for the compiled loops."""
        return self.slots, self.texts, self.bounds, self.values, self.is_prefix, self.prefixes, self.longest


def build_table(values: Mapping[str, int], prefixes: Mapping[str, int] | None = None) -> TermTable:
    """Build a table of canonical texts and prefixes with their values."""
    given = prefixes or {}
    entries = [*((t, v, False) for t, v in values.items()), *((t, v, True) for t, v in given.items())]
    encoded = [text.encode() for text, _, _ in entries]
    bounds = np.zeros(len(entries) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=bounds[1:])
    texts = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    size = 1 << max(4, (2 * len(entries)).bit_length())
    slots = np.full(size, -1, np.int64)
    is_prefix = np.array([flag for _, _, flag in entries] or [False], np.bool_)
    for number in range(len(entries)):
        slot = int(_hash(texts, int(bounds[number]), int(bounds[number + 1]))) & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number
    lengths = sorted({len(text.encode()) for text in given})
    longest = max((text.count(" ") + 1 for text in values), default=1)
    masks = np.array([value for _, value, _ in entries] or [-1], np.int64)
    return TermTable(slots, texts, bounds, masks, is_prefix, np.array(lengths, np.int64), longest)


@compiled
def _hash(data: Any, start: int, end: int) -> Any:
    value = _OFFSET
    for at in range(start, end):
        value = (value ^ np.uint64(data[at])) * _PRIME
    return value ^ value >> _SHIFT


@compiled
def find(data: Any, start: int, end: int, prefix: bool, slots: Any, texts: Any, bounds: Any, is_prefix: Any) -> int:
    """The entry with the text ``data[start:end]``, or -1."""
    slot = np.int64(_hash(data, start, end) & np.uint64(len(slots) - 1))
    while slots[slot] >= 0:
        entry = slots[slot]
        begin = bounds[entry]
        if bounds[entry + 1] - begin == end - start and is_prefix[entry] == prefix:
            same = True
            for i in range(end - start):
                if texts[begin + i] != data[start + i]:
                    same = False
                    break
            if same:
                return int(entry)
        slot = (slot + 1) & (len(slots) - 1)
    return -1


@compiled
def value_of(
    data: Any, start: int, end: int, one_word: bool,
    slots: Any, texts: Any, bounds: Any, values: Any, is_prefix: Any, prefixes: Any,
) -> Any:  # fmt: skip
    """The value of ``data[start:end]``, combined for a single word with its matching prefixes; -1 if there is none."""
    entry = find(data, start, end, False, slots, texts, bounds, is_prefix)
    value: Any = np.int64(-1) if entry < 0 else values[entry]
    if one_word:
        for size in prefixes:
            if size <= end - start:
                entry = find(data, start, start + size, True, slots, texts, bounds, is_prefix)
                if entry >= 0:
                    value = max(value, 0) | values[entry]
    return value


# Compiled loops that turn the rows of a log into searches, pairs and added blocks, per user and in time order.

# The relation of a search to the previous search of its session.
FIRST, OTHER, SPECIALIZING, FOR_GROUP = 0, 1, 2, 3

_BLANK = 32
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)


@compiled
def mix(user: Any, session: Any) -> Any:
    """One key for each user and session."""
    keys = np.empty(len(user), np.uint64)
    for i in range(len(user)):
        keys[i] = (user[i] ^ session[i] >> _HIGH) * _MIX ^ session[i]
    return keys


@compiled
def group_rows(keys: Any) -> Any:
    """Group rows by key: the row numbers, in their order within each group, and the start of each group."""
    n = len(keys)
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int32)
    group = np.empty(n, np.int32)
    first = np.empty(n, np.int32)
    groups = 0
    for i in range(n):
        if i > 0 and keys[i] == keys[i - 1]:
            group[i] = group[i - 1]
            continue
        slot = np.int64((keys[i] * _MIX >> _HIGH) & np.uint64(size - 1))
        while slots[slot] >= 0 and keys[first[slots[slot]]] != keys[i]:
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = groups
            first[groups] = i
            groups += 1
        group[i] = slots[slot]
    starts = np.zeros(groups + 1, np.int64)
    for i in range(n):
        starts[group[i] + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    fill = starts[:-1].copy()
    order = np.empty(n, np.int64)
    for i in range(n):
        order[fill[group[i]]] = i
        fill[group[i]] += 1
    return order, starts


@compiled
def sort_times(order: Any, starts: Any, times: Any, examples: Any) -> int:
    """Sort the rows of each group by time, and return how many rows came after a row with a later time.

    The first few of these rows are written to ``examples``.
    """
    late = 0
    for g in range(len(starts) - 1):
        a, b = starts[g], starts[g + 1]
        latest, wrong = times[order[a]], 0
        for i in range(a + 1, b):
            if times[order[i]] < latest:
                if late + wrong < len(examples):
                    examples[late + wrong] = order[i]
                wrong += 1
            else:
                latest = times[order[i]]
        if wrong:
            late += wrong
            sort_rows(order[a:b], times)
    return late


@compiled
def _same(data: Any, offsets: Any, i: int, j: int) -> bool:
    size = offsets[i + 1] - offsets[i]
    if size != offsets[j + 1] - offsets[j]:
        return False
    for k in range(size):  # noqa: SIM110 - the compiler wants a plain loop
        if data[offsets[i] + k] != data[offsets[j] + k]:
            return False
    return True


@compiled
def find_searches(order: Any, starts: Any, times: Any, gap: int, data: Any, offsets: Any, first: Any, new: Any) -> Any:
    """Find where each search begins in ``order`` and whether it opens a session; return both counts.

    A session ends if more than ``gap`` milliseconds pass between two rows. A negative gap turns
    this rule off.
    """
    searches, sessions = 0, 0
    for g in range(len(starts) - 1):
        for i in range(starts[g], starts[g + 1]):
            opens = i == starts[g] or (gap >= 0 and times[order[i]] - times[order[i - 1]] > gap)
            if opens or not _same(data, offsets, order[i], order[i - 1]):
                first[searches] = i
                new[searches] = opens
                searches += 1
                sessions += opens
    first[searches] = len(order)
    return searches, sessions


@compiled
def match_pairs(
    searches: int, first: Any, new: Any, order: Any, data: Any, offsets: Any,
    slots: Any, texts: Any, bounds: Any, values: Any, is_prefix: Any, prefixes: Any, longest: int,
    kind: Any, block_start: Any, block_end: Any, mask: Any, group_terms: Any,
) -> None:  # fmt: skip
    """The relation of each search to the previous one; for a specializing search also its block, groups and terms."""
    read = np.zeros(4, np.int64)
    words = np.empty(MOST_WORDS + 1, np.int64)
    sizes = np.empty(MOST_WORDS + 1, np.int64)
    masks = np.empty(MOST_WORDS + 1, np.int64)
    for s in range(searches):
        kind[s] = FIRST
        if new[s]:
            continue
        kind[s] = OTHER
        one, two = order[first[s - 1]], order[first[s]]
        a, long_a = offsets[one], offsets[one + 1] - offsets[one]
        b, long_b = offsets[two], offsets[two + 1] - offsets[two]
        added = long_b - long_a
        if added < 2:
            continue
        lead = 0
        while lead < long_a and data[a + lead] == data[b + lead]:
            lead += 1
        tail = 0
        while tail < long_a and data[a + long_a - 1 - tail] == data[b + long_b - 1 - tail]:
            tail += 1
        # The block can begin at every word boundary from long_a - tail to lead.
        for place in range(long_a - tail, lead + 1):
            if place == 0:
                if data[b + added - 1] != _BLANK:
                    continue
                start, end = b, b + added - 1
            else:
                if (place < long_a and data[a + place] != _BLANK) or data[b + place] != _BLANK:
                    continue
                start, end = b + place + 1, b + place + added
            _read_block(
                data, start, end, slots, texts, bounds, values, is_prefix, prefixes, longest, words, sizes, masks, read
            )
            if kind[s] == OTHER or read[0] > 0:
                kind[s] = FOR_GROUP if read[0] > 0 else SPECIALIZING
                block_start[s], block_end[s] = start - b, end - b
                mask[s], group_terms[s] = read[0], read[1]
            if read[0] > 0:
                break


@compiled
def _read_block(
    data: Any, start: int, end: int, slots: Any, texts: Any, bounds: Any, values: Any, is_prefix: Any, prefixes: Any,
    longest: int, words: Any, sizes: Any, masks: Any, read: Any,
) -> None:  # fmt: skip
    """Write the mask of a block's groups to read[0] and its group terms to read[1]; 0 if it is not for a group."""
    read[0], read[1] = 0, 0
    count = 1
    words[0] = start
    for at in range(start, end):
        if data[at] == _BLANK:
            if count == MOST_WORDS:
                return
            words[count] = at + 1
            count += 1
    words[count] = end + 1
    gap = 0
    for i in range(count - 1, -1, -1):
        sizes[i] = 0
        for size in range(min(longest, count - i), 0, -1):
            if i + size < count and sizes[i + size] == 0:
                continue
            value = value_of(
                data, words[i], words[i + size] - 1, size == 1, slots, texts, bounds, values, is_prefix, prefixes
            )
            if value >= 0:
                sizes[i], masks[i] = size, value
                break
        # No term spans this many unreadable words, so the block is not for a group. This ends most blocks early.
        gap = 0 if sizes[i] > 0 else gap + 1
        if gap == longest:
            return
    at = 0
    while at < count and sizes[at] > 0:
        read[0] |= masks[at]
        read[1] += masks[at] > 0
        at += sizes[at]
    if at < count:
        read[0], read[1] = 0, 0


KEYPHRASE = "[KEYPHRASE]"
_LATE_SHOWN = 3


# Takes canonical queries; returns the topic of each.
TopicsOf = Callable[[pa.Array], pa.Array]


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
        """The hash table for the compiled loops: group terms with their masks, prepositions with 0."""
        values = {**dict.fromkeys(self.vocabulary.prepositions, 0), **self.vocabulary.masks}
        return build_table(values, self.vocabulary.prefixes)


@dataclass
class Walked:
    """The result for the rows of some users.

    ``counts`` has the numbers of rows, users, sessions, searches, pairs, specializing and for_group. ``late`` has the
    line numbers of a few rows that came after a later row of the same user. ``events`` has the reformulations for a
    group.
    """

    counts: Counter[str]
    topics: Counter[str]
    topic_users: Counter[str]
    late: list[int]
    events: pa.Table
    templates: pa.Table | None = None


def walk(rows: pa.Table, how: Walk, table: TermTable) -> Walked:
    """Analyze all rows of some users."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    user, time = columns["user"].to_numpy(), columns["time"].to_numpy()
    given = "session" in columns
    order, starts = group_rows(mix(user, columns["session"].to_numpy()) if given else user)
    examples = np.full(_LATE_SHOWN, -1, np.int64)
    late = sort_times(order, starts, time, examples)
    data, offsets = bytes_of(columns["query"])
    first, new = np.empty(len(order) + 1, np.int64), np.empty(len(order), np.bool_)
    searches, sessions = find_searches(order, starts, time, -1 if given else how.gap, data, offsets, first, new)
    first = first[: searches + 1]
    kind, (begin, end, mask, terms) = np.zeros(searches, np.uint8), np.zeros((4, searches), np.int64)
    match_pairs(searches, first, new, order, data, offsets, *table.arrays, kind, begin, end, mask, terms)
    # The first row of each search, and the user of each row.
    row = order[first[:-1]]
    by_user, user_starts = group_rows(user) if given else (order, starts)
    owner = np.empty(len(order), np.int64)
    owner[by_user] = np.repeat(np.arange(len(user_starts) - 1), np.diff(user_starts))
    counts = Counter(
        rows=len(order), users=int(owner.max()) + 1, sessions=sessions, searches=searches, out_of_order=late
    )
    counts.update(_kinds(kind, owner[row]))
    topics, topic_users = None, Counter[str]()
    if how.with_topics and how.topics is not None:
        topics = how.topics(columns["query"].take(pa.array(row)))
    elif how.with_topics and "topic" in columns:
        topics = columns["topic"].take(pa.array(row)).fill_null("")
        # The number of users of each topic, to hide topics of the log that few users have.
        both = pa.table({"topic": topics, "user": owner[row]}).group_by("topic").aggregate([("user", "count_distinct")])
        topic_users.update(dict(zip(both["topic"].to_pylist(), both["user_count_distinct"].to_pylist(), strict=True)))
    searched = [] if topics is None else pc.value_counts(topics).to_pylist()
    at = np.flatnonzero(kind == FOR_GROUP)
    one, two = row[at - 1], row[at]
    named = {name: columns[name].take(pa.array(two)) for name in ("user", "line", "entry") if name in columns}
    named |= {
        "original": columns["query"].take(pa.array(one)),
        "reformulated": columns["query"].take(pa.array(two)),
        "block": text_array(*_gather(data, offsets[two] + begin[at], offsets[two] + end[at])),
        "mask": pa.array(mask[at]),
        "terms": pa.array(terms[at], pa.int32()),
        "gap": pa.array(time[two] - time[one]),
    }
    if topics is not None:
        named["topic"] = topics.take(pa.array(at - 1))
    for side, search in (("before", at - 1), ("after", at)):
        named |= _page(columns, side, partial(_first_filled, order, first, search))
    return Walked(
        counts, Counter({one["values"]: one["counts"] for one in searched}), topic_users,
        columns["line"].take(pa.array(examples[examples >= 0])).to_pylist(), pa.table(named),
        _templates(columns, row, kind, begin, end, how.vocabulary) if how.templates else None,
    )  # fmt: skip


def _kinds(kind: Any, user: Any) -> dict[str, int]:
    """The number of searches of each kind, and the sums per user that the intervals of their shares need."""
    users = int(user.max()) + 1
    named = {
        name: np.bincount(user[kind >= least], minlength=users)
        for name, least in (("pairs", OTHER), ("specializing", SPECIALIZING), ("for_group", FOR_GROUP))
    }
    found = {name: int(each.sum()) for name, each in named.items()}
    for hits, of in (("specializing", "pairs"), ("for_group", "specializing")):
        found[f"{hits}:{of}"] = int(named[hits] @ named[of])
        found[f"{of}:users"] = int((named[of] > 0).sum())
    return found | {f"{name}:2": int(each @ each) for name, each in named.items()}


def _page(columns: dict[str, Any], side: str, first_filled: Callable[[Any], Any]) -> dict[str, Any]:
    """The clicks, results and texts of a page that the log has.

    ``first_filled`` returns for each page its first row with a non-empty list, or -1, from the sizes of the lists.
    """
    named: dict[str, Any] = {}
    if "click_rank" in columns:
        row = first_filled(list_sizes(columns["click_rank"]))
        named[f"clicked_{side}"] = pa.array(row >= 0)
        for name, column in (("rank", "click_rank"), ("doc", "click_doc")):
            if column in columns:
                # The first value of the list; null if there is none.
                there = (row >= 0) & (list_sizes(columns[column])[row] > 0)
                values = pc.list_element(columns[column].take(pa.array(row[there])), 0)
                named[f"{name}_{side}"] = values.take(pa.array(np.cumsum(there) - 1, mask=~there))
    for column in ("results", "texts"):
        if column in columns:
            row = first_filled(list_sizes(columns[column]))
            named[f"{column}_{side}"] = columns[column].take(pa.array(row, mask=row < 0))
    return named


def _templates(
    columns: dict[str, Any], row: Any, kind: Any, begin: Any, end: Any, vocabulary: LogVocabulary
) -> pa.Table:
    """Template and keyphrase of each specializing reformulation, with the user who made it."""
    at = np.flatnonzero((kind == SPECIALIZING) | (kind == FOR_GROUP))
    data, offsets = bytes_of(columns["query"])
    start, stop = offsets[row[at]], offsets[row[at] + 1]
    before = text_array(*_gather(data, start, start + begin[at]))
    block = text_array(*_gather(data, start + begin[at], start + end[at]))
    after = text_array(*_gather(data, start + end[at], stop))
    lead, phrase, trail = split_keyphrases(block, vocabulary)
    template = pc.binary_join_element_wise(before, lead, KEYPHRASE, trail, after, "")
    user, line = (columns[name].take(pa.array(row[at])) for name in ("user", "line"))
    whole = pa.table({"user": user, "template": template, "keyphrase": phrase, "line": line})
    return whole.filter(pc.not_equal(phrase, ""))


@compiled
def _gather(data: Any, starts: Any, ends: Any) -> Any:
    """Copy the pieces ``data[start:end]`` one after the other; return the bytes and the offset of each piece."""
    offsets = np.zeros(len(starts) + 1, np.int32)
    for row in range(len(starts)):
        offsets[row + 1] = offsets[row] + ends[row] - starts[row]
    out = np.empty(offsets[-1], np.uint8)
    for row in range(len(starts)):
        at = offsets[row]
        for i in range(ends[row] - starts[row]):
            out[at + i] = data[starts[row] + i]
    return out, offsets


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
