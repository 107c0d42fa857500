"""Replace parameters in messages of the library, such as ``docs=``, by options, such as ``--docs``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Parameters inside a measure do not match: NFaiRR(background='self') stays as it is.
_PARAMETER = re.compile(r"(?:(?<=^)|(?<=[\s/])|(?<=\s\())([a-z][a-z_]*)=(?:'([^']*)'|(?=[\s,;:.)/]|$))")
_known: dict[str, str] = {}


def know_command(command: Any, arguments: Sequence[str]) -> None:
    """Remember the names of the options of the called command."""
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
    """Replace the parameters in a message that are options of the called command."""

    def named(found: re.Match[str]) -> str:
        if found[1] not in known:
            return found[0]
        return known[found[1]] if found[2] is None else f"{known[found[1]]} {found[2]}"

    return _PARAMETER.sub(named, text)
