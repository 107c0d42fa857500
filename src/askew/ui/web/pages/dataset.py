"""Dataset: the pairs of a build with their gains. Users filter them by facets and a chart, and download them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from askew.core.defaults import HELD_OUT
from askew.core.measure import gain_column, held_out_gain_column
from askew.core.store.manifest import Manifest
from askew.report import markup as n
from askew.report.charts import UNDER, WIDTH, About, Plot, axis, numeric_frame, numeric_plot, picture, zero_lines
from askew.report.markup import number
from askew.report.page import slug
from askew.report.table import Column
from askew.ui.explorer.pairs import CHOSEN, EVERY, SIDES, GainCells, PairFilter, ShownPairs, gain_cells
from askew.ui.explorer.plan import name_of
from askew.ui.web.markup import Markup, address, below, element, join, shown, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.shell import Page

# The chart of a dataset: gain in lean against gain in effectiveness. Users select pairs by drawing a rectangle.

_HIGH = 250
# The smallest and largest radius of a circle, and the share of all pairs at which a circle has the largest radius.
_LEAST, _MOST, _FULL = 2.2, 11.0, 0.25
BOUNDS = ("lean_min", "lean_max", "effectiveness_min", "effectiveness_max")


def gain_chart(cells: GainCells, asked: PairFilter, clear: str) -> Markup:
    """Draw the chart with its caption. ``clear`` is the link to the same pairs without bounds."""
    across = axis("gain in lean (right: less lean)", cells.span[0], zero=True)
    upright = axis("gain in effectiveness (up: retrieves better)", cells.span[1], zero=True, most=5)
    plot = numeric_plot(across, upright, _HIGH)
    found = cells.fitting
    less, more = (n.count(int(found.filter(pl.col("x_sign") == sign)["pairs"].sum())) for sign in (1, -1))
    told = (
        f"{n.count(int(found['pairs'].sum()))} pairs by gain in {cells.lean} and in {cells.effectiveness}: {less} lean "
        f"less, {more} lean more."
    )
    about = About("gains", "Gain in lean (less lean) against gain in effectiveness", told)
    # A ring for each cell of the whole dataset.
    rings = [tag("circle", cx=x, cy=y, r=_LEAST) for x, y in zip(*_places(cells.every, plot), strict=True)]
    drawn = [numeric_frame(plot, across, upright), *zero_lines(plot), tag("g", *rings, class_="cells-every")]
    drawn += [*_circles(cells, plot), *_chosen(plot, asked)]
    svg = picture(about, WIDTH, plot.bottom + UNDER, *drawn)
    places = {
        "left": plot.left, "right": plot.right, "top": plot.top, "bottom": plot.bottom, "x_low": plot.x.low,
        "x_high": plot.x.high, "y_low": plot.y.low, "y_high": plot.y.high,
    }  # fmt: skip
    data = {f"data_{name}": f"{value:.6g}" for name, value in places.items()}
    box = tag("div", svg, class_="chart", data_brush="pairs", **data)
    return tag("figure", box, _caption(cells, asked, clear), class_="gains")


def _caption(cells: GainCells, asked: PairFilter, clear: str) -> Markup:
    kinds = {
        "better": "the reformulation is better than the original query in lean or effectiveness, and worse in neither",
        "worse": "the reformulation is worse than the original query in lean or effectiveness, and better in neither",
        "mixed": "one of the two queries is better in lean and the other in effectiveness, or they are equal in both",
    }
    dots = {kind: tag("span", "●", class_=f"dot-{kind}", aria_hidden="true") for kind in kinds}
    signs = [join([dots[kind], f" {words}"]) for kind, words in kinds.items()]
    words: list[object] = [
        "Filled circles show the in-sample gains of the pairs that match the filters. Larger circles stand for more "
        "pairs. Rings show the gains of all pairs of the dataset. ",
        join(signs, "; "),
        ". ",
    ]
    if cells.unknown:
        words.append(f"{n.count(cells.unknown)} pairs that lack a gain in lean or effectiveness are not drawn. ")
    words.append(tag("span", "Drag a rectangle to select pairs. ", class_="with-script"))
    if any(getattr(asked, name) is not None for name in BOUNDS):
        words.append(element("a", "Clear the rectangle", href=clear))
    return tag("figcaption", *words)


def _places(cells: pl.DataFrame, plot: Plot) -> list[list[float]]:
    places = plot.x.places(cells["x"].to_numpy()), plot.y.places(cells["y"].to_numpy())
    return [np.round(one, 1).tolist() for one in places]


def _circles(cells: GainCells, plot: Plot) -> list[Markup]:
    """Draw a circle for each cell. Its area shows the share of pairs, on the same scale for every selection."""
    found = cells.fitting.sort("pairs", descending=True, maintain_order=True)
    shares = found["pairs"].to_numpy() / max(found["pairs"].sum(), 1)
    sizes = np.round(np.clip(_MOST * np.sqrt(shares / _FULL), _LEAST, _MOST), 1).tolist()
    groups: dict[str, list[Markup]] = {"mixed": [], "worse": [], "better": []}
    for row, cx, cy, size in zip(found.iter_rows(named=True), *_places(found, plot), sizes, strict=True):
        signs = {row["x_sign"], row["y_sign"]} - {0}
        kind = "better" if signs == {1} else "worse" if signs == {-1} else "mixed"
        words = f"{n.count(row['pairs'])} pairs: lean {p.signed(row['x'])}, effectiveness {p.signed(row['y'])}"
        circle = tag("circle", cx=cx, cy=cy, r=size)
        groups[kind].append(tag("g", tag("title", words), circle))
    return [tag("g", *drawn, class_=f"cells-{kind}") for kind, drawn in groups.items() if drawn]


def _chosen(plot: Plot, asked: PairFilter) -> list[Markup]:
    """Draw the rectangle of the given bounds. A side without a bound is at the edge."""
    given = [getattr(asked, name) for name in BOUNDS]
    if all(value is None for value in given):
        return []
    ends = (plot.x.low, plot.x.high, plot.y.low, plot.y.high)
    x0, x1, y0, y1 = (edge if value is None else value for value, edge in zip(given, ends, strict=True))
    left, right = (min(max(plot.x(value), plot.left), plot.right) for value in (x0, x1))
    bottom, top = (min(max(plot.y(value), plot.top), plot.bottom) for value in (y0, y1))
    path = f"M{number(left)} {number(top)}H{number(right)}V{number(bottom)}H{number(left)}Z"
    return [tag("path", d=path, class_="brushed")]


# Filters of a dataset: facets as links with counts, and a form for words and bounds.

SIZES = ("25", "50", "100", "200")
_LABELS = {
    "subset": "Subset", "outcome": "Outcome", "method": "Method", "kind": "Kind of reformulation",
    "group": "Original query",
}  # fmt: skip
# The groups of original queries, by the numbers that the selector gives them.
GROUPS = {
    "1": "the results of the original query are effective and do not lean",
    "2": "the results of the original query are effective and lean toward a group",
    "3": "the results of the original query are not effective and do not lean",
    "4": "the results of the original query are not effective and lean toward a group",
}
_SUBSETS = {
    CHOSEN: "pairs that were selected for at least one subset",
    EVERY: "all pairs",
    "source_judged": "pairs whose reformulation was made from a relevant document",
}
# The number of values of a facet that are shown; others are folded.
_MORE = 6


def facets(counts: Mapping[str, Mapping[str, int]], asked: PairFilter, given: dict[str, Any]) -> Markup:
    """Make a list for each facet. Its values are links with the number of pairs that each would show."""
    lists = []
    for name, label in _LABELS.items():
        chosen, items = getattr(asked, name), []
        for value, count in counts.get(name, {}).items():
            here = value == chosen
            if not count and not here:
                continue
            # The link of a chosen value removes it. For subsets, one value is always chosen.
            wanted = EVERY if here and name == "subset" else None if here else value
            href = address("/pairs", {**given, name: wanted, "page": None})
            words = tag("span", "✓ " if here else "", value_words(name, value))
            number = tag("span", n.count(count), class_="count")
            current = "true" if here else None
            link = element("a", words, number, href=href, class_="value", title=f"{name}={value}", aria_current=current)
            items.append(tag("li", link))
        first, more = items[:_MORE], items[_MORE:]
        if items:
            folded = [tag("details", tag("summary", f"{len(more)} more"), tag("ul", *more))] if more else []
            title = tag("h2", label, id=f"facet-{name}", title=name)
            lists.append(tag("section", title, tag("ul", *first), *folded, aria_labelledby=f"facet-{name}"))
    return tag("nav", *lists, class_="facets", aria_label="Filters")


def value_words(name: str, value: str) -> str:
    """Describe a value of a facet in plain words."""
    if name == "outcome":
        return p.outcome_words(value, None)
    known = {"group": GROUPS, "subset": _SUBSETS}.get(name, {})
    return known.get(value, value.replace("_", " "))


def search_form(table: ShownPairs, asked: PairFilter, given: Mapping[str, Any]) -> Markup:
    """A form for words, the bounds of the chart and the number of rows. It keeps facets and order."""
    typed = {"text", "size", "page", *BOUNDS}
    kept = p.kept(**{key: value for key, value in given.items() if key not in typed})
    words = p.text_input("text", "Words in the original query or in the reformulation", asked.text, "wide")
    size = p.choice("size", "Rows", [(one, one) for one in SIZES], str(asked.size))
    bounds = []
    if all(table.sides):
        bounds = [_bounds("lean", "Gain in lean", asked), _bounds("effectiveness", "Gain in effectiveness", asked)]
    clear = element("a", "Clear all", href=address("/pairs", {"dataset": asked.dataset}))
    show = element("button", "Show", type="submit")
    return element("form", *kept, words, *bounds, size, show, clear, action="/pairs", method="get",
                   class_="ask filters", id="pairs-form", aria_label="Search pairs")  # fmt: skip


def _bounds(side: str, label: str, asked: PairFilter) -> Markup:
    fields: list[Markup] = []
    for end, words in (("min", "at least"), ("max", "at most")):
        name = f"{side}_{end}"
        box = element("input", type="text", inputmode="decimal", id=f"f-{name}", name=name, maxlength=40,
                      value="" if (bound := getattr(asked, name)) is None else f"{bound:g}", size=6)  # fmt: skip
        fields.append(tag("span", element("label", f"{label}, {words}", for_=f"f-{name}", class_="hidden"), box))
    title = tag("span", label, class_="label", aria_hidden="true")
    both = tag("span", fields[0], tag("span", "to", aria_hidden="true"), fields[1], class_="span")
    return tag("div", title, both, class_="field")


_LEAD = (
    "Pairs of an original query and a reformulation, with the gains of the reformulation in effectiveness and lean. A "
    "positive gain in lean means less lean."
)


def pairs_page(table: ShownPairs, asked: PairFilter, known: Sequence[Manifest], can_open: bool, note: str) -> Page:
    """Show one page of the pairs that match. ``known`` are the datasets; with ``can_open``, a pair can be compared."""
    given, found, cells = asked.model_dump(exclude_defaults=True), table.page(asked), gain_cells(table, asked)
    selector = tag("code", shown(table.manifest.settings.get("selector", "unknown")))
    plan = element("a", "How these pairs were computed", href=below("/plan", table.name))
    source = tag("p", "These pairs were chosen by the selector ", selector, " from ", tag("code", table.name), ". ",
                 plan, class_="note")  # fmt: skip
    body: list[Markup] = [tag("h1", "Dataset"), tag("p", _LEAD, class_="lead"), source]
    if len(known) > 1:
        links = p.link_list(((name, address("/pairs", {"dataset": name})) for name in map(name_of, known)), table.name)
        body.append(tag("p", "Datasets: ", *(tag("span", link, " ") for link in links), class_="sorting"))
    parts = [facets(table.facets(asked), asked, given)]
    if cells is not None:
        free = {key: value for key, value in given.items() if key not in (*BOUNDS, "page")}
        parts.append(gain_chart(cells, asked, address("/pairs", free)))
    body += [_figures(table), search_form(table, asked, given), tag("div", *parts, class_="faceted")]
    told = tag("strong", f"{n.count(found.total)} of {n.count(table.manifest.rows_out)} pairs")
    chosen = {key: value for key, value in given.items() if key not in ("page", "size")}
    files = [(kind, address(f"/pairs/selection.{kind.lower()}", chosen)) for kind in ("Parquet", "TSV")]
    saved = tag("span", "Download these pairs: ", join(p.link_list(files, "", download=True), " or "))
    body.append(tag("p", tag("span", told), saved, class_="downloads", role="status", id="pairs"))
    if found.rows:
        words = (
            "The outcome compares a reformulation with its original query, by the measures that selected the pairs. "
            "Effectiveness counts as better only if no measure of effectiveness is worse. Lean counts as "
            "better only if no measure of lean is worse."
        )
        heads, drawn = zip(*_columns(table, asked, given, can_open), strict=True)
        rows = [[cell(row) for cell in drawn] for row in found.rows]
        first = (found.page - 1) * found.size + 1
        caption = f"Pairs {first:,} to {first + len(rows) - 1:,}"
        body += [p.data_table(caption, heads, rows, "pairs"), tag("p", words, class_="note")]
        body.append(p.pager("/pairs", given, found.page, found.pages))
    else:
        words = "No pair matches these filters. Remove a filter to see pairs. "
        if found.total:
            words = "This list of pairs has no page with this number. "
        clear = element("a", "Show all selected pairs", href=address("/pairs", {"dataset": asked.dataset}))
        body.append(p.notice(tag("p", words, clear, "."), role="status"))
    return Page("Dataset", tuple(body), "/pairs", note)


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
    head = {"mean of": "words", **dict.fromkeys(("change, held out", "95% interval", "in-sample"), "number")}
    caption = (
        f"Subset {value_words('subset', subset)}, {n.count(rows[0]['pairs'])} pairs: change of the means from original "
        "queries to reformulations"
    )
    drawn = []
    for row in rows:
        measure = tag("span", names.get(row["measure"], ""), " ", tag("code", row["measure"]))
        held: list[object] = [n.NONE, n.NONE]
        if row["figures"] == HELD_OUT:
            look = {"better": "gain up", "worse": "gain down"}.get(row["verdict"] or "", "gain")
            verdict = f" ({row['verdict']})" if row["verdict"] else ""
            changed = tag("span", n.change(row["change"]), verdict, class_=look)
            held = [changed, n.interval_of(row, "held_out_queries")]
        drawn.append([measure, *held, n.change(row["in_sample_change"])])
    return p.data_table(caption, head, drawn, slug(subset, before="figures"))


Row = Mapping[str, Any]
Shown = tuple[Column, Callable[[Row], object]]


def _columns(table: ShownPairs, asked: PairFilter, given: dict[str, Any], can_open: bool) -> Iterator[Shown]:
    """Make columns with plain names. The tooltip has the name of the column in the file; a click sorts."""

    def text(row: Row) -> Markup:
        words = tag("bdi", shown(row.get("text", "")), dir="auto")
        if not can_open:
            return words
        named = {"q": row.get("original_text", ""), "to": row.get("text", ""), "query_id": row.get("query_id", "")}
        return element("a", words, href=address("/compare", named), aria_label=f"Compare {shown(row.get('text', ''))}")

    def outcome(row: Row) -> str:
        first, lean = ((name, row["measures"][name]["gain"] if name else None) for name in table.sides)
        tolerance = float(table.manifest.settings.get("tolerance", 0.0))
        return p.outcome_beside(row.get("outcome"), first, lean, tolerance)

    def subsets(row: Row) -> Markup:
        marks = [name for name in row["subsets"] if name in (*table.chosen, "negative")]
        return tag(
            "span", *(tag("span", value_words("subset", name), class_="chip") for name in marks), class_="marked"
        )

    def sorting(label: str, kind: str, sort: str, title: str) -> Column:
        """Make a head that sorts. A second click reverses the order."""
        name = sort.removeprefix("-")
        turned = name if sort.startswith("-") else f"-{name}"
        here = asked.sort.removeprefix("-") == name
        arrow, way = ("▼", "descending") if asked.sort.startswith("-") else ("▲", "ascending")
        link = address("/pairs", {**given, "sort": turned if asked.sort == sort else sort, "page": None}, "pairs")
        words = tag("span", f" {arrow}" if here else "", aria_hidden="true")
        return Column(element("a", label, words, href=link), kind, title=title, sort=way if here else None)

    yield sorting("Reformulation", "quote", "text", "text"), text
    original = sorting("Original query", "quote", "original", "original_text")
    yield original, lambda row: tag("bdi", shown(row.get("original_text", "")), dir="auto")
    for side, measure in zip(reversed(SIDES), reversed(table.sides), strict=True):
        if measure is not None:
            names = f"{measure}: {held_out_gain_column(measure)}, {gain_column(measure)}"
            yield sorting(f"Gain in {side}", "gains", f"-{side}", names), partial(_values, measure)
    for label, sort, column, means in _CHANCES:
        if column in table.columns:
            share = partial(lambda column, row: n.share(row[column], 0), column)
            yield sorting(label, "number", sort, f"{column}: {means}"), share
    if "kind" in table.columns and table.counts.get("kind"):
        yield sorting("Kind", "name", "kind", "kind"), lambda row: shown(row.get("kind") or n.NONE)
    if "method" in table.columns:
        yield sorting("Method", "name", "method", "method"), lambda row: shown(row["method"] or n.NONE)
    if "outcome" in table.columns:
        yield sorting("Outcome", "words", "outcome", "outcome"), outcome
    yield Column("Subsets", "words"), subsets


_CHANCES = (
    ("P(same)", "-same", "p_same", "the probability that the reformulation has the same meaning as the original query"),
    ("P(natural)", "-natural", "p_natural", "the probability that a person could type the reformulation as a query"),
)


def _values(measure: str, row: Row) -> Markup:
    """Show the held-out gain, if there is one, then the in-sample gain with the values before and after."""
    values, told = row["measures"][measure], row["held_out_gains"].get(measure)
    held = [tag("span", "held out ", p.gain_cell(told)), tag("br")] if told is not None else []
    both = tag("br"), f"{n.mean(values['old'], 3)} → {n.mean(values['new'], 3)}"
    return tag("span", *held, tag("span", "in-sample ", p.gain_cell(values["gain"]), *both, class_="in-sample"))
