"""What engines share that are reached through a library: it is imported and opened by the first query, once."""

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
    """Something that is made when it is first needed, by whichever thread needs it first.

    It is closed, where it can be, by ``close``, or when nobody holds this object any more.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._made: deque[Any] = deque()
        weakref.finalize(self, close_all, self._made)

    def get(self) -> Any:
        """What was made; a failure is not kept, so that the next call tries again."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]

    def close(self) -> None:
        """Close it; the next ``get`` makes it again."""
        with self._lock:
            close_all(self._made)


def close_all(made: deque[Any]) -> None:
    """Close what can be closed, and forget all."""
    while made:
        one = made.pop()
        if hasattr(one, "close"):
            one.close()


def library(module: str, engine: str) -> Any:
    """A module that comes with the extra of an engine."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(f"the ranker {engine!r}", engine) from None


def is_remote(place: str) -> bool:
    """Whether a place is an address and not a path."""
    return "://" in place


def existing(place: str, engine: str, setting: str) -> Path:
    """A file or folder that is there: the libraries would create one that is not."""
    path = Path(place).expanduser()
    if not path.exists():
        raise ConfigError(f"{engine}: {setting}= {path} does not exist; name what the engine has written")
    return path


def names_in(columns: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in columns.split(",") if name.strip()]


def sendable(query: str) -> str:
    """A query without what no database takes: zero bytes and halves of characters."""
    return query.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def found_in(row: Mapping[str, Any], id_field: str, texts: str, score: float | None, engine: str) -> Found:
    """A document from its fields; ``texts`` names those whose texts are joined."""
    doc = row.get(id_field)
    if doc is None or doc == "":
        raise EngineError(f"engine {engine}: a document has no value in {id_field!r}; name the field of document ids")
    return Found(str(doc), score, joined_text(texts, row.get))


def need_names(wanted: Sequence[str], there: Sequence[str], where: str) -> None:
    """Refuse a name that is not among the columns or fields of a table."""
    for name in wanted:
        if name not in there:
            raise ConfigError(f"{where} has no {name!r}; it has {', '.join(sorted(there)) or 'nothing'}")
