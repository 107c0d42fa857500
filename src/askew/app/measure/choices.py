"""The combinations that ``sensitivity`` measures: all values of all axes that a measure has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from askew.app.measure.agreement import AXES
from askew.app.measure.inputs import MeasuresLike, measure_texts
from askew.core import defaults
from askew.core.errors import ConfigError, check_names
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.measure import Measure, Value
from askew.core.who import ANY, LEARNED
from askew.measures.catalogue import find_family
from askew.mentions.marks import can_mark
from askew.plugins import registry
from askew.plugins.kinds import MeasureFamily

# A comma-separated text, or a sequence of values.
Listed: TypeAlias = str | Sequence[str]
LexiconLike: TypeAlias = str | Path | Lexicon
# More digits than any valid cutoff has. Longer texts are cut before they are converted to a number.
_DIGITS = 12
_NAMES = {"tokens": "tokens", "sign": "signs", "missing": "missing", "who": "who"}


@dataclass(frozen=True)
class Axes:
    """The values of each axis, before they are restricted to those that a measure accepts."""

    measures: list[Measure]
    lexicons: dict[str, Lexicon]
    given: Mapping[str, tuple[str, ...]]
    cutoffs: tuple[int, ...]

    def combinations(self) -> Iterator[tuple[Measure, dict[str, Value]]]:
        """Each measure with all its parameters, and its value on each axis."""
        for base in self.measures:
            family = find_family(base.name)
            named = {key: value for key, value in base.params if key not in AXES}
            shown = Measure(base.name, tuple(sorted(named.items())), None, base.positional).text
            options = {axis: self._values(base, family, axis) for axis in AXES[1:]}
            present = {axis: values for axis, values in options.items() if values}
            for chosen in itertools.product(*present.values()):
                choices = dict(zip(present, chosen, strict=True))
                if self._unresolved(base, choices):
                    continue
                yield self._measure(base, choices), {"measure": shown, **choices}

    def _values(self, base: Measure, family: MeasureFamily, axis: str) -> tuple[Value, ...]:
        """The values of a measure on an axis: the one in its text, or else all given ones.

        Empty if the measure does not have this axis.
        """
        if axis == "cutoff":
            return (base.cutoff,) if base.cutoff is not None else self.cutoffs
        if axis not in family.parameters:
            return ()
        own = base.param(axis)
        if own is not None:
            return (own,)
        if axis == "lexicon":
            return tuple(self.lexicons)
        return tuple(value for value in self.given[axis] if not family.parameters[axis].expected(value))

    def _unresolved(self, base: Measure, choices: Mapping[str, Value]) -> bool:
        """Whether to skip a combination: its tokenizer cannot resolve mentions, and it was not requested explicitly."""
        told = base.param("who") is None and ANY in self.given["who"]
        return told and choices.get("who", ANY) != ANY and not can_mark(str(choices["tokens"]))

    def _measure(self, base: Measure, choices: Mapping[str, Value]) -> Measure:
        params = {axis: value for axis, value in choices.items() if axis != "cutoff"}
        if params.get("lexicon") in self.lexicons:
            params["lexicon"] = self.lexicons[str(params["lexicon"])].id
        cutoff = int(choices["cutoff"])
        return Measure(base.name, tuple(sorted((dict(base.params) | params).items())), cutoff, base.positional)


def axes_of(
    groups: Groups,
    measures: MeasuresLike | None,
    lexicons: Sequence[LexiconLike] | str | None,
    listed: Mapping[str, Listed | None],
    cutoffs: str | Sequence[int] | None,
) -> Axes:
    """Check the requested axes. An axis that is not given has its default values."""
    texts = measure_texts(measures)
    bases = [Measure.parse(text) for text in (defaults.SENSITIVITY_MEASURES if texts is None else texts)]
    for base in bases:
        if "mentions" not in find_family(base.name).reads:
            raise ConfigError(
                f"sensitivity: {base.name} is not a measure of lean, because it counts no words of a lexicon; leave "
                f"{base.name} out of measures="
            )
    usual = {
        "tokens": defaults.SENSITIVITY_TOKENS, "sign": defaults.SENSITIVITY_SIGNS,
        # The resolver was trained on words for women and men. For other groups the axis must be requested.
        "who": defaults.SENSITIVITY_WHO if set(groups.names) <= set(LEARNED) else (),
        "missing": ("error", *defaults.SENSITIVITY_MISSING),
    }  # fmt: skip
    given: dict[str, tuple[str, ...]] = {}
    for axis, values in usual.items():
        found = listed.get(axis)
        given[axis] = values if found is None else _split(found, _NAMES[axis])
        if found is not None:
            _check(axis, given[axis], bases)
    return Axes(bases, _lexicons(groups, lexicons), given, _cutoffs(cutoffs))


def _split(given: Listed, name: str) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    found = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not found:
        raise ConfigError(f"{name}=: expected one value or more, found none")
    return found


def _check(axis: str, values: Sequence[str], bases: Sequence[Measure]) -> None:
    """Raise an error for a value that no measure accepts, because it would otherwise be ignored silently."""
    if axis == "tokens":
        check_names("tokenizer", values, registry.names("tokenizer"), f"{_NAMES[axis]}=")
    taken = [parameters[axis] for base in bases if axis in (parameters := find_family(base.name).parameters)]
    for value in values:
        if not any(not parameter.expected(value) for parameter in taken):
            known = sorted({str(choice) for parameter in taken for choice in parameter.choices})
            name = _NAMES[axis]
            if not known:
                raise ConfigError(f"{name}=: no requested measure has this parameter; leave out {name}=")
            raise ConfigError(f"{name}=: expected one or more of {', '.join(known)}; found {value!r}")


def _lexicons(groups: Groups, given: Sequence[LexiconLike] | str | None) -> dict[str, Lexicon]:
    """The lexicons by display name. Default: that of the groups and all shipped lexicons with these groups."""
    if given is None:
        shipped = [load_lexicon(name) for name in shipped_lexicons()]
        found = [groups.lexicon, *(one for one in shipped if set(groups.names) <= set(one.group_names))]
    else:
        found = [load_lexicon(one) for one in (_split(given, "lexicons") if isinstance(given, str) else given)]
        if not found:
            raise ConfigError("lexicons=: expected one lexicon or more, found none")
    for one in found:
        check_names("group", groups.names, one.group_names, f"lexicon {one.name}")
    distinct = list({one.id: one for one in found}.values())
    names = [one.name for one in distinct]
    return {one.name if names.count(one.name) == 1 else one.id: one for one in distinct}


def _cutoffs(given: str | Sequence[int] | None) -> tuple[int, ...]:
    if given is None:
        return defaults.SENSITIVITY_CUTOFFS
    texts = given.split(",") if isinstance(given, str) else [str(one) for one in given]
    found = tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not found or not all(text.isascii() and text.isdigit() and int(text[:_DIGITS]) > 0 for text in found):
        raise ConfigError(f"cutoffs=: expected whole numbers of 1 or more, as in 5,10,20; found {', '.join(texts)!r}")
    return tuple((Measure("cutoffs") @ int(text[:_DIGITS])).cutoff or 0 for text in found)
