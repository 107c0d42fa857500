"""What can be set of every engine: how fast it is asked, how patiently, and where its answers are kept."""

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

    ``name`` replaces the engine's own name in runs. ``snapshot`` names the state of its documents: another one sends
    the queries again. ``concurrency`` requests are sent at once, at most ``per_second`` of them in a second, with
    ``batch_size`` queries each. A request is tried ``attempts`` times, with a pause of ``backoff_s`` seconds that
    doubles each time, or as long as the engine says, but not longer than ``max_wait_s``. ``cache`` is the file that
    keeps answers, or "off"; it is encrypted where ``cache_key_env`` or ``cache_key_file`` says where a secret is. A
    document that is not in the collection is an error or skipped (``unknown``), a query that the engine refuses is an
    error or counts as one that finds nothing (``refused``); both are counted.
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
        """The file of answers: the one that was set, or another where nothing was; None where it is off."""
        secret = SecretSource("cache_key", self.cache_key_env, self.cache_key_file)
        place = Path(self.cache).expanduser() if self.cache else otherwise
        return None if self.cache == OFF or place is None else AnswerFile(place, secret)


# What changes how an engine is asked, and not what it answers.
HOW_ASKED = frozenset(one.name for one in fields(EngineSettings)) - {"name", "snapshot", "unknown", "refused"}


def without_how_asked(settings: dict[str, Any], more: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Settings of an engine without those that change no answer."""
    return {name: value for name, value in settings.items() if name not in HOW_ASKED | more}
