"""Output to the terminal: tables, notes and progress. Control characters in untrusted text have no effect."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from askew.core.address import without_secrets
from askew.core.errors import AskewError, worded

if TYPE_CHECKING:
    import polars as pl

    from askew.report.table import Table

# The options of the called command by the names of the parameters, for messages of the library.
OPTIONS: dict[str, str] = {}


def know_command(command: Any, arguments: Sequence[str]) -> None:
    """Remember the names of the options of the called command."""
    OPTIONS.clear()
    for word in arguments:
        inner = getattr(command, "commands", None)
        if inner is None or word not in inner:
            break
        command = inner[word]
    for parameter in command.params:
        shown = next((text for text in parameter.opts if text.startswith("--")), parameter.opts[0].upper())
        OPTIONS[parameter.name] = shown
        OPTIONS[shown.lstrip("-").replace("-", "_").lower()] = shown


def as_options(message: str | AskewError) -> str:
    """Word an error or a note with the options of the called command."""
    return worded(getattr(message, "template", str(message)), OPTIONS)


# Control characters, line and paragraph separators, bidirectional controls, and surrogates.
_STEERING = (
    *range(32), *range(127, 160), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)  # fmt: skip
_SHOWN = dict.fromkeys(_STEERING, "\ufffd")
_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SLOW = 1.0
# Seconds between the lines that replace the progress bar if stderr is not a terminal.
_EVERY = 10.0
_WIDEST_LABEL = 28
# A heading of several words is not wrapped to fewer characters.
_NARROW = 12


def safe(text: str) -> str:
    """Make text safe to print on one line: without credentials, and with control characters replaced."""
    return without_secrets(text).translate(_SHOWN)


def say(text: str, err: bool = False) -> None:
    """Print one line."""
    typer.echo(safe(text), err=err)


def say_json(value: Any) -> None:
    """Print a value as one line of JSON. Control characters are escaped, so they have no effect on a terminal."""
    plain = not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    text = without_secrets(json.dumps(value, ensure_ascii=plain, allow_nan=False))
    typer.echo(_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def note(messages: Sequence[str]) -> None:
    """Print notes on stderr."""
    for message in messages:
        say(f"note: {as_options(message)}", err=True)


def say_wrapped(text: str, indent: str = "") -> None:
    """Print a text in as many lines as the terminal needs; ``indent`` comes before the lines after the first."""
    from rich.console import Console
    from rich.text import Text

    width = _screen_width()
    room = width - len(indent)
    for place, line in enumerate(Text(safe(text)).wrap(Console(width=width), room, overflow="fold")):
        say(f"{indent if place else ''}{line.plain.rstrip()}")


def number(value: float | None, digits: int = 4) -> str:
    """Format a score."""
    return "-" if value is None else f"{value:.{digits}f}"


def end_gate(conditions: Sequence[str], failures: Sequence[str], passed: Sequence[str]) -> None:
    """Print the outcome of the conditions of ``--fail-if`` on stderr, and exit with code 1 if one of them holds."""
    for line in passed:
        say(f"askew: compared: {line}", err=True)
    for failure in failures:
        say(f"askew: failed: {failure}", err=True)
    if failures:
        if len(conditions) > len(failures):
            say(f"askew: passed: {len(conditions) - len(failures)} of {len(conditions)} conditions", err=True)
        raise typer.Exit(1)
    if conditions:
        say(f"askew: passed: none of these conditions holds: {'; '.join(conditions)}", err=True)


def print_records(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table with a line for each of the records, which have the same keys; the first key names the line.

    Cells wrap if the terminal is too narrow.
    """
    table, keys = _table(), list(rows[0] if rows else [""])
    for heading in keys:
        table.add_column(heading, overflow="fold")
    texts = [[f"{row[key]:,}" if isinstance(row[key], int) else str(row[key]) for row in rows] for key in keys]
    _fill(table, texts[0], texts[1:])
    _print(table, _screen_width())


def reasons(dropped: Mapping[str, int]) -> str:
    """Format numbers of dropped rows by reason."""
    return "; ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "-"


def print_table(table: Table) -> None:
    """Print a table with its notes; each group of rows is a table of its own.

    A table that does not fit the terminal is printed as several tables with the same first column. Headings and cells
    may have several lines. Lines that are wider than the screen wrap; nothing is cut.
    """
    from rich.cells import cell_len
    from rich.text import Text

    from askew.report.markup import MINUS, NONE
    from askew.report.table import cell_text

    ascii_signs = str.maketrans({MINUS: "-", NONE: "-"})
    room = _screen_width()
    first, *others = table.columns
    for group in table.groups:
        labels = [cell_text(row[0], first) for row in group.rows]
        columns: list[tuple[str, list[str]]] = []
        for place, column in enumerate(others, start=1):
            cells = [cell_text(row[place], column, "\n").translate(ascii_signs) for row in group.rows]
            width = max(_NARROW, _width(("", cells)))
            columns.append(("\n".join(textwrap.wrap(column.label, width, break_long_words=False)), cells))
        widest = max(cell_len(text) for text in (first.label, *map(safe, labels)))
        left = min(widest, _WIDEST_LABEL, max(room // 2, 1))
        free = max(room - left - 6, 1)
        _print(Text(safe(group.label or table.caption), style="italic", overflow="fold"), room)
        while columns:
            part, used = _table(), 0
            chosen: list[list[str]] = []
            part.add_column(first.label, width=left, overflow="fold")
            while columns and (not chosen or used + _width(columns[0]) + 3 <= free):
                heading, cells = columns.pop(0)
                width = min(_width((heading, cells)), free)
                used += width + 3
                chosen.append(cells)
                part.add_column(Text(_lines(heading)), justify="right", width=width, overflow="fold")
            _fill(part, labels, chosen)
            _print(part, room)
    for note in table.notes:
        say_wrapped(as_options(note))


def say_frame(frame: pl.DataFrame) -> None:
    """Print a data frame as tab-separated columns; a missing value is empty."""
    for row in (frame.columns, *frame.iter_rows()):
        typer.echo("\t".join("" if value is None else safe(str(value)) for value in row))


def _table() -> Any:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))


def _fill(table: Any, labels: Sequence[str], columns: Sequence[Sequence[str]]) -> None:
    from rich.text import Text

    for row, label in enumerate(labels):
        table.add_row(Text(safe(label)), *(Text(_lines(cells[row])) for cells in columns))


def _lines(text: str) -> str:
    return "\n".join(safe(line) for line in text.split("\n"))


def _width(column: tuple[str, Sequence[str]]) -> int:
    from rich.cells import cell_len

    heading, cells = column
    return max(cell_len(line) for text in (heading, *cells) for line in _lines(text).split("\n"))


def _screen_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _print(thing: Any, width: int) -> None:
    """Print as wide as the terminal; when piped, plain and without trailing blanks."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False, width=width)
    with out.capture() as captured:
        out.print(thing)
    text = captured.get()
    if sys.stdout is None or not sys.stdout.isatty():
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    typer.echo(text, nl=False)


class Waiting:
    """Show progress on stderr: on a terminal a bar after one second, otherwise a line every ten seconds.

    A thread prints the lines, because a step such as loading a model or compiling may take long without a report.
    """

    def __init__(self, label: str) -> None:
        self.label, self.started = label, time.monotonic()
        self.bar: Any = None
        self.task: Any = None
        self._now = (0, 0, label)
        self._ended = threading.Event()
        self._teller: threading.Thread | None = None

    def __enter__(self) -> Callable[..., None]:
        if sys.stderr is not None and not sys.stderr.isatty() and os.environ.get("ASKEW_PROGRESS") != "off":
            self._teller = threading.Thread(target=self._tell, daemon=True)
            self._teller.start()
        return self.advance

    def advance(self, done: int, total: int, label: str | None = None) -> None:
        """Report that ``done`` of ``total`` (0 if the total is unknown) is done; ``label`` names the current work."""
        self._now = (done, total, label or self.label)
        if self.bar is None:
            if time.monotonic() - self.started < _SLOW or sys.stderr is None or not sys.stderr.isatty():
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[amount]}"),
                TimeRemainingColumn(), console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self.bar.start()
            self.task = self.bar.add_task(self.label, total=None, amount="")
        amount = f"{100 * done // total:>3}%" if total else f"{done:,}"
        self.bar.update(self.task, completed=done, total=total or None, description=label or self.label, amount=amount)

    def _tell(self) -> None:
        while not self._ended.wait(_EVERY):
            done, total, label = self._now
            amount = f": {done:,} of {total:,}" if total else f": {done:,}" if done else ""
            # The work goes on even if nobody can read the progress.
            with contextlib.suppress(OSError, ValueError):
                say(f"askew: {label}{amount} ({time.monotonic() - self.started:,.0f} s)", err=True)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self._teller is not None:
            self._ended.set()
            self._teller.join()
