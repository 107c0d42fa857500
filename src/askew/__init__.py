"""askew: measure demographic bias in search results, and find query reformulations that lean less.

The public names are those that ``__init__.pyi`` imports. Each is imported when it is first used, so that
``import askew`` stays fast and light.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_MODULES = {
    name.name: line.module or "" for line in _STUB.body if isinstance(line, ast.ImportFrom) for name in line.names
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'askew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
