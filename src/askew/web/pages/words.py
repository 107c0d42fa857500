"""Marked words of results. The tooltip says which group a word names, who it points to, and why it is there."""

from __future__ import annotations

from collections.abc import Sequence

from askew.app.explore.answers import Answer, Setting, ShownResult
from askew.app.explore.reasons import ShownMark
from askew.web.markup import Markup, element, tag
from askew.web.pages import parts as p

# The number of words of a group that fills the bar of a result. The label has the true number.
FULL_BAR = 10


def explained(text: str, marks: Sequence[ShownMark], setting: Setting) -> Markup:
    """Mark the words of groups in a text. The explanation of a word is shown on hover and on focus."""
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
    """Draw the number of words of each group in a result, on the same scale for all results."""
    full = FULL_BAR if len(answer.setting.groups) == 2 else 2 * FULL_BAR
    return p.lean_bar(one.mentions, answer.setting, full)
