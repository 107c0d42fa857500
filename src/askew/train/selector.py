"""train selector: train a model that selects among the candidates of a build without judgements.

The store of a build has all candidates and their results. A published dataset has only the chosen pairs: enough to
train on, but not enough to choose among candidates. Queries are split by their words. The cross-encoder is trained on
``train`` and the probability that a candidate loses no effectiveness on ``fit``. The threshold is chosen on ``dev``,
and results are reported for ``test``. This is ``askew train selector`` as a function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from scipy.special import expit

from askew.core.address import public
from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, DataError, one_of
from askew.core.files import fingerprint, write_whole
from askew.core.folders import walk
from askew.core.measure import Direction, gain_column, new_column, old_column
from askew.core.outcome import UNKNOWN_SIGN, signs
from askew.core.ranking import Flags, Floats, Ints
from askew.core.store.manifest import Manifest
from askew.core.store.store import Store
from askew.core.tables import part_of
from askew.core.text import SALT, normal
from askew.data.columns import parquet_frames
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.statistics.curves import average_precision
from askew.measures.statistics.intervals import size_bounds
from askew.measures.statistics.significance import Paired, paired
from askew.models import MINILM, identify, load_model
from askew.pairs.dataset.checking import read_statement
from askew.pairs.dataset.splits import no_texts
from askew.pairs.stages import finished_pairs, measures_of
from askew.search.disk import StoredTexts, read_header
from askew.train.card import WORK, Card, CardTable, claim
from askew.train.common import Progress, Schedule, Trained, finished, found_before, write_held_out
from askew.train.crossencoder import CrossEncoder, Examples, RankerSettings, RankerTexts, TokenTexts, fit

LEARNS = ("refairmulate", "effectiveness", "no-loss")
PASSAGES = ("none", "separator", "literal")
LITERAL = "[SEP]"
POSITIVE, NEGATIVE, NEITHER = 1, 0, -1
KEEP_ORIGINAL = -1
_MARKS = 8
_STEPS, _ENOUGH = 100, 1e-9
# The distance of the end of a 95% interval from the mean, in standard errors.
_WIDE = 1.96


# The Refairmulate paper: learning rate 2e-5, 10% warm-up, batches of 16, one epoch, texts without passages. Its public
# inference code adds the passages.
PACE = Schedule(epochs=1.0, batch_size=16, learning_rate=2e-5, warmup=0.1, weight_decay=0.01, save_every=2000)
PRESETS: dict[str, dict[str, Any]] = {"refairmulate2025": {}, "refairmulate2025-code": {"passages": "literal"}}
_OF_ENCODER = ("learns", "passages", "model", "most_each", "text_tokens", "passage_tokens")


@dataclass(frozen=True)
class SelectorSettings:
    """How a selector is trained: the task and the input of the cross-encoder, and the lean-aware rule.

    ``most_each`` limits the examples of each label per query.
    ``lean_aware=None``: learn the lean-aware rule if the source has the data for it.
    ``similar`` is a sentence encoder for the similarity of results to the query; an empty text leaves this feature out.
    ``margin`` is the largest acceptable loss of mean effectiveness; the tests check whether a loss of this size is
    ruled out. The threshold of the lean-aware rule is chosen on dev: the lower end of the interval of the mean gain
    must be at least ``-slack``. The default of ``slack`` is 0 and not the margin, because the lowest threshold that dev
    allows is overfitted to dev.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    learns: str = "refairmulate"
    passages: str = "none"
    model: str = MINILM
    most_each: int = 4
    text_tokens: int = 48
    passage_tokens: int = 96
    pace: Schedule = PACE
    lean_aware: bool | None = None
    similar: str = MINILM
    margin: float = 0.01
    slack: float = 0.0

    def __post_init__(self) -> None:
        one_of(self.learns, LEARNS, "selector, learns")
        one_of(self.passages, PASSAGES, "selector, passages")
        if min(self.most_each, self.text_tokens, self.passage_tokens) < 1:
            raise ConfigError("selector: expected most_each=, text_tokens= and passage_tokens= to be 1 or more")
        if not 0 < self.margin < 1 or not 0 <= self.slack < 1:
            raise ConfigError(
                f"expected 0 < margin < 1 and 0 <= slack < 1, found margin={self.margin} and slack={self.slack}"
            )

    def of_encoder(self) -> dict[str, Any]:
        """The settings that determine what the cross-encoder reads and learns."""
        return {name: getattr(self, name) for name in _OF_ENCODER}

    def ranker(self) -> RankerSettings:
        """The settings of the cross-encoder."""
        side = self.text_tokens + (0 if self.passages == "none" else 1 + self.passage_tokens)
        return RankerSettings(self.model, most_tokens=2 * side + _MARKS, most_left_tokens=side)


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
    candidates = [texts.candidates[row] for row in rows.tolist()]
    left, right = (TokenTexts.of(tokenizer, side, settings.text_tokens) for side in (texts.originals, candidates))
    if settings.passages == "none":
        return left, right
    if texts.passages is None or texts.first is None or texts.candidate_first is None:
        raise ConfigError(
            "selector: passages= needs the text of the top-ranked document of each query, but the data has none; "
            "train on a store that has runs and an index with the texts of the documents"
        )
    mine = texts.candidate_first[rows]
    if settings.passages == "literal":
        most = settings.text_tokens + 1 + settings.passage_tokens
        lefts, rights = (
            [f"{text}{LITERAL}{texts.passages[doc]}" for text, doc in zip(side, first.tolist(), strict=True)]
            for side, first in ((texts.originals, texts.first), (candidates, mine))
        )
        return TokenTexts.of(tokenizer, lefts, most), TokenTexts.of(tokenizer, rights, most)
    passage_tokens = TokenTexts.of(tokenizer, texts.passages, settings.passage_tokens)
    mark = int(tokenizer.sep_token_id)
    return (
        left.joined(mark, passage_tokens, np.arange(len(texts.originals)), texts.first),
        right.joined(mark, passage_tokens, np.arange(len(rows)), mine),
    )


def fit_selector(
    texts: PairTexts, labels: npt.NDArray[Any], settings: SelectorSettings, work: Path, device: str | None = None,
    identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> CrossEncoder:  # fmt: skip
    """Train a cross-encoder to distinguish candidates labeled POSITIVE and NEGATIVE; other rows are not used."""
    lost = [name for label, name in ((POSITIVE, "positive"), (NEGATIVE, "negative")) if not (labels == label).any()]
    if lost:
        raise DataError(
            f"selector: no pair of query and reformulation in the training data has the label {lost[0]!r} for the "
            f"task {settings.learns!r}; use more queries"
        )
    rows = sample(texts.query, labels, settings.most_each, settings.pace.seed)
    examples = Examples(texts.query[rows], np.arange(len(rows))[:, None], labels[rows].astype(np.float64)[:, None])
    about = {"selector": settings.of_encoder(), **(identity or {})}

    def tokens(tokenizer: Any) -> tuple[TokenTexts, TokenTexts]:
        return pair_tokens(tokenizer, texts, settings, rows)

    encoder, pace = settings.ranker(), settings.pace
    return fit(RankerTexts((), ()), examples, encoder, pace, work, device, about, progress, tokens)


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
            chance = expit(columns @ weights)
            slope = columns.T @ (truth - chance) - penalty * weights
            bend = (columns * (chance * (1 - chance))[:, None]).T @ columns + np.diag(penalty + _ENOUGH)
            step = np.linalg.solve(bend, slope)
            weights = weights + step
            if np.abs(step).max() < _ENOUGH:
                break
        return cls(tuple(names), mean, spread, weights[:-1], float(weights[-1]))

    def of(self, features: Floats) -> Floats:
        """The probability of each row."""
        return np.asarray(expit((features - self.mean) / self.spread @ self.weights + self.bias))

    def facts(self) -> dict[str, Any]:
        """The regression as JSON values."""
        numbers = {name: getattr(self, name).tolist() for name in ("mean", "spread", "weights")}
        return {"names": list(self.names), **numbers, "bias": self.bias}

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Chance:
        """Read a regression from the values of ``facts``."""
        mean, spread, weights = (np.asarray(facts[name], np.float64) for name in ("mean", "spread", "weights"))
        return cls(tuple(facts["names"]), mean, spread, weights, float(facts["bias"]))


def best_candidate(query: Ints, queries: int, worth: Floats, allowed: Flags | None = None) -> Ints:
    """For each query, the allowed row with the highest worth (of equals the first); KEEP_ORIGINAL if there is none."""
    rows = np.arange(len(query)) if allowed is None else np.flatnonzero(allowed)
    order = rows[np.lexsort((rows, -worth[rows], query[rows]))]
    first = np.r_[True, query[order][1:] != query[order][:-1]] if len(order) else np.zeros(0, np.bool_)
    chosen = np.full(queries, KEEP_ORIGINAL, np.int64)
    chosen[query[order][first]] = order[first]
    return chosen


def least_leaning(
    query: Ints, queries: int, lean: Floats, original_lean: Floats, chance: Floats, threshold: float
) -> Ints:
    """For each query, the candidate with the least lean of its results; KEEP_ORIGINAL if no candidate is eligible.

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
        gains = np.where(chosen == KEEP_ORIGINAL, 0.0, gain[chosen])
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


EFFECTIVENESS, LEAN = "RR@10", "ARaB(tf)@10"
# The parts of the queries: to train the model, to fit its probabilities, to choose thresholds, and to report results.
SHARES = {"train": 0.5, "fit": 0.1, "dev": 0.1, "test": 0.3}
DEPTH = 10
_NEEDED = ("query_id", "variant_id", "text", "original_text")


@dataclass(frozen=True)
class Built:
    """The candidates of a dataset.

    ``query`` has the number of the query of each row. ``whole`` is true if no candidate is left out, so that a choice
    among them is the same as at query time. ``scored`` has the texts of the measures.
    """

    table: pl.DataFrame
    query: Ints
    query_ids: Sequence[str]
    originals: Sequence[str]
    whole: bool
    found: tuple[TopDocuments, TopDocuments] | None = None
    index: Path | None = None
    scored: Sequence[str] = field(default=(), kw_only=True)

    @cached_property
    def measures(self) -> dict[str, MeasureRequest]:
        """The measures of originals and candidates, by text."""
        return {one.text: one for one in Catalogue().complete(self.scored)}

    @cached_property
    def first(self) -> Ints:
        """The first row of each query."""
        return np.searchsorted(self.query, np.arange(len(self.query_ids)))

    def new(self, measure: str) -> Floats:
        """Return the values of a measure by candidate."""
        return self._column(new_column(measure))

    def old(self, measure: str) -> Floats:
        """Return the values of a measure for the original queries, by query."""
        return self._column(old_column(measure))[self.first]

    def gain(self, measure: str) -> Floats:
        """Return the gain of each candidate over its original."""
        return self._column(gain_column(measure))

    def _column(self, name: str) -> Floats:
        if name not in self.table.columns:
            raise DataError(f"pairs: expected the column {name!r}, found {', '.join(self.table.columns)}")
        return self.table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    def parts(self, shares: Mapping[str, float] | None = None) -> npt.NDArray[np.str_]:
        """Return the part of each query: the split of the published dataset, or one by the normalized text.

        Queries with the same normalized text are in the same part.
        """
        if "split" in self.table.columns:
            return self.table["split"].gather(self.first).to_numpy().astype(np.str_)
        return np.array([part_of(normal(text), shares or SHARES, SALT) for text in self.originals])

    def texts(self, with_passages: bool = True) -> PairTexts:
        """Return the input texts of a cross-encoder, with the top-ranked passages if the store has runs and texts."""
        candidates = self.table["text"].to_list()
        if self.found is None or self.index is None or not with_passages:
            return PairTexts(self.originals, candidates, self.query)
        kept = StoredTexts(self.index, read_header(self.index)["documents"])
        firsts = [found.docs[:, 0] for found in self.found]
        used, places = np.unique(np.concatenate(firsts), return_inverse=True)
        passages = ["" if doc < 0 else kept[doc] for doc in used.tolist()]
        ends = len(firsts[0])
        return PairTexts(self.originals, candidates, self.query, passages, places[:ends], places[ends:])


def read_built(source: Path) -> Built:
    """Read candidates from the store of a build, or from a published dataset (only the chosen pairs)."""
    if (source / "askew.json").is_file():
        stated = read_statement(walk(source)[0]).facts
        return built_of(published_pairs(source), [one.name for one in stated.measures], whole=False)
    store = Store(source)
    steps = {manifest.key: manifest for manifest in store.steps()}
    pairs = finished_pairs(store)
    if len(pairs) != 1:
        raise DataError(
            f"{source}: expected a published dataset, or a store with one finished step 'pairs', found {len(pairs)}; "
            "make one with askew run RECIPE --store FOLDER"
        )
    table = _read(store, pairs[0], None)
    runs = steps.get(steps[pairs[0].input_key].input_key) if pairs[0].input_key in steps else None
    built = built_of(table, measures_of(pairs[0]), whole=True)
    if runs is None:
        return built
    found = _found(_read(store, runs, ["query_id", "variant_id", "doc", "score"]), built)
    indexes = sorted(source.glob("index-bm25-*"))
    return replace(built, found=found, index=indexes[0] if len(indexes) == 1 else None)


def published_pairs(folder: Path) -> pl.DataFrame:
    """Read all pairs of a dataset, with the texts of the original queries and the split of each pair."""
    files = sorted((folder / "data").glob("*.parquet"))
    if not files:
        raise DataError(f"{folder}: expected a published dataset with files below data/, found none")
    parts = zip(files, parquet_frames(files, "dataset"), strict=True)
    pairs = pl.concat(frame.with_columns(split=pl.lit(file.name.partition("-")[0])) for file, frame in parts)
    if "original_text" in pairs.columns and pairs["original_text"].null_count():
        raise no_texts(folder)
    return pairs


def _read(store: Store, manifest: Manifest, columns: list[str] | None) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(manifest, columns))))


def built_of(table: pl.DataFrame, scored: Sequence[str], whole: bool) -> Built:
    """Make candidates from a table with one row for each candidate; ``scored`` has the texts of its measures."""
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise DataError(f"pairs: expected the column {missing[0]!r}, found {', '.join(table.columns)}")
    if not table.height:
        raise DataError("pairs: expected at least one pair, found none")
    if table["original_text"].null_count():
        raise no_texts("pairs")
    ids = table["query_id"].unique(maintain_order=True)
    numbers = pl.DataFrame({"query_id": ids, "_query": np.arange(len(ids))})
    joined = table.join(numbers, on="query_id", maintain_order="left").sort("_query", maintain_order=True)
    originals = joined.group_by("_query", maintain_order=True).agg(pl.col("original_text").first())["original_text"]
    numbered = joined["_query"].to_numpy()
    return Built(joined.drop("_query"), numbered, ids.to_list(), originals.to_list(), whole, scored=scored)


def _found(runs: pl.DataFrame, built: Built) -> tuple[TopDocuments, TopDocuments]:
    """Return the top-ranked documents of each original and each candidate."""
    cut = runs.select("variant_id", doc=pl.col("doc").list.head(DEPTH), value=pl.col("score").list.head(DEPTH))
    wanted = (pl.Series("variant_id", built.query_ids), built.table["variant_id"])
    original, candidate = (
        _matrix(name.to_frame().join(cut, on="variant_id", how="left", maintain_order="left")) for name in wanted
    )
    return original, candidate


def _matrix(lists: pl.DataFrame) -> TopDocuments:
    lengths = lists["doc"].list.len().fill_null(0).to_numpy()
    there = np.arange(DEPTH) < lengths[:, None]
    docs, scores = np.full(there.shape, -1, np.int64), np.zeros(there.shape)
    docs[there] = lists["doc"].explode().drop_nulls().to_numpy()
    scores[there] = lists["value"].explode().drop_nulls().to_numpy()
    return TopDocuments(docs, scores)


def labels_for(built: Built, learns: str) -> npt.NDArray[np.int8]:
    """Return the training label of each candidate: POSITIVE, NEGATIVE or NEITHER."""
    if learns == "refairmulate":
        missing = [name for name in ("fair", "negative") if name not in built.table.columns]
        if missing:
            raise DataError(
                f"pairs: expected the column {missing[0]!r}, which marks a subset of pairs; build the dataset with the "
                "selector 'refairmulate'"
            )
        fair, negative = (built.table[name].to_numpy().astype(bool) for name in ("fair", "negative"))
        if not (negative & ~fair).any():
            raise DataError(
                "pairs: expected negative pairs (pairs whose reformulation worsens effectiveness or lean), found "
                "none. A selector cannot be trained on positive examples alone. "
                "Build the dataset with the selector 'refairmulate', which marks negative pairs"
            )
        return np.where(fair, POSITIVE, np.where(negative, NEGATIVE, NEITHER)).astype(np.int8)
    sign = signs(built.gain(EFFECTIVENESS))
    if learns == "effectiveness":
        return np.where(sign == 1, POSITIVE, np.where(sign == -1, NEGATIVE, NEITHER)).astype(np.int8)
    one_of(learns, LEARNS, "selector, learns")
    return np.where(sign == UNKNOWN_SIGN, NEITHER, np.where(sign >= 0, POSITIVE, NEGATIVE)).astype(np.int8)


@dataclass(frozen=True)
class QuerySubset:
    """The queries of one part, the rows of their candidates, and the query of each row, numbered within the part."""

    queries: Ints
    rows: Ints
    query: Ints

    @classmethod
    def of(cls, built: Built, parts: npt.NDArray[np.str_], name: str) -> QuerySubset:
        """Select one part of a split by query."""
        queries = np.flatnonzero(parts == name)
        rows = np.flatnonzero(parts[built.query] == name)
        if not len(queries):
            raise DataError(
                f"selector: none of the {len(parts)} queries is in the split {name!r}; build a dataset with more "
                "queries"
            )
        return cls(queries, rows, np.searchsorted(queries, built.query[rows]))

    def best(self, worth: Floats, allowed: npt.NDArray[np.bool_] | None = None) -> Ints:
        """Return for each query the row of the candidate with the highest ``worth``, or KEEP_ORIGINAL."""
        return self.row_of(best_candidate(self.query, len(self.queries), worth, allowed))

    def row_of(self, chosen: Ints) -> Ints:
        """The rows of chosen candidates, which are numbered within the part."""
        return np.where(chosen == KEEP_ORIGINAL, KEEP_ORIGINAL, self.rows[chosen])


def as_measured(measure: str) -> str:
    """Return the name of a measure in a table of ``effects``, with bars if absolute values are used."""
    ways = {one.text: one.direction for one in Catalogue().complete([measure])}
    return f"|{measure}|" if ways.get(measure) is Direction.ZERO else measure


def effects(built: Built, part: QuerySubset, chosen: Ints, margin: float) -> dict[str, Paired]:
    """Compare the chosen rows with the original queries of a part, by each measure.

    Signed lean is compared by its absolute value per query. A query is left out of a measure if the original or the
    chosen query has no value. ``margin`` is the largest loss of effectiveness that is considered negligible.
    """
    found = {}
    for measure, asked in built.measures.items():
        direction, bounds = asked.direction, asked.bounds
        old = built.old(measure)[part.queries]
        new = np.where(chosen == KEEP_ORIGINAL, old, built.new(measure)[chosen])
        if direction is Direction.ZERO:
            old, new, direction, bounds = np.abs(old), np.abs(new), Direction.DOWN, size_bounds(bounds)
        there = ~np.isnan(old) & ~np.isnan(new)
        limit = margin if measure == EFFECTIVENESS else None
        found[measure] = paired(old[there], new[there], direction, bounds, margin=limit)
    return found


RULE = "selector.json"
CROSS_ENCODER, LEAN_AWARE = "cross-encoder", "lean-aware"
# What the model card says about the training pairs of each task (the setting ``learns``).
_LESS = "In a negative pair, the reformulation is less effective than the original query."
_PAIRS = {
    "refairmulate": "The positive pairs are the subset 'fair' of the dataset: the reformulation is effective and its "
    "results lean less. The negative pairs are those that the dataset marks as negative.",
    "effectiveness": f"In a positive pair, the reformulation is more effective than the original query. {_LESS}",
    "no-loss": f"In a positive pair, the reformulation is at least as effective as the original query. {_LESS}",
}

_LIMITS = ("Lean is measured by counting the words of a lexicon; such words are not bias by themselves.",)
_CHOICE_LIMITS = (
    *_LIMITS,
    f"The rule 'lean-aware' selects reformulations by the {LEAN} of their results. A comparison by {LEAN} therefore "
    f"favors this rule over rules that do not use {LEAN}.",
    "The row 'oracle' uses the relevance judgements to choose reformulations, so it is not a selector. The null "
    "hypothesis of 'p' is that the mean gain is 0. The null hypothesis of 'p (non-inferiority)' is that the mean "
    "loss is at least as large as the setting 'margin'. Neither p-value is corrected for the number of tests.",
)  # fmt: skip


def train_selector(
    data: str | Path | Built, out: Path, settings: SelectorSettings | None = None, device: str | None = None,
    command: str = "", progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train a selector on the candidates of a store or a published dataset, and measure it on held-out queries."""
    built = data if isinstance(data, Built) else read_built(Path(data))
    given = settings or SelectorSettings()
    able = built.whole and built.found is not None
    if given.lean_aware and not able:
        found = "this store has no search results" if built.whole else "the source is a published dataset"
        raise DataError(
            f"selector: the rule 'lean-aware' needs a store with the results of all reformulations, but {found}; "
            "give the store of the build, or train without this rule"
        )
    given = replace(given, lean_aware=able if given.lean_aware is None else given.lean_aware)
    parts = built.parts()
    labels = np.where(parts[built.query] == "train", labels_for(built, given.learns), NEITHER)
    data_of = [list(built.originals), built.table["text"].to_list(), built.query.tolist(), labels.tolist()]
    identity: dict[str, Any] = {
        "data": fingerprint(data_of), "weights": identify(given.model), "settings": given.of_encoder(),
        **{name: value for name, value in asdict(given).items() if name not in _OF_ENCODER},
        "encoder": identify(given.similar) if given.lean_aware and given.similar else "",
    }  # fmt: skip
    before = claim(out, identity)
    if before is not None:
        return found_before(out, before)
    texts = built.texts(given.passages != "none")
    encoder = fit_selector(texts, labels, given, out / WORK, device, identity, progress)
    held_out = np.flatnonzero(parts[built.query] != "train")
    scores = np.full(len(built.query), np.nan)
    scores[held_out] = score_candidates(encoder, texts, given, held_out)
    rule, figures, tables = _measure(built, parts, scores, given, encoder.device)
    counts = {name: int((parts == name).sum()) for name in sorted(set(parts.tolist()))}
    examples = len(sample(built.query, labels, given.most_each, given.pace.seed))
    encoder.save(out)
    tested = np.flatnonzero(parts == "test").tolist()
    write_held_out(out, [built.query_ids[one] for one in tested], [built.originals[one] for one in tested])
    write_whole(out / RULE, json.dumps({"settings": public(given.of_encoder()), LEAN_AWARE: rule}, indent=1) + "\n")
    measured = {"queries": counts, "examples": examples, "margin": given.margin, **figures}
    return finished(out, _card(measured, tables, given, identity, encoder.device, command))


@dataclass(frozen=True)
class Close:
    """Cosines of original queries with candidates, with the results of the query and with those of candidates."""

    candidate: Floats
    old: Floats
    new: Floats


def closeness_of(built: Built, rows: Ints, model: str, device: str | None = None) -> Close:
    """The cosines for some candidates, with a sentence encoder."""
    if built.found is None or built.index is None:
        lost = "search results" if built.found is None else "index with the texts of documents"
        raise DataError(f"selector: the source has no {lost}; give the store of a build")
    encoder = load_model("dense", model, None, device)
    kept = StoredTexts(built.index, read_header(built.index)["documents"])
    lists = built.found[0].docs, built.found[1].docs[rows]
    used = np.unique(np.concatenate([one[one >= 0] for one in lists]))
    candidates = built.table["text"].gather(rows).to_list()
    count_model_calls(len(used) + len(built.originals) + len(candidates))
    docs, originals, others = (
        encoder.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
        for texts in ([kept[doc] for doc in used.tolist()], list(built.originals), candidates)
    )
    query = built.query[rows]
    sides = [
        _cosines(docs, used, one, originals[at])
        for one, at in zip(lists, (np.arange(len(originals)), query), strict=True)
    ]
    return Close(np.einsum("ij,ij->i", others, originals[query]).astype(np.float64), *sides)


def _cosines(docs: Any, used: Ints, lists: Ints, vectors: Any) -> Floats:
    """The cosine of each query with the documents of its list; -1 where there is no document."""
    places = np.searchsorted(used, np.maximum(lists, used[0] if len(used) else 0))
    columns = [np.einsum("ij,ij->i", docs[places[:, k]], vectors) for k in range(lists.shape[1])]
    return np.where(lists >= 0, np.stack(columns, axis=1), -1.0)


def features(
    built: Built, rows: Ints, scores: Mapping[str, Floats], close: Close | None = None
) -> tuple[tuple[str, ...], Floats]:
    """The features for the probability of no loss, for some candidates: names and columns. They use no judgements."""
    if built.found is None:
        raise DataError(
            "selector: expected a store with runs, to compare the results of the original query and the reformulation; "
            "found no runs; give the store of a build"
        )
    query = built.query[rows]
    old, new = built.found
    names, columns = [*LISTS], [agreement(old.at(query), new.at(rows))]
    if close is not None:
        names += CLOSE
        columns.append(closeness(close.candidate, close.old[query], close.new))
    names += [f"score of {name}" for name in scores]
    return tuple(names), np.column_stack([*columns, *scores.values()])


def _measure(
    built: Built, parts: npt.NDArray[np.str_], scores: Floats, job: SelectorSettings, device: str
) -> tuple[dict[str, Any] | None, dict[str, Any], tuple[CardTable, ...]]:
    """The lean-aware rule, the measures of each rule's selections on the test part, and both as tables."""
    test = QuerySubset.of(built, parts, "test")
    apart = _told_apart(built, test, scores, job.learns)
    if not built.whole:
        return None, {"told apart": apart}, (_apart_table(apart),)
    chosen = {**usual_choices(built, test, job.pace.seed), CROSS_ENCODER: test.best(scores[test.rows])}
    rule = None
    if job.lean_aware:
        held = np.flatnonzero(parts[built.query] != "train")
        close = closeness_of(built, held, job.similar, device) if job.similar else None
        chances, rule = learn_chance(built, parts, held, {CROSS_ENCODER: scores[held]}, close, job.slack)
        if close is not None:
            near = np.full(len(scores), np.nan)
            near[held] = close.candidate
            chosen["most similar"] = test.best(near[test.rows])
        rule["similar"] = job.similar
        chosen[LEAN_AWARE] = choose_lean_aware(built, test, chances, rule["threshold"])
    chosen["oracle"] = chosen.pop("oracle")  # move the oracle to the end
    found = {name: effects(built, test, rows, job.margin) for name, rows in chosen.items()}
    choices = {
        name: {"changed": int((chosen[name] != KEEP_ORIGINAL).sum()), **{m: asdict(one) for m, one in tests.items()}}
        for name, tests in found.items()
    }
    measured: dict[str, Any] = {"told apart": apart, "choices": choices}
    tables = [_choices_table(chosen, found), _apart_table(apart)]
    if rule is not None:
        measured["threshold"] = rule["threshold"]
        weights = zip(rule["chance"]["names"], rule["chance"]["weights"], strict=True)
        tables.append(
            CardTable(
                "Weights of the features in the logistic regression that estimates the probability of a reformulation "
                "being at least as effective as the original query",
                ("feature", "weight"),
                tuple(weights),
            )
        )
    return rule, measured, tuple(tables)


def usual_choices(built: Built, part: QuerySubset, seed: int = 7) -> dict[str, Ints]:
    """The baselines of a selector: the original query, a random candidate, and an oracle that reads the judgements.

    The oracle selects the candidate with the largest sum of the gains in effectiveness and lean, among those without a
    loss in either.
    """
    random = np.random.default_rng([seed, len(part.rows)]).random(len(part.rows))
    both = np.stack([built.gain(measure)[part.rows] for measure in (EFFECTIVENESS, LEAN)])
    allowed = (both >= 0).all(axis=0) & (both.sum(axis=0) > 0)
    return {
        "original": np.full(len(part.queries), KEEP_ORIGINAL), "random": part.best(random),
        "oracle": part.best(both.sum(axis=0), allowed),
    }  # fmt: skip


def learn_chance(
    built: Built, parts: npt.NDArray[np.str_], rows: Ints, scores: Mapping[str, Floats], close: Close | None,
    slack: float,
) -> tuple[Floats, dict[str, Any]]:  # fmt: skip
    """Learn the probability of no loss on the part ``fit``, from candidates that lean less than their original.

    Returns the probabilities by row of all candidates (NaN outside ``rows``), and the rule: the weights, and the
    threshold chosen on ``dev``.
    """
    names, columns = features(built, rows, scores, close)
    gain = built.gain(EFFECTIVENESS)
    learned = (parts[built.query[rows]] == "fit") & (built.gain(LEAN)[rows] > 0)
    chance = Chance.fit(names, columns[learned], gain[rows][learned] >= 0)
    chances = np.full(len(built.query), np.nan)
    chances[rows] = chance.of(columns)
    dev = QuerySubset.of(built, parts, "dev")

    def choose(threshold: float) -> Ints:
        return choose_lean_aware(built, dev, chances, threshold)

    return chances, {"chance": chance.facts(), "threshold": choose_threshold(choose, len(dev.queries), gain, slack)}


def choose_lean_aware(built: Built, part: QuerySubset, chances: Floats, threshold: float) -> Ints:
    """For each query, the candidate with the least lean among those above the threshold, or else KEEP_ORIGINAL."""
    lean, old = np.abs(built.new(LEAN))[part.rows], np.abs(built.old(LEAN))[part.queries]
    chosen = least_leaning(part.query, len(part.queries), lean, old, chances[part.rows], threshold)
    return part.row_of(chosen)


def read_rule(folder: Path) -> dict[str, Any]:
    """The settings of a trained selector, and its lean-aware rule if it has one."""
    if not (folder / RULE).is_file():
        raise DataError(f"{folder}: expected a folder of askew train selector with {RULE}, found none")
    try:
        found = json.loads((folder / RULE).read_text(encoding="utf-8"))
        return {"settings": dict(found["settings"]), LEAN_AWARE: found[LEAN_AWARE]}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{folder / RULE}: the file cannot be read ({type(error).__name__}); train the selector again"
        ) from None


def choose(folder: Path, built: Built, rule: str = LEAN_AWARE, device: str | None = None) -> Ints:
    """The row that a trained selector selects for each query, or KEEP_ORIGINAL, without judgements."""
    found = read_rule(folder)
    settings = SelectorSettings(**{**found["settings"], "model": str(folder)})
    rows = np.arange(len(built.query))
    texts = built.texts(settings.passages != "none")
    encoder = CrossEncoder.load(settings.ranker(), device)
    count_model_calls(len(rows))
    scores = score_candidates(encoder, texts, settings, rows)
    every = QuerySubset(np.arange(len(built.query_ids)), rows, built.query)
    if rule == CROSS_ENCODER:
        return every.best(scores)
    kept = found[LEAN_AWARE]
    if rule != LEAN_AWARE or kept is None:
        raise ConfigError(
            f"selector {folder}: this selector was not trained for the rule {rule!r}; use the rule {CROSS_ENCODER!r}"
        )
    close = closeness_of(built, rows, kept["similar"], encoder.device) if kept["similar"] else None
    _, columns = features(built, rows, {CROSS_ENCODER: scores}, close)
    return choose_lean_aware(built, every, Chance.read(kept["chance"]).of(columns), kept["threshold"])


def _told_apart(built: Built, test: QuerySubset, scores: Floats, learns: str) -> dict[str, Any]:
    """How well the scores separate held-out positive and negative pairs: average precision, and the random baseline."""
    labels = labels_for(built, learns)[test.rows]
    known = labels != NEITHER
    truth = (labels[known] == POSITIVE).astype(np.int64)
    if not 0 < truth.sum() < len(truth):
        raise DataError(
            "selector: expected positive and negative pairs of query and reformulation in the test part, found only "
            "one of these two kinds; build pairs of more queries"
        )
    queries = [built.query_ids[query] for query in built.query[test.rows][known].tolist()]
    found = average_precision(scores[test.rows][known], truth, queries)
    return {**asdict(found), "pairs": int(known.sum()), "positive": float(truth.mean())}


def _apart_table(found: Mapping[str, Any]) -> CardTable:
    columns = ("pairs", "queries", "average precision", "95% interval", "random baseline")
    interval = f"{found['low']:.4f} to {found['high']:.4f}"
    row = (found["pairs"], found["queries"], found["value"], interval, found["positive"])
    return CardTable(
        "How well the selector separates positive and negative pairs (defined above) of held-out queries",
        columns,
        (row,),
    )


def _choices_table(chosen: Mapping[str, Ints], found: Mapping[str, Mapping[str, Paired]]) -> CardTable:
    rows = []
    for name, tests in found.items():
        main = tests[EFFECTIVENESS]
        cells = [
            f"{one.new:.4f}, gain {one.gain:+.4f} " + ("" if one.low is None else f"[{one.low:+.4f}, {one.high:+.4f}]")
            for one in tests.values()
        ]
        counts = int((chosen[name] != KEEP_ORIGINAL).sum()), main.improved, main.worsened
        rows.append((name, main.n, *counts, _p(main.p), _p(main.p_no_loss), *cells))
    names = ("choice", "n", "changed", "improved", "worsened", "p", "p (non-inferiority)")
    return CardTable(
        "Reformulations chosen for held-out queries: mean of each measure, and mean gain over the original query with "
        "its 95% interval",
        (*names, *map(as_measured, found["original"])),
        tuple(rows),
    )


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _card(
    measured: Mapping[str, Any], tables: tuple[CardTable, ...], job: SelectorSettings, identity: Mapping[str, Any],
    device: str, command: str,
) -> Card:  # fmt: skip
    return Card(
        title="A selector of query reformulations",
        about="A cross-encoder that reads a query and a reformulation of this query. It was trained to separate "
        f"positive and negative pairs of query and reformulation. {_PAIRS[job.learns]} Use it with "
        "`askew bench COLLECTION --method reformulate:METHOD:FOLDER --queries FOLDER/held-out.jsonl`.",
        command=command, base=str(identity["weights"]), data=({"pairs": identity["data"]},), seed=job.pace.seed,
        settings={**job.of_encoder(), **asdict(job.pace), "margin": job.margin, "slack": job.slack}, device=device,
        measured=measured, tables=tables, limits=_CHOICE_LIMITS if "choices" in measured else _LIMITS,
        extra={"identity": identity},
    )  # fmt: skip
