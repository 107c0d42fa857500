"""Plan: the steps of a store as a diagram, with the numbers of rows between steps and of dropped rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from askew.core.address import without_secret_values
from askew.core.store.manifest import Manifest
from askew.report import markup as n
from askew.report.charts import About, picture, shortened, text
from askew.ui.explorer.plan import StepNode, name_of
from askew.ui.web.markup import Markup, below, element, shown, tag
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.shell import Page

# API: the reference of the REST service, made from its OpenAPI document.

_TICKS = re.compile("`+")
# For each HTTP method and path: the text before and after the address in the example.
_EXAMPLES = {
    ("get", "/api/search"): ("", "?q=how+to+become+a+nurse&k=3"),
    ("post", "/api/reformulate"): (
        "-d '{\"queries\": [\"how to become a nurse\"]}' -H 'Content-Type: application/json' ", ""
    ),
    ("get", "/api/pairs"): ("", "?subset=effective&size=5&page=2"),
}  # fmt: skip
# The client chooses the host, and it is shown in a command that people copy.
_PLAIN_HOST = re.compile(r"[A-Za-z0-9.\-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")


def base_of(scheme: str, host: str, own: str) -> str:
    """Return the address that the client used, or ``own`` if the host is not a plain host name."""
    return f"{scheme}://{host if _PLAIN_HOST.fullmatch(host) else own}"


def reference_page(document: Mapping[str, Any], note: str, base: str) -> Page:
    """Show all addresses with their parameters. ``base`` is the address of the service in examples."""
    raw = element("a", "openapi.json", href="/openapi.json")
    words = "Programs can request everything that the pages show. Full description: "
    head = [tag("h1", "API"), tag("p", words, raw, ".", class_="lead")]
    parts = [_reference_path(path, methods, base) for path, methods in document["paths"].items()]
    return Page("API", (*head, tag("p", *_words(document["info"]["description"])), *parts), "/api", note)


def _words(text: str) -> list[object]:
    """Format the parts of a text between backticks as code."""
    return [tag("code", part) if place % 2 else part for place, part in enumerate(_TICKS.split(text))]


def _reference_path(path: str, methods: Mapping[str, Any], base: str) -> Markup:
    told = []
    for method, one in methods.items():
        told.append(tag("h3", tag("code", f"{method.upper()} {path}"), " ", one.get("summary", "")))
        told.append(tag("p", *_words(one.get("description", ""))))
        if one.get("parameters"):
            told.append(_parameters(f"{method}-{path.rpartition('/')[2]}", one["parameters"]))
        if (method, path) in _EXAMPLES:
            before, behind = _EXAMPLES[method, path]
            told.append(tag("pre", f"curl {before}'{base}{path}{behind}'"))
    return tag("section", *told)


def _parameters(name: str, given: list[Mapping[str, Any]]) -> Markup:
    rows = []
    for one in given:
        schema = one.get("schema", {})
        default = "required" if one.get("required") else schema.get("default")
        rows.append([tag("code", one["name"]), _kind(schema), n.NONE if default in (None, "") else str(default)])
    return p.data_table("Parameters", {"parameter": "code", "type": "words", "default": "name"}, rows, name)


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(repr(one) for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    kind = {"string": "text", "integer": "a whole number", "number": "a number"}.get(str(schema.get("type")), "a value")
    words = {"minimum": "from", "maximum": "to", "maxLength": "of at most"}
    ends = [f"{word} {schema[key]:,}" for key, word in words.items() if key in schema]
    return " ".join([kind, *ends, *(["characters"] if "maxLength" in schema else [])])


_WIDE, _HIGH, _BETWEEN, _IN, _TOP = 250, 46, 40, 40, 34
# Space to the left of the boxes, for the lines of branches.
_LEFT, _LANES = 34, (8, 16, 24)
_WIDTH = 560
_LONGEST = 34
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
    # Separate steps, such as counts of the collection, are only in the table.
    read = {node.reads for node in nodes}
    connected = [node for node in nodes if node.reads is not None or node.name in read] or nodes
    drawn = tag("div", _picture(connected), class_="scroll plan", tabindex="0", role="region", aria_label="The steps")
    body = [tag("h1", "Plan"), tag("p", lead, class_="lead")]
    if unfinished:
        told = [
            f"{name}: {facts['parts']:,} parts, {facts['rows in']:,} rows so far" for name, facts in unfinished.items()
        ]
        words = tag("p", "Not finished: ", "; ".join(told), ". To resume, run the same askew run command.")
        body.append(p.notice(words, kind="warn"))
    body += [drawn, tag("details", tag("summary", f"All steps as a table ({len(nodes)})"), _table(nodes))]
    return Page("Plan", tuple(body), "/plan", note)


def _picture(nodes: Sequence[StepNode]) -> Markup:
    places = {node.name: place for place, node in enumerate(nodes)}
    drawn: list[Markup] = []
    for place, node in enumerate(nodes):
        drawn += _wire(node, place, places)
        drawn += _box(node, place)
    height = _TOP + len(nodes) * (_HIGH + _BETWEEN)
    told = "; ".join(f"{_does(one)} reads {one.rows_in:,} rows and writes {one.rows_out:,}" for one in nodes)
    return picture(About("plan", "The steps that computed the dataset", told), _WIDTH, height, *drawn)


def _does(node: StepNode) -> str:
    return _DOES.get(node.stage, shown(node.step))


def _top_of(place: int) -> float:
    return _TOP + place * (_HIGH + _BETWEEN)


def _wire(node: StepNode, place: int, places: Mapping[str, int]) -> list[Markup]:
    """Draw the line from the input step to this one, with the number of rows. It passes other boxes on the left."""
    x, top = _LEFT + node.depth * _IN + 16, _top_of(place)
    tip = f"M{x - 5} {top - 7}L{x} {top}L{x + 5} {top - 7}"
    begin = top - 16 if node.reads is None else _top_of(places[node.reads]) + _HIGH
    words = text(x + 12, top - 6 if node.reads is None else top - _BETWEEN / 2 + 4, f"{node.rows_in:,} rows", size=12)
    line = f"M{x} {begin}V{top}"
    if node.reads is not None and places[node.reads] != place - 1:
        lane, start = _LANES[place % len(_LANES)], _top_of(places[node.reads]) + _HIGH / 2
        line = f"M{_LEFT} {start}H{lane}V{top - _BETWEEN / 2 - 4}H{x}V{top}"
    return [_path(line), _path(tip), words]


def _path(line: str) -> Markup:
    return tag("path", d=line, class_="wire", stroke="currentColor", fill="none")


def _box(node: StepNode, place: int) -> list[Markup]:
    x, y = _LEFT + node.depth * _IN, _top_of(place)
    inner = [
        tag("rect", x=x, y=y, width=_WIDE, height=_HIGH, rx=6),
        text(x + 12, y + 19, shortened(_does(node), 28)),
        text(x + 12, y + 37, f"{shortened(shown(node.step), 16)} → {node.rows_out:,} rows", size=12),
    ]
    box = element("a", *inner, href=below("/plan", node.name), aria_label=f"{_does(node)}: details")
    lost = [f"\N{MINUS SIGN}{count:,} {shown(why)}" for why, count in node.dropped.items()]
    if len(lost) > 3:
        lost[2:] = [f"and {len(lost) - 2} more reasons"]
    beside = [
        tag("text", shortened(words, _LONGEST), x=x + _WIDE + 16, y=y + 19 + 18 * row, class_="soft", font_size=12)
        for row, words in enumerate(lost)
    ]
    return [box, *beside]


def _table(nodes: Sequence[StepNode]) -> Markup:
    head = {
        "step": "code", "what it does": "name", "rows in": "number", "rows out": "number",
        "dropped, by reason": "words", "reads": "code",
    }  # fmt: skip
    rows = [
        [element("a", tag("code", node.name), href=below("/plan", node.name)), _does(node), n.count(node.rows_in),
         n.count(node.rows_out), _dropped(node.dropped), tag("code", node.reads or "a source")]
        for node in nodes
    ]  # fmt: skip
    return p.data_table("All steps", head, rows, "steps")


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
