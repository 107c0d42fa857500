"""The section of the report on what its measure of lean counts."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from askew.publish.page import numerals as n
from askew.publish.page.document import Section, paragraph
from askew.publish.page.parts import PageParts
from askew.publish.page.table import columns, table

_SAID = {
    "offtopic": "off topic",
    "asked": "asked for",
    "warranted": "on topic",
    "ontopic": "on topic or asked for",
    "real": "a real person",
    "fictional": "a fictional character",
    "generic": "people in general",
    "name": "part of a name",
    "other": "no person",
}


def part_name(name: str) -> str:
    """What a part of a measure of lean is called on pages."""
    return _SAID.get(name, name)


@dataclass(frozen=True)
class CountedParts:
    """The parts of a measure, for the original queries and the chosen ones; one row for each."""

    measure: str
    resolver: str
    queries: int
    data: pl.DataFrame


def counted_section(files: PageParts, found: CountedParts) -> Section:
    """A table of shares and nets, before and after."""
    rows = []
    for kind, name in found.data.select("kind", "name").unique(maintain_order=True).rows():
        cells = [f"{kind}: {part_name(name)}"]
        for side in ("original", "chosen"):
            here = found.data.filter(queries=side, kind=kind, name=name)
            if not len(here):
                cells += ["", "", ""]
                continue
            one = here.row(0, named=True)
            cells += [n.share(one["share"]), n.share_interval(one["low"], one["high"]), n.mean(one["net"])]
        rows.append(cells)
    head = columns(
        "part", "original: share", "95% interval", "net", "chosen: share", "95% interval", "net"
    )  # fmt: skip
    caption = f"Parts of {found.measure} for {found.queries:,} queries"
    shown = files.table(table("counted", caption, head, rows), found.data)
    told = (
        f"Which words the measure counts, by why they are there and whom they point to. Parts are estimates "
        f"({found.resolver}); who is corrected for known errors. Nets add up to the mean of the measure. On topic "
        "includes mentions that present one group as the default: too few are labeled to estimate them."
    )
    return Section("counted", "What the measure of lean counts", [paragraph(told), shown])
