"""Runs: the measures of runs as in ``askew measure``, query by query, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from askew.core.outcome import signs
from askew.report import markup as n
from askew.report.charts import About, Line, sorted_gains, steps
from askew.study.compare import CompareReport
from askew.ui.explorer.runs import MISSING_TEXT, SIGNIFICANT, Audit, Worst
from askew.ui.web.markup import Markup, address, element, join, shown, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.shell import Page

MISSING = (
    ("error", "stop with an error"), ("zero", "count the document as one that names no group"),
    ("drop", "remove the document before the cutoff is applied, so that the next documents move up"),
    ("skip", "remove the document after the cutoff is applied, so that fewer documents are measured"),
)  # fmt: skip
_LEAD = "Effectiveness and bias (lean) of runs, as means and query by query."


@dataclass(frozen=True)
class RunsForm:
    """The choices of a user: runs by their names in a link, judgements, measure, and rule for missing documents."""

    runs: tuple[str, ...] = ()
    qrels: str = ""
    measure: str = ""
    missing: str = MISSING_TEXT

    def link(self, **other: object) -> str:
        """Make the link to these choices, with some of them changed."""
        given = {"run": list(self.runs), "qrels": self.qrels, "measure": self.measure,
                 "missing": self.missing if self.missing != MISSING_TEXT else None, **other}  # fmt: skip
        return address("/runs", given)


def runs_page(known: Mapping[str, str], chosen: RunsForm, found: Audit | None, problem: str, note: str) -> Page:
    """Show the forms and the results, if any. ``known`` has the available runs: name in a link, and label."""
    lead = tag("p", _LEAD, class_="lead")
    body: list[Markup] = [tag("h1", "Runs"), lead, _choose(known, chosen), _upload(opened=not known)]
    if problem:
        body.append(p.notice(tag("p", problem), kind="warn", role="alert"))
    if found is not None:
        body += _found(found, chosen)
    elif not problem:
        words = (
            "Select one run to measure it, or two runs to compare the second with the first, or upload your own runs."
        )
        body.append(p.notice(tag("p", words), role="status"))
    return Page("Runs", tuple(body), "/runs", note)


def _choose(known: Mapping[str, str], chosen: RunsForm) -> Markup:
    if not known:
        return Markup()
    boxes = []
    for name, words in known.items():
        box = element("input", type="checkbox", name="run", value=name, checked=name in chosen.runs)
        boxes.append(element("li", element("label", box, shown(words))))
    missing = p.choice("missing", "What to do with a ranked document that has no text", MISSING, chosen.missing)
    group = tag("fieldset", element("legend", "Runs"), tag("ul", *boxes, class_="checks"))
    kept = p.kept(qrels=chosen.qrels, measure=chosen.measure)
    return p.form("/runs", "Measure", group, missing, *kept, aria_label="Choose runs")


def _upload(opened: bool) -> Markup:
    files = element("input", type="file", id="f-files", name="files", multiple=True, required=True)
    judged = element("input", type="file", id="f-qrels", name="qrels")
    fields = [
        p.field("Run files in TREC format, at most four", files, "files", "wide"),
        p.field("Judgements, if you have them", judged, "qrels", "wide"),
    ]
    words = (
        "Each line of a TREC run has query, Q0, document, rank, score and tag. The texts of the documents are read "
        "from the collection that this explorer has open. Files are kept only in memory, for a limited time."
    )
    form = p.form("/runs", "Upload and measure", *fields, method="post", enctype="multipart/form-data",
                  aria_label="Upload runs")  # fmt: skip
    note = tag("p", words, class_="note")
    return tag("details", tag("summary", "Upload your own runs"), form, note, open="" if opened else None)


def _found(found: Audit, chosen: RunsForm) -> list[Markup]:
    measure = chosen.measure or found.measures[0]
    head = {"measure": "code", **{shown(run.name): "number" for run in found.report.runs}}
    rows: list[list[object]] = []
    for one in found.report.asked:
        rows.append([tag("code", one.text)])
        for mean in (found.report.mean(run, one) for run in found.report.runs):
            ends = f"[{n.mean(mean.low, 3)}, {n.mean(mean.high, 3)}], {mean.n:,} queries"
            rows[-1].append(tag("span", n.mean(mean.mean), tag("br"), tag("span", ends, class_="note")))
    tables = [tag("section", p.data_table("Means over queries with 95% intervals", head, rows, "means"))]
    tables += [] if found.comparison is None else [_comparison(found.comparison, chosen)]
    body = [tag("div", *tables, class_="overview uneven" if len(found.report.runs) == 2 else "overview")]
    links = p.link_list(((one, chosen.link(measure=one) + "#by-query") for one in found.measures), measure)
    title = tag("h2", f"Query by query: {measure}", id="by-query")
    body.append(tag("section", title, tag("p", join(links, " "), class_="sorting"), aria_labelledby="by-query"))
    body.append(tag("div", *_figures(found, measure), class_="figures"))
    runs = enumerate(found.report.runs[:2])
    worst = [_worst(found.worst(measure, run), shown(scores.name), measure, run) for run, scores in runs]
    body.append(tag("div", *worst, class_="overview"))
    notes = [*found.report.notes, *(found.comparison.notes if found.comparison else [])]
    if notes:
        items = [tag("li", shown(words)) for words in dict.fromkeys(notes)]
        body.append(tag("details", tag("summary", f"Notes on the runs ({len(items)})"), tag("ul", *items)))
    return [*body, p.signature_list(one.signature for one in found.report.asked)]


def _comparison(report: CompareReport, chosen: RunsForm) -> Markup:
    head = {
        "measure": "code", "gain": "number", "95% interval": "number", "p": "number", "p (Holm)": "number",
        "number of queries improved / unchanged / worsened": "number counts-head", "n queries": "number",
    }  # fmt: skip
    rows = []
    for one in report.asked:
        result = report.results[one.text]
        ends = f"[{p.signed(result.low)}, {p.signed(result.high)}]"
        counts = " / ".join(n.count(count) for count in (result.improved, result.unchanged, result.worsened))
        holm = report.p_holm.get(one.text)
        gain = p.gain_cell(result.gain, colored=holm is not None and holm < SIGNIFICANT)
        rows.append(
            [tag("code", one.text), gain, ends, n.p_value(result.p), n.p_value(holm), counts, n.count(result.n)]
        )
    caption = f"{shown(report.new)} against {shown(report.old)}: a positive gain is an improvement"
    note = (
        f"The gain is the mean over queries of how much better {shown(report.new)} is than {shown(report.old)}. p is "
        f"the p-value of the null hypothesis '{report.nulls['p']}'. p (Holm) is p corrected for the number of measures "
        f"of effectiveness, or of lean. A gain is colored if p (Holm) is below {SIGNIFICANT}."
    )
    swapped = chosen.link(run=[*chosen.runs[1::-1], *chosen.runs[2:]])
    swap = tag("p", element("a", f"Take {shown(report.new)} as the baseline", href=swapped))
    return tag("section", p.data_table(caption, head, rows, "comparison"), swap, tag("p", note, class_="note"))


def _figures(found: Audit, measure: str) -> list[Markup]:
    drawn, lines = [], []
    values_room, gains_room = found.scale(measure)
    for place, run in enumerate(found.report.runs[:4]):
        values = found.values(measure, place)
        share = np.arange(1, len(values) + 1) / max(len(values), 1)
        lines.append(Line(shown(run.name), values, share, place))
    words = (
        "Each line is one run. At each value of the measure, the line shows the share of queries with this value or a "
        "lower value."
    )
    about = About("distribution", f"Distribution of {measure} over queries", words)
    picture = steps(about, lines, measure, "share of queries", room=values_room)
    drawn.append(_figure(picture, about.title, about.description))
    if found.comparison is not None:
        queries, gains = found.gains(measure)
        sign = signs(gains)
        better, worse = int((sign == 1).sum()), int((sign == -1).sum())
        told = f"{better:,} queries improve, {worse:,} worsen, of {len(queries):,}."
        about = About(
            "gains", f"Gains of {shown(found.comparison.new)} over {shown(found.comparison.old)} by {measure}", told
        )
        names = [f"improved: {better:,} queries", f"worsened: {worse:,} queries"]
        drawn.append(_figure(sorted_gains(about, gains, "gain", names, gains_room), about.title, told))
    return drawn


def _figure(drawn: Markup, title: str, words: str) -> Markup:
    return tag("figure", tag("div", drawn, class_="chart"), tag("figcaption", tag("strong", title), " ", words))


def _worst(worst: Sequence[Worst], run: str, measure: str, place: int) -> Markup:
    compared = place == 1
    if compared and not worst:
        return tag("section", tag("p", f"{run} is worse on no query by {measure}.", class_="note"))
    head = {"query": "quote", measure: "number", **({"gain": "number"} if compared else {})}
    rows: list[list[object]] = []
    for one in worst:
        name: object = tag("code", shown(one.query_id))
        if one.text:
            name = element("a", tag("bdi", shown(one.text), dir="auto"), href=address("/", {"q": one.text}))
        rows.append([name, n.mean(one.value, 3), *([p.gain_cell(one.gain)] if compared else [])])
    caption = f"Queries on which {run} has the worst values of {measure}"
    if compared:
        caption = f"Queries on which {run} has the largest losses in {measure} compared with the first run"
    return tag("section", p.data_table(caption, head, rows, f"worst-{place}"))
