"""Count the mentions of a document once, even if several queries retrieve it."""

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
    """Counts the mentions of a document when it is first needed, and keeps them. May be used by several threads.

    A counted document takes a few bytes for each group; documents that are not counted take no memory.
    """

    def __init__(self, counter: MentionCounter | WhoCounter) -> None:
        self._counter = counter
        self._kept: DocMentions | None = None

    def of(self, docs: Ordinals, documents: int, texts: Callable[[Ordinals], pa.Array]) -> DocMentions:
        """Return the mentions in some documents; ``documents`` is the size of the collection."""
        kept = self._kept
        if kept is None or len(kept.known) != documents:
            kept = None
        new = docs if kept is None else docs[~kept.known[docs]]
        # Without documents the groups are still needed, so the first call counts even an empty list.
        if len(new) or kept is None:
            counted = self._counter.count(texts(new))
            if kept is None:
                shape = (documents, counted.counts.shape[1])
                kept = self._kept = DocMentions(
                    counted.groups, np.zeros(shape, counted.counts.dtype), np.zeros(documents, counted.tokens.dtype),
                    np.zeros(documents, np.bool_),
                )  # fmt: skip
            kept.counts[new], kept.tokens[new] = counted.counts, counted.tokens
            # Set last, so that a thread that finds a document known also finds its counts.
            kept.known[new] = True
        return DocMentions(kept.groups, kept.counts[docs], kept.tokens[docs], np.ones(len(docs), np.bool_))
