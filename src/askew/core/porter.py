"""Porter's stemmer (An algorithm for suffix stripping, Program 14, 1980), compiled, for many words at once.

It gives the stems of Lucene. Words are UTF-8; a character beyond ASCII is a consonant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askew.core.compiled import compiled

# Endings with their replacements. For each word only its longest ending is considered.
PLURALS = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
}  # fmt: skip
STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_REMOVED = "al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize"
STEP_4 = dict.fromkeys(_REMOVED.split(), "")

_Y, _MARKED_Y = ord("y"), ord("Y")


def _table(endings: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    ordered = sorted(endings.items(), key=lambda rule: -len(rule[0]))
    return [(ending.encode(), new.encode()) for ending, new in ordered]


_STEPS = [_table(rules) for rules in (PLURALS, STEP_2, STEP_3, STEP_4)]
_EDGES = np.cumsum([0, *map(len, _STEPS)])
_ENDINGS = np.array([list(ending[::-1].ljust(8, b"\0")) for step in _STEPS for ending, _ in step], np.uint8)
_LENGTHS = np.array([len(ending) for step in _STEPS for ending, _ in step], np.int64)
_NEW = np.array([list(new.ljust(8, b"\0")) for step in _STEPS for _, new in step], np.uint8)
_NEW_LENGTHS = np.array([len(new) for step in _STEPS for _, new in step], np.int64)


def stems(words: Sequence[str]) -> list[str]:
    """The stems of lower-cased words."""
    data = [word.encode("utf-8", "surrogatepass") for word in words]
    offsets = np.cumsum([0, *map(len, data)])
    out, ends = _stem_all(np.frombuffer(b"".join(data), np.uint8), offsets)
    text, starts = out.tobytes(), offsets[:-1].tolist()
    return [text[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends.tolist(), strict=True)]


def stem(word: str) -> str:
    """The stem of a lower-cased word."""
    out = np.array(bytearray(word.encode("utf-8", "surrogatepass")))
    end = _stem(out, 0, len(out))
    return out[:end].tobytes().decode("utf-8", "surrogatepass")


@compiled
def _stem_all(data: Any, offsets: Any) -> Any:
    out, ends = data.copy(), np.empty(len(offsets) - 1, np.int64)
    for row in range(len(ends)):
        ends[row] = _stem(out, offsets[row], offsets[row + 1])
    return out, ends


@compiled
def _is_inside(byte: Any) -> Any:
    """Whether a byte is not the first of its character."""
    return byte & 0xC0 == 0x80


@compiled
def _last(b: Any, end: int) -> int:
    """The start of the last character before ``end``."""
    at = end - 1
    while _is_inside(b[at]):
        at -= 1
    return at


@compiled
def _stem(b: Any, start: int, end: int) -> Any:
    """Stem the word between two offsets in place; the end of the stem."""
    size = 0
    for at in range(start, end):
        # Java, and so Lucene, counts a character beyond U+FFFF as two.
        size += (not _is_inside(b[at])) + (b[at] >= 0xF0)
    if size <= 2:
        return end
    _mark_y(b, start, end)
    r1 = _region_after(b, start, end)
    r2 = _region_after(b, r1, end)
    end = _step_1b(b, start, _replace(b, start, end, start, 0), r1)
    if _is_y(b[end - 1]) and _has_vowel(b, start, end - 1):
        b[end - 1] = 105
    end = _replace(b, start, _replace(b, start, end, r1, 1), r1, 2)
    if _ends(b, start, end, b"sion") or _ends(b, start, end, b"tion"):
        end = end - 3 if end - 3 >= r2 else end
    else:
        end = _replace(b, start, end, r2, 3)
    last = end - 1
    if b[last] == 101 and (last >= r2 or (last >= r1 and not _is_short(b, start, last))):
        end, last = end - 1, last - 1
    if _ends(b, start, end, b"ll") and last >= r2:
        end -= 1
    for at in range(start, end):
        if b[at] == _MARKED_Y:
            b[at] = _Y
    return end


@compiled
def _is_vowel(byte: Any) -> Any:
    return byte in (97, 101, 105, 111, 117, _Y)


@compiled
def _is_y(byte: Any) -> Any:
    return byte in (_Y, _MARKED_Y)


@compiled
def _mark_y(b: Any, start: int, end: int) -> None:
    """Write Y for every y at the start or after a vowel."""
    at = start
    if b[at] == _Y:
        b[at] = _MARKED_Y
        at += 1
    while at < end - 1:
        if _is_vowel(b[at]) and b[at + 1] == _Y:
            b[at + 1] = _MARKED_Y
            at += 1
        at += 1


@compiled
def _region_after(b: Any, start: int, end: int) -> Any:
    at = start
    while at < end and not _is_vowel(b[at]):
        at += 1
    while at < end and _is_vowel(b[at]):
        at += 1
    at += 1
    while at < end and _is_inside(b[at]):
        at += 1
    return min(at, end)


@compiled
def _has_vowel(b: Any, start: int, end: int) -> Any:
    at = start
    while at < end and not _is_vowel(b[at]):
        at += 1
    return at < end


@compiled
def _is_short(b: Any, start: int, end: int) -> Any:
    """Whether the word ends in consonant, vowel, consonant, and the last is not w, x or y."""
    last = _last(b, end)
    if last - start < 2 or _is_vowel(b[last]) or b[last] in (119, 120, _MARKED_Y):
        return False
    return _is_vowel(b[last - 1]) and not _is_vowel(b[last - 2])


@compiled
def _replace(b: Any, start: int, end: int, region: int, step: int) -> Any:
    """Replace the longest ending of a step, if it starts in the region; the new end."""
    for rule in range(_EDGES[step], _EDGES[step + 1]):
        length = _LENGTHS[rule]
        if length > end - start or b[end - 1] != _ENDINGS[rule, 0]:
            continue
        same = True
        for at in range(1, length):
            same = same and b[end - 1 - at] == _ENDINGS[rule, at]
        if same:
            if end - length < region:
                return end
            for at in range(_NEW_LENGTHS[rule]):
                b[end - length + at] = _NEW[rule, at]
            return end - length + _NEW_LENGTHS[rule]
    return end


@compiled
def _ends(b: Any, start: int, end: int, ending: Any) -> Any:
    size, same = len(ending), 0
    while same < size <= end - start and b[end - size + same] == ending[same]:
        same += 1
    return same == size


@compiled
def _step_1b(b: Any, start: int, end: int, r1: int) -> Any:
    if _ends(b, start, end, b"eed"):
        return end - 1 if end - 3 >= r1 else end
    cut = 2 if _ends(b, start, end, b"ed") else 3 if _ends(b, start, end, b"ing") else 0
    if cut == 0 or not _has_vowel(b, start, end - cut):
        return end
    end -= cut
    last = _last(b, end)
    if _ends(b, start, end, b"at") or _ends(b, start, end, b"bl") or _ends(b, start, end, b"iz"):
        add = True
    elif _is_double(b, start, last, end) and b[last] not in (108, 115, 122):
        return last
    else:
        add = end == r1 and _is_short(b, start, end)
    if add:
        b[end] = 101
        end += 1
    return end


@compiled
def _is_double(b: Any, start: int, last: int, end: int) -> Any:
    """Whether the word ends in the same consonant twice; the last one is at ``last``."""
    size = end - last
    if last - size < start or _is_vowel(b[last]):
        return False
    same = True
    for at in range(last, end):
        same = same and (b[at] == b[at - size] or (_is_y(b[at]) and _is_y(b[at - size])))
    return same
