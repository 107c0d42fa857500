"""Publish a finished build as a dataset: the chosen pairs, with the facts of the build."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core.address import local_paths, public, public_settings
from askew.core.errors import ConfigError, DataError
from askew.core.measure import column_of, gain_column, held_out_gain_column, new_column, old_column, pair_columns
from askew.core.outcome import UNKNOWN_SIGN, joint_signs
from askew.core.store.manifest import Manifest
from askew.core.version import __version__
from askew.pairs.boxes import agg_all
from askew.pairs.dataset.facts import BOXES, PLAIN, REFAIRMULATE, SUBSETS
from askew.pairs.dataset.layouts import Tables
from askew.pairs.dataset.release import Published, publish
from askew.pairs.figures import CROSS, Results, counted_groups, held_out_gains
from askew.pairs.gains import COLUMNS, find_measures, make_pairs
from askew.pairs.held_out import STEP as HELD_OUT_STEP
from askew.pairs.resources import frames_of, query_parts, step_parts
from askew.pairs.stages import SOURCE_JUDGED, Evaluate, judged_note, with_originals

# The approximate number of rows of a bucket; one bucket is in memory at a time.
ROWS = 1 << 15
_BUCKET = "_bucket"
UNSELECTED = "the pair is in no subset"


class QueryBuckets:
    """Queries sorted by id, in buckets of about the same number of rows; the rows are in temporary files.

    ``ids`` yields the query ids of the rows of the first table, in any order; ``rows`` is the number of these rows.
    """

    def __init__(self, ids: Iterable[pl.Series], rows: int = ROWS) -> None:
        pieces = [one.value_counts(name="rows") for one in ids]
        schema = {"query_id": pl.String, "rows": pl.UInt32}
        counts = pl.concat(pieces).cast({"rows": pl.UInt32}) if pieces else pl.DataFrame(schema=schema)
        counts = counts.group_by("query_id").sum().sort("query_id")
        before = counts["rows"].cast(pl.Int64).cum_sum().to_numpy() - counts["rows"].to_numpy()
        self.rows = int(counts["rows"].sum())
        self._of = counts.select("query_id", pl.Series(_BUCKET, (before // rows).astype(np.int32)))
        self._numbers = self._of[_BUCKET].unique().sort().to_list()
        self._folder = tempfile.TemporaryDirectory(prefix="askew-")
        self._empty: dict[str, pl.DataFrame] = {}

    @property
    def queries(self) -> pl.Series:
        """All query ids, sorted."""
        return self._of["query_id"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._folder.cleanup()

    def put(self, table: str, frames: Iterable[pl.DataFrame]) -> None:
        """Write the rows of a table to the buckets of their queries; rows of unknown queries are left out."""
        for frame in frames:
            self._empty.setdefault(table, frame.clear())
            named = frame.join(self._of, on="query_id", how="inner", maintain_order="left")
            parts = named.partition_by(_BUCKET, as_dict=True, include_key=False, maintain_order=True)
            for (bucket,), part in parts.items():
                rows = part.to_arrow()
                with self._path(table, bucket).open("ab") as file, pa.ipc.new_stream(file, rows.schema) as stream:
                    stream.write_table(rows)

    def _path(self, table: str, bucket: object) -> Path:
        return Path(self._folder.name) / f"{table}-{bucket}"

    def __iter__(self) -> Iterator[dict[str, pl.DataFrame]]:
        """Yield the tables of each bucket, with rows in the order in which they were added."""
        if not self._numbers:
            yield dict(self._empty)
        for bucket in self._numbers:
            yield {table: self._read(table, bucket) for table in self._empty}

    def _read(self, table: str, bucket: int) -> pl.DataFrame:
        path = self._path(table, bucket)
        if not path.exists():
            return self._empty[table]
        found = []
        with pa.OSFile(str(path)) as file:
            while file.tell() < file.size():
                found.append(pl.DataFrame(pl.from_arrow(pa.ipc.open_stream(file).read_all())))
        return pl.concat(found)


_GROUPED = {"group", "label", "score", *SUBSETS}
_PAIRS = "pairs"
# The columns of the held-out values of each subset and measure in a release.
_HELD_OUT = (
    "subset", "measure", "figures", "held_out_pairs", "held_out_queries", "old_mean", "new_mean", "change", "low",
    "high", "in_sample_change", "in_sample_low", "in_sample_high",
)  # fmt: skip


class Release:
    """Makes a release from the steps of a finished build and its selector.

    ``license`` replaces the license that the recipe states.
    """

    def __init__(self, results: Results, license: str | None = None) -> None:
        self.results, self.build, self.outcomes = results, results.build, results.outcomes
        self.store, build = results.store, results.build
        if build.select is None:
            raise ConfigError(f"publish: the recipe {build.recipe.name!r} selects no pairs; add a section [select]")
        self.stated = build.recipe.table("publish") | ({} if license is None else {"license": license})
        self.stage, self.selector = build.select, build.select.selector
        self.ranker = str(build.recipe.table("retrieve").get("ranker", "bm25"))
        self.others = [
            step.name for step in build.plan.steps if step.name.startswith(CROSS) and isinstance(step.stage, Evaluate)
        ]
        self.chosen_by = list(find_measures(self.selector.measures(), build.evaluate.directions, "publish"))

    def publish(self, out: Path) -> Published:
        """Publish the pairs of every subset of the build, including negative samples if they are a subset."""
        every = step_parts(self.store, self.manifest(_PAIRS))
        is_grouped = set(every.columns) >= _GROUPED and tuple(self.selector.subsets) == SUBSETS
        facts = self.facts(REFAIRMULATE if is_grouped else BOXES if self.selector.name == "boxes" else PLAIN)
        if judged := judged_note(self.stage, every):
            facts["judged_sources"] = judged
        tables = self.repair(facts) if facts["scheme"] == BOXES else None
        if self.others:
            facts["robust_rankers"] = [self.ranker, *(name.removeprefix(CROSS) for name in self.others)]
            facts["robust_measures"] = list(self.selector.measures())
        if "held_out" in facts:
            facts["held_out_gains"] = self.chosen_by
        # The settings of the methods are in the recipe; repeated in every row, they would be most of the file.
        columns = [name for name in every.columns if name != "settings"]
        chosen = every.filter(pl.any_horizontal(*self.selector.subsets))
        with QueryBuckets(frame["query_id"] for frame in chosen.frames(["query_id"])) as buckets:
            unselected = self.manifest(_PAIRS).rows_out - buckets.rows
            if unselected:
                facts["dropped"][f"publish: {UNSELECTED}"] = unselected
            contexts = self.contexts(buckets.queries)
            buckets.put(_PAIRS, chosen.frames(columns))
            if "held_out" in facts:
                buckets.put(HELD_OUT_STEP, self.held_out_gains())
            for step in self.others:
                buckets.put(step, frames_of(self.store, self.outcomes[step].manifest))

            def blocks() -> Iterator[pl.DataFrame]:
                keys = ["query_id", "variant_id"]
                for tables in buckets:
                    pairs = self.with_robust(tables[_PAIRS], tables) if self.others else tables[_PAIRS]
                    if HELD_OUT_STEP in tables:
                        # The gain in the half of the documents that did not choose the pair; null if no half chose it.
                        pairs = pairs.join(tables[HELD_OUT_STEP], on=keys, how="left", maintain_order="left")
                    if contexts is not None:
                        pairs = pairs.join(contexts, on="query_id", how="left", maintain_order="left")
                    yield pairs.rename(self.public_columns())

            return replace(publish(blocks, self.public(facts), out, repair=tables), unselected=unselected)

    def manifest(self, step: str) -> Manifest:
        """Return the manifest of a step, which must have rows."""
        manifest = self.outcomes[step].manifest
        if not manifest.parts:
            raise DataError(f"publish: no row reached the step {step!r}; askew run shows where the rows were dropped")
        return manifest

    def public(self, facts: Any) -> Any:
        """Return the facts without local paths."""
        return public(facts, local_paths(self.build.recipe.sections))

    def public_columns(self) -> dict[str, str]:
        """Return new names for columns of measures that contain a local path, such as the file of a lexicon."""
        texts = {one.text: self.public(one.text) for one in self.build.evaluate.asked}
        found = (zip(pair_columns(text), pair_columns(shown), strict=True) for text, shown in texts.items())
        gains = [(held_out_gain_column(text), held_out_gain_column(texts[text])) for text in self.chosen_by]
        return {name: shown for pairs in (*found, gains) for name, shown in pairs if name != shown}

    def facts(self, scheme: str) -> dict[str, Any]:
        """Return the facts for the card and for checks."""
        recipe, evaluate = self.build.recipe, self.build.evaluate
        return {
            "title": recipe.sections.get("title", recipe.name),
            "description": recipe.sections.get("about", "Pairs of a query and a reformulation of this query."),
            "collection": self.build.resources.collection.id,
            **self.stated,
            "ranker": self.ranker,
            "measures": {
                one.text: {
                    "signature": one.signature,
                    "direction": one.direction.value,
                    "judged": one.text in evaluate.judged,
                }
                for one in evaluate.asked
            },
            "scheme": scheme,
            "subsets": list(self.selector.subsets),
            "selection": self.stage.chosen_by(),
            "lexicons": [
                {"id": one.id, "groups": names, "license": one.license or "not stated", "source": one.source or ""}
                for one, names in counted_groups(evaluate)
            ],
            "recipe": recipe_text(public_settings(recipe.sections)),
            "counts": {name: outcome.manifest.rows_out for name, outcome in self.outcomes.items()},
            "dropped": {
                f"{name}: {why}": count
                for name, outcome in self.outcomes.items()
                for why, count in outcome.manifest.dropped.items()
            },
            "versions": {"askew": __version__},
            **self.held_out(),
            **self.placebo(),
        }

    def held_out(self) -> dict[str, Any]:
        """Return the held-out and in-sample values of the chosen subsets; empty without held-out values."""
        found, summary = self.results.held_out, self.results.summary
        if found is None or summary is None:
            return {}
        rows = summary.filter(pl.col("subset").is_in(found["subset"].unique().implode()))
        floats = pl.selectors.float()
        return {"held_out": rows.select(*_HELD_OUT).with_columns(floats.round(6)).to_dicts()}

    def placebo(self) -> dict[str, Any]:
        """Return the numbers of pairs that the same selection chooses on placebo lists; empty without them."""
        found = self.results.placebo
        return {} if found is None else {"placebo": found.drop("pairs", "share").to_dicts()}

    def held_out_gains(self) -> Iterator[pl.DataFrame]:
        """Yield the gains of pairs in the half of the documents that did not choose them."""
        directions = {name: self.build.evaluate.directions[name] for name in self.chosen_by}
        sides = [side(name) for name in directions for side in (old_column, new_column)]
        columns = ["query_id", "variant_id", *sides]
        for part in frames_of(self.store, self.manifest(HELD_OUT_STEP), columns):
            yield held_out_gains(part, directions)

    def repair(self, facts: dict[str, Any]) -> Tables:
        """Return the aggregated tables of RePair over all candidates; the dropped rows are added to the facts."""
        given = self.selector.settings()
        measure = given["measure"]
        direction = self.build.evaluate.directions[measure]
        scores = query_parts(self.store, self.manifest("scores"))
        columns = [name for name in (*COLUMNS, SOURCE_JUDGED, column_of(measure)) if name in scores.columns]
        tables, dropped, left = [], Counter[str](), 0
        for part in scores.frames(columns):
            scored = with_originals(part)
            allowed = self.stage.allowed(scored)
            table, missing = agg_all(allowed, measure, self.ranker, direction, given["missing"])
            tables.append(table)
            dropped += missing
            left += scored.height - allowed.height
        every = pl.concat(tables)
        facts["dropped"] |= {f"agg.all: {why}": count for why, count in dropped.items()}
        if left:
            facts["dropped"]["agg.all: the reformulation was made from a document that is judged relevant"] = left
        judged = self.build.evaluate.judged
        judgements = pl.DataFrame(pl.from_arrow(self.build.resources.judgements.table)) if judged else None
        return Tables(every, judgements)

    def with_robust(self, chosen: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Add whether each pair improves with every ranker; null if a ranker did not search it or it has no score."""
        measures, directions = self.selector.measures(), self.build.evaluate.directions
        rankers = {_PAIRS: chosen}
        for step in self.others:
            scored = tables.get(step)
            rankers[step] = (
                make_pairs(with_originals(scored), directions, measures, (), keep_same=True, needed=()).table
                if scored is not None and scored.height
                else chosen.clear()
            )
        found = robust(rankers, measures, tolerance=float(self.selector.settings().get("tolerance", 0.0)))
        return chosen.join(found, on=["query_id", "variant_id"], how="left", maintain_order="left")

    def contexts(self, queries: pl.Series) -> pl.DataFrame | None:
        """Return the context of some queries from the collection or the step ``neutral``; None if there is none."""
        tables = [pl.DataFrame(pl.from_arrow(self.build.resources.queries.table))]
        if "neutral" in self.outcomes:
            manifest = self.manifest("neutral")
            columns: list[str] = [name for name in ("query_id", "context") if name in manifest.columns]
            tables.append(pl.concat(frames_of(self.store, manifest, columns)))
        said = next((table.select("query_id", "context") for table in tables if "context" in table.columns), None)
        known = None if said is None else said.filter(pl.col("query_id").is_in(queries.implode()))
        return known if known is not None and known["context"].count() else None


def robust(rankers: Mapping[str, pl.DataFrame], measures: Sequence[str], tolerance: float = 0.0) -> pl.DataFrame:
    """Return for each variant whether it is not worse with any ranker, and better with at least one (``robust``).

    ``rankers`` has the pairs of each ranker. With a ranker, a variant is better when one of the measures is better and
    none is worse. ``robust`` is null if a ranker has no value of the variant.
    """
    names = [gain_column(measure) for measure in measures]
    parts, sign = [], pl.col("sign")
    for pairs in rankers.values():
        signs = joint_signs([pairs.get_column(name).to_numpy() for name in names], tolerance)
        parts.append(pairs.select("query_id", "variant_id", pl.Series("sign", signs)))
    known = pl.concat(parts).filter(sign != UNKNOWN_SIGN)
    better = (sign >= 0).all() & (sign > 0).any()
    is_robust = pl.when(pl.len() == len(rankers)).then(better).alias("robust")
    return known.group_by("query_id", "variant_id", maintain_order=True).agg(is_robust)


def recipe_text(sections: Mapping[str, Any]) -> str:
    """Write the recipe as TOML, including the changes of the command line."""
    lines = [f"{key} = {_value(value)}" for key, value in sections.items() if isinstance(value, str)]
    for key, value in sections.items():
        for one in value if isinstance(value, list) else [value] if isinstance(value, Mapping) else []:
            head = f"[[{key}]]" if isinstance(value, list) else f"[{key}]"
            lines += ["", head, *(f"{name} = {_value(inner)}" for name, inner in one.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {_value(inner)}" for name, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
