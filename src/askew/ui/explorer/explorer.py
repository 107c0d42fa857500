"""Search single queries, measure the bias (lean) of their results, reformulate them, and compare.

Candidates are made, filtered, searched and scored by the stages of a build, so they are the same as in ``askew run``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.defaults import CLASSIFIER, TOKENIZER
from askew.core.errors import ConfigError, DataError
from askew.core.groups import ANY, classes_of
from askew.core.measure import Direction, column_of, gain_column, new_column
from askew.core.ranking import Floats, Hits
from askew.measures.catalogue import MeasureRequest
from askew.measures.decompose import has_parts
from askew.measures.mentions import Mark, Marker, can_mark
from askew.measures.requested import BETTER, CountKey, drawn_groups, headline_measures, is_signed, key_of, sign_of
from askew.measures.resolver import default_resolver
from askew.pairs.gains import ORIGINAL, PairTable, make_pairs
from askew.rewrite.classifiers import LABEL, make_classifier
from askew.search.bm25.ranker import Bm25Ranker
from askew.ui.explorer.answers import (
    ASKED,
    EFFECTIVENESS,
    LEAN,
    OFF_TOPIC,
    ON_TOPIC,
    Alternatives,
    Answer,
    Comparison,
    CountedPart,
    Move,
    Reasons,
    Setting,
    ShownMark,
    ShownResult,
    Value,
    Variant,
    WarrantRules,
    counts_english,
    is_english,
    not_english_note,
)
from askew.ui.explorer.counting import ExplorerCounts, Grades, ListScorer, counting_of
from askew.ui.explorer.leaning import MOST, LeanDrawing
from askew.ui.explorer.searched import COLUMNS, SearchedCollection, Writer, ranker_words

# Small operations on result lists and their texts.


def shortened(text: str, marks: Sequence[Mark | ShownMark], longest: int) -> str:
    """Cut a long text, but never within a marked word."""
    if len(text) <= longest:
        return text
    cut = text.rfind(" ", 0, longest)
    end = cut if cut > longest // 2 else longest
    return text[: next((mark.start for mark in marks if mark.start < end < mark.end), end)].rstrip()


def number(value: float) -> float | None:
    """Return a value, or None if it is not defined."""
    return float(value) if math.isfinite(value) else None


def part(hits: Hits, start: int, end: int) -> Hits:
    """Return these entries as one list."""
    return Hits(np.array([0, end - start], np.int64), hits.docs[start:end], hits.scores[start:end])


def agreements(hits: Hits, sizes: Sequence[int], depth: int) -> Floats:
    """Return the share of the top documents of the first list of a query that each of its lists has among its own.

    The first ``sizes[0]`` lists belong to the first query, and so on.
    """
    ends = zip(hits.offsets[:-1].tolist(), hits.offsets[1:].tolist(), strict=True)
    tops = [set(hits.docs[start : min(start + depth, end)].tolist()) for start, end in ends]
    firsts = [tops[start] for start, size in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True) for _ in range(size)]
    return np.array([len(first & top) / max(len(first), 1) for first, top in zip(firsts, tops, strict=True)])


# The columns of candidates. A polars table of the few rows of some queries is made column by column, without its thread
# pool, which would cost more than the work.
_KINDS = {**dict.fromkeys(COLUMNS[:6], pl.String), **dict.fromkeys(COLUMNS[6:], pl.Float64), "stored": pl.Boolean}

AGREEMENT = "Agreement@10"
AGREEMENT_SAYS = (
    "The share of the original query's top 10 documents that are also in the top 10 of the reformulated query. It "
    "shows how many results are kept, not how relevant they are. Effectiveness is not measured, because "
    "no measure of effectiveness was requested, or the collection has no judgements for this query."
)
FINDS_NOTHING = "the query finds nothing: none of its words is in this collection; use other words"
ONLY_STOP_WORDS = (
    "the query has only stop words (such as 'the', 'of' or 'what'), which are not searched; add a word for the topic"
)
NO_WORDS = "the query has no letters and no digits; enter at least one word"
# The default number of results, the maximum number, and the most characters of a text that are shown.
TOP, MOST_RESULTS, LONGEST_TEXT = 10, 100, 1500


class _Asked(NamedTuple):
    query: str
    query_id: str | None
    grades: Grades | None


class Explorer:
    """Answers queries on one collection. It stores no queries, and may be used by several threads."""

    def __init__(self, searched: SearchedCollection, counting: ExplorerCounts | None = None) -> None:
        counting = counting_of() if counting is None else counting
        self.searched, self.depth, self.counting = searched, searched.depth, counting
        self.notes: list[str] = []
        self.scorer = ListScorer(counting.measures, counting.groups)
        self.effectiveness, self.lean = counting.effectiveness, counting.lean
        lean = next(one for one in self.scorer.asked if one.text == self.lean)
        groups = drawn_groups(lean)
        lexicon, tokens, overlap, *_ = self._counted(lean)
        self.marker = Marker(self.scorer.lexicons[lexicon], tokens, overlap, groups)
        self._rules = WarrantRules(counting.named)
        self.setting = Setting(
            searched.name, len(searched.ranker.doc_ids), ranker_words(searched.ranker), lexicon, groups,
            is_signed(lean), sign_of(lean),
        )  # fmt: skip
        self._writer = Writer(searched, counts_english(self.marker.lexicon) or counting.named is None)
        who = str(lean.measure.param("who", ANY))
        self._reasons = Reasons(groups, () if who == ANY else classes_of(who))
        # The measure to decompose: the deciding one if it has parts, else one of the same kind, else any.
        having = [one for one in [lean, *self.scorer.asked] if has_parts(one)]
        kind = lean.family.name, lean.measure.param("kind")
        self._parts = min(having, key=lambda one: (one.family.name, one.measure.param("kind")) != kind, default=None)
        self.leaning = LeanDrawing(lean, self._typical_values)
        asked = headline_measures(counting.groups, TOP, default_resolver())
        self._first = ListScorer([one.text for one in asked], counting.groups)
        self._classifier = make_classifier({"classifier": CLASSIFIER}, counting.named)

    def _counted(self, lean: MeasureRequest) -> CountKey:
        """Return which words are marked: those of the deciding measure, or of another if these cannot be marked."""
        if key_of(lean) is None:
            raise ConfigError(
                f"explore: the measure {lean.text} counts no words; give a measure of lean that counts words",
                code="counts-no-words", measure=lean.text,
            )  # fmt: skip
        same = [one for one in self.scorer.asked if set(lean.groups) <= set(one.groups)]
        keys = [key for one in [lean, *same] if (key := key_of(one)) is not None]
        marked = next((key for key in keys if can_mark(key[1])), keys[0]._replace(tokens=TOKENIZER))
        if marked not in keys:
            self.notes.append(
                f"Words are marked with the tokenizer {TOKENIZER}, because tokens of {keys[0][1]} cannot be marked in "
                "a text."
            )
        return marked

    def search(self, query: str, k: int = TOP) -> Answer:
        """Return the top k documents, and the values of the measures for the top ``depth``."""
        return self._answer(self._judged(query), self._find([query], max(k, self.depth)), k)

    def _find(self, texts: Sequence[str], k: int) -> Hits:
        return self.searched.ranker.search(list(texts), min(k, max(self.setting.documents, 1)))

    def _judged(self, query: str, query_id: str | None = None) -> _Asked:
        known = self.searched.known
        found = known.find(query, query_id)
        return _Asked(query, found, None if found is None else known.grades.get(found))

    def _texts(self, docs: Sequence[int]) -> list[str]:
        return [self.searched.texts[doc] for doc in docs]

    def _answer(self, asked: _Asked, hits: Hits, k: int) -> Answer:
        query, query_id, grades = asked
        warrant, notes = self._rules.look(query), list[str]()
        if not len(hits.docs):
            return Answer(query, query_id, grades is not None, (), 0, self.marker.count(()), (), warrant, self.setting)
        # More results may be shown than the build measured; the values are always of the top ``depth``.
        measured, doc_ids = part(hits, 0, min(self.depth, len(hits.docs))), self.searched.ranker.doc_ids
        steps = self.leaning.steps
        scores = self.scorer.score(measured, doc_ids, self._texts, [grades], also=steps)
        values = {name: number(column[0]) for name, column in scores.items()}
        results = self._results(query, warrant.groups, hits, k, grades)
        total = {group: sum(one.mentions[group] for one in results) for group in self.marker.groups}
        shown = tuple(
            Value(
                one.text, values[one.text], BETTER[one.direction], EFFECTIVENESS if one.judged else LEAN, one.signature
            )
            for one in self.scorer.asked
            if one.text in values
        )
        foreign = sum(not one.english for one in results)
        if foreign and counts_english(self.marker.lexicon):
            notes.append(not_english_note(foreign, len(results), self.setting.lexicon.partition("@")[0]))
        (label,) = self._classifier.classify([query]).names()
        first = self._first.headline(label or LABEL, part(hits, 0, min(TOP, len(hits.docs))), doc_ids, self._texts,
                                     self._classifier.name)  # fmt: skip
        picture = self.leaning.picture(values[self.lean], [values[one.text] for one in steps], first)
        # The models do not cover all groups, nor texts in other languages.
        parts: tuple[CountedPart, ...] = ()
        parts_of = None
        if self._parts is not None and self._reasons.applies and not foreign:
            parts_of = self._parts.text
            found = self.scorer.decompose(self._parts, measured, doc_ids, self._texts, grades, query)
            names = {"offtopic": OFF_TOPIC, "warranted": ON_TOPIC, "asked": ASKED}
            parts = tuple(
                CountedPart(names.get(one.name, one.name), one.share, one.net)
                for one in found.parts
                if one.kind == "why"
            )
        return Answer(
            query, query_id, grades is not None, results, len(hits.docs), total, shown, warrant, self.setting, picture,
            parts, parts_of, tuple(notes), first,
        )  # fmt: skip

    def _results(
        self, query: str, named: Sequence[str], hits: Hits, k: int, grades: Grades | None
    ) -> tuple[ShownResult, ...]:
        docs = hits.docs[:k].tolist()
        ids = [str(self.searched.ranker.doc_ids[doc].as_py()) for doc in docs]
        texts = self._texts(docs)
        relevance = [None if grades is None else grades.get(doc_id) for doc_id in ids]
        marks = [self.marker.find(text) for text in texts]
        relevant = [grade is not None and grade > 0 for grade in relevance]
        explained = self._reasons.explain(query, named, texts, marks, relevant)
        found = []
        for at, (doc_id, text, found_marks) in enumerate(zip(ids, texts, explained, strict=True)):
            shown = shortened(text, found_marks, LONGEST_TEXT)
            inside = tuple(mark for mark in found_marks if mark.end <= len(shown))
            found.append(ShownResult(
                at + 1, doc_id, float(hits.scores[at]), shown, len(shown) < len(text), inside,
                self.marker.count(marks[at]), relevance[at], is_english(text),
            ))  # fmt: skip
        return tuple(found)

    def explain(self, query: str, texts: Sequence[str], marks: Sequence[Sequence[Mark]]) -> list[tuple[ShownMark, ...]]:
        """Estimate whom the marked words of some texts point to and, with a query, the reasons for them."""
        named = self._rules.look(query).groups if query.strip() else ()
        found = self._reasons.explain(query or "-", named, texts, marks, [False] * len(texts))
        if query.strip():
            return found
        return [tuple(replace(mark, why=None, why_p=None) for mark in each) for each in found]

    def _typical_values(self) -> Floats:
        """Return the values of the deciding measure for the queries of the store, or else of the collection."""
        originals = self.searched.originals
        if originals is not None:
            name = column_of(self.lean)
            known = originals[name] if name in originals.columns else pl.Series([], dtype=pl.Float64)
            return known.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        texts = list(self.searched.known.texts.values())
        some = texts[:: max(1, len(texts) // MOST)][:MOST]
        if not some:
            return np.zeros(0)
        hits = self._find(some, self.depth)
        found = self.scorer.score(hits, self.searched.ranker.doc_ids, self._texts)[self.lean]
        return np.asarray(found[np.diff(hits.offsets) > 0], np.float64)

    def why_nothing(self, query: str) -> str:
        """Explain why a query finds nothing: no words, only stop words, or no word that is in a document."""
        ranker = self.searched.ranker
        if isinstance(ranker, Bm25Ranker) and not any(term for _, term in ranker.analyzer.pairs(query)):
            return ONLY_STOP_WORDS if ranker.analyzer.pairs(query) else NO_WORDS
        return FINDS_NOTHING

    def texts_by_id(self, doc_ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of some documents; documents that are not in the collection are left out."""
        wanted = pa.array(sorted(set(doc_ids)), pa.string())
        places = pc.index_in(self.searched.ranker.doc_ids.cast(pa.string()), value_set=wanted)
        found = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False)).tolist()
        ids = self.searched.ranker.doc_ids.take(pa.array(found, pa.int64())).to_pylist()
        return dict(zip(ids, self._texts(found), strict=True))

    def reformulate(self, query: str) -> Alternatives:
        """Collect reformulations from the store and the methods, and filter, search and score them."""
        (answer,) = self.reformulate_many([query])
        if isinstance(answer, DataError):
            raise answer
        return answer

    def reformulate_many(self, queries: Sequence[str]) -> list[Alternatives | DataError]:
        """As ``reformulate`` for each query, in less time. A query that finds nothing has the error in its place."""
        asked = [self._judged(query) for query in queries]
        answers: dict[int, Alternatives | DataError] = {}
        # Queries with judgements have more measures than others.
        for judged in (False, True):
            rows = [row for row, one in enumerate(asked) if (one.grades is not None) is judged]
            if rows:
                answers.update(zip(rows, self._reformulated([asked[row] for row in rows], judged), strict=True))
        return [answers[row] for row in range(len(asked))]

    def _reformulated(self, asked: Sequence[_Asked], judged: bool) -> list[Alternatives | DataError]:
        made = self._writer.candidates([(one.query_id, one.query) for one in asked])
        candidates = [row for one in made for row in one.candidates]
        sizes = [len(one.candidates) for one in made]
        hits = self._find([row["text"] for row in candidates], self.depth)
        grades = [one.grades for one in asked]
        scores = self.scorer.score(hits, self.searched.ranker.doc_ids, self._texts, grades, sizes)
        columns = [pl.Series(name, [row[name] for row in candidates], kind) for name, kind in _KINDS.items()]
        values = {**scores, AGREEMENT: agreements(hits, sizes, TOP)}
        # Queries are numbered, because several may have the same id.
        columns[0] = pl.Series("query_id", [str(row) for row, size in enumerate(sizes) for _ in range(size)])
        table = pl.DataFrame([*columns, *(pl.Series(column_of(name), column) for name, column in values.items())])
        found = np.diff(hits.offsets) > 0
        starts = np.cumsum([0, *sizes[:-1]])
        answered = table.filter(pl.Series(found & np.repeat(found[starts], sizes)))
        effectiveness, proxy = self._placed(judged)
        directions = {**self.scorer.directions(judged), AGREEMENT: Direction.UP}
        pairs = make_pairs(answered, directions, (effectiveness,), (self.lean,))
        variants = iter(self._variants(pairs, directions, proxy))
        originals = table[starts.tolist()].rows(named=True)
        sides, signatures = self.counting.sides, {one.text: one.signature for one in self.scorer.asked}
        deciding = (*(() if proxy else sides.effectiveness), *(sides.lean or (self.lean,)))
        every = list[Alternatives | DataError]()
        for row, (one, written) in enumerate(zip(asked, made, strict=True)):
            if not found[starts[row]]:
                every.append(DataError(self.why_nothing(one.query)))
                continue
            own, dropped = next(variants)
            nothing = int((~found[starts[row] : starts[row] + sizes[row]]).sum())
            lost = {**written.dropped, "found nothing": nothing, **dropped}
            original = self._variant(originals[row], directions)
            every.append(Alternatives(
                one.query, one.query_id, judged, effectiveness, proxy, self.lean, original, own,
                {reason: count for reason, count in sorted(lost.items()) if count},
                {name: signatures.get(name, AGREEMENT_SAYS) for name in directions},
                {name: BETTER[way] for name, way in directions.items()}, self.setting,
                self.leaning.leans(original.values.get(self.lean)), methods=written.methods, notes=written.notes,
                deciding=deciding,
            ))  # fmt: skip
        return every

    def _placed(self, judged: bool) -> tuple[str, bool]:
        """Return the measure that is compared with lean, and whether it is a proxy, as it is without judgements."""
        placed = self.effectiveness if judged else None
        return placed or AGREEMENT, placed is None

    def _variants(
        self, pairs: PairTable, directions: Mapping[str, Direction], proxy: bool
    ) -> Iterator[tuple[tuple[Variant, ...], Mapping[str, int]]]:
        """Return the reformulations of each query, and those that were left out by reason."""
        gains = {name: pairs.values(gain_column(name)) for name in directions}
        leans = self.counting.sides.lean_verdicts(gains, len(pairs.query))
        outcomes = [None] * len(leans) if proxy else self.counting.sides.outcomes(gains, len(pairs.query))
        rows = zip(pairs.table.iter_rows(named=True), outcomes, leans, strict=True)
        every = [self._variant(row, directions, *verdicts) for row, *verdicts in rows]
        for query, end in enumerate(np.searchsorted(pairs.query, np.arange(pairs.queries), "right").tolist()):
            start = int(np.searchsorted(pairs.query, query))
            yield tuple(every[start:end]), pairs.dropped_of(query)

    def _variant(
        self, row: Mapping[str, Any], directions: Mapping[str, Direction], outcome: str | None = None,
        lean: str | None = None,
    ) -> Variant:  # fmt: skip
        groups = self._rules.look(row["text"]).groups
        if row["method"] == ORIGINAL:
            values = {name: number(row[column_of(name)]) for name in directions}
            return Variant(row["variant_id"], row["text"], ORIGINAL, None, values, {}, None, None, groups)
        values = {name: number(row[new_column(name)]) for name in directions}
        gains = {name: number(row[gain_column(name)]) for name in directions}
        return Variant(
            row["variant_id"], row["text"], row["method"], row["doc_id"], values, gains, outcome, lean, groups,
            row["p_same"], row["p_natural"], values[AGREEMENT], bool(row["stored"]), row["kind"],
        )  # fmt: skip

    def compare(self, query: str, other: str, k: int = TOP, query_id: str | None = None) -> Comparison:
        """Compare the result lists of two queries.

        The effectiveness of both lists is measured with the judgements of ``query``; ``query_id`` chooses among several
        queries of the collection with the same text.
        """
        judged = self._judged(query, query_id)
        hits = self._find([query, other], max(k, self.depth))
        sides = [part(hits, *hits.offsets[row : row + 2].tolist()) for row in range(2)]
        old, new = (
            self._answer(judged._replace(query=text), side, k) for text, side in zip((query, other), sides, strict=True)
        )
        gains: dict[str, float | None] = {}
        after = {one.measure: one.value for one in new.values}
        directions = self.scorer.directions(judged.grades is not None)
        for one in old.values:
            value = after.get(one.measure)
            gains[one.measure] = (
                None if one.value is None or value is None else directions[one.measure].gain(one.value, value)
            )
        columns = {name: np.array([np.nan if gain is None else gain]) for name, gain in gains.items()}
        effectiveness, proxy = self._placed(judged.grades is not None)
        # Agreement does not measure effectiveness: without judgements, there is only a verdict on lean.
        decided = self.counting.sides
        outcome = None if proxy else decided.outcomes(columns, 1)[0]
        ranks = [{doc: rank for rank, doc in enumerate(side.docs.tolist(), 1)} for side in sides]
        shown = dict.fromkeys(doc for side in sides for doc in side.docs[:k].tolist())
        ids = self.searched.ranker.doc_ids
        moves = tuple(Move(str(ids[doc].as_py()), ranks[0].get(doc), ranks[1].get(doc)) for doc in shown)
        return Comparison(
            old, new, self.depth, moves, gains, float(agreements(hits, [2], TOP)[1]), outcome,
            decided.lean_verdicts(columns, 1)[0], effectiveness, proxy, self.lean, decided.tolerance,
            *self._writer.judge(query, other),
        )  # fmt: skip


# Measure one text: the words of groups in it, and its lean as if it were the only result.

# The most characters that are read: the length of a long passage.
LONGEST = 20_000


@dataclass(frozen=True)
class MeasuredText:
    """``words`` are the marked words of a text in order; ``values`` are those of measures that read no judgements."""

    mentions: Mapping[str, int]
    words: tuple[str, ...]
    marks: tuple[ShownMark, ...]
    values: Mapping[str, float | None]
    sign: str
    notes: tuple[str, ...]


def measure_text(explorer: Explorer, text: str, query: str = "") -> MeasuredText:
    """Mark and count the words of groups in a text; with a query, also estimate whether a word is off topic."""
    marks = explorer.marker.find(text)
    (explained,) = explorer.explain(query, [text], [marks])
    hits = Hits(np.array([0, 1], np.int64), np.zeros(1, np.int32), np.ones(1, np.float32))
    found = explorer.scorer.score(hits, pa.array(["text"]), lambda _: [text])
    values = {name: number(column[0]) for name, column in found.items()}
    lexicon = explorer.marker.lexicon
    notes = () if is_english(text) or not counts_english(lexicon) else (not_english_note(1, 1, lexicon.name),)
    words = tuple(text[mark.start : mark.end] for mark in explained)
    return MeasuredText(explorer.marker.count(marks), words, explained, values, explorer.setting.sign, notes)
