"""Write the report of an audit: one self-contained page, the numbers as JSON, and the tables as CSV files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import polars as pl

from askew.core.defaults import pages
from askew.measures.effects import effects_table
from askew.measures.statistics.significance import Paired
from askew.pairs.dataset.card import NOT_BIAS
from askew.report import markup as n
from askew.report.markup import Markup, join, quoted, shown, tag
from askew.report.page import (
    PageParts,
    Section,
    code,
    document,
    facts,
    figure,
    folded,
    heading,
    listed,
    paragraph,
    write_report,
)
from askew.report.table import CODE, NAME, QUOTE, WORDS, Cell, Column, Estimate, Group, Table, html_table, table
from askew.study.audit.report import FILE, AuditReport, WorstQuery
from askew.study.tables import parts_table

# The tables and sentences of an audit, for report.html and for the explorer.

LEAD = (
    "How much the results of a search engine lean (the measured bias), where the lean comes from, and what reduces it."
)
GAIN = (
    "Gain: how much better this audit is than the baseline, as a mean over the queries that are in both audits. A "
    "negative gain is worse. For a measure whose best value is 0, the gain is the mean decrease of the distance of "
    "each query from 0. It is not the difference of the two means, in which positive and negative values cancel out."
)
DETECTABLE = (
    "Detectable gain: a true mean change of this size, for better or for worse, is significant at the 5% level with a "
    "probability of 80%. A smaller change is likely to be missed."
)
LIMITS = (
    "Models estimate why each counted word is in the results, and whom or what the word refers to. Models also "
    "estimate the probability that a reformulation asks for the same thing as the query. "
    f"{pages('warrant', 'models')} state the accuracy of these models.",
    "The worst queries and the suggested reformulations are selected by one measure of lean (the deciding measure). "
    "The report also estimates the lean that the engine's results would have after askew reorders them, based on the "
    "counts of the words that name the groups. The suggested reformulations and the new order are chosen to reduce "
    "lean, so the deciding measure improves by construction. Judge a change of the engine by the other measures, and "
    "audit the changed engine again.",
    "The share of results kept states how much of the result list stays the same, not how relevant the results are.",
    "Every query was sent to the engine once. A second audit gives other numbers if the engine then returns other "
    "results.",
)


def about(found: AuditReport) -> Markup:
    """The engine, the queries, the groups, and the measure that decides which queries are worst."""
    return facts([
        ("engine", code(found.engine)), *([("searched", found.audited)] if found.audited else []),
        ("queries", n.count(found.queries)),
        ("queries without results", n.count(found.unanswered)), ("results per query", n.count(found.k)),
        ("groups", ", ".join(found.groups)), ("deciding measure", code(found.deciding)),
    ])  # fmt: skip


def means_table(found: AuditReport) -> Table:
    """The mean of each measure."""
    rows: list[list[Cell]] = [
        [text, Estimate(one.mean, one.low, one.high), one.n, one.better] for text, one in found.measures.items()
    ]
    head = [Column("measure", CODE), Column("mean [95%]"), Column("n queries"), Column("better", WORDS)]
    said = "Intervals of bounded measures are conjectured to be valid for every distribution; others are approximate."
    return table("measures", "Means over queries", head, rows, *([found.reading] if found.reading else []), said)


def baseline_table(found: Mapping[str, Paired]) -> Table:
    """The change of each measure since the baseline."""
    head = [Column("measure", CODE), Column("baseline"), Column("now"), Column("gain [95%]", signed=True),
            Column("detectable gain"), Column("n queries")]  # fmt: skip
    rows = [
        [text, one.old, one.new, Estimate(one.gain, one.low, one.high), one.detectable, one.n]
        for text, one in found.items()
    ]
    caption = "Change since the baseline: means over the queries that are in both audits"
    return table("baseline", caption, head, rows, GAIN, DETECTABLE)


def worst_table(found: AuditReport) -> Table:
    """The worst queries, and the suggested reformulation of each."""
    suggested = {one.query_id: one.text or "yes" for one in found.suggested}
    rows = [
        [one.text or one.query_id, one.lean, *(one.mentions.get(group, 0) for group in found.groups), one.in_names,
         ", ".join(one.named) or None, suggested.get(one.query_id)]
        for one in found.worst
    ]  # fmt: skip
    head = [Column("query", QUOTE), Column("lean"), *(Column(f"{group} words") for group in found.groups),
            Column("words in names"), Column("groups named in the query", NAME),
            Column("suggested reformulation", QUOTE)]  # fmt: skip
    note = (
        "Words: for each group, how many words of the results name it. A query is shown as its text "
        "if the audit kept the texts (askew audit --keep-queries), and otherwise as its id."
    )
    return table(
        "worst", f"{len(rows)} neutral queries that lean beyond chance; lean: {found.deciding}", head, rows, note
    )


def tried_table(found: AuditReport) -> Table:
    """The reformulations that were searched, by query."""
    names = {one.query_id: one.text for one in found.worst if one.text}
    is_judged = found.effectiveness is not None
    grouped: dict[str, list[list[Cell]]] = {}
    for one in found.reformulations:
        effect = [one.effectiveness_before, one.effectiveness_after, one.outcome] if is_judged else []
        grouped.setdefault(one.query_id, []).append([
            one.text, "yes" if one.suggested else "", one.lean_before, one.lean_after, one.lean_verdict,
            100 * one.kept, *effect, 100 * one.same, one.method,
        ])  # fmt: skip
    judged = [Column(f"{found.effectiveness} before"), Column("after"), Column("outcome", NAME)]
    head = [Column("reformulation", QUOTE), Column("suggested", NAME), Column("lean before"), Column("lean after"),
            Column("lean", NAME), Column("results kept", digits=0, unit="%"), *(judged if is_judged else []),
            Column("P(same)", digits=0, unit="%"), Column("method", NAME)]  # fmt: skip
    effectiveness = (
        f"Effectiveness is measured by {found.effectiveness}. A suggested reformulation of a judged query loses no "
        "effectiveness."
        if is_judged
        else "Effectiveness is not measured, because there are no judgements."
    )
    rule = (
        "A suggested reformulation leans less than the query and keeps enough of the top results of the query."
        if found.agree is None or found.reduction is None
        else f"A suggested reformulation leans at least {n.share(found.reduction, 0)} less than the query and keeps at "
        f"least {n.share(found.agree, 0)} of the top results of the query."
    )
    note = (
        f"Lean is measured by {found.deciding}. {rule} {effectiveness} P(same) is the probability that the "
        f"reformulation asks for the same thing as the query{f' ({found.model})' if found.model else ''}."
    )
    groups = [Group(shown(names.get(query, query)), rows) for query, rows in grouped.items()]
    caption = "Reformulations of the worst queries, searched with the same engine"
    return Table("reformulations", caption, head, groups, [note])


def sensitivity_table(found: AuditReport) -> Table:
    """The same results, measured with other measures, word lists and tokenizers."""
    rows = [[one.label, Estimate(one.mean, one.low, one.high), one.toward] for one in found.sensitivity.combinations]
    head = [Column("measure, word list, tokenizer", CODE), Column("mean [95%]"), Column("leans toward", NAME)]
    return table("sensitivity", "The lean of the same results by other measures, word lists and tokenizers", head, rows)


def sensitivity_said(found: AuditReport) -> list[str]:
    """How often the verdict is the same with other measures, word lists and tokenizers."""
    one, said = found.sensitivity, list[str]()
    if one.of:
        said.append(
            f"The verdict ({found.verdict}) is the same in {one.holds} of {one.of} combinations of measure and word "
            "list."
        )
    return said or [
        "This audit has no verdict on the group toward which the results lean. Compare the means in the table."
    ]


_PRIVATE = "This page shows the texts of queries and parts of documents. Do not share it if these are private."


def write_audit(report: AuditReport, out: Path, keep_queries: bool) -> list[Path]:
    """Write report.html, audit.json and tables/*.csv to a folder, and return their paths, the page first."""
    parts = PageParts()
    page = audit_page(report, parts, keep_queries)
    numbers = json.dumps(report.to_dict(keep_queries), indent=1, allow_nan=False) + "\n"
    tables = {**parts.files(), "tables/queries.csv": report.per_query().write_csv().encode()}
    return write_report(out, {"report.html": page.encode(), FILE: numbers.encode(), **tables})


def audit_page(report: AuditReport, parts: PageParts, keep_queries: bool = False) -> str:
    """Return the whole page as HTML text; ``parts`` collects its tables."""
    sections = audit_sections(report, parts, keep_queries)
    return document(f"Audit of {report.engine}", audit_head(report, parts), sections, [paragraph(_PRIVATE)])


def _drawn(parts: PageParts | None, shown: Table, data: Callable[[], pl.DataFrame] | None = None) -> Markup:
    """Draw a table. Only a page with files, whose ``parts`` are collected, needs the data of the table."""
    return html_table(shown) if parts is None else parts.table(shown, None if data is None else data())


def audit_head(report: AuditReport, parts: PageParts | None = None) -> list[Markup]:
    """The headline, the engine, the conditions that failed, and the lean by chance."""
    head, first = [paragraph(LEAD, kind="lead"), about(report)], report.headline
    if report.failures:
        head.append(join([paragraph(tag("strong", "Conditions that failed:")), listed(report.failures)]))
    if first is not None:
        head.insert(0, paragraph(tag("strong", first.sentence)))
        head += [figure(first.chart(), "Lean in the results and by chance"), _drawn(parts, first.table())]
    return head


def audit_sections(report: AuditReport, parts: PageParts | None = None, keep_queries: bool = False) -> list[Section]:
    """The sections of report.html and of the page of the explorer, which is made from audit.json."""
    signatures = "\n".join(one.signature for one in report.measures.values())
    lean = [
        _drawn(parts, means_table(report), report.to_polars),
        folded("Signatures: every setting that the value of a measure depends on", signatures),
    ]
    sections = [Section("next", "What to do next", [listed(report.next_steps)]), Section("lean", "Lean", lean)]
    if baseline := report.against_baseline:
        rows = [{"measure": text, **asdict(one)} for text, one in baseline.items()]
        change = _drawn(parts, baseline_table(baseline), lambda: pl.DataFrame(rows))
        sections.append(Section("baseline", "Change since the baseline", [change]))
    reasons = []
    for place, one in enumerate(report.parts, start=1):
        columns = [{k: v for k, v in vars(part).items() if k != "amounts"} for part in one.parts]
        reasons.append(_drawn(parts, parts_table(one, place), partial(pl.DataFrame, columns) if columns else None))
    if reasons:
        title = "Lean by the reason for a mention and by the kind of person mentioned"
        sections.append(Section("parts", title, reasons))
    none = (
        "No query is listed: no result list of a neutral query leans beyond chance with the false-discovery rate at "
        f"most 'level', {report.deciding} is 0 for those that do, or the setting 'worst' is 0."
    )
    worst = [html_table(worst_table(report)) if report.worst else paragraph(none)]
    # The texts of results are not in audit.json.
    if any(one.results for one in report.worst):
        words = f"{len(report.worst)} neutral queries that lean beyond chance, with marks by group: "
        legend = join([_mark(group, (group,), report.groups) for group in report.groups], ", ")
        worst = [paragraph(words, legend, ".")]
        worst += [_worst(report, place, one) for place, one in enumerate(report.worst, start=1)]
    tried = paragraph("No reformulation was tried.")
    if report.reformulations:
        left_out = {"gain"} if keep_queries else {"gain", "text"}
        searched = [
            {key: value for key, value in vars(one).items() if key not in left_out} for one in report.reformulations
        ]
        tried = _drawn(parts, tried_table(report), lambda: pl.DataFrame(searched, infer_schema_length=None))
    dropped = "; ".join(f"{reason}: {count:,}" for reason, count in sorted(report.dropped_reformulations.items()))
    words = f"Candidate reformulations that were not sent to the engine, by reason: {dropped}."
    ways = partial(pl.DataFrame, [vars(one) for one in report.sensitivity.combinations], infer_schema_length=None)
    sensitivity = [listed(sensitivity_said(report)), _drawn(parts, sensitivity_table(report), ways)]
    reranked = []
    if report.effects:
        shown_effects = _drawn(parts, effects_table(report.effects, "effects"))
        reranked = [Section("effects", "Another order of the results", [shown_effects])]
    return [
        *sections,
        Section("worst", "Worst queries", worst),
        Section("reformulations", "Reformulations", [tried, *([paragraph(words, kind="note")] if dropped else [])]),
        *reranked,
        Section("sensitivity", "Sensitivity", sensitivity),
        Section("limits", "Limits", [listed([NOT_BIAS, *LIMITS, *report.notes])]),
    ]


def _worst(report: AuditReport, place: int, one: WorstQuery) -> Markup:
    counts = ", ".join(f"{group} {count:,}" for group, count in one.mentions.items())
    named = f"; the query itself names {', '.join(one.named)}" if one.named else ""
    values = "; ".join(f"{text} {n.mean(value)}" for text, value in report.scores[one.query_id].items())
    suggested = []
    for tried in report.suggested:
        if tried.query_id == one.query_id:
            told = (
                f" (P(same) {n.share(tried.same, 0)}; lean {n.mean(tried.lean_before)} to {n.mean(tried.lean_after)}; "
                f"{n.share(tried.kept, 0)} of the results kept)"
            )
            suggested.append(paragraph("Suggested: ", quoted(tried.text), told))
    results = []
    for found in one.results:
        pieces = [_mark(text, groups, report.groups) if groups else text for text, groups in found.pieces]
        words = tag("bdi", *pieces, dir="auto")
        results.append(tag("li", join([code(found.doc_id), " ", words]), value=found.rank))
    return join([
        heading(f"{place}. {shown(one.text)}"), paragraph(code(one.query_id), f": {values}", kind="note"),
        paragraph(f"Number of words of each group in these results: {counts}{named}", kind="note"), *suggested,
        tag("details", tag("summary", f"{len(one.results)} results"), tag("ol", *results)),
    ])  # fmt: skip


def _mark(text: str, named: tuple[str, ...], groups: Sequence[str]) -> Markup:
    place = groups.index(named[0]) if named[0] in groups else 0
    return tag("mark", shown(text), class_=f"g{place % 6 + 1}", title=", ".join(named))
