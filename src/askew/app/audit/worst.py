"""The queries with the largest lean, and the counted words in their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from askew.app.audit.measures import AuditMeasures, EngineScores
from askew.app.scoring.requested import key_of
from askew.core.defaults import TOKENIZER
from askew.core.measure import Direction
from askew.core.who import LEARNED, WHO
from askew.mentions.marks import Mark, Marker, can_mark
from askew.mentions.resolve import class_probabilities, open_resolver

# How many characters of a text are shown, and how many of them are before the first marked word.
_LONGEST, _BEFORE = 360, 60


@dataclass(frozen=True)
class MarkedResult:
    """A result: ``pieces`` of its text with the groups that each names, and the ``mentions`` of the whole text."""

    rank: int
    doc_id: str
    pieces: tuple[tuple[str, tuple[str, ...]], ...]
    mentions: Mapping[str, int]


@dataclass(frozen=True)
class WorstQuery:
    """A query, its values, the groups that the query itself names, and its results.

    ``in_names`` is the estimated number of counted words that are part of a name, such as "Man" in "Spider-Man"; None
    for groups that the resolver was not trained on.
    """

    query_id: str
    text: str
    lean: float
    values: Mapping[str, float]
    named: tuple[str, ...]
    results: tuple[MarkedResult, ...]
    in_names: int | None = None

    @property
    def mentions(self) -> dict[str, int]:
        """How often the results name each group."""
        found: Counter[str] = Counter()
        for one in self.results:
            found.update(one.mentions)
        return dict(found)


def worst_queries(
    measured: EngineScores, measures: AuditMeasures, lines: pl.DataFrame, docs: Mapping[str, str],
    queries: Mapping[str, str], count: int,
) -> list[WorstQuery]:  # fmt: skip
    """Return the queries with the largest lean, the largest first; queries without any lean are left out."""
    lean = measured.of_query(measures.lean.text)
    way = measures.lean.direction
    leaning = [query for query, value in lean.items() if way is not Direction.ZERO or value != 0]
    chosen = sorted(leaning, key=lambda query: (way.gain(0.0, lean[query]), query))[:count]
    marker = marker_of(measures)
    every = {one: measured.of_query(one) for one in measured.values}
    ranked = _ranked(lines.filter(pl.col("query_id").is_in(chosen)))
    return [
        WorstQuery(
            query, queries[query], lean[query],
            {text: values[query] for text, values in every.items() if query in values},
            _groups(marker.find(queries[query])),
            tuple(_result(marker, rank, doc, docs.get(doc, "")) for rank, doc in ranked[query][: measures.cutoff]),
            _in_names(marker, [docs.get(doc, "") for _, doc in ranked[query][: measures.cutoff]]),
        )
        for query in chosen
    ]  # fmt: skip


def _in_names(marker: Marker, texts: list[str]) -> int | None:
    """Estimate how many counted words are part of a name; each mention has its most probable class."""
    if not set(marker.groups) <= set(LEARNED):
        return None
    marks = [(row, mark) for row, text in enumerate(texts) for mark in marker.find(text)]
    places = np.array([(row, mark.start, mark.end) for row, mark in marks], np.int64).reshape(-1, 3)
    classes = class_probabilities(open_resolver("light"), texts, *places.T).argmax(axis=1)
    return int((classes == WHO.index("name")).sum())


def words_per_query(measures: AuditMeasures, lines: pl.DataFrame, docs: Mapping[str, str]) -> dict[str, float]:
    """Return the mean number of words of each group in the results of a query, over queries with results."""
    marker, ranked = marker_of(measures), _ranked(lines)
    tops = Counter(doc for found in ranked.values() for _, doc in found[: measures.cutoff])
    total: Counter[str] = Counter()
    for doc, times in tops.items():
        counts = marker.count(marker.find(docs.get(doc, "")))
        total.update({group: count * times for group, count in counts.items()})
    return {group: total[group] / max(len(ranked), 1) for group in measures.lean.groups}


def marker_of(measures: AuditMeasures) -> Marker:
    """Return the marker of the words that the deciding measure counts."""
    key = key_of(measures.lean)
    assert key is not None, (
        "the first measure of lean, which selects the worst queries, must count words, as ARaB does; found "
        f"{measures.lean.text}"
    )
    tokens = key.tokens if can_mark(key.tokens) else TOKENIZER
    return Marker(measures.lexicon, tokens, key.overlap, measures.lean.groups or None)


def _ranked(lines: pl.DataFrame) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for query, doc, rank in lines.sort("query_id", "rank").select("query_id", "doc_id", "rank").iter_rows():
        found.setdefault(query, []).append((rank, doc))
    return found


def _result(marker: Marker, rank: int, doc: str, text: str) -> MarkedResult:
    marks = marker.find(text)
    return MarkedResult(rank, doc, _pieces(text, marks), marker.count(marks))


def _groups(marks: Sequence[Mark]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group for mark in marks for group in mark.groups))


def _pieces(text: str, marks: Sequence[Mark]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Cut an excerpt that begins shortly before the first marked word into marked and unmarked pieces."""
    start = 0 if not marks or len(text) <= _LONGEST else max(0, marks[0].start - _BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    start = min([start, *(mark.start for mark in marks[:1])])
    end = len(text) if len(text) - start <= _LONGEST else start + _LONGEST
    # A marked word is never cut: it is shown whole or left out.
    end = min([end, *(mark.start for mark in marks if mark.start < end < mark.end)])
    pieces: list[tuple[str, tuple[str, ...]]] = [("… ", ())] if start else []
    at = start
    for mark in marks:
        if mark.end <= end:
            pieces += [(text[at : mark.start], ()), (text[mark.start : mark.end], mark.groups)]
            at = mark.end
    pieces.append((text[at:end] + (" …" if end < len(text) else ""), ()))
    return tuple(piece for piece in pieces if piece[0])
