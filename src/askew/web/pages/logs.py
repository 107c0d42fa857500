"""Logs: the findings, tables and charts of a folder that ``askew logs --out`` wrote."""

from __future__ import annotations

from askew.app.logs.page import TITLE, report_head, report_sections
from askew.app.logs.report import LogReport
from askew.publish.page.document import drawn_section
from askew.web.markup import tag
from askew.web.pages.shell import Page


def logs_page(report: LogReport) -> Page:
    """Show the report in a page of the explorer. It is made from the tables by the functions that write reports."""
    parts = tag("div", *map(drawn_section, report_sections(report)), class_="report")
    return Page("Logs", (tag("h1", TITLE), *report_head(report), parts), "/logs")
