"""The interface of an engine: it takes a batch of queries and returns ranked documents.

An engine has the attribute ``id``, one word that names it in a run, and the methods below. Its constructor checks the
settings and opens nothing: the first ``find`` opens connections, files and secrets. Optional attributes are:

``batch_size``    the number of queries in one request; 1 by default.
``most``          the largest k that the engine supports.
``most_threads``  the number of threads that may call ``find`` at once; by default the user's setting.
``keeps_answers`` False if answers may change between calls without notice: then they are cached only if the user names
                  a cache.
``credentials``   a method that returns the secrets of a request by name; answers to others are not used again.
``close``         a method that closes the connections.

``askew.search.engines.ranker.EnginePlugin`` makes a ranker plugin from an engine class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from askew.core.errors import DataError


class Found(NamedTuple):
    """A document that an engine found. Without a score, its rank is used. Without a text, only its id is known."""

    doc_id: str
    score: float | None = None
    text: str | None = None


class EngineError(DataError):
    """An engine did not answer, or not as expected.

    The message never contains the text of a query or document, a token, or the engine's own message, which may quote
    them. Requests with ``transient`` errors are retried, after ``retry_after`` seconds if the engine gives a time.
    """

    def __init__(self, message: str, transient: bool = False, retry_after: float | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.transient, self.retry_after = transient, retry_after


Answer = list[Found] | EngineError


@runtime_checkable
class Engine(Protocol):
    """A search engine. ``find`` is called from several threads at once."""

    id: str

    def settings(self) -> Mapping[str, Any]:
        """The settings that determine the answers, as JSON values without secrets."""

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """At most k documents of each query, best first, or an EngineError for a query that failed by itself.

        Raises EngineError if the whole request failed.
        """
