"""Read a document once for all of its mentions: windows of its tokens, and where each mention is in them.

Window k holds the mentions that begin among the tokens ``k * STEP`` up to ``(k + 1) * STEP`` of the document, with
context on both sides; the windows do not depend on which words are mentions. A document of up to ``LONGEST`` tokens is
one window. Later windows begin with the first tokens of the document, which often name its topic. An uncased encoder
does not see capitals, so each token has a case: other, capitalized or in capitals. Training and use have the same
windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# In tokens: of the first window, between windows, before and after the mentions of a window, of the beginning.
LONGEST, STEP, BEFORE, AFTER, BEGINNING = 192, 88, 64, 40, 24
# The tokens of a window, with the first and last one and the separator after the beginning.
MOST_TOKENS = LONGEST + BEGINNING + 3
CASES = 3
# Texts are tokenized up to this character, for texts that are one long word.
_CHARACTERS = 1_000_000
_TEXTS = 256

Numbers = npt.NDArray[np.int64]


class Window(NamedTuple):
    """The tokens of a part of a document with their cases. ``mentions`` has the row, first and end token of each."""

    ids: list[int]
    cases: list[int]
    mentions: list[tuple[int, int, int]]


def windows(tokenizer: Any, texts: Sequence[str], text_of: Numbers, starts: Numbers, ends: Numbers) -> Iterator[Window]:
    """The windows that have mentions: from character ``starts[i]`` up to ``ends[i]`` of ``texts[text_of[i]]``."""
    order = np.lexsort((starts, text_of)).tolist()
    rows_of: dict[int, list[int]] = {}
    for row in order:
        rows_of.setdefault(int(text_of[row]), []).append(row)
    named = iter(rows_of.items())
    while part := list(islice(named, _TEXTS)):
        shown = [texts[text][:_CHARACTERS] for text, _ in part]
        encoded = tokenizer(
            shown, add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False,
            return_offsets_mapping=True, verbose=False,
        )  # fmt: skip
        for (_, rows), text, ids, offsets in zip(
            part, shown, encoded["input_ids"], encoded["offset_mapping"], strict=True
        ):
            yield from _of_text(tokenizer, text, ids, offsets, [(row, starts[row], ends[row]) for row in rows])


def _of_text(
    tokenizer: Any, text: str, ids: list[int], offsets: list[tuple[int, int]], mentions: list[tuple[int, int, int]]
) -> Iterator[Window]:
    """The windows of one text. A mention without tokens is read at the token after it."""
    begins, stops = (np.array([span[side] for span in offsets], np.int64) for side in (0, 1))
    words = (text[first:end] for first, end in offsets)
    cases = [0 if not word[:1].isupper() else 2 if len(word) > 1 and word.isupper() else 1 for word in words]
    found: dict[int, list[tuple[int, int, int]]] = {}
    for row, start, end in mentions:
        first = int(np.searchsorted(stops, start, side="right"))
        last = max(first + 1, int(np.searchsorted(begins, end, side="left")))
        found.setdefault(0 if len(ids) <= LONGEST else first // STEP, []).append((row, first, last))
    for number, inside in found.items():
        low, high = max(0, number * STEP - BEFORE), (number + 1) * STEP + AFTER
        if len(ids) <= LONGEST:
            low, high = 0, len(ids)
        elif low <= BEGINNING:
            low = 0
        beginning = [*ids[:BEGINNING], tokenizer.sep_token_id] if low else []
        head = [tokenizer.cls_token_id, *beginning]
        shift, most = len(head) - low, len(head) + min(high, len(ids)) - low
        yield Window(
            [*head, *ids[low:high], tokenizer.sep_token_id],
            [0, *([*cases[:BEGINNING], 0] if low else []), *cases[low:high], 0],
            [(row, min(first + shift, most), min(last + shift, most + 1)) for row, first, last in inside],
        )
