"""Parsing and checking of the settings of selectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from askew.core.errors import ConfigError, UnknownName
from askew.core.measure import Direction, Measure, split_measures


def measure_texts(text: str, where: str) -> tuple[str, ...]:
    """Return the measures named in a setting; each must be a measure and occur once."""
    texts = tuple(split_measures(text))
    read = [Measure.parse(part) for part in texts]
    if not texts:
        raise ConfigError(f"{where}: expected one or more measures, such as RR@10; found none")
    if len(set(read)) < len(read):
        raise ConfigError(f"{where}: expected each measure once, found {text!r}")
    return texts


def one_measure(text: str, where: str) -> str:
    """The one measure named in a setting."""
    texts = measure_texts(text, where)
    if len(texts) > 1:
        raise ConfigError(f"{where}: expected one measure, found {text!r}")
    return texts[0]


def find_measures(texts: Iterable[str], directions: Mapping[str, Direction], where: str) -> tuple[str, ...]:
    """Return the name of each measure in the scores: the same text, or another text of the same measure."""
    by_measure = {Measure.parse(name): name for name in directions}
    found = []
    for text in texts:
        name = text if text in directions else by_measure.get(Measure.parse(text))
        if name is None:
            raise UnknownName("measure", text, directions, f"{where} (only scored measures can be used)")
        found.append(name)
    return tuple(found)


def parts(text: str, where: str) -> dict[str, str]:
    """Read ``name: value; name: value``; a name without a value has an empty value."""
    found: dict[str, str] = {}
    for part in text.split(";"):
        if not part.strip():
            continue
        name, _, value = (piece.strip() for piece in part.partition(":"))
        if not name or name in found:
            raise ConfigError(f"{where}: expected 'name: value; name: value', each name once, found {text!r}")
        found[name] = value
    if not found:
        raise ConfigError(f"{where}: expected one part or more, found {text!r}")
    return found


def whole_numbers(text: str, allowed: Iterable[int], where: str) -> frozenset[int]:
    """Read ``1 2 3``; each number must be one of the allowed numbers."""
    known = {str(number): number for number in allowed}
    found = text.replace(",", " ").split()
    for word in found:
        if word not in known:
            raise ConfigError(f"{where}: expected some of {', '.join(known)}, found {word!r}")
    return frozenset(known[word] for word in found)


def finite(value: float, where: str, least: float = -math.inf) -> float:
    """Return the value, which must be a finite number and not below ``least``."""
    if not least <= value or not math.isfinite(value):
        floor = f" of {least:g} or more" if math.isfinite(least) else ""
        raise ConfigError(f"{where}: expected a finite number{floor}, found {value}")
    return float(value)
