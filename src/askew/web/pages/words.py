"""Marked words of results: each says which group it names, who it points to and why it is there."""

from __future__ import annotations

from collections.abc import Sequence

from askew.app.explore.answers import Answer, Setting, ShownResult
from askew.app.explore.reasons import ShownMark
from askew.web.markup import Markup, element, tag
from askew.web.pages import parts as p

# So many words of a group fill the bar of one result, whatever the others have; more are told in numbers.
FULL_BAR = 10


def explained(text: str, marks: Sequence[ShownMark], setting: Setting) -> Markup:
    """A text with the words of groups marked; what is said of a word is shown on hover and on focus."""
    parts, at = [], 0
    for mark in marks:
        kind = p.class_of(mark.groups, setting)
        words = mark.words
        drawn = element(
            "mark", text[mark.start : mark.end], class_=kind if mark.counted else f"{kind} uncounted", title=words,
            data_why=words, tabindex="0",
        )  # fmt: skip
        parts += [text[at : mark.start], drawn]
        at = mark.end
    return tag("bdi", *parts, text[at:], dir="auto")


def result_bar(one: ShownResult, answer: Answer) -> Markup:
    """How many words of each group a result has, on a scale that is the same everywhere."""
    full = FULL_BAR if len(answer.setting.groups) == 2 else 2 * FULL_BAR
    counts = {group: min(count, full) for group, count in one.mentions.items()}
    return p.lean_bar(counts, answer.setting, full) if counts == one.mentions else _cut(one, counts, answer, full)


def _cut(one: ShownResult, counts: dict[str, int], answer: Answer, full: int) -> Markup:
    """A bar that is full: its words say how many there are."""
    label = p.counted(one.mentions, answer.setting)
    bar = p.lean_bar(counts, answer.setting, full)
    return Markup(bar.replace(p.counted(counts, answer.setting), label))
