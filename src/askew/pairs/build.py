"""Build pairs: the implementation of ``askew plan``, ``askew run``, ``askew report`` and ``askew publish``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.defaults import counted
from askew.core.errors import ConfigError, check_name
from askew.core.groups import Groups, GroupsLike
from askew.core.store.steps import StepProgress
from askew.core.store.store import Store
from askew.data.collection import Collection
from askew.pairs.dataset.release import Published
from askew.pairs.figures import PAIRS, Results
from askew.pairs.plan import Build, engine_notes, other_settings, prepare
from askew.pairs.publish import Release
from askew.pairs.recipe import Recipe, read_recipe, with_groups, with_settings
from askew.pairs.report import Reported, build_cautions, report_of
from askew.pairs.resources import frames_of
from askew.pairs.stages import Classify, judged_note
from askew.report.table import Table, columns, html_table, table, text_table

ENGINES = ("local", "ray")


class Pairs(Results):
    """The result of ``build``: the pairs of a query and a reformulation, the number of rows of each step, and the mean
    of each measure for the original queries and the reformulations.
    """

    @property
    def notes(self) -> list[str]:
        """Notes to read before relying on the results."""
        notes, steps = self.build.notes, self.build.plan.steps
        for step in steps:
            if isinstance(step.stage, Classify) and step.name in self.outcomes:
                frames = frames_of(self.store, self.outcomes[step.name].manifest, ["text"])
                notes += step.stage.tied(frame["text"].to_list() for frame in frames)
        if "neutral" in self.outcomes and PAIRS in self.outcomes:
            queries, rows = self.outcomes["variants"].manifest.rows_in, self.rows_of(PAIRS)
            without = queries - (rows.queries if rows else 0)
            if without:
                have = "has" if without == 1 else "have"
                notes.append(f"{without:,} of {counted(queries, 'query', 'queries')} {have} no reformulation left")
        notes += engine_notes(step.stage for step in steps)
        stage, rows = self.build.select, self.rows_of(PAIRS)
        judged = judged_note(stage, rows) if stage and rows else None
        return [*notes, *([f"pairs: {judged}"] if judged else [])]

    def table(self, step: str = "pairs") -> pl.DataFrame:
        """Return the output rows of a step, by default the pairs."""
        check_name("step", step, self.outcomes)
        parts = list(self.store.read(self.outcomes[step].manifest))
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

    @property
    def cautions(self) -> list[str]:
        """What the held-out values do not show: measures that may not improve, become worse, or have no value."""
        if self.summary is None or self.build.select is None:
            return []
        return [str(one) for one in build_cautions(self.build.select.selector, self.build.evaluate, self.summary)]

    def report(self, out: str | Path, *, figures: Sequence[str] = (), latex: bool = False) -> Reported:
        """Write the report: one HTML page, and its tables as CSV (``askew report``)."""
        return report_of(self, Path(out), figures=figures, latex=latex)

    def publish(self, out: str | Path, *, license: str | None = None) -> Published:
        """Write the dataset to a new folder: Parquet, card, Croissant, checksums (``askew publish``).

        ``license`` replaces the license that the recipe states for the dataset.
        """
        return Release(self, license).publish(Path(out))

    def _table(self) -> Table:
        if self.summary is None:
            steps = [[row["step"], row["in"], row["out"]] for row in self.steps]
            return table("steps", "Rows of each step", columns("step", "in", "out"), steps)
        rows = [
            [row["subset"], f"{row['pairs']:,}", row["measure"], row["figures"],
             *("-" if row[name] is None else f"{row[name]:.4f}" for name in ("old_mean", "new_mean")),
             *("-" if row[name] is None else f"{row[name]:+.1f}%" for name in ("change", "in_sample_change"))]
            for row in self.summary.to_dicts()
        ]  # fmt: skip
        names = ("subset", "pairs", "measure", "figures", "original mean", "reformulated mean", "change")
        caption = "Means of the original queries and of the reformulations"
        return table("summary", caption, columns(*names, "in-sample change"), rows)

    def __repr__(self) -> str:
        return text_table(self._table())

    def _repr_html_(self) -> str:
        return html_table(self._table())


def plan(
    recipe: str | Path | Recipe,
    collection: object = None,
    *,
    groups: GroupsLike | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    store: str | Path | Store = defaults.STORE,
    until: str | None = None,
    code: bool = False,
) -> tuple[Build, Store]:
    """Return the steps that ``build`` would run with these arguments; all are checked, and nothing is run.

    A measure in a Python file is an error unless ``code`` is true, because its file would be run.
    """
    held = store if isinstance(store, Store) else Store(store)
    chosen = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    if collection is not None:
        chosen = with_settings(chosen, {"collection": {"source": _source(collection, held)}})
    chosen = with_groups(chosen, None if groups is None else Groups.of(groups))
    chosen = with_settings(chosen, settings or {})
    measures = chosen.table("evaluate").get("measures")
    if not code and ".py:" in str(measures):
        said = "[evaluate]: a measure is in a Python file, which is not run to show a plan; run the recipe (askew run)"
        raise ConfigError(said, code="python-measure")
    return prepare(chosen, held, until, code), held


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
            raise ConfigError(f"⟨{name}⟩ is only for ⟨engine=ray⟩; leave it out")
    if workers is not None and workers < 1:
        raise ConfigError(f"⟨workers⟩: expected 1 or more, found {workers}", code="out-of-range", workers=workers)
    ready, held = plan(recipe, collection, groups=groups, settings=settings, store=store, until=until, code=True)
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
