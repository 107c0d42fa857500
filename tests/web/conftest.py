"""One demo for all tests of the explorer, made in a cache of their own."""

import contextlib
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the explorer needs the extra web")
pytest.importorskip("uvicorn", reason="the explorer needs the extra web")
pytest.importorskip("python_multipart", reason="the explorer needs the extra web")

import polars as pl
import pyarrow as pa
from fastapi.testclient import TestClient
from log_generator import Planted, SyntheticLog, write_log

from askew.logs.analyze import logs
from askew.logs.page import write_tables
from askew.logs.settings import LogSettings
from askew.ui.explorer.opening import Sources, build_demo, open_sources
from askew.ui.web.app import create_app
from askew.ui.web.server import listen, make_server
from askew.ui.web.settings import ServerLimits, Settings

# A query of the demo that has judgements, and the measure that decides about the lean of its results.
JUDGED, DECIDING = "how to become a nurse", "ARaB(tf,who=generic)@10"
BASE = "http://127.0.0.1:8642"
FREE = ServerLimits(rate=1e6, burst=1_000_000)
LIGHT = str(Path(__file__).with_name("light.toml"))
DEMO = Sources(recipe=LIGHT)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session")
def opened(cache):
    return open_sources(DEMO)


@pytest.fixture(scope="session")
def explorer(opened):
    return opened.explorer


@pytest.fixture(scope="session")
def store(opened):
    build_demo(opened.store)
    return opened.store


@pytest.fixture(scope="session")
def demo_pairs(store):
    """The pairs of the demo as they are in the store."""
    steps = {one.step: one for one in store.steps()}
    return pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(steps["pairs"]))))


@pytest.fixture(scope="session")
def client(store):
    with TestClient(create_app(Settings(DEMO, limits=FREE)), base_url=BASE) as found:
        yield found


@pytest.fixture(scope="session")
def log_folder(tmp_path_factory):
    """What askew logs --out writes for a small made-up log."""
    folder = tmp_path_factory.mktemp("logs")
    path = write_log(SyntheticLog(Planted(sessions=1500, users=400)), folder / "log.parquet")
    write_tables(logs([path], format="parquet", settings=LogSettings(min_events=5)), folder / "out")
    return folder / "out"


@pytest.fixture
def service():
    """A service of its own with other settings."""
    with contextlib.ExitStack() as stack:

        def make(**given):
            settings = Settings(**{"sources": DEMO, "limits": FREE, **given})
            return stack.enter_context(TestClient(create_app(settings), base_url=BASE))

        yield make


@contextlib.contextmanager
def running(settings, app=None):
    """A real server on a free port, in a thread of this process."""
    settings = replace(settings, port=0)
    server = make_server(app or create_app(settings), settings, settings.limits.connections)
    held, bound = listen(settings), threading.Event()
    start = server.startup

    async def startup(sockets=None):
        await start(sockets)
        bound.set()

    server.startup, server.capture_signals = startup, contextlib.nullcontext
    thread = threading.Thread(target=server.run, args=([held],))
    thread.start()
    try:
        assert bound.wait(60)
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        held.close()


@pytest.fixture(scope="session")
def live(store):
    with running(Settings(DEMO, limits=FREE)) as url:
        yield url


def expect(locator):
    """Playwright's expect, which waits until the page is as expected: a click returns before the next page is drawn."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=120_000)
    return sync_api.expect(locator)


@pytest.fixture(scope="module")
def browser():
    """Chromium. Tests of pages in it are skipped where it, or what drives it, is not installed."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="tests in a browser need playwright")
    chromium = os.environ.get("ASKEW_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("tests in a browser need chromium (or its path in ASKEW_CHROMIUM)")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_page(browser, live):
    """Opens pages; what the browser complains of is an error of the test, unless it has a part that is ``expected``."""
    contexts, told, expected = [], [], []

    def make(path="/", base=live, **how):
        context = browser.new_context(**how)
        contexts.append(context)
        page = context.new_page()
        # What is compiled at the first use may take a while on a busy machine.
        page.set_default_timeout(120_000)
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: told.append(f"dialog {dialog.message}") or dialog.dismiss())
        page.goto(base + path)
        return page

    make.told, make.expected = told, expected
    yield make
    for context in contexts:
        context.close()
    assert [text for text in told if not any(part in text for part in expected)] == []
