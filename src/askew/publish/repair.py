"""Write and check the pairs in the file layouts of RePair. File names have the ranker r and the key m of the measure.

    repair/Q.r.m.agg.all.tsv           qid, order, query, r.m: each original (order -1), then its candidates (pred.i)
    repair/Q.r.m.agg.gold.tsv          the same, with gold candidates only
    repair/r.m.boxes/BOX.tsv           the pairs of a box: qid, original, its value, candidate, its value; no header
    repair/r.m.boxes/BOX.qrels.tsv     the judgements of its queries as TREC writes them: qid, 0, docid, relevance

The files of the boxes are computed from the pairs of the release. The aggregated tables also have candidates that were
not chosen. ``verify`` checks that they contain every pair of the release with its values, and that the gold table has
exactly the gold candidates of the table ``all``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from askew.core.errors import DataError
from askew.core.expression import CRITERIA, Criterion
from askew.core.measure import new_column, old_column
from askew.core.ranking import Flags
from askew.publish.facts import Facts
from askew.publish.layouts import tsv_problems, tsv_text

FOLDER = "repair"
ORIGINAL = "-1"
AGGREGATED = ("all", "gold")
_AGG_COLUMNS = ["qid", "order", "query"]
_UNFIT = re.compile(r"[^A-Za-z0-9_.+-]+")
_WHOLE = re.compile(r"-?\d{1,10}")
_LONGEST = 80
_SHOWN = 60


@dataclass(frozen=True)
class Tables:
    """The tables that RePair publishes in addition to the pairs of a release.

    ``aggregated`` has the tables ``all`` and ``gold``, each with qid, order, query and a value. ``judgements`` has
    query_id, doc_id and relevance; it is None if the judgements may not be published.
    """

    aggregated: Mapping[str, pl.DataFrame]
    judgements: pl.DataFrame | None = None


def value_name(facts: Facts) -> str:
    """``r.m``: the ranker and the measure, as they appear in names of files and columns."""
    keys = {one.name: one.key for one in facts.measures}
    return f"{_file_part(facts.ranker)}.{_file_part(keys[facts.selection.measure])}"


def _file_part(text: str) -> str:
    return _UNFIT.sub("-", text).strip("-.")[:_LONGEST] or "unnamed"


def agg_file(facts: Facts, kind: str) -> str:
    """The published name of an aggregated table."""
    return f"{FOLDER}/Q.{value_name(facts)}.agg.{kind}.tsv"


def box_file(facts: Facts, box: str, what: str = "tsv") -> str:
    """The published name of a box, or of its judgements (``qrels.tsv``)."""
    return f"{FOLDER}/{value_name(facts)}.boxes/{box}.{what}"


def agg_files(facts: Facts, tables: Tables | None) -> dict[str, str]:
    """The texts of the aggregated tables by file name."""
    given = {} if tables is None else tables.aggregated
    return {agg_file(facts, kind): agg_text(table, facts, kind) for kind, table in given.items()}


def box_lines(pairs: pl.DataFrame, facts: Facts, tables: Tables | None) -> dict[str, str]:
    """The lines of the boxes and of their judgements by file name, for a block with all pairs of its queries."""
    found = {box_file(facts, box): box_text(pairs, facts, box) for box in facts.subsets}
    if tables is not None and tables.judgements is not None:
        for box in facts.subsets:
            found[box_file(facts, box, "qrels.tsv")] = _qrels_text(tables.judgements, pairs.filter(box)["query_id"])
    return found


def box_text(pairs: pl.DataFrame, facts: Facts, box: str) -> str:
    """A box: the pairs of the release that are in it, without a header."""
    measure = facts.selection.measure
    columns = ("query_id", "original_text", old_column(measure), "text", new_column(measure))
    return tsv_text(pairs.filter(box).select(columns).iter_rows())


def agg_text(table: pl.DataFrame, facts: Facts, kind: str) -> str:
    """The text of an aggregated table; rows keep their order, and the value column gets its published name."""
    if kind not in AGGREGATED or table.columns[:-1] != _AGG_COLUMNS:
        raise DataError(
            f"RePair table {kind!r}: the table must have the name 'all' or 'gold'. Its columns must be 'qid', 'order', "
            f"'query' and a last column with values; found the columns {', '.join(table.columns)}"
        )
    return tsv_text([[*_AGG_COLUMNS, value_name(facts)], *table.iter_rows()])


def _qrels_text(judgements: pl.DataFrame, queries: pl.Series) -> str:
    chosen = judgements.filter(pl.col("query_id").is_in(queries.unique().implode()))
    rows = chosen.select("query_id", pl.lit(0), "doc_id", "relevance").sort("query_id", "doc_id")
    return tsv_text(rows.iter_rows())


def repair_problems(texts: Mapping[str, str], pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    """One line for each difference between the RePair files of a release and its pairs."""
    for box in facts.subsets:
        name = box_file(facts, box)
        if name not in texts:
            yield f"{name}: missing"
            continue
        yield from tsv_problems(texts[name], box_text(pairs, facts, box), name)
        qrels = box_file(facts, box, "qrels.tsv")
        if qrels in texts:
            yield from _qrels_problems(texts[qrels], set(pairs.filter(box)["query_id"]), qrels)
    agreement = Agreement(texts, facts)
    agreement.look(pairs)
    yield from agreement.problems


class Agreement:
    """Checks that the aggregated tables agree with each other and with the pairs, which are added in blocks."""

    def __init__(self, texts: Mapping[str, str], facts: Facts) -> None:
        self._name, self._measure = agg_file(facts, "all"), facts.selection.measure
        read: dict[str, pl.DataFrame] = {}
        self._first = list(_agg_problems(texts, facts, read))
        self._every = read.get("all")
        self._missing: dict[str, tuple[int, str]] = {}

    def look(self, pairs: pl.DataFrame) -> None:
        """Compare a block of pairs with the tables."""
        for what, missing in _overlap(self._every, pairs, self._measure) if self._every is not None else ():
            count, first = self._missing.get(what, (0, missing["qid"][0][:_SHOWN]))
            self._missing[what] = count + missing.height, first

    @property
    def problems(self) -> list[str]:
        """One line for each difference."""
        return self._first + [
            f"{self._name}: {count} {what} of the Parquet rows are missing or differ; first: query {first!r}"
            for what, (count, first) in self._missing.items()
        ]


def _agg_problems(texts: Mapping[str, str], facts: Facts, read: dict[str, pl.DataFrame]) -> Iterator[str]:
    names = {kind: agg_file(facts, kind) for kind in AGGREGATED}
    for kind, name in names.items():
        if name in texts:
            try:
                read[kind] = read_agg(texts[name], name, value_name(facts))
            except DataError as error:
                yield str(error)
    if not facts.query_text:
        yield from _text_problems(read, names)
    if "gold" in read:
        yield from _gold_problems(read["gold"], read.get("all"), names)


def _text_problems(read: Mapping[str, pl.DataFrame], names: Mapping[str, str]) -> Iterator[str]:
    for kind, table in read.items():
        told = table.filter(pl.col("order") == ORIGINAL, pl.col("query") != "").height
        if told:
            yield f"{names[kind]}: expected no text of an original (query_text: false), found {told}"


def read_agg(text: str, name: str, value: str) -> pl.DataFrame:
    """A table with qid, order, query and value; DataError if the text is no aggregated table."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True))
    except csv.Error as error:
        raise DataError(f"{name}: expected tab-separated fields ({error})") from None
    if not rows or rows[0] != [*_AGG_COLUMNS, value]:
        raise DataError(f"{name}: expected the header qid, order, query, {value}")
    try:
        numbers = [float(row[3]) for row in rows[1:] if len(row) == 4]
    except ValueError:
        numbers = []
    if len(numbers) < len(rows) - 1:
        raise DataError(f"{name}: expected four fields in every line, with a number in the last field")
    columns = {key: pl.Series([row[i] for row in rows[1:]], dtype=pl.String) for i, key in enumerate(_AGG_COLUMNS)}
    table = pl.DataFrame({**columns, "value": pl.Series(numbers, dtype=pl.Float64)})
    _check_originals(table, name)
    return table


def _check_originals(table: pl.DataFrame, name: str) -> None:
    """Check that each query has exactly one original, which comes before its candidates."""
    is_original = (table["order"] == ORIGINAL).to_numpy()
    other = table.filter(~(pl.Series(is_original) | table["order"].str.starts_with("pred.")))
    if other.height:
        raise DataError(f"{name}: expected the order -1 or pred.i, found {other['order'][0][:_SHOWN]!r}")
    if not table.height:
        return
    owner = table["qid"].gather(_place_of_original(is_original))
    # Wrong rows: a second original of a query, and a candidate that does not follow its own original.
    again = pl.Series(is_original) & ~table.select(pl.struct("qid", "order").is_first_distinct()).to_series()
    alone = table.filter(again | (owner != table["qid"]) | pl.Series(~np.maximum.accumulate(is_original)))
    if alone.height:
        found = alone["qid"][0][:_SHOWN]
        raise DataError(
            f"{name}: expected one original (order -1) for each query, before its candidates; first wrong query: "
            f"{found!r}"
        )


def _place_of_original(is_original: Flags) -> pl.Series:
    """For each row, the position of the last original up to it; the first row if there is none yet."""
    places = np.maximum.accumulate(np.where(is_original, np.arange(len(is_original)), 0))
    return pl.Series(places)


def _gold_problems(gold: pl.DataFrame, every: pl.DataFrame | None, names: Mapping[str, str]) -> Iterator[str]:
    worse = gold.filter(~pl.Series(_is_gold(gold)))
    if worse.height:
        first = worse["qid"][0][:_SHOWN]
        yield (
            f"{names['gold']}: {worse.height} candidates are not above zero, or are below their original; "
            f"first: {first!r}"
        )
    elif every is not None and not gold.equals(every.filter(pl.Series(_is_gold(every)))):
        yield f"{names['gold']}: its rows differ from the gold rows of {names['all']}"


def _is_gold(table: pl.DataFrame) -> Flags:
    """Which rows are originals or gold candidates."""
    is_original, values = (table["order"] == ORIGINAL).to_numpy(), table["value"].to_numpy()
    original = values[_place_of_original(is_original).to_numpy()]
    return np.asarray(is_original | Criterion.parse(CRITERIA["gold"]).met(values, original))


def _overlap(every: pl.DataFrame, pairs: pl.DataFrame, measure: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The originals and candidates of the release that the table lacks, or has with another text or value."""
    is_original = pl.col("order") == ORIGINAL
    for what, value, text, rows in (
        ("originals", old_column(measure), "original_text", every.filter(is_original)),
        ("candidates", new_column(measure), "text", every.filter(~is_original)),
    ):
        # The text of an original is an empty field in the table if it is not published.
        wanted = pairs.select(qid="query_id", query=pl.col(text).fill_null(""), value=value).unique(maintain_order=True)
        missing = wanted.join(rows, on=["qid", "query", "value"], how="anti", maintain_order="left")
        if missing.height:
            yield what, missing


def _qrels_problems(text: str, queries: set[str], name: str) -> Iterator[str]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True))
    except csv.Error as error:
        yield f"{name}: expected tab-separated fields ({error})"
        return
    if any(len(row) != 4 or row[1] != "0" or not _WHOLE.fullmatch(row[3]) for row in rows):
        yield f"{name}: expected qid, 0, docid and a whole number in every line"
        return
    other = [row[0] for row in rows if row[0] not in queries]
    if other:
        yield f"{name}: {len(other)} judgements are of queries outside the box; first: {other[0][:_SHOWN]!r}"
    if len({(row[0], row[2]) for row in rows}) < len(rows):
        yield f"{name}: expected one judgement for each query and document"
