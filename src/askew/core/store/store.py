"""The store: finished and unfinished steps below one root.

The store has three guarantees, each with a test: a part is written completely or not at all; the manifest is written
last; a damaged part is an error and never a shorter result. The name of a part contains its range of input rows and the
start of the digest of its bytes. So the file names alone show which rows are done, a part of an interrupted run can be
verified, and a step can be resumed with another shard size.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.address import without_secret_values
from askew.core.errors import StoreError
from askew.core.files import HALF_WRITTEN, digest_file, fingerprint, parse_json, write_whole
from askew.core.machine import cache_folders
from askew.core.store.files import Files, LocalFiles, open_files
from askew.core.store.manifest import Manifest, Part, file_of, remedy

_PART = re.compile(r"part-(\d{12})-(\d{12})-([0-9a-f]{16})\.parquet")
_META = b"askew"
_PLANS = "plans"
# A digest is remembered only if the file was last changed this many seconds before it was read. A later write then
# has a later change time, even on a file system with a coarse clock.
SETTLED_S = 2.0


class Store:
    """All steps below one root: a folder, or an address such as ``s3://bucket/work``.

    ``cache`` is the local folder for data that needs local files, such as an index, if the root is not a local folder.
    """

    def __init__(self, root: Path | str, cache: Path | str | None = None) -> None:
        self.files: Files = open_files(root)
        self._cache = None if cache is None else Path(cache)

    def __repr__(self) -> str:
        return f"Store({self.files.where!r})"

    @property
    def root(self) -> Path:
        """The folder of the store; an error if the store is not a local folder."""
        if isinstance(self.files, LocalFiles):
            return self.files.root
        raise StoreError(f"store {self.files.where}: expected a local folder, found another kind of store")

    @property
    def local(self) -> Path:
        """The local folder of the store: its root, or a cache folder if the root is not local."""
        if isinstance(self.files, LocalFiles):
            return self.files.root
        if self._cache:
            return self._cache
        folders = cache_folders()
        if not folders:
            raise StoreError(f"store {self.files.where}: it needs a local cache folder; set ASKEW_CACHE to a folder")
        return folders[0] / "stores" / fingerprint(self.files.where)

    def folder(self, step: str, key: str) -> Path:
        """The folder of a step; an error if the store is not a local folder."""
        return self.root / f"{step}-{key}"

    def where(self, step: str, key: str) -> str:
        """The location of a step, for messages."""
        return f"{self.files.where}/{step}-{key}"

    def finished(self, step: str, key: str) -> Manifest | None:
        """The manifest of a finished step, or None."""
        return self._manifest(f"{step}-{key}")

    def steps(self) -> list[Manifest]:
        """All finished steps."""
        return [manifest for name in self.files.list() if (manifest := self._manifest(name)) is not None]

    def has(self, step: str) -> bool:
        """Whether a step of this name is finished, under any key."""
        names = [name for name in self.files.list() if name.startswith(f"{step}-")]
        return any(self.files.exists(f"{name}/manifest.json") for name in names)

    def _manifest(self, name: str) -> Manifest | None:
        path = f"{self.files.where}/{name}/manifest.json"
        try:
            data = self.files.read(f"{name}/manifest.json")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path}: the manifest cannot be read ({error.strerror or error})") from None
        manifest = Manifest.parse(data, path)
        if f"{manifest.step}-{manifest.key}" != name:
            raise StoreError(f"{path}: the manifest belongs to {manifest.step}-{manifest.key}; {remedy(path)}")
        return manifest

    def unfinished(self) -> dict[str, dict[str, int]]:
        """Steps that have parts but no manifest, with the number of parts and of input rows that they cover."""
        open_steps: dict[str, dict[str, int]] = {}
        for step in self.files.list():
            parts = [name for file in self.files.list(step) if (name := _PART.fullmatch(file))]
            if parts and not self.files.exists(f"{step}/manifest.json"):
                open_steps[step] = {"parts": len(parts), "rows in": sum(int(name[2]) - int(name[1]) for name in parts)}
        return open_steps

    @contextlib.contextmanager
    def writing(self, step: str, key: str) -> Iterator[StepWriter]:
        """Open a step for writing. In a local folder, a lock excludes other processes; a crash releases it.

        An object store has no locks, and two drivers may write the same step there without harm: they write the same
        bytes under the same names, neither deletes parts, and a manifest names only existing parts. With different
        shard sizes both write complete parts for the same rows, and a resumed run uses parts that do not overlap.
        """
        if not isinstance(self.files, LocalFiles):
            yield self.writer(step, key)
            return
        with self._open_lock(f"{step}-{key}") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{self.where(step, key)}: another process is working on this step") from None
            writer = self.writer(step, key)
            writer.tidy()
            yield writer

    def writer(self, step: str, key: str) -> StepWriter:
        """A writer without a lock, for workers: the driver has locked the step."""
        return StepWriter(self.files, f"{step}-{key}")

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Wait for and hold a lock among the processes of this machine, for data that is made once in ``local``."""
        with self._open_lock(f"lock-{name}") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _open_lock(self, name: str) -> IO[str]:
        locks = self.local / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        return (locks / name).open("w")

    def read(self, manifest: Manifest, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The parts of a finished step in order, each checked against its digest first."""
        for part in manifest.parts:
            yield self.open_part(manifest, part).read(columns=columns)

    def open_part(self, manifest: Manifest, part: Part) -> pq.ParquetFile:
        """Open a part of a finished step, and check it against the digest, columns and rows in the manifest."""
        name = f"{manifest.step}-{manifest.key}/{part.file}"
        path = f"{self.files.where}/{name}"
        try:
            data = self.files.read(name)
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreError(f"{path}: a part of a finished step cannot be read ({why}); {remedy(path)}") from None
        if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
            raise StoreError(f"{path}: the part is damaged (its digest differs from the manifest); {remedy(path)}")
        file = pq.ParquetFile(pa.BufferReader(data))
        if columns_of(file.schema_arrow) != manifest.columns or file.metadata.num_rows != part.rows:
            expected = f"expected {part.rows} rows of {', '.join(manifest.columns)}"
            raise StoreError(f"{path}: the part differs from the manifest ({expected}); {remedy(path)}")
        return file

    def remember_plan(self, origin: dict[str, Any]) -> None:
        """Save what is needed to run the steps of a plan again, without secrets. The same plan is saved once."""
        origin = without_secret_values(origin)
        # Keys keep the order of the recipe, because the order of groups determines the sign of a difference.
        text = json.dumps(origin, indent=1, ensure_ascii=False) + "\n"
        name = f"{_PLANS}/{fingerprint(origin)}.json"
        if not self.files.exists(name):
            self.files.write(name, text.encode())

    def plans(self) -> list[dict[str, Any]]:
        """The plans that were run in this store, except those with damaged files."""
        plans = []
        for name in self.files.list(_PLANS):
            with contextlib.suppress(OSError, ValueError):
                origin = parse_json(self.files.read(f"{_PLANS}/{name}"))
                if name == f"{fingerprint(origin)}.json" and isinstance(origin, dict):
                    plans.append(origin)
        return plans

    def digest(self, path: Path) -> str:
        """The digest of a file. It is remembered until the file is written, replaced or moved.

        A change is detected by device, inode, size and times. The system sets the change time (ctime) with every write,
        and programs cannot set it back, so an edit that keeps the size and restores the modification time is detected.
        Not detected are bytes that change below the file system, changes after the system clock was set back, and
        changes on file systems without a change time.
        """
        before = path.stat()
        mark = _mark(path, before)
        digest = self._digests().get(mark)
        if digest is not None:
            return digest
        now, digest = time.time(), digest_file(path)
        if now - max(before.st_ctime, before.st_mtime) > SETTLED_S and _mark(path, path.stat()) == mark:
            with self.lock("digests"):
                # Read again: another process may have added digests. An older one of the same file is removed.
                file = mark.rpartition("|")[0]
                others = {name: digest for name, digest in self._digests().items() if name.rpartition("|")[0] != file}
                digests = {**others, mark: digest}
                write_whole(self.local / "digests.json", json.dumps(digests, indent=0, sort_keys=True).encode())
        return digest

    def _digests(self) -> dict[str, str]:
        try:
            digests = parse_json((self.local / "digests.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(k): str(v) for k, v in digests.items()} if isinstance(digests, dict) else {}


def _mark(path: Path, stat: os.stat_result) -> str:
    """Identify the current state of a file: its path, a bar, and the facts that change with its content."""
    state = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return f"{path.resolve()}|{' '.join(map(str, state))}"


class StepWriter:
    """Writes the parts of one step, then its manifest."""

    def __init__(self, files: Files, name: str) -> None:
        self._files, self._name = files, name
        self.columns: dict[str, str] = {}

    @property
    def where(self) -> str:
        """The location of the step, for messages."""
        return f"{self._files.where}/{self._name}"

    def tidy(self) -> None:
        """Delete incomplete files of killed writers. Only the owner of the lock may call this."""
        for name in self._files.list(self._name):
            if name.startswith(HALF_WRITTEN):
                self._files.delete(f"{self._name}/{name}")

    def done(self) -> list[Part]:
        """The parts that are already in the store, checked, in order and without overlaps.

        Parts overlap if two drivers wrote them at the same time with different shard sizes. Both parts are right, so
        either can be used.
        """
        names = [name for name in self._files.list(self._name) if _PART.fullmatch(name)]
        chosen: list[Part] = []
        for part in sorted(map(self.part, names), key=lambda part: (part.stop, part.start)):
            if chosen and (part.start, part.stop) == (chosen[-1].start, chosen[-1].stop):
                both = f"{chosen[-1].file} and {part.file} cover the same rows and differ"
                raise StoreError(f"{self.where}: {both}: the stage is not repeatable; delete one and run again")
            if not chosen or part.start >= chosen[-1].stop:
                chosen.append(part)
        return chosen

    def write(self, table: pa.Table, start: int, stop: int, kept: int, dropped: dict[str, int]) -> Part:
        """Write one part, completely or not at all."""
        facts = {"start": start, "stop": stop, "kept": kept, "dropped": dict(sorted(dropped.items()))}
        described = table.combine_chunks().replace_schema_metadata({_META: json.dumps(facts, sort_keys=True)})
        sink = pa.BufferOutputStream()
        pq.write_table(described, sink, compression="zstd", write_page_checksum=True)
        data = sink.getvalue().to_pybytes()
        digest = hashlib.sha256(data).hexdigest()
        name = file_of(start, stop, digest)
        self.columns = columns_of(table.schema)
        self._put(name, data)
        return Part(name, start, stop, table.num_rows, kept, dict(sorted(dropped.items())), digest, len(data))

    def has(self, part: Part) -> bool:
        """Whether the file of a part exists."""
        return self._files.exists(f"{self._name}/{part.file}")

    def part(self, name: str) -> Part:
        """Read the facts of a part, and raise an error if it is damaged or has other columns than the other parts."""
        path = f"{self.where}/{name}"
        try:
            part, columns = _read_part(name, self._files.read(f"{self._name}/{name}"))
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(f"{path}: the part is damaged ({first}); delete it and run again") from None
        if self.columns and columns != self.columns:
            expected = f"expected the columns of the other parts ({listed(self.columns)}), found {listed(columns)}"
            raise StoreError(f"{path}: {expected}; delete the folder and run again", code="other-columns")
        self.columns = columns
        return part

    def finish(self, manifest: Manifest, provenance: dict[str, Any]) -> None:
        """Write the provenance, and the manifest last."""
        self.tidy()
        text = json.dumps(provenance, indent=2, sort_keys=True) + "\n"
        self._put("provenance.json", text.encode())
        self._put("manifest.json", manifest.to_json().encode())

    def _put(self, name: str, data: bytes) -> None:
        try:
            self._files.write(f"{self._name}/{name}", data)
        except OSError as error:
            first = error.strerror or str(error).partition("\n")[0]
            raise StoreError(f"{self.where}/{name}: cannot be written ({first})") from None


def _read_part(file: str, data: bytes) -> tuple[Part, dict[str, str]]:
    """The facts and the columns of a part; ValueError if they do not match its name."""
    name = _PART.fullmatch(file)
    digest = hashlib.sha256(data).hexdigest()
    if name is None or digest[:16] != name[3]:
        raise ValueError("the digest of the file differs from the digest in the file name")
    metadata = pq.read_metadata(pa.BufferReader(data))
    facts = parse_json(metadata.metadata[_META])
    start, stop = int(name[1]), int(name[2])
    if (facts["start"], facts["stop"]) != (start, stop):
        raise ValueError("the row numbers in the file differ from the row numbers in the file name")
    part = Part(file, start, stop, metadata.num_rows, facts["kept"], facts["dropped"], digest, len(data))
    return part, columns_of(metadata.schema.to_arrow_schema())


def columns_of(schema: pa.Schema) -> dict[str, str]:
    """The names and types of the columns, as in the manifest."""
    return {field.name: str(field.type) for field in schema}


def listed(columns: dict[str, str]) -> str:
    """Format columns for a message."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


# Verify a store: read every part of every step, compare it with its digest, and remove damaged parts.


@dataclass(frozen=True)
class Damage:
    """A damaged file of a step. ``file`` is empty if the whole step cannot be trusted."""

    step: str
    key: str
    file: str
    message: str
    manifest: Manifest | None = None

    @property
    def folder(self) -> str:
        """The folder of the step."""
        return f"{self.step}-{self.key}"


@dataclass
class StoreCheck:
    """The numbers of steps and parts that were read, and the damage found."""

    steps: int = 0
    parts: int = 0
    damaged: list[Damage] = field(default_factory=list)


def check_store(store: Store) -> StoreCheck:
    """Read every part of every step, finished or not."""
    check = StoreCheck()
    for folder in store.files.list():
        files = store.files.list(folder)
        parts = [name for name in files if _PART.fullmatch(name)]
        if not parts and "manifest.json" not in files:
            continue
        check.steps += 1
        check.parts += len(parts)
        step, _, key = folder.rpartition("-")
        check.damaged += _step(store, step, key, parts)
    return check


def _step(store: Store, step: str, key: str, parts: Sequence[str]) -> Iterator[Damage]:
    try:
        manifest = store.finished(step, key)
    except StoreError as error:
        yield Damage(step, key, "", str(error))
        return
    writer = store.writer(step, key)
    parts_by_file = {} if manifest is None else {part.file: part for part in manifest.parts}
    for name in sorted({*parts, *parts_by_file}):
        try:
            if manifest is not None and name in parts_by_file:
                store.open_part(manifest, parts_by_file[name])
            part = writer.part(name)
        except StoreError as error:
            yield Damage(step, key, name, str(error), manifest)
            continue
        # A part records how many rows were dropped and why. The manifest must agree.
        if part != parts_by_file.get(name, part):
            message = f"{writer.where}/manifest.json: the manifest is damaged (it disagrees with {name})"
            yield Damage(step, key, "", message)


def remove_damaged(store: Store, damaged: Sequence[Damage]) -> None:
    """Delete damaged parts and the manifest of their step, which then counts as unfinished.

    If the manifest itself cannot be used, readable parts are kept: their names contain the start of their digests.
    """
    for damage in damaged:
        with store.writing(damage.step, damage.key) as writer:
            store.files.delete(f"{damage.folder}/manifest.json")
            for name in [damage.file] if damage.file else filter(_PART.fullmatch, store.files.list(damage.folder)):
                try:
                    readable = not damage.file and bool(writer.part(name))
                except StoreError:
                    readable = False
                if not readable:
                    store.files.delete(f"{damage.folder}/{name}")


def same_as_before(store: Store, damaged: Sequence[Damage]) -> list[str]:
    """One line for each step that was recomputed and has other bytes than before."""
    wrong = []
    for manifest in {damage.folder: damage.manifest for damage in damaged if damage.manifest is not None}.values():
        now = None
        with contextlib.suppress(StoreError):
            now = store.finished(manifest.step, manifest.key)
        if now is None or now.to_json() != manifest.to_json():
            where = store.where(manifest.step, manifest.key)
            wrong.append(f"{where}: recomputing gave another result; delete it and all steps computed from it")
    return wrong
