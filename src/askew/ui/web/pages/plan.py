"""Plan: the steps of a store, with their numbers of rows and of dropped rows, and a page for each step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from askew.core.address import without_secret_values
from askew.core.store.manifest import Manifest
from askew.report import markup as n
from askew.ui.explorer.plan import StepNode, name_of
from askew.ui.web.markup import below, element, shown, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.shell import Page

# Plain names of stages. A step of any other stage is shown by its own name.
_DOES = {
    "classify": "Classify queries", "reformulate": "Write reformulations", "filter": "Filter reformulations",
    "retrieve": "Search", "evaluate": "Measure", "select": "Choose pairs", "held-out": "Held-out figures",
    "annotate": "Count group words",
}  # fmt: skip


def plan_page(nodes: Sequence[StepNode], unfinished: Mapping[str, Mapping[str, int]], note: str) -> Page:
    """Show all steps of a store."""
    lead = (
        "How the dataset was made: the steps of the store, how many rows each step reads and writes, and why rows "
        "were dropped."
    )
    body = [tag("h1", "Plan"), tag("p", lead, class_="lead")]
    if unfinished:
        told = [
            f"{name}: {facts['parts']:,} parts, {facts['rows in']:,} rows so far" for name, facts in unfinished.items()
        ]
        words = tag("p", "Not finished: ", "; ".join(told), ". To resume, run the same askew run command.")
        body.append(p.notice(words, kind="warn"))
    head = {
        "step": "code", "what it does": "name", "rows in": "number", "rows out": "number",
        "dropped, by reason": "words", "reads": "code",
    }  # fmt: skip
    rows = [
        [element("a", tag("code", node.name), href=below("/plan", node.name)), _DOES.get(node.stage, shown(node.step)),
         n.count(node.rows_in), n.count(node.rows_out), _dropped(node.dropped), tag("code", node.reads or "a source")]
        for node in nodes
    ]  # fmt: skip
    body.append(p.data_table("All steps", head, rows, "steps"))
    return Page("Plan", tuple(body), "/plan", note)


def _dropped(dropped: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} {shown(why)}" for why, count in dropped.items()) or n.NONE


def step_page(one: Manifest, made: Mapping[str, Any], note: str) -> Page:
    """Show the manifest of one step, and what is known of how it was made."""
    facts = [
        ("stage", f"{one.stage}, version {one.version}"), ("key", one.key), ("reads", one.input_key),
        ("rows in", n.count(one.rows_in)), ("rows out", n.count(one.rows_out)), ("dropped", _dropped(one.dropped)),
        *((str(key), str(value)) for key, value in sorted(made.items())),
    ]  # fmt: skip
    listed = tag("dl", *(part for name, value in facts for part in (tag("dt", shown(name)), tag("dd", shown(value)))))
    settings = tag("pre", json.dumps(without_secret_values(one.settings), indent=2, ensure_ascii=False, sort_keys=True))
    head = {"part": "code", **dict.fromkeys(("from row", "to row", "rows out", "bytes"), "number"), "sha256": "code"}
    rows = [
        [tag("code", part.file), n.count(part.start), n.count(part.stop), n.count(part.rows), n.count(part.size),
         tag("code", part.sha256[:16], "…")]
        for part in one.parts
    ]  # fmt: skip
    raw = element("a", "Download manifest.json", href=below("/plan", name_of(one), "/manifest.json"))
    body = (
        tag("p", element("a", "← All steps", href="/plan")), tag("h1", shown(one.step)), listed, tag("p", raw),
        tag("h2", "Settings"), settings, tag("h2", "Parts"), p.data_table("Files of the step", head, rows, "parts"),
    )  # fmt: skip
    return Page(one.step, body, "/plan", note)
