"""Check by rules whether there is a reason for a query to name a group.

The rules exist only for the groups female and male.

``named person``  the query has a first name of the shipped list.
``fixed name``    the word is part of a fixed name (burger king, queen anne) in the list of swaps.
``biology``       the query has a word for bodies, birth or breeding (``warranted.toml``).

With a reason, results that lean may be what the query asks for. Without a reason, the group may have been added to the
query without need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from askew.app.explore.english import counts_english, is_english
from askew.app.scoring.comparable import PUBLISHED
from askew.core.defaults import TOKENIZER
from askew.core.groups import Groups
from askew.core.lexicon import load_lexicon
from askew.core.shipped import DATA
from askew.mentions.marks import Mark, Marker, can_mark
from askew.plugins.methods import QueryBatch
from askew.reformulators.swap import Rewriter, SwapReformulator
from askew.reformulators.swaplexicon import load_swaps

_NAMES = DATA / "names" / "en.toml"


@dataclass(frozen=True)
class Reason:
    """A rule that applies, and the words of the query that match it."""

    rule: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Warrant:
    """The words of a query that name groups, and the reasons for these words.

    ``rules`` are the rules that were tried; empty if there are none for the counted groups. ``english`` is false if the
    query does not look like English; then no words and no rules are applied.
    """

    words: tuple[str, ...]
    groups: tuple[str, ...]
    reasons: tuple[Reason, ...]
    rules: tuple[str, ...]
    english: bool = True

    @property
    def status(self) -> str:
        """``warranted`` if a rule applies, ``none`` if no group is named, else ``added``.

        If there are no rules for the groups, ``no rules`` replaces ``added``.
        """
        if self.reasons:
            return "warranted"
        return "none" if not self.words else "added" if self.rules else "no rules"


class WarrantRules:
    """The rules for these groups; without groups, the words of the broad lexicon ``gender`` are used."""

    def __init__(self, groups: Groups | None = None) -> None:
        self._counted = groups
        self._applies = groups is None or set(groups.names) >= PUBLISHED

    @cached_property
    def _groups(self) -> Marker:
        one = self._counted
        if one is None:
            return Marker(load_lexicon("gender"))
        return Marker(one.lexicon, one.tokenizer if can_mark(one.tokenizer) else TOKENIZER, one.overlap, one.names)

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
        """Apply the rules to a query."""
        if counts_english(self._groups.lexicon) and not is_english(query):
            return Warrant((), (), (), (), english=False)
        marks = self._groups.find(query)
        found = self._tried(query, marks) if self._applies else {}
        reasons = tuple(Reason(rule, _words(query, hits)) for rule, hits in found.items() if hits)
        return Warrant(_words(query, marks), _named(marks), reasons, tuple(found))

    def _tried(self, query: str, marks: list[Mark]) -> dict[str, list[Mark]]:
        # A first name that is also a word of the lexicon counts as a word, not as a name.
        taken = {(mark.start, mark.end) for mark in marks}
        named = [mark for mark in self._names.find(query) if (mark.start, mark.end) not in taken]
        return {"named person": named, "fixed name": self._fixed(query, marks), "biology": self._biology.find(query)}

    def groups(self, query: str) -> tuple[str, ...]:
        """Return the groups that the words of a query name."""
        if counts_english(self._groups.lexicon) and not is_english(query):
            return ()
        return _named(self._groups.find(query))

    def without_group(self, query: str) -> str | None:
        """Return the query with the words of a group replaced or removed so that it names none; None if impossible."""
        if not self.groups(query):
            return None
        made = self._swaps.reformulate(QueryBatch(("query",), (query,))).texts
        # The text without the words of the group is the last one, and changes the query least.
        return next((text for text in reversed(made) if not self.groups(text)), None)

    @cached_property
    def _swaps(self) -> SwapReformulator:
        return SwapReformulator(groups=self._counted)

    def _fixed(self, query: str, marks: list[Mark]) -> list[Mark]:
        """Return the words of a group that the list of swaps does not change, because they are part of a name."""
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
