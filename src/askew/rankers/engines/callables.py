"""Use any Python function or retriever object as an engine."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError
from askew.rankers.engines.client import Answer, EngineError, Found
from askew.rankers.engines.plugin import EnginePlugin

_IDS = ("doc_id", "id", "_id", "docid", "docno")
_TEXTS = ("text", "page_content", "content", "contents")


class CallableEngine:
    """Any Python function, or a retriever of LangChain or LlamaIndex.

    ``function`` is the object itself, or its location: ``module:name`` or ``path/to/file.py:name``. A function is
    called with a query and k, or with the query alone, and returns ids, texts, (id, score), (id, score, text),
    dictionaries with id, score and text, or documents of LangChain or LlamaIndex. A retriever is an object with
    ``invoke`` or ``retrieve``; its own settings determine how many documents it returns. ``id_field`` is the field or
    metadata with the document id. A document without an id is named by a hash of its text.
    """

    # A function may change while it is developed, so answers are cached only if a cache file is named.
    keeps_answers = False

    def __init__(self, function: Any, id_field: str | None = None) -> None:
        target = load_object(function) if isinstance(function, str) else function
        self._call = _as_search(target)
        self._field = id_field
        own = function if isinstance(function, str) else _name_of(target)
        self.id = f"callable-{own.rpartition('/')[2]}"
        self._name = own

    def settings(self) -> Mapping[str, Any]:
        """The name of the function and the field of the id."""
        return {"function": self._name, "id_field": self._field}

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The documents that the function returns for each query."""
        return [self._found(self._call(query, k))[:k] for query in queries]

    def _found(self, given: Any) -> list[Found]:
        if given is None or isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
            raise EngineError(f"{self.id}: expected a list of documents, found {type(given).__name__}")
        return [as_found(one, self._field, self.id) for one in given]

    def __repr__(self) -> str:
        return f"CallableEngine({self.id!r})"


def as_found(one: Any, id_field: str | None = None, where: str = "callable") -> Found:
    """Convert a document from any of the forms that a function may return."""
    if isinstance(one, str | int) and not isinstance(one, bool):
        return _of_text(str(one))
    if isinstance(one, Mapping):
        return _of_mapping(one, id_field, where)
    if isinstance(one, tuple | list) and 1 <= len(one) <= 3:
        return _of_parts(list(one), id_field, where)
    if hasattr(one, "node"):
        return _of_document(one.node, id_field, where)._replace(score=_number(getattr(one, "score", None)))
    if hasattr(one, "page_content") or hasattr(one, "get_content"):
        return _of_document(one, id_field, where)
    raise EngineError(
        f"{where}: expected an id, (id, score, text), a dictionary or a document, found {type(one).__name__}"
    )


def _of_text(one: str) -> Found:
    """Convert a text: with white space it is a passage, otherwise an id. Messages may quote ids but not passages."""
    return Found(_id(None, one, None, ""), None, one) if any(map(str.isspace, one.strip())) else Found(one)


def _of_parts(parts: list[Any], id_field: str | None, where: str) -> Found:
    first, score, text = [*parts, None, None][:3]
    found = Found(first) if isinstance(first, str) and text is not None else as_found(first, id_field, where)
    if score is not None:
        found = found._replace(score=_number(score))
    return found if text is None else found._replace(text=str(text))


def _of_mapping(one: Mapping[str, Any], id_field: str | None, where: str) -> Found:
    text = next((str(one[name]) for name in _TEXTS if isinstance(one.get(name), str)), None)
    names = (id_field,) if id_field else _IDS
    found = next((one[name] for name in names if one.get(name) not in (None, "")), None)
    return Found(_id(found, text, id_field, where), _number(one.get("score")), text)


def _of_document(one: Any, id_field: str | None, where: str) -> Found:
    """A document of LangChain (page_content, metadata, id) or a node of LlamaIndex (get_content, metadata, node_id)."""
    text = one.page_content if hasattr(one, "page_content") else one.get_content()
    metadata = getattr(one, "metadata", None) or {}
    if id_field:
        found = metadata.get(id_field, getattr(one, id_field, None))
    else:
        own = getattr(one, "node_id", None) or getattr(one, "id", None)
        found = own or next((metadata[name] for name in _IDS if metadata.get(name) not in (None, "")), None)
    return Found(_id(found, text, id_field, where), _number(metadata.get("score")), str(text))


def _id(found: Any, text: str | None, id_field: str | None, where: str) -> str:
    if found is not None:
        return str(found)
    if id_field or text is None:
        raise EngineError(f"{where}: a document has no {id_field or 'id'}; give the field of the id in id_field=")
    return f"text-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:20]}"


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _as_search(target: Any) -> Callable[[str, int], Any]:
    """Convert a function or retriever to a function of a query and k."""
    method = next((getattr(target, name) for name in ("invoke", "retrieve") if hasattr(target, name)), None)
    if method is not None:
        return lambda query, _: method(query)
    if not callable(target):
        raise ConfigError(
            "callable: function= should be a function that takes a query (and optionally k), or an object with the "
            f"method 'invoke' or 'retrieve'; found {type(target).__name__}"
        )
    return target if _takes_two(target) else lambda query, _: target(query)


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind("", 1)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _name_of(target: Any) -> str:
    made = target if hasattr(target, "__qualname__") else type(target)
    return f"{made.__module__}:{made.__qualname__}"


def load_object(path: str) -> Any:
    """The object at ``module:name`` or ``file.py:name``."""
    place, colon, name = path.rpartition(":")
    if not colon or not place or not name:
        raise ConfigError(f"callable: function= should be like 'module:name' or 'file.py:name', found {path!r}")
    try:
        value: Any = _of_file(Path(place).expanduser()) if place.endswith(".py") else importlib.import_module(place)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, OSError) as error:
        raise ConfigError(f"callable: function= {path}: cannot be loaded ({error})") from None
    return value


def _of_file(path: Path) -> Any:
    name = f"askew_callable_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


callable_ranker = EnginePlugin(CallableEngine)
