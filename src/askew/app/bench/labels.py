"""Labels of the measures in tables of mitigation methods, and the legend of their marks."""

from __future__ import annotations

from askew.app.bench.methods import REORDER
from askew.app.bench.results import BOUND, PARETO, BenchReport
from askew.app.build.built_pairs import LEAN
from askew.publish.page.parts import measure_label


def labels_of(report: BenchReport) -> dict[str, str]:
    """Return the label of each measure; a measure by which methods select or reorder is marked with an asterisk."""
    parts = [part for row in report.rows for part in row.method.parts]
    by_first = any(part.by_results or part.bound or part.kind == REORDER for part in parts)
    chosen = {report.leans[0]} if by_first else set()
    chosen |= {LEAN} if any(part.trained for part in parts) else set()
    return {one.text: measure_label(one.text, one.direction, "*" if one.text in chosen else "") for one in report.asked}


def marks_note(report: BenchReport) -> list[str]:
    """Return the legend of the marks in a table of methods."""
    labels = labels_of(report)
    said = [
        "↑ ↓: the better direction." + (" |M|: the absolute value of M." if "|" in "".join(labels.values()) else "")
    ]
    if any("*" in label for label in labels.values()):
        said.append(
            "*: methods choose reformulations or reorder documents by this measure, so it improves by construction; "
            "compare the other measures."
        )
    said.append(
        f"{PARETO}: Pareto-optimal; no other method is at least as good by {report.effectiveness[0]} and by this "
        "measure, and better by one of them."
    )
    if any(row.method.bound for row in report.rows):
        said.append(f"{BOUND}: an upper bound that selects by the judgements; not a system, and not on a Pareto front.")
    return said
