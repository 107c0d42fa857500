"""One demo for all tests of the explorer, made in a cache of their own."""

import contextlib
import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the explorer needs the extra web")
pytest.importorskip("uvicorn", reason="the explorer needs the extra web")
pytest.importorskip("python_multipart", reason="the explorer needs the extra web")

import polars as pl
import pyarrow as pa
import uvicorn
from fastapi.testclient import TestClient

from askew.app.explore.opening import Sources, build_demo, open_sources
from askew.app.logs.analyze import analyze_log
from askew.app.logs.settings import LogSettings
from askew.app.logs.writing import write_tables
from askew.logs.planted import Planted
from askew.logs.synthetic import SyntheticLog, write_log
from askew.web.app import create_app
from askew.web.settings import ServerLimits, Settings

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
    write_tables(analyze_log([path], format="parquet", settings=LogSettings(min_events=5)), folder / "out")
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
def running(settings):
    """A real server on a free port, in a thread of this process."""
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="on"))
    bound = threading.Event()
    start = server.startup

    async def startup(sockets=None):
        await start(sockets)
        bound.set()

    server.startup = startup
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert bound.wait(60)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def live(store):
    with running(Settings(DEMO, limits=FREE)) as url:
        yield url
