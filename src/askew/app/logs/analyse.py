"""A log in, tables out: how people add a group to their queries, when, and to what effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from askew.app.logs.reading import LogCounts, Progress, log_files, open_log, place_of, read_log
from askew.app.logs.topics import NONE, topic_source
from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon, load_lexicon
from askew.logs import discovery, effect, genderedness, pages, patterns, topics
from askew.logs.definition import SEVERAL, LogVocabulary, build_vocabulary, canonical
from askew.logs.effect import CountMentions
from askew.logs.pairs import Walk
from askew.logs.privacy import LEAST_USERS, RARE, Privacy, speculates
from askew.mentions.count import MentionCounter
from askew.reformulators.vectorfiles import read_vectors
from askew.statistics.significance import holm

FEW, HIDDEN, NO_TOPIC = "(few users)", "(not shown)", "(none)"
_SHOWN_QUERIES = 100
_CANDIDATES = 200


@dataclass
class LogReport:
    """The tables of a log by name. No user id is in them, and no text that fewer than ``min_users`` users typed."""

    settings: dict[str, Any]
    counts: dict[str, int]
    rejected: dict[str, int]
    examples: dict[str, list[str]]
    groups: tuple[str, ...]
    tables: dict[str, pl.DataFrame]
    notes: list[str] = field(default_factory=list)
    review: list[discovery.Decision] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "settings": self.settings, "counts": self.counts, "rejected": self.rejected,
            "rejected_examples": self.examples, "notes": self.notes,
            "tables": {name: table.to_dicts() for name, table in self.tables.items()},
        }  # fmt: skip


@dataclass(frozen=True)
class LogSettings:
    """What can be set of an analysis; see ``askew logs --help``."""

    columns: dict[str, str] | None = None
    lexicon: str | Path | Lexicon = "gsqr2023"
    gap_minutes: float = 30.0
    topics: str = "auto"
    vectors: Path | None = None
    vocabulary: Path | None = None
    direction: str = "pca"
    pairs: Path | None = None
    page_lexicon: str | Path | Lexicon | None = None
    margin: float = pages.MARGIN
    min_users: int = LEAST_USERS
    min_events: int = 20
    review: Path | None = None
    threads: int | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        if not 0 < self.gap_minutes < 1e6:
            raise ConfigError(f"--gap: expected a number of minutes above 0, found {self.gap_minutes}")
        if not 0 <= self.margin < 1:
            raise ConfigError(f"margin: expected a number from 0 to below 1, found {self.margin}")
        if self.min_events < 1:
            raise ConfigError(f"--min-events: expected a number from 1 on, found {self.min_events}")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"--threads: expected a number from 1 on, found {self.threads}")


def analyse_log(
    logs: Sequence[Path], form: str, settings: LogSettings | None = None, progress: Progress | None = None
) -> LogReport:
    """Read a log and make all tables that it has the columns for."""
    asked = settings or LogSettings()
    privacy = Privacy(asked.min_users)
    decisions = discovery.read_review(asked.review) if asked.review is not None and asked.review.exists() else []
    lexicon = discovery.grown(load_lexicon(asked.lexicon), decisions)
    files = log_files(logs, form)
    has_topic = "topic" in open_log(files[0], form, None, asked.columns).columns
    source, topic_name = (None, "none") if asked.topics == NONE else topic_source(asked.topics, has_topic)
    vectors = _vectors(asked, lexicon)
    vocabulary = build_vocabulary(lexicon)
    how = Walk(vocabulary, round(asked.gap_minutes * 60_000), source, asked.review is not None, asked.topics != NONE)
    kept = read_log(
        files, form, how, columns=asked.columns, count=_counter(asked, lexicon), threads=asked.threads,
        folder=asked.folder, progress=progress,
    )  # fmt: skip
    hidden = _hide_topics(kept, privacy)
    report = LogReport(
        _described(asked, form, lexicon, topic_name), _counts(kept), dict(sorted(kept.rejected.counts.items())),
        kept.rejected.examples, vocabulary.groups, {}, _notes(kept, files, form),
    )  # fmt: skip
    withheld = [hidden, *_fill(report, kept, asked, privacy, vocabulary, vectors)]
    if asked.review is not None:
        withheld.append(_discover(report, kept, lexicon, decisions, privacy))
    report.tables["withheld"] = pl.concat(withheld)
    return report


def _counts(kept: LogCounts) -> dict[str, int]:
    named = ("rows read", "rows", "users", "sessions", "searches", "pairs", "specialising", "for_group", "out_of_order")
    return {name.replace(" ", "_"): int(kept.counts[name]) for name in named}


def _described(asked: LogSettings, form: str, lexicon: Lexicon, topic_name: str) -> dict[str, Any]:
    return {
        "format": form, "lexicon": lexicon.id, "gap_minutes": asked.gap_minutes, "topics": topic_name,
        "min_users": asked.min_users, "min_events": asked.min_events, "margin": asked.margin,
        "page_lexicon": None if asked.page_lexicon is None else load_lexicon(asked.page_lexicon).id,
        "vectors": None if asked.vectors is None else asked.vectors.name,
        "direction": None if asked.vectors is None else asked.direction,
    }  # fmt: skip


def _vectors(asked: LogSettings, lexicon: Lexicon) -> genderedness.Genderedness | None:
    if asked.vectors is None:
        return None
    pairs = genderedness.load_pairs(asked.pairs)
    lost = [group for group in pairs.groups if group not in lexicon.groups]
    if lost:
        raise ConfigError(
            f"--vectors: the direction is of the groups {' and '.join(pairs.groups)}, but the lexicon {lexicon.name!r} "
            f"has no group {lost[0]!r}; give fitting pairs with --pairs"
        )
    words, matrix = read_vectors(asked.vectors, asked.vocabulary)
    return genderedness.Genderedness(words, matrix, pairs, asked.direction)


def _counter(asked: LogSettings, lexicon: Lexicon) -> CountMentions:
    """Counts how often each group of the log's lexicon is named in texts, by the lexicon for pages."""
    chosen = load_lexicon(asked.page_lexicon) if asked.page_lexicon is not None else lexicon
    lost = [group for group in lexicon.group_names if group not in chosen.groups]
    if lost:
        raise ConfigError(f"--page-lexicon: {chosen.name!r} has no group {lost[0]!r}, which {lexicon.name!r} has")
    # One thread: parts of the log are counted side by side already.
    counter = MentionCounter(chosen, threads=1)
    places = [counter.groups.index(group) for group in lexicon.group_names]
    return lambda texts: counter.count(texts).counts[:, places]


def _hide_topics(kept: LogCounts, privacy: Privacy) -> pl.DataFrame:
    """A topic of the log's own column is text: hidden where few users have it, or where it names a person."""
    found = pl.DataFrame({"topic": list(kept.topic_users), "users": list(kept.topic_users.values())})
    found = found.with_columns(pl.col("topic").cast(pl.String), pl.col("users").cast(pl.Int64))
    plain = pl.Series([canonical(topic) for topic in found["topic"].to_list()], dtype=pl.String)
    reasons = privacy.reasons(plain, found["users"])
    renamed = {"": NO_TOPIC} | {
        topic: FEW if reason == RARE else HIDDEN
        for topic, reason in zip(found["topic"].to_list(), reasons.to_list(), strict=True) if reason is not None
    }  # fmt: skip
    for old, new in renamed.items():
        if old in kept.topics:
            kept.topics[new] += kept.topics.pop(old)
    if "topic" in kept.events.columns:
        kept.events = kept.events.with_columns(pl.col("topic").replace(renamed))
    return privacy.counted(reasons, "topics")


def _notes(kept: LogCounts, files: list[Path], form: str) -> list[str]:
    notes = []
    if len(files) > 1:
        notes.append(f"{len(files)} files were read as one log")
    if "user" not in kept.columns or form == "trec-session":
        which = "every session" if "user" not in kept.columns else "a session that names no user"
        notes.append(f"{which} counts as a user of its own, for --min-users too: several may be of one person")
    if kept.counts["out_of_order"]:
        late = kept.counts["out_of_order"]
        places = ", ".join(place_of(line, files) for line in kept.late)
        notes.append(f"{late:,} rows stood after a later row of the same user, and were put in place ({places})")
    return notes


def _fill(
    report: LogReport, kept: LogCounts, asked: LogSettings, privacy: Privacy, vocabulary: LogVocabulary,
    vectors: genderedness.Genderedness | None,
) -> list[pl.DataFrame]:  # fmt: skip
    """All tables of events; returns what they do not show, counted."""
    tables, events, groups = report.tables, kept.events, report.groups
    tables["frequency"] = patterns.frequency_table(kept.counts)
    if not events.height:
        report.notes.append("there is no reformulation for a group: the tables of such events are left out")
        return []
    tables["groups"] = patterns.group_table(events, groups)
    # Blocks are made of words of the lexicon, which may be shown; only a prefix lets words of the log in.
    checked = ["block"] if vocabulary.prefixes else []
    tables["blocks"], blocks = privacy.shown(patterns.block_table(events), checked, "blocks")
    tables["gaps"] = patterns.gap_table(events, groups)
    if "entry" in events.columns:
        tables["entries"] = patterns.entry_table(events, groups)
    if "clicked_after" in events.columns:
        tables["clicks"] = effect.click_table(events, groups)
    if "change" in events.columns:
        tables["ranks"] = effect.rank_table(events, groups)
        tables["moves"] = effect.move_table(events)
    withheld = [blocks]
    if kept.sites.height:
        tables["sites"] = effect.site_table(kept.sites, asked.min_events, asked.min_users)
        withheld.append(privacy.left_out(kept.sites.height - tables["sites"].height, "sites", "few users or events"))
    if "before_" + groups[0] in events.columns:
        tables["lean"] = pages.lean_table(events, groups)
        tables["kinds"] = pages.kind_table(events, groups, asked.margin)
    if kept.topics:
        tables["topics"] = topics.topic_table(events, kept.topics, groups)
        tables["topic_correlations"] = _corrected(topics.topic_correlations(tables["topics"], groups))
    return [*withheld, _fill_queries(report, events, privacy, vectors)]


def _fill_queries(
    report: LogReport, events: pl.DataFrame, privacy: Privacy, vectors: genderedness.Genderedness | None
) -> pl.DataFrame:  # fmt: skip
    """What is known of single queries: shown only where enough users typed them. Returns the others, counted."""
    counts = [
        (pl.col("group") == group).sum().cast(pl.Int64).alias(f"n_{group}") for group in (*report.groups, SEVERAL)
    ]
    # Only with what was added some queries speculate about a person: "is it male or" - "female".
    queries = events.with_columns(guessed=speculates(events["reformulated"])).group_by("original").agg(
        *counts, pl.col("guessed").any(), n=pl.len().cast(pl.Int64), users=pl.col("user").n_unique().cast(pl.Int64)
    )  # fmt: skip
    shown, withheld = privacy.shown(queries.sort("n", "original", descending=[True, False]), ["original"], "queries")
    report.tables["queries"] = shown.head(_SHOWN_QUERIES)
    if vectors is not None:
        _fill_genderedness(report, events, shown["original"], privacy, vectors)
    return withheld


def _fill_genderedness(
    report: LogReport, events: pl.DataFrame, shown: pl.Series, privacy: Privacy, vectors: genderedness.Genderedness
) -> None:  # fmt: skip
    table = genderedness.query_table(events, vectors.groups)
    table = table.with_columns(vectors.of(table["original"]))
    known = table["genderedness"].is_not_null().sum()
    report.settings["first_group"] = vectors.groups[0]
    report.notes.append(f"genderedness: {known:,} of {table.height:,} original queries have a word with a vector")
    overall = genderedness.correlation_table(table)
    # The overall correlation is one question, those of the topics are many.
    report.tables["genderedness"] = pl.concat(
        [overall.head(1).with_columns(p_holm=pl.col("p").cast(pl.Float64)), _corrected(overall.slice(1))]
    )
    funnel, _ = privacy.shown(genderedness.funnel_table(table), ["original"], "queries")
    report.tables["funnel"] = funnel.filter(pl.col("original").is_in(shown.implode()))


def _corrected(table: pl.DataFrame) -> pl.DataFrame:
    """With p-values corrected for looking at every row."""
    known = table["p"].is_not_null()
    fixed = iter(holm(table["p"].drop_nulls().to_list()))
    return table.with_columns(p_holm=pl.Series([next(fixed) if there else None for there in known], dtype=pl.Float64))


def _discover(
    report: LogReport, kept: LogCounts, lexicon: Lexicon, decisions: list[discovery.Decision], privacy: Privacy
) -> pl.DataFrame:  # fmt: skip
    report.review = [one for one in decisions if one.decision]
    if not kept.templates:
        return privacy.left_out(0, "keyphrases", RARE)
    counts = discovery.count_templates(pl.concat(kept.templates).lazy())
    scored = discovery.score_keyphrases(counts, discovery.seeds_of(lexicon))
    users = pl.concat(kept.phrases).group_by("keyphrase").agg(pl.col("n", "users").sum())
    scored = scored.join(users, on="keyphrase", how="left", maintain_order="left")
    shown, withheld = privacy.shown(scored, ["keyphrase"], "keyphrases")
    report.tables["keyphrases"] = shown.head(_CANDIDATES)
    report.review = discovery.review_rows(shown, decisions)
    return withheld
