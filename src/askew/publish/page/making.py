"""The section on how a run was computed: its steps with their numbers of rows, and its measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from askew.publish.card import NOT_BIAS, group_limit
from askew.publish.page import numerals as n
from askew.publish.page.document import Section, folded, listed
from askew.publish.page.parts import PageParts
from askew.publish.page.table import CODE, WORDS, Column, columns, table


@dataclass(frozen=True)
class StepFacts:
    """The numbers of rows of a finished step: input, output and dropped by reason."""

    step: str
    stage: str
    key: str
    rows_in: int
    rows_out: int
    dropped: Mapping[str, int]


@dataclass(frozen=True)
class MeasureDescription:
    """A measure: its signature with all parameters, its better direction and its role in the selection of pairs."""

    name: str
    signature: str
    better: str
    part: str


def making_section(
    files: PageParts, steps: Sequence[StepFacts], measures: Sequence[MeasureDescription], recipe: str
) -> Section:
    """The section with the steps, the measures and the recipe of the run."""
    head = [
        *columns("step", "rows in", "rows out", kind=CODE),
        Column("dropped, by reason", WORDS),
        Column("key", CODE),
    ]
    reasons = ["; ".join(f"{count:,} {why}" for why, count in one.dropped.items()) for one in steps]
    rows = [
        [one.step, n.count(one.rows_in), n.count(one.rows_out), why or n.NONE, one.key]
        for one, why in zip(steps, reasons, strict=True)
    ]
    note = "The key of a step identifies its settings and inputs. Steps with the same key have the same output."
    counts = [
        {**vars(one), "dropped": sum(one.dropped.values()), "reasons": why}
        for one, why in zip(steps, reasons, strict=True)
    ]
    told = [Column("measure", CODE), *(Column(label, WORDS) for label in ("better", "role in the selection of pairs"))]
    lines = [[one.name, one.better, one.part, one.signature] for one in measures]
    return Section("run", "How these results were computed", [
        files.table(table("steps", "Steps of the run", head, rows, note), pl.DataFrame(counts)),
        files.table(table("measures", "Measures", [*told, Column("signature", CODE)], lines),
                    pl.DataFrame([vars(one) for one in measures])),
        folded("The recipe, including changes from the command line", recipe),
    ])  # fmt: skip


LIMITS = (
    "The measured values of a pair hold only for the ranker, the collection and the judgements of this report.",
    "A reformulation is selected because its measured values are better than those of other candidates. Therefore, "
    "these values are better than they would be on new data. Values that are measured on held-out documents or with "
    "other rankers are more reliable.",
    "A reformulated query may express another information need than its original. No person has checked "
    "whether the pairs of this report keep the information need.",
)


def limits_section(groups: Sequence[str]) -> Section:
    """The limits of the numbers; ``groups`` are the groups that the measures count."""
    return Section("limits", "Limits of these numbers", [listed([NOT_BIAS, group_limit(groups), *LIMITS])])
