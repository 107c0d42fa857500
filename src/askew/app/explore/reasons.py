"""Estimate whom each marked word points to, and why it is in a result.

The estimates are those of the light models of ``docs/warrant.md``, for the groups that they were trained on and for
English texts. They only distinguish off topic from on topic: within on topic, they do not separate mentions that are
warranted from stereotypes. A mention of a group that the query names is "asked for".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from askew.app.scoring.decompose import Decomposition
from askew.app.scoring.relevance import open_estimator
from askew.core.defaults import RESOLVER
from askew.core.ranking import Flags, Floats, Ints
from askew.core.who import LEARNED, WHO, WHO_SHORT
from askew.mentions.marks import Mark
from askew.mentions.relevance import OFFTOPIC, asks_about
from askew.mentions.resolve import class_probabilities, open_resolver

OFF_TOPIC, ON_TOPIC, ASKED = "off topic", "on topic", "asked for"
WHY_SAYS = {
    OFF_TOPIC: "the document is probably not about the query",
    ON_TOPIC: "the document is about the query; askew does not estimate whether the word is warranted or a stereotype",
    ASKED: "the query itself names this group",
}


@dataclass(frozen=True)
class ShownMark:
    """A word ``text[start:end]`` that names these groups.

    ``who`` (whom it points to) and ``why`` (the reason for the mention) are estimates with the probabilities ``who_p``
    and ``why_p``; null without an estimate. ``counted`` says whether the deciding measure counts the word.
    """

    start: int
    end: int
    groups: tuple[str, ...]
    who: str | None = None
    who_p: float | None = None
    why: str | None = None
    why_p: float | None = None
    counted: bool = True

    @property
    def words(self) -> str:
        """The mark as text: group, who, why."""
        told = [" and ".join(self.groups)]
        if self.who is not None:
            told.append(f"refers to: {WHO_SHORT[self.who]} (probability {self.who_p:.0%})")
        if self.why is not None:
            told.append(f"{self.why} (probability {self.why_p:.0%}): {WHY_SAYS[self.why]}")
        if not self.counted:
            told.append("not counted by the measure that decides whether the results lean")
        return "; ".join(told)


@dataclass(frozen=True)
class CountedPart:
    """A part of a measure by the reason of the mentions: its share, and its net contribution to the value."""

    part: str
    share: float
    net: float


def counted_parts(found: Decomposition) -> tuple[CountedPart, ...]:
    """Return the parts by reason (``why``), with the names that are used for marks."""
    names = {"offtopic": OFF_TOPIC, "ontopic": ON_TOPIC, "asked": ASKED}
    return tuple(CountedPart(names.get(one.name, one.name), one.share, one.net)
                 for one in found.parts if one.kind == "why")  # fmt: skip


class Reasons:
    """Explains marks of some groups; ``who`` are the classes that the deciding measure counts, empty for all."""

    def __init__(self, groups: Sequence[str], who: Sequence[str] = ()) -> None:
        self.applies = set(groups) <= set(LEARNED)
        self._who = frozenset(who)

    def explain(
        self, query: str, named: Sequence[str], texts: Sequence[str], marks: Sequence[Sequence[Mark]],
        relevant: Sequence[bool],
    ) -> list[tuple[ShownMark, ...]]:  # fmt: skip
        """Explain the marks of each text; ``named`` has the groups in the query, ``relevant`` the judged texts."""
        if not self.applies:
            return [tuple(ShownMark(mark.start, mark.end, mark.groups) for mark in each) for each in marks]
        text_of, flat = _flat(marks)
        starts, ends = (np.array([getattr(mark, end) for mark in flat], np.int64) for end in ("start", "end"))
        who = class_probabilities(open_resolver(RESOLVER), texts, text_of, starts, ends)
        why = _why(query, texts, text_of, starts, who, np.array(relevant, np.bool_))
        asked = np.array([bool(set(mark.groups) & set(named)) for mark in flat], np.bool_)
        why = asks_about(why, asked) if len(flat) else why
        found: list[list[ShownMark]] = [[] for _ in texts]
        for row, mark in enumerate(flat):
            found[int(text_of[row])].append(self._shown(mark, who[row], why[row], bool(asked[row])))
        return [tuple(each) for each in found]

    def _shown(self, mark: Mark, who: Floats, why: Floats, asked: bool) -> ShownMark:
        best = int(who.argmax())
        off = float(why[OFFTOPIC])
        on = ASKED if asked else ON_TOPIC
        part, p = (OFF_TOPIC, off) if off >= 0.5 else (on, 1.0 - off)
        counted = not self._who or WHO[best] in self._who
        return ShownMark(mark.start, mark.end, mark.groups, WHO[best], float(who[best]), part, p, counted)


def _flat(marks: Sequence[Sequence[Mark]]) -> tuple[Ints, list[Mark]]:
    pairs = [(row, mark) for row, each in enumerate(marks) for mark in each]
    return np.array([row for row, _ in pairs], np.int64), [mark for _, mark in pairs]


def _why(
    query: str, texts: Sequence[str], text_of: Ints,
    starts: Ints, who: Floats, relevant: Flags,
) -> Floats:  # fmt: skip
    """Return the probabilities of each reason; a document that is judged relevant is on topic."""
    estimator = open_estimator(RESOLVER)
    naming = sorted(set(text_of.tolist()))
    if not naming:
        return np.zeros((0, 3))
    chance = np.zeros(len(texts))
    chance[naming] = estimator.relevance([query] * len(naming), [texts[row] for row in naming])
    chance[relevant] = 1.0
    rows = text_of.tolist()
    return estimator.why([query] * len(rows), [texts[row] for row in rows], starts.tolist(), who, chance[rows])
