"""Compute the value of each measure for each ranked list. All commands use this scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.measure import Measure
from askew.core.protocols import DocMentions, Inputs
from askew.core.ranking import Floats, Ints, Rankings
from askew.measures.catalogue import MeasureRequest
from askew.measures.chance import chance
from askew.measures.common import NONE
from askew.measures.lists import JudgedQueries
from askew.measures.relevance import RelevanceSource
from askew.measures.requested import CountKey, keys_of


class Scorer:
    """Scores ranked lists by the requested measures.

    ``doc_ids`` has the document ids by ordinal. ``count`` returns the mentions for a key; documents beyond its counts
    have no text. ``judged`` has the judgements, ``relevance`` adds estimates. A measure raises an error if an input
    that it needs is missing. ``id_ranks`` returns the ranks of the ids if they are already known. ``articles`` and
    ``shares`` are those of ``Inputs``.
    """

    def __init__(
        self, asked: Sequence[MeasureRequest], doc_ids: pa.Array,
        count: Callable[[CountKey], DocMentions] | None = None, judged: JudgedQueries | None = None,
        relevance: RelevanceSource | None = None, id_ranks: Callable[[], Ints | None] | None = None,
        articles: Callable[[Ints], tuple[Ints, bool]] | None = None,
        shares: Callable[[Measure, Sequence[int]], Floats] | None = None,
    ) -> None:  # fmt: skip
        self.asked, self.doc_ids = list(asked), doc_ids
        self._count, self._judged, self._relevance = count, judged, relevance
        self._find_ranks, self._articles, self._shares = id_ranks, articles, shares
        self._counted: dict[CountKey, DocMentions] = {}
        self._background: dict[str, Rankings] | None = None

    def prepare(self) -> None:
        """Count all mentions that the measures need, before the first list is scored."""
        for key in keys_of(self.asked):
            self.mentions(*key)

    def set_background(self, lists: Rankings) -> None:
        """Use these lists as background run. Signatures of measures that need it get its content hash."""
        self._background = self._ranked(lists, self.asked)
        names = {order: ranked.fingerprint(self.doc_ids) for order, ranked in self._background.items()}
        self.asked = [
            replace(one, background=names[_order(one)]) if one.measure.param("background") == "run" else one
            for one in self.asked
        ]

    def score(self, lists: Rankings, only: Sequence[str] = ()) -> dict[str, Floats]:
        """The values for each list, by measure text. ``only`` restricts the measures."""
        wanted = [one for one in self.asked if not only or one.text in only]
        return self.values(self.inputs(lists, wanted), wanted)

    def inputs(self, lists: Rankings, wanted: Sequence[MeasureRequest], name: str = "results") -> Inputs:
        """The inputs of these measures for the lists. ``name`` is used in messages."""
        queries = lists.query_ids if lists.queries is None else lists.queries
        judgements = None if self._judged is None else self._judged.of_queries(queries)
        mentions = None if self._count is None else self.mentions
        background = self._background_of(lists, wanted)
        source = self._relevance
        relevance = None if source is None else lambda ranked, *how: source.probabilities(ranked, queries, *how)
        return Inputs(
            name, self.doc_ids, self._ranked(lists, wanted), mentions, judgements, background, relevance,
            self._articles, self._shares,
        )  # fmt: skip

    def values(self, inputs: Inputs, wanted: Sequence[MeasureRequest]) -> dict[str, Floats]:
        """The values of some measures, by measure text."""
        return {
            one.text: chance(one.family, one.measure, inputs).excess
            if one.measure.param("excess", NONE) != NONE
            else np.asarray(one.family.score(one.measure, inputs), np.float64)
            for one in wanted
        }

    def order(self, lists: Rankings) -> Ints:
        """The order in which measures read the entries of the lists."""
        return lists.order(self._id_ranks)

    def _ranked(self, lists: Rankings, asked: Sequence[MeasureRequest]) -> dict[str, Rankings]:
        return {order: lists.ordered(order, self._id_ranks) for order in sorted({_order(one) for one in asked})}

    def _background_of(self, lists: Rankings, asked: Sequence[MeasureRequest]) -> dict[str, Rankings] | None:
        """The background rankings by list id. Several lists of one query have the same background."""
        if self._background is None or lists.queries is None:
            return self._background
        if not any("background" in one.family.reads for one in asked):
            return None
        found = {}
        for order, ranked in self._background.items():
            row = pc.index_in(lists.queries, value_set=ranked.query_ids)
            named = lists.query_ids.filter(row.is_valid())
            found[order] = replace(ranked.select(row.drop_null().to_numpy().astype(np.int64)), query_ids=named)
        return found

    @cached_property
    def _id_ranks(self) -> Ints | None:
        """The rank of each document id by its bytes, which breaks ties as in trec_eval; None if it is the ordinal."""
        if self._find_ranks is not None:
            return self._find_ranks()
        ids = self.doc_ids
        if pc.all(pc.less(ids[:-1], ids[1:])).as_py() is not False:
            return None
        ranks = np.empty(len(ids), np.int64)
        ranks[pc.sort_indices(ids).to_numpy()] = np.arange(len(ids))
        return ranks

    @contextmanager
    def with_mentions(self, key: CountKey, mentions: DocMentions) -> Iterator[None]:
        """Score with other mentions for a key, for a while."""
        kept = self.mentions(*key)
        self._counted[key] = mentions
        try:
            yield
        finally:
            self._counted[key] = kept

    def mentions(self, *named: str) -> DocMentions:
        """The mentions for a key, for all documents. Documents without a text are marked as unknown."""
        key = CountKey(*named)
        if key not in self._counted:
            assert self._count is not None
            found = self._count(key)
            if more := len(self.doc_ids) - len(found.known):
                counts, ends = np.pad(found.counts, ((0, more), (0, 0))), (0, more)
                found = replace(
                    found, counts=counts, tokens=np.pad(found.tokens, ends), known=np.pad(found.known, ends)
                )
            self._counted[key] = found
        return self._counted[key]


def _order(one: MeasureRequest) -> str:
    return str(one.measure.param("order"))
