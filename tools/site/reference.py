"""Parts of the reference that are generated: the commands, and the settings of the plugins that a recipe can name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from askew.cli.main import app
from askew.plugins.registry import about, names, settings_of
from askew.rankers.engines.settings import EngineSettings

ROOT = Path(__file__).resolve().parent.parent.parent


def commands() -> str:
    """Every command with its arguments and options."""
    root = typer.main.get_command(app)
    return "\n".join(_command(root, "askew", 2))


def _command(command: Any, path: str, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    if path != "askew":
        yield f"{'#' * level} {path} {{: #{path.removeprefix('askew ').replace(' ', '-')} }}\n"
        yield f"{_prose(command.help)}\n"
        yield f"```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n"
        yield from _parameters(command, context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _command(inner, f"{path} {name}", level if path == "askew" else level + 1)


def _parameters(command: Any, context: Any) -> Iterator[str]:
    rows = []
    for one in command.get_params(context):
        shown = one.get_help_record(context) or (one.make_metavar(context), getattr(one, "help", "") or "")
        if "--help" not in one.opts and not getattr(one, "hidden", False):
            rows.append(f"| `{_cell(shown[0])}` | {_text(shown[1])} |")
    if rows:
        yield "| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _prose(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\b\n", "").replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(text: str) -> str:
    return _cell(text).replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def settings(kind: str) -> Callable[[], str]:
    """A table of the plugins of a kind that this installation has, with the settings of each and their defaults."""

    def table() -> str:
        rows = [f"| `{name}` | {_text(about(kind, name))} | {_settings(kind, name)} |" for name in names(kind)]
        return "| name | what it does | settings and defaults |\n|---|---|---|\n" + "\n".join(rows)

    return table


def _settings(kind: str, name: str) -> str:
    """The settings of a plugin; those that all engines share have a table of their own."""
    found = settings_of(kind, name)
    shared = {one.name for one in fields(EngineSettings)}
    own = found if not shared <= found.keys() else {key: found[key] for key in found if key not in shared}
    return ", ".join(f"`{key} = {_cell(value)}`" for key, value in own.items()) or "no settings"


def decisions() -> str:
    """A list of the decision records, by their headings."""
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    heads = [(page.name, page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")) for page in pages]
    return "\n".join(f"- [{head.replace('. ', chr(92) + '. ', 1)}]({name})" for name, head in heads)


GENERATED: dict[str, Callable[[], str]] = {
    "commands": commands,
    "decisions": decisions,
    **{f"{kind}-settings": settings(kind) for kind in
       ("classifier", "reformulator", "filter", "ranker", "index", "selector")},
}  # fmt: skip
