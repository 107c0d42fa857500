"""The page: a header, sections with tables and figures, a footer. It is one file without scripts or external files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import ConfigError, MissingExtra
from askew.core.files import digest_file, write_whole
from askew.core.folders import checksum_text, read_checksums
from askew.report.charts import About
from askew.report.markup import Markup, join, shown, tag
from askew.report.table import Table, html_table, latex_table

# Write the files of a report into a folder that may have other files, which are never overwritten.

# The list of written files with their digests, by which a later report recognizes them.
LIST = "report.sha256"
_OURS = re.compile(r"report\.html|audit\.json|(figures|tables)/[a-z0-9-]+\.(svg|png|csv|parquet|tex)")


def check_out(out: Path) -> None:
    """Raise before any work if the report cannot be written to the folder, as far as that is known by then."""
    digests = _known(out)
    page = out / "report.html"
    if (page.is_symlink() or page.exists()) and not digests:
        raise _in_the_way(page)
    for name in ("figures", "tables"):
        _refuse_no_folder(out / name)


def write_report(out: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, given by their names in the folder. Files of an earlier report are replaced or removed.

    If a file with one of the names exists that is not from an earlier report, or was changed since, an error is raised
    before anything is written.
    """
    strange = [name for name in files if not _OURS.fullmatch(name)]
    if strange:
        raise ValueError(f"a report of askew must not have a file with the name {strange[0]!r}")
    old_digests, digests = _known(out), {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    for name in files:
        path = out / name
        _refuse_no_folder(path.parent)
        if path.is_symlink() or path.exists():
            digest = _digest_of(path)
            if digest is None or digest not in (old_digests.get(name), digests[name]):
                raise _in_the_way(path)
    for name, data in files.items():
        write_whole(out / name, data)
    for name in old_digests.keys() - files.keys():
        if _digest_of(out / name) == old_digests[name]:
            (out / name).unlink()
    write_whole(out / LIST, checksum_text(digests).encode())
    return [out / name for name in files]


def check_report(folder: Path) -> tuple[int, list[str]]:
    """The number of files of a report, and a message for each of them that is missing or has other bytes."""
    digests = _known(folder)
    actual = {name: _digest_of(folder / name) for name in digests}
    wrong = [
        f"{name}: {'missing' if actual[name] is None else 'it has other bytes than when it was written'}"
        for name in digests
        if actual[name] != digests[name]
    ]
    return len(digests), wrong


def _known(out: Path) -> dict[str, str]:
    _refuse_no_folder(out)
    path = out / LIST
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ConfigError(f"{path}: expected the list of an earlier report, found something else; give another folder")
    if not path.exists():
        return {}
    digests, wrong = read_checksums(path.read_bytes().decode("utf-8", "replace"))
    if wrong:
        raise ConfigError(f"{path}: not the list of an earlier report ({wrong[0]}); give another folder")
    return {name: digest for name, digest in digests.items() if _OURS.fullmatch(name)}


def _in_the_way(path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: the file exists and is not an unchanged file of an earlier report; move it or give another folder",
        code="in-the-way",
    )


def _refuse_no_folder(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ConfigError(f"{path}: expected a folder or a new name, found something else; give another one")


def _digest_of(path: Path) -> str | None:
    return None if path.is_symlink() or not path.is_file() else digest_file(path)


# Write charts as separate SVG or PNG files.

FORMATS = ("svg", "png")
# Pixels per unit of a picture: sharp in print at the width of a column.
_SCALE = 3


def check_formats(formats: Sequence[str]) -> None:
    """Raise before any work if a format is unknown, or if PNG is requested and its extra is not installed."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ConfigError(f"figures: expected some of {', '.join(FORMATS)}, found {unknown[0]!r}")
    if "png" in formats:
        _converter()


def picture_file(svg: str, kind: str) -> bytes:
    """A chart as the bytes of an SVG or a PNG file."""
    if kind == "svg":
        return ('<?xml version="1.0" encoding="UTF-8"?>\n' + svg + "\n").encode()
    return bytes(_converter().svg_to_png(svg, scale=_SCALE))


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("PNG", "figures") from None
    return vl_convert


# The style sheet of a page, for light and dark color schemes, narrow screens and print.
CSS = Path(__file__).with_name("page.css").read_text(encoding="utf-8")

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
    links = (tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections)
    return tag("nav", tag("ul", *links), aria_label="Contents")


def drawn_section(part: Section) -> Markup:
    """A section with its heading."""
    title = tag("h2", part.title, id=f"{part.name}-title")
    if not part.folded:
        return tag("section", title, *part.body, id=part.name, aria_labelledby=f"{part.name}-title")
    # The id is inside the folded element, so that a browser which follows a link to it opens the element.
    inner = tag("div", *part.body, id=part.name)
    return tag(
        "section", tag("details", tag("summary", title), inner, class_="folded"), aria_labelledby=f"{part.name}-title"
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


# The tables and charts of a report, which are shown on its page and can be written as files too.

_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass
class PageParts:
    """Tables with their data, and charts, each under its own name, in the order they were made."""

    tables: dict[str, tuple[Table, pl.DataFrame | None]] = field(default_factory=dict)
    charts: dict[str, Markup] = field(default_factory=dict)

    def table(self, shown_table: Table, data: pl.DataFrame | None = None) -> Markup:
        """Keep a table and return it as HTML. Only a table with data is written as a file."""
        self._once(shown_table.name, self.tables)
        self.tables[shown_table.name] = shown_table, data
        return html_table(shown_table)

    def chart(self, about: About, drawn: Markup, *words: object) -> Markup:
        """Keep a chart and return it as a figure; the caption begins with the title."""
        self._once(about.name, self.charts)
        self.charts[about.name] = drawn
        return figure(drawn, about.title, *words)

    def _once(self, name: str, taken: Mapping[str, object]) -> None:
        if name in taken:
            raise ValueError(f"the report has two tables or two charts with the name {name!r}")

    def files(self, formats: tuple[str, ...] = (), latex: bool = False) -> dict[str, bytes]:
        """The files of the tables and charts by name."""
        contents_by_name: dict[str, bytes] = {}
        for name, (shown_table, data) in self.tables.items():
            if data is not None:
                contents_by_name[f"tables/{name}.csv"] = data.write_csv().encode()
                if latex:
                    contents_by_name[f"tables/{name}.tex"] = latex_table(shown_table).encode()
        for name, drawn in self.charts.items():
            contents_by_name |= {f"figures/{name}.{kind}": picture_file(drawn, kind) for kind in formats}
        return contents_by_name


def slug(text: str, taken: Mapping[str, object] | None = None, before: str = "x") -> str:
    """Convert a text to a name of lowercase letters, digits and hyphens; a number is added if the name is taken."""
    name = f"{before}-{_OTHER.sub('-', text.lower()).strip('-')}".strip("-")
    unique, number = name, 2
    while taken is not None and unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique


def labels_note(labels: Iterable[str], elsewhere: str = "") -> str:
    """Explain the signs in labels of measures; ``elsewhere`` is the ranker of the selection, if it is another one."""
    all_labels = "".join(labels)
    sentences = ["↑ ↓: the better direction."]
    if "|" in all_labels:
        sentences.append("|M|: the absolute value of M.")
    if "*" in all_labels:
        why = f" under {elsewhere}" if elsewhere else ", so its in-sample values improve by construction"
        sentences.append(f"*: pairs were chosen by this measure, or by one with the same values{why}.")
    return " ".join(sentences)
