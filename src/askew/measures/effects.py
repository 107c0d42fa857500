"""What a mitigation method really does: lean beyond chance, the words of each group, lists that name nobody.

Most of a mean |lean| is chance (see ``askew.measures.chance``), so that a method can reduce it without any bias in the
lists. Each method is therefore also run on placebo lists: the same lists, with directions of articles drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import defaults
from askew.core.lexicon import Lexicon
from askew.core.measure import Direction, Measure
from askew.core.plugins import build
from askew.core.protocols import DocMentions, Inputs, MitigationTask, check_lists
from askew.core.ranking import Floats, Hits, Rankings
from askew.measures.catalogue import MeasureRequest
from askew.measures.chance import SEED, Null
from askew.measures.common import GroupDifference, mentions_for
from askew.measures.counts import DocumentSource
from askew.measures.lists import RunLike
from askew.measures.measure import count_inputs, read_runs
from askew.measures.requested import count_key
from askew.measures.scorer import Scorer
from askew.measures.statistics.significance import paired
from askew.report.table import CODE, NAME, Cell, Column, Estimate, Table, table

# How often the directions are drawn for the placebo lists, whose lean is a mean over all queries.
PLACEBOS = 10
# A method erases a group if it removes more than this share of its words, and more lists name nobody.
ERASED = 0.1


@dataclass(frozen=True)
class Effect:
    """What a method does to the lists of the base, by the mean over queries of ``measure``.

    ``change`` is the relative change of the mean, ``by_chance`` the same on placebo lists; None if the mean was 0.
    ``excess`` is the lean minus that on placebo lists, of the base and of the method; ``excess_change`` is their
    difference with the ends of its interval. ``words`` are the words of each group in the top results of a query, and
    ``nobody`` the share of the lists that name nobody, with the base and with the method. Without ``known`` articles,
    chance explains more than the placebo lists say (see ``askew.measures.articles``).
    """

    measure: str
    change: float | None
    by_chance: float | None
    excess: tuple[float, float]
    excess_change: tuple[float, float | None, float | None]
    words: Mapping[str, tuple[float, float]]
    nobody: tuple[float, float]
    known: bool = True

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Effect:
        """An effect from its JSON values."""
        words = {name: tuple(ends) for name, ends in facts["words"].items()}
        pairs = {name: tuple(facts[name]) for name in ("excess", "excess_change", "nobody")}
        return cls(**{**facts, **pairs, "words": words})

    @property
    def erases(self) -> list[str]:
        """The groups that the method erases."""
        if self.nobody[1] <= self.nobody[0]:
            return []
        return [name for name, (before, after) in self.words.items() if after < (1 - ERASED) * before]

    @property
    def verdict(self) -> str:
        """What to call the method."""
        if self.change is None or self.change >= 0:
            return "no reduction"
        change, _, high = self.excess_change
        less = change < 0 and high is not None and high < 0
        beyond = "beyond chance" if self.known else "perhaps beyond chance"
        return ", ".join([beyond if less else "only chance", *(f"erases {name}" for name in self.erases)])


def lean_without_sign(asked: Sequence[MeasureRequest]) -> MeasureRequest | None:
    """The first measure that is a difference of two groups, without its sign; None if there is none."""
    for one in asked:
        if isinstance(one.family, GroupDifference) and len(one.groups) == 2:
            text = Measure.parse(one.text)(sign="abs").text
            return replace(one, text=text, measure=one.measure(sign="abs"))
    return None


def effects_of_runs(
    base: RunLike, docs: object, lean: MeasureRequest, lexicons: Mapping[str, Lexicon],
    runs: Mapping[str, RunLike] | None = None, methods: Sequence[str] = (),
) -> dict[str, Effect]:  # fmt: skip
    """What other runs of the queries of a run change, and mitigation methods that reorder the run."""
    # Methods also read the documents below the cutoff.
    deep = replace(lean, measure=Measure(lean.measure.name, lean.measure.params))
    given = {"": base, **(runs or {})}
    measured = read_runs([lean], given, published=False, run_format=defaults.RUN_FORMAT, brief=True)
    counted = count_inputs([deep] if methods else [lean], measured, DocumentSource(docs), lexicons)
    ids = counted.lists[0].query_ids
    first, *others = (_hits(one.ordered("score"), ids) for one in counted.lists)
    meter = EffectMeter(counted.scorer, lean, ids, first)
    effects = {name: meter.effect(hits, None) for name, hits in zip(runs or {}, others, strict=True)}
    for name in methods:
        method, _, strength = name.partition("@")
        # A window has a whole number of documents.
        value = int(strength) if strength.isdecimal() else float(strength or 0)
        plugin = build("mitigation", method, {"strength": value} if strength else {})

        def reorder(plugin: Any = plugin, name: str = name) -> Hits:
            mentions = counted.scorer.mentions(*count_key(lean.measure))
            counts = mentions.counts[:, [mentions.groups.index(group) for group in lean.groups]]
            task = MitigationTask(ids.to_pylist(), [""] * len(ids), first, lean.groups, counts)
            return check_lists(plugin.rank(task), task, name)

        effects[name] = meter.effect(reorder(), reorder)
    return effects


def _hits(ranked: Rankings, ids: pa.Array) -> Hits:
    """The lists of these queries; empty for a query without results."""
    rows = pc.index_in(ids, value_set=ranked.query_ids)
    found = ranked.select(rows.drop_null().to_numpy().astype(np.int64))
    lengths = np.zeros(len(ids), np.int64)
    lengths[rows.is_valid().to_numpy(zero_copy_only=False)] = found.lengths
    return Hits(np.append(0, np.cumsum(lengths)), found.docs.astype(np.int32), -found.ranks().astype(np.float32))


class EffectMeter:
    """Compares lists of methods with those of the base. ``query_ids`` has the query of each list.

    ``draws`` are the mentions of placebo lists, by default of directions that are drawn here.
    """

    def __init__(
        self, scorer: Scorer, lean: MeasureRequest, query_ids: pa.Array, base: Hits,
        draws: Sequence[DocMentions] = (),
    ) -> None:  # fmt: skip
        self._scorer, self._lean, self._ids, self._base = scorer, lean, query_ids, base
        self._before = self._values(base)
        null, rng = Null(lean.family, lean.measure, self._inputs(base), "collection"), np.random.default_rng(SEED)
        self._draws = draws or [null.drawn(rng) for _ in range(PLACEBOS)]
        self._known = null.known

    def _inputs(self, hits: Hits) -> Inputs:
        return self._scorer.inputs(Rankings.of(hits, self._ids), [self._lean])

    def effect(self, hits: Hits, again: Callable[[], Hits] | None) -> Effect:
        """The effect of a method with these lists; ``again`` runs it again if it reads the counts of documents."""
        one = self._lean
        after = self._values(hits)
        placebo = self._placebo(hits, again)
        there = ~np.isnan(self._before) & ~np.isnan(after) & ~np.isnan(placebo).any(axis=0)
        old, new, (old_placebo, new_placebo) = self._before[there], after[there], placebo[:, there]
        most = one.bounds[1] - one.bounds[0]
        change = paired(old - old_placebo, new - new_placebo, Direction.DOWN, (-most, most))
        mentions = mentions_for(one.measure, self._inputs(hits))
        (words, nobody), (new_words, new_nobody) = (self._words(lists, mentions) for lists in (self._base, hits))
        return Effect(
            one.text, _relative(old, new), _relative(old_placebo, new_placebo),
            (float((old - old_placebo).mean()), float((new - new_placebo).mean())),
            (-change.gain, *_negated(change.high, change.low)),
            {name: (words[name], new_words[name]) for name in words}, (nobody, new_nobody), self._known,
        )  # fmt: skip

    def _words(self, hits: Hits, mentions: DocMentions) -> tuple[dict[str, float], float]:
        ranked = Rankings.of(hits, self._ids).cut(self._lean.measure.cutoff)
        columns = [mentions.groups.index(name) for name in self._lean.groups]
        counts = mentions.counts[ranked.docs][:, columns]
        rows = np.repeat(np.arange(len(ranked)), ranked.lengths)
        named = np.bincount(rows, counts.sum(axis=1), minlength=len(ranked))[ranked.lengths > 0]
        each = counts.sum(axis=0) / max(1, len(named))
        return dict(zip(self._lean.groups, each.tolist(), strict=True)), float((named == 0).mean()) if len(
            named
        ) else 0.0

    def _values(self, hits: Hits) -> Floats:
        return self._scorer.values(self._inputs(hits), [self._lean])[self._lean.text]

    def _placebo(self, hits: Hits, again: Callable[[], Hits] | None) -> Floats:
        """The mean lean of each query on placebo lists: of the base (row 0) and of the method (row 1)."""
        key = count_key(self._lean.measure)
        values = []
        for drawn in self._draws:
            with self._scorer.with_mentions(key, drawn):
                values.append([self._values(self._base), self._values(hits if again is None else again())])
        return np.asarray(np.mean(values, axis=0))


def _negated(high: float | None, low: float | None) -> tuple[float | None, float | None]:
    return None if high is None else -high, None if low is None else -low


def _relative(old: Floats, new: Floats) -> float | None:
    return float(new.mean() / old.mean() - 1) if len(old) and old.mean() else None


def effects_table(effects: Mapping[str, Effect], name: str) -> Table:
    """What each method does, one row for each."""
    first = next(iter(effects.values()))
    columns = [
        Column("method", CODE), Column("lean", digits=1, signed=True, unit="%"),
        Column("by chance", digits=1, signed=True, unit="%"), Column("beyond chance", signed=True, digits=3),
        *(Column(f"words: {group}", digits=1, signed=True, unit="%") for group in first.words),
        Column("nobody", NAME), Column("verdict", NAME),
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for method, effect in effects.items():
        rows.append([
            method, _percent(effect.change), _percent(effect.by_chance), Estimate(*effect.excess_change),
            *(100 * (after / before - 1) if before else None for before, after in effect.words.values()),
            f"{effect.nobody[0]:.0%} to {effect.nobody[1]:.0%}", effect.verdict,
        ])  # fmt: skip
    caption = f"What the methods change in {first.measure}, whose excess over chance is {first.excess[0]:.4f}"
    return table(name, caption, columns, rows)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
