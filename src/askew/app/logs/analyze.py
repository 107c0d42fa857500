"""Analyze a query log: tables of how people add a group to their queries, when, and to what effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from askew.app.logs.reading import LogCounts, Progress, place_of, read_log
from askew.app.logs.report import LogReport
from askew.app.logs.settings import LogSettings
from askew.app.logs.sources import MEMORY, LogSource, log_sources
from askew.app.logs.topics import NONE, topic_source
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.lexicon import Lexicon
from askew.logs import association, discovery, effect, pages, patterns, topics
from askew.logs.definition import SEVERAL, LogVocabulary, build_vocabulary, canonical
from askew.logs.effect import CountMentions
from askew.logs.pairs import Walk
from askew.logs.privacy import RARE, Privacy, speculates, speculation_groups
from askew.mentions.count import MentionCounter
from askew.reformulators.vectorfiles import read_vectors
from askew.statistics.significance import holm

FEW, HIDDEN, NO_TOPIC = "(few users)", "(not shown)", "(none)"
_SHOWN_QUERIES = 100
_CANDIDATES = 200


def analyze_log(
    log: object,
    *,
    format: str | None = None,
    groups: GroupsLike | None = None,
    settings: LogSettings | None = None,
    progress: Progress | None = None,
) -> LogReport:
    """Analyze a query log: find the reformulations in which users add terms of a group to their query.

    The report shows how often users add terms of a group, which group, how soon after the original query, and with
    what effect on the results.

    ``log`` is a file, a folder, a list of files and folders, a data frame, an Arrow table, a dict of columns, or a list
    of rows as dicts. ``format`` and ``groups`` replace the fields of the same names in ``settings``. A table is
    left out of the report if the log lacks the columns for it.
    """
    asked = settings or LogSettings()
    chosen = Groups.of(asked.groups if groups is None else groups)
    asked = replace(asked, format=format or asked.format, groups=chosen)
    decisions = discovery.read_review(asked.review) if asked.review is not None and asked.review.exists() else []
    lexicon = discovery.grown(_words(chosen), decisions)
    privacy = Privacy(asked.min_users, speculation_groups() <= set(lexicon.groups))
    sources = log_sources(log, asked.format, asked.columns)
    has_topic = "topic" in sources[0].open(None).columns
    others = None if chosen == Groups.of(LogSettings().groups) else chosen
    source, topic_name = (None, "none") if asked.topics == NONE else topic_source(asked.topics, has_topic, others)
    vectors = _vectors(asked, lexicon)
    vocabulary = build_vocabulary(lexicon)
    how = Walk(vocabulary, round(asked.gap * 60_000), source, asked.review is not None, asked.topics != NONE)
    kept = read_log(
        sources, how, count=_counter(asked, chosen, lexicon), threads=asked.threads, folder=asked.folder,
        progress=progress,
    )  # fmt: skip
    hidden = _hide_topics(kept, privacy)
    report = LogReport(
        _described(asked, sources, lexicon, topic_name), _counts(kept), dict(sorted(kept.rejected.counts.items())),
        kept.rejected.examples, vocabulary.groups, {}, _notes(kept, sources, privacy),
    )  # fmt: skip
    withheld = [hidden, *_fill(report, kept, asked, privacy, vocabulary, vectors)]
    if asked.review is not None:
        withheld.append(_discover(report, kept, lexicon, decisions, privacy))
    report.tables["withheld"] = pl.concat(withheld)
    return report


def _words(groups: Groups) -> Lexicon:
    return groups.counted.exclusive() if groups.overlap == "first" else groups.counted


def _counts(kept: LogCounts) -> dict[str, int]:
    named = ("rows read", "rows", "users", "sessions", "searches", "pairs", "specializing", "for_group", "out_of_order")
    return {name.replace(" ", "_"): int(kept.counts[name]) for name in named}


def _described(asked: LogSettings, sources: list[LogSource], lexicon: Lexicon, topic_name: str) -> dict[str, Any]:
    return {
        "format": "table" if sources[0].where == MEMORY else asked.format, "lexicon": lexicon.id,
        "gap_minutes": asked.gap, "topics": topic_name, "min_users": asked.min_users, "min_events": asked.min_events,
        "margin": asked.margin,
        "page_lexicon": None if asked.page_lexicon is None else _words(Groups.of(asked.page_lexicon)).id,
        "vectors": None if asked.vectors is None else asked.vectors.name,
        "direction": None if asked.vectors is None else asked.direction,
    }  # fmt: skip


def _vectors(asked: LogSettings, lexicon: Lexicon) -> association.Association | None:
    if asked.vectors is None:
        return None
    pairs = association.load_pairs(asked.pairs)
    lost = [group for group in pairs.groups if group not in lexicon.groups]
    if lost and asked.pairs is None:
        raise ConfigError(
            f"vectors=: the default word pairs are not for the groups {', '.join(lexicon.groups)}; give word pairs for "
            "these groups with pairs="
        )
    if lost:
        raise ConfigError(
            f"the file in 'pairs' has word pairs for the group {lost[0]!r}, but the lexicon {lexicon.name!r} has no "
            "such group; give a file with word pairs for the groups of this lexicon"
        )
    words, matrix = read_vectors(asked.vectors, asked.vocabulary)
    return association.Association(words, matrix, pairs, asked.direction)


def _counter(asked: LogSettings, groups: Groups, lexicon: Lexicon) -> CountMentions:
    """Return a function that counts the mentions of each group in texts, with the lexicon for result pages."""
    other = None if asked.page_lexicon is None else Groups.of(asked.page_lexicon)
    chosen = lexicon if other is None else _words(other)
    lost = [group for group in lexicon.group_names if group not in chosen.groups]
    if lost:
        raise ConfigError(
            f"page_lexicon=: {chosen.name!r} has no group {lost[0]!r}, which {lexicon.name!r} has; give a lexicon with "
            "the same groups"
        )
    # One thread: the parts of the log are already processed in parallel.
    counter = MentionCounter(chosen, (other or groups).tokenizer, threads=1)
    places = [counter.groups.index(group) for group in lexicon.group_names]
    return lambda texts: counter.count(texts).counts[:, places]


def _hide_topics(kept: LogCounts, privacy: Privacy) -> pl.DataFrame:
    """Hide topics of the log's own column that few users have or that contain a person's name; count them."""
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


def _notes(kept: LogCounts, sources: list[LogSource], privacy: Privacy) -> list[str]:
    notes = []
    if len(sources) > 1:
        notes.append(f"{len(sources)} files were read as one log")
    if "user" not in kept.columns or kept.sessions_as_users:
        every = "every session counts as a separate user, because the log has no user ids"
        some = "each session without a user id counts as a separate user"
        notes.append(
            f"{some if 'user' in kept.columns else every}; a person with several such sessions is counted several "
            "times, also for min_users="
        )
    if not privacy.guesses:
        notes.append(
            "for the groups of this lexicon, askew has no list of phrases that speculate about a person's identity, "
            "so the report may show queries that contain such phrases"
        )
    if kept.counts["out_of_order"]:
        late = kept.counts["out_of_order"]
        places = ", ".join(place_of(line, sources) for line in kept.late)
        notes.append(
            f"{late:,} rows have an earlier time than a row of the same user above them; the rows were sorted by time "
            f"({places})"
        )
    return notes


def _fill(
    report: LogReport, kept: LogCounts, asked: LogSettings, privacy: Privacy, vocabulary: LogVocabulary,
    vectors: association.Association | None,
) -> list[pl.DataFrame]:  # fmt: skip
    """Fill all tables of events; return the number of rows that they withhold, by reason."""
    tables, events, groups = report.tables, kept.events, report.groups
    tables["frequency"] = patterns.frequency_table(kept.counts)
    if not events.height:
        report.notes.append(
            "no reformulation in the log adds terms of a group, so the report has no tables of such reformulations"
        )
        return []
    tables["groups"] = patterns.group_table(events, groups)
    # A block (the added words) consists of lexicon words, which may be shown. Only a prefix can match other words.
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
        withheld.append(
            privacy.left_out(kept.sites.height - tables["sites"].height, "sites", "few users or few reformulations")
        )
    if "before_" + groups[0] in events.columns:
        tables["lean"] = pages.lean_table(events, groups)
        tables["kinds"] = pages.kind_table(events, groups, asked.margin)
    if kept.topics:
        tables["topics"] = topics.topic_table(events, kept.topics, groups)
        tables["topic_correlations"] = _corrected(topics.topic_correlations(tables["topics"], groups))
    return [*withheld, _fill_queries(report, events, privacy, vectors)]


def _fill_queries(
    report: LogReport, events: pl.DataFrame, privacy: Privacy, vectors: association.Association | None
) -> pl.DataFrame:  # fmt: skip
    """Fill the tables of single queries that enough users typed; return the number of withheld queries by reason."""
    counts = [
        (pl.col("group") == group).sum().cast(pl.Int64).alias(f"n_{group}") for group in (*report.groups, SEVERAL)
    ]
    # Some queries speculate about a person only together with the added block: "is it male or" + "female".
    guessed = speculates(events["reformulated"]) if privacy.guesses else pl.lit(False)
    queries = events.with_columns(guessed=guessed).group_by("original").agg(
        *counts, pl.col("guessed").any(), n=pl.len().cast(pl.Int64), users=pl.col("user").n_unique().cast(pl.Int64)
    )  # fmt: skip
    shown, withheld = privacy.shown(queries.sort("n", "original", descending=[True, False]), ["original"], "queries")
    report.tables["queries"] = shown.head(_SHOWN_QUERIES)
    if vectors is not None:
        _fill_association(report, events, shown["original"], privacy, vectors)
    return withheld


def _fill_association(
    report: LogReport, events: pl.DataFrame, shown: pl.Series, privacy: Privacy, vectors: association.Association
) -> None:  # fmt: skip
    table = association.query_table(events, vectors.groups)
    table = table.with_columns(vectors.of(table["original"]))
    known = table["association"].is_not_null().sum()
    report.settings["first_group"] = vectors.groups[0]
    report.notes.append(
        f"association: {known:,} of {table.height:,} original queries have at least one word with a word vector"
    )
    overall = association.correlation_table(table)
    # The overall correlation is a single test. The tests per topic are corrected for their number.
    report.tables["association"] = pl.concat(
        [overall.head(1).with_columns(p_holm=pl.col("p").cast(pl.Float64)), _corrected(overall.slice(1))]
    )
    funnel, _ = privacy.shown(association.funnel_table(table), ["original"], "queries")
    report.tables["funnel"] = funnel.filter(pl.col("original").is_in(shown.implode()))


def _corrected(table: pl.DataFrame) -> pl.DataFrame:
    """Add Holm-corrected p-values over all rows."""
    known = table["p"].is_not_null()
    fixed = iter(holm(table["p"].drop_nulls().to_list()))
    return table.with_columns(p_holm=pl.Series([next(fixed) if there else None for there in known], dtype=pl.Float64))


def _discover(
    report: LogReport, kept: LogCounts, lexicon: Lexicon, decisions: list[discovery.Decision], privacy: Privacy
) -> pl.DataFrame:  # fmt: skip
    report.decisions = [one for one in decisions if one.decision]
    if not kept.templates:
        return privacy.left_out(0, "keyphrases", RARE)
    counts = discovery.count_templates(pl.concat(kept.templates).lazy())
    scored = discovery.score_keyphrases(counts, discovery.seeds_of(lexicon))
    users = pl.concat(kept.phrases).group_by("keyphrase").agg(pl.col("n", "users").sum())
    scored = scored.join(users, on="keyphrase", how="left", maintain_order="left")
    shown, withheld = privacy.shown(scored, ["keyphrase"], "keyphrases")
    report.tables["keyphrases"] = shown.head(_CANDIDATES)
    report.decisions = discovery.review_rows(shown, decisions)
    return withheld
