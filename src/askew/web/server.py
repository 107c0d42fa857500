"""Listen, answer, and stop in order: what was begun is finished, then the port is free."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from askew.app.explore.opening import check_sources
from askew.core.errors import ConfigError
from askew.web.app import create_app
from askew.web.connections import Connections, connections_possible
from askew.web.listener import LimitedProtocol, Listener
from askew.web.notices import quiet_logs
from askew.web.settings import Settings

_log = logging.getLogger("askew.web")
Told = Callable[[str], None]


class LimitedServer(uvicorn.Server):
    """Accepts no more connections than it can hold, and closes those whose request does not come.

    Stops on SIGTERM and Ctrl-C once all answers are given; a second Ctrl-C does not wait.
    """

    interrupted = False

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self.connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen at the given sockets."""
        await super().startup(sockets=[])
        self.servers = [cast(Any, Listener(one, self.connections, self._protocol)) for one in sockets or []]

    def _protocol(self, address: str) -> LimitedProtocol:
        return LimitedProtocol(
            self.connections, address, config=self.config, server_state=self.server_state,
            app_state=self.lifespan.state,
        )  # fmt: skip

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second, as uvicorn does it; twice a second the connections are looked through."""
        if counter % 5 == 0:
            self.connections.sweep()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but the signal does not end the process a second time afterwards."""
        before = {number: signal.signal(number, self._asked_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _asked_to_stop(self, number: int, _: FrameType | None) -> None:
        self.interrupted = self.interrupted or number == signal.SIGINT
        if self.should_exit and number == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def serve(settings: Settings, ready: Told, verbose: bool = False) -> None:
    """Serve until told to stop. ``ready`` is told the address as soon as it can be asked."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(message)s")
    quiet_logs()
    check_sources(settings.sources)
    held = listen(settings)
    possible = connections_possible(settings.limits.connections)
    if possible < settings.limits.connections:
        _log.warning("at most %d connections: this process may open no more files (ulimit -n)", possible)
    wrong: list[BaseException] = []

    def failed(error: BaseException) -> None:
        wrong.append(error)
        server.should_exit = True

    app = create_app(settings, failed)
    server = make_server(app, settings, possible)
    host, port = held.getsockname()[:2]
    ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
    with contextlib.closing(held):
        asyncio.run(server.serve(sockets=[held]))
    if wrong:
        raise wrong[0]
    if server.interrupted:
        raise KeyboardInterrupt


def make_server(app: ASGIApp, settings: Settings, connections: int) -> LimitedServer:
    """The server of an application; it listens once it is run."""
    # Anyone can write an address into a header, and the rate is counted by address: only named proxies are believed.
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", server_header=False, ws="none",
        proxy_headers=bool(settings.proxies), forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=settings.limits.drain_seconds, timeout_keep_alive=15,
    )  # fmt: skip
    return LimitedServer(config, Connections(settings.limits, connections, settings.proxies))


def listen(settings: Settings) -> socket.socket:
    """The socket, bound before anything is loaded: a port that is taken is known at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((settings.host.strip("[]"), settings.port))
        held.listen(2048)
    except OSError as error:
        held.close()
        why = error.strerror or str(error)
        raise ConfigError(
            f"--host {settings.host} --port {settings.port}: cannot listen there ({why}); give another --port"
        ) from None
    return held
