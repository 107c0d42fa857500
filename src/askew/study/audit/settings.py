"""The settings of an audit with their defaults, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.core import defaults
from askew.core.errors import ConfigError


@dataclass(frozen=True)
class AuditSettings:
    """The settings of an audit.

    The top ``k`` results of each query are measured. The report shows the neutral queries whose results lean beyond
    chance (the worst queries), with the false-discovery rate at most ``level``; at most ``worst`` of them. At most
    ``tries`` reformulations of each worst query are searched with the engine. ``methods`` names the reformulators. The
    default is ``reduce``; if the packages that ``rewrite`` needs are installed, the default is ``reduce`` and
    ``rewrite``. A reformulation is suggested only if it reduces the lean of the query by at least the share
    ``reduction`` and keeps at least the share ``agree`` of the top results of the query.
    ``method_settings`` maps the name of a reformulator, or of the filter ``equivalence``, to its settings:
    ``{"equivalence": {"model": "light"}}``. ``missing`` decides how a result without a text is treated.

    ``out`` is the folder for the report, its numbers and its tables. While the audit runs, the answers of the engine
    are kept beside that folder. Without ``out``, they are kept in ``store``. They are removed when the audit is
    complete. To keep the answers, set ``cache`` in the settings of the engine to a file. With ``keep_queries``,
    audit.json and the tables also have the texts of queries. The page report.html always shows the texts of the worst
    queries.
    """

    k: int = 10
    worst: int = 20
    level: float = defaults.LEVEL
    tries: int = defaults.SUGGESTIONS
    methods: Sequence[str] | None = None
    method_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    agree: float = 0.5
    reduction: float = 0.1
    missing: str | None = None
    out: str | Path | None = None
    store: str | Path | None = None
    keep_queries: bool = False

    def __post_init__(self) -> None:
        for name, value, least in (("k", self.k, 1), ("worst", self.worst, 0), ("tries", self.tries, 0)):
            if value < least:
                raise ConfigError(f"⟨{name}⟩: expected {least} or more, found {value}")
        for name, share in (("agree", self.agree), ("reduction", self.reduction), ("level", self.level)):
            if not 0 <= share <= 1:
                raise ConfigError(f"⟨{name}⟩: expected a share from 0 to 1, found {share}")
