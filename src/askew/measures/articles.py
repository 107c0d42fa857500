"""Articles: which documents belong together, so that their directions are not independent.

Passages of one article name the same people. Three rules, the first that applies to most documents:

``ids``       the id before its last ``:`` or ``#`` and a number: ``Snow-man:1`` is passage 1 of ``Snow-man``
``headings``  the heading before `` -- `` or a line break at the beginning of the text
``words``     texts with similar words: two documents are of one article if the cosine of their TF-IDF vectors, or of
              those of each two neighbors in a chain of documents between them, is at least ``SIMILAR``

The articles are *known* by the first two rules only. Similar words find near-duplicates, but not all passages of one
article: what is computed with them is a lower bound of what chance explains, and there are no p-values.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.ranking import Ints

SIMILAR = 0.25
# A rule applies if at least this share of the documents has its form.
_MOST = 0.9
_ID = re.compile(r"(.+)[:#]\d+$", re.DOTALL)
_HEADING = re.compile(r"\s*(\S.{0,118}?)(?: -- |\n)")
_WORD = re.compile(r"[^\W_]{3,}")
# Words of more than this share of the documents say little about the article, and would make most pairs similar.
_COMMON = 0.02
# The words with the largest weights represent a text.
_TERMS = 25
_BLOCK = 512
# The words of more documents would be compared for too long: each is an article of its own.
MOST_COMPARED = 50_000


class Articles:
    """Numbers the articles of documents. ``texts`` returns the texts of documents by their ordinals.

    ``first`` returns the documents that are numbered together at first; others that come later join their articles.
    """

    def __init__(
        self, doc_ids: pa.Array, texts: Callable[[Ints], Sequence[str]], first: Callable[[], Ints] | None = None
    ) -> None:
        self._doc_ids, self._texts, self._first = doc_ids, texts, first
        self._number: dict[int, int] = {}
        self._by_name: dict[str, int] | None = None
        self._rule: re.Pattern[str] | None = None
        self._vocabulary: dict[str, int] = {}
        self._idf: list[float] = []
        # By similar words: the vectors of all documents so far, and the article of each.
        self._vectors_before: list[Any] = []
        self._similar_to: list[int] = []

    def of(self, docs: Ints) -> tuple[Ints, bool]:
        """The number of each document's article, and whether articles are known.

        Documents that were numbered before keep their number.
        """
        if self._by_name is None and self._first is not None:
            self._number_new(self._first())
        self._number_new(docs)
        known = self._rule is not None or not self._number
        return np.array([self._number[doc] for doc in docs.tolist()], np.int64), known

    def _number_new(self, docs: Ints) -> None:
        new = np.array([doc for doc in np.unique(docs).tolist() if doc not in self._number], np.int64)
        for first in range(0, len(new), MOST_COMPARED):
            self._add(new[first : first + MOST_COMPARED])

    def _add(self, docs: Ints) -> None:
        ids = self._doc_ids.take(pa.array(docs)).to_pylist()
        if self._by_name is None and _applies(_ID, ids):
            self._rule = _ID
        if self._rule is None and len(self._number) + len(docs) > MOST_COMPARED:
            self._number.update((doc, -1 - doc) for doc in docs.tolist())
            return
        texts = ids if self._rule is _ID else self._texts(docs)
        if self._by_name is None:
            self._by_name = {}
            if self._rule is None and _applies(_HEADING, texts):
                self._rule = _HEADING
            if self._rule is None:
                self._learn(texts)
        if self._rule is None:
            self._number.update(zip(docs.tolist(), self._similar(texts), strict=True))
            return
        for doc, name, own in zip(docs.tolist(), texts, ids, strict=True):
            match = self._rule.match(name)
            article = f"\0{own}" if match is None else match[1]
            self._number[doc] = self._by_name.setdefault(article, len(self._by_name))

    def _learn(self, texts: Sequence[str]) -> None:
        frequency = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
        most = max(2.0, _COMMON * len(texts))
        kept = [(word, count) for word, count in sorted(frequency.items()) if count <= most]
        self._vocabulary = {word: number for number, (word, _) in enumerate(kept)}
        self._idf = [math.log(len(texts) / count) for _, count in kept]

    def _vectors(self, texts: Sequence[str]) -> Any:
        from scipy import sparse  # slow to import, and only this rule needs it

        rows, columns, values = [], [], []
        for row, text in enumerate(texts):
            words = Counter(word for word in _WORD.findall(text.lower()) if word in self._vocabulary)
            weights = [
                ((1.0 + math.log(count)) * self._idf[self._vocabulary[word]], self._vocabulary[word])
                for word, count in words.items()
            ]
            for weight, column in heapq.nlargest(_TERMS, weights):
                rows.append(row)
                columns.append(column)
                values.append(weight)
        found = sparse.csr_array((values, (rows, columns)), shape=(len(texts), len(self._vocabulary)))
        lengths = np.sqrt(np.asarray(found.multiply(found).sum(axis=1)).ravel())
        return sparse.csr_array(sparse.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ found)

    def _similar(self, texts: Sequence[str]) -> list[int]:
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        vectors = self._vectors(texts)
        starts = range(0, len(texts), _BLOCK)
        # Blocks, because most pairs share a word: only those that are similar are kept.
        near = [_similar_pairs(vectors[start : start + _BLOCK] @ vectors.T) for start in starts]
        _, part = connected_components(sparse.vstack(near), directed=False)
        numbers = np.full(part.max() + 1, -1)
        if self._vectors_before:
            known = sparse.vstack(self._vectors_before).T
            for start in starts:
                found = _similar_pairs(vectors[start : start + _BLOCK] @ known).tocoo()
                numbers[part[found.row + start]] = np.array(self._similar_to)[found.col]
        new = np.flatnonzero(numbers < 0)
        numbers[new] = max(self._similar_to, default=-1) + 1 + np.arange(len(new))
        self._vectors_before.append(vectors)
        self._similar_to += numbers[part].tolist()
        return list(numbers[part].tolist())


def _similar_pairs(cosines: Any) -> Any:
    cosines.data[cosines.data < SIMILAR] = 0.0
    cosines.eliminate_zeros()
    return cosines


def _applies(rule: re.Pattern[str], names: Sequence[str]) -> bool:
    return sum(rule.match(name) is not None for name in names) >= _MOST * len(names)
