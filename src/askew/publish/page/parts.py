"""The tables and charts of a report, which are shown on its page and can be written as files too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from askew.core.measure import Direction
from askew.publish.page.document import figure
from askew.publish.page.frame import About
from askew.publish.page.markup import Markup
from askew.publish.page.pictures import picture_file
from askew.publish.page.table import Table, html_table, latex_table

# A blank that does not break a line.
_KEEP = "\N{NO-BREAK SPACE}"
_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass
class PageParts:
    """Tables with their data, and charts, each under its own name, in the order they were made."""

    tables: dict[str, tuple[Table, pl.DataFrame | None]] = field(default_factory=dict)
    charts: dict[str, Markup] = field(default_factory=dict)

    def table(self, given: Table, data: pl.DataFrame | None = None) -> Markup:
        """Keep a table and return it as HTML. Only a table with data is written as a file."""
        self._once(given.name, self.tables)
        self.tables[given.name] = given, data
        return html_table(given)

    def chart(self, about: About, drawn: Markup, *words: object) -> Markup:
        """Keep a chart and return it as a figure; the caption begins with the title."""
        self._once(about.name, self.charts)
        self.charts[about.name] = drawn
        return figure(drawn, about.title, *words)

    def _once(self, name: str, taken: Mapping[str, object]) -> None:
        if name in taken:
            raise ValueError(f"the report has two tables or two charts with the name {name!r}")

    def files(self, formats: tuple[str, ...] = (), latex: bool = False) -> dict[str, bytes]:
        """The files of the tables and charts by name."""
        found: dict[str, bytes] = {}
        for name, (given, data) in self.tables.items():
            if data is not None:
                found[f"tables/{name}.csv"] = data.write_csv().encode()
                if latex:
                    found[f"tables/{name}.tex"] = latex_table(given).encode()
        for name, drawn in self.charts.items():
            found |= {f"figures/{name}.{kind}": picture_file(drawn, kind) for kind in formats}
        return found


def slug(text: str, taken: Mapping[str, object] | None = None, before: str = "x") -> str:
    """Convert a text to a name of lowercase letters, digits and hyphens; a number is added if the name is taken."""
    name = f"{before}-{_OTHER.sub('-', text.lower()).strip('-')}".strip("-")
    found, number = name, 2
    while taken is not None and found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def measure_label(measure: str, direction: Direction, mark: str = "") -> str:
    """The label of a measure in tables: |M| if its distance from zero counts, an arrow in the better direction, and
    a mark if the measure was used to group queries or to choose pairs (see ``labels_note``)."""
    shown = f"|{measure}|" if direction is Direction.ZERO else measure
    arrow = "↑" if direction is Direction.UP else "↓"
    return f"{shown}{_KEEP}{arrow}{f'{_KEEP}{mark}' if mark else ''}"


def labels_note(labels: Iterable[str], elsewhere: str = "") -> str:
    """Explain the signs in labels of measures; ``elsewhere`` is the ranker of the selection, if it is another one."""
    every = "".join(labels)
    said = ["↑ ↓: the better direction."]
    if "|" in every:
        said.append("|M|: the absolute value of M.")
    if "°" in every:
        said.append("°: this measure decides the group of a query and which queries are perfect.")
    if "*" in every:
        why = f" under {elsewhere}" if elsewhere else ", so its in-sample values improve by construction"
        said.append(f"*: pairs were chosen by this measure, or by one with the same values{why}.")
    return " ".join(said)
