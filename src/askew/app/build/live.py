"""Live engines in a recipe: they search the collection of the recipe, from one process, and no query twice."""

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

# In the folder of the store, unless the settings name another file.
ANSWERS = "engines.answers"


def engine_ranker(
    given: dict[str, Any], resources: Resources, section: str
) -> tuple[Callable[[], RankerPlugin], dict[str, Any], Callable[[], object]]:
    """How to open an engine for the documents of a collection, what names it, and what to have ready before."""
    name, settings = str(given["ranker"]), {key: value for key, value in given.items() if key != "ranker"}
    check("ranker", name, settings, section)
    missing = [key for key, default in settings_of("ranker", name).items() if default == "needed" and key not in given]
    if missing:
        raise ConfigError(f"{section}: the ranker {name!r} needs the setting {missing[0]!r}")
    # Making it opens no connection, and refuses what cannot work, such as a secret in an address, before any work.
    ranker = make_ranker(given)
    assert isinstance(ranker, EngineRanker), "is_engine says so"

    def make() -> RankerPlugin:
        known = ranker.over(resources.doc_ids)
        known.keep_answers(resources.store.local / ANSWERS)
        return known

    # A ranker of another package may be made by a plain function: then all of its settings name it.
    named = getattr(load("ranker", name), "named", dict)(settings)
    return make, {"ranker": name, **named}, lambda: resources.doc_ids


def asks_engine(step: Step, first_pass: Mapping[str, Any]) -> bool:
    """Whether a step searches with a live engine; ``first_pass`` is what reformulators search with."""
    if isinstance(step.stage, ReformulateStage):
        return is_engine(str(first_pass.get("ranker")))
    return isinstance(step.stage, RetrieveStage) and is_engine(str(step.stage.settings()["ranker"].get("ranker")))


def engine_notes(stages: Iterable[Stage]) -> list[str]:
    """What engines have to tell of the answers that they gave in this process."""
    opened = [vars(stage).get("ranker") for stage in stages if isinstance(stage, RetrieveStage)]
    return [f"{ranker.id}: {note}" for ranker in opened if isinstance(ranker, EngineRanker) for note in ranker.notes()]


def here_only(step: Step) -> Step:
    """The step in this process alone, as limits on requests hold for one process, and in small shards."""
    return replace(step, maker=None, shard_rows=EngineRanker.queries_at_once)
