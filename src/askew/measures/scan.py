"""The compiled scan: counts lexicon terms directly in the UTF-8 bytes of a batch of texts.

Why not a library: a Counter over split tokens needs about a microsecond for six words, and a regular expression of
326 words is hardly faster if Unicode word boundaries must be exact. Here the bytes of a document become a bit mask,
with one bit for each byte inside a token. For ASCII text the compiler turns this loop into SIMD; other text needs a
table-driven pass over code points. Token starts are found 64 bytes at a time, and one look-up of the first eight bytes
rejects nearly every token. The plain loop counts documents with characters that need context for lower-casing (capital
sigma, dotted capital I).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from askew.core.compiled import between, compiled, count_bits, each, load8, lowest_bit, mask_of_64
from askew.core.text import GroupVocabulary, word_code_points

# The arrays of the scan: a hash table of tokens, a trie of phrases, Unicode tables.

ALL_BITS = (1 << 64) - 1
MULTIPLIER = 0x9E3779B97F4A7C15
# Columns of the slots of the hash table. A slot with the entry ALL_BITS is empty.
KEY, ENTRY = range(2)
SLOT_SHIFT = 20
# Columns of the entries. They are one array, because each further array would cost reference counting.
NEXT, TEXT, LENGTH, IS_PREFIX, MASK, NODE, EXACT = range(7)
ENTRY_COLUMNS = 7
# Columns of the edges of the phrase trie.
FROM, BY, TO, ENDS = range(4)
EDGE_COLUMNS = 4
# The filter has 2^16 bits: 1024 words of 64, chosen by the upper bits of the hash.
FILTER_WORDS = 1024
FILTER_WORD_SHIFT = 54
FILTER_BIT_SHIFT = 48
FILTER_BIT_MASK = 63
# This number of tokens means that the plain loop must count the document.
NEEDS_REFERENCE = -1
# The scan reads whole blocks, so this many bytes must follow the last text.
READ_AHEAD = 64


_CODE_POINTS = 0x110000
# Two characters that cannot be lower-cased one by one: their lower case depends on the context.
_CONTEXT_SENSITIVE = (0x0130, 0x03A3)
_Array = np.ndarray[Any, np.dtype[Any]]


def build_scan_tables(vocabulary: GroupVocabulary) -> tuple[_Array, ...]:
    """The arrays of a vocabulary, in the order in which ``scan`` takes them."""
    numbers: dict[tuple[bytes, bool], int] = {}

    def number(text: str, prefix: bool = False) -> int:
        return numbers.setdefault((text.encode(), prefix), len(numbers))

    masks = {number(word): mask for word, mask in vocabulary.words.items()}
    masks |= {number(prefix, True): mask for prefix, mask in vocabulary.prefixes.items()}
    edges, roots = _build_trie(vocabulary, number)
    slots, entries, texts = _build_table(numbers)
    for entry in range(len(numbers)):
        entries[entry, MASK] = masks.get(entry, 0)
        entries[entry, NODE] = roots.get(entry, -1)
    maybe = [0] * FILTER_WORDS
    for term in [*vocabulary.words, *vocabulary.phrases]:
        hashed = _hashed(_key_of(term.encode()))
        maybe[hashed >> FILTER_WORD_SHIFT] |= 1 << (hashed >> FILTER_BIT_SHIFT & FILTER_BIT_MASK)
    lengths = sorted({len(prefix.encode()) for prefix in vocabulary.prefixes})
    return np.array(maybe, np.uint64), slots, entries, texts, edges, np.array(lengths, np.int64)


def _build_trie(vocabulary: GroupVocabulary, number: Callable[[str], int]) -> tuple[_Array, dict[int, int]]:
    """Edges (from node, entry, to node, mask of the phrase that ends there) and the root of each first token."""
    nodes: dict[tuple[int, int], int] = {}
    masks: dict[int, int] = {}
    roots: dict[int, int] = {}
    for phrases in vocabulary.phrases.values():
        for phrase, mask in phrases:
            first, *rest = (number(token) for token in phrase)
            node = roots.setdefault(first, -2 - first)
            for entry in rest:
                node = nodes.setdefault((node, entry), len(nodes))
            masks[node] = mask
    rows = [(start, entry, to, masks.get(to, 0)) for (start, entry), to in nodes.items()]
    # The number of a root must differ from -1 ("no phrase starts here") and from the number of any other node.
    renumbered = {root: len(nodes) + i for i, root in enumerate(roots.values())}
    rows = [(renumbered.get(start, start), entry, to, mask) for start, entry, to, mask in rows]
    edges = np.array(rows, np.int64).reshape(len(rows), EDGE_COLUMNS)
    return edges, {first: renumbered[root] for first, root in roots.items()}


def _build_table(numbers: dict[tuple[bytes, bool], int]) -> tuple[_Array, _Array, _Array]:
    """A hash table with open addressing on the first eight bytes. Entries with the same first bytes are chained."""
    size = 1 << max(6, (8 * max(len(numbers), 1)).bit_length())
    slots = np.full((size, 2), ALL_BITS, np.uint64)
    entries = np.zeros((max(len(numbers), 1), ENTRY_COLUMNS), np.int64)
    texts = bytearray()
    for (text, prefix), entry in numbers.items():
        key = _key_of(text)
        slot = _hashed(key) >> SLOT_SHIFT & (size - 1)
        while slots[slot, ENTRY] != ALL_BITS and slots[slot, KEY] != key:
            slot = (slot + 1) & (size - 1)
        entries[entry, NEXT] = -1 if slots[slot, ENTRY] == ALL_BITS else int(slots[slot, ENTRY])
        entries[entry, TEXT], entries[entry, LENGTH] = len(texts), len(text)
        entries[entry, IS_PREFIX] = prefix
        # The first eight bytes without folding, in the layout of the key.
        exact = np.uint64(0 if prefix else int.from_bytes(text[:8], "little") << (64 - 8 * len(text[:8])))
        entries[entry, EXACT] = exact.astype(np.int64)
        texts += text
        slots[slot, KEY], slots[slot, ENTRY] = key, entry
    return slots, entries, np.frombuffer(bytes(texts) or b"\0", np.uint8)


def _hashed(key: int) -> int:
    return key * MULTIPLIER & ALL_BITS


def _key_of(text: bytes) -> int:
    """The key as in the scan: the first eight bytes, folded. Fewer bytes are shifted to the upper end."""
    start = bytes(byte | 0x20 for byte in text[:8])
    return int.from_bytes(start, "little") << (64 - 8 * len(start))


@cache
def lower_table() -> _Array:
    """The lower case of each code point; -1 if it depends on context."""
    lower = np.arange(_CODE_POINTS, dtype=np.int32)
    for point in range(0x20000):
        lowered = chr(point).lower()
        if len(lowered) == 1:
            lower[point] = ord(lowered)
    lower[list(_CONTEXT_SENSITIVE)] = -1
    return lower


@cache
def word_table(python_rule: bool) -> _Array:
    """Which code points are inside a word: askew's rule, or Python's ``\\w``."""
    table = np.zeros(_CODE_POINTS, np.uint8)
    if python_rule:
        points = [p for p in range(0x40000) if chr(p).isalnum() or p == ord("_")]
    else:
        points = sorted(word_code_points())
    table[points] = 1
    return table


# Without the explicit type the compiler would treat these numbers as signed.
_MULTIPLIER = np.uint64(MULTIPLIER)
_SLOT = np.uint64(SLOT_SHIFT)
_ONE = np.uint64(1)
_TOP = np.uint64(63)
_EIGHTH = np.uint64(1 << 8)
_FOLD = np.uint64(0x2020202020202020)
_WORD_OF = np.uint64(FILTER_WORD_SHIFT)
_BIT_OF = np.uint64(FILTER_BIT_SHIFT)
_WITHIN = np.uint64(FILTER_BIT_MASK)
_EMPTY = np.uint64(ALL_BITS)


def _is_ascii_word(builder: Any, block: Any) -> Any:
    letter = between(builder, builder.or_(block, each(0x20)), "a", 26)
    digit = between(builder, block, "0", 10)
    return builder.or_(builder.or_(letter, digit), builder.icmp_unsigned("==", block, each(ord("_"))))


_word_mask = mask_of_64(_is_ascii_word)
_blank_mask = mask_of_64(lambda builder, block: builder.icmp_unsigned("==", block, each(ord(" "))))
_stop_mask = mask_of_64(lambda builder, block: builder.icmp_unsigned("==", block, each(ord("."))))
_high_mask = mask_of_64(lambda builder, block: builder.icmp_signed("<", block, each(0)))


@compiled(forceinline=True)
def _mark(data: Any, base: int, length: int, split_on_blank: bool, marks: Any) -> Any:
    """Set a bit in ``marks`` for each ASCII byte inside a token; returns 0 if no byte is beyond ASCII.

    Blocks of 64 bytes are read, so up to 63 bytes after the text are read and marked as well. A non-ASCII byte among
    them also gives a value other than 0. The caller clears their marks.
    """
    high = np.uint64(0)
    for first in range(0, length, 64):
        marks[first >> 6] = ~_blank_mask(data, base + first) if split_on_blank else _word_mask(data, base + first)
        high |= _high_mask(data, base + first)
    return high


@compiled
def _mark_others(data: Any, base: int, length: int, marks: Any, lower: Any, word: Any) -> bool:
    """Mark the characters beyond ASCII in place; returns False if lower-casing would change one of them."""
    for first in range(0, length, 64):
        high = _high_mask(data, base + first)
        while high != 0:
            at = first + np.int64(lowest_bit(high))
            high &= high - _ONE
            if at >= length:
                break
            if data[base + at] < 0xC0:
                continue
            point, size = _decode(data, base + at)
            if lower[point] != point:
                return False
            if word[point] == 1:
                for i in range(at, at + size):
                    marks[i >> 6] |= _ONE << np.uint64(i & 63)
    return True


@compiled(forceinline=True)
def _is_marked(marks: Any, at: int) -> bool:
    return bool((marks[at >> 6] >> np.uint64(at & 63)) & _ONE)


@compiled(forceinline=True)
def _is_closing(byte: int) -> bool:
    return bool(byte == 41 or byte == 93 or byte == 34 or byte == 39 or byte == 37)  # noqa: PLR1714 - compiled


@compiled
def _drop_clipped(data: Any, base: int, length: int, marks: Any) -> None:
    """Clear the marks of lower-case words right after a full stop that follows a word or a closing sign."""
    cleared = np.int64(-1)
    for first in range(0, length, 64):
        stops = _stop_mask(data, base + first)
        while stops != 0:
            at = first + np.int64(lowest_bit(stops))
            stops &= stops - _ONE
            if at < 1 or at + 1 >= length or not 97 <= data[base + at + 1] <= 122:
                continue
            # A full stop after a cleared word also follows a word.
            if at == cleared or _is_marked(marks, at - 1) or _is_closing(data[base + at - 1]):
                cleared = at + 1
                while cleared < length and _is_marked(marks, cleared):
                    marks[cleared >> 6] &= ~(_ONE << np.uint64(cleared & 63))
                    cleared += 1


@compiled
def _decode(data: Any, at: int) -> Any:
    """The code point at this byte and its length. The bytes are known to be valid UTF-8."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (data[at + 1] & 0x3F), 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (data[at + 1] & 0x3F) << 6 | (data[at + 2] & 0x3F), 3
    high = (first & 0x07) << 18 | np.int64(data[at + 1] & 0x3F) << 12
    return high | np.int64(data[at + 2] & 0x3F) << 6 | np.int64(data[at + 3] & 0x3F), 4


@compiled
def _encode(point: int, line: Any, at: int) -> int:
    """Write a code point as UTF-8; returns how many bytes it took."""
    if point < 0x80:
        line[at] = point
        return 1
    if point < 0x800:
        line[at] = 0xC0 | point >> 6
        line[at + 1] = 0x80 | point & 0x3F
        return 2
    if point < 0x10000:
        line[at] = 0xE0 | point >> 12
        line[at + 1] = 0x80 | point >> 6 & 0x3F
        line[at + 2] = 0x80 | point & 0x3F
        return 3
    line[at] = 0xF0 | point >> 18
    line[at + 1] = 0x80 | point >> 12 & 0x3F
    line[at + 2] = 0x80 | point >> 6 & 0x3F
    line[at + 3] = 0x80 | point & 0x3F
    return 4


@compiled
def _rewrite(
    data: Any, base: int, length: int, split_on_blank: bool, unclipped: bool, line: Any, marks: Any, lower: Any,
    word: Any,
) -> int:  # fmt: skip
    """Write the lower-cased text to ``line`` and mark its tokens; returns its length, or NEEDS_REFERENCE.

    This is the slow path for text that lower-casing changes beyond ASCII.
    """
    at, written = 0, 0
    # Whether a full stop here would end a sentence, whether one was just read, and whether a clipped word is skipped.
    ends, stopped, clipped = False, False, False
    marks[: (length + length // 2 >> 6) + 2] = 0
    while at < length:
        point, size = _decode(data, base + at)
        at += size
        small = 97 <= point <= 122
        point = lower[point]
        if point < 0:
            return NEEDS_REFERENCE
        inside = point != 32 if split_on_blank else word[point] == 1
        size = _encode(point, line, written)
        clipped = unclipped and inside and (clipped or (stopped and small))
        stopped = ends and point == 46
        ends = inside or _is_closing(point)
        if inside and not clipped:
            for i in range(written, written + size):
                marks[i >> 6] |= _ONE << np.uint64(i & 63)
        written += size
    return written


@compiled(forceinline=True)
def _key(data: Any, base: int, start: int, length: int) -> Any:
    """The first eight bytes, with ASCII letters folded to lower case. A few signs are folded as well."""
    if length >= 8:
        return load8(data, base + start) | _FOLD
    return (load8(data, base + start) | _FOLD) << np.uint64(64 - 8 * length)


@compiled(forceinline=True)
def _lower8(word: Any) -> Any:
    """Eight bytes with ASCII capitals in lower case and all other bytes unchanged."""
    low = word & np.uint64(0x7F7F7F7F7F7F7F7F)
    above_z = low + np.uint64(0x2525252525252525)
    from_a = low + np.uint64(0x3F3F3F3F3F3F3F3F)
    capital = ~word & (from_a ^ above_z) & np.uint64(0x8080808080808080)
    return word | capital >> np.uint64(2)


@compiled(forceinline=True)
def _find_short(data: Any, base: int, start: int, size: Any, slots: Any, entries: Any) -> int:
    """Like ``_find``, for a token of fewer than eight bytes, where one comparison is enough."""
    shift = np.uint64(64) - size * np.uint64(8)
    word = load8(data, base + start)
    key = (word | _FOLD) << shift
    slot = np.int64(key * _MULTIPLIER >> _SLOT) & (len(slots) - 1)
    while slots[slot, ENTRY] != _EMPTY and slots[slot, KEY] != key:
        slot = (slot + 1) & (len(slots) - 1)
    entry = np.int64(slots[slot, ENTRY]) if slots[slot, ENTRY] != _EMPTY else -1
    exact = np.int64(_lower8(word) << shift)
    while entry >= 0 and (entries[entry, EXACT] != exact or entries[entry, LENGTH] != np.int64(size)):
        entry = entries[entry, NEXT]
    return int(entry)


@compiled(forceinline=True)
def _find(data: Any, base: int, start: int, length: int, prefix: bool, slots: Any, entries: Any, texts: Any) -> int:
    """The entry for these bytes, or -1. The key selects candidates; then all bytes are compared."""
    key = _key(data, base, start, length)
    size = len(slots)
    slot = np.int64(key * _MULTIPLIER >> _SLOT) & (size - 1)
    while slots[slot, ENTRY] != _EMPTY and slots[slot, KEY] != key:
        slot = (slot + 1) & (size - 1)
    entry = np.int64(slots[slot, ENTRY]) if slots[slot, ENTRY] != _EMPTY else -1
    while entry >= 0:
        if entries[entry, LENGTH] == length and entries[entry, IS_PREFIX] == prefix:
            at = entries[entry, TEXT]
            same = True
            for i in range(length):
                byte = data[base + start + i]
                if 65 <= byte <= 90:
                    byte += 32
                if texts[at + i] != byte:
                    same = False
                    break
            if same:
                return int(entry)
        entry = entries[entry, NEXT]
    return -1


@compiled
def _longest_phrase(
    data: Any, base: int, length: int, end: int, node: int, marks: Any, slots: Any, entries: Any, texts: Any, edges: Any
) -> Any:
    """Walk the phrase trie over the following tokens. Returns the longest phrase's mask (0 if none) and its end."""
    best_mask, best_end = np.int64(0), end
    while True:
        while end < length and not _is_marked(marks, end):
            end += 1
        start = end
        while end < length and _is_marked(marks, end):
            end += 1
        entry = _find(data, base, start, end - start, False, slots, entries, texts) if start < end else -1
        following = -1
        for edge in range(len(edges)):
            if entry >= 0 and edges[edge, FROM] == node and edges[edge, BY] == entry:
                following = edge
        if following < 0:
            return best_mask, best_end
        node = edges[following, TO]
        if edges[following, ENDS] != 0:
            best_mask, best_end = edges[following, ENDS], end


@compiled
def _match(
    data: Any,
    base: int,
    length: int,
    start: int,
    marks: Any,
    slots: Any,
    entries: Any,
    texts: Any,
    edges: Any,
    prefixes: Any,
) -> Any:
    """The group mask of the term that starts at this token (0 if none), and the end of the term."""
    end = start
    while end < length and _is_marked(marks, end):
        end += 1
    entry = _find(data, base, start, end - start, False, slots, entries, texts)
    if entry >= 0 and entries[entry, NODE] >= 0:
        node = entries[entry, NODE]
        mask, stop = _longest_phrase(data, base, length, end, node, marks, slots, entries, texts, edges)
        if mask != 0:
            return mask, stop
    for size in prefixes:
        if size <= end - start:
            found = _find(data, base, start, size, True, slots, entries, texts)
            if found >= 0:
                return entries[found, MASK], end
    if entry >= 0:
        return entries[entry, MASK], end
    return np.int64(0), end


@compiled(forceinline=True)
def _candidates(data: Any, base: int, length: int, marks: Any, maybe: Any, everything: int, found: Any) -> Any:
    """Collect the tokens that may start a term. Returns their number, and the number of all tokens.

    Every start is written, but only a candidate advances the write position. This avoids a branch that the CPU would
    often mispredict.
    """
    tokens, kept = np.int64(0), np.int64(0)
    before = np.uint64(0)
    for block in range((length + 63) >> 6):
        mask, ahead = marks[block], marks[block + 1]
        starts = mask & ~(mask << _ONE | before)
        before = mask >> _TOP
        while starts != 0:
            bit = lowest_bit(starts)
            starts &= starts - _ONE
            tokens += 1
            # The marks from this start on. A shift by 64 is undefined, so the shift has two steps.
            window = mask >> bit | (ahead << _ONE) << (_TOP - bit)
            size = lowest_bit(~window | _EIGHTH)
            start = block * 64 + np.int64(bit)
            key = (load8(data, base + start) | _FOLD) << (np.uint64(64) - size * np.uint64(8))
            hashed = key * _MULTIPLIER
            found[kept] = start
            kept += np.int64(maybe[hashed >> _WORD_OF] >> (hashed >> _BIT_OF & _WITHIN) & _ONE) | everything
    return kept, tokens


@compiled(forceinline=True)
def _count_terms(
    data: Any,
    base: int,
    length: int,
    marks: Any,
    found: Any,
    maybe: Any,
    split_on_blank: bool,
    slots: Any,
    entries: Any,
    texts: Any,
    edges: Any,
    prefixes: Any,
    counts: Any,
    row: int,
) -> int:
    """Add the counts of a text to a row of ``counts``; returns the number of tokens."""
    marks[(length + 63) >> 6] = 0
    if length & 63:
        marks[length >> 6] &= (_ONE << np.uint64(length & 63)) - _ONE
    everything = 1 if len(prefixes) > 0 else 0
    kept, tokens = _candidates(data, base, length, marks, maybe, everything, found)
    used_until = 0
    for i in range(kept):
        start = found[i]
        if start < used_until:
            continue
        bit = np.uint64(start & 63)
        window = marks[start >> 6] >> bit | (marks[(start >> 6) + 1] << _ONE) << (_TOP - bit)
        size = lowest_bit(~window | _EIGHTH)
        mask = np.int64(0)
        slow = everything == 1 or size == 8
        if not slow:
            entry = _find_short(data, base, start, size, slots, entries)
            if entry >= 0:
                mask = entries[entry, MASK]
                slow = entries[entry, NODE] >= 0
        if slow:
            mask, used_until = _match(data, base, length, start, marks, slots, entries, texts, edges, prefixes)
        for group in range(counts.shape[1]):
            counts[row, group] += mask >> group & 1
    if split_on_blank:
        # Every blank ends a token, which may be empty.
        tokens = length + 1
        for i in range((length + 63) >> 6):
            tokens -= np.int64(count_bits(marks[i]))
    return int(tokens)


@compiled
def scan(
    data: Any,
    starts: Any,
    ends: Any,
    split_on_blank: bool,
    unclipped: bool,
    lower: Any,
    word: Any,
    maybe: Any,
    slots: Any,
    entries: Any,
    texts: Any,
    edges: Any,
    prefixes: Any,
    counts: Any,
    tokens: Any,
) -> None:
    """Fill ``counts`` (documents x groups) and ``tokens``. NEEDS_REFERENCE in ``tokens`` means: not counted.

    ``data`` must have READ_AHEAD bytes after the last text.
    """
    longest = 0
    for i in range(len(starts)):
        longest = max(longest, ends[i] - starts[i])
    # Lower-casing may turn two bytes of a character into three, and the scan reads beyond the end of a text.
    room = longest + longest // 2 + 192
    line = np.zeros(room, np.uint8)
    marks = np.zeros((room >> 6) + 2, np.uint64)
    found = np.zeros(room // 2 + 2, np.int64)
    for i in range(len(starts)):
        base, length = starts[i], ends[i] - starts[i]
        high = _mark(data, base, length, split_on_blank, marks)
        if high == 0 or _mark_others(data, base, length, marks, lower, word):
            if unclipped and length > 0:
                _drop_clipped(data, base, length, marks)
            tokens[i] = _count_terms(
                data,
                base,
                length,
                marks,
                found,
                maybe,
                split_on_blank,
                slots,
                entries,
                texts,
                edges,
                prefixes,
                counts,
                i,
            )
            continue
        length = _rewrite(data, base, length, split_on_blank, unclipped, line, marks, lower, word)
        if length < 0:
            tokens[i] = NEEDS_REFERENCE
            continue
        tokens[i] = _count_terms(
            line, 0, length, marks, found, maybe, split_on_blank, slots, entries, texts, edges, prefixes, counts, i
        )
