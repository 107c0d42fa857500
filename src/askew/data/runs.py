"""Read runs: TREC (any white space), MS MARCO and named-column TSV, JSON Lines, Parquet; plain or gzip-compressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.errors import ConfigError, DataError, Note, place
from askew.core.files import check_file
from askew.data.columns import id_column, json_id, json_rows, parquet_names, parquet_table
from askew.data.files import (
    WHITE,
    careful_columns,
    fast_columns,
    first_line,
    listing,
    no_value,
    shown,
    split_columns,
    suffix_of,
    tab_columns,
    text_blocks,
    words,
)

# Readers for every format of a run. Each returns the columns line, query_id, doc_id, score and rank.

_QUERY_NAMES = ("query_id", "qid", "query-id", "topic")
_DOC_NAMES = ("doc_id", "docid", "docno", "pid", "did", "corpus-id")
_ROW = {"line": pl.Int64(), "query_id": pl.String(), "doc_id": pl.String(), "value": pl.String()}
_SCORED = {
    "line": pl.Int64(), "query_id": pl.String(), "doc_id": pl.String(), "score": pl.Float64(), "rank": pl.String(),
}  # fmt: skip
_NO_RANK = pl.lit(None, pl.String).alias("rank")


class _Names(NamedTuple):
    query: str
    doc: str
    value: str
    is_rank: bool


def read_lines(blocks: Iterable[tuple[int, str]], path: Path, only_trec: bool = False) -> pl.DataFrame:
    """Read TREC's six columns, three columns, or columns named by a header. The first line decides which.

    ``blocks`` are pairs of a line number and the whole lines that start there. ``only_trec`` accepts only six columns.
    """
    remaining = iter(blocks)
    for number, text in remaining:
        if (first_of_text := first_line(text)) is None:
            continue
        line, after, first = number - 1 + first_of_text[0], first_of_text[1], first_of_text[2]
        if _is_header(first) and not only_trec:
            return _named(chain([(line + 1, text[after:])], remaining), path, first)
        return _unnamed(chain([(number, text)], remaining), path, (line, first), (6,) if only_trec else (3, 6))
    return pl.DataFrame(schema=_SCORED)


def _unnamed(
    blocks: Iterable[tuple[int, str]], path: Path, first: tuple[int, str], widths: tuple[int, ...]
) -> pl.DataFrame:
    """Read a file without a header. All lines must have as many columns (six or three) as the first line."""
    # Test for six columns first, because a TREC run may mix blanks and TABs.
    width = 6 if len(words(first[1])) == 6 else len(split_columns(first[1], (3, 6)))
    six = "the 6 columns of a TREC run (query Q0 document rank score tag)"
    hint = "; other columns need a header line with query_id, doc_id and score or rank"
    if width not in widths:
        raise _wrong_width(path, six, hint, first[0], width, first[1])
    separator = "\t" if "\t" in first[1] else " "
    expected = (six, hint) if width == 6 else ("3 columns as on the lines before", "")
    wrong = partial(_wrong_width, path, *expected)
    frames = []
    for number, text in blocks:
        odd = any(other in text for other in WHITE if other not in (separator, "\n"))
        frame = None if odd else fast_columns(text, separator, width, number)
        if frame is None:
            split = partial(split_columns, widths=(width,))
            frame = careful_columns(text, split, width, wrong, number)
        frames.append(frame if width == 3 else trec_columns(frame, path))
    whole = pl.concat(frames, rechunk=True)
    if width == 6:
        return whole
    # ``query document rank`` (MS MARCO) or ``query document score``. Whole numbers are taken as ranks.
    whole = whole.rename({"column_1": "query_id", "column_2": "doc_id", "column_3": "value"})
    is_rank = bool(whole["value"].str.contains(r"^\+?[0-9]+$").all())
    if is_rank:
        _check_ranks(whole, path)
    return _scored(whole, path, is_rank)


def trec_columns(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Rename the six TREC columns. The rank is kept because it may disagree with the score."""
    score = as_numbers(frame["column_5"], frame["line"], path, "score")
    return frame.select("line", query_id="column_1", doc_id="column_3", score=score, rank="column_4")


def as_numbers(values: pl.Series, lines: pl.Series, path: Path, name: str) -> pl.Series:
    """Convert the values to numbers. NaN is refused because it would make the order arbitrary."""
    numbers = values.cast(pl.Float64, strict=False)
    bad = (numbers.is_null() | numbers.is_nan()).arg_true()
    if len(bad):
        at = int(bad[0])
        message = f"{place(path, lines[at])}: expected a number as the {name}, found {shown(values[at])}"
        raise DataError(message, code="bad-number", line=lines[at], found=values[at])
    return numbers


def _wrong_width(path: Path, expected: str, hint: str, line: int, width: int, text: str) -> DataError:
    message = f"{place(path, line)}: expected {expected}, found {width} in {shown(text)}{hint}"
    return DataError(message, code="bad-width", line=line, found=width)


def _check_ranks(frame: pl.DataFrame, path: Path) -> None:
    """Raise an error unless every query has the ranks 1 to n or 0 to n - 1, each once: others may be scores."""
    value = pl.col("value").cast(pl.Int64, strict=False)
    spans = frame.group_by("query_id", maintain_order=True).agg(
        line=pl.col("line").first(),
        sure=(value.min() <= 1)
        & (value.max() - value.min() == pl.len() - 1)
        & (value.n_unique() == pl.len())
        & (value.null_count() == 0),
    )
    doubtful = spans.filter(~pl.col("sure").fill_null(False))
    if doubtful.height:
        query, line, _ = doubtful.row(0)
        doubt = f"the whole numbers of query {shown(query)} (from line {line}) may be ranks or scores"
        hint = "write the 6 columns of TREC, or a header line with query_id, doc_id, and rank or score"
        raise DataError(f"run {path}: {doubt}; {hint}", code="ranks-or-scores")


def _scored(frame: pl.DataFrame, path: Path, is_rank: bool) -> pl.DataFrame:
    """Convert the columns line, query_id, doc_id and value to scores. The score of a rank is the negative rank."""
    numbers = as_numbers(frame["value"], frame["line"], path, "rank" if is_rank else "score")
    score = -numbers if is_rank else numbers
    return frame.select("line", "query_id", "doc_id", score.alias("score"), _NO_RANK)


def _is_header(line: str) -> bool:
    """Whether a line is a header: it names a query and a document column and has no number.

    The number matters because a query id may be 'topic'.
    """
    names = [name.lower() for name in (tab_columns(line) if "\t" in line else words(line))]
    if any(name.replace(".", "", 1).lstrip("+-").isdigit() for name in names):
        return False
    return any(n in _QUERY_NAMES for n in names) and any(n in _DOC_NAMES for n in names)


def _find_names(columns: Iterable[str], path: Path) -> _Names:
    columns = list(columns)
    by_lower = {name.strip(WHITE).lower(): name for name in reversed(columns)}
    query = next((by_lower[n] for n in _QUERY_NAMES if n in by_lower), None)
    doc = next((by_lower[n] for n in _DOC_NAMES if n in by_lower), None)
    value = by_lower.get("score", by_lower.get("rank"))
    if query is None or doc is None or value is None:
        expected = "expected the columns query_id, doc_id and score (or rank)"
        raise DataError(f"run {path}: {expected}; found {listing(columns)}", code="missing-column", found=columns)
    return _Names(query, doc, value, "score" not in by_lower)


def _named(blocks: Iterable[tuple[int, str]], path: Path, header: str) -> pl.DataFrame:
    """Read columns under a header. TABs separate them if the header has TABs, otherwise any white space does."""
    split = tab_columns if "\t" in header else words
    columns = split(header)
    names = _find_names(columns, path)

    def column(name: str) -> pl.Expr:
        return pl.col(f"column_{columns.index(name) + 1}").str.strip_chars(WHITE)

    frames = []
    for number, text in blocks:
        frame = fast_columns(text, "\t", len(columns), number) if split is tab_columns else None
        if frame is None:
            wrong = partial(_wrong_width, path, f"the columns of the header ({shown(header)})", "")
            frame = careful_columns(text, split, len(columns), wrong, number)
        frames.append(
            frame.select("line", query_id=column(names.query), doc_id=column(names.doc), value=column(names.value))
        )
    frame = pl.concat(frames, rechunk=True)
    for name, theirs in (("query_id", names.query), ("doc_id", names.doc)):
        empty = (frame[name] == "").arg_true()
        if len(empty):
            raise no_value(path, frame["line"][int(empty[0])], theirs)
    return _scored(frame, path, names.is_rank)


def read_json(blocks: Iterable[tuple[int, str]], path: Path) -> pl.DataFrame:
    """Read JSON Lines with query_id, doc_id and score (or rank)."""
    rows = list(json_rows(blocks, path, "an object with query_id, doc_id and score (or rank)"))
    if not rows:
        return pl.DataFrame(schema=_SCORED)
    names = _find_names(dict.fromkeys(key for _, row in rows for key in row), path)
    lines = [
        (
            line,
            json_id(row.get(names.query), names.query, path, line),
            json_id(row.get(names.doc), names.doc, path, line),
            # Text, so that an error can quote it. Lone surrogates are replaced: they cannot be encoded.
            None if (value := row.get(names.value)) is None else str(value).encode("utf-8", "replace").decode("utf-8"),
        )
        for line, row in rows
    ]
    return _scored(pl.DataFrame(lines, schema=_ROW, orient="row"), path, names.is_rank)


def read_table(table: pa.Table, path: Path) -> pl.DataFrame:
    """Read a table with the columns query_id, doc_id and score (or rank), from a file or from memory."""
    names = _find_names(table.column_names, path)
    value = pl.Series(pl.from_arrow(table[names.value]))
    if not (value.dtype.is_numeric() or value.dtype in (pl.String, pl.Categorical, pl.Null)):
        raise DataError(f"run {path}: expected numbers in the column {names.value}, found {value.dtype}")
    frame = pl.DataFrame({
        "query_id": pl.Series(pl.from_arrow(id_column(table, names.query, path, "run"))),
        "doc_id": pl.Series(pl.from_arrow(id_column(table, names.doc, path, "run"))),
        "value": value.cast(pl.String) if value.dtype == pl.Categorical else value,
    })  # fmt: skip
    lines = frame.with_row_index("line", offset=1).with_columns(pl.col("line").cast(pl.Int64))
    return _scored(lines, path, names.is_rank)


FORMATS = ("auto", "trec", "tsv", "jsonl", "parquet")
_ENDINGS = {".json": "jsonl", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


@dataclass(repr=False)
class Run:
    """The lines of a run (``query_id``, ``doc_id``, ``score``, ``line``), and notes about irregularities in the file.

    By default, ``lines`` has all ranked documents of the file, and ``all_lines`` is None. This differs only if
    ``read_run`` is called with ``published=True`` and the lines of a query are in several places of the file. Then
    ``lines`` has only the last block of adjacent lines of the query, as in the published bias scripts. ``all_lines``
    has all ranked documents, because the published MRR script reads all of them.
    """

    name: str
    lines: pl.DataFrame
    notes: list[str] = field(default_factory=list)
    may_repeat: bool = False
    all_lines: pl.DataFrame | None = None

    @classmethod
    def read(cls, path: str | Path, form: str = defaults.RUN_FORMAT, name: str | None = None) -> Run:
        """Read a run from a TREC, TSV, JSON Lines or Parquet file, plain or gzip-compressed.

        Without ``name``, the name of the run is that of its file.
        """
        return read_run(Path(path), form, name=name)

    @classmethod
    def of(cls, data: object, name: str = "run") -> Run:
        """Make a run from ``{query: {document: score}}``, a data frame of any library or an Arrow table."""
        from askew.data.memory import run_in_memory

        return run_in_memory(data, name)

    def noted(self, notes: Sequence[str]) -> Run:
        """A copy of the run with more notes."""
        return replace(self, notes=[*self.notes, *notes])

    @property
    def query_ids(self) -> list[str]:
        """The ids of the queries in the run, in the order of their first lines."""
        return self.lines["query_id"].unique(maintain_order=True).to_list()

    def to_polars(self) -> pl.DataFrame:
        """The columns query_id, doc_id and score."""
        return self.lines.select("query_id", "doc_id", pl.col("score").cast(pl.Float64))

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self.query_ids):,} queries, {self.lines.height:,} lines)"


def read_run(
    path: Path, form: str = defaults.RUN_FORMAT, published: bool = False, name: str | None = None,
    data: bytes | None = None,
) -> Run:  # fmt: skip
    """Read a run. ``published`` follows the published bias scripts: see ``docs/measures.md``.

    ``data`` are the lines of a run that was sent; then ``path`` is only its name in messages.
    """
    if data is None:
        check_file(path, "run")
    name = name or path.name
    if form not in FORMATS:
        raise ConfigError(f"run format {form!r}: expected one of {', '.join(FORMATS)}", code="unknown-format")
    if data is not None:
        form = "lines"
    elif form == "auto":
        form = _ENDINGS.get(suffix_of(path), "lines")
    if form == "parquet":
        names = _find_names(parquet_names(path, "run"), path)
        run = Run(name, read_table(parquet_table(path, "run", list(names[:3])), path))
    else:
        blocks = text_blocks(path, "run", data=data)
        if published:
            run = _read_published(blocks, path, name)
        else:
            lines = read_json(blocks, path) if form == "jsonl" else read_lines(blocks, path, form == "trec")
            run = Run(name, lines)
    if run.lines.height == 0:
        raise _empty(path)
    if not published:
        _check_repeats(run.lines, path)
    return run


def run_of(table: pa.Table, path: Path) -> Run:
    """Check a run that is a table in memory as that of a file is checked. Error messages name ``path``."""
    lines = read_table(table, path)
    _check_repeats(lines, path)
    return Run(path.name, lines)


def _empty(path: Path) -> DataError:
    expected = "expected lines 'query Q0 document rank score tag'"
    return DataError(f"run {path}: the file has no ranked documents; {expected}", code="empty")


def _read_published(blocks: Iterable[tuple[int, str]], path: Path, name: str) -> Run:
    """Read a run as the published scripts do, and add notes on the lines that these scripts leave out silently.

    Lines without six columns are ignored. For bias measures, only the last block of lines of each query counts.
    """
    schema = {"line": pl.Int64(), **{f"column_{n}": pl.String() for n in (1, 3, 4, 5)}}
    frames, ignored = [pl.DataFrame(schema=schema)], 0
    for first, text in blocks:
        block: list[tuple[int | str, ...]] = []
        for number, line in enumerate(text.split("\n"), start=first):
            fields = line.strip().split(" ")
            fields = fields if len(fields) == 6 else line.strip().split("\t")
            if len(fields) == 6:
                block.append((number, fields[0], *fields[2:5]))
            else:
                ignored += bool(line.strip())
        frames.append(pl.DataFrame(block, schema=schema, orient="row"))
    rows = pl.concat(frames)
    if not rows.height and not ignored:
        raise _empty(path)
    if not rows.height:
        why = f"none of its {ignored} lines has 6 columns separated by single blanks or TABs, as the preset requires"
        raise DataError(f"run {path}: {why}; write it in TREC format, or measure it without a preset", code="bad-width")
    # The last block of consecutive lines of each query.
    numbers = rows.with_columns(block=pl.col("column_1").rle_id())
    last_blocks = numbers.filter(pl.col("block") == pl.col("block").max().over("column_1")).drop("block")
    run = Run(name, trec_columns(last_blocks, path), may_repeat=True)
    if ignored:
        message = f"{name}: {ignored} lines do not have 6 columns; left out as the published scripts do"
        run.notes.append(Note(message, code="bad-width", lines=ignored))
    if last_blocks.height < rows.height:
        run.all_lines = trec_columns(rows, path)
        again = rows.height - last_blocks.height
        message = (
            f"{name}: {again} lines are of queries that occur again later in the file; as in the published scripts, "
            "bias measures leave these lines out, and effectiveness measures count them"
        )
        run.notes.append(Note(message, code="returning-queries", lines=again))
    return run


def _check_repeats(lines: pl.DataFrame, path: Path) -> None:
    repeated = lines.select("query_id", "doc_id").is_duplicated()
    if repeated.any():
        row = lines.filter(repeated).row(0, named=True)
        same = lines.filter((pl.col("query_id") == row["query_id"]) & (pl.col("doc_id") == row["doc_id"]))
        places = " and ".join(str(n) for n in same["line"].to_list()[:3])
        twice = f"document {row['doc_id']!r} is ranked more than once for query {row['query_id']!r} (lines {places})"
        raise DataError(f"run {path}: {twice}; remove the repeated lines", code="repeated-document")
