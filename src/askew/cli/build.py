"""``askew plan`` and ``askew run``: a recipe becomes steps, and steps become tables in the store."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from askew.cli import options as o

RecipeName = Annotated[str, typer.Argument(help="A recipe by name (askew list recipes), or a .toml file.")]
Until = Annotated[str | None, typer.Option(help="Stop after this step: neutral, variants, kept, runs or scores.")]


def plan_command(
    recipe: RecipeName, settings: o.OwnSettings = None, until: Until = None, store: o.StorePath = o.DEFAULT_STORE,
    as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Show the steps of a recipe, what each reads, its key, and what is finished already. Nothing is run."""
    from askew.cli.render import print_rows, say_json
    from askew.engine.store import Store
    from askew.stages.recipe import prepare, read_recipe, with_settings

    held = Store(store)
    plan = prepare(with_settings(read_recipe(recipe), o.settings_by_owner(settings)), held, until).plan
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
    as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Run a recipe: what is finished is found, what was interrupted goes on. Every row is out or counted as dropped."""
    from askew.cli.render import Waiting, say_json
    from askew.engine.store import Store
    from askew.stages.recipe import prepare, read_recipe, with_settings

    held = Store(store)
    build = prepare(with_settings(read_recipe(recipe), o.settings_by_owner(settings)), held, until)
    with Waiting("running") as progress:
        outcomes = build.plan.run(held, progress=lambda step, rows: progress(rows, 0))
    rows = [_row(name, outcome) for name, outcome in outcomes.items()]
    if as_json:
        say_json({"store": str(store), "steps": rows})
        return
    _show(rows)
    typer.echo(f"in {held.folder(rows[-1]['step'], rows[-1]['key'])}")


def _row(name: str, outcome: Any) -> dict[str, Any]:
    manifest = outcome.manifest
    return {"step": name, "key": manifest.key, "in": manifest.rows_in, "out": manifest.rows_out,
            "dropped": manifest.dropped, "ran": outcome.ran}  # fmt: skip


def _show(rows: list[dict[str, Any]]) -> None:
    from askew.cli.render import print_rows

    columns = [
        ("in", [f"{row['in']:,}" for row in rows]),
        ("out", [f"{row['out']:,}" for row in rows]),
        ("dropped", ["; ".join(f"{n:,} {why}" for why, n in row["dropped"].items()) or "-" for row in rows]),
        ("", ["" if row["ran"] else "found" for row in rows]),
    ]
    print_rows("step", [row["step"] for row in rows], columns)
