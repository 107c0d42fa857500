"""What several pages show: marked words, bars of lean, fields of a form, values of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from askew.app.explore.answers import Setting, ShownResult
from askew.app.explore.marks import Mark
from askew.core.measure import Direction
from askew.core.outcome import Verdict, verdict
from askew.publish.page import numerals as n
from askew.publish.page.markup import Value
from askew.web.markup import Markup, address, element, shown, tag

LEFT, RIGHT, OTHER = "g1", "g2", "g3"
# The first word of an outcome is about effectiveness, the second about lean.
_FIRST = {"better": "retrieves better", "same": "retrieves as well", "worse": "retrieves worse"}
_SECOND = {"less": "leans less", "same": "leans as much", "more": "leans more"}
# What the first measure of a side says where it gained although the side is called so.
_MIXED = {"worse": "better", "more": "less"}
_ARROWS: dict[Verdict | None, tuple[str, str]] = {Verdict.BETTER: ("up", "▲ "), Verdict.WORSE: ("down", "▼ ")}
Option = tuple[str, str]
Gained = tuple[str | None, float | None]


def class_of(groups: Sequence[str], setting: Setting) -> str:
    """How a word of these groups is marked."""
    sides = [side for side, group in ((LEFT, setting.left), (RIGHT, setting.right)) if group in groups]
    return " ".join(sides) or OTHER


def marked(text: str, marks: Sequence[Mark], setting: Setting) -> Markup:
    """A text from elsewhere with the words of groups marked; its direction of writing turns nothing around it."""
    parts, at = [], 0
    for mark in marks:
        parts += [text[at : mark.start], _mark(text[mark.start : mark.end], mark.groups, setting)]
        at = mark.end
    return tag("bdi", *parts, text[at:], dir="auto")


def _mark(word: str, groups: Sequence[str], setting: Setting) -> Markup:
    return element("mark", word, class_=class_of(groups, setting), title=" and ".join(groups))


def counted(mentions: Mapping[str, int], setting: Setting) -> str:
    """How many words of each group, in words."""
    told = [f"{n.count(mentions.get(group, 0))} {group}" for group in (setting.left, setting.right)]
    return f"{told[0]}, {told[1]} words"


def lean_bar(mentions: Mapping[str, int], setting: Setting, most: int, kind: str = "bar") -> Markup:
    """Words of the one group to the left of the middle, of the other to the right; ``most`` words fill a side."""
    left, right = (100 * mentions.get(group, 0) / max(most, 1) for group in (setting.left, setting.right))
    return tag(
        "svg",
        tag("rect", class_="track", x=0, y=4, width=200, height=4),
        tag("rect", class_=f"fill-{LEFT}", x=100 - left, y=0, width=left, height=12),
        tag("rect", class_=f"fill-{RIGHT}", x=100, y=0, width=right, height=12),
        tag("rect", class_="middle", x=99.5, y=0, width=1, height=12),
        viewBox="0 0 200 12",
        preserveAspectRatio="none",
        class_=kind,
        role="img",
        aria_label=counted(mentions, setting),
    )


def most_words(results: Sequence[ShownResult], setting: Setting) -> int:
    """The most words of one side in a result, so that bars can be compared."""
    return max((one.mentions.get(group, 0) for one in results for group in (setting.left, setting.right)), default=1)


def legend(setting: Setting) -> Markup:
    """How words are marked."""
    words = [element("mark", group, class_=side) for side, group in ((LEFT, setting.left), (RIGHT, setting.right))]
    return tag(
        "p",
        "Marked: words that ",
        tag("code", setting.lexicon),
        " lists for ",
        words[0],
        " and ",
        words[1],
        ".",
        class_="note",
    )


def outcome_words(outcome: str | None, lean: str | None) -> str:
    """An outcome for readers; without one, as of a query without judgements, the verdict on lean alone."""
    if outcome is None:
        return n.NONE if lean is None else _SECOND[lean]
    first, _, second = outcome.partition("-")
    return f"{_FIRST[first]} and {_SECOND[second]}"


def outcome_beside(outcome: str | None, first: Gained, lean: Gained, tolerance: float = 0.0) -> str:
    """An outcome that stands beside the gains of the first measure of each side.

    Of several measures on a side one that is worse makes the side worse. Where the first one gained, both are told.
    """
    if outcome is None:
        return n.NONE
    told, (good, bad) = [], outcome.split("-")
    for words, sign, (measure, gain) in ((_FIRST, good, first), (_SECOND, bad, lean)):
        split = sign in _MIXED and verdict(0.0, gain, Direction.UP, tolerance) is Verdict.BETTER
        told.append(f"{words[_MIXED[sign]]} by {measure}, {sign} by another" if split else words[sign])
    return " and ".join(told)


def signed(value: float | None, digits: int = 3) -> str:
    """A gain, always with its sign."""
    if value is None:
        return n.NONE
    text = f"{value:+.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else text.lstrip("+-")


def gain_cell(gain: float | None, coloured: bool = True) -> Markup:
    """A gain with a sign that does not need colour to be seen; without colour where it may be chance."""
    kind, word = _ARROWS.get(verdict(0.0, gain, Direction.UP), ("", ""))
    look = f"gain {kind}".strip() if coloured else "gain"
    return tag("span", tag("span", word, aria_hidden="true"), signed(gain), class_=look)


def notice(*words: object, kind: str = "", role: str | None = None) -> Markup:
    """A box that stands out."""
    return tag("div", *words, class_=f"notice {kind}".strip(), role=role)


def field(label: str, control: Markup, name: str, kind: str = "") -> Markup:
    """A control under its label."""
    return tag("div", element("label", label, for_=f"f-{name}"), control, class_=f"field {kind}".strip())


def text_input(name: str, label: str, value: str = "", kind: str = "", **more: Value) -> Markup:
    """A line to type in."""
    given: dict[str, Value] = {"type": "text", "maxlength": 500, **more}
    return field(label, element("input", id=f"f-{name}", name=name, value=value, **given), name, kind)


def choice(name: str, label: str, options: Sequence[Option], chosen: str) -> Markup:
    """One of several: each option is a value and what is shown for it."""
    made = [element("option", text, value=value, selected=value == chosen) for value, text in options]
    return field(label, element("select", *made, id=f"f-{name}", name=name), name)


def kept(**values: object) -> list[Markup]:
    """Values that a form hands on unseen."""
    return [element("input", type="hidden", name=name, value=str(value)) for name, value in values.items() if value]


def pager(path: str, given: Mapping[str, object], page: int, pages: int) -> Markup:
    """To the pages before and after."""

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


def data_table(caption: str, head: Sequence[tuple[object, str]], rows: Sequence[Sequence[object]], name: str) -> Markup:
    """A table with cells that may hold links; the first cell of a row names it. ``head`` is label and class."""
    title = f"table-{name}"
    labels = tag("tr", *(tag("th", label, scope="col", class_=kind) for label, kind in head))
    body = [
        tag(
            "tr",
            *(
                tag("th" if place == 0 else "td", cell, class_=kind, scope="row" if place == 0 else None)
                for place, (cell, (_, kind)) in enumerate(zip(row, head, strict=True))
            ),
        )
        for row in rows
    ]
    drawn = tag("table", tag("caption", tag("span", caption), id=title), tag("thead", labels), tag("tbody", *body))
    return tag("div", drawn, class_="scroll", role="region", aria_labelledby=title, tabindex="0")


def quote(text: str) -> Markup:
    """A query between quotation marks."""
    return tag("q", tag("bdi", shown(text), dir="auto"))
