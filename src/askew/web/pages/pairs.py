"""Dataset: the pairs of a build with their gains. Users filter them by facets and a chart, and download them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from askew.app.explore.gain_cells import GainCells
from askew.app.explore.pairs import SIDES, PairPage, ShownPairs
from askew.core.figures import HELD_OUT
from askew.core.measure import gain_column, held_out_gain_column
from askew.engine.manifest import Manifest
from askew.publish.page import numerals as n
from askew.web.markup import Markup, address, below, element, shown, tag
from askew.web.pages import parts as p
from askew.web.pages.facets import facets, search_form, value_words
from askew.web.pages.gain_chart import gain_chart, without_bounds
from askew.web.pages.shell import Page
from askew.web.schemas import PairFilter

_LEAD = (
    "Pairs of an original query and a reformulation, with the gains of the reformulation in effectiveness and lean. A "
    "positive gain in lean means less lean."
)


@dataclass(frozen=True)
class PairsView:
    """The content of a page: the dataset, the pairs that match, and the counts of each facet."""

    table: ShownPairs
    found: PairPage
    counts: Mapping[str, Mapping[str, int]]
    cells: GainCells | None
    known: Sequence[Manifest]
    can_open: bool


def given_of(asked: PairFilter) -> dict[str, Any]:
    """Return the fields of a filter that differ from their defaults, for a link."""
    return asked.model_dump(exclude_defaults=True)


def pairs_page(view: PairsView, asked: PairFilter, note: str) -> Page:
    """Show one page of the pairs that match."""
    given, table, found = given_of(asked), view.table, view.found
    body: list[Markup] = [tag("h1", "Dataset"), tag("p", _LEAD, class_="lead"), _choose(table, view.known)]
    body += [_figures(table), search_form(table, asked, given), _overview(view, asked, given)]
    told = tag("strong", f"{n.count(found.total)} of {n.count(table.manifest.rows_out)} pairs")
    body.append(tag("p", tag("span", told), _downloads(given), class_="downloads", role="status", id="pairs"))
    if found.rows:
        words = (
            "The outcome compares a reformulation with its original query, by the measures that selected the pairs. "
            "Effectiveness counts as better only if no measure of effectiveness is worse. Lean counts as "
            "better only if no measure of lean is worse."
        )
        body += [_table(view, asked, given), tag("p", words, class_="note")]
        body.append(p.pager("/pairs", given, found.page, found.pages))
    else:
        body.append(_nothing(found, asked))
    return Page("Dataset", tuple(body), "/pairs", note)


def _nothing(found: PairPage, asked: PairFilter) -> Markup:
    words = (
        "No pair matches these filters. Remove a filter to see pairs. "
        if not found.total
        else "This list of pairs has no page with this number. "
    )
    clear = element("a", "Show all selected pairs", href=address("/pairs", {"dataset": asked.dataset}))
    return p.notice(tag("p", words, clear, "."), role="status")


def _choose(table: ShownPairs, known: Sequence[Manifest]) -> Markup:
    chosen = table.manifest.settings.get("selector", "unknown")
    facts = tag("p", "These pairs were chosen by the selector ", tag("code", shown(chosen)), " from ",
                tag("code", table.name), ". ", element("a", "How these pairs were computed",
                href=below("/plan", table.name)), class_="note")  # fmt: skip
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


def _figures(table: ShownPairs) -> Markup:
    """Show the held-out change of each chosen subset, and beside it the in-sample change."""
    if table.held_out is None or not table.held_out.rows:
        words = (
            "These pairs were not measured on held-out data. All gains below are in-sample: measured on the same data "
            "that selected the pairs."
        )
        return tag("p", words, class_="note") if table.chosen else Markup()
    # The union of the other subsets is last in the list of subsets, and shown first here.
    subsets = [name for name in reversed(table.chosen) if any(row["subset"] == name for row in table.held_out.rows)]
    first, *rest = (_subset_figures(table, name, table.held_out.rows) for name in subsets)
    note = (
        "Held out: one half of the documents of the collection is used to select the pairs, the other half to measure "
        "their gains. In-sample: the gains of the pairs are measured on the same data that selected the pairs, which "
        "overestimates the gains. A change is called better or worse "
        "if its interval excludes zero."
    )
    parts = [first, tag("p", note, class_="note")]
    if rest:
        parts.append(tag("details", tag("summary", "The other subsets"), *rest))
    return tag("section", *parts, aria_label="Change of the means from original queries to reformulations")


def _subset_figures(table: ShownPairs, subset: str, every: Sequence[Mapping[str, Any]]) -> Markup:
    effectiveness, lean = table.sides
    names = {lean: "lean", effectiveness: "effectiveness"}
    rows = sorted((row for row in every if row["subset"] == subset), key=lambda row: row["measure"] != lean)
    head: list[p.Head | tuple[object, str]] = [
        ("mean of", "words"), ("change, held out", "number"), ("95% interval", "number"), ("in-sample", "number"),
    ]  # fmt: skip
    pairs = n.count(rows[0]["pairs"])
    caption = (
        f"Subset {value_words('subset', subset)}, {pairs} pairs: change of the means from original queries to "
        "reformulations"
    )
    drawn = [_figure(row, names.get(row["measure"], "")) for row in rows]
    return p.data_table(caption, head, drawn, f"figures-{_slug(subset)}")


def _slug(name: str) -> str:
    """Convert the name of a subset to a part of an id."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in name)


def _figure(row: Mapping[str, Any], side: str) -> list[object]:
    measure = tag("span", side, " ", tag("code", row["measure"]))
    held = row["figures"] == HELD_OUT
    ends = n.interval_of(row, "held_out_queries") if held else n.NONE
    change = p.change_cell(row["change"], row["verdict"]) if held else n.NONE
    return [measure, change, ends, n.change(row["in_sample_change"])]


def _overview(view: PairsView, asked: PairFilter, given: dict[str, Any]) -> Markup:
    parts = [facets(view.counts, asked, given)]
    if view.cells is not None:
        parts.append(gain_chart(view.cells, asked, without_bounds("/pairs", given)))
    return tag("div", *parts, class_="faceted")


def _downloads(given: Mapping[str, Any]) -> Markup:
    chosen = {key: value for key, value in given.items() if key not in ("page", "size")}
    links = [element("a", kind, href=address(f"/pairs/selection.{ending}", chosen), download=True)
             for kind, ending in (("Parquet", "parquet"), ("TSV", "tsv"))]  # fmt: skip
    return tag("span", "Download these pairs: ", links[0], " or ", links[1])


def _table(view: PairsView, asked: PairFilter, given: dict[str, Any]) -> Markup:
    table, found = view.table, view.found
    others = [asked.measure] if asked.measure and asked.measure not in table.sides else []
    head = _heads(table, others, asked, given)
    rows = [_row(row, view, others) for row in found.rows]
    first = (found.page - 1) * found.size + 1
    return p.data_table(f"Pairs {first:,} to {first + len(rows) - 1:,}", head, rows, "pairs")


def _heads(
    table: ShownPairs, others: Sequence[str], asked: PairFilter, given: dict[str, Any]
) -> list[p.Head | tuple[object, str]]:
    """Make column heads with plain names. The tooltip has the name of the column in the file; a click sorts."""
    heads: list[p.Head | tuple[object, str]] = [
        _sorted("Reformulation", "quote", "text", "text", asked, given),
        _sorted("Original query", "quote", "original", "original_text", asked, given),
    ]
    for side in reversed(SIDES):
        measure = table.sides[SIDES.index(side)]
        if measure is not None:
            names = f"{held_out_gain_column(measure)}, {gain_column(measure)}"
            heads.append(_sorted(f"Gain in {side}", "gains", f"-{side}", f"{measure}: {names}", asked, given))
    heads += [(tag("span", name, title=gain_column(name)), "gains") for name in others]
    for label, sort, column in (("P(same)", "-same", "p_same"), ("P(natural)", "-natural", "p_natural")):
        if column in table.columns:
            heads.append(_sorted(label, "number", sort, f"{column}: {_MEANS[column]}", asked, given))
    for label, sort in (("Kind", "kind"), ("Method", "method"), ("Outcome", "outcome")):
        if sort in table.columns and (sort != "kind" or table.counts.get("kind")):
            heads.append(_sorted(label, "words" if sort == "outcome" else "name", sort, sort, asked, given))
    return [*heads, ("Subsets", "words")]


_MEANS = {
    "p_same": "the probability that the reformulation has the same meaning as the original query",
    "p_natural": "the probability that a person could type the reformulation as a query",
}


def _sorted(label: str, kind: str, sort: str, title: str, asked: PairFilter, given: dict[str, Any]) -> p.Head:
    """Make a head that sorts. A second click reverses the order."""
    name = sort.removeprefix("-")
    turned = name if sort.startswith("-") else f"-{name}"
    here = asked.sort.removeprefix("-") == name
    arrow, way = ("▼", "descending") if asked.sort.startswith("-") else ("▲", "ascending")
    link = address("/pairs", {**given, "sort": turned if asked.sort == sort else sort, "page": None}, "pairs")
    words = tag("span", f" {arrow}" if here else "", aria_hidden="true")
    return p.Head(element("a", label, words, href=link), kind, title, way if here else None)


def _row(row: Mapping[str, Any], view: PairsView, others: Sequence[str]) -> list[object]:
    table = view.table
    text, original = (tag("bdi", shown(row.get(name, "")), dir="auto") for name in ("text", "original_text"))
    if view.can_open:
        named = {"q": row.get("original_text", ""), "to": row.get("text", ""), "query_id": row.get("query_id", "")}
        link = address("/compare", named)
        text = element("a", text, href=link, aria_label=f"Compare {shown(row.get('text', ''))}")
    measures = [name for name in (*reversed(table.sides), *others) if name is not None]
    cells: list[object] = [_values(row, name) for name in measures]
    cells += [n.share(row[name], 0) for name in ("p_same", "p_natural") if name in table.columns]
    if table.counts.get("kind"):
        cells.append(shown(row.get("kind") or n.NONE))
    cells += [shown(row[name] or n.NONE) for name in ("method",) if name in table.columns]
    cells += [_outcome(row, table)] if "outcome" in table.columns else []
    marks = [name for name in row["subsets"] if name in (*table.chosen, "negative")]
    marked = [tag("span", value_words("subset", name), class_="chip") for name in marks]
    return [text, original, *cells, tag("span", *marked, class_="marked")]


def _outcome(row: Mapping[str, Any], table: ShownPairs) -> str:
    first, lean = ((name, row["measures"][name]["gain"] if name else None) for name in table.sides)
    return p.outcome_beside(row.get("outcome"), first, lean, float(table.manifest.settings.get("tolerance", 0.0)))


def _values(row: Mapping[str, Any], measure: str) -> Markup:
    """Show the held-out gain, if there is one, then the in-sample gain with the values before and after."""
    values, told = row["measures"][measure], row["held_out_gains"].get(measure)
    held = [tag("span", "held out ", p.gain_cell(told)), tag("br")] if told is not None else []
    both = tag("br"), f"{n.mean(values['old'], 3)} → {n.mean(values['new'], 3)}"
    return tag("span", *held, tag("span", "in-sample ", p.gain_cell(values["gain"]), *both, class_="in-sample"))
