"""``publish``: write pairs and facts as a folder, either completely or not at all.

    data/SPLIT-00000-of-00001.parquet   the pairs
    json/, tsv/                         the pairs in the layouts of Refairmulate, if the scheme is refairmulate
    repair/                             the pairs in the layouts of RePair, if the scheme is boxes
    README.md, croissant.json           the dataset card, and metadata for machines
    askew.json                          the facts, the shares of the splits and the numbers of pairs
    checksums.sha256                    the SHA-256 of all other files

The same pairs and facts give the same bytes: rows are sorted, and no time, host or path is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.core.fingerprint import digest_file
from askew.publish import files
from askew.publish.card import card, license_note
from askew.publish.cautions import release_cautions
from askew.publish.croissant import croissant
from askew.publish.facts import BOXES, Facts, canonical_json, read_facts
from askew.publish.invariants import Problems
from askew.publish.numbers import ALL, PairNumbers
from askew.publish.pairs import PairFile, canonical
from askew.publish.papers import papers_of
from askew.publish.repair import Tables
from askew.publish.splits import SALT, Originals, check_shares, with_split
from askew.publish.withheld import Withholding, named_by_text

# 2: columns of measures are identifiers (gain_RR_10), and licenses are under the key license.
FORMAT = 2
_SHOWN = 10
# A function that returns all pairs in blocks; each call starts again from the first block.
Blocks = Callable[[], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Published:
    """A published folder: the number of pairs in each split and subset, the numbers of omitted pairs, and notes.

    ``left_out`` counts the pairs that were omitted because they would reveal the text of an original query, and
    ``unselected`` the pairs of the build that are in no subset.
    """

    folder: Path
    splits: dict[str, int]
    subsets: dict[str, int]
    left_out: int = 0
    unselected: int = 0
    notes: list[str] = field(default_factory=list)


def publish(
    pairs: pl.DataFrame | Blocks,
    facts: Mapping[str, Any],
    out: Path,
    shares: Mapping[str, float] | None = None,
    repair: Tables | None = None,
) -> Published:
    """Write a release of the pairs to the new or empty folder ``out``.

    ``shares`` are the shares of the splits. ``repair`` has the further tables of RePair, for the scheme boxes. If the
    facts say ``query_text: false``, the texts of the original queries are used for checks and splits, but not written.
    ``pairs`` may be a function that returns the pairs in blocks, from the beginning each time it is called. Blocks must
    be in the order of the query ids, with all pairs of a query in one block.
    """
    out = Path(out)
    files.refuse_full(out)
    return _Writing(_blocks(pairs), read_facts(facts), check_shares(shares), repair).publish(out)


def _blocks(pairs: pl.DataFrame | Blocks) -> Blocks:
    return (lambda: iter([pairs])) if isinstance(pairs, pl.DataFrame) else pairs


class _Writing:
    """Checks all pairs, then writes them, one block at a time."""

    def __init__(self, blocks: Blocks, facts: Facts, shares: dict[str, float], repair: Tables | None) -> None:
        self._blocks, self.facts, self.shares, self.repair = blocks, facts, shares, repair
        self.originals = Originals()
        self._texts: Withholding | None = None

    def publish(self, out: Path) -> Published:
        """Write the complete folder, or raise and write nothing."""
        self._check()
        more: dict[str, int] = {}
        if not self.facts.query_text:
            self._texts = Withholding(self.originals.texts, self.repair)
            self.repair, more = self._texts.tables(self.repair)
        if self.repair is not None and self.facts.scheme != BOXES:
            raise ConfigError(
                "facts, scheme: tables in the layout of the RePair paper can be published only if the scheme of the "
                f"subsets is {BOXES!r}, found {self.facts.scheme!r}"
            )
        with files.new_folder(out) as folder, ExitStack() as stack:
            numbers = self._write(folder, more, stack)
        left_out = 0 if self._texts is None else self._texts.left_out
        notes = [*map(str, release_cautions(numbers)), *license_note(self.facts)]
        return Published(out, numbers.sizes(ALL), _subset_sizes(numbers), left_out, notes=notes)

    def _whole(self) -> Iterator[pl.DataFrame]:
        """The pairs with all texts and their split, as the checks need them."""
        whole = replace(self.facts, query_text=True)
        for block in self._blocks():
            yield with_split(canonical(block, whole), self.shares)

    def _check(self) -> None:
        found, named = Problems(replace(self.facts, query_text=True)), 0
        for block in self._whole():
            found.look(block)
            self.originals.look(block)
            named += 0 if self.facts.query_text else named_by_text(block)
        _refuse([*found.lines(), *self.originals.leaks()])
        if named:
            raise DataError(
                f"pairs: {named} queries have their text as id, but query texts must not be published; give these "
                "queries other ids"
            )

    def _write(self, folder: Path, more: dict[str, int], stack: ExitStack) -> PairNumbers:
        splits = split_files(self.shares)
        numbers = stack.enter_context(closing(PairNumbers(self.facts, splits)))
        papers = stack.enter_context(closing(papers_of(folder, self.facts, self.repair)))
        data = {split: files.place(folder, name) for split, name in splits.items()}
        written = {split: stack.enter_context(closing(PairFile(path))) for split, path in data.items()}
        for whole in self._whole():
            block = whole if self._texts is None else self._texts.pairs(whole, self.facts)
            numbers.add(block)
            numbers.echoes += self.originals.echoes(block) if self.facts.query_text else 0
            papers.add(block)
            for split, file in written.items():
                file.add(block.filter(pl.col("split") == split).drop("split"))
        for file in written.values():
            file.close()
        papers.finish()
        facts = self.facts if self._texts is None else self._texts.counted(self.facts, more)
        _describe(folder, numbers, facts, self.shares)
        return numbers


def split_files(shares: Mapping[str, float]) -> dict[str, str]:
    """The file of each split."""
    return {split: f"data/{split}-00000-of-00001.parquet" for split in shares}


def _refuse(broken: list[str]) -> None:
    if broken:
        more = f"\n... and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
        raise DataError(
            "pairs: nothing was published, because the pairs break these rules:\n" + "\n".join(broken[:_SHOWN]) + more
        )


def _describe(folder: Path, numbers: PairNumbers, facts: Facts, shares: dict[str, float]) -> None:
    """Write the card, the metadata, the facts and the checksums."""
    splits, data = split_files(shares), files.walk(folder)[0]
    digests = {name: digest_file(path) for name, path in data.items()}
    sizes = {name: path.stat().st_size for name, path in data.items()}
    files.write(folder, "croissant.json", canonical_json(croissant(numbers, facts, splits, digests, sizes)))
    files.write(
        folder, "README.md", card(numbers, facts, splits, [name for name in digests if name not in splits.values()])
    )
    files.write(folder, "askew.json", canonical_json(_statement(numbers, facts, shares)))
    digests = {name: digest_file(path) for name, path in files.walk(folder)[0].items()}
    files.write(folder, files.CHECKSUMS, files.checksum_text(digests))


def _statement(numbers: PairNumbers, facts: Facts, shares: dict[str, float]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "facts": facts.stated,
        "split": {"salt": SALT, "shares": [[name, share] for name, share in shares.items()]},
        "pairs": {"splits": numbers.sizes(ALL), "subsets": _subset_sizes(numbers)},
    }


def _subset_sizes(numbers: PairNumbers) -> dict[str, int]:
    return {subset: numbers.subsets[subset].pairs for subset in numbers.facts.subsets}
