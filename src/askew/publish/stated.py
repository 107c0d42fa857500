"""Small checks of the values of facts; each error names the fact, the expected value and the found value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from askew.core.errors import ConfigError

_SHOWN = 80


def wrong(where: str, expected: str, found: Any) -> ConfigError:
    """The error for a fact with a wrong value."""
    shown = repr(found)
    return ConfigError(
        f"facts, {where}: expected {expected}, found {shown[:_SHOWN]}{'...' if len(shown) > _SHOWN else ''}"
    )


def mapping(value: Any, where: str) -> dict[str, Any]:
    """Return the value as a dictionary, or raise if it is no mapping with texts as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(where, "a mapping whose keys are strings", value)
    return dict(value)


def rows(value: Any, where: str) -> list[dict[str, Any]]:
    """Return the value as a list of dictionaries, or raise if it is no list of mappings."""
    if not isinstance(value, list):
        raise wrong(where, "a list of mappings", value)
    return [mapping(row, where) for row in value]


def text(stated: dict[str, Any], name: str, prefix: str = "") -> str:
    """Return the text of a fact, or raise if it is missing or blank."""
    value = stated.get(name)
    if not isinstance(value, str) or not value.strip():
        raise wrong(f"{prefix}{name}", "a text", value)
    return value


def some_of(value: Any, known: Collection[str], where: str, what: str) -> tuple[str, ...]:
    """Return known names, each once, from a list of names or a single name; raise for other values."""
    found = [value] if isinstance(value, str) else value
    right = isinstance(found, list) and all(isinstance(one, str) and one in known for one in found)
    if not right or not found or len(set(found)) < len(found):
        raise wrong(where, f"one of the {what} {', '.join(sorted(known))}, or a list of them", value)
    return tuple(found)


def numbers(value: Any, where: str, known: Collection[str]) -> dict[str, float]:
    """Return a mapping of known names to numbers, or raise if a name is unknown or a value is no number."""
    found = mapping(value, where)
    for name, one in found.items():
        if name not in known or not is_number(one):
            raise wrong(
                f"{where}.{name}", f"one of {', '.join(sorted(known))} as the key and a number as the value", one
            )
    return {name: float(one) for name, one in found.items()}


def is_number(value: Any) -> bool:
    """Whether the value is a number; Boolean values do not count as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def truth(value: Any, where: str) -> bool:
    """Return the value, or raise if it is not true or false."""
    if not isinstance(value, bool):
        raise wrong(where, "true or false", value)
    return value
