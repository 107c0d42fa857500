"""The topic of a query by word lists: fast, but limited to the listed words.

The topic with the most words in the query is chosen, the first one in the file on a tie. A query with none of the words
is ``other``. The method ignores meaning: "apple pie" counts as technology if "apple" is only listed for technology. A
topic column of the log or a trained classifier is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import DataError
from askew.core.files import parse_toml
from askew.data.files import read_text, reason
from askew.logs.definition import LOG_DATA, SEVERAL, canonical
from askew.logs.effect import frame_of
from askew.logs.numbers import Estimate, Z, ratio_of, share

OTHER = "other"


@dataclass(frozen=True)
class SeedWords:
    """Topics in order, each with its list of words."""

    words: Mapping[str, Sequence[str]]
    name: str = "topics"

    @cached_property
    def _topics(self) -> dict[str, int]:
        """The number of the topic of each word, longest words first. Spaces are doubled (see ``topics``)."""
        topics: dict[str, int] = {}
        for number, words in enumerate(self.words.values()):
            for word in filter(None, map(canonical, words)):
                # A word that several topics list counts for the first of them.
                topics.setdefault(f" {word.replace(' ', '  ')} ", number)
        return dict(sorted(topics.items(), key=lambda entry: -len(entry[0])))

    def topics(self, queries: pl.Series) -> pl.Series:
        """The topic of each canonical query."""
        distinct = queries.unique()
        # Each word has its own spaces, so that two matches can be next to each other.
        spaced = pl.format(" {} ", pl.col("query").str.replace_all(" ", "  ", literal=True))
        words = distinct.to_frame("query").select(
            "query", word=spaced.str.extract_many(list(self._topics), leftmost=True)
        )
        hits = words.explode("word").drop_nulls().with_columns(topic=pl.col("word").replace_strict(self._topics))
        most = hits.group_by("query", "topic").len().sort("len", "topic", descending=[True, False])
        numbers = most.unique("query", keep="first", maintain_order=True)
        chosen = numbers.select("query", topic=pl.Series([*self.words]).gather(numbers["topic"]))
        both = queries.to_frame("query").join(chosen, on="query", how="left", maintain_order="left")
        return both["topic"].fill_null(OTHER)


def load_topics(path: Path | None = None) -> SeedWords:
    """Load the shipped topics, or those of a TOML file with a table [topics] of word lists."""
    where = path or LOG_DATA / "topics-en.toml"
    try:
        data = parse_toml(read_text(where, "topics"))
    except ValueError as error:
        raise DataError(f"topics {where}: not valid TOML in UTF-8 ({reason(error)})") from None
    topics = data.get("topics")
    good = isinstance(topics, dict) and topics and all(
        isinstance(words, list) and words and all(isinstance(word, str) for word in words) for words in topics.values()
    )  # fmt: skip
    if not good or not isinstance(topics, dict):
        words = f"topics {where}: expected a table [topics] with lists of words, such as health = ['doctor']"
        raise DataError(words, code="no-topics")
    return SeedWords(topics, str(data.get("name", where.stem)))


def topic_table(events: pl.DataFrame, log: Mapping[str, int], groups: Sequence[str]) -> pl.DataFrame:
    """Per topic: searches, share of the log, reformulations, rate, share of recommended queries and of each group.

    The rate is the topic's share of the reformulations divided by its share of the log; 1 is the average of the log.
    """
    searches = sum(log.values())
    rows = []
    for topic in sorted(log, key=lambda name: (-log[name], name)):
        of_topic = events.filter(pl.col("topic") == topic)
        row: dict[str, Any] = {"topic": topic, "searches": log[topic], "log_share": log[topic] / searches}
        found = share((events["topic"] == topic).to_numpy(), events["user"].to_numpy())
        # The share of the reformulations divided by the share of the log; the interval covers both uncertainties.
        of_log = log[topic] / searches
        if not of_log or not found.n or found.value == 0:
            zero = 0.0 if found.n else math.nan
            rate = Estimate(zero, zero, found.high / of_log if of_log and found.n else math.nan, found.n)
        else:
            half = max(found.value - found.low, found.high - found.value) / (Z * found.value)
            rate = ratio_of(found.value / of_log, half**2 + 1 / log[topic] - 1 / searches, found.n)
        row |= {"n": of_topic.height, **rate.cells("rate", own=True)}
        if "entry" in events.columns:
            entered = of_topic.filter(pl.col("entry") != "")
            row |= share((entered["entry"] == "recommended").to_numpy(), entered["user"].to_numpy()).cells(
                "recommended", own=True
            )
        single = of_topic.filter(pl.col("group") != SEVERAL)
        for group in groups:
            estimate = share((single["group"] == group).to_numpy(), single["user"].to_numpy())
            row |= estimate.cells(f"share_{group}", own=True)
        rows.append(row)
    return frame_of(rows).sort("rate", descending=True, nulls_last=True, maintain_order=True)
