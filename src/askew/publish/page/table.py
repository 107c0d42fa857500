"""Tables that can be written as HTML and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from askew.publish.page.markup import Markup, escape, join, quoted, shown, tag

# The format of the cells of a column: right-aligned, on one line, as words, as code, as a text of unknown origin.
NUMBER, NAME, WORDS, CODE, QUOTE = "number", "name", "words", "code", "quote"
_LONGEST = 180
_SLUG = re.compile(r"[a-z][a-z0-9-]*")
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
    "\N{MINUS SIGN}": "$-$", "–": "--", "…": r"\ldots{}", "→": r"$\to$",
    "\u00a0": "~", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "×": r"$\times$",
}  # fmt: skip
_TEX_TABLE = str.maketrans(_TEX)


@dataclass(frozen=True)
class Column:
    """The heading of a column and the format of its cells."""

    label: str
    kind: str = NUMBER


@dataclass(frozen=True)
class Group:
    """Rows under a common heading; there is no heading if ``label`` is empty."""

    label: str
    rows: Sequence[Sequence[str]]


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
        for row in (row for group in self.groups for row in group.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: expected {len(self.columns)} cells in a row, found {len(row)}")


def table(name: str, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], *notes: str) -> Table:
    """A table of one group."""
    return Table(name, caption, columns, [Group("", rows)], notes)


def columns(first: str, *numbers: str, kind: str = NAME) -> list[Column]:
    """A first column of names, then numbers."""
    return [Column(first, kind), *(Column(label) for label in numbers)]


def html_table(given: Table) -> Markup:
    """The table in a box that scrolls sideways on a narrow screen."""
    title = f"table-{given.name}"
    head = tag("thead", tag("tr", *(tag("th", one.label, scope="col", class_=one.kind) for one in given.columns)))
    caption = tag("caption", tag("span", given.caption), id=title)
    drawn = tag("table", caption, head, *(_body(group, given.columns) for group in given.groups))
    notes = [tag("p", note, class_="note") for note in given.notes]
    return join([tag("div", drawn, class_="scroll", role="region", aria_labelledby=title, tabindex="0"), *notes])


def _body(group: Group, columns: Sequence[Column]) -> Markup:
    rows = [_row(row, columns) for row in group.rows]
    if group.label:
        rows.insert(0, tag("tr", tag("th", group.label, scope="rowgroup", colspan=len(columns), class_="group")))
    return tag("tbody", *rows)


def _row(row: Sequence[str], columns: Sequence[Column]) -> Markup:
    first, *rest = (_cell(text, column.kind) for text, column in zip(row, columns, strict=True))
    kinds = [column.kind for column in columns]
    cells = [tag("td", cell, class_=kind) for cell, kind in zip(rest, kinds[1:], strict=True)]
    return tag("tr", tag("th", first, scope="row", class_=kinds[0]), *cells)


def _cell(text: str, kind: str) -> Markup:
    if kind == QUOTE:
        return quoted(text, _LONGEST)
    if kind == CODE:
        # A long signature may break after a comma.
        first, *rest = shown(text).split(",")
        return tag("code", first, *(join([",", tag("wbr"), piece]) for piece in rest))
    return Markup(escape(shown(text)))


def latex_table(given: Table) -> str:
    """The table for a paper, with the rules of the package booktabs."""
    kinds = "".join("r" if one.kind == NUMBER else "l" for one in given.columns)
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}",
        "\\begin{table}", "\\centering", f"\\caption{{{latex(given.caption)}}}", f"\\label{{tab:{given.name}}}",
        f"\\begin{{tabular}}{{{kinds}}}", "\\toprule", _latex_row([one.label for one in given.columns]),
    ]  # fmt: skip
    for group in given.groups:
        lines.append("\\midrule")
        if group.label:
            lines.append(f"\\multicolumn{{{len(given.columns)}}}{{l}}{{\\textit{{{latex(group.label)}}}}} \\\\")
        lines += [_latex_row(row) for row in group.rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", *_latex_notes(given), "\\end{table}"]) + "\n"


def _latex_notes(given: Table) -> list[str]:
    return [f"\\par\\smallskip{{\\footnotesize {latex(note)}}}" for note in given.notes]


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex, cells)) + " \\\\"


def latex(text: str) -> str:
    """Escape a text for LaTeX, so that every character is shown literally."""
    return shown(text).translate(_TEX_TABLE)
