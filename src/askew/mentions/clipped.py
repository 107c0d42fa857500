"""Counts the group words that the tokenizer ``unclipped`` leaves out and ``word`` would count."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.text import unclipped, word
from askew.core.vocabulary import GroupVocabulary
from askew.mentions.count import Counts, MentionCounter, Mentions

# The pattern has this many letters of each word: few enough for a small pattern from a long lexicon, and enough that
# most texts with a web address do not match.
_START = 3


class ClippedCounter:
    """Counts the clipped words that were left out. Only texts that may have such a word are counted a second time."""

    def __init__(self, counter: MentionCounter) -> None:
        words = _words(counter.vocabulary) if counter.tokenize is unclipped else set()
        self._pattern = _pattern(words) if words else ""
        self._whole = MentionCounter(counter.lexicon, word, counter.threads, counter.engine) if words else counter

    def count(self, texts: pa.Array | pa.ChunkedArray, counted: Mentions) -> Counts:
        """The left-out words of each text and group. ``counted`` are the mentions without these words.

        All counts are 0 for a tokenizer other than ``unclipped``.
        """
        left = np.zeros_like(counted.counts)
        if not self._pattern:
            return left
        maybe = pc.match_substring_regex(texts, self._pattern).fill_null(False)
        rows = np.flatnonzero(maybe.to_numpy(zero_copy_only=False))
        if len(rows):
            more = self._whole.count(texts.take(pa.array(rows)), texts.nbytes).counts - counted.counts[rows]
            # Without the clipped word, the words around it can form a phrase of the lexicon. A difference can then be
            # negative.
            left[rows] = np.maximum(more, 0)
        return left


def _words(vocabulary: GroupVocabulary) -> set[tuple[str, bool]]:
    """All tokens of terms that could be clipped words, each with a flag that says whether more letters may follow."""
    phrases = (token for found in vocabulary.phrases.values() for phrase, _ in found for token in phrase)
    whole = {(token, False) for token in (*vocabulary.words, *phrases)}
    every = whole | {(token, True) for token in vocabulary.prefixes}
    return {(token, more) for token, more in every if "a" <= token[0] <= "z"}


def _pattern(words: Iterable[tuple[str, bool]]) -> str:
    """The pattern of possible clipped words: a full stop, a lower-case first letter, then letters of either case."""
    starts = sorted({(token[:_START], more or len(token) > _START) for token, more in words})
    told = (f"{start[0]}(?i:{re.escape(start[1:])}){'' if more else '(?:[^0-9A-Za-z_]|$)'}" for start, more in starts)
    return rf"\.(?:{'|'.join(told)})"
