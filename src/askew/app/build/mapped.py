"""Counts of mentions and ranks of ids as memory-mapped files, which all workers share.

They are computed from finished steps, so an incomplete or damaged folder is written again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import DataError, StoreError
from askew.core.ranking import Ints
from askew.core.tables import counts_of
from askew.plugins.kinds import DocMentions
from askew.rankers.disk import open_header, write_header

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
    arrays = {Path(name).stem: _load(folder / name) for name in header["files"]}
    return arrays, header


def write_mentions(
    folder: Path, parts: Iterable[pa.Table], doc_ids: pa.Array, documents: int, who: str, by_group: bool, where: str
) -> dict[str, Any]:
    """Write the counts of mentions of all documents; documents after the last of ``doc_ids`` have no text.

    ``by_group`` stores the counts of a group together, for reading one group at a time.
    """
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
            counts = _new(folder, "counts", np.int32, (documents, len(groups)), by_group)
        counts[at:stop], known[at:stop] = found, True
        tokens[at:stop] = np.maximum(part["tokens"].to_numpy(), 0)
        at = stop
    if at != len(doc_ids):
        raise DataError(f"{where}: the documents have changed since they were indexed")
    if counts is None:
        counts = _new(folder, "counts", np.int32, (documents, 0), by_group)
    for one in (counts, tokens, known):
        one.flush()
    return {"groups": list(groups)}


def _new(folder: Path, name: str, kind: Any, shape: tuple[int, ...], by_column: bool = False) -> Any:
    path = folder / f"{name}.npy"
    if 0 in shape:
        np.save(path, np.zeros(shape, kind))
        return _Nothing()
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape, fortran_order=by_column)


def _load(path: Path) -> Any:
    """Map an array from disk; a short one is read, because an empty file cannot be mapped."""
    is_long = path.stat().st_size > _SHORT
    return np.asarray(np.load(path, mmap_mode="r" if is_long else None))


class _Nothing:
    """Takes the place of an empty array, which cannot be mapped."""

    def __setitem__(self, place: Any, value: Any) -> None:
        pass

    def flush(self) -> None:
        pass


def mentions_of(arrays: dict[str, Any], header: dict[str, Any]) -> DocMentions:
    """Return the mentions of a folder that ``write_mentions`` wrote."""
    return DocMentions(tuple(header["groups"]), arrays["counts"], arrays["tokens"], arrays["known"])


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
