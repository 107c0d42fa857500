"""A reader of WordNet's database files (the format of wndb(5WN)) that needs no library.

NLTK's own reader needs a file that Debian's package lacks (lexnames) and refuses folders outside its data path.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath

from askew.core.errors import DataError
from askew.core.machine import home

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
    if data is not None:
        if not _holds_wordnet(Path(data)):
            raise DataError(
                f"wordnet: expected a folder or zip file with the files index.noun and data.noun, but {data} lacks them"
            )
        return Path(data)
    for place in _places():
        if _holds_wordnet(place):
            return place
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
    return [
        *own,
        *(folder / "corpora" / name for folder in nltk for name in ("wordnet", "wordnet.zip")),
        Path("/usr/share/wordnet"),
    ]


def _holds_wordnet(place: Path) -> bool:
    return (place / "index.noun").is_file() or (place.suffix == ".zip" and place.is_file())


class WordNetFiles:
    """Looks words up in the database. The files are read at the first lookup."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @cached_property
    def _files(self) -> dict[str, bytes]:
        wanted = [*_NEEDED, *(f"{part}.exc" for part in _PARTS)]
        found = _from_zip(self.place, wanted) if self.place.suffix == ".zip" else _from_folder(self.place, wanted)
        missing = [name for name in _NEEDED if name not in found]
        if missing:
            raise DataError(f"wordnet: {self.place} lacks the file {missing[0]}")
        return found

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
                for offset in self._senses(form, part):
                    yield from self._words_at(offset, part)

    def _base_forms(self, word: str, part: str) -> list[str]:
        """Return the word and its base forms, as far as they are in the database."""
        line = _line_of(self._files.get(f"{part}.exc", b""), word.encode())
        others = line.decode().split()[1:] if line else _detached(word, part)
        return [form for form in dict.fromkeys([word, *others]) if self._senses(form, part)]

    def _senses(self, form: str, part: str) -> list[int]:
        """Return the offsets of a word's senses in the data file, the most frequent first."""
        line = _line_of(self._files[f"index.{part}"], form.encode())
        if line is None:
            return []
        fields = line.split()
        return [int(field) for field in fields[-int(fields[2]) :]]

    def _words_at(self, offset: int, part: str) -> list[str]:
        data = self._files[f"data.{part}"]
        fields = data[offset : data.find(b"\n", offset)].decode().split(" ")
        count = int(fields[3], 16)
        # An adjective may have a marker of its position: afloat(p).
        return [name.partition("(")[0].replace("_", " ") for name in fields[4 : 4 + 2 * count : 2]]


def _from_folder(folder: Path, wanted: list[str]) -> dict[str, bytes]:
    try:
        return {name: (folder / name).read_bytes() for name in wanted if (folder / name).is_file()}
    except OSError as error:
        raise DataError(f"wordnet: {folder} cannot be read ({error.strerror or error})") from None


def _from_zip(path: Path, wanted: list[str]) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = {PurePosixPath(name).name: name for name in archive.namelist()}
            return {name: archive.read(names[name]) for name in wanted if name in names}
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"wordnet: {path} cannot be read as a zip file ({error})") from None


def _detached(word: str, part: str) -> list[str]:
    return [word[: -len(old)] + new for old, new in _DETACHED[part] if word.endswith(old) and word != old]


def _line_of(data: bytes, key: bytes) -> bytes | None:
    """Find the line of a sorted file that has the key as its first field, by binary search."""
    low, high = 0, len(data)
    while low < high:
        start = data.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end]
        first = line.partition(b" ")[0]
        if first == key:
            return line
        if first < key:
            low = end + 1
        else:
            high = start
    return None
