"""What people see: tables that fit the terminal, notes, progress. Untrusted text is shown, never obeyed."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import typer

_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "\ufffd")
_SLOW = 1.0


def safe(text: str) -> str:
    """Text from a file, without characters that would steer a terminal."""
    return text.translate(_CONTROL)


def console() -> Any:
    """A console for stdout: as wide as the terminal, plain when piped."""
    from rich.console import Console

    return Console(highlight=False, markup=False, width=shutil.get_terminal_size((100, 24)).columns)


def note(messages: Sequence[str]) -> None:
    """Things worth knowing, on stderr."""
    for message in messages:
        typer.echo(f"note: {safe(message)}", err=True)


def number(value: float | None, digits: int = 4) -> str:
    """A score for people."""
    return "-" if value is None else f"{value:.{digits}f}"


def p_value(value: float | None) -> str:
    """A p-value for people."""
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def print_tables(
    title: str,
    first: str,
    labels: Sequence[str],
    columns: Sequence[tuple[str, Sequence[str]]],
    width: int | None = None,
) -> None:
    """One table where it fits the terminal, otherwise several with the same first column."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = console()
    room = width or out.width
    left = max([len(first), *(min(len(label), 28) for label in labels)]) + 3
    rest = list(columns)
    while rest:
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        table.add_column(first, max_width=28, overflow="fold")
        used = left
        chosen: list[tuple[str, Sequence[str]]] = []
        while rest and (not chosen or used + _width(rest[0]) <= room):
            used += _width(rest[0])
            chosen.append(rest.pop(0))
        for heading, _ in chosen:
            table.add_column(Text(heading), justify="right", no_wrap=True)
        for row, label in enumerate(labels):
            table.add_row(Text(safe(label)), *(Text(cells[row]) for _, cells in chosen))
        out.print(table)
        title = ""


def _width(column: tuple[str, Sequence[str]]) -> int:
    heading, cells = column
    return max(len(line) for text in (heading, *cells) for line in text.split("\n")) + 3


class Waiting:
    """A progress bar that shows itself only when a second has passed and somebody is looking."""

    def __init__(self, label: str) -> None:
        self.label, self.started = label, time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Callable[[int, int], None]:
        return self.advance

    def advance(self, done: int, total: int) -> None:
        """So much is done."""
        if self.bar is None:
            if time.monotonic() - self.started < _SLOW or not sys.stderr.isatty():
                return
            self._show()
        self.bar.update(self.task, completed=done, total=total or None)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        bar: Any = Progress(
            TextColumn(self.label), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        bar.start()
        self.bar, self.task = bar, bar.add_task(self.label, total=None)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
