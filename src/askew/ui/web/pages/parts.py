"""Elements that several pages share: bars of lean, outcomes, gains, fields of forms, tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from askew.core.measure import Direction
from askew.core.outcome import Verdict, verdict
from askew.report import markup as n
from askew.report.charts import LINE, UNDER, WIDTH, About, Axis, Plot, Scale, line, picture, tick_step, tick_text
from askew.report.charts import below as axis_below
from askew.report.charts import mark as shape
from askew.report.charts import text as label_at
from askew.report.markup import Value
from askew.report.table import Column, html_table, table
from askew.ui.explorer.answers import CountedPart, Setting, ShownMark, ShownResult
from askew.ui.explorer.explorer import TOP
from askew.ui.explorer.leaning import LeanPicture
from askew.ui.web.markup import Markup, address, element, join, shown, tag

# The number of group colors in the style sheet.
_COLORS = 6
# The first word of an outcome is about effectiveness, the second about lean.
_FIRST = {"better": "retrieves better", "same": "retrieves as well", "worse": "retrieves worse"}
_SECOND = {"less": "leans less", "same": "leans as much", "more": "leans more"}
# The word for the first measure of effectiveness or lean, if it gained although another measure is worse.
_MIXED = {"worse": "better", "more": "less"}
_ARROWS: dict[Verdict | None, tuple[str, str]] = {Verdict.BETTER: ("up", "▲ "), Verdict.WORSE: ("down", "▼ ")}
Option = tuple[str, str]


Gained = tuple[str | None, float | None]


def color_of(place: int) -> str:
    """Return the class of the group at this index. The colors repeat after the last one."""
    return f"g{place % _COLORS + 1}"


def result_head(one: ShownResult, said: Markup) -> Markup:
    """Make the line above a result: its rank, document id, relevance if judged, and another remark."""
    judged = [] if one.relevance is None else [tag("span", f"relevance {one.relevance}", class_="chip")]
    rank = tag("span", str(one.rank), class_="rank")
    return tag("p", rank, tag("code", shown(one.doc_id)), *judged, said, class_="result-head")


def counted(mentions: Mapping[str, int], setting: Setting) -> str:
    """Describe the number of words of each group."""
    return ", ".join(f"{n.count(mentions.get(group, 0))} {group}" for group in setting.groups) + " words"


def legend(setting: Setting) -> Markup:
    """Explain how words are marked, and what the sign of the lean means."""
    words = [element("mark", group, class_=color_of(place)) for place, group in enumerate(setting.groups)]
    every = join([join(words[:-1], ", "), " and ", words[-1]]) if len(words) > 1 else words[0]
    lexicon = tag("code", setting.lexicon)
    return tag("p", "Marked: words that ", lexicon, " lists for ", every, ". ", setting.sign, class_="note")


def outcome_words(outcome: str | None, lean: str | None) -> str:
    """Describe an outcome in words. A query without judgements has only the verdict on lean."""
    if outcome is None:
        return n.NONE if lean is None else _SECOND[lean]
    first, _, second = outcome.partition("-")
    return f"{_FIRST[first]} and {_SECOND[second]}"


def outcome_beside(outcome: str | None, first: Gained, lean: Gained, tolerance: float = 0.0) -> str:
    """Describe an outcome that is shown beside the gains of the first measures of effectiveness and of lean.

    Effectiveness or lean is worse if one of its measures is worse. If its first measure gained, both facts are stated.
    """
    if outcome is None:
        return n.NONE
    told, (good, bad) = [], outcome.split("-")
    for words, sign, (measure, gain) in ((_FIRST, good, first), (_SECOND, bad, lean)):
        split = sign in _MIXED and verdict(0.0, gain, Direction.UP, tolerance) is Verdict.BETTER
        told.append(f"{words[_MIXED[sign]]} by {measure}, {sign} by another" if split else words[sign])
    return " and ".join(told)


def signed(value: float | None) -> str:
    """Format a gain with its sign."""
    if value is None:
        return n.NONE
    text = f"{value:+.3f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else text.lstrip("+-")


def gain_cell(gain: float | None, colored: bool = True) -> Markup:
    """Show a gain with an arrow and a sign; ``colored`` is false for a gain that may be due to chance."""
    kind, word = _ARROWS.get(verdict(0.0, gain, Direction.UP), ("", ""))
    look = f"gain {kind}".strip() if colored else "gain"
    return tag("span", tag("span", word, aria_hidden="true"), signed(gain), class_=look)


def notice(*words: object, kind: str = "", role: str | None = None) -> Markup:
    """Make a highlighted box."""
    return tag("div", *words, class_=f"notice {kind}".strip(), role=role)


def field(label: str, control: Markup, name: str, kind: str = "") -> Markup:
    """Make a form control with its label."""
    return tag("div", element("label", label, for_=f"f-{name}"), control, class_=f"field {kind}".strip())


def text_input(name: str, label: str, value: str = "", kind: str = "", **more: Value) -> Markup:
    """Make a text field."""
    given: dict[str, Value] = {"type": "text", "maxlength": 500, **more}
    return field(label, element("input", id=f"f-{name}", name=name, value=value, **given), name, kind)


def choice(name: str, label: str, options: Sequence[Option], chosen: str) -> Markup:
    """Make a selection list. Each option is a value and its text."""
    made = [element("option", text, value=value, selected=value == chosen) for value, text in options]
    return field(label, element("select", *made, id=f"f-{name}", name=name), name)


def kept(**values: object) -> list[Markup]:
    """Make hidden fields of a form."""
    return [element("input", type="hidden", name=name, value=str(value)) for name, value in values.items() if value]


def form(action: str, label: str, *controls: Markup, kind: str = "ask", **attributes: Value) -> Markup:
    """Make a form with a button at its end."""
    method: dict[str, Value] = {"method": "get", "class_": kind, **attributes}
    return element("form", *controls, element("button", label, type="submit"), action=action, **method)


def compared(query: str, to: str, k: int, query_id: str | None = None) -> str:
    """Make the link to the comparison of a reformulation with the original query."""
    return address("/compare", {"q": query, "to": to, "k": k if k != TOP else None, "query_id": query_id})


def pager(path: str, given: Mapping[str, object], page: int, pages: int) -> Markup:
    """Make links to the first, previous, next and last page."""

    def step(words: str, to: int, rel: str) -> Markup:
        if not 1 <= to <= pages or to == page:
            return tag("span", words, class_="off")
        return element("a", words, href=address(path, {**given, "page": to if to > 1 else None}), rel=rel)

    before = step("first", 1, "first"), step("previous", page - 1, "prev")
    after = step("next", page + 1, "next"), step("last", pages, "last")
    here = tag("span", f"page {page:,} of {pages:,}")
    return tag("nav", *before, here, *after, class_="pager", aria_label="Pages of the list")


def data_table(
    caption: str, head: Mapping[str, str] | Sequence[Column], rows: Sequence[Sequence[Any]], name: str
) -> Markup:
    """Make a table of markup. ``head`` has the columns, or maps their labels to the classes of their cells."""
    columns = [Column(*item) for item in head.items()] if isinstance(head, Mapping) else head
    return html_table(table(name, caption, columns, rows))


def signature_list(signatures: Iterable[str], *notes: Markup) -> Markup:
    """Show the signatures of measures, folded."""
    items = [tag("li", tag("code", one)) for one in signatures]
    return tag("details", tag("summary", "Details of the measures"), *notes, tag("ul", *items, class_="signatures"))


def link_list(links: Iterable[tuple[str, str]], chosen: str, **attributes: Value) -> list[Markup]:
    """Make links of labels and addresses, of which one is marked as chosen."""
    return [
        element("a", shown(label), href=href, aria_current="true" if label == chosen else None, **attributes)
        for label, href in links
    ]


def quote(text: str) -> Markup:
    """Show a query in quotation marks."""
    return tag("q", tag("bdi", shown(text), dir="auto"))


# The chart of the deciding measure of lean: how each result changes its value, the final value, and typical values.

_LEFT, _RIGHT, _STEP = 26.0, WIDTH - 14.0, 13.0
_DIAMOND = 3


def lean_picture(one: LeanPicture, setting: Setting, name: str = "lean") -> Markup:
    """Draw the value from rank to rank, top to bottom: left of balance is the first group, right of it the last."""
    top = LINE * 1.7
    bottom = top + _STEP * (len(one.running) + 1)
    plot = Plot(_LEFT, top, _RIGHT, bottom, Scale(*one.scale, _LEFT, _RIGHT), Scale(0, 1, bottom, top))
    typical = []
    if one.typical is not None:
        # The range of nine in ten queries, the range of the middle half, and the median.
        low, lower, median, upper, high = (_at(plot, value) for value in one.typical.quantiles)
        for start, end, part in ((low, high, "most"), (lower, upper, "half")):
            size = {"width": max(end - start, 1), "height": bottom - top}
            typical.append(tag("rect", x=start, y=top, **size, class_=f"typical-{part}"))
        typical.append(tag("line", x1=median, y1=top, x2=median, y2=bottom, class_="typical-middle"))
    ranks = [
        label_at(2, _row(plot, rank) + 4, str(rank), size=10.0)
        for rank in range(1, len(one.running) + 1)
        if rank in (1, len(one.running)) or rank % 5 == 0
    ]
    drawn = [*typical, *ranks, line(plot.x(one.best), top, plot.x(one.best), bottom, False)]
    low, high = one.scale
    step = tick_step(low, high)
    values = [low + place * step for place in range(round((high - low) / step) + 1)]
    axis = Axis(one.measure, low, high, tuple((value, tick_text(value, step)) for value in values))
    drawn += _steps(one, setting, plot)
    if one.value is not None:
        x = _at(plot, one.value)
        side, anchor = (-10, "end") if x > (plot.left + plot.right) / 2 else (10, "start")
        label = label_at(x + side, bottom - 5, n.mean(one.value, 3), anchor)
        drawn.append(tag("g", shape(_DIAMOND, x, bottom, 6.5), label, class_="lean-marker"))
    if setting.signed:
        y = top - LINE * 0.6
        first, last = setting.groups[0], setting.groups[-1]
        drawn.append(tag("g", label_at(_LEFT, y, f"← {first}"), label_at(_RIGHT, y, f"{last} →", "end")))
    steps, typical_words = ", ".join(n.mean(value, 3) for value in one.running), ""
    if one.typical is not None:
        ends = f"between {n.mean(one.typical.quantiles[0], 3)} and {n.mean(one.typical.quantiles[-1], 3)}"
        typical_words = f" For nine in ten of {one.typical.queries:,} queries, {one.measure} is {ends}."
    described = f"{one.measure} is {n.mean(one.value, 3)}. With one result, two and so on: {steps}.{typical_words}"
    about = About(name, f"{one.measure}, result by result", described)
    return tag(
        "div", picture(about, WIDTH, bottom + UNDER, *drawn, axis_below(plot, axis)), class_="chart lean-picture"
    )


def _at(plot: Plot, value: float) -> float:
    """Return the x coordinate of a value, limited to the scale."""
    return plot.x(min(max(value, plot.x.low), plot.x.high))


def _row(plot: Plot, rank: int) -> float:
    return plot.top + _STEP * (rank - 0.5)


def _steps(one: LeanPicture, setting: Setting, plot: Plot) -> list[Markup]:
    """Draw a line from rank to rank, in the color of the group that a result moves the value toward."""
    x, y, before = _at(plot, one.best), plot.top, one.best
    drawn = []
    for rank, value in enumerate(one.running, 1):
        if value is None:
            continue
        to = _at(plot, value), _row(plot, rank)
        moved = setting.signed and value != before
        color = f" stroke-{color_of(len(setting.groups) - 1 if value > before else 0)}" if moved else ""
        drawn.append(tag("line", x1=x, y1=y, x2=to[0], y2=to[1], class_=f"step{color}"))
        told = f"with {rank} result{'s' if rank > 1 else ''}: {n.mean(value, 3)}"
        drawn.append(tag("g", tag("title", told), tag("circle", cx=to[0], cy=to[1], r=2.6, class_="step-dot")))
        x, y, before = *to, value
    return drawn


def picture_note(pictures: Sequence[LeanPicture | None]) -> Markup:
    """Explain the chart and its shaded ranges."""
    one = next((one for one in pictures if one is not None and one.typical is not None), None)
    if one is None or one.typical is None:
        return Markup()
    words = (
        "Each line shows how one result changes the value of the measure; the diamond is the final value. The shaded "
        f"range contains the final values of nine in ten of {one.typical.queries:,} queries of this collection. The "
        "darker range contains the middle half of these values. The scale is the same for all queries."
    )
    return tag("p", words, class_="note")


def parts_line(parts: Sequence[CountedPart], measure: str | None) -> Markup:
    """State which shares of the words that a measure counts are off topic and on topic."""
    if not parts or measure is None:
        return Markup()
    told = ", ".join(f"about {one.share:.0%} are {one.part}" for one in parts)
    words = (
        f"Of the words that {measure} counts, {told}. These shares are estimated with small models and may be off by "
        "up to 16 percentage points. In documents that are about the query, the models do not distinguish stereotypes "
        "from other words."
    )
    return tag("p", words, class_="note")


# Marked words of results. The tooltip says which group a word names, who it points to, and why it is there.

# The number of words of a group that fills the bar of a result. The label has the true number.
FULL_BAR = 10


def explained(text: str, marks: Sequence[ShownMark], setting: Setting) -> Markup:
    """Mark the words of groups in a text. The explanation of a word is shown on hover and on focus."""
    parts, at = [], 0
    for mark in marks:
        # A word that names several groups has a color of its own.
        kind = color_of(setting.groups.index(mark.groups[0])) if len(mark.groups) == 1 else "several"
        kind += "" if mark.counted else " uncounted"
        word, why = text[mark.start : mark.end], mark.words
        parts += [text[at : mark.start], element("mark", word, class_=kind, title=why, data_why=why, tabindex="0")]
        at = mark.end
    return tag("bdi", *parts, text[at:], dir="auto")


def lean_bar(mentions: Mapping[str, int], setting: Setting) -> Markup:
    """Draw the number of words of each group in a result: two groups to both sides of the middle, otherwise in a row.

    The scale is the same for all results, and more than ``FULL_BAR`` words of a group do not make the bar longer. In a
    full row, each group has its share.
    """
    two = len(setting.groups) == 2
    counts = [mentions.get(group, 0) for group in setting.groups]
    if two:
        wide = [100 * min(count / FULL_BAR, 1) for count in counts]
        starts = [100 - wide[0], 100.0]
    else:
        wide = [200 * count / max(2 * FULL_BAR, sum(counts)) for count in counts]
        starts = [sum(wide[:place]) for place in range(len(wide))]
    drawn = [tag("rect", class_="track", x=0, y=4, width=200, height=4)]
    for place, (start, width) in enumerate(zip(starts, wide, strict=True)):
        drawn.append(tag("rect", class_=f"fill-{color_of(place)}", x=start, y=0, width=width, height=12))
    if two:
        drawn.append(tag("rect", class_="middle", x=99.5, y=0, width=1, height=12))
    return tag("svg", *drawn, viewBox="0 0 200 12", preserveAspectRatio="none", class_="bar", role="img",
               aria_label=counted(mentions, setting))  # fmt: skip
