"""Turns the text of a measure into a complete measure: finds the family, checks the parameters and adds defaults."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from askew.core import plugins as registry
from askew.core.errors import AskewError, ConfigError, DataError, UnknownName, check_name, check_names
from askew.core.files import DATA
from askew.core.groups import ANY, NEURAL, WHO, Groups, classes_of, resolver_id
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.measure import UNBOUNDED, Bounds, Direction, Measure, Value
from askew.core.protocols import MeasureFamily
from askew.measures.common import NONE, pick_groups
from askew.measures.effectiveness import COLUMNAR, effectiveness_names, find_effectiveness

# Measures as Python objects: ``nDCG @ 10``, ``ARaB("tf", sign="abs") @ 10``, ``RR(rel=2) @ 10``.

AP = Measure("AP")
ARaB = Measure("ARaB")
AWRF = Measure("AWRF")
Bpref = Measure("Bpref")
ERR = Measure("ERR")
EXP = Measure("EXP")
FaiRR = Measure("FaiRR")
Judged = Measure("Judged")
LexiconShare = Measure("LexiconShare")
NDKL = Measure("NDKL")
NFaiRR = Measure("NFaiRR")
P = Measure("P")
R = Measure("R")
RBP = Measure("RBP")
RR = Measure("RR")
RaB = Measure("RaB")
Rprec = Measure("Rprec")
Skew = Measure("Skew")
Success = Measure("Success")
TExFAIR = Measure("TExFAIR")
nDCG = Measure("nDCG")  # noqa: N816 - its name in the field


_PRESETS = DATA / "presets.toml"
ALIASES = {"LIWC": "LexiconShare"}
# The prefix of a background run in a signature. The fingerprint of its content follows.
_RUN = "run@"
_LEXICON_ID = re.compile(r".+@[0-9a-f]{12}")


@dataclass(frozen=True)
class Preset:
    """The settings of a published way of measuring."""

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
    """The presets that ship with askew."""
    data = tomllib.loads(_PRESETS.read_text(encoding="utf-8"))
    return {name: Preset(name=name, **{**entry, "measures": tuple(entry["measures"])}) for name, entry in data.items()}


def find_preset(name: str) -> Preset:
    """A preset by name."""
    check_name("preset", name, presets())
    return presets()[name]


@dataclass(frozen=True)
class MeasureRequest:
    """A requested measure: its text, the complete measure, and the family that computes it."""

    text: str
    measure: Measure
    family: MeasureFamily
    background: str = ""

    @property
    def signature(self) -> str:
        """The complete text of the measure. Two values with the same signature are comparable.

        The exception is NFaiRR with ``background=self``, where the documents of each run define its ideal.
        """
        return str(self.measure.with_params(self.shown))

    @property
    def shown(self) -> dict[str, Value]:
        """The parameters that the signature contains.

        Once the background run is read, ``background`` has the fingerprint of its content.
        """
        unread = self.family.unread(self.measure) if hasattr(self.family, "unread") else ()
        known = self.family.parameters
        hidden = {key for key, value in self.measure.params if known[key].quiet and value == known[key].default}
        shown = {key: value for key, value in self.measure.params if key not in unread and key not in hidden}
        if self.background and shown.get("background") == "run":
            shown["background"] = f"{_RUN}{self.background}"
        return shown

    @property
    def unsaid(self) -> dict[str, Value]:
        """The parameters of the signature that differ from the defaults and are not in the requested text."""
        written = Measure.parse(self.text)
        said = _named(written, self.family)
        try:
            # The parameters if only the name and the cutoff are given, without options and presets.
            (bare,) = Catalogue().complete([str(Measure(written.name, (), written.cutoff))])
            usual: dict[str, Value | None] = dict(bare.measure.params)
        except AskewError:
            # A plugin's measure may have a required parameter, such as a lexicon.
            usual = {key: parameter.default for key, parameter in self.family.parameters.items()}
        # In the order of the family's parameters, the most important first.
        return {
            key: self.shown[key]
            for key in self.family.parameters
            if key in self.shown and key not in said and self.shown[key] != usual.get(key)
        }

    @property
    def judged(self) -> bool:
        """Whether the measure is computed from relevance judgements."""
        return "judgements" in self.family.reads

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the measure compares; empty if it does not read mentions."""
        given = self.measure.param("groups")
        return tuple(re.split("[-+]", str(given))) if "mentions" in self.family.reads and given else ()

    @property
    def direction(self) -> Direction:
        """Which values of the measure are better."""
        return self.family.direction(self.measure)

    @property
    def bounds(self) -> Bounds:
        """The lowest and the highest value that a query can have; infinite if the family does not state them."""
        low, high = self.family.bounds(self.measure) if hasattr(self.family, "bounds") else UNBOUNDED
        if self.measure.param("excess", NONE) != NONE:
            low, high = low - high, high - low
        digits = self.measure.param("digits")
        if not isinstance(digits, int):
            return low, high
        # Rounding can move a value beyond the bound.
        return min(low, round(low, digits)), max(high, round(high, digits))

    def check(self) -> None:
        """Raise ConfigError if this installation cannot compute the measure, for example if a package is missing."""
        if hasattr(self.family, "check"):
            self.family.check(self.measure)


@dataclass
class Catalogue:
    """Completes measures. ``overrides`` are the command's options; the text of a measure takes precedence over them.

    ``lexicons`` are the loaded lexicons by id. A measure that names such an id uses this lexicon, without its file.
    ``groups`` are the groups of every measure with a text that names no others. With ``has_background``, measures are
    normalized by the background run unless their text or the preset says otherwise.
    """

    preset: Preset | None = None
    overrides: Mapping[str, Value] = field(default_factory=dict)
    lexicons: dict[str, Lexicon] = field(default_factory=dict)
    groups: Groups | None = None
    has_background: bool = False

    def complete(self, measures: Iterable[str | Measure]) -> list[MeasureRequest]:
        """Each measure with all its parameters."""
        asked = [self._complete(measure) for measure in measures]
        if not asked:
            raise ConfigError(
                "no measure requested: give one or more with ⟨measures⟩, for instance 'RR@10 ARaB(tf)@10'"
            )
        return asked

    def _complete(self, requested: str | Measure) -> MeasureRequest:
        measure = Measure.parse(requested) if isinstance(requested, str) else requested
        text = requested if isinstance(requested, str) else requested.text
        family = measure.family or find_family(measure.name)
        own = _named(measure, family)
        defaults = {key: parameter.default for key, parameter in family.parameters.items()}
        if self.has_background and "background" in defaults:
            defaults["background"] = "run"
        overrides = {key: value for key, value in self.overrides.items() if key in family.parameters}
        params = {**defaults, **self._from_preset(family), **self._from_groups(family), **overrides, **own}
        self._check(text, params, family)
        filled = {key: value for key, value in params.items() if value is not None}
        if "who" in filled:
            # Classes of mentions in one order, and the resolver by its id. If no resolver is needed, it is removed.
            who = "+".join(classes_of(str(filled["who"]), f"measure {text}"))
            filled["who"] = ANY if who == "+".join(WHO) else who
            if filled["who"] == ANY and filled.get("on") != "relevant":
                del filled["resolver"]
            else:
                named = str(filled["resolver"])
                filled["resolver"] = resolver_id(NEURAL if named == "auto" else named)
        name = measure.name if registry.IN_FILE.fullmatch(measure.name) else family.name
        complete = Measure(name, (), measure.cutoff).with_params(self._with_lexicon(family, filled))
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
            every = family.parameters["groups"].default == "all"
            found["groups"] = self.groups.together if every else self.groups.difference
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
        """Replace the lexicon by its id, and the default of ``groups`` by the names of the groups."""
        if "lexicon" not in params:
            return params
        requested = str(params["lexicon"])
        if requested in self.lexicons:
            lexicon = self.lexicons[requested]
        elif _LEXICON_ID.fullmatch(requested) and requested.partition("@")[0] not in shipped_lexicons():
            given = "is not set" if self.groups is None else f"is {self.groups.lexicon.id!r}"
            raise DataError(
                f"a measure needs the lexicon {requested!r}, which askew does not ship, but ⟨lexicon⟩ {given}; "
                "set ⟨lexicon⟩ to the file of the needed lexicon"
            )
        else:
            lexicon = load_lexicon(requested)
        self.lexicons[lexicon.id] = lexicon
        complete: dict[str, Value] = {**params, "lexicon": lexicon.id}
        # The default shows how a family writes its groups. A plugin may write them in another way.
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


class UnknownMeasure(UnknownName):
    """A measure is unknown. The message lists only the plugins and the closest names, since the full list is long."""

    def __init__(self, name: str) -> None:
        names = {known.lower(): known for known in family_names()}
        near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
        listed = {*registry.names("measure"), *(names[found] for found in near)}
        super().__init__("measure", name, listed, more=", and all others that 'askew list measures' shows")


def find_family(name: str) -> MeasureFamily:
    """The family of a measure by name: a plugin, a measure of ir_measures, or ``FILE.py:CLASS``."""
    if registry.IN_FILE.fullmatch(name):
        return family_of(registry.load_from_file(name, "measure"), name)
    name = ALIASES.get(name, name)
    if name in registry.names("measure"):
        return cast(MeasureFamily, registry.load("measure", name))
    try:
        return find_effectiveness(name)
    except UnknownName:
        raise UnknownMeasure(name) from None


def family_of(thing: object, name: str) -> MeasureFamily:
    """An object with the measure protocol, or one of a class with the protocol; an error says what it lacks."""
    family = thing() if isinstance(thing, type) else thing
    if isinstance(family, MeasureFamily):
        return family
    parts = ("name", "about", "positional", "parameters", "reads", "direction", "score")
    lacks = ", ".join(part for part in parts if not hasattr(family, part))
    raise ConfigError(f"measure {name}: expected an object with the measure protocol (MeasureFamily), it lacks {lacks}")


def family_names(available: bool = False) -> list[str]:
    """The names of all measures, or only of those that this installation can compute."""
    return sorted({*registry.names("measure"), *ALIASES, *COLUMNAR, *effectiveness_names(available)})


def _named(measure: Measure, family: MeasureFamily) -> dict[str, Value]:
    """The parameters in the measure's text, positional ones included, by name."""
    if len(measure.positional) > len(family.positional):
        takes = ", ".join(family.positional) or "none"
        raise ConfigError(
            f"measure {measure.name}: too many values without a parameter name; values without a name are accepted for "
            f"these parameters: {takes}"
        )
    named: dict[str, Any] = dict(zip(family.positional, measure.positional, strict=False))
    for key, value in measure.params:
        if key in named:
            raise ConfigError(f"measure {measure.name}: the parameter {key!r} is given twice")
        named[key] = value
    if str(named.get("background", "")).startswith(_RUN):
        named["background"] = "run"
    return named
