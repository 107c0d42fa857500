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
    assert isinstance(family, MeasureFamily), (
        "the measure family lacks an attribute that askew.plugins.kinds.MeasureFamily requires"
    )
    (asked,) = Catalogue(overrides={"background": "self"}).complete([f"{family.name}@3"])
    assert asked.direction in Direction
    assert str(Measure.parse(asked.signature)) == asked.signature, (
        "if the signature of a measure is parsed and written again, its text must not change"
    )
    first = _scores(family.name, TOY_RUN)
    assert set(first) == set(TOY_RUN), "the measure must return a value or NaN for every query of the run"
    assert all(value is None or math.isfinite(value) for value in first.values()), (
        "the value of a query must be a finite number or NaN"
    )
    shuffled = {query: dict(_shuffled(docs)) for query, docs in _shuffled(TOY_RUN)}
    assert _scores(family.name, shuffled) == first, "the values must not depend on the order of the lines in the run"


def check_stage(stage: Stage, rows: pa.Table) -> None:
    """Check that a stage accounts for every row, and gives the same result twice and for any division into shards."""
    assert isinstance(stage, Stage), "the stage lacks an attribute that askew.plugins.kinds.Stage requires"
    json.dumps(dict(stage.settings()), sort_keys=True)
    whole, dropped = stage.run(rows)
    again, _ = stage.run(rows)
    assert whole.equals(again), "two runs of the stage on the same rows must give the same result"
    used = getattr(stage, "rows_used", None)
    kept = used(whole) if used is not None else whole.num_rows
    assert kept + sum(dropped.values()) == rows.num_rows, (
        "the numbers of kept and dropped rows must add up to the number of input rows"
    )
    halves = [stage.run(part)[0] for part in (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2))]
    assert pa.concat_tables(halves).equals(whole), (
        "the result of the stage must not depend on the number of rows per shard"
    )


def toy_documents() -> pa.Table:
    """Return the toy collection as a table for the index of a ranker."""
    return pa.table({"doc_id": pa.array(list(TOY_DOCS)), "text": pa.array(list(TOY_DOCS.values()), pa.large_string())})


TOY_QUERIES = ["who is his brother", "mother and sister", "", "station", "zzzz", "mother and sister", "naïve façade"]


def check_ranker(ranker: RankerPlugin, queries: Sequence[str] = tuple(TOY_QUERIES)) -> None:
    """Check that a ranker answers every text in order, alone as in a batch, and with at most k documents."""
    assert isinstance(ranker, RankerPlugin), (
        "the ranker lacks an attribute that askew.plugins.kinds.RankerPlugin requires"
    )
    assert re.fullmatch(r"\S+", ranker.id), (
        "the id of a ranker must have no blanks, because it is written as one column of a TREC run"
    )
    before = ranker.doc_ids.to_pylist()
    whole = ranker.search(list(queries), 3)
    _check_documents(before, ranker)
    _check_hits(whole, len(queries), 3, len(ranker.doc_ids))
    again = ranker.search(pa.array(list(queries)), 3)
    assert np.array_equal(whole.docs, again.docs), (
        "a list and a pyarrow array of the same query texts must give the same documents"
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
            "the documents for a query must not depend on the other queries of the call",
        )
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


def _check_documents(before: list[str], ranker: RankerPlugin) -> None:
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
        assert (falls | ties & (docs[:-1] < docs[1:])).all(), (
            "a result list must be in descending order of score; documents with equal scores must be in the order in "
            "which ``doc_ids`` lists them"
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
        "the reformulator lacks an attribute that askew.plugins.methods.ReformulatorPlugin requires"
    )
    assert reformulator.reads <= {"passages", "statistics"}, "``reads`` may contain only passages and statistics"
    json.dumps(dict(reformulator.settings()), sort_keys=True)
    asked = asked or toy_asked()
    found = reformulator.reformulate(asked)
    assert len(found.rows) == len(found.texts) == len(found.doc_ids), (
        "``rows``, ``texts`` and ``doc_ids`` must have one value for each candidate reformulation"
    )
    assert all(0 <= row < len(asked) for row in found.rows), "``rows`` must have positions of queries in the batch"
    for text in found.texts:
        assert text == text.strip() and text, (
            "a candidate reformulation must not be empty, and must not begin or end with a blank"
        )
        assert not re.search(r"[\n\t\r\0]", text), (
            "a candidate reformulation must not contain a line break, a tab or a NUL character"
        )
    again = reformulator.reformulate(asked)
    assert (again.rows, again.texts, again.doc_ids) == (found.rows, found.texts, found.doc_ids), (
        "two calls with the same queries must give the same candidate reformulations"
    )
    if batches:
        for row in range(len(asked)):
            alone = reformulator.reformulate(_only(asked, row))
            together = [text for at, text in zip(found.rows, found.texts, strict=True) if at == row]
            assert alone.texts == together, (
                f"query {row}: the candidate reformulations must not depend on the other queries of the batch"
            )
    assert len(reformulator.reformulate(QueryBatch((), (), (), asked.statistics))) == 0, (
        "a batch without queries must give no candidate reformulations"
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

    assert isinstance(form, LogFormat), (
        "the format lacks an attribute that askew.plugins.log_formats.LogFormat requires"
    )
    assert re.fullmatch(r"[a-z0-9-]+", form.name), (
        "the name of the format must have only lower-case letters, digits and hyphens"
    )
    assert (type(form).__doc__ or "").strip(), (
        "the class of the format needs a docstring whose first line says which files the format reads"
    )
    assert path.name.lower().removesuffix(".gz").endswith(form.endings), (
        "the name of the log file must end in one of the file name endings of the format"
    )
    source = file_source(path, form, columns)
    has = source.open(None).columns
    assert has <= set(LOG_COLUMNS), f"unknown columns: {', '.join(sorted(has - set(LOG_COLUMNS)))}"
    assert {"time", "query"} <= has and has & {"user", "session"}, (
        "a row must have a time, a query, and a user or a session"
    )
    found, again = (list(read_rows(source)) for _ in range(2))
    kept = [row for batch in found for row in batch.table.drop_columns(_ids_of(batch.table)).to_pylist()]
    assert kept, "no row of the log file can be read; rejected rows by reason: " + ", ".join(
        str(dict(batch.rejected.counts)) for batch in found
    )
    for batch in found:
        assert set(batch.table.column_names) >= has - {"line"}, (
            "each batch of rows must have all columns that the format lists in ``columns``"
        )
        assert batch.rows == batch.table.num_rows + batch.rejected.total, (
            "in each batch, the numbers of kept and rejected rows must add up to the number of rows read"
        )
    lines = [row["line"] for row in kept]
    assert lines == sorted(set(lines)), (
        "``line`` must be the position of a row in the file, in ascending order without repeats"
    )
    rows = [row for batch in again for row in batch.table.drop_columns(_ids_of(batch.table)).to_pylist()]
    assert rows == kept, (
        "two readings of a file must give the same rows, except for user and session ids, which are hashed at random"
    )
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
