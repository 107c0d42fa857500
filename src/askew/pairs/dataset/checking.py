"""``verify``: check that the files of a released folder agree with each other and with the rules of its subsets.

It checks the checksums, then the schema, the rules of the subsets and the splits. Then it compares the files in the
papers' layouts, the card and the metadata with the Parquet rows. Each problem is one line. Nothing in the folder is
run, and nothing outside it is read. Checksums find accidental changes; they are not a signature.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core import folders as files
from askew.core.defaults import counted
from askew.core.errors import AskewError, ConfigError, DataError
from askew.core.files import digest_file
from askew.core.text import SALT
from askew.data.files import reason
from askew.pairs.dataset import layouts, numbers
from askew.pairs.dataset.columns import canonical
from askew.pairs.dataset.croissant import croissant_problems
from askew.pairs.dataset.facts import BOXES, Facts, read_facts
from askew.pairs.dataset.layouts import Papers
from askew.pairs.dataset.release import FORMAT, split_files
from askew.pairs.dataset.rules import Problems, unchecked
from askew.pairs.dataset.splits import check_shares, leaks, with_split

# What a fact of another form than in a release raises where it is used.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError)
_ONE = {"files": "file", "steps": "step", "parts": "part", "indexes": "index"}


@dataclass
class Verified:
    """The result of a check: the kind of folder, its damage, the repairs, the counts of what was read, and facts.

    ``sizes`` has the numbers of files and pairs of a dataset.
    """

    kind: str
    path: str
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    sizes: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is no damage, or all damage was repaired."""
        return not self.wrong

    def lines(self) -> list[str]:
        """Return the report as lines, the verdict last."""
        counts = ", ".join(counted(count, _ONE.get(name, name), name) for name, count in self.counts.items())
        state = f"{len(self.wrong)} damaged" if self.wrong else "no damage found"
        if self.sizes:
            state = counted(len(self.wrong), "problem", "problems") if self.wrong else "all rules hold"
        return [*self.wrong, *self.notes, *self.repaired, f"{self.path}: {self.kind}, {self.sizes or counts}: {state}"]


@dataclass(frozen=True)
class Statement:
    """The content of askew.json."""

    facts: Facts
    shares: dict[str, float]
    pairs: Any


def verify(folder: Path) -> Verified:
    """Check a released folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: expected the folder of a published dataset")
    report = Verified("dataset", str(folder))
    found, refused = files.walk(folder)
    digests = {name: digest_file(path) for name, path in found.items()}
    report.wrong += refused
    try:
        listed_digests, malformed = files.read_checksums(files.read_text(found, files.CHECKSUMS))
        report.wrong += [*malformed, *files.checksum_problems(listed_digests, digests)]
    except DataError as error:
        report.wrong.append(str(error))
    pairs, subsets, query_text = 0, dict[str, int](), True
    checks: list[Iterator[str]] = []
    try:
        stated = read_statement(found)
        parts = {name: _read(found, name, stated.facts, split) for split, name in split_files(stated.shares).items()}
        schema = next(iter(parts.values())).schema
        for name, part in parts.items():
            if part.schema != schema:
                columns = ", ".join(part.columns)
                raise DataError(f"{name}: expected the same columns as in the first split; found {columns}")
    except AskewError as error:
        report.wrong.append(str(error))
        report.notes.append("the pairs of the dataset could not be read, so the rules for pairs were not checked")
    else:
        facts, table = stated.facts, pl.concat(parts.values()).sort("query_id", "variant_id", maintain_order=True)
        pairs, query_text = table.height, facts.query_text
        subsets = {subset: int(table[subset].sum()) for subset in facts.subsets}
        report.notes += unchecked(facts)
        problems = Problems(facts)
        problems.look(table)
        report.wrong += problems.lines()
        sizes = {split: table.filter(pl.col("split") == split).height for split in stated.shares}
        if stated.pairs != {"splits": sizes, "subsets": subsets}:
            report.wrong.append(
                "askew.json: the stated numbers of pairs differ from the numbers of pairs in the Parquet files"
            )
        checks = [
            _splits(table, stated),
            _papers(found, table, facts),
            _card(found, table, stated),
            _croissant(found, digests, table.drop("split").columns),
        ]
    for check in checks:
        # A file that a check cannot read is one more problem.
        try:
            report.wrong += check
        except DataError as error:
            report.wrong.append(str(error))
        except _MALFORMED as error:
            report.wrong.append(f"askew.json: the field 'facts' does not fit the files ({reason(error)})")
    report.facts = {"pairs": pairs, "subsets": subsets, "query_text": query_text}
    listed = ", ".join(f"{name} {count}" for name, count in subsets.items())
    report.sizes = f"{counted(len(found), 'file', 'files')}, {counted(pairs, 'pair', 'pairs')} ({listed})"
    return report


def read_statement(found: dict[str, Path]) -> Statement:
    """Read askew.json from the files of a release, given by name; DataError if its format is not the present one."""
    stated = files.read_json(found, "askew.json")
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        form = stated.get("format") if isinstance(stated, dict) else None
        raise DataError(
            f"askew.json: expected a release in format {FORMAT}, found format {form!r}; publish the dataset again: "
            "askew publish RECIPE --out NEW_FOLDER"
        )
    try:
        shares = {str(name): float(share) for name, share in stated["split"]["shares"]}
        salt = stated["split"]["salt"]
    except (KeyError, TypeError, ValueError):
        raise DataError("askew.json: expected the field 'split' with the keys 'salt' and 'shares'") from None
    if salt != SALT:
        raise DataError(f"askew.json: expected the salt {SALT} for the assignment of queries to splits, found {salt!r}")
    try:
        facts = read_facts(stated["facts"])
    except _MALFORMED as error:
        raise DataError(f"askew.json: the field 'facts' has not the form of a release ({reason(error)})") from None
    return Statement(facts, check_shares(shares), stated.get("pairs"))


def _read(found: dict[str, Path], name: str, facts: Facts, split: str) -> pl.DataFrame:
    if name not in found:
        raise DataError(f"{name}: missing")
    try:
        read = pq.read_table(pa.BufferReader(found[name].read_bytes()))
        read.validate(full=True)
        rows = pl.DataFrame(read)
    except (pa.ArrowException, OSError, pl.exceptions.PolarsError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as Parquet ({reason(error)})") from None
    try:
        table = canonical(rows, facts)
    except AskewError as error:
        raise DataError(f"{name}: schema: {error}") from None
    if table.schema != rows.schema:
        raise DataError(f"{name}: schema: expected the columns of a release, with the same order and the same types")
    return table.with_columns(pl.lit(split).alias("split"))


def _splits(table: pl.DataFrame, stated: Statement) -> Iterator[str]:
    yield from leaks(table)
    if not stated.facts.query_text:
        return
    named = with_split(table.rename({"split": "stands"}), stated.shares)
    wrong = named.filter(pl.col("split") != pl.col("stands"))
    if wrong.height:
        first = wrong.row(0, named=True)
        where = (
            f"query {first['query_id'][:60]!r} is in the split {first['stands']}, but the split computed from its text "
            f"is {first['split']}"
        )
        yield (
            f"splits: {wrong.height} of {table.height} pairs are not in the split computed from the text of their "
            f"original query; first: {where}"
        )


def _papers(found: dict[str, Path], table: pl.DataFrame, facts: Facts) -> Iterator[str]:
    """Write the files in the layouts of the papers again, from the Parquet rows, and compare them line by line."""
    tables = None
    if facts.scheme == BOXES:
        texts = {name: files.read_text(found, name) for name in found if name.startswith(f"{layouts.FOLDER}/")}
        tables = layouts.read_tables(texts, facts)
    if tables is not None:
        yield from layouts.agg_problems(tables.every, table, facts)
    with tempfile.TemporaryDirectory(prefix="askew-") as place, closing(Papers(Path(place), facts, tables)) as papers:
        papers.add(table)
        papers.finish()
        expected, _ = files.walk(Path(place))
        for name in expected:
            if name not in found:
                yield f"{name}: missing"
                continue
            here, there = (files.read_text(one, name).split("\n") for one in (found, expected))
            wrong = [i for i, (one, other) in enumerate(zip_longest(here, there), 1) if one != other]
            if wrong:
                yield f"{name}: {len(wrong)} lines do not agree with the Parquet rows; first: line {wrong[0]}"


def _card(found: dict[str, Path], table: pl.DataFrame, stated: Statement) -> Iterator[str]:
    text = files.read_text(found, "README.md")
    counted = numbers.PairNumbers.of(table, stated.facts, stated.shares)
    for what, lines in (
        ("counts differs from the Parquet files", numbers.counts_table(counted)),
        ("means differs from the Parquet files", numbers.means_table(counted)),
        ("pairs on placebo lists differs from the Parquet files and askew.json", numbers.placebo_table(counted)),
        ("robust pairs differs from the Parquet files", numbers.robust_table(counted)),
        ("changes on held-out data differs from the field 'held_out' in askew.json", numbers.held_out_table(counted)),
    ):
        if "\n".join(lines) not in text:
            yield f"README.md: the table of {what}"


def _croissant(found: dict[str, Path], digests: dict[str, str], columns: list[str]) -> Iterator[str]:
    yield from croissant_problems(files.read_json(found, "croissant.json"), digests, columns)
