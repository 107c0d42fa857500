"""Small objects with real behavior for the tests of plugin authors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from askew.core.feedback import BLANK
from askew.rankers.bm25.analyze import Analyzer


class ToyStatistics:
    """The statistics of a few texts, analyzed as by the default index."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._analyzer = Analyzer()
        terms = [[term for _, term in self.split(text) if term] for text in texts]
        self.documents, self.tokens = sum(1 for text in texts if text.strip(BLANK)), sum(map(len, terms))
        self._frequency = Counter(term for one in terms for term in set(one))
        self._total = Counter(term for one in terms for term in one)

    def split(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text in order, each with its term; None for a stop word."""
        return self._analyzer.pairs(text)

    def split_many(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``split`` for many texts together."""
        return self._analyzer.pairs_of(texts)

    def document_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of texts that contain each term."""
        return np.array([self._frequency[term] for term in terms], np.int64)

    def collection_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return how often each term occurs in all texts."""
        return np.array([self._total[term] for term in terms], np.int64)
