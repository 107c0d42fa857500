"""The state of a running service: the open collection, the workers and the uploads."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from askew.core.errors import DataError
from askew.core.store.store import Store
from askew.data.judgements import QrelsFile, read_judgements
from askew.data.runs import Run, read_run
from askew.ui.explorer.answers import Alternatives
from askew.ui.explorer.explorer import Explorer
from askew.ui.explorer.opening import Opening, build_demo, open_sources
from askew.ui.explorer.pairs import ShownPairs, datasets, find_pairs, open_pairs
from askew.ui.explorer.plan import name_of
from askew.ui.web.guard import Access, Rate
from askew.ui.web.lane import Lane
from askew.ui.web.replies import place_of
from askew.ui.web.settings import Settings
from askew.ui.web.work import BatchWork, Work

# Uploaded runs and judgements. The last uploads are kept in memory.

# Compressed formats, which can be huge when they are unpacked.
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"PAR1")
_NAME = re.compile(r"[^\w.()+-]+")
MOST_LINES = 1_000_000


@dataclass(frozen=True)
class Upload:
    """An uploaded file: its name on pages, whether it is a ``run`` or ``qrels``, and its bytes."""

    digest: str
    name: str
    what: str
    data: bytes = field(repr=False)

    @classmethod
    def of(cls, name: str, data: bytes, what: str) -> Upload:
        """Make an upload with a safe name. Data that cannot be lines of text is refused without parsing it."""
        if data.startswith(_PACKED):
            raise DataError(
                f"upload: the {what} is compressed or in Parquet format; upload a plain text file in TREC format"
            )
        if not data.strip():
            raise DataError(f"upload: the {what} is empty")
        if data.count(b"\n") > MOST_LINES:
            raise DataError(f"upload: at most {MOST_LINES:,} lines are accepted; use 'askew measure' for larger files")
        digest = hashlib.sha256(what.encode() + b"\0" + data).hexdigest()[:16]
        return cls(digest, _NAME.sub("_", Path(name.replace("\\", "/")).name)[-60:] or "upload", what, data)

    def run(self) -> Run | None:
        """Parse the uploaded run; None if the upload is not a run."""
        return read_run(Path(self.name), data=self.data) if self.what == "run" else None

    def judgements(self) -> QrelsFile | None:
        """Parse the uploaded judgements; None if the upload has none."""
        return read_judgements(Path(self.name), self.data) if self.what == "qrels" else None


class Uploads:
    """The last uploads by the digest of their bytes. Equal files are one upload."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Upload] = OrderedDict()

    def add(self, upload: Upload) -> Upload:
        """Keep an upload, and remove the oldest ones if there are too many."""
        self._kept.pop(upload.digest, None)
        self._kept[upload.digest] = upload
        while len(self._kept) > self._most or sum(len(one.data) for one in self._kept.values()) > self._most_bytes:
            self._kept.popitem(last=False)
        return upload

    def find(self, digest: str) -> Upload | None:
        """Return an upload, or None if it is not kept."""
        return self._kept.get(digest)


_MOST_TABLES = 8
_log = logging.getLogger("askew.ui.web")


def reformulate_together(explorer: Explorer, queries: Sequence[str]) -> list[Alternatives | Exception]:
    """Reformulate queries together. An internal error on one query does not affect the others."""
    try:
        return list(explorer.reformulate_many(queries))
    except Exception as error:
        # The message may contain a query, so only the kind and the place are logged.
        _log.warning("reformulating %d queries together failed: %s at %s; each query is reformulated alone",
                     len(queries), type(error).__name__, place_of(error))  # fmt: skip
    answers = list[Alternatives | Exception]()
    for query in queries:
        try:
            answers.append(explorer.reformulate(query))
        except Exception as error:
            answers.append(error)
    return answers


def warm(explorer: Explorer | None) -> None:
    """Search once, so that compiled code is loaded before the first query of a user."""
    try:
        if explorer is not None:
            explorer.search("warm")
    except Exception as error:
        _log.warning("the first search failed: %s at %s", type(error).__name__, place_of(error))


class Site:
    """One service: what is open, the workers, and the uploads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        limits = settings.limits
        self.work = Work(limits.threads, limits.waiting, limits.cache_bytes)
        self.lane = Lane(settings.sources, limits.measuring, limits.measure_seconds)
        # A language model takes seconds, so it has its own queue and searches do not wait for it.
        self.writing = BatchWork[tuple[Explorer, str], Alternatives](
            lambda items: reformulate_together(items[0][0], [query for _, query in items]),
            limits.waiting, limits.cache_bytes, limits.wait_seconds,
        )  # fmt: skip
        self.access = Access(settings.token)
        self.rate = Rate(limits.rate, limits.burst)
        self.uploads = Uploads(limits.uploads, 2 * limits.upload_bytes)
        # The last datasets stay open.
        self._table = lru_cache(_MOST_TABLES)(open_pairs)

    @cached_property
    def opened(self) -> Opening:
        """The open sources."""
        return open_sources(self.settings.sources)

    @property
    def explorer(self) -> Explorer:
        """The explorer, which answers queries. If there is nothing to search, this is an error."""
        if self.opened.explorer is None:
            raise DataError(self.opened.reason)
        return self.opened.explorer

    async def reformulated(self, query: str, show: Callable[[Alternatives], bytes]) -> bytes:
        """Reformulate a query together with others that wait, and return what ``show`` makes of it."""
        (found,) = await self.writing.join((self.explorer, query))
        if isinstance(found, BaseException):
            raise found
        return await asyncio.to_thread(show, found)

    def store(self) -> Store:
        """Return the store. The pairs of the demo are built if they are missing, which takes a while."""
        opened = self.opened
        if opened.demo and not datasets(opened.store):
            build_demo(opened.store, opened.groups)
        return opened.store

    def pairs(self, name: str) -> ShownPairs:
        """Open a dataset."""
        store = self.store()
        return self._table(store, name_of(find_pairs(store, name)))

    def close(self) -> None:
        """Finish running jobs and stop the workers."""
        self.lane.close()
        self.work.close()
        self.writing.close()
