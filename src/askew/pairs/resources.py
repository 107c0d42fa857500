"""Resources that the steps of a build share: the collection, its index, its mentions, its judgements.

Each resource has a key that identifies its content and is known before any work. Each is computed once and kept in the
store.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import DataError, StoreError
from askew.core.files import fingerprint
from askew.core.groups import ANY
from askew.core.plugins import build
from askew.core.protocols import DocMentions, Stage
from askew.core.ranking import Ints
from askew.core.store.files import LocalFiles, fetch_folder, has_folder, put_folder
from askew.core.store.manifest import Manifest
from askew.core.store.steps import Executor, Progress, Source, StepProgress, run_step, step_key
from askew.core.store.store import Store
from askew.core.tables import counts_of
from askew.data.collection import Collection, open_collection
from askew.measures.counts import STEP
from askew.measures.lists import JudgedQueries
from askew.pairs.gains import PairParts
from askew.search.bm25.build import merge_shards
from askew.search.disk import keeping_texts, new_folder, open_header, read_doc_ids, write_header
from askew.search.retrieve import index as index_documents


def frames_of(store: Store, manifest: Manifest, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
    """Read the rows of a finished step, part by part."""
    for part in store.read(manifest, columns):
        yield pl.DataFrame(pl.from_arrow(part))


def step_parts(store: Store, manifest: Manifest) -> PairParts:
    """Return the rows of a step that keeps queries together (pairs, held-out), as parts of whole queries."""
    return PairParts(lambda columns: frames_of(store, manifest, columns), _columns(store, manifest))


def query_parts(store: Store, manifest: Manifest) -> PairParts:
    """Return the rows of a step that may cut queries (such as scores), regrouped into parts of whole queries."""

    def read(columns: list[str]) -> Iterator[pl.DataFrame]:
        names = list(dict.fromkeys(["query_id", *columns]))
        for frame in _whole_queries(frames_of(store, manifest, names)):
            yield frame.select(columns)

    return PairParts(read, _columns(store, manifest))


def _columns(store: Store, manifest: Manifest) -> list[str]:
    """Return the columns in the order of the file; a manifest has them in alphabetical order."""
    if not manifest.parts:
        return list(manifest.columns)
    return list(store.open_part(manifest, manifest.parts[0]).schema_arrow.names)


def _whole_queries(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Regroup rows so that every frame ends where a query ends."""
    left: pl.DataFrame | None = None
    for frame in frames:
        rows = frame if left is None else pl.concat([left, frame])
        runs = rows["query_id"].rle_id()
        last = int((runs == runs[-1]).arg_max() or 0) if rows.height else 0
        if last:
            yield rows[:last]
        left = rows[last:]
    if left is not None and left.height:
        yield left


INDEXING_STEP = "index-shards"
# Documents of a shard: enough for cheap merging, few enough to send between machines.
SHARD_ROWS = 1 << 18
_PIECE = 1 << 24
_SCHEMA = pa.schema([
    ("documents", pa.int64()), ("file", pa.string()), ("piece", pa.int32()), ("data", pa.large_binary())
])  # fmt: skip


class IndexShards:
    """Indexes documents and returns the files of the index as rows, in pieces."""

    name = "index-shards"
    version = 1

    def __init__(self, ranker: str, settings: Mapping[str, Any]) -> None:
        self._ranker, self._settings = ranker, dict(settings)

    def settings(self) -> Mapping[str, Any]:
        """Return the kind of index and its settings."""
        return {"ranker": self._ranker, "settings": self._settings}

    def rows_used(self, table: pa.Table) -> int:
        """Return the number of indexed documents, which are all documents."""
        return int(pc.sum(table["documents"]).as_py() or 0)

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return a table with the files of the index in pieces. Its first row has the number of documents."""
        with tempfile.TemporaryDirectory(prefix="askew-") as place:
            folder = new_folder(Path(place) / "shard")
            documents = keeping_texts(iter([rows]), folder)
            build("index", self._ranker, {**self._settings, "documents": documents, "folder": folder})
            pieces = []
            for path in sorted(folder.iterdir()):
                data = path.read_bytes()
                starts = range(0, max(len(data), 1), _PIECE)
                pieces += [(path.name, number, data[at : at + _PIECE]) for number, at in enumerate(starts)]
        counts = [rows.num_rows, *[0] * (len(pieces) - 1)]
        names, numbers, contents = zip(*pieces, strict=True)
        return pa.table([counts, names, numbers, pa.array(contents, pa.large_binary())], schema=_SCHEMA), {}


def build_in_shards(
    store: Store, documents: Source, folder: Path, ranker: str, settings: Mapping[str, Any], executor: Executor,
    progress: Progress | None = None,
) -> None:  # fmt: skip
    """Index the documents with workers, and merge the shards into a folder. Progress is in documents."""
    make = partial(IndexShards, ranker, dict(settings))
    manifest = run_step(store, INDEXING_STEP, make(), documents, SHARD_ROWS, progress, executor, make).manifest
    with tempfile.TemporaryDirectory(prefix="askew-", dir=folder.parent) as place:
        shards = []
        for number, part in enumerate(store.read(manifest)):
            shards.append(new_folder(Path(place) / str(number)))
            for name, data in zip(part["file"].to_pylist(), part["data"], strict=True):
                with (shards[-1] / name).open("ab") as file:
                    file.write(data.as_buffer())
        # A build that was killed may have left an incomplete index there.
        shutil.rmtree(folder, ignore_errors=True)
        merge_shards(shards, folder)
    # The shards are as large as the index and no longer needed.
    name = f"{manifest.step}-{manifest.key}"
    for file in ("manifest.json", *store.files.list(name)):
        store.files.delete(f"{name}/{file}")


KIND = "mapped"
_CHUNK = 1 << 20
_SHORT = 1 << 16


def mapped(folder: Path, make: Callable[[Path], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the memory-mapped arrays of a folder by name, and its header; ``make`` writes missing arrays.

    The checksums of all files are verified when the folder is opened.
    """
    try:
        header = open_header(folder, KIND) if (folder / "header.json").exists() else None
    except StoreError:
        header = None
    if header is None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        facts = make(folder)
        write_header(folder, KIND, sorted(path.name for path in folder.glob("*.npy")), facts)
        header = open_header(folder, KIND)
    arrays = {}
    for name in header["files"]:
        # A short array is read, because an empty file cannot be mapped.
        is_long = (folder / name).stat().st_size > _SHORT
        arrays[Path(name).stem] = np.asarray(np.load(folder / name, mmap_mode="r" if is_long else None))
    return arrays, header


def write_mentions(
    folder: Path, parts: Iterable[pa.Table], doc_ids: pa.Array, documents: int, who: str, where: str
) -> dict[str, Any]:
    """Write the counts of mentions of all documents; documents after the last of ``doc_ids`` have no text."""
    counts: Any = None
    groups: tuple[str, ...] = ()
    tokens = _new(folder, "tokens", np.int32, (documents,))
    known = _new(folder, "known", np.bool_, (documents,))
    at = 0
    for part in parts:
        stop = at + part.num_rows
        if not part["doc_id"].combine_chunks().equals(doc_ids[at:stop]):
            raise DataError(f"{where}: the documents have changed since they were indexed")
        groups, found = counts_of(part, who)
        if counts is None:
            counts = _new(folder, "counts", np.int32, (documents, len(groups)))
        counts[at:stop], known[at:stop] = found, True
        tokens[at:stop] = np.maximum(part["tokens"].to_numpy(), 0)
        at = stop
    if at != len(doc_ids):
        raise DataError(f"{where}: the documents have changed since they were indexed")
    if counts is None:
        counts = _new(folder, "counts", np.int32, (documents, 0))
    for one in (counts, tokens, known):
        if isinstance(one, np.memmap):
            one.flush()
    return {"groups": list(groups)}


def _new(folder: Path, name: str, kind: Any, shape: tuple[int, ...]) -> Any:
    path = folder / f"{name}.npy"
    if 0 in shape:
        # An empty array cannot be mapped.
        empty = np.zeros(shape, kind)
        np.save(path, empty)
        return empty
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)


def write_id_ranks(folder: Path, ids: pa.Array) -> dict[str, Any]:
    """Write the rank of each document id in byte order; no file if the ids are already sorted."""
    steps = range(0, max(len(ids) - 1, 0), _CHUNK)
    pairs = ((ids[at : at + _CHUNK + 1][:-1], ids[at + 1 : at + _CHUNK + 1]) for at in steps)
    if not all(pc.all(pc.less(*pair)).as_py() for pair in pairs):
        ranks = np.empty(len(ids), np.int64)
        ranks[pc.sort_indices(ids).to_numpy()] = np.arange(len(ids))
        np.save(folder / "ranks.npy", ranks)
    return {"ids": len(ids)}


def ordinals_of(wanted: pa.Array, ids: pa.Array) -> Ints:
    """Return the position of each wanted id among all ids; -1 if it is absent. Only wanted ids are hashed."""
    places = np.full(len(wanted), -1, np.int64)
    for at in range(0, len(ids), _CHUNK):
        found = pc.index_in(ids[at : at + _CHUNK], value_set=wanted)
        here = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        places[found.drop_null().to_numpy()] = here + at
    return places


@dataclass(frozen=True)
class TableSource:
    """A table as the source of a step, identified by its content."""

    table: pa.Table

    @cached_property
    def key(self) -> str:
        """The fingerprint of all values."""
        return fingerprint({name: self.table[name].to_pylist() for name in self.table.column_names})

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the whole table as one batch."""
        yield self.table


@dataclass(frozen=True)
class Documents:
    """The documents of a collection as the source of a step."""

    collection: Collection
    store: Store

    @cached_property
    def key(self) -> str:
        """A fingerprint of the files, of the ir_datasets id, or of the documents in memory."""
        digests = [self.store.digest(file) for file in self.collection.files]
        if not digests and self.collection.id.startswith("irds:"):
            digests = [self.collection.id]
        digests = digests or [fingerprint(batch.to_pydict()) for batch in self.batches()]
        fields = list(self.collection.fields)
        # The texts of a file differ if its titles are read too.
        titled = {"titled": True} if self.collection.titled and not fields else {}
        return fingerprint({"documents": digests, "fields": fields, **titled})

    def batches(self) -> Iterator[pa.Table]:
        """Stream the documents."""
        return self.collection.documents()


class Resources:
    """A collection, and what is computed from it in a store."""

    def __init__(self, source: object, store: Store, fields: Sequence[str] = (), split: str | None = None) -> None:
        self.store = store
        # The workers of this process, if any: they build an index in shards.
        self.executor: Executor | None = None
        self.progress: StepProgress | None = None
        # Whether Python functions that a recipe names may be loaded.
        self.code = True
        self.collection = open_collection(source, fields, split)
        self.documents = Documents(self.collection, store)

    @cached_property
    def queries(self) -> TableSource:
        """All queries."""
        return TableSource(self.collection.queries)

    @cached_property
    def judgements(self) -> TableSource:
        """All judgements."""
        return TableSource(self.collection.judgements)

    @cached_property
    def relevant(self) -> pa.Table:
        """The pairs of query and document that are judged relevant."""
        table = self.judgements.table
        return table.filter(pc.greater(table["relevance"], 0)).select(["query_id", "doc_id"])

    def index_key(self, ranker: str, settings: dict[str, Any]) -> str:
        """Return the key of an index of the documents for a ranker."""
        return fingerprint({"index": ranker, "settings": settings, "documents": self.documents.key})

    def index(self, ranker: str = "bm25", settings: dict[str, Any] | None = None) -> Path:
        """Return the local folder of the index; the index is downloaded from the store or built if it is missing.

        If the store is remote, a new index is uploaded, so that no other machine builds it again.
        """
        name = f"index-{ranker}-{self.index_key(ranker, settings or {})}"
        folder = self.store.local / name
        if (folder / "header.json").exists():
            return folder
        files, elsewhere = self.store.files, not isinstance(self.store.files, LocalFiles)
        # Two processes may need the index at once; the second one finds it built.
        with self.store.lock(name):
            if (folder / "header.json").exists():
                return folder
            if elsewhere and has_folder(files, name):
                fetch_folder(files, name, folder)
                return folder
            if self.executor is not None and ranker == "bm25":
                tell = self.progress
                done = None if tell is None else lambda rows: tell(f"index {ranker}", rows, 0)
                build_in_shards(self.store, self.documents, folder, ranker, settings or {}, self.executor, done)
            else:
                index_documents(self.collection, folder, ranker, settings or {})
            if elsewhere:
                put_folder(files, name, folder)
        return folder

    @cached_property
    def doc_ids(self) -> pa.Array:
        """The ids of the documents in the order of the index."""
        return read_doc_ids(self.index()).cast(pa.string())

    def mentions_key(self, stage: Stage) -> str:
        """Return the key of the mentions of the documents."""
        return step_key(stage, self.documents.key)

    def mentions(self, stage: Stage, who: str = ANY, step: str = STEP) -> DocMentions:
        """Return the mentions in every document, in the order of the index, memory-mapped; ``who`` restricts them.

        Judged documents that are not in the collection come last and are marked as unknown.
        """
        key, documents = self.mentions_key(stage), len(self.judged_documents[0])
        name = f"mapped-{step}-{fingerprint([key, who, documents, self.index_key('bm25', {})])}"

        where = f"collection {self.collection.id}"

        def make(folder: Path) -> dict[str, Any]:
            return write_mentions(folder, self.store.read(manifest), self.doc_ids, documents, who, where)

        with self.store.lock(f"{step}-{key}"):
            manifest = run_step(self.store, step, stage, self.documents).manifest
            arrays, header = mapped(self.store.local / name, make)
        return DocMentions(tuple(header["groups"]), arrays["counts"], arrays["tokens"], arrays["known"])

    @cached_property
    def id_ranks(self) -> Ints | None:
        """The rank of each document id in byte order, which breaks ties; None if it equals the ordinal."""
        ids = self.judged_documents[0]
        extra = fingerprint(ids[len(self.doc_ids) :].to_pylist())
        name = f"mapped-ids-{fingerprint([self.index_key('bm25', {}), extra])}"
        with self.store.lock(name):
            arrays, _ = mapped(self.store.local / name, lambda folder: write_id_ranks(folder, ids))
        return arrays.get("ranks")

    @cached_property
    def judged_documents(self) -> tuple[pa.Array, JudgedQueries]:
        """All document ids (judged documents that are not in the collection come last), and the judgements."""
        table = self.judgements.table
        wanted = pc.unique(table["doc_id"]).cast(pa.string())
        places = ordinals_of(wanted, self.doc_ids)
        absent = np.flatnonzero(places < 0)
        places[absent] = len(self.doc_ids) + np.arange(len(absent))
        every = pa.concat_arrays([self.doc_ids, wanted.take(pa.array(absent))]) if len(absent) else self.doc_ids
        docs = places[pc.index_in(table["doc_id"], value_set=wanted).to_numpy()]
        return every, JudgedQueries.of(table["query_id"], docs, table["relevance"].to_numpy().astype(np.int64))
