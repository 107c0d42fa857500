"""The contracts of plugins, by kind. Call these checks from your own tests.

from askew.testing.contracts import check_measure_family
def test_my_measure_keeps_the_contract():
    check_measure_family(MyMeasure)
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from askew.core import protocols
from askew.core.errors import ConfigError
from askew.core.measure import Direction, Measure
from askew.core.ranking import Hits
from askew.logs.tables import LOG_COLUMNS
from askew.measures.catalogue import Catalogue
from askew.measures.measure import measure
from askew.search.bm25.analyze import Analyzer
from askew.search.feedback import BLANK

# Small objects with real behavior for the tests of plugin authors.


class ToyStatistics:
    """The statistics of a few texts, analyzed as by the default index."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._analyzer = Analyzer()
        terms = [[term for _, term in self.split(text) if term] for text in texts]
        self.documents, self.tokens = sum(1 for text in texts if text.strip(BLANK)), sum(map(len, terms))
        self._frequency = Counter(term for one in terms for term in set(one))
        self._total = Counter(term for one in terms for term in one)

    def split(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text in order, each with its term; None for a stop word."""
        return self._analyzer.pairs(text)

    def split_many(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``split`` for many texts together."""
        return self._analyzer.pairs_of(texts)

    def document_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of texts that contain each term."""
        return np.array([self._frequency[term] for term in terms], np.int64)

    def collection_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return how often each term occurs in all texts."""
        return np.array([self._total[term] for term in terms], np.int64)


# The contract of mitigation methods. Call ``check_mitigation`` from your own tests.

# Six documents by how often they name each of two groups, and lists of four queries, one of them empty.
COUNTS = np.array([[3, 0], [0, 2], [0, 0], [1, 1], [0, 5], [2, 0]], np.int32)
LISTS: tuple[list[int], ...] = ([0, 1, 2, 3, 4, 5], [5, 0, 2], [], [4])


def toy_task(groups: tuple[str, ...] = ("a", "b")) -> protocols.MitigationTask:
    """A small task without a search engine: lists, and counts of groups."""
    offsets = np.cumsum([0, *map(len, LISTS)]).astype(np.int64)
    docs = np.array([doc for one in LISTS for doc in one], np.int32)
    scores = np.array([10.0 - rank for one in LISTS for rank in range(len(one))], np.float32)
    ids = [f"q{row}" for row in range(len(LISTS))]
    return protocols.MitigationTask(ids, [f"text {one}" for one in ids], Hits(offsets, docs, scores), groups, COUNTS)


def check_mitigation(method: protocols.MitigationPlugin, task: protocols.MitigationTask | None = None) -> Hits:
    """Check that a method gives a list for each query, each document once, best first, alone as in a batch.

    A method that searches needs its own ``task``, with the functions that it calls.
    """
    assert isinstance(method, protocols.MitigationPlugin), "see askew.core.protocols.MitigationPlugin"
    given = task or toy_task()
    before = given.first.docs.copy(), given.first.scores.copy()
    made = protocols.check_lists(method.rank(given), given, type(method).__name__)
    assert all((one == two).all() for one, two in zip(before, (given.first.docs, given.first.scores), strict=True)), (
        "the method must not change task.first"
    )
    again = method.rank(given)
    assert (made.docs == again.docs).all(), "two calls with the same task must give the same results"
    for row in range(len(made)):
        part = slice(int(made.offsets[row]), int(made.offsets[row + 1]))
        assert (np.diff(made.scores[part]) <= 0).all(), "scores must not rise from one rank to the next"
        own = slice(int(given.first.offsets[row]), int(given.first.offsets[row + 1]))
        first = Hits(np.array([0, own.stop - own.start], np.int64), given.first.docs[own], given.first.scores[own])
        ids, texts = given.query_ids[row : row + 1], given.texts[row : row + 1]
        alone = method.rank(replace(given, first=first, query_ids=ids, texts=texts))
        assert alone.docs.tolist() == made.docs[part].tolist(), "a result must not depend on the other queries"
    return made


# The contracts of filters and of query classifiers. Call these checks from your own tests.

# A filter may drop repeated candidates of a query. Only this reason may depend on the other candidates.
DUPLICATE = "duplicate"

Triple = tuple[str, str, int]

TOY_PAIRS: tuple[Triple, ...] = (
    ("is she a good nurse", "is she a skilled nurse", 0),
    ("is she a good nurse", "Is she a skilled nurse?", 0),
    ("is she a good nurse", "is she a good nurse", 0),
    ("is she a good nurse", "", 0),
    ("who won in 1984", "winner of 1984", 4),
    ("who won in 1984", "who won", 4),
    ("Was Marie Curie married", "was the scientist married", 2),
    ("Was Marie Curie married", "husband of Marie Curie", 2),
    ("naïve façade", "naive facade \x07", 9),
    ("", "station hall", 3),
    ("is she a good nurse", "is she a skilled nurse", 7),
)
TOY_TEXTS = (
    "is she a good nurse", "history of the railway station", "", "who was his brother", "naïve façades 1984",
    "he and she", "WOMEN'S RIGHTS", "who was his brother",
)  # fmt: skip


def check_filter(kept_by: protocols.FilterPlugin, pairs: Sequence[Triple] = TOY_PAIRS) -> list[str | None]:
    """Check that a filter answers every pair, always the same way; other pairs have no effect, except duplicates."""
    assert isinstance(kept_by, protocols.FilterPlugin), "see askew.core.protocols.FilterPlugin"
    assert kept_by.name and kept_by.name.strip() == kept_by.name, "the name must be a text without blanks around it"
    json.dumps(dict(kept_by.settings()), sort_keys=True)
    reasons = _answers(kept_by, pairs)
    assert len(reasons) == len(pairs), "the filter must return None or a reason for each candidate"
    for reason in reasons:
        one_line = reason is None or (reason == " ".join(reason.split()) and reason)
        assert one_line, f"the reason for dropping a candidate must be one line of words, found {reason!r}"
    assert _answers(kept_by, pairs) == reasons, "two calls with the same pairs must give the same result"
    renamed = [(original, candidate, row * 31 + 5) for original, candidate, row in pairs]
    assert _answers(kept_by, renamed) == reasons, "the result must not depend on the row numbers of the queries"
    _check_company(kept_by, pairs, reasons)
    kept = [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]
    assert not any(_answers(kept_by, kept)), "kept candidates must be kept again"
    assert kept_by.check([], [], []) == [], "a check of an empty list of pairs must return an empty list"
    return reasons


def _check_company(kept_by: protocols.FilterPlugin, pairs: Sequence[Triple], reasons: list[str | None]) -> None:
    for row in {row for _, _, row in pairs}:
        own = [i for i, pair in enumerate(pairs) if pair[2] == row]
        alone = _answers(kept_by, [pairs[i] for i in own])
        assert alone == [reasons[i] for i in own], f"the results for query {row} must not depend on other queries"
    for pair, reason in zip(pairs, reasons, strict=True):
        if reason != DUPLICATE:
            assert _answers(kept_by, [pair]) == [reason], f"{pair}: other candidates may matter only as duplicates"


def _answers(kept_by: protocols.FilterPlugin, pairs: Sequence[Triple]) -> list[str | None]:
    return kept_by.check([p[0] for p in pairs], [p[1] for p in pairs], [p[2] for p in pairs])


def check_classifier(
    classifier: protocols.ClassifierPlugin, texts: Sequence[str] = TOY_TEXTS, tolerance: float = 1e-4
) -> protocols.Classified:
    """Check that a classifier gives every text probabilities that sum to one, always the same, alone or in a batch.

    ``tolerance`` allows for the last digits of a model, which change with the size of a batch.
    """
    assert isinstance(classifier, protocols.ClassifierPlugin), "see askew.core.protocols.ClassifierPlugin"
    assert len(set(classifier.labels)) == len(classifier.labels), "the labels must be distinct"
    assert all(label and label == label.strip() for label in classifier.labels), (
        "a label must be a text without blanks around it"
    )
    json.dumps(dict(classifier.settings()), sort_keys=True)
    found = classifier.classify(list(texts))
    _check_classified(found, classifier.labels, len(texts))
    again = classifier.classify(tuple(texts))
    assert np.array_equal(found.probabilities, again.probabilities), "two calls must give the same probabilities"
    assert np.array_equal(found.chosen, again.chosen), "two calls with the same texts must give the same labels"
    for i, text in enumerate(texts):
        alone = classifier.classify([text])
        near = np.allclose(alone.probabilities[0], found.probabilities[i], rtol=0, atol=tolerance)
        assert near, f"{text!r}: the probabilities must not depend on the other texts"
        ordered = np.sort(found.probabilities[i])
        if ordered[-1] - ordered[-2:][0] > 2 * tolerance:
            assert alone.chosen[0] == found.chosen[i], f"{text!r}: the label must not depend on the other texts"
    _check_classified(classifier.classify([]), classifier.labels, 0)
    return found


def _check_classified(found: protocols.Classified, labels: tuple[str, ...], texts: int) -> None:
    assert found.labels == labels, "the result must have the same labels as the classifier, in the same order"
    assert found.probabilities.shape == (texts, len(labels)), "each text must have a probability for each label"
    assert found.chosen.shape == (texts,), "``chosen`` must have a value for each text"
    assert ((found.probabilities >= 0) & (found.probabilities <= 1)).all(), "a probability must be from 0 to 1"
    assert np.allclose(found.probabilities.sum(axis=1), 1.0), "the probabilities of a text must sum to one"
    assert ((found.chosen >= -1) & (found.chosen < len(labels))).all(), "``chosen`` must be a label or -1"


TOY_DOCS = {
    "d1": "He said that he would bring his brother.",
    "d2": "She asked her mother and her sister.",
    "d3": "The station opens at nine.",
    "d4": "A man and a woman met; she smiled, he waved.",
    "d5": "",
    "d6": "Die Mutter, naïve façade, 100 %: she’s here",
}
TOY_RUN = {
    "q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0},
    "q2": {"d4": 2.5, "d5": 2.5, "d6": 0.5, "d1": 0.1},
    "q3": {"d3": 1.0},
}
TOY_QRELS = [("q1", "d2", 1), ("q2", "d6", 2), ("q2", "d1", 1), ("q3", "d1", 1)]


def check_measure_family(family: protocols.MeasureFamily) -> None:
    """Check that a family scores every query of the toy collection, and that its signature can be parsed.

    A query for which the measure is not defined has NaN, which is reported; any other value must be finite.
    """
    assert isinstance(family, protocols.MeasureFamily), "see askew.core.protocols.MeasureFamily"
    (asked,) = Catalogue().complete([f"{family.name}@3"])
    assert asked.direction in Direction
    assert str(Measure.parse(asked.signature)) == asked.signature, "a parsed signature must be the same text"
    first = _scores(family.name, TOY_RUN)
    assert set(first) == set(TOY_RUN), "the measure must return a value or NaN for every query of the run"
    assert all(value is None or math.isfinite(value) for value in first.values()), "a value must be finite or NaN"
    shuffled = {query: dict(_shuffled(docs)) for query, docs in _shuffled(TOY_RUN)}
    assert _scores(family.name, shuffled) == first, "the values must not depend on the order of the lines in the run"


def check_stage(stage: protocols.Stage, rows: pa.Table) -> None:
    """Check that a stage accounts for every row, and gives the same result twice and for any division into shards."""
    assert isinstance(stage, protocols.Stage), "see askew.core.protocols.Stage"
    json.dumps(dict(stage.settings()), sort_keys=True)
    whole, dropped = stage.run(rows)
    again, _ = stage.run(rows)
    assert whole.equals(again), "two runs of the stage on the same rows must give the same result"
    used = getattr(stage, "rows_used", None)
    kept = used(whole) if used is not None else whole.num_rows
    assert kept + sum(dropped.values()) == rows.num_rows, "every row must be kept or dropped"
    halves = [stage.run(part)[0] for part in (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2))]
    assert pa.concat_tables(halves).equals(whole), "the result must not depend on the shards"


def toy_documents() -> pa.Table:
    """Return the toy collection as a table for the index of a ranker."""
    return pa.table({"doc_id": pa.array(list(TOY_DOCS)), "text": pa.array(list(TOY_DOCS.values()), pa.large_string())})


TOY_QUERIES = ["who is his brother", "mother and sister", "", "station", "zzzz", "mother and sister", "naïve façade"]


def check_ranker(ranker: protocols.RankerPlugin, queries: Sequence[str] = tuple(TOY_QUERIES)) -> None:
    """Check that a ranker answers every text in order, alone as in a batch, and with at most k documents."""
    assert isinstance(ranker, protocols.RankerPlugin), "see askew.core.protocols.RankerPlugin"
    assert re.fullmatch(r"\S+", ranker.id), "the id must be one word, a column of a TREC run"
    before = ranker.doc_ids.to_pylist()
    whole = ranker.search(list(queries), 3)
    _check_documents(before, ranker)
    _check_hits(whole, len(queries), 3, len(ranker.doc_ids))
    again = ranker.search(pa.array(list(queries)), 3)
    assert np.array_equal(whole.docs, again.docs), "a list and an Arrow array must give the same documents"
    most = min(1000, getattr(ranker, "most", None) or 1000)
    for i, text in enumerate(queries):
        part = slice(int(whole.offsets[i]), int(whole.offsets[i + 1]))
        alone = ranker.search([text], 3)
        why = "the documents of a query must not depend on other queries"
        _same_list(alone.docs, alone.scores, whole.docs[part], whole.scores[part], why)
        first = ranker.search([text], 1)
        top = "a search with k=1 must return the top document of a search with k=3"
        assert len(first.docs) == min(1, len(alone.docs)), top
        _same_list(first.docs, first.scores, alone.docs[:1], alone.scores[:1], top)
    _check_hits(ranker.search(list(queries), most), len(queries), most, len(ranker.doc_ids))
    _check_documents(before, ranker)
    assert len(ranker.search([], 3)) == 0, "a search for an empty list of queries must return an empty result"
    for wrong in (0, -1):
        try:
            ranker.search(list(queries), wrong)
        except ConfigError:
            continue
        raise AssertionError(f"a search with k={wrong} must raise ConfigError")


def _check_documents(before: list[str], ranker: protocols.RankerPlugin) -> None:
    """Check the document ids: a live engine adds the documents that it returns, but ordinals never change."""
    now = ranker.doc_ids.to_pylist()
    assert len(set(now)) == len(now), "the document ids in ``doc_ids`` must be distinct"
    assert now[: len(before)] == before, "a search may append ids to the list ``doc_ids``, but must not move ids in it"


def _check_hits(hits: Hits, queries: int, k: int, documents: int) -> None:
    assert len(hits) == queries, "every query must have a result list, which may be empty"
    assert np.isfinite(hits.scores).all(), "a score must be a finite number"
    for i in range(queries):
        part = slice(int(hits.offsets[i]), int(hits.offsets[i + 1]))
        docs, scores = hits.docs[part], hits.scores[part]
        assert len(docs) <= k, "a result list must have at most k documents"
        assert ((docs >= 0) & (docs < documents)).all(), "``docs`` must have positions in ``doc_ids``"
        assert len(set(docs.tolist())) == len(docs), "a result list must not contain a document twice"
        falls, ties = scores[:-1] > scores[1:], scores[:-1] == scores[1:]
        ordered = (falls | ties & (docs[:-1] < docs[1:])).all()
        assert ordered, "results must be in descending order of score, and equal scores in the order of ``doc_ids``"


def _same_list(docs: Any, scores: Any, other_docs: Any, other_scores: Any, why: str) -> None:
    """Check that two lists agree, except for ties in the last digits, which depend on the size of a batch."""
    assert len(scores) == len(other_scores), why
    assert np.allclose(scores, other_scores, rtol=1e-4, atol=1e-5), why
    moved = docs != other_docs
    if moved.any():
        gaps = np.abs(scores[:, None] - scores[None, :]) + np.eye(len(scores))
        assert (gaps.min(axis=1)[moved] < 1e-4).all(), why


def toy_asked() -> protocols.QueryBatch:
    """Return queries with passages and statistics, as the stage passes them to a reformulator."""
    texts = ("is she a good nurse", "history of the railway station", "", "who was his brother", "naïve façades 1984")
    passages = tuple(
        tuple(protocols.Passage(doc_id, TOY_PASSAGES[doc_id], 5.0 - i) for i, doc_id in enumerate(ids))
        for ids in (("p1", "p2", "p3"), ("p4", "p5", "p3"), (), ("p2", "p1"), ("p5",))
    )
    return protocols.QueryBatch(
        tuple(f"q{i}" for i in range(len(texts))), texts, passages, ToyStatistics(list(TOY_PASSAGES.values()))
    )


def check_reformulator(
    reformulator: protocols.ReformulatorPlugin, asked: protocols.QueryBatch | None = None, batches: bool = True
) -> protocols.Candidates:
    """Check that a reformulator gives the same candidates twice, only for queries of the batch, and no blank ones.

    With ``batches`` a query must get the same candidates alone as in a batch.
    """
    assert isinstance(reformulator, protocols.ReformulatorPlugin), "see askew.core.protocols.ReformulatorPlugin"
    assert reformulator.reads <= {"passages", "statistics"}, "``reads`` may contain only passages and statistics"
    json.dumps(dict(reformulator.settings()), sort_keys=True)
    asked = asked or toy_asked()
    found = reformulator.reformulate(asked)
    assert len(found.rows) == len(found.texts) == len(found.doc_ids), "a candidate must have row, text and doc_id"
    assert all(0 <= row < len(asked) for row in found.rows), "``rows`` must have positions of queries in the batch"
    for text in found.texts:
        assert text == text.strip() and text, "a candidate must be a text without blanks around it"
        assert not re.search(r"[\n\t\r\0]", text), "a candidate must be one line without tabs"
    again = reformulator.reformulate(asked)
    assert (again.rows, again.texts, again.doc_ids) == (found.rows, found.texts, found.doc_ids), (
        "two calls must give the same candidates"
    )
    if batches:
        for row in range(len(asked)):
            passages, contexts = asked.passages, asked.contexts
            query = protocols.QueryBatch(
                (asked.query_ids[row],),
                (asked.texts[row],),
                passages and (passages[row],),
                asked.statistics,
                contexts and (contexts[row],),
            )
            alone = reformulator.reformulate(query)
            together = [text for at, text in zip(found.rows, found.texts, strict=True) if at == row]
            assert alone.texts == together, f"query {row}: candidates must not depend on other queries"
    assert len(reformulator.reformulate(protocols.QueryBatch((), (), (), asked.statistics))) == 0, (
        "a batch without queries must give no candidates"
    )
    return found


TOY_PASSAGES = {
    "p1": "A nurse cares for patients. She works in a hospital ward, and she keeps records of every patient.",
    "p2": "The young man became a nurse in 1984; his brother, an engineer, said that he was proud of him.",
    "p3": "Hospitals train nurses and doctors. Training for nurses takes three years, and pay depends on the ward.",
    "p4": "The railway station was opened in 1871 by the North Line company. The station hall has a glass roof.",
    "p5": "Façades of old railway stations were built of brick; engineers of the line drew the plans in 1869.",
}


def check_log_format(
    form: protocols.LogFormat, path: Path, columns: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Check that a log format reads a file, names its columns, and gives the same rows each time.

    ``path`` is a small file of this format with at least one row that can be read. Returns its rows in their stored
    form without ids, so that a test can check their content.
    """
    from askew.logs.reading import file_source, read_rows

    assert isinstance(form, protocols.LogFormat), "see askew.core.protocols.LogFormat"
    assert re.fullmatch(r"[a-z0-9-]+", form.name), "the name must be of lower-case letters, digits, hyphens"
    assert (type(form).__doc__ or "").strip(), "the first line of the docstring must say what it reads"
    assert path.name.lower().removesuffix(".gz").endswith(form.endings), "the file must end as ``endings`` say"
    source = file_source(path, form, columns)
    has = source.open(None).columns
    assert has <= set(LOG_COLUMNS), f"unknown columns: {', '.join(sorted(has - set(LOG_COLUMNS)))}"
    assert {"time", "query"} <= has and has & {"user", "session"}, "a row needs time, query, and user or session"
    found, again = (list(read_rows(source)) for _ in range(2))
    kept = [row for batch in found for row in batch.table.drop_columns(_ids_of(batch.table)).to_pylist()]
    assert kept, f"no row can be read; rejected: {[dict(batch.rejected.counts) for batch in found]}"
    for batch in found:
        assert set(batch.table.column_names) >= has - {"line"}, "each batch must have all of ``columns``"
        assert batch.rows == batch.table.num_rows + batch.rejected.total, "every row must be kept or rejected"
    lines = [row["line"] for row in kept]
    assert lines == sorted(set(lines)), "``line`` must rise from row to row"
    rows = [row for batch in again for row in batch.table.drop_columns(_ids_of(batch.table)).to_pylist()]
    assert rows == kept, "two readings must give the same rows"
    return kept


def _ids_of(table: pa.Table) -> list[str]:
    return [name for name in ("user", "session") if name in table.column_names]


def _shuffled(items: dict[str, Any]) -> list[tuple[str, Any]]:
    pairs = list(items.items())
    random.Random(7).shuffle(pairs)
    return pairs


def _scores(name: str, run: dict[str, dict[str, float]]) -> dict[str, float | None]:
    """Return the value of each query; None for NaN, so that two results can be compared."""
    qrels = pl.DataFrame(TOY_QRELS, schema=["query_id", "doc_id", "relevance"], orient="row")
    report = measure({"toy": run}, TOY_DOCS, qrels=qrels, measures=[f"{name}@3"])
    (scores,) = report.runs
    values = [None if math.isnan(value) else value for value in scores.values[f"{name}@3"].tolist()]
    return dict(zip(scores.query_ids, values, strict=True))
