"""Reformulations of a query: as points, as a table, and what became of those that were not kept."""

from __future__ import annotations

from askew.app.explore.answers import ORDERS, Alternatives, Variant
from askew.app.explore.explorer import AGREEMENT_SAYS, TOP
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, element, join, shown, tag
from askew.web.pages import parts as p
from askew.web.pages.scatter import scatter

_ORDERS = {"": "best first", "lean": "least lean", "effectiveness": "most effective", "text": "A to Z"}


def compared(found: Alternatives, one: Variant, k: int) -> str:
    """The link to a reformulation beside the original query."""
    return address("/compare", {"q": found.query, "to": one.text, "k": k if k != TOP else None})


def reformulations(found: Alternatives, k: int, sort: str) -> Markup:
    """The section."""
    body = [tag("h2", "Reformulations", id="reformulations-title")]
    if found.candidates:
        label = "agreement (a proxy, not effectiveness)" if found.proxy else found.effectiveness
        body.append(tag("div", scatter(found, lambda one: compared(found, one, k), label), class_="chart"))
        if found.proxy:
            body.append(tag("p", tag("strong", "A proxy. "), AGREEMENT_SAYS, class_="note"))
        body += [_sorting(found, k, sort), _table(found, k, sort)]
    else:
        body.append(p.notice(tag("p", "None was kept for this query."), role="status"))
    if found.dropped:
        told = ", ".join(f"{count} {reason}" for reason, count in found.dropped.items())
        body.append(tag("p", f"Made and not kept: {told}.", class_="note"))
    return tag("section", *body, id="reformulations", aria_labelledby="reformulations-title")


def _sorting(found: Alternatives, k: int, sort: str) -> Markup:
    links = []
    for name in ORDERS:
        place = address("/", {"q": found.query, "k": k if k != TOP else None, "sort": name}, "reformulations")
        told = "most agreement" if found.proxy and name == "effectiveness" else _ORDERS[name]
        links.append(element("a", told, href=place, aria_current="true" if name == sort else None))
    return tag("p", "Order: ", join(links, " "), class_="sorting")


def _table(found: Alternatives, k: int, sort: str) -> Markup:
    first = "agreement" if found.proxy else found.effectiveness
    head: list[tuple[object, str]] = [
        ("query", "quote"),
        (first, "number"),
        (found.lean, "number"),
        ("outcome", "words"),
    ]
    rows = [_row(found, found.original, tag("span", p.quote(found.query), tag("span", "original", class_="chip")))]
    for one in found.ordered(sort):
        text = tag("bdi", shown(one.text), dir="auto")
        link = element("a", text, href=compared(found, one, k), data_key=one.variant_id)
        front = tag("span", "Pareto-optimal", class_="chip front") if one.front else ""
        rows.append(_row(found, one, tag("span", link, tag("span", one.method, class_="chip"), front)))
    caption = "Value, and gain over the original query: positive is better, whatever the measure"
    return p.data_table(caption, head, rows, "candidates")


def _row(found: Alternatives, one: Variant, name: Markup) -> list[object]:
    cells = [
        tag(
            "span",
            n.mean(one.values.get(measure), 3),
            *([tag("br"), p.gain_cell(one.gains[measure])] if one.gains else []),
        )
        for measure in (found.effectiveness, found.lean)
    ]
    return [name, *cells, p.outcome_words(one.outcome, one.lean_verdict if found.proxy else None) if one.gains else ""]
