"""evaluate: runs in, one value for each measure out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from askew.app.build.resources import Resources
from askew.app.scoring.annotate import Annotate
from askew.app.scoring.requested import Key, keys_of
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon
from askew.core.measure import Bounds, Direction, check_columns, column_of
from askew.core.ranking import Floats, Ints, Rankings, order_by_score
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.plugins.kinds import DocMentions, Inputs, Judgements

_CARRIED = ("query_id", "variant_id", "text", "method", "settings", "doc_id")


class Evaluate:
    """Scores every variant by every measure, with the judgements of its query."""

    name = "evaluate"
    version = 2

    def __init__(self, measures: Sequence[str], resources: Resources, groups: Groups | None = None) -> None:
        # Without a background run NFaiRR is against the ranking itself, as askew measure has it.
        self._catalogue = Catalogue(None, {"background": "self"}, groups=groups)
        self.asked: list[MeasureRequest] = self._catalogue.complete(measures)
        check_columns(one.text for one in self.asked)
        for one in self.asked:
            one.check()
        self._resources = resources

    @property
    def directions(self) -> dict[str, Direction]:
        """Which way each measure is better."""
        return {one.text: one.direction for one in self.asked}

    @property
    def bounds(self) -> dict[str, Bounds]:
        """The bounds of each measure."""
        return {one.text: one.bounds for one in self.asked}

    def lexicons(self) -> list[Lexicon]:
        """The lexicons that the measures count with."""
        return [self._catalogue.lexicons[name] for name in sorted({key[0] for key in keys_of(self.asked)})]

    def settings(self) -> Mapping[str, Any]:
        """The measures with every parameter, and the keys of what they read."""
        counts = [self._resources.mentions_key(self._annotate(key)) for key in keys_of(self.asked)]
        judged = any("judgements" in one.family.reads for one in self.asked)
        return {
            "measures": {one.text: one.signature for one in self.asked},
            "mentions": counts,
            "judgements": self._resources.judgements.key if judged else None,
        }

    def _annotate(self, key: Key) -> Annotate:
        return Annotate(self._catalogue.lexicons[key[0]], key[1], key[2])

    @cached_property
    def _mentions(self) -> dict[Key, DocMentions]:
        extra = len(self._every) - len(self._resources.doc_ids)
        found = {}
        for key in keys_of(self.asked):
            mentions = self._resources.mentions(self._catalogue.lexicons[key[0]], key[1], key[2])
            found[key] = _with_unknown(mentions, extra)
        return found

    def prepare(self) -> None:
        """The collection is counted once, before any worker reads the counts."""
        _ = self._mentions

    @property
    def _every(self) -> pa.Array:
        return self._resources.judged_documents[0]

    @cached_property
    def _rank_of_ids(self) -> Ints:
        """Where each document id stands among all by its bytes: trec_eval breaks ties so."""
        order = np.argsort(np.array(self._every.to_pylist(), dtype=object), kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return ranks

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """The variants with a column for each measure."""
        lists, scores = rows["doc"].combine_chunks(), rows["score"].combine_chunks()
        offsets = lists.offsets.to_numpy().astype(np.int64)
        docs = lists.values.to_numpy().astype(np.int64)[offsets[0] : offsets[-1]]
        values = scores.values.to_numpy().astype(np.float64)[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
        inputs = Inputs(
            "variants",
            self._every,
            self._rankings(rows["variant_id"].combine_chunks(), offsets, docs, values),
            find_mentions=lambda *key: self._mentions[key],
            judgements=self._judged(rows["query_id"].to_pylist()),
        )
        table = rows.select([name for name in _CARRIED if name in rows.column_names])
        for one in self.asked:
            found = pa.array(one.family.score(one.measure, inputs), pa.float64())
            table = table.append_column(column_of(one.text), found)
        return table, {}

    def _rankings(self, ids: pa.Array, offsets: Ints, docs: Ints, scores: Floats) -> dict[str, Rankings]:
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        found = {}
        for order in {str(one.measure.param("order")) for one in self.asked}:
            by = order_by_score(rows, scores, self._rank_of_ids[docs]) if order == "score" else np.arange(len(docs))
            found[order] = Rankings(ids, offsets, docs[by])
        return found

    def _judged(self, queries: list[str]) -> Judgements | None:
        if not any("judgements" in one.family.reads for one in self.asked):
            return None
        known = self._resources.judged_documents[1]
        nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        parts = [known.get(query, nothing) for query in queries]
        sizes = np.array([len(docs) for docs, _ in parts], np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        docs, grades = (np.concatenate([part[i] for part in parts]) if parts else nothing[0] for i in range(2))
        return Judgements(offsets, docs, grades, sizes > 0)


def _with_unknown(mentions: DocMentions, extra: int) -> DocMentions:
    """With room for documents that are judged but not in the collection: they have no text."""
    if not extra:
        return mentions
    more = np.zeros((extra, len(mentions.groups)), np.int32)
    none = np.zeros(extra, np.int32)
    return DocMentions(
        mentions.groups, np.concatenate([mentions.counts, more]), np.concatenate([mentions.tokens, none]),
        np.concatenate([mentions.known, none.astype(np.bool_)]),
    )  # fmt: skip
