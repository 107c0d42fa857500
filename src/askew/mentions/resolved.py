"""Counts mentions by who they refer to. The counts of all classes always add up to the plain count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon
from askew.core.ranking import Ints
from askew.core.who import ANY, WHO, classes_of
from askew.mentions.count import Counts, MentionCounter, Mentions, counter_for
from askew.mentions.marks import Marker, can_mark
from askew.mentions.resolve import class_probabilities, open_resolver


@dataclass(frozen=True)
class ResolvedMentions(Mentions):
    """Mentions with counts by class: ``by_class`` has the shape texts x groups x classes of ``WHO``."""

    by_class: Counts


@dataclass(frozen=True)
class FoundMentions:
    """The mentions in some texts: the text of each, its start and end, and a mask with one bit per group."""

    text_of: Ints
    starts: Ints
    ends: Ints
    masks: Ints


def find_mentions(marker: Marker, texts: list[str]) -> FoundMentions:
    """All words of the lexicon in the texts."""
    found = [(row, *span) for row, text in enumerate(texts) for span in marker.spans(text)]
    columns = np.array(found, np.int64).reshape(len(found), 4).T
    return FoundMentions(*columns)


class ResolvedCounter:
    """Counts the mentions of one lexicon with one tokenizer, by who they refer to. The last batch is cached."""

    def __init__(self, lexicon: Lexicon, tokens: str, overlap: str, resolver: str, **how: Any) -> None:
        if not can_mark(tokens):
            raise ConfigError(
                f"who=: the tokenizer {tokens!r} does not give the positions of its words in the text; "
                "set tokens= to 'unclipped', 'word' or 'blank', or leave out who="
            )
        self._marker = Marker(lexicon, tokens, overlap)
        self.plain = counter_for(lexicon, tokens, overlap, **how)
        self._name = resolver
        self._last: tuple[pa.Array, ResolvedMentions] | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups counted, in order."""
        return self.plain.groups

    @cached_property
    def _resolver(self) -> Any:
        return open_resolver(self._name)

    def count(self, texts: pa.Array | pa.ChunkedArray) -> ResolvedMentions:
        """Count the mentions in a batch. A null text counts as empty."""
        # Another thread may replace the cached batch meanwhile, so this method reads ``_last`` only once.
        found = self._last
        if found is None or found[0] is not texts:
            found = self._last = texts, self._count(texts)
        return found[1]

    def _count(self, texts: pa.Array | pa.ChunkedArray) -> ResolvedMentions:
        plain = self.plain.count(texts)
        naming = np.flatnonzero(plain.counts.any(axis=1))
        read = [text or "" for text in texts.take(pa.array(naming)).to_pylist()]
        found = find_mentions(self._marker, read)
        classes = class_probabilities(self._resolver, read, found.text_of, found.starts, found.ends).argmax(axis=1)
        by_class = np.zeros((*plain.counts.shape, len(WHO)), np.int32)
        for group in range(len(plain.groups)):
            named = (found.masks >> group & 1).astype(np.bool_)
            np.add.at(by_class[:, group], (naming[found.text_of[named]], classes[named]), 1)
        return ResolvedMentions(plain.groups, plain.counts, plain.tokens, by_class)


class WhoCounter:
    """The counts of some classes of mentions."""

    def __init__(self, resolved: ResolvedCounter, who: str) -> None:
        self._resolved, self._classes = resolved, [WHO.index(one) for one in classes_of(who)]
        self.groups = resolved.groups

    def count(self, texts: pa.Array | pa.ChunkedArray) -> Mentions:
        """Count a batch."""
        found = self._resolved.count(texts)
        counts = found.by_class[:, :, self._classes].sum(axis=2, dtype=np.int32)
        return Mentions(found.groups, counts, found.tokens)


class Counters:
    """Makes counters. Counters that differ only in the classes of mentions share a resolver, so each text is resolved
    once.
    """

    def __init__(self, **how: Any) -> None:
        self._how = how
        self._resolved: dict[tuple[str, ...], ResolvedCounter] = {}

    def of(
        self, lexicon: Lexicon, tokens: str, overlap: str, who: str = ANY, resolver: str = ""
    ) -> MentionCounter | WhoCounter:
        """The counter for these parameters of a measure."""
        if who == ANY:
            return counter_for(lexicon, tokens, overlap, **self._how)
        key = lexicon.id, tokens, overlap, resolver
        if key not in self._resolved:
            self._resolved[key] = ResolvedCounter(lexicon, tokens, overlap, resolver, **self._how)
        return WhoCounter(self._resolved[key], who)
