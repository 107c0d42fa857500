"""The resolver, which estimates who mentions refer to: MiniLM with the shipped adapter ``minilm-who`` (``neural``).

It needs the extra ``neural``; without it, all mentions count. A rule assigns clipped words ("channels.he remains") to
``other``, independent of the model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError, DataError
from askew.core.groups import ANY, NEURAL, WHO, classes_of, resolver_id
from askew.core.lexicon import Lexicon
from askew.core.ranking import Floats, Ints
from askew.core.text import end_of_word, is_clipped, is_word_character
from askew.measures.mentions import Counts, Marker, MentionCounter, Mentions, can_mark, counter_for
from askew.models import MINILM, identify
from askew.models.find import need
from askew.models.mention import windows

WHO_ADAPTER = "minilm-who"
_MOST_KEPT = 20_000


class NeuralResolver:
    """Estimates the class probabilities of mentions. ``adapter`` is the name of a shipped adapter, or a folder."""

    def __init__(
        self, adapter: str = WHO_ADAPTER, model: str = MINILM, device: str | None = None, classes: Sequence[str] = WHO
    ) -> None:
        for library in ("torch", "transformers"):
            need(library, f"the model {adapter!r}, which estimates who a mention refers to,")
        from askew.models.adapted import find_encoder_adapter, load_network

        folder = find_encoder_adapter(adapter, WHO_ADAPTER)
        self._network, self._tokenizer = load_network(model, folder, len(classes), device)
        self._classes = len(classes)
        known = identify(str(folder))
        self.id = known if model == MINILM else f"{identify(model)}+{known}"
        # The documents that were read last: lists of different queries share documents.
        self._read: OrderedDict[tuple[str, bytes], Floats] = OrderedDict()
        self._lock = Lock()

    def probabilities(self, texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> Floats:
        """One row for each mention, one column for each class; a row sums to 1.

        Mention i is the part of ``texts[text_of[i]]`` from character ``starts[i]`` up to ``ends[i]``.
        """
        _check(texts, text_of, starts, ends)
        rows_of: dict[int, list[int]] = {}
        for row, text in enumerate(text_of.tolist()):
            rows_of.setdefault(text, []).append(row)
        keys = {text: (texts[text], np.stack([starts[rows], ends[rows]]).tobytes()) for text, rows in rows_of.items()}
        with self._lock:
            found = {text: self._read[key] for text, key in keys.items() if key in self._read}
        new = np.array([row for text, rows in rows_of.items() if text not in found for row in rows], np.int64)
        made = windows(self._tokenizer, texts, text_of[new], starts[new], ends[new])
        probabilities = np.zeros((len(text_of), self._classes))
        probabilities[new] = self._network.probabilities(made, len(new))
        for text, known in found.items():
            probabilities[rows_of[text]] = known
        with self._lock:
            for text, key in keys.items():
                self._read[key] = probabilities[rows_of[text]]
                self._read.move_to_end(key)
            while len(self._read) > _MOST_KEPT:
                self._read.popitem(last=False)
        return probabilities


def _check(texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> None:
    if not len(text_of) == len(starts) == len(ends):
        raise DataError(
            "mentions: expected 'text_of', 'starts' and 'ends' of the same length, found the lengths "
            f"{len(text_of)}, {len(starts)} and {len(ends)}"
        )
    if not len(text_of):
        return
    if text_of.min() < 0 or text_of.max() >= len(texts):
        raise DataError(
            f"mentions: each value of 'text_of' must be the index of a text (0 to {len(texts) - 1}), found values from "
            f"{text_of.min()} to {text_of.max()}"
        )
    lengths = np.array([len(text) for text in texts])[text_of]
    wrong = np.flatnonzero((starts < 0) | (starts >= ends) | (ends > lengths))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"mentions: expected 0 <= start < end <= {lengths[row]}, the length of text {text_of[row]}; found "
            f"start {starts[row]} and end {ends[row]} (mention {row})"
        )


OTHER = WHO.index("other")


class Resolver(Protocol):
    """Gives each mention a probability of each class."""

    id: str

    def probabilities(self, texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> Floats:
        """One row for each mention. Mention i is ``texts[text_of[i]][starts[i]:ends[i]]``."""


@cache
def open_resolver(name: str = NEURAL) -> Resolver:
    """A resolver by its name or id."""
    resolver_id(name)
    return NeuralResolver()


def default_resolver() -> str | None:
    """The resolver that every command uses; None if the extra ``neural`` is not installed: then all mentions count."""
    return NEURAL if find_spec("torch") and find_spec("transformers") else None


def class_probabilities(resolver: Resolver, texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> Floats:
    """The probability of each class for each mention, after the rule for clipped words."""
    found = resolver.probabilities(texts, text_of, starts, ends) if len(text_of) else np.zeros((0, len(WHO)))
    places = zip(text_of.tolist(), starts.tolist(), strict=True)
    clipped = np.array([is_clipped(texts[text], start) for text, start in places], np.bool_)
    found[clipped] = 0.0
    found[clipped, OTHER] = 1.0
    return found


def resolve_mentions(mentions: Sequence[tuple[str, int]]) -> list[str]:
    """Estimate what each mention refers to, and return the class of each mention.

    The classes are ``real`` (a real person), ``fictional`` (a character), ``generic`` (anyone), ``name`` (part of the
    name of a work, brand, place or team) and ``other`` (no person).

    A mention is a pair: a text, and the position in this text at which the word begins. The extra ``neural`` is needed.
    The documentation gives the accuracy of the estimates.
    """
    texts = list(dict.fromkeys(text for text, _ in mentions))
    number = {text: place for place, text in enumerate(texts)}
    text_of = np.array([number[text] for text, _ in mentions], np.int64)
    starts = np.array([at for _, at in mentions], np.int64)
    for row, (text, at) in enumerate(mentions):
        inside = 0 <= at < len(text) and is_word_character(text[at])
        # A position inside a word is an error: the "he" in "she" is not a word.
        if not inside or (at and is_word_character(text[at - 1])):
            raise DataError(f"mentions: expected the position at which a word begins, found {at} (mention {row})")
    ends = np.array([end_of_word(text, at) for text, at in mentions], np.int64)
    found = class_probabilities(open_resolver(), texts, text_of, starts, ends)
    return [WHO[best] for best in found.argmax(axis=1)]


# Counts mentions by who they refer to. The counts of all classes always add up to the plain count.


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
                f"⟨who⟩: the tokenizer {tokens!r} does not give the positions of its words in the text; "
                "set ⟨tokens⟩ to 'unclipped', 'word' or 'blank', or leave out ⟨who⟩",
                code="no-positions",
                tokens=tokens,
            )
        self._marker = Marker(lexicon, tokens, overlap)
        self.plain = counter_for(lexicon, tokens, overlap, **how)
        self.groups = self.plain.groups
        self._name = resolver
        self._last: tuple[pa.Array, ResolvedMentions] | None = None

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
        who = class_probabilities(open_resolver(self._name), read, found.text_of, found.starts, found.ends)
        classes = who.argmax(axis=1)
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
    """Makes counters. Those that differ only in the classes of mentions share a resolver: texts are resolved once."""

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
