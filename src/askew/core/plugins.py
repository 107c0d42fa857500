"""Find plugins by kind and name. A plugin is imported only when it is loaded."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from askew.core.errors import ConfigError, DataError, UnknownName, check_name
from askew.core.groups import Groups, GroupsLike
from askew.core.protocols import KINDS

# Limits on the values of a setting, as part of its annotation. The registry checks them before it builds a plugin.


@dataclass(frozen=True)
class Between:
    """Finite numbers from ``low`` to ``high``, both included; with ``above``, ``low`` is not allowed."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def allows(self, value: Any) -> bool:
        """Whether the number is in the range."""
        return math.isfinite(value) and self.low <= value <= self.high and not (self.above and value == self.low)

    def __str__(self) -> str:
        if self.above:
            return f"above {self.low:g}" + (f" and at most {self.high:g}" if math.isfinite(self.high) else "")
        if math.isfinite(self.high):
            return f"from {self.low:g} to {self.high:g}"
        return f"{self.low:g} or more" if math.isfinite(self.low) else "a finite number"


@dataclass(frozen=True)
class OneOf:
    """One of several texts; a function instead of a list is called only when the texts are needed."""

    choices: Sequence[str] | Callable[[], Sequence[str]]

    def allows(self, value: Any) -> bool:
        """Whether the text is one of the allowed texts."""
        return value in (self.choices() if callable(self.choices) else self.choices)

    def __str__(self) -> str:
        return f"one of {', '.join(self.choices() if callable(self.choices) else self.choices)}"


Count = Annotated[int, Between(1)]
Share = Annotated[float, Between(0, 1)]
NotNegative = Annotated[float, Between(0)]
Positive = Annotated[float, Between(0, above=True)]


@cache
def _found(kind: str) -> dict[str, EntryPoint]:
    check_name("kind of plugin", kind, KINDS)
    return {point.name: point for point in entry_points(group=f"askew.{kind}")}


def names(kind: str) -> list[str]:
    """The names of all plugins of a kind."""
    return sorted(_found(kind))


def origin(kind: str, name: str) -> str:
    """Return the distribution and the module that a plugin comes from."""
    point = _found(kind)[name]
    dist = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"
    return f"{dist} ({point.value})"


def load(kind: str, name: str) -> Any:
    """Load the class or function of a plugin."""
    points = _found(kind)
    check_name(kind, name, points)
    try:
        return points[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the {kind} {name!r} from {origin(kind, name)} cannot be loaded: {error}") from error


IN_FILE = re.compile(r"(.+\.py):([A-Za-z_]\w*)")


def load_from_file(text: str, where: str) -> Any:
    """Load the class, function or object at ``FILE.py:NAME``. A file is executed again only after it was changed."""
    file, _, name = text.rpartition(":")
    path = Path(file).expanduser()
    if not path.is_file():
        raise DataError(f"{where} {text}: there is no file {path}")
    key = hashlib.sha256(str(path.resolve()).encode() + b"\0" + path.read_bytes()).hexdigest()[:12]
    module = sys.modules.get(f"askew_file_{key}")
    if module is None:
        spec = importlib.util.spec_from_file_location(f"askew_file_{key}", path)
        assert spec is not None and spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[spec.name]
            raise ConfigError(f"{where} {text}: {path} cannot be loaded ({type(error).__name__}: {error})") from error
    if not hasattr(module, name):
        raise ConfigError(f"{where} {text}: expected {name} in {path}, found none")
    return getattr(module, name)


def build(kind: str, name: str, settings: dict[str, Any], where: str = "", groups: Groups | None = None) -> Any:
    """Check settings against the signature of a plugin's constructor, then call the constructor with them.

    A plugin whose constructor has the parameter ``groups`` receives the argument ``groups`` of this function. The
    ``settings`` of such a plugin must not name other groups.
    """
    make = check(kind, name, settings, where)
    if groups is not None and "groups" in inspect.signature(make).parameters:
        refuse_other_groups(settings.get("groups"), groups.names, f"the {kind} {name!r}")
        settings = {"groups": groups, **settings}
    for parameter in inspect.signature(make).parameters.values():
        needed = parameter.default is parameter.empty and parameter.kind not in _ANY
        if needed and parameter.name not in settings:
            who = f"{where + ': ' if where else ''}the {kind} {name!r}"
            raise ConfigError(f"{who} needs the setting {parameter.name!r}", code="missing-setting")
    return make(**settings)


def refuse_other_groups(own: GroupsLike | None, measured: Collection[str], who: str) -> None:
    """Refuse a method that does not count all measured groups; it may count them with its own words."""
    if own is not None and not set(measured) <= set(counted := Groups.of(own).names):
        differ = f"counts the groups {', '.join(counted)}, but the measures count {', '.join(measured)}"
        raise ConfigError(f"{who} {differ}: leave out its setting 'groups', or name these there", code="other-groups")


def from_spec(kind: str, spec: Mapping[str, Any], key: str | None = None, groups: Groups | None = None) -> Any:
    """Build a plugin from ``{key: name, setting: value, ...}``; the default key is the kind."""
    settings = dict(spec)
    name = settings.pop(key or kind, None)
    if not isinstance(name, str) or name not in names(kind):
        raise UnknownName(kind, str(name), names(kind))
    return build(kind, name, settings, groups=groups)


_ANY = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def check(kind: str, name: str, settings: dict[str, Any], where: str = "") -> Any:
    """Raise an error for an unknown setting or a value of the wrong type; return the plugin's constructor."""
    make = load(kind, name)
    parameters = [p for p in inspect.signature(make).parameters if p != "self"]
    who = f"{where + ': ' if where else ''}the {kind} {name!r}"
    for key in settings:
        if key not in parameters:
            near = difflib.get_close_matches(key, parameters, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            has = ", ".join(parameters) or "none"
            raise ConfigError(f"{who} has no setting {key!r}{hint} (it has: {has})", code="unknown-setting")
    hints = _hints(make)
    for key, value in settings.items():
        members = _members(hints.get(key))
        allowed = [get_args(member)[0] if get_origin(member) is Annotated else member for member in members]
        # Only a hint of simple types is checked.
        is_simple = all(kind in _WORDS or kind is type(None) for kind in allowed)
        whole_for_any = float in allowed and isinstance(value, int) and not isinstance(value, bool)
        if is_simple and type(value) not in allowed and not whole_for_any:
            expected = " or ".join("nothing" if kind is type(None) else _WORDS[kind] for kind in allowed)
            raise ConfigError(f"{who}: the setting {key!r} should be {expected}, found {value!r}")
        for limit in (limit for member in members if get_origin(member) is Annotated for limit in get_args(member)[1:]):
            if isinstance(limit, Between | OneOf) and value is not None and not limit.allows(value):
                raise ConfigError(f"{who}: the setting {key!r} should be {limit}, found {value!r}")
    return make


def settings_of(kind: str, name: str) -> dict[str, str]:
    """Return the settings of a plugin with their defaults."""
    parameters = inspect.signature(load(kind, name)).parameters.values()
    return {p.name: "needed" if p.default is p.empty else _as_toml(p.default) for p in parameters if p.name != "self"}


def has_device(kind: str, name: str) -> bool:
    """Whether a plugin has the setting ``device``: it has a neural model, and is faster on a GPU."""
    return name in _found(kind) and "device" in inspect.signature(load(kind, name)).parameters


def about(kind: str, name: str) -> str:
    """Return the first line of a plugin's docstring."""
    return (inspect.getdoc(load(kind, name)) or "no description").splitlines()[0]


def _as_toml(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)


def _hints(make: Any) -> dict[str, Any]:
    """Return the annotations of a plugin's settings; empty if they cannot be read."""
    try:
        return get_type_hints(make.__init__ if inspect.isclass(make) else make, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def made_type(kind: str, name: str) -> Any:
    """Return the class of the object that a plugin makes: the plugin itself, or the return type of its function."""
    make = load(kind, name)
    return make if inspect.isclass(make) else _hints(make).get("return")


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
