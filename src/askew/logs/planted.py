"""The effects planted in a made-up log, and the true values that an analysis should estimate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa

from askew.logs.definition import LOG_DATA
from askew.logs.numbers import spearman
from askew.logs.pages import KINDS
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
_WIDTH = 16


@dataclass(frozen=True)
class Planted:
    """The effects of a made-up log. The defaults are close to the values that the GSQR paper reports."""

    sessions: int = 40_000
    users: int = 12_000
    # The second query of a session is unrelated, specialized for no group, or specialized for a group.
    specializing: float = 0.45
    for_group: float = 0.4
    female: float = 0.54
    # The probability that a group is chosen by the user's own preference and not independently.
    loyalty: float = 0.5
    # Share of reformulations that are recommended queries, and the factor of this share for women's terms.
    recommended: float = 0.13
    recommended_female: float = 1.2
    edited: float = 0.64
    medians: Mapping[tuple[str, str], float] = field(
        default_factory=lambda: {
            ("female", "edited"): 16.0, ("male", "edited"): 14.0, ("female", "recommended"): 13.5,
            ("male", "recommended"): 12.5, ("female", "other"): 66.0, ("male", "other"): 60.0,
        }
    )  # fmt: skip
    spread: float = 0.8
    click_before: float = 0.2
    click_ratio: Mapping[str, float] = field(default_factory=lambda: {"edited": 2.5, "recommended": 3.6, "other": 2.2})
    changes: tuple[float, ...] = (0.62, 0.18, 0.14, 0.06)
    sites: int = 24
    kinds: tuple[float, ...] = (0.4, 0.25, 0.2, 0.15)
    correlation: float = -0.35
    queries_per_topic: int = 10
    # Share of sessions with queries that no other user typed.
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
            kept = pa.array(pool).filter(pa.compute.equal(seeds.topics(pa.array(pool)), topic)).to_pylist()
            made[topic] = kept[:: max(1, len(kept) // self.queries_per_topic)][: self.queries_per_topic]
        return made

    @cached_property
    def queries(self) -> Queries:
        """The original queries with their topics, associations and probabilities."""
        return make_queries(self)

    @cached_property
    def truth(self) -> dict[str, Any]:
        """The true value of every planted effect."""
        return truth_of(self)


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


def make_queries(planted: Planted) -> Queries:
    """Draw the planted properties of each query. The same seed gives the same queries."""
    rng = np.random.default_rng([planted.seed, 11])
    topics = [topic for topic, listed in planted.words.items() for _ in listed]
    texts = [text for listed in planted.words.values() for text in listed]
    words, vectors = _vectors(texts, rng)
    place = {word: i for i, word in enumerate(words)}
    sums = np.array([sum(vectors[place[word]] for word in text.split()) for text in texts])
    association = sums[:, 0] / np.linalg.norm(sums, axis=1)
    published = _published()
    number = {topic: i for i, topic in enumerate(planted.words)}
    of = np.array([number[topic] for topic in topics])
    sizes = np.bincount(of)
    log = rng.dirichlet(np.full(len(sizes), 8.0))
    rate = np.array([published[topic][0] for topic in planted.words]) ** 0.5
    in_log, in_events = log[of] / sizes[of], (log * rate)[of] / sizes[of]
    score = planted.correlation * _normal_ranks(association) + math.sqrt(
        1 - planted.correlation**2
    ) * rng.standard_normal(len(texts))
    female = 1 / (1 + np.exp(-(math.log(planted.female / (1 - planted.female)) + 0.9 * score)))
    lift = np.array([published[topic][1] / 13.0 for topic in planted.words])
    recommended = np.clip(planted.recommended * lift[of], 0.01, 0.5)
    return Queries(
        texts,
        topics,
        association,
        in_log / in_log.sum(),
        in_events / in_events.sum(),
        female,
        recommended,
        words,
        vectors,
    )


def _published() -> dict[str, tuple[float, float]]:
    """Rate and % recommended of each topic in Table 1 of the GSQR paper."""
    lines = (LOG_DATA / "gsqr_table1.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines if not line.startswith(("#", "topic,"))]
    return {topic: (float(rate), float(recommended)) for topic, rate, recommended, _ in rows}


def _vectors(texts: list[str], rng: Any) -> tuple[list[str], Any]:
    """Word vectors whose first component is the gender association of a word; it is 0 for modifiers."""
    words = sorted({word for text in texts for word in text.split()})
    vectors = rng.standard_normal((len(words), _WIDTH)) / math.sqrt(_WIDTH)
    vectors[:, 0] = np.where(np.isin(words, _MODIFIERS), 0.0, rng.normal(0.0, 0.35, len(words)))
    pairs = (("woman", "man"), ("girl", "boy"), ("she", "he"), ("mother", "father"), ("her", "his"))
    for one, two in pairs:
        if one not in words and two not in words:
            base = rng.standard_normal(_WIDTH) / math.sqrt(_WIDTH)
            base[0] = 0.0
            lean = np.zeros(_WIDTH)
            lean[0] = 1.0
            words += [one, two]
            vectors = np.concatenate([vectors, [base + lean, base - lean]])
    return words, vectors.astype(np.float32)


def _normal_ranks(values: Any) -> Any:
    """The normal scores of the values: their ranks mapped to quantiles of the normal distribution."""
    order = np.empty(len(values))
    order[np.argsort(values)] = (np.arange(len(values)) + 0.5) / len(values)
    return np.array([NormalDist().inv_cdf(p) for p in order])


def joint(planted: Planted) -> Any:
    """The joint probability of original query, group and entry point among the reformulations for a group."""
    queries = planted.queries
    table = np.zeros((len(queries.texts), 2, 3))
    for g, chance in enumerate((queries.female, 1 - queries.female)):
        rec = queries.recommended * (planted.recommended_female if g == 0 else 2 - planted.recommended_female)
        edited = (1 - rec) * planted.edited / (1 - planted.recommended)
        table[:, g] = (queries.in_events * chance)[:, None] * np.stack([edited, rec, 1 - edited - rec], axis=1)
    return table


def truth_of(planted: Planted) -> dict[str, Any]:
    """The true value of every planted effect, computed from the probabilities and not from a sample."""
    both, queries = joint(planted), planted.queries
    specializing = planted.specializing
    found: dict[str, Any] = {
        "specializing": specializing,
        "for_group": planted.for_group,
        "share": {group: float(both[:, g].sum()) for g, group in enumerate(GROUPS)},
        "entry": _entry_truth(both),
        "median": _median_truth(planted, both),
        "click_ratio": _click_truth(planted, both),
        "change": dict(zip(("absent", "lower", "same", "higher"), planted.changes, strict=True)),
        "kind": dict(zip(KINDS, planted.kinds, strict=True)),
        "site": site_truth(planted),
        "topic": _topic_truth(planted, both),
        "association": spearman(queries.female, queries.association).rho,
    }
    return found


def _entry_truth(both: Any) -> dict[tuple[str, str], float]:
    totals = both.sum(axis=0)
    found = {("all", entry): float(totals[:, e].sum()) for e, entry in enumerate(ENTRIES)}
    for g, group in enumerate(GROUPS):
        found |= {(group, entry): float(totals[g, e] / totals[g].sum()) for e, entry in enumerate(ENTRIES)}
    return found


def _median_truth(planted: Planted, both: Any) -> dict[tuple[str, str], float]:
    weights = {
        (group, entry): float(both[:, g, e].sum()) for g, group in enumerate(GROUPS) for e, entry in enumerate(ENTRIES)
    }
    found = {}
    for group in ("all", *GROUPS):
        for entry in ("all", *ENTRIES):
            parts = {key: w for key, w in weights.items() if group in ("all", key[0]) and entry in ("all", key[1])}
            found[group, entry] = _mixture_median(
                [(planted.medians[key], w) for key, w in parts.items()], planted.spread
            )
    return found


def _mixture_median(parts: list[tuple[float, float]], spread: float) -> float:
    total = sum(w for _, w in parts)
    low, high = 1e-3, 1e5
    for _ in range(100):
        middle = math.sqrt(low * high)
        below = sum(w * 0.5 * (1 + math.erf(math.log(middle / m) / (spread * math.sqrt(2)))) for m, w in parts)
        low, high = (middle, high) if below < total / 2 else (low, middle)
    return math.sqrt(low * high)


def _click_truth(planted: Planted, both: Any) -> dict[str, float]:
    weights = both.sum(axis=(0, 1))
    ratios = np.array([planted.click_ratio[entry] for entry in ENTRIES])
    return {"all": float(weights @ ratios), **{entry: float(r) for entry, r in zip(ENTRIES, ratios, strict=True)}}


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


def site_truth(planted: Planted) -> dict[str, float]:
    """The exposure ratio of each site. A result that is on both pages replaces a randomly drawn one on each page."""
    before, after = site_chances(planted)
    moves = rank_moves(planted)[1:]
    shared = planted.click_before * _click_truth(planted, joint(planted))["all"]
    room = WEIGHTS.sum()
    taken_after = shared * float((moves.sum(axis=(0, 2))[1:] * WEIGHTS).sum())
    taken_before = shared * float((moves.sum(axis=(0, 1))[1:] * WEIGHTS).sum())
    ratios = after * (room - taken_after) / (before * (room - taken_before))
    return {f"site{number}.example": float(ratio) for number, ratio in enumerate(ratios)}


def _topic_truth(planted: Planted, both: Any) -> dict[str, dict[str, float]]:
    queries = planted.queries
    events = planted.specializing * planted.for_group
    of = np.array(queries.topics)
    found = {}
    for topic in planted.words:
        here = of == topic
        part = both[here]
        in_events = float(part.sum())
        in_log = events * in_events + (1 - events) * float(queries.in_log[here].sum())
        found[topic] = {
            "rate": in_events / in_log,
            "recommended": float(part[:, :, 1].sum() / in_events),
            "share_female": float(part[:, 0].sum() / in_events),
        }
    return found
