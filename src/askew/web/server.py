"""The server: listen, answer requests, and finish open requests before it stops."""

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
    """A server that limits the number of connections, and closes those whose request does not arrive.

    SIGTERM and Ctrl-C stop it once all requests are answered; a second Ctrl-C stops it at once.
    """

    interrupted = False

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self.connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen on the given sockets."""
        await super().startup(sockets=[])
        self.servers = [cast(Any, Listener(one, self.connections, self._protocol)) for one in sockets or []]

    def _protocol(self, address: str) -> LimitedProtocol:
        return LimitedProtocol(
            self.connections, address, config=self.config, server_state=self.server_state,
            app_state=self.lifespan.state,
        )  # fmt: skip

    async def on_tick(self, counter: int) -> bool:
        """Check the connections twice a second. uvicorn calls this ten times a second."""
        if counter % 5 == 0:
            self.connections.sweep()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals as uvicorn does, but do not raise them again afterwards."""
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
    """Serve until stopped. ``ready`` is called with the address as soon as it accepts connections."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(message)s")
    quiet_logs()
    check_sources(settings.sources)
    held = listen(settings)
    possible = connections_possible(settings.limits.connections)
    if possible < settings.limits.connections:
        _log.warning("at most %d connections are possible, because of the limit on open files (ulimit -n)", possible)
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
    """Make the server of an application. It listens once it is run."""
    # Rates are limited by address, and any client can forge X-Forwarded-For: only configured proxies are trusted.
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", server_header=False, ws="none",
        proxy_headers=bool(settings.proxies), forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=settings.limits.drain_seconds, timeout_keep_alive=15,
    )  # fmt: skip
    return LimitedServer(config, Connections(settings.limits, connections, settings.proxies))


def listen(settings: Settings) -> socket.socket:
    """Bind the socket before anything is loaded, so that a port in use is reported at once."""
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
