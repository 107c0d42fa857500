"""Filters of a dataset: facets as links with counts, and a form for words and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from askew.app.explore.pairs import CHOSEN, EVERY, ShownPairs
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, element, tag
from askew.web.pages import parts as p
from askew.web.pages.gain_chart import BOUNDS
from askew.web.schemas import PairFilter

SIZES = ("25", "50", "100", "200")
_LABELS = {
    "subset": "Subset", "outcome": "Outcome", "method": "Method", "kind": "Kind of reformulation",
    "group": "Original query",
}  # fmt: skip
# The groups of original queries, by the numbers that the selector gives them.
GROUPS = {
    "1": "the results of the original query are effective and do not lean",
    "2": "the results of the original query are effective and lean toward a group",
    "3": "the results of the original query are not effective and do not lean",
    "4": "the results of the original query are not effective and lean toward a group",
}
_SUBSETS = {
    CHOSEN: "pairs that were selected for at least one subset",
    EVERY: "all pairs",
    "source_judged": "pairs whose reformulation was made from a relevant document",
}
# The number of values of a facet that are shown; others are folded.
_MORE = 6


def facets(counts: Mapping[str, Mapping[str, int]], asked: PairFilter, given: dict[str, Any]) -> Markup:
    """Make a list for each facet. Its values are links with the number of pairs that each would show."""
    shown = [name for name in _LABELS if any(counts.get(name, {}).values()) or getattr(asked, name)]
    lists = [_facet(name, counts[name], getattr(asked, name), given) for name in shown]
    return tag("nav", *lists, class_="facets", aria_label="Filters")


def _facet(name: str, counts: Mapping[str, int], chosen: str, given: dict[str, Any]) -> Markup:
    there = {value: count for value, count in counts.items() if count or value == chosen}
    items = [_value(name, value, count, chosen, given) for value, count in there.items()]
    first, rest = items[:_MORE], items[_MORE:]
    more = [tag("details", tag("summary", f"{len(rest)} more"), tag("ul", *rest))] if rest else []
    title = tag("h2", _LABELS[name], id=f"facet-{name}", title=name)
    return tag("section", title, tag("ul", *first), *more, aria_labelledby=f"facet-{name}")


def _value(name: str, value: str, count: int, chosen: str, given: dict[str, Any]) -> Markup:
    here = value == chosen
    number = tag("span", n.count(count), class_="count")
    words = tag("span", "✓ " if here else "", value_words(name, value))
    # The link of a chosen value removes it. For subsets, one value is always chosen.
    to = EVERY if here and name == "subset" else None if here else value
    link = address("/pairs", {**given, name: to, "page": None})
    return tag("li", element("a", words, number, href=link, class_="value", title=f"{name}={value}",
                             aria_current="true" if here else None))  # fmt: skip


def value_words(name: str, value: str) -> str:
    """Describe a value of a facet in plain words."""
    if name == "outcome":
        return p.outcome_words(value, None)
    known = {"group": GROUPS, "subset": _SUBSETS}.get(name, {})
    return known.get(value, value.replace("_", " "))


def search_form(table: ShownPairs, asked: PairFilter, given: Mapping[str, Any]) -> Markup:
    """A form for words, the bounds of the chart and the number of rows. It keeps facets and order."""
    typed = {"text", "size", "page", "least", "measure", *BOUNDS}
    kept = p.kept(**{key: value for key, value in given.items() if key not in typed})
    words = p.text_input("text", "Words in the original query or in the reformulation", asked.text, "wide")
    size = p.choice("size", "Rows", [(one, one) for one in SIZES], str(asked.size))
    bounds = []
    if all(table.sides):
        bounds = [_bounds("lean", "Gain in lean", asked), _bounds("effectiveness", "Gain in effectiveness", asked)]
    clear = element("a", "Clear all", href=address("/pairs", {"dataset": asked.dataset}))
    return element("form", *kept, words, *bounds, size, element("button", "Show", type="submit"), clear,
                   _more(table, asked), action="/pairs", method="get", class_="ask filters", id="pairs-form",
                   aria_label="Search pairs")  # fmt: skip


def _bounds(side: str, label: str, asked: PairFilter) -> Markup:
    fields: list[Markup] = []
    for end, words in (("min", "at least"), ("max", "at most")):
        name = f"{side}_{end}"
        box = element("input", type="text", inputmode="decimal", id=f"f-{name}", name=name, maxlength=40,
                      value=_number(getattr(asked, name)), size=6)  # fmt: skip
        fields.append(tag("span", element("label", f"{label}, {words}", for_=f"f-{name}", class_="hidden"), box))
    title = tag("span", label, class_="label", aria_hidden="true")
    both = tag("span", fields[0], tag("span", "to", aria_hidden="true"), fields[1], class_="span")
    return tag("div", title, both, class_="field")


def _more(table: ShownPairs, asked: PairFilter) -> Markup:
    measure = p.choice(
        "measure", "Another measure", [("", "none"), *((one, one) for one in table.measures)], asked.measure
    )
    least = p.text_input(
        "least",
        "Minimum gain in the measure that is selected in the field 'Another measure'",
        _number(asked.least),
        "short",
        inputmode="decimal",
    )
    opened = asked.measure or asked.least is not None
    parts = tag("summary", "More filters"), tag("div", measure, least, class_="filters")
    return tag("details", *parts, open="") if opened else tag("details", *parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
