"""Check a built site: no link leads nowhere, and no page loads anything from another host.

``python tools/site/check.py site`` prints each problem and exits with 1 where there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

# What a browser loads of itself. A link (a) is followed by a person.
_LOADED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data", "link": "href", "image": "href", "use": "href",
}  # fmt: skip
_IN_STYLES = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])([^'")]+)""")


class _Page(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if given.get(name))
        self._in_style = tag == "style"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(_LOADED.get(tag, "")):
            self.loaded.append(given[_LOADED[tag]])
        self.loaded += [part.split()[0] for part in given.get("srcset", "").split(",") if part.split()]
        self.loaded += _IN_STYLES.findall(given.get("style", ""))
        # Material loads Mermaid from another host where a page has such a drawing.
        if "mermaid" in given.get("class", "").split():
            self.loaded.append("https://a-drawing-of-mermaid")

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loaded += _IN_STYLES.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path) -> Iterator[str]:
    """One line for each link that leads nowhere, and for each thing that is loaded from elsewhere."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: there is no page; build the site first"
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        # The page of a server that cannot know at which depth it is shown.
        if name.name == "404.html":
            continue
        yield from (f"{name}: loads {one}" for one in page.loaded if _is_elsewhere(one))
        for link in [*page.links, *page.loaded]:
            if (found := _dead(link, path, pages)) is not None:
                yield f"{name}: {found}"
    for style in sorted(site.rglob("*.css")):
        loaded = _IN_STYLES.findall(style.read_text(encoding="utf-8"))
        yield from (f"{style.relative_to(site)}: loads {one}" for one in loaded if _is_elsewhere(one))


def _is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def _dead(link: str, path: Path, pages: dict[Path, _Page]) -> str | None:
    place, anchor = urldefrag(link)
    if urlsplit(place).scheme or _is_elsewhere(place):
        return None
    target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return f"{link} leads to no file"
    if anchor and target in pages and unquote(anchor) not in pages[target].ids:
        return f"{link} leads to no place of that page"
    return None


def main() -> None:
    """Check the site in the folder that is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, help="the folder of the site")
    found = list(problems(parser.parse_args().site))
    for one in found:
        print(one)
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
