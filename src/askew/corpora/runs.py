"""Read runs: TREC (any white space), MS MARCO and named-column TSV, JSON Lines, Parquet; plain or gzip-compressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.errors import ConfigError, DataError
from askew.corpora.files import check_file, suffix_of, text_blocks
from askew.corpora.run_forms import read_json, read_lines, read_parquet, read_table, trec_columns

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
        found = read_run(Path(path), form)
        return found if name is None else replace(found, name=name)

    @classmethod
    def of(cls, data: object, name: str = "run") -> Run:
        """Make a run from ``{query: {document: score}}``, a data frame of any library or an Arrow table."""
        from askew.corpora.memory import run_in_memory

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


def read_run(path: Path, form: str = defaults.RUN_FORMAT, published: bool = False) -> Run:
    """Read a run. ``published`` follows the published bias scripts: see ``docs/measures.md``."""
    check_file(path, "run")
    form = _form(path, form)
    if form == "parquet":
        run = Run(path.name, read_parquet(path))
    else:
        blocks = text_blocks(path, "run")
        if published:
            run = _read_published(blocks, path)
        else:
            lines = read_json(blocks, path) if form == "jsonl" else read_lines(blocks, path, form == "trec")
            run = Run(path.name, lines)
    if run.lines.height == 0:
        raise _empty(path)
    if not published:
        _check_repeats(run.lines, path)
    return run


def _form(path: Path, form: str) -> str:
    if form not in FORMATS:
        raise ConfigError(f"run format {form!r}: expected one of {', '.join(FORMATS)}")
    if form != "auto":
        return form
    return _ENDINGS.get(suffix_of(path), "lines")


def run_of(table: pa.Table, path: Path) -> Run:
    """Check a run that is a table in memory as that of a file is checked. Error messages name ``path``."""
    lines = read_table(table, path)
    _check_repeats(lines, path)
    return Run(path.name, lines)


def _empty(path: Path) -> DataError:
    return DataError(
        f"run {path}: the file has no ranked documents; expected lines of the form 'query Q0 document rank score tag'"
    )


def _read_published(blocks: Iterable[tuple[int, str]], path: Path) -> Run:
    """Read a run as the published scripts do, and add notes on the lines that these scripts leave out silently.

    Lines without six columns are ignored. For bias measures, only the last block of lines of each query counts.
    """
    rows, ignored = _published_rows(blocks)
    if not rows.height and not ignored:
        raise _empty(path)
    if not rows.height:
        raise DataError(
            f"run {path}: none of its {ignored} lines has 6 columns separated by single blanks or single TABs. "
            "The published scripts ignore lines that do not have 6 such columns, and so do the presets that reproduce "
            "these scripts. Write the run in TREC format, or measure it without a preset"
        )
    kept = _last_blocks(rows)
    run = Run(path.name, trec_columns(kept, path), may_repeat=True)
    if ignored:
        run.notes.append(f"{path.name}: {ignored} lines do not have 6 columns; left out as the published scripts do")
    if kept.height < rows.height:
        run.all_lines = trec_columns(rows, path)
        run.notes.append(
            f"{path.name}: {rows.height - kept.height} lines are of queries that occur again later in the file; bias "
            "measures leave these lines out, as the published bias scripts do, and effectiveness measures count them, "
            "as the published MRR script does"
        )
    return run


def _published_rows(blocks: Iterable[tuple[int, str]]) -> tuple[pl.DataFrame, int]:
    """The lines with six columns and their line numbers, and the number of all other lines."""
    schema = {"line": pl.Int64(), **{f"column_{n}": pl.String() for n in (1, 3, 4, 5)}}
    frames, ignored = [pl.DataFrame(schema=schema)], 0
    for first, text in blocks:
        rows: list[tuple[int | str, ...]] = []
        for number, line in enumerate(text.split("\n"), start=first):
            fields = line.strip().split(" ")
            fields = fields if len(fields) == 6 else line.strip().split("\t")
            if len(fields) == 6:
                rows.append((number, fields[0], *fields[2:5]))
            else:
                ignored += bool(line.strip())
        frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
    return pl.concat(frames), ignored


def _last_blocks(rows: pl.DataFrame) -> pl.DataFrame:
    """The last block of consecutive lines of each query."""
    numbers = rows.with_columns(block=pl.col("column_1").rle_id())
    return numbers.filter(pl.col("block") == pl.col("block").max().over("column_1")).drop("block")


def _check_repeats(lines: pl.DataFrame, path: Path) -> None:
    repeated = lines.select("query_id", "doc_id").is_duplicated()
    if repeated.any():
        row = lines.filter(repeated).row(0, named=True)
        same = lines.filter((pl.col("query_id") == row["query_id"]) & (pl.col("doc_id") == row["doc_id"]))
        places = " and ".join(str(n) for n in same["line"].to_list()[:3])
        raise DataError(
            f"run {path}: document {row['doc_id']!r} is ranked more than once for query {row['query_id']!r} "
            f"(lines {places}); remove the repeated lines, which would be counted twice"
        )
