"""One query at a time: search it, see how its results lean, ask it otherwise, compare.

Candidates are made, filtered, searched and scored by the stages of a build, so they are those of ``askew run``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from askew.app.explore.known import Known
from askew.app.explore.scoring import Grades, ListScorer
from askew.app.explore.warrant import WarrantRules
from askew.app.scoring.requested import key_of
from askew.app.search.reformulate import FirstPass
from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction
from askew.core.outcome import OUTCOMES, UNKNOWN, outcome_codes
from askew.core.ranking import Floats, Hits
from askew.measures.catalogue import MeasureRequest
from askew.mentions.marks import Mark, Marker
from askew.plugins.kinds import RankerPlugin
from askew.plugins.methods import FilterPlugin, ReformulatorPlugin
from askew.rankers.disk import StoredTexts
from askew.selectors.pareto import Pareto

AGREEMENT = "Agreement@10"
AGREEMENT_SAYS = (
    "The share of the original's first 10 documents that are among the candidate's first 10. It says how much of the "
    "old results comes back, not how good they are: this query has no judgements."
)
FINDS_NOTHING = "the query finds nothing in this collection: none of its words is in it; ask in other words"
MEASURES = (
    "nDCG@10", "RR@10", "AP@10", "ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "NFaiRR@10", "LexiconShare@10",
)  # fmt: skip
PLACED_BY, LEAN_BY = "nDCG@10", "ARaB(tf)@10"
MOST_RESULTS, LONGEST_TEXT = 100, 1500
_TOP = 10
_BETTER = {Direction.UP: "higher", Direction.DOWN: "lower", Direction.ZERO: "nearer zero"}


@dataclass(frozen=True)
class SearchedCollection:
    """A collection that can be searched, and what is known of it."""

    name: str
    ranker: RankerPlugin
    texts: StoredTexts
    known: Known
    methods: Mapping[str, ReformulatorPlugin]
    filters: Sequence[FilterPlugin]
    first_pass: FirstPass | None


class Explorer:
    """Answers for one collection. It keeps nothing of what it was asked, and may be used by several threads."""

    def __init__(
        self, searched: SearchedCollection, measures: Sequence[str] = MEASURES, depth: int = 100,
        effectiveness: str = PLACED_BY, lean: str = LEAN_BY,
    ) -> None:  # fmt: skip
        self.searched, self.depth = searched, depth
        self.scorer = ListScorer(measures)
        self.effectiveness, self.lean = effectiveness, lean
        counted = self._counted()
        lexicon = self.scorer.lexicons[counted[0]]
        self.marker, self._rules = Marker(lexicon, counted[1], counted[2]), WarrantRules()
        ids = searched.ranker.doc_ids
        self.setting = Setting(searched.name, len(ids), searched.ranker.id, lexicon.id, *self._sides())
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

    def _counted(self) -> tuple[str, str, str]:
        key = key_of(self._measure(self.lean))
        if key is None:
            raise ConfigError(f"explore: {self.lean} counts no words; results are shown by a measure that does")
        return key

    def _sides(self) -> tuple[str, str]:
        """The group that a measure counts against, left, and the one it counts for, right."""
        right, _, left = str(self._measure(self.lean).measure.param("groups")).partition("-")
        return left, right

    @cached_property
    def signatures(self) -> dict[str, str]:
        """The full text of each measure."""
        return {one.text: one.signature for one in self.scorer.asked}

    def search(self, query: str, k: int = _TOP) -> Answer:
        """The first k documents, and what the measures say of the first ``depth``."""
        hits = self._find([query], max(k, self.depth))
        return self._answer(query, hits, k, self._judged(query))

    def _find(self, texts: Sequence[str], k: int) -> Hits:
        return self.searched.ranker.search(list(texts), min(k, max(self.setting.documents, 1)))

    def _judged(self, query: str) -> tuple[str | None, Grades | None]:
        query_id = self.searched.known.find(query)
        return query_id, self.searched.known.judged(query_id)

    def _score(self, hits: Hits, grades: Grades | None) -> dict[str, Floats]:
        return self.scorer.score(hits, self.searched.ranker.doc_ids, self._texts, grades)

    def _texts(self, docs: Sequence[int]) -> list[str]:
        return [self.searched.texts[doc] for doc in docs]

    def _answer(self, query: str, hits: Hits, k: int, judged: tuple[str | None, Grades | None]) -> Answer:
        query_id, grades = judged
        values = {name: column[0] for name, column in self._score(hits, grades).items()} if len(hits.docs) else {}
        results = tuple(self._result(hits, at, grades) for at in range(min(k, len(hits.docs))))
        total = {group: sum(one.mentions[group] for one in results) for group in self.marker.groups}
        told = tuple(self._value(one, values[one.text]) for one in self.scorer.asked if one.text in values)
        return Answer(
            query, query_id, grades is not None, results, len(hits.docs), total, told, self._rules.look(query),
            self.setting,
        )  # fmt: skip

    def _value(self, one: MeasureRequest, value: float) -> Value:
        kind = EFFECTIVENESS if "judgements" in one.family.reads else LEAN
        return Value(one.text, _number(value), _BETTER[one.direction], kind, one.signature)

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
        """Other ways to ask: made by every method, filtered, searched, scored, and the front of them marked."""
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
        effectiveness, proxy = (AGREEMENT, True) if grades is None else (self.effectiveness, False)
        directions = {**self.scorer.directions(grades is not None), AGREEMENT: Direction.UP}
        table = pl.DataFrame(pl.from_arrow(kept)).with_columns(
            *(pl.Series(name, values) for name, values in scores.items()), pl.Series(AGREEMENT, agreement)
        )
        chosen = Pareto(effectiveness, self.lean).select_counted(table.filter(pl.Series(found)), directions)
        lost = {**dropped, **{"found nothing": int((~found).sum())}, **chosen.dropped}
        return Alternatives(
            query, query_id, grades is not None, effectiveness, proxy, self.lean,
            self._original(table, directions), tuple(self._variants(chosen.table, directions)),
            {reason: count for reason, count in sorted(lost.items()) if count},
            {name: self.signatures.get(name, AGREEMENT_SAYS) for name in directions},
            {name: _BETTER[way] for name, way in directions.items()}, self.setting,
        )  # fmt: skip

    def _original(self, table: pl.DataFrame, directions: Mapping[str, Direction]) -> Variant:
        row = table.filter(pl.col("method") == ORIGINAL).row(0, named=True)
        values = {name: _number(row[name]) for name in directions}
        named = self._rules.groups(row["text"])
        return Variant(row["variant_id"], row["text"], ORIGINAL, None, values, {}, None, False, named)

    def _variants(self, pairs: pl.DataFrame, directions: Mapping[str, Direction]) -> list[Variant]:
        return [
            Variant(
                row["variant_id"], row["text"], row["method"], row["doc_id"],
                {name: _number(row[f"new_{name}"]) for name in directions},
                {name: _number(row[f"gain_{name}"]) for name in directions}, row["outcome"], bool(row["front"]),
                self._rules.groups(row["text"]),
            )
            for row in pairs.iter_rows(named=True)
        ]  # fmt: skip

    def compare(self, query: str, other: str, k: int = _TOP) -> Comparison:
        """Both result lists, with the judgements of the query that was asked first."""
        judged = self._judged(query)
        hits = self._find([query, other], max(k, self.depth))
        sides = [_only(hits, row) for row in range(2)]
        old, new = (self._answer(text, one, k, judged) for text, one in zip((query, other), sides, strict=True))
        gains = self._gains(old, new)
        agreement = float(_agreements(hits)[1])
        proxy = judged[1] is None
        effectiveness = AGREEMENT if proxy else self.effectiveness
        first = agreement - 1.0 if proxy else gains.get(self.effectiveness)
        return Comparison(
            old, new, self.depth, self._moves(sides, k), gains, agreement, _outcome(first, gains.get(self.lean)),
            effectiveness, proxy, self.lean,
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


def _agreements(hits: Hits) -> Floats:
    """How much of the first list's first documents is among the first documents of each."""
    tops = [set(hits.docs[start : min(start + _TOP, end)].tolist()) for start, end in
            zip(hits.offsets[:-1].tolist(), hits.offsets[1:].tolist(), strict=True)]  # fmt: skip
    return np.array([len(tops[0] & top) / max(len(tops[0]), 1) for top in tops])


def _outcome(effectiveness: float | None, lean: float | None) -> str | None:
    if effectiveness is None or lean is None:
        return None
    code = int(outcome_codes([np.array([effectiveness])], [np.array([lean])])[0])
    return None if code == UNKNOWN else OUTCOMES[code]
