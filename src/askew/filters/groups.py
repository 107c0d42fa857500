"""A filter that drops candidates that name a group which their original query does not name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from askew.core.groups import Groups, GroupsLike
from askew.mentions.count import MentionCounter

GROUP_ADDED = "group added"
DEFAULT_LEXICON = "gender"


class GroupFilter:
    """Drops candidates that name a group which the original query does not name.

    ``groups``  a lexicon by name or file, or groups; the lexicon gender if not given.
    """

    name = "groups"

    def __init__(self, groups: GroupsLike | None = None) -> None:
        self._groups = Groups.of(DEFAULT_LEXICON if groups is None else groups)
        self._counter = MentionCounter(self._groups.counted, self._groups.tokenizer)

    def settings(self) -> Mapping[str, Any]:
        """Return the words of the groups, identified by their content, and the tokenizer."""
        return {"lexicon": self._groups.counted.id, "tokens": self._groups.tokenizer}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return a list with None for each kept candidate, and the reason for each dropped candidate."""
        before, after = (self._counter.count(pa.array(texts, pa.string())).counts for texts in (originals, candidates))
        added = ((after > 0) & (before == 0)).any(axis=1)
        return [GROUP_ADDED if one else None for one in added.tolist()]
