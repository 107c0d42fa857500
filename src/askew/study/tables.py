"""The tables and charts of ``measure``, and the notes below tables of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from askew.core.defaults import pages
from askew.core.errors import Note
from askew.measures.catalogue import MeasureRequest
from askew.measures.decompose import Decomposition
from askew.measures.measure import MeasureReport
from askew.measures.requested import is_signed, listed
from askew.measures.statistics.intervals import STUDENTIZED
from askew.measures.statistics.significance import Paired
from askew.report.charts import About, dots
from askew.report.markup import p_value, part_name
from askew.report.page import slug
from askew.report.table import NAME, Column, Estimate, Table, table


def means_table(report: MeasureReport) -> Table:
    """The mean of each measure for each run, with its interval, and notes."""
    approximate = [
        one.text for one in report.asked if STUDENTIZED in {report.mean(run, one).method for run in report.runs}
    ]
    words = f"{', '.join(approximate)}: unbounded, so the interval is approximate (see {pages('statistics')})"
    return replace(report.table(), notes=[*([words] if approximate else []), *measure_notes(report.asked)])


def query_tables(report: MeasureReport) -> list[Table]:
    """The values of each query, for each run."""
    head = [Column("query", NAME), *(Column(one.text, direction=one.direction) for one in report.asked)]
    found = []
    for place, run in enumerate(report.runs, start=1):
        values = [run.values[one.text].tolist() for one in report.asked]
        found.append(table(f"queries-{place}", run.name, head, list(zip(run.query_ids, *values, strict=True))))
    return found


def means_charts(report: MeasureReport) -> dict[str, str]:
    """A chart of each measure: the mean of each run with its interval."""
    charts: dict[str, str] = {}
    names = [run.name for run in report.runs]
    for one in report.asked:
        about = About(
            slug(one.text, charts, before="mean"),
            f"Mean of {one.text} over queries",
            "A dot with its 95% interval for each run.",
        )
        means = [report.mean(run, one) for run in report.runs]
        charts[about.name] = dots(
            about, names, {one.text: [Estimate(m.mean, m.low, m.high) for m in means]}, f"mean of {one.text}"
        )
    return charts


def skew_notes(measure: str, compared: Mapping[str, Paired]) -> list[Note]:
    """A note on the comparisons by one measure, by the name of the new run, whose gains are skewed."""
    skewed = {name: found for name, found in compared.items() if found.skewed}
    told = [
        f"{name} (skewness {found.skewness:+.1f}, {found.n} queries, p {p_value(found.p)}, bounded test: p "
        f"{p_value(found.p_bounded)})"
        for name, found in skewed.items()
    ]
    words = f"{measure}: the gains are skewed, so that p and its interval can be wrong: {'; '.join(told)}"
    values = {name: (one.skewness, one.n, one.p, one.p_bounded) for name, one in skewed.items()}
    return [Note(words, code="skewed-gains", measure=measure, new=values)] if skewed else []


def measure_notes(asked: Sequence[MeasureRequest]) -> list[str]:
    """Notes on what measures compare, on their lexicons if there are several, and on parameters that differ."""
    directions: dict[str, list[str]] = {}
    lexicons: dict[str, list[str]] = {}
    changes: dict[str, list[str]] = {}
    for one in asked:
        if is_signed(one):
            first, second = one.groups[:2]
            about = f"positive values lean toward {first}, negative values toward {second}; 0 is balanced."
            directions.setdefault(about, []).append(one.text)
        elif len(one.groups) > 2:
            directions.setdefault(f"compared groups: {listed(one.groups)}.", []).append(one.text)
        if lexicon := one.measure.param("lexicon"):
            lexicons.setdefault(str(lexicon).partition("@")[0], []).append(one.text)
        if one.unsaid:
            changed = ", ".join(f"{key}={value}" for key, value in one.unsaid.items())
            changes.setdefault(changed, []).append(one.text)
    notes = [f"{', '.join(texts)}: {about}" for about, texts in directions.items()]
    if len(lexicons) > 1:
        named = "; ".join(f"{lexicon} for {', '.join(texts)}" for lexicon, texts in lexicons.items())
        words = f"lexicons: {named}. To use one lexicon for all measures, give ⟨lexicon⟩."
        notes.append(Note(words, code="lexicons"))
    return [*notes, *(f"{', '.join(texts)}: {changed}" for changed, texts in changes.items())]


def parts_table(found: Decomposition, place: int) -> Table:
    """The parts of one measure; ``place`` is the number of the measure, from 1."""
    plain = found.table()
    names = [f"{one.kind}: {part_name(one.name)}" for one in found.parts]
    rows = [[name, *row[1:]] for name, row in zip(names, plain.rows, strict=True)]
    caption = (
        f"{found.run}: contribution of each kind of mention to the mean of {found.measure} (mean: {found.value:.4f}; "
        f"mentions of groups: {found.mentions:,})"
    )
    has_who = any(one.kind == "who" for one in found.parts)
    who = (
        ' Each row "who" is a kind of person or thing that mentions refer to; its values are corrected for known '
        "errors of the model."
        if has_who
        else ""
    )
    note = (
        'A mention is a word that names a group. Each row "why" is a reason why mentions are in the results.'
        f"{who} A model ({found.resolver}) estimates all values; for its accuracy, see {pages('warrant')}. The net "
        f'values of the rows "why" add up to the mean of {found.measure}, and so do those of the rows "who". The row '
        f'"{part_name("warranted")}" includes stereotypes, that is, mentions that present one group as the default. '
        "Stereotypes have no row of their own, because too few mentions have this label."
    )
    return table("parts" if place == 1 else f"parts-{place}", caption, plain.columns, rows, note)
