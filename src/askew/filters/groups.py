"""A filter that drops candidates that name a group which their original query does not name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from askew.core.groups import Groups, GroupsLike
from askew.core.text import Tokenizer
from askew.core.vocabulary import build_vocabulary
from askew.plugins import registry

GROUP_ADDED = "group added"
DEFAULT_LEXICON = "gender"


class GroupFilter:
    """Drops candidates that name a group which the original query does not name.

    ``groups``  a lexicon by name or file, or groups; the lexicon gender if not given.
    """

    name = "groups"

    def __init__(self, groups: GroupsLike | None = None) -> None:
        self._groups = Groups.of(DEFAULT_LEXICON if groups is None else groups)
        self._tokenize: Tokenizer = registry.load("tokenizer", self._groups.tokenizer)
        self._vocabulary = build_vocabulary(self._groups.counted, self._tokenize, self._groups.tokenizer)

    def settings(self) -> Mapping[str, Any]:
        """Return the words of the groups, identified by their content, and the tokenizer."""
        return {"lexicon": self._groups.counted.id, "tokens": self._groups.tokenizer}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return a list with None for each kept candidate, and the reason for each dropped candidate."""
        named = {text: self._named(text) for text in {*originals, *candidates}}
        pairs = zip(originals, candidates, strict=True)
        return [None if named[after] <= named[before] else GROUP_ADDED for before, after in pairs]

    def _named(self, text: str) -> set[int]:
        """Return the numbers of the groups that a text names."""
        counts = self._vocabulary.count(self._tokenize(text))
        return {group for group, count in enumerate(counts) if count}
