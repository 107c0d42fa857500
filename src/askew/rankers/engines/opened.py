"""Helpers for engines that use a client library, which is imported and opened once, at the first query."""

from __future__ import annotations

import importlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, MissingExtra
from askew.rankers.engines.client import EngineError, Found
from askew.rankers.engines.shape import joined_text


class Opened:
    """A thread-safe holder of an object, such as a client, that is made at first use.

    If the object has a method ``close``, it is closed by ``close``, or when this holder is garbage-collected.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._made: deque[Any] = deque()
        weakref.finalize(self, close_all, self._made)

    def get(self) -> Any:
        """The object, made if needed. After a failure the next call tries again."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]

    def close(self) -> None:
        """Close the object. The next ``get`` makes a new one."""
        with self._lock:
            close_all(self._made)


def close_all(made: deque[Any]) -> None:
    """Close all objects that have a method ``close``, and remove all."""
    while made:
        one = made.pop()
        if hasattr(one, "close"):
            one.close()


def library(module: str, engine: str) -> Any:
    """Import a module that comes with the extra of an engine."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(f"the ranker {engine!r}", engine) from None


def is_remote(place: str) -> bool:
    """Whether a place is an address and not a path."""
    return "://" in place


def existing(place: str, engine: str, setting: str) -> Path:
    """Check that a file or folder exists: the client libraries would create a missing one."""
    path = Path(place).expanduser()
    if not path.exists():
        raise ConfigError(f"{engine}: {setting}= {path} does not exist; give the path of the engine's data")
    return path


def names_in(columns: str) -> list[str]:
    """Split names that are separated by commas."""
    return [name.strip() for name in columns.split(",") if name.strip()]


def sendable(query: str) -> str:
    """A query without null characters and lone surrogates, which no database accepts."""
    return query.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def found_in(row: Mapping[str, Any], id_field: str, texts: str, score: float | None, engine: str) -> Found:
    """Make a document from its fields. The fields named in ``texts`` are joined to its text."""
    doc = row.get(id_field)
    if doc is None or doc == "":
        raise EngineError(
            f"engine {engine}: a document has no value in {id_field!r}; set id_field= to the field with the ids"
        )
    return Found(str(doc), score, joined_text(texts, row.get))


def need_names(wanted: Sequence[str], there: Sequence[str], where: str) -> None:
    """Raise an error if a name is not among the columns or fields of a table."""
    for name in wanted:
        if name not in there:
            raise ConfigError(f"{where} has no {name!r}; it has {', '.join(sorted(there)) or 'nothing'}")
