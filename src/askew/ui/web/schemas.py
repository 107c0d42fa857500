"""Parameters and responses of the REST service that are not types of the explorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from askew.ui.explorer.answers import Alternatives, Setting, Sides, Value
from askew.ui.explorer.explorer import LONGEST, MOST_RESULTS, TOP
from askew.ui.explorer.opening import Opening
from askew.ui.explorer.pairs import CHOSEN, MOST_CHARS, Finite, PairFilter, ShortText, whole_text
from askew.ui.explorer.plan import StepNode
from askew.ui.explorer.runs import MISSING_TEXT, UNANSWERED
from askew.ui.web.replies import ErrorFacts

MOST_BATCH = 50
T = TypeVar("T")


QueryText = Annotated[str, Field(min_length=1, max_length=MOST_CHARS, pattern=r"\S"), AfterValidator(whole_text)]
Results = Annotated[int, Field(ge=1, le=MOST_RESULTS)]
Count = Annotated[Results, Query(description="How many results.")]
Asked = Annotated[QueryText, Query(description="The query.", openapi_examples={
    "judged": {"summary": "a query of the demo collection, with judgements", "value": "how to become a nurse"},
    "own": {"summary": "any other query", "value": "best running shoes"},
})]  # fmt: skip
QueryId = Annotated[
    ShortText, Query(description="The id of the query, if several queries of the collection have the same text.")
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReformulateBatch(_Body):
    """Several queries at once."""

    queries: Annotated[list[QueryText], Field(min_length=1, max_length=MOST_BATCH)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"queries": ["how to become a nurse"]}]})


class SearchBatch(ReformulateBatch):
    """Several queries at once."""

    k: Results = TOP


class TextBody(_Body):
    """A text to measure, and optionally the query that it answers."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(whole_text)]
    query: ShortText = ""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "A nurse works in a hospital.", "query": "nurse"}]}
    )


Scores = dict[ShortText, Finite]
Run = dict[ShortText, Scores]


class MeasureBatch(_Body):
    """Runs to measure with the documents of the open collection. The second run is compared with the first.

    The judged queries of the collection that have results in none of the runs are left out.

    ``qrels`` are judgements; by default those of the collection are used. A judged query without results in a run has
    an effectiveness of zero, or is left out if ``unanswered`` is "absent".
    """

    runs: Annotated[dict[ShortText, Run], Field(min_length=1, max_length=8)]
    qrels: dict[ShortText, dict[ShortText, Annotated[int, Field(ge=-(2**31), lt=2**31)]]] | None = None
    missing: Literal["error", "zero", "drop", "skip"] = MISSING_TEXT
    unanswered: Literal["zero", "absent"] = UNANSWERED

    model_config = ConfigDict(json_schema_extra={"examples": [
        {"runs": {"mine": {"care-q02": {"care-07": 2.0, "care-17": 1.5}}}, "missing": "error"}
    ]})  # fmt: skip


class ChosenFilter(PairFilter):
    """The filter of the page Dataset: by default only chosen pairs."""

    subset: ShortText = CHOSEN


class PairBatch(_Body):
    """Several filters at once."""

    requests: Annotated[list[PairFilter], Field(min_length=1, max_length=MOST_BATCH)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"requests": [{"subset": "effective", "size": 5}]}]})


@dataclass(frozen=True)
class Answers(Generic[T]):
    """An answer for each query or filter, in their order."""

    answers: list[T]


@dataclass(frozen=True)
class AlternativesOrError:
    """The result of one query of a batch: an answer or an error."""

    query: str
    answer: Alternatives | None
    error: ErrorFacts | None


@dataclass(frozen=True)
class Measured:
    """The measures of the results of a query."""

    query: str
    query_id: str | None
    judged: bool
    values: tuple[Value, ...]


@dataclass(frozen=True)
class MeasuredRuns:
    """The report of ``askew measure --json``, the comparison of the first two runs, and notes."""

    runs: list[dict[str, Any]]
    comparison: dict[str, Any] | None
    notes: list[str]


@dataclass(frozen=True)
class OpenFacts:
    """What is open. ``recipe`` built the store; ``dataset`` is the dataset with the same values as the explorer."""

    setting: Setting | None
    measures: list[str]
    effectiveness: list[str]
    lean: list[str]
    recipe: str | None
    dataset: str | None
    reason: str
    notes: list[str]

    @classmethod
    def of(cls, opened: Opening) -> OpenFacts:
        """Describe what is open, as the footer of each page does."""
        explorer = opened.explorer
        counting = None if explorer is None else explorer.counting
        sides = Sides((), ()) if counting is None else counting.sides
        return cls(
            None if explorer is None else explorer.setting, [] if counting is None else list(counting.measures),
            list(sides.effectiveness), list(sides.lean), opened.built_by or None, opened.dataset or None, opened.reason,
            list(opened.notes),
        )  # fmt: skip


@dataclass(frozen=True)
class PlanAnswer:
    """The finished steps of a store."""

    steps: list[StepNode]


@dataclass(frozen=True)
class Health:
    """Whether the service can answer."""

    status: str
    collection: str | None
