"""What the steps of a build share beside their rows: the collection, its index, its mentions, its judgements.

Each has a key that names its content, known before any work; each is made once, and kept in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.build.indexing import build_in_shards, can_shard
from askew.app.build.mapped import mapped, mentions_of, ordinals_of, write_id_ranks, write_mentions
from askew.app.scoring.annotate import STEP
from askew.app.scoring.lists import JudgedQueries
from askew.app.search.retrieve import index_documents
from askew.core.fingerprint import fingerprint
from askew.core.ranking import Ints
from askew.core.who import ANY
from askew.corpora.collection import Collection, open_collection
from askew.engine.executor import Executor
from askew.engine.files import LocalFiles
from askew.engine.folders import fetch_folder, has_folder, put_folder
from askew.engine.run import run_step, step_key
from askew.engine.store import Store
from askew.plugins.kinds import DocMentions, Stage
from askew.rankers.disk import read_doc_ids


@dataclass(frozen=True)
class TableSource:
    """A table as the source of a step, named by its content."""

    table: pa.Table

    @cached_property
    def key(self) -> str:
        """The fingerprint of every value."""
        return fingerprint({name: self.table[name].to_pylist() for name in self.table.column_names})

    def batches(self) -> Iterator[pa.Table]:
        """The table, whole."""
        yield self.table


@dataclass(frozen=True)
class Documents:
    """The documents of a collection as the source of a step."""

    collection: Collection
    store: Store

    @cached_property
    def key(self) -> str:
        """The digests of the files, the id of what ir_datasets holds, or the fingerprints of what is in memory."""
        digests = [self.store.digest(file) for file in self.collection.files]
        if not digests and self.collection.id.startswith("irds:"):
            digests = [self.collection.id]
        digests = digests or [fingerprint(batch.to_pydict()) for batch in self.batches()]
        fields = list(self.collection.fields)
        # The same file has other texts where its titles are read as well.
        titled = {"titled": True} if self.collection.titled and not fields else {}
        return fingerprint({"documents": digests, "fields": fields, **titled})

    def batches(self) -> Iterator[pa.Table]:
        """Documents, streamed."""
        return self.collection.documents()


class Resources:
    """A collection in a store."""

    def __init__(self, source: object, store: Store, fields: Sequence[str] = (), split: str | None = None) -> None:
        self.store = store
        # The workers of this process, where it has some: they build an index in shards.
        self.executor: Executor | None = None
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
        """The queries with the documents judged relevant to them."""
        table = self.judgements.table
        return table.filter(pc.greater(table["relevance"], 0)).select(["query_id", "doc_id"])

    def index_key(self, ranker: str, settings: dict[str, Any]) -> str:
        """Names an index of the documents for a ranker."""
        return fingerprint({"index": ranker, "settings": settings, "documents": self.documents.key})

    def index(self, ranker: str = "bm25", settings: dict[str, Any] | None = None) -> Path:
        """The folder of the index on this machine: found, fetched from the store, or made.

        Where the store is not a folder, an index that is made is put there too, so that no other machine makes it.
        """
        name = f"index-{ranker}-{self.index_key(ranker, settings or {})}"
        folder = self.store.local / name
        if (folder / "header.json").exists():
            return folder
        files, elsewhere = self.store.files, not isinstance(self.store.files, LocalFiles)
        # Two processes may want it at once; the second finds it made.
        with self.store.lock(name):
            if (folder / "header.json").exists():
                return folder
            if elsewhere and has_folder(files, name):
                fetch_folder(files, name, folder)
                return folder
            if self.executor is not None and can_shard(ranker):
                build_in_shards(self.store, self.documents, folder, ranker, settings or {}, self.executor)
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
        """Names the mentions of the documents."""
        return step_key(stage, self.documents.key)

    def mentions(self, stage: Stage, who: str = ANY, step: str = STEP, by_group: bool = False) -> DocMentions:
        """Mentions of every document, or those of some classes, in the order of the index; mapped from disk.

        Documents that are judged and not in the collection come after the others, and are not known.
        """
        key, documents = self.mentions_key(stage), len(self.judged_documents[0])
        name = f"mapped-{step}-{fingerprint([key, who, documents, self.index_key('bm25', {})])}"

        where = f"collection {self.collection.id}"

        def make(folder: Path) -> dict[str, Any]:
            return write_mentions(folder, self.store.read(manifest), self.doc_ids, documents, who, by_group, where)

        with self.store.lock(f"{step}-{key}"):
            manifest = run_step(self.store, step, stage, self.documents).manifest
            return mentions_of(*mapped(self.store.local / name, make))

    @cached_property
    def id_ranks(self) -> Ints | None:
        """The rank of each document id by its bytes, by which ties are broken; None where that is its ordinal."""
        ids = self.judged_documents[0]
        extra = fingerprint(ids[len(self.doc_ids) :].to_pylist())
        name = f"mapped-ids-{fingerprint([self.index_key('bm25', {}), extra])}"
        with self.store.lock(name):
            arrays, _ = mapped(self.store.local / name, lambda folder: write_id_ranks(folder, ids))
        return arrays.get("ranks")

    @cached_property
    def judged_documents(self) -> tuple[pa.Array, JudgedQueries]:
        """All document ids, those that are judged and not in the collection at the end; and the judgements."""
        table = self.judgements.table
        wanted = pc.unique(table["doc_id"]).cast(pa.string())
        places = ordinals_of(wanted, self.doc_ids)
        absent = np.flatnonzero(places < 0)
        places[absent] = len(self.doc_ids) + np.arange(len(absent))
        every = pa.concat_arrays([self.doc_ids, wanted.take(pa.array(absent))]) if len(absent) else self.doc_ids
        docs = places[pc.index_in(table["doc_id"], value_set=wanted).to_numpy()]
        return every, JudgedQueries.of(table["query_id"], docs, table["relevance"].to_numpy().astype(np.int64))
