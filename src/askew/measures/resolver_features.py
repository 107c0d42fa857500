"""The features of the light resolver: hashed features of the words around a mention, in compiled code.

A feature is a template (which words, at which positions) and the words that fill it, hashed to 32 bits. Training and
prediction use the same code. Plain Python processes a few thousand mentions a second, this loop more than a hundred
thousand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from askew.core.compiled import compiled

# Bytes and tokens that are read before and after the word, and at the beginning of the text.
LEFT_BYTES, LEFT_TOKENS = 260, 40
RIGHT_BYTES, RIGHT_TOKENS = 180, 25
START_BYTES, START_TOKENS = 160, 26
# The PLACES nearest tokens on each side have one template for each position. The NEAR tokens before the word also
# share a template.
PLACES, NEAR = 4, 14
MOST_FEATURES = 16 + 6 * PLACES + 4 * (LEFT_TOKENS + RIGHT_TOKENS + START_TOKENS)

_DIGIT, _CAPITALS, _CAPITAL, _SIGN, _LOWER = 1, 2, 3, 4, 5
_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)
# Some features are separate for pronouns, since the words around a pronoun have another meaning than around a noun.
_PRONOUNS = ("he", "him", "his", "himself", "she", "her", "hers", "herself", "they", "them", "their", "theirs")


def _plain_hash(word: str) -> int:
    found = int(_OFFSET)
    for byte in word.encode():
        found = (found ^ byte) * int(_PRIME) & (1 << 64) - 1
    return found


_PRONOUN_HASHES = np.array(sorted(_plain_hash(word) for word in _PRONOUNS), np.uint64)


@compiled(forceinline=True)
def _kind_of(byte: int) -> int:
    """The kind of a byte: 0 for a blank, 1 for a letter (or any byte beyond ASCII), 2 for a digit, 3 for a sign."""
    if byte <= 32:
        return 0
    if byte >= 128 or 97 <= byte <= 122 or 65 <= byte <= 90:
        return 1
    return 2 if 48 <= byte <= 57 else 3


@compiled(forceinline=True)
def _is_sign_of_three(data: Any, at: int, end: int) -> bool:
    """Whether a typographic quote, dash or dot (U+2000 to U+203F) begins at this byte."""
    return bool(at + 2 < end and data[at] == 0xE2 and data[at + 1] == 0x80)


@compiled
def _tokens(data: Any, at: int, end: int, most: int, keep_last: bool, hashes: Any, shapes: Any) -> int:
    """Write the hash and the shape of the first (or last) ``most`` tokens of ``data[at:end]``; return their number."""
    count = 0
    while at < end and (keep_last or count < most):
        kind = _kind_of(data[at])
        if kind == 0:
            at += 1
            continue
        slot = count % most
        if _is_sign_of_three(data, at, end):
            hashes[slot] = (_OFFSET ^ np.uint64(data[at + 2])) * _PRIME * _MIX
            shapes[slot] = _SIGN
            at += 3
        else:
            at = _one_token(data, at, end, kind, slot, hashes, shapes)
        count += 1
    if count > most:
        # The ring buffer is rotated so that the first kept token comes first.
        turned = np.empty(most, np.uint64)
        turned_shapes = np.empty(most, np.int64)
        for i in range(most):
            turned[i] = hashes[(count + i) % most]
            turned_shapes[i] = shapes[(count + i) % most]
        hashes[:most] = turned
        shapes[:most] = turned_shapes
        return most
    return count


@compiled
def _one_token(data: Any, at: int, end: int, kind: int, slot: int, hashes: Any, shapes: Any) -> int:
    first, start, capitals = data[at], at, True
    found = _OFFSET
    while at < end and _kind_of(data[at]) == kind and not _is_sign_of_three(data, at, end):
        byte = data[at]
        if 65 <= byte <= 90:
            byte += 32
        else:
            capitals = False
        found = (found ^ np.uint64(byte)) * _PRIME
        at += 1
        if kind == 3:
            break
    hashes[slot] = found
    if kind == 2:
        shapes[slot] = _DIGIT
    elif kind == 3:
        shapes[slot] = _SIGN
    elif capitals and at - start > 1:
        shapes[slot] = _CAPITALS
    else:
        shapes[slot] = _CAPITAL if 65 <= first <= 90 else _LOWER
    return int(at)


@compiled(forceinline=True)
def _feature(template: int, value: Any) -> Any:
    mixed = (value ^ np.uint64(template) * _MIX) * _PRIME
    mixed ^= mixed >> _HIGH
    return np.uint32(mixed * _MIX >> _HIGH)


@compiled
def _each_once(template: int, hashes: Any, first: int, last: int, out: Any, n: int) -> int:
    """Add one feature for each distinct token."""
    for i in range(first, last):
        again = False
        for j in range(first, i):
            if hashes[j] == hashes[i]:
                again = True
                break
        if not again:
            out[n] = _feature(template, hashes[i])
            n += 1
    return n


@compiled
def features_of(
    data: Any, text_start: int, text_end: int, start: int, end: int, hashes: Any, shapes: Any, out: Any
) -> int:
    """Write the features of the mention ``data[start:end]`` to ``out``, and return their number.

    ``hashes`` and ``shapes`` are working space. Their rows are for the word, the tokens before it, the tokens after it,
    and the beginning of the text.
    """
    _tokens(data, start, end, 1, False, hashes[0], shapes[0])
    word, shape = hashes[0, 0], shapes[0, 0]
    kind = 1 if np.any(word == _PRONOUN_HASHES) else 2
    left = _tokens(data, max(text_start, start - LEFT_BYTES), start, LEFT_TOKENS, True, hashes[1], shapes[1])
    right = _tokens(data, end, min(text_end, end + RIGHT_BYTES), RIGHT_TOKENS, False, hashes[2], shapes[2])
    first = _tokens(
        data, text_start, min(text_end, text_start + START_BYTES), START_TOKENS, False, hashes[3], shapes[3]
    )
    n = 0
    out[n] = _feature(1, word)
    out[n + 1] = _feature(2, np.uint64(kind))
    out[n + 2] = _feature(3, np.uint64(kind * 8 + shape))
    n += 3
    n = _near(kind, word, shape, left, right, hashes, shapes, out, n)
    n = _each_once(40, hashes[1], max(0, left - NEAR), left, out, n)
    n = _each_once(41, hashes[1], 0, left, out, n)
    n = _each_once(42, hashes[2], 0, right, out, n)
    n = _each_once(43, hashes[3], 0, first, out, n)
    n = _capitals(kind, left, shapes, out, n)
    # Words before or after the mention, with one template for both: they show the topic of the passage.
    n = _each_once(46, hashes[1], 0, left, out, n)
    return int(_each_once(46, hashes[2], 0, right, out, n))


@compiled
def _near(kind: int, word: Any, shape: int, left: int, right: int, hashes: Any, shapes: Any, out: Any, n: int) -> int:
    """Add features of the tokens next to the word by position, and of pairs of neighboring tokens."""
    for place in range(PLACES):
        at = left - 1 - place
        if at >= 0:
            out[n] = _feature(10 + place, hashes[1, at])
            out[n + 1] = _feature(14 + place, np.uint64(kind * 8 + shapes[1, at]))
            n += 2
        if place < right:
            out[n] = _feature(20 + place, hashes[2, place])
            out[n + 1] = _feature(24 + place, np.uint64(kind * 8 + shapes[2, place]))
            n += 2
    before = shapes[1, left - 1] if left > 0 else 0
    after = shapes[2, 0] if right > 0 else 0
    out[n] = _feature(30, np.uint64(((kind * 8 + before) * 8 + shape) * 8 + after))
    n += 1
    if left > 0:
        out[n] = _feature(31, hashes[1, left - 1] * _MIX + word)
        n += 1
    if left > 1:
        out[n] = _feature(32, hashes[1, left - 2] * _MIX + hashes[1, left - 1])
        n += 1
    if right > 0:
        out[n] = _feature(33, word * _MIX + hashes[2, 0])
        n += 1
    if right > 1:
        out[n] = _feature(34, hashes[2, 0] * _MIX + hashes[2, 1])
        n += 1
    return n


@compiled
def _capitals(kind: int, left: int, shapes: Any, out: Any, n: int) -> int:
    """Add features of the number of capitalized words before the mention: many in a biography, few in advice."""
    near, far = 0, 0
    for i in range(left):
        if shapes[1, i] == _CAPITAL:
            far += 1
            near += 1 if i >= left - 12 else 0
    out[n] = _feature(44, np.uint64(kind * 8 + min(far, 6)))
    out[n + 1] = _feature(45, np.uint64(kind * 8 + min(near, 4)))
    return n + 2


@compiled
def scratch() -> Any:
    """Working space for ``features_of``."""
    return (
        np.zeros((4, LEFT_TOKENS), np.uint64),
        np.zeros((4, LEFT_TOKENS), np.int64),
        np.zeros(MOST_FEATURES, np.uint32),
    )


@compiled
def extract(data: Any, texts: Any, mentions: Any, out: Any, counts: Any) -> None:
    """Write the features of all mentions: row i of ``out`` gets ``counts[i]`` features.

    ``texts[i]`` has the start and end of the text, ``mentions[i]`` those of the word, as byte positions in ``data``.
    """
    hashes, shapes, row = scratch()
    for i in range(len(mentions)):
        n = features_of(data, texts[i, 0], texts[i, 1], mentions[i, 0], mentions[i, 1], hashes, shapes, row)
        out[i, :n] = row[:n]
        counts[i] = n


@compiled
def score(data: Any, texts: Any, mentions: Any, keys: Any, rows: Any, weights: Any, out: Any) -> None:
    """Add the weights of the features of each mention to its row of ``out``.

    ``keys`` is an open-addressing table of feature hashes (0 is empty). ``rows`` has the row of each in ``weights``.
    """
    hashes, shapes, found = scratch()
    mask = len(keys) - 1
    for i in range(len(mentions)):
        n = features_of(data, texts[i, 0], texts[i, 1], mentions[i, 0], mentions[i, 1], hashes, shapes, found)
        for j in range(n):
            key = found[j]
            slot = np.int64(key) & mask
            while keys[slot] != 0 and keys[slot] != key:
                slot = (slot + 1) & mask
            if keys[slot] == key and key != 0:
                for c in range(out.shape[1]):
                    out[i, c] += weights[rows[slot], c]
