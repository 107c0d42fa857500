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

from askew.core import folders as files
from askew.core.errors import ConfigError, DataError
from askew.core.files import digest_file
from askew.core.tables import SHARES
from askew.core.text import SALT
from askew.pairs.dataset.card import card, license_note, release_cautions
from askew.pairs.dataset.columns import PairFile, canonical
from askew.pairs.dataset.croissant import croissant
from askew.pairs.dataset.facts import BOXES, Facts, canonical_json, read_facts
from askew.pairs.dataset.layouts import Papers, Tables
from askew.pairs.dataset.numbers import ALL, PairNumbers
from askew.pairs.dataset.rules import Problems
from askew.pairs.dataset.splits import Originals, Withholding, named_by_text, with_split

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
    repair: Tables | None = None,
) -> Published:
    """Write a release of the pairs to the new or empty folder ``out``.

    ``repair`` has the further tables of RePair, for the scheme boxes. If the facts say ``query_text: false``, the texts
    of the original queries are used for checks and splits, but not written.
    ``pairs`` may be a function that returns the pairs in blocks, from the beginning each time it is called. Blocks must
    be in the order of the query ids, with all pairs of a query in one block.
    """
    out = Path(out)
    files.refuse_full(out)
    stated = read_facts(facts)
    # The checks and the splits need all texts, also those that are not written.
    complete = replace(stated, query_text=True)

    def whole() -> Iterator[pl.DataFrame]:
        for block in [pairs] if isinstance(pairs, pl.DataFrame) else pairs():
            yield with_split(canonical(block, complete), SHARES)

    originals, problems, named = Originals(), Problems(complete), 0
    for block in whole():
        problems.look(block)
        originals.look(block)
        named += 0 if stated.query_text else named_by_text(block)
    if broken := [*problems.lines(), *originals.leaks()]:
        more = f"\n... and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
        raise DataError(
            "pairs: nothing was published, because the pairs break these rules:\n" + "\n".join(broken[:_SHOWN]) + more
        )
    if named:
        raise DataError(
            f"pairs: {named} queries have their text as id, but query texts must not be published; give these "
            "queries other ids"
        )
    texts, removed = None, dict[str, int]()
    if not stated.query_text:
        texts = Withholding(originals.texts, repair)
        repair, removed = texts.tables(repair)
    if repair is not None and stated.scheme != BOXES:
        raise ConfigError(f"facts, scheme: expected {BOXES!r} for tables of RePair, found {stated.scheme!r}")
    splits = split_files(SHARES)
    with files.new_folder(out) as folder, ExitStack() as stack:
        numbers = PairNumbers(stated, splits)
        papers = stack.enter_context(closing(Papers(folder, stated, repair)))
        written = {
            split: stack.enter_context(closing(PairFile(files.place(folder, name)))) for split, name in splits.items()
        }
        for full in whole():
            block = full if texts is None else texts.pairs(full, stated)
            numbers.add(block)
            numbers.echoes += originals.echoes(block) if stated.query_text else 0
            papers.add(block)
            for split, file in written.items():
                file.add(block.filter(pl.col("split") == split).drop("split"))
        for file in written.values():
            file.close()
        papers.finish()
        numbers.count_texts(pl.scan_parquet([folder / name for name in splits.values()]))
        told = stated if texts is None else texts.counted(stated, removed)
        _describe(folder, numbers, told)
    notes = [*map(str, release_cautions(numbers)), *license_note(stated)]
    left_out = 0 if texts is None else texts.left_out
    return Published(out, numbers.sizes(ALL), _subset_sizes(numbers), left_out, notes=notes)


def split_files(shares: Mapping[str, float]) -> dict[str, str]:
    """The file of each split."""
    return {split: f"data/{split}-00000-of-00001.parquet" for split in shares}


def _describe(folder: Path, numbers: PairNumbers, facts: Facts) -> None:
    splits, data = split_files(SHARES), files.walk(folder)[0]
    digests = {name: digest_file(path) for name, path in data.items()}
    sizes = {name: path.stat().st_size for name, path in data.items()}
    statement = {
        "format": FORMAT,
        "facts": facts.stated,
        "split": {"salt": SALT, "shares": [[name, share] for name, share in SHARES.items()]},
        "pairs": {"splits": numbers.sizes(ALL), "subsets": _subset_sizes(numbers)},
    }
    more = [name for name in digests if name not in splits.values()]
    files.write(folder, "croissant.json", canonical_json(croissant(numbers, facts, splits, digests, sizes)))
    files.write(folder, "README.md", card(numbers, facts, splits, more))
    files.write(folder, "askew.json", canonical_json(statement))
    digests = {name: digest_file(path) for name, path in files.walk(folder)[0].items()}
    files.write(folder, files.CHECKSUMS, files.checksum_text(digests))


def _subset_sizes(numbers: PairNumbers) -> dict[str, int]:
    return {subset: numbers.subsets[subset].pairs for subset in numbers.facts.subsets}
