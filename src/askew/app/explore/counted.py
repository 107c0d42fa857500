"""Mentions of documents that are found again and again: counted once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew.mentions.count import MentionCounter
from askew.mentions.resolved import WhoCounter
from askew.plugins.kinds import DocMentions

Ordinals = npt.NDArray[np.integer[Any]]


class CountedOnce:
    """Mentions by document, counted when a document is needed for the first time. May be used by several threads.

    A document takes a few bytes for each group once it was counted; the rest of the arrays takes no memory.
    """

    def __init__(self, counter: MentionCounter | WhoCounter) -> None:
        self._counter = counter
        self._kept: DocMentions | None = None

    def of(self, docs: Ordinals, documents: int, texts: Callable[[Ordinals], pa.Array]) -> DocMentions:
        """The mentions in some documents of a collection of so many."""
        kept = self._kept
        if kept is None or len(kept.known) != documents:
            kept = None
        new = docs if kept is None else docs[~kept.known[docs]]
        if len(new):
            counted = self._counter.count(texts(new))
            if kept is None:
                shape = (documents, counted.counts.shape[1])
                kept = self._kept = DocMentions(
                    counted.groups, np.zeros(shape, counted.counts.dtype), np.zeros(documents, counted.tokens.dtype),
                    np.zeros(documents, np.bool_),
                )  # fmt: skip
            kept.counts[new], kept.tokens[new] = counted.counts, counted.tokens
            # Last: who finds a document known finds its counts.
            kept.known[new] = True
        assert kept is not None
        return DocMentions(kept.groups, kept.counts[docs], kept.tokens[docs], np.ones(len(docs), np.bool_))
