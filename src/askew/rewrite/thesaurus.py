"""Synonyms from a user's own file.

A line of a ``.tsv`` file has a word (or a phrase), a tab, and its synonyms separated by commas. A ``.json`` file maps
each word to a list of synonyms. The best synonym comes first.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from askew.core.errors import DataError, place
from askew.core.files import fingerprint
from askew.core.machine import home
from askew.core.plugins import Count
from askew.core.protocols import Candidates, QueryBatch
from askew.core.text import word
from askew.data.files import read_text
from askew.rewrite.lexical import first_with_other_stems, is_texts, question_rules, use_synonyms

# A reader of WordNet's database files (the format of wndb(5WN)) that needs no library.

_PARTS = ("noun", "verb", "adj", "adv")
_NEEDED = tuple(f"{kind}.{part}" for kind in ("index", "data") for part in _PARTS)
# The rules of detachment of morphy(7WN): an ending and its replacement.
_DETACHED = {
    "noun": (("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
             ("men", "man"), ("ies", "y")),
    "verb": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}  # fmt: skip


def find_wordnet(data: str | None = None) -> Path:
    """Return the folder (or NLTK's zip file) with the database: the given one, or the first that is installed."""
    for folder in _places() if data is None else [Path(data)]:
        if (folder / "index.noun").is_file() or (folder.suffix == ".zip" and folder.is_file()):
            return folder
    if data is not None:
        raise DataError(
            f"wordnet: expected a folder or zip file with the files index.noun and data.noun, but {data} lacks them"
        )
    raise DataError(
        "WordNet was not found: install it (apt install wordnet-base, or python -m nltk.downloader wordnet), "
        "or set 'data' to its folder"
    )


def _places() -> list[Path]:
    """Return the places where WordNet's own tools, NLTK and Debian install the database."""
    own = [Path(folder) for folder in (os.environ.get("WNSEARCHDIR"),) if folder]
    named = [Path(folder) for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    roots = [*filter(None, [home()]), Path(sys.prefix), Path(sys.prefix, "share"), Path(sys.prefix, "lib")]
    roots += [Path(root) for root in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")]
    nltk = [*named, *(root / "nltk_data" for root in roots)]
    packed = (folder / "corpora" / name for folder in nltk for name in ("wordnet", "wordnet.zip"))
    return [*own, *packed, Path("/usr/share/wordnet")]


class WordNetFiles:
    """Looks words up in the database. The files are read at the first lookup."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @cached_property
    def _files(self) -> dict[str, bytes]:
        file_names = [*_NEEDED, *(f"{part}.exc" for part in _PARTS)]
        try:
            if self.place.suffix == ".zip":
                with zipfile.ZipFile(self.place) as archive:
                    names = {PurePosixPath(name).name: name for name in archive.namelist()}
                    contents = {name: archive.read(names[name]) for name in file_names if name in names}
            else:
                contents = {
                    name: (self.place / name).read_bytes() for name in file_names if (self.place / name).is_file()
                }
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(f"wordnet: {self.place} cannot be read ({error})") from None
        missing = [name for name in _NEEDED if name not in contents]
        if missing:
            raise DataError(f"wordnet: {self.place} lacks the file {missing[0]}")
        return contents

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the database's content."""
        sha = sha256()
        for name in sorted(self._files):
            sha.update(sha256(self._files[name]).digest())
        return sha.hexdigest()[:16]

    def lemmas(self, word: str) -> Iterator[str]:
        """The words of every sense of a word, in the order of the database: nouns, verbs, adjectives, adverbs."""
        for part in _PARTS:
            for form in self._base_forms(word, part):
                data = self._files[f"data.{part}"]
                for offset in self._senses(form, part):
                    fields = data[offset : data.find(b"\n", offset)].decode().split(" ")
                    count = int(fields[3], 16)
                    # An adjective may have a marker of its position: afloat(p).
                    yield from (name.partition("(")[0].replace("_", " ") for name in fields[4 : 4 + 2 * count : 2])

    def _base_forms(self, word: str, part: str) -> list[str]:
        """Return the word and its base forms, as far as they are in the database."""
        listed = self._lines.get(f"{part}.exc", {}).get(word.encode())
        detached = (word[: -len(old)] + new for old, new in _DETACHED[part] if word.endswith(old) and word != old)
        others = listed.decode().split()[1:] if listed else detached
        return [form for form in dict.fromkeys([word, *others]) if self._senses(form, part)]

    def _senses(self, form: str, part: str) -> list[int]:
        """Return the offsets of a word's senses in the data file, the most frequent first."""
        fields = self._lines[f"index.{part}"].get(form.encode(), b"").split()
        return [int(field) for field in fields[-int(fields[2]) :]] if fields else []

    @cached_property
    def _lines(self) -> dict[str, dict[bytes, bytes]]:
        """The lines of the indexes and lists of exceptions, by their first fields."""
        return {
            name: {line.partition(b" ")[0]: line for line in content.split(b"\n") if line}
            for name, content in self._files.items()
            if not name.startswith("data.")
        }


# Synonyms from WordNet.


class WordNetReformulator:
    """Adds up to topn WordNet synonyms of each content word, or replaces the word by them.

    ``replace``: replace the word by its synonyms.
    ``data``: the folder of WordNet's files, if it is not where NLTK or Debian install it.
    """

    method = "wordnet"
    reads: frozenset[str] = frozenset()

    def __init__(self, topn: Count = 3, replace: bool = False, data: str | None = None) -> None:
        self._replace, self._topn, self._wordnet = replace, topn, WordNetFiles(find_wordnet(data))
        self._stop_words = question_rules().stop_words

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with WordNet identified by its content."""
        stop_words = question_rules().hash
        return {
            "topn": self._topn,
            "mode": "replace" if self._replace else "expand",
            "wordnet": self._wordnet.digest,
            "stop_words": stop_words,
        }

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """One candidate for each query with a synonym."""
        return use_synonyms(batch, self._synonyms, self._replace)

    def _synonyms(self, word: str) -> list[str]:
        if word in self._stop_words:
            return []
        return first_with_other_stems(word, self._wordnet.lemmas(word), self._topn)


Entries = dict[str, list[str]]


class ThesaurusReformulator:
    """Adds up to topn synonyms of each word from your own file, or replaces the word by them.

    ``replace``: replace the word by its synonyms.
    Phrases of the file are matched too, the longest first.
    """

    method = "thesaurus"
    reads: frozenset[str] = frozenset()

    def __init__(self, file: str, topn: Count = 3, replace: bool = False) -> None:
        self._replace, self._topn, self._entries = replace, topn, read_thesaurus(Path(file))
        self._longest = max((len(head.split()) for head in self._entries), default=1)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the file identified by its content."""
        return {
            "topn": self._topn,
            "mode": "replace" if self._replace else "expand",
            "entries": fingerprint(self._entries),
        }

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """One candidate for each query with a synonym."""
        return use_synonyms(batch, self._synonyms, self._replace, self._longest)

    def _synonyms(self, phrase: str) -> list[str]:
        return first_with_other_stems(phrase, self._entries.get(phrase, []), self._topn)


def read_thesaurus(path: Path) -> Entries:
    """Read the synonyms of each word from a file; a word that occurs twice gets the synonyms of both entries."""
    text = read_text(path, "thesaurus")
    entries: Entries = {}
    if path.suffix.lower() == ".json":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"thesaurus file {path}: not valid JSON: {error}") from None
        if not isinstance(data, dict) or not all(is_texts(synonyms) for synonyms in data.values()):
            raise DataError(f"thesaurus file {path}: expected a mapping from words to lists of synonyms")
        for head, synonyms in data.items():
            if words := word(head):
                entries.setdefault(" ".join(words), []).extend(synonyms)
        return entries
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        head, tab, rest = line.partition("\t")
        synonyms = [synonym.strip() for synonym in rest.replace("\t", ",").split(",") if synonym.strip()]
        words = word(head)
        if not tab or not words or not synonyms:
            raise DataError(f"{place(path, number)}: expected a word, a tab and its synonyms separated by commas")
        entries.setdefault(" ".join(words), []).extend(synonyms)
    return entries
