"""Mentions of the documents that a job needs: counted from the texts, or read from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import DataError
from askew.core.lexicon import Lexicon
from askew.corpora.documents import document_files, read_documents
from askew.engine.manifest import Manifest
from askew.engine.store import Store
from askew.mentions.count import MentionCounter
from askew.plugins.kinds import DocMentions
from askew.stages.annotate import DocumentFiles, stored_mentions
from askew.stages.universe import as_documents

# (lexicon id, tokenizer, overlap)
Key = tuple[str, str, str]
Progress = Callable[[int, int], None]


@dataclass
class DocumentSource:
    """Where texts come from, and how they are read."""

    docs: object
    fields: tuple[str, ...] = ()
    published: bool = False
    store: Store | None = None

    def stored(self, lexicon: Lexicon, key: Key) -> Manifest | None:
        """The finished annotation of these documents, if the store has it."""
        if self.store is None or not isinstance(self.docs, str | Path):
            return None
        files = DocumentFiles(self.store, Path(self.docs), self.fields, self.published)
        return stored_mentions(self.store, files, lexicon, key[1], key[2])

    def read_stored(self, manifest: Manifest) -> Iterable[pa.Table]:
        """The parts of a stored annotation."""
        return () if self.store is None else self.store.read(manifest)

    def batches(self) -> Iterable[pa.Table]:
        """Batches of (doc_id, text)."""
        tables = as_documents(self.docs)
        if tables is not None:
            return tables
        return read_documents(Path(str(self.docs)), self.fields, self.published)

    @property
    def size(self) -> int:
        """About how many bytes there are to read; 0 if unknown."""
        if isinstance(self.docs, str | Path):
            return sum(file.stat().st_size for file in document_files(Path(self.docs)))
        return 0


def make_counter(key: Key, lexicons: Mapping[str, Lexicon]) -> MentionCounter:
    """The counter for a key."""
    lexicon_id, tokens, overlap = key
    lexicon = lexicons[lexicon_id]
    return MentionCounter(lexicon.exclusive() if overlap == "first" else lexicon, tokens)


def count_needed(
    source: DocumentSource, doc_ids: pa.Array, needed: npt.NDArray[np.bool_], keys: Iterable[Key],
    lexicons: Mapping[str, Lexicon], progress: Progress | None = None,
) -> tuple[dict[Key, DocMentions], list[str]]:  # fmt: skip
    """Read from the store what is there; stream the documents once for the rest. Also what there is to tell of it."""
    found: dict[Key, DocMentions] = {}
    rest = []
    for key in keys:
        manifest = source.stored(lexicons[key[0]], key)
        if manifest is None:
            rest.append(key)
        else:
            found[key] = _read_stored(source, manifest, doc_ids, needed)
    notes = []
    if found and source.store is not None:
        most = max(int(mentions.known.sum()) for mentions in found.values())
        which = f" ({', '.join(f'{key[0]}, {key[1]}' for key in found)})" if rest else ""
        notes.append(f"counts of {most} documents read from {source.store.root}{which}")
    if rest:
        found |= _count_streaming(source, doc_ids, needed, rest, lexicons, progress)
    return found, notes


def _read_stored(
    source: DocumentSource, manifest: Manifest, doc_ids: pa.Array, needed: npt.NDArray[np.bool_]
) -> DocMentions:
    columns = [name for name in manifest.columns if name.startswith("mentions_")]
    groups = tuple(name.removeprefix("mentions_") for name in columns)
    found = _empty(groups, len(doc_ids))
    ordinals = np.flatnonzero(needed)
    wanted = doc_ids.take(pa.array(ordinals))
    for part in source.read_stored(manifest):
        rows, places = _places(part, wanted, ordinals)
        _refuse_twice(places, found.known, doc_ids)
        chosen = part.take(pa.array(rows))
        found.tokens[places] = chosen["tokens"].to_numpy()
        for group, name in enumerate(columns):
            found.counts[places, group] = chosen[name].to_numpy()
    return found


def _empty(groups: tuple[str, ...], size: int) -> DocMentions:
    counts = np.zeros((size, len(groups)), np.int32)
    return DocMentions(groups, counts, np.zeros(size, np.int32), np.zeros(size, np.bool_))


def _count_streaming(
    source: DocumentSource, doc_ids: pa.Array, needed: npt.NDArray[np.bool_], keys: Iterable[Key],
    lexicons: Mapping[str, Lexicon], progress: Progress | None,
) -> dict[Key, DocMentions]:  # fmt: skip
    """Stream the documents once; count every key in those that are needed."""
    counters = {key: make_counter(key, lexicons) for key in keys}
    size = len(doc_ids)
    found = {key: _empty(counter.groups, size) for key, counter in counters.items()}
    ordinals = np.flatnonzero(needed)
    wanted = doc_ids.take(pa.array(ordinals))
    seen = np.zeros(size, np.bool_)
    total, done = source.size, 0
    for batch in source.batches():
        done += batch.nbytes
        rows, places = _places(batch, wanted, ordinals)
        if len(places):
            _refuse_twice(places, seen, doc_ids)
            texts = batch["text"].combine_chunks().take(pa.array(rows))
            for key, counter in counters.items():
                counted = counter.count(texts)
                found[key].counts[places] = counted.counts
                found[key].tokens[places] = counted.tokens
                found[key].known[places] = True
        if progress:
            progress(min(done, total), total)
    return found


def _places(
    batch: pa.Table, wanted: pa.Array, ordinals: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    at = pc.index_in(batch["doc_id"], value_set=wanted)
    at = at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at
    hit = at.is_valid()
    rows = np.flatnonzero(hit.to_numpy(zero_copy_only=False))
    return rows, ordinals[at.drop_null().to_numpy()]


def _refuse_twice(places: npt.NDArray[np.int64], seen: npt.NDArray[np.bool_], doc_ids: pa.Array) -> None:
    unique, counts = np.unique(places, return_counts=True)
    again = np.concatenate([unique[counts > 1], places[seen[places]]])
    if len(again):
        raise DataError(f"documents: the document {doc_ids[int(again[0])].as_py()!r} stands there more than once")
    seen[places] = True
