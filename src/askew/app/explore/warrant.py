"""Whether the gender in a query has a reason: by rules that are named, never by a verdict on the person who asks.

``named person``  the query has a first name of the shipped list.
``fixed name``    the word is part of a name of something (burger king, queen anne), by the list of the swaps.
``biology``       the query has a word of bodies, birth or breeding (``warranted.toml``).

Results that lean may then be what was asked for. Without a reason the group may have been added to the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from askew.core.lexicon import load_lexicon
from askew.core.shipped import DATA
from askew.mentions.marks import Mark, Marker
from askew.reformulators.swap import Rewriter
from askew.reformulators.swaplexicon import load_swaps

_NAMES = DATA / "names" / "en.toml"


@dataclass(frozen=True)
class Reason:
    """A rule that holds, and the words of the query that it found."""

    rule: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Warrant:
    """What a query says of groups: the words that name one, and the rules by which that has a reason."""

    words: tuple[str, ...]
    groups: tuple[str, ...]
    reasons: tuple[Reason, ...]

    @property
    def status(self) -> str:
        """``none`` where no group is named and no rule holds, ``warranted`` where a rule holds, otherwise ``added``."""
        if self.reasons:
            return "warranted"
        return "added" if self.words else "none"


class WarrantRules:
    """The rules. A query is looked at with the broad lexicon ``gender``, whatever the measures count with."""

    @cached_property
    def _groups(self) -> Marker:
        return Marker(load_lexicon("gender"))

    @cached_property
    def _names(self) -> Marker:
        return Marker(load_lexicon(_NAMES))

    @cached_property
    def _biology(self) -> Marker:
        return Marker(load_lexicon(DATA / "warranted.toml"))

    @cached_property
    def _rewriter(self) -> Rewriter:
        return Rewriter(load_swaps("gender-en"))

    def look(self, query: str) -> Warrant:
        """What the rules say of a query."""
        marks = self._groups.find(query)
        fixed = self._fixed(query, marks)
        # A name that is also a word of the lexicon stays a word.
        taken = {(mark.start, mark.end) for mark in marks}
        named = [mark for mark in self._names.find(query) if (mark.start, mark.end) not in taken]
        found = {"named person": named, "fixed name": fixed, "biology": self._biology.find(query)}
        reasons = tuple(Reason(rule, _words(query, hits)) for rule, hits in found.items() if hits)
        return Warrant(_words(query, marks), _named(marks), reasons)

    def groups(self, query: str) -> tuple[str, ...]:
        """The groups that the words of a query name."""
        return _named(self._groups.find(query))

    def _fixed(self, query: str, marks: list[Mark]) -> list[Mark]:
        """Words of a group that the list of swaps leaves alone, for they are part of a name."""
        free = [match.span() for match in self._rewriter.find(query)]
        known = self._rewriter.lexicon.swaps
        return [
            mark for mark in marks
            if query[mark.start : mark.end].lower() in known
            and not any(start <= mark.start < end for start, end in free)
        ]  # fmt: skip


def _named(marks: list[Mark]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group for mark in marks for group in mark.groups))


def _words(query: str, marks: list[Mark]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(query[mark.start : mark.end] for mark in marks))
