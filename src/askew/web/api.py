"""The REST service: search, reformulate, measure, pairs. GET takes one query or filter, POST takes several."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from askew.app.explore.answers import Alternatives, Answer, Comparison
from askew.app.explore.audit import audit
from askew.app.explore.explorer import TOP, Explorer
from askew.app.explore.opening import Opening
from askew.app.explore.pairs import Wanted
from askew.app.explore.plan import plan_of
from askew.app.explore.texts import MeasuredText, measure_text
from askew.core.errors import AskewError
from askew.corpora.judgements import QrelsFile
from askew.corpora.memory import judgements_in_memory, run_in_memory
from askew.web import schemas as s
from askew.web.lane import Opened
from askew.web.problems import ErrorBody, ErrorFacts, problem_of
from askew.web.replies import as_json, json_reply
from askew.web.site import Site

_ERRORS = {
    400: "the request cannot be carried out; the message says what to do",
    401: "the token of the service is missing or wrong; send the header 'Authorization: Bearer TOKEN'",
    403: "the request was sent by a page of another site",
    404: "there is nothing at this address",
    405: "this address does not support this method",
    408: "the request was not complete in time",
    413: "the request is too large",
    421: "this service does not answer requests for this host name",
    422: "a parameter or the body is not valid",
    429: "too many requests; the header Retry-After says when to try again",
    500: "internal error",
    503: "the store is damaged, an optional package of askew is missing, or the service lacks resources",
}


def _documented(kind: Any) -> dict[int | str, dict[str, Any]]:
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorBody, "description": words} for status, words in _ERRORS.items()
    }
    return {200: {"model": kind, "description": "The answer."}, **errors}


async def site_of(request: Request) -> Site:
    """Return the service of a request. If this were not async, it would run in a thread, which takes longer."""
    site: Site = request.app.state.site
    return site


Here = Annotated[Site, Depends(site_of)]
router = APIRouter(prefix="/api", tags=["askew"])


async def _explored(site: Site, key: tuple[object, ...], make: Callable[[Explorer], bytes]) -> Response:
    """Send a cached answer that depends only on the query."""
    explorer = await site.explorer()
    return json_reply(await site.work.bytes_of(key, lambda: make(explorer)))


@router.get("/health", responses={200: {"model": s.Health}}, summary="Whether the service is ready")
async def health(site: Here) -> Response:
    """Responds once the collection is open. No token is needed; if one is set, the collection is not named."""
    opened = await site.opened()
    explorer = None if site.access.needed else opened.explorer
    name = None if explorer is None else explorer.setting.collection
    return json_reply(as_json(s.Health, s.Health("ok", name)))


@router.get("/search", responses=_documented(Answer), summary="Search, and measure the bias (lean) of the results")
async def search(site: Here, q: s.Asked, k: s.Count = TOP) -> Response:
    """The results of a query with the words that name a group, and the value of every measure.

    Positions in a text count Unicode characters from 0. Queries with judgements also have measures of effectiveness.
    """
    return await _explored(site, ("search", q, k), lambda one: as_json(Answer, one.search(q, k)))


@router.post("/search", responses=_documented(s.SearchAnswers), summary="Search several queries")
async def search_batch(site: Here, body: s.SearchBatch) -> Response:
    """As GET, for several queries."""
    explorer = await site.explorer()

    def make() -> bytes:
        return as_json(s.SearchAnswers, s.SearchAnswers([explorer.search(query, body.k) for query in body.queries]))

    return json_reply(await site.work.run(make, len(body.queries)))


@router.get("/reformulate", responses=_documented(Alternatives), summary="Reformulations of a query")
async def reformulate(site: Here, q: s.Asked) -> Response:
    """Reformulations with their measures, their gains over the original query, and which are Pareto-optimal.

    For a query without judgements, the proxy Agreement@10 replaces effectiveness, and ``proxy`` is true. Its
    reformulations have no ``outcome``, only a ``lean_verdict``.
    """

    def start() -> Coroutine[Any, Any, bytes]:
        return site.reformulated(q, lambda found: as_json(Alternatives, found))

    return json_reply(await site.writing.once(("reformulate", q), start))


@router.post("/reformulate", responses=_documented(s.AlternativesAnswers), summary="Reformulations of several queries")
async def reformulate_batch(site: Here, body: s.ReformulateBatch) -> Response:
    """As GET, for several queries. A query that cannot be answered has an error in its place."""
    explorer = await site.explorer()

    def make() -> bytes:
        found = zip(body.queries, explorer.reformulate_many(body.queries), strict=True)
        return as_json(s.AlternativesAnswers, s.AlternativesAnswers([_one(query, one) for query, one in found]))

    return json_reply(await site.writing.run(make, len(body.queries)))


def _one(query: str, found: Alternatives | AskewError) -> s.AlternativesOrError:
    if isinstance(found, AskewError):
        problem = problem_of(found)
        return s.AlternativesOrError(query, None, ErrorFacts(problem.code, problem.message))
    return s.AlternativesOrError(query, found, None)


@router.get("/compare", responses=_documented(Comparison), summary="A query and a reformulation, side by side")
async def compare(
    site: Here, q: s.Asked, to: Annotated[s.QueryText, Query(description="The reformulated query.")], k: s.Count = TOP,
    query_id: s.QueryId = "",
) -> Response:  # fmt: skip
    """The result lists of both queries, the ranks of each document in both lists, and the gains of the reformulation.

    Gains in effectiveness use the judgements of the original query.
    """
    return await _explored(
        site, ("compare", q, to, k, query_id), lambda one: as_json(Comparison, one.compare(q, to, k, query_id))
    )


@router.post("/text", responses=_documented(MeasuredText), summary="Measure a text")
async def text(site: Here, body: s.TextBody) -> Response:
    """The words of a text that name a group, whom they refer to, and the lean of a list with this text as only result.

    With a query, also whether each word is off topic.
    """
    explorer = await site.explorer()
    return json_reply(await site.work.run(lambda: as_json(MeasuredText, measure_text(explorer, body.text, body.query))))


@router.get("/about", responses=_documented(s.OpenFacts), summary="The searched collection and its settings")
async def about(site: Here) -> Response:
    """The collection, the ranker, the groups and the measures, as in the footer of each page."""
    return json_reply(as_json(s.OpenFacts, s.OpenFacts.of(await site.opened())))


@router.get("/plan", responses=_documented(s.PlanAnswer), summary="The steps that built the store")
async def plan(site: Here) -> Response:
    """The finished steps, each after the step that it reads, with numbers of rows and reasons for dropped rows."""
    opened = await site.opened()
    return json_reply(await site.work.run(lambda: as_json(s.PlanAnswer, s.PlanAnswer(plan_of(opened.store)))))


@router.get("/measure", responses=_documented(s.Measured), summary="Measure the results of a query")
async def measure(site: Here, q: s.Asked) -> Response:
    """Every measure with its value and its signature (all parameters).

    Values with the same signature can be compared.
    """
    return await _explored(site, ("measure", q), lambda one: as_json(s.Measured, s.Measured.by(one, q)))


@router.post("/measure", responses=_documented(s.MeasuredRuns), summary="Measure runs")
async def measure_runs(site: Here, body: s.MeasureBatch) -> Response:
    """Return the means of each run with 95% intervals, and a comparison of the second run with the first.

    Runs are ``{name: {query: {document: score}}}``.
    """
    await site.opened()
    return json_reply(await site.lane.run(_measured, body))


def _measured(opened: Opened, body: s.MeasureBatch) -> bytes:
    runs = {name: run_in_memory(run, name) for name, run in body.runs.items()}
    qrels: QrelsFile | None = None if body.qrels is None else judgements_in_memory(body.qrels)
    found = audit(runs, opened().explorer, qrels=qrels, missing=body.missing, unanswered=body.unanswered)
    compared = None if found.comparison is None else found.comparison.to_dict()
    notes = [*found.report.notes, *(found.comparison.notes if found.comparison else [])]
    runs_told = found.report.to_dict(per_query=True)["runs"]
    return as_json(s.MeasuredRuns, s.MeasuredRuns(runs_told, compared, list(dict.fromkeys(notes))))


@router.get(
    "/pairs", responses=_documented(s.PairAnswer), summary="Pairs of a query and its reformulation in the dataset"
)
async def pairs(site: Here, asked: Annotated[s.PairFilter, Query()]) -> Response:
    """Pairs of an original query and a reformulation with their gains, filtered, sorted, one page at a time."""
    opened = await site.opened()
    return json_reply(await site.work.run(lambda: as_json(s.PairAnswer, _page(site, opened, asked))))


@router.post(
    "/pairs",
    responses=_documented(s.PairAnswers),
    summary="Pairs of a query and its reformulation: several requests at once",
)
async def pairs_batch(site: Here, body: s.PairBatch) -> Response:
    """As GET, for several requests at once."""
    opened = await site.opened()

    def make() -> bytes:
        return as_json(s.PairAnswers, s.PairAnswers([_page(site, opened, one) for one in body.requests]))

    return json_reply(await site.work.run(make, len(body.requests)))


def wanted_of(asked: s.PairFilter) -> Wanted:
    """Convert a filter of the REST service to a filter of the dataset."""
    return Wanted(**asked.model_dump(exclude={"dataset", "page", "size"}))


def _page(site: Site, opened: Opening, asked: s.PairFilter) -> s.PairAnswer:
    table = site.pairs(opened, asked.dataset)
    found = table.page(wanted_of(asked), asked.page, asked.size)
    following = asked.page + 1 if asked.page < found.pages else None
    return s.PairAnswer(table.name, found.total, found.page, found.pages, found.size, following, list(found.rows))
