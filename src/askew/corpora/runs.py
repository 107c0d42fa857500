"""Runs: TREC (any white space), MS MARCO and named-column TSV, JSON Lines, Parquet; gzip or not.

The usual file is read by a fast columnar parser. Whatever that parser is not sure of goes through a
careful line-by-line reader, which either understands it or names the file and line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from askew.core.errors import ConfigError, DataError, place
from askew.corpora.files import as_file, check_file, read_text, suffix_of

FORMATS = ("auto", "trec", "tsv", "jsonl", "parquet")
_QUERY_NAMES = ("query_id", "qid", "query-id", "topic")
_DOC_NAMES = ("doc_id", "docid", "docno", "pid", "did", "corpus-id")


@dataclass
class RunFile:
    """The lines of a run as columns query_id, doc_id, score, line; and what was noticed on reading."""

    name: str
    lines: pl.DataFrame
    notes: list[str] = field(default_factory=list)
    may_repeat: bool = False


def read_run(path: Path, form: str = "auto", published: bool = False) -> RunFile:
    """Read a run. ``published`` follows the published scripts: see ``docs/measures.md``."""
    check_file(path, "run")
    form = _form(path, form)
    if form == "parquet":
        run = RunFile(path.name, _from_columns(_read_parquet(path), path))
    else:
        text = read_text(path, "run")
        run = _read_published(text, path) if published else RunFile(path.name, _read_lines(text, path, form))
    if run.lines.height == 0:
        raise DataError(f"run {path}: the file has no ranked documents")
    _check_scores(run.lines, path)
    if not published:
        _check_repeats(run.lines, path)
    return run


def _form(path: Path, form: str) -> str:
    if form not in FORMATS:
        raise ConfigError(f"run format {form!r}: expected one of {', '.join(FORMATS)}")
    if form != "auto":
        return form
    return {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".tsv": "tsv"}.get(suffix_of(path), "trec")


def _read_lines(text: str, path: Path, form: str) -> pl.DataFrame:
    if form == "jsonl":
        return _from_columns(pl.DataFrame(list(_json_rows(text, path))), path)
    first = next((line for line in text.split("\n", 50)[:50] if line.strip()), "")
    if form == "tsv" and _has_header(first):
        return _from_columns(_read_named_tsv(text, path), path)
    width = len(first.split())
    if form == "trec" and width not in (3, 6):
        raise _wrong_width(path, 1, width, first)
    if width == 3:
        return _three_columns(text, path)
    return _fast_trec(text, first) if _fast_trec_is_sure(text, first) else _careful_trec(text, path)


def _has_header(line: str) -> bool:
    names = [name.strip().lower() for name in line.split("\t")]
    return any(n in _QUERY_NAMES for n in names) and any(n in _DOC_NAMES for n in names)


def _fast_trec_is_sure(text: str, first: str) -> bool:
    """One separator throughout, exactly five of it on every line, no blank lines."""
    separator = "\t" if "\t" in first else " "
    other = " " if separator == "\t" else "\t"
    if other in text or separator * 2 in text or "\n\n" in text or "\r" in text or first.count(separator) != 5:
        return False
    lines = text.count("\n") + (not text.endswith("\n"))
    if text.count(separator) != 5 * lines:
        return False
    frame = _fast_frame(text, separator)
    return frame.height == lines and sum(frame.null_count().row(0)) == 0


def _fast_frame(text: str, separator: str) -> pl.DataFrame:
    names = ["query_id", "iteration", "doc_id", "rank", "score", "tag"]
    return pl.read_csv(
        as_file(text), separator=separator, has_header=False, new_columns=names, quote_char=None,
        infer_schema=False, truncate_ragged_lines=True,
    )  # fmt: skip


def _fast_trec(text: str, first: str) -> pl.DataFrame:
    frame = _fast_frame(text, "\t" if "\t" in first else " ")
    return frame.select("query_id", "doc_id", "score", "rank").with_row_index("line", offset=1)


def _careful_trec(text: str, path: Path) -> pl.DataFrame:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        fields = line.split()
        if len(fields) != 6:
            raise _wrong_width(path, number, len(fields), line)
        rows.append((number, fields[0], fields[2], fields[4], fields[3]))
    return pl.DataFrame(rows, schema=["line", "query_id", "doc_id", "score", "rank"], orient="row")


def _wrong_width(path: Path, line: int, found: int, text: str) -> DataError:
    return DataError(
        f"{place(path, line)}: expected the 6 columns of a TREC run (query Q0 document rank score tag), "
        f"found {found} in {text[:60]!r}"
    )


def _three_columns(text: str, path: Path) -> pl.DataFrame:
    """``query document rank`` (MS MARCO) or ``query document score``; which of them the numbers say."""
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        fields = line.split()
        if len(fields) != 3:
            raise DataError(f"{place(path, number)}: expected 3 columns as on the lines before, found {len(fields)}")
        rows.append((number, *fields))
    frame = pl.DataFrame(rows, schema=["line", "query_id", "doc_id", "value"], orient="row")
    whole = frame["value"].str.contains(r"^[0-9]+$").all()
    if not whole:
        return frame.rename({"value": "score"}).with_columns(rank=pl.lit(None, pl.String))
    ranks = frame.with_columns(pl.col("value").cast(pl.Int64))
    starts = ranks.group_by("query_id").agg(pl.col("value").min())
    if not starts["value"].is_in([0, 1]).all():
        raise DataError(
            f"run {path}: the third column holds whole numbers that do not start at rank 1 in each query, so they "
            "may be ranks or scores; write TREC's 6 columns, or a header line: query_id, doc_id, rank (or score)"
        )
    return ranks.with_columns(score=-pl.col("value").cast(pl.Float64), rank=pl.lit(None, pl.String)).drop("value")


def _read_named_tsv(text: str, path: Path) -> pl.DataFrame:
    try:
        return pl.read_csv(as_file(text), separator="\t", quote_char=None, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        first = str(error).splitlines()[0]
        raise DataError(f"run {path}: the lines do not all have the columns of the header ({first})") from None


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"run {path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None


def _json_rows(text: str, path: Path) -> Iterator[dict[str, object]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{place(path, number)}: not valid JSON: {error.msg}") from None
        if not isinstance(row, dict):
            raise DataError(f"{place(path, number)}: expected an object with query_id, doc_id and score or rank")
        yield {key: value if value is None else str(value) for key, value in row.items()}


def _from_columns(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Named columns to ours; the score may be given as a rank."""
    by_lower = {name.strip().lower(): name for name in frame.columns}
    query = next((by_lower[n] for n in _QUERY_NAMES if n in by_lower), None)
    doc = next((by_lower[n] for n in _DOC_NAMES if n in by_lower), None)
    value = by_lower.get("score", by_lower.get("rank"))
    if query is None or doc is None or value is None:
        found = ", ".join(frame.columns) or "none"
        raise DataError(f"run {path}: expected the columns query_id, doc_id and score (or rank); found {found}")
    for name in (query, doc):
        if frame[name].null_count():
            row = frame[name].is_null().arg_true()[0]
            raise DataError(f"{place(path, int(row) + 1)}: the column {name} has no value")
    is_rank = value.strip().lower() == "rank"
    number = pl.col(value).cast(pl.String).cast(pl.Float64, strict=False)
    return frame.with_row_index("line", offset=1).select(
        "line",
        query_id=pl.col(query).cast(pl.String),
        doc_id=pl.col(doc).cast(pl.String),
        score=(-number if is_rank else number).cast(pl.String),
        rank=pl.lit(None, pl.String),
    )


def _read_published(text: str, path: Path) -> RunFile:
    """As the published scripts read: other lines are ignored, a query that comes back starts anew.

    They do so in silence; here what is left out is counted and told.
    """
    rows: list[tuple[int, str, str, str, str]] = []
    start, current, ignored, lost = 0, None, 0, 0
    last_block: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.strip().split(" ")
        fields = fields if len(fields) == 6 else line.strip().split("\t")
        if len(fields) != 6:
            ignored += bool(line.strip())
            continue
        if fields[0] != current:
            current, start = fields[0], len(rows)
            if current in last_block:
                a, b = last_block[current]
                lost += b - a
                rows[a:b] = [(0, "", "", "", "")] * (b - a)
        rows.append((number, fields[0], fields[2], fields[4], fields[3]))
        last_block[current] = (start, len(rows))
    kept = [row for row in rows if row[0]]
    frame = pl.DataFrame(kept, schema=["line", "query_id", "doc_id", "score", "rank"], orient="row")
    run = RunFile(path.name, frame, may_repeat=True)
    if ignored:
        run.notes.append(f"{path.name}: {ignored} lines are not 6 columns; left out as the published scripts do")
    if lost:
        run.notes.append(
            f"{path.name}: {lost} lines of queries that come back later in the file; "
            "left out as the published scripts do"
        )
    return run


def _check_scores(lines: pl.DataFrame, path: Path) -> None:
    """Scores are numbers. A 'nan' would make the order arbitrary."""
    if lines.schema["score"] == pl.String:
        numbers = lines["score"].cast(pl.Float64, strict=False)
    else:
        numbers = lines["score"].cast(pl.Float64)
    bad = (numbers.is_null() | numbers.is_nan()).arg_true()
    if len(bad):
        line, text = lines["line"][int(bad[0])], lines["score"][int(bad[0])]
        raise DataError(f"{place(path, line)}: expected a number as the score, found {text!r}")


def _check_repeats(lines: pl.DataFrame, path: Path) -> None:
    repeated = lines.select("query_id", "doc_id").is_duplicated()
    if repeated.any():
        row = lines.filter(repeated).row(0, named=True)
        same = lines.filter((pl.col("query_id") == row["query_id"]) & (pl.col("doc_id") == row["doc_id"]))
        places = " and ".join(str(n) for n in same["line"].to_list()[:3])
        raise DataError(
            f"run {path}: document {row['doc_id']!r} is ranked more than once for query {row['query_id']!r} "
            f"(lines {places}); remove the repeats, they would be counted twice"
        )
