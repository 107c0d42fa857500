"""One text by itself: the words of groups in it, and what the measures of lean say of it as the only result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from askew.app.explore.english import counts_english, is_english, not_english_note
from askew.app.explore.explorer import Explorer
from askew.app.explore.reasons import ShownMark
from askew.core.ranking import Hits

# So many characters are read: as much as a long passage.
LONGEST = 20_000


@dataclass(frozen=True)
class MeasuredText:
    """``words`` are the marked words of a text in order, ``values`` those of the measures that read no judgements."""

    mentions: Mapping[str, int]
    words: tuple[str, ...]
    marks: tuple[ShownMark, ...]
    values: Mapping[str, float | None]
    sign: str
    notes: tuple[str, ...]


def measure_text(explorer: Explorer, text: str, query: str = "") -> MeasuredText:
    """What is counted in a text; with a query also whether a word is off topic there."""
    marks = explorer.marker.find(text)
    (explained,) = explorer.explain(query, [text], [marks])
    hits = Hits(np.array([0, 1], np.int64), np.zeros(1, np.int32), np.ones(1, np.float32))
    found = explorer.scorer.score(hits, pa.array(["text"]), lambda _: [text], None)
    values = {name: float(column[0]) if np.isfinite(column[0]) else None for name, column in found.items()}
    lexicon = explorer.marker.lexicon
    notes = () if is_english(text) or not counts_english(lexicon) else (not_english_note(1, 1, lexicon.name),)
    words = tuple(text[mark.start : mark.end] for mark in explained)
    return MeasuredText(explorer.marker.count(marks), words, explained, values, explorer.setting.sign, notes)
