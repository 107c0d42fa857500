"""Uploaded runs and judgements. The last uploads are kept in memory."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from askew.core.errors import DataError
from askew.corpora.judgements import QrelsFile, read_judgements
from askew.corpora.runs import Run, read_run

# Compressed formats, which can be huge when they are unpacked.
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"PAR1")
_NAME = re.compile(r"[^\w.()+-]+")
MOST_LINES = 1_000_000
T = TypeVar("T")


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
        return replace(self._read(read_run), name=self.name) if self.what == "run" else None

    def judgements(self) -> QrelsFile | None:
        """Parse the uploaded judgements; None if the upload has none."""
        return self._read(read_judgements) if self.what == "qrels" else None

    def _read(self, read: Callable[[Path], T]) -> T:
        """Parse the data with a reader of files, from a temporary file with a fixed name."""
        with tempfile.TemporaryDirectory(prefix="askew-upload-") as folder:
            path = Path(folder) / "upload.txt"
            path.write_bytes(self.data)
            try:
                return read(path)
            except DataError as error:
                raise DataError(str(error).replace(str(path), self.name).replace(path.name, self.name)) from None


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
