"""An extension of griffe: the reference shows the value of a shared default, not the name of its constant."""

from __future__ import annotations

from typing import Any

import griffe

from askew.core import defaults

_PREFIX = "defaults."


class ShownDefaults(griffe.Extension):
    """Replaces ``defaults.NAME`` by its value, in parameters of functions and in fields of settings."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Parameters of a function."""
        for parameter in func.parameters:
            parameter.default = _value(parameter.default)

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Fields of a dataclass, which become parameters of its constructor."""
        attr.value = _value(attr.value)


def _value(default: Any) -> Any:
    text = str(default)
    if not text.startswith(_PREFIX):
        return default
    return repr(getattr(defaults, text.removeprefix(_PREFIX)))
