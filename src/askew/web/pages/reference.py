"""API: the reference of the REST service, made from its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from askew.publish.page import numerals as n
from askew.web.markup import Markup, element, tag
from askew.web.pages import parts as p
from askew.web.pages.shell import Page

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
    lead = tag("p", "Programs can request everything that the pages show. Full description: ", raw, ".",
               class_="lead")  # fmt: skip
    parts = [_path(path, methods, base) for path, methods in document["paths"].items()]
    return Page(
        "API", (tag("h1", "API"), lead, tag("p", *_words(document["info"]["description"])), *parts), "/api", note
    )


def _words(text: str) -> list[object]:
    """Format the parts of a text between backticks as code."""
    return [tag("code", part) if place % 2 else part for place, part in enumerate(_TICKS.split(text))]


def _path(path: str, methods: Mapping[str, Any], base: str) -> Markup:
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
    head: list[tuple[object, str]] = [("parameter", "code"), ("type", "words"), ("default", "name")]
    rows = [[tag("code", one["name"]), _kind(one.get("schema", {})), _left_out(one)] for one in given]
    return p.data_table("Parameters", head, rows, name)


def _left_out(one: Mapping[str, Any]) -> str:
    if one.get("required"):
        return "required"
    default = one.get("schema", {}).get("default")
    return n.NONE if default in (None, "") else str(default)


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(repr(one) for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    kind = {"string": "text", "integer": "a whole number", "number": "a number"}.get(str(schema.get("type")), "a value")
    words = {"minimum": "from", "maximum": "to", "maxLength": "of at most"}
    ends = [f"{word} {schema[key]:,}" for key, word in words.items() if key in schema]
    return " ".join([kind, *ends, *(["characters"] if "maxLength" in schema else [])])
