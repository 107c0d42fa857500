"""The results of an audit, as numbers; the page and the command line show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import polars as pl

from askew.app.audit.advice import next_steps
from askew.app.audit.measures import AuditMeasures, EngineScores, toward
from askew.app.audit.reformulations import Reformulations, Tried
from askew.app.audit.reranking import Reranking
from askew.app.audit.settings import AuditSettings
from askew.app.audit.stability import Stability
from askew.app.audit.worst import WorstQuery
from askew.app.scoring.comparable import BETTER, sign_of
from askew.app.scoring.decompose import Decomposition
from askew.core.measure import Measure
from askew.core.text_tables import html_table, text_table, with_interval
from askew.core.version import __version__
from askew.measures.catalogue import MeasureRequest
from askew.statistics.intervals import Mean
from askew.statistics.significance import Paired


@dataclass(repr=False)
class AuditReport:
    """The result of ``audit``.

    ``words`` has, for each group, how many words in the results of a query name the group, as a mean over the queries.
    ``worst`` has the queries with the largest lean, with their results. ``reformulations`` has the reformulations that
    were tried on the engine. ``audited`` is the time of the audit. ``failures`` has the conditions of ``fail_if`` that
    are true. ``next_steps`` recommends what to do.
    """

    engine: str
    k: int
    queries: int
    measures: AuditMeasures
    measured: EngineScores
    worst: list[WorstQuery]
    reformulations: Reformulations
    stability: Stability
    reranking: Reranking | None
    settings: AuditSettings
    words: Mapping[str, float]
    audited: datetime
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    against: Mapping[str, Paired] = field(default_factory=dict)

    @property
    def asked(self) -> list[MeasureRequest]:
        """The measures, with all their parameters."""
        return self.measured.report.asked

    @property
    def lean(self) -> MeasureRequest:
        """The measure that decides which queries are worst."""
        return self.measured.lean

    @property
    def parts(self) -> list[Decomposition]:
        """The parts of the lean: off topic, asked for or on topic, and who is mentioned."""
        return self.measured.report.parts

    @property
    def unanswered(self) -> int:
        """The number of queries without results."""
        return self.queries - len(self.measured.of_query(self.lean.text))

    @cached_property
    def verdict(self) -> str | None:
        """The group that the mean leans toward by its interval, or ``neither``; None without a sign or an interval."""
        return toward(self.lean, self.mean(self.lean.text))

    @property
    def reading(self) -> str:
        """How to read a value of the measure ``lean``, and the mean number of counted words."""
        counts = " and ".join(f"{count:,.1f} words for {group}" for group, count in self.words.items())
        depth = self.measures.cutoff or self.k
        said = f"{sign_of(self.lean)} On average the top {depth} results of a query have {counts}."
        own = [one.text for one in self.asked if one.measure.param("background") == "self"]
        if own:
            said += f" {', '.join(own)}: the background run is the run of the engine itself."
        return said.strip()

    @cached_property
    def next_steps(self) -> list[str]:
        """Recommendations, as plain sentences."""
        return next_steps(self)

    def mean(self, measure: str | Measure) -> Mean:
        """Return the mean of a measure over queries, with its 95% interval."""
        return self.measured.mean(measure.text if isinstance(measure, Measure) else measure)

    __getitem__ = mean

    def to_polars(self) -> pl.DataFrame:
        """Return one row for each measure: mean, bounds of the 95% interval, n, signature."""
        return self.measured.report.to_polars().drop("run")

    def to_pandas(self) -> Any:
        """Return the table of ``to_polars`` as a pandas data frame; pandas must be installed."""
        return self.to_polars().to_pandas()

    def per_query(self) -> pl.DataFrame:
        """Return one row for each query and one column for each measure; null where a measure is not defined."""
        return self.measured.report.per_query().drop("run")

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        means = [(one, self.mean(one.text)) for one in self.asked]
        rows = [[one.text, with_interval(m.mean, m.low, m.high), BETTER[one.direction], str(m.n)] for one, m in means]
        return ["measure", "mean [95%]", "better", "n"], rows

    def __repr__(self) -> str:
        return "\n".join([text_table(*self._rows()), *self.next_steps])

    def _repr_html_(self) -> str:
        return html_table(*self._rows())

    def to_dict(self, keep_queries: bool = False) -> dict[str, Any]:
        """Return the numbers as JSON values, with query ids; ``keep_queries`` adds the texts of the queries."""
        return {
            "askew": __version__, "audited": self.audited.isoformat(timespec="seconds"),
            "engine": self.engine, "k": self.k, "queries": self.queries,
            "unanswered": self.unanswered, "groups": list(self.lean.groups), "deciding": self.lean.text,
            "verdict": self.verdict, "words_per_query": dict(self.words),
            "measures": {one.text: self._measure(one) for one in self.asked},
            "per_query": _by_query(self.measured),
            "parts": [one.to_dict() for one in self.parts],
            "worst": [_worst(one, keep_queries) for one in self.worst],
            "reformulations": [_tried(one, keep_queries) for one in self.reformulations.tried],
            "dropped_reformulations": dict(self.reformulations.dropped),
            "sensitivity": {
                "holds": self.stability.same, "of": len(self.stability.decided),
                "reformulations_lean_less": self.stability.less, "reformulations_compared": self.stability.compared,
                "combinations": [asdict(one) for one in self.stability.alternatives],
            },
            "reranking": None if self.reranking is None else asdict(self.reranking),
            "next_steps": self.next_steps, "failures": self.failures, "reading": self.reading,
            "effectiveness": None if self.measures.effectiveness is None else self.measures.effectiveness.text,
            "agree": self.settings.agree, "reduction": self.settings.reduction, "model": self.reformulations.model,
            "notes": self.notes, "against_baseline": {text: asdict(one) for text, one in self.against.items()},
        }  # fmt: skip

    def _measure(self, one: MeasureRequest) -> dict[str, Any]:
        found = asdict(self.mean(one.text))
        found["interval"] = found.pop("method")
        return {**found, "better": BETTER[one.direction], "signature": one.signature}


def _by_query(measured: EngineScores) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {query: {} for query in measured.query_ids}
    for text in measured.values:
        for query, value in measured.of_query(text).items():
            found[query][text] = value
    return found


def _worst(one: WorstQuery, keep: bool) -> dict[str, Any]:
    told = {"query_id": one.query_id, "lean": one.lean, "named": list(one.named), "mentions": one.mentions,
            "in_names": one.in_names}  # fmt: skip
    return {**told, "text": one.text} if keep else told


def _tried(one: Tried, keep: bool) -> dict[str, Any]:
    told = asdict(one)
    for name in ("lean", "effectiveness"):
        before, after = told.pop(name)
        told |= {f"{name}_before": before, f"{name}_after": after}
    if not keep:
        del told["text"]
    return told
