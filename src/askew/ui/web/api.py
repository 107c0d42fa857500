"""The REST service: search, reformulate, measure, pairs. GET takes one query or filter, POST takes several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from askew.core.errors import AskewError
from askew.data.judgements import QrelsFile
from askew.data.memory import judgements_in_memory, run_in_memory
from askew.ui.explorer.answers import Alternatives, Answer, Comparison
from askew.ui.explorer.explorer import TOP, Explorer, MeasuredText, measure_text
from askew.ui.explorer.pairs import PairFilter, PairPage
from askew.ui.explorer.plan import plan_of
from askew.ui.explorer.runs import audit
from askew.ui.web import schemas as s
from askew.ui.web.lane import Opened
from askew.ui.web.replies import ERRORS, ErrorBody, ErrorFacts, as_json, json_reply, problem_of
from askew.ui.web.site import Site


def _documented(kind: Any) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {200: {"model": kind, "description": "The answer."}}
    for status, (_, words) in ERRORS.items():
        found[status] = {"model": ErrorBody, "description": words}
    return found


async def site_of(request: Request) -> Site:
    """Return the service of a request. If this were not async, it would run in a thread, which takes longer."""
    site: Site = request.app.state.site
    return site


Here = Annotated[Site, Depends(site_of)]
router = APIRouter(prefix="/api", tags=["askew"])


async def _explored(site: Site, key: tuple[object, ...], make: Callable[[Explorer], bytes]) -> Response:
    """Send a cached answer that depends only on the query."""
    explorer = site.explorer
    return json_reply(await site.work.bytes_of(key, lambda: make(explorer)))


@router.get("/health", responses={200: {"model": s.Health}}, summary="Whether the service is ready")
async def health(site: Here) -> Response:
    """Responds once the collection is open. No token is needed; if one is set, the collection is not named."""
    explorer = None if site.access.needed else site.opened.explorer
    name = None if explorer is None else explorer.setting.collection
    return json_reply(as_json(s.Health, s.Health("ok", name)))


@router.get("/search", responses=_documented(Answer), summary="Search, and measure the bias (lean) of the results")
async def search(site: Here, q: s.Asked, k: s.Count = TOP) -> Response:
    """The results of a query with the words that name a group, and the value of every measure.

    Positions in a text count Unicode characters from 0. Queries with judgements also have measures of effectiveness.
    """
    return await _explored(site, ("search", q, k), lambda one: as_json(Answer, one.search(q, k)))


@router.post("/search", responses=_documented(s.Answers[Answer]), summary="Search several queries")
async def search_batch(site: Here, body: s.SearchBatch) -> Response:
    """As GET, for several queries."""
    explorer = site.explorer

    def make() -> bytes:
        return as_json(s.Answers[Answer], s.Answers([explorer.search(query, body.k) for query in body.queries]))

    return json_reply(await site.work.run(make, len(body.queries)))


@router.get("/reformulate", responses=_documented(Alternatives), summary="Reformulations of a query")
async def reformulate(site: Here, q: s.Asked) -> Response:
    """Reformulations with their measures, and their gains over the original query.

    For a query without judgements, the proxy Agreement@10 replaces effectiveness, and ``proxy`` is true. Its
    reformulations have no ``outcome``, only a ``lean_verdict``.
    """
    show = partial(as_json, Alternatives)
    return json_reply(await site.writing.once(("reformulate", q), lambda: site.reformulated(q, show)))


@router.post(
    "/reformulate", responses=_documented(s.Answers[s.AlternativesOrError]), summary="Reformulations of several queries"
)
async def reformulate_batch(site: Here, body: s.ReformulateBatch) -> Response:
    """As GET, for several queries. A query that cannot be answered has an error in its place."""
    found = await site.writing.join(*((site.explorer, query) for query in body.queries))

    def make() -> bytes:
        answers = []
        for query, one in zip(body.queries, found, strict=True):
            if isinstance(one, BaseException) and not isinstance(one, AskewError):
                raise one
            problem = problem_of(one) if isinstance(one, AskewError) else None
            error = None if problem is None else ErrorFacts(problem.code, problem.message)
            answers.append(s.AlternativesOrError(query, None if isinstance(one, AskewError) else one, error))
        return as_json(s.Answers[s.AlternativesOrError], s.Answers(answers))

    return json_reply(await asyncio.to_thread(make))


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
    explorer = site.explorer
    return json_reply(await site.work.run(lambda: as_json(MeasuredText, measure_text(explorer, body.text, body.query))))


@router.get("/about", responses=_documented(s.OpenFacts), summary="The searched collection and its settings")
async def about(site: Here) -> Response:
    """The collection, the ranker, the groups and the measures, as in the footer of each page."""
    return json_reply(as_json(s.OpenFacts, s.OpenFacts.of(site.opened)))


@router.get("/plan", responses=_documented(s.PlanAnswer), summary="The steps that built the store")
async def plan(site: Here) -> Response:
    """The finished steps, each after the step that it reads, with numbers of rows and reasons for dropped rows."""
    return json_reply(await site.work.run(lambda: as_json(s.PlanAnswer, s.PlanAnswer(plan_of(site.opened.store)))))


@router.get("/measure", responses=_documented(s.Measured), summary="Measure the results of a query")
async def measure(site: Here, q: s.Asked) -> Response:
    """Every measure with its value and its signature (all parameters).

    Values with the same signature can be compared.
    """

    def make(explorer: Explorer) -> bytes:
        found = explorer.search(q, 1)
        return as_json(s.Measured, s.Measured(found.query, found.query_id, found.judged, found.values))

    return await _explored(site, ("measure", q), make)


@router.post("/measure", responses=_documented(s.MeasuredRuns), summary="Measure runs")
async def measure_runs(site: Here, body: s.MeasureBatch) -> Response:
    """Return the means of each run with 95% intervals, and a comparison of the second run with the first.

    Runs are ``{name: {query: {document: score}}}``.
    """
    return json_reply(await site.lane.run(_measured, body))


def _measured(opened: Opened, body: s.MeasureBatch) -> bytes:
    runs = {name: run_in_memory(run, name) for name, run in body.runs.items()}
    qrels: QrelsFile | None = None if body.qrels is None else judgements_in_memory(body.qrels)
    found = audit(runs, opened().explorer, qrels=qrels, missing=body.missing, unanswered=body.unanswered)
    compared = None if found.comparison is None else found.comparison.to_dict()
    notes = [*found.report.notes, *(found.comparison.notes if found.comparison else [])]
    runs_told = found.report.to_dict(per_query=True)["runs"]
    return as_json(s.MeasuredRuns, s.MeasuredRuns(runs_told, compared, list(dict.fromkeys(notes))))


@router.get("/pairs", responses=_documented(PairPage), summary="Pairs of a query and its reformulation in the dataset")
async def pairs(site: Here, asked: Annotated[PairFilter, Query()]) -> Response:
    """Pairs of an original query and a reformulation with their gains, filtered, sorted, one page at a time."""
    return json_reply(await site.work.run(lambda: as_json(PairPage, site.pairs(asked.dataset).page(asked))))


@router.post(
    "/pairs",
    responses=_documented(s.Answers[PairPage]),
    summary="Pairs of a query and its reformulation: several requests at once",
)
async def pairs_batch(site: Here, body: s.PairBatch) -> Response:
    """As GET, for several requests at once."""

    def make() -> bytes:
        found = [site.pairs(one.dataset).page(one) for one in body.requests]
        return as_json(s.Answers[PairPage], s.Answers(found))

    return json_reply(await site.work.run(make, len(body.requests)))
