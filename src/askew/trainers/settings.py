"""Set nested frozen dataclasses of settings from one flat mapping of names to values.

A name that the outer dataclass has sets its own field. Any other name sets the field in every part that has it; for
example, ``seed`` sets the seed of the negatives and of the training. A class may define ``presets`` (named starting
points, chosen by the setting ``preset_name``, by default ``preset``), ``begin`` (a function that returns the starting
point for the given settings) and ``parts`` (the names of the parts in use).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from askew.core.errors import ConfigError, UnknownName, check_name, check_names
from askew.core.groups import Groups

T = TypeVar("T")


def from_names(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Settings of a kind: the preset or the defaults, with the given values replaced; None counts as not given."""
    rest = {name: value for name, value in given.items() if value is not None}
    presets, key = getattr(kind, "presets", {}), getattr(kind, "preset_name", "preset")
    chosen = rest.pop(key, None) if presets else None
    if chosen is not None and chosen not in presets:
        raise UnknownName(key, str(chosen), presets, where)
    if chosen is not None:
        return with_names(rest, kind(**presets[chosen]), where)
    begin = getattr(kind, "begin", None)
    return with_names(rest, kind() if begin is None else begin(rest), where)


def with_names(given: Mapping[str, Any], into: T, where: str) -> T:
    """Replace some settings, including settings of the parts."""
    known = by_name(into)
    check_names("setting", given, known, where)
    parts = _parts(into)
    own = {name: value for name, value in given.items() if name in _own(into)}
    changed = {
        name: with_names({one: given[one] for one in given if one not in own and one in by_name(part)}, part, where)
        for name, part in parts.items()
    }
    return with_settings({**own, **changed}, into, where)


def by_name(settings: Any) -> dict[str, Any]:
    """Every setting with its value, by name; an outer setting hides a setting of a part with the same name."""
    found: dict[str, Any] = {}
    for part in _parts(settings).values():
        found = {**by_name(part), **found}
    return {**found, **{name: getattr(settings, name) for name in _own(settings)}}


def _own(settings: Any) -> list[str]:
    return [one.name for one in fields(settings) if not is_dataclass(getattr(settings, one.name))]


def _parts(settings: Any) -> dict[str, Any]:
    used = getattr(settings, "parts", None)
    found = {one.name: getattr(settings, one.name) for one in fields(settings)}
    return {name: one for name, one in found.items() if is_dataclass(one) and (used is None or name in used)}


def with_settings(given: Mapping[str, Any], into: T, where: str) -> T:
    """Replace some settings of a dataclass; an unknown name or a wrong type is an error.

    A tuple of texts may be given as one text with commas, and groups as any value that ``Groups.of`` accepts.
    """
    known = {one.name for one in fields(into)}  # type: ignore[arg-type]
    changed: dict[str, Any] = {}
    for name, value in given.items():
        check_name("setting", name, known, where)
        changed[name] = _as(getattr(into, name), Groups.of(value) if name == "groups" else value, name, where)
    return replace(into, **changed)  # type: ignore[type-var]


def _as(had: Any, value: Any, name: str, where: str) -> Any:
    """Convert a value to the type of the setting."""
    if isinstance(had, tuple) and isinstance(value, str):
        return tuple(one.strip() for one in value.split(",") if one.strip())
    if isinstance(had, tuple) and isinstance(value, list):
        return tuple(value)
    numbers = isinstance(had, float) and isinstance(value, int) and not isinstance(value, bool)
    if had is not None and type(value) is not type(had) and not numbers:
        raise ConfigError(f"{where}: expected {name} to be a {type(had).__name__}, found {value!r}")
    return float(value) if numbers else value
