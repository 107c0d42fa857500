"""Listen, answer, and stop in order: what was begun is finished, then the port is free."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from askew.app.explore.opening import check_sources
from askew.core.errors import ConfigError
from askew.web.app import create_app
from askew.web.settings import Settings

Told = Callable[[str], None]


class _Server(uvicorn.Server):
    """Stops on SIGTERM and Ctrl-C once all answers are given; a second Ctrl-C does not wait."""

    interrupted = False

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
    check_sources(settings.sources)
    held = _listen(settings)
    wrong: list[BaseException] = []

    def failed(error: BaseException) -> None:
        wrong.append(error)
        server.should_exit = True

    app = create_app(settings, failed)
    # Addresses in headers are not believed: anyone can write them, and the rate is counted by address.
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=settings.limits.drain_seconds, timeout_keep_alive=15,
    )  # fmt: skip
    server = _Server(config)
    host, port = held.getsockname()[:2]
    ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
    with contextlib.closing(held):
        asyncio.run(server.serve(sockets=[held]))
    if wrong:
        raise wrong[0]
    if server.interrupted:
        raise KeyboardInterrupt


def _listen(settings: Settings) -> socket.socket:
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
