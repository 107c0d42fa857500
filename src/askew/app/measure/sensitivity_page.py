"""The report of ``sensitivity`` as one self-contained HTML page, and its tables as files."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path

import polars as pl

from askew.app.measure.agreement import AXES, AXIS_HEAD, READABLE, Combination, SensitivityReport
from askew.core.errors import ConfigError
from askew.core.whole_files import write_whole
from askew.publish.page.document import Section, document, figures, listed, paragraph
from askew.publish.page.frame import About
from askew.publish.page.heat import Heading, heat_map
from askew.publish.page.markup import Markup, tag
from askew.publish.page.parts import PageParts
from askew.publish.page.table import CODE, NAME, WORDS, Column, columns, table
from askew.publish.page.writing import check_out, write_report

TITLE = "Sensitivity of the order of systems to the measure, the lexicon and other choices"
_AGREEMENT = "Agreement on the order of systems, by pair of combinations"
_WHAT = "Kendall's tau-b"
_LEANS_LESS = (
    "A system leans less than another system if its mean value is nearer to zero (signed measures), lower (absolute "
    "measures) or higher (NFaiRR and similar measures). This page does not test whether differences between systems "
    "are significant."
)


def check_places(html: str | Path | None, out: str | Path | None) -> None:
    """Raise an error for paths that the report cannot be written to, before any work is done."""
    if html is not None and Path(html).is_dir():
        raise ConfigError(f"html= {html}: expected a file, found a folder; give a name such as sensitivity.html")
    if out is not None:
        check_out(Path(out))


def write_pages(report: SensitivityReport, html: str | Path | None, out: str | Path | None) -> None:
    """Write the page as one file, and the page with all tables as a folder."""
    if html is None and out is None:
        return
    parts = PageParts()
    page = sensitivity_page(report, parts)
    if html is not None:
        write_whole(Path(html), page)
    if out is not None:
        tau = io.BytesIO()
        report.tau_table().write_parquet(tau)
        tables = {"tables/combinations.csv": report.to_polars().write_csv().encode(), **parts.files()}
        write_report(Path(out), {"report.html": page.encode(), **tables, "tables/tau.parquet": tau.getvalue()})


def sensitivity_page(report: SensitivityReport, parts: PageParts) -> str:
    """The page as HTML. Its tables are added to ``parts``."""
    sections = [
        Section("summary", "Summary", [listed(list(report.sentences())), *_notes(report)]),
        _axes_section(report, parts),
        _agreement_section(report, parts),
        _flips_section(report, parts),
        _systems_section(report, parts),
    ]
    if len(report.combinations) <= READABLE:
        sections.append(_combinations_section(report, parts))
    head = paragraph("Does the order of systems depend on the word list, the tokenizer, the cutoff, or another choice?")
    return document(TITLE, [head], sections, [paragraph(_LEANS_LESS)])


def _notes(report: SensitivityReport) -> list[Markup]:
    return [paragraph(note, kind="note") for note in report.notes]


def _axes_section(report: SensitivityReport, parts: PageParts) -> Section:
    rows = [[*row, ", ".join(map(str, one.values))] for row, one in zip(report.axis_rows(), report.axes, strict=True)]
    note = (
        "A combination is one set of choices, such as a measure, a word list and a cutoff. Each row is one kind of "
        "choice. The column 'pairs' counts the pairs of combinations that are equal except for this choice. "
        "Some choices, such as the sign, exist only for some measures. A choice that only one of two "
        "combinations has is not compared. A low mean tau means that this kind of choice changes the order of systems "
        "much."
    )
    head = [*columns(*AXIS_HEAD), Column("values compared", WORDS)]
    data = [asdict(one) | {"values": ", ".join(map(str, one.values))} for one in report.axes]
    body = [
        parts.table(
            table(
                "axes",
                "Mean of Kendall's tau between two orders of systems by lean, over pairs of combinations that differ "
                "in one choice",
                head,
                rows,
                note,
            ),
            pl.DataFrame(data),
        )
    ]
    charts = []
    for one in report.axes:
        headings = [Heading(str(value), str(value)) for value in one.values]
        about = About(
            f"axis-{one.axis}",
            f"{one.axis}: mean tau where only this choice changes",
            _described(f"{one.axis} values"),
        )
        drawn = heat_map(about, headings, report.within(one.axis), "mean tau")
        charts.append(
            _own_size(
                parts.chart(
                    about,
                    drawn,
                    f"Rows and columns are choices of {one.axis}. A cell is the mean of Kendall's tau over all pairs "
                    f"of combinations that differ only in {one.axis}: one combination has the choice of the row, and "
                    "the other combination has the choice of the column.",
                )
            )
        )
    return Section("axes", "Which choice matters", [*body, figures(*charts)])


def _agreement_section(report: SensitivityReport, parts: PageParts) -> Section:
    if len(report.combinations) <= READABLE:
        headings = [Heading(f"{one.number} {one.label}", str(one.number), _family(one)) for one in report.combinations]
        values, caption = (
            report.tau,
            "Each row and each column is one combination of choices, such as a measure, a word list and a cutoff. Each "
            "cell is Kendall's tau between the order of systems by the combination of the row and the order of systems "
            "by the combination of the column. Point at a cell to see the two combinations.",
        )
    else:
        labels = [_block(one) for one in report.combinations]
        firsts = {label: _family(one) for label, one in zip(labels, report.combinations, strict=True)}
        headings = [Heading(label, label, group) for label, group in firsts.items()]
        values = report.between(labels)
        caption = (
            "Each row and each column names one measure and one lexicon, and stands for all combinations that have "
            "both. For each cell, every combination of the row is compared with every combination of the column. "
            "The cell is the mean of Kendall's tau over these comparisons. If the report is written to a "
            "folder (out=), the tau of all pairs of the "
            f"{len(report.combinations):,} combinations is in the file 'tables/tau.parquet'."
        )
    about = About("agreement", _AGREEMENT, _described("combinations"))
    drawn = heat_map(about, headings, values, _WHAT)
    return Section("agreement", _AGREEMENT, [_own_size(parts.chart(about, drawn, caption))])


def _described(things: str) -> str:
    return (
        f"A matrix of colored cells, one per pair of {things}: blue where the orders of systems agree, orange where "
        "the orders differ."
    )


def _own_size(drawn: Markup) -> Markup:
    return tag("div", drawn, class_="own")


def _family(one: Combination) -> str:
    return str(one.choices["measure"])


def _block(one: Combination) -> str:
    return " ".join(str(one.choices[axis]) for axis in AXES[:2] if axis in one.choices)


def _flips_section(report: SensitivityReport, parts: PageParts) -> Section:
    total = len(report.combinations)
    rows = [
        [one.first, one.second, f"{one.first_less:,}", f"{one.second_less:,}", f"{one.equal:,}",
         f"{one.second_less / total:.0%}"]
        for one in report.flips
    ]  # fmt: skip
    data = pl.DataFrame([asdict(one) | {"flips": one.flips} for one in report.pairs])
    head = [Column("A", NAME), Column("B", NAME), *(Column(label) for label in (
        "number of combinations where A leans less than B", "number of combinations where B leans less than A",
        "number of combinations where A and B lean equally",
        "share of combinations where B leans less than A"))]  # fmt: skip
    steady = len(report.pairs) - len(report.flips)
    note = f"{steady:,} of {len(report.pairs):,} pairs have the same order, or are equal, in all combinations."
    shown = table(
        "pairs",
        "Pairs of systems (A and B) whose order by lean differs between combinations of choices",
        head,
        rows,
        note,
    )
    return Section("flips", "Conclusions that change", [parts.table(shown, data)])


def _systems_section(report: SensitivityReport, parts: PageParts) -> Section:
    head = columns(
        "system", "best rank", "median rank", "worst rank", "number of combinations where this system leans least"
    )
    rows = [[one.system, str(one.best), f"{one.median:g}", str(one.worst), f"{one.least:,}"] for one in report.ranks]
    note = "The system with rank 1 leans least. Systems with equal means share the better rank."
    shown = table("systems", "Ranks of the systems by lean, over all combinations of choices", head, rows, note)
    return Section("systems", "Systems", [parts.table(shown, pl.DataFrame([asdict(one) for one in report.ranks]))])


def _combinations_section(report: SensitivityReport, parts: PageParts) -> Section:
    head = [Column("combination", NAME), *(Column(name) for name in report.systems), Column("measure in full", CODE)]
    rows = [
        [f"{one.number} {one.label}", *(f"{mean:.4f}" for mean in one.means), one.signature]
        for one in report.combinations
    ]
    shown = table("means", "Mean of each system; a row is one measure with one set of parameters", head, rows)
    return Section("combinations", "All combinations", [parts.table(shown)])
