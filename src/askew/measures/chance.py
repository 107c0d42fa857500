"""Lean beyond chance: how much of a measured lean would remain if the direction of each document were chance.

The mean of |lean| is positive in any finite list, also without bias. The null: each article that names a group has its
direction drawn anew. The group that it names most (its direction) and the drawn group exchange their counts in all its
documents; which documents name anyone, how often, and which documents belong together stay as they are.

    excess = observed value - expected value under the null

The shares of the drawn groups (parameter ``excess``) are those of the documents of the collection (``collection``), of
the retrieved articles (``retrieved``), of the articles with a document judged relevant (``relevant``), or given
(``male:0.6,female:0.4``). Parameter ``units``: the direction belongs to articles (see ``articles``), or to documents.

Where neither ids nor headings say which documents are of one article, directions that belong together would be drawn
apart: the expected value is a lower bound, and there are no p-values.

Linear measures of two groups (ARaB, RaB, LexiconShare) sum over articles, so that expected values and p-values of
lists with up to ``EXACT`` articles are exact: all directions are enumerated. Others are resampled, ``DRAWS`` times with
a fixed seed. An excess is not yet bias: the topic of a query remains in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc

from askew.core.defaults import LEVEL
from askew.core.errors import ConfigError
from askew.core.measure import Direction, Measure
from askew.core.protocols import DocMentions, Inputs
from askew.core.ranking import Flags, Floats, Ints
from askew.measures.common import (
    NONE,
    GroupDifference,
    directions_of,
    documents_read,
    even_shares,
    mentions_for,
    target_shares,
    text,
)

SOURCES = ("collection", "retrieved", "relevant")
DRAWS = 1000
SEED = 20_20
# Lists with at most this many articles that name someone are enumerated: 2 ** EXACT directions.
EXACT = 12
# Values that differ less are the same: sums in another order.
_TIE = 1e-9
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Chance:
    """The values of some lists beside those expected by chance.

    ``p`` is, for each list, the probability under the null of a lean at least as large; ``least`` the smallest p that
    the list could have, if all its articles had the most extreme directions. NaN where the measure is not defined. For
    the lean of two groups without its sign, p is twice the probability toward the same group (1 without an excess).
    ``run_p`` is the probability of such a mean over the lists, with documents shared by the lists kept together.
    All p-values are NaN if articles are not ``known``.
    ``error`` is the standard error of the mean expected value: 0 if exact. ``shares`` are those of the null: of the
    documents that name one group most. ``words`` are the shares of the groups among the words of the collection.
    """

    values: Floats
    expected: Floats
    p: Floats
    least: Floats
    run_p: float
    error: float
    shares: Mapping[str, float]
    words: Mapping[str, float]
    known: bool = True

    @property
    def excess(self) -> Floats:
        """Observed minus expected, for each list."""
        return self.values - self.expected

    def beyond(self, level: float = LEVEL, dependent: bool = False) -> Flags:
        """The lists that lean beyond chance, with the false-discovery rate at most ``level``.

        Benjamini-Hochberg; ``dependent`` uses Benjamini-Yekutieli, which holds for any dependence between lists. With
        ``level=1`` all lists, also where nothing is tested.
        """
        return ~np.isnan(self.values) if level >= 1 and not self.known else discoveries(self.p, level, dependent)

    @property
    def reachable(self) -> int:
        """How many lists could have a p-value below ``LEVEL``."""
        return int((self.least < LEVEL).sum())


def discoveries(p: Floats, level: float, dependent: bool = False) -> Flags:
    """The hypotheses that are rejected with the false-discovery rate at most ``level``; NaN is no hypothesis."""
    tested = np.flatnonzero(~np.isnan(p))
    rejected = np.zeros(len(p), np.bool_)
    if len(tested):
        ordered = tested[np.argsort(p[tested], kind="stable")]
        factor = (1.0 / np.arange(1, len(tested) + 1)).sum() if dependent else 1.0
        under = p[ordered] * len(tested) * factor <= level * np.arange(1, len(tested) + 1)
        if under.any():
            rejected[ordered[: int(np.flatnonzero(under)[-1]) + 1]] = True
    return rejected


def bare(measure: Measure) -> Measure:
    """The measure without its excess."""
    return measure.with_params({**dict(measure.params), "excess": NONE})


def chance(family: Any, measure: Measure, inputs: Inputs, source: str = "collection") -> Chance:
    """Compare the values of a measure of lean with those expected by chance."""
    named = text(measure, "excess") if measure.param("excess") else NONE
    null = Null(family, measure, inputs, source if named == NONE else named)
    values = np.asarray(family.score(bare(measure), inputs), np.float64)
    linear = _Linear.of(family, measure, inputs, null)
    found = _resampled(family, measure, inputs, null, values) if linear is None else linear.chance(values)
    if null.known:
        return found
    none = np.full(len(values), np.nan)
    return replace(found, p=none, least=none, run_p=float("nan"), known=False)


class Null:
    """The directions of articles, and the shares with which they are drawn.

    ``known``: ids, headings or ``units=documents`` say which documents have one direction.
    """

    def __init__(self, family: Any, measure: Measure, inputs: Inputs, source: str) -> None:
        self.mentions = mentions_for(measure, inputs)
        self.columns = compared_columns(family, measure, self.mentions.groups)
        self.groups = tuple(self.mentions.groups[column] for column in self.columns)
        counts = self.mentions.counts[:, self.columns]
        read = documents_read(measure, inputs)
        # Articles are numbered in the order of ids, so that draws do not depend on the order of the documents.
        by_id = pc.sort_indices(inputs.doc_ids).to_numpy()
        named = by_id[((counts.sum(axis=1) > 0) & self.mentions.known)[by_id]]
        article, self.known = (named, True) if measure.param("units") == "documents" else inputs.articles(named)
        self.unit = np.full(len(counts) + 1, -1, np.int64)  # the padding, document -1, has no article
        _, first, unit = np.unique(article, return_index=True, return_inverse=True)
        self.unit[named] = np.argsort(np.argsort(first))[unit]
        self.units = int(self.unit.max(initial=-1)) + 1
        amounts = np.zeros((self.units, len(self.columns)), np.int64)
        np.add.at(amounts, self.unit[named], counts[named])
        self.own = amounts.argmax(axis=1) if self.units else np.zeros(0, np.int64)
        self.tied = (amounts == amounts.max(axis=1, keepdims=True, initial=0)).sum(axis=1) > 1
        self._direction = directions_of(counts)
        if inputs.find_shares is not None:
            self.collection: Floats = inputs.find_shares(measure, self.columns)
        else:
            directions = self._direction[self._direction >= 0]
            self.collection = np.stack(
                [even_shares(np.bincount(directions, minlength=len(self.columns))), even_shares(counts.sum(axis=0))]
            )
        self.shares = self._shares(measure, inputs, source, read)
        self.drawn_shares = self._of_articles(np.flatnonzero(read & (self.unit[:-1] >= 0) & (self._direction >= 0)))

    def _shares(self, measure: Measure, inputs: Inputs, source: str, read: Flags) -> Floats:
        """The share of the documents that name each group most."""
        if source not in SOURCES:
            return target_shares(measure.with_params({"excess": source}), self.groups, "excess")
        if source == "collection":
            return np.asarray(self.collection[0])
        docs = np.flatnonzero(read)
        if source == "relevant":
            judged = inputs.judgements
            if judged is None:
                raise ConfigError(f"the measure {measure.name} with ⟨excess=relevant⟩ needs judgements; give ⟨qrels⟩")
            docs = np.unique(judged.docs[judged.relevance >= 1])
        directions = self._direction[docs]
        return even_shares(np.bincount(directions[directions >= 0], minlength=len(self.columns)))

    def named(self, shares: Floats) -> dict[str, float]:
        """Shares by the names of the groups."""
        return dict(zip(self.groups, shares.tolist(), strict=True))

    def _of_articles(self, docs: Ints) -> Floats:
        """The shares with which articles are drawn so that these documents are expected to have ``shares``.

        Not all documents of an article have its direction, so that the shares of articles are more extreme.
        """
        size = len(self.columns)
        if not len(docs):
            return self.shares
        # By direction of the article (row) and of the document (column).
        table = np.zeros((size, size))
        np.add.at(table, (self.own[self.unit[docs]], self._direction[docs]), 1.0)
        expected = np.zeros((size, size))
        for drawn in range(size):
            for own in range(size):
                swapped = np.arange(size)
                swapped[[own, drawn]] = swapped[[drawn, own]]
                expected[drawn] += table[own][swapped]
        shares = np.linalg.lstsq(expected.T / len(docs), self.shares, rcond=None)[0].clip(0.0, 1.0)
        return even_shares(np.asarray(shares, np.float64))

    def draw(self, rng: np.random.Generator) -> Ints:
        """A direction for each article."""
        return rng.choice(len(self.drawn_shares), size=self.units, p=self.drawn_shares)

    def drawn(self, rng: np.random.Generator) -> DocMentions:
        """The mentions with exchanged directions."""
        return self.exchanged(self.draw(rng), self.mentions)

    def exchanged(self, drawn: Ints, mentions: DocMentions) -> DocMentions:
        """Some mentions of the same documents, with the counts of each article's direction and the drawn one exchanged.

        Kinds of mentions (all, or people in general) with the same ``drawn`` directions belong together.
        """
        columns = np.array([mentions.groups.index(name) for name in self.groups])
        counts = mentions.counts.copy()
        docs = np.flatnonzero(self.unit[:-1] >= 0)
        before, after = (columns[group[self.unit[docs]]] for group in (self.own, drawn))
        counts[docs, before], counts[docs, after] = mentions.counts[docs, after], mentions.counts[docs, before]
        return replace(mentions, counts=counts)


def compared_columns(family: Any, measure: Measure, groups: tuple[str, ...]) -> list[int]:
    """The columns of the groups that a measure compares, in its order."""
    named = str(measure.param("groups", "all"))
    names = groups if named == "all" else tuple(named.replace("+", "-").split("-"))
    if len(names) < 2:
        raise ConfigError(f"measure {measure.name}: ⟨excess⟩ needs two groups or more, found {named!r}")
    return [groups.index(name) for name in names]


@dataclass(frozen=True)
class _Linear:
    """A measure of two groups whose signed value is a sum over articles: row ``list``, column ``unit``."""

    lists: Ints
    units: Ints
    amounts: Floats
    null: Null
    signed: bool
    size: int

    @classmethod
    def of(cls, family: Any, measure: Measure, inputs: Inputs, null: Null) -> _Linear | None:
        """The parts of the values; None if the measure is no such sum."""
        sign, digits = measure.param("sign"), measure.param("digits")
        if not isinstance(family, GroupDifference) or sign not in ("abs", "signed") or digits is not None:
            return None
        rankings, lean = family.read(measure, inputs)
        values = lean[rankings.docs] * family.weights(measure, rankings)
        rows = np.repeat(np.arange(len(rankings)), rankings.lengths)
        unit = null.unit[rankings.docs]
        there = (unit >= 0) & (values != 0)
        key, place = np.unique(rows[there] * (null.units + 1) + unit[there], return_inverse=True)
        amounts = np.bincount(place, weights=values[there], minlength=len(key)).astype(np.float64)
        return cls(key // (null.units + 1), key % (null.units + 1), amounts, null, sign == "signed", len(rankings))

    @cached_property
    def _turned(self) -> Floats:
        """The probability that each article's direction changes sign."""
        return np.where(self.null.tied, 0.5, 1.0 - self.null.drawn_shares[self.null.own])

    def chance(self, values: Floats) -> Chance:
        """Exact expected values and p-values of lists with few articles; the others are resampled."""
        expected = np.where(np.isnan(values), np.nan, 0.0)
        p, least = expected + 1.0, expected + 1.0
        turned_amounts = self.amounts * (1.0 - 2.0 * self._turned[self.units])
        mean, sums = (
            np.bincount(self.lists, amounts, minlength=self.size).astype(np.float64)
            for amounts in (turned_amounts, self.amounts)
        )
        sizes = np.bincount(self.lists, minlength=self.size)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rng = np.random.default_rng(SEED)
        squares = 0.0
        for size in np.unique(sizes[sizes > 0]).tolist():
            rows = np.flatnonzero((sizes == size) & ~np.isnan(values))
            step = max(1, _CHUNK >> min(size, EXACT))
            for part in (rows[first : first + step] for first in range(0, len(rows), step)):
                place = starts[part][:, None] + np.arange(size)
                amounts, turned = self.amounts[place], self._turned[self.units[place]]
                if size <= EXACT:
                    signs = 1.0 - 2.0 * (np.arange(1 << size)[:, None] >> np.arange(size) & 1)
                    drawn = amounts @ signs.T
                    chances = np.prod(np.where(signs[None] < 0, turned[:, None, :], 1.0 - turned[:, None, :]), axis=2)
                else:
                    flips = rng.random((1 << EXACT, 1, size)) < turned
                    drawn = np.einsum("dns,ns->nd", np.where(flips, -1.0, 1.0), amounts)
                    chances = np.full(drawn.shape, 1.0 / drawn.shape[1])
                centre = mean[part][:, None] if self.signed else 0.0
                distance = np.abs(drawn - centre)
                observed = np.abs(values[part][:, None] - centre)
                if self.signed:
                    p[part] = (chances * (distance >= observed - _TIE)).sum(axis=1)
                    least[part] = (chances * (distance >= distance.max(axis=1, keepdims=True) - _TIE)).sum(axis=1)
                    continue
                expected[part] = (chances * distance).sum(axis=1)
                squares += 0.0 if size <= EXACT else float(distance.var(axis=1).sum() / drawn.shape[1])
                # Twice the probability of the list's own side: a list that names only the rarer group is less probable
                # than one that names only the other, although both lean as much.
                toward = drawn * np.where(sums[part] < 0, -1.0, 1.0)[:, None]
                p[part] = 2.0 * (chances * (toward >= observed - _TIE)).sum(axis=1)
                p[part[values[part] <= expected[part] + _TIE]] = 1.0
                ends = [(chances * (side >= side.max(axis=1, keepdims=True) - _TIE)).sum(axis=1)
                        for side in (drawn, -drawn)]  # fmt: skip
                least[part] = 2.0 * np.minimum(*ends)
        if self.signed:
            expected = np.where(np.isnan(values), np.nan, mean)
        n = max(1, int((~np.isnan(values)).sum()))
        return Chance(
            values, expected, np.minimum(p, 1.0), np.minimum(least, 1.0), self._run_p(values, mean), squares**0.5 / n,
            self.null.named(self.null.shares), self.null.named(self.null.collection[1]),
        )  # fmt: skip

    def _run_p(self, values: Floats, mean: Floats) -> float:
        """The share of joint draws with a mean over lists that is as large: articles keep one direction in all."""
        from scipy import sparse

        defined = ~np.isnan(values)
        if not defined.any():
            return float("nan")
        matrix = sparse.csr_array((self.amounts, (self.lists, self.units)), shape=(self.size, self.null.units))[defined]
        rng, means = np.random.default_rng(SEED), []
        step = max(1, _CHUNK // max(self.null.units, self.size, 1))
        for first in range(0, DRAWS, step):
            flips = rng.random((self.null.units, min(step, DRAWS - first))) < self._turned[:, None]
            drawn = matrix @ np.where(flips, -1.0, 1.0)
            means.append(drawn.mean(axis=0) if self.signed else np.abs(drawn).mean(axis=0))
        centre = float(mean[defined].mean()) if self.signed else 0.0
        return _share_as_large(np.concatenate(means) - centre, float(values[defined].mean()) - centre, self.signed)


def _share_as_large(drawn: Floats, observed: float, both_sides: bool) -> float:
    if both_sides:
        drawn, observed = np.abs(drawn), abs(observed)
    return float((1 + (drawn >= observed - _TIE).sum()) / (1 + len(drawn)))


def _resampled(family: Any, measure: Measure, inputs: Inputs, null: Null, values: Floats) -> Chance:
    """Expected values and p-values by drawing all directions ``DRAWS`` times."""
    rng = np.random.default_rng(SEED)
    plain = bare(measure)
    drawn = np.empty((DRAWS, len(values)))
    for row in range(DRAWS):
        mentions = null.drawn(rng)
        drawn[row] = family.score(plain, replace(inputs, find_mentions=lambda *_, found=mentions: found))
    direction = family.direction(plain)
    # A value that is not defined for the drawn directions (a group that no document names any more) is left out.
    with np.errstate(invalid="ignore"):
        expected = np.where(np.isnan(values), np.nan, np.nanmean(np.where(np.isnan(drawn), values, drawn), axis=0))
        lean = _lean(direction, drawn, expected)
        observed = _lean(direction, values[None], expected)[0]
        p = (1 + (lean >= observed - _TIE).sum(axis=0)) / (1 + DRAWS)
        most = np.fmax(np.nanmax(np.vstack([lean, observed]), axis=0), observed)
        least = (1 + (lean >= most - _TIE).sum(axis=0)) / (1 + DRAWS)
    unknown = np.isnan(values)
    p[unknown] = least[unknown] = np.nan
    means = np.nanmean(drawn[:, ~unknown], axis=1) if (~unknown).any() else np.zeros(DRAWS)
    centre = expected[~unknown].mean() if direction is Direction.ZERO and (~unknown).any() else 0.0
    sign = -1.0 if direction is Direction.UP else 1.0
    mean = float(values[~unknown].mean()) if (~unknown).any() else float("nan")
    run_p = _share_as_large(sign * (means - centre), sign * (mean - centre), direction is Direction.ZERO)
    error = float(means.std() / DRAWS**0.5)
    return Chance(values, expected, p, least, run_p, error, null.named(null.shares), null.named(null.collection[1]))


def _lean(direction: Direction, values: Floats, expected: Floats) -> Floats:
    """Larger for a larger lean."""
    if direction is Direction.ZERO:
        return np.abs(values - expected)
    return -values if direction is Direction.UP else values
