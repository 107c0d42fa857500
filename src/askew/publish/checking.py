"""``verify``: check that the files of a released folder agree with each other and with the rules of its subsets.

It checks the checksums, then the schema, the rules of the subsets and the splits. Then it compares the files in the
papers' layouts, the card and the metadata with the Parquet rows. Each problem is one line. Nothing in the folder is
run, and nothing outside it is read. Checksums find accidental changes; they are not a signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.errors import AskewError, ConfigError, DataError
from askew.core.figures import counted
from askew.core.fingerprint import digest_file
from askew.publish import files, layouts, numbers
from askew.publish.croissant import croissant_problems
from askew.publish.facts import BOXES, REFAIRMULATE, Facts, read_facts
from askew.publish.invariants import problems, unchecked
from askew.publish.pairs import canonical
from askew.publish.papers import group_file
from askew.publish.release import FORMAT, split_files
from askew.publish.repair import FOLDER, repair_problems
from askew.publish.selection import GROUPS
from askew.publish.splits import SALT, check_shares, leaks, with_split


@dataclass
class Report:
    """The problems, notes on what could not be checked, and the numbers of checked files and pairs."""

    folder: Path
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: int = 0
    pairs: int = 0
    subsets: dict[str, int] = field(default_factory=dict)
    query_text: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    def lines(self) -> list[str]:
        """The report for a reader."""
        subsets = ", ".join(f"{name} {count}" for name, count in self.subsets.items())
        verdict = "all rules hold" if self.ok else counted(len(self.wrong), "problem", "problems")
        sizes = f"{counted(self.files, 'file', 'files')}, {counted(self.pairs, 'pair', 'pairs')} ({subsets})"
        return [*self.wrong, *self.notes, f"{self.folder}: {sizes}: {verdict}"]


@dataclass(frozen=True)
class Statement:
    """The content of askew.json."""

    facts: Facts
    shares: dict[str, float]
    pairs: Any


def verify(folder: Path) -> Report:
    """Check a released folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: expected the folder of a published dataset")
    report = Report(folder)
    found, refused = files.walk(folder)
    report.files = len(found)
    digests = {name: digest_file(path) for name, path in found.items()}
    report.wrong += [*refused, *_checksums(found, digests)]
    try:
        stated = read_statement(found)
        table = _pairs(found, stated)
    except AskewError as error:
        return _stop(report, error)
    _look(report, found, digests, stated, table)
    return report


def _stop(report: Report, error: AskewError) -> Report:
    report.wrong.append(str(error))
    report.notes.append("the pairs of the dataset could not be read, so the rules for pairs were not checked")
    return report


def _checksums(found: dict[str, Path], digests: dict[str, str]) -> Iterator[str]:
    try:
        stated, wrong = files.read_checksums(files.read_text(found, files.CHECKSUMS))
    except DataError as error:
        yield str(error)
        return
    yield from wrong
    yield from files.checksum_problems(stated, digests)


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
    return Statement(read_facts(stated.get("facts", {})), check_shares(shares), stated.get("pairs"))


def _pairs(found: dict[str, Path], stated: Statement) -> pl.DataFrame:
    """The pairs of all splits, with the split of each pair."""
    parts = [_read(found, name, stated.facts, split) for split, name in split_files(stated.shares).items()]
    schema = parts[0].schema
    for part, name in zip(parts, split_files(stated.shares).values(), strict=True):
        if part.schema != schema:
            raise DataError(f"{name}: expected the same columns as in the first split; found {', '.join(part.columns)}")
    return pl.concat(parts)


def _read(found: dict[str, Path], name: str, facts: Facts, split: str) -> pl.DataFrame:
    if name not in found:
        raise DataError(f"{name}: missing")
    try:
        read = pq.read_table(pa.BufferReader(found[name].read_bytes()))
        read.validate(full=True)
        rows = pl.DataFrame(read)
    except (pa.ArrowException, OSError, pl.exceptions.PolarsError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name}: cannot be read as Parquet ({first[:100]})") from None
    try:
        table = canonical(rows, facts)
    except AskewError as error:
        raise DataError(f"{name}: schema: {error}") from None
    if table.schema != rows.schema:
        raise DataError(f"{name}: schema: expected the columns of a release, with the same order and the same types")
    return table.with_columns(pl.lit(split).alias("split"))


def _look(
    report: Report, found: dict[str, Path], digests: dict[str, str], stated: Statement, table: pl.DataFrame
) -> None:
    report.pairs, report.query_text = table.height, stated.facts.query_text
    report.subsets = {subset: int(table[subset].sum()) for subset in stated.facts.subsets}
    report.notes += unchecked(stated.facts)
    ordered = table.sort("query_id", "variant_id", maintain_order=True)
    facts = stated.facts
    for check in (
        iter(problems(ordered, facts)),
        _splits(ordered, stated),
        _sizes(report, stated, table),
        *_papers(found, ordered, facts),
        _card(found, ordered, stated),
        _croissant(found, digests, table),
    ):
        report.wrong += _told(check)


def _told(check: Iterator[str]) -> Iterator[str]:
    """The problems that a check finds; a file that it cannot read is one more problem."""
    try:
        yield from check
    except DataError as error:
        yield str(error)


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


def _sizes(report: Report, stated: Statement, table: pl.DataFrame) -> Iterator[str]:
    sizes = {split: table.filter(pl.col("split") == split).height for split in stated.shares}
    if stated.pairs != {"splits": sizes, "subsets": report.subsets}:
        yield "askew.json: the stated numbers of pairs differ from the numbers of pairs in the Parquet files"


def _papers(found: dict[str, Path], table: pl.DataFrame, facts: Facts) -> list[Iterator[str]]:
    """The checks of the files in the papers' layouts, as far as the scheme has such files."""
    if facts.scheme == BOXES:
        return [_repair(found, table, facts)]
    if facts.scheme != REFAIRMULATE:
        return []
    subsets = [_subset(found, table, facts, subset) for subset in layouts.SUBSET_FILES]
    return subsets + [_group(found, table, facts, group) for group in GROUPS]


def _subset(found: dict[str, Path], table: pl.DataFrame, facts: Facts, subset: str) -> Iterator[str]:
    name = f"json/{layouts.SUBSET_FILES[subset]}"
    yield from layouts.entry_problems(files.read_json(found, name), layouts.entries(table, facts, subset), name)


def _group(found: dict[str, Path], table: pl.DataFrame, facts: Facts, group: int) -> Iterator[str]:
    name = f"tsv/{group_file(group)}"
    yield from layouts.tsv_problems(files.read_text(found, name), layouts.group_tsv(table, facts, group), name)


def _repair(found: dict[str, Path], table: pl.DataFrame, facts: Facts) -> Iterator[str]:
    texts = {name: files.read_text(found, name) for name in found if name.startswith(f"{FOLDER}/")}
    yield from repair_problems(texts, table, facts)


def _card(found: dict[str, Path], table: pl.DataFrame, stated: Statement) -> Iterator[str]:
    text, counted = files.read_text(found, "README.md"), numbers.PairNumbers.of(table, stated.facts, stated.shares)
    for what, lines in (
        ("counts", [numbers.counts_table(counted)]),
        ("means", [numbers.means_table(counted, whole) for whole in (False, True)]),
        ("robust pairs", [numbers.robust_table(counted)]),
    ):
        if not _has_one(text, lines):
            yield f"README.md: the table of {what} differs from the Parquet files"
    if not _has_one(text, [numbers.held_out_table(counted, whole) for whole in (False, True)]):
        yield "README.md: the table of changes on held-out data differs from the field 'held_out' in askew.json"


def _has_one(text: str, tables: Iterable[list[str]]) -> bool:
    # Cards of earlier versions write the names of the Refairmulate subsets with a capital letter.
    return any("\n".join(lines).lower() in text.lower() for lines in tables)


def _croissant(found: dict[str, Path], digests: dict[str, str], table: pl.DataFrame) -> Iterator[str]:
    columns = [name for name in table.columns if name != "split"]
    yield from croissant_problems(files.read_json(found, "croissant.json"), digests, columns)
