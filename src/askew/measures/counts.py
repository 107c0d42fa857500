"""Mentions of the documents that a job needs: counted from the texts, or read from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import plugins as registry
from askew.core.defaults import TOKENIZER
from askew.core.errors import DataError, Note
from askew.core.files import fingerprint
from askew.core.groups import ANY, Groups, resolver_id
from askew.core.lexicon import Lexicon, load_lexicon
from askew.core.protocols import DocMentions
from askew.core.ranking import Floats
from askew.core.store.manifest import Manifest
from askew.core.store.steps import StepOutcome, run_step, step_key
from askew.core.store.store import Store
from askew.core.tables import conform, counts_of, mentions_schema
from askew.data.collection import Collection
from askew.data.documents import bytes_of, documents_at, read_documents
from askew.data.files import Meter
from askew.data.memory import documents_in_memory
from askew.measures.catalogue import Catalogue, find_preset
from askew.measures.common import directions_of, even_shares
from askew.measures.mentions import ClippedCounter, MentionCounter, counter_for
from askew.measures.requested import (
    CountKey,
    default_measures,
    fields_of,
    headline_measures,
    keys_of,
    measure_list,
    reads_as_published,
)
from askew.measures.resolver import Counters, ResolvedCounter, ResolvedMentions, default_resolver

# annotate: count the mentions of groups in a collection once, and keep the counts in the store.

STEP = "mentions"
# The number of tokens of a malformed line: with the published reading, a line without two columns.
MALFORMED = -1
# Called with the amount done and the total (0 if unknown): bytes of files, or rows in memory.
Progress = Callable[[int, int], None]


class Annotate:
    """Counts how often each document names each group."""

    name = "annotate"
    version = 2

    def __init__(
        self, lexicon: str | Lexicon = "rekabsaz2020", tokens: str = TOKENIZER, overlap: str = "all", resolver: str = ""
    ) -> None:
        self.lexicon = load_lexicon(lexicon)
        self.tokens, self.overlap, self.resolver = tokens, overlap, resolver and resolver_id(resolver)
        self._resolved = ResolvedCounter(self.lexicon, tokens, overlap, self.resolver) if resolver else None
        self.counter = self._resolved.plain if self._resolved else counter_for(self.lexicon, tokens, overlap)
        self._clipped = ClippedCounter(self.counter) if tokens == "unclipped" else None

    def settings(self) -> Mapping[str, Any]:
        """The lexicon id, the tokenizer and its origin, the overlap rule for shared terms, and the resolver."""
        found = {"lexicon": self.lexicon.id, "tokens": self.tokens, "overlap": self.overlap}
        found |= {"resolver": self.resolver} if self.resolver else {}
        origin = registry.origin("tokenizer", self.tokens)
        # A tokenizer of a plugin may change with the plugin's version. askew's own change with this stage's version.
        return found if origin.startswith("askew ") else {**found, "tokens_from": origin}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """One row of counts per document. No document is dropped."""
        found = self._resolved.count(rows["text"]) if self._resolved else self.counter.count(rows["text"])
        malformed = rows["text"].is_null().to_numpy()
        columns = [
            rows["doc_id"],
            pa.array(np.where(malformed, MALFORMED, found.tokens).astype(np.int32)),
            *(pa.array(found.counts[:, g]) for g in range(len(found.groups))),
        ]
        if self._clipped is not None:
            columns.append(pa.array(self._clipped.count(rows["text"], found).sum(axis=1, dtype=np.int32)))
        if isinstance(found, ResolvedMentions):
            columns += [pa.array(one) for one in found.by_class.reshape(len(rows), -1).T]
        schema = mentions_schema(found.groups, self._clipped is not None, self._resolved is not None)
        return conform(pa.table(columns, names=schema.names), schema, "annotate"), {}


@dataclass(frozen=True)
class Needs:
    """The counts that some measures need, and how the files are read."""

    stages: tuple[Annotate, ...]
    fields: tuple[str, ...] = ()
    published: bool = False


def needs_of(
    measures: str | Sequence[str] | None, preset: str | None, fields: tuple[str, ...] = (), groups: Groups | None = None
) -> Needs:
    """The counts that the given measures need, or those of the preset, or the default measures and the headline."""
    chosen = find_preset(preset) if preset else None
    catalogue = Catalogue(chosen, {"fields": "+".join(fields)} if fields else {}, groups=groups)
    requested = (
        default_measures(chosen, qrels=False, docs=True, background=True)
        if measures is None
        else measure_list(measures)
    )
    asked = catalogue.complete(requested)
    if measures is None and chosen is None:
        asked = [*asked, *headline_measures(groups, 1, default_resolver())]
    # One stage counts all classes of mentions.
    stages = {stage_of(key): Annotate(catalogue.lexicons[key.lexicon], *stage_of(key)[1:]) for key in keys_of(asked)}
    return Needs(tuple(stages.values()), fields_of(asked, fields), reads_as_published(asked, chosen))


def annotate(
    docs: Path, store: Store, stage: Annotate, fields: tuple[str, ...] = (), progress: Progress | None = None,
    published: bool = False,
) -> StepOutcome:  # fmt: skip
    """Count the mentions in a collection and store them, unless the store has them."""
    source = DocumentSource(docs, fields, published, store)
    if progress is None:
        return run_step(store, STEP, stage, source)
    total, told = source.size, progress
    return run_step(store, STEP, stage, source, progress=lambda _: told(source.meter.done, total))


def stage_of(key: CountKey) -> tuple[str, str, str, str]:
    """The arguments of the ``Annotate`` stage that has this count: lexicon, tokenizer, overlap and resolver."""
    return key.lexicon, key.tokens, key.overlap, key.resolver


@dataclass(frozen=True)
class _FoundCounts(DocMentions):
    """Mentions with a flag for malformed documents and the number of clipped words that were not counted."""

    malformed: npt.NDArray[np.bool_]
    clipped: npt.NDArray[np.int32] = field(kw_only=True)


@dataclass
class DocumentSource:
    """A source of document texts, and how they are read. ``store`` may have their counts."""

    docs: object
    fields: tuple[str, ...] = ()
    published: bool = False
    store: Store | None = None
    meter: Meter = field(default_factory=Meter)

    def stored(self, lexicon: Lexicon, key: CountKey) -> Manifest | None:
        """The finished annotation of these documents, if the store has it."""
        if self.store is None or not isinstance(self.docs, str | Path) or not self.store.has(STEP):
            return None
        return self.store.finished(STEP, step_key(Annotate(lexicon, *stage_of(key)[1:]), self.key))

    @cached_property
    def key(self) -> str:
        """For document files: a fingerprint of the files' digests, the fields and the way of reading."""
        assert self.store is not None
        files, titled = documents_at(Path(str(self.docs)))
        digests = [self.store.digest(file) for file in files]
        # The texts of a file differ if its titles are read as well.
        more = {"titled": True} if titled and not self.fields else {}
        return fingerprint({"documents": digests, "fields": list(self.fields), "published": self.published, **more})

    def read_stored(self, manifest: Manifest) -> Iterable[pa.Table]:
        """The parts of a stored annotation."""
        return () if self.store is None else self.store.read(manifest)

    def batches(self) -> Iterable[pa.Table]:
        """Batches of (doc_id, text)."""
        if isinstance(self.docs, str | Path):
            return read_documents(Path(self.docs), self.fields, self.published, self.meter)
        if isinstance(self.docs, Collection):
            return self.docs.documents(self.fields, self.meter)
        return [documents_in_memory(self.docs, self.fields)]

    @property
    def size(self) -> int:
        """The number of bytes to read; 0 for documents in memory."""
        if isinstance(self.docs, Collection):
            return self.docs.size
        return bytes_of(Path(self.docs)) if isinstance(self.docs, str | Path) else 0

    @property
    def name(self) -> str:
        """The name of the documents in messages."""
        if isinstance(self.docs, Collection):
            return f"documents {self.docs.id}"
        return f"documents {self.docs}" if isinstance(self.docs, str | Path) else "documents in memory"


def count_needed(
    source: DocumentSource, doc_ids: pa.Array, needed: npt.NDArray[np.bool_], keys: Iterable[CountKey],
    lexicons: Mapping[str, Lexicon], progress: Progress | None = None,
) -> tuple[dict[CountKey, DocMentions], list[str]]:  # fmt: skip
    """Read counts from the store, and stream the documents once for counts that it lacks. Also return notes."""
    found: dict[CountKey, _FoundCounts] = {}
    rest, manifests = [], []
    for key in keys:
        manifest = source.stored(lexicons[key[0]], key)
        if manifest is None:
            rest.append(key)
        else:
            manifests.append(manifest)
            found[key] = _read_stored(source, manifest, doc_ids, needed, key.who)
    notes: list[str] = []
    if found and source.store is not None:
        most = max(int(mentions.known.sum()) for mentions in found.values())
        which = f" ({', '.join(f'{key[0]}, {key[1]}' for key in found)})" if rest else ""
        message = f"the word counts of {most} documents were read from the store {source.store.files.where}{which}"
        notes.append(Note(message, code="stored-counts", documents=most))
    malformed = []
    if source.published and manifests:
        parts = source.read_stored(manifests[0])
        malformed = [sum(int((part["tokens"].to_numpy() == MALFORMED).sum()) for part in parts)]
    if rest:
        streamed, lines = _count_streaming(source, doc_ids, needed, rest, lexicons, progress)
        found, malformed = found | streamed, [lines]
    if any(malformed):
        notes.append(
            f"{source.name}: {malformed[0]} lines do not have two columns; as in the published scripts they are empty "
            "documents for RaB and ARaB, and unknown to FaiRR and NFaiRR"
        )
    # For the lexicon with the most words that were not counted.
    sums = [(int(one.clipped.sum()), int(one.counts.sum()), key[0].partition("@")[0]) for key, one in found.items()]
    left, counted, lexicon = max(sums, default=(0, 0, ""))
    if left:
        notes.append(
            f"{left:,} of {left + counted:,} words that name a group (lexicon {lexicon}) were not counted: they follow "
            "a full stop without a space, and may be the rest of another word, as 'he' of 'The' in 'channels.he'; "
            "tokens=word counts them"
        )
    return dict(found), notes


def _read_stored(
    source: DocumentSource, manifest: Manifest, doc_ids: pa.Array, needed: npt.NDArray[np.bool_], who: str
) -> _FoundCounts:
    columns = [name for name in manifest.columns if name.startswith("mentions_")]
    found = _empty(tuple(name.removeprefix("mentions_") for name in columns), len(doc_ids))
    ordinals = np.flatnonzero(needed)
    wanted = doc_ids.take(pa.array(ordinals))
    for part in source.read_stored(manifest):
        rows, places = _places(part, wanted, ordinals)
        _refuse_twice(source, places, found.known, doc_ids)
        chosen = part.take(pa.array(rows))
        tokens = chosen["tokens"].to_numpy()
        found.tokens[places] = np.maximum(tokens, 0)
        found.malformed[places] = tokens == MALFORMED
        found.counts[places] = counts_of(chosen, who)[1]
        # Clipped words have no class, so they are not missing from the counts of a class.
        if "clipped" in manifest.columns and who == ANY:
            found.clipped[places] = chosen["clipped"].to_numpy()
    return found


def _empty(groups: tuple[str, ...], size: int) -> _FoundCounts:
    counts, (tokens, clipped) = np.zeros((size, len(groups)), np.int32), np.zeros((2, size), np.int32)
    known, malformed = np.zeros((2, size), np.bool_)
    return _FoundCounts(groups, counts, tokens, known, malformed, clipped=clipped)


def _count_streaming(
    source: DocumentSource, doc_ids: pa.Array, needed: npt.NDArray[np.bool_], keys: Iterable[CountKey],
    lexicons: Mapping[str, Lexicon], progress: Progress | None,
) -> tuple[dict[CountKey, _FoundCounts], int]:  # fmt: skip
    """Stream the documents once and count every key in the needed ones. Also return the number of malformed lines."""
    known = Counters()
    counters = {key: known.of(lexicons[key.lexicon], *key[1:]) for key in keys}
    clipped = {key: ClippedCounter(one) for key, one in counters.items() if isinstance(one, MentionCounter)}
    size = len(doc_ids)
    found = {key: _empty(counter.groups, size) for key, counter in counters.items()}
    ordinals = np.flatnonzero(needed)
    wanted = doc_ids.take(pa.array(ordinals))
    seen = np.zeros(size, np.bool_)
    malformed, total, rows_read = 0, source.size, 0
    for batch in source.batches():
        malformed += batch["text"].null_count
        rows_read += batch.num_rows
        rows, places = _places(batch, wanted, ordinals)
        if len(places):
            _refuse_twice(source, places, seen, doc_ids)
            texts = batch["text"].combine_chunks().take(pa.array(rows))
            for key, counter in counters.items():
                counted = counter.count(texts)
                found[key].counts[places] = counted.counts
                found[key].tokens[places] = counted.tokens
                if key in clipped:
                    found[key].clipped[places] = clipped[key].count(texts, counted).sum(axis=1)
                found[key].known[places] = True
                found[key].malformed[places] = texts.is_null().to_numpy(zero_copy_only=False)
        if progress:
            progress(source.meter.done if total else rows_read, total)
    return found, malformed


def _places(
    batch: pa.Table, wanted: pa.Array, ordinals: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    at = pc.index_in(batch["doc_id"], value_set=wanted)
    at = at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at
    hit = at.is_valid()
    rows = np.flatnonzero(hit.to_numpy(zero_copy_only=False))
    return rows, ordinals[at.drop_null().to_numpy()]


def _refuse_twice(
    source: DocumentSource, places: npt.NDArray[np.int64], seen: npt.NDArray[np.bool_], doc_ids: pa.Array
) -> None:
    unique, counts = np.unique(places, return_counts=True)
    again = np.concatenate([unique[counts > 1], places[seen[places]]])
    if len(again):
        twice = doc_ids[int(again[0])].as_py()
        raise DataError(f"{source.name}: the document {twice!r} occurs more than once; keep one")
    seen[places] = True


# A resolver is slow, so that the shares of a class are those of a sample of the documents that name a group.
_SHARES_SAMPLE = 2_000


def group_shares(
    batches: Callable[[], Iterable[pa.Table]], lexicon: Lexicon, key: CountKey, columns: Sequence[int],
    counted: Iterable[pa.Table] | None = None,
) -> Floats:  # fmt: skip
    """Shares of groups in documents: of those that name one group most (row 0), and of their words (row 1).

    ``counted`` are the parts of an annotation of the documents, if they were counted before.

    For classes of mentions, the documents are a sample of those that name a group: those with the lowest hashes.
    """
    totals = np.zeros((2, len(columns)), np.int64)

    def add(counts: npt.NDArray[np.int32]) -> None:
        compared = counts[:, list(columns)]
        directions = directions_of(compared)
        totals[0] += np.bincount(directions[directions >= 0], minlength=len(columns))
        totals[1] += compared.sum(axis=0)

    if counted is not None:
        for part in counted:
            add(counts_of(part, key.who)[1])
    elif key.who == ANY:
        counter = counter_for(lexicon, key.tokens, key.overlap)
        for batch in batches():
            add(counter.count(batch["text"]).counts)
    else:
        plain, sample = counter_for(lexicon, key.tokens, key.overlap), None
        for batch in batches():
            named = np.flatnonzero(plain.count(batch["text"]).counts.any(axis=1))
            rows = pl.from_arrow(batch.select(["doc_id", "text"]).take(pa.array(named)))
            assert isinstance(rows, pl.DataFrame)
            rows = rows.with_columns(pl.col("doc_id").hash(0).alias("hash"))
            sample = (rows if sample is None else pl.concat([sample, rows])).bottom_k(_SHARES_SAMPLE, by="hash")
        if sample is not None:
            add(Counters().of(lexicon, *key[1:]).count(sample["text"].to_arrow().cast(pa.string())).counts)
    return np.stack([even_shares(row) for row in totals])


def gather_texts(source: DocumentSource, doc_ids: pa.Array, needed: npt.NDArray[np.bool_]) -> pa.Array:
    """Stream the texts of the needed documents, by ordinal; null if a document is not needed or has no text."""
    wanted = doc_ids.take(pa.array(np.flatnonzero(needed)))
    ids, texts = [], []
    for batch in source.batches():
        rows = batch.filter(pc.is_in(batch["doc_id"], value_set=wanted))
        ids += rows["doc_id"].chunks
        texts += rows["text"].cast(pa.large_string()).chunks
    if not ids:
        return pa.nulls(len(doc_ids), pa.large_string())
    known = pa.concat_arrays([one.cast(pa.string()) for one in ids])
    return pa.concat_arrays(texts).take(pc.index_in(doc_ids, value_set=known))
