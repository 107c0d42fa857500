"""What an engine is to askew: a batch of queries in, ranked documents out.

An engine has the attribute ``id``, one word that names it in a run, and the methods below. Making one checks its
settings and opens nothing: connections, files and secrets are opened by the first ``find``. It may have more:

``batch_size``    how many queries it answers in one request; 1 without it.
``most``          the largest k that it answers.
``most_threads``  how many threads may call ``find`` at once; without it as many as the user sets.
``keeps_answers`` False where its answers may change from call to call without notice, so that no cache is made unless
                  the user names one.
``close``         a method that closes its connections.

``askew.rankers.engines.plugin.EnginePlugin`` makes a plugin of the kind ranker from the class of an engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from askew.core.errors import DataError


class Found(NamedTuple):
    """A document that an engine found. Without a score its rank counts; without a text only its id is known."""

    doc_id: str
    score: float | None = None
    text: str | None = None


class EngineError(DataError):
    """An engine did not answer, or not as expected.

    The message never has the text of a query or a document, a token, or what the engine itself said, which may quote
    any of them. ``transient`` errors are tried again, after ``retry_after`` seconds where the engine names a time.
    """

    def __init__(self, message: str, transient: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.transient, self.retry_after = transient, retry_after


Answer = list[Found] | EngineError


@runtime_checkable
class Engine(Protocol):
    """Finds documents. ``find`` is called from several threads at once."""

    id: str

    def settings(self) -> Mapping[str, Any]:
        """What the answers depend on besides the queries, as JSON values, without secrets."""

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """At most k documents of each query, best first; an error in the place of a query that alone failed.

        Raises EngineError where the whole request failed.
        """
