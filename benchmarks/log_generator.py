"""A made-up query log with planted effects. The same seed gives the same log.

Every session has two searches. Whole columns are drawn at once: ten million rows take about a minute. The log that
askew ships (``shipped/logs/sample``) was written by ``write_sample``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.logs.definition import LOG_DATA
from askew.logs.topics import OTHER, load_topics

GROUPS = ("female", "male")
ENTRIES = ("edited", "recommended", "other")
RANKS = 10
WEIGHTS = 1.0 / np.log2(np.arange(1, RANKS + 1) + 1)
_MODIFIERS = (
    "best", "cheap", "new", "top", "good", "popular", "famous", "local", "modern", "simple", "classic", "great", "free",
    "common", "rare", "easy", "little", "big", "fast", "quiet",
)  # fmt: skip
_NEUTRAL = (
    "place", "thing", "part", "side", "number", "kind", "line", "point", "area", "week", "street", "corner", "sound",
    "colour", "shape", "letter", "paper", "window", "bridge", "river",
)  # fmt: skip
_PAIRS = (("woman", "man"), ("girl", "boy"), ("she", "he"), ("mother", "father"), ("her", "his"))
_WIDTH = 16
# The added block, and the number of words of the original query before it (-1: at the end).
_FOR_GROUP = {
    "female": (("for women", -1), ("women's", 0), ("women's", 1), ("women", -1), ("female", 0), ("by women", -1)),
    "male": (("for men", -1), ("men's", 0), ("men's", 1), ("men", -1), ("male", 0), ("by men", -1)),
}
_FOR_OTHERS = (
    ("for kids", -1), ("for teens", -1), ("for seniors", -1), ("for beginners", -1), ("2021", -1), ("online", -1),
    ("near me", -1), ("pdf", -1), ("american", 1), ("wikipedia", -1),
)  # fmt: skip
_BLOCKS = (*_FOR_GROUP["female"], *_FOR_GROUP["male"], *_FOR_OTHERS)
# The first page by kind of reformulation, then the second page. {0} is a word for the added group, {1} for the other.
_PAGE_TEXTS = ("reviews and prices", "{1} {1} {1} {0}", "{0} {1}", "{0} {0} {0} {1}", "{0} {0} {0} {0} {1}")
_START, _DAY = 1_609_459_200_000, 86_400_000
_LONGEST_GAP = 1_700_000
_CHUNK = 250_000


@dataclass(frozen=True)
class Planted:
    """The effects of a made-up log. The defaults are close to the values that the GSQR paper reports.

    The second query of a session is unrelated, specialized for no group, or specialized for a group. ``loyalty`` is
    the probability that a group is chosen by the user's own preference; ``recommended_female`` multiplies the share of
    recommended queries for women's terms; ``rare`` is the share of sessions with queries that no other user typed.
    """

    sessions: int = 40_000
    users: int = 12_000
    specializing: float = 0.45
    for_group: float = 0.4
    female: float = 0.54
    loyalty: float = 0.5
    recommended: float = 0.13
    recommended_female: float = 1.2
    edited: float = 0.64
    medians: Mapping[tuple[str, str], float] = field(
        default_factory=lambda: dict(
            zip([(g, e) for g in GROUPS for e in ENTRIES], (16.0, 13.5, 66.0, 14.0, 12.5, 60.0), strict=True)
        )
    )
    spread: float = 0.8
    click_before: float = 0.2
    click_ratio: Mapping[str, float] = field(default_factory=lambda: {"edited": 2.5, "recommended": 3.6, "other": 2.2})
    changes: tuple[float, ...] = (0.62, 0.18, 0.14, 0.06)
    sites: int = 24
    kinds: tuple[float, ...] = (0.4, 0.25, 0.2, 0.15)
    correlation: float = -0.35
    queries_per_topic: int = 10
    rare: float = 0.002
    seed: int = 0

    @cached_property
    def words(self) -> dict[str, list[str]]:
        """The queries of each topic, according to the shipped topic words."""
        seeds = load_topics()
        made = {}
        for number, (topic, words) in enumerate([*seeds.words.items(), (OTHER, _NEUTRAL)]):
            nouns = [word for word in words if " " not in word and word not in _MODIFIERS]
            pool = [f"{m} {noun}" for i, noun in enumerate(nouns) for m in _MODIFIERS[(i + number) % 4 :: 4]]
            queries = pl.Series(pool)
            own = queries.filter(seeds.topics(queries) == topic).to_list()
            made[topic] = own[:: max(1, len(own) // self.queries_per_topic)][: self.queries_per_topic]
        return made

    @cached_property
    def queries(self) -> Queries:
        """The original queries with their topics, associations and probabilities."""
        rng = np.random.default_rng([self.seed, 11])
        topics = [topic for topic, texts in self.words.items() for _ in texts]
        texts = [text for topic_texts in self.words.values() for text in topic_texts]
        words, vectors = _vectors(texts, rng)
        place = {word: i for i, word in enumerate(words)}
        sums = np.array([sum(vectors[place[word]] for word in text.split()) for text in texts])
        association = sums[:, 0] / np.linalg.norm(sums, axis=1)
        # Rate and % recommended of each topic in Table 1 of the GSQR paper.
        lines = (LOG_DATA / "gsqr_table1.csv").read_text(encoding="utf-8").splitlines()
        published = {line.split(",")[0]: line.split(",")[1:3] for line in lines if line[:1] != "#"}
        rate, lift = (np.array([float(published[topic][i]) for topic in self.words]) for i in range(2))
        of = np.array([list(self.words).index(topic) for topic in topics])
        sizes = np.bincount(of)
        log = rng.dirichlet(np.full(len(sizes), 8.0))
        in_log, in_events = log[of] / sizes[of], (log * rate**0.5)[of] / sizes[of]
        ranks = np.empty(len(texts))
        ranks[np.argsort(association)] = (np.arange(len(texts)) + 0.5) / len(texts)
        normal = np.array([NormalDist().inv_cdf(p) for p in ranks])
        noise = math.sqrt(1 - self.correlation**2) * rng.standard_normal(len(texts))
        score = self.correlation * normal + noise
        female = 1 / (1 + np.exp(-(math.log(self.female / (1 - self.female)) + 0.9 * score)))
        recommended = np.clip(self.recommended * (lift / 13.0)[of], 0.01, 0.5)
        in_log, in_events = in_log / in_log.sum(), in_events / in_events.sum()
        return Queries(texts, topics, association, in_log, in_events, female, recommended, words, vectors)


@dataclass(frozen=True)
class Queries:
    """Columns over the original queries. ``female`` is the probability that women's terms are added."""

    texts: list[str]
    topics: list[str]
    association: Any
    in_log: Any
    in_events: Any
    female: Any
    recommended: Any
    vector_words: list[str]
    vectors: Any


def _vectors(texts: list[str], rng: Any) -> tuple[list[str], Any]:
    """Word vectors whose first component is the gender association of a word; it is 0 for modifiers."""
    words = sorted({word for text in texts for word in text.split()})
    vectors = rng.standard_normal((len(words), _WIDTH)) / math.sqrt(_WIDTH)
    vectors[:, 0] = np.where(np.isin(words, _MODIFIERS), 0.0, rng.normal(0.0, 0.35, len(words)))
    lean = np.eye(_WIDTH)[0]
    for one, two in _PAIRS:
        if one not in words and two not in words:
            base = rng.standard_normal(_WIDTH) / math.sqrt(_WIDTH)
            base[0] = 0.0
            words += [one, two]
            vectors = np.concatenate([vectors, [base + lean, base - lean]])
    return words, vectors.astype(np.float32)


def joint(planted: Planted) -> Any:
    """The joint probability of original query, group and entry point among the reformulations for a group."""
    queries = planted.queries
    table = np.zeros((len(queries.texts), 2, 3))
    for g, chance in enumerate((queries.female, 1 - queries.female)):
        rec = queries.recommended * (planted.recommended_female if g == 0 else 2 - planted.recommended_female)
        edited = (1 - rec) * planted.edited / (1 - planted.recommended)
        table[:, g] = (queries.in_events * chance)[:, None] * np.stack([edited, rec, 1 - edited - rec], axis=1)
    return table


def site_chances(planted: Planted) -> tuple[Any, Any]:
    """The probability of each site per result on the first page and on the second page."""
    rng = np.random.default_rng([planted.seed, 12])
    before = rng.dirichlet(np.full(planted.sites, 4.0))
    after = before * np.exp(rng.normal(0.0, 0.6, planted.sites))
    return before, after / after.sum()


def rank_moves(planted: Planted) -> Any:
    """The joint probability of change, rank after and rank before (0: absent) of a clicked result."""
    click = 0.75 ** np.arange(RANKS)
    table = np.zeros((4, RANKS + 1, RANKS + 1))
    absent, lower, same, higher = planted.changes
    table[0, 1:, 0] = absent * click / click.sum()
    table[2, np.arange(1, RANKS + 1), np.arange(1, RANKS + 1)] = same * click / click.sum()
    for change, chance, ranks in ((1, lower, range(1, RANKS)), (3, higher, range(2, RANKS + 1))):
        total = sum(click[r - 1] for r in ranks)
        for r in ranks:
            olds = np.arange(r + 1, RANKS + 1) if change == 1 else np.arange(1, r)
            table[change, r, olds] = chance * click[r - 1] / total / len(olds)
    return table


class SyntheticLog:
    """Draws the rows of a log. ``pages`` adds results and their texts, which take most of the memory."""

    def __init__(self, planted: Planted, pages: bool = True) -> None:
        self.planted, self.pages = planted, pages
        self._texts = planted.queries.texts
        added = [_insert(text, *block) for text in self._texts for block in _BLOCKS]
        self._pool = pl.Series([*self._texts, *added])
        self._joint, self._moves = joint(planted), rank_moves(planted)

    def chunks(self, order: str = "time") -> Iterator[pa.Table]:
        """The rows in chunks, sorted by ``time``, or by ``user`` and then time."""
        p = self.planted
        for number, first in enumerate(range(0, p.sessions, _CHUNK)):
            size = min(_CHUNK, p.sessions - first)
            rng = np.random.default_rng([p.seed, 13, number])
            # No user is in two chunks. Each session of a user is on a different day.
            users = max(1, round(p.users * size / p.sessions))
            user = rng.integers(0, users, size)
            day = pl.DataFrame({"user": user}).select(pl.int_range(pl.len()).over("user")).to_series().to_numpy()
            # In time order, a chunk begins after the previous one ends.
            begin = _START + (number * int(day.max() + 1) * _DAY * 2 if order == "time" else 0)
            start = begin + day * _DAY + rng.integers(0, _DAY // 2, size)
            kind = np.where(rng.random(size) < p.specializing, np.where(rng.random(size) < p.for_group, 2, 1), 0)
            query = rng.choice(len(self._texts), size, p=p.queries.in_log)
            query[kind == 2] = rng.choice(len(self._texts), int((kind == 2).sum()), p=p.queries.in_events)
            own = rng.random(users)[user]
            mood = np.where(rng.random(size) < p.loyalty, own, rng.random(size))
            group = np.where(mood < p.queries.female[query], 0, 1)
            chances = self._joint[query, group]
            entry = _pick(rng, chances / chances.sum(axis=1, keepdims=True))
            names = "person-" + pl.Series(user + (first * p.users) // p.sessions).cast(pl.String).str.zfill(9)
            columns = {"user": pl.concat([names, names]), **self._columns(rng, kind, query, group, entry, start, first)}
            keys = ["time", "user"] if order == "time" else ["user", "time"]
            yield pl.DataFrame(columns).sort(keys, maintain_order=True).to_arrow()

    def _columns(
        self, rng: Any, kind: Any, query: Any, group: Any, entry: Any, start: Any, first: int
    ) -> dict[str, pl.Series]:
        p, size = self.planted, len(kind)
        second = self._second(rng, kind, query, group)
        medians = np.array([[p.medians[name, way] for way in ENTRIES] for name in GROUPS])[group, entry]
        seconds = medians * np.exp(p.spread * rng.standard_normal(size))
        gap = np.minimum(1000 * seconds, _LONGEST_GAP).astype(np.int64)
        # The same unique word at the end of both queries keeps the second a specialization of the first.
        odd = pl.Series((rng.random(size) < p.rare) & (kind > 0))
        tail = pl.select(
            pl.when(odd)
            .then(" onlyone" + pl.int_range(first, first + size, eager=True).cast(pl.String))
            .otherwise(pl.lit(""))
        ).to_series()
        chance = p.click_before * np.array([p.click_ratio[way] for way in ENTRIES])[entry]
        clicked = rng.random(size) < p.click_before, rng.random(size) < chance
        # The ranks on the second and on the first page (0: absent) of the result that would be clicked.
        places = rng.choice(self._moves.size, size, p=self._moves.ravel() / self._moves.sum())
        _, new, old = np.unravel_index(places, self._moves.shape)
        first_rank = np.minimum(rng.geometric(0.3, size), RANKS)
        topics = pl.Series(p.queries.topics)
        ranks = pl.Series(np.concatenate([first_rank, new])).cast(pl.Int32)
        columns = {
            "time": pl.Series(np.concatenate([start, start + gap])).cast(pl.Datetime("ms")),
            "query": pl.concat([self._pool.gather(query) + tail, self._pool.gather(second) + tail]),
            "entry": pl.concat([pl.repeat("other", size, eager=True), pl.Series(ENTRIES).gather(entry)]),
            "topic": pl.concat([topics.gather(query), topics.gather(np.where(kind == 0, second, query))]),
            "click_rank": _where_clicked(clicked, ranks),
        }
        if self.pages:
            columns |= _page_columns(p, rng, clicked, first_rank, new, old)
            page = np.where(kind == 2, _pick(rng, np.broadcast_to(p.kinds, (size, len(p.kinds)))), 0)
            words = (("women", "men"), ("men", "women"))
            pool = pl.Series([text.format(*pair) for text in _PAGE_TEXTS for pair in words])
            after = np.where(kind == 2, len(_PAGE_TEXTS) - 1, 0)
            both = pool.gather(np.concatenate([page * 2 + group, after * 2 + group]))
            columns["texts"] = both.reshape((-1, 1)).arr.to_list()
        return columns

    def _second(self, rng: Any, kind: Any, query: Any, group: Any) -> Any:
        """The index of the second query in the pool: another query, or the first query with an added block."""
        size, each = len(kind), len(_FOR_GROUP["female"])
        block = np.where(
            kind == 2,
            group * each + rng.integers(0, each, size),
            len(GROUPS) * each + rng.integers(0, len(_FOR_OTHERS), size),
        )
        other = rng.choice(len(self._texts), size, p=self.planted.queries.in_log)
        # The second query must differ: the same query again would not be a second search.
        other = np.where(other == query, (other + 1) % len(self._texts), other)
        return np.where(kind == 0, other, len(self._texts) + query * len(_BLOCKS) + block)


def _page_columns(
    planted: Planted, rng: Any, clicked: Any, first_rank: Any, new: Any, old: Any
) -> dict[str, pl.Series]:
    """The results of both pages of each session. Only the clicked result can be on both pages."""
    size = len(new)
    sides = []
    for side, chances in enumerate(site_chances(planted)):
        site = rng.choice(planted.sites, (size, RANKS), p=chances)
        sides.append(site * 1000 + 2 * rng.integers(0, 500, (size, RANKS)) + side)
    shared = np.flatnonzero(clicked[1] & (old > 0))
    address = planted.sites * 1000 + rng.integers(0, 1000, len(shared))
    sides[0][shared, old[shared] - 1] = address
    sides[1][shared, new[shared] - 1] = address
    names = [*(f"site{number}.example" for number in range(planted.sites)), "shared.example"]
    pool = pl.Series([f"https://www.{name}/{doc}" for name in names for doc in range(1000)])
    docs = [side[np.arange(size), rank - 1] for side, rank in zip(sides, (first_rank, new), strict=True)]
    return {
        "results": pool.gather(np.concatenate(sides).ravel()).reshape((-1, RANKS)).arr.to_list(),
        "click_doc": _where_clicked(clicked, pool.gather(np.concatenate(docs))),
    }


def _where_clicked(clicked: tuple[Any, Any], values: pl.Series) -> pl.Series:
    """A list of one value for the pages with a click, and an empty list for the others."""
    frame = pl.DataFrame({"there": np.concatenate(clicked), "value": values})
    none = pl.lit([], pl.List(values.dtype))
    return frame.select(pl.when("there").then(pl.concat_list("value")).otherwise(none)).to_series()


def _insert(text: str, block: str, place: int) -> str:
    words = text.split()
    at = len(words) if place < 0 else place
    return " ".join([*words[:at], block, *words[at:]])


def _pick(rng: Any, chances: Any) -> Any:
    """Draw one column for each row, with the probabilities of that row."""
    edges = np.cumsum(chances, axis=1)
    return np.minimum((edges < rng.random(len(edges))[:, None] * edges[:, -1:]).sum(axis=1), edges.shape[1] - 1)


def write_log(log: SyntheticLog, path: Path, form: str = "parquet", order: str = "time") -> Path:
    """Write a made-up log as ``parquet``, or as ``aol`` or ``tsv`` text with one click per row and no results."""
    if form == "parquet":
        chunks = log.chunks(order)
        first = next(chunks)
        with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
            for chunk in (first, *chunks):
                writer.write_table(chunk, row_group_size=100_000)
        return path
    with path.open("wb") as file:
        for number, chunk in enumerate(log.chunks(order)):
            rows = _flat(pl.DataFrame(pl.from_arrow(chunk)), form)
            rows.write_csv(file, separator="\t", quote_style="never", include_header=number == 0)
    return path


def _flat(rows: pl.DataFrame, form: str) -> pl.DataFrame:
    rank = pl.col("click_rank").list.first().cast(pl.String).fill_null("")
    made_up = pl.when(rank == "").then(pl.lit("")).otherwise(pl.lit("http://www.example.com"))
    doc = pl.col("click_doc").list.first().fill_null("") if "click_doc" in rows.columns else made_up
    if form == "aol":
        time = pl.col("time").dt.strftime("%Y-%m-%d %H:%M:%S")
        number = pl.col("user").str.slice(7).str.strip_chars_start("0").replace("", "0")
        return rows.select(AnonID=number, Query="query", QueryTime=time, ItemRank=rank, ClickURL=doc)
    time = pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S%.3f")
    return rows.select("user", time.alias("time"), "query", "entry", "topic", click_rank=rank, click_doc=doc)


def write_vectors(planted: Planted, folder: Path) -> Path:
    """The word vectors of a made-up log, as a matrix with its words."""
    np.save(folder / "vectors.npy", planted.queries.vectors)
    (folder / "vocab.txt").write_text("\n".join(planted.queries.vector_words) + "\n", encoding="utf-8")
    return folder / "vectors.npy"


def write_sample(folder: Path) -> None:
    """Write the sample log that askew ships, with its word vectors."""
    planted = Planted(sessions=4_000, users=1_200, queries_per_topic=4)
    write_log(SyntheticLog(planted), folder / "log.parquet")
    write_vectors(planted, folder)
