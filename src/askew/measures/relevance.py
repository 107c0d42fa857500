"""Estimates whether a document is about the topic of a query, and why a mention appears in the query's results.

Each of the two estimates is a small regression on features of the query, the document and the passage around a mention.
``benchmarks/warrant_model.py`` trains and evaluates them; the weights are in ``data/mentions/relevance.json``. A
document that is judged relevant is on topic. A document that is judged not relevant may still be on topic, so its
relevance is estimated.

``offtopic``   the document is not about the topic of the query
``asked``      the query asks about this very person, work, group or topic
``warranted``  the document is on topic, and the mention belongs to the topic. This class includes mentions that present
               one group as the default (``stereotype``), because there are too few of them for training.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError, DataError
from askew.core.files import DATA
from askew.core.ranking import Flags, Floats, Ints, Rankings
from askew.core.text import end_of_word, stem
from askew.measures.lists import JudgedQueries

WHY = ("offtopic", "asked", "warranted")
OFFTOPIC = WHY.index("offtopic")
ASKED = WHY.index("asked")
WHY_ADAPTER = "minilm-why"
_WORD = re.compile("[a-z0-9]+")
# How many characters are read: of the text (as many as an encoder reads), of its beginning, and on each side of a
# mention.
_WHOLE, _BEGINNING, _AROUND = 1400, 160, 250
_FOLDER = DATA / "mentions"


@cache
def trained() -> dict[str, Any]:
    """The weights of the regressions and their known errors."""
    found: dict[str, Any] = json.loads((_FOLDER / "relevance.json").read_text(encoding="utf-8"))
    return found


@cache
def _rarity() -> dict[str, float]:
    """The rarity of each stem in an encyclopedia: ln(1 + documents / (1 + documents with the stem))."""
    with np.load(_FOLDER / "frequencies.npz", allow_pickle=False) as stored:
        words = stored["stems"].tobytes().decode().split("\n")
        return dict(zip(words, (stored["rarity"] / 16).tolist(), strict=True))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in _WORD.findall(text.lower())]


class WordsOf:
    """The distinct word stems of a query, weighted by rarity."""

    def __init__(self, query: str) -> None:
        rarity = _rarity()
        self.words = list(dict.fromkeys(_stems(query))) or [""]
        self.weights = np.array([rarity.get(word, _RAREST) for word in self.words])
        self.total = float(self.weights.sum())
        self.rarest = int(self.weights.argmax())

    def found_in(self, text: str) -> Any:
        """Which of the words occur in a text."""
        there = set(_stems(text))
        return np.array([word in there for word in self.words])

    def share(self, found: Any) -> float:
        """The weight of the query words that were found, as a share of the weight of all its words."""
        return float((self.weights * found).sum() / self.total)


_RAREST = 11.0


class Estimator:
    """Estimates relevance, and why mentions appear, from words and from cosines of MiniLM vectors."""

    def __init__(self) -> None:
        self._vectors: dict[str, Any] = {}

    @cached_property
    def _encoder(self) -> Any:
        from askew.models.encode import load_model
        from askew.models.find import MINILM

        return load_model("dense", MINILM)

    def relevance(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        """The probability that document i is about the topic of query i."""
        return apply(trained()["relevance"], self.relevance_features(queries, texts))[:, 1]

    def relevance_features(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        """The features of each pair of query and document, one row per pair."""
        words = {name: WordsOf(name) for name in set(queries)}
        rows = []
        for query, text in zip((words[name] for name in queries), texts, strict=True):
            whole, beginning = query.found_in(text[:_WHOLE]), query.found_in(text[:_BEGINNING])
            left = query.weights[~whole]
            rows.append([
                query.share(whole), query.share(beginning), float(left.max() / query.weights.max()) if len(left) else 0,
                float(whole[query.rarest]), float(beginning[query.rarest]), math.log(len(query.words)),
                math.log1p(len(text) / 100),
            ])  # fmt: skip
        found = np.array(rows, np.float64).reshape(len(rows), 7)
        parts = [[text[:_WHOLE] for text in texts], [text[:_BEGINNING] for text in texts]]
        return np.hstack([found, *(self._cosines(queries, part)[:, None] for part in parts)])

    def why_features(
        self, queries: Sequence[str], texts: Sequence[str], starts: Sequence[int], who: Floats, relevance: Floats,
        read: Floats | None = None,
    ) -> Floats:  # fmt: skip
        """One row for each mention: log odds of relevance, query words and similarity of the passage, who it refers to.

        The last columns are the class probabilities of the adapter ``minilm-why``; ``read`` if already computed.
        """
        words = {query: WordsOf(query) for query in set(queries)}
        around = [text[max(0, at - _AROUND) : at + _AROUND] for text, at in zip(texts, starts, strict=True)]
        covered = [words[query].share(words[query].found_in(part)) for query, part in zip(queries, around, strict=True)]
        p = np.clip(relevance, 1e-3, 1 - 1e-3)
        columns = [np.log(p / (1 - p)), np.array(covered), *who.T]
        columns.append(self._cosines(queries, around))
        columns += [*np.log(np.clip(self.read(queries, texts, starts) if read is None else read, 1e-4, 1)).T]
        return np.stack(columns, axis=1)

    def why(
        self, queries: Sequence[str], texts: Sequence[str], starts: Sequence[int], who: Floats, relevance: Floats,
        read: Floats | None = None,
    ) -> Floats:  # fmt: skip
        """The probability of each class of ``WHY`` for each mention.

        ``relevance`` is a probability. It is 1 for a document judged relevant; such a document is never off topic.
        """
        if not len(starts):
            return np.zeros((0, len(WHY)))
        found = apply(trained()["why"], self.why_features(queries, texts, starts, who, relevance, read))
        found[relevance == 1, OFFTOPIC] = 0.0
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def read(self, queries: Sequence[str], texts: Sequence[str], starts: Sequence[int]) -> Floats:
        """The probability of each class from the network that reads the query and the passage."""
        placed = [after_query(*one) for one in zip(queries, texts, starts, strict=True)]
        whole, begins = [text for text, _ in placed], np.array([at for _, at in placed], np.int64)
        ends = np.array([end_of_word(text, at) for text, at in placed], np.int64)
        return np.asarray(self._reader.probabilities(whole, np.arange(len(whole)), begins, ends))

    @cached_property
    def _reader(self) -> Any:
        from askew.measures.resolver import NeuralResolver

        return NeuralResolver(WHY_ADAPTER, classes=WHY)

    def _cosines(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        for side in (queries, texts):
            if new := sorted(set(side) - self._vectors.keys(), key=len):
                vectors = self._encoder.encode(new, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
                self._vectors.update(zip(new, vectors, strict=True))
        left, right = (np.stack([self._vectors[text] for text in side]) for side in (queries, texts))
        return np.asarray((left * right).sum(axis=1), np.float64)


def after_query(query: str, text: str, at: int) -> tuple[str, int]:
    """The text with the query before it, as the network reads it, and the new position of the mention."""
    before = f"{query} | "
    return before + text, len(before) + at


def apply(model: Any, features: Floats) -> Floats:
    """The class probabilities of a regression. Features are first standardized to mean 0 and spread 1."""
    scaled = (features - np.array(model["mean"])) / np.array(model["spread"])
    logits = scaled @ np.array(model["weights"]).T + np.array(model["bias"])
    logits -= logits.max(axis=1, keepdims=True)
    found = np.exp(logits)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def asks_about(why: Floats, rows: Flags) -> Floats:
    """Correct the probabilities for a query that names a group: its on-topic mentions (``rows``) count as ``asked``."""
    found = why.copy()
    found[rows, ASKED] = 1.0 - found[rows, OFFTOPIC]
    found[rows, WHY.index("warranted")] = 0.0
    return found


def confusion(kind: str) -> Floats:
    """The confusion matrix for ``who`` or ``why``: counts of true classes (rows) by estimated classes (columns)."""
    return np.array(trained()["confusion"][kind], np.float64)


def share_error() -> float:
    """The largest error of the estimated share of mentions that are off topic, over labeled collections."""
    return float(max(abs(one["labels"] - one["estimated"]) for one in trained()["offtopic"].values()))


# The relevance of ranked documents: from judgements, or estimated for documents without a judgement.

# Marks unjudged documents. A grade of 0 or below means that a document is judged not relevant.
_LOWEST = -(2**31)


@cache
def open_estimator() -> Estimator:
    """The estimator. It caches its encodings."""
    return Estimator()


class RelevanceSource:
    """The relevance of documents to queries. Texts are read when the first estimate is needed."""

    def __init__(
        self, judged: JudgedQueries | None, queries: Callable[[], Mapping[str, str]], texts: Callable[[], pa.Array]
    ) -> None:
        self._judged, self._read_queries, self._read_texts = judged, queries, texts
        self._known: dict[tuple[str, int], float] = {}

    @cached_property
    def queries(self) -> Mapping[str, str]:
        """The text of each query by its id."""
        return self._read_queries()

    @cached_property
    def texts(self) -> pa.Array:
        """The text of each document by its ordinal; null if it is missing."""
        return self._read_texts()

    def grades(self, rankings: Rankings, queries: pa.Array) -> tuple[Ints, Flags]:
        """The grade of each ranked document, and whether it is judged. ``queries`` has the query id of each list."""
        rows = np.repeat(np.arange(len(rankings)), rankings.lengths)
        grades = np.full(len(rankings.docs), _LOWEST, np.int64)
        if self._judged is None or not len(rows):
            return grades, grades > _LOWEST
        found = self._judged.of_queries(queries)
        width = int(max(rankings.docs.max(initial=0), found.docs.max(initial=0))) + 1
        known = np.repeat(np.arange(len(rankings)), np.diff(found.offsets)) * width + found.docs
        order = np.argsort(known)
        place = np.minimum(np.searchsorted(known[order], rows * width + rankings.docs), len(known) - 1)
        if len(known):
            same = known[order][place] == rows * width + rankings.docs
            grades[same] = found.relevance[order][place[same]]
        return grades, grades > _LOWEST

    def probabilities(self, rankings: Rankings, queries: pa.Array, level: int, resolver: str | None) -> Floats:
        """The probability that each document is relevant: 1 or 0 if judged, else estimated, or 0 without a resolver."""
        grades, judged = self.grades(rankings, queries)
        found = (judged & (grades >= level)).astype(np.float64)
        if resolver is not None:
            found[~judged] = self._estimated(rankings, queries, ~judged)
        return found

    def on_topic(self, rankings: Rankings, queries: pa.Array) -> Floats:
        """The probability that each document is on topic: 1 if it is judged relevant, otherwise an estimate.

        A document that is judged not relevant can still be on topic.
        """
        grades, _ = self.grades(rankings, queries)
        found = np.ones(len(rankings.docs))
        found[grades < 1] = self._estimated(rankings, queries, grades < 1)
        return found

    def _estimated(self, rankings: Rankings, queries: pa.Array, which: Flags) -> Floats:
        """Estimates for the ranked documents marked in ``which``. Each query-document pair is estimated once."""
        rows = np.repeat(np.arange(len(rankings)), rankings.lengths)
        names = queries.to_pylist()
        pairs = [(names[rows[at]], int(rankings.docs[at])) for at in np.flatnonzero(which)]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            texts = [self.texts[doc].as_py() or "" for _, doc in new]
            values = open_estimator().relevance([self.query(name) for name, _ in new], texts)
            self._known.update(zip(new, values.tolist(), strict=True))
        return np.array([self._known[pair] for pair in pairs])

    def query(self, name: str) -> str:
        """The text of a query."""
        if not self.queries:
            raise ConfigError(
                "the texts of the queries are missing; they are needed to estimate the relevance of documents without "
                "a judgement. Give ⟨queries⟩ (a file with lines of query id, TAB, text), or a collection that has them"
            )
        if name not in self.queries:
            raise DataError(
                f"queries: expected the text of query {name!r}, which is in the run; found none",
                code="no-query-text",
                query=name,
            )
        return self.queries[name]
