"""Lines of text and their columns. Only ASCII white space separates columns: a no-break space is part of an id."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl

from askew.core.errors import DataError, place
from askew.corpora.files import as_file

WHITE = " \t\n\r\x0b\x0c"
_WORD = re.compile(r"\S+", re.ASCII)
_SHOWN = 60
_NAMES_SHOWN = 20


def words(line: str) -> list[str]:
    """The parts of a line between ASCII white space."""
    return _WORD.findall(line)


def split_columns(line: str, widths: tuple[int, ...]) -> list[str]:
    """The columns of a line. If TABs alone give a right number of columns, blanks are part of the columns."""
    if "\t" in line:
        fields = tab_columns(line.strip(WHITE))
        if len(fields) in widths and all(fields):
            return fields
    return words(line)


def tab_columns(line: str) -> list[str]:
    """The columns of a line between TABs, without the blanks around them."""
    return [field.strip(WHITE) for field in line.split("\t")]


def numbered(blocks: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines of blocks of whole lines, each with its number. An extra blank line may follow each block."""
    for first, text in blocks:
        yield from enumerate(text.split("\n"), start=first)


def first_line(text: str) -> tuple[int, int, str] | None:
    """The first line that is not blank: its number, the position where the next line begins, and its text."""
    found = _WORD.search(text)
    if found is None:
        return None
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return text.count("\n", 0, start) + 1, end + 1, text[start:end]


def fast_columns(text: str, separator: str, width: int, first: int = 1) -> pl.DataFrame | None:
    """Parse the columns line, column_1, column_2, ... with the columnar parser; None for irregular text.

    Regular text has the same number of columns in all lines, no blank line and no empty column.
    """
    lines = text.count("\n") + (not text.endswith("\n"))
    if not text or "\n\n" in text or text.count(separator) != (width - 1) * lines:
        return None
    frame = pl.read_csv(
        as_file(text), separator=separator, has_header=False, new_columns=_names(width), quote_char=None,
        infer_schema=False, truncate_ragged_lines=True,
    )  # fmt: skip
    # The total of the separators may be right although a line is too short: then its last column is null.
    if frame.shape != (lines, width) or sum(frame.null_count().row(0)):
        return None
    return frame.with_row_index("line", offset=first).with_columns(pl.col("line").cast(pl.Int64))


def careful_columns(
    text: str, split: Callable[[str], list[str]], width: int, wrong: Callable[[int, int, str], DataError],
    first: int = 1,
) -> pl.DataFrame:  # fmt: skip
    """Parse the same columns line by line and skip blank lines. ``wrong`` makes the error for a wrong column count."""
    rows = []
    for number, line in enumerate(text.split("\n"), start=first):
        if not line.strip(WHITE):
            continue
        fields = split(line)
        if len(fields) != width:
            raise wrong(number, len(fields), line)
        rows.append((number, *fields))
    schema = {"line": pl.Int64(), **dict.fromkeys(_names(width), pl.String())}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _names(width: int) -> list[str]:
    return [f"column_{number}" for number in range(1, width + 1)]


def no_value(path: Path, line: int, name: str) -> DataError:
    """The error for a missing value."""
    return DataError(f"{place(path, line)}: the column {name} has no value; every line needs one")


def shown(value: object) -> str:
    """A value as quoted in a message, cut to a fixed length."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def listing(names: Iterable[object]) -> str:
    """Names from a file as listed in a message: on one line, printable, and limited in number and length."""
    texts = [text if text.isprintable() else repr(text)[1:-1] for text in map(str, names)]
    more = f" and {len(texts) - _NAMES_SHOWN} more" if len(texts) > _NAMES_SHOWN else ""
    return (", ".join(text[:_SHOWN] for text in texts[:_NAMES_SHOWN]) or "none") + more
