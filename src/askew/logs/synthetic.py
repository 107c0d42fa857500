"""Generate a made-up log with planted effects, for tests and demonstrations. The same seed gives the same log.

Every session has two searches. Whole columns are drawn at once: ten million rows take about a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.errors import ConfigError
from askew.logs.planted import ENTRIES, GROUPS, RANKS, Planted, joint, rank_moves, site_chances

ORDERS = ("time", "user")
FORMATS = ("aol", "tsv", "parquet")

# Text of the block, and the number of words of the original query before it (-1: at the end).
_FOR_GROUP = {
    "female": (("for women", -1), ("women's", 0), ("women's", 1), ("women", -1), ("female", 0), ("by women", -1)),
    "male": (("for men", -1), ("men's", 0), ("men's", 1), ("men", -1), ("male", 0), ("by men", -1)),
}
_FOR_OTHERS = (
    ("for kids", -1), ("for teens", -1), ("for seniors", -1), ("for beginners", -1), ("2021", -1), ("online", -1),
    ("near me", -1), ("pdf", -1), ("american", 1), ("wikipedia", -1),
)  # fmt: skip
_START = 1_609_459_200_000
_DAY = 86_400_000
_LONGEST_GAP = 1_700_000
_CHUNK = 250_000
# The text of the first page by kind of reformulation. {own} is a word for the added group, {other} for the other group.
_PAGE_TEXTS = ("reviews and prices", "{other} {other} {other} {own}", "{own} {other}", "{own} {own} {own} {other}")
_SECOND_PAGE = "{own} {own} {own} {own} {other}"
_WORDS = {"female": ("women", "men"), "male": ("men", "women")}


class SyntheticLog:
    """Draws the rows of a log. ``pages`` adds results and their texts, which take most of the memory."""

    def __init__(self, planted: Planted, pages: bool = True) -> None:
        self.planted, self.pages = planted, pages
        texts = planted.queries.texts
        blocks = [*_FOR_GROUP["female"], *_FOR_GROUP["male"], *_FOR_OTHERS]
        self._pool = pa.array([*texts, *(_insert(text, *block) for text in texts for block in blocks)])
        self._size, self._blocks = len(texts), len(blocks)
        self._joint = joint(planted)
        self._moves = rank_moves(planted)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return 2 * self.planted.sessions

    def chunks(self, order: str = "time") -> Iterator[pa.Table]:
        """The rows in chunks, sorted by time, or by user and then time."""
        if order not in ORDERS:
            raise ConfigError(f"order of a synthetic log: expected {' or '.join(ORDERS)}, found {order!r}")
        total = self.planted.sessions
        for number, first in enumerate(range(0, total, _CHUNK)):
            yield self._chunk(number, first, min(_CHUNK, total - first), order)

    def _chunk(self, number: int, first: int, size: int, order: str) -> pa.Table:
        rng = np.random.default_rng([self.planted.seed, 13, number])
        p = self.planted
        # No user is in two chunks. Each session of a user is on a different day.
        share = max(1, round(p.users * size / p.sessions))
        user = rng.integers(0, share, size)
        day = _running_count(user)
        # In time order, a chunk begins after the previous one ends.
        begin = _START + (number * int(day.max() + 1) * _DAY * 2 if order == "time" else 0)
        start = begin + day * _DAY + rng.integers(0, _DAY // 2, size)
        kind = np.where(rng.random(size) < p.specializing, np.where(rng.random(size) < p.for_group, 2, 1), 0)
        drawn = self._draw(rng, kind, user, share)
        user = user + (first * p.users) // p.sessions
        columns = self._columns(rng, kind, drawn, user, start, first)
        table = pl.DataFrame(columns)
        keys = ["time", "user"] if order == "time" else ["user", "time"]
        return table.sort(keys, maintain_order=True).to_arrow()

    def _draw(self, rng: Any, kind: Any, user: Any, users: int) -> dict[str, Any]:
        """The query, group and entry point of each session."""
        p, size = self.planted, len(kind)
        queries = p.queries
        query = rng.choice(self._size, size, p=queries.in_log)
        events = kind == 2
        query[events] = rng.choice(self._size, int(events.sum()), p=queries.in_events)
        own = rng.random(users)[user]
        mood = np.where(rng.random(size) < p.loyalty, own, rng.random(size))
        group = np.where(mood < queries.female[query], 0, 1)
        chances = self._joint[query, group]
        entry = _pick(rng, chances / chances.sum(axis=1, keepdims=True))
        return {"query": query, "group": group, "entry": entry}

    def _columns(self, rng: Any, kind: Any, drawn: dict[str, Any], user: Any, start: Any, first: int) -> dict[str, Any]:
        p, size = self.planted, len(kind)
        second = self._second(rng, kind, drawn)
        gap = self._gaps(rng, drawn)
        one, two = self._texts(rng, drawn["query"], second, kind, first)
        chance = p.click_before * np.array([p.click_ratio[entry] for entry in ENTRIES])[drawn["entry"]]
        old, new = rng.random(size) < p.click_before, rng.random(size) < chance
        ranks = self._clicked_ranks(rng, size)
        topics = pl.Series(p.queries.topics)
        first_rank = np.minimum(rng.geometric(0.3, size), RANKS)
        columns: dict[str, Any] = {
            "user": _twice(_ids(user), _ids(user)),
            "time": pl.concat([pl.Series(start), pl.Series(start + gap)]).cast(pl.Datetime("ms")),
            "query": pl.concat([one, two]),
            "entry": _twice(pl.repeat("other", size, eager=True), pl.Series(ENTRIES).gather(drawn["entry"])),
            "topic": _twice(topics.gather(drawn["query"]), self._second_topics(kind, drawn, second, topics)),
            "click_rank": _ranks(np.concatenate([old, new]), np.concatenate([first_rank, ranks[0]])),
        }
        if self.pages:
            columns |= _Pages(p, rng, ranks, new).columns(old, first_rank)
            columns["texts"] = self._page_texts(rng, kind, drawn["group"])
        return columns

    def _second_topics(self, kind: Any, drawn: dict[str, Any], second: Any, topics: pl.Series) -> pl.Series:
        return topics.gather(np.where(kind == 0, second, drawn["query"]))

    def _second(self, rng: Any, kind: Any, drawn: dict[str, Any]) -> Any:
        """The index of the second query in the pool: another query, or the first query with an added block."""
        size = len(kind)
        each = len(_FOR_GROUP["female"])
        block = np.where(
            kind == 2,
            drawn["group"] * each + rng.integers(0, each, size),
            len(GROUPS) * each + rng.integers(0, len(_FOR_OTHERS), size),
        )
        other = rng.choice(self._size, size, p=self.planted.queries.in_log)
        # The second query must differ: the same query again would not be a second search.
        other = np.where(other == drawn["query"], (other + 1) % self._size, other)
        return np.where(kind == 0, other, self._size + drawn["query"] * self._blocks + block)

    def _gaps(self, rng: Any, drawn: dict[str, Any]) -> Any:
        medians = np.array([[self.planted.medians[group, entry] for entry in ENTRIES] for group in GROUPS])
        middle = medians[drawn["group"], drawn["entry"]]
        seconds = middle * np.exp(self.planted.spread * rng.standard_normal(len(middle)))
        return np.minimum(1000 * seconds, _LONGEST_GAP).astype(np.int64)

    def _texts(self, rng: Any, first: Any, second: Any, kind: Any, number: int) -> tuple[pl.Series, pl.Series]:
        one, two = (pl.Series(self._pool.take(pa.array(places))) for places in (first, second))
        odd = (rng.random(len(first)) < self.planted.rare) & (kind > 0)
        if not odd.any():
            return one, two
        # The same unique word at the end of both queries keeps the second a specialization of the first.
        tail = pl.Series(np.arange(number, number + len(first))).cast(pl.String)
        secret = pl.Series(np.where(odd, 1, 0)).cast(pl.Boolean)
        frame = pl.DataFrame({"one": one, "two": two, "tail": " onlyone" + tail, "odd": secret})
        made = frame.select(
            pl.when("odd").then(pl.col(name) + pl.col("tail")).otherwise(name).alias(name) for name in ("one", "two")
        )
        return made["one"], made["two"]

    def _clicked_ranks(self, rng: Any, size: int) -> tuple[Any, Any]:
        """The ranks on the second and on the first page (0: absent) of the result that would be clicked."""
        places = rng.choice(self._moves.size, size, p=self._moves.ravel() / self._moves.sum())
        _, new, old = np.unravel_index(places, self._moves.shape)
        return new, old

    def _page_texts(self, rng: Any, kind: Any, group: Any) -> pl.Series:
        page = _pick(rng, np.broadcast_to(self.planted.kinds, (len(kind), len(self.planted.kinds))))
        page = np.where(kind == 2, page, 0)
        texts = [_fill(text, name) for text in (*_PAGE_TEXTS, _SECOND_PAGE) for name in GROUPS]
        pool = pl.Series(texts)
        after = np.where(kind == 2, len(_PAGE_TEXTS), 0)
        both = pl.concat([pool.gather(page * 2 + group), pool.gather(after * 2 + group)])
        return both.reshape((-1, 1)).arr.to_list()


class _Pages:
    """The results of both pages of each session. Only the clicked result can be on both pages."""

    def __init__(self, planted: Planted, rng: Any, ranks: tuple[Any, Any], clicked: Any) -> None:
        self.new, self.old = ranks
        self.clicked = clicked
        size = len(clicked)
        self._sides = []
        for side, chances in enumerate(site_chances(planted)):
            site = rng.choice(planted.sites, (size, RANKS), p=chances)
            doc = 2 * rng.integers(0, 500, (size, RANKS)) + side
            self._sides.append(site * 1000 + doc)
        shared = np.flatnonzero(clicked & (self.old > 0))
        address = planted.sites * 1000 + rng.integers(0, 1000, len(shared))
        self._sides[0][shared, self.old[shared] - 1] = address
        self._sides[1][shared, self.new[shared] - 1] = address
        self._pool = _addresses(planted.sites)

    def columns(self, clicked_before: Any, first_rank: Any) -> dict[str, pl.Series]:
        """Results, and the clicked document of each page."""
        lists = [self._pool.gather(side.ravel()).reshape((-1, RANKS)).arr.to_list() for side in self._sides]
        rows = np.arange(len(self.clicked))
        docs = [
            self._pool.gather(side[rows, rank - 1])
            for side, rank in zip(self._sides, (first_rank, self.new), strict=True)
        ]
        clicked = pl.Series(np.concatenate([clicked_before, self.clicked]))
        frame = pl.DataFrame({"doc": pl.concat(docs), "there": clicked})
        click = frame.select(pl.when("there").then(pl.concat_list("doc")).otherwise(pl.lit([], pl.List(pl.String))))
        return {"results": pl.concat(lists), "click_doc": click.to_series()}


def _addresses(sites: int) -> pl.Series:
    names = [*(f"site{number}.example" for number in range(sites)), "shared.example"]
    return pl.Series([f"https://www.{name}/{doc}" for name in names for doc in range(1000)])


def _insert(text: str, block: str, place: int) -> str:
    words = text.split()
    at = len(words) if place < 0 else place
    return " ".join([*words[:at], block, *words[at:]])


def _fill(text: str, group: str) -> str:
    own, other = _WORDS[group]
    return text.format(own=own, other=other)


def _pick(rng: Any, chances: Any) -> Any:
    """Draw one column for each row, with the probabilities of that row."""
    edges = np.cumsum(chances, axis=1)
    return np.minimum((edges < rng.random(len(edges))[:, None] * edges[:, -1:]).sum(axis=1), edges.shape[1] - 1)


def _running_count(values: Any) -> Any:
    """For each value, the number of equal values before it."""
    return pl.DataFrame({"v": values}).select(count=pl.int_range(pl.len()).over("v"))["count"].to_numpy()


def _ids(numbers: Any) -> pl.Series:
    return "person-" + pl.Series(numbers).cast(pl.String).str.zfill(9)


def _twice(one: pl.Series, two: pl.Series) -> pl.Series:
    return pl.concat([one, two])


def _ranks(there: Any, ranks: Any) -> pl.Series:
    frame = pl.DataFrame({"there": there, "rank": ranks}, schema_overrides={"rank": pl.Int32})
    lists = pl.when("there").then(pl.concat_list("rank")).otherwise(pl.lit([], pl.List(pl.Int32)))
    return frame.select(lists).to_series()


def write_log(log: SyntheticLog, path: Path, form: str = "parquet", order: str = "time") -> Path:
    """Write a made-up log as ``parquet``, or as ``aol`` or ``tsv`` text with one click per row and no results."""
    if form not in FORMATS:
        raise ConfigError(f"format of a synthetic log: expected {', '.join(FORMATS)}, found {form!r}")
    if form == "parquet":
        _write_parquet(log, path, order)
        return path
    with path.open("wb") as file:
        for number, chunk in enumerate(log.chunks(order)):
            rows = _flat(pl.DataFrame(pl.from_arrow(chunk)), form)
            rows.write_csv(file, separator="\t", quote_style="never", include_header=number == 0)
    return path


def _write_parquet(log: SyntheticLog, path: Path, order: str) -> None:
    writer = None
    try:
        for chunk in log.chunks(order):
            writer = writer or pq.ParquetWriter(path, chunk.schema, compression="zstd")
            writer.write_table(chunk, row_group_size=100_000)
    finally:
        if writer is not None:
            writer.close()


def _flat(rows: pl.DataFrame, form: str) -> pl.DataFrame:
    rank = pl.col("click_rank").list.first().cast(pl.String).fill_null("")
    doc = (
        pl.col("click_doc").list.first().fill_null("")
        if "click_doc" in rows.columns
        else (pl.when(rank == "").then(pl.lit("")).otherwise(pl.lit("http://www.example.com")))
    )
    if form == "aol":
        time = pl.col("time").dt.strftime("%Y-%m-%d %H:%M:%S")
        number = pl.col("user").str.slice(7).str.strip_chars_start("0").replace("", "0")
        return rows.select(AnonID=number, Query="query", QueryTime=time, ItemRank=rank, ClickURL=doc)
    time = pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S%.3f")
    return rows.select("user", time.alias("time"), "query", "entry", "topic", click_rank=rank, click_doc=doc)
