"""Compute the parts of the measure of lean, for the original and for the chosen queries, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.build.prepare import Build
from askew.app.build.scores import lists_of
from askew.app.build.variants import ORIGINAL
from askew.app.scoring.decompose import Decomposition, decompose_run, has_parts
from askew.app.scoring.relevance import RelevanceSource
from askew.app.scoring.texts import DocumentSource, gather_texts
from askew.core import defaults
from askew.core.who import resolver_id
from askew.engine.run import StepOutcome
from askew.engine.store import Store
from askew.measures.catalogue import MeasureRequest
from askew.mentions.marks import can_mark
from askew.publish.page.counted import CountedParts
from askew.selectors.parts import PairParts

# The number of sampled queries: with more, the error of the estimates would still limit the intervals.
MOST_QUERIES = 1000


def counted_parts(
    build: Build, store: Store, outcomes: Mapping[str, StepOutcome], pairs: PairParts, subset: str, seed: int
) -> CountedParts | None:
    """Return the parts of the first measure that has parts, for the originals and the chosen queries of a subset.

    None if no measure of the recipe has parts, or no pair is chosen.
    """
    asked = [one for one in build.evaluate.asked if has_parts(one) and can_mark(str(one.measure.param("tokens")))]
    if not asked:
        return None
    keys = ["query_id", "variant_id"]
    chosen = pairs.filter(subset).map(keys, lambda part: part.unique("query_id", keep="first", maintain_order=True))
    if not len(chosen):
        return None
    if len(chosen) > MOST_QUERIES:
        chosen = chosen.sample(MOST_QUERIES, seed=seed)
    one = next((found for found in asked if found.text == defaults.DECOMPOSED), asked[0])
    old, new = _runs(store, outcomes["runs"], chosen)
    relevance = _relevance(build, pa.concat_tables([old, new]), old)
    found = [_decomposed(build, one, name, part, relevance) for name, part in (("original", old), ("chosen", new))]
    data = pl.DataFrame([
        {"queries": side.run, **{k: v for k, v in asdict(part).items() if k != "amounts"}}
        for side in found for part in side.parts
    ])  # fmt: skip
    return CountedParts(one.text, found[0].resolver, len(chosen), data)


def _runs(store: Store, outcome: StepOutcome, chosen: pl.DataFrame) -> tuple[pa.Table, pa.Table]:
    """Read the results of the originals and of the chosen variants."""
    queries, names = (pa.array(chosen[name].to_list(), pa.string()) for name in ("query_id", "variant_id"))
    old, new = [], []
    for rows in store.read(outcome.manifest):
        originals = pc.and_(pc.equal(rows["method"], ORIGINAL), pc.is_in(rows["query_id"], value_set=queries))
        old.append(rows.filter(originals))
        new.append(rows.filter(pc.is_in(rows["variant_id"], value_set=names)))
    return pa.concat_tables(old), pa.concat_tables(new)


def _relevance(build: Build, rows: pa.Table, originals: pa.Table) -> RelevanceSource:
    every, judged = build.resources.judged_documents
    needed = np.zeros(len(every), np.bool_)
    needed[pc.list_flatten(rows["doc"]).to_numpy()] = True
    texts = dict(zip(originals["query_id"].to_pylist(), originals["text"].to_pylist(), strict=True))
    source = DocumentSource(build.resources.collection)
    # Whether a document is on topic is judged by the original query.
    return RelevanceSource(judged, lambda: texts, lambda: gather_texts(source, every, needed))


def _decomposed(
    build: Build, one: MeasureRequest, name: str, rows: pa.Table, relevance: RelevanceSource
) -> Decomposition:
    lists = lists_of(rows)
    inputs = build.evaluate.scorer.inputs(lists, [one], name)
    lexicon = next(found for found in build.evaluate.lexicons() if found.id == one.measure.param("lexicon"))
    return decompose_run(one, inputs, relevance, lexicon, resolver_id(defaults.RESOLVER), lists.queries)
