"""GrepBiasIR: queries with a relevant and an irrelevant document, each in a male, a female and a neutral version.

Krieg and others, Grep-BiasIR, CHIIR 2023: 117 queries of seven categories, 702 rows. Five rows have another gender
label (``both``, and once ``botrh``). They are kept with the label ``both`` and counted, but are in no pair of genders.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError, place
from askew.core.fingerprint import digest_file

# In the order of the published tables.
CATEGORIES = (
    "Sex & Relationship", "Career", "Child Care", "Appearance", "Cognitive Capabilities", "Domestic Work",
    "Physical Capabilities",
)  # fmt: skip
GENDERS = ("M", "F", "N")
BOTH = "both"
_BOTH_AS_WRITTEN = ("both", "botrh")
_COLUMNS = ("q_id", "d_id", "relevant", "query", "doc_title", "document", "content_gender", "exp_stereotype")
_START = "queries-documents_"


@dataclass(frozen=True)
class GrepBias:
    """The rows as columns. ``gender`` is M, F, N or both. ``notes`` counts the irregular values that were corrected."""

    query_id: npt.NDArray[np.str_]
    doc_id: npt.NDArray[np.str_]
    category: npt.NDArray[np.str_]
    relevant: npt.NDArray[np.bool_]
    gender: npt.NDArray[np.str_]
    query: tuple[str, ...]
    title: tuple[str, ...]
    body: tuple[str, ...]
    stereotype: tuple[str, ...]
    files: tuple[dict[str, str], ...] = ()
    notes: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.query)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of the rows: published ones in the order of the published tables, then all others."""
        there = sorted(set(self.category.tolist()))
        return (*(name for name in CATEGORIES if name in there), *(name for name in there if name not in CATEGORIES))

    def texts(self, with_title: bool) -> list[str]:
        """The texts to encode: the body, or the title and the body."""
        if not with_title:
            return list(self.body)
        return [" ".join(f"{title} {body}".split()) for title, body in zip(self.title, self.body, strict=True)]


def read_grepbias(folder: Path) -> GrepBias:
    """Read all ``queries-documents_CATEGORY.csv`` files of a folder."""
    files = sorted(folder.glob(f"{_START}*.csv")) if folder.is_dir() else []
    if not files:
        raise DataError(f"{folder}: expected a folder with {_START}CATEGORY.csv files (GrepBiasIR), found none")
    rows: list[tuple[str, ...]] = []
    notes: Counter[str] = Counter()
    seen: dict[str, str] = {}
    for file in files:
        for where, row in _rows(file):
            if row[1] in seen:
                raise DataError(f"{where}: expected each d_id once, found {row[1]!r} also at {seen[row[1]]}")
            seen[row[1]] = where
            rows.append((file.stem[len(_START) :], *_checked(where, row, notes)))
    _same_query(rows, folder)
    columns = list(zip(*rows, strict=True))
    category, query_id, doc_id, relevant = (np.array(columns[i]) for i in range(4))
    listed = tuple({"file": file.name, "sha256": digest_file(file)} for file in files)
    return GrepBias(
        query_id, doc_id, category, relevant == "1", np.array(columns[7]), columns[4], columns[5], columns[6],
        columns[8], listed, dict(notes),
    )  # fmt: skip


def _rows(file: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rows of a file, each with its file and line. A field may contain line breaks."""
    try:
        text = file.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: expected a CSV file in UTF-8 ({error})") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    header = tuple(next(reader, []))
    if header != _COLUMNS:
        raise DataError(f"{place(file, 1)}: expected the columns {','.join(_COLUMNS)}, found {','.join(header)[:200]}")
    line = reader.line_num + 1
    try:
        for row in reader:
            if len(row) != len(_COLUMNS):
                raise DataError(f"{place(file, line)}: expected {len(_COLUMNS)} fields, found {len(row)}")
            yield place(file, line), tuple(row)
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{place(file, line)}: not a valid CSV row ({error})") from None


def _checked(where: str, row: tuple[str, ...], notes: Counter[str]) -> tuple[str, ...]:
    query_id, doc_id, relevant, query, title, body, gender, stereotype = (" ".join(one.split()) for one in row)
    if relevant not in ("0", "1"):
        raise DataError(f"{where}: expected relevant to be 0 or 1, found {relevant[:40]!r}")
    if gender not in GENDERS:
        if gender not in _BOTH_AS_WRITTEN:
            raise DataError(f"{where}: expected content_gender {', '.join(GENDERS)} or both, found {gender[:40]!r}")
        notes[f"gender written {gender!r}, read as {BOTH!r}"] += 1
        gender = BOTH
    if not query or not body:
        raise DataError(f"{where}: expected a query and a document, but one of them is empty")
    return query_id, doc_id, relevant, query, title, body, gender, stereotype.lower()


def _same_query(rows: list[tuple[str, ...]], folder: Path) -> None:
    """Raise an error if a query id has two queries: the id connects the versions of a document."""
    known: dict[str, tuple[str, str]] = {}
    for row in rows:
        category, query_id, _, _, query = row[:5]
        if known.setdefault(query_id, (category, query)) != (category, query):
            raise DataError(
                f"{folder}: expected one query for q_id {query_id}, found two: {known[query_id]}, {query!r}"
            )
