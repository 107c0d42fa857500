"""annotate: count the mentions of groups in a collection once, and keep the counts in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.app.scoring.requested import CountKey, fields_of, keys_of, reads_as_published, texts_of
from askew.core.defaults import TOKENIZER
from askew.core.fingerprint import fingerprint
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon, load_lexicon
from askew.core.tables import conform, mentions_schema
from askew.core.who import resolver_id
from askew.corpora.documents import bytes_of, documents_at, read_documents
from askew.corpora.files import Meter
from askew.engine.manifest import Manifest
from askew.engine.run import StepOutcome, run_step, step_key
from askew.engine.store import Store
from askew.measures.catalogue import Catalogue, find_preset
from askew.mentions.clipped import ClippedCounter
from askew.mentions.count import counter_for
from askew.mentions.resolved import ResolvedCounter, ResolvedMentions
from askew.plugins import registry

STEP = "mentions"
# The number of tokens of a malformed line: with the published reading, a line without two columns.
MALFORMED = -1
# Called with the bytes read and the total bytes.
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
class DocumentFiles:
    """Document files as a source. The key depends on their content and on how they are read."""

    store: Store
    path: Path
    fields: tuple[str, ...] = ()
    published: bool = False
    meter: Meter = field(default_factory=Meter, compare=False)

    @cached_property
    def key(self) -> str:
        """A fingerprint of the files' digests, the fields and the way of reading."""
        files, titled = documents_at(self.path)
        digests = [self.store.digest(file) for file in files]
        # The texts of a file differ if its titles are read as well.
        more = {"titled": True} if titled and not self.fields else {}
        return fingerprint({"documents": digests, "fields": list(self.fields), "published": self.published, **more})

    def batches(self) -> Iterator[pa.Table]:
        """Documents, streamed."""
        return read_documents(self.path, self.fields, self.published, self.meter)


@dataclass(frozen=True)
class Needs:
    """The counts that some measures need, and how the files are read."""

    stages: tuple[Annotate, ...]
    fields: tuple[str, ...] = ()
    published: bool = False


def needs_of(
    measures: str | Sequence[str] | None, preset: str | None, fields: tuple[str, ...] = (), groups: Groups | None = None
) -> Needs:
    """The counts that the given measures need, or those of the preset, or else the default measures."""
    chosen = find_preset(preset) if preset else None
    # The counts do not depend on the background.
    overrides: dict[str, Any] = {"background": "self"} | ({"fields": "+".join(fields)} if fields else {})
    catalogue = Catalogue(chosen, overrides, groups=groups)
    asked = catalogue.complete(texts_of(measures, chosen, qrels=False, docs=True))
    # One stage counts all classes of mentions.
    stages = {stage_of(key): Annotate(catalogue.lexicons[key.lexicon], *stage_of(key)[1:]) for key in keys_of(asked)}
    return Needs(tuple(stages.values()), fields_of(asked, fields), reads_as_published(asked, chosen))


def annotate(
    docs: Path, store: Store, stage: Annotate, fields: tuple[str, ...] = (), progress: Progress | None = None,
    published: bool = False,
) -> StepOutcome:  # fmt: skip
    """Count the mentions in a collection and store them, unless the store has them."""
    source = DocumentFiles(store, docs, fields, published)
    if progress is None:
        return run_step(store, STEP, stage, source)
    total, told = bytes_of(docs), progress
    return run_step(store, STEP, stage, source, progress=lambda _: told(source.meter.done, total))


def stage_of(key: CountKey) -> tuple[str, str, str, str]:
    """The arguments of the ``Annotate`` stage that has this count: lexicon, tokenizer, overlap and resolver."""
    return key.lexicon, key.tokens, key.overlap, key.resolver


def stored_mentions(store: Store, files: DocumentFiles, lexicon: Lexicon, key: CountKey) -> Manifest | None:
    """The stored annotation that a measure can read instead of the texts, or None."""
    if not store.has(STEP):
        return None
    return store.finished(STEP, step_key(Annotate(lexicon, *stage_of(key)[1:]), files.key))
