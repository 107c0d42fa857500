"""HTML tables from data frames: each ``Cells`` names some columns and how they are filled from a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from askew.publish.page import numerals as n
from askew.publish.page.markup import Markup
from askew.publish.page.table import NAME, QUOTE, WORDS, Column, html_table, table

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cells:
    """Adjacent columns of a table, and a function that fills them from a row."""

    columns: Sequence[Column]
    fill: Callable[[Row], Sequence[str]]


def made(name: str, caption: str, data: pl.DataFrame, parts: Sequence[Cells], *notes: str) -> Markup:
    """An HTML table. Values of the data are escaped as text."""
    head = [column for part in parts for column in part.columns]
    rows = [[cell for part in parts for cell in part.fill(row)] for row in data.iter_rows(named=True)]
    return html_table(table(name, caption, head, rows, *notes))


def names(**labels: str) -> Cells:
    """Columns of names that askew defines: groups, entry points, kinds."""
    return Cells([Column(label, NAME) for label in labels.values()], lambda row: [str(row[key]) for key in labels])


def words(key: str, label: str) -> Cells:
    """A column of askew's own texts, which may wrap."""
    return Cells([Column(label, WORDS)], lambda row: [str(row[key])])


def quote(key: str, label: str) -> Cells:
    """A column of texts from the log."""
    return Cells([Column(label, QUOTE)], lambda row: [str(row[key])])


def counts(**labels: str) -> Cells:
    """Columns of whole numbers."""
    return Cells([Column(label) for label in labels.values()], lambda row: [n.count(row[key]) for key in labels])


def shares(name: str = "share", label: str | None = None) -> Cells:
    """A share and its interval."""

    def fill(row: Row) -> list[str]:
        return [n.share(row[name]), n.share_interval(*ends(row, name))]

    return Cells([Column(label or name), Column("95%")], fill)


def percent(label: str, key: str, digits: int = 0) -> Cells:
    """A share without its interval, where the interval would not fit."""
    return Cells([Column(label)], lambda row: [n.share(row[key], digits)])


def numbers(name: str, label: str | None = None, digits: int = 2) -> Cells:
    """A number and its interval."""

    def fill(row: Row) -> list[str]:
        low, high = ends(row, name)
        told = n.NONE if low is None or high is None else f"[{n.mean(low, digits)}, {n.mean(high, digits)}]"
        return [n.mean(row[name], digits), told]

    return Cells([Column(label or name), Column("95%")], fill)


def p_values(**labels: str) -> Cells:
    """Columns of p-values."""
    return Cells([Column(label) for label in labels.values()], lambda row: [n.p_value(row[key]) for key in labels])


def number(key: str, label: str, digits: int = 3) -> Cells:
    """A number without an interval."""
    return Cells([Column(label)], lambda row: [n.mean(row[key], digits)])


def yes(key: str, label: str) -> Cells:
    """A column of yes or no."""
    return Cells([Column(label, NAME)], lambda row: ["yes" if row[key] else "no"])


def ends(row: Row, name: str) -> tuple[float | None, float | None]:
    """The interval of a value: the columns ``NAME_low`` and ``NAME_high``, or else ``low`` and ``high``."""
    return row.get(f"{name}_low", row.get("low")), row.get(f"{name}_high", row.get("high"))
