"""The part of the data (train, dev, test) that an item belongs to. It depends only on the item's name, so that every
program gets the same parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from askew.core.errors import ConfigError

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
