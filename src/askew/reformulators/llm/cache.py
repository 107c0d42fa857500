"""Answers on disk, keyed by the content of the request.

Writes are atomic, reads verify a checksum, and several processes may use the same folder.

cache/ab/cdef....json    one answer, under the SHA-256 of its request
cache/tmp/               files that are being written; renamed when they are complete
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, StoreError
from askew.core.fingerprint import fingerprint
from askew.reformulators.llm.wire import Completion

_FORM = 1
_DAY_S = 86400


class Damaged(Exception):
    """A cache entry that cannot be parsed or fails its checksum."""


def request_key(endpoint_name: str, body: Mapping[str, Any], sample: int) -> str:
    """Return the key of a request: the fingerprint of the endpoint's name, the body and the number of the sample."""
    return fingerprint({"form": _FORM, "endpoint": endpoint_name, "body": body, "sample": sample}, length=64)


class AnswerCache:
    """A folder of answers."""

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"llm: expected cache to be a folder, found a file: {folder}")
        self._folder = folder
        self._swept = False

    def path(self, key: str) -> Path:
        """Return the path of the cached answer to a request."""
        return self._folder / key[:2] / f"{key[2:]}.json"

    def read(self, key: str) -> Completion | None:
        """Return the cached answer to a request, or None; raise ``Damaged`` if the entry is corrupt."""
        try:
            data = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"llm: the cache cannot be read: {self.path(key)} ({error.strerror})") from None
        try:
            entry = json.loads(data)
            if entry["key"] != key or entry["checksum"] != _checksum(key, entry["request"], entry["answer"]):
                raise Damaged(key)
            return Completion(**entry["answer"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Damaged(key) from None

    def write(self, key: str, request: Mapping[str, Any], answer: Completion) -> None:
        """Store an answer. The file is renamed when it is complete, so a reader never sees a part of it."""
        said = answer.as_json()
        entry = {
            "form": _FORM,
            "key": key,
            "request": request,
            "answer": said,
            "checksum": _checksum(key, request, said),
        }
        target, half = self.path(key), self._folder / "tmp" / f"{os.getpid()}-{uuid.uuid4().hex}"
        try:
            self._sweep()
            target.parent.mkdir(parents=True, exist_ok=True)
            half.write_text(json.dumps(entry, ensure_ascii=False, indent=1), encoding="utf-8")
            half.replace(target)
        except OSError as error:
            with suppress(OSError):
                half.unlink(missing_ok=True)
            raise StoreError(f"llm: the cache cannot be written: {target} ({error.strerror})") from None

    def _sweep(self) -> None:
        """Create the folder of temporary files, and delete files in it that are more than a day old."""
        if self._swept:
            return
        halves = self._folder / "tmp"
        halves.mkdir(parents=True, exist_ok=True)
        for old in halves.iterdir():
            with suppress(OSError):
                if time.time() - old.stat().st_mtime > _DAY_S:
                    old.unlink()
        self._swept = True


def _checksum(key: str, request: Any, answer: Any) -> str:
    return fingerprint([key, request, answer], length=64)
