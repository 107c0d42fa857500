"""The topic of a query by word lists: fast, but limited to the listed words.

The topic with the most words in the query is chosen, the first one in the file on a tie. A query with none of the words
is ``other``. The method ignores meaning: "apple pie" counts as technology if "apple" is only listed for technology. A
topic column of the log or a trained classifier is better.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core.compiled import compiled
from askew.core.errors import DataError
from askew.logs.definition import LOG_DATA, SEVERAL, canonical
from askew.logs.effect import frame_of
from askew.logs.numbers import Estimate, Z, ratio_of, share, spearman
from askew.logs.pairs import build_table, find
from askew.logs.tables import bytes_of

OTHER = "other"
_BLANK = 32


@dataclass(frozen=True)
class SeedWords:
    """Topics in order, each with its list of words."""

    words: Mapping[str, Sequence[str]]
    name: str = "topics"

    def __post_init__(self) -> None:
        values: dict[str, int] = {}
        for number, listed in enumerate(self.words.values()):
            for word in map(canonical, listed):
                # A word that several topics list counts for the first of them.
                values.setdefault(word, number)
        object.__setattr__(self, "_table", build_table({word: v for word, v in values.items() if word}))

    def topics(self, queries: pa.Array) -> pa.Array:
        """The topic of each canonical query."""
        data, offsets = bytes_of(queries)
        table: Any = self.__dict__["_table"]
        found = _classify(
            data, offsets, len(self.words), table.slots, table.texts, table.bounds, table.values, table.is_prefix,
            table.longest,
        )  # fmt: skip
        return pa.array([*self.words, OTHER]).take(pa.array(found))


def load_topics(path: Path | None = None) -> SeedWords:
    """Load the shipped topics, or those of a TOML file with a table [topics] of word lists."""
    where = path or LOG_DATA / "topics-en.toml"
    try:
        data = tomllib.loads(where.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"topics {where}: the file cannot be read ({error.strerror or error})") from None
    except (UnicodeDecodeError, ValueError) as error:
        raise DataError(f"topics {where}: not valid TOML in UTF-8 ({str(error).splitlines()[0]})") from None
    found = data.get("topics")
    good = isinstance(found, dict) and found and all(
        isinstance(words, list) and words and all(isinstance(word, str) for word in words) for words in found.values()
    )  # fmt: skip
    if not good or not isinstance(found, dict):
        words = f"topics {where}: expected a table [topics] with lists of words, such as health = ['doctor']"
        raise DataError(words, code="no-topics")
    return SeedWords(found, str(data.get("name", where.stem)))


@compiled
def _classify(
    data: Any, offsets: Any, topics: int, slots: Any, texts: Any, bounds: Any, values: Any, is_prefix: Any, longest: int
) -> Any:
    found = np.empty(len(offsets) - 1, np.int64)
    hits = np.zeros(topics + 1, np.int64)
    ends = np.empty(longest, np.int64)
    for row in range(len(offsets) - 1):
        hits[:] = 0
        at, stop = offsets[row], offsets[row + 1]
        while at < stop:
            words, end = 0, at
            while words < longest and end <= stop:
                while end < stop and data[end] != _BLANK:
                    end += 1
                ends[words] = end
                words += 1
                end += 1
            following = ends[0] + 1
            for size in range(words, 0, -1):
                entry = find(data, at, ends[size - 1], False, slots, texts, bounds, is_prefix)
                if entry >= 0:
                    hits[values[entry]] += 1
                    following = ends[size - 1] + 1
                    break
            at = following
        best = topics
        for topic in range(topics):
            if hits[topic] > hits[best]:
                best = topic
        found[row] = best
    return found


def topic_table(events: pl.DataFrame, log: Mapping[str, int], groups: Sequence[str]) -> pl.DataFrame:
    """Per topic: searches, share of the log, reformulations, rate, share of recommended queries and of each group.

    The rate is the topic's share of the reformulations divided by its share of the log; 1 is the average of the log.
    """
    searches = sum(log.values())
    rows = []
    for topic in sorted(log, key=lambda name: (-log[name], name)):
        here = events.filter(pl.col("topic") == topic)
        row: dict[str, Any] = {"topic": topic, "searches": log[topic], "log_share": log[topic] / searches}
        row |= {"n": here.height, **_rate(events, topic, log[topic], searches).cells("rate", own=True)}
        if "entry" in events.columns:
            known = here.filter(pl.col("entry") != "")
            row |= share((known["entry"] == "recommended").to_numpy(), known["user"].to_numpy()).cells(
                "recommended", own=True
            )
        one = here.filter(pl.col("group") != SEVERAL)
        for group in groups:
            found = share((one["group"] == group).to_numpy(), one["user"].to_numpy())
            row |= found.cells(f"share_{group}", own=True)
        rows.append(row)
    return frame_of(rows).sort("rate", descending=True, nulls_last=True, maintain_order=True)


def _rate(events: pl.DataFrame, topic: str, searches: int, total: int) -> Estimate:
    """Share of the reformulations divided by share of the log. The interval covers the uncertainty of both shares."""
    found = share((events["topic"] == topic).to_numpy(), events["user"].to_numpy())
    if not searches or not found.n or found.value == 0:
        high = found.high / (searches / total) if searches and found.n else float("nan")
        return Estimate(0.0 if found.n else float("nan"), 0.0 if found.n else float("nan"), high, found.n)
    half = max(found.value - found.low, found.high - found.value) / (Z * found.value)
    return ratio_of(found.value / (searches / total), half**2 + 1 / searches - 1 / total, found.n)


def topic_correlations(table: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """Spearman's correlations over topics between rate, share recommended and the shares of the groups."""
    # With two groups the second share follows from the first.
    told = groups[:1] if len(groups) == 2 else groups
    names = [name for name in ("rate", "recommended", *(f"share_{group}" for group in told)) if name in table.columns]
    rows = []
    for one, two in combinations(names, 2):
        both = table.select(one, two).drop_nulls()
        rows.append({"one": one, "two": two, **asdict(spearman(both[one].to_numpy(), both[two].to_numpy()))})
    values = dict.fromkeys(("rho", "low", "high", "p"), pl.Float64)
    return pl.DataFrame(rows, schema={"one": pl.String, "two": pl.String, "n": pl.Int64, **values}).fill_nan(None)
