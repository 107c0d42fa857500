"""A lexicon says which terms name which group. It is data: versioned, sourced, licensed, hashed."""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError, UnknownName, place
from askew.core.fingerprint import fingerprint

_SHIPPED = Path(__file__).parent.parent / "data" / "lexicons"
_GROUP_NAME = re.compile(r"\w+")
_SHORT_GROUPS = {"f": "female", "m": "male"}


@dataclass(frozen=True)
class Lexicon:
    """Terms of each group, in the order of the groups. A term ending in ``*`` matches as a prefix."""

    name: str
    groups: Mapping[str, tuple[str, ...]]
    version: str = "1"
    language: str = "und"
    source: str = "not stated"
    licence: str = "not stated"
    title: str = ""
    note: str = ""
    where: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        cleaned = {}
        for group, terms in self.groups.items():
            if not _GROUP_NAME.fullmatch(group):
                raise DataError(f"lexicon {self.name!r}: a group is named by letters, digits and '_', found {group!r}")
            cleaned[group] = tuple(sorted({t for t in (_clean(term) for term in terms) if t}))
            if not cleaned[group]:
                raise DataError(f"lexicon {self.name!r}: the group {group!r} has no terms")
        if not cleaned:
            raise DataError(f"lexicon {self.name!r} has no groups: expected at least one with its terms")
        object.__setattr__(self, "groups", cleaned)

    @cached_property
    def hash(self) -> str:
        """Names the content: the terms of each group, whatever their order in the file."""
        return fingerprint({group: list(terms) for group, terms in self.groups.items()}, length=12)

    @property
    def id(self) -> str:
        """Name and content in one text, as signatures show it."""
        return f"{self.name}@{self.hash}"

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
        """A term of several groups is kept for the first of them only (the published ARaB rule)."""
        seen: set[str] = set()
        groups: dict[str, tuple[str, ...]] = {}
        for group, terms in self.groups.items():
            groups[group] = tuple(t for t in terms if t not in seen)
            seen.update(terms)
        return Lexicon(self.name, groups, self.version, self.language, self.source, self.licence)


def _clean(term: str) -> str:
    return " ".join(term.split()).lower()


def shipped_lexicons() -> list[str]:
    """The names of the lexicons that come with askew."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def load_lexicon(spec: str | Path | Lexicon) -> Lexicon:
    """A lexicon by name, or from a ``.toml``, ``.csv``, ``.tsv``, ``.txt`` or LIWC ``.dic`` file."""
    if isinstance(spec, Lexicon):
        return spec
    text = str(spec)
    name = text.partition("@")[0]
    if (_SHIPPED / f"{name}.toml").is_file() and _GROUP_NAME.fullmatch(name):
        lexicon = _from_toml(_SHIPPED / f"{name}.toml")
        if "@" in text and text != lexicon.id:
            raise DataError(f"lexicon {text!r} was asked for, but this askew ships {lexicon.id!r}")
        return lexicon
    path = Path(text)
    if not path.suffix:
        raise UnknownName("lexicon", text, shipped_lexicons(), "the shipped lexicons (a file needs its ending)")
    if not path.is_file():
        raise DataError(f"lexicon file {text}: not found; shipped lexicons: {', '.join(shipped_lexicons())}")
    readers = {".toml": _from_toml, ".dic": _from_dic, ".csv": _from_rows, ".tsv": _from_rows, ".txt": _from_rows}
    if path.suffix.lower() not in readers:
        raise ConfigError(f"lexicon file {text}: expected one of {', '.join(sorted(readers))}, found {path.suffix!r}")
    return readers[path.suffix.lower()](path)


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DataError(f"lexicon file {path}: expected UTF-8, found byte {error.start} that is not") from None


def _from_toml(path: Path) -> Lexicon:
    try:
        data: dict[str, Any] = tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"lexicon file {path}: not valid TOML: {error}") from None
    groups = data.pop("groups", None)
    if not isinstance(groups, dict) or not all(_is_terms(terms) for terms in groups.values()):
        raise DataError(f"lexicon file {path}: expected a table [groups] with lists of terms, such as female = ['she']")
    known = {"name", "version", "language", "source", "licence", "title", "note"}
    for key in data:
        if key not in known:
            raise UnknownName("key", key, known, str(path))
    texts = {key: str(value) for key, value in data.items()}
    return Lexicon(texts.pop("name", path.stem), groups, where=str(path), **texts)


def _is_terms(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(term, str) for term in value)


def _from_rows(path: Path) -> Lexicon:
    """Lines of ``term,group`` as the published lists have them; a header line is recognised."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    groups: dict[str, list[str]] = {}
    for line, row in enumerate(csv.reader(io.StringIO(_read_text(path)), delimiter=delimiter), start=1):
        if not row or row[0].lstrip().startswith("#"):
            continue
        if len(row) != 2:
            raise DataError(f"{place(path, line)}: expected 2 columns (term, group), found {len(row)}")
        term, group = row[0].strip(), row[1].strip()
        if line == 1 and group.lower() == "group":
            continue
        if not term or not group:
            raise DataError(f"{place(path, line)}: expected a term and its group, found an empty column")
        groups.setdefault(_SHORT_GROUPS.get(group, group), []).append(term)
    # The published two-group lists come with either side first; female first is askew's order.
    order = sorted(groups, key=lambda g: (g != "female", g != "male"))
    return Lexicon(path.stem, {group: tuple(groups[group]) for group in order}, where=str(path))


def _from_dic(path: Path, only: Iterable[str] = ("female", "male")) -> Lexicon:
    """A LIWC dictionary: categories between two lines of ``%``, then terms with category numbers.

    Of the many categories of a LIWC file the ones named female and male are taken; a ``.dic`` file
    without both is taken whole, each category being a group.
    """
    parts = re.split(r"^%[^\n]*$", _read_text(path), flags=re.MULTILINE)
    if len(parts) != 3:
        raise DataError(f"lexicon file {path}: expected a LIWC header between two lines of '%', found {len(parts) - 1}")
    names = {}
    for line in parts[1].strip().splitlines():
        fields = line.split()
        if len(fields) < 2:
            raise DataError(f"lexicon file {path}: expected 'number name' in the header, found {line!r}")
        names[fields[0]] = re.sub(r"\W+", "_", fields[1]).lower()
    groups: dict[str, list[str]] = {name: [] for name in names.values()}
    for line in parts[2].strip().splitlines():
        term, categories = _dic_entry(line)
        for category in categories:
            if category not in names:
                raise DataError(f"lexicon file {path}: term {term!r} has the undeclared category {category!r}")
            groups[names[category]].append(term)
    wanted = [group for group in only if groups.get(group)]
    if len(wanted) == 2:
        groups = {group: groups[group] for group in wanted}
    filled = {group: tuple(terms) for group, terms in groups.items() if terms}
    return Lexicon(path.stem, filled, source="LIWC dictionary file", where=str(path))


def _dic_entry(line: str) -> tuple[str, list[str]]:
    """``term<TAB>1<TAB>2``; terms of several words are separated from the numbers by a TAB."""
    if "\t" in line:
        term, *rest = line.split("\t")
        return term, " ".join(rest).split()
    fields = line.split()
    return fields[0], fields[1:]
