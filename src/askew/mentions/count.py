"""Counts mentions in a batch of texts, with a compiled scan or a plain loop, which give the same counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core import machine
from askew.core.defaults import TOKENIZER
from askew.core.lexicon import Lexicon
from askew.core.text import Tokenizer, blank, seyedsalehi, strip_for_seyedsalehi, unclipped, word
from askew.core.vocabulary import GroupVocabulary, build_vocabulary
from askew.mentions.layout import NEEDS_REFERENCE, READ_AHEAD
from askew.plugins import registry

# The tokenizers of the compiled scan. All others use the plain loop.
_COMPILED: tuple[Tokenizer, ...] = (blank, word, unclipped, seyedsalehi)

# For less text than this, the plain loop is faster than loading the compiled scan.
SMALL_BYTES = 4 << 20

Counts = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Mentions:
    """For each text (row) the number of mentions of each group, and the number of tokens."""

    groups: tuple[str, ...]
    counts: Counts
    tokens: Counts


class MentionCounter:
    """Counts the mentions of one lexicon with one tokenizer. Create it once and use it for every batch."""

    def __init__(
        self, lexicon: Lexicon, tokenizer: str | Tokenizer = TOKENIZER, threads: int | None = None, engine: str = "auto"
    ) -> None:
        self.tokenizer_name = tokenizer if isinstance(tokenizer, str) else getattr(tokenizer, "__name__", "custom")
        self.tokenize: Tokenizer = registry.load("tokenizer", tokenizer) if isinstance(tokenizer, str) else tokenizer
        self.lexicon = lexicon
        self.vocabulary = build_vocabulary(lexicon, self.tokenize, self.tokenizer_name)
        self.threads = threads or machine.threads()
        self.engine = engine if self.tokenize in _COMPILED else "reference"
        self._tables: Any = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups counted, in order."""
        return self.vocabulary.groups

    def count(self, texts: pa.Array | pa.ChunkedArray, size: int = 0) -> Mentions:
        """Count the mentions in a batch. A null text counts as empty.

        If the batch is a part of more texts, ``size`` is the number of bytes of all of them. It decides the engine.
        """
        array = _one_array(texts)
        small = max(size, array.nbytes) < SMALL_BYTES
        if self.engine == "reference" or (self.engine == "auto" and small):
            return self._count_plainly(array)
        return self._count_compiled(array)

    def _count_plainly(self, texts: pa.Array) -> Mentions:
        counts = np.zeros((len(texts), len(self.groups)), np.int32)
        tokens = np.zeros(len(texts), np.int32)
        simple = not self.vocabulary.phrases and not self.vocabulary.prefixes
        for row, text in enumerate(texts.to_pylist()):
            found = self.tokenize(text or "")
            tokens[row] = len(found)
            counts[row] = _count_words(self.vocabulary, found) if simple else self.vocabulary.count(found)
        return Mentions(self.groups, counts, tokens)

    def _count_compiled(self, texts: pa.Array) -> Mentions:
        if self.tokenize is seyedsalehi:
            texts = pa.array([strip_for_seyedsalehi(t or "") for t in texts.to_pylist()], pa.large_string())
        counts = np.zeros((len(texts), len(self.groups)), np.int32)
        tokens = np.zeros(len(texts), np.int32)
        self._scan_in_threads(texts, counts, tokens)
        handed_back = np.flatnonzero(tokens == NEEDS_REFERENCE)
        if len(handed_back):
            again = self._count_plainly(texts.take(pa.array(handed_back)))
            counts[handed_back], tokens[handed_back] = again.counts, again.tokens
        return Mentions(self.groups, counts, tokens)

    def _scan_in_threads(self, texts: pa.Array, counts: Counts, tokens: Counts) -> None:
        from askew.mentions.scan import scan
        from askew.mentions.tables import build_scan_tables, lower_table, word_table

        if self._tables is None:
            self._tables = build_scan_tables(self.vocabulary)
        data, offsets = _bytes_of(texts)
        lower, inside = lower_table(), word_table(self.tokenize is seyedsalehi)
        tables = self._tables

        def work(data: Any, starts: Any, ends: Any, a: int, b: int) -> None:
            scan(
                data, starts, ends, self.tokenize is blank, self.tokenize is unclipped, lower, inside,
                tables.maybe, tables.slots, tables.entries, tables.texts, tables.edges, tables.prefixes,
                counts[a:b], tokens[a:b],
            )  # fmt: skip

        # The scan reads whole blocks, so the last texts are scanned in a padded copy of their bytes.
        safe = int(np.searchsorted(offsets[1:], len(data) - READ_AHEAD, side="right"))
        tail = np.concatenate([data[offsets[safe] :], np.zeros(READ_AHEAD, np.uint8)])
        work(tail, offsets[safe:-1] - offsets[safe], offsets[safe + 1 :] - offsets[safe], safe, len(texts))
        cuts = np.linspace(0, safe, (self.threads if len(data) > SMALL_BYTES else 1) + 1).astype(int).tolist()
        spans = list(pairwise(cuts))
        if len(spans) == 1:
            work(data, offsets[:safe], offsets[1 : safe + 1], 0, safe)
            return
        with ThreadPoolExecutor(len(spans)) as pool:
            list(pool.map(lambda s: work(data, offsets[s[0] : s[1]], offsets[s[0] + 1 : s[1] + 1], *s), spans))


def counter_for(lexicon: Lexicon, tokens: str, overlap: str, **how: Any) -> MentionCounter:
    """The counter for the parameters lexicon, tokens and overlap of a measure. ``how`` goes to ``MentionCounter``."""
    return MentionCounter(lexicon.exclusive() if overlap == "first" else lexicon, tokens, **how)


def _count_words(vocabulary: GroupVocabulary, tokens: list[str]) -> list[int]:
    counts = [0] * len(vocabulary.groups)
    masks = vocabulary.words
    for mask in [masks[token] for token in tokens if token in masks]:
        for group in range(len(counts)):
            counts[group] += mask >> group & 1
    return counts


def _one_array(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.cast(pa.large_string()).fill_null("")


def _bytes_of(texts: pa.Array) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.int64]]]:
    buffers = texts.buffers()
    offsets = np.frombuffer(buffers[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.zeros(0, np.uint8)
    return data[: int(offsets[-1])] if len(offsets) else data, offsets
