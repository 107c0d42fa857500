"""Words of groups that the tokenizer ``unclipped`` leaves out: how many ``word`` would have counted more."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.text import unclipped, word
from askew.core.vocabulary import GroupVocabulary
from askew.mentions.count import Counts, MentionCounter, Mentions

# So many letters of a word are looked for: few, so that the pattern of a long lexicon is small, and enough for most
# texts with a web address to have none of them.
_START = 3


class ClippedCounter:
    """Counts the words that were left out. Only texts where such a word may stand are counted a second time."""

    def __init__(self, counter: MentionCounter) -> None:
        words = _words(counter.vocabulary) if counter.tokenize is unclipped else set()
        self._pattern = _pattern(words) if words else ""
        self._whole = MentionCounter(counter.lexicon, word, counter.threads, counter.engine) if words else counter

    def count(self, texts: pa.Array | pa.ChunkedArray, counted: Mentions) -> Counts:
        """By text and group, given what was counted; nothing is left out by other tokenizers than ``unclipped``."""
        left = np.zeros_like(counted.counts)
        if not self._pattern:
            return left
        maybe = pc.match_substring_regex(texts, self._pattern).fill_null(False)
        rows = np.flatnonzero(maybe.to_numpy(zero_copy_only=False))
        if len(rows):
            more = self._whole.count(texts.take(pa.array(rows)), texts.nbytes).counts - counted.counts[rows]
            # Where a word is left out, the words around it can make a term: then there are fewer of others.
            left[rows] = np.maximum(more, 0)
        return left


def _words(vocabulary: GroupVocabulary) -> set[tuple[str, bool]]:
    """All tokens of the terms that could be clipped words, each with whether more letters may follow."""
    phrases = (token for found in vocabulary.phrases.values() for phrase, _ in found for token in phrase)
    whole = {(token, False) for token in (*vocabulary.words, *phrases)}
    every = whole | {(token, True) for token in vocabulary.prefixes}
    return {(token, more) for token, more in every if "a" <= token[0] <= "z"}


def _pattern(words: Iterable[tuple[str, bool]]) -> str:
    """What may be a clipped word: a full stop and how a word begins; the first letter is small, others are either."""
    starts = sorted({(token[:_START], more or len(token) > _START) for token, more in words})
    told = (f"{start[0]}(?i:{re.escape(start[1:])}){'' if more else '(?:[^0-9A-Za-z_]|$)'}" for start, more in starts)
    return rf"\.(?:{'|'.join(told)})"
