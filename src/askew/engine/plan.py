"""A plan of steps, each of which reads a source or the result of an earlier step. It is checked before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from askew.core.errors import ConfigError, UnknownName
from askew.engine.executor import Executor
from askew.engine.run import SHARD_ROWS, FinishedStep, Maker, Progress, Source, StepOutcome, run_step, step_key
from askew.engine.store import Store
from askew.plugins.kinds import Stage

# The step, its finished rows, and all its rows (0 if unknown).
StepProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Step:
    """One use of a stage: the name of the step, its stage, and the step or source that it reads.

    ``maker`` is a picklable function that builds the same stage in another process, so that an executor can run the
    step there. ``shard_rows`` sets smaller shards for slow rows, so that there are enough shards for all workers.
    """

    name: str
    stage: Stage
    reads: str
    maker: Maker | None = None
    shard_rows: int | None = None


class Plan:
    """Steps in an order in which each can run.

    ``origin`` describes what the plan was made from, such as a recipe, as JSON values. The store keeps it, so that
    damaged steps can be recomputed.
    """

    def __init__(
        self, sources: Mapping[str, Source], steps: Sequence[Step], origin: Mapping[str, Any] | None = None
    ) -> None:
        self.sources, self.steps, self.origin = dict(sources), list(steps), origin
        known = set(self.sources)
        for step in self.steps:
            if step.name in known:
                raise ConfigError(f"the plan has two steps or sources named {step.name!r}")
            if step.reads not in known:
                raise UnknownName("source or earlier step", step.reads, known, f"the step {step.name!r}")
            known.add(step.name)

    def keys(self) -> dict[str, str]:
        """The key of every step, known before anything runs."""
        keys = {name: source.key for name, source in self.sources.items()}
        for step in self.steps:
            keys[step.name] = step_key(step.stage, keys[step.reads])
        return {step.name: keys[step.name] for step in self.steps}

    def run(
        self,
        store: Store,
        shard_rows: int = SHARD_ROWS,
        progress: StepProgress | None = None,
        executor: Executor | None = None,
    ) -> dict[str, StepOutcome]:
        """Run the unfinished steps. ``progress`` is called with the step, its finished rows and all its rows."""
        if self.origin is not None:
            store.remember_plan({**self.origin, "steps": [list(one) for one in self.keys().items()]})
        ready: dict[str, Source] = dict(self.sources)
        outcomes = {}
        for step in self.steps:
            told = _told(progress, step.name, ready[step.reads])
            rows = step.shard_rows or shard_rows
            outcome = run_step(store, step.name, step.stage, ready[step.reads], rows, told, executor, step.maker)
            outcomes[step.name] = outcome
            ready[step.name] = FinishedStep(store, outcome.manifest)
        return outcomes


def _told(progress: StepProgress | None, step: str, source: Source) -> Progress | None:
    if progress is None:
        return None
    total = int(getattr(source, "rows", 0))
    progress(step, 0, total)
    return lambda done: progress(step, done, total)
