"""What MkDocs runs while it builds the site (``hooks`` in mkdocs.yml).

Notebooks become pages. What is between a marker and ``<!-- end -->`` is for readers of the repository. On the site,
``<!-- generated: commands -->`` is the reference of the commands, ``<!-- names: A B() -->`` the docstrings of these
names, and ``<!-- file: PATH -->`` a file of the repository. Links that leave docs/ have no page on the site: they
become the path.
Elements of the HTML get the classes that docs/site.css uses.
"""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from mkdocs.structure.files import File, Files
from notebooks import as_markdown
from reference import commands

ROOT = Path(__file__).resolve().parent.parent.parent
_COMMANDS = re.compile(r"^<!-- generated: commands -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_NAMES = re.compile(r"^<!-- names: (.*?) -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^<!-- file: (\S+) -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)[ ]*$)", re.MULTILINE | re.DOTALL)
# Files of the repository that a page shows.
_SHOWN_BY = {
    found[1]: str(page.relative_to(ROOT))
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if (found := _FILE.search(page.read_text(encoding="utf-8")))
}
# Code in a line: code blocks have elements inside.
_CODE = re.compile(r"<code>([^<\n]+)</code>")
_PICTURE = re.compile(r'<img [^>]*src="([^"]+)"[^>]*>')
# An option of a command, which is not broken after its hyphens.
_OPTION = re.compile(r"(?<!\S)--?[a-z][\w-]{0,25}(?![\w=-])")
# The number of characters of code that does not fit into the first column of a table.
_LONG = 45
_ELSEWHERE = re.compile(r"^(?:[a-z]+:|#|/)")


def on_files(files: Files, config: Any) -> Files:
    """Notebooks are pages, under the same name."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        notebook = json.loads(Path(str(file.abs_src_path)).read_text(encoding="utf-8"))
        name = file.src_uri.removesuffix(".ipynb") + ".md"
        files.append(File.generated(config, name, content=as_markdown(notebook)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with its generated parts and files, and with links that lead to pages of the site."""
    markdown = _COMMANDS.sub(lambda _: commands(), markdown)
    markdown = _NAMES.sub(lambda found: "\n\n".join(map(_docstring, found[1].split())), markdown)
    own = PurePosixPath("docs") / page.file.src_uri
    if found := _FILE.search(markdown):
        included = ROOT / found[1]
        text = re.sub(r"\A# .*\n", "", included.read_text(encoding="utf-8"))
        markdown = _FILE.sub(lambda _: _linked(text, PurePosixPath(found[1]).parent, own.parent), markdown)
    return _linked(markdown, own.parent, own.parent)


def on_page_content(html: str, **_: Any) -> str:
    """The page with classes for options, long code and outputs, and with pictures that open in full size."""
    html = _CODE.sub(_classed, html)
    html = html.replace('<div class="language-text ', '<div class="language-text no-copy ')
    return _PICTURE.sub(lambda found: f'<a class="picture" href="{found[1]}">{found[0]}</a>', html)


def _classed(found: re.Match[str]) -> str:
    kind = ' class="long"' if len(unescape(found[1])) > _LONG else ""
    text = _OPTION.sub(r'<span class="option">\g<0></span>', found[1])
    return f"<code{kind}>{text}</code>"


def _docstring(name: str) -> str:
    """A directive of mkdocstrings; a class that users do not construct is written without parentheses."""
    if name == "logs()":
        # The function has the name of its package, which the reference would show instead.
        return '<a id="askew.logs"></a>\n\n::: askew.logs.analyze.logs'
    options = "" if name.endswith("()") else "\n    options: {merge_init_into_class: false}"
    return f"::: askew.{name.removesuffix('()')}{options}"


def _linked(markdown: str, written_in: PurePosixPath, shown_in: PurePosixPath) -> str:
    """Links of a text that was written for one folder of the repository, as a page in another one has them."""
    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(lambda found: _link(found, written_in, shown_in), part) for part in parts[::2]]
    return "".join(parts)


def _link(found: re.Match[str], written_in: PurePosixPath, shown_in: PurePosixPath) -> str:
    label, target = found[1], found[2]
    if _ELSEWHERE.match(target):
        return found[0]
    path, _, anchor = target.partition("#")
    place = normpath(str(written_in / path))
    if not (ROOT / place).exists():
        return found[0]  # MkDocs reports it as a dead link
    place = _SHOWN_BY.get(place, place)
    if not place.startswith("docs/") or (ROOT / place).is_dir():
        if label.strip("`") == place:
            return label
        return (
            f"{label}, `{place}` in the repository" if _in_brackets(found) else f"{label} (`{place}` in the repository)"
        )
    up = PurePosixPath(place).relative_to("docs")
    steps = len(shown_in.relative_to("docs").parts)
    shown = "../" * steps + str(up)
    shown = re.sub(r"\.ipynb$", ".md", shown)
    return f"[{label}]({shown}{'#' + anchor if anchor else ''})"


def _in_brackets(found: re.Match[str]) -> bool:
    """Whether a link is in a bracket of its paragraph."""
    before = _LINK.sub(r"\1", found.string[: found.start()].rpartition("\n\n")[2])
    return before.count("(") > before.count(")")
