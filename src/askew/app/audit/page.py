"""Write the report of an audit: one self-contained page, the numbers as JSON, and the tables as CSV files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import polars as pl

from askew.app.audit import tables as t
from askew.app.audit.facts import FILE, AuditFacts
from askew.app.audit.reformulations import Tried
from askew.app.audit.report import AuditReport
from askew.app.audit.worst import MarkedResult, WorstQuery
from askew.publish.card import NOT_BIAS
from askew.publish.page import numerals as n
from askew.publish.page.document import Section, code, document, folded, heading, listed, paragraph
from askew.publish.page.markup import Markup, join, quoted, shown, tag
from askew.publish.page.parts import PageParts
from askew.publish.page.writing import check_out, write_report

_PRIVATE = "This page shows the texts of queries and parts of documents. Do not share it if these are private."


def check_place(out: Path) -> None:
    """Refuse a folder that the report cannot be written to, before any query is sent."""
    check_out(out)


def write_audit(report: AuditReport, out: Path, keep_queries: bool) -> list[Path]:
    """Write report.html, audit.json and tables/*.csv to a folder, and return their paths, the page first."""
    parts = PageParts()
    page = audit_page(report, parts, keep_queries)
    numbers = json.dumps(report.to_dict(keep_queries), indent=1, allow_nan=False) + "\n"
    tables = {**parts.files(), "tables/queries.csv": report.per_query().write_csv().encode()}
    return write_report(out, {"report.html": page.encode(), FILE: numbers.encode(), **tables})


def audit_page(report: AuditReport, parts: PageParts, keep_queries: bool = False) -> str:
    """Return the whole page as HTML text; ``parts`` collects its tables."""
    found = AuditFacts.of(report.to_dict(keep_queries=True))
    sections = [
        Section("next", "What to do next", [listed(found.next_steps)]),
        _lean_section(report, found, parts),
        *_baseline_section(report, parts),
        *_parts_section(report, found, parts),
        _worst_section(report),
        _reformulations_section(report, found, parts, keep_queries),
        _stability_section(report, found, parts),
        Section("limits", "Limits", [listed([NOT_BIAS, *t.LIMITS, *found.notes])]),
    ]
    head = [paragraph(t.LEAD, kind="lead"), t.about(found), *([_failed(report)] if report.failures else [])]
    return document(f"Audit of {report.engine}", head, sections, [paragraph(_PRIVATE)])


def _failed(report: AuditReport) -> Markup:
    return join([paragraph(tag("strong", "Conditions that failed:")), listed(report.failures)])


def _lean_section(report: AuditReport, found: AuditFacts, parts: PageParts) -> Section:
    drawn = parts.table(t.means_table(found), report.to_polars())
    return Section("lean", "Lean", [drawn, folded(*t.signatures(found))])


def _baseline_section(report: AuditReport, parts: PageParts) -> list[Section]:
    if not report.against:
        return []
    data = pl.DataFrame([{"measure": text, **asdict(one)} for text, one in report.against.items()])
    return [Section("baseline", "Change since the baseline", [parts.table(t.baseline_table(report.against), data)])]


def _parts_section(report: AuditReport, found: AuditFacts, parts: PageParts) -> list[Section]:
    body = []
    for place, (one, numbers) in enumerate(zip(found.parts, report.parts, strict=True), start=1):
        data = pl.DataFrame([{k: v for k, v in vars(part).items() if k != "amounts"} for part in numbers.parts])
        body.append(parts.table(t.parts_table(one, place), data if one.parts else None))
    title = "Lean by the reason for a mention and by the kind of person mentioned"
    return [Section("parts", title, body)] if body else []


def _worst_section(report: AuditReport) -> Section:
    if not report.worst:
        return Section("worst", "Worst queries", [paragraph(t.no_worst(report.lean.text))])
    about = (
        f"The {len(report.worst)} queries with the largest lean ({report.lean.text}). Counted words are marked by "
        "group: "
    )
    drawn = [_worst(report, place, one) for place, one in enumerate(report.worst, start=1)]
    return Section("worst", "Worst queries", [paragraph(about, _legend(report), "."), *drawn])


def _legend(report: AuditReport) -> Markup:
    return join([_mark(group, (group,), report) for group in report.lean.groups], ", ")


def _worst(report: AuditReport, place: int, one: WorstQuery) -> Markup:
    counts = ", ".join(f"{group} {count:,}" for group, count in one.mentions.items())
    named = f"; the query itself names {', '.join(one.named)}" if one.named else ""
    values = "; ".join(f"{text} {n.mean(value)}" for text, value in one.values.items())
    suggested = [_suggestion(tried) for tried in report.reformulations.suggested if tried.query_id == one.query_id]
    results = tag("ol", *(tag("li", _result(report, found), value=found.rank) for found in one.results))
    return join([
        heading(f"{place}. {shown(one.text)}"), paragraph(code(one.query_id), f": {values}", kind="note"),
        paragraph(f"Number of words of each group in these results: {counts}{named}", kind="note"), *suggested,
        tag("details", tag("summary", f"{len(one.results)} results"), results),
    ])  # fmt: skip


def _suggestion(one: Tried) -> Markup:
    told = (
        f" (P(same) {n.share(one.same, 0)}; lean {n.mean(one.lean[0])} to {n.mean(one.lean[1])}; "
        f"{n.share(one.kept, 0)} of the results kept)"
    )
    return paragraph("Suggested: ", quoted(one.text), told)


def _result(report: AuditReport, found: MarkedResult) -> Markup:
    pieces = [_mark(text, groups, report) if groups else text for text, groups in found.pieces]
    return join([code(found.doc_id), " ", tag("bdi", *pieces, dir="auto")])


def _mark(text: str, groups: tuple[str, ...], report: AuditReport) -> Markup:
    place = report.lean.groups.index(groups[0]) if groups[0] in report.lean.groups else 0
    return tag("mark", shown(text), class_=f"g{place % 6 + 1}", title=", ".join(groups))


def _reformulations_section(report: AuditReport, found: AuditFacts, parts: PageParts, keep_queries: bool) -> Section:
    tried = report.reformulations.tried
    if not tried:
        return Section(
            "reformulations", "Reformulations", [paragraph("No reformulation was tried."), *t.dropped_note(found)]
        )
    drawn = parts.table(t.tried_table(found), _data(tried, keep_queries))
    return Section("reformulations", "Reformulations", [drawn, *t.dropped_note(found)])


def _data(tried: tuple[Tried, ...], keep_queries: bool) -> pl.DataFrame:
    rows = [
        {"query_id": one.query_id, **({"text": one.text} if keep_queries else {}), "method": one.method,
         "suggested": one.suggested, "same": one.same, "natural": one.natural, "lean_before": one.lean[0],
         "lean_after": one.lean[1], "lean_verdict": one.lean_verdict, "kept": one.kept,
         "effectiveness_before": one.effectiveness[0], "effectiveness_after": one.effectiveness[1],
         "outcome": one.outcome}
        for one in tried
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _stability_section(report: AuditReport, found: AuditFacts, parts: PageParts) -> Section:
    data = pl.DataFrame([vars(one) for one in report.stability.alternatives], infer_schema_length=None)
    drawn = parts.table(t.sensitivity_table(found), data)
    return Section("sensitivity", "Sensitivity", [listed(t.sensitivity_said(found)), drawn])
