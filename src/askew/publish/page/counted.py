"""The section of the report on the mentions that its measure of lean counts."""

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
    """The name of a part of a measure of lean on pages."""
    return _SAID.get(name, name)


@dataclass(frozen=True)
class CountedParts:
    """The parts of a measure of lean, for original and chosen queries; ``data`` has one row for each part."""

    measure: str
    resolver: str
    queries: int
    data: pl.DataFrame


def counted_section(files: PageParts, found: CountedParts) -> Section:
    """A table of the share of each part and what it adds to the mean (net), for original and chosen queries."""
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
    caption = (
        f"How much each kind of counted word contributes to the mean of {found.measure} over {found.queries:,} queries"
    )
    shown = files.table(table("counted", caption, head, rows), found.data)
    return Section("counted", "What the measure of lean counts", [paragraph(_told(found)), shown])


def _told(found: CountedParts) -> str:
    who = (
        ' Each row "who" is a kind of person or thing that counted words refer to. The net values of the rows "who" '
        "also add up to the mean of the measure. The values of these rows are corrected for known errors of the model."
        if "who" in found.data["kind"].to_list()
        else ""
    )
    return (
        f'A model ({found.resolver}) estimates all values. Each row "why" is a reason why counted words are in the '
        "results. Net: what the words of a row add to the mean of the measure. The net values of the rows "
        f'"why" add up to this mean.{who} The row "on topic" includes stereotypes, because too few stereotypes are '
        "labeled for a separate estimate."
    )
