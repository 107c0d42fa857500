"""Train selectors, which choose one of several reformulations of a query without judgements at query time.

A cross-encoder reads a query and a candidate together, as in section 5 of Refairmulate. It learns to distinguish:

    refairmulate   pairs chosen for the dataset (Fair: effective and less lean) from negative samples
    effectiveness  candidates with better effectiveness than the original query from candidates with worse
    no-loss        candidates that lose no effectiveness from candidates that do

With passages, each text is followed by the top-ranked document that it retrieves: after the tokenizer's own separator,
or after the five characters ``[SEP]`` as in the published inference code (a BERT tokenizer reads them as separator).

``lean-aware`` also uses the retrieved documents, but no judgements. It measures the lean of the results of each
candidate. Among the candidates with a high enough probability of no loss, it chooses the one with the least lean. The
probability is predicted by a logistic regression. Its features are the agreement of the candidate's results with those
of the original query (LISTS), the similarity of the query to the candidate and to both results by an encoder
(CLOSE), and the scores of cross-encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, one_of
from askew.core.ranking import Flags, Floats, Ints
from askew.models.find import MINILM
from askew.trainers.common import Progress, Schedule
from askew.trainers.ranker import CrossEncoder, Examples, RankerSettings, RankerTexts, TokenTexts, fit

LEARNS = ("refairmulate", "effectiveness", "no-loss")
PASSAGES = ("none", "separator", "literal")
LITERAL = "[SEP]"
POSITIVE, NEGATIVE, NEITHER = 1, 0, -1
ORIGINAL = -1
_MARKS = 8
_STEPS, _ENOUGH = 100, 1e-9
# The distance of the end of a 95% interval from the mean, in standard errors.
_WIDE = 1.96


@dataclass(frozen=True)
class SelectorSettings:
    """The task and the input of the cross-encoder. ``most_each`` limits the examples of each label per query."""

    learns: str = "refairmulate"
    passages: str = "none"
    model: str = MINILM
    most_each: int = 4
    text_tokens: int = 48
    passage_tokens: int = 96

    def __post_init__(self) -> None:
        one_of(self.learns, LEARNS, "selector, learns")
        one_of(self.passages, PASSAGES, "selector, passages")
        if min(self.most_each, self.text_tokens, self.passage_tokens) < 1:
            raise ConfigError("selector: expected most_each=, text_tokens= and passage_tokens= to be 1 or more")

    def ranker(self) -> RankerSettings:
        """The settings of the cross-encoder."""
        side = self.text_tokens + (0 if self.passages == "none" else 1 + self.passage_tokens)
        return RankerSettings(self.model, most_tokens=2 * side + _MARKS, most_left_tokens=side)


# The Refairmulate paper: learning rate 2e-5, 10% warm-up, batches of 16, one epoch, texts without passages. Its public
# inference code adds the passages.
PACE = Schedule(epochs=1.0, batch_size=16, learning_rate=2e-5, warmup=0.1, weight_decay=0.01, save_every=2000)
PRESETS = {
    "refairmulate2025": SelectorSettings(),
    "refairmulate2025-code": SelectorSettings(passages="literal"),
}


@dataclass(frozen=True)
class PairTexts:
    """Queries and candidates; ``query`` has the position of the query of each candidate.

    ``passages`` are documents. ``first`` has the position of the top-ranked document of each query, and
    ``candidate_first`` that of each candidate.
    """

    originals: Sequence[str]
    candidates: Sequence[str]
    query: Ints
    passages: Sequence[str] | None = None
    first: Ints | None = None
    candidate_first: Ints | None = None


def sample(query: Ints, labels: npt.NDArray[Any], most: int, seed: int = 7) -> Ints:
    """The training rows: at most ``most`` for each label and query, sampled at random; in the order of the rows."""
    rows = np.flatnonzero(labels != NEITHER)
    draws = np.random.default_rng([seed, len(labels)]).random(len(labels))[rows]
    order = rows[np.lexsort((draws, labels[rows], query[rows]))]
    new = np.ones(len(order), np.bool_)
    new[1:] = (query[order][1:] != query[order][:-1]) | (labels[order][1:] != labels[order][:-1])
    starts = np.flatnonzero(new)
    within = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.sort(order[within < most])


def pair_tokens(
    tokenizer: Any, texts: PairTexts, settings: SelectorSettings, rows: Ints
) -> tuple[TokenTexts, TokenTexts]:
    """The tokens of the left side for each query, and of the right side for each row."""
    if settings.passages == "none":
        left = TokenTexts.of(tokenizer, texts.originals, settings.text_tokens)
        return left, TokenTexts.of(tokenizer, [texts.candidates[row] for row in rows.tolist()], settings.text_tokens)
    if texts.passages is None or texts.first is None or texts.candidate_first is None:
        raise ConfigError(
            "selector: passages= needs the text of the top-ranked document of each query, but the data has none; "
            "train on a store that has runs and an index with the texts of the documents"
        )
    mine = texts.candidate_first[rows]
    if settings.passages == "literal":
        most = settings.text_tokens + 1 + settings.passage_tokens
        first, candidates, passages = texts.first.tolist(), texts.candidates, texts.passages
        lefts = [f"{text}{LITERAL}{passages[doc]}" for text, doc in zip(texts.originals, first, strict=True)]
        rights = [
            f"{candidates[row]}{LITERAL}{passages[doc]}" for row, doc in zip(rows.tolist(), mine.tolist(), strict=True)
        ]
        return TokenTexts.of(tokenizer, lefts, most), TokenTexts.of(tokenizer, rights, most)
    passage_tokens = TokenTexts.of(tokenizer, texts.passages, settings.passage_tokens)
    mark = int(tokenizer.sep_token_id)
    left = TokenTexts.of(tokenizer, texts.originals, settings.text_tokens)
    right = TokenTexts.of(tokenizer, [texts.candidates[row] for row in rows.tolist()], settings.text_tokens)
    return (
        left.joined(mark, passage_tokens, np.arange(len(texts.originals)), texts.first),
        right.joined(mark, passage_tokens, np.arange(len(rows)), mine),
    )


def train_selector(
    texts: PairTexts, labels: npt.NDArray[Any], settings: SelectorSettings, pace: Schedule, work: Path,
    device: str | None = None, identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> CrossEncoder:  # fmt: skip
    """Train a cross-encoder to distinguish candidates labeled POSITIVE and NEGATIVE; other rows are not used."""
    for label, name in ((POSITIVE, "positive"), (NEGATIVE, "negative")):
        if not (labels == label).any():
            raise DataError(
                f"selector: no pair of query and reformulation in the training data has the label {name!r} for the "
                f"task {settings.learns!r}; use more queries"
            )
    rows = sample(texts.query, labels, settings.most_each, pace.seed)
    examples = Examples(texts.query[rows], np.arange(len(rows))[:, None], labels[rows].astype(np.float64)[:, None])
    about = {"selector": asdict(settings), **(identity or {})}

    def tokens(tokenizer: Any) -> tuple[TokenTexts, TokenTexts]:
        return pair_tokens(tokenizer, texts, settings, rows)

    return fit(RankerTexts((), ()), examples, settings.ranker(), pace, work, device, about, progress, tokens)


def score_candidates(encoder: CrossEncoder, texts: PairTexts, settings: SelectorSettings, rows: Ints) -> Floats:
    """The score of some candidates; higher is better."""
    left, right = pair_tokens(encoder.tokenizer, texts, settings, rows)
    size = 1024 if encoder.device.startswith("cuda") else 64
    found = encoder.score(left, right, (texts.query[rows], np.arange(len(rows))), size)
    return np.asarray(found, np.float64)


@dataclass(frozen=True)
class Chance:
    """A logistic regression over named features, stored as plain numbers."""

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    weights: Floats
    bias: float

    @classmethod
    def fit(cls, names: Sequence[str], features: Floats, labels: npt.NDArray[Any], ridge: float = 1.0) -> Chance:
        """Fit by Newton's method; the L2 penalty ``ridge`` keeps the weights of correlated features bounded."""
        truth = np.asarray(labels, np.float64)
        if not np.isfinite(features).all():
            raise DataError("selector: expected finite values of all features, found infinite values or NaN")
        if not 0 < truth.sum() < len(truth):
            raise DataError(
                "selector: expected reformulations that lose effectiveness and reformulations that do not, found only "
                "one of these two kinds; use more queries"
            )
        mean, spread = features.mean(axis=0), features.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        columns = np.column_stack([(features - mean) / spread, np.ones(len(truth))])
        penalty = np.append(np.full(len(mean), ridge), 0.0)
        weights = np.zeros(columns.shape[1])
        for _ in range(_STEPS):
            chance = _sigmoid(columns @ weights)
            slope = columns.T @ (truth - chance) - penalty * weights
            bend = (columns * (chance * (1 - chance))[:, None]).T @ columns + np.diag(penalty + _ENOUGH)
            step = np.linalg.solve(bend, slope)
            weights = weights + step
            if np.abs(step).max() < _ENOUGH:
                break
        return cls(tuple(names), mean, spread, weights[:-1], float(weights[-1]))

    def of(self, features: Floats) -> Floats:
        """The probability of each row."""
        return _sigmoid((features - self.mean) / self.spread @ self.weights + self.bias)

    def facts(self) -> dict[str, Any]:
        """The regression as JSON values."""
        numbers = {name: getattr(self, name).tolist() for name in ("mean", "spread", "weights")}
        return {"names": list(self.names), **numbers, "bias": self.bias}

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Chance:
        """Read a regression from the values of ``facts``."""
        mean, spread, weights = (np.asarray(facts[name], np.float64) for name in ("mean", "spread", "weights"))
        return cls(tuple(facts["names"]), mean, spread, weights, float(facts["bias"]))


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))


def best_candidate(query: Ints, queries: int, worth: Floats, allowed: Flags | None = None) -> Ints:
    """For each query, the allowed row with the highest worth (the first of equals); ORIGINAL if none is allowed."""
    rows = np.arange(len(query)) if allowed is None else np.flatnonzero(allowed)
    order = rows[np.lexsort((rows, -worth[rows], query[rows]))]
    first = np.r_[True, query[order][1:] != query[order][:-1]] if len(order) else np.zeros(0, np.bool_)
    chosen = np.full(queries, ORIGINAL, np.int64)
    chosen[query[order][first]] = order[first]
    return chosen


def least_leaning(
    query: Ints, queries: int, lean: Floats, original_lean: Floats, chance: Floats, threshold: float
) -> Ints:
    """For each query, the candidate with the least lean of its results; ORIGINAL if no candidate is eligible.

    A candidate is eligible if its results lean less than those of the original query and its probability of no loss
    reaches the threshold. Of candidates with equal lean, the one with the highest probability is chosen.
    """
    allowed = (chance >= threshold) & (lean < original_lean[query])
    order = np.lexsort((-chance, lean))
    worth = np.empty(len(query))
    worth[order] = -np.arange(len(order), dtype=np.float64)
    return best_candidate(query, queries, worth, allowed)


# Probabilities from 0 to 1, with smaller steps near 1; the last value is above 1, so that it allows no candidate.
CHANCES = np.unique(np.concatenate([np.linspace(0.0, 0.95, 96), np.linspace(0.95, 1.0, 51), [1.01]]))


def choose_threshold(
    choose: Callable[[float], Ints], queries: int, gain: Floats, slack: float, grid: Floats | None = None
) -> float:
    """The lowest threshold of a grid at which no effectiveness is lost: the lower end of the 95% interval of the mean
    gain is at least ``-slack``. ``choose`` returns the choices at a threshold.

    The queries need judgements and must not be training queries. If no threshold is good enough, the last one of the
    grid is returned; it should choose no candidate.
    """
    tried = CHANCES if grid is None else grid
    for threshold in tried.tolist():
        chosen = choose(threshold)
        gains = np.where(chosen == ORIGINAL, 0.0, gain[chosen])
        if gains.mean() - _WIDE * gains.std() / np.sqrt(queries) >= -slack:
            return float(threshold)
    return float(tried[-1])


@dataclass(frozen=True)
class TopDocuments:
    """The top-ranked documents of each query and their scores; a list that is shorter is padded with -1."""

    docs: Ints
    scores: Floats

    def at(self, rows: Ints) -> TopDocuments:
        """The lists of some queries."""
        return TopDocuments(self.docs[rows], self.scores[rows])


LISTS = (
    "whether the top document of the original query is at rank 1 for the reformulation",
    "whether the top document of the original query is in the result list of the reformulation",
    "reciprocal rank, in the results of the reformulation, of the top document of the original query",
    "reciprocal rank, in the results of the original query, of the top document of the reformulation",
    "share of the results of the original query that are also results of the reformulation",
    "original query: (score at rank 1 - score at rank 2) / score at rank 1",
    "original query: (score at rank 1 - score at rank 2) / score at rank 1, set to 0 if the two queries have "
    "different top documents",
    "reformulation: (score at rank 1 - score at rank 2) / score at rank 1",
    "original query: score at rank 1", "reformulation: score at rank 1",
)  # fmt: skip


def agreement(old: TopDocuments, new: TopDocuments) -> Floats:
    """The agreement of the results of candidates with the results of their originals: a column for each of LISTS.

    No judgements are used. If the top-ranked document of the original is relevant and stays at rank 1, the candidate
    loses nothing at rank 1.
    """
    depth = old.docs.shape[1]
    same = (old.docs[:, :, None] == new.docs[:, None, :]) & (old.docs[:, :, None] >= 0)
    rank_old = np.where(same[:, 0].any(axis=1), same[:, 0].argmax(axis=1), depth)
    rank_new = np.where(same[:, :, 0].any(axis=1), same[:, :, 0].argmax(axis=1), depth)
    lead, new_lead = (
        (one.scores[:, 0] - one.scores[:, 1]) / np.maximum(np.abs(one.scores[:, 0]), _ENOUGH) for one in (old, new)
    )
    columns = [
        rank_old == 0, rank_old < depth, 1.0 / (1.0 + rank_old), 1.0 / (1.0 + rank_new),
        same.any(axis=2).mean(axis=1), lead, lead * (rank_old == 0), new_lead, old.scores[:, 0], new.scores[:, 0],
    ]  # fmt: skip
    return np.column_stack(columns).astype(np.float64)


CLOSE = (
    "similarity between the original query and the reformulation",
    "similarity between the original query and the top document of the original query",
    "similarity between the original query and the top document of the reformulation",
    "similarity to the original query: whether the top document of the original query has the maximum over "
    "both result lists combined",
    "similarity to the original query: whether the top document of the reformulation has the maximum over "
    "both result lists combined",
    "similarity to the original query: maximum over both result lists combined, minus the value of the top "
    "document of the original query",
    "similarity to the original query: maximum over both result lists combined, minus the value of the top "
    "document of the reformulation",
    "similarity to the original query: maximum over the results of the reformulation, minus the maximum over the "
    "results of the original query",
    "similarity to the original query: rank-weighted mean over the results of the reformulation, minus the "
    "rank-weighted mean over the results of the original query",
)  # fmt: skip


def closeness(similar: Floats, old: Floats, new: Floats) -> Floats:
    """The similarity, by an encoder, of a query to its candidate and to the results of both (by rank).

    There is a column for each of CLOSE. Documents of a list are weighted by 1 / log2(1 + rank); a missing document
    counts as 0.
    """
    discount = 1.0 / np.log2(np.arange(old.shape[1]) + 2.0)
    whole = [(np.maximum(one, 0.0) * discount).sum(axis=1) / discount.sum() for one in (old, new)]
    nearest = np.maximum(old.max(axis=1), new.max(axis=1))
    columns = [
        similar, old[:, 0], new[:, 0], old[:, 0] >= nearest, new[:, 0] >= nearest, nearest - old[:, 0],
        nearest - new[:, 0], new.max(axis=1) - old.max(axis=1), whole[1] - whole[0],
    ]  # fmt: skip
    return np.column_stack(columns).astype(np.float64)
