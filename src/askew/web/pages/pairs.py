"""Dataset: the pairs of a build, filtered, searched, a page at a time, to be opened and taken along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from askew.app.explore.pairs import PairPage, ShownPairs
from askew.engine.manifest import Manifest
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, below, element, shown, tag
from askew.web.pages import parts as p
from askew.web.pages.shell import Page
from askew.web.schemas import PairFilter

SIZES = ("25", "50", "100", "200")
_ORDERS = (("", "as made"), ("gain", "most gained"), ("loss", "most lost"))
_SHOWN = 3


def given_of(asked: PairFilter) -> dict[str, Any]:
    """What of a filter is not as it is by itself: the part that stands in a link."""
    return asked.model_dump(exclude_defaults=True)


def pairs_page(
    table: ShownPairs, found: PairPage, asked: PairFilter, known: Sequence[Manifest], can_open: bool, note: str
) -> Page:
    """One page of the pairs that fit."""
    given = given_of(asked)
    lead = f"{n.count(found.total)} of {n.count(table.manifest.rows_out)} pairs"
    body: list[Markup] = [tag("h1", "Dataset"), _choose(table, known), _filters(table, asked)]
    body.append(
        tag("p", tag("span", tag("strong", lead), " fit."), _downloads(given), class_="downloads", role="status")
    )
    if not found.rows:
        words = "No pair fits. " if not found.total else "There is no such page. "
        clear = element("a", "Show all pairs", href=address("/pairs", {"dataset": asked.dataset}))
        body.append(p.notice(tag("p", words, clear), role="status"))
    else:
        words = "The outcome is by the measures that the selection names: of several on a side, none may be worse."
        body += [_table(table, found, asked, can_open), tag("p", words, class_="note")]
        body.append(p.pager("/pairs", given, found.page, found.pages))
    return Page("Dataset", tuple(body), "/pairs", note)


def _choose(table: ShownPairs, known: Sequence[Manifest]) -> Markup:
    chosen = table.manifest.settings.get("selector", "unknown")
    facts = tag("p", "Pairs of ", tag("code", table.name), f", chosen by {shown(chosen)}. ",
                element("a", "How it was computed", href=below("/plan", table.name)))  # fmt: skip
    names = [f"{one.step}-{one.key}" for one in known]
    if len(names) < 2:
        return facts
    links = [
        element(
            "a", name, href=address("/pairs", {"dataset": name}), aria_current="true" if name == table.name else None
        )
        for name in names
    ]
    return tag("div", facts, tag("p", "Datasets: ", *(tag("span", link, " ") for link in links), class_="sorting"))


def _filters(table: ShownPairs, asked: PairFilter) -> Markup:
    counts = table.counts
    controls = [p.text_input("text", "Words", asked.text, "wide")]
    for name, label in (("subset", "Subset"), ("outcome", "Outcome"), ("group", "Group"), ("label", "Label"),
                        ("method", "Method")):  # fmt: skip
        if counts.get(name):
            options = [("", "all"), *((value, f"{value} ({count:,})") for value, count in counts[name].items())]
            controls.append(p.choice(name, label, options, getattr(asked, name)))
    controls += [
        p.choice("measure", "Measure", [(one, one) for one in table.measures], asked.measure or table.measures[0]),
        p.text_input("least", "Gain at least", "" if asked.least is None else f"{asked.least:g}", "short",
                     inputmode="decimal"),
        p.choice("sort", "Order", _ORDERS, asked.sort),
        p.choice("size", "On a page", [(one, one) for one in SIZES], str(asked.size)),
    ]  # fmt: skip
    clear = element("a", "Clear", href=address("/pairs", {"dataset": asked.dataset}))
    return element("form", *p.kept(dataset=asked.dataset), *controls, element("button", "Show", type="submit"), clear,
                   action="/pairs", method="get", class_="ask filters", aria_label="Filter pairs")  # fmt: skip


def _downloads(given: Mapping[str, Any]) -> Markup:
    chosen = {key: value for key, value in given.items() if key not in ("page", "size")}
    links = [element("a", kind, href=address(f"/pairs/selection.{ending}", chosen), download=True)
             for kind, ending in (("Parquet", "parquet"), ("TSV", "tsv"))]  # fmt: skip
    return tag("span", "Download the selection: ", links[0], " or ", links[1])


def _measures(table: ShownPairs, asked: PairFilter) -> list[str]:
    """The measures that have columns: the one asked for, those that the outcome may name, then the first ones."""
    first = [name for name in (asked.measure, *table.sides) if name]
    return list(dict.fromkeys([*first, *table.measures]))[:_SHOWN]


def _table(table: ShownPairs, found: PairPage, asked: PairFilter, can_open: bool) -> Markup:
    measures = _measures(table, asked)
    head: list[tuple[object, str]] = [("reformulated query", "quote"), ("original query", "quote")]
    head += [(name, "number") for name in measures]
    head += [("outcome", "words"), ("by", "name"), ("marked", "words")]
    rows = [_row(row, measures, _outcome(row, table), can_open) for row in found.rows]
    first = (found.page - 1) * found.size + 1
    caption = f"Pairs {first:,} to {first + len(rows) - 1:,}: old value → new value, and the gain"
    return p.data_table(caption, head, rows, "pairs")


def _row(row: Mapping[str, Any], measures: Sequence[str], outcome: str, can_open: bool) -> list[object]:
    text, original = (tag("bdi", shown(row.get(name, "")), dir="auto") for name in ("text", "original_text"))
    if can_open:
        named = {"q": row.get("original_text", ""), "to": row.get("text", ""), "query_id": row.get("query_id", "")}
        link = address("/compare", named)
        text = element("a", text, href=link, aria_label=f"Compare {shown(row.get('text', ''))}")
    cells = [_values(row["measures"][name]) for name in measures]
    marked = [tag("span", name, class_="chip") for name in row["subsets"]]
    details = [f"group {row['group']}, label {row['label']}"] if row.get("group") is not None else []
    return [text, original, *cells, outcome, row.get("method", ""),
            tag("span", *details, *marked, class_="marked")]  # fmt: skip


def _outcome(row: Mapping[str, Any], table: ShownPairs) -> str:
    first, lean = ((name, row["measures"][name]["gain"] if name else None) for name in table.sides)
    return p.outcome_beside(row.get("outcome"), first, lean, float(table.manifest.settings.get("tolerance", 0.0)))


def _values(values: Mapping[str, float | None]) -> Markup:
    both = f"{n.mean(values['old'], 3)} → {n.mean(values['new'], 3)}"
    return tag("span", both, tag("br"), p.gain_cell(values["gain"]))
