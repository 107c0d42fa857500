"""Audit and Logs: the results of ``askew audit`` and of ``askew logs``.

The pages are made from the tables and audit.json by the functions that wrote report.html, which is never sent itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from askew.logs.page import TITLE, report_head, report_sections
from askew.logs.report import LogReport
from askew.report.page import drawn_section
from askew.study.audit.page import audit_head, audit_sections
from askew.study.audit.report import AuditReport
from askew.ui.web.markup import address, shown, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.shell import Page

# The sections of an audit that are not folded.
_OPEN = ("next", "worst")


def logs_page(report: LogReport) -> Page:
    """Show the analysis of a log."""
    parts = tag("div", *map(drawn_section, report_sections(report)), class_="report")
    return Page("Logs", (tag("h1", TITLE), *report_head(report), parts), "/logs")


def audit_page(found: AuditReport, name: str, known: Mapping[str, Path]) -> Page:
    """Show one audit, with links to the other audits of the folder."""
    links = p.link_list(((one, address("/audit", {"name": one})) for one in known), name) if len(known) > 1 else []
    others = [tag("nav", *links, class_="sorting", aria_label="Audits")] if links else []
    sections = [replace(one, folded=one.name not in _OPEN) for one in audit_sections(found)]
    parts = tag("div", *map(drawn_section, sections), class_="report")
    return Page("Audit", (tag("h1", f"Audit of {shown(found.engine)}"), *others, *audit_head(found), parts), "/audit")
