"""Find the sessions, searches, pairs and reformulations for a group in the rows of some users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from askew.core.protocols import Rejected
from askew.logs.definition import LogVocabulary, specialization
from askew.logs.effect import add_sites, empty_sites

KEYPHRASE = "[KEYPHRASE]"
_LATE_SHOWN = 3

# Takes canonical queries; returns the topic of each.
TopicsOf = Callable[[pl.Series], pl.Series]


@dataclass(frozen=True)
class Walk:
    """The settings of an analysis: the terms, the gap in milliseconds that ends a session, and what to collect."""

    vocabulary: LogVocabulary
    gap: int
    topics: TopicsOf | None = None
    templates: bool = False
    with_topics: bool = True


@dataclass
class LogCounts:
    """What is kept of a log, or of the rows of some users.

    ``counts`` has the numbers of rows, users, sessions, searches, pairs, specializing and for_group. ``late`` has the
    line numbers of a few rows that came after a later row of the same user. ``events`` has the reformulations for a
    group, ``sites`` the exposure of sites. ``templates`` counts templates and keyphrases, ``phrases`` keyphrases.
    ``rejected`` has the rows that were left out, and ``columns`` the columns of the log.
    """

    counts: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    topic_users: Counter[str] = field(default_factory=Counter)
    late: list[int] = field(default_factory=list)
    events: pl.DataFrame = field(default_factory=pl.DataFrame)
    sites: pl.DataFrame = field(default_factory=empty_sites)
    templates: pl.DataFrame = field(default_factory=pl.DataFrame)
    phrases: pl.DataFrame = field(default_factory=pl.DataFrame)
    rejected: Rejected = field(default_factory=Rejected)
    columns: frozenset[str] = frozenset()
    sessions_as_users: bool = False

    def add(self, part: LogCounts) -> None:
        """Add what is kept of other users."""
        self.counts.update(part.counts)
        self.topics.update(part.topics)
        self.topic_users.update(part.topic_users)
        self.late = sorted([*self.late, *part.late])[:_LATE_SHOWN]
        self.sites = add_sites(self.sites, part.sites)
        self.events = pl.concat([self.events, part.events], how="diagonal")
        self.templates = pl.concat([self.templates, part.templates], how="diagonal")
        self.phrases = pl.concat([self.phrases, part.phrases], how="diagonal")


def walk(log: pl.DataFrame, how: Walk) -> LogCounts:
    """Analyze all rows of some users."""
    by_session = "session" in log.columns
    owner = ["user", "session"] if by_session else ["user"]
    is_late = pl.col("time") < pl.col("time").cum_max().over(owner)
    late = log.filter(is_late)["line"].sort()
    log = log.sort(*owner, "time", maintain_order=True)
    opens = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in owner)
    if not by_session:
        opens |= pl.col("time") - pl.col("time").shift() > how.gap
    log = log.with_columns(opens=opens.fill_null(True))
    begins = pl.col("opens") | (pl.col("query") != pl.col("query").shift())
    log = log.with_columns(search=begins.cum_sum().cast(pl.Int64))
    searches = log.filter(pl.col("search").is_first_distinct())
    walked = LogCounts(late=late[:_LATE_SHOWN].to_list())
    walked.counts.update(rows=log.height, users=log["user"].n_unique(), sessions=int(searches["opens"].sum()))
    walked.counts.update(searches=searches.height, out_of_order=len(late))
    if how.with_topics and (how.topics is not None or "topic" in log.columns):
        topics = searches["topic"].fill_null("") if how.topics is None else how.topics(searches["query"])
        searches = searches.with_columns(topic=topics)
        by_topic = searches.group_by("topic").agg(n=pl.len(), users=pl.col("user").n_unique())
        walked.topics.update(dict(by_topic.select("topic", "n").iter_rows()))
        if how.topics is None:
            # To hide topics of the log that few users have.
            walked.topic_users.update(dict(by_topic.select("topic", "users").iter_rows()))
    before = [name for name in ("query", "time", "topic") if name in searches.columns]
    pairs = searches.with_columns(pl.col(before).shift().name.prefix("first_")).filter(~pl.col("opens"))
    special = _specializing(pairs, how.vocabulary)
    walked.counts.update(_sums(pairs, special))
    walked.events = _events(log, special.filter(pl.col("mask") > 0))
    if how.templates:
        parts = split_keyphrases(special["block"], how.vocabulary)
        texts = special.select("user", "line", "head", "tail").hstack(parts).filter(pl.col("phrase") != "")
        around = [pl.col("head"), pl.col("lead"), pl.lit(KEYPHRASE), pl.col("trail"), pl.col("tail")]
        template = pl.concat_str([pl.when(part != "").then(part) for part in around], separator=" ", ignore_nulls=True)
        templates = texts.select("user", "line", template=template, keyphrase="phrase")
        n, users = pl.len().cast(pl.Int64), pl.col("user").n_unique().cast(pl.Int64)
        walked.templates = templates.group_by("template", "keyphrase").agg(n=n)
        # No user is in two parts, so the numbers of users can be added.
        walked.phrases = templates.group_by("keyphrase").agg(n=n, users=users)
    return walked


def _specializing(pairs: pl.DataFrame, vocabulary: LogVocabulary) -> pl.DataFrame:
    first, second = pl.col("first_query"), pl.col("query")
    # A quick test that leaves few pairs: the two queries have the first or the last term in common.
    same_end = pl.any_horizontal(first.str.extract(end) == second.str.extract(end) for end in ("^([^ ]+)", "([^ ]+)$"))
    likely = pairs.filter(second.str.len_bytes() > first.str.len_bytes() + 1, same_end)
    rows = [specialization(old, new, vocabulary) for old, new in likely.select(first, second).iter_rows()]
    special = likely.filter(pl.Series([row is not None for row in rows], dtype=pl.Boolean))
    kinds: dict[str, Any] = {"head": pl.String, "block": pl.String, "tail": pl.String, "mask": pl.Int64}
    added = pl.DataFrame([row for row in rows if row is not None], {**kinds, "terms": pl.Int64}, orient="row")
    return pl.concat([special, added], how="horizontal")


def _sums(pairs: pl.DataFrame, special: pl.DataFrame) -> dict[str, int]:
    """The number of pairs of each kind, and the sums per user that the intervals of their shares need."""
    kinds = {"pairs": pairs, "specializing": special, "for_group": special.filter(pl.col("mask") > 0)}
    by_user = pl.concat([rows.select("user", kind=pl.lit(kind)) for kind, rows in kinds.items()])
    by_user = by_user.group_by("user").agg((pl.col("kind") == kind).sum().cast(pl.Int64).alias(kind) for kind in kinds)
    sums = {kind: pl.col(kind).sum() for kind in kinds} | {f"{kind}:2": pl.col(kind).pow(2).sum() for kind in kinds}
    for hits, of in (("specializing", "pairs"), ("for_group", "specializing")):
        sums |= {f"{hits}:{of}": (pl.col(hits) * pl.col(of)).sum(), f"{of}:users": (pl.col(of) > 0).sum()}
    return by_user.select(**sums).row(0, named=True)


def _events(log: pl.DataFrame, special: pl.DataFrame) -> pl.DataFrame:
    """The reformulations for a group, with what the log has about the two result pages."""
    columns = [name for name in ("user", "line", "entry", "block", "mask", "terms") if name in special.columns]
    named = {"original": "first_query", "reformulated": "query", "topic": "first_topic"}
    named = {name: column for name, column in named.items() if column in special.columns}
    events = special.select(*columns, "search", **named, gap=pl.col("time") - pl.col("first_time"))
    pages = _pages(log.filter(pl.col("search").is_in([*events["search"], *(events["search"] - 1)])))
    if pages.width > 1:
        events = events.with_columns(previous=pl.col("search") - 1)
        for side, search in (("before", "previous"), ("after", "search")):
            page = pages.select(pl.col("search").alias(search), pl.exclude("search").name.suffix(f"_{side}"))
            events = events.join(page, on=search, how="left", maintain_order="left")
    return events.drop("search", "previous", strict=False)


def _pages(rows: pl.DataFrame) -> pl.DataFrame:
    filled = {name: pl.col(name).list.len().fill_null(0) > 0 for name in ("click_rank", "results", "texts")}
    values = {}
    if "click_rank" in rows.columns:
        clicked = filled["click_rank"]
        values = {"clicked": clicked.any(), "rank": pl.col("click_rank").filter(clicked).first().list.first()}
        if "click_doc" in rows.columns:
            values["doc"] = pl.col("click_doc").filter(clicked).first().list.first()
    values |= {name: pl.col(name).filter(filled[name]).first() for name in ("results", "texts") if name in rows.columns}
    return rows.group_by("search").agg(**values)


def split_keyphrases(blocks: pl.Series, vocabulary: LogVocabulary) -> pl.DataFrame:
    """Split blocks into leading prepositions, keyphrase and trailing prepositions."""
    words = "|".join(sorted((text.replace(".", r"\.") for text in vocabulary.prepositions), key=len, reverse=True))
    block, empty = blocks.rename("block").to_frame(), pl.lit("")
    if not words:
        return block.select(lead=empty, phrase="block", trail=empty)
    some = f"(?:{words})(?: (?:{words}))*"
    parts = block.select(pl.col("block").str.extract_groups(f"^(?P<lead>{some} )?(?P<phrase>.*?)(?P<trail> {some})?$"))
    only = pl.col("block").str.contains(f"^{some}$")
    return block.hstack(parts.unnest("block")).select(
        lead=pl.col("lead").fill_null("").str.strip_chars(" "),
        phrase=pl.when(only).then(empty).otherwise("phrase"),
        trail=pl.col("trail").fill_null("").str.strip_chars(" "),
    )
