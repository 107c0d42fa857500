"""The settings of a log analysis. All defaults are defined here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from askew.core.errors import ConfigError

if TYPE_CHECKING:
    from askew.core.groups import GroupsLike


@dataclass(frozen=True)
class LogSettings:
    """The settings of the analysis of a log.

    ``format`` is a log format (``askew list log_formats``). ``columns`` maps the field names of askew (``user``,
    ``time``, ``query`` and others) to the column names of the log. ``groups`` are the groups whose words are searched
    for in queries. ``page_lexicon`` is another lexicon of the same groups: its words are counted in the texts of
    result pages. Without ``page_lexicon``, the words of ``groups`` are counted there. If the log does not mark
    sessions, the session of a user ends after ``gap`` minutes without a row of this user.

    ``topics`` is the source of query topics: ``"column"`` (a column of the log), ``"words"`` (word lists of askew), a
    ``.toml`` file with the words of each topic, the name of a classifier, or ``"none"``. ``"auto"`` uses the column if
    the log has one, else the word lists.

    ``vectors`` is a file of word vectors; the vectors measure how strongly a query is associated with each group.
    ``vocabulary`` is the file with the words of these vectors. ``pairs`` is a file of word pairs, such as "he" and
    "she", whose differences point from one group to the other.

    An even share is 1 divided by the number of groups. ``margin`` (from 0 to below 1) says how far the share of a
    group on a result page may be from an even share and still count as even. A text is in the report only if at least
    ``min_users`` users typed it. A site is in the report only if it occurs in the results of at least ``min_events``
    reformulations by at least ``min_users`` users. ``review`` is a file in which you accept or reject further terms
    for the lexicon.
    """

    format: str = "tsv"
    columns: Mapping[str, str] | None = None
    groups: GroupsLike = "gsqr2023"
    page_lexicon: GroupsLike | None = None
    gap: float = 30.0
    topics: str = "auto"
    vectors: Path | None = None
    vocabulary: Path | None = None
    pairs: Path | None = None
    margin: float = 0.2
    min_users: int = 5
    min_events: int = 20
    review: Path | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.gap < 1e6:
            raise ConfigError(f"⟨gap⟩: expected a number of minutes above 0, found {self.gap}")
        if not 0 <= self.margin < 1:
            raise ConfigError(f"⟨margin⟩: expected a number from 0 to below 1, found {self.margin}")
        for name in ("min_users", "min_events", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"⟨{name}⟩: expected 1 or more, found {value}")
        for name in ("vectors", "vocabulary", "pairs", "review"):
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, Path(value))
        if self.review is not None and not self.review.parent.is_dir():
            raise ConfigError(
                f"⟨review⟩: there is no folder {self.review.parent} for {self.review}; create the folder first"
            )
