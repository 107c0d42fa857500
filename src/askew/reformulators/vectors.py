"""Word vectors, and the nearest words of a word by cosine or by Euclidean distance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from askew.core.errors import ConfigError
from askew.core.ranking import Ints
from askew.reformulators.vectorfiles import Floats, check_readable, read_vectors, vocabulary_of

SIMILARITIES = ("cosine", "euclidean")
# The number of similarities in memory at a time: 128 MB.
_AT_A_TIME = 1 << 25
# The last digits of a matrix product depend on the shapes, so a few more words than requested are scored again.
_SPARE = 8
_BLOCK = 128


class WordVectors:
    """Words with their vectors: ``units`` are the vectors scaled to length one, ``lengths`` their original lengths."""

    def __init__(self, words: Sequence[str], vectors: Floats) -> None:
        self.words = list(words)
        self.lengths: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)).astype(np.float32)
        # A vector of zeros has no direction; it is not scaled, and its cosine with every other vector is 0.
        scales = np.where(self.lengths > 0, self.lengths, 1).astype(np.float32)
        self.units: Floats = vectors / scales[:, None]
        self._places = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def nearest(self, words: Sequence[str], count: int, similarity: str = "cosine") -> list[list[tuple[str, float]]]:
        """Return the nearest words of each word with their similarity, nearest first, without the word itself.

        Similarity is the cosine, or 1 / (1 + distance). Ties are in the order of the file. A word without a vector has
        no neighbors. The neighbors of a word do not depend on the other words of the call.
        """
        if similarity not in SIMILARITIES:
            expected = " or ".join(map(repr, SIMILARITIES))
            raise ConfigError(f"vectors: the parameter 'similarity' should be {expected}, found {similarity!r}")
        if count < 1:
            raise ConfigError(f"vectors: the parameter 'count' should be 1 or more, found {count}")
        places = np.array([self._places.get(word, -1) for word in words], np.int64)
        found: list[list[tuple[str, float]]] = [[] for _ in words]
        known = np.flatnonzero(places >= 0)
        step = max(1, _AT_A_TIME // max(1, len(self)))
        for start in range(0, len(known), step):
            rows = known[start : start + step]
            for row, near in zip(rows.tolist(), self._short_lists(places[rows], count, similarity), strict=True):
                found[row] = self._weigh(int(places[row]), near, count, similarity)
        return found

    def _short_lists(self, places: Ints, count: int, similarity: str) -> Ints:
        """Return the rows that may be the nearest, and a few more, in any order."""
        near = self.units[places] @ self.units.T
        if similarity == "euclidean":
            # In |a - b|^2 = |a|^2 + |b|^2 - 2ab the first term is the same for all b.
            near *= 2 * self.lengths[places][:, None] * self.lengths
            near -= self.lengths**2
        near[np.arange(len(places)), places] = -np.inf
        wanted = count + _SPARE
        if wanted >= len(self):
            return np.broadcast_to(np.arange(len(self)), near.shape)
        return largest(near, wanted)

    def _weigh(self, place: int, near: Ints, count: int, similarity: str) -> list[tuple[str, float]]:
        near = np.sort(near[near != place])
        one, others = self.units[place].astype(np.float64), self.units[near].astype(np.float64)
        if similarity == "euclidean":
            gaps = others * self.lengths[near][:, None] - one * self.lengths[place]
            values = 1 / (1 + np.sqrt((gaps * gaps).sum(axis=1)))
        else:
            values = (others * one).sum(axis=1)
        order = np.lexsort((near, -values))[:count]
        return [(self.words[near[i]], float(values[i])) for i in order.tolist()]


def largest(values: Floats, count: int) -> Ints:
    """Return the columns of the largest values of each row, in any order.

    These values are in the blocks with the largest maxima. A search of these blocks alone is four times faster than a
    partition of whole rows.
    """
    width = values.shape[1]
    tops = np.maximum.reduceat(values, np.arange(0, width, _BLOCK), axis=1)
    if tops.shape[1] <= count:
        return np.argpartition(values, -count, axis=1)[:, -count:]
    blocks = np.argpartition(tops, -count, axis=1)[:, -count:]
    columns = (blocks[:, :, None] * _BLOCK + np.arange(_BLOCK)).reshape(len(values), -1)
    inside = np.take_along_axis(values, np.minimum(columns, width - 1), axis=1)
    inside[columns >= width] = -np.inf
    return np.take_along_axis(columns, np.argpartition(inside, -count, axis=1)[:, -count:], axis=1)


def load_vectors(path: Path, vocabulary: Path | None = None) -> WordVectors:
    """Load the vectors of a file; the result is cached as long as the file does not change."""
    found = [file.stat() for file in files_of(path, vocabulary)]
    state = tuple((one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found)
    return _load(path.resolve(), vocabulary, state)


def files_of(path: Path, vocabulary: Path | None = None) -> list[Path]:
    """Return the files of the vectors: one file, or a matrix and its words."""
    words = vocabulary_of(path, vocabulary)
    if words is not None:
        check_readable(words, "vocabulary")
    return [path] if words is None else [path, words]


@lru_cache(maxsize=2)
def _load(path: Path, vocabulary: Path | None, state: tuple[tuple[int, ...], ...]) -> WordVectors:
    return WordVectors(*read_vectors(path, vocabulary))
