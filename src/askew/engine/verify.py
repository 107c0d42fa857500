"""Verify a store: read every part of every step, compare it with its digest, and remove damaged parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from askew.core.errors import StoreError
from askew.engine.manifest import Manifest
from askew.engine.store import StepWriter, Store, is_part


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
    found = StoreCheck()
    for folder in store.files.list():
        files = store.files.list(folder)
        parts = [name for name in files if is_part(name)]
        if not parts and "manifest.json" not in files:
            continue
        found.steps += 1
        found.parts += len(parts)
        step, _, key = folder.rpartition("-")
        found.damaged += _step(store, step, key, parts)
    return found


def _step(store: Store, step: str, key: str, parts: Sequence[str]) -> Iterator[Damage]:
    try:
        manifest = store.finished(step, key)
    except StoreError as error:
        yield Damage(step, key, "", str(error))
        return
    writer = store.writer(step, key)
    known = {} if manifest is None else {part.file: part for part in manifest.parts}
    for name in sorted({*parts, *known}):
        try:
            if manifest is not None and name in known:
                store.open_part(manifest, known[name])
            part = writer.part(name)
        except StoreError as error:
            yield Damage(step, key, name, str(error), manifest)
            continue
        # A part records how many rows were dropped and why. The manifest must agree.
        if part != known.get(name, part):
            message = f"{writer.where}/manifest.json: the manifest is damaged (it disagrees with {name})"
            yield Damage(step, key, "", message)


def remove_damaged(store: Store, damaged: Sequence[Damage]) -> None:
    """Delete damaged parts and the manifest of their step, which then counts as unfinished.

    If the manifest itself cannot be used, readable parts are kept: their names contain the start of their digests.
    """
    for one in damaged:
        with store.writing(one.step, one.key) as writer:
            store.files.delete(f"{one.folder}/manifest.json")
            for name in [one.file] if one.file else filter(is_part, store.files.list(one.folder)):
                if one.file or not _readable(writer, name):
                    store.files.delete(f"{one.folder}/{name}")


def _readable(writer: StepWriter, name: str) -> bool:
    try:
        writer.part(name)
    except StoreError:
        return False
    return True


def same_as_before(store: Store, damaged: Sequence[Damage]) -> list[str]:
    """One line for each step that was recomputed and has other bytes than before."""
    wrong = []
    for manifest in {one.folder: one.manifest for one in damaged if one.manifest is not None}.values():
        now = None
        with contextlib.suppress(StoreError):
            now = store.finished(manifest.step, manifest.key)
        if now is None or now.to_json() != manifest.to_json():
            where = store.where(manifest.step, manifest.key)
            wrong.append(f"{where}: recomputing gave another result; delete it and all steps computed from it")
    return wrong
