"""Search: the results of a query, their bias (lean), and reformulations of the query."""

from __future__ import annotations

from collections.abc import Sequence

from askew.app.explore.answers import EFFECTIVENESS, LEAN, Alternatives, Answer, ShownResult, Value
from askew.app.explore.english import NOT_ENGLISH
from askew.app.explore.explorer import TOP
from askew.app.explore.warrant import Warrant
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, element, join, tag
from askew.web.pages import parts as p
from askew.web.pages.picture import lean_picture, parts_line, picture_note
from askew.web.pages.reformulations import section, waiting_section
from askew.web.pages.shell import Page
from askew.web.pages.words import explained, result_bar

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
    button = element("button", "Search", type="submit")
    return element(
        "form", p.field("Query", box, "q", "wide"), count, button, action="/", method="get", role="search", class_="ask"
    )


def empty_page(examples: Sequence[str], reason: str, note: str) -> Page:
    """Show the page without a query."""
    if reason:
        words = p.notice(tag("p", "Search is not available: ", reason), kind="warn")
        return Page("Search", (tag("h1", "Search"), words), "/", note)
    tried = [tag("h2", "Examples"), _chips(examples)] if examples else []
    how = tag(
        "ol",
        tag("li", "Enter a query."),
        tag("li", "See which words of the results name a group, and the bias (lean) of each result."),
        tag("li", "See reformulations or type your own, and compare a reformulation with the original query."),
        class_="how",
    )
    lead = tag("p", "Search, measure the bias (lean) of the results, and reformulate the query.", class_="lead")
    head = (tag("h1", "Search", class_="hidden"), lead, form("", TOP, focus=True))
    return Page("Search", (*head, *tried, tag("h2", "How it works"), how), "/", note)


def _chips(examples: Sequence[str]) -> Markup:
    links = [tag("li", element("a", text, href=address("/", {"q": text}))) for text in examples]
    return tag("ul", *links, class_="chips")


def refused_page(query: str, k: int, message: str, note: str = "") -> Page:
    """Show the error of a query, with the query still in its box."""
    head = (tag("h1", "Search", class_="hidden"), form(query, k, focus=True))
    return Page("Search", (*head, p.notice(tag("p", message), kind="warn", role="alert")), "/", note)


def nothing_page(answer: Answer, k: int, why: str, examples: Sequence[str], note: str) -> Page:
    """Show that a query has no results: the reason, and example queries."""
    head = [tag("h1", "Search", class_="hidden"), form(answer.query, k, focus=True)]
    words = p.notice(tag("p", f"No results were found: {why}."), role="status")
    tried = [tag("h2", "Queries of this collection"), _chips(examples)] if examples else []
    return Page(answer.query, (*head, words, *tried), "/", note)


def search_page(answer: Answer, found: Alternatives | None, k: int, sort: str, note: str) -> Page:
    """Show the results of a query. Without ``found``, reformulations are loaded into the page later."""
    head = [tag("h1", "Search", class_="hidden"), form(answer.query, k)]
    body = [*head, *_notes(answer), *_warrant(answer, k)]
    beside = waiting_section(answer, k) if found is None else section(found, k, sort)
    first, rest = answer.results[:FIRST], answer.results[FIRST:]
    lists = [_lean(answer), _list(first, answer, "first"), beside]
    lists += [*([_list(rest, answer, "rest")] if rest else []), _measures(answer)]
    return Page(answer.query, (*body, tag("div", *lists, class_="results-grid")), "/", note)


def _notes(answer: Answer) -> list[Markup]:
    told = [*([] if answer.warrant.english else [NOT_ENGLISH]), *answer.notes]
    return [p.notice(*(tag("p", one) for one in told), kind="warn")] if told else []


def _warrant(answer: Answer, k: int) -> list[Markup]:
    """Say whether a rule finds a reason for a group that the query names."""
    warrant = answer.warrant
    if warrant.status == "none":
        return []
    if warrant.status == "warranted":
        return [p.notice(tag("p", *_reasons(warrant)), kind="plain")]
    words = join([tag("em", word) for word in warrant.words], ", ")
    told: list[object] = [tag("strong", "The query names a group: "), words, ". "]
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
    if answer.without_group is not None:
        given = {"q": answer.query, "to": answer.without_group, "k": k if k != TOP else None}
        link = element("a", "Compare with ", p.quote(answer.without_group), href=address("/compare", given))
        told += [" ", link, "."]
    return [p.notice(tag("p", *told), kind="plain")]


def _reasons(warrant: Warrant) -> list[object]:
    rules = [
        join([_RULES[one.rule], " (", join([tag("em", word) for word in one.words], ", "), ")"])
        for one in warrant.reasons
    ]
    first = tag("strong", "A property of the query can explain results that lean toward a group: ")
    return [first, join(rules, "; "), ". Such results may be what the user wants."]


def _lean(answer: Answer) -> Markup:
    lean = [tag("h2", "Bias (lean) of the results")]
    if answer.lean is not None:
        lean += [tag("p", tag("strong", answer.lean.meaning)), lean_picture(answer.lean, answer.setting)]
        lean.append(picture_note([answer.lean]))
        lean += [tag("p", answer.lean.scope)] if answer.lean.scope else []
    words = f"Marked words in the top {len(answer.results)}: {p.counted(answer.mentions, answer.setting)}."
    lean += [tag("p", words), p.legend(answer.setting), parts_line(answer.parts, answer.parts_of)]
    return tag("section", *lean, class_="results-lean", aria_label="Lean")


def _measures(answer: Answer) -> Markup:
    return tag("section", *_values(answer), _signatures(answer.values), class_="results-values", aria_label="Measures")


def _values(answer: Answer) -> list[Markup]:
    """Make a table for lean and one for effectiveness."""
    lean, effectiveness = ([one for one in answer.values if one.kind == kind] for kind in (LEAN, EFFECTIVENESS))
    found = [_value_table("Lean", lean)]
    if effectiveness:
        found.append(_value_table("Effectiveness, by judgements", effectiveness))
    else:
        words = "There are no judgements for this query, so its effectiveness is not measured."
        found.append(tag("p", words, class_="note"))
    return found


def _value_table(caption: str, values: Sequence[Value]) -> Markup:
    head: list[tuple[object, str]] = [("measure", "code"), ("value", "number"), ("better", "name")]
    rows = [[tag("code", one.measure), n.mean(one.value, 3), one.better] for one in values]
    return p.data_table(caption, head, rows, f"values-{values[0].kind}")


def _signatures(values: Sequence[Value]) -> Markup:
    items = [tag("li", tag("code", one.signature)) for one in values]
    note = tag(
        "p",
        "A signature lists all settings of a measure. Values with the same signature can be compared.",
        class_="note",
    )
    return tag("details", tag("summary", "Details of the measures"), note, tag("ul", *items, class_="signatures"))


def _list(results: Sequence[ShownResult], answer: Answer, kind: str) -> Markup:
    items = [_result(one, answer) for one in results]
    # On a wide screen the second list follows the first one, and its title is not shown.
    shown = "Results" if results[0].rank == 1 else f"Results {results[0].rank} to {results[-1].rank}"
    title = tag("h2", shown, id=f"results-{kind}-title")
    drawn = tag("ol", *items, class_="results", start=results[0].rank)
    return tag("section", title, drawn, aria_labelledby=f"results-{kind}-title", class_=f"results-{kind}")


def _result(one: ShownResult, answer: Answer) -> Markup:
    head = p.result_head(one, tag("span", p.counted(one.mentions, answer.setting), class_="counts"))
    text = [explained(one.text, one.marks, answer.setting), " …" if one.cut else ""]
    return element("li", head, result_bar(one, answer), tag("p", *text, class_="text"), id=f"r{one.rank}")
