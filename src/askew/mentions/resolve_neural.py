"""The neural resolver, which estimates who mentions refer to: MiniLM with the adapter ``minilm-who``.

Needs the extra neural. The adapter was trained on English texts and on words for women and men. Its
model card (data/adapters/minilm-who) reports its accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from askew.core.errors import DataError
from askew.core.ranking import Floats, Ints
from askew.core.who import WHO
from askew.models import MINILM, identify
from askew.models.find import need
from askew.models.mention import MentionTokens, encode_mentions, pad_mentions

WHO_ADAPTER = "minilm-who"
# This many mentions are encoded together and sorted by length. This limits memory and padding.
_BLOCK = 4096
_BATCH = 64


class NeuralResolver:
    """Estimates the class probabilities of mentions. ``adapter`` is the name of a shipped adapter, or a folder."""

    def __init__(
        self, adapter: str = WHO_ADAPTER, model: str = MINILM, device: str | None = None, classes: Sequence[str] = WHO
    ) -> None:
        for library in ("torch", "transformers"):
            need(library, f"the model {adapter!r}, which estimates who a mention refers to,")
        from askew.models.adapted import find_encoder_adapter
        from askew.models.mention_network import load_network

        folder = find_encoder_adapter(adapter, WHO_ADAPTER)
        self._network, self._tokenizer = load_network(model, folder, len(classes), device)
        self._classes = len(classes)
        known = identify(str(folder))
        self.id = known if model == MINILM else f"{identify(model)}+{known}"

    def probabilities(self, texts: Sequence[str], text_of: Ints, starts: Ints, ends: Ints) -> Floats:
        """One row for each mention, one column for each class; a row sums to 1.

        Mention i is the part of ``texts[text_of[i]]`` from character ``starts[i]`` up to ``ends[i]``.
        """
        _check(texts, text_of, starts, ends)
        found = np.zeros((len(text_of), self._classes))
        for first in range(0, len(text_of), _BLOCK):
            part = slice(first, first + _BLOCK)
            encoded = encode_mentions(self._tokenizer, texts, text_of[part], starts[part], ends[part])
            for rows in _batches(encoded):
                found[first + rows] = self._network.probabilities(pad_mentions([encoded[row] for row in rows]))
        return found


def _batches(encoded: Sequence[MentionTokens]) -> Iterator[Ints]:
    """The rows of mentions in batches of similar length, the longest first."""
    order = np.argsort([-len(one.ids) for one in encoded], kind="stable")
    for first in range(0, len(order), _BATCH):
        yield order[first : first + _BATCH]


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
