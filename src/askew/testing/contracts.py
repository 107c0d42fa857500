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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.app.measure.measure import measure
from askew.core.errors import ConfigError
from askew.core.measure import Direction, Measure
from askew.core.ranking import Hits
from askew.measures.catalogue import Catalogue
from askew.plugins.kinds import MeasureFamily, RankerPlugin, Stage
from askew.plugins.log_formats import LOG_COLUMNS, LogFormat
from askew.plugins.methods import Candidates, Passage, QueryBatch, ReformulatorPlugin

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


def check_measure_family(family: MeasureFamily) -> None:
    """Check that a family scores every query of the toy collection, and that its signature can be parsed.

    A query for which the measure is not defined has NaN, which is reported; any other value must be finite.
    """
    assert isinstance(family, MeasureFamily), "the family lacks an attribute: see askew.plugins.kinds.MeasureFamily"
    (asked,) = Catalogue(overrides={"background": "self"}).complete([f"{family.name}@3"])
    assert asked.direction in Direction
    assert str(Measure.parse(asked.signature)) == asked.signature, "parsing the signature must give the same signature"
    first = _scores(family.name, TOY_RUN)
    assert set(first) == set(TOY_RUN), "every query of the run must have a value or a reason"
    assert all(value is None or math.isfinite(value) for value in first.values()), "a value must be a finite number"
    shuffled = {query: dict(_shuffled(docs)) for query, docs in _shuffled(TOY_RUN)}
    assert _scores(family.name, shuffled) == first, "the values must not depend on the order of the lines in the run"


def check_stage(stage: Stage, rows: pa.Table) -> None:
    """Check that a stage accounts for every row, and gives the same result twice and for any division into shards."""
    assert isinstance(stage, Stage), "the stage lacks an attribute: see askew.plugins.kinds.Stage"
    json.dumps(dict(stage.settings()), sort_keys=True)
    whole, dropped = stage.run(rows)
    again, _ = stage.run(rows)
    assert whole.equals(again), "the same rows must give the same result"
    used = getattr(stage, "rows_used", None)
    kept = used(whole) if used is not None else whole.num_rows
    assert kept + sum(dropped.values()) == rows.num_rows, (
        "the numbers of kept and dropped rows must add up to the number of input rows"
    )
    halves = [stage.run(part)[0] for part in (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2))]
    assert pa.concat_tables(halves).equals(whole), "the result must not depend on the size of the shards"


def toy_documents() -> pa.Table:
    """Return the toy collection as a table for the index of a ranker."""
    return pa.table({"doc_id": pa.array(list(TOY_DOCS)), "text": pa.array(list(TOY_DOCS.values()), pa.large_string())})


TOY_QUERIES = ["who is his brother", "mother and sister", "", "station", "zzzz", "mother and sister", "naïve façade"]


def check_ranker(ranker: RankerPlugin, queries: Sequence[str] = tuple(TOY_QUERIES)) -> None:
    """Check that a ranker answers every text in order, alone as in a batch, and with at most k documents."""
    assert isinstance(ranker, RankerPlugin), "the ranker lacks an attribute: see askew.plugins.kinds.RankerPlugin"
    assert re.fullmatch(r"\S+", ranker.id), "the id is written as one column of a run, so it must have no blanks"
    before = ranker.doc_ids.to_pylist()
    whole = ranker.search(list(queries), 3)
    _check_documents(before, ranker)
    _check_hits(whole, len(queries), 3, len(ranker.doc_ids))
    again = ranker.search(pa.array(list(queries)), 3)
    assert np.array_equal(whole.docs, again.docs), (
        "the same texts must give the same result, given as a list or as a column"
    )
    most = min(1000, getattr(ranker, "most", None) or 1000)
    for i, text in enumerate(queries):
        part = slice(int(whole.offsets[i]), int(whole.offsets[i + 1]))
        alone = ranker.search([text], 3)
        _same_list(
            alone.docs,
            alone.scores,
            whole.docs[part],
            whole.scores[part],
            "the list must not depend on the other texts",
        )
        first = ranker.search([text], 1)
        assert len(first.docs) == min(1, len(alone.docs)), "k=1 must give the first document of the list"
        _same_list(
            first.docs, first.scores, alone.docs[:1], alone.scores[:1], "k=1 must give the first document of the list"
        )
    _check_hits(ranker.search(list(queries), most), len(queries), most, len(ranker.doc_ids))
    _check_documents(before, ranker)
    assert len(ranker.search([], 3)) == 0, "the result for no texts must be empty"
    for wrong in (0, -1):
        try:
            ranker.search(list(queries), wrong)
        except ConfigError:
            continue
        raise AssertionError(f"k={wrong} must raise ConfigError")


def _check_documents(before: list[str], ranker: RankerPlugin) -> None:
    """Check the document ids: a live engine adds the documents that it returns, but ordinals never change."""
    now = ranker.doc_ids.to_pylist()
    assert len(set(now)) == len(now), "the document ids must be distinct"
    assert now[: len(before)] == before, "the position of a document in ``doc_ids`` must not change"


def _check_hits(hits: Hits, queries: int, k: int, documents: int) -> None:
    assert len(hits) == queries, "every text must have a list of documents, which may be empty"
    assert np.isfinite(hits.scores).all(), "a score must be a finite number"
    for i in range(queries):
        part = slice(int(hits.offsets[i]), int(hits.offsets[i + 1]))
        docs, scores = hits.docs[part], hits.scores[part]
        assert len(docs) <= k, "a list must have at most k documents"
        assert ((docs >= 0) & (docs < documents)).all(), "``docs`` must have positions in ``doc_ids``"
        assert len(set(docs.tolist())) == len(docs), "a list must not have a document twice"
        falls, ties = scores[:-1] > scores[1:], scores[:-1] == scores[1:]
        assert (falls | ties & (docs[:-1] < docs[1:])).all(), (
            "the best score must come first, and equal scores must be in the order of the collection"
        )


def _same_list(docs: Any, scores: Any, other_docs: Any, other_scores: Any, why: str) -> None:
    """Check that two lists agree, except for ties in the last digits, which depend on the size of a batch."""
    assert len(scores) == len(other_scores), why
    assert np.allclose(scores, other_scores, rtol=1e-4, atol=1e-5), why
    moved = docs != other_docs
    if moved.any():
        gaps = np.abs(scores[:, None] - scores[None, :]) + np.eye(len(scores))
        assert (gaps.min(axis=1)[moved] < 1e-4).all(), why


def toy_asked() -> QueryBatch:
    """Return queries with passages and statistics, as the stage passes them to a reformulator."""
    from askew.testing.toys import ToyStatistics

    texts = ("is she a good nurse", "history of the railway station", "", "who was his brother", "naïve façades 1984")
    passages = tuple(
        tuple(Passage(doc_id, TOY_PASSAGES[doc_id], 5.0 - i) for i, doc_id in enumerate(ids))
        for ids in (("p1", "p2", "p3"), ("p4", "p5", "p3"), (), ("p2", "p1"), ("p5",))
    )
    return QueryBatch(
        tuple(f"q{i}" for i in range(len(texts))), texts, passages, ToyStatistics(list(TOY_PASSAGES.values()))
    )


def check_reformulator(
    reformulator: ReformulatorPlugin, asked: QueryBatch | None = None, batches: bool = True
) -> Candidates:
    """Check that a reformulator gives the same candidates twice, only for queries of the batch, and no blank ones.

    With ``batches`` a query must get the same candidates alone as in a batch.
    """
    assert isinstance(reformulator, ReformulatorPlugin), (
        "the reformulator lacks an attribute: see askew.plugins.methods.ReformulatorPlugin"
    )
    assert reformulator.reads <= {"passages", "statistics"}, "``reads`` may contain only passages and statistics"
    json.dumps(dict(reformulator.settings()), sort_keys=True)
    asked = asked or toy_asked()
    found = reformulator.reformulate(asked)
    assert len(found.rows) == len(found.texts) == len(found.doc_ids), (
        "each candidate must have a row, a text and a document id"
    )
    assert all(0 <= row < len(asked) for row in found.rows), "a candidate must belong to a query of the batch"
    for text in found.texts:
        assert text == text.strip() and text, "a candidate must not be empty, or begin or end with a blank"
        assert not re.search(r"[\n\t\r\0]", text), "a candidate must be one line"
    again = reformulator.reformulate(asked)
    assert (again.rows, again.texts, again.doc_ids) == (found.rows, found.texts, found.doc_ids), (
        "two calls must give the same candidates"
    )
    if batches:
        for row in range(len(asked)):
            alone = reformulator.reformulate(_only(asked, row))
            together = [text for at, text in zip(found.rows, found.texts, strict=True) if at == row]
            assert alone.texts == together, f"query {row} must get the same candidates alone as in a batch"
    assert len(reformulator.reformulate(QueryBatch((), (), (), asked.statistics))) == 0, (
        "no queries must give no candidates"
    )
    return found


def _only(asked: QueryBatch, row: int) -> QueryBatch:
    return QueryBatch(
        (asked.query_ids[row],),
        (asked.texts[row],),
        None if asked.passages is None else (asked.passages[row],),
        asked.statistics,
        None if asked.contexts is None else (asked.contexts[row],),
    )


TOY_PASSAGES = {
    "p1": "A nurse cares for patients. She works in a hospital ward, and she keeps records of every patient.",
    "p2": "The young man became a nurse in 1984; his brother, an engineer, said that he was proud of him.",
    "p3": "Hospitals train nurses and doctors. Training for nurses takes three years, and pay depends on the ward.",
    "p4": "The railway station was opened in 1871 by the North Line company. The station hall has a glass roof.",
    "p5": "Façades of old railway stations were built of brick; engineers of the line drew the plans in 1869.",
}


def check_log_format(form: LogFormat, path: Path, columns: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Check that a log format reads a file, names its columns, and gives the same rows each time.

    ``path`` is a small file of this format with at least one row that can be read. Returns its rows in their stored
    form without ids, so that a test can check their content.
    """
    from askew.app.logs.reading import read_rows
    from askew.app.logs.sources import file_source

    assert isinstance(form, LogFormat), "the format lacks an attribute: see askew.plugins.log_formats.LogFormat"
    assert re.fullmatch(r"[a-z0-9-]+", form.name), "the name must have only lower-case letters, digits and hyphens"
    assert (type(form).__doc__ or "").strip(), "the class needs a docstring whose first line says what it reads"
    assert path.name.lower().removesuffix(".gz").endswith(form.endings), (
        "the name of the file must end in one of the endings of the format"
    )
    source = file_source(path, form, columns)
    has = source.open(None).columns
    assert has <= set(LOG_COLUMNS), f"unknown columns: {', '.join(sorted(has - set(LOG_COLUMNS)))}"
    assert {"time", "query"} <= has and has & {"user", "session"}, (
        "a row must have a time, a query, and a user or a session"
    )
    found, again = (list(read_rows(source)) for _ in range(2))
    kept = [row for batch in found for row in batch.table.drop_columns(_ids_of(batch.table)).to_pylist()]
    assert kept, "none of the rows can be read: " + ", ".join(str(dict(batch.rejected.counts)) for batch in found)
    for batch in found:
        assert set(batch.table.column_names) >= has - {"line"}, (
            "each table must have the columns that the format announces"
        )
        assert batch.rows == batch.table.num_rows + batch.rejected.total, (
            "the numbers of kept and rejected rows must add up to the number of rows"
        )
    lines = [row["line"] for row in kept]
    assert lines == sorted(set(lines)), (
        "``line`` must be the position of a row in the file, in ascending order without repeats"
    )
    rows = [row for batch in again for row in batch.table.drop_columns(_ids_of(batch.table)).to_pylist()]
    assert rows == kept, "reading twice must give the same rows; only ids may differ, because their key is random"
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
