"""Encode a mention for an encoder: first the beginning of its text, then the passage around the mention.

The mention is enclosed in two signs: ``^`` if it begins with a capital letter, which an uncased encoder could not
see, and ``*`` otherwise. Training and use have the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Limits of the shown text: words of its beginning, characters before and after the mention, and tokens of each part.
BEGINNING_WORDS = 22
CHARACTERS_BEFORE, CHARACTERS_AFTER = 360, 240
BEGINNING_TOKENS, TOKENS_BEFORE, MENTION_TOKENS, TOKENS_AFTER = 40, 72, 8, 44
# All parts, the first token, two separators and two signs.
MOST_TOKENS = BEGINNING_TOKENS + TOKENS_BEFORE + MENTION_TOKENS + TOKENS_AFTER + 5
CAPITAL, SMALL = "^", "*"
# The beginning is searched for words up to this character, for texts without blanks.
_BEGINNING_CHARACTERS = 4000

Numbers = npt.NDArray[np.int64]


class MentionTokens(NamedTuple):
    """The tokens of a mention: the passage begins at ``passage``, the mention is the range ``start`` to ``end``."""

    ids: list[int]
    passage: int
    start: int
    end: int


class MentionBatch(NamedTuple):
    """A padded batch of mentions: token ids, segments (0 beginning, 1 passage), and masks of tokens and mention.

    All four arrays have the shape (mentions, tokens).
    """

    ids: Numbers
    segments: Numbers
    mask: Numbers
    mention: Numbers


def encode_mentions(
    tokenizer: Any, texts: Sequence[str], text_of: Numbers, starts: Numbers, ends: Numbers
) -> list[MentionTokens]:
    """The tokens of each mention: from character ``starts[i]`` up to ``ends[i]`` of ``texts[text_of[i]]``."""
    if not len(text_of):
        return []
    places = list(zip(text_of.tolist(), starts.tolist(), ends.tolist(), strict=True))
    used = sorted({text for text, _, _ in places})
    first_words = [texts[text][:_BEGINNING_CHARACTERS].split(maxsplit=BEGINNING_WORDS) for text in used]
    beginning = [" ".join(words[:BEGINNING_WORDS]) for words in first_words]
    beginnings = dict(zip(used, _tokens(tokenizer, beginning), strict=True))
    words = [texts[text][start:end] for text, start, end in places]
    before = _tokens(tokenizer, [texts[text][max(0, start - CHARACTERS_BEFORE) : start] for text, start, _ in places])
    inside = _tokens(tokenizer, words)
    after = _tokens(tokenizer, [texts[text][end : end + CHARACTERS_AFTER] for text, _, end in places])
    capital, small = tokenizer.convert_tokens_to_ids([CAPITAL, SMALL])
    found = []
    for row, (text, _, _) in enumerate(places):
        ids = [tokenizer.cls_token_id, *beginnings[text][:BEGINNING_TOKENS], tokenizer.sep_token_id]
        sign, passage = capital if words[row][:1].isupper() else small, len(ids)
        ids += [*before[row][-TOKENS_BEFORE:], sign]
        start = len(ids)
        ids += inside[row][:MENTION_TOKENS]
        end = len(ids)
        ids += [sign, *after[row][:TOKENS_AFTER], tokenizer.sep_token_id]
        found.append(MentionTokens(ids, passage, start, end))
    return found


def pad_mentions(mentions: Sequence[MentionTokens]) -> MentionBatch:
    """Mentions as arrays; padding is zero everywhere."""
    shape = len(mentions), max(len(one.ids) for one in mentions)
    batch = MentionBatch(*(np.zeros(shape, np.int64) for _ in range(4)))
    for row, one in enumerate(mentions):
        batch.ids[row, : len(one.ids)] = one.ids
        batch.segments[row, one.passage : len(one.ids)] = 1
        batch.mask[row, : len(one.ids)] = 1
        batch.mention[row, one.start : one.end] = 1
    return batch


def _tokens(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    # Without warnings about long texts, because the parts are cut after encoding.
    encoded = tokenizer(
        texts, add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False, verbose=False
    )
    found: list[list[int]] = encoded["input_ids"]
    return found
