"""Names that identify documents: file name endings, and the columns or keys of ids and texts."""

from __future__ import annotations

from collections.abc import Container

_ID_NAMES = ("doc_id", "docid", "docno", "id", "_id", "pid")
_TEXT_NAMES = ("text", "contents", "content", "body", "passage")
ENDINGS = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}


def id_and_texts(found: Container[str], fields: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The name of the id column, and the names of the fields that make up the text."""
    id_name = next((name for name in _ID_NAMES if name in found), None)
    return id_name, fields or tuple(name for name in _TEXT_NAMES if name in found)[:1]


def are_documents(columns: list[str]) -> bool:
    """Whether these are the columns of documents: an id and a text."""
    id_name, names = id_and_texts(columns, ())
    return id_name is not None and bool(names)
