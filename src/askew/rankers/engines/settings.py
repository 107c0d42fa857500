"""Settings of all engines: request rate, retries, and the cache of answers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from askew.plugins.limits import Count, NotNegative, OneOf, Positive
from askew.rankers.engines.answers import AnswerFile
from askew.rankers.engines.secret import SecretSource

OFF = "off"


@dataclass(frozen=True)
class EngineSettings:
    """Settings that all engines share.

    ``name`` replaces the name of the engine in runs. ``snapshot`` names the state of its documents: with a new name,
    queries are sent again. ``concurrency`` requests are sent at once, at most ``per_second`` in a second, with
    ``batch_size`` queries each. A request is tried ``attempts`` times. The pause before another attempt
    is ``backoff_s`` seconds at first and doubles each time, up to ``max_wait_s`` seconds. If the engine requests a
    pause, all requests wait that long; if it requests more than ``max_wait_s`` seconds, the search stops with an error.
    ``cache`` is the file that stores answers, or "off"; it is encrypted if ``cache_key_env`` or ``cache_key_file``
    gives the location of a secret.
    ``unknown`` says whether a document that is not in the collection is an error or skipped. ``refused`` says whether a
    query that the engine refuses is an error or has an empty result. Skipped documents and refused queries are counted.
    """

    name: str | None = None
    snapshot: str | None = None
    concurrency: Count = 4
    per_second: Positive | None = None
    batch_size: Count | None = None
    attempts: Count = 5
    backoff_s: NotNegative = 0.5
    max_wait_s: NotNegative = 60.0
    cache: str | None = None
    cache_key_env: str | None = None
    cache_key_file: str | None = None
    unknown: Annotated[str, OneOf(("error", "skip"))] = "error"
    refused: Annotated[str, OneOf(("error", "empty"))] = "error"

    def answers(self, otherwise: Path | None = None) -> AnswerFile | None:
        """The cache of answers: the file in ``cache``, by default ``otherwise``; None if the cache is off."""
        secret = SecretSource("cache_key", self.cache_key_env, self.cache_key_file)
        place = Path(self.cache).expanduser() if self.cache else otherwise
        return None if self.cache == OFF or place is None else AnswerFile(place, secret)


# Settings that change how requests are sent, but not their results.
HOW_ASKED = frozenset(one.name for one in fields(EngineSettings)) - {"name", "snapshot", "unknown", "refused"}


def without_how_asked(settings: dict[str, Any], more: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The settings of an engine that can change its results."""
    return {name: value for name, value in settings.items() if name not in HOW_ASKED | more}
