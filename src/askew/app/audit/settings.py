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
    """How an engine is audited.

    ``k`` results of each query are measured. The ``worst`` queries are shown, and at most ``tries`` reformulations of
    each are searched with the engine. ``methods`` write them; without any these are ``rewrite``, where its extra is
    installed, and ``reduce``. A reformulation is suggested only if it reduces the lean by the share ``reduction``, or
    more, and keeps the share ``agree`` of the top results.
    ``method_settings`` are those of a method or of the filter ``equivalence``: ``{"equivalence": {"model": "light"}}``.
    ``missing`` says what becomes of a result without a text, ``resolver`` what estimates the parts of the lean.

    With ``out`` the report, its numbers and tables are written to that folder. Until an audit is complete, the answers
    of the engine are kept beside that folder, or in ``store`` where there is none; then they are removed. ``cache``
    among the settings of an engine names a file that stays. ``keep_queries`` writes the texts of queries also to
    audit.json and the tables; the page shows those of the worst queries in any case.
    """

    k: int = 10
    worst: int = 20
    tries: int = defaults.SUGGESTIONS
    methods: Sequence[str] | None = None
    method_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    agree: float = 0.5
    reduction: float = 0.1
    missing: str | None = None
    resolver: str = defaults.RESOLVER
    out: str | Path | None = None
    store: str | Path | None = None
    keep_queries: bool = False

    def __post_init__(self) -> None:
        for name, value, least in (("k", self.k, 1), ("worst", self.worst, 0), ("tries", self.tries, 0)):
            if value < least:
                raise ConfigError(f"{name}=: expected {least} or more, found {value}")
        for name, share in (("agree", self.agree), ("reduction", self.reduction)):
            if not 0 <= share <= 1:
                raise ConfigError(f"{name}=: expected a share from 0 to 1, found {share}")
