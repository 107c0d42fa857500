"""Elements that several pages share: bars of lean, outcomes, gains, fields of forms, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from askew.app.explore.answers import Setting, ShownResult
from askew.core.measure import Direction
from askew.core.outcome import Verdict, verdict
from askew.publish.page import numerals as n
from askew.publish.page.markup import Value
from askew.web.markup import Markup, address, element, join, shown, tag

# The number of group colors in the style sheet.
_COLORS = 6
# The first word of an outcome is about effectiveness, the second about lean.
_FIRST = {"better": "retrieves better", "same": "retrieves as well", "worse": "retrieves worse"}
_SECOND = {"less": "leans less", "same": "leans as much", "more": "leans more"}
# The word for the first measure of effectiveness or lean, if it gained although another measure is worse.
_MIXED = {"worse": "better", "more": "less"}
_ARROWS: dict[Verdict | None, tuple[str, str]] = {Verdict.BETTER: ("up", "▲ "), Verdict.WORSE: ("down", "▼ ")}
Option = tuple[str, str]


@dataclass(frozen=True)
class Head:
    """The head of a column: its label, the class of its cells, its tooltip, and its sort order."""

    label: object
    kind: str
    title: str | None = None
    sort: str | None = None


Gained = tuple[str | None, float | None]


def class_of(groups: Sequence[str], setting: Setting) -> str:
    """Return the class for a marked word: the color of its group, or an extra color if it names several groups."""
    return color_of(setting.groups.index(groups[0])) if len(groups) == 1 else "several"


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


def lean_bar(mentions: Mapping[str, int], setting: Setting, most: int, kind: str = "bar") -> Markup:
    """Draw a bar of word counts: two groups to both sides of the middle, otherwise in a row.

    The bar is full at a count of ``most``; more words do not make it longer. In a full row, each group has its share.
    """
    return tag(
        "svg",
        tag("rect", class_="track", x=0, y=4, width=200, height=4),
        *_fills(mentions, setting, most),
        viewBox="0 0 200 12",
        preserveAspectRatio="none",
        class_=kind,
        role="img",
        aria_label=counted(mentions, setting),
    )


def _fills(mentions: Mapping[str, int], setting: Setting, most: int) -> list[Markup]:
    two = len(setting.groups) == 2
    counts = [mentions.get(group, 0) for group in setting.groups]
    full = max(most, 1)
    wide = [100 * min(count / full, 1) if two else 200 * count / max(full, sum(counts)) for count in counts]
    starts = [100 - wide[0], 100] if two else [sum(wide[:place]) for place in range(len(wide))]
    drawn = [
        tag("rect", class_=f"fill-{color_of(place)}", x=start, y=0, width=width, height=12)
        for place, (start, width) in enumerate(zip(starts, wide, strict=True))
    ]
    return [*drawn, tag("rect", class_="middle", x=99.5, y=0, width=1, height=12)] if two else drawn


def legend(setting: Setting) -> Markup:
    """Explain how words are marked, and what the sign of the lean means."""
    words = [element("mark", group, class_=color_of(place)) for place, group in enumerate(setting.groups)]
    every = join([join(words[:-1], ", "), " and ", words[-1]]) if len(words) > 1 else words[0]
    return tag(
        "p",
        "Marked: words that ",
        tag("code", setting.lexicon),
        " lists for ",
        every,
        ". ",
        setting.sign,
        class_="note",
    )


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


def signed(value: float | None, digits: int = 3) -> str:
    """Format a gain with its sign."""
    if value is None:
        return n.NONE
    text = f"{value:+.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else text.lstrip("+-")


def gain_cell(gain: float | None, colored: bool = True) -> Markup:
    """Show a gain with an arrow and a sign; ``colored`` is false for a gain that may be due to chance."""
    kind, word = _ARROWS.get(verdict(0.0, gain, Direction.UP), ("", ""))
    look = f"gain {kind}".strip() if colored else "gain"
    return tag("span", tag("span", word, aria_hidden="true"), signed(gain), class_=look)


def change_cell(change: float | None, found: str | None) -> Markup:
    """Show a change in percent, and whether it is better or worse, which depends on the measure."""
    look = {"better": "gain up", "worse": "gain down"}.get(found or "", "gain")
    return tag("span", n.change(change), "" if found is None else f" ({found})", class_=look)


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


def pager(path: str, given: Mapping[str, object], page: int, pages: int) -> Markup:
    """Make links to the first, previous, next and last page."""

    def step(words: str, to: int, rel: str) -> Markup:
        if not 1 <= to <= pages or to == page:
            return tag("span", words, class_="off")
        return element("a", words, href=address(path, {**given, "page": to if to > 1 else None}), rel=rel)

    here = tag("span", f"page {page:,} of {pages:,}")
    return tag(
        "nav",
        step("first", 1, "first"),
        step("previous", page - 1, "prev"),
        here,
        step("next", page + 1, "next"),
        step("last", pages, "last"),
        class_="pager",
        aria_label="Pages of the list",
    )


def data_table(
    caption: str, head: Sequence[Head | tuple[object, str]], rows: Sequence[Sequence[object]], name: str
) -> Markup:
    """Make a table. The first cell of a row is its header. Items of ``head`` may be (label, class)."""
    title = f"table-{name}"
    heads = [one if isinstance(one, Head) else Head(*one) for one in head]
    labels = tag("tr", *(tag("th", one.label, scope="col", class_=one.kind, title=one.title, aria_sort=one.sort)
                         for one in heads))  # fmt: skip
    body = [
        tag(
            "tr",
            *(
                tag("th" if place == 0 else "td", cell, class_=one.kind, scope="row" if place == 0 else None)
                for place, (cell, one) in enumerate(zip(row, heads, strict=True))
            ),
        )
        for row in rows
    ]
    drawn = tag("table", tag("caption", tag("span", caption), id=title), tag("thead", labels), tag("tbody", *body))
    return tag("div", drawn, class_="scroll", role="region", aria_labelledby=title, tabindex="0")


def quote(text: str) -> Markup:
    """Show a query in quotation marks."""
    return tag("q", tag("bdi", shown(text), dir="auto"))
