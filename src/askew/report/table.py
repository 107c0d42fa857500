"""The one model of a table. The terminal, HTML, LaTeX, CSV and JSON are rendered from it.

Cells are values, and a column says how a value is shown. A cell that is a text is shown as it is. In the tables of a
page, labels and cells can be markup.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from askew.core.measure import Direction
from askew.report.markup import MINUS, NONE, Markup, escape, join, quoted, shown, tag

# The format of the cells of a column: right-aligned, on one line, as words, as code, as a text of unknown origin.
NUMBER, NAME, WORDS, CODE, QUOTE = "number", "name", "words", "code", "quote"
_LONGEST = 180
_KEEP = "\N{NO-BREAK SPACE}"
_SLUG = re.compile(r"[a-z][a-z0-9-]*")
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
    "\N{MINUS SIGN}": "$-$", "–": "--", "…": r"\ldots{}", "→": r"$\to$",
    "\u00a0": "~", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "×": r"$\times$",
}  # fmt: skip
_TEX_TABLE = str.maketrans(_TEX)


class Estimate(NamedTuple):
    """A mean with the ends of its interval, if it has one, and the number of queries, if it is shown with them."""

    mean: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


Cell: TypeAlias = str | int | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """The name of a column and the format of its cells.

    Numbers have ``digits`` decimals (the ends of an interval one fewer), a plus sign if ``signed``, and a ``unit``,
    such as "%". A smaller number than ``least`` is shown as less than it. The heading shows the ``direction`` of better
    values, if there is one. On a page, a heading may have a tooltip (``title``) and a ``sort`` order.
    """

    label: str
    kind: str = NUMBER
    direction: Direction | None = None
    digits: int = 4
    signed: bool = False
    unit: str = ""
    least: float | None = None
    title: str | None = None
    sort: str | None = None

    @property
    def heading(self) -> str:
        """The name with the direction: |M| if the distance from zero counts, and an arrow."""
        return self.label if self.direction is None else measure_label(self.label, self.direction)


@dataclass(frozen=True)
class Group:
    """Rows under a common heading; there is no heading if ``label`` is empty."""

    label: str
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Table:
    """A caption, columns (the first names the row), rows in groups, and notes below."""

    name: str
    caption: str
    columns: Sequence[Column]
    groups: Sequence[Group]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not _SLUG.fullmatch(self.name):
            raise ValueError(
                f"the name of a table must have only lowercase letters, digits and hyphens, found {self.name!r}"
            )
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: expected {len(self.columns)} cells in a row, found {len(row)}")

    @property
    def rows(self) -> list[Sequence[Cell]]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group.rows]


def table(name: str, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *notes: str) -> Table:
    """A table of one group."""
    return Table(name, caption, columns, [Group("", rows)], notes)


def columns(first: str, *numbers: str, kind: str = NAME) -> list[Column]:
    """A first column of names, then numbers."""
    return [Column(first, kind), *(Column(label) for label in numbers)]


def measure_label(measure: str, direction: Direction, mark: str = "") -> str:
    """The label of a measure in tables: |M| if its distance from zero counts, an arrow in the better direction, and
    a mark if the measure was used to group queries or to choose pairs (see ``labels_note``)."""
    shown = f"|{measure}|" if direction is Direction.ZERO else measure
    arrow = "↑" if direction is Direction.UP else "↓"
    return f"{shown}{_KEEP}{arrow}{f'{_KEEP}{mark}' if mark else ''}"


def cell_text(cell: Cell, column: Column, between: str = " ") -> str:
    """The text of a cell, with ASCII minus signs; ``between`` is before an interval."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Estimate):
        text = _number(cell.mean, column) + column.unit
        if cell.low is not None and cell.high is not None and not math.isnan(cell.low + cell.high):
            text += f"{between}[{_number(cell.low, column, 1)}, {_number(cell.high, column, 1)}]"
        return text if cell.n is None else f"{text}{between}n={cell.n}"
    if cell is None or not math.isfinite(cell):
        return NONE
    if column.least is not None and cell < column.least:
        return f"<{column.least:g}"
    return (
        f"{cell:{'+' if column.signed else ''},}{column.unit}"
        if isinstance(cell, int)
        else _number(cell, column) + column.unit
    )


def _number(value: float, column: Column, fewer: int = 0) -> str:
    # Adding zero removes the sign of a negative zero.
    digits = column.digits - fewer
    return f"{round(value, digits) + 0.0:{'+' if column.signed else ''},.{digits}f}"


def _typeset(cell: Cell, column: Column) -> str:
    text = cell_text(cell, column)
    return text if isinstance(cell, str) else text.replace("-", MINUS)


def text_table(table: Table) -> str:
    """The table as lines of text, with its notes: numbers are aligned to the right, texts to the left."""
    cells = [[column.label for column in table.columns]]
    cells += [[cell_text(cell, column) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    aligned = [
        "  ".join(
            text.rjust(width) if column.kind == NUMBER else text.ljust(width)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join([*aligned, *table.notes])


def records(table: Table) -> list[dict[str, str | int | float | None]]:
    """The rows with unrounded values by column, for JSON. An estimate has further columns: ``RR@10 low``, ..."""
    rows = []
    for group in table.groups:
        for row in group.rows:
            record: dict[str, str | int | float | None] = {"group": group.label} if group.label else {}
            for cell, column in zip(row, table.columns, strict=True):
                if isinstance(cell, Estimate):
                    ends = {"": cell.mean, " low": cell.low, " high": cell.high, " n": cell.n}
                    record |= {f"{column.label}{end}": value for end, value in ends.items()}
                else:
                    record[column.label] = cell
            rows.append(record)
    return rows


def csv_table(table: Table) -> str:
    """The rows of ``records`` as CSV with a line of column names; a missing value is empty."""
    rows = records(table)
    names = dict.fromkeys(name for row in rows for name in row) or [column.label for column in table.columns]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def html_table(table: Table) -> Markup:
    """The table in a box that scrolls sideways on a narrow screen."""
    title = f"table-{table.name}"
    heads = [
        tag("th", col.heading, scope="col", class_=col.kind, title=col.title, aria_sort=col.sort)
        for col in table.columns
    ]
    head = tag("thead", tag("tr", *heads))
    caption = tag("caption", tag("span", table.caption), id=title)
    bodies = []
    for group in table.groups:
        rows = []
        for row in group.rows:
            drawn = [_html_cell(_typeset(cell, col), col.kind) for cell, col in zip(row, table.columns, strict=True)]
            cells = [tag("td", cell, class_=col.kind) for cell, col in zip(drawn[1:], table.columns[1:], strict=True)]
            rows.append(tag("tr", tag("th", drawn[0], scope="row", class_=table.columns[0].kind), *cells))
        if group.label:
            heading = tag("th", group.label, scope="rowgroup", colspan=len(table.columns), class_="group")
            rows.insert(0, tag("tr", heading))
        bodies.append(tag("tbody", *rows))
    notes = [tag("p", note, class_="note") for note in table.notes]
    box = tag(
        "div", tag("table", caption, head, *bodies), class_="scroll", role="region", aria_labelledby=title, tabindex="0"
    )
    return join([box, *notes])


def _html_cell(text: str, kind: str) -> Markup:
    if isinstance(text, Markup):
        return text
    if kind == QUOTE:
        return quoted(text, _LONGEST)
    if kind == CODE:
        # A long signature may break after a comma.
        first, *rest = shown(text).split(",")
        return tag("code", first, *(join([",", tag("wbr"), piece]) for piece in rest))
    return Markup(escape(shown(text)))


def latex_table(table: Table) -> str:
    """The table for a paper, with the rules of the package booktabs."""
    kinds = "".join("r" if column.kind == NUMBER else "l" for column in table.columns)
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}",
        "\\begin{table}", "\\centering", f"\\caption{{{latex(table.caption)}}}", f"\\label{{tab:{table.name}}}",
        f"\\begin{{tabular}}{{{kinds}}}", "\\toprule", _latex_row([column.heading for column in table.columns]),
    ]  # fmt: skip
    for group in table.groups:
        lines.append("\\midrule")
        if group.label:
            lines.append(f"\\multicolumn{{{len(table.columns)}}}{{l}}{{\\textit{{{latex(group.label)}}}}} \\\\")
        lines += [_latex_row([_typeset(*cell) for cell in zip(row, table.columns, strict=True)]) for row in group.rows]
    notes = [f"\\par\\smallskip{{\\footnotesize {latex(note)}}}" for note in table.notes]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", *notes, "\\end{table}"]) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex, cells)) + " \\\\"


def latex(text: str) -> str:
    """Escape a text for LaTeX, so that every character is shown literally."""
    return shown(text).translate(_TEX_TABLE)


class TableView:
    """An object that shows its ``table()`` in a terminal and in a notebook."""

    def table(self) -> Table:
        """The table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return text_table(self.table())

    def _repr_html_(self) -> str:
        return html_table(self.table())
