"""Open a collection from any source: documents, queries and judgements under one id."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from askew.core.errors import ConfigError, DataError
from askew.core.files import DATA, check_file
from askew.core.folders import new_folder
from askew.core.tables import DOCUMENTS, JUDGEMENTS, conform
from askew.data.documents import documents_at, read_document_files
from askew.data.files import Meter, listing
from askew.data.irds import irds_documents, irds_judgements, irds_parts, irds_queries, irds_subsets
from askew.data.judgements import QrelsFile
from askew.data.layout import find_layout, folder_and_split
from askew.data.memory import documents_in_memory, held_in_memory, judgements_in_memory, queries_in_memory

# The embedded demo collection: passages, queries, judgements and runs, written for askew.

_FOLDER = DATA / "demo"


@dataclass(frozen=True)
class DemoFiles:
    """The paths and the sizes of the demo collection."""

    docs: Path
    qrels: Path
    queries_file: Path
    runs: list[Path]
    documents: int
    queries: int
    about: str


def demo_files() -> DemoFiles:
    """The files of the embedded demo."""
    docs, queries, runs = _FOLDER / "docs.tsv", _FOLDER / "queries.tsv", sorted(_FOLDER.glob("*.run"))
    documents, total = (path.read_bytes().count(b"\n") for path in (docs, queries))
    return DemoFiles(docs, _FOLDER / "qrels.txt", queries, runs, documents, total, ", ".join(run.stem for run in runs))


_IRDS = "irds:"
_BATCH = 65_536


@dataclass(frozen=True)
class Collection:
    """Documents, and also queries and judgements if the collection has them. No file is read before it is needed.

    ``files`` are the document files; it is empty for collections in memory and for collections of ir_datasets.
    ``fields`` are the fields that form the text of a document by default. ``hint`` is the part of an error message
    that says where to find queries or judgements. If ``titled`` is true, the title of a document is put before its
    text, as in BEIR. ``titled`` has no effect if ``fields`` is set or ``documents`` is called with ``fields``. If a
    folder has several query or judgement files, ``note_on`` returns a note that names the file that is read. ``source``
    is the name or path that opens the same collection again; it is empty for a collection in memory.
    """

    id: str
    read: Callable[[tuple[str, ...], Meter], Iterator[pa.Table]] = field(repr=False)
    query_reader: Callable[[], pa.Table] | None = field(default=None, repr=False)
    judgement_reader: Callable[[], QrelsFile] | None = field(default=None, repr=False)
    files: tuple[Path, ...] = field(default=(), repr=False)
    fields: tuple[str, ...] = ()
    hint: str = field(default="", repr=False)
    titled: bool = field(default=False, repr=False)
    note_on: Callable[[str], str] | None = field(default=None, repr=False)
    source: str = field(default="", repr=False)

    @classmethod
    def open(
        cls, source: object, *, queries: object = None, qrels: object = None, fields: Sequence[str] = (),
        split: str | None = None,
    ) -> Collection:  # fmt: skip
        """Open a collection: "demo", "irds:ID", a folder (askew, BEIR or Hugging Face), a document file, or memory.

        Documents in memory are ``{id: text}``, a list, or a data frame. ``queries`` (``{id: text}`` or a data frame)
        and ``qrels`` (``{query: {document: relevance}}`` or a data frame) are added to the collection, or replace its
        own.
        """
        opened = open_collection(source, fields, split)
        if queries is not None:
            opened = replace(opened, query_reader=partial(queries_in_memory, queries), source="")
        if qrels is not None:
            opened = replace(opened, judgement_reader=partial(judgements_in_memory, qrels), source="")
        return opened

    @property
    def has_queries(self) -> bool:
        """Whether there are queries."""
        return self.query_reader is not None

    @property
    def has_judgements(self) -> bool:
        """Whether there are judgements."""
        return self.judgement_reader is not None

    @property
    def size(self) -> int:
        """The total size of the document files in bytes, as a Meter counts them; 0 if it is not known."""
        return sum(check_file(file, "documents").stat().st_size for file in self.files)

    def notes(self, *roles: str) -> list[str]:
        """Notes on which of several ``queries`` or ``judgements`` files is read, if no split was chosen."""
        return [note for role in roles if self.note_on and (note := self.note_on(role))]

    def documents(self, fields: Sequence[str] = (), meter: Meter | None = None) -> Iterator[pa.Table]:
        """Batches of (doc_id, text). Each call starts at the first document. ``meter`` counts the bytes read."""
        return self.read(_as_fields(fields) or self.fields, meter or Meter())

    @property
    def queries(self) -> pa.Table:
        """All queries, judged or not, with the columns of ``read_queries``."""
        if self.query_reader is None:
            raise self._no("queries")
        return self.query_reader()

    @property
    def judgements(self) -> pa.Table:
        """Columns query_id, doc_id, relevance."""
        return conform(self.qrels_file().lines.to_arrow(), JUDGEMENTS, f"judgements {self.id}")

    def qrels_file(self) -> QrelsFile:
        """The judgements together with notes about irregularities in the file."""
        if self.judgement_reader is None:
            raise self._no("judgements")
        return self.judgement_reader()

    def judged_queries(self) -> pa.Table:
        """The queries with at least one judgement of any grade. BEIR and TREC average over these queries."""
        queries, judged = self.queries, self.judgements["query_id"].unique()
        judged_only = queries.filter(pc.is_in(queries["query_id"], value_set=judged))
        if not judged_only.num_rows:
            first, others = (listing(ids[:3].to_pylist()) for ids in (queries["query_id"], judged))
            message = f"none of its {queries.num_rows} queries (ids {first}) has judgements (of the ids {others})"
            raise DataError(f"collection {self.id}: {message}; use the same ids in both", code="no-judged-queries")
        return judged_only

    def digest(self) -> str:
        """A digest of documents, queries and judgements. It reads all of them."""
        digest = hashlib.sha256()
        for table in (*self.documents(), *([self.queries] if self.has_queries else [])):
            for row in zip(table[0].to_pylist(), table["text"].to_pylist(), strict=True):
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        if self.has_judgements:
            digest.update(repr(self.judgements.to_pydict()).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]

    def save(self, folder: str | Path) -> Path:
        """Write documents, queries and judgements to a new folder that ``open`` reads. An existing folder is kept."""
        out = Path(folder)
        if out.is_dir():
            return out
        with new_folder(out) as writing:
            with pq.ParquetWriter(writing / "docs.parquet", DOCUMENTS) as documents:
                for batch in self.documents():
                    documents.write_table(conform(batch, DOCUMENTS, self.id))
            if self.has_queries:
                pq.write_table(self.queries, writing / "queries.parquet")
            if self.has_judgements:
                pq.write_table(self.judgements, writing / "qrels.parquet")
        return out

    def _no(self, what: str) -> DataError:
        hint = f"; {self.hint}" if self.hint else ""
        return DataError(f"collection {self.id}: it has no {what}{hint}", code="missing-part", part=what)


def open_collection(source: object, fields: Sequence[str] = (), split: str | None = None) -> Collection:
    """Open a collection: "demo", "irds:ID", a folder, a file of documents, or documents in memory.

    ``fields`` names the fields that make up the text of a document. ``split`` chooses among several judgement (and
    query) files of a folder; it can also be written after the folder, as in "FOLDER@dev". If no split is chosen, the
    file without a split in its name is read; if there is none, the file of the split ``test``, or else the only file.
    Open a folder named demo as "./demo".
    """
    named = _as_fields(fields)
    if isinstance(source, Collection):
        _refuse_split(source.id, split, "name the split when you open its folder: Collection.open(FOLDER, split=SPLIT)")
        return replace(source, fields=named or source.fields)
    if not isinstance(source, str | os.PathLike):
        _refuse_split("in memory", split, "leave it out")
        hint = "it has only documents in memory; give ⟨queries⟩ and ⟨qrels⟩, or a folder with queries.* and qrels.*"
        return Collection("in memory", partial(_read_memory, held_in_memory(source)), fields=named, hint=hint)
    if source == "demo":
        _refuse_split("demo", split, "leave it out")
        opened = replace(_from_folder(_FOLDER, named, None), id="demo")
    elif isinstance(source, str) and source.startswith(_IRDS):
        _refuse_split(source, split, "in ir_datasets, the split is part of the id, as in irds:beir/nfcorpus/test")
        dataset = source.removeprefix(_IRDS)
        has_queries, has_judgements = irds_parts(dataset, named)
        subsets = irds_subsets(dataset)
        opened = Collection(
            source, partial(irds_documents, dataset), partial(irds_queries, dataset) if has_queries else None,
            partial(irds_judgements, dataset) if has_judgements else None, fields=named,
            hint=f"use one of its subsets: {listing(subsets)}" if subsets else "",
        )  # fmt: skip
    else:
        opened = _from_path(source, named, split)
    name = os.fspath(source)
    return opened if fields else replace(opened, source=f"{name}@{split}" if split else name)


def _as_fields(fields: Sequence[str]) -> tuple[str, ...]:
    """Convert field names to a tuple. A text is one name, not a sequence of letters."""
    return (fields,) if isinstance(fields, str) else tuple(fields)


def _refuse_split(name: str, split: str | None, do: str) -> None:
    if split is not None:
        raise ConfigError(f"collection {name}: only a folder has splits, found split {split!r}; {do}", code="no-split")


def _from_path(source: str | os.PathLike[str], fields: tuple[str, ...], split: str | None) -> Collection:
    # An empty path would mean the current folder.
    expected = "expected 'demo', 'irds:ID', a folder or a file of documents"
    if not os.fspath(source):
        raise ConfigError(f"collection '': {expected}, found no name", code="no-name")
    path = Path(source)
    try:
        if path.is_dir():
            return _from_folder(path, fields, split)
        exists = path.exists()
    except (OSError, ValueError):
        exists = False
    if not exists:
        if folder := folder_and_split(path):
            if split is not None:
                raise ConfigError(f"collection {path}: found two splits, {folder[1]!r} and {split!r}; name one")
            return replace(_from_folder(folder[0], fields, folder[1]), id=str(path))
        raise DataError(f"collection {path}: no such file or folder; {expected}", code="missing-file")
    _refuse_split(str(path), split, "give the folder that contains this file as the collection")
    hint = "this collection is a single file of documents; give a folder that also has queries.* and qrels.*"
    files = documents_at(path).files
    return Collection(str(path), partial(read_document_files, files, path), files=files, fields=fields, hint=hint)


def _from_folder(folder: Path, fields: tuple[str, ...], split: str | None) -> Collection:
    layout = find_layout(folder, split)
    hint = "expected files queries.* and qrels.* (or a folder qrels/) in the folder of the collection"
    read = partial(read_document_files, layout.documents, folder, titled=layout.titled)
    queries = layout.read_queries if layout.queries else None
    judgements = layout.read_judgements if layout.judgements else None
    return Collection(
        str(folder), read, queries, judgements, layout.documents, fields, hint, layout.titled, layout.note
    )


def _read_memory(source: object, fields: tuple[str, ...], _meter: Meter) -> Iterator[pa.Table]:
    table = documents_in_memory(source, fields)
    for start in range(0, table.num_rows, _BATCH):
        yield table.slice(start, _BATCH)
