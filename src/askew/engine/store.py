"""The store: a folder of finished steps.

Its guarantees, each with a test: a part is there whole or not at all (written under another name, flushed,
renamed); the manifest comes last; nobody else writes to a step while it runs; a damaged part is an error and
never a shorter result. The names of the parts say which input rows they answer for, so the folder itself is the
ledger of what is done, and a step may go on with parts of another size.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.errors import StoreError
from askew.core.fingerprint import digest_file
from askew.engine.manifest import Manifest, Part

_PART = re.compile(r"part-(\d{12})-(\d{12})\.parquet")
_META = b"askew"


class Store:
    """All finished and half-finished steps below one folder."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def folder(self, step: str, key: str) -> Path:
        """Where a step lives."""
        return self.root / f"{step}-{key}"

    def finished(self, step: str, key: str) -> Manifest | None:
        """The manifest of a finished step, or None."""
        path = self.folder(step, key) / "manifest.json"
        return Manifest.read(path) if path.exists() else None

    def steps(self) -> list[Manifest]:
        """All finished steps."""
        return [Manifest.read(path) for path in sorted(self.root.glob("*/manifest.json"))]

    @contextlib.contextmanager
    def writing(self, step: str, key: str) -> Iterator[StepWriter]:
        """Hold a step for writing. The lock goes with the process, however it ends."""
        locks = self.root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / f"{step}-{key}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{self.folder(step, key)}: another process is working on this step") from None
            yield StepWriter(self.folder(step, key))

    def read(self, manifest: Manifest, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The parts of a finished step in order, each checked against its digest first."""
        folder = self.folder(manifest.step, manifest.key)
        for part in manifest.parts:
            path = folder / part.file
            try:
                data = path.read_bytes()
            except OSError as error:
                raise StoreError(f"{path}: a part of a finished step cannot be read ({error.strerror})") from None
            if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
                raise StoreError(f"{path}: the part is damaged (its digest is not the one in the manifest)")
            yield pq.read_table(pa.BufferReader(data), columns=columns)

    def digest(self, path: Path) -> str:
        """The digest of a file, remembered as long as its size and time do not change."""
        stat = path.stat()
        mark = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        known = self._digests()
        if mark not in known:
            known[mark] = digest_file(path)
            self.root.mkdir(parents=True, exist_ok=True)
            write_whole(self.root / "digests.json", json.dumps(known, indent=0, sort_keys=True).encode())
        return known[mark]

    def _digests(self) -> dict[str, str]:
        try:
            found = json.loads((self.root / "digests.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


class StepWriter:
    """Writes the parts of one step, then its manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".writing-*"):
            left.unlink()

    def done(self) -> list[Part]:
        """The parts that are there already, checked, in order."""
        parts = [_read_part(path) for path in self.folder.iterdir() if _PART.fullmatch(path.name)]
        parts.sort(key=lambda part: part.start)
        for before, after in pairwise(parts):
            if after.start < before.stop:
                raise StoreError(f"{self.folder}: {before.file} and {after.file} answer for the same rows")
        return parts

    def write(self, table: pa.Table, start: int, stop: int, kept: int, dropped: dict[str, int]) -> Part:
        """Write one part, whole or not at all."""
        path = self.folder / f"part-{start:012d}-{stop:012d}.parquet"
        facts = {"start": start, "stop": stop, "kept": kept, "dropped": dict(sorted(dropped.items()))}
        described = table.combine_chunks().replace_schema_metadata({_META: json.dumps(facts, sort_keys=True)})
        sink = pa.BufferOutputStream()
        pq.write_table(described, sink, compression="zstd", write_page_checksum=True)
        data = sink.getvalue().to_pybytes()
        write_whole(path, data)
        digest = hashlib.sha256(data).hexdigest()
        return Part(path.name, start, stop, table.num_rows, kept, dict(sorted(dropped.items())), digest, len(data))

    def finish(self, manifest: Manifest, provenance: dict[str, Any]) -> None:
        """The manifest is the last thing written."""
        text = json.dumps(provenance, indent=2, sort_keys=True) + "\n"
        write_whole(self.folder / "provenance.json", text.encode())
        write_whole(self.folder / "manifest.json", manifest.to_json().encode())


def _read_part(path: Path) -> Part:
    try:
        data = path.read_bytes()
        table = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
        facts = json.loads(table.schema.metadata[_META])
        digest = hashlib.sha256(data).hexdigest()
        return Part(
            path.name, facts["start"], facts["stop"], table.num_rows, facts["kept"], facts["dropped"], digest, len(data)
        )
    except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(f"{path}: the part is damaged ({first}); delete it and run again") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a power cut."""
    temporary = path.with_name(f".writing-{os.getpid()}-{path.name}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
