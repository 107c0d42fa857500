"""``publish``: pairs and facts in, a folder out, whole or not at all.

    data/SPLIT-00000-of-00001.parquet   the pairs
    json/, tsv/                         the same in the layouts of the Refairmulate paper, where it has its subsets
    repair/                             the same in those of the RePair paper, where it has boxes
    README.md, croissant.json           for people and for machines
    askew.json                          the facts, and how the pairs were split
    checksums.sha256                    of all of these

The same pairs and facts give the same bytes: rows are sorted, and no time, host or path is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.core.fingerprint import digest_file
from askew.publish import files, layouts
from askew.publish.card import card
from askew.publish.croissant import croissant
from askew.publish.facts import BOXES, REFAIRMULATE, Facts, canonical_json, read_facts
from askew.publish.invariants import problems
from askew.publish.pairs import canonical, parquet_bytes
from askew.publish.repair import Tables, repair_files
from askew.publish.selection import GROUPS
from askew.publish.splits import SALT, check_shares, leaks, with_split
from askew.publish.withheld import withhold

# 2: columns of measures are identifiers (gain_RR_10), and licenses are under the key license.
FORMAT = 2
_SHOWN = 10


@dataclass(frozen=True)
class Published:
    """What was published, how many pairs each split and subset has, and how many would have given a query away."""

    folder: Path
    splits: dict[str, int]
    subsets: dict[str, int]
    left_out: int = 0


def publish(
    pairs: pl.DataFrame,
    facts: Mapping[str, Any],
    out: Path,
    shares: Mapping[str, float] | None = None,
    repair: Tables | None = None,
) -> Published:
    """Write a release of the pairs to the new or empty folder ``out``.

    ``shares`` are the sizes of the splits; ``repair`` what RePair publishes beside the pairs, for the scheme boxes.
    Where the facts say ``query_text: false``, the texts of the original queries are checked, split by, and not written.
    """
    out = Path(out)
    files.refuse_full(out)
    checked, parts = read_facts(facts), check_shares(shares)
    whole = replace(checked, query_text=True)
    table = every = with_split(canonical(pairs, whole), parts)
    _refuse([*problems(every, whole), *leaks(every)])
    if not checked.query_text:
        table, repair, checked = withhold(every, repair, checked)
    papers = _papers(table, checked, repair)
    with files.new_folder(out) as folder:
        _write(folder, table, checked, parts, papers)
    left_out = every.height - table.height
    return Published(out, _split_sizes(table, parts), _subset_sizes(table, checked), left_out)


def split_files(shares: Mapping[str, float]) -> dict[str, str]:
    """The file of each split."""
    return {split: f"data/{split}-00000-of-00001.parquet" for split in shares}


def group_file(group: int) -> str:
    """The published name of a group's table."""
    return f"group_{group}_results.tsv"


def _refuse(broken: list[str]) -> None:
    if broken:
        more = f"\n... and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
        raise DataError("pairs: not published, for these rules do not hold:\n" + "\n".join(broken[:_SHOWN]) + more)


def _papers(table: pl.DataFrame, facts: Facts, repair: Tables | None) -> dict[str, str]:
    """The pairs in the papers' own files."""
    if facts.scheme == BOXES:
        return repair_files(table, facts, repair)
    if repair is not None:
        raise ConfigError(f"facts, scheme: expected {BOXES} for RePair's tables, found {facts.scheme}")
    if facts.scheme != REFAIRMULATE:
        return {}
    subsets = {
        f"json/{name}": layouts.json_text(layouts.entries(table, facts, subset))
        for subset, name in layouts.SUBSET_FILES.items()
    }
    return subsets | {f"tsv/{group_file(group)}": layouts.group_tsv(table, facts, group) for group in GROUPS}


def _write(folder: Path, table: pl.DataFrame, facts: Facts, shares: dict[str, float], papers: dict[str, str]) -> None:
    splits = split_files(shares)
    for split, name in splits.items():
        files.write(folder, name, parquet_bytes(table.filter(pl.col("split") == split).drop("split")))
    for name, text in papers.items():
        files.write(folder, name, text)
    data = files.walk(folder)[0]
    digests = {name: digest_file(path) for name, path in data.items()}
    sizes = {name: path.stat().st_size for name, path in data.items()}
    files.write(folder, "croissant.json", canonical_json(croissant(table, facts, splits, digests, sizes)))
    files.write(
        folder, "README.md", card(table, facts, splits, [name for name in digests if name not in splits.values()])
    )
    files.write(folder, "askew.json", canonical_json(_statement(table, facts, shares)))
    digests = {name: digest_file(path) for name, path in files.walk(folder)[0].items()}
    files.write(folder, files.CHECKSUMS, files.checksum_text(digests))


def _statement(table: pl.DataFrame, facts: Facts, shares: dict[str, float]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "facts": facts.stated,
        "split": {"salt": SALT, "shares": [[name, share] for name, share in shares.items()]},
        "pairs": {"splits": _split_sizes(table, shares), "subsets": _subset_sizes(table, facts)},
    }


def _split_sizes(table: pl.DataFrame, shares: Mapping[str, float]) -> dict[str, int]:
    return {split: table.filter(pl.col("split") == split).height for split in shares}


def _subset_sizes(table: pl.DataFrame, facts: Facts) -> dict[str, int]:
    return {subset: int(table[subset].sum()) for subset in facts.subsets}
