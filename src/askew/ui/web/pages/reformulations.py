"""Reformulations of a query, best first, with their gains and losses; and a box for your own reformulation."""

from __future__ import annotations

from collections.abc import Callable

from askew.core.measure import Direction
from askew.core.outcome import Verdict, verdict
from askew.report import markup as n
from askew.report.charts import UNDER, About, axis, line, numeric_frame, numeric_plot, picture, text, text_width
from askew.report.charts import mark as shape
from askew.ui.explorer.answers import Alternatives, Answer, Variant
from askew.ui.explorer.explorer import AGREEMENT_SAYS, TOP
from askew.ui.web.markup import Markup, address, element, join, shown, tag
from askew.ui.web.pages import parts as p

# A scatter plot of the reformulations of a query: lean on the x axis, effectiveness on the y axis.

# The shape, size and label of points. Group colors are not used for points.
_KINDS = {"asked": (3, 7.0, "original query"), "rest": (0, 5.0, "reformulations")}
_HEIGHT, _LEGEND = 250, 22.0


def scatter(found: Alternatives, link: Callable[[Variant], str], label: str) -> Markup:
    """Draw the chart. If lean is signed, the middle is balance. ``label`` is the label of the y axis."""
    every = (*found.candidates, found.original)
    points = [(one, one.values.get(found.lean), one.values.get(found.effectiveness)) for one in every]
    drawable = [(one, x, y) for one, x, y in points if x is not None and y is not None]
    xs = [x for _, x, _ in drawable]
    signed, groups = found.setting.signed, found.setting.groups
    widest = max(map(abs, xs), default=1.0) or 1.0
    sides = f"← {groups[0]} · {found.lean} · {groups[-1]} →"
    plain = f"{found.lean} ({found.better[found.lean]} is better)"
    across = axis(sides, [-widest, widest]) if signed else axis(plain, xs, zero=True)
    upright = axis(label, [y for *_, y in drawable], zero=True, most=5)
    plot = numeric_plot(across, upright, _HEIGHT, _LEGEND)
    drawn: dict[str, list[Markup]] = {"rest": [], "asked": []}
    for one, x, y in drawable:
        words = f"{one.text}: {found.effectiveness} {y:.3f}, {found.lean} {x:+.3f}"
        kind = "asked" if one is found.original else "rest"
        number, size, _ = _KINDS[kind]
        inner = [tag("title", words), shape(number, plot.x(x), plot.y(y), size)]
        linked = {"href": link(one), "class_": "point", "data_key": one.variant_id, "aria_label": words}
        drawn[kind].append(tag("g", *inner) if kind == "asked" else element("a", *inner, **linked))
    balance = [line(plot.x(0), plot.top, plot.x(0), plot.bottom, faint=False)] if signed else []
    series = [tag("g", *marks, class_=f"points-{kind}") for kind, marks in drawn.items()]
    words = (
        f"{len(found.candidates)} reformulations. Across: {found.lean}. "
        f"Up: {found.effectiveness}. {found.setting.sign} The table has the same values."
    )
    about = About("candidates", "Reformulations by effectiveness and lean", words)
    frame, signs, left = numeric_frame(plot, across, upright), [], 6.0
    for kind, (number, size, name) in _KINDS.items():
        signs += [tag("g", shape(number, left + 4, 9, size), class_=f"points-{kind}"), text(left + 16, 13, name)]
        left += 16 + text_width(name) + 18
    return picture(about, 460, plot.bottom + UNDER, tag("g", *signs), frame, *balance, *series)


# The number of reformulations shown; others are folded.
BEST = 3
PLACE = "reformulations"
# The value in a link that shows reformulations in the page itself, for browsers without scripts.
NOW = "now"


def own_box(query: str, k: int, query_id: str | None) -> Markup:
    """Make a box for the user's own reformulation. With scripts, the verdict is shown while typing."""
    box = p.text_input("to", "Your own reformulation", "", "wide", required=True, autocomplete="off",
                       placeholder="Type a reformulation")  # fmt: skip
    live = address("/verdict", {"q": query, "query_id": query_id})
    told = tag("div", class_="verdict-live", role="status", aria_live="polite")
    kept = p.kept(q=query, k=k if k != TOP else "", query_id=query_id or "")
    return tag("div", p.form("/compare", "Compare", *kept, box, kind="own", data_live=live), told, class_="own-box")


def waiting_section(answer: Answer, k: int) -> Markup:
    """Show the section before reformulations are loaded.

    If the results do not lean, reformulations are made only on request.
    """
    given = {"q": answer.query, "k": k if k != TOP else None, "reformulations": NOW}
    here = address("/", given, PLACE)
    if answer.lean is not None and answer.lean.leans is False:
        link = element("a", "Show reformulations anyway", href=here)
        body = p.notice(tag("p", tag("strong", "No reformulation needed. "), answer.lean.meaning, " ", link, "."))
        return _section(body, own_box(answer.query, k, answer.query_id))
    fetched = address("/reformulations", {"q": answer.query, "k": k if k != TOP else None})
    words = tag("p", tag("span", "Finding reformulations takes a few seconds. ", class_="loading"),
                element("a", "Show reformulations", href=here))  # fmt: skip
    waiting = tag("div", words, class_="waiting", role="status", data_load=fetched)
    return _section(waiting, own_box(answer.query, k, answer.query_id))


def _section(*body: object) -> Markup:
    title = tag("h2", "Reformulations", id=f"{PLACE}-title")
    return tag("section", title, *body, id=PLACE, aria_labelledby=f"{PLACE}-title", class_="results-beside")


def section(found: Alternatives, k: int) -> Markup:
    """Show the complete section."""
    return _section(fragment(found, k), own_box(found.query, k, found.query_id))


def fragment(found: Alternatives, k: int) -> Markup:
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
        body.append(tag("ol", *(_card(found, one, k) for one in best), class_="suggestions"))
    if rest:
        more = tag("ol", *(_card(found, one, k) for one in rest), class_="suggestions")
        body.append(tag("details", tag("summary", f"{len(rest)} more"), more))
    if found.candidates or found.dropped:
        body.append(tag("details", tag("summary", "Details"), *_details(found, k)))
    return tag("div", *body, class_="reformulations")


def _card(found: Alternatives, one: Variant, k: int) -> Markup:
    verdict_words = p.outcome_words(one.outcome, one.lean_verdict if found.proxy else None)
    gained, lost = (_listed(found, one, sign) for sign in (Verdict.BETTER, Verdict.WORSE))
    kept = [] if one.kept is None else [f"keeps {one.kept:.0%} of the original top {TOP} results"]
    facts = [*([] if one.same is None else [f"same meaning {one.same:.0%}"]), *kept,
             "in the dataset" if one.stored else f"by {one.method}"]  # fmt: skip
    told: list[tuple[str, object]] = [("Gains ", gained or "nothing")]
    if lost:
        told.append(("Loses ", lost))
    elif not found.proxy:
        told.append(("Loses nothing: ", "no measure is worse than for the original query"))
    elif one.kept == 1:
        told.append(("Loses no result: ", f"all of the original top {TOP} results are kept"))
    first = tag("p", _link(found, one, k), tag("span", verdict_words, class_="chip"))
    lines = [tag("p", tag("span", label, class_="soft-label"), words) for label, words in told]
    return tag("li", first, *lines, tag("p", " · ".join(facts), class_="note"))


def _link(found: Alternatives, one: Variant, k: int) -> Markup:
    href = p.compared(found.query, one.text, k, found.query_id)
    return element("a", tag("bdi", shown(one.text), dir="auto"), href=href, data_key=one.variant_id)


def _listed(found: Alternatives, one: Variant, sign: Verdict) -> Markup | str:
    """List the measures that decide about a reformulation and are better, or worse, with their values and gains."""
    told = [
        tag("span", f"{name} {n.mean(found.original.values.get(name), 3)} → {n.mean(one.values.get(name), 3)} ",
            p.gain_cell(one.gains.get(name)))
        for name in found.deciding if verdict(0.0, one.gains.get(name), Direction.UP) is sign
    ]  # fmt: skip
    return join(told, "; ") if told else ""


def _details(found: Alternatives, k: int) -> list[Markup]:
    body = []
    if found.candidates:
        label = (
            "agreement with the original results (a proxy for effectiveness)" if found.proxy else found.effectiveness
        )
        chart = scatter(found, lambda one: p.compared(found.query, one.text, k, found.query_id), label)
        body.append(tag("div", chart, class_="chart"))
        if found.proxy:
            body.append(tag("p", tag("strong", "A proxy. "), AGREEMENT_SAYS, class_="note"))
        first = "agreement" if found.proxy else found.effectiveness
        head = {"query": "quote", first: "number", found.lean: "number", "outcome": "words"}
        original = tag("span", p.quote(found.query), tag("span", "original", class_="chip"))
        named = [
            (one, tag("span", _link(found, one, k), tag("span", one.method, class_="chip"))) for one in found.ordered()
        ]
        rows = [_row(found, one, name) for one, name in [(found.original, original), *named]]
        caption = "Measured values of each query, and gains over the original query; a positive gain is an improvement"
        body.append(p.data_table(caption, head, rows, "candidates"))
    if found.dropped:
        told = ", ".join(f"{count} {reason}" for reason, count in found.dropped.items())
        body.append(tag("p", f"Dropped candidates: {told}.", class_="note"))
    return body


def _row(found: Alternatives, one: Variant, name: Markup) -> list[object]:
    cells = []
    for measure in (found.effectiveness, found.lean):
        gain = [tag("br"), p.gain_cell(one.gains[measure])] if one.gains else []
        cells.append(tag("span", n.mean(one.values.get(measure), 3), *gain))
    return [name, *cells, p.outcome_words(one.outcome, one.lean_verdict if found.proxy else None) if one.gains else ""]
