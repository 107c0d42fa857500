"""The columns of the tables that parts of askew exchange, named as in ir_measures and ir_datasets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew.core.errors import ConfigError, DataError
from askew.core.groups import ANY, WHO, classes_of

# The part of the data (train, dev, test) of an item: by its name alone, so that every program gets the same parts.

SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}


def part_of(name: str, shares: Mapping[str, float] | None = None, salt: str = "askew-1") -> str:
    """The part of an item. Give the same name to items that must be in one part, such as the queries of a passage."""
    parts = SHARES if shares is None else shares
    total = sum(parts.values())
    if not parts or min(parts.values()) < 0 or not abs(total - 1) < 1e-9:
        raise ConfigError(f"split: expected shares of zero or more that add up to 1, found {dict(parts)}")
    digest = hashlib.sha256(f"{salt}\0{name}".encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    reached = 0.0
    for part, share in parts.items():
        reached += share
        if place < reached:
            return part
    return next(reversed(list(parts)))


DOCUMENTS = pa.schema([("doc_id", pa.string()), ("text", pa.large_string())])
JUDGEMENTS = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("relevance", pa.int32())])


def mentions_schema(groups: tuple[str, ...], clipped: bool = False, resolved: bool = False) -> pa.Schema:
    """The columns of a table of mentions: the number of tokens (-1 if the document's line was malformed), and the
    number of mentions of each group.

    With ``clipped``, a column has the number of clipped words of all groups that the tokenizer left out. With
    ``resolved``, each pair of a group and a class of mentions (``askew.core.groups``) has a column as well.
    """
    counts = [(f"mentions_{group}", pa.int32()) for group in groups]
    clipped_columns = [("clipped", pa.int32())] if clipped else []
    by_class = [(who_column(who, group), pa.int32()) for group in groups for who in WHO] if resolved else []
    return pa.schema([("doc_id", pa.string()), ("tokens", pa.int32()), *counts, *clipped_columns, *by_class])


def who_column(who: str, group: str) -> str:
    """The name of the column for one class of mentions of a group."""
    return f"who_{who}_{group}"


def counts_of(table: pa.Table, who: str = ANY) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The groups of a table of mentions, and the counts of all mentions or of some classes (documents x groups)."""
    groups = tuple(name.removeprefix("mentions_") for name in table.column_names if name.startswith("mentions_"))
    if who == ANY:
        columns = [table[f"mentions_{group}"].to_numpy() for group in groups]
    else:
        named = classes_of(who)
        columns = [sum(table[who_column(name, group)].to_numpy() for name in named) for group in groups]
    return groups, np.stack(columns, axis=1).astype(np.int32)


def conform(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    """The table with exactly these columns and types, or an error that says what differs."""
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        listed = ", ".join(table.column_names) or "none"
        raise DataError(f"{where}: expected the columns {', '.join(schema.names)}; found {listed}")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{where}: {error}") from None
