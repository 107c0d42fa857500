"""askew: measure how search results lean toward a group, and ask again with less lean.

The names below are the public surface; each is imported when it is first used, so that
``import askew`` stays fast and light.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "AskewError": "askew.core.errors",
    "ConfigError": "askew.core.errors",
    "DataError": "askew.core.errors",
    "Direction": "askew.core.measure",
    "Lexicon": "askew.core.lexicon",
    "Measure": "askew.core.measure",
    "MissingExtra": "askew.core.errors",
    "StageError": "askew.core.errors",
    "StoreError": "askew.core.errors",
    "UnknownName": "askew.core.errors",
    "compare": "askew.stages.compare",
    "measure": "askew.stages.measure",
}

__all__ = [  # noqa: PLE0604 - names as strings, sorted
    "__version__",
    *sorted(_PUBLIC),
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'askew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
