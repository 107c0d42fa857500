"""Count mentions with half of the words of a lexicon, for all splits in one pass over the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from askew.app.build.halves import CELLS, EVERY, term_counts, word_halves
from askew.app.build.resources import Resources
from askew.app.scoring.annotate import Annotate, stage_of
from askew.app.scoring.requested import CountKey
from askew.core.lexicon import Lexicon
from askew.core.ranking import Flags
from askew.plugins.kinds import DocMentions

STEP = "half-mentions"
# Word frequencies are counted in at most this number of documents: enough to separate frequent and rare words.
_MOST_DOCUMENTS = 100_000


class HalfWords:
    """The halves of all words that some measures count, over all lexicons of these measures."""

    def __init__(
        self, resources: Resources, lexicons: Mapping[str, Lexicon], keys: Sequence[CountKey], groups: Sequence[str],
        splits: int, seed: int,
    ) -> None:  # fmt: skip
        self.resources, self.lexicons, self.keys, self.groups = resources, dict(lexicons), list(keys), tuple(groups)
        self.splits, self.seed = splits, seed

    def settings(self) -> Mapping[str, Any]:
        """Return everything that the halves depend on, except the documents."""
        tokens = sorted({(key.lexicon, key.tokens) for key in self.keys})
        return {"words": [list(one) for one in tokens], "splits": self.splits, "seed": self.seed}

    @cached_property
    def first(self) -> dict[str, Flags]:
        """For each term, the splits in which it is in the first half."""
        used = [self.lexicons[name] for name in sorted({key.lexicon for key in self.keys})]
        return word_halves(used, self.groups, self._frequencies(), self.splits, self.seed)

    def _frequencies(self) -> Counter[str]:
        tokens = sorted({(key.lexicon, key.tokens) for key in self.keys})
        found: Counter[str] = Counter()
        left = _MOST_DOCUMENTS
        for batch in self.resources.documents.batches():
            texts = batch["text"].slice(0, left)
            for lexicon, tokenizer in tokens:
                found.update(term_counts(self.lexicons[lexicon], tokenizer, texts))
            left -= len(texts)
            if left <= 0:
                break
        return found


class AnnotateHalves:
    """Counts, for every split, the words of each group that are in the first half."""

    name = "annotate-halves"
    version = 1

    def __init__(self, words: HalfWords, whole: Annotate) -> None:
        self._words, self._whole = words, whole

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the whole count and of the split of words."""
        return {"whole": [Annotate.version, self._whole.settings()], "halves": self._words.settings()}

    @cached_property
    def _stages(self) -> list[Annotate]:
        whole = self._whole
        lexicon = whole.lexicon.exclusive() if whole.overlap == "first" else whole.lexicon
        every = tuple(term for words in lexicon.groups.values() for term in words)
        cells = {
            cell_name(group, split): tuple(term for term in words if self._words.first[term][split])
            for group, words in enumerate(lexicon.groups.values())
            for split in range(self._words.splits)
        }
        filled = [(name, words) for name, words in cells.items() if words]
        return [
            Annotate(
                Lexicon("halves", {EVERY: every, **dict(filled[at : at + CELLS])}), whole.tokens, "all", whole.resolver
            )
            for at in range(0, len(filled), CELLS)
        ]

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return one row of counts for each document; no document is dropped."""
        table = None
        for stage in self._stages:
            found, _ = stage.run(rows)
            names = [name for name in found.column_names if name != "clipped" and not name.endswith(f"_{EVERY}")]
            if table is None:
                table = found.select(names)
                continue
            for name in names:
                table = table if name in table.column_names else table.append_column(name, found[name])
        assert table is not None, "the stage 'annotate-halves' needs a lexicon whose words can be split into halves"
        return table, {}


def cell_name(group: int, split: int) -> str:
    """Return the name of a group for one split, in the lexicon that counts halves."""
    return f"g{group}s{split}"


class HalfCounts:
    """Counts of mentions of one half of the words, for documents in the order of the index."""

    def __init__(self, words: HalfWords, whole: Callable[[CountKey], DocMentions]) -> None:
        self.words, self._whole = words, whole
        self._first: dict[CountKey, DocMentions] = {}

    def stage(self, key: CountKey) -> AnnotateHalves:
        """Return the stage that counts the halves for a key."""
        return AnnotateHalves(self.words, Annotate(self.words.lexicons[key.lexicon], *stage_of(key)[1:]))

    def keys(self) -> list[str]:
        """Return the keys of all counts in the store."""
        return [self.words.resources.mentions_key(self.stage(key)) for key in self.words.keys]

    def prepare(self) -> None:
        """Count the collection."""
        for key in self.words.keys:
            self._counted(key)

    def of(self, key: CountKey, split: int, first: bool) -> DocMentions:
        """Return the counts of the first half, or of the second: the whole minus the first half."""
        whole, found = self._whole(key), self._counted(key)
        place = {name: at for at, name in enumerate(found.groups)}
        counts = np.zeros(whole.counts.shape, np.int32)
        for group in range(len(whole.groups)):
            at = place.get(cell_name(group, split))
            # A group may have no word in a half.
            if at is not None:
                counts[:, group] = found.counts[:, at]
        return replace(whole, counts=counts if first else np.subtract(whole.counts, counts, out=counts))

    def _counted(self, key: CountKey) -> DocMentions:
        if key not in self._first:
            self._first[key] = self.words.resources.mentions(self.stage(key), key.who, STEP, by_group=True)
        return self._first[key]
