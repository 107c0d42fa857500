"""Routes of the pages Dataset, Runs, Audit, Plan and Logs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query, Response, UploadFile
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse

from askew.core.errors import AskewError, ConfigError, DataError, check_name
from askew.data.runs import Run, read_run
from askew.logs.page import read_log_report
from askew.study.audit.report import read_audit
from askew.ui.explorer.opening import Opening
from askew.ui.explorer.pairs import ShortText, as_tsv, datasets
from askew.ui.explorer.plan import plan_of, step_of
from askew.ui.explorer.runs import MISSING_TEXT, Audit
from askew.ui.explorer.runs import audit as measured
from askew.ui.web import schemas as s
from askew.ui.web.api import Here
from askew.ui.web.lane import Opened
from askew.ui.web.pages import audit, plan
from askew.ui.web.pages import dataset as pairs
from askew.ui.web.pages import runs as runs_form
from askew.ui.web.pages.routes import html, note_of
from askew.ui.web.pages.shell import Page, empty_page, render
from askew.ui.web.site import Upload

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_UPLOAD = "upload:"
MOST_RUNS = 4
_AUDIT_COMMANDS = (
    "To audit an engine, run ",
    "askew audit callable:search.py:find --queries queries.tsv --out AUDIT",
    "askew serve --audit AUDIT",
)
_LOG_COMMANDS = ("To analyze a log, run ", "askew logs --demo --out LOGS", "askew serve --logs LOGS")
Filter = Annotated[s.ChosenFilter, Query()]
_WRITERS: dict[str, Callable[[pl.LazyFrame, Path], object]] = {"parquet": pl.LazyFrame.sink_parquet, "tsv": as_tsv}


@router.get("/pairs")
async def pairs_page(site: Here, asked: Filter) -> Response:
    """Dataset."""
    opened = site.opened

    def make() -> Page:
        note, known = note_of(opened), datasets(site.store())
        if not known:
            return empty_page("Dataset", "/pairs", "There are no pairs in this store.", note)
        table = site.pairs(asked.dataset)
        # Results cannot be compared if another plan of the store made the pairs.
        can_open = opened.explorer is not None and table.name == (opened.dataset or table.name)
        return pairs.pairs_page(table, asked, known, can_open, note)

    return html(await site.work.run(make))


@router.get("/pairs/selection.{ending}")
async def selection(site: Here, ending: str, asked: Filter) -> Response:
    """Download the pairs that match."""
    if ending not in _WRITERS:
        raise DataError(f"pairs can be downloaded as {' or '.join(_WRITERS)}, not {ending!r}")
    folder = tempfile.TemporaryDirectory(prefix="askew-selection-")
    path = Path(folder.name) / f"pairs.{ending}"

    def write() -> None:
        _WRITERS[ending](site.pairs(asked.dataset).selection(asked), path)

    try:
        await site.work.run(write)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, filename=path.name, background=BackgroundTask(folder.cleanup))


@router.get("/runs")
async def runs_page(
    site: Here, run: Annotated[list[str] | None, Query(max_length=MOST_RUNS)] = None, qrels: ShortText = "",
    measure: ShortText = "", missing: ShortText = MISSING_TEXT,
) -> Response:  # fmt: skip
    """Runs."""
    opened = site.opened
    chosen = runs_form.RunsForm(tuple(dict.fromkeys(run or ())), qrels, measure, missing)
    if not chosen.runs:
        return html(_runs_page(opened, chosen))
    named = (name.removeprefix(_UPLOAD) for name in (*chosen.runs, qrels))
    sent = {one.digest: one for name in named if (one := site.uploads.find(name)) is not None}

    async def make() -> bytes:
        page, problem = await site.lane.run(_measured, chosen, sent)
        if problem:
            raise _NotMeasured(page)
        return page

    try:
        # The times at which the chosen files were last changed are a part of the key.
        files = [opened.runs[name] for name in chosen.runs if name in opened.runs]
        changed = await site.work.run(lambda: tuple(file.stat().st_ctime_ns for file in files if file.exists()))
        return HTMLResponse(await site.work.once(("runs", chosen, changed), make))
    except _NotMeasured as found:
        return HTMLResponse(found.page, 400)


class _NotMeasured(Exception):
    """Carries the page with the error. It is not cached, because missing files may be uploaded."""

    def __init__(self, page: bytes) -> None:
        super().__init__("not measured")
        self.page = page


def _measured(opened: Opened, chosen: runs_form.RunsForm, sent: Mapping[str, Upload]) -> tuple[bytes, str]:
    """Return the page and the error, if any. This runs in the process that measures runs."""
    here = opened()
    names: dict[str, str] = {}
    try:
        runs = {name: _run(here, sent, name) for name in chosen.runs}
        names = {name: one.name for name, one in runs.items()}
        judged = _sent(sent, chosen.qrels).judgements() if chosen.qrels else None
        if chosen.qrels and judged is None:
            raise ConfigError("this upload has no judgements: upload the runs again, with a file of judgements")
        different: dict[str, Run] = {}
        for one in runs.values():
            # Two files may have the same name.
            numbers = (f"{one.name} ({number})" for number in count(2))
            different[next(name for name in chain([one.name], numbers) if name not in different)] = one
        found = measured(different, here.explorer, qrels=judged, missing=chosen.missing)
        if chosen.measure:
            found.asked(chosen.measure)
    except AskewError as error:
        return render(_runs_page(here, chosen, names, problem=str(error))), str(error)
    return render(_runs_page(here, chosen, names, found)), ""


def _runs_page(
    opened: Opening, chosen: runs_form.RunsForm, names: Mapping[str, str] = MappingProxyType({}),
    found: Audit | None = None, problem: str = "",
) -> Page:  # fmt: skip
    known = {**names, **{name: path.name for name, path in opened.runs.items()}}
    return runs_form.runs_page(known, chosen, found, problem, note_of(opened))


def _run(opened: Opening, sent: Mapping[str, Upload], name: str) -> Run:
    if name in opened.runs:
        return read_run(opened.runs[name])
    if not name.startswith(_UPLOAD):
        raise ConfigError("this run was not found: choose a run from the list, or upload the run again")
    found = _sent(sent, name.removeprefix(_UPLOAD)).run()
    if found is None:
        raise ConfigError("the uploaded file is not a run: upload a run")
    return found


def _sent(sent: Mapping[str, Upload], digest: str) -> Upload:
    if digest not in sent:
        raise ConfigError("this upload is no longer kept: upload the file again")
    return sent[digest]


@router.post("/runs")
async def upload(site: Here, files: list[UploadFile], qrels: UploadFile | None = None) -> Response:
    """Store uploaded runs and redirect to their page. The link works as long as they are kept."""
    if not 1 <= len(files) <= MOST_RUNS:
        raise ConfigError(f"expected 1 to {MOST_RUNS} runs, found {len(files)}")
    sent = [(one.filename or "", await one.read()) for one in files]
    judged = (qrels.filename or "", await qrels.read()) if qrels is not None and qrels.size else None
    runs = await site.work.run(lambda: [Upload.of(name, data, "run") for name, data in sent])
    judgements = None if judged is None else await site.work.run(lambda: Upload.of(*judged, "qrels"))
    await site.lane.run(_check, [*runs, *([judgements] if judgements else [])])
    names = tuple(f"{_UPLOAD}{site.uploads.add(one).digest}" for one in runs)
    found = runs_form.RunsForm(names, site.uploads.add(judgements).digest if judgements else "")
    return RedirectResponse(found.link(), 303)


def _check(_: Opened, sent: list[Upload]) -> None:
    """Parse the uploads, so that errors in them are reported at once."""
    for one in sent:
        one.run()
        one.judgements()


@router.get("/audit")
async def audit_page(site: Here, name: ShortText = "") -> Response:
    """Audit."""
    opened = site.opened
    note, known = note_of(opened), opened.audits
    if not known:
        return html(empty_page("Audit", "/audit", "No audit of an engine is open.", note, _AUDIT_COMMANDS))
    chosen = name or next(iter(known))
    check_name("audit", chosen, known)
    return html(await site.work.run(lambda: audit.audit_page(read_audit(known[chosen]), chosen, known)))


@router.get("/plan")
async def plan_page(site: Here) -> Response:
    """Plan."""

    def make() -> Page:
        store, note = site.store(), note_of(site.opened)
        nodes = plan_of(store)
        if not nodes:
            return empty_page("Plan", "/plan", "This store has no finished steps.", note)
        return plan.plan_page(nodes, store.unfinished(), note)

    return html(await site.work.run(make))


@router.get("/plan/{name}")
async def step_page(site: Here, name: str) -> Response:
    """The manifest of a step, as a page."""
    opened = site.opened
    return html(await site.work.run(lambda: plan.step_page(*step_of(opened.store, name), note_of(opened))))


@router.get("/plan/{name}/manifest.json")
async def manifest(site: Here, name: str) -> Response:
    """The manifest of a step, as JSON."""
    found, _ = await site.work.run(lambda: step_of(site.opened.store, name))
    return Response(found.to_json(), media_type="application/json")


@router.get("/logs")
async def logs_page(site: Here) -> Response:
    """Logs."""
    opened = site.opened
    note, folder = note_of(opened), opened.logs
    if folder is None:
        return html(empty_page("Logs", "/logs", "No analysis of a log is open.", note, _LOG_COMMANDS))
    return html(await site.work.run(lambda: audit.logs_page(read_log_report(folder))))
