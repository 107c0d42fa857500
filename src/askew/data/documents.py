"""Stream documents from TSV, JSON Lines or Parquet, plain or gzip-compressed, from one file or a collection folder.

Only one block is in memory at a time, so a collection may have any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, place
from askew.core.files import check_file, decode_block
from askew.core.tables import DOCUMENTS
from askew.data.columns import (
    id_column,
    json_id,
    json_rows,
    json_text,
    parquet_batches,
    parquet_names,
    parquet_rows,
    text_column,
)
from askew.data.files import WHITE, Meter, line_blocks, listing, no_value, shown, suffix_of
from askew.data.layout import ENDINGS, find_layout, folder_and_split, id_and_texts


class DocumentsAt(NamedTuple):
    """The document files at a path. ``titled``: the title is put before the text, as BEIR does."""

    files: tuple[Path, ...]
    titled: bool


def documents_at(path: Path) -> DocumentsAt:
    """Find the document files at a path: one file, a collection folder, or ``FOLDER@split``."""
    try:
        place_and_split = (path, None) if path.is_dir() else None if path.exists() else folder_and_split(path)
    except OSError as error:
        raise DataError(f"documents {path}: cannot be reached ({error.strerror})") from None
    if place_and_split is None:
        return DocumentsAt((check_file(path, "documents"),), False)
    layout = find_layout(*place_and_split)
    return DocumentsAt(layout.documents, layout.titled)


def bytes_of(path: Path) -> int:
    """The total size of the document files on disk."""
    return sum(file.stat().st_size for file in documents_at(path).files)


def read_documents(
    path: Path, fields: tuple[str, ...] = (), published: bool = False, meter: Meter | None = None
) -> Iterator[pa.Table]:
    """Batches of (doc_id, text). ``fields`` names the fields that make up the text, joined by a blank.

    ``published`` follows the published scripts: a TSV line without exactly two columns is a document with a null text.
    ``meter`` counts the bytes read.
    """
    files, titled = documents_at(path)
    yield from read_document_files(files, path, fields, meter or Meter(), published, titled)


def read_document_files(
    files: Iterable[Path], path: Path, fields: tuple[str, ...], meter: Meter, published: bool = False,
    titled: bool = False,
) -> Iterator[pa.Table]:  # fmt: skip
    """Do the same as ``read_documents`` for the given files. Error messages name ``path`` for all of them.

    ``titled`` follows BEIR if no fields are named: the title of a document, if it has one, is put before its text.
    """
    any_document = False
    for file in files:
        form = ENDINGS.get(suffix_of(file), "tsv")
        if form == "tsv" and fields:
            problem = "a TSV file has no named fields; ⟨fields⟩ is for JSON Lines and Parquet"
            raise ConfigError(f"documents {file}: {problem}")
        if form == "tsv":
            batches = _read_published(file, meter) if published else _read_tsv(file, meter)
        else:
            batches = (_read_parquet if form == "parquet" else _read_jsonl)(file, fields, meter, titled)
        for ids, texts in batches:
            any_document = True
            yield as_documents(ids, texts)
        meter.next_file()
    if not any_document:
        raise no_documents(path)


def no_documents(path: Path) -> DataError:
    """The error for a collection without documents."""
    message = f"documents {path}: it has no documents; expected at least one document id with its text"
    return DataError(message, code="empty")


def documents_of(table: pa.Table, path: Path, fields: tuple[str, ...] = ()) -> pa.Table:
    """Check documents that are a table in memory as those of a file are checked. Error messages name ``path``."""
    id_name, names = _id_and_names(table.column_names, path, fields)
    ids, texts = id_column(table, id_name, path, "documents"), [text_column(table, n, path, "documents") for n in names]
    if len(texts) == 1 and texts[0].null_count:
        row = pc.index(pc.is_null(texts[0]), True).as_py() + 1
        raise no_value(path, row, names[0])
    return as_documents(ids, _joined(texts))


# Ids and texts, as arrays or as sequences.
_Columns: TypeAlias = tuple[Any, Any]


def as_documents(ids: Any, texts: Any) -> pa.Table:
    """Convert ids and texts that have been checked to a table."""
    return pa.table({"doc_id": ids, "text": texts}, schema=DOCUMENTS)


def _read_tsv(path: Path, meter: Meter) -> Iterator[_Columns]:
    for first_line, block in line_blocks(path, meter=meter):
        data = block.replace(b"\r\n", b"\n").removesuffix(b"\r") if b"\r" in block else block
        try:
            whole = pa.array([data.removesuffix(b"\n")], pa.large_binary()).cast(pa.large_string())
        except pa.ArrowInvalid:
            # Decoding doubles the time, so it is done only to raise the error that names the line.
            whole = pa.array([decode_block(path, first_line, data).removesuffix("\n")], pa.large_string())
        lines = pc.split_pattern(whole, "\n").flatten()
        tabs = pc.count_substring(lines, "\t")
        numbers = None
        if pc.any(pc.not_equal(tabs, 1)).as_py():
            # A line with a TAB is a document even if it is otherwise blank.
            blank = pc.and_(pc.equal(tabs, 0), pc.equal(pc.ascii_trim_whitespace(lines), ""))
            wrong = pc.and_not(pc.not_equal(tabs, 1), blank)
            if (at := pc.index(wrong, True).as_py()) >= 0:
                problem = f"found {tabs[at].as_py() + 1} in {shown(lines[at].as_py())}"
                raise DataError(
                    f"{place(path, first_line + at)}: expected 2 columns (document id, TAB, text), {problem}",
                    code="bad-width",
                )
            numbers = pc.indices_nonzero(pc.invert(blank))
            lines = lines.take(numbers)
        if len(lines):
            parts = pc.split_pattern(lines, "\t").flatten()
            ids = pc.ascii_trim_whitespace(parts[0::2])
            if (empty := pc.index(ids, "").as_py()) >= 0:
                at = first_line + (empty if numbers is None else numbers[empty].as_py())
                raise DataError(f"{place(path, at)}: the document has no id; expected document id, TAB, text")
            yield ids, parts[1::2]


def _read_published(path: Path, meter: Meter) -> Iterator[_Columns]:
    for first_line, block in line_blocks(path, meter=meter):
        ids: list[str] = []
        texts: list[str | None] = []
        for line in decode_block(path, first_line, block).split("\n"):
            fields = line.strip().split("\t")
            if fields[0]:
                ids.append(fields[0])
                texts.append(fields[1] if len(fields) == 2 else None)
        if ids:
            yield ids, texts


def _read_jsonl(path: Path, fields: tuple[str, ...], meter: Meter, titled: bool) -> Iterator[_Columns]:
    for first_line, block in line_blocks(path, meter=meter):
        lines = [(first_line, decode_block(path, first_line, block))]
        rows = json_rows(lines, path, "an object with the keys 'doc_id' and 'text'")
        if documents := [json_document(row, path, number, fields, titled) for number, row in rows]:
            ids, texts = zip(*documents, strict=True)
            yield ids, texts


def json_document(
    row: Mapping[str, Any], path: Path, number: int, fields: tuple[str, ...] = (), titled: bool = False
) -> tuple[str, str]:
    """The id and the text of one object. ``number`` is its line or row."""
    id_name, names = id_and_texts(row, fields)
    if id_name is None or not names or any(name not in row for name in names):
        keys = ", ".join(map(repr, fields)) if fields else "'text' (or 'contents')"
        raise DataError(f"{place(path, number)}: expected a document id and {keys}; found the keys {listing(row)}")
    texts = [json_text(row[name], name, path, number) for name in names if row[name] is not None]
    title = row.get("title") if titled and not fields else None
    # BEIR writes an empty title if a document has none.
    if title is not None and (before := json_text(title, "title", path, number)).strip(WHITE):
        texts.insert(0, before)
    return json_id(row[id_name], id_name, path, number), " ".join(texts)


def _id_and_names(columns: list[str], path: Path, fields: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    id_name, names = id_and_texts(columns, fields)
    if id_name is None or not names or any(name not in columns for name in names):
        texts = ", ".join(map(repr, fields or ("text",)))
        message = f"documents {path}: expected the columns 'doc_id' and {texts}; found {listing(columns)}"
        raise DataError(message, code="missing-column", found=columns)
    return id_name, names


def _read_parquet(path: Path, fields: tuple[str, ...], meter: Meter, titled: bool) -> Iterator[_Columns]:
    columns = parquet_names(path, "documents")
    id_name, names = _id_and_names(columns, path, fields)
    titled = titled and not fields and "title" in columns
    names = ("title", *names) if titled else names
    size, rows = path.stat().st_size, parquet_rows(path, "documents")
    row = 1
    for batch in parquet_batches(path, "documents", list(dict.fromkeys([id_name, *names]))):
        ids = id_column(batch, id_name, path, "documents", row)
        texts = [text_column(batch, name, path, "documents") for name in names]
        if titled:
            texts[0] = pc.if_else(pc.equal(pc.ascii_trim_whitespace(texts[0]), ""), None, texts[0])
        yield ids, _joined(texts)
        row += batch.num_rows
        # Parquet does not report how many bytes were read, so the share of the rows stands in for them.
        meter.position = size * (row - 1) // max(rows, 1)


def _joined(parts: list[pa.Array]) -> pa.Array:
    """Join the fields of each text with a blank. As in JSON Lines, a null adds nothing, not even a blank."""
    if len(parts) > 1:
        # Arrow returns null for a row with only nulls, so the first null becomes an empty text.
        none = reduce(pc.and_, map(pc.is_null, parts))
        first = pc.if_else(none, pa.scalar("", pa.large_string()), parts[0])
        blank = pa.scalar(" ", pa.large_string())
        return pc.binary_join_element_wise(first, *parts[1:], blank, null_handling="skip")
    return pc.fill_null(parts[0], "")
