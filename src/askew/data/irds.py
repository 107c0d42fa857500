"""Collections of ir_datasets, by their id. Nothing is downloaded before it is read."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from askew.core.errors import AskewError, ConfigError, DataError, MissingExtra
from askew.data.columns import json_id, json_text
from askew.data.documents import as_documents, no_documents
from askew.data.files import listing
from askew.data.judgements import QrelsFile, judgements_of_rows
from askew.data.queries import Row, queries_of

_BATCH = 8192
_REASON = 200
T = TypeVar("T")


def irds_parts(dataset_id: str, fields: tuple[str, ...] = ()) -> tuple[bool, bool]:
    """Whether a dataset has queries, and whether it has judgements. Unknown ids and unknown fields are errors."""
    dataset = _dataset(dataset_id)
    if fields and dataset.has_docs():
        _parts(dataset.docs_cls(), fields, f"collection {_name(dataset_id)}")
    return dataset.has_queries(), dataset.has_qrels()


def irds_subsets(dataset_id: str) -> list[str]:
    """The ids of the subsets of a dataset. Often only the subsets have queries."""
    return sorted(name for name in _library(dataset_id).registry if name.startswith(f"{dataset_id}/"))


def irds_documents(dataset_id: str, fields: tuple[str, ...] = (), _meter: object = None) -> Iterator[pa.Table]:
    """Batches of (doc_id, text). The text is the dataset's ``default_text``, or the named fields."""
    dataset, name = _dataset(dataset_id), _name(dataset_id)
    if not dataset.has_docs():
        raise DataError(f"collection {name}: it has no documents; ir_datasets has only its queries or runs")
    parts = _parts(dataset.docs_cls(), fields, f"collection {name}")

    def documents() -> Iterator[tuple[str, str]]:
        for number, doc in enumerate(dataset.docs_iter(), start=1):
            yield json_id(doc.doc_id, "doc_id", name, number), _text(doc, parts, name, number)

    rows, any_document = _fetched(documents, dataset_id, "documents"), False
    while batch := list(islice(rows, _BATCH)):
        any_document = True
        yield as_documents(*zip(*batch, strict=True))
    if not any_document:
        raise no_documents(name)


def irds_queries(dataset_id: str) -> pa.Table:
    """The queries with the dataset's ``default_text``, such as the title of a TREC topic."""
    dataset, name = _dataset(dataset_id), _name(dataset_id)
    parts = _parts(dataset.queries_cls(), (), f"queries {name}")

    def queries() -> Iterator[Row]:
        for number, query in enumerate(dataset.queries_iter(), start=1):
            query_id = json_id(query.query_id, "query_id", name, number)
            yield number, query_id, _text(query, parts, name, number), None, None

    return queries_of(_fetched(queries, dataset_id, "queries"), name)


def irds_judgements(dataset_id: str) -> QrelsFile:
    """The judgements."""
    dataset = _dataset(dataset_id)
    rows = _fetched(
        lambda: ((row.query_id, row.doc_id, row.relevance) for row in dataset.qrels_iter()), dataset_id, "judgements"
    )
    return judgements_of_rows(rows, _name(dataset_id))


def _name(dataset_id: str) -> Path:
    return Path(f"irds:{dataset_id}")


def _library(dataset_id: str) -> Any:
    try:
        return importlib.import_module("ir_datasets")
    except ImportError:
        raise MissingExtra(f"the collection {str(_name(dataset_id))!r}", "irds") from None
    except OSError as error:
        # ir_datasets creates its download folder when it is imported.
        raise DataError(f"ir_datasets cannot use its download folder ({error}); set IR_DATASETS_HOME") from None


def _dataset(dataset_id: str) -> Any:
    library = _library(dataset_id)
    try:
        return library.load(dataset_id)
    except KeyError:
        near = difflib.get_close_matches(dataset_id.lower(), list(library.registry), n=3)
    except Exception as error:
        raise _failed(dataset_id, "description", error) from error
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    name = repr(str(_name(dataset_id)))
    message = f"collection {name}: ir_datasets has no such id; {hint}see https://ir-datasets.com for all ids"
    raise ConfigError(message, code="unknown-id", near=near)


def _fetched(rows: Callable[[], Iterable[T]], dataset_id: str, what: str) -> Iterator[T]:
    """Yield the rows. Downloading and unpacking can raise any exception; each becomes a one-line DataError."""
    try:
        yield from rows()
    except AskewError:
        raise
    except Exception as error:
        raise _failed(dataset_id, what, error) from error


def _failed(dataset_id: str, what: str, error: Exception) -> DataError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    reason = reason if len(reason) <= _REASON else reason[:_REASON] + "..."
    message = f"ir_datasets could not load its {what} ({reason}); check the network, and see https://ir-datasets.com"
    return DataError(f"collection {_name(dataset_id)}: {message}", code="not-loaded")


def _parts(kind: Any, fields: tuple[str, ...], what: str) -> tuple[str, ...]:
    """The fields that make up a text; none if the dataset has a ``default_text``."""
    names = tuple(name for name in getattr(kind, "_fields", ()) if name not in ("doc_id", "query_id"))
    unknown = next((name for name in fields if name not in names), None)
    if unknown is not None:
        raise ConfigError(f"{what}: unknown field {unknown!r}; known: {listing(names)}")
    if fields or hasattr(kind, "default_text"):
        return fields
    if "text" not in names:
        raise ConfigError(f"{what}: no field is declared as the text; choose fields from {listing(names)}")
    return ("text",)


def _text(row: Any, parts: tuple[str, ...], name: Path, number: int) -> str:
    """Join the fields with a blank. As in JSON Lines, a null adds nothing, and a list is refused."""
    if not parts:
        return json_text(row.default_text(), "text", name, number)
    values = {part: getattr(row, part) for part in parts}
    return " ".join(json_text(value, part, name, number) for part, value in values.items() if value is not None)
