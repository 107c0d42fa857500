"""Hash ids to numbers with SipHash-2-4 (Aumasson and Bernstein 2012) and a secret key.

Each run draws a new random key and never writes it to disk. Without the key, the numbers cannot be mapped to ids, not
even by hashing all ids of the log, and the numbers of two runs cannot be linked.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from askew.compiled import compiled

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
