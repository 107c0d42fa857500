"""Runs and judgements that were sent: read as data under a name of ours, kept in memory, a few at a time."""

from __future__ import annotations

import hashlib
import re
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from askew.core.errors import DataError
from askew.corpora.judgements import QrelsFile, read_judgements
from askew.corpora.runs import Run, read_run
from askew.web.problems import Problem

# A small file of these can be a huge one when it is unpacked.
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"PAR1")
_NAME = re.compile(r"[^\w.()+-]+")
MOST_LINES = 1_000_000


@dataclass(frozen=True)
class Upload:
    """A file that was sent: what it is called on pages, what it was read as, and how many bytes it had."""

    digest: str
    name: str
    content: Run | QrelsFile
    size: int


class Uploads:
    """The last uploads by the digest of their bytes. The same file again is the same upload."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Upload] = OrderedDict()
        self._lock = threading.Lock()

    def add_run(self, name: str, data: bytes) -> Upload:
        """Read a run and keep it."""
        return self._add(_upload(name, data, "run"))

    def add_judgements(self, name: str, data: bytes) -> Upload:
        """Read judgements and keep them."""
        return self._add(_upload(name, data, "qrels"))

    def _add(self, upload: Upload) -> Upload:
        with self._lock:
            self._kept.pop(upload.digest, None)
            self._kept[upload.digest] = upload
            while len(self._kept) > self._most or sum(one.size for one in self._kept.values()) > self._most_bytes:
                self._kept.popitem(last=False)
        return upload

    def get(self, digest: str) -> Upload:
        """An upload that is still kept."""
        with self._lock:
            found = self._kept.get(digest)
        if found is None:
            raise Problem(404, "not_kept", "this upload is not kept any more: upload the file again")
        return found


def _upload(name: str, data: bytes, what: str) -> Upload:
    if data.startswith(_PACKED):
        raise DataError(f"upload: the {what} is packed or Parquet; send the plain lines of TREC")
    if not data.strip():
        raise DataError(f"upload: the {what} is empty")
    digest = hashlib.sha256(what.encode() + b"\0" + data).hexdigest()[:16]
    shown = _NAME.sub("_", Path(name.replace("\\", "/")).name)[-60:] or "upload"
    return Upload(digest, shown, _read(shown, data, what), len(data))


def _read(shown: str, data: bytes, what: str) -> Run | QrelsFile:
    """The readers want a file: it lies under a name of ours in a folder of ours, and only as long as it is read."""
    if data.count(b"\n") > MOST_LINES:
        raise DataError(f"upload: at most {MOST_LINES:,} lines are taken here; askew measure takes any number")
    with tempfile.TemporaryDirectory(prefix="askew-upload-") as folder:
        path = Path(folder) / "upload.txt"
        path.write_bytes(data)
        try:
            return read_judgements(path) if what == "qrels" else replace(read_run(path), name=shown)
        except DataError as error:
            raise DataError(str(error).replace(str(path), shown).replace(path.name, shown)) from None
