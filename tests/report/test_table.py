"""One table is rendered as text, CSV, JSON values, HTML and LaTeX."""

from __future__ import annotations

import pytest

from askew.core.measure import Direction
from askew.report.table import (
    NAME,
    Column,
    Estimate,
    Group,
    Table,
    cell_text,
    csv_table,
    html_table,
    latex_table,
    records,
    text_table,
)


def _runs() -> Table:
    columns = [
        Column("run", NAME),
        Column("RR@10", direction=Direction.UP),
        Column("ARaB(tf)@10", direction=Direction.ZERO),
        Column("queries"),
    ]
    rows = [["a<b", Estimate(0.51234, 0.4, 0.6, 50), -0.25, 1234], ["c, d", Estimate(0.5), None, 0]]
    return Table("runs", "Runs", columns, [Group("", rows)], ["A note."])


def test_numbers_of_a_text_table_are_aligned_to_the_right() -> None:
    assert text_table(_runs()).splitlines() == [
        "run                        RR@10  ARaB(tf)@10  queries",
        "a<b   0.5123 [0.400, 0.600] n=50      -0.2500    1,234",
        "c, d                      0.5000            –        0",
        "A note.",
    ]


def test_csv_and_json_have_the_unrounded_values_and_the_ends_of_intervals() -> None:
    assert csv_table(_runs()).splitlines() == [
        "run,RR@10,RR@10 low,RR@10 high,RR@10 n,ARaB(tf)@10,queries",
        "a<b,0.51234,0.4,0.6,50,-0.25,1234",
        '"c, d",0.5,,,,,0',
    ]
    assert records(_runs())[0]["RR@10 high"] == 0.6


def test_html_and_latex_escape_texts_and_show_directions() -> None:
    html, latex = html_table(_runs()), latex_table(_runs())
    assert "a&lt;b" in html
    assert "|ARaB(tf)@10|\N{NO-BREAK SPACE}↓" in html
    assert "\N{MINUS SIGN}0.2500" in html
    assert r"a\textless{}b & 0.5123 [0.400, 0.600] n=50 & $-$0.2500 & 1,234 \\" in latex


@pytest.mark.parametrize(
    ("cell", "column", "text"),
    [
        (-0.00001, Column("x"), "0.0000"),
        (12.34, Column("x", digits=1, signed=True, unit="%"), "+12.3%"),
        (Estimate(-12.34, -20, 0.01), Column("x", digits=1, signed=True, unit="%"), "-12.3% [-20, +0]"),
        (float("nan"), Column("x"), "–"),
        ("-1", Column("x"), "-1"),
    ],
)
def test_a_column_says_how_a_value_is_shown(cell: float | str, column: Column, text: str) -> None:
    assert cell_text(cell, column) == text
