"""Search: the results of a query, their bias (lean), and reformulations of the query."""

from __future__ import annotations

from collections.abc import Sequence

from askew.report import markup as n
from askew.report.table import html_table
from askew.ui.explorer.answers import EFFECTIVENESS, LEAN, NOT_ENGLISH, Alternatives, Answer, ShownResult
from askew.ui.explorer.explorer import TOP
from askew.ui.web.markup import Markup, address, element, join, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.parts import explained, lean_bar, lean_picture, parts_line, picture_note
from askew.ui.web.pages.reformulations import section, waiting_section
from askew.ui.web.pages.shell import Page

COUNTS = ("10", "20", "50")
# On a phone, reformulations are shown after this many results.
FIRST = 3
_RULES = {
    "named person": "the query names a person",
    "fixed name": "the word is part of a name",
    "biology": "the query is about bodies, birth or breeding",
}


def form(query: str, k: int, focus: bool = False) -> Markup:
    """Make the form with the query box."""
    box = p.text_input("q", "Query", query, "wide", type="search", required=True, autocomplete="off", autofocus=focus,
                       placeholder="Enter a query")  # fmt: skip
    return p.form("/", "Search", box, p.choice("k", "Results", [(one, one) for one in COUNTS], str(k)), role="search")


def empty_page(examples: Sequence[str], reason: str, note: str) -> Page:
    """Show the page without a query."""
    if reason:
        words = p.notice(tag("p", "Search is not available: ", reason), kind="warn")
        return Page("Search", (tag("h1", "Search"), words), "/", note)
    tried = [tag("h2", "Examples"), _chips(examples)] if examples else []
    steps = (
        "Enter a query.",
        "See which words of the results name a group, and the bias (lean) of each result.",
        "See reformulations or type your own, and compare a reformulation with the original query.",
    )
    how = tag("ol", *(tag("li", step) for step in steps), class_="how")
    lead = tag("p", "Search, measure the bias (lean) of the results, and reformulate the query.", class_="lead")
    head = (tag("h1", "Search", class_="hidden"), lead, form("", TOP, focus=True))
    return Page("Search", (*head, *tried, tag("h2", "How it works"), how), "/", note)


def _chips(examples: Sequence[str]) -> Markup:
    links = [tag("li", element("a", text, href=address("/", {"q": text}))) for text in examples]
    return tag("ul", *links, class_="chips")


def refused_page(query: str, k: int, message: str) -> Page:
    """Show the error of a query, with the query still in its box."""
    head = (tag("h1", "Search", class_="hidden"), form(query, k, focus=True))
    return Page("Search", (*head, p.notice(tag("p", message), kind="warn", role="alert")), "/")


def nothing_page(answer: Answer, k: int, why: str, examples: Sequence[str], note: str) -> Page:
    """Show that a query has no results: the reason, and example queries."""
    head = [tag("h1", "Search", class_="hidden"), form(answer.query, k, focus=True)]
    words = p.notice(tag("p", f"No results were found: {why}."), role="status")
    tried = [tag("h2", "Queries of this collection"), _chips(examples)] if examples else []
    return Page(answer.query, (*head, words, *tried), "/", note)


def search_page(answer: Answer, found: Alternatives | None, k: int, note: str) -> Page:
    """Show the results of a query. Without ``found``, reformulations are loaded into the page later."""
    head = [tag("h1", "Search", class_="hidden"), form(answer.query, k)]
    told = [*([] if answer.warrant.english else [NOT_ENGLISH]), *answer.notes]
    notes = [p.notice(*(tag("p", one) for one in told), kind="warn")] if told else []
    body = [*head, *notes, *_warrant(answer)]
    beside = waiting_section(answer, k) if found is None else section(found, k)
    first, rest = answer.results[:FIRST], answer.results[FIRST:]
    lean = [tag("h2", "Bias (lean) of the results")]
    if answer.lean is not None:
        lean += [tag("p", tag("strong", answer.lean.meaning)), lean_picture(answer.lean, answer.setting)]
        lean.append(picture_note([answer.lean]))
        lean += [] if answer.headline is None or not answer.headline.parts else [html_table(answer.headline.table())]
    words = f"Marked words in the top {len(answer.results)}: {p.counted(answer.mentions, answer.setting)}."
    lean += [tag("p", words), p.legend(answer.setting), parts_line(answer.parts, answer.parts_of)]
    lists = [tag("section", *lean, class_="results-lean", aria_label="Lean"), _list(first, answer, "first"), beside]
    lists += [*([_list(rest, answer, "rest")] if rest else []), _measures(answer)]
    return Page(answer.query, (*body, tag("div", *lists, class_="results-grid")), "/", note)


def _warrant(answer: Answer) -> list[Markup]:
    """Say whether a rule finds a reason for a group that the query names."""
    warrant = answer.warrant
    if warrant.status == "none":
        return []
    if warrant.status == "warranted":
        first = tag("strong", "A property of the query can explain results that lean toward a group: ")
        rules = join([join([_RULES[one.rule], " (", _emphasized(one.words), ")"]) for one in warrant.reasons], "; ")
        return [p.notice(tag("p", first, rules, ". Such results may be what the user wants."), kind="plain")]
    told: list[object] = [tag("strong", "The query names a group: "), _emphasized(warrant.words), ". "]
    if warrant.status == "no rules":
        told.append(
            "askew has no rules for these groups, so it cannot check whether there is a reason why the query names "
            "the group."
        )
    else:
        told.append(
            f"None of the rules ({', '.join(warrant.rules)}) finds a reason why the query names the group. The user "
            "may want results about this group, or the name of the group may be unnecessary in the query."
        )
    return [p.notice(tag("p", *told), kind="plain")]


def _emphasized(words: Sequence[str]) -> Markup:
    return join([tag("em", word) for word in words], ", ")


def _measures(answer: Answer) -> Markup:
    """Make a table for lean and one for effectiveness."""
    parts = []
    for kind, caption in ((LEAN, "Lean"), (EFFECTIVENESS, "Effectiveness, by judgements")):
        rows = [
            [tag("code", one.measure), n.mean(one.value, 3), one.better] for one in answer.values if one.kind == kind
        ]
        if rows:
            head = {"measure": "code", "value": "number", "better": "name"}
            parts.append(p.data_table(caption, head, rows, f"values-{kind}"))
        else:
            words = "There are no judgements for this query, so its effectiveness is not measured."
            parts.append(tag("p", words, class_="note"))
    words = "A signature lists all settings of a measure. Values with the same signature can be compared."
    signatures = p.signature_list((one.signature for one in answer.values), tag("p", words, class_="note"))
    return tag("section", *parts, signatures, class_="results-values", aria_label="Measures")


def _list(results: Sequence[ShownResult], answer: Answer, kind: str) -> Markup:
    items = []
    for one in results:
        head = p.result_head(one, tag("span", p.counted(one.mentions, answer.setting), class_="counts"))
        text = tag("p", explained(one.text, one.marks, answer.setting), " …" if one.cut else "", class_="text")
        items.append(element("li", head, lean_bar(one.mentions, answer.setting), text, id=f"r{one.rank}"))
    # On a wide screen the second list follows the first one, and its title is not shown.
    shown = "Results" if results[0].rank == 1 else f"Results {results[0].rank} to {results[-1].rank}"
    title = tag("h2", shown, id=f"results-{kind}-title")
    drawn = tag("ol", *items, class_="results", start=results[0].rank)
    return tag("section", title, drawn, aria_labelledby=f"results-{kind}-title", class_=f"results-{kind}")
