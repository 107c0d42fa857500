"""The headline: what every page, audit, report, card and command says first about the lean of a run.

Neutral queries only, because a query that asks about a group should find it. Words of each group in plain numbers, the
lean beyond chance of mentions of people in general, then that of all mentions, and the queries beyond chance. Without
the extra ``neural``, which resolves mentions, all mentions decide, and the headline says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.core import defaults
from askew.core.defaults import LEVEL, counted
from askew.core.groups import ANY, Groups, GroupsLike
from askew.core.protocols import Inputs
from askew.core.store.store import Store
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.chance import chance
from askew.measures.common import mentions_for
from askew.measures.counts import DocumentSource, Progress
from askew.measures.lists import RunLike, named_runs
from askew.measures.measure import as_runs, count_inputs, parts_of, read_runs
from askew.measures.requested import GENERIC, headline_measures
from askew.measures.resolver import default_resolver
from askew.measures.statistics.intervals import Mean, mean_with_interval
from askew.report.charts import About, dots
from askew.report.markup import Markup
from askew.report.table import NAME, Cell, Column, Estimate, Table, table

NEUTRAL = "neutral"
CUTOFF = 10
UNKNOWN = (
    "nothing is tested: neither ids nor headings say which documents are of one article, so chance may explain more "
    "than is stated; give ids such as ARTICLE:NUMBER, or texts that begin with a heading and a line break"
)
# The names of the mentions that count, in sentences.
WHOM = {GENERIC: "people in general", ANY: "all mentions"}


@dataclass(frozen=True)
class LeanBeyondChance:
    """The lean of neutral queries by the mentions of ``who``.

    ``words`` are the words of each group in the results, ``collection`` the share of each group among the words of the
    collection, ``observed`` the mean lean per query without its sign, ``expected`` its expected value under the null,
    ``excess`` the difference, and ``p`` the probability of such a mean by chance. ``signed`` is the mean with its sign
    minus its expected value, and ``signed_p`` its probability. ``beyond`` are the queries that lean beyond chance, the
    most unlikely first, with the false-discovery rate at most 5%; ``reachable`` is how many of the ``lists`` could have
    p < 0.05 at all, and ``beyond_dependent`` how many are beyond chance for any dependence between queries.

    Where it is not known which documents are of one article (see ``askew.measures.articles``), nothing is tested: ``p``
    and ``signed_p`` are None, ``expected`` is a lower bound, and ``excess`` an upper bound without an interval.
    """

    who: str
    measure: str
    words: Mapping[str, int]
    collection: Mapping[str, float]
    observed: Mean
    expected: float
    excess: Mean
    p: float | None
    signed: Mean | None
    signed_p: float | None
    lists: int
    beyond: tuple[str, ...]
    beyond_dependent: int
    reachable: int

    @property
    def is_beyond(self) -> bool:
        """Whether the lists lean beyond chance."""
        return self.p is not None and self.p < LEVEL and self.excess.mean > 0

    @property
    def most_named(self) -> str | None:
        """The group that is named most; None if several are named equally often."""
        most = [name for name, count in self.words.items() if count == max(self.words.values())]
        return most[0] if len(most) == 1 else None

    def figures(self, most: str) -> dict[str, Cell]:
        """The figures by their labels. ``most`` is the group whose share of the words is stated."""
        total, tested = max(1, sum(self.words.values())), self.p is not None
        return {
            **{f"words for {name}": count for name, count in self.words.items()},
            f"{most}, share of words": self.words[most] / total,
            f"{most}, share in the collection": self.collection[most],
            "lean of a query": self.observed.mean,
            "by chance" if tested else "by chance, at least": self.expected,
            "beyond chance" if tested else "beyond chance, at most": Estimate(
                self.excess.mean, self.excess.low, self.excess.high
            ),
            "p": self.p,
            "queries beyond chance": len(self.beyond) if tested else None,
            "queries that could be": self.reachable if tested else None,
            "queries": self.lists,
        }

    @property
    def toward(self) -> str | None:
        """The group that the lists lean toward, more than the collection does; for one list, the group named most."""
        if self.lists == 1:
            return self.most_named
        if self.signed is None or self.signed_p is None or self.signed_p >= LEVEL:
            return None
        first, second = list(self.words)[:2]
        return first if self.signed.mean > 0 else second


@dataclass(frozen=True)
class Headline:
    """What is said first about a run. ``labels`` counts the labels of its queries; only neutral ones are measured.

    ``parts`` are people in general, if a resolver decides, then all mentions. ``notes`` say what limits them.
    """

    run: str
    cutoff: int
    queries: int
    labels: Mapping[str, int]
    classifier: str
    resolver: str
    parts: tuple[LeanBeyondChance, ...]
    notes: tuple[str, ...] = ()

    @property
    def deciding(self) -> LeanBeyondChance:
        """The part that decides: people in general if they are resolved, otherwise all mentions."""
        return self.parts[0]

    @property
    def toward(self) -> str | None:
        """The group that the results lean toward; None if a part of the headline contradicts it."""
        sides = {part.toward for part in self.parts if part.toward is not None}
        named = self.deciding.toward or (self.parts[-1].toward if self.deciding.lists == 1 else None)
        return named if sides == {named} else None

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        part = self.deciding
        if not part.lists:
            return "The headline is about neutral queries, and there is none."
        words = " and ".join(f"{count:,} {counted(count, 'word', 'words').split()[1]} for {name}"
                             for name, count in part.words.items())  # fmt: skip
        whom = "" if part.who == ANY else f" that mean {WHOM[part.who]}"
        top = f"the top {self.cutoff} of {counted(part.lists, 'neutral query', 'neutral queries')}"
        side = f" toward {self.toward}" if self.toward else ""
        if part.lists == 1:
            verdict = f"lean{side}" if self.toward else "lean toward no group"
            chance_of = "" if part.p is None else f"; by chance, a list leans as much with probability {part.p:.2g}"
            return f"The results {verdict}: {words}{whom}{chance_of}."
        if part.p is None:
            return f"Whether the results lean beyond chance is not known: {top} have {words}{whom}."
        verdict = f"lean{side} beyond chance" if part.is_beyond else "do not lean beyond chance"
        return f"The results {verdict}: {top} have {words}{whom}."

    def table(self) -> Table:
        """The figures: a column for each kind of mentions."""
        names = list(self.deciding.words)
        most = self.deciding.most_named or names[0]
        figures = [part.figures(most) for part in self.parts]
        rows: list[list[Cell]] = [[label, *(figure[label] for figure in figures)] for label in figures[0]]
        caption = f"lean of neutral queries, top {self.cutoff}: {self.run}"
        headings = [Column("", NAME), *(Column(WHOM[part.who]) for part in self.parts)]
        return table("headline", caption, headings, rows, *self.notes)

    def chart(self) -> Markup:
        """The lean of a query in the results, and the lean that chance alone would give."""
        about = About(
            "headline", f"Lean of the top {self.cutoff} of neutral queries, in the results and by chance",
            "A dot with its 95% interval for the mean lean of a query, and a dot for its expected value by chance.",
        )  # fmt: skip
        drawn = [part for part in self.parts if part.lists]
        series = {
            "in the results": [Estimate(one.observed.mean, one.observed.low, one.observed.high) for one in drawn],
            "by chance": [Estimate(one.expected) for one in drawn],
        }
        return dots(about, [WHOM[part.who] for part in drawn], series, "lean of a query")

    def to_dict(self) -> dict[str, Any]:
        """The headline as JSON values."""
        return {
            **asdict(self), "toward": self.toward, "sentence": self.sentence,
            "parts": [{**asdict(part), "toward": part.toward, "beyond_chance": part.is_beyond} for part in self.parts],
        }  # fmt: skip


def headline_of(
    run: str, inputs: Inputs, asked: Sequence[MeasureRequest], labels: Mapping[str, str], classifier: str,
    notes: Sequence[str] = (), level: float = LEVEL,
) -> Headline:  # fmt: skip
    """The headline of the lists of one run. Queries without a label count as neutral.

    ``level`` bounds the false-discovery rate among the queries that lean beyond chance.
    """
    (order,) = {str(one.measure.param("order")) for one in asked}
    names = inputs.ranked(order).query_ids.to_pylist()
    of_query = [labels.get(name, NEUTRAL) for name in names]
    kept = np.array([label == NEUTRAL for label in of_query], np.bool_)
    rows = np.flatnonzero(kept)
    neutral = replace(inputs, rankings={order: inputs.ranked(order).select(rows)}, judgements=None)
    tally = {label: of_query.count(label) for label in dict.fromkeys([NEUTRAL, *sorted(set(of_query))])}
    kinds = list(dict.fromkeys(str(one.measure.param("who", ANY)) for one in asked))
    parts = tuple(
        _part([one for one in asked if str(one.measure.param("who", ANY)) == who], neutral, who, level) for who in kinds
    )
    resolver = next((str(one.measure.param("resolver")) for one in asked if one.measure.param("who", ANY) != ANY), "")
    told = list(notes)
    if not resolver:
        told.append("all mentions decide, because the extra neural, which finds people in general, is not installed")
    if not classifier:
        told.append("all queries count as neutral, because their texts are not given")
    if any(part.lists and part.p is None for part in parts):
        told.append(UNKNOWN)
    cutoff = asked[0].measure.cutoff or CUTOFF
    return Headline(run, cutoff, len(names), tally, classifier, resolver, parts, tuple(told))


def _part(asked: Sequence[MeasureRequest], inputs: Inputs, who: str, level: float) -> LeanBeyondChance:
    size = asked[0]
    found = chance(size.family, size.measure, inputs)
    signed = [chance(one.family, one.measure, inputs) for one in asked[1:]]
    mentions = mentions_for(size.measure, inputs)
    columns = [mentions.groups.index(name) for name in size.groups]
    ranked = inputs.ranked(str(size.measure.param("order"))).cut(size.measure.cutoff)
    docs = ranked.docs[mentions.known[ranked.docs]]
    sums = mentions.counts[docs][:, columns].sum(axis=0).tolist()
    # The smaller p first; among equal ones, the larger excess.
    rows = np.flatnonzero(found.beyond(level))
    rows = rows[np.lexsort((-np.abs(found.excess[rows]), found.p[rows]))]
    names = ranked.query_ids.to_pylist()
    low, high = size.bounds
    if np.isnan(found.values).all():
        words, shares = dict.fromkeys(size.groups, 0), {name: found.words[name] for name in size.groups}
        none = Mean(0.0, None, None, 0)
        return LeanBeyondChance(who, size.signature, words, shares, none, 0.0, none, 1.0, None, None, 0, (), 0, 0)
    return LeanBeyondChance(
        who, size.signature, dict(zip(size.groups, sums, strict=True)),
        {name: found.words[name] for name in size.groups},
        mean_with_interval(found.values, size.bounds),
        float("nan") if np.isnan(found.expected).all() else float(np.nanmean(found.expected)),
        mean_with_interval(found.excess, (low - high, high - low)) if found.known
        else Mean(float(np.nanmean(found.excess)), None, None, int((~np.isnan(found.excess)).sum())),
        found.run_p if found.known else None,
        mean_with_interval(signed[0].excess, (-np.inf, np.inf)) if signed else None,
        signed[0].run_p if signed and found.known else None,
        int((~np.isnan(found.values)).sum()), tuple(names[row] for row in rows),
        int(found.beyond(level, dependent=True).sum()),
        found.reachable,
    )  # fmt: skip


def headlines(
    runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike], collection: object = None, *,
    labels: Mapping[str, str], classifier: str = "", groups: GroupsLike | None = None, docs: object = None,
    queries: str | Path | Sequence[str] | None = None, label: str | None = None, cutoff: int = CUTOFF,
    tokens: str | None = None, missing: str | None = None, order: str | None = None,
    fields: Sequence[str] = (), run_format: str = defaults.RUN_FORMAT, store: str | Path | None = None,
    level: float = LEVEL, progress: Progress | None = None,
) -> list[Headline]:  # fmt: skip
    """The headline of each run. ``labels`` has the group that each query asks about; see ``askew.headline``."""
    given = {"tokens": tokens, "missing": missing, "order": order}
    options = {key: value for key, value in given.items() if value is not None}
    asked = headline_measures(groups, cutoff, default_resolver(), **options)
    lexicons = Catalogue(groups=None if groups is None else Groups.of(groups))
    lexicons.complete([one.text for one in asked])
    documents, _ = parts_of(collection, docs, None)
    measured = read_runs(
        asked, named_runs(as_runs(runs)), published=False, run_format=run_format, queries=queries, label=label,
        brief=True,
    )  # fmt: skip
    kept = Store(store) if store is not None and Path(store).is_dir() else None
    source = DocumentSource(documents, tuple(fields), False, kept)
    inputs = count_inputs(asked, measured, source, lexicons.lexicons, progress=progress)
    return [
        headline_of(run.name, one, asked, labels, classifier, level=level)
        for run, one in zip(measured.runs, inputs.inputs, strict=True)
    ]
