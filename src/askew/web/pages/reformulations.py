"""Reformulations of a query, best first, with their gains and losses; and a box for your own reformulation."""

from __future__ import annotations

from collections.abc import Sequence

from askew.app.explore.answers import ORDERS, Alternatives, Answer, Variant
from askew.app.explore.explorer import AGREEMENT_SAYS, TOP
from askew.core.measure import Direction
from askew.core.outcome import Verdict, verdict
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, element, join, shown, tag
from askew.web.pages import parts as p
from askew.web.pages.reformulation_chart import scatter

# The number of reformulations shown; others are folded.
BEST = 3
PLACE = "reformulations"
# The value in a link that shows reformulations in the page itself, for browsers without scripts.
NOW = "now"
_ORDERS = {"": "best first", "lean": "least lean", "effectiveness": "most effective", "text": "A to Z"}


def compared(query: str, to: str, k: int, query_id: str | None = None) -> str:
    """Make the link to the comparison of a reformulation with the original query."""
    return address("/compare", {"q": query, "to": to, "k": k if k != TOP else None, "query_id": query_id})


def own_box(query: str, k: int, query_id: str | None) -> Markup:
    """Make a box for the user's own reformulation. With scripts, the verdict is shown while typing."""
    box = p.text_input("to", "Your own reformulation", "", "wide", required=True, autocomplete="off",
                       placeholder="Type a reformulation")  # fmt: skip
    live = address("/verdict", {"q": query, "query_id": query_id})
    told = tag("div", class_="verdict-live", role="status", aria_live="polite")
    form = element(
        "form", *p.kept(q=query, k=k if k != TOP else "", query_id=query_id or ""), box,
        element("button", "Compare", type="submit"), action="/compare", method="get", class_="own", data_live=live,
    )  # fmt: skip
    return tag("div", form, told, class_="own-box")


def waiting_section(answer: Answer, k: int) -> Markup:
    """Show the section before reformulations are loaded.

    If the results do not lean, reformulations are made only on request.
    """
    given = {"q": answer.query, "k": k if k != TOP else None, "reformulations": NOW}
    here = address("/", given, PLACE)
    if answer.lean is not None and answer.lean.leans is False:
        link = element("a", "Show reformulations anyway", href=here)
        body = p.notice(tag("p", tag("strong", "No reformulation needed. "), _why_not(answer), " ", link, "."))
        return _section(body, own_box(answer.query, k, answer.query_id))
    fetched = address("/reformulations", {"q": answer.query, "k": k if k != TOP else None})
    words = tag("p", tag("span", "Finding reformulations takes a few seconds. ", class_="loading"),
                element("a", "Show reformulations", href=here))  # fmt: skip
    waiting = tag("div", words, class_="waiting", role="status", data_load=fetched)
    return _section(waiting, own_box(answer.query, k, answer.query_id))


def _why_not(answer: Answer) -> str:
    return "" if answer.lean is None else answer.lean.meaning


def _section(*body: object) -> Markup:
    title = tag("h2", "Reformulations", id=f"{PLACE}-title")
    return tag("section", title, *body, id=PLACE, aria_labelledby=f"{PLACE}-title", class_="results-beside")


def section(found: Alternatives, k: int, sort: str) -> Markup:
    """Show the complete section."""
    return _section(fragment(found, k, sort), own_box(found.query, k, found.query_id))


def fragment(found: Alternatives, k: int, sort: str) -> Markup:
    """Show the content of the section: the best reformulations, then others and details folded."""
    body = [tag("p", one, class_="note") for one in found.notes]
    if found.leans is False:
        value = n.mean(found.original.values.get(found.lean), 3)
        words = f"The results do not lean: {found.lean} is {value}, which is at most {found.threshold:g} away from 0."
        body.append(p.notice(tag("p", tag("strong", "No reformulation needed. "), words)))
    ordered = found.ordered()
    if not ordered:
        words = "No reformulation with the same meaning was found. Type your own reformulation below."
        body.append(p.notice(tag("p", words), role="status"))
    best, rest = ordered[:BEST], ordered[BEST:]
    if best:
        body.append(_cards(found, best, k))
    if rest:
        body.append(tag("details", tag("summary", f"{len(rest)} more"), _cards(found, rest, k)))
    if found.candidates or found.dropped:
        body.append(tag("details", tag("summary", "Details"), *_details(found, k, sort), open="open" if sort else None))
    return tag("div", *body, class_="reformulations")


def _cards(found: Alternatives, some: Sequence[Variant], k: int) -> Markup:
    return tag("ol", *(_card(found, one, k) for one in some), class_="suggestions")


def _card(found: Alternatives, one: Variant, k: int) -> Markup:
    text = tag("bdi", shown(one.text), dir="auto")
    link = element("a", text, href=compared(found.query, one.text, k, found.query_id), data_key=one.variant_id)
    verdict_words = p.outcome_words(one.outcome, one.lean_verdict if found.proxy else None)
    gained, lost = (_listed(found, one, sign) for sign in (Verdict.BETTER, Verdict.WORSE))
    kept = [] if one.kept is None else [f"keeps {one.kept:.0%} of the original top {TOP} results"]
    facts = [*([] if one.same is None else [f"same meaning {one.same:.0%}"]), *kept,
             "in the dataset" if one.stored else f"by {one.method}"]  # fmt: skip
    told = [tag("p", tag("span", "Gains ", class_="soft-label"), gained or "nothing")]
    if lost:
        told.append(tag("p", tag("span", "Loses ", class_="soft-label"), lost))
    elif not found.proxy:
        worse = "no measure is worse than for the original query"
        told.append(tag("p", tag("span", "Loses nothing: ", class_="soft-label"), worse))
    elif one.kept == 1:
        same = f"all of the original top {TOP} results are kept"
        told.append(tag("p", tag("span", "Loses no result: ", class_="soft-label"), same))
    first = tag("p", link, tag("span", verdict_words, class_="chip"))
    return tag("li", first, *told, tag("p", " · ".join(facts), class_="note"))


def _listed(found: Alternatives, one: Variant, sign: Verdict) -> Markup | str:
    """List the measures that decide about a reformulation and are better, or worse, with their values and gains."""
    told = [
        tag("span", f"{name} {n.mean(found.original.values.get(name), 3)} → {n.mean(one.values.get(name), 3)} ",
            p.gain_cell(one.gains.get(name)))
        for name in found.deciding if verdict(0.0, one.gains.get(name), Direction.UP) is sign
    ]  # fmt: skip
    return join(told, "; ") if told else ""


def _details(found: Alternatives, k: int, sort: str) -> list[Markup]:
    body = []
    if found.candidates:
        label = (
            "agreement with the original results (a proxy for effectiveness)" if found.proxy else found.effectiveness
        )
        chart = scatter(found, lambda one: compared(found.query, one.text, k, found.query_id), label)
        body.append(tag("div", chart, class_="chart"))
        if found.proxy:
            body.append(tag("p", tag("strong", "A proxy. "), AGREEMENT_SAYS, class_="note"))
        body += [_sorting(found, k, sort), _table(found, k, sort)]
    if found.dropped:
        told = ", ".join(f"{count} {reason}" for reason, count in found.dropped.items())
        body.append(tag("p", f"Dropped candidates: {told}.", class_="note"))
    return body


def _sorting(found: Alternatives, k: int, sort: str) -> Markup:
    links = []
    for name in ORDERS:
        given = {"q": found.query, "k": k if k != TOP else None, "sort": name, "reformulations": NOW}
        told = "most agreement" if found.proxy and name == "effectiveness" else _ORDERS[name]
        here = "true" if name == sort else None
        links.append(element("a", told, href=address("/", given, PLACE), aria_current=here))
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
        link = element("a", text, href=compared(found.query, one.text, k, found.query_id), data_key=one.variant_id)
        front = tag("span", "Pareto-optimal", class_="chip front") if one.front else ""
        rows.append(_row(found, one, tag("span", link, tag("span", one.method, class_="chip"), front)))
    caption = "Measured values of each query, and gains over the original query; a positive gain is an improvement"
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
