"""The server: listen, answer requests, and finish open requests before it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from askew.core.errors import ConfigError
from askew.ui.web.app import create_app
from askew.ui.web.connections import Connections, LimitedProtocol, OncePerMinute, connections_possible
from askew.ui.web.settings import Settings

# The connections that asyncio accepts at once. Until the table has counted them and closed others, it accepts more:
# few, so that ``connections.RESERVE`` has enough file descriptors for them. The system queues the rest.
_AT_ONCE, _QUEUED = 8, 2048
# What is left for threads to end in, after open requests were given up.
_LAST_SECONDS = 5
_log = logging.getLogger("askew.ui.web")


class LimitedServer(uvicorn.Server):
    """A server that limits the number of connections, and closes those whose request does not arrive.

    SIGTERM and Ctrl-C stop it once all requests are answered, or after some seconds; a second Ctrl-C stops it at once.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self.connections = connections
        # Started when the server stops, to end the process if a thread hangs.
        self.late: threading.Timer | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen on the given sockets."""
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(_QUEUED)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the answers that were begun."""
        if self.late is not None:
            self.late.start()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Check the connections twice a second. uvicorn calls this ten times a second."""
        if counter % 5 == 0:
            self.connections.sweep()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop as uvicorn does. After SIGTERM the command succeeds, so this signal is not raised again."""
        if sig == signal.SIGTERM:
            self.should_exit = True
        else:
            super().handle_exit(sig, frame)


def _leave() -> None:
    _log.warning("stopped, although a thread is still busy")
    os._exit(0)


def serve(settings: Settings, ready: Callable[[str], None], verbose: bool = False) -> None:
    """Serve until stopped. ``ready`` is called with the address as soon as it accepts connections."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(message)s")
    for handler in logging.getLogger().handlers:
        if not any(isinstance(one, OncePerMinute) for one in handler.filters):
            handler.addFilter(OncePerMinute())
    listening = listen(settings)
    possible = connections_possible(settings.limits.connections)
    if possible < settings.limits.connections:
        _log.warning("at most %d connections are possible, because of the limit on open files (ulimit -n)", possible)
    with contextlib.closing(listening):
        app = create_app(settings)
        # Opened here, so that an error in the sources is an error of the caller. The system queues early requests.
        _ = app.state.site.opened
        server = make_server(app, settings, possible)
        host, port = listening.getsockname()[:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        server.late = threading.Timer(settings.limits.drain_seconds + _LAST_SECONDS, _leave)
        server.late.daemon = True
        try:
            asyncio.run(server.serve(sockets=[listening]))
        finally:
            server.late.cancel()


def make_server(app: ASGIApp, settings: Settings, connections: int) -> LimitedServer:
    """Make the server of an application. It listens once it is run."""
    table = Connections(settings.limits, connections, settings.proxies)
    # Rates are limited by address, and any client can forge X-Forwarded-For: only configured proxies are trusted.
    config = uvicorn.Config(
        app, http=cast(Any, partial(LimitedProtocol, table)), log_config=None, access_log=False, lifespan="on",
        server_header=False, ws="none", proxy_headers=bool(settings.proxies), backlog=_AT_ONCE,
        forwarded_allow_ips=list(settings.proxies), timeout_graceful_shutdown=settings.limits.drain_seconds,
        timeout_keep_alive=15,
    )  # fmt: skip
    return LimitedServer(config, table)


def listen(settings: Settings) -> socket.socket:
    """Bind the socket before anything is loaded, so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
        listening.listen(_QUEUED)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"--host {settings.host} --port {settings.port}: cannot listen there ({error.strerror or error}); give "
            "another --port"
        ) from None
    return listening
