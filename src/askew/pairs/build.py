"""Build pairs: the implementation of ``askew plan``, ``askew run``, ``askew report`` and ``askew publish``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.defaults import counted
from askew.core.errors import ConfigError, check_name
from askew.core.groups import Groups, GroupsLike
from askew.core.store.steps import StepOutcome, StepProgress
from askew.core.store.store import Store
from askew.core.tables import html_table, text_table
from askew.data.collection import Collection
from askew.pairs.dataset.release import Published
from askew.pairs.figures import candidates_of, headline, held_out_of, other_rankers, summary_of
from askew.pairs.plan import Build, engine_notes, other_settings, prepare, with_all_mentions
from askew.pairs.publish import release
from askew.pairs.recipe import Recipe, groups_of, read_recipe, with_groups, with_settings
from askew.pairs.report import Reported, build_cautions, report_of
from askew.pairs.resources import frames_of, step_parts
from askew.pairs.stages import Classify, judged_note

ENGINES = ("local", "ray")
PAIRS = "pairs"


class Pairs:
    """The result of ``build``: the pairs of a query and a reformulation, the number of rows of each step, and the mean
    of each measure for the original queries and the reformulations.
    """

    def __init__(self, build: Build, store: Store, outcomes: Mapping[str, StepOutcome]) -> None:
        self.build, self.store, self.outcomes = build, store, outcomes

    @property
    def notes(self) -> list[str]:
        """Notes to read before relying on the results."""
        stage, pairs = self.build.select, self.outcomes.get("pairs")
        judged = None
        if stage and pairs and pairs.manifest.parts:
            judged = judged_note(stage, step_parts(self.store, pairs.manifest))
        live = engine_notes(step.stage for step in self.build.plan.steps)
        return [
            *self.build.notes,
            *self._tied(),
            *self._without_pairs(),
            *live,
            *([f"pairs: {judged}"] if judged else []),
        ]

    def _without_pairs(self) -> list[str]:
        """A note if some queries have no reformulation left."""
        kept, pairs = self.outcomes.get("neutral"), self.outcomes.get(PAIRS)
        if kept is None or pairs is None:
            return []
        queries, with_pairs = kept.manifest.rows_out, step_parts(self.store, pairs.manifest).queries
        if queries == with_pairs:
            return []
        without = queries - with_pairs
        have = "has" if without == 1 else "have"
        return [f"{without:,} of {counted(queries, 'query', 'queries')} {have} no reformulation left"]

    def _tied(self) -> list[str]:
        """Notes on queries that count as neutral although they name groups."""
        return [
            said
            for step in self.build.plan.steps
            if isinstance(step.stage, Classify) and step.name in self.outcomes
            for frames in [frames_of(self.store, self.outcomes[step.name].manifest, ["text"])]
            for said in step.stage.tied(frame["text"].to_list() for frame in frames)
        ]

    def table(self, step: str = "pairs") -> pl.DataFrame:
        """Return the output rows of a step, by default the pairs."""
        check_name("step", step, self.outcomes)
        parts = self.store.read(self.outcomes[step].manifest)
        return pl.DataFrame(pl.from_arrow(pa.concat_tables(parts))) if parts else pl.DataFrame()

    to_polars = table

    def to_pandas(self, step: str = "pairs") -> Any:
        """Return the same table as a pandas data frame; pandas must be installed."""
        return self.table(step).to_pandas()

    @property
    def steps(self) -> list[dict[str, Any]]:
        """For each step: input rows, output rows, dropped rows by reason, and whether it ran or was reused."""
        return [
            {
                "step": name, "key": one.manifest.key, "in": one.manifest.rows_in, "out": one.manifest.rows_out,
                "dropped": one.manifest.dropped, "ran": one.ran, "restarts": one.restarts,
            }
            for name, one in self.outcomes.items()
        ]  # fmt: skip

    @cached_property
    def summary(self) -> pl.DataFrame | None:
        """The held-out means of each subset of pairs before and after reformulation, and the in-sample means.

        Pairs are chosen with one half of the documents and measured on the other half. Further columns have the values
        of the other schemes (see ``held_out``). If there is no held-out value, the in-sample value is used, and the
        column ``figures`` says so. The summary is None if no pair was chosen.
        """
        found = summary_of(self.store, self.outcomes, self.build.select, self.build.evaluate)
        return None if found is None else headline(found, self.held_out)

    @cached_property
    def held_out(self) -> pl.DataFrame | None:
        """The held-out means by each scheme (documents, words, ranks); None if the recipe turns them off."""
        return held_out_of(self.store, self.outcomes, self.build.select, self.build.evaluate)

    @property
    def cautions(self) -> list[str]:
        """What the held-out values do not show: measures that may not improve, become worse, or have no value."""
        if self.summary is None or self.build.select is None:
            return []
        return [str(one) for one in build_cautions(self.build.select.selector, self.build.evaluate, self.summary)]

    @cached_property
    def all_candidates(self) -> pl.DataFrame | None:
        """The in-sample means of all candidates, selected or not: the baseline of a random selection.

        None if the build has no pairs.
        """
        pairs = self.outcomes.get(PAIRS)
        if pairs is None or not pairs.manifest.parts:
            return None
        return candidates_of(step_parts(self.store, pairs.manifest), self.build.evaluate)

    @cached_property
    def other_rankers(self) -> pl.DataFrame | None:
        """The change of the first measure of lean and the first of effectiveness with each ranker of [[cross]].

        The report has all measures. None if the recipe has no section [[cross]], or no pair was chosen.
        """
        return other_rankers(self.build, self.store, self.outcomes)

    def report(self, out: str | Path, *, figures: Sequence[str] = (), latex: bool = False, seed: int = 0) -> Reported:
        """Write the report: one HTML page, and its tables as CSV (``askew report``)."""
        given = self.build, self.store, self.outcomes, Path(out)
        return report_of(*given, figures=figures, latex=latex, seed=seed)

    def publish(self, out: str | Path, *, license: str | None = None) -> Published:
        """Write the dataset to a new folder: Parquet, card, Croissant, checksums (``askew publish``).

        ``license`` replaces the license that the recipe states for the dataset.
        """
        return release(self.build, self.store, self.outcomes, Path(out), license)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        if self.summary is None:
            return ["step", "in", "out"], [[row["step"], f"{row['in']:,}", f"{row['out']:,}"] for row in self.steps]
        rows = [
            [row["subset"], f"{row['pairs']:,}", row["measure"], row["figures"],
             *(_shown(row[name]) for name in ("old_mean", "new_mean")),
             *(_percent(row[name]) for name in ("change", "in_sample_change"))]
            for row in self.summary.to_dicts()
        ]  # fmt: skip
        names = ("subset", "pairs", "measure", "figures", "original mean", "reformulated mean", "change")
        return [*names, "in-sample change"], rows

    def __repr__(self) -> str:
        return text_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}%"


def plan(
    recipe: str | Path | Recipe,
    collection: object = None,
    *,
    groups: GroupsLike | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    store: str | Path | Store = defaults.STORE,
    until: str | None = None,
) -> tuple[Build, Store]:
    """Return the steps that ``build`` would run with these arguments; all are checked, and nothing is run."""
    held = store if isinstance(store, Store) else Store(store)
    chosen = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    if collection is not None:
        chosen = with_settings(chosen, {"collection": {"source": _source(collection, held)}})
    chosen = with_groups(chosen, None if groups is None else Groups.of(groups))
    changed = with_settings(chosen, settings or {})
    sections, left_out = with_all_mentions(changed.sections, groups_of(changed))
    return replace(prepare(Recipe(changed.name, sections), held, until), without_who=left_out), held


def check_not_forgotten(build: Build, store: Store) -> None:
    """Refuse to run a build if the store has a finished build of the same recipe with other settings.

    Without this check, a forgotten setting of ``askew publish`` or ``askew report`` would start a long build.
    """
    own, recipe = set(build.plan.keys().items()), build.recipe
    for origin in store.plans():
        steps = {(str(name), str(key)) for name, key in origin.get("steps", ())}
        # A build that stopped earlier, or with the same settings, is continued.
        is_other = origin.get("recipe") == recipe.name and PAIRS in dict(steps) and not steps <= own
        if is_other and _is_finished(store, steps) and not _is_finished(store, own):
            changed = other_settings(recipe.sections, origin["sections"])
            raise ConfigError(
                f"the store has a finished build of {recipe.name}, but with other settings: "
                f"{'; '.join(changed) or 'the collection or the version of askew has changed'}. Repeat the settings "
                "of that build, or build with the new settings first (askew run)"
            )


def _is_finished(store: Store, steps: Iterable[tuple[str, str]]) -> bool:
    return all(store.finished(name, key) for name, key in steps)


def build(
    recipe: str | Path | Recipe,
    collection: object = None,
    *,
    groups: GroupsLike | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    store: str | Path | Store = defaults.STORE,
    until: str | None = None,
    engine: str = defaults.ENGINE,
    workers: int | None = None,
    address: str | None = None,
    gpus: float | None = None,
    progress: StepProgress | None = None,
) -> Pairs:
    """Run the steps of a recipe: classify, reformulate, filter, search, score, select.

    ``recipe`` is a name (``askew list recipes``) or a ``.toml`` file. ``collection`` replaces the collection of the
    recipe; it is anything that ``Collection.open`` accepts. ``groups`` are the groups whose words every measure and
    method counts. ``settings`` change single values of the recipe, as in ``{"retrieve": {"k": 50}}``. ``workers`` is
    the number of processes. With ``engine="ray"``, ``workers`` is the number of actors on the cluster at ``address``.
    Each actor that runs a neural model gets ``gpus`` GPUs, by default 1. ``progress`` is called with the name of a
    step, the number of its finished rows and the number of all its rows (0 if unknown). Finished steps are read from
    the store: to resume an interrupted build, call ``build`` again with the same arguments.
    """
    check_name("engine", engine, ENGINES)
    for name, value in (("address", address), ("gpus", gpus)):
        if engine == "local" and value is not None:
            raise ConfigError(f"{name}= is only for engine='ray'; leave it out")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers=: expected 1 or more, found {workers}")
    ready, held = plan(recipe, collection, groups=groups, settings=settings, store=store, until=until)
    with _executor(engine, workers, address, gpus) as executor:
        ready.resources.executor, ready.resources.progress = executor, progress
        try:
            return Pairs(ready, held, ready.plan.run(held, progress=progress, executor=executor))
        finally:
            ready.resources.executor = ready.resources.progress = None


def _source(collection: object, store: Store) -> str:
    """Return the name by which workers can open a collection; a collection in memory is saved to the store first."""
    opened = collection if isinstance(collection, Collection) else None
    if opened is None and isinstance(collection, str | Path):
        return str(collection)
    opened = opened or Collection.open(collection)
    return opened.source or str(opened.save(store.local / f"collection-{opened.digest()}"))


@contextlib.contextmanager
def _executor(engine: str, workers: int | None, address: str | None, gpus: float | None) -> Iterator[Any]:
    """Yield the executor that runs the shards of steps; None for this process."""
    if engine == "ray":
        from askew.core.store.ray import RayExecutor

        with RayExecutor(address, workers, gpus=1.0 if gpus is None else gpus) as executor:
            yield executor
    elif workers is not None and workers > 1:
        from askew.core.store.workers import Workers

        with Workers(workers) as executor:
            yield executor
    else:
        yield None
