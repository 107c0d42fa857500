"""Settings by name: a frozen dataclass whose parts are such dataclasses too, set from one flat mapping.

A name that the dataclass itself has is its own; any other goes to every part that has it (``seed`` to the negatives and
to the training alike). A class may have ``presets``: named starting points, chosen by the setting that ``preset_name``
names (``preset`` if nothing is said); ``begin``, which makes the starting point from what is given where it depends on
it; and ``parts``, the names of the parts that are in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from askew.core.errors import ConfigError, UnknownName, check_name, check_names
from askew.core.groups import Groups

T = TypeVar("T")


def from_names(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Settings of a kind: a preset or the defaults, then what is given; None is not given."""
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
    """Settings with some of them replaced, those of the parts included."""
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
    """Every setting by name with its value; an outer one hides that of a part."""
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
    """A dataclass of settings with some of them replaced; an unknown name or a wrong type is an error.

    A text stands for several texts with commas between them, and groups may be given by whatever stands for them.
    """
    known = {one.name for one in fields(into)}  # type: ignore[arg-type]
    changed: dict[str, Any] = {}
    for name, value in given.items():
        check_name("setting", name, known, where)
        changed[name] = _as(getattr(into, name), Groups.of(value) if name == "groups" else value, name, where)
    return replace(into, **changed)  # type: ignore[type-var]


def _as(had: Any, value: Any, name: str, where: str) -> Any:
    """A value of the type that the setting has."""
    if isinstance(had, tuple) and isinstance(value, str):
        return tuple(one.strip() for one in value.split(",") if one.strip())
    if isinstance(had, tuple) and isinstance(value, list):
        return tuple(value)
    numbers = isinstance(had, float) and isinstance(value, int) and not isinstance(value, bool)
    if had is not None and type(value) is not type(had) and not numbers:
        raise ConfigError(f"{where}: expected {name} to be a {type(had).__name__}, found {value!r}")
    return float(value) if numbers else value
