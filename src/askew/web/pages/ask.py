"""Ask: a query, its results, their bias (lean), its reformulations."""

from __future__ import annotations

from collections.abc import Sequence

from askew.app.explore.answers import EFFECTIVENESS, LEAN, Alternatives, Answer, ShownResult, Value
from askew.app.explore.explorer import TOP
from askew.app.explore.warrant import Warrant
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, element, join, tag
from askew.web.pages import parts as p
from askew.web.pages.reformulations import compared, reformulations
from askew.web.pages.shell import Page

COUNTS = ("10", "20", "50")
_RULES = {
    "named person": "it names a person",
    "fixed name": "the word is part of a name",
    "biology": "it is about bodies, birth or breeding",
}


def form(query: str, k: int, focus: bool = False) -> Markup:
    """The query box."""
    box = element(
        "input",
        type="search",
        id="f-q",
        name="q",
        value=query,
        maxlength=500,
        required=True,
        autocomplete="off",
        autofocus=focus,
        placeholder="Enter a query",
    )
    count = p.choice("k", "Results", [(one, one) for one in COUNTS], str(k))
    button = element("button", "Ask", type="submit")
    return element(
        "form", p.field("Query", box, "q", "wide"), count, button, action="/", method="get", role="search", class_="ask"
    )


def empty_page(examples: Sequence[str], reason: str, note: str) -> Page:
    """Before anything is asked."""
    if reason:
        words = p.notice(tag("p", "Nothing can be searched here: ", reason), kind="warn")
        return Page("Ask", (tag("h1", "Ask"), words), "/", note)
    links = [tag("li", element("a", text, href=address("/", {"q": text}))) for text in examples]
    tried = [tag("h2", "Try one"), tag("ul", *links, class_="chips")] if links else []
    how = tag(
        "ol",
        tag("li", "Enter a query."),
        tag("li", "See which words of the results name a group, and the bias (lean) of each result."),
        tag("li", "See reformulations, and compare one with the original query, document by document."),
        class_="how",
    )
    lead = tag("p", "Search, measure the bias (lean) of the results, reformulate.", class_="lead")
    return Page(
        "Ask",
        (tag("h1", "Ask", class_="hidden"), lead, form("", TOP, focus=True), *tried, tag("h2", "How it works"), how),
        "/",
        note,
    )


def ask_page(answer: Answer, found: Alternatives | None, k: int, sort: str, note: str) -> Page:
    """A query and what came of it."""
    head = [tag("h1", "Ask", class_="hidden"), form(answer.query, k)]
    if not answer.results:
        words = "Nothing was found: none of these words is in the collection. Use other words."
        return Page(answer.query, (*head, p.notice(tag("p", words), role="status")), "/", note)
    body = [*head, *_warrant(answer.warrant, found, k), _overview(answer, found)]
    columns = [_results(answer)]
    if found is not None:
        columns.append(reformulations(found, k, sort))
    return Page(answer.query, (*body, tag("div", *columns, class_="columns")), "/", note)


def _warrant(warrant: Warrant, found: Alternatives | None, k: int) -> list[Markup]:
    """Whether a group that the query names has a reason, and by which rule."""
    if warrant.status == "none":
        return []
    words = join([tag("em", word) for word in warrant.words], ", ")
    if warrant.status == "warranted":
        told = [tag("strong", "A reason to lean. "), "By rule: "]
        rules = [
            join([_RULES[one.rule], " (", join([tag("em", word) for word in one.words], ", "), ")"])
            for one in warrant.reasons
        ]
        told += [join(rules, "; "), ". Results that lean may be what is wanted."]
        return [p.notice(tag("p", *told), kind="plain")]
    told = [tag("strong", "The query names a group: "), words, ". "]
    if warrant.status == "no rules":
        told.append("There are no rules of warrant for these groups: whether it has a reason is not decided.")
    else:
        tried = f"No rule finds a reason for it ({', '.join(warrant.rules)})"
        told.append(f"{tried}, so it may have been added; or it is the very thing that is wanted.")
    without = None if found is None else found.without_group
    if found is not None and without is not None:
        told += [" ", element("a", "Compare with ", p.quote(without.text), href=compared(found, without, k)), "."]
    return [p.notice(tag("p", *told), kind="plain")]


def _overview(answer: Answer, found: Alternatives | None) -> Markup:
    setting, shown_results = answer.setting, len(answer.results)
    most = max(p.most_words([answer.mentions], setting), 1)
    words = f"In the top {shown_results}: {p.counted(answer.mentions, setting)}."
    lean = tag(
        "div",
        tag("h2", "Bias (lean) of the results"),
        p.sides_named(setting),
        p.lean_bar(answer.mentions, setting, most, "bar big"),
        tag("p", words),
        p.legend(setting),
    )
    more: list[Markup] = [_signatures(answer.values)]
    if found is not None and found.candidates:
        more.insert(0, tag("p", element("a", f"{len(found.candidates)} reformulations", href="#reformulations")))
    first, *rest = _values(answer)
    columns = [lean, first, tag("div", *rest, *more)]
    return tag("section", *columns, class_="overview three", aria_label="Overview")


def _values(answer: Answer) -> list[Markup]:
    """A table for lean and one for effectiveness."""
    lean, effectiveness = ([one for one in answer.values if one.kind == kind] for kind in (LEAN, EFFECTIVENESS))
    found = [_value_table("Lean", lean)]
    if effectiveness:
        found.append(_value_table("Effectiveness, by judgements", effectiveness))
    else:
        words = "There are no judgements for this query, so nothing is said of how good its results are."
        found.append(tag("p", words, class_="note"))
    return found


def _value_table(caption: str, values: Sequence[Value]) -> Markup:
    head: list[tuple[object, str]] = [("measure", "code"), ("value", "number"), ("better", "name")]
    rows = [[tag("code", one.measure), n.mean(one.value, 3), one.better] for one in values]
    return p.data_table(caption, head, rows, f"values-{values[0].kind}")


def _signatures(values: Sequence[Value]) -> Markup:
    items = [tag("li", tag("code", one.signature)) for one in values]
    note = tag("p", "Two numbers with the same signature can be compared.", class_="note")
    return tag("details", tag("summary", "Signatures"), note, tag("ul", *items, class_="signatures"))


def _results(answer: Answer) -> Markup:
    most = p.most_words([one.mentions for one in answer.results], answer.setting)
    items = [_result(one, answer, most) for one in answer.results]
    title = tag("h2", f"Results 1 to {len(items)}", id="results-title")
    return tag("section", title, tag("ol", *items, class_="results"), aria_labelledby="results-title", id="results")


def _result(one: ShownResult, answer: Answer, most: int) -> Markup:
    head = p.result_head(one, tag("span", p.counted(one.mentions, answer.setting), class_="counts"))
    text = [p.marked(one.text, one.marks, answer.setting), " …" if one.cut else ""]
    return element(
        "li", head, p.lean_bar(one.mentions, answer.setting, most), tag("p", *text, class_="text"), id=f"r{one.rank}"
    )
