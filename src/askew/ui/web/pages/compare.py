"""A query and a reformulation side by side: both result lists, lines between equal documents, and gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from askew.report import markup as n
from askew.ui.explorer.answers import Answer, Comparison, Move
from askew.ui.explorer.explorer import AGREEMENT_SAYS, TOP
from askew.ui.web.markup import Markup, address, element, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.parts import explained, lean_bar, lean_picture, picture_note
from askew.ui.web.pages.shell import Page


def compare_form(query: str, other: str, k: int, query_id: str = "") -> Markup:
    """A form with both queries."""
    boxes = [
        p.text_input("q", "Original query", query, "wide", required=True),
        p.text_input("to", "Reformulated query", other, "wide", required=True),
    ]
    return p.form("/compare", "Compare", *boxes, *p.kept(k=k if k != TOP else "", query_id=query_id), kind="ask two")


def compare_page(found: Comparison, k: int, note: str) -> Page:
    """Show the comparison."""
    query, other = found.old.query, found.new.query
    place = address("/", {"q": query, "k": k if k != TOP else None})
    back = tag("p", element("a", "← all reformulations of ", p.quote(query), href=place))
    head = [tag("h1", "Compare"), compare_form(query, other, k, found.old.query_id or ""), back]
    after, values = {one.measure: one.value for one in found.new.values}, []
    for one in found.old.values:
        means = [n.mean(value, 3) for value in (one.value, after.get(one.measure))]
        values.append([tag("code", one.measure), *means, p.gain_cell(found.gains.get(one.measure))])
    columns = {"measure": "code", "original": "number", "reformulated": "number", "gain": "number"}
    caption = "Measures of both result lists; a positive gain is an improvement"
    setting, sides = found.old.setting, (("Original query", found.old), ("Reformulated query", found.new))
    pictures = [
        tag("div", tag("h3", title), tag("p", one.lean.meaning), lean_picture(one.lean, setting, f"lean-{place}"))
        for place, (title, one) in enumerate(sides) if one.lean is not None
    ]  # fmt: skip
    leans: list[object] = [tag("h2", "Bias (lean) of both result lists"), tag("div", *pictures, class_="pictures")]
    leans += [picture_note([found.old.lean]), p.legend(setting)]
    overview = tag("div", tag("div", *leans), p.data_table(caption, columns, values, "gains"), class_="overview")
    body = [verdict_notice(found), overview]
    if rows := max(len(found.old.results), len(found.new.results)):
        moves = {one.doc_id: one for one in found.moves}
        old = _side(found.old, "Original query", moves, found.depth, is_new=False)
        new = _side(found.new, "Reformulated query", moves, found.depth, is_new=True)
        both = tag("div", old, _lines(found.moves, rows, found), new, class_="sides")
        title = tag("h2", "Document by document", id="sides-title")
        body.append(tag("section", title, both, aria_labelledby="sides-title"))
    return Page(f"{other} against {query}", (*head, *body), "/", note)


def incomplete_page(query: str, other: str, k: int, note: str) -> Page:
    """Say that one of the two queries is missing."""
    words = "A comparison needs two queries: the original and a reformulation of it."
    warning = p.notice(tag("p", words), kind="warn", role="alert")
    return Page("Compare", (tag("h1", "Compare"), compare_form(query, other, k), warning), "/", note)


def verdict_notice(found: Comparison) -> Markup:
    """Show the verdict on a reformulation, the share of documents that it keeps, and the chance of the same meaning."""
    lean = found.lean_verdict if found.proxy else None
    if found.outcome is None and lean is None:
        words = (
            "One of the two queries has no results, so there is nothing to compare."
            if not (found.old.results and found.new.results)
            else "A measure that decides the verdict has no value for one of the two queries."
        )
        return p.notice(tag("p", words), role="status")
    kept = f"{found.agreement:.0%} of the original query's top {TOP} documents are kept"
    same = "" if found.same is None else f"; same meaning {found.same:.0%} (light model)"
    first, second = ((name, found.gains.get(name)) for name in (found.effectiveness, found.lean))
    words = p.outcome_words(None, lean) if lean else p.outcome_beside(found.outcome, first, second, found.tolerance)
    told = [tag("strong", f"The reformulation {words}"), f" ({found.lean}"]
    told += ["" if found.proxy else f" and {found.effectiveness}", f"); {kept}{same}."]
    proxy = [tag("p", AGREEMENT_SAYS, class_="note")] if found.proxy else []
    return p.notice(tag("p", *told), *proxy, kind="plain")


def _side(answer: Answer, title: str, moves: Mapping[str, Move], depth: int, is_new: bool) -> Markup:
    items = []
    for one in answer.results:
        move = moved(moves[one.doc_id], len(answer.results), depth, is_new)
        head = p.result_head(one, tag("span", move, class_="move"))
        text = tag("p", explained(one.text, one.marks, answer.setting), class_="text clamp")
        items.append(
            element(
                "li", tag("div", head, lean_bar(one.mentions, answer.setting), text), data_key=one.doc_id, tabindex="0"
            )
        )
    heading = tag("h3", title, ": ", p.quote(answer.query))
    return tag("div", heading, tag("ol", *items, class_="side"), class_="side-box")


def moved(move: Move, shown_results: int, depth: int, is_new: bool) -> str:
    """Say at which rank a document was before, or is now."""
    here, there = (move.new, move.old) if is_new else (move.old, move.new)
    if there is None:
        return f"not in the top {depth} of the {'original' if is_new else 'reformulated'} query"
    if here == there:
        return "same place"
    if not is_new:
        return f"now {there}" if there <= shown_results else f"now {there}, below"
    step = there - (here or 0)
    return f"was {there}, {'▲' if step > 0 else '▼'} {abs(step)}"


def _lines(moves: Sequence[Move], rows: int, found: Comparison) -> Markup:
    """Draw a line for each document that is in both lists, and a short line for one that is in only one."""
    old, new = len(found.old.results), len(found.new.results)
    drawn = []
    for one in moves:
        here = one.old if one.old is not None and one.old <= old else None
        there = one.new if one.new is not None and one.new <= new else None
        if here is None:
            kind, path = "gone", f"M70 {_height(there)}H100"
        elif there is None:
            kind, path = "gone", f"M0 {_height(here)}H30"
        else:
            kind = "same" if here == there else "rose" if there < here else "fell"
            path = f"M0 {_height(here)}C50 {_height(here)} 50 {_height(there)} 100 {_height(there)}"
        drawn.append(tag("path", d=path, class_=kind, data_key=one.doc_id))
    return tag(
        "svg", *drawn, viewBox=f"0 0 100 {100 * rows}", preserveAspectRatio="none", class_="lines", aria_hidden="true"
    )


def _height(rank: int | None) -> int:
    return 100 * (rank or 0) - 50
