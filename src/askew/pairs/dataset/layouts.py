"""Write and check the pairs in the file layouts of Refairmulate and RePair.

JSON (Optimal, Effective, Fair): {group: {query id: {query_text, metrics, score, org_query_text}}} with groups "1" to
"4", metrics Orig_KEY and New_KEY for each measure, then Label and Group. Each pair is one line. A query may have an
Optimal and an Effective pair, but the published layout has one entry for each query. Fair.json therefore has the
Optimal pair as the entry, and the Effective pair in a list under the key ``also`` of that entry. No pair is lost, and
code that reads the published files can read these files.

TSV (group_1 to group_4): every pair of the group. The six published measures come first in both blocks of columns
(Orig, New), further measures after them. A measure that was not computed has no column, and a missing value is an empty
field.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from askew.core import folders as files
from askew.core.errors import DataError
from askew.core.measure import new_column, old_column
from askew.pairs.boxes import ORIGINAL_ORDER as ORIGINAL
from askew.pairs.boxes import agg_gold
from askew.pairs.dataset.facts import BOXES, GROUPS, REFAIRMULATE, Facts

SUBSET_FILES = {"optimal": "Optimal.json", "effective": "Effective.json", "fair": "Fair.json"}
Entries = dict[str, dict[str, Any]]


def entries(pairs: pl.DataFrame, facts: Facts, subset: str) -> Entries:
    """The pairs of a subset in the nesting of the published JSON files."""
    found: Entries = {str(group): {} for group in GROUPS}
    # Optimal pairs are sorted first, so that they become the entry of their query.
    rows = pairs.filter(subset).sort("query_id", pl.col("optimal").not_(), "variant_id")
    for row in rows.iter_rows(named=True):
        metrics = {f"Orig_{one.key}": row[old_column(one.name)] for one in facts.measures}
        metrics |= {f"New_{one.key}": row[new_column(one.name)] for one in facts.measures}
        metrics |= {"Label": row["label"], "Group": row["group"]}
        entry = {"query_text": row["text"], "metrics": metrics, "score": row["score"]}
        entry["org_query_text"] = row["original_text"]
        first = found[str(row["group"])].setdefault(row["query_id"], entry)
        if first is not entry:
            first.setdefault("also", []).append(entry)
    return found


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def header(facts: Facts) -> list[str]:
    """The columns of a group's TSV."""
    keys = [one.key for one in facts.measures]
    blocks = [f"{side}_{key}" for side in ("Orig", "New") for key in keys]
    return ["Query ID", "Query Text", "Label", *blocks, "Original Query Text"]


def group_lines(pairs: pl.DataFrame, facts: Facts, group: int) -> str:
    """The pairs of a group as lines of TSV."""
    values = [name(one.name) for name in (old_column, new_column) for one in facts.measures]
    rows = pairs.filter(pl.col("group") == group).select("query_id", "text", "label", *values, "original_text")
    return tsv_text(rows.iter_rows())


def tsv_text(rows: Iterable[Any]) -> str:
    """Rows as lines of tab-separated fields; a field with a tab, a quote or a line break is quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    return text.getvalue()


# Write and check the pairs in the file layouts of RePair. File names have the ranker r and the key m of the measure.

FOLDER = "repair"
_AGG_COLUMNS = ["qid", "order", "query"]
_UNFIT = re.compile(r"[^A-Za-z0-9_.+-]+")
_WHOLE = re.compile(r"-?\d{1,10}")
_LONGEST = 80
_SHOWN = 60


@dataclass(frozen=True)
class Tables:
    """The tables that RePair publishes in addition to the pairs of a release.

    ``every`` is the table ``all``, with qid, order, query and a value. ``judgements`` has query_id, doc_id and
    relevance; it is None if the judgements may not be published.
    """

    every: pl.DataFrame
    judgements: pl.DataFrame | None = None

    @property
    def aggregated(self) -> dict[str, pl.DataFrame]:
        """The tables ``all`` and ``gold``."""
        return {"all": self.every, "gold": agg_gold(self.every)}


def value_name(facts: Facts) -> str:
    """``r.m``: the ranker and the measure, as they appear in names of files and columns."""
    keys = {one.name: one.key for one in facts.measures}
    return f"{_file_part(facts.ranker)}.{_file_part(keys[facts.measure])}"


def _file_part(text: str) -> str:
    return _UNFIT.sub("-", text).strip("-.")[:_LONGEST] or "unnamed"


def agg_file(facts: Facts, kind: str) -> str:
    """The published name of an aggregated table."""
    return f"{FOLDER}/Q.{value_name(facts)}.agg.{kind}.tsv"


def box_file(facts: Facts, box: str, what: str = "tsv") -> str:
    """The published name of a box, or of its judgements (``qrels.tsv``)."""
    return f"{FOLDER}/{value_name(facts)}.boxes/{box}.{what}"


def box_text(pairs: pl.DataFrame, facts: Facts, box: str) -> str:
    """A box: the pairs of the release that are in it, without a header."""
    measure = facts.measure
    columns = ("query_id", "original_text", old_column(measure), "text", new_column(measure))
    return tsv_text(pairs.filter(box).select(columns).iter_rows())


def agg_problems(every: pl.DataFrame, pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    """One line for each difference between the table ``all`` of a release and its pairs."""
    name, measure, is_original = agg_file(facts, "all"), facts.measure, pl.col("order") == ORIGINAL
    told = every.filter(is_original, pl.col("query") != "").height
    if told and not facts.query_text:
        yield f"{name}: expected no text of an original (query_text: false), found {told}"
    for what, value, text, rows in (
        ("originals", old_column(measure), "original_text", every.filter(is_original)),
        ("candidates", new_column(measure), "text", every.filter(~is_original)),
    ):
        # The text of an original is an empty field in the table if it is not published.
        wanted = pairs.select(qid="query_id", query=pl.col(text).fill_null(""), value=value).unique(maintain_order=True)
        missing = wanted.join(rows, on=["qid", "query", "value"], how="anti", maintain_order="left")
        if missing.height:
            yield (
                f"{name}: {missing.height} {what} of the Parquet rows are missing or differ; first: "
                f"query {missing['qid'][0][:_SHOWN]!r}"
            )


def read_tables(texts: Mapping[str, str], facts: Facts) -> Tables | None:
    """The table ``all`` and the judgements of a release, from its files by name; None without these files."""
    name = agg_file(facts, "all")
    if name not in texts:
        return None
    every = read_agg(texts[name], name, value_name(facts))
    qrels = {one: texts[one] for box in facts.subsets if (one := box_file(facts, box, "qrels.tsv")) in texts}
    if not qrels:
        return Tables(every)
    rows = [row for one, text in qrels.items() for row in _read_tsv(text, one)]
    if any(len(row) != 4 or not _WHOLE.fullmatch(row[3]) for row in rows):
        raise DataError(f"{next(iter(qrels))}: expected qid, 0, docid and a whole number in every line of the boxes")
    names = ("query_id", "doc_id", "relevance")
    columns = zip(*((row[0], row[2], row[3]) for row in rows), strict=True) if rows else ((), (), ())
    judgements = pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))
    return Tables(every, judgements.unique(maintain_order=True))


def _read_tsv(text: str, name: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True))
    except csv.Error as error:
        raise DataError(f"{name}: expected tab-separated fields ({error})") from None


def read_agg(text: str, name: str, value: str) -> pl.DataFrame:
    """A table with qid, order, query and value; DataError if the text is no aggregated table."""
    rows = _read_tsv(text, name)
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
    # The last original up to each row; the first row if there is none yet.
    owner = table["qid"].gather(np.maximum.accumulate(np.where(is_original, np.arange(table.height), 0)))
    # Wrong rows: a second original of a query, and a candidate that does not follow its own original.
    again = pl.Series(is_original) & ~table.select(pl.struct("qid", "order").is_first_distinct()).to_series()
    alone = table.filter(again | (owner != table["qid"]) | pl.Series(~np.maximum.accumulate(is_original)))
    if alone.height:
        found = alone["qid"][0][:_SHOWN]
        raise DataError(
            f"{name}: expected one original (order -1) for each query, before its candidates; first wrong query: "
            f"{found!r}"
        )


# Write the files of a release in the layouts of the papers, one block of pairs at a time.


def group_file(group: int) -> str:
    """The published name of a group's table."""
    return f"group_{group}_results.tsv"


class Papers:
    """Writes the files of the papers, as far as the scheme of a release has them; blocks have whole queries."""

    def __init__(self, folder: Path, facts: Facts, tables: Tables | None) -> None:
        self._folder, self._facts = folder, facts
        self._judgements = None if tables is None else tables.judgements
        self._open, self._stack = dict[Path, IO[str]](), ExitStack()
        # A JSON file has the groups one after the other, so each group is first written to a temporary file.
        self._parts = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="askew-")))
        if facts.scheme == REFAIRMULATE:
            for group in GROUPS:
                self._write(files.place(folder, f"tsv/{group_file(group)}"), tsv_text([header(facts)]))
        for kind, table in () if tables is None else tables.aggregated.items():
            text = tsv_text([[*_AGG_COLUMNS, value_name(facts)], *table.iter_rows()])
            self._write(files.place(folder, agg_file(facts, kind)), text)

    def _write(self, path: Path, text: str) -> None:
        if path not in self._open:
            self._open[path] = self._stack.enter_context(path.open("w", encoding="utf-8", newline=""))
        self._open[path].write(text)

    def add(self, block: pl.DataFrame) -> None:
        """Add a block of pairs; it must have all pairs of its queries."""
        texts: dict[str, str] = {}
        if self._facts.scheme == BOXES:
            for box in self._facts.subsets:
                texts[box_file(self._facts, box)] = box_text(block, self._facts, box)
                if self._judgements is not None:
                    of_box = block.filter(box)["query_id"].unique().implode()
                    rows = self._judgements.filter(pl.col("query_id").is_in(of_box)).sort("query_id", "doc_id")
                    lines = rows.select("query_id", pl.lit(0), "doc_id", "relevance").iter_rows()
                    texts[box_file(self._facts, box, "qrels.tsv")] = tsv_text(lines)
        elif self._facts.scheme == REFAIRMULATE:
            texts = {f"tsv/{group_file(group)}": group_lines(block, self._facts, group) for group in GROUPS}
            for subset in SUBSET_FILES:
                for group, queries in entries(block, self._facts, subset).items():
                    path = self._parts / f"{subset}-{group}"
                    for query, entry in queries.items():
                        comma = "," if path in self._open else ""
                        self._write(path, f"{comma}\n        {_dump(query)}: {_dump(entry)}")
        for name, text in texts.items():
            self._write(files.place(self._folder, name), text)

    def finish(self) -> None:
        """Write the JSON files from the parts of their groups."""
        for file in self._open.values():
            file.close()
        for subset, name in SUBSET_FILES.items() if self._facts.scheme == REFAIRMULATE else ():
            with files.place(self._folder, f"json/{name}").open("w", encoding="utf-8", newline="") as whole:
                for group in GROUPS:
                    whole.write(f'{"{" if group == GROUPS[0] else ","}\n    "{group}": {{')
                    part = self._parts / f"{subset}-{group}"
                    if part in self._open:
                        with part.open(encoding="utf-8", newline="") as entries_of_group:
                            shutil.copyfileobj(entries_of_group, whole)
                        whole.write("\n    ")
                    whole.write("}")
                whole.write("\n}\n")

    def close(self) -> None:
        """Close all files, also after an error."""
        self._stack.close()
