"""Logs: the tables and figures of a folder that ``askew logs --out`` wrote."""

from __future__ import annotations

from askew.app.logs.page import report_page
from askew.app.logs.report import LogReport
from askew.web.markup import Markup, tag
from askew.web.pages.shell import Page


def logs_page(report: LogReport, note: str) -> Page:
    """The report within our page."""
    whole = report_page(report)
    # The report is a page of its own, made by the same escaping functions: what stands between these is its content.
    head = _between(whole, "<header>", "</header>")
    contents = "<nav" + _between(whole, "<nav", "</nav>") + "</nav>"
    body = _between(whole, "<main>", "</main>")
    return Page("Logs", (Markup(head), Markup(contents), tag("div", Markup(body), class_="report")), "/logs", note)


def _between(text: str, start: str, end: str) -> str:
    _, found, rest = text.partition(start)
    inner, closed, _ = rest.rpartition(end)
    assert found and closed, "the page of a log report has another form than expected"
    return inner
