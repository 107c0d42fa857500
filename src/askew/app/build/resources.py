"""Resources that the steps of a build share: the collection, its index, its mentions, its judgements.

Each resource has a key that identifies its content and is known before any work. Each is computed once and kept in the
store.
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
from askew.engine.plan import StepProgress
from askew.engine.run import run_step, step_key
from askew.engine.store import Store
from askew.plugins.kinds import DocMentions, Stage
from askew.rankers.disk import read_doc_ids


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
            if self.executor is not None and can_shard(ranker):
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

    def mentions(self, stage: Stage, who: str = ANY, step: str = STEP, by_group: bool = False) -> DocMentions:
        """Return the mentions in every document, in the order of the index, memory-mapped; ``who`` restricts them.

        Judged documents that are not in the collection come last and are marked as unknown.
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
