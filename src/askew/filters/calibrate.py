"""Labeled pairs of an original and a candidate, for the choice of a filter's threshold.

``askew.statistics.curves.calibrate`` evaluates the scores::

    labeled = read_labeled("variations.csv")
    scores = SemanticFilter().score_pairs(labeled.originals, labeled.candidates)
    found = calibrate(scores, labeled.labels, labeled.queries, rule="f1")
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, place
from askew.filters.words import tokens

# Known names of columns; the first one that a file has is used.
QUERY_NAMES = ("original_query", "original", "query", "original_text", "text")
CANDIDATE_NAMES = ("variation", "variant", "candidate", "reformulation", "paraphrase", "rewrite")
LABEL_NAMES = ("valid", "label", "keeps_meaning", "keeps_the_meaning", "same_meaning")
ID_NAMES = ("q_id", "query_id", "qid", "id")
_YES = frozenset({"1", "true", "yes", "y", "t", "1.0"})
_NO = frozenset({"0", "false", "no", "n", "f", "0.0"})
SAME = "same as the original"
NOT_ASKED = "the value of the pair in a column is not among the values that only= lists"


@dataclass(frozen=True)
class LabeledPairs:
    """Pairs with labels: 1 if the candidate keeps the meaning, else 0. ``queries`` has the query of each pair.

    ``left_out`` counts the excluded pairs by reason.
    """

    originals: tuple[str, ...]
    candidates: tuple[str, ...]
    labels: npt.NDArray[np.int8]
    queries: tuple[str, ...]
    left_out: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.originals)


def label_pairs(
    originals: Sequence[str], candidates: Sequence[str], labels: Sequence[int], queries: Sequence[str] | None = None,
) -> LabeledPairs:  # fmt: skip
    """Check pairs and labels and combine them; without ``queries``, each distinct original is a query.

    Candidates that only repeat the original are left out: they keep the meaning, but annotators label them as wrong
    because nothing was changed, and every similarity gives them its highest score.
    """
    named = originals if queries is None else queries
    if not len(originals) == len(candidates) == len(labels) == len(named):
        sizes = f"{len(originals)}, {len(candidates)}, {len(labels)} and {len(named)}"
        raise DataError(
            "labeled pairs: expected 'originals', 'candidates', 'labels' and 'queries' to have the same length, found "
            f"the lengths {sizes}"
        )
    wrong = next((label for label in labels if label not in (0, 1)), None)
    if wrong is not None:
        raise DataError(f"expected the label 0 or 1, found {wrong!r}")
    taken = [i for i in range(len(originals)) if tokens(originals[i]) != tokens(candidates[i])]
    left_out = Counter({SAME: len(originals) - len(taken)}) if len(taken) < len(originals) else Counter[str]()
    return LabeledPairs(
        tuple(originals[i] for i in taken), tuple(candidates[i] for i in taken),
        np.array([labels[i] for i in taken], np.int8), tuple(named[i] for i in taken), left_out,
    )  # fmt: skip


def read_labeled(
    path: Path | str, query: str | None = None, candidate: str | None = None, label: str | None = None,
    only: Mapping[str, Collection[str]] | None = None,
) -> LabeledPairs:  # fmt: skip
    """Read labeled pairs from a CSV or TSV file with a header line; columns have known names or are named here.

    ``only`` maps columns to the values to keep, such as ``{"transformation_type": ["paraphrase"]}``.
    """
    file = Path(path)
    rows = _rows(file)
    try:
        _, header = next(rows)
    except StopIteration:
        raise DataError(f"labeled pairs {file}: the file is empty; expected a header line and labeled pairs") from None
    header = [name.strip() for name in header]
    at_query = _column(header, query, QUERY_NAMES, "the original query", file)
    at_candidate = _column(header, candidate, CANDIDATE_NAMES, "the candidate", file)
    at_label = _column(header, label, LABEL_NAMES, "the label", file)
    at_id = next((header.index(name) for name in ID_NAMES if name in header), at_query)
    tests = {_column(header, name, (), name, file): frozenset(values) for name, values in (only or {}).items()}
    found, others = [], 0
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"{place(file, line)}: expected {len(header)} columns as in the header, found {len(row)}")
        said = _label(row[at_label], file, line)
        if all(row[at] in values for at, values in tests.items()):
            found.append((row[at_query], row[at_candidate], said, row[at_id]))
        else:
            others += 1
    if not found:
        raise DataError(f"labeled pairs {file}: expected pairs after the header line, found none")
    labeled = label_pairs(*zip(*found, strict=True))
    labeled.left_out.update({NOT_ASKED: others} if others else {})
    return labeled


def _column(header: list[str], asked: str | None, known: Sequence[str], what: str, file: Path) -> int:
    wanted = known if asked is None else (asked,)
    for name in wanted:
        if name in header:
            return header.index(name)
    told = f"a column {asked!r}" if asked is not None else f"a column for {what} (one of {', '.join(known)})"
    raise ConfigError(f"labeled pairs {file}: expected {told}, found the columns {', '.join(header)}")


def _label(text: str, file: Path, line: int) -> int:
    said = text.strip().lower()
    if said not in _YES and said not in _NO:
        raise DataError(f"{place(file, line)}: expected a label such as true, false, 1 or 0, found {text!r}")
    return int(said in _YES)


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of its first line."""
    text = _read(file)
    separator = "\t" if file.suffix.lower() == ".tsv" else ","
    reader, line = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True), 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{place(file, line)}: not a line of a CSV file ({error})") from None


def _read(file: Path) -> str:
    if file.suffix.lower() not in (".csv", ".tsv"):
        raise ConfigError(f"labeled pairs {file}: expected a .csv or .tsv file, found {file.suffix or 'no ending'!r}")
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"labeled pairs {file}: the file cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        found = f"the byte 0x{error.object[error.start]:02x}"
        raise DataError(
            f"labeled pairs {file}: expected UTF-8 text, found {found}; "
            "convert the file first, for instance with iconv -f latin1 -t utf-8"
        ) from None
