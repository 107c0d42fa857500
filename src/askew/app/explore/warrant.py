"""Whether a group that a query names has a reason: by rules that are named, never by a verdict on the person who asks.

The rules are for the groups female and male; other groups have none.

``named person``  the query has a first name of the shipped list.
``fixed name``    the word is part of a name of something (burger king, queen anne), by the list of the swaps.
``biology``       the query has a word of bodies, birth or breeding (``warranted.toml``).

Results that lean may then be what was asked for. Without a reason the group may have been added to the query.
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
    """A rule that holds, and the words of the query that it found."""

    rule: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Warrant:
    """What a query says of groups: the words that name one, and the rules by which that has a reason.

    ``rules`` are those that were tried; none where the groups counted have no rules. ``english`` is false where the
    query does not look like English: then neither words nor rules, which are English, are looked for.
    """

    words: tuple[str, ...]
    groups: tuple[str, ...]
    reasons: tuple[Reason, ...]
    rules: tuple[str, ...]
    english: bool = True

    @property
    def status(self) -> str:
        """``warranted`` where a rule holds; ``none`` where no group is named; ``added``, or ``no rules`` to tell by."""
        if self.reasons:
            return "warranted"
        return "none" if not self.words else "added" if self.rules else "no rules"


class WarrantRules:
    """The rules for these groups. Without groups a query is looked at with the broad lexicon ``gender``."""

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
        """What the rules say of a query."""
        if counts_english(self._groups.lexicon) and not is_english(query):
            return Warrant((), (), (), (), english=False)
        marks = self._groups.find(query)
        found = self._tried(query, marks) if self._applies else {}
        reasons = tuple(Reason(rule, _words(query, hits)) for rule, hits in found.items() if hits)
        return Warrant(_words(query, marks), _named(marks), reasons, tuple(found))

    def _tried(self, query: str, marks: list[Mark]) -> dict[str, list[Mark]]:
        # A name that is also a word of the lexicon stays a word.
        taken = {(mark.start, mark.end) for mark in marks}
        named = [mark for mark in self._names.find(query) if (mark.start, mark.end) not in taken]
        return {"named person": named, "fixed name": self._fixed(query, marks), "biology": self._biology.find(query)}

    def groups(self, query: str) -> tuple[str, ...]:
        """The groups that the words of a query name."""
        if counts_english(self._groups.lexicon) and not is_english(query):
            return ()
        return _named(self._groups.find(query))

    def without_group(self, query: str) -> str | None:
        """The query with the words of a group exchanged or left out so that it names none, where there is a way."""
        if not self.groups(query):
            return None
        made = self._swaps.reformulate(QueryBatch(("query",), (query,))).texts
        # To leave the group out comes last, and changes the query least.
        return next((text for text in reversed(made) if not self.groups(text)), None)

    @cached_property
    def _swaps(self) -> SwapReformulator:
        return SwapReformulator(groups=self._counted)

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
