"""The library names parameters, as in ``docs=`` or ``missing='zero'``; a terminal shows the options of the command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Not inside a measure: NFaiRR(background='self') stays, and so does the second parameter there.
_PARAMETER = re.compile(r"(?:(?<=^)|(?<=[\s/])|(?<=\s\())([a-z][a-z_]*)=(?:'([^']*)'|(?=[\s,;:.)/]|$))")
_known: dict[str, str] = {}


def know_command(command: Any, arguments: Sequence[str]) -> None:
    """Remember how the command that is called names its parameters."""
    _known.clear()
    for word in arguments:
        inner = getattr(command, "commands", None)
        if inner is None or word not in inner:
            break
        command = inner[word]
    for parameter in command.params:
        shown = next((text for text in parameter.opts if text.startswith("--")), parameter.opts[0].upper())
        _known[parameter.name] = shown
        _known[shown.lstrip("-").replace("-", "_").lower()] = shown


def as_options(text: str, known: Mapping[str, str] = _known) -> str:
    """A message with the parameters that the command has written as its options."""

    def named(found: re.Match[str]) -> str:
        if found[1] not in known:
            return found[0]
        return known[found[1]] if found[2] is None else f"{known[found[1]]} {found[2]}"

    return _PARAMETER.sub(named, text)
