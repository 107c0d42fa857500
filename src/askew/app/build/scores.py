"""The stage evaluate: scores the results of every variant by every measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.app.build.resources import Resources
from askew.app.build.variants import KIND, PROBABILITIES, SCHEMA, SOURCES
from askew.app.scoring.annotate import Annotate, stage_of
from askew.app.scoring.lists import ScoredLists
from askew.app.scoring.requested import CountKey, keys_of
from askew.app.scoring.scorer import Scorer
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon
from askew.core.measure import Bounds, Direction, check_columns, column_of
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.plugins.kinds import DocMentions

SOURCE_JUDGED = "source_judged"
_CARRIED = (*SCHEMA.names, KIND, *PROBABILITIES.values())


class Evaluate:
    """Scores every variant by every measure, with the judgements of its query.

    ``source_judged`` says whether a document that the variant was made from is judged relevant to its query.
    """

    name = "evaluate"
    version = 4

    def __init__(
        self, measures: Sequence[str], resources: Resources, groups: Groups | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:  # fmt: skip
        # Without a background run, the background of NFaiRR is the ranking itself, as in askew measure.
        self._catalogue = catalogue or Catalogue(None, {"background": "self"}, groups=groups)
        self.asked: list[MeasureRequest] = self._catalogue.complete(measures)
        check_columns(one.text for one in self.asked)
        for one in self.asked:
            one.check()
            if one.measure.param("on", "any") != "any":
                raise ConfigError(
                    f"measure {one.text}: the parameter 'on', which limits the documents that count, is not supported "
                    "in a recipe; leave it out, or use the command 'askew measure'"
                )
        self._resources = resources

    @property
    def directions(self) -> dict[str, Direction]:
        """The better direction of each measure."""
        return {one.text: one.direction for one in self.asked}

    @property
    def bounds(self) -> dict[str, Bounds]:
        """The bounds of each measure."""
        return {one.text: one.bounds for one in self.asked}

    @property
    def judged(self) -> list[str]:
        """The measures that are computed from relevance judgements."""
        return [one.text for one in self.asked if one.judged]

    def lexicons(self) -> list[Lexicon]:
        """Return the lexicons of the measures."""
        return [self._catalogue.lexicons[name] for name in sorted({key[0] for key in keys_of(self.asked)})]

    def settings(self) -> Mapping[str, Any]:
        """Return the measures with all parameters, and the keys of the mentions and judgements that they read."""
        counts = [self._resources.mentions_key(self._annotate(key)) for key in keys_of(self.asked)]
        return {
            "measures": {one.text: one.signature for one in self.asked},
            "mentions": counts,
            "judgements": self._resources.judgements.key,
        }

    def _annotate(self, key: CountKey) -> Annotate:
        return Annotate(self._catalogue.lexicons[key.lexicon], *stage_of(key)[1:])

    @cached_property
    def scorer(self) -> Scorer:
        """The scorer of the measures for this collection."""
        every, judged = self._resources.judged_documents
        return Scorer(self.asked, every, self._count, judged, id_ranks=lambda: self._resources.id_ranks)

    def _count(self, key: CountKey) -> DocMentions:
        return self._resources.mentions(self._annotate(key), key.who)

    def prepare(self) -> None:
        """Count the mentions of the collection once, before any worker reads the counts."""
        self.scorer.prepare()

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants with a column for each measure."""
        table = rows.select([name for name in _CARRIED if name in rows.column_names])
        if SOURCES.name in rows.column_names:
            table = table.append_column(SOURCE_JUDGED, self._source_judged(rows))
        for text, values in self.scorer.score(lists_of(rows)).items():
            table = table.append_column(column_of(text), pa.array(values, pa.float64()))
        return table, {}

    def _source_judged(self, rows: pa.Table) -> pa.Array:
        sources = pl.DataFrame(pl.from_arrow(rows.select(["query_id", SOURCES.name]))).with_row_index("row")
        relevant = pl.DataFrame(pl.from_arrow(self._resources.relevant))
        made = sources.explode(SOURCES.name).rename({SOURCES.name: "doc_id"})
        hit = made.join(relevant, on=["query_id", "doc_id"], how="semi")["row"].unique()
        return sources["row"].is_in(hit.implode()).to_arrow()


def lists_of(rows: pa.Table) -> ScoredLists:
    """Convert the rows of a retrieve step to ranked lists."""
    lists, scores = rows["doc"].combine_chunks(), rows["score"].combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    docs = lists.values.to_numpy().astype(np.int64)[offsets[0] : offsets[-1]]
    values = scores.values.to_numpy().astype(np.float64)[offsets[0] : offsets[-1]]
    ids, queries = (rows[name].combine_chunks() for name in ("variant_id", "query_id"))
    return ScoredLists(ids, offsets - offsets[0], docs, values, queries)
