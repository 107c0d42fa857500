"""The reference of the commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from askew.ui.cli.main import app
from askew.ui.cli.settings_help import WithDefaults

_TYPES = {"str": "TEXT", "path": "PATH", "int": "INTEGER", "float": "NUMBER"}
_TYPE = re.compile(r"<(?:list\[)?(\w+)\]?>")
# What typer adds to a help text, such as [env var: ASKEW_STORE; default: .askew] and [required].
_FACTS = re.compile(r"\s*\[((?:env var|default): [^\]]*|required)\]$")
_EXAMPLE = re.compile(r"^Example: (.+)$", re.MULTILINE)
# An option with its value, if this is in capitals or has an equals sign.
_OPTION = r"--[a-z][a-z0-9-]*(?: [A-Z]+\b| [\w:.-]+=[\w:.-]*\w)?"
# A command with its arguments in capitals and its options with their values.
_COMMAND = (
    r"askew (?:(?:list|show|train) [a-z_]+|(?:NAMES)\b)"
    r"(?: (?:[A-Z]+\b|--[a-z-]+(?: (?:[\w:.-]+=[\w:.-]*\w|(?!wrote)[\w:-]+\b))?))*"
)


def commands() -> str:
    """Every command with its arguments and options."""
    root = typer.main.get_command(app)
    return "\n".join(_command(root, "askew", 2))


def _command(command: Any, path: str, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    if path != "askew":
        if isinstance(command, WithDefaults):
            command.add_defaults()
        yield f"{'#' * level} {path} {{: #{path.removeprefix('askew ').replace(' ', '-')} }}\n"
        text, example = _prose(command.help)
        yield f"{text}\n"
        yield f"```text\n{_usage(command, context, path)}\n```\n"
        yield from (f"Example:\n\n```sh\n{one}\n```\n" for one in example)
        yield from _parameters(command, context)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _command(command.commands[name], f"{path} {name}", level if path == "askew" else level + 1)


def _usage(command: Any, context: Any, path: str) -> str:
    """The arguments and the required options of a command."""
    if hasattr(command, "list_commands"):
        return f"{path} COMMAND [OPTIONS]"
    given = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    arguments = [_shown(one, context) for one in given if one.param_type_name == "argument"]
    needed = [_shown(one, context) for one in given if one.param_type_name == "option" and one.required]
    return " ".join([path, *arguments, *needed, "[OPTIONS]"])


def _shown(one: Any, context: Any) -> str:
    """An argument or option as it is typed, such as ``RUNS...`` or ``--docs PATH``."""
    if one.param_type_name == "argument":
        name = f"{one.name.upper()}{'...' if one.nargs == -1 else ''}"
        return name if one.required else f"[{name}]"
    return _TYPE.sub(lambda found: _TYPES[found[1].lower()], one.get_help_record(context)[0])


def _parameters(command: Any, context: Any) -> Iterator[str]:
    rows = []
    for one in command.get_params(context):
        if "--help" not in one.opts and not getattr(one, "hidden", False):
            rows.append(f"| `{_cell(_shown(one, context).strip('[]'))}` | {_meaning(one, context)} |")
    if rows:
        yield "| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _meaning(one: Any, context: Any) -> str:
    """The help of an argument or option; whether it is repeatable and required, its default, its variable."""
    record = one.get_help_record(context)
    text, facts = record[1] if record else one.help or "", ""
    while found := _FACTS.search(text):
        text, facts = text[: found.start()], f"{found[1]}; {facts}"
    said = [_coded(text)]
    if getattr(one, "multiple", False) and "be repeated" not in text:
        said.append("May be repeated.")
    for fact in facts.split("; "):
        name, _, value = fact.partition(": ")
        value = f"--{value}" if f"--{value}" in one.secondary_opts else value
        if name == "required":
            said.append("Required.")
        elif value:
            said.append(f"{'Default' if name == 'default' else 'Environment variable'}: `{_cell(value)}`.")
    return " ".join(said)


def _coded(text: str) -> str:
    """A help text with its commands and options as code, in quotation marks or not."""
    names = "|".join(getattr(typer.main.get_command(app), "commands", {}))
    pattern = re.compile(rf"'((?:askew |--)[^']+)'|{_COMMAND.replace('NAMES', names)}|{_OPTION}")
    parts, at = [], 0
    for found in pattern.finditer(text):
        parts += [_text(text[at : found.start()]), f"`{found[1] or found[0]}`"]
        at = found.end()
    return _cell("\0".join([*parts, _text(text[at:])])).replace("\0", "")


def _prose(text: str | None) -> tuple[str, list[str]]:
    """The help of a command, and the example in it."""
    plain = inspect.cleandoc(text or "").replace("\b\n", "")
    paragraphs = _EXAMPLE.sub("", plain).strip().split("\n\n")
    return "\n\n".join(map(_coded, paragraphs)), _EXAMPLE.findall(plain)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")
