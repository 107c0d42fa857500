"""Synonyms from a user's own file.

A line of a ``.tsv`` file has a word (or a phrase), a tab, and its synonyms separated by commas. A ``.json`` file maps
each word to a list of synonyms. The best synonym comes first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from askew.core.errors import DataError, place
from askew.core.fingerprint import fingerprint
from askew.core.text import word
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.lexical import first_with_other_stems, is_texts, read_text, synonym_mode, use_synonyms

Entries = dict[str, list[str]]


class ThesaurusReformulator:
    """Adds up to topn synonyms of each word from your own file, or replaces the word by them.

    ``replace``: replace the word by its synonyms. ``each``: one candidate for each synonym, which replaces its word.
    Phrases of the file are matched too, the longest first.
    """

    method = "thesaurus"
    reads: frozenset[str] = frozenset()

    def __init__(self, file: str, topn: int = 3, replace: bool = False, each: bool = False) -> None:
        self._mode = synonym_mode(self.method, topn, replace, each)
        self._topn, self._entries = topn, read_thesaurus(Path(file))
        self._longest = max((len(head.split()) for head in self._entries), default=1)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the file identified by its content."""
        return {"topn": self._topn, "mode": self._mode, "entries": fingerprint(self._entries)}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """One candidate for each query with a synonym (with ``each``: one for each synonym)."""
        return use_synonyms(asked, self._synonyms, self._mode, self._longest)

    def _synonyms(self, phrase: str) -> list[str]:
        return first_with_other_stems(phrase, self._entries.get(phrase, []), self._topn)


def read_thesaurus(path: Path) -> Entries:
    """Read the synonyms of each word from a file; a word that occurs twice gets the synonyms of both entries."""
    text = read_text(path, "thesaurus")
    rows = _json_rows(path, text) if path.suffix.lower() == ".json" else _tsv_rows(path, text)
    entries: Entries = {}
    for head, synonyms in rows:
        entries.setdefault(" ".join(word(head)), []).extend(synonyms)
    return entries


def _tsv_rows(path: Path, text: str) -> list[tuple[str, list[str]]]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        head, tab, rest = line.partition("\t")
        synonyms = [one.strip() for one in rest.replace("\t", ",").split(",") if one.strip()]
        if not tab or not word(head) or not synonyms:
            raise DataError(f"{place(path, number)}: expected a word, a tab and its synonyms separated by commas")
        rows.append((head, synonyms))
    return rows


def _json_rows(path: Path, text: str) -> list[tuple[str, list[str]]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"thesaurus file {path}: not valid JSON: {error}") from None
    if not isinstance(data, dict) or not all(is_texts(synonyms) for synonyms in data.values()):
        raise DataError(f"thesaurus file {path}: expected a mapping from words to lists of synonyms")
    return [(head, synonyms) for head, synonyms in data.items() if word(head)]
