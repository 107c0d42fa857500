"""The report of an audit: one page that loads nothing, its numbers as JSON, and its tables as files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from askew.app.audit.reformulations import Tried
from askew.app.audit.report import AuditReport
from askew.app.audit.worst import MarkedResult, WorstQuery
from askew.app.scoring.comparable import BETTER
from askew.publish.card import NOT_BIAS
from askew.publish.page import numerals as n
from askew.publish.page.counted import part_name
from askew.publish.page.document import Section, code, document, facts, folded, heading, listed, paragraph
from askew.publish.page.markup import Markup, join, quoted, shown, tag
from askew.publish.page.parts import PageParts
from askew.publish.page.table import CODE, NAME, QUOTE, WORDS, Column, Group, Table, columns, table
from askew.publish.page.writing import check_out, write_report

_PRIVATE = "This page shows the texts of queries and parts of documents: share it as you would share these."
_LIMITS = (
    "Parts of the lean and the probability that a reformulation asks for the same are estimates of models; their "
    "accuracy is in docs/warrant.md and docs/models.md.",
    "The worst queries, the suggested reformulations and the other order are chosen by what the deciding measure "
    "counts, so it improves by construction: compare the other measures, and audit again after a change.",
    "The share of results kept says how much of the list stays, not how good it is.",
    "The engine was searched once. Results that change between two searches change these numbers.",
)


def check_place(out: Path) -> None:
    """Refuse a folder that the report cannot go to, before any query is sent."""
    check_out(out)


def write_audit(report: AuditReport, out: Path, keep_queries: bool) -> list[Path]:
    """Write report.html, audit.json and tables/*.csv to a folder; all files, the page first."""
    parts = PageParts()
    page = audit_page(report, parts, keep_queries)
    numbers = json.dumps(report.to_dict(keep_queries), indent=1, allow_nan=False) + "\n"
    tables = {**parts.files(), "tables/queries.csv": report.per_query().write_csv().encode()}
    return write_report(out, {"report.html": page.encode(), "audit.json": numbers.encode(), **tables})


def audit_page(report: AuditReport, parts: PageParts, keep_queries: bool = False) -> str:
    """The whole page as text; its tables are kept in ``parts``."""
    sections = [
        Section("next", "What to do next", [listed(report.next_steps)]),
        _lean_section(report, parts),
        *_parts_section(report, parts),
        _worst_section(report),
        _reformulations_section(report, parts, keep_queries),
        _stability_section(report, parts),
        Section("limits", "Limits", [listed([NOT_BIAS, *_LIMITS, *report.notes])]),
    ]
    head = [
        paragraph("Bias (lean) of the results of a search engine, where it comes from, and what reduces it.",
                  kind="lead"),
        facts([
            ("engine", code(report.engine)), ("searched", f"{report.audited:%Y-%m-%d %H:%M} UTC"),
            ("queries", n.count(report.queries)),
            ("queries without results", n.count(report.unanswered)), ("results per query", n.count(report.k)),
            ("groups", ", ".join(report.lean.groups)), ("deciding measure", code(report.lean.text)),
        ]),
        *([_failed(report)] if report.failures else []),
    ]  # fmt: skip
    return document(f"Audit of {report.engine}", head, sections, [paragraph(_PRIVATE)])


def _failed(report: AuditReport) -> Markup:
    return join([paragraph(tag("strong", "Conditions that failed:")), listed(report.failures)])


def _lean_section(report: AuditReport, parts: PageParts) -> Section:
    rows = []
    for one in report.asked:
        found = report.mean(one.text)
        ends = n.NONE if found.low is None or found.high is None else f"[{n.mean(found.low)}, {n.mean(found.high)}]"
        rows.append([one.text, n.mean(found.mean), ends, n.count(found.n), BETTER[one.direction]])
    head = [Column("measure", CODE), Column("mean"), Column("95% interval"), Column("n queries"),
            Column("better", WORDS)]  # fmt: skip
    said = "Intervals are valid for every distribution where a measure has bounds, else approximate."
    drawn = parts.table(table("measures", "Means over queries", head, rows, report.reading, said), report.to_polars())
    signatures = "\n".join(one.signature for one in report.asked)
    return Section("lean", "Lean", [drawn, folded("Signatures: every choice that a number depends on", signatures)])


def _parts_section(report: AuditReport, parts: PageParts) -> list[Section]:
    body = []
    for place, found in enumerate(report.parts, start=1):
        rows = [
            [f"{one.kind}: {part_name(one.name)}", n.share(one.share), n.share_interval(one.low, one.high),
             n.mean(one.net), f"[{n.mean(one.net_low)}, {n.mean(one.net_high)}]"]
            for one in found.parts
        ]  # fmt: skip
        head = columns("part", "share", "95% interval", "net", "95% interval", kind=WORDS)
        caption = f"Parts of {found.measure} = {n.mean(found.value)} ({found.mentions:,} mentions)"
        data = pl.DataFrame([{k: v for k, v in vars(one).items() if k != "amounts"} for one in found.parts])
        note = (
            f"Why a counted word is there, and whom it points to. Parts are estimates ({found.resolver}); who is "
            "corrected for known errors. Nets add up to the mean. On topic includes mentions that present one group "
            "as the default: too few are labeled to estimate them."
        )
        name = "parts" if place == 1 else f"parts-{place}"
        body.append(parts.table(table(name, caption, head, rows, note), data if rows else None))
    return [Section("parts", "What the measure counts", body)] if body else []


def _worst_section(report: AuditReport) -> Section:
    if not report.worst:
        return Section("worst", "Worst queries", [paragraph("No query leans by this measure.")])
    about = (
        f"The {len(report.worst)} queries of the largest lean by {report.lean.text}. Words that it counts are marked: "
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
        paragraph(f"Words in these results: {counts}{named}", kind="note"), *suggested,
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


def _reformulations_section(report: AuditReport, parts: PageParts, keep_queries: bool) -> Section:
    found = report.reformulations
    if not found.tried:
        return Section("reformulations", "Reformulations", [paragraph("None was tried."), *_dropped(report)])
    effect = report.measures.effectiveness
    texts = {one.query_id: one.text for one in report.worst}
    grouped: dict[str, list[list[str]]] = {}
    for one in found.tried:
        grouped.setdefault(one.query_id, []).append(_row(one, effect is not None))
    judged = [] if effect is None else [Column(f"{effect.text} before"), Column("after"), Column("outcome", NAME)]
    head = [Column("reformulation", QUOTE), Column("suggested", NAME), Column("lean before"), Column("lean after"),
            Column("lean", NAME), Column("results kept"), *judged, Column("P(same)"),
            Column("method", NAME)]  # fmt: skip
    by = "not measured: there are no judgements" if effect is None else f"by {effect.text}"
    note = (
        f"Lean by {report.lean.text}, effectiveness {by}. P(same): probability that it asks for the same "
        f"({found.model}). Suggested: leans at least {n.share(report.settings.reduction, 0)} less, keeps at least "
        f"{n.share(report.settings.agree, 0)} of the results and loses no effectiveness where that is judged."
    )
    caption = "Reformulations of the worst queries, searched with the same engine"
    groups = [Group(shown(texts[query]), rows) for query, rows in grouped.items()]
    drawn = parts.table(Table("reformulations", caption, head, groups, [note]), _data(found.tried, keep_queries))
    return Section("reformulations", "Reformulations", [drawn, *_dropped(report)])


def _row(one: Tried, is_judged: bool) -> list[str]:
    effect = [*(n.mean(value) for value in one.effectiveness), one.outcome or n.NONE] if is_judged else []
    return [
        one.text, "yes" if one.suggested else "", n.mean(one.lean[0]), n.mean(one.lean[1]),
        one.lean_verdict or n.NONE, n.share(one.kept, 0), *effect, n.share(one.same, 0), one.method,
    ]  # fmt: skip


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


def _dropped(report: AuditReport) -> list[Markup]:
    dropped = [f"{reason}: {count:,}" for reason, count in sorted(report.reformulations.dropped.items())]
    return [paragraph(f"Candidates that were not tried: {'; '.join(dropped)}.", kind="note")] if dropped else []


def _stability_section(report: AuditReport, parts: PageParts) -> Section:
    found = report.stability
    rows = [
        [one.label, n.mean(one.mean),
         n.NONE if one.low is None or one.high is None else f"[{n.mean(one.low)}, {n.mean(one.high)}]",
         one.toward or n.NONE]
        for one in found.alternatives
    ]  # fmt: skip
    head = [Column("measure, word list, tokenizer", CODE), Column("mean"), Column("95% interval"),
            Column("leans toward", NAME)]  # fmt: skip
    data = pl.DataFrame([vars(one) for one in found.alternatives], infer_schema_length=None)
    drawn = parts.table(table("sensitivity", "The same results measured in other ways", head, rows), data)
    return Section("sensitivity", "Sensitivity", [listed(_stability_said(report)), drawn])


def _stability_said(report: AuditReport) -> list[object]:
    found, said = report.stability, list[object]()
    if found.decided:
        said.append(f"The verdict ({found.verdict}) holds in {found.same} of {len(found.decided)} combinations.")
    if found.compared:
        said.append(
            f"The suggested reformulations lean less in {found.less} of {found.compared} combinations of measure, "
            "word list, tokenizer and sign."
        )
    return said or ["There is no verdict on the sign to compare with: compare the means."]
