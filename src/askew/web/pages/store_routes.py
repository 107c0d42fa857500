"""Which address shows which page of a store: pairs, runs, plan, logs, API."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query, Request, Response, UploadFile
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse

from askew.app.explore.audit import MISSING_TEXT, Audit, audit
from askew.app.explore.opening import Opening
from askew.app.explore.pairs import as_parquet, as_tsv, datasets
from askew.app.explore.plan import plan_of, step_of
from askew.app.logs.writing import read_log_report
from askew.core.errors import AskewError, ConfigError, DataError
from askew.corpora.judgements import QrelsFile
from askew.corpora.runs import Run, read_run
from askew.web import schemas as s
from askew.web.api import Here, wanted_of
from askew.web.pages import audit as runs_page
from askew.web.pages import logs, pairs, plan, reference
from askew.web.pages.routes import html, kept_html, note_of
from askew.web.pages.shell import Page, empty_page
from askew.web.problems import Problem
from askew.web.site import Site

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_UPLOAD = "upload:"
MOST_RUNS = 4
_LOG_COMMANDS = ("Make one and open it: ", "askew logs --demo --out LOGS", "askew serve --logs LOGS")
Filter = Annotated[s.PairFilter, Query()]
_WRITERS: dict[str, Callable[[pl.LazyFrame, Path], None]] = {"parquet": as_parquet, "tsv": as_tsv}


@router.get("/pairs")
async def pairs_page(site: Here, asked: Filter) -> Response:
    """Dataset."""
    opened = await site.opened()
    return html(await site.work.run(lambda: _pairs(site, opened, asked)))


def _pairs(site: Site, opened: Opening, asked: s.PairFilter) -> Page:
    note = note_of(opened)
    known = datasets(site.store_of(opened))
    if not known:
        return empty_page("Dataset", "/pairs", "There are no pairs in this store.", note)
    table = site.pairs(opened, asked.dataset)
    found = table.page(wanted_of(asked), asked.page, asked.size)
    return pairs.pairs_page(table, found, asked, known, opened.can_compare(table.name), note)


@router.get("/pairs/selection.{ending}")
async def selection(site: Here, ending: str, asked: Filter) -> Response:
    """The pairs that fit, as a file."""
    if ending not in _WRITERS:
        raise DataError(f"a selection is had as {' or '.join(_WRITERS)}, not {ending!r}")
    opened = await site.opened()
    folder = tempfile.TemporaryDirectory(prefix="askew-selection-")
    path = Path(folder.name) / f"pairs.{ending}"

    def write() -> None:
        _WRITERS[ending](site.pairs(opened, asked.dataset).selection(wanted_of(asked)), path)

    try:
        await site.work.run(write)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, filename=path.name, background=BackgroundTask(folder.cleanup))


@router.get("/audit")
async def audit_page(
    site: Here, run: Annotated[list[str] | None, Query(max_length=MOST_RUNS)] = None, qrels: s.ShortText = "",
    measure: s.ShortText = "", missing: s.ShortText = MISSING_TEXT,
) -> Response:  # fmt: skip
    """Runs."""
    opened = await site.opened()
    chosen = runs_page.AuditForm(tuple(dict.fromkeys(run or ())), qrels, measure, missing)
    try:
        key = ("audit", chosen, await site.work.run(lambda: _changed(opened, chosen)))
        return await kept_html(site, key, lambda: _audit(site, opened, chosen))
    except _NotMeasured as found:
        return html(found.page, 400)


def _changed(opened: Opening, chosen: runs_page.AuditForm) -> tuple[int, ...]:
    """When the chosen files were last written: with another file it is another page."""
    files = [opened.runs[name] for name in chosen.runs if name in opened.runs]
    return tuple(file.stat().st_ctime_ns for file in files if file.exists())


class _NotMeasured(Exception):
    """The page that says why. It is not kept: what is missing may be uploaded."""

    def __init__(self, page: Page) -> None:
        super().__init__("not measured")
        self.page = page


def _audit(site: Site, opened: Opening, chosen: runs_page.AuditForm) -> Page:
    known = {name: path.name for name, path in opened.runs.items()}
    found: Audit | None = None
    problem = ""
    try:
        named = {name: _run(site, opened, name) for name in chosen.runs}
        known |= {name: one.name for name, one in named.items() if name not in known}
        if named:
            judged = _judgements(site, chosen.qrels)
            found = audit(_renamed(list(named.values())), opened.explorer, qrels=judged, missing=chosen.missing)
            if chosen.measure:
                found.asked(chosen.measure)
    except (AskewError, Problem) as error:
        found, problem = None, str(error)
    page = runs_page.audit_page(known, chosen, found, problem, note_of(opened))
    if problem:
        raise _NotMeasured(page)
    return page


def _run(site: Site, opened: Opening, name: str) -> Run:
    if name in opened.runs:
        return read_run(opened.runs[name])
    if name.startswith(_UPLOAD):
        found = site.uploads.get(name.removeprefix(_UPLOAD)).content
        if isinstance(found, Run):
            return found
    raise ConfigError("there is no such run here: choose one of the list, or upload it again")


def _judgements(site: Site, digest: str) -> QrelsFile | None:
    if not digest:
        return None
    found = site.uploads.get(digest).content
    if not isinstance(found, QrelsFile):
        raise ConfigError("these are no judgements: upload them again")
    return found


def _renamed(runs: list[Run]) -> dict[str, Run]:
    """Two files may have the same name; on a page they need two."""
    found: dict[str, Run] = {}
    for one in runs:
        name, number = one.name, 2
        while name in found:
            name, number = f"{one.name} ({number})", number + 1
        found[name] = one
    return found


@router.post("/audit")
async def upload(site: Here, files: list[UploadFile], qrels: UploadFile | None = None) -> Response:
    """Take runs, and lead to the page that shows them: its link can be used as long as they are kept."""
    if not 1 <= len(files) <= MOST_RUNS:
        raise ConfigError(f"expected one run to {MOST_RUNS}, found {len(files)}")
    sent = [(one.filename or "", await one.read()) for one in files]
    judged = (qrels.filename or "", await qrels.read()) if qrels is not None and qrels.size else None
    found = await site.work.run(lambda: _taken(site, sent, judged))
    return RedirectResponse(found.link(), 303)


def _taken(site: Site, sent: list[tuple[str, bytes]], judged: tuple[str, bytes] | None) -> runs_page.AuditForm:
    runs = [f"{_UPLOAD}{site.uploads.add_run(name, data).digest}" for name, data in sent]
    return runs_page.AuditForm(tuple(runs), site.uploads.add_judgements(*judged).digest if judged else "")


@router.get("/plan")
async def plan_page(site: Here) -> Response:
    """Plan."""
    opened = await site.opened()
    return html(await site.work.run(lambda: _plan(site, opened)))


def _plan(site: Site, opened: Opening) -> Page:
    store, note = site.store_of(opened), note_of(opened)
    nodes = plan_of(store)
    if not nodes:
        return empty_page("Plan", "/plan", "This store has no finished steps.", note)
    return plan.plan_page(nodes, store.unfinished(), note)


@router.get("/plan/{name}")
async def step_page(site: Here, name: str) -> Response:
    """The manifest of a step, for people."""
    opened = await site.opened()
    return html(await site.work.run(lambda: plan.step_page(step_of(opened.store, name), note_of(opened))))


@router.get("/plan/{name}/manifest.json")
async def manifest(site: Here, name: str) -> Response:
    """The manifest of a step, as it lies in the store."""
    opened = await site.opened()
    found = await site.work.run(lambda: step_of(opened.store, name))
    return Response(found.manifest.to_json(), media_type="application/json")


@router.get("/logs")
async def logs_page(site: Here) -> Response:
    """Logs."""
    opened = await site.opened()
    note, folder = note_of(opened), opened.logs
    if folder is None:
        return html(empty_page("Logs", "/logs", "No result of a log is open.", note, _LOG_COMMANDS))
    return html(await site.work.run(lambda: logs.logs_page(read_log_report(folder), note)))


@router.get("/api")
async def api_page(site: Here, request: Request) -> Response:
    """API."""
    document = request.app.openapi()
    note = note_of(await site.opened())
    own = f"{site.settings.host}:{site.settings.port}"
    base = reference.base_of(request.url.scheme, request.headers.get("host", ""), own)
    return html(reference.reference_page(json.loads(json.dumps(document)), note, base))
