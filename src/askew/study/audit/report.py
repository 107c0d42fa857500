"""The results of an audit: what ``audit`` returns, audit.json holds, and the page, the gate and the explorer read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import polars as pl

from askew.core.defaults import counted
from askew.core.errors import DataError
from askew.core.files import parse_json
from askew.core.measure import Measure
from askew.core.version import __version__
from askew.data.files import reason
from askew.measures.decompose import Decomposition
from askew.measures.effects import Effect
from askew.measures.headline import Headline
from askew.measures.relevance import share_error
from askew.measures.statistics.intervals import Mean
from askew.measures.statistics.significance import Paired
from askew.report.table import CODE, Cell, Column, Estimate, Table, TableView, table

FILE = "audit.json"


@dataclass(frozen=True)
class AuditedMean:
    """The mean of a measure over queries. ``interval`` is the method of the interval, ``better`` the best value."""

    mean: float
    low: float | None
    high: float | None
    n: int
    interval: str
    better: str
    signature: str


@dataclass(frozen=True)
class MarkedResult:
    """A result: ``pieces`` of its text with the groups that each names, and the ``mentions`` of the whole text."""

    rank: int
    doc_id: str
    pieces: tuple[tuple[str, tuple[str, ...]], ...]
    mentions: Mapping[str, int]


@dataclass(frozen=True)
class WorstQuery:
    """A query with a large lean, the groups that it names, and how often its results mention each group.

    ``in_names`` is the estimated number of counted words that are part of a name, such as "Man" in "Spider-Man"; None
    for groups that the resolver was not trained on. ``text`` is in a file only if the audit kept it, ``results`` never.
    """

    query_id: str
    lean: float
    named: tuple[str, ...]
    mentions: Mapping[str, int]
    in_names: int | None = None
    text: str | None = None
    results: tuple[MarkedResult, ...] = field(default=(), metadata={"key": None})


@dataclass(frozen=True)
class Tried:
    """A reformulation, and how it changes the results of the engine.

    ``same`` is the probability that the reformulation asks for the same thing as the original query. ``kept`` is the
    share of the original query's top results that the reformulation also retrieves. ``lean_verdict`` is less, same or
    more. ``outcome`` is None if the query has no judgements. ``suggested`` is true for at most one reformulation of a
    query. ``text`` is in a file only if the audit kept it.
    """

    query_id: str
    method: str
    same: float
    natural: float
    kept: float
    lean_before: float
    lean_after: float | None
    lean_verdict: str | None
    effectiveness_before: float | None
    effectiveness_after: float | None
    outcome: str | None
    gain: float | None
    suggested: bool = False
    text: str | None = None


@dataclass(frozen=True)
class Alternative:
    """The mean with one measure, word list and tokenizer, with its interval and the group that it leans toward."""

    label: str
    measure: str
    mean: float
    low: float | None
    high: float | None
    n: int
    toward: str | None


@dataclass(frozen=True)
class AuditSensitivity:
    """The same results by other combinations of measure, word list and tokenizer.

    The verdict of the audit is the same in ``holds`` of the ``of`` combinations that have a verdict.
    """

    holds: int = 0
    of: int = 0
    combinations: tuple[Alternative, ...] = ()


@dataclass(repr=False)
class AuditReport(TableView):
    """The result of ``audit``.

    ``headline`` says whether the results of neutral queries lean beyond chance, and which do: the worst queries.
    ``deciding`` is the measure of lean whose value is shown for them. ``verdict`` is the group that the headline names,
    or ``neither``; None for one query or more than two groups. ``scores`` has the values of each measure by query.
    ``words_per_query`` has, for each group, how many words in the results of a query name the group, as a mean over the
    queries. ``worst`` has the neutral queries that lean beyond chance, with their results. ``reformulations`` were
    tried on the engine. ``audited`` is the time of the audit. ``failures`` has the conditions of ``fail_if`` that are
    true, and ``passed`` the others, each with the value that was compared. ``reading`` says how to read the deciding
    measure, and ``next_steps`` recommends what to do. ``effects`` says what reranking the results would change.
    """

    engine: str
    k: int
    queries: int
    unanswered: int
    groups: tuple[str, ...]
    deciding: str
    verdict: str | None
    measures: Mapping[str, AuditedMean]
    scores: Mapping[str, Mapping[str, float]] = field(metadata={"key": "per_query"})
    parts: list[Decomposition]
    worst: list[WorstQuery]
    reformulations: list[Tried]
    dropped_reformulations: Mapping[str, int]
    sensitivity: AuditSensitivity
    # Files of earlier versions lack some of the following.
    headline: Headline | None = None
    effects: Mapping[str, Effect] = field(default_factory=dict)
    words_per_query: Mapping[str, float] = field(default_factory=dict)
    reading: str = ""
    effectiveness: str | None = None
    agree: float | None = None
    reduction: float | None = None
    model: str = ""
    next_steps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list, metadata={"key": None})
    notes: list[str] = field(default_factory=list)
    against_baseline: Mapping[str, Paired] = field(default_factory=dict)
    audited: str = ""
    askew: str = __version__

    @property
    def suggested(self) -> list[Tried]:
        """The suggested reformulation of each query that has one."""
        return [one for one in self.reformulations if one.suggested]

    def mean(self, measure: str | Measure) -> Mean:
        """Return the mean of a measure over queries, with its 95% interval."""
        found = self.measures[measure.text if isinstance(measure, Measure) else measure]
        return Mean(found.mean, found.low, found.high, found.n, found.interval)

    __getitem__ = mean

    def to_polars(self) -> pl.DataFrame:
        """Return one row for each measure: mean, bounds of the 95% interval, n, signature."""
        rows = [{"measure": text, **vars(one)} for text, one in self.measures.items()]
        return pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64}).drop("better")

    def to_pandas(self) -> Any:
        """Return the table of ``to_polars`` as a pandas data frame; pandas must be installed."""
        return self.to_polars().to_pandas()

    def per_query(self) -> pl.DataFrame:
        """Return one row for each query and one column for each measure; null where a measure is not defined."""
        rows = [{"query_id": query, **values} for query, values in self.scores.items()]
        return pl.DataFrame(rows, schema={"query_id": pl.String, **dict.fromkeys(self.measures, pl.Float64)})

    def table(self) -> Table:
        """The mean of each measure; the recommendations are notes."""
        rows: list[list[Cell]] = [
            [text, Estimate(one.mean, one.low, one.high), one.better, one.n] for text, one in self.measures.items()
        ]
        head = [Column("measure", CODE), Column("mean [95%]"), Column("better"), Column("n")]
        return table("audit", f"Audit of {self.engine}", head, rows, *self.next_steps)

    def to_dict(self, keep_queries: bool = False) -> dict[str, Any]:
        """Return the numbers as JSON values, with query ids; ``keep_queries`` adds the texts of the queries."""
        made: dict[str, Any] = _to_json(self)
        if not keep_queries:
            for one in (*made["worst"], *made["reformulations"]):
                del one["text"]
        return made

    @classmethod
    def from_dict(cls, values: Any) -> AuditReport:
        """Convert the values of audit.json; KeyError, TypeError or OverflowError if they are not those of an audit."""
        made: AuditReport = _from_json(cls, values)
        return made


def read_audit(place: str | Path) -> AuditReport:
    """Read the file audit.json of an audit; ``place`` is the file, or the folder that ``askew audit --out`` wrote."""
    path = Path(place) / FILE if Path(place).is_dir() else Path(place)
    try:
        found = AuditReport.from_dict(parse_json(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        why = f"cannot be read ({reason(error)}); expected a file {FILE} that askew audit --out wrote"
        raise DataError(f"audit {path}: {why}") from None
    if found.headline is not None and not found.headline.parts:
        raise DataError(f"audit {path}: its headline has no parts; expected a file {FILE} that askew audit --out wrote")
    return found


def audits_of(folder: Path) -> dict[str, Path]:
    """Return the audit folders by name: the folder itself if it has an audit, else its subfolders that have one."""
    if (folder / FILE).is_file():
        return {folder.resolve().name: folder}
    if not folder.is_dir():
        raise DataError(f"⟨audit⟩ {folder}: there is no such folder; expected a folder that askew audit --out wrote")
    found = {path.name: path for path in sorted(folder.iterdir()) if (path / FILE).is_file()}
    if not found:
        raise DataError(
            f"⟨audit⟩ {folder}: expected a folder that askew audit --out wrote, or a folder of such folders; found no "
            f"{FILE}"
        )
    return found


def _keys(kind: Any) -> dict[str, str]:
    """The fields of a dataclass that are written, and their keys."""
    keys = {one.name: one.metadata.get("key", one.name) for one in fields(kind)}
    return {name: key for name, key in keys.items() if key is not None}


def _to_json(value: Any) -> Any:
    if is_dataclass(value):
        return {key: _to_json(getattr(value, name)) for name, key in _keys(value).items()}
    if isinstance(value, Mapping):
        return {key: _to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(one) for one in value]
    return str(value) if isinstance(value, str) else value  # a note is text with values


def _from_json(kind: Any, value: Any) -> Any:
    """Read JSON values as a type: a dataclass by its fields, a container by its items; a wrong type is an error."""
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        hints, keys = get_type_hints(kind), _keys(kind)
        optional = {
            one.name for one in fields(kind) if one.default is not MISSING or one.default_factory is not MISSING
        }
        return kind(**{
            name: _from_json(hints[name], value[key])
            for name, key in keys.items()
            if name not in optional or key in value
        })  # fmt: skip
    if NoneType in inner:
        return None if value is None else _from_json(inner[0], value)
    if origin in (list, tuple) and isinstance(value, list):
        kinds = inner[:1] * len(value) if origin is list or Ellipsis in inner else inner
        return origin(_from_json(part, one) for part, one in zip(kinds, value, strict=True))
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: _from_json(inner[1], one) for key, one in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"expected {getattr(kind, '__name__', kind)}, found {type(value).__name__}")
    return value


# Recommend what to do next: short rules on the numbers of an audit.

# A part of the lean above this share is most of the lean.
_MOST = 0.5
# A mean over fewer queries than this is too uncertain.
_FEW = 30


def next_steps(report: AuditReport) -> list[str]:
    """Return recommendations for a search team, the most important first."""
    said = []
    if report.unanswered:
        said.append(f"{report.unanswered:,} of {report.queries:,} queries find nothing: look at these first.")
    first = report.headline
    if first is not None:
        beyond, tested = len(first.deciding.beyond), counted(first.deciding.lists, "neutral query", "neutral queries")
        said.append(
            "Whether single result lists lean beyond chance is not known (see the notes of the headline). To see the "
            "queries that lean most, set the level to 1."
            if first.deciding.p is None
            else f"The results of {beyond:,} of {tested} lean beyond chance: look at these worst queries one by one."
            if beyond
            else f"No result list of {tested} leans beyond chance, so there is no query to begin with."
        )
    if report.parts and report.parts[0].parts:
        said += _of_parts(report.parts[0])
    if report.reformulations:
        said.append(_of_reformulations(report))
    for method, effect in report.effects.items():
        if effect.change is not None:
            chance = "" if effect.by_chance is None else f" ({effect.by_chance:+.0%} on placebo lists)"
            said.append(
                f"Another order of the same {report.k} results ({method}) would change the mean of {effect.measure} by "
                f"{effect.change:+.0%}{chance}: {effect.verdict}. To measure the cost in effectiveness, run askew "
                "bench."
            )
    trust = report.sensitivity
    if trust.holds < trust.of:
        said.append(
            f"The verdict (toward which group the results lean) is the same in {trust.holds} of {trust.of} "
            "combinations of measure and word list. Do not rely on the sign of one measure alone."
        )
    if (queries := report.measures[report.deciding].n) < _FEW:
        few = "1 query is too few to decide" if queries == 1 else f"{queries} queries are too few to decide"
        said.append(f"{few}: audit at least {_FEW} queries.")
    return said


def _of_parts(found: Decomposition) -> list[str]:
    def total(value: str, kind: str, *names: str) -> float:
        return float(sum(getattr(one, value) for one in found.parts if one.kind == kind and one.name in names))

    said = []
    off, error = total("share", "why", "offtopic"), share_error()
    low, high = min(total("low", "why", "offtopic"), off - error), max(total("high", "why", "offtopic"), off + error)
    known = f"(weighted by rank; on labeled collections the estimate is wrong by up to {error:.0%} of the mentions)"
    if low > _MOST:
        said.append(
            f"{off:.0%} of the counted mentions {known} are estimated to be off topic. Read some of these results: if "
            "they are off topic indeed, improve the relevance of the results first. The off-topic mentions of both "
            f"groups together add {total('net', 'why', 'offtopic'):+.4f} to the mean of {found.measure}, which is "
            f"{found.value:+.4f}."
        )
    elif high < _MOST:
        said.append(
            f"{1 - off:.0%} of the counted mentions {known} are estimated to be on topic or asked for: "
            "no general action is needed; look at the worst queries one by one."
        )
    if (real := total("share", "who", "real")) > _MOST:
        said.append(
            f"{real:.0%} of the counted mentions (weighted by rank) are estimated to refer to real people: such words "
            "are expected for a query about a person. Look at the worst queries that are not about a person."
        )
    return said


def _of_reformulations(report: AuditReport) -> str:
    found, worst = report.suggested, len(report.worst)
    if not found:
        methods = ", ".join(dict.fromkeys(one.method for one in report.reformulations))
        return (
            f"No reformulation is suggested. The audit tried {len(report.reformulations):,} reformulations (made by "
            f"{methods}) of the {worst:,} worst queries. None of them meets all of these conditions: "
            f"it leans at least {report.reduction:.0%} less than the original query, it keeps at least "
            f"{report.agree:.0%} of the top results of the original query, and, if there are judgements, it loses no "
            "effectiveness."
        )
    said = (
        f"For {len(found):,} of the {worst:,} worst queries, a reformulation leans at "
        f"least {report.reduction:.0%} less than the original query and keeps at least "
        f"{report.agree:.0%} of the top results of the original query."
    )
    said += (
        " The best of several was chosen by its lean, so part of this gain is chance. Offer the reformulation to users "
        "as a suggestion, after a person has read it."
    )
    if judged := sum(one.outcome is not None for one in found):
        said += (
            f" Judgements are known for {judged:,} of these queries. By these judgements, the reformulation is at "
            "least as effective as the original query."
        )
    return said
