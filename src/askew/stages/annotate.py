"""annotate: documents in, mentions out. Counted once for a collection, then read from the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from askew.core.errors import DataError
from askew.core.fingerprint import fingerprint
from askew.core.lexicon import Lexicon, load_lexicon
from askew.core.tables import conform, mentions_schema
from askew.corpora.documents import document_files, read_documents
from askew.engine.manifest import Manifest
from askew.engine.run import Outcome, Progress, run_step, step_key
from askew.engine.store import Store
from askew.mentions.count import MentionCounter

STEP = "mentions"


class Annotate:
    """Counts how often each document names each group."""

    name = "annotate"
    version = 1

    def __init__(self, lexicon: str | Lexicon = "rekabsaz2020", tokens: str = "word", overlap: str = "all") -> None:
        self.lexicon = load_lexicon(lexicon)
        self.tokens, self.overlap = tokens, overlap
        counted = self.lexicon.exclusive() if overlap == "first" else self.lexicon
        self.counter = MentionCounter(counted, tokens)

    def settings(self) -> Mapping[str, Any]:
        """The lexicon by its content, the tokenizer, and what a shared term counts for."""
        return {"lexicon": self.lexicon.id, "tokens": self.tokens, "overlap": self.overlap}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """One row of counts for each document. None is ever dropped."""
        found = self.counter.count(rows["text"])
        columns = [
            rows["doc_id"],
            pa.array(found.tokens),
            *(pa.array(found.counts[:, g]) for g in range(len(found.groups))),
        ]
        names = ["doc_id", "tokens", *(f"mentions_{group}" for group in found.groups)]
        return conform(pa.table(columns, names=names), mentions_schema(found.groups), "annotate"), {}


@dataclass(frozen=True)
class DocumentFiles:
    """Document files as a source: named by their content and by how they are read."""

    store: Store
    path: Path
    fields: tuple[str, ...] = ()
    published: bool = False

    @cached_property
    def key(self) -> str:
        """The digests of the files, the fields, the way of reading."""
        digests = [self.store.digest(file) for file in document_files(self.path)]
        return fingerprint({"documents": digests, "fields": list(self.fields), "published": self.published})

    def batches(self) -> Iterator[pa.Table]:
        """Documents, streamed. A collection without any is an error and never a finished step."""
        rows = 0
        for batch in read_documents(self.path, self.fields, self.published):
            rows += batch.num_rows
            yield batch
        if rows == 0:
            raise DataError(f"documents {self.path}: expected at least one document, found none")


def annotate(
    docs: Path, store: Store, stage: Annotate, fields: tuple[str, ...] = (), progress: Progress | None = None
) -> Outcome:
    """Count a collection into the store, or find that it is there."""
    return run_step(store, STEP, stage, DocumentFiles(store, docs, fields), progress=progress)


def stored_mentions(store: Store, files: DocumentFiles, lexicon: Lexicon, tokens: str, overlap: str) -> Manifest | None:
    """The finished annotation that a measure could read instead of the texts."""
    if not any(store.root.glob(f"{STEP}-*/manifest.json")):
        return None
    return store.finished(STEP, step_key(Annotate(lexicon, tokens, overlap), files.key))
