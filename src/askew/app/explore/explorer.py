"""One query at a time: search it, measure the bias (lean) of its results, reformulate it, compare.

Candidates are made, filtered, searched and scored by the stages of a build, so they are those of ``askew run``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.build.variants import ORIGINAL, Keep, ReformulateStage
from askew.app.explore.answers import (
    EFFECTIVENESS,
    LEAN,
    Alternatives,
    Answer,
    Comparison,
    Move,
    Setting,
    ShownResult,
    Value,
    Variant,
)
from askew.app.explore.counting import ExplorerCounts, counting_of
from askew.app.explore.scoring import Grades, ListScorer
from askew.app.explore.searched import SearchedCollection
from askew.app.explore.warrant import WarrantRules
from askew.app.scoring.comparable import BETTER, is_signed, sign_of
from askew.app.scoring.requested import CountKey, key_of
from askew.app.search.reformulate import FirstPass
from askew.core.defaults import TOKENIZER
from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction, column_of, gain_column, new_column
from askew.core.ranking import Floats, Hits
from askew.measures.catalogue import MeasureRequest
from askew.mentions.marks import Mark, Marker, can_mark
from askew.selectors.pareto import Pareto

AGREEMENT = "Agreement@10"
AGREEMENT_SAYS = (
    "The share of the original query's top 10 documents that are in the top 10 of the reformulated query. It says how "
    "much of the results is kept, not how good they are: for this query there are no judgements that a measure reads."
)
FINDS_NOTHING = "the query finds nothing in this collection: none of its words is in it; use other words"
# How many results are shown unless said otherwise, and how many at most.
TOP, MOST_RESULTS, LONGEST_TEXT = 10, 100, 1500


class Explorer:
    """Answers for one collection. It keeps nothing of what it was asked, and may be used by several threads."""

    def __init__(self, searched: SearchedCollection, counting: ExplorerCounts | None = None) -> None:
        counting = counting_of() if counting is None else counting
        self.searched, self.depth, self.counting = searched, searched.depth, counting
        self.notes: list[str] = []
        self.scorer = ListScorer(counting.measures, counting.groups)
        self.effectiveness, self.lean = counting.effectiveness, counting.lean
        lean = self._measure(self.lean)
        # Of a difference, what is subtracted is drawn first: it is on the negative side.
        groups = lean.groups[::-1] if is_signed(lean) else lean.groups
        lexicon, tokens, overlap, *_ = self._counted(lean)
        self.marker = Marker(self.scorer.lexicons[lexicon], tokens, overlap, groups)
        self._rules = WarrantRules(counting.named)
        self.setting = Setting(
            searched.name, len(searched.ranker.doc_ids), searched.ranker_words, lexicon, groups, is_signed(lean),
            sign_of(lean),
        )  # fmt: skip
        self._keep = Keep(list(searched.filters))
        self._stage = ReformulateStage(dict(searched.methods), self._first_pass, "")

    def _first_pass(self) -> FirstPass:
        assert self.searched.first_pass is not None
        return self.searched.first_pass

    def _measure(self, text: str) -> MeasureRequest:
        found = next((one for one in self.scorer.asked if one.text == text), None)
        if found is None:
            raise ConfigError(
                f"explore: the measure {text} is not among {', '.join(o.text for o in self.scorer.asked)}"
            )
        return found

    def _counted(self, lean: MeasureRequest) -> CountKey:
        """Which words are marked: those that the lean counts, or another measure if its tokens cannot be marked."""
        if key_of(lean) is None:
            raise ConfigError(f"explore: {lean.text} counts no words; results are shown by a measure that does")
        same = [one for one in self.scorer.asked if set(lean.groups) <= set(one.groups)]
        keys = [key for one in [lean, *same] if (key := key_of(one)) is not None]
        marked = next((key for key in keys if can_mark(key[1])), keys[0]._replace(tokens=TOKENIZER))
        if marked not in keys:
            self.notes.append(
                f"Words are marked by the tokenizer {TOKENIZER}: what {keys[0][1]} counts cannot be marked."
            )
        return marked

    @cached_property
    def signatures(self) -> dict[str, str]:
        """The full text of each measure."""
        return {one.text: one.signature for one in self.scorer.asked}

    def search(self, query: str, k: int = TOP, query_id: str | None = None) -> Answer:
        """The top k documents, and what the measures say of the top ``depth``.

        ``query_id`` says which query is meant where several of the collection have these words.
        """
        hits = self._find([query], max(k, self.depth))
        return self._answer(query, hits, k, self._judged(query, query_id))

    def _find(self, texts: Sequence[str], k: int) -> Hits:
        return self.searched.ranker.search(list(texts), min(k, max(self.setting.documents, 1)))

    def _judged(self, query: str, query_id: str | None = None) -> tuple[str | None, Grades | None]:
        found = self.searched.known.find(query, query_id)
        return found, self.searched.known.judged(found)

    def _score(self, hits: Hits, grades: Grades | None) -> dict[str, Floats]:
        return self.scorer.score(hits, self.searched.ranker.doc_ids, self._texts, grades)

    def _texts(self, docs: Sequence[int]) -> list[str]:
        return [self.searched.texts[doc] for doc in docs]

    def _answer(self, query: str, hits: Hits, k: int, judged: tuple[str | None, Grades | None]) -> Answer:
        query_id, grades = judged
        # More may be shown than were measured when the store was built; a value is always of as many.
        measured = _top(hits, self.depth)
        values = {name: column[0] for name, column in self._score(measured, grades).items()} if len(hits.docs) else {}
        results = tuple(self._result(hits, at, grades) for at in range(min(k, len(hits.docs))))
        total = {group: sum(one.mentions[group] for one in results) for group in self.marker.groups}
        told = tuple(self._value(one, values[one.text]) for one in self.scorer.asked if one.text in values)
        return Answer(
            query, query_id, grades is not None, results, len(hits.docs), total, told, self._rules.look(query),
            self.setting,
        )  # fmt: skip

    def _value(self, one: MeasureRequest, value: float) -> Value:
        kind = EFFECTIVENESS if "judgements" in one.family.reads else LEAN
        return Value(one.text, _number(value), BETTER[one.direction], kind, one.signature)

    def _result(self, hits: Hits, at: int, grades: Grades | None) -> ShownResult:
        doc = int(hits.docs[at])
        doc_id, text = str(self.searched.ranker.doc_ids[doc].as_py()), self.searched.texts[doc]
        marks = self.marker.find(text)
        shown = shortened(text, marks)
        inside = tuple(mark for mark in marks if mark.end <= len(shown))
        return ShownResult(
            at + 1, doc_id, float(hits.scores[at]), shown, len(shown) < len(text), inside, self.marker.count(marks),
            None if grades is None else grades.get(doc_id),
        )  # fmt: skip

    def texts_by_id(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """The texts of some documents; those that are not in the collection are left out."""
        wanted = pa.array(sorted(set(doc_ids)), pa.string())
        places = pc.index_in(self.searched.ranker.doc_ids.cast(pa.string()), value_set=wanted)
        found = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False)).tolist()
        ids = self.searched.ranker.doc_ids.take(pa.array(found, pa.int64())).to_pylist()
        return dict(zip(ids, self._texts(found), strict=True))

    def reformulate(self, query: str) -> Alternatives:
        """Reformulations by every method, filtered, searched, scored; those of the Pareto front are marked."""
        query_id, grades = self._judged(query)
        rows = pa.table({"query_id": [query_id or "asked"], "text": [query]})
        kept, dropped = self._keep.run(self._stage.run(rows)[0])
        texts = kept["text"].to_pylist()
        hits = self._find(texts, self.depth)
        found = np.diff(hits.offsets) > 0
        if not found[0]:
            raise DataError(FINDS_NOTHING)
        scores = self._score(hits, grades)
        agreement = _agreements(hits)
        placed = None if grades is None else self.effectiveness
        effectiveness, proxy = placed or AGREEMENT, placed is None
        directions = {**self.scorer.directions(grades is not None), AGREEMENT: Direction.UP}
        table = pl.DataFrame(pl.from_arrow(kept)).with_columns(
            *(pl.Series(column_of(name), values) for name, values in scores.items()),
            pl.Series(column_of(AGREEMENT), agreement),
        )
        chosen = Pareto(effectiveness, self.lean).select_counted(table.filter(pl.Series(found)), directions)
        lost = {**dropped, **{"found nothing": int((~found).sum())}, **chosen.dropped}
        return Alternatives(
            query, query_id, grades is not None, effectiveness, proxy, self.lean,
            self._original(table, directions), tuple(self._variants(chosen.table, directions, proxy)),
            {reason: count for reason, count in sorted(lost.items()) if count},
            {name: self.signatures.get(name, AGREEMENT_SAYS) for name in directions},
            {name: BETTER[way] for name, way in directions.items()}, self.setting,
        )  # fmt: skip

    def _original(self, table: pl.DataFrame, directions: Mapping[str, Direction]) -> Variant:
        row = table.filter(pl.col("method") == ORIGINAL).row(0, named=True)
        values = {name: _number(row[column_of(name)]) for name in directions}
        named = self._rules.groups(row["text"])
        return Variant(row["variant_id"], row["text"], ORIGINAL, None, values, {}, None, None, False, named)

    def _variants(self, pairs: pl.DataFrame, directions: Mapping[str, Direction], proxy: bool) -> list[Variant]:
        return [self._variant(row, directions, proxy) for row in pairs.iter_rows(named=True)]

    def _variant(self, row: Mapping[str, Any], directions: Mapping[str, Direction], proxy: bool) -> Variant:
        values = {name: _number(row[new_column(name)]) for name in directions}
        gains = {name: _number(row[gain_column(name)]) for name in directions}
        return Variant(
            row["variant_id"], row["text"], row["method"], row["doc_id"], values, gains,
            None if proxy else self._outcome(gains), self.counting.sides.lean_verdict(gains), bool(row["front"]),
            self._rules.groups(row["text"]),
        )  # fmt: skip

    def _outcome(self, gains: Mapping[str, float | None]) -> str | None:
        found = self.counting.sides.outcome(gains)
        return None if found is None else found.value

    def compare(self, query: str, other: str, k: int = TOP, query_id: str | None = None) -> Comparison:
        """Both result lists, with the judgements of the original query."""
        judged = self._judged(query, query_id)
        hits = self._find([query, other], max(k, self.depth))
        sides = [_only(hits, row) for row in range(2)]
        old, new = (self._answer(text, one, k, judged) for text, one in zip((query, other), sides, strict=True))
        gains = self._gains(old, new)
        agreement = float(_agreements(hits)[1])
        placed = None if judged[1] is None else self.effectiveness
        effectiveness, proxy = placed or AGREEMENT, placed is None
        # Agreement is no effectiveness: a query without judgements has a verdict on lean only.
        outcome = None if placed is None else self._outcome(gains)
        return Comparison(
            old, new, self.depth, self._moves(sides, k), gains, agreement, outcome,
            self.counting.sides.lean_verdict(gains), effectiveness, proxy, self.lean,
        )  # fmt: skip

    def _gains(self, old: Answer, new: Answer) -> dict[str, float | None]:
        after = {one.measure: one.value for one in new.values}
        found: dict[str, float | None] = {}
        for one in old.values:
            value = after.get(one.measure)
            ways = self._measure(one.measure).direction
            found[one.measure] = None if one.value is None or value is None else ways.gain(one.value, value)
        return found

    def _moves(self, sides: Sequence[Hits], k: int) -> tuple[Move, ...]:
        ranks = [{doc: rank for rank, doc in enumerate(side.docs.tolist(), 1)} for side in sides]
        shown = dict.fromkeys(doc for side in sides for doc in side.docs[:k].tolist())
        ids = self.searched.ranker.doc_ids
        return tuple(Move(str(ids[doc].as_py()), ranks[0].get(doc), ranks[1].get(doc)) for doc in shown)


def shortened(text: str, marks: Sequence[Mark], longest: int = LONGEST_TEXT) -> str:
    """The beginning of a long text; never cut within a marked word."""
    if len(text) <= longest:
        return text
    cut = text.rfind(" ", 0, longest)
    end = cut if cut > longest // 2 else longest
    return text[: next((mark.start for mark in marks if mark.start < end < mark.end), end)].rstrip()


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _only(hits: Hits, row: int) -> Hits:
    start, end = int(hits.offsets[row]), int(hits.offsets[row + 1])
    return Hits(np.array([0, end - start], np.int64), hits.docs[start:end], hits.scores[start:end])


def _top(hits: Hits, depth: int) -> Hits:
    """The first documents of a list."""
    if len(hits.docs) <= depth:
        return hits
    return Hits(np.array([0, depth], np.int64), hits.docs[:depth], hits.scores[:depth])


def _agreements(hits: Hits) -> Floats:
    """How much of the first list's top documents is among the top documents of each."""
    tops = [set(hits.docs[start : min(start + TOP, end)].tolist()) for start, end in
            zip(hits.offsets[:-1].tolist(), hits.offsets[1:].tolist(), strict=True)]  # fmt: skip
    return np.array([len(tops[0] & top) / max(len(tops[0]), 1) for top in tops])
