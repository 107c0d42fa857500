"""Resolvers, which estimate who mentions refer to.

``light``   a linear model of the words around a mention, compiled: about a hundred thousand mentions a second
``neural``  MiniLM with the shipped adapter ``minilm-who``: more accurate, and slow; needs the extra ``neural``

A rule assigns clipped words ("channels.he remains") to ``other``, independent of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from askew.core import machine
from askew.core.errors import DataError
from askew.core.ranking import Flags, Floats, Ints
from askew.core.shipped import DATA
from askew.core.text import end_of_word, is_clipped, is_word_character
from askew.core.who import WHO, resolver_id

OTHER = WHO.index("other")
# Below this many mentions one thread is faster than starting several.
_SMALL = 20_000


class Resolver(Protocol):
    """Gives each mention a probability of each class."""

    id: str

    def probabilities(self, texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> Floats:
        """One row for each mention. Mention i is ``texts[text_of[i]][starts[i]:ends[i]]``."""


class LightResolver:
    """A linear model of hashed features of the words around; ``data/mentions/README.md`` describes its training."""

    def __init__(self, weights: Path | None = None) -> None:
        self.id = resolver_id("light") if weights is None else str(weights)
        with np.load(weights or DATA / "mentions" / "light.npz", allow_pickle=False) as stored:
            keys, self._weights = stored["keys"], stored["weights"].astype(np.float32) * stored["scale"]
            self._bias = stored["bias"].astype(np.float64)
        self._keys, self._rows = _hash_table(keys)

    def probabilities(self, texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> Floats:
        """One row for each mention, one column for each class; a row sums to 1."""
        from askew.mentions.features import score

        data, bounds, spans = as_bytes(texts, text_of, starts, ends)
        logits = np.tile(self._bias, (len(spans), 1))

        def work(part: slice) -> None:
            score(data, bounds[part], spans[part], self._keys, self._rows, self._weights, logits[part])

        parts = np.linspace(0, len(spans), (machine.threads() if len(spans) > _SMALL else 1) + 1).astype(int).tolist()
        with ThreadPoolExecutor(len(parts) - 1) as pool:
            list(pool.map(work, (slice(a, b) for a, b in pairwise(parts))))
        logits -= logits.max(axis=1, keepdims=True)
        found = np.exp(logits)
        return np.asarray(found / found.sum(axis=1, keepdims=True))


@cache
def open_resolver(name: str) -> Resolver:
    """A resolver by its name or id."""
    short = resolver_id(name).partition("@")[0]
    if short == "light":
        return LightResolver()
    from askew.mentions.resolve_neural import NeuralResolver

    return NeuralResolver()


def default_resolver() -> str:
    """``neural`` if torch and transformers are installed, otherwise ``light``."""
    return "neural" if find_spec("torch") and find_spec("transformers") else "light"


def class_probabilities(resolver: Resolver, texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> Floats:
    """The probability of each class for each mention, after the rule for clipped words."""
    found = resolver.probabilities(texts, text_of, starts, ends) if len(text_of) else np.zeros((0, len(WHO)))
    clipped = _clipped(texts, text_of, starts)
    found[clipped] = 0.0
    found[clipped, OTHER] = 1.0
    return found


def resolve_mentions(mentions: Sequence[tuple[str, int]], resolver: str | None = None) -> list[str]:
    """Estimate what each mention refers to, and return the class of each mention.

    The classes are ``real`` (a real person), ``fictional`` (a character), ``generic`` (anyone), ``name`` (part of the
    name of a work, brand, place or team) and ``other`` (no person).

    A mention is a pair: a text, and the position in this text at which the word begins. ``resolver`` is
    ``light`` or ``neural``; the default is ``neural`` if torch and transformers are installed, otherwise ``light``. The
    documentation gives the accuracy of the estimates.
    """
    texts = list(dict.fromkeys(text for text, _ in mentions))
    number = {text: place for place, text in enumerate(texts)}
    text_of = np.array([number[text] for text, _ in mentions], np.int64)
    starts = np.array([at for _, at in mentions], np.int64)
    ends = np.array([_end(text, at, row) for row, (text, at) in enumerate(mentions)], np.int64)
    found = class_probabilities(open_resolver(resolver or default_resolver()), texts, text_of, starts, ends)
    return [WHO[best] for best in found.argmax(axis=1)]


def _end(text: str, at: int, row: int) -> int:
    inside = 0 <= at < len(text) and is_word_character(text[at])
    # A position inside a word is an error: the "he" in "she" is not a word.
    if not inside or (at and is_word_character(text[at - 1])):
        raise DataError(f"mentions: expected the position at which a word begins, found {at} (mention {row})")
    return end_of_word(text, at)


def _clipped(texts: Sequence[str], text_of: Ints, starts: Ints) -> Flags:
    places = zip(text_of.tolist(), starts.tolist(), strict=True)
    return np.array([is_clipped(texts[text], start) for text, start in places], np.bool_)


def as_bytes(texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> tuple[Any, Ints, Ints]:
    """All texts as one array of UTF-8 bytes, with the start and end of each mention's text and word in the array."""
    encoded = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in encoded])]).astype(np.int64)
    bounds = np.stack([offsets[text_of], offsets[text_of + 1]], axis=1) if len(text_of) else np.zeros((0, 2), np.int64)
    spans = np.stack([starts, ends], axis=1)
    plain = np.array([len(one) == len(text) for one, text in zip(encoded, texts, strict=True)], np.bool_)
    for row in np.flatnonzero(~plain[text_of]) if len(text_of) else ():
        text, (start, end) = texts[text_of[row]], spans[row].tolist()
        first = len(text[:start].encode())
        spans[row] = first, first + len(text[start:end].encode())
    data = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    return data, bounds, spans + bounds[:, :1]


def _hash_table(keys: Any) -> tuple[Any, Any]:
    """Open addressing: the slot of a key is its lower bits, or the next free one."""
    size = 1 << int(2 * len(keys)).bit_length()
    table, rows = np.zeros(size, np.uint32), np.zeros(size, np.int32)
    for row, key in enumerate(keys.tolist()):
        slot = key & (size - 1)
        while table[slot]:
            slot = (slot + 1) & (size - 1)
        table[slot], rows[slot] = key, row
    return table, rows
