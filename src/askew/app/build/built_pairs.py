"""The candidates of a build for training and evaluating selectors: texts, results, and scores against the original.

The store of a build has all candidates and their results. A published dataset has only the chosen pairs: enough to
train on, but not enough to choose among candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from askew.app.build.pairs import finished_pairs, measures_of
from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction, gain_column, new_column, old_column
from askew.core.outcome import UNKNOWN_SIGN, signs
from askew.core.ranking import Floats, Ints
from askew.core.split import part_of
from askew.corpora.parquet import parquet_frames
from askew.engine.manifest import Manifest
from askew.engine.store import Store
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.publish.checking import read_statement
from askew.publish.files import walk
from askew.publish.splits import SALT, normal
from askew.publish.withheld import no_texts
from askew.rankers.disk import StoredTexts, read_header
from askew.statistics.intervals import size_bounds
from askew.statistics.significance import Paired, paired
from askew.trainers.selector import (
    NEGATIVE,
    NEITHER,
    ORIGINAL,
    POSITIVE,
    PairTexts,
    TopDocuments,
    best_candidate,
    least_leaning,
)

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
        return {one.text: one for one in Catalogue(None, {"background": "self"}).complete(self.scored)}

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
        for name in ("fair", "negative"):
            if name not in built.table.columns:
                raise DataError(
                    f"pairs: expected the column {name!r}, which marks a subset of pairs; build the dataset with "
                    "the selector 'refairmulate'"
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
    if learns == "no-loss":
        return np.where(sign == UNKNOWN_SIGN, NEITHER, np.where(sign >= 0, POSITIVE, NEGATIVE)).astype(np.int8)
    raise ConfigError(
        f"selector: expected learns= to be 'refairmulate', 'effectiveness' or 'no-loss'; found {learns!r}"
    )


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
        """Return for each query the row of the candidate with the highest ``worth``, or ORIGINAL."""
        return self._rows(best_candidate(self.query, len(self.queries), worth, allowed))

    def least(self, lean: Floats, old: Floats, chance: Floats, threshold: float) -> Ints:
        """Return for each query the least leaning candidate with ``chance`` >= ``threshold``, or ORIGINAL."""
        return self._rows(least_leaning(self.query, len(self.queries), lean, old, chance, threshold))

    def _rows(self, chosen: Ints) -> Ints:
        return np.where(chosen == ORIGINAL, ORIGINAL, self.rows[chosen])


def as_measured(measure: str) -> str:
    """Return the name of a measure in a table of ``effects``, with bars if absolute values are used."""
    ways = {one.text: one.direction for one in Catalogue(None, {"background": "self"}).complete([measure])}
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
        new = np.where(chosen == ORIGINAL, old, built.new(measure)[chosen])
        if direction is Direction.ZERO:
            old, new, direction, bounds = np.abs(old), np.abs(new), Direction.DOWN, size_bounds(bounds)
        there = ~np.isnan(old) & ~np.isnan(new)
        limit = margin if measure == EFFECTIVENESS else None
        found[measure] = paired(old[there], new[there], direction, bounds, margin=limit)
    return found
