"""The page: a header, sections with tables and figures, a footer. It is one file without scripts or external files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from askew.publish.page.markup import Markup, join, shown, tag
from askew.publish.page.style import CSS

# Even if a text were not escaped, the browser would run no script in it and load no file for it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Section:
    """A part of the page with an entry in the contents; a ``folded`` section opens by a click or a link to it."""

    name: str
    title: str
    body: Sequence[Markup]
    folded: bool = False


def document(title: str, head: Sequence[Markup], sections: Sequence[Section], foot: Sequence[Markup]) -> str:
    """The whole page as text."""
    metas = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
    ]
    top = tag("head", *metas, tag("title", shown(title)), tag("style", Markup(CSS)))
    header, main = tag("header", tag("h1", shown(title)), *head), tag("main", *map(drawn_section, sections))
    body = tag("body", header, contents(sections), main, tag("footer", *foot))
    return "<!DOCTYPE html>\n" + tag("html", top, "\n", body, lang="en") + "\n"


def contents(sections: Sequence[Section]) -> Markup:
    """Links to all sections."""
    links = (tag("li", tag("a", one.title, href=f"#{one.name}")) for one in sections)
    return tag("nav", tag("ul", *links), aria_label="Contents")


def drawn_section(one: Section) -> Markup:
    """A section with its heading."""
    title = tag("h2", one.title, id=f"{one.name}-title")
    if not one.folded:
        return tag("section", title, *one.body, id=one.name, aria_labelledby=f"{one.name}-title")
    # The id is inside the folded element, so that a browser which follows a link to it opens the element.
    inner = tag("div", *one.body, id=one.name)
    return tag(
        "section", tag("details", tag("summary", title), inner, class_="folded"), aria_labelledby=f"{one.name}-title"
    )


def paragraph(*words: object, kind: str | None = None) -> Markup:
    """A paragraph of texts and markup."""
    return tag("p", *words, class_=kind)


def heading(words: str) -> Markup:
    """A heading within a section."""
    return tag("h3", words)


def facts(pairs: Sequence[tuple[str, object]]) -> Markup:
    """A description list of names and values."""
    return tag("dl", *(join([tag("dt", name), tag("dd", value)]) for name, value in pairs))


def listed(items: Sequence[object]) -> Markup:
    """A list with bullets."""
    return tag("ul", *(tag("li", item) for item in items))


def code(text: object) -> Markup:
    """A name in code type."""
    return tag("code", shown(text))


def folded(summary: str, text: str) -> Markup:
    """A long text under a summary that opens by a click; its line breaks are kept."""
    return tag("details", tag("summary", summary), tag("pre", text))


def figure(drawn: Markup, title: str, *words: object) -> Markup:
    """A picture with its caption."""
    caption = tag("figcaption", tag("strong", title), " ", *words)
    return tag("figure", tag("div", drawn, class_="scroll", tabindex="0", role="region", aria_label=title), caption)


def figures(*drawn: Markup) -> Markup:
    """Pictures side by side if there is room."""
    return tag("div", *drawn, class_="figures")
