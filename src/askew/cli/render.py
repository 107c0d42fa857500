"""What people see: tables that fit the terminal, notes, progress. Untrusted text is shown, never obeyed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import typer

from askew.cli.naming import as_options
from askew.core.address import without_secrets

# Controls, line and paragraph separators, what turns the direction of writing, and halves of characters.
_STEERING = (
    *range(32), *range(127, 160), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)  # fmt: skip
_SHOWN = dict.fromkeys(_STEERING, "\ufffd")
_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SLOW = 1.0
# Where nobody sees a bar, a line in the log after so many seconds.
_EVERY = 10.0
_WIDEST_LABEL = 28


def safe(text: str) -> str:
    """Text from a file, on one line, without credentials and without characters that would steer a terminal."""
    return without_secrets(text).translate(_SHOWN)


def say(text: str, err: bool = False) -> None:
    """Print one line."""
    typer.echo(safe(text), err=err)


def say_tsv(*cells: str) -> None:
    """Print one line of columns."""
    typer.echo("\t".join(safe(cell) for cell in cells))


def say_json(value: Any) -> None:
    """Print a value as one line of JSON. What steers a terminal is escaped, so that it is kept and does nothing."""
    plain = not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    text = without_secrets(json.dumps(value, ensure_ascii=plain, allow_nan=False))
    typer.echo(_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def note(messages: Sequence[str]) -> None:
    """Things worth knowing, on stderr."""
    for message in messages:
        say(f"note: {as_options(message)}", err=True)


def number(value: float | None, digits: int = 4) -> str:
    """A score for people."""
    return "-" if value is None else f"{value:.{digits}f}"


def interval(low: float | None, high: float | None, form: str) -> str:
    """The ends of an interval for people, each in a form such as ``+.3f``."""
    return "-" if low is None or high is None else f"[{low:{form}}, {high:{form}}]"


def p_value(value: float | None) -> str:
    """A p-value for people."""
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def print_rows(first: str, labels: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]) -> None:
    """A table whose cells wrap where the terminal is too narrow."""
    table = _table()
    for heading in (first, *(heading for heading, _ in columns)):
        table.add_column(heading, overflow="fold")
    _fill(table, labels, [cells for _, cells in columns])
    _print(table, _screen_width())


def print_tables(title: str, first: str, labels: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]) -> None:
    """One table where it fits the terminal, otherwise several with the same first column.

    Headings and cells may have several lines. One that is wider than the screen wraps; nothing is cut.
    """
    from rich.cells import cell_len
    from rich.text import Text

    room = _screen_width()
    widest = max(cell_len(text) for text in (first, *map(safe, labels)))
    left = min(widest, _WIDEST_LABEL, max(room // 2, 1))
    free = max(room - left - 6, 1)
    rest = list(columns)
    _print(Text(safe(title), style="italic", overflow="fold"), room)
    while rest:
        table, used = _table(), 0
        chosen: list[Sequence[str]] = []
        table.add_column(first, width=left, overflow="fold")
        while rest and (not chosen or used + _width(rest[0]) + 3 <= free):
            heading, cells = rest.pop(0)
            width = min(_width((heading, cells)), free)
            used += width + 3
            chosen.append(cells)
            table.add_column(Text(_lines(heading)), justify="right", width=width, overflow="fold")
        _fill(table, labels, chosen)
        _print(table, room)


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
    """As wide as the terminal; plain and without blanks at the ends of lines when piped."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False, width=width)
    with out.capture() as captured:
        out.print(thing)
    text = captured.get()
    if sys.stdout is None or not sys.stdout.isatty():
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    typer.echo(text, nl=False)


class Waiting:
    """Progress on stderr: a bar on a terminal after a second, elsewhere a line every ten seconds.

    The lines come from a thread of their own, as a step may take long without a word: loading a model, compiling.
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
        """So much is done, of so much in all (0 if unknown); a label says that something else has begun."""
        self._now = (done, total, label or self.label)
        if self.bar is None:
            if time.monotonic() - self.started < _SLOW or sys.stderr is None or not sys.stderr.isatty():
                return
            self._show()
        amount = f"{100 * done // total:>3}%" if total else f"{done:,}"
        self.bar.update(self.task, completed=done, total=total or None, description=label or self.label, amount=amount)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        bar: Any = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[amount]}"), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        bar.start()
        self.bar, self.task = bar, bar.add_task(self.label, total=None, amount="")

    def _tell(self) -> None:
        while not self._ended.wait(_EVERY):
            done, total, label = self._now
            amount = f": {done:,} of {total:,}" if total else f": {done:,}" if done else ""
            # Nobody reads any more: that is no reason to stop.
            with contextlib.suppress(OSError, ValueError):
                say(f"askew: {label}{amount} ({time.monotonic() - self.started:,.0f} s)", err=True)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self._teller is not None:
            self._ended.set()
            self._teller.join()
