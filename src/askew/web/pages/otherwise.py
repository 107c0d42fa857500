"""Other ways to ask a query: as points, as a table, and what became of those that were not kept."""

from __future__ import annotations

from askew.app.explore.answers import Alternatives, Variant
from askew.app.explore.explorer import AGREEMENT_SAYS
from askew.core.outcome import Outcome, outcome_of
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, element, join, shown, tag
from askew.web.pages import parts as p
from askew.web.pages.scatter import scatter

SORTS = {"": "best first", "lean": "least lean", "effectiveness": "most effective", "text": "A to Z"}


def compared(found: Alternatives, one: Variant, k: int) -> str:
    """The link to a candidate beside the query as asked."""
    return address("/compare", {"q": found.query, "to": one.text, "k": k if k != 10 else None})


def otherwise(found: Alternatives, k: int, sort: str) -> Markup:
    """The section."""
    body = [tag("h2", "Other ways to ask", id="otherwise-title")]
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
    return tag("section", *body, id="otherwise", aria_labelledby="otherwise-title")


def _sorting(found: Alternatives, k: int, sort: str) -> Markup:
    links = []
    for name, words in SORTS.items():
        place = address("/", {"q": found.query, "k": k if k != 10 else None, "sort": name}, "otherwise")
        told = "most agreement" if found.proxy and name == "effectiveness" else words
        links.append(element("a", told, href=place, aria_current="true" if name == sort else None))
    return tag("p", "Order: ", join(links, " "), class_="sorting")


def sorted_candidates(found: Alternatives, sort: str) -> list[Variant]:
    """The candidates in the order asked for; what has no value comes last."""

    def high(value: float | None) -> float:
        return float("inf") if value is None else -value

    def key(one: Variant) -> tuple[object, ...]:
        if sort == "text":
            return one.text.casefold(), one.text
        if sort == "effectiveness":
            return high(one.values.get(found.effectiveness)), one.text
        lean = high(one.gains.get(found.lean)), one.text
        return lean if sort == "lean" else (not _loses_nothing(found, one), not one.front, *lean)

    return sorted(found.candidates, key=key)


def _loses_nothing(found: Alternatives, one: Variant) -> bool:
    """Whether it retrieves as well as the query as asked, or better, and leans less."""
    outcome = outcome_of(one.gains.get(found.effectiveness), one.gains.get(found.lean))
    return outcome in (Outcome.BETTER_LESS, Outcome.SAME_LESS)


def _table(found: Alternatives, k: int, sort: str) -> Markup:
    first = "agreement" if found.proxy else found.effectiveness
    head: list[tuple[object, str]] = [("asked so", "quote"), (first, "number"), (found.lean, "number"), ("it", "words")]
    rows = [_row(found, found.original, tag("span", p.quote(found.query), tag("span", "as asked", class_="chip")))]
    for one in sorted_candidates(found, sort):
        text = tag("bdi", shown(one.text), dir="auto")
        link = element("a", text, href=compared(found, one, k), data_key=one.variant_id)
        front = tag("span", "not beaten", class_="chip front") if one.front else ""
        rows.append(_row(found, one, tag("span", link, tag("span", one.method, class_="chip"), front)))
    caption = "Value, and gain over the query as asked: positive is better, whatever the measure"
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
