"""Accepts HTTP connections within the limits of ``askew.web.connections``."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from askew.web.connections import SCARCE, Connections

_RETRY = 0.1
# The number of connections to accept before other tasks of the event loop run.
_AT_ONCE = 16
_CLOSE = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_LATE = b"HTTP/1.1 408 Request Timeout\r\n" + _CLOSE
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + _CLOSE


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP protocol that reports when it waits for a request, and closes if the request head is late."""

    def __init__(self, connections: Connections, address: str, **given: Any) -> None:
        super().__init__(**given)
        self._held, self.address = connections, address
        self.head_since: float | None = None
        self._heard = self._ended = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request head."""
        super().connection_made(transport)
        self.head_since = self._held.clock()
        if self._ended:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request head or body."""
        self._heard = True
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Continue after a response; the next request may have arrived already."""
        super().on_response_complete()
        self._follow()

    def _follow(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.head_since = None
            self._held.works(self)
        elif not self._held.is_waiting(self):
            self.head_since, self._heard = None, False
            self._held.waits(self)
        elif self.head_since is None:
            # The next request head has begun on a kept-alive connection.
            self.head_since = self._held.clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the open ones."""
        super().connection_lost(exc)
        self._held.remove(self)

    def unsent(self) -> int:
        """The number of bytes of a response that the client has not received."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def late(self) -> None:
        """Send a timeout response and close. Browsers open connections that send nothing; these are not logged."""
        if self._heard:
            self._held.notices.add("closed: the request head did not arrive in time")
            self.transport.write(_LATE)
        self.transport.close()

    def end(self) -> None:
        """Close the connection at once, or as soon as it is open."""
        self._ended = True
        if self.transport is not None:
            self.transport.abort()


class Listener:
    """Accepts connections on a socket. It has ``close`` and ``wait_closed``, as the servers of asyncio."""

    def __init__(
        self, listening: socket.socket, connections: Connections, make: Callable[[str], LimitedProtocol]
    ) -> None:
        self._socket, self._connections, self._make = listening, connections, make
        self.sockets = [listening]
        self._opening: set[asyncio.Task[Any]] = set()
        listening.setblocking(False)
        self._task = asyncio.get_running_loop().create_task(self._accept())

    async def _accept(self) -> None:
        loop, accepted = asyncio.get_running_loop(), 0
        while True:
            try:
                one, address = await loop.sock_accept(self._socket)
            except OSError as error:
                if self._socket.fileno() < 0:
                    return
                if error.errno in SCARCE:
                    self._connections.scarce()
                # Any other error means that the connection is already gone.
                await asyncio.sleep(_RETRY if error.errno in SCARCE else 0)
                continue
            self._take(one, str(address[0]))
            accepted += 1
            if accepted % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _take(self, one: socket.socket, address: str) -> None:
        if not self._connections.make_room(address):
            with contextlib.suppress(OSError), one:
                one.send(_FULL)
            return
        protocol = self._make(address)
        self._connections.add(protocol)
        task = asyncio.get_running_loop().create_task(self._open(one, protocol))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, one: socket.socket, protocol: LimitedProtocol) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, one)
        except OSError:
            self._connections.remove(protocol)
            one.close()

    def close(self) -> None:
        """Accept no more connections."""
        self._task.cancel()

    async def wait_closed(self) -> None:
        """Wait until no connection is being accepted."""
        await asyncio.gather(self._task, *self._opening, return_exceptions=True)
