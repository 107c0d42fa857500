"""Use any Python function or retriever object as an engine."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError
from askew.core.plugins import load_from_file
from askew.search.engines.client import Answer, EngineError, Found
from askew.search.engines.ranker import EnginePlugin

_IDS = ("doc_id", "id", "_id", "docid", "docno")
_TEXTS = ("text", "page_content", "content", "contents")


class CallableEngine:
    """Any Python function, or a retriever of LangChain or LlamaIndex.

    ``function`` is the object itself, or its location: ``module:name`` or ``path/to/file.py:name``. A function is
    called with a query and k, or with the query alone, and returns ids, passages, (id, score), (id, score, text),
    dictionaries with id, score and text, or documents of LangChain or LlamaIndex. A retriever is an object with
    ``invoke`` or ``retrieve``; its own settings determine how many documents it returns. ``id_field`` is the field or
    metadata with the document id. A document without an id is named by a hash of its text.
    """

    # A function may change while it is developed, so answers are cached only if a cache file is named.
    keeps_answers = False

    def __init__(self, function: Any, id_field: str | None = None) -> None:
        if isinstance(function, str):
            self._name = function
            if not all(function.rpartition(":")):
                raise ConfigError(
                    f"callable: ⟨function⟩ should be like 'module:name' or 'file.py:name', found {function!r}"
                )
        else:
            named = function if hasattr(function, "__qualname__") else type(function)
            self._name = f"{named.__module__}:{named.__qualname__}"
        self._lock, self._field = threading.Lock(), id_field
        # Code is run by a build or at the first search, and not to show a plan.
        self._call = None if isinstance(function, str) else _as_search(function)
        self.id = f"callable-{self._name.rpartition('/')[2]}"

    def settings(self) -> Mapping[str, Any]:
        """The name of the function and the field of the id."""
        return {"function": self._name, "id_field": self._field}

    def load(self) -> Callable[[str, int], Any]:
        """Run the code of the function, if that was not done yet, and return the function."""
        with self._lock:
            self._call = self._call or _as_search(load_object(self._name))
            return self._call

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The documents that the function returns for each query."""
        call, answers = self.load(), []
        for query in queries:
            documents = call(query, k)
            if isinstance(documents, str | bytes | Mapping) or not hasattr(documents, "__iter__"):
                kind = type(documents).__name__
                raise EngineError(f"{self.id}: expected a list of documents, found {kind}", code="no-list", kind=kind)
            answers.append([as_found(document, self._field, self.id) for document in documents][:k])
        return answers


def as_found(document: Any, id_field: str | None = None, where: str = "callable") -> Found:
    """Convert a document from any of the forms that a function may return."""
    if isinstance(document, str | int) and not isinstance(document, bool):
        # A text with white space is a passage, otherwise an id. Messages may quote ids but not passages.
        whole = str(document)
        return Found(_id(None, whole, None, ""), None, whole) if any(map(str.isspace, whole.strip())) else Found(whole)
    if isinstance(document, Mapping):
        text = next((document[name] for name in _TEXTS if isinstance(document.get(name), str)), None)
        own = _first(document, (id_field,) if id_field else _IDS)
        return Found(_id(own, text, id_field, where), _number(document.get("score")), text)
    if isinstance(document, tuple | list) and 1 <= len(document) <= 3:
        first, score, text = [*document, None, None][:3]
        # The text beside a text or a score is an id, even with blanks; a passage is given alone or as the third value.
        is_id = isinstance(first, str) and first != "" and (text is not None or _number(score) is not None)
        found = Found(first) if is_id else as_found(first, id_field, where)
        score = found.score if score is None else _number(score)
        return Found(found.doc_id, score, found.text if text is None else str(text))
    if hasattr(document, "node"):
        return as_found(document.node, id_field, where)._replace(score=_number(getattr(document, "score", None)))
    if hasattr(document, "page_content") or hasattr(document, "get_content"):
        # A document of LangChain (page_content, metadata, id) or a node of LlamaIndex (get_content, metadata, node_id).
        text = document.page_content if hasattr(document, "page_content") else document.get_content()
        metadata = getattr(document, "metadata", None) or {}
        if id_field:
            own = metadata.get(id_field, getattr(document, id_field, None))
        else:
            own = getattr(document, "node_id", None) or getattr(document, "id", None) or _first(metadata, _IDS)
        return Found(_id(own, text, id_field, where), _number(metadata.get("score")), str(text))
    raise EngineError(
        f"{where}: expected an id, (id, score, text), a dictionary or a document, found {type(document).__name__}"
    )


def _first(values: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((values[name] for name in names if values.get(name) not in (None, "")), None)


def _id(found: Any, text: str | None, id_field: str | None, where: str) -> str:
    if found is not None:
        return str(found)
    if id_field or text is None:
        raise EngineError(f"{where}: a document has no {id_field or 'id'}; give the field of the id in ⟨id_field⟩")
    return f"text-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:20]}"


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _as_search(target: Any) -> Callable[[str, int], Any]:
    method = next((getattr(target, name) for name in ("invoke", "retrieve") if hasattr(target, name)), None)
    if method is not None:
        return lambda query, _: method(query)
    if not callable(target):
        raise ConfigError(
            "callable: ⟨function⟩ should be a function of a query (and k), or an object with 'invoke' or 'retrieve'; "
            f"found {type(target).__name__}"
        )
    search: Callable[[str, int], Any] = target
    try:
        inspect.signature(target).bind("", 1)
    except TypeError:
        return lambda query, _: target(query)
    except ValueError:
        pass
    return search


def load_object(path: str) -> Any:
    """The object at ``module:name`` or ``file.py:name``."""
    place, _, name = path.rpartition(":")
    first, *parts = name.split(".")
    try:
        if place.endswith(".py"):
            value = load_from_file(f"{Path(place).expanduser()}:{first}", "callable: ⟨function⟩")
        else:
            value = getattr(importlib.import_module(place), first)
        for part in parts:
            value = getattr(value, part)
    except (ImportError, AttributeError, OSError, DataError) as error:
        raise ConfigError(f"callable: ⟨function⟩ {path}: cannot be loaded ({error})") from None
    return value


callable_ranker = EnginePlugin(CallableEngine)
