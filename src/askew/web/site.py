"""What a running service holds: what is open, who works, what was uploaded."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable

from askew.app.explore.explorer import Explorer
from askew.app.explore.opening import Opening, build_demo, open_sources
from askew.app.explore.pairs import ShownPairs, datasets, find_pairs, open_pairs
from askew.app.explore.plan import name_of
from askew.core.errors import DataError
from askew.engine.store import Store
from askew.web.access import Access
from askew.web.lane import Lane
from askew.web.limits import Rate
from askew.web.settings import Settings
from askew.web.uploads import Uploads
from askew.web.work import Work

_MOST_TABLES = 8


class Site:
    """One service. ``opened`` is waited for: pages that need the collection come as soon as it is there."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        limits = settings.limits
        self.work = Work(limits.threads, limits.waiting, limits.cache_bytes)
        self.lane = Lane(settings.sources, limits.measuring, limits.measure_seconds)
        # A language model takes seconds, and no search waits for it.
        self.writing = Work(1, limits.waiting, limits.cache_bytes, limits.wait_seconds)
        self.access = Access(settings.token)
        self.rate = Rate(limits.rate, limits.burst)
        self.uploads = Uploads(limits.uploads, 2 * limits.upload_bytes)
        self._opening: asyncio.Future[Opening] | None = None
        self._tables: OrderedDict[str, ShownPairs] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def start(self, failed: Callable[[BaseException], None] | None = None) -> None:
        """Begin to open what there is to show; ``failed`` is told if that cannot be done."""
        loop = asyncio.get_running_loop()
        self._opening = loop.run_in_executor(None, open_sources, self.settings.sources)

        def told(done: asyncio.Future[Opening]) -> None:
            error = None if done.cancelled() else done.exception()
            if self._closed:
                return
            if error is None and not done.cancelled():
                loop.run_in_executor(None, warm, done.result())
            elif error is not None and failed is not None:
                failed(error)

        self._opening.add_done_callback(told)

    @property
    def opened_now(self) -> Opening | None:
        """What is open, or None where that takes a little longer."""
        done = self._opening is not None and self._opening.done() and self._opening.exception() is None
        return self._opening.result() if done and self._opening is not None else None

    async def opened(self) -> Opening:
        """What is open."""
        assert self._opening is not None, "the service has not been started"
        return await asyncio.shield(self._opening)

    async def explorer(self) -> Explorer:
        """What answers queries; an error where there is nothing to search."""
        found = await self.opened()
        if found.explorer is None:
            raise DataError(found.reason)
        return found.explorer

    def store_of(self, opened: Opening) -> Store:
        """The store, with the pairs of the demo made if it is the demo and they are not there. Takes a while once."""
        if opened.demo and not datasets(opened.store):
            build_demo(opened.store, opened.groups)
        return opened.store

    def pairs(self, opened: Opening, name: str) -> ShownPairs:
        """A dataset; those used lately stay open."""
        store = self.store_of(opened)
        chosen = name_of(find_pairs(store, name))
        with self._lock:
            known = self._tables.get(chosen)
        if known is not None:
            return known
        table = open_pairs(store, chosen)
        with self._lock:
            self._tables[table.name] = table
            while len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
        return table

    def close(self) -> None:
        """Finish what was begun."""
        self._closed = True
        self.lane.close()
        self.work.close()
        self.writing.close()


def warm(opened: Opening) -> None:
    """Ask once: what is compiled is loaded then, and not with somebody's first query."""
    if opened.explorer is not None:
        opened.explorer.search("warm")
