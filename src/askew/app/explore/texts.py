"""Measure one text: the words of groups in it, and its lean as if it were the only result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from askew.app.explore.english import counts_english, is_english, not_english_note
from askew.app.explore.explorer import Explorer
from askew.app.explore.reasons import ShownMark
from askew.app.explore.scoring import SearchedLists
from askew.core.ranking import Hits

# The most characters that are read: the length of a long passage.
LONGEST = 20_000


@dataclass(frozen=True)
class MeasuredText:
    """``words`` are the marked words of a text in order; ``values`` are those of measures that read no judgements."""

    mentions: Mapping[str, int]
    words: tuple[str, ...]
    marks: tuple[ShownMark, ...]
    values: Mapping[str, float | None]
    sign: str
    notes: tuple[str, ...]


def measure_text(explorer: Explorer, text: str, query: str = "") -> MeasuredText:
    """Mark and count the words of groups in a text; with a query, also estimate whether a word is off topic."""
    marks = explorer.marker.find(text)
    (explained,) = explorer.explain(query, [text], [marks])
    hits = Hits(np.array([0, 1], np.int64), np.zeros(1, np.int32), np.ones(1, np.float32))
    found = explorer.scorer.score(SearchedLists.of_one(hits, None), pa.array(["text"]), lambda _: [text])
    values = {name: float(column[0]) if np.isfinite(column[0]) else None for name, column in found.items()}
    lexicon = explorer.marker.lexicon
    notes = () if is_english(text) or not counts_english(lexicon) else (not_english_note(1, 1, lexicon.name),)
    words = tuple(text[mark.start : mark.end] for mark in explained)
    return MeasuredText(explorer.marker.count(marks), words, explained, values, explorer.setting.sign, notes)
