"""The errors that a user can meet, as one small class hierarchy.

Each message says what was expected, what was found and where, and what to do. Each class has its own exit code, so
that a shell script can distinguish a wrong setting from wrong data.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Self

from askew.core.address import without_secrets

_PARAMETER = re.compile("⟨([a-z_]+)(?:=([^⟩]*))?⟩")


def worded(template: str, options: Mapping[str, str] = {}) -> str:
    """Word a message. It names parameters as ⟨docs⟩, and as ⟨missing=zero⟩ with a value.

    Python callers read ``docs=`` and ``missing='zero'``. A parameter that is among the ``options`` of a command is
    named as there: ``--docs`` and ``--missing zero``.
    """

    def named(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name in options:
            return options[name] if value is None else f"{options[name]} {value}"
        return f"{name}=" if value is None else f"{name}={value!r}"

    return _PARAMETER.sub(named, template)


class AskewError(Exception):
    """An error that a user can correct. It is shown as one message, never as a traceback.

    ``template`` is the message for ``worded``. ``code`` names the error for programs (by default the class:
    ``data-error``), and ``values`` holds what the message is about. Credentials are removed from all of them, because a
    message may quote the error of a library with a URL.
    """

    exit_code = 1

    def __init__(self, message: str = "", /, *, code: str = "", **values: object) -> None:
        self.template = without_secrets(message)
        super().__init__(worded(self.template))
        self.code = code or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(self).__name__).lower()
        self.values = {
            key: without_secrets(value) if isinstance(value, str) else value for key, value in values.items()
        }


class Note(str):
    """A remark on a result: a sentence for people, with a ``code`` and ``values`` for programs.

    ``template`` is the sentence for ``worded``.
    """

    __slots__ = ("code", "template", "values")
    template: str
    code: str
    values: dict[str, object]

    def __new__(cls, text: str, /, *, code: str, **values: object) -> Self:
        """Word the note."""
        note = super().__new__(cls, worded(text))
        note.template, note.code, note.values = text, code, values
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, object]]:
        """Pickle the code and the values too."""
        return (self.template,), {"code": self.code, **self.values}


class ConfigError(AskewError):
    """A setting is wrong: an unknown name, a value of the wrong type, or options that exclude each other."""

    exit_code = 2


class UnknownName(ConfigError):
    """A name is unknown. The message lists the known names and suggests the closest one."""

    def __init__(self, what: str, name: str, known: Iterable[str], where: str = "", more: str = "") -> None:
        """``more`` is said after the known names."""
        names = sorted(known)
        near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
        meant = next((n for n in names if near and n.lower() == near[0]), None)
        at = f" in {where}" if where else ""
        hint = f"did you mean {meant!r}? " if meant else ""
        listing = ", ".join(names) if names else "none"
        super().__init__(
            f"unknown {what} {name!r}{at}: {hint}known: {listing}{more}", what=what, name=name, meant=meant
        )


class DataError(AskewError):
    """Data is missing, damaged or in the wrong format."""

    exit_code = 3


class MissingExtra(AskewError):
    """An optional part of askew is not installed."""

    exit_code = 4

    def __init__(self, what: str, extra: str, then: str = "") -> None:
        """``then``: a command that is needed after the extra is installed."""
        also = f", then {then}" if then else ""
        super().__init__(
            f"{what} needs the extra {extra!r}: pip install '.[{extra}]' in a checkout of askew{also}", extra=extra
        )


class StoreError(AskewError):
    """The store has damaged content, or another process is writing to it."""

    exit_code = 5


class StageError(AskewError):
    """A step of a build broke its contract; for example, it dropped rows without counting them."""

    exit_code = 6


def check_name(what: str, name: str, known: Collection[str], where: str = "") -> None:
    """Raise ``UnknownName`` if the name is not among the known names."""
    if name not in known:
        raise UnknownName(what, str(name), known, where)


def check_names(what: str, names: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Raise ``UnknownName`` for the first of the names that is not among the known names."""
    for name in names:
        check_name(what, name, known, where)


def one_of(value: str, choices: Collection[str], where: str) -> str:
    """Return the value if it is one of the choices, otherwise raise ``ConfigError``."""
    if value not in choices:
        raise ConfigError(
            f"{where}: expected one of {', '.join(choices)}, found {value!r}", code="bad-choice", value=value
        )
    return value


def place(path: object, line: int | None = None) -> str:
    """A file, or a line of a file, as messages name it: ``path:line``."""
    return f"{path}:{line}" if line is not None else str(path)
