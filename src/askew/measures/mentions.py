"""Counts mentions in a batch of texts, with a compiled scan or a plain loop, which give the same counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import machine
from askew.core import plugins as registry
from askew.core.defaults import TOKENIZER
from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon
from askew.core.text import (
    GroupVocabulary,
    Tokenizer,
    blank,
    build_vocabulary,
    seyedsalehi,
    strip_for_seyedsalehi,
    unclipped,
    without_clipped,
    word,
    word_pattern,
)

# The positions of group words in a text. They are the same words that the measures count.

# Tokenizers with tokens that occur in the lower-cased text. ``seyedsalehi`` deletes characters inside words.
_KNOWN: dict[str, Tokenizer] = {"unclipped": unclipped, "word": word, "blank": blank}


@dataclass(frozen=True)
class Mark:
    """A word of a lexicon in a text: ``text[start:end]`` names these groups."""

    start: int
    end: int
    groups: tuple[str, ...]


def can_mark(tokens: str) -> bool:
    """Whether the words that this tokenizer finds can be marked in the text."""
    return tokens in _KNOWN


class Marker:
    """Finds the words of a lexicon in texts, for all its groups or for the groups in ``names``."""

    def __init__(
        self, lexicon: Lexicon, tokens: str = TOKENIZER, overlap: str = "all", names: Sequence[str] | None = None
    ) -> None:
        if not can_mark(tokens):
            raise ConfigError(
                f"group words can be marked only with one of the tokenizers {', '.join(_KNOWN)}, found {tokens!r}"
            )
        self.lexicon, self._tokenize = lexicon, _KNOWN[tokens]
        counted = lexicon.exclusive() if overlap == "first" else lexicon
        self._vocabulary = build_vocabulary(counted, self._tokenize, tokens)
        self.groups = self._vocabulary.groups if names is None else tuple(names)
        many = self._vocabulary.phrases or self._vocabulary.prefixes
        self._single = not many and self._tokenize is not blank

    def find(self, text: str) -> list[Mark]:
        """The words of the groups in the order of the text, by the same rule as counts of mentions."""
        found = []
        for start, end, mask in self.spans(text):
            # As in counts of mentions, the words of groups that are not compared are also matched.
            every = [name for bit, name in enumerate(self._vocabulary.groups) if mask >> bit & 1]
            groups = tuple(name for name in every if name in self.groups)
            found += [Mark(start, end, groups)] if groups else []
        return found

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """The start and end of each word of the lexicon, and a mask with one bit for each group that it names."""
        read = without_clipped(text) if self._tokenize is unclipped else text
        lowered = read.lower()
        if self._single and len(lowered) == len(text):
            # Without phrases and prefixes each token is looked up separately, which is four times as fast.
            words = self._vocabulary.words
            each = word_pattern(text.isascii()).finditer(lowered)
            return [(*token.span(), words[token[0]]) for token in each if token[0] in words]
        tokens = self._tokenize(text)
        places = _places(read, tokens)
        found, at = [], 0
        while at < len(tokens):
            mask, used = self._vocabulary.match(tokens, at)
            if mask:
                found.append((places[at][0], places[at + used - 1][1], mask))
            at += used
        return found

    def count(self, marks: Iterable[Mark]) -> dict[str, int]:
        """How often each group is named; a word of two groups counts for both."""
        counts = Counter(group for mark in marks for group in mark.groups)
        return {group: counts[group] for group in self.groups}


def _places(text: str, tokens: list[str]) -> list[tuple[int, int]]:
    """The start and end of each token. No token occurs in the text between tokens, so each is found at its place."""
    lowered = text.lower()
    back = list(range(len(text) + 1))
    if len(lowered) != len(text):
        # A few characters become two in lower case. These are the positions in the text of all lowered characters.
        back = [number for number, char in enumerate(text) for _ in char.lower()] + [len(text)]
    places, at = [], 0
    for token in tokens:
        start = lowered.index(token, at)
        at = start + len(token)
        places.append((back[start], back[at - 1] + 1 if token else back[start]))
    return places


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
        self.groups = self.vocabulary.groups
        self.threads = threads or machine.threads()
        self.engine = engine if self.tokenize in _COMPILED else "reference"
        self._tables: Any = None

    def count(self, texts: pa.Array | pa.ChunkedArray, size: int = 0) -> Mentions:
        """Count the mentions in a batch. A null text counts as empty.

        If the batch is a part of more texts, ``size`` is the number of bytes of all of them. It decides the engine.
        """
        array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        array = array.cast(pa.large_string()).fill_null("")
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
        # The scan marks a document with a negative number of tokens if the plain loop must count it.
        handed_back = np.flatnonzero(tokens < 0)
        if len(handed_back):
            again = self._count_plainly(texts.take(pa.array(handed_back)))
            counts[handed_back], tokens[handed_back] = again.counts, again.tokens
        return Mentions(self.groups, counts, tokens)

    def _scan_in_threads(self, texts: pa.Array, counts: Counts, tokens: Counts) -> None:
        from askew.measures.scan import READ_AHEAD, build_scan_tables, lower_table, scan, word_table

        if self._tables is None:
            self._tables = build_scan_tables(self.vocabulary)
        buffers = texts.buffers()
        offsets = np.frombuffer(buffers[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.zeros(0, np.uint8)
        data = data[: int(offsets[-1])] if len(offsets) else data
        lower, inside = lower_table(), word_table(self.tokenize is seyedsalehi)
        tables = self._tables

        def work(data: Any, starts: Any, ends: Any, a: int, b: int) -> None:
            scan(
                data, starts, ends, self.tokenize is blank, self.tokenize is unclipped, lower, inside, *tables,
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


# Counts the group words that the tokenizer ``unclipped`` leaves out and ``word`` would count.

# The pattern has this many letters of each word: few enough for a small pattern from a long lexicon, and enough that
# most texts with a web address do not match.
_START = 3


class ClippedCounter:
    """Counts the clipped words that were left out. Only texts that may have such a word are counted a second time."""

    def __init__(self, counter: MentionCounter) -> None:
        self._pattern, self._whole = "", counter
        if counter.tokenize is not unclipped:
            return
        terms = counter.vocabulary
        phrases = (token for found in terms.phrases.values() for phrase, _ in found for token in phrase)
        # The tokens of terms that could be clipped words, and whether more letters may follow.
        words = {(token, False) for token in (*terms.words, *phrases)} | {(token, True) for token in terms.prefixes}
        words = {(token, more) for token, more in words if "a" <= token[0] <= "z"}
        if words:
            # Possible clipped words: a full stop, a lower-case first letter, then letters of either case.
            starts = sorted({(token[:_START], more or len(token) > _START) for token, more in words})
            ends = {True: "", False: "(?:[^0-9A-Za-z_]|$)"}
            parts = (f"{start[0]}(?i:{re.escape(start[1:])}){ends[more]}" for start, more in starts)
            self._pattern = rf"\.(?:{'|'.join(parts)})"
            self._whole = MentionCounter(counter.lexicon, word, counter.threads, counter.engine)

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
