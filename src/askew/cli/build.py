"""``askew plan`` and ``askew run``: a recipe becomes steps, and steps become tables in the store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.cli import options as o
from askew.core.address import Address
from askew.core.errors import ConfigError, UnknownName

RecipeName = Annotated[str, typer.Argument(help="A recipe by name (askew list recipes), or a .toml file.")]
Until = Annotated[str | None, typer.Option(help="Stop after this step (askew plan shows them).")]


Engine = Annotated[str, typer.Option(help="Where shards run: local (processes of this machine) or ray.")]
WorkerCount = Annotated[
    int | None, typer.Option("--workers", help="How many processes or Ray actors; local: 1 is this process alone.")
]
RayAddress = Annotated[str | None, typer.Option(help="The Ray cluster; without it Ray is started on this machine.")]


def plan_command(
    recipe: RecipeName, settings: o.OwnSettings = None, until: Until = None, store: o.StorePath = o.DEFAULT_STORE,
    as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Show the steps of a recipe, what each reads, its key, and what is finished already. Nothing is run."""
    from askew.app.build.recipe import prepare, read_recipe, with_settings
    from askew.cli.render import note, print_rows, say_json
    from askew.engine.store import Store

    held = Store(store)
    build = prepare(with_settings(read_recipe(recipe), o.settings_by_owner(settings)), held, until)
    note(build.notes)
    plan = build.plan
    rows = []
    for step in plan.steps:
        key = plan.keys()[step.name]
        done = held.finished(step.name, key)
        rows.append({"step": step.name, "stage": step.stage.name, "reads": step.reads, "key": key,
                     "done": f"{done.rows_out:,} rows" if done else "-"})  # fmt: skip
    if as_json:
        say_json(rows)
        return
    columns = [(name, [row[name] for row in rows]) for name in ("stage", "reads", "key", "done")]
    print_rows("step", [row["step"] for row in rows], columns)


def run_command(
    recipe: RecipeName, settings: o.OwnSettings = None, until: Until = None, store: o.StorePath = o.DEFAULT_STORE,
    engine: Engine = "local", workers: WorkerCount = None, address: RayAddress = None,
    as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Run a recipe: what is finished is found, what was interrupted goes on. Every row is out or counted as dropped."""
    from askew.app.build.recipe import prepare, read_recipe, with_settings
    from askew.app.build.summary import summary_of
    from askew.cli.render import Waiting, note, say_json
    from askew.engine.store import Store

    check_engine(engine, workers, address)
    held = Store(store)
    build = prepare(with_settings(read_recipe(recipe), o.settings_by_owner(settings)), held, until)
    note(build.notes)
    with executor_of(engine, workers, address) as executor, Waiting("running") as progress:
        outcomes = build.plan.run(held, progress=lambda step, rows: progress(rows, 0, step), executor=executor)
    rows = [row_of(name, outcome) for name, outcome in outcomes.items()]
    table = summary_of(held, outcomes, build.select, build.evaluate)
    if as_json:
        say_json({"store": str(Address(store)), "steps": rows, "summary": [] if table is None else table.to_dicts()})
        return
    show_steps(rows)
    if table is not None:
        show_summary(table.to_dicts())
    last = next((row for row in rows if row["step"] == "pairs"), rows[-1])
    typer.echo(f"in {held.where(last['step'], last['key'])}")


@contextlib.contextmanager
def executor_of(engine: str, workers: int | None, address: str | None) -> Iterator[Any]:
    """Who runs the shards of steps; None is this process."""
    if engine == "ray":
        from askew.engine.ray_actors import RayExecutor

        with RayExecutor(address, workers) as executor:
            yield executor
    elif workers is not None and workers > 1:
        from askew.engine.workers import Workers

        with Workers(workers) as executor:
            yield executor
    else:
        yield None


def check_engine(engine: str, workers: int | None, address: str | None) -> None:
    """Refuse what cannot run, before anything is read."""
    if engine not in ("local", "ray"):
        raise UnknownName("engine", engine, ("local", "ray"))
    if engine == "local" and address is not None:
        raise ConfigError("--address is for --engine ray")
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers: expected 1 or more, found {workers}")


def row_of(name: str, outcome: Any) -> dict[str, Any]:
    """What a step came to."""
    manifest = outcome.manifest
    return {"step": name, "key": manifest.key, "in": manifest.rows_in, "out": manifest.rows_out,
            "dropped": manifest.dropped, "ran": outcome.ran, "restarts": outcome.restarts}  # fmt: skip


def show_steps(rows: list[dict[str, Any]]) -> None:
    """The steps with what went in and came out."""
    from askew.cli.render import print_rows

    columns = [
        ("in", [f"{row['in']:,}" for row in rows]),
        ("out", [f"{row['out']:,}" for row in rows]),
        ("dropped", ["; ".join(f"{n:,} {why}" for why, n in row["dropped"].items()) or "-" for row in rows]),
        ("", ["" if row["ran"] else "found" for row in rows]),
    ]
    print_rows("step", [row["step"] for row in rows], columns)


def show_summary(rows: list[dict[str, Any]]) -> None:
    """Means before and after of each subset, a block for each; the same block is not shown twice."""
    from askew.cli.render import print_rows, say

    known: dict[str, str] = {}
    for subset in dict.fromkeys(row["subset"] for row in rows):
        chosen = [row for row in rows if row["subset"] == subset]
        first = known.setdefault(repr([{**row, "subset": ""} for row in chosen]), subset)
        again = f"; the same figures as {first}" if first != subset and chosen[0]["pairs"] else ""
        say("")
        say(f"{subset}: {chosen[0]['pairs']:,} pairs of {chosen[0]['queries']:,} queries{again}")
        if again or not chosen[0]["pairs"]:
            continue
        columns = [
            ("old", [f"{row['old_mean']:.4f}" for row in chosen]),
            ("new", [f"{row['new_mean']:.4f}" for row in chosen]),
            ("change [95%]", [_percent(row) for row in chosen]),
            ("helped", [f"{row['helped']:,}" for row in chosen]),
            ("hurt", [f"{row['hurt']:,}" for row in chosen]),
        ]
        shown = [f"|{row['measure']}|" if row["of"] == "distance from zero" else row["measure"] for row in chosen]
        print_rows("measure", shown, columns)


def _percent(row: dict[str, Any]) -> str:
    if row["change"] is None:
        return "-"
    ends = "" if row["low"] is None else f" [{row['low']:+.0f}, {row['high']:+.0f}]"
    return f"{row['change']:+.1f}%{ends}"


def publish_command(
    recipe: RecipeName, out: Annotated[Path, typer.Option(help="The new folder to write the dataset to.")],
    settings: o.OwnSettings = None, store: o.StorePath = o.DEFAULT_STORE, as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Run a recipe if need be, and write its pairs as a dataset: Parquet splits, card, Croissant, checksums."""
    from askew.app.build.recipe import prepare, read_recipe, with_settings
    from askew.app.build.release import release
    from askew.cli.render import Waiting, note, safe, say, say_json
    from askew.engine.store import Store

    held = Store(store)
    build = prepare(with_settings(read_recipe(recipe), o.settings_by_owner(settings)), held)
    note(build.notes)
    with Waiting("running") as progress:
        outcomes = build.plan.run(held, progress=lambda step, rows: progress(rows, 0))
        done = release(build, held, outcomes, out)
    if as_json:
        say_json({"out": str(out), "splits": done.splits, "subsets": done.subsets})
        return
    say("splits: " + ", ".join(f"{name} {count:,}" for name, count in done.splits.items()))
    say("subsets: " + ", ".join(f"{name} {count:,}" for name, count in done.subsets.items()))
    typer.echo(f"in {safe(str(out))}; askew verify {safe(str(out))} checks it")
