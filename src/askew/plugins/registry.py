"""Find plugins by kind and name. Nothing is imported before it is asked for."""

from __future__ import annotations

import difflib
import inspect
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from askew.core.errors import ConfigError, UnknownName
from askew.plugins.kinds import KINDS


@cache
def _found(kind: str) -> dict[str, EntryPoint]:
    if kind not in KINDS:
        raise UnknownName("kind of plugin", kind, KINDS)
    return {point.name: point for point in entry_points(group=f"askew.{kind}")}


def names(kind: str) -> list[str]:
    """The names of all plugins of a kind."""
    return sorted(_found(kind))


def origin(kind: str, name: str) -> str:
    """Which distribution brought a plugin, and from which module."""
    point = _found(kind)[name]
    dist = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"
    return f"{dist} ({point.value})"


def load(kind: str, name: str) -> Any:
    """The plugin object itself."""
    points = _found(kind)
    if name not in points:
        raise UnknownName(kind, name, points)
    try:
        return points[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the {kind} {name!r} from {origin(kind, name)} cannot be loaded: {error}") from error


def build(kind: str, name: str, settings: dict[str, Any], where: str = "") -> Any:
    """Call a plugin's constructor with settings, checked against its own signature."""
    make = load(kind, name)
    signature = inspect.signature(make)
    known = [p for p in signature.parameters if p != "self"]
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"{where + ': ' if where else ''}the {kind} {name!r} has no setting {key!r}{hint} "
                f"(it has: {', '.join(known) or 'none'})"
            )
    required = [p.name for p in signature.parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    missing = [key for key in required if key not in settings]
    if missing:
        raise ConfigError(f"the {kind} {name!r} needs the setting {missing[0]!r}")
    return make(**settings)
