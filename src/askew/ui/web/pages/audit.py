"""Audit: the results of ``askew audit`` for a live engine.

The page is made from audit.json by the functions that wrote report.html. The HTML file itself is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from askew.logs.page import TITLE, report_head, report_sections
from askew.logs.report import LogReport
from askew.report.markup import Markup
from askew.report.page import Section, drawn_section, listed, paragraph
from askew.report.table import html_table
from askew.study.audit import page as t
from askew.study.audit.report import AuditReport
from askew.study.tables import parts_table
from askew.ui.web.markup import address, shown, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.shell import Page

# Logs: the findings, tables and charts of a folder that ``askew logs --out`` wrote.


def logs_page(report: LogReport) -> Page:
    """Show the report in a page of the explorer. It is made from the tables by the functions that write reports."""
    parts = tag("div", *map(drawn_section, report_sections(report)), class_="report")
    return Page("Logs", (tag("h1", TITLE), *report_head(report), parts), "/logs")


def audit_page(found: AuditReport, name: str, known: Mapping[str, Path]) -> Page:
    """Show one audit: the verdict and next steps first, other sections folded."""
    body: list[Markup] = [tag("h1", f"Audit of {shown(found.engine)}"), _others(name, known)]
    body.append(tag("p", t.LEAD, class_="lead"))
    if found.failures:
        failed = tag("p", tag("strong", "Conditions that failed:"))
        body.append(p.notice(failed, listed(found.failures), kind="warn", role="alert"))
    body += [_verdict(found), tag("h2", "What to do next"), listed(found.next_steps), t.about(found)]
    body.append(tag("div", *map(drawn_section, _sections(found)), class_="report"))
    return Page("Audit", tuple(body), "/audit")


def _others(name: str, known: Mapping[str, Path]) -> Markup:
    """Links to the other audits of the folder."""
    if len(known) < 2:
        return Markup()
    links = p.link_list(((one, address("/audit", {"name": one})) for one in known), name)
    return tag("nav", *links, class_="sorting", aria_label="Audits")


def _verdict(found: AuditReport) -> Markup:
    """State the verdict in a sentence, with the mean that it is based on."""
    one = found.measures.get(found.deciding)
    if one is None:
        return Markup()
    figures = t.mean_words(one)
    if found.verdict is None:
        words = f"The mean of {found.deciding} is {figures}."
    elif found.verdict in found.groups:
        words = f"The results lean toward {found.verdict}: the mean of {found.deciding} is {figures}."
    else:
        words = f"The mean lean does not differ significantly from 0: the mean of {found.deciding} is {figures}."
    return p.notice(tag("p", tag("strong", words)), *([tag("p", found.reading)] if found.reading else []))


def _sections(found: AuditReport) -> list[Section]:
    parts = [html_table(parts_table(one, place)) for place, one in enumerate(found.parts, start=1)]
    worst = html_table(t.worst_table(found)) if found.worst else paragraph(t.no_worst(found.deciding))
    tried = html_table(t.tried_table(found)) if found.reformulations else paragraph("No reformulation was tried.")
    title = "Lean by the reason for a mention and by the kind of person mentioned"
    ways = [listed(t.sensitivity_said(found)), html_table(t.sensitivity_table(found))]
    return [
        Section("worst", f"Worst queries ({len(found.worst)})", [worst]),
        Section(
            "reformulations", f"Reformulations ({len(found.reformulations)})", [tried, *t.dropped_note(found)],
            folded=True,
        ),
        Section("lean", "Lean by each measure", [html_table(t.means_table(found))], folded=True),
        *([Section("parts", title, parts, folded=True)] if parts else []),
        Section("sensitivity", "Sensitivity", ways, folded=True),
        Section("limits", "Limits", [listed([*t.LIMITS, *found.notes])], folded=True),
    ]  # fmt: skip
