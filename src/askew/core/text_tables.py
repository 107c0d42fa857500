"""Tables for a terminal and for a notebook, from rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain-text table: the first column is aligned to the left, the others to the right."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in [head, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same table as HTML. The text of each cell is escaped."""
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def with_interval(value: float, low: float | None, high: float | None, sign: str = "") -> str:
    """A number and its interval."""
    ends = "" if low is None or high is None else f" [{low:{sign}.3f}, {high:{sign}.3f}]"
    return f"{value:{sign}.4f}{ends}"
