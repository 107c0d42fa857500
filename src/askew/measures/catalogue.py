"""From the text a user writes to a complete measure: family found, parameters checked and filled in."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from askew.core.errors import AskewError, ConfigError, DataError, UnknownName, check_name, check_names
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.measure import UNBOUNDED, Bounds, Direction, Measure, Value
from askew.core.shipped import DATA
from askew.core.who import ANY, WHO, classes_of, resolver_id
from askew.measures.borrowed import effectiveness_names
from askew.measures.common import pick_groups
from askew.measures.effectiveness import COLUMNAR, find_effectiveness
from askew.plugins import registry
from askew.plugins.kinds import MeasureFamily

_PRESETS = DATA / "presets.toml"
ALIASES = {"LIWC": "LexiconShare"}
# How a signature names a background run; what follows is the fingerprint of its content.
_RUN = "run@"
_LEXICON_ID = re.compile(r".+@[0-9a-f]{12}")


@dataclass(frozen=True)
class Preset:
    """A published way of measuring, as data."""

    name: str
    title: str
    source: str
    measures: tuple[str, ...]
    defaults: Mapping[str, Mapping[str, Value]]
    published_reading: bool = False
    same_queries: bool = False
    mean_digits: int | None = None


@cache
def presets() -> dict[str, Preset]:
    """The presets that come with askew."""
    data = tomllib.loads(_PRESETS.read_text(encoding="utf-8"))
    return {name: Preset(name=name, **{**entry, "measures": tuple(entry["measures"])}) for name, entry in data.items()}


def find_preset(name: str) -> Preset:
    """A preset by name."""
    check_name("preset", name, presets())
    return presets()[name]


@dataclass(frozen=True)
class MeasureRequest:
    """A measure as asked for, as it is computed, and by whom."""

    text: str
    measure: Measure
    family: MeasureFamily
    background: str = ""

    @property
    def signature(self) -> str:
        """The full text: two numbers with the same signature are comparable, unless a run is its own background."""
        return str(self.measure.with_params(self.shown))

    @property
    def shown(self) -> dict[str, Value]:
        """The parameters that stand in the signature.

        ``background`` names the background run by its content, once it is read.
        """
        unread = self.family.unread(self.measure) if hasattr(self.family, "unread") else ()
        shown = {key: value for key, value in self.measure.params if key not in unread and not self._goes_without(key)}
        if self.background and shown.get("background") == "run":
            shown["background"] = f"{_RUN}{self.background}"
        return shown

    @property
    def unsaid(self) -> dict[str, Value]:
        """The parameters of the signature that are neither the usual ones nor in the text that was asked for."""
        written = Measure.parse(self.text)
        said, usual = _named(written, self.family), _usual(written, self.family)
        # In the family's own order: what matters most comes first.
        return {
            key: self.shown[key]
            for key in self.family.parameters
            if key in self.shown and key not in said and self.shown[key] != usual.get(key)
        }

    def _goes_without(self, key: str) -> bool:
        parameter = self.family.parameters[key]
        return parameter.quiet and self.measure.param(key) == parameter.default

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the measure compares; none where it reads no mentions."""
        given = self.measure.param("groups")
        return tuple(re.split("[-+]", str(given))) if "mentions" in self.family.reads and given else ()

    @property
    def direction(self) -> Direction:
        """Which way is better."""
        return self.family.direction(self.measure)

    @property
    def bounds(self) -> Bounds:
        """The lowest and the highest value that a query can have; infinite where the family states none."""
        low, high = self.family.bounds(self.measure) if hasattr(self.family, "bounds") else UNBOUNDED
        digits = self.measure.param("digits")
        if not isinstance(digits, int):
            return low, high
        # Rounding may carry a value past the bound itself.
        return min(low, round(low, digits)), max(high, round(high, digits))

    def check(self) -> None:
        """Raise ConfigError where the measure can never be computed here, whatever the data."""
        if hasattr(self.family, "check"):
            self.family.check(self.measure)


@dataclass
class Catalogue:
    """Completes measures. ``overrides`` are the command's options; the measure's own text wins over them.

    ``lexicons`` are those at hand, by their ids: a measure that names one of them gets it, whatever its file is called.
    ``groups`` are those that measures count unless their own text says otherwise.
    """

    preset: Preset | None = None
    overrides: Mapping[str, Value] = field(default_factory=dict)
    lexicons: dict[str, Lexicon] = field(default_factory=dict)
    groups: Groups | None = None

    def complete(self, texts: Iterable[str]) -> list[MeasureRequest]:
        """Each measure with all its parameters."""
        asked = [self._complete(text) for text in texts]
        if not asked:
            raise ConfigError("no measure was asked for: give some with measures=, for instance 'RR@10 ARaB(tf)@10'")
        return asked

    def _complete(self, text: str) -> MeasureRequest:
        measure = Measure.parse(text)
        family = find_family(measure.name)
        own = _named(measure, family)
        defaults = {key: parameter.default for key, parameter in family.parameters.items()}
        overrides = {key: value for key, value in self.overrides.items() if key in family.parameters}
        params = {**defaults, **self._from_preset(family), **self._from_groups(family), **overrides, **own}
        self._check(text, params, family)
        filled = _with_resolver(text, {key: value for key, value in params.items() if value is not None})
        complete = Measure(family.name, (), measure.cutoff).with_params(self._with_lexicon(family, filled))
        return MeasureRequest(text, complete, family)

    def _from_preset(self, family: MeasureFamily) -> dict[str, Value]:
        if self.preset is None:
            return {}
        found = dict(self.preset.defaults.get(family.name, {}))
        if "judgements" in family.reads:
            found = {**self.preset.defaults.get("effectiveness", {}), **found}
        if self.preset.published_reading and "reading" in family.parameters:
            found["reading"] = "published"
        return found

    def _from_groups(self, family: MeasureFamily) -> dict[str, Value]:
        if self.groups is None or "lexicon" not in family.parameters:
            return {}
        self.lexicons[self.groups.lexicon.id] = self.groups.lexicon
        found: dict[str, Value] = {"lexicon": self.groups.lexicon.id}
        if self.groups.tokens is not None:
            found["tokens"] = self.groups.tokens
        if "groups" in family.parameters:
            way = family.parameters["groups"].default
            found["groups"] = self.groups.together if way == "all" else self.groups.difference
        if self.groups.overlap != "all":
            found["overlap"] = self.groups.overlap
        return {key: value for key, value in found.items() if key in family.parameters}

    def _check(self, text: str, params: Mapping[str, Value | None], family: MeasureFamily) -> None:
        for key, value in params.items():
            check_name("parameter", key, family.parameters, f"measure {text}")
            expected = "" if value is None else family.parameters[key].expected(value)
            if expected:
                raise ConfigError(f"measure {text}: {key} must be {expected}; found {value!r}")
        if "mentions" in family.reads and "tokens" in params:
            known = registry.names("tokenizer")
            check_name("tokenizer", str(params["tokens"]), known, f"measure {text}")

    def _with_lexicon(self, family: MeasureFamily, params: dict[str, Value]) -> dict[str, Value]:
        """Name the lexicon by its content, and the groups by their names."""
        if "lexicon" not in params:
            return params
        lexicon = self._lexicon(str(params["lexicon"]))
        self.lexicons[lexicon.id] = lexicon
        complete: dict[str, Value] = {**params, "lexicon": lexicon.id}
        # The default tells how a family writes its groups; a plugin may have its own way.
        way = family.parameters["groups"].default if "groups" in params else None
        if way == "auto":
            probe = Measure(family.name).with_params(complete)
            pair = [lexicon.group_names[i] for i in pick_groups(probe, lexicon.group_names) if i is not None]
            complete["groups"] = "-".join(pair)
        elif way == "all" and params["groups"] == "all":
            complete["groups"] = "+".join(lexicon.group_names)
        elif way == "all":
            check_names("group", str(params["groups"]).split("+"), lexicon.group_names, f"measure {family.name}")
        return complete

    def _lexicon(self, text: str) -> Lexicon:
        if text in self.lexicons:
            return self.lexicons[text]
        if _LEXICON_ID.fullmatch(text) and text.partition("@")[0] not in shipped_lexicons():
            given = "none" if self.groups is None else self.groups.lexicon.id
            raise DataError(f"lexicon {text!r} was asked for: give its file with lexicon=; given: {given}")
        return load_lexicon(text)


class UnknownMeasure(UnknownName):
    """A measure that nothing here has. The message names those of lean and the nearest, not the whole long list."""

    def __init__(self, name: str) -> None:
        names = {known.lower(): known for known in family_names()}
        near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
        super().__init__("measure", name, {*registry.names("measure"), *(names[found] for found in near)})
        self.args = (f"{self.args[0]}, and those that askew list measures shows",)


def find_family(name: str) -> MeasureFamily:
    """The family of a name: a plugin, or one of ir_measures."""
    name = ALIASES.get(name, name)
    if name in registry.names("measure"):
        return cast(MeasureFamily, registry.load("measure", name))
    try:
        return find_effectiveness(name)
    except UnknownName:
        raise UnknownMeasure(name) from None


def family_names(available: bool = False) -> list[str]:
    """All names a measure may have, or only those that can be computed with what is installed."""
    return sorted({*registry.names("measure"), *ALIASES, *COLUMNAR, *effectiveness_names(available)})


def is_shipped(lexicon_id: str) -> bool:
    """Whether an id is that of a lexicon that comes with askew, by name and content."""
    name = lexicon_id.partition("@")[0]
    return name in shipped_lexicons() and load_lexicon(name).id == lexicon_id


def _with_resolver(text: str, params: dict[str, Value]) -> dict[str, Value]:
    """Name the classes of mentions in their order, and the resolver by its content; none where all mentions count."""
    if "who" not in params:
        return params
    who = "+".join(classes_of(str(params["who"]), f"measure {text}"))
    every = who == "+".join(WHO)
    found = {**params, "who": ANY if every else who}
    if every and params.get("on") != "relevant":
        return {key: value for key, value in found.items() if key != "resolver"}
    return {**found, "resolver": resolver_id(str(params["resolver"]))}


def _usual(measure: Measure, family: MeasureFamily) -> dict[str, Value | None]:
    """The parameters of a measure of which only the name and the cutoff are given, with no option and no preset."""
    bare = Measure(measure.name, (), measure.cutoff)
    try:
        (asked,) = Catalogue(overrides={"background": "self"}).complete([str(bare)])
    except AskewError:
        # A plugin's measure may need to be told something, such as a lexicon: it has no usual form.
        return {key: parameter.default for key, parameter in family.parameters.items()}
    return dict(asked.measure.params)


def _named(measure: Measure, family: MeasureFamily) -> dict[str, Value]:
    """Positional values by their names."""
    if len(measure.positional) > len(family.positional):
        takes = ", ".join(family.positional) or "none"
        raise ConfigError(f"measure {measure.name}: too many values without a name; it takes {takes}")
    named: dict[str, Any] = dict(zip(family.positional, measure.positional, strict=False))
    for key, value in measure.params:
        if key in named:
            raise ConfigError(f"measure {measure.name}: the parameter {key!r} is given twice")
        named[key] = value
    if str(named.get("background", "")).startswith(_RUN):
        named["background"] = "run"
    return named
