"""Live engines in a recipe: they are searched by one process, and no query is sent twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from askew.app.build.resources import Resources
from askew.app.build.runs import RetrieveStage
from askew.app.build.variants import ReformulateStage
from askew.app.search.compose import is_engine, make_ranker
from askew.core.errors import ConfigError
from askew.engine.plan import Step
from askew.plugins.kinds import RankerPlugin, Stage
from askew.plugins.registry import check, load, settings_of
from askew.rankers.engines.ranker import EngineRanker

# The file of answers in the store, unless the settings of the engine name another file.
ANSWERS = "engines.answers"


def engine_ranker(
    given: dict[str, Any], resources: Resources, section: str
) -> tuple[Callable[[], RankerPlugin], dict[str, Any], Callable[[], object]]:
    """Return a function that opens an engine, the settings that identify it, and a function that prepares it."""
    name, settings = str(given["ranker"]), {key: value for key, value in given.items() if key != "ranker"}
    check("ranker", name, settings, section)
    missing = [key for key, default in settings_of("ranker", name).items() if default == "needed" and key not in given]
    if missing:
        raise ConfigError(f"{section}: the ranker {name!r} needs the setting {missing[0]!r}")
    # This opens no connection, and refuses invalid settings early, such as a secret in an address.
    ranker = make_ranker(given)
    assert isinstance(ranker, EngineRanker), f"internal error: the ranker {name!r} is not a live search engine"

    def make() -> RankerPlugin:
        known = ranker.over(resources.doc_ids)
        known.keep_answers(resources.store.local / ANSWERS)
        return known

    # A ranker of another package may be a plain function; then all of its settings identify it.
    named = getattr(load("ranker", name), "named", dict)(settings)
    return make, {"ranker": name, **named}, lambda: resources.doc_ids


def asks_engine(step: Step, first_pass: Mapping[str, Any]) -> bool:
    """Whether a step searches with a live engine; ``first_pass`` has the ranker of reformulators."""
    if isinstance(step.stage, ReformulateStage):
        return is_engine(str(first_pass.get("ranker")))
    return isinstance(step.stage, RetrieveStage) and is_engine(str(step.stage.settings()["ranker"].get("ranker")))


def engine_notes(stages: Iterable[Stage]) -> list[str]:
    """Return the notes of engines about the answers that they gave in this process."""
    opened = [vars(stage).get("ranker") for stage in stages if isinstance(stage, RetrieveStage)]
    return [f"{ranker.id}: {note}" for ranker in opened if isinstance(ranker, EngineRanker) for note in ranker.notes()]


def here_only(step: Step) -> Step:
    """Restrict a step to this process, because request limits are per process, and to small shards."""
    return replace(step, maker=None, shard_rows=EngineRanker.queries_at_once)
