"""A lexicon says which terms name which group. It is data: versioned, sourced, licensed, hashed."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

from askew.core.errors import ConfigError, DataError, UnknownName, check_names, place
from askew.core.files import DATA, check_file, decode_block, fingerprint, parse_toml

# What a lexicon says about itself; the section [groups] of a recipe may say it about its words.
LEXICON_FACTS = ("name", "version", "language", "source", "license", "title", "note")
# Threads that read lexicons at the same time must not restore each other's limit.
_FIELD_LIMIT = threading.Lock()
_SHIPPED = DATA / "lexicons"
_GROUP_NAME = re.compile(r"\w+")
_SHORT_GROUPS = {"f": "female", "m": "male"}


@dataclass(frozen=True)
class Lexicon:
    """A word list: its groups in order, and the terms of each group. A term that ends in ``*`` matches as a prefix."""

    name: str
    groups: Mapping[str, tuple[str, ...]]
    version: str = "1"
    language: str = "und"
    source: str = "not stated"
    license: str = "not stated"
    title: str = ""
    note: str = ""
    where: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        cleaned = {}
        for group, terms in self.groups.items():
            if not _GROUP_NAME.fullmatch(group):
                expected = "expected group names of letters, digits and '_'"
                raise DataError(
                    f"lexicon {self.name!r}: {expected}, found {group!r}", code="bad-group-name", found=group
                )
            cleaned[group] = tuple(sorted({normalize("NFC", " ".join(term.split()).lower()) for term in terms} - {""}))
            if not cleaned[group]:
                raise DataError(f"lexicon {self.name!r}: the group {group!r} has no terms")
        if not cleaned:
            raise DataError(f"lexicon {self.name!r} has no groups: expected at least one group with terms")
        object.__setattr__(self, "groups", cleaned)

    @cached_property
    def hash(self) -> str:
        """A hash of the groups in their order and of their terms in alphabetical order.

        The order of the groups matters: it decides which group is subtracted from which, and to which group a shared
        term belongs.
        """
        return fingerprint([[group, list(terms)] for group, terms in self.groups.items()], length=12)

    @property
    def id(self) -> str:
        """The name and the hash, as signatures show them: ``name@hash``."""
        return f"{self.name}@{self.hash}"

    @property
    def about(self) -> dict[str, str]:
        """What the lexicon says about itself, by the names of ``LEXICON_FACTS``."""
        return {key: getattr(self, key) for key in LEXICON_FACTS}

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, in order."""
        return tuple(self.groups)

    def shared_terms(self) -> dict[str, tuple[str, ...]]:
        """Terms that name more than one group."""
        owners: dict[str, list[str]] = {}
        for group, terms in self.groups.items():
            for term in terms:
                owners.setdefault(term, []).append(group)
        return {term: tuple(names) for term, names in owners.items() if len(names) > 1}

    def exclusive(self) -> Lexicon:
        """The lexicon with each shared term in the first of its groups only (the published ARaB rule)."""
        seen: set[str] = set()
        groups: dict[str, tuple[str, ...]] = {}
        for group, terms in self.groups.items():
            groups[group] = tuple(t for t in terms if t not in seen)
            seen.update(terms)
        return Lexicon(self.name, groups, self.version, self.language, self.source, self.license)


def shipped_lexicons() -> list[str]:
    """The names of the lexicons that ship with askew."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def load_lexicon(spec: str | Path | Lexicon) -> Lexicon:
    """A lexicon by name, or from a ``.toml``, ``.csv``, ``.tsv``, ``.txt`` or LIWC ``.dic`` file."""
    if isinstance(spec, Lexicon):
        return spec
    text = str(spec)
    name = text.partition("@")[0]
    if name in shipped_lexicons():
        lexicon = _from_toml(_SHIPPED / f"{name}.toml")
        if "@" in text and text != lexicon.id:
            raise DataError(f"lexicon {text!r}: this version of askew ships {lexicon.id!r}; request it", code="version")
        return lexicon
    path = Path(text)
    if not path.suffix:
        unknown = UnknownName("lexicon", text, shipped_lexicons())
        unknown.args = (f"{unknown}. The name of a lexicon file needs an ending such as '.toml'",)
        raise unknown
    try:
        check_file(path, "lexicon file")
    except DataError as error:
        raise DataError(f"{error}; shipped lexicons: {', '.join(shipped_lexicons())}", code=error.code) from None
    readers = {".toml": _from_toml, ".dic": _from_dic, ".csv": _from_rows, ".tsv": _from_rows, ".txt": _from_rows}
    if path.suffix.lower() not in readers:
        endings = ", ".join(sorted(readers))
        raise ConfigError(f"lexicon file {text}: expected one of the endings {endings}, found {path.suffix!r}")
    return readers[path.suffix.lower()](path)


def _read_text(path: Path) -> str:
    """The file as text: UTF-8, with or without a byte-order mark; every line end becomes one line feed."""
    try:
        data = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    except OSError as error:
        raise DataError(f"lexicon file {path}: the file cannot be read ({error.strerror or error})") from None
    # The byte-order mark is removed after decoding, so that the position of a wrong byte counts it.
    return decode_block(path, 1, data).removeprefix("\ufeff")


def _from_toml(path: Path) -> Lexicon:
    try:
        data = parse_toml(_read_text(path))
    except ValueError as error:
        raise DataError(f"lexicon file {path}: not valid TOML: {error}") from None
    data = one_spelling(data)
    groups = data.pop("groups", None)
    lists = groups.values() if isinstance(groups, dict) else [None]
    if not all(isinstance(terms, list) and all(isinstance(term, str) for term in terms) for terms in lists):
        expected = "expected a table [groups] with lists of terms, such as female = ['she']"
        raise DataError(f"lexicon file {path}: {expected}", code="no-table")
    check_names("key", data, LEXICON_FACTS, str(path))
    texts = {key: str(value) for key, value in data.items()}
    return Lexicon(texts.pop("name", path.stem), groups, where=str(path), **texts)


def one_spelling(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a lexicon, with the key ``license`` also where a file spells it ``licence``."""
    return {"license" if key == "licence" else key: value for key, value in stated.items()}


def _from_rows(path: Path) -> Lexicon:
    """Read lines of ``term,group``, the format of the published lists. A header line is skipped."""
    groups: dict[str, list[str]] = {}
    first = True
    for line, row in _csv_rows(path):
        if len(row) != 2:
            message = f"{place(path, line)}: expected 2 columns (term, group), found {len(row)}"
            raise DataError(message, code="bad-width", line=line, found=len(row))
        term, group = row[0].strip(), row[1].strip()
        header, first = first and group.lower() == "group", False
        if header:
            continue
        if not term or not group:
            raise DataError(f"{place(path, line)}: expected a term and its group, found an empty column")
        groups.setdefault(_SHORT_GROUPS.get(group, group), []).append(term)
    # In the published two-group lists either group may come first. In askew female comes first.
    order = sorted(groups, key=lambda g: (g != "female", g != "male"))
    return Lexicon(path.stem, {group: tuple(groups[group]) for group in order}, where=str(path))


def _csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows that are neither blank nor a comment, each with the number of its first line."""
    text = _read_text(path)
    reader = csv.reader(io.StringIO(text), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    rows, line = [], 1
    # The csv module has one global limit for the length of a field. The previous limit is restored below.
    with _FIELD_LIMIT:
        limit = csv.field_size_limit(len(text) + 1)
        try:
            for row in reader:
                blank = not row or (len(row) == 1 and not row[0].strip())
                if not blank and not row[0].lstrip().startswith("#"):
                    rows.append((line, row))
                line = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{place(path, line)}: expected a line of the form term,group ({error})") from None
        finally:
            csv.field_size_limit(limit)
    return rows


def _from_dic(path: Path) -> Lexicon:
    """Read a LIWC dictionary: categories between two lines of ``%``, then terms with category numbers.

    If the file has the categories female and male, only these become groups. Otherwise every category with terms
    becomes a group.
    """
    lines = list(enumerate(_read_text(path).split("\n"), start=1))
    marks = [at for at, (_, line) in enumerate(lines) if line.startswith("%")]
    if len(marks) != 2:
        message = f"lexicon file {path}: expected a LIWC header between two '%' lines, found {len(marks)}"
        raise DataError(message, code="no-header", found=len(marks))
    # The names of the categories by their numbers, in the form of group names.
    names = {}
    for number, line in lines[marks[0] + 1 : marks[1]]:
        fields = line.split()
        if len(fields) == 1:
            raise DataError(f"{place(path, number)}: expected 'number name' in the header, found {line!r}")
        if fields:
            names[fields[0]] = re.sub(r"\W+", "_", fields[1]).lower()
    groups: dict[str, list[str]] = {name: [] for name in names.values()}
    for number, line in lines[marks[1] + 1 :]:
        if line.strip():
            # A term of several words is separated from the numbers by a TAB.
            term, *rest = line.strip().split("\t" if "\t" in line.strip() else None)
            categories = " ".join(rest).split()
            if not categories:
                message = f"term {term!r} has no category: expected one or more category numbers after the term"
                raise DataError(f"{place(path, number)}: {message}", code="no-category")
            for category in categories:
                if category not in names:
                    raise DataError(f"{place(path, number)}: term {term!r} has the undeclared category {category!r}")
                groups[names[category]].append(term)
    if groups.get("female") and groups.get("male"):
        groups = {group: groups[group] for group in ("female", "male")}
    filled = {group: tuple(terms) for group, terms in groups.items() if terms}
    return Lexicon(path.stem, filled, source="LIWC dictionary file", where=str(path))
