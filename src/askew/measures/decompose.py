"""Decompose a measure of lean into parts: why a mention is there (off topic, requested, on topic) and who is mentioned.

The lean of a query is a sum over mentions. A mention adds the magnitude of its document and group, divided by the
number of mentions of that group in the document, times the weight of the rank. So the parts add up to the measure
exactly. The part of a mention is an estimate. For *why*, a mention counts for each part with its calibrated
probability; a correction for the confusion of the classes made shares worse on collections outside the training data
(docs/warrant.md). For *who*, shares are corrected for the confusion of the classes; groups that the resolver was not
trained on have no such parts. Intervals are from a bootstrap that resamples queries, documents, and the labeled
mentions behind the correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import ANY, LEARNED, WHO, resolver_id
from askew.core.lexicon import Lexicon
from askew.core.protocols import Inputs
from askew.core.ranking import Flags, Floats, Ints, Rankings
from askew.measures.arab import magnitudes
from askew.measures.catalogue import MeasureRequest
from askew.measures.common import pick_groups, with_texts
from askew.measures.mentions import Marker
from askew.measures.relevance import WHY, RelevanceSource, asks_about, confusion, open_estimator
from askew.measures.resolver import class_probabilities, find_mentions, open_resolver
from askew.measures.statistics.intervals import corrected, drawn_confusions
from askew.report.table import NAME, Cell, Column, Estimate, Table, TableView, table

# The largest number of weights in memory at once.
_CHUNK = 4_000_000


@dataclass(frozen=True)
class LeanPart:
    """One part of a measure. ``found`` is its share before the correction; ``amounts`` are per group."""

    kind: str
    name: str
    share: float
    low: float
    high: float
    found: float
    amounts: dict[str, float]
    net: float
    net_low: float
    net_high: float


@dataclass(repr=False)
class Decomposition(TableView):
    """The parts of one measure of one run."""

    run: str
    measure: str
    signature: str
    resolver: str
    queries: int
    mentions: int
    judged: float
    value: float
    parts: list[LeanPart] = field(default_factory=list)

    def table(self) -> Table:
        """The parts by why, then by who."""
        groups = list(self.parts[0].amounts) if self.parts else []
        columns = [Column("part", NAME), Column("share [95% interval]", digits=1, unit="%"), *map(Column, groups)]
        columns.append(Column("net [95% interval]", signed=True))
        rows: list[list[Cell]] = []
        for one in self.parts:
            share = Estimate(100 * one.share, 100 * one.low, 100 * one.high)
            net = Estimate(one.net, one.net_low, one.net_high)
            rows.append([f"{one.kind}: {one.name}", share, *one.amounts.values(), net])
        return table("parts", f"Parts of {self.measure} of {self.run}", columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """The decomposition as JSON values."""
        return {**vars(self), "parts": [vars(one) for one in self.parts]}


@dataclass(frozen=True)
class _CountedMentions:
    """Every counted mention of every query: its amount, its group, and the probabilities of its parts."""

    query: Ints
    document: Ints
    group: Ints
    amount: Floats
    judged: Flags
    who: Floats
    why: Floats


def has_parts(one: MeasureRequest) -> bool:
    """Whether a measure can be decomposed: it must be a sum over all mentions."""
    param = one.measure.param
    return one.family.name in ("ARaB", "RaB") and (param("sign"), param("who"), param("on")) == ("signed", ANY, "any")


def decomposable(asked: Sequence[MeasureRequest], named: bool) -> list[MeasureRequest]:
    """The measures that can be decomposed; only one of them if the measures are the default ones."""
    found = [one for one in asked if has_parts(one)]
    if not found:
        raise ConfigError(
            "⟨decompose⟩: expected a measure ARaB or RaB with sign=signed and without the parameters 'who' and 'on', "
            f"such as {defaults.DECOMPOSED}; found {', '.join(one.text for one in asked)}",
            code="no-parts",
        )
    return found if named else [next((one for one in found if one.text == defaults.DECOMPOSED), found[0])]


def decompose_run(
    one: MeasureRequest, inputs: Inputs, relevance: RelevanceSource, lexicon: Lexicon,
    queries: pa.Array | None = None, draws: int = defaults.DECOMPOSE_DRAWS,
) -> Decomposition:  # fmt: skip
    """The parts of a measure of one run. ``queries`` has the query id of each list (default: the ids of the lists).

    With ``draws=0`` there are no intervals: their ends are NaN.
    """
    tokens, overlap = (str(one.measure.param(key)) for key in ("tokens", "overlap"))
    marker = Marker(lexicon, tokens, overlap)
    mentions = inputs.mentions(str(one.measure.param("lexicon")), tokens, overlap)
    ranked = inputs.ranked(str(one.measure.param("order")))
    rankings = with_texts(one.measure, inputs, ranked, mentions.known, one.measure.cutoff)
    picked = [group for group in pick_groups(one.measure, mentions.groups) if group is not None]
    asked = rankings.query_ids if queries is None else queries
    counted = _count(one, rankings, asked, mentions.counts[:, picked], picked, marker, relevance)
    names = [mentions.groups[group] for group in picked]
    # The second of two groups is subtracted.
    signed = np.where(counted.group == 1, -counted.amount, counted.amount) if len(names) == 2 else counted.amount
    value = signed.sum() / max(len(rankings), 1)
    judged = float(counted.judged.mean()) if len(counted.judged) else 0.0
    found = Decomposition(
        inputs.run_name, one.text, one.signature, resolver_id(), len(rankings), len(counted.query), judged, float(value)
    )
    if len(counted.query):
        rng = np.random.default_rng(0)
        resampled = _Draws(counted, len(rankings), rng, draws)
        found.parts += _of_kind("why", WHY, counted, names, resampled, None)
        # The confusion of the classes is known only for words of the groups that the resolver was trained on.
        if set(names) <= set(LEARNED):
            counts = confusion("who")
            confusions = np.concatenate([counts[None], drawn_confusions(counts, draws, rng)])
            found.parts += _of_kind("who", WHO, counted, names, resampled, confusions)
    return found


def _count(
    one: MeasureRequest, rankings: Rankings, queries: pa.Array, counts: Any, picked: Sequence[int], marker: Marker,
    relevance: RelevanceSource,
) -> _CountedMentions:  # fmt: skip
    """Expand the ranked documents to their mentions."""
    naming = np.unique(rankings.docs[counts[rankings.docs].any(axis=1)])
    texts = [relevance.texts[int(doc)].as_py() or "" for doc in naming]
    found = find_mentions(marker, texts)
    who = class_probabilities(open_resolver(), texts, found.text_of, found.starts, found.ends)
    # Mentions are sorted by text: those of text i are begins[i] to begins[i + 1].
    begins = np.searchsorted(found.text_of, np.arange(len(naming) + 1))
    entries = np.flatnonzero(np.isin(rankings.docs, naming))
    place = np.searchsorted(naming, rankings.docs[entries])
    sizes = (begins[1:] - begins[:-1])[place]
    entry = np.repeat(entries, sizes)
    mention = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(begins[place], sizes)
    rows = np.repeat(np.arange(len(rankings)), rankings.lengths)[entry]
    per_mention = magnitudes(str(one.measure.param("kind")), counts) / np.maximum(counts, 1)
    lengths = np.repeat(rankings.lengths, rankings.lengths)
    # The weight of each ranked document's lean in the value of its query. ARaB is the mean of running means: rank r is
    # part of the means at t = r, r + 1, ..., list length.
    weights = 1.0 / lengths
    if one.family.name != "RaB":
        harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, int(rankings.lengths.max(initial=0)) + 1)))
        weights = (harmonic[lengths] - harmonic[rankings.ranks() - 1]) / lengths
    weights = weights[entry]
    known, why = _why(
        rankings, queries, entry, rows, found.starts[mention], found.masks[mention], who[mention],
        [texts[text] for text in np.repeat(place, sizes)], marker, relevance,
    )  # fmt: skip
    parts = []
    for number, group in enumerate(picked):
        named = (found.masks[mention] >> group & 1).astype(np.bool_)
        amount = weights[named] * per_mention[rankings.docs[entry[named]], number]
        size = int(named.sum())
        parts.append((
            rows[named], rankings.docs[entry[named]], np.full(size, number), amount, known[named],
            np.eye(len(WHO))[who[mention[named]].argmax(axis=1)], why[named],
        ))  # fmt: skip
    return _CountedMentions(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _why(
    rankings: Rankings, queries: pa.Array, entry: Ints, rows: Ints, starts: Ints, masks: Ints, who: Floats,
    texts: Sequence[str], marker: Marker, relevance: RelevanceSource,
) -> tuple[Flags, Floats]:  # fmt: skip
    """Whether the document of each mention is judged, and the probabilities of the *why* parts."""
    chance = relevance.on_topic(rankings, queries)
    known = relevance.grades(rankings, queries)[1][entry]
    names = queries.to_pylist()
    words = {row: relevance.query(names[row]) for row in np.unique(rows).tolist()}
    asked = [words[row] for row in rows.tolist()]
    found = open_estimator().why(asked, texts, starts.tolist(), who, chance[entry])
    named = {row: int(np.bitwise_or.reduce([mask for *_, mask in marker.spans(words[row])] or [0])) for row in words}
    why = asks_about(found, masks & np.array([named[row] for row in rows.tolist()], np.int64) != 0)
    return known, why


class _Draws:
    """Bootstrap weights of queries and documents. In the first draw all weights are 1: the observed data."""

    def __init__(self, counted: _CountedMentions, queries: int, rng: np.random.Generator, draws: int) -> None:
        _, self._document = np.unique(counted.document, return_inverse=True)
        self._query = counted.query
        self._by_query = _drawn(rng, queries, draws)
        self._by_document = _drawn(rng, int(self._document.max()) + 1, draws)
        self.queries = self._by_query.sum(axis=1, dtype=np.float64)

    def sums(self, rows: Flags, amounts: Floats) -> Floats:
        """The sum of each column of ``amounts`` over its rows, for each draw."""
        query, document = self._query[rows], self._document[rows]
        found = np.zeros((len(self._by_query), amounts.shape[1]))
        step = max(1, _CHUNK // max(len(query), 1))
        for first in range(0, len(found), step):
            part = slice(first, first + step)
            weights = self._by_query[part][:, query].astype(np.float64) * self._by_document[part][:, document]
            found[part] = weights @ amounts
        return found


def _drawn(rng: np.random.Generator, units: int, draws: int) -> Any:
    found = rng.multinomial(units, np.full(units, 1.0 / units), size=draws)
    return np.vstack([np.ones((1, units), np.int32), found.astype(np.int32)])


def _ends(drawn: Floats) -> tuple[Floats, Floats]:
    """The ends of the 95% intervals; NaN without draws."""
    if not len(drawn):
        return np.full(drawn.shape[1], np.nan), np.full(drawn.shape[1], np.nan)
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    return low, high


def _of_kind(
    kind: str, classes: Sequence[str], counted: _CountedMentions, names: Sequence[str], draws: _Draws,
    confusions: Floats | None,
) -> list[LeanPart]:  # fmt: skip
    column = (counted.why if kind == "why" else counted.who) * counted.amount[:, None]
    amounts, raw = np.zeros((len(draws.queries), len(names), len(classes))), np.zeros(len(classes))
    for group in range(len(names)):
        rows = counted.group == group
        found = draws.sums(rows, column[rows])
        raw += found[0]
        amounts[:, group] = found if confusions is None else corrected(found, confusions)
    amounts /= draws.queries[:, None, None]
    total = amounts.sum(axis=(1, 2), keepdims=True)
    shares = (amounts / np.maximum(total, 1e-300)).sum(axis=1)
    nets = amounts[:, 0] - amounts[:, 1] if len(names) == 2 else amounts[:, 0]
    (low, high), (net_low, net_high) = _ends(shares[1:]), _ends(nets[1:])
    return [
        LeanPart(
            kind, name, float(shares[0, c]), float(low[c]), float(high[c]), float(raw[c] / max(raw.sum(), 1e-300)),
            {group: float(amounts[0, g, c]) for g, group in enumerate(names)},
            float(nets[0, c]), float(net_low[c]), float(net_high[c]),
        )
        for c, name in enumerate(classes)
    ]  # fmt: skip
