"""Tokenize like Lucene's StandardTokenizer (Unicode UAX #29), in compiled code on UTF-8 bytes.

A batch of documents becomes word numbers: each token is looked up in a table of distinct words, so that later steps
(stop words, stemming) run once per distinct word. Words are lower-cased, without a final 's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.compiled import compiled
from askew.core.files import DATA
from askew.search.disk import bytes_of

# A hash table of distinct words as bytes. Each word has a number; a new word gets the next one. A slot has a key beside
# a number. The key of a word of up to eight bytes is the word itself, so one memory access is enough. The key of a
# longer word is a hash, and its bytes are compared as well.

SEED, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
SHORT = 8
_MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_ONE = np.uint64(1)
# The most bytes of a word. A table always has room for one more word.
LONGEST = 1 << 11


class WordTable:
    """Words by number. Compiled loops fill the arrays and stop when they are full; ``grow`` enlarges them."""

    def __init__(self) -> None:
        self.slots = np.zeros((1 << 12, 2), np.uint64)
        self.spans = np.empty((1 << 11, 2), np.int64)
        self.blob = np.empty(1 << 16, np.uint8)
        self.known, self.used = 0, 0

    def grow(self) -> None:
        """Enlarge the table to four times as many words."""
        self.slots = np.zeros((4 * len(self.slots), 2), np.uint64)
        self.spans = np.concatenate(
            [self.spans[: self.known], np.empty((len(self.slots) // 2 - self.known, 2), np.int64)]
        )
        self.blob = np.concatenate([self.blob[: self.used], np.empty(4 * len(self.blob) - self.used, np.uint8)])
        _fill_slots(self.blob, self.spans, self.known, self.slots)

    def words(self, first: int = 0) -> list[str]:
        """The words from number ``first`` on."""
        if first == self.known:
            return []
        start = int(self.spans[first, 0])
        text = self.blob[start : self.used].tobytes()
        return [text[a:b].decode() for a, b in (self.spans[first : self.known] - start).tolist()]


@compiled(forceinline=True)
def key_of(size: int, first: Any, hashed: Any) -> Any:
    """The key of a word, from its size in bytes, its first eight bytes as a number, and a hash of the other bytes."""
    return first if size <= SHORT else (first * _MIX) ^ hashed


@compiled
def key_of_bytes(blob: Any, start: int, stop: int) -> Any:
    """The key of a word in the blob."""
    first, hashed = np.uint64(0), SEED
    for i in range(start, stop):
        if i - start < SHORT:
            first |= np.uint64(blob[i]) << np.uint64(8 * (i - start))
        else:
            hashed = (hashed ^ np.uint64(blob[i])) * PRIME
    return key_of(stop - start, first, hashed)


@compiled(forceinline=True)
def _slot_of(key: Any, slots: Any) -> Any:
    mixed = key * _MIX
    return np.int64((mixed ^ mixed >> _HALF) & np.uint64(len(slots) - 1))


@compiled(forceinline=True)
def number_of(blob: Any, start: int, stop: int, key: Any, slots: Any, spans: Any, words: int) -> int:
    """The number of a word in the table. A new word is added under ``known``, the next free number."""
    slot = _slot_of(key, slots)
    is_long = np.uint64(stop - start > SHORT)
    while slots[slot, 1] != 0:
        if slots[slot, 0] == key and slots[slot, 1] & _ONE == is_long:
            word = np.int64(slots[slot, 1] >> _ONE) - 1
            if not is_long or _is_same(blob, start, stop, spans[word, 0], spans[word, 1]):
                return int(word)
        slot = (slot + 1) & (len(slots) - 1)
    slots[slot, 0], slots[slot, 1] = key, np.uint64(words + 1) << _ONE | is_long
    spans[words, 0], spans[words, 1] = start, stop
    return words


@compiled
def _is_same(blob: Any, start: int, stop: int, other: int, other_stop: int) -> bool:
    if other_stop - other != stop - start:
        return False
    for i in range(stop - start):  # noqa: SIM110 - compiled, a generator is not
        if blob[other + i] != blob[start + i]:
            return False
    return True


@compiled
def _fill_slots(blob: Any, spans: Any, words: int, slots: Any) -> None:
    for word in range(words):
        key = key_of_bytes(blob, spans[word, 0], spans[word, 1])
        slot = _slot_of(key, slots)
        while slots[slot, 1] != 0:
            slot = (slot + 1) & (len(slots) - 1)
        is_long = np.uint64(spans[word, 1] - spans[word, 0] > SHORT)
        slots[slot, 0], slots[slot, 1] = key, np.uint64(word + 1) << _ONE | is_long


# The word-break classes of Unicode.

_DATA = DATA / "wordbreak.csv"
_NAMES = (
    *("Other", "Letter", "Hebrew", "Numeric", "ExtendNumLet", "Katakana", "MidLetter", "MidNum", "MidNumLet"),
    *("SingleQuote", "DoubleQuote", "Extend", "Han", "Hiragana", "Complex", "Pictograph", "Regional", "ComplexMark"),
)
(
    OTHER, LETTER, HEBREW, NUMERIC, EXTEND_NUM_LET, KATAKANA, MID_LETTER, MID_NUM, MID_NUM_LET,
    SINGLE_QUOTE, DOUBLE_QUOTE, EXTEND, HAN, HIRAGANA, COMPLEX, PICTOGRAPH, REGIONAL, COMPLEX_MARK,
) = range(18)  # fmt: skip
MAX_TOKEN = 255
assert 4 * MAX_TOKEN < LONGEST


@cache
def class_table() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The word-break class of every code point."""
    table = np.zeros(0x110000, np.uint8)
    for line in _DATA.read_text(encoding="ascii").splitlines()[2:]:
        first, last, name = line.split(",")
        table[int(first, 16) : int(last, 16) + 1] = _NAMES.index(name)
    return table


@cache
def lower_table() -> np.ndarray[Any, np.dtype[np.int32]]:
    """The lower case of each code point as a single code point, as in Java's Character.toLowerCase."""
    table = np.arange(0x110000, dtype=np.int32)
    for point in range(0x20000):
        lowered = chr(point).lower()
        if len(lowered) == 1:
            table[point] = ord(lowered)
    table[0x130] = ord("i")
    return table


def read_tokens(texts: pa.Array, table: WordTable) -> tuple[Any, Any]:
    """The word numbers of the tokens of texts, and the number of tokens per text.

    New words are added to the table.
    """
    data, offsets = bytes_of(texts)
    ids = np.empty(int(offsets[-1] - offsets[0]) + 1, np.int32)
    counts = np.zeros(len(texts), np.int32)
    doc, total = 0, 0
    while True:
        doc, total, table.known, table.used = _tokenize(
            data, offsets, doc, total, class_table(), lower_table(), table.slots, table.spans, table.blob, table.known,
            table.used, ids, counts,
        )  # fmt: skip
        if doc == len(texts):
            return ids[:total].copy(), counts
        table.grow()


@compiled(forceinline=True)
def _point(data: Any, at: int, end: int) -> Any:
    """The code point at a byte position, and the position after it; the code point is 0 beyond the end."""
    if at >= end:
        return 0, at
    first = np.int64(data[at])
    if first < 0x80:
        return first, at + 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | np.int64(data[at + 1] & 0x3F), at + 2
    if first < 0xF0:
        low = np.int64(data[at + 1] & 0x3F) << 6 | np.int64(data[at + 2] & 0x3F)
        return (first & 0x0F) << 12 | low, at + 3
    low = np.int64(data[at + 1] & 0x3F) << 12 | np.int64(data[at + 2] & 0x3F) << 6 | np.int64(data[at + 3] & 0x3F)
    return (first & 0x07) << 18 | low, at + 4


@compiled
def _skip_extend(data: Any, at: int, end: int, classes: Any) -> int:
    while at < end:
        point, after = _point(data, at, end)
        if classes[point] not in (EXTEND, COMPLEX_MARK):
            break
        at = after
    return at


@compiled
def _class_at(data: Any, at: int, end: int, classes: Any) -> int:
    """The word-break class at a byte position, skipping marks and format characters."""
    at = _skip_extend(data, at, end, classes)
    if at >= end:
        return OTHER
    point, _ = _point(data, at, end)
    return int(classes[point])


@compiled
def _joins_across(previous: int, middle: int, following: int) -> bool:
    """Whether a middle character joins the characters on both sides, as in don't, 3.14 and 1,000."""
    if previous in (LETTER, HEBREW) and following in (LETTER, HEBREW):
        return middle in (MID_LETTER, MID_NUM_LET, SINGLE_QUOTE)
    if previous == NUMERIC and following == NUMERIC:
        return middle in (MID_NUM, MID_NUM_LET, SINGLE_QUOTE)
    return False


@compiled
def _joins(previous: int, current: int) -> bool:
    if current in (LETTER, HEBREW, NUMERIC):
        return previous in (LETTER, HEBREW, NUMERIC, EXTEND_NUM_LET)
    if current == KATAKANA:
        return previous in (KATAKANA, EXTEND_NUM_LET)
    return current == EXTEND_NUM_LET


@compiled
def _word_end(data: Any, at: int, end: int, classes: Any, kind: int) -> Any:
    """The end of a word, and whether it has more than underscores; ``at`` is just after its first character."""
    previous, content = np.int64(kind), kind != EXTEND_NUM_LET
    while at < end:
        point, after = _point(data, at, end)
        current = np.int64(classes[point])
        if current in (EXTEND, COMPLEX_MARK):
            at = after
            continue
        if current == LETTER and (previous == LETTER or previous == NUMERIC):  # noqa: PLR1714, SIM109 - the common case, fast
            at, previous = after, current
            continue
        if _joins(previous, current):
            content = content or current != EXTEND_NUM_LET
            at, previous = after, current
            continue
        if previous == HEBREW and current == SINGLE_QUOTE:
            at = after
            previous = np.int64(HEBREW if _class_at(data, after, end, classes) in (LETTER, HEBREW) else OTHER)
            continue
        following = _class_at(data, after, end, classes)
        if previous == HEBREW and current == DOUBLE_QUOTE and following == HEBREW:
            at = after
            continue
        if not _joins_across(previous, current, following):
            break
        at = after
    return at, content


@compiled
def _emoji_end(data: Any, at: int, end: int, classes: Any) -> int:
    while at < end:
        point, after = _point(data, at, end)
        if point == 0x200D:
            following, beyond = _point(data, after, end)
            if after >= end or classes[following] != PICTOGRAPH:
                return int(_skip_extend(data, at, end, classes))
            at = beyond
        elif classes[point] == EXTEND or 0x1F3FB <= point <= 0x1F3FF:
            at = after
        else:
            break
    return at


@compiled
def _token_end(data: Any, at: int, end: int, classes: Any, barren: int) -> Any:  # noqa: PLR0911 - one for each kind
    """The end of the token or of the skipped text that starts here, whether it is a token, and the new ``barren``.

    Up to ``barren`` an earlier look-ahead has found only underscores and marks, so it is not repeated.
    """
    point, after = _point(data, at, end)
    kind = np.int64(classes[point])
    if kind in (LETTER, HEBREW, NUMERIC, EXTEND_NUM_LET, KATAKANA):
        if at < barren:
            return _first_mark(data, after, barren, classes), False, barren
        stop, content = _word_end(data, after, end, classes, kind)
        if content:
            return stop, True, barren
        # Underscores alone are no word, but a mark among them may begin a token of its own.
        return _first_mark(data, after, stop, classes), False, stop
    if kind in (HAN, HIRAGANA):
        return _skip_extend(data, after, end, classes), True, barren
    if kind == PICTOGRAPH:
        return _emoji_end(data, after, end, classes), True, barren
    if kind == REGIONAL:
        following, beyond = _point(data, after, end)
        pair = after < end and classes[following] == REGIONAL
        return _skip_extend(data, beyond if pair else after, end, classes), pair, barren
    if kind in (COMPLEX, COMPLEX_MARK):
        # Thai and similar scripts: a run of letters and marks is one token.
        while after < end and _class_at(data, after, end, classes) == COMPLEX:
            after = _skip_extend(data, after, end, classes)
            _, after = _point(data, after, end)
        return _skip_extend(data, after, end, classes), True, barren
    return after, False, barren


@compiled
def _first_mark(data: Any, at: int, end: int, classes: Any) -> int:
    """The first mark of a script without blanks, such as Burmese; ``end`` if there is none."""
    while at < end:
        point, after = _point(data, at, end)
        if classes[point] == COMPLEX_MARK:
            break
        at = after
    return at


@compiled
def _write_lower(data: Any, start: int, stop: int, lower: Any, blob: Any, used: int) -> Any:
    """Append the token in lower case to the blob, at most MAX_TOKEN characters.

    Returns its end in the blob and the position in the text where it stopped.
    """
    at, characters = start, 0
    while at < stop and characters < MAX_TOKEN:
        point, at = _point(data, at, stop)
        characters += 1 + (point > 0xFFFF)
        point = np.int64(lower[point])
        if point < 0x80:
            blob[used] = point
            used += 1
        elif point < 0x800:
            blob[used], blob[used + 1] = 0xC0 | point >> 6, 0x80 | point & 0x3F
            used += 2
        elif point < 0x10000:
            blob[used], blob[used + 1], blob[used + 2] = (
                0xE0 | point >> 12,
                0x80 | point >> 6 & 0x3F,
                0x80 | point & 0x3F,
            )
            used += 3
        else:
            blob[used], blob[used + 1] = 0xF0 | point >> 18, 0x80 | point >> 12 & 0x3F
            blob[used + 2], blob[used + 3] = 0x80 | point >> 6 & 0x3F, 0x80 | point & 0x3F
            used += 4
    return used, at


@compiled
def _without_possessive(blob: Any, start: int, stop: int) -> int:
    """The end of a word without a final 's, with the apostrophe U+0027, U+2019 or U+FF07."""
    if stop - start < 2 or blob[stop - 1] != 115:
        return stop
    if blob[stop - 2] == 39:
        return stop - 2
    if stop - start >= 4:
        a, b, c = blob[stop - 4], blob[stop - 3], blob[stop - 2]
        if (a == 0xE2 and b == 0x80 and c == 0x99) or (a == 0xEF and b == 0xBC and c == 0x87):
            return stop - 4
    return stop


@compiled(forceinline=True)
def _ends_for_sure(data: Any, at: int, end: int, classes: Any, inside: Any) -> bool:
    """Whether an ASCII word certainly ends before this byte, judged by this byte and the next."""
    if at >= end:
        return True
    if data[at] >= 128 or data[at] == 95:
        return False
    if classes[data[at]] == OTHER:
        return True
    # Punctuation inside a word joins only if a word continues after it, not before a blank or at the end of a sentence.
    return at + 1 >= end or (data[at + 1] < 128 and inside[data[at + 1]] == 0)


@compiled
def _tokenize(  # noqa: PLR0912 - one loop, kept together so that the compiler keeps it in registers
    data: Any, offsets: Any, first: int, total: int, classes: Any, lower: Any, slots: Any, spans: Any, blob: Any,
    words: int, used: int, ids: Any, counts: Any,
) -> Any:  # fmt: skip
    """Fill ``ids`` and ``counts`` from document ``first`` on.

    Returns the next document and the numbers of tokens, words and bytes of words. If the word table is full, the next
    document is the current one, which is then read again from its start.
    """
    # The lower case of each ASCII letter or digit, and 0 for all other bytes.
    inside = np.zeros(256, np.uint8)
    for byte in range(128):
        if classes[byte] == LETTER or classes[byte] == NUMERIC:
            inside[byte] = lower[byte]
    most_words, most_bytes = len(slots) // 2 - 1, len(blob) - LONGEST
    for doc in range(first, len(offsets) - 1):
        at, end = offsets[doc], offsets[doc + 1]
        before, barren = total, at
        while at < end:
            if words >= most_words or used > most_bytes:
                return doc, before, words, used
            if data[at] < 128 and inside[data[at]] == 0 and data[at] != 95:
                at += 1
                continue
            # Fast path: a word of ASCII letters and digits up to a byte that certainly ends it.
            tail, stop, start, hashed = used, at, np.uint64(0), SEED
            while stop < end and stop - at <= MAX_TOKEN:
                small = inside[data[stop]]
                if small == 0:
                    break
                blob[tail] = small
                if stop - at < SHORT:
                    start |= np.uint64(small) << np.uint64(8 * (stop - at))
                else:
                    hashed = (hashed ^ np.uint64(small)) * PRIME
                tail += 1
                stop += 1
            if stop > at and stop - at <= MAX_TOKEN and _ends_for_sure(data, stop, end, classes, inside):
                key = key_of(tail - used, start, hashed)
                number = number_of(blob, used, tail, key, slots, spans, words)
                ids[total] = number
                total += 1
                at = stop
                if number == words:
                    words, used = words + 1, tail
                continue
            stop, is_token, barren = _token_end(data, at, end, classes, barren)
            while is_token and at < stop:
                if words >= most_words or used > most_bytes:
                    return doc, before, words, used
                tail, at = _write_lower(data, at, stop, lower, blob, used)
                tail = _without_possessive(blob, used, tail)
                number = number_of(blob, used, tail, key_of_bytes(blob, used, tail), slots, spans, words)
                ids[total] = number
                total += 1
                if number == words:
                    words, used = words + 1, tail
            at = stop
        counts[doc] = total - before
    return len(offsets) - 1, total, words, used
