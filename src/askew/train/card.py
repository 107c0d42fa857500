"""Write the card of a trained model: README.md for readers and measured.json for programs, from the same facts."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from askew.core.address import local_paths, public, public_text, without_local_paths
from askew.core.errors import StoreError
from askew.core.files import parse_json, write_whole
from askew.report.markup import fenced

MEASURED = "measured.json"
# The folder of the checkpoints inside the model's folder, and the file that marks the folder as one of a training.
WORK, BEGUN = "checkpoints", "askew-training.json"
_LIBRARIES = ("askew", "torch", "transformers", "sentence-transformers", "peft", "numpy", "scikit-learn")
_STEERS = re.compile(r"[&\\`*_{}\[\]<>#!|~]")


@dataclass(frozen=True)
class CardTable:
    """A table of the card; the cells of the first column are names, the others are values."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Card:
    """The facts of a model. ``data`` has the hash and the number of rows of each file; ``measured`` has plain numbers.

    A row of ``data`` may state the ``license``, ``link`` and ``authors`` of its file. ``about`` and ``limits`` are
    Markdown and are not escaped; all other texts are escaped.
    """

    title: str
    about: str
    command: str
    base: str
    data: tuple[Mapping[str, Any], ...]
    seed: int
    settings: Mapping[str, Any]
    device: str
    measured: Mapping[str, Any]
    tables: tuple[CardTable, ...] = ()
    limits: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def write_card(folder: Path, card: Card) -> None:
    """Write README.md, then measured.json, which marks the model as complete. Neither contains local paths."""
    paths = local_paths(asdict(card))
    tables = tuple(
        CardTable(one["title"], tuple(one["columns"]), tuple(map(tuple, one["rows"])))
        for one in public([asdict(table) for table in card.tables], paths)
    )
    values = {name: public(getattr(card, name), paths) for name in ("base", "settings", "measured", "extra")}
    command, data = public_command(card.command), tuple(public(card.data, paths))
    card = replace(card, command=command, tables=tables, data=data, **values)
    facts = {**asdict(card), "hardware": hardware(card.device), "versions": versions()}
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(folder / "README.md", "\n".join(_lines(card, facts)) + "\n")
    write_whole(folder / MEASURED, text + "\n")


def public_command(command: str) -> str:
    """A command with the names of its files and folders, but without their paths; names may have blanks."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if shlex.join(words) != command:
        return public_text(command)
    parts = (one.partition("=") for one in words)
    return public_text(
        shlex.join(without_local_paths(name) + sign + without_local_paths(value) for name, sign, value in parts)
    )


def read_measured(folder: Path) -> dict[str, Any] | None:
    """The facts of a finished model; None if it is not finished."""
    file = folder / MEASURED
    if not file.is_file():
        return None
    try:
        found = parse_json(file.read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise StoreError(f"{file}: expected the facts of a model, found something else; give another ⟨out⟩")
    return found


def claim(out: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the facts of this training if it is finished; otherwise reserve the folder for it.

    It is an error if ``out`` is a file, has the model of another training, or has other files: a training writes a
    README.md and deletes its checkpoints, and must not overwrite or delete other files.
    """
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out}: expected a new folder for the model, found a file; give another ⟨out⟩")
    found = read_measured(out)
    if found is not None:
        if found.get("extra", {}).get("identity") not in (identity, public(identity)):
            raise StoreError(f"{out}: found a model of another training; give another ⟨out⟩, or delete this folder")
        return found
    begun = out / WORK / BEGUN
    there = [] if begun.is_file() or not out.is_dir() else sorted(one.name for one in out.iterdir())
    if there:
        raise StoreError(
            f"{out}: expected a new or an empty folder, or a training that was stopped; found {there[0]!r} "
            f"({len(there)} files and folders in all); give another ⟨out⟩"
        )
    write_whole(begun, json.dumps({"identity": identity}, indent=1, default=str) + "\n")
    return None


def hardware(device: str) -> str:
    """A description of the processor or GPU."""
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(0))
    about = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", about.read_text(encoding="utf-8")) if about.is_file() else None
    processor = found[1].strip() if found else platform.processor() or platform.machine()
    return f"CPU {processor}, {os.cpu_count()} cores"


def versions() -> dict[str, str]:
    """The versions of the libraries that are used for training."""
    found = {}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _lines(card: Card, facts: Mapping[str, Any]) -> list[str]:
    lines = [f"# {plain(card.title)}", "", card.about, "", f"Base model: {plain(card.base)}. Seed: {card.seed}.", ""]
    lines += [f"Hardware: {plain(facts['hardware'])}.", "", "Made by:", "", *fenced(card.command), ""]
    lines += ["Data:", "", *(f"- {_pairs(one)}" for one in card.data), ""]
    if not any(one.get("license") for one in card.data):
        lines += ["The license of the data is not stated here. Check it before you share the model.", ""]
    lines += ["Settings:", "", *fenced(json.dumps(card.settings, indent=1, ensure_ascii=False), "json"), ""]
    for table in card.tables:
        lines += [f"## {plain(table.title)}", "", *_table(table), ""]
    if card.limits:
        lines += ["## Limits", "", *(f"- {one}" for one in card.limits), ""]
    lines += [f"Versions: {_pairs(facts['versions'])}.", f"All measured values: `{MEASURED}`."]
    return lines


def _pairs(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{plain(name)} {plain(value)}" for name, value in facts.items())


def _table(table: CardTable) -> list[str]:
    rows: list[Sequence[Any]] = [table.columns, ["---"] * len(table.columns), *table.rows]
    return ["| " + " | ".join("---" if cell == "---" else plain(shown(cell)) for cell in row) + " |" for row in rows]


def shown(value: Any) -> str:
    """A value for a table: numbers with four decimals, a dash for None."""
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def plain(text: object) -> str:
    """Escape a text for a line or a table cell of Markdown, so that every character is shown literally."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
    return _STEERS.sub(lambda found: f"&#{ord(found[0])};", line)
