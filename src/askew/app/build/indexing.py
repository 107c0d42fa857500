"""Build an index with workers: each indexes a range of the documents, and the shards are merged.

The merged index has the same bytes as an index that is built by one process.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from askew.engine.executor import Executor
from askew.engine.manifest import Manifest
from askew.engine.run import Progress, Source, run_step
from askew.engine.store import Store
from askew.plugins.registry import build
from askew.rankers.bm25.shards import merge_shards
from askew.rankers.disk import keeping_texts, new_folder

STEP = "index-shards"
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
            pieces = [piece for path in sorted(folder.iterdir()) for piece in _pieces(path)]
        counts = [rows.num_rows, *[0] * (len(pieces) - 1)]
        names, numbers, data = zip(*pieces, strict=True)
        return pa.table([counts, names, numbers, pa.array(data, pa.large_binary())], schema=_SCHEMA), {}


def _pieces(path: Path) -> list[tuple[str, int, bytes]]:
    data = path.read_bytes()
    starts = range(0, max(len(data), 1), _PIECE)
    return [(path.name, number, data[at : at + _PIECE]) for number, at in enumerate(starts)]


def can_shard(ranker: str) -> bool:
    """Whether indexes of this kind can be merged."""
    return ranker == "bm25"


def build_in_shards(
    store: Store, documents: Source, folder: Path, ranker: str, settings: Mapping[str, Any], executor: Executor,
    progress: Progress | None = None,
) -> None:  # fmt: skip
    """Index the documents with workers, and merge the shards into a folder. Progress is in documents."""
    make = partial(IndexShards, ranker, dict(settings))
    manifest = run_step(store, STEP, make(), documents, SHARD_ROWS, progress, executor, make).manifest
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
    _remove(store, manifest)


def _remove(store: Store, manifest: Manifest) -> None:
    """Remove the shards, which are as large as the index and no longer needed."""
    name = f"{manifest.step}-{manifest.key}"
    for file in ("manifest.json", *store.files.list(name)):
        store.files.delete(f"{name}/{file}")
