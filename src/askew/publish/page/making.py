"""How a run was computed: its steps with every row accounted for, its measures and their part in the choice."""

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
    """What a finished step did with its rows."""

    step: str
    stage: str
    key: str
    rows_in: int
    rows_out: int
    dropped: Mapping[str, int]


@dataclass(frozen=True)
class MeasureDescription:
    """A measure, all of its parameters, which way is better, and what it had to do with the choice."""

    name: str
    signature: str
    better: str
    part: str


def making_section(
    files: PageParts, steps: Sequence[StepFacts], measures: Sequence[MeasureDescription], recipe: str
) -> Section:
    """Steps, measures, and the recipe as it ran."""
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
    note = "A key names a step by its settings and all that it reads: the same key is the same table."
    counts = [
        {**vars(one), "dropped": sum(one.dropped.values()), "reasons": why}
        for one, why in zip(steps, reasons, strict=True)
    ]
    told = [Column("measure", CODE), *(Column(label, WORDS) for label in ("better", "part in the choice"))]
    lines = [[one.name, one.better, one.part, one.signature] for one in measures]
    return Section("run", "How it was computed", [
        files.table(table("steps", "Steps of the run", head, rows, note), pl.DataFrame(counts)),
        files.table(table("measures", "Measures", [*told, Column("signature", CODE)], lines),
                    pl.DataFrame([vars(one) for one in measures])),
        folded("The recipe, with every change of the command line", recipe),
    ])  # fmt: skip


LIMITS = (
    "A pair is better or worse under this ranker, this collection and these judgements.",
    "The best of many candidates is taken by a measured score, so that score is better than a new run would find it. "
    "Held-out measures and other rankers tell more.",
    "A reformulated query may ask for something else than its original. Nobody has judged that here.",
)


def limits_section(groups: Sequence[str]) -> Section:
    """What the numbers do not say; ``groups`` are those that the measures count."""
    return Section("limits", "What this does not say", [listed([NOT_BIAS, group_limit(groups), *LIMITS])])
