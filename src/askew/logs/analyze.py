"""Analyze a query log: tables of how people add a group to their queries, when, and to what effect."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import ConfigError, Note
from askew.core.groups import Groups, GroupsLike
from askew.core.lexicon import Lexicon
from askew.core.plugins import names
from askew.logs import association, effect
from askew.logs.definition import LOG_DATA, SEVERAL, LogVocabulary, build_vocabulary, canonical
from askew.logs.numbers import RARE, Privacy, speculates, speculation
from askew.logs.pairs import LogCounts, TopicsOf, Walk
from askew.logs.reading import MEMORY, LogSource, Progress, log_sources, place_of, read_log
from askew.logs.report import SYNTHETIC, LogReport
from askew.logs.settings import LogSettings
from askew.logs.tables import ENTRIES
from askew.logs.topics import OTHER, load_topics, topic_table
from askew.measures.mentions import MentionCounter
from askew.rewrite.classifiers import make_classifier
from askew.rewrite.embedding import read_vectors

# The source of query topics: a column of the log, word lists, or a classifier.

COLUMN, WORDS, NONE, AUTO = "column", "words", "none", "auto"
_AT_A_TIME = 4096


def classifier_topics(classifier: Any) -> TopicsOf:
    """The labels of a classifier as topics. Each distinct query of a part of the log is classified once."""
    lock = threading.Lock()

    def topics(queries: pl.Series) -> pl.Series:
        """A topic for each query."""
        texts, labels = queries.unique().to_list(), list[str]()
        with lock:  # the model of a classifier may not be thread-safe
            for at in range(0, len(texts), _AT_A_TIME):
                labels += (label or OTHER for label in classifier.classify(texts[at : at + _AT_A_TIME]).names())
        return queries.replace_strict(texts, labels, return_dtype=pl.String)

    return topics


def topic_source(spec: str, has_column: bool, groups: Groups | None = None) -> tuple[TopicsOf | None, str]:
    """The source of topics (None: the topic column of the log) and its description.

    ``groups`` are passed to a classifier of groups; None keeps the classifier's own groups.
    """
    if spec == AUTO:
        spec = COLUMN if has_column else WORDS
    if spec == COLUMN:
        if not has_column:
            raise ConfigError(
                "⟨topics=column⟩: the log has no column for the topic; name the column with ⟨columns⟩",
                code="no-topic-column",
            )
        return None, "a column of the log"
    if spec == WORDS or spec.lower().endswith(".toml"):
        words = load_topics(None if spec == WORDS else Path(spec))
        return words.topics, f"words of {words.name}"
    if spec in names("classifier"):
        return classifier_topics(make_classifier({"classifier": spec}, groups)), f"classifier {spec}"
    sources = ", ".join([COLUMN, WORDS, NONE, "a .toml file", *names("classifier")])
    raise ConfigError(f"topics={spec!r}: expected one of: {sources}")


_SAMPLE = LOG_DATA / "sample"
FEW, HIDDEN, NO_TOPIC = "(few users)", "(not shown)", "(none)"
_COUNTED = ("rows read", "rows", "users", "sessions", "searches", "pairs", "specializing", "for_group", "out_of_order")
_SHOWN_QUERIES = 100
_CANDIDATES = 200


def logs(
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
    options = settings or LogSettings()
    chosen = Groups.of(options.groups if groups is None else groups)
    options = replace(options, format=format or options.format, groups=chosen)
    reviewed = options.review is not None and options.review.exists()
    decisions = association.read_review(options.review) if options.review is not None and reviewed else []
    lexicon = association.grown(_words(chosen), decisions)
    privacy = Privacy(options.min_users, speculation()[1] <= set(lexicon.groups))
    sources = log_sources(log, options.format, options.columns)
    has_topic = "topic" in sources[0].open(None).columns
    others = None if chosen == Groups.of(LogSettings().groups) else chosen
    source, topic_name = (None, "none") if options.topics == NONE else topic_source(options.topics, has_topic, others)
    vectors = _vectors(options, lexicon)
    vocabulary = build_vocabulary(lexicon)
    how = Walk(vocabulary, round(options.gap * 60_000), source, options.review is not None, options.topics != NONE)
    count = _counter(options, chosen, lexicon)
    totals = read_log(sources, how, count=count, threads=options.threads, progress=progress)
    # Hide topics of the log's own column that few users have or that contain a person's name, and count them.
    topics = pl.Series([canonical(topic) for topic in totals.topic_users], dtype=pl.String)
    reasons = privacy.reasons(topics, pl.Series(list(totals.topic_users.values()), dtype=pl.Int64))
    why = {topic: reason for topic, reason in zip(totals.topic_users, reasons.to_list(), strict=True) if reason}
    renamed = {"": NO_TOPIC, **{topic: FEW if reason == RARE else HIDDEN for topic, reason in why.items()}}
    for old, new in renamed.items():
        if old in totals.topics:
            totals.topics[new] += totals.topics.pop(old)
    if "topic" in totals.events.columns:
        totals.events = totals.events.with_columns(pl.col("topic").replace(renamed))
    report = LogReport(
        settings={
            "format": "table" if sources[0].where == MEMORY else options.format, "lexicon": lexicon.id,
            "gap_minutes": options.gap, "topics": topic_name, "min_users": options.min_users,
            "min_events": options.min_events, "margin": options.margin,
            "page_lexicon": None if options.page_lexicon is None else _words(Groups.of(options.page_lexicon)).id,
            "vectors": None if options.vectors is None else options.vectors.name,
        },
        counts={name.replace(" ", "_"): int(totals.counts[name]) for name in _COUNTED},
        rejected=dict(sorted(totals.rejected.counts.items())),
        examples=totals.rejected.examples,
        groups=vocabulary.groups,
        tables={},
        notes=_notes(totals, sources, privacy),
    )  # fmt: skip
    withheld = [privacy.counted(reasons, "topics"), *_fill(report, totals, options, privacy, vocabulary, vectors)]
    if options.review is not None:
        counts = totals.templates.lazy().group_by("template", "keyphrase").agg(pl.col("n").sum())
        scored = association.score_keyphrases(counts, association.seeds_of(lexicon))
        users = totals.phrases.group_by("keyphrase").agg(pl.col("n", "users").sum())
        scored = scored.join(users, on="keyphrase", how="left", maintain_order="left")
        shown, hidden_phrases = privacy.shown(scored, ["keyphrase"], "keyphrases")
        report.tables["keyphrases"] = shown.head(_CANDIDATES)
        report.decisions = association.review_rows(shown, decisions)
        withheld.append(hidden_phrases)
    report.tables["withheld"] = pl.concat(withheld)
    return report


def analyze_sample(settings: LogSettings | None = None, progress: Progress | None = None) -> LogReport:
    """Analyze the sample log that askew ships: made-up queries with planted effects."""
    options = settings or LogSettings()
    names = Groups.of(options.groups).names
    if not {"female", "male"} <= set(names):
        raise ConfigError(
            f"⟨demo⟩: the sample log has words for the groups female and male, not for {', '.join(names)}"
        )
    options = replace(options, vectors=options.vectors or _SAMPLE / "vectors.npy")
    report = logs(_SAMPLE / "log.parquet", format="parquet", settings=options, progress=progress)
    report.settings[SYNTHETIC] = "the sample log of askew, which a program made up"
    report.notes.insert(0, "this log is made up by a program, so the tables tell nothing about people")
    return report


def _words(groups: Groups) -> Lexicon:
    return groups.counted.exclusive() if groups.overlap == "first" else groups.counted


def _vectors(settings: LogSettings, lexicon: Lexicon) -> association.Association | None:
    if settings.vectors is None:
        return None
    pairs = association.load_pairs(settings.pairs)
    if not set(pairs.groups) <= set(lexicon.groups):
        raise ConfigError(
            f"⟨vectors⟩: the word pairs are for other groups than those of the lexicon {lexicon.name!r}; give word "
            f"pairs for the groups {', '.join(lexicon.groups)} with ⟨pairs⟩",
            code="no-pairs",
            groups=lexicon.group_names,
        )
    words, matrix = read_vectors(settings.vectors, settings.vocabulary)
    return association.Association(words, matrix, pairs)


def _counter(settings: LogSettings, groups: Groups, lexicon: Lexicon) -> effect.CountMentions:
    """Return a function that counts the mentions of each group in texts, with the lexicon for result pages."""
    other = None if settings.page_lexicon is None else Groups.of(settings.page_lexicon)
    chosen = lexicon if other is None else _words(other)
    missing = [group for group in lexicon.group_names if group not in chosen.groups]
    if missing:
        raise ConfigError(
            f"⟨page_lexicon⟩: {chosen.name!r} has no group {missing[0]!r}, which {lexicon.name!r} has; give a lexicon "
            "with the same groups"
        )
    # One thread: the parts of the log are already processed in parallel.
    counter = MentionCounter(chosen, (other or groups).tokenizer, threads=1)
    places = [counter.groups.index(group) for group in lexicon.group_names]
    return lambda texts: counter.count(texts).counts[:, places]


def _notes(counts: LogCounts, sources: list[LogSource], privacy: Privacy) -> list[str]:
    notes: list[str] = []
    if len(sources) > 1:
        notes.append(f"{len(sources)} files were read as one log")
    if "user" not in counts.columns or counts.sessions_as_users:
        which = (
            "each session without a user id" if "user" in counts.columns else "every session (the log has no user ids)"
        )
        words = "a person with several such sessions is counted several times, also for ⟨min_users⟩"
        notes.append(Note(f"{which} counts as a separate user; {words}", code="sessions-as-users"))
    if not privacy.guesses:
        words = (
            "for the groups of this lexicon, askew has no list of phrases that speculate about a person's identity, "
            "so the report may show queries that contain such phrases"
        )
        notes.append(Note(words, code="no-phrases"))
    if counts.counts["out_of_order"]:
        places = ", ".join(place_of(line, sources) for line in counts.late)
        notes.append(
            f"{counts.counts['out_of_order']:,} rows have an earlier time than a row of the same user above them; the "
            f"rows were sorted by time ({places})"
        )
    return notes


def _fill(
    report: LogReport, counts: LogCounts, settings: LogSettings, privacy: Privacy, vocabulary: LogVocabulary,
    vectors: association.Association | None,
) -> list[pl.DataFrame]:  # fmt: skip
    """Fill all tables of events; return the number of rows that they withhold, by reason."""
    tables, events, groups = report.tables, counts.events, report.groups
    tables["frequency"] = effect.frequency_table(counts.counts)
    if not events.height:
        report.notes.append(
            "no reformulation in the log adds terms of a group, so the report has no tables of such reformulations"
        )
        return []
    tables["groups"] = effect.group_table(events, groups)
    # A block (the added words) consists of lexicon words, which may be shown. Only a prefix can match other words.
    checked = ["block"] if vocabulary.prefixes else []
    tables["blocks"], blocks = privacy.shown(effect.block_table(events), checked, "blocks")
    tables["gaps"] = effect.gap_table(events, groups)
    if "entry" in events.columns:
        entered = events.filter(pl.col("entry") != "")
        tables["entries"] = effect.share_table(entered, groups, "entry", ENTRIES[1:])
    if "clicked_after" in events.columns:
        tables["clicks"] = effect.click_table(events, groups)
    if "change" in events.columns:
        tables["ranks"] = effect.share_table(events.drop_nulls("change"), groups, "change", effect.CHANGES)
    withheld = [blocks]
    if counts.sites.height:
        tables["sites"] = effect.site_table(counts.sites, settings.min_events, settings.min_users)
        fewer = counts.sites.height - tables["sites"].height
        withheld.append(privacy.left_out(fewer, "sites", "few users or few reformulations"))
    if "before_" + groups[0] in events.columns:
        tables["lean"] = effect.lean_table(events, groups)
        tables["kinds"] = effect.kind_table(events, groups, settings.margin)
    if counts.topics:
        tables["topics"] = topic_table(events, counts.topics, groups)
    return [*withheld, _fill_queries(report, events, privacy, vectors)]


def _fill_queries(
    report: LogReport, events: pl.DataFrame, privacy: Privacy, vectors: association.Association | None
) -> pl.DataFrame:
    """Fill the tables of single queries that enough users typed; return the number of withheld queries by reason."""
    groups = (*report.groups, SEVERAL)
    # Some queries speculate about a person only together with the added block: "is it male or" + "female".
    guessed = speculates(events["reformulated"]) if privacy.guesses else pl.lit(False)
    queries = (
        events.with_columns(guessed=guessed)
        .group_by("original")
        .agg(
            *((pl.col("group") == group).sum().cast(pl.Int64).alias(f"n_{group}") for group in groups),
            pl.col("guessed").any(),
            n=pl.len().cast(pl.Int64),
            users=pl.col("user").n_unique().cast(pl.Int64),
        )
    )
    shown, withheld = privacy.shown(queries.sort("n", "original", descending=[True, False]), ["original"], "queries")
    report.tables["queries"] = shown.head(_SHOWN_QUERIES)
    if vectors is None:
        return withheld
    table = association.query_table(events, vectors.groups)
    table = table.with_columns(vectors.of(table["original"]))
    associated = table["association"].is_not_null().sum()
    report.settings["first_group"] = vectors.groups[0]
    report.notes.append(
        f"association: {associated:,} of {table.height:,} original queries have at least one word with a word vector"
    )
    report.tables["association"] = association.correlation_table(table)
    return withheld
