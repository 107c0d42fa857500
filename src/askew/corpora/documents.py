"""Documents, streamed: TSV, JSON Lines, Parquet; gzip or not; one file or a folder of them.

Only one block is ever in memory, so a collection may be of any size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from askew.core.errors import ConfigError, DataError, place
from askew.core.tables import DOCUMENTS
from askew.corpora.files import check_file, decode_block, line_blocks, suffix_of

_ID_NAMES = ("doc_id", "docid", "docno", "id", "_id", "pid")
_TEXT_NAMES = ("text", "contents", "content", "body", "passage")
_ENDINGS = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}


def document_files(path: Path) -> list[Path]:
    """The files of a collection, in the order of their names."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and suffix_of(p) in _ENDINGS)
        if not files:
            raise DataError(f"documents {path}: the folder has no .tsv, .jsonl or .parquet file")
        return files
    return [check_file(path, "documents")]


def read_documents(path: Path, fields: tuple[str, ...] = (), published: bool = False) -> Iterator[pa.Table]:
    """Batches of (doc_id, text). ``fields`` names the parts that make up the text, joined by a blank.

    ``published`` follows the published scripts: a TSV line that is not exactly two columns is a
    document with an empty text.
    """
    for file in document_files(path):
        form = _ENDINGS.get(suffix_of(file), "tsv")
        if form == "parquet":
            yield from _read_parquet(file, fields)
        elif form == "jsonl":
            yield from _read_jsonl(file, fields)
        else:
            if fields:
                raise ConfigError(
                    f"documents {file}: a TSV file has no named fields; --fields is for JSON Lines and Parquet"
                )
            yield from _read_tsv(file, published)


def _read_tsv(path: Path, published: bool) -> Iterator[pa.Table]:
    for first_line, block in line_blocks(path):
        if published:
            yield _published_block(decode_block(path, first_line, block))
            continue
        decode_block(path, first_line, block)
        lines = _lines(block)
        tabs = pc.count_substring(lines, "\t")
        if pc.any(pc.not_equal(tabs, 1)).as_py():
            lines, tabs = _check_widths(path, first_line, lines, tabs)
        parts = pc.split_pattern(lines, "\t").flatten()
        ids, texts = parts[0::2] if len(parts) else parts, parts[1::2] if len(parts) else parts
        ids = pc.utf8_trim_whitespace(ids)
        _check_ids(path, first_line, ids)
        yield pa.table([ids.cast(pa.string()), texts.cast(pa.large_string())], schema=DOCUMENTS)


def _lines(block: bytes) -> pa.Array:
    """The lines of a block without their line ends, without copying the text more than once."""
    whole = pa.array([block.removesuffix(b"\n")], pa.large_binary()).cast(pa.large_string())
    lines = pc.split_pattern(whole, "\n").flatten()
    return pc.utf8_rtrim(lines, "\r") if b"\r" in block else lines


def _check_widths(path: Path, first_line: int, lines: pa.Array, tabs: pa.Array) -> tuple[pa.Array, pa.Array]:
    blank = pc.equal(pc.utf8_trim_whitespace(lines), "")
    wrong = pc.and_(pc.invert(blank), pc.not_equal(tabs, 1))
    if pc.any(wrong).as_py():
        at = pc.index(wrong, True).as_py()
        raise DataError(
            f"{place(path, first_line + at)}: expected 2 columns (document id, TAB, text), found "
            f"{tabs[at].as_py() + 1} in {lines[at].as_py()[:60]!r}"
        )
    keep = pc.invert(blank)
    return lines.filter(keep), tabs.filter(keep)


def _check_ids(path: Path, first_line: int, ids: pa.Array) -> None:
    empty = pc.equal(ids, "")
    if pc.any(empty).as_py():
        at = pc.index(empty, True).as_py()
        raise DataError(f"{place(path, first_line + at)}: the document has no id")


def _published_block(text: str) -> pa.Table:
    ids, texts = [], []
    for line in text.removesuffix("\n").split("\n"):
        fields = line.strip().split("\t")
        if fields[0]:
            ids.append(fields[0])
            texts.append(fields[1] if len(fields) == 2 else "")
    return pa.table([pa.array(ids, pa.string()), pa.array(texts, pa.large_string())], schema=DOCUMENTS)


def _read_jsonl(path: Path, fields: tuple[str, ...]) -> Iterator[pa.Table]:
    for first_line, block in line_blocks(path):
        ids, texts = [], []
        for number, line in enumerate(decode_block(path, first_line, block).split("\n"), start=first_line):
            if line.strip():
                doc_id, text = _json_document(line, path, number, fields)
                ids.append(doc_id)
                texts.append(text)
        yield pa.table([pa.array(ids, pa.string()), pa.array(texts, pa.large_string())], schema=DOCUMENTS)


def _json_document(line: str, path: Path, number: int, fields: tuple[str, ...]) -> tuple[str, str]:
    try:
        row: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{place(path, number)}: not valid JSON: {error.msg}") from None
    if not isinstance(row, dict):
        raise DataError(f"{place(path, number)}: expected an object with doc_id and text, found {line[:40]!r}")
    id_name = _first(_ID_NAMES, row)
    names = fields or tuple(filter(None, [_first(_TEXT_NAMES, row)]))
    missing = [name for name in names if name not in row]
    if id_name is None or not names or missing:
        wanted = "a document id and " + (", ".join(fields) if fields else "text (or contents)")
        raise DataError(
            f"{place(path, number)}: expected {wanted}; found the keys {', '.join(map(str, row)) or 'none'}"
        )
    return str(row[id_name]), " ".join(str(row[name]) for name in names if row[name] is not None)


def _first(names: tuple[str, ...], row: Any) -> str | None:
    return next((name for name in names if name in row), None)


def _read_parquet(path: Path, fields: tuple[str, ...]) -> Iterator[pa.Table]:
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"documents {path}: not a readable Parquet file ({error})") from None
    columns = file.schema_arrow.names
    id_name, names = _first(_ID_NAMES, columns), fields or tuple(filter(None, [_first(_TEXT_NAMES, columns)]))
    missing = [name for name in names if name not in columns]
    if id_name is None or not names or missing:
        raise DataError(f"documents {path}: expected doc_id and text columns; found {', '.join(columns)}")
    for batch in file.iter_batches(batch_size=65_536, columns=[id_name, *names]):
        parts = [batch[name].cast(pa.large_string()).fill_null("") for name in names]
        text = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, pa.scalar(" ", pa.large_string()))
        yield pa.table([batch[id_name].cast(pa.string()), text], schema=DOCUMENTS)
