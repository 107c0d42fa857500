"""Compiled loops over the bytes of a log: lines, columns, times, texts. They create no Python object per row."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from askew.core.compiled import compiled, each, lowest_bit, mask_of_64

# Hash ids to numbers with SipHash-2-4 (Aumasson and Bernstein 2012) and a secret key.

_C0 = np.uint64(0x736F6D6570736575)
_C1 = np.uint64(0x646F72616E646F6D)
_C2 = np.uint64(0x6C7967656E657261)
_C3 = np.uint64(0x7465646279746573)
_END = np.uint64(0xFF)
_ALL = np.uint64(64)


def new_key() -> Any:
    """A random key of two 64-bit words, kept in memory only."""
    return np.array([secrets.randbits(64), secrets.randbits(64)], np.uint64)


@compiled(inline="always")
def _turn(word: Any, by: int) -> Any:
    return word << np.uint64(by) | word >> (_ALL - np.uint64(by))


@compiled(inline="always")
def _round(a: Any, b: Any, c: Any, d: Any) -> Any:
    a += b
    b = _turn(b, 13) ^ a
    a = _turn(a, 32)
    c += d
    d = _turn(d, 16) ^ c
    a += d
    d = _turn(d, 21) ^ a
    c += b
    b = _turn(b, 17) ^ c
    c = _turn(c, 32)
    return a, b, c, d


@compiled
def siphash(data: Any, start: int, end: int, key: Any) -> Any:
    """The 64-bit hash of ``data[start:end]``."""
    a, b, c, d = _C0 ^ key[0], _C1 ^ key[1], _C2 ^ key[0], _C3 ^ key[1]
    at = start
    while at <= end:
        word = np.uint64(0)
        last = at + 8 > end
        for i in range(min(8, end - at)):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        if last:
            word |= np.uint64(end - start) << np.uint64(56)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        if last:
            break
        at += 8
    c ^= _END
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@compiled
def hash_all(data: Any, starts: Any, ends: Any, key: Any) -> Any:
    """The hash of each piece ``data[starts[i]:ends[i]]``."""
    found = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        found[i] = siphash(data, starts[i], ends[i], key)
    return found


# The reasons why a line is left out; 0 is a good line.
GOOD, COLUMNS, NUL, NOT_UTF8, BLANK = 0, 1, 2, 3, 4
READ_AHEAD = 64

_TAB, _LINE, _RETURN, _BLANK_BYTE = 9, 10, 13, 32
_DAY = 86_400_000
_DATE = 10
# A whole number of at least this size is milliseconds, a smaller one seconds (up to the year 5138).
_MILLISECONDS_FROM = 100_000_000_000
# The year 10000 in milliseconds. A larger number is in microseconds or finer, or is not a time.
TOO_LATE = 253_402_300_800_000


def _special(builder: Any, block: Any) -> Any:
    """Control bytes up to the carriage return, and non-ASCII bytes: as signed numbers, all are below 14."""
    return builder.icmp_signed("<", block, each(_RETURN + 1))


_special_mask = mask_of_64(_special)
_ONE = np.uint64(1)


@compiled
def split_lines(data: Any, size: int, least: int, width: int, role_of: Any, starts: Any, ends: Any, why: Any) -> int:
    """Find the requested columns of every line, and return the number of lines.

    ``role_of`` has for each column the row of ``starts`` and ``ends`` to fill, or -1. A line must have at least
    ``least`` columns; missing columns at its end are empty. The text of ``size`` bytes must end with a line feed, and
    ``data`` must have READ_AHEAD more bytes, because 64 bytes are tested at a time.
    """
    line, column, begin, first = 0, 0, 0, 0
    high, nul = False, False
    for block in range(0, size, 64):
        marks = _special_mask(data, block)
        while marks != 0:
            at: Any = block + np.int64(lowest_bit(marks))
            marks &= marks - _ONE
            if at >= size:
                break
            byte = data[at]
            high |= byte >= 128
            nul |= byte == 0
            if byte not in (_TAB, _LINE):
                continue
            end = at - 1 if byte == _LINE and at > begin and data[at - 1] == _RETURN else at
            if column < width and role_of[column] >= 0:
                starts[role_of[column], line] = begin
                ends[role_of[column], line] = end
            column += 1
            begin = at + 1
            if byte == _LINE:
                why[line] = _reason(data, first, end, column, least, width, high, nul)
                for missing in range(column, width):
                    if role_of[missing] >= 0:
                        starts[role_of[missing], line] = end
                        ends[role_of[missing], line] = end
                line += 1
                column, first, high, nul = 0, at + 1, False, False
    return line


@compiled
def _reason(data: Any, first: int, end: int, column: int, least: int, width: int, high: bool, nul: bool) -> int:
    if nul:
        return NUL
    if high and not is_utf8(data, first, end):
        return NOT_UTF8
    if column == 1 and _is_blank(data, first, end):
        return BLANK
    return GOOD if least <= column <= width else COLUMNS


@compiled
def _is_blank(data: Any, start: int, end: int) -> bool:
    for at in range(start, end):  # noqa: SIM110 - the compiler wants a plain loop
        if data[at] > _BLANK_BYTE:
            return False
    return True


@compiled
def is_utf8(data: Any, start: int, end: int) -> bool:
    """Whether these bytes are valid UTF-8: no overlong forms, no surrogates, nothing beyond Unicode."""
    at = start
    while at < end:
        first = data[at]
        if first < 0x80:
            at += 1
            continue
        size = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 0
        if size == 0 or at + size > end:
            return False
        for i in range(1, size):
            if data[at + i] & 0xC0 != 0x80:
                return False
        second = data[at + 1]
        if (
            (first == 0xE0 and second < 0xA0)
            or (first == 0xED and second >= 0xA0)
            or (first == 0xF0 and second < 0x90)
            or (first == 0xF4 and second >= 0x90)
        ):
            return False
        at += size
    return True


@compiled
def texts_fault(data: Any, offsets: Any, faults: Any) -> None:
    """Mark the texts of a column that have a NUL byte or are not valid UTF-8."""
    for row in range(len(offsets) - 1):
        high = False
        for at in range(offsets[row], offsets[row + 1]):
            if data[at] == 0:
                faults[row] = NUL
            high |= data[at] >= 0x80
        if high and faults[row] == GOOD and not is_utf8(data, offsets[row], offsets[row + 1]):
            faults[row] = NOT_UTF8


@compiled
def _digits(data: Any, start: int, count: int, end: int) -> Any:
    """A number of exactly ``count`` digits, or -1."""
    if start + count > end:
        return -1
    value: Any = 0
    for at in range(start, start + count):
        digit = np.int64(data[at]) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@compiled
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that February is last."""
    if month <= 2:
        year -= 1
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468


@compiled
def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31


@compiled
def _fraction(data: Any, at: int, end: int) -> Any:
    """The milliseconds after a decimal point (-1 without digits), and where the digits end."""
    value: Any = 0
    scale, first = 100, at
    while at < end and 48 <= data[at] <= 57:
        value += (np.int64(data[at]) - 48) * scale
        scale //= 10
        at += 1
    return (value, at) if at > first else (-1, at)


@compiled
def _zone(data: Any, at: int, end: int) -> Any:
    """The offset of a time zone in milliseconds (0 without one), and whether the text is valid."""
    if at == end or (at + 1 == end and (data[at] == 90 or data[at] == 122)):
        return 0, True
    if data[at] != 43 and data[at] != 45:
        return 0, False
    hours = _digits(data, at + 1, 2, end)
    colon = at + 3 < end and data[at + 3] == 58
    rest = at + 4 if colon else at + 3
    minutes = 0 if rest == end and not colon else _digits(data, rest, 2, end)
    whole = rest == end or rest + 2 == end
    if hours < 0 or minutes < 0 or hours > 15 or minutes > 59 or not whole:
        return 0, False
    offset = (hours * 60 + minutes) * 60_000
    return (offset if data[at] == 43 else -offset), True


@compiled
def _date(data: Any, start: int, end: int) -> Any:
    """Milliseconds from 1970 to the day, whether the text begins with a date, and whether the date exists."""
    year, month, day = _digits(data, start, 4, end), _digits(data, start + 5, 2, end), _digits(data, start + 8, 2, end)
    if year < 0 or month < 0 or day < 0 or data[start + 4] != 45 or data[start + 7] != 45:
        return 0, False, False
    if month < 1 or month > 12 or day < 1 or day > _month_length(year, month):
        return 0, True, False
    return _days(year, month, day) * _DAY, True, True


@compiled
def _clock(data: Any, start: int, end: int, date: int) -> Any:
    """Add the time of day that follows a date ending at ``start``: milliseconds since 1970, and whether it is valid."""
    hour, minute = _digits(data, start + 1, 2, end), _digits(data, start + 4, 2, end)
    second = _digits(data, start + 7, 2, end)
    if hour < 0 or minute < 0 or second < 0 or data[start + 3] != 58 or data[start + 6] != 58:
        return 0, False
    if (data[start] != 32 and data[start] != 84) or hour > 23 or minute > 59 or second > 60:
        return 0, False
    at, part = start + 9, 0
    if at < end and data[at] == 46:
        part, at = _fraction(data, at + 1, end)
    offset, good = _zone(data, at, end)
    return date + ((hour * 60 + minute) * 60 + second) * 1000 + part - offset, good and part >= 0


@compiled
def _number_of_seconds(data: Any, start: int, end: int) -> Any:
    """A time as a number: seconds with or without a fraction, or milliseconds if the number is large enough."""
    value: Any = 0
    at = start
    while at < end and 48 <= data[at] <= 57 and at - start < 16:
        value = value * 10 + np.int64(data[at]) - 48
        at += 1
    if at == start:
        return 0, False
    if at == end:
        return (value if value >= _MILLISECONDS_FROM else value * 1000), value < TOO_LATE
    if data[at] != 46 or value >= _MILLISECONDS_FROM:
        return 0, False
    part, at = _fraction(data, at + 1, end)
    return value * 1000 + max(part, 0), part >= 0 and at == end


@compiled
def parse_times(data: Any, starts: Any, ends: Any, times: Any, good: Any) -> None:
    """Parse the time of each row, and mark whether it is valid. Surrounding spaces are ignored.

    Consecutive rows often have the same date, so a date equal to that of the row before is not parsed again.
    """
    before, date, written, there = -1, 0, False, False
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        while start < end and data[start] == _BLANK_BYTE:
            start += 1
        while end > start and data[end - 1] == _BLANK_BYTE:
            end -= 1
        if before < 0 or end - start < _DATE or not _same_date(data, before, start):
            before = start if end - start >= _DATE else -1
            date, written, there = _date(data, start, end)
        if not written:
            times[row], good[row] = _number_of_seconds(data, start, end)
        elif there:
            times[row], good[row] = _clock(data, start + _DATE, end, date)
        else:
            times[row], good[row] = 0, False


@compiled
def _same_date(data: Any, one: int, two: int) -> bool:
    for i in range(_DATE):  # noqa: SIM110 - the compiler wants a plain loop
        if data[one + i] != data[two + i]:
            return False
    return True


@compiled
def parse_ranks(data: Any, starts: Any, ends: Any, ranks: Any) -> None:
    """Parse a rank of 1 or more for each row: 0 if the field is empty, -1 if it is not a rank."""
    for row in range(len(starts)):
        size = ends[row] - starts[row]
        value = 0 if size == 0 else _digits(data, starts[row], min(size, 9), ends[row])
        ranks[row] = -1 if size > 9 or (size > 0 and value < 1) else value


@compiled
def gather(data: Any, starts: Any, ends: Any) -> Any:
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


@compiled
def beyond_ascii(data: Any, starts: Any, ends: Any) -> Any:
    """Whether each piece has a non-ASCII byte."""
    found = np.zeros(len(starts), np.bool_)
    for row in range(len(starts)):
        for at in range(starts[row], ends[row]):
            if data[at] >= 0x80:
                found[row] = True
                break
    return found


@compiled
def write_terms(data: Any, starts: Any, ends: Any, stripped: Any) -> Any:
    """Write the terms of each piece with single spaces between them (see ``definition.terms``), and the offsets.

    Pieces with non-ASCII characters must already be in lower case. ``stripped`` marks the bytes to strip from the ends.
    """
    offsets = np.zeros(len(starts) + 1, np.int32)
    room = 0
    for row in range(len(starts)):
        room += ends[row] - starts[row]
    out = np.empty(room, np.uint8)
    at = 0
    for row in range(len(starts)):
        begin, here, stop = at, starts[row], ends[row]
        while here < stop:
            # Skip marks at the beginning, copy the term, then remove marks from its end.
            while here < stop and (stripped[data[here]] or data[here] <= _BLANK_BYTE or data[here] == 127):
                here += 1
            mark, said = at, False
            if at > begin:
                out[at] = _BLANK_BYTE
                at += 1
            first = at
            while here < stop and data[here] > _BLANK_BYTE and data[here] != 127:
                byte = data[here]
                byte += 32 if 65 <= byte <= 90 else 0
                said |= 97 <= byte <= 122 or 48 <= byte <= 57 or byte >= 128
                out[at] = byte
                at += 1
                here += 1
            while at > first and stripped[out[at - 1]]:
                at -= 1
            at = at if said else mark
        offsets[row + 1] = at
    return out[:at], offsets
