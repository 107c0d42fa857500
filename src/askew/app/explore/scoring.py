"""Score a few result lists: only the documents in them are counted, so any collection will do, however large."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from askew.app.scoring.requested import Key, keys_of
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon
from askew.core.measure import Direction
from askew.core.ranking import Floats, Hits, Ints, Rankings, order_by_score
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.mentions.count import MentionCounter
from askew.plugins.kinds import DocMentions, Inputs, Judgements

Grades = Mapping[str, int]
# The texts of some documents by their ordinals.
TextsOf = Callable[[Sequence[int]], list[str]]


class ListScorer:
    """Scores result lists by measures. The values are those of ``askew measure`` for the same lists."""

    def __init__(self, measures: Sequence[str], groups: Groups | None = None) -> None:
        # Without a background run NFaiRR is against the ranking itself, as askew measure has it.
        self._catalogue = Catalogue(None, {"background": "self"}, groups=groups)
        self.asked: list[MeasureRequest] = self._catalogue.complete(list(measures))
        for one in self.asked:
            one.check()
        self.lexicons = self._catalogue.lexicons
        self._counters = {key: _counter(self.lexicons[key[0]], key) for key in keys_of(self.asked)}

    def those(self, judged: bool) -> list[MeasureRequest]:
        """The measures that can be computed: without judgements, those that read none."""
        return [one for one in self.asked if judged or "judgements" not in one.family.reads]

    def directions(self, judged: bool) -> dict[str, Direction]:
        """Which way each of these is better."""
        return {one.text: one.direction for one in self.those(judged)}

    def score(self, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Grades | None) -> dict[str, Floats]:
        """One value of each measure for each list. ``grades`` are the judgements of the one query behind all lists."""
        lists = _Lists(hits, doc_ids, grades)
        counted: dict[Key, DocMentions] = {}
        column = pa.array(texts(lists.known), pa.large_string())
        for key, counter in self._counters.items():
            found = counter.count(column)
            counted[key] = lists.with_unknown(DocMentions(found.groups, found.counts, found.tokens, lists.has_text))
        asked = self.those(grades is not None)
        orders = {str(one.measure.param("order")) for one in asked}
        inputs = Inputs(
            "results", pa.array(lists.ids, pa.string()), {order: lists.rankings(order) for order in orders},
            find_mentions=lambda *key: counted[key], judgements=lists.judged(),
        )  # fmt: skip
        return {one.text: one.family.score(one.measure, inputs) for one in asked}


def _counter(lexicon: Lexicon, key: Key) -> MentionCounter:
    # Compiled although the texts are few: a query is one of many, and the plain loop would be a third of its time.
    return MentionCounter(lexicon.exclusive() if key[2] == "first" else lexicon, key[1], threads=1, engine="compiled")


class _Lists:
    """The documents of some lists, numbered among themselves; those that are only judged come last and have no text."""

    def __init__(self, hits: Hits, doc_ids: pa.Array, grades: Grades | None) -> None:
        places, self.docs = np.unique(hits.docs.astype(np.int64), return_inverse=True)
        self.hits, self.grades = hits, grades
        self.known: list[int] = places.tolist()
        found = [str(doc_ids[place].as_py()) for place in self.known]
        self.ids = [*found, *(doc for doc in grades or {} if doc not in set(found))]
        self.has_text = np.arange(len(self.ids)) < len(found)

    def with_unknown(self, mentions: DocMentions) -> DocMentions:
        """With room for the documents that have no text."""
        more = len(self.ids) - len(self.known)
        counts = np.pad(mentions.counts, ((0, more), (0, 0)))
        return DocMentions(mentions.groups, counts, np.pad(mentions.tokens, (0, more)), self.has_text)

    def rankings(self, order: str) -> Rankings:
        """The lists by score, ties as trec_eval breaks them, or as they come."""
        names = pa.array([str(row) for row in range(len(self.hits))])
        by = np.arange(len(self.docs))
        if order == "score":
            by = order_by_score(self.hits.rows(), self.hits.scores.astype(np.float64), self._rank_of_ids()[self.docs])
        return Rankings(names, self.hits.offsets, self.docs[by])

    def _rank_of_ids(self) -> Ints:
        order = np.argsort(np.array(self.ids, dtype=object), kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return ranks

    def judged(self) -> Judgements | None:
        """The judgements of the query, once for each list."""
        if self.grades is None:
            return None
        number = {doc: place for place, doc in enumerate(self.ids)}
        pairs = sorted((number[doc], grade) for doc, grade in self.grades.items())
        docs, relevance = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
        lists = len(self.hits)
        offsets = np.arange(lists + 1, dtype=np.int64) * len(pairs)
        return Judgements(offsets, np.tile(docs, lists), np.tile(relevance, lists), np.ones(lists, np.bool_))
