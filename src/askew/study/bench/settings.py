"""The settings of a bench with their defaults, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.core import defaults
from askew.core.errors import ConfigError, one_of

# Mitigation methods that need no extra package; the base ranker is always included.
DEFAULT_METHODS = (
    "qld", "greedy", "mmr", "detconstsort", "fairtopk", "reformulate:reduce", "reformulate:reduce+greedy",
    "reformulate:reduce:oracle",
)  # fmt: skip
# Turns the filter equivalence off: no reformulation is refused for its meaning.
FILTER_OFF = "off"
EQUIVALENCE = ("auto", "light", "minilm", "neural", FILTER_OFF)


@dataclass(frozen=True)
class BenchSettings:
    """The settings of a bench.

    ``base`` is the base ranker: mitigation methods build on this ranker and are compared with it. At most ``k``
    documents are ranked for each query. ``agree`` is a share of the top 10 of the original query: the results of a
    reformulation must keep at least this share. ``equivalence`` is the model that rejects reformulations with a
    different meaning: ``auto`` is the most accurate installed model. With ``off``, no reformulation is rejected. With
    ``sweep``, a method for which no strength is given is run with several strengths. ``method_settings`` maps a method,
    as written in the list of methods, to its settings: ``{"reformulate:reduce": {"count": 5}}``. ``out`` is the folder
    for the report with its tables, for the scores of each query, and for the runs. ``test`` is the test of differences,
    as in ``compare``. ``store`` is the folder that keeps
    indexes and counts of words.
    """

    base: str = "bm25"
    k: int = 100
    agree: float = 0.5
    equivalence: str = "auto"
    sweep: bool = False
    method_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    out: str | Path | None = None
    store: str | Path = ".askew"
    test: str = defaults.TEST

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"⟨k⟩ (the number of documents per query): expected 1 or more, found {self.k}")
        one_of(self.equivalence, EQUIVALENCE, "equivalence")
        if not 0 <= self.agree <= 1:
            raise ConfigError(
                f"⟨agree⟩: expected a share from 0 to 1 (the share of the top 10 that must be kept), found {self.agree}"
            )
