"""``askew plan``, ``run``, ``publish``, ``report`` and ``verify``: run a recipe, write its results, and check them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askew.cli import options as o
from askew.cli.build_summary import baseline, show_summary
from askew.cli.render import Waiting, note, print_rows, safe, say, say_json, say_wrapped
from askew.core import defaults
from askew.core.address import Address
from askew.core.figures import counted
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.app.build.facade import Pairs

RecipeName = Annotated[str, typer.Argument(help="A recipe by name (see 'askew list recipes'), or a .toml file.")]
Until = Annotated[str | None, typer.Option(help="Stop after this step; 'askew plan' lists the steps.")]
Engine = Annotated[
    str,
    typer.Option(
        help="Where the shards of a step are processed: 'local' (processes on this machine) or 'ray' (a Ray cluster)."
    ),
]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="The number of processes or Ray actors. With '--engine local', the value 1 starts no other process.",
    ),
]
GpuShare = Annotated[
    float | None,
    typer.Option(
        help="With '--engine ray', give this share of a GPU to each actor that runs a neural model. The default is 1. "
        "With 0.5, two actors share a GPU. With 0, no GPU is used."
    ),
]
RayAddress = Annotated[
    str | None, typer.Option(help="The address of a Ray cluster. Default: start Ray on this machine.")
]
Out = Annotated[
    Path,
    typer.Option(
        help="The folder to write to. An earlier report in this folder is replaced; other files in it are kept."
    ),
]
Figures = Annotated[str, typer.Option(help="Also write the figures as files: 'svg', 'png' or 'svg,png'.")]
License = Annotated[
    str | None,
    typer.Option(
        help="The license of the dataset as an SPDX identifier, such as CC-BY-4.0. It replaces publish.license of the "
        "recipe."
    ),
]
Latex = Annotated[bool, typer.Option("--latex", help="Also write the tables in LaTeX.")]


def plan_command(
    recipe: RecipeName, settings: o.SectionSettings = None, groups: o.GroupNames = None, lexicon: o.LexiconName = None,
    until: Until = None, store: o.StorePath = o.DEFAULT_STORE, as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Show the steps of a recipe: the input of each step, its key, and whether it is finished. Nothing is run."""
    from askew.app.build.facade import plan

    counted = Groups.resolve(groups, lexicon)
    build, held = plan(recipe, groups=counted, settings=o.settings_by_section(settings), store=store, until=until)
    note(build.notes)
    rows = []
    for step in build.plan.steps:
        key = build.plan.keys()[step.name]
        done = held.finished(step.name, key)
        rows.append({"step": step.name, "stage": step.stage.name, "reads": step.reads, "key": key,
                     "done": f"{done.rows_out:,} rows" if done else "-"})  # fmt: skip
    if as_json:
        say_json(rows)
        return
    columns = [(name, [row[name] for row in rows]) for name in ("stage", "reads", "key", "done")]
    print_rows("step", [row["step"] for row in rows], columns)


def built(
    recipe: str, settings: list[str] | None, groups: str | None, lexicon: str | None, store: str, **more: Any
) -> Pairs:
    """Call ``askew.build`` with the options of a command, and show its progress and notes."""
    from askew.app.build.facade import build

    counted = Groups.resolve(groups, lexicon)
    with Waiting("running") as progress:
        pairs = build(
            recipe, groups=counted, settings=o.settings_by_section(settings), store=store,
            progress=lambda step, done, total: progress(done, total, step), **more,
        )  # fmt: skip
    note(pairs.notes)
    return pairs


def _built_before(
    recipe: str, settings: list[str] | None, groups: str | None, lexicon: str | None, store: str
) -> Pairs:
    """Return the pairs of a finished build. If the recipe was not built before, say so and build."""
    from askew.app.build.facade import check_not_forgotten, plan

    counted = Groups.resolve(groups, lexicon)
    ready, held = plan(recipe, groups=counted, settings=o.settings_by_section(settings), store=store)
    check_not_forgotten(ready, held)
    keys = ready.plan.keys()
    if not all(held.finished(step.name, keys[step.name]) for step in ready.plan.steps):
        note([
            f"{store} has no finished build of {recipe}, so it is built now on the collection "
            f"{ready.resources.collection.id}"
        ])  # fmt: skip
    return built(recipe, settings, groups, lexicon, store)


def run_command(
    recipe: RecipeName, settings: o.SectionSettings = None, groups: o.GroupNames = None, lexicon: o.LexiconName = None,
    until: Until = None, store: o.StorePath = o.DEFAULT_STORE, engine: Engine = defaults.ENGINE,
    workers: WorkerCount = None, address: RayAddress = None, gpus: GpuShare = None, as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Run a recipe. Finished steps are reused, interrupted steps resume. Dropped rows are counted by reason."""
    pairs = built(
        recipe,
        settings,
        groups,
        lexicon,
        store,
        until=until,
        engine=engine,
        workers=workers,
        address=address,
        gpus=gpus,
    )
    table = pairs.summary
    if as_json:
        summary = [] if table is None else table.to_dicts()
        held_out = [] if pairs.held_out is None else pairs.held_out.to_dicts()
        others = [] if pairs.other_rankers is None else pairs.other_rankers.to_dicts()
        every = [] if pairs.all_candidates is None else pairs.all_candidates.to_dicts()
        say_json({"store": str(Address(store)), "steps": pairs.steps, "summary": summary, "held_out": held_out,
                  "all_candidates": every, "other_rankers": others, "cautions": pairs.cautions})  # fmt: skip
        return
    show_steps(pairs.steps)
    if table is not None:
        others = [] if pairs.other_rankers is None else pairs.other_rankers.to_dicts()
        show_summary(table.to_dicts(), others, pairs.build.evaluate.judged)
        say("")
        if pairs.all_candidates is not None:
            say_wrapped(baseline(pairs.all_candidates.to_dicts()), "  ")
        for caution in pairs.cautions:
            say_wrapped(caution, "  ")
    last = next((row for row in pairs.steps if row["step"] == "pairs"), pairs.steps[-1])
    typer.echo(f"stored in {pairs.store.where(last['step'], last['key'])}")


def show_steps(rows: list[dict[str, Any]]) -> None:
    """Print the steps with their numbers of rows in, out and dropped."""
    columns = [
        ("in", [f"{row['in']:,}" for row in rows]),
        ("out", [f"{row['out']:,}" for row in rows]),
        ("dropped", ["; ".join(f"{n:,} {why}" for why, n in row["dropped"].items()) or "-" for row in rows]),
        ("", ["" if row["ran"] else "found" for row in rows]),
    ]
    print_rows("step", [row["step"] for row in rows], columns)


def publish_command(
    recipe: RecipeName, out: Annotated[Path, typer.Option(help="The new folder to write the dataset to.")],
    settings: o.SectionSettings = None, groups: o.GroupNames = None, lexicon: o.LexiconName = None,
    license: License = None, store: o.StorePath = o.DEFAULT_STORE, as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Run a recipe if needed, and write its pairs as a dataset: Parquet splits, card, Croissant, checksums."""
    pairs = _built_before(recipe, settings, groups, lexicon, store)
    with Waiting("writing"):
        done = pairs.publish(out, license=license)
    if as_json:
        say_json({"out": str(out), "splits": done.splits, "subsets": done.subsets, "left_out": done.left_out,
                  "unselected": done.unselected, "notes": done.notes})  # fmt: skip
        return
    note(done.notes)
    say("splits: " + ", ".join(f"{name} {count:,}" for name, count in done.splits.items()))
    say("subsets: " + ", ".join(f"{name} {count:,}" for name, count in done.subsets.items()))
    if done.left_out:
        say(
            f"left out, because publish.query_text is false: {done.left_out:,} pairs whose reformulation has the same "
            "words as an original query"
        )
    if done.unselected:
        unselected = counted(done.unselected, "pair of the build is", "pairs of the build are")
        say(f"not published: {unselected} in no subset")
    typer.echo(f"written to {safe(str(out))}; to check it: askew verify {safe(str(out))}")


def report_command(
    recipe: RecipeName, out: Out, settings: o.SectionSettings = None, groups: o.GroupNames = None,
    lexicon: o.LexiconName = None, figures: Figures = "", latex: Latex = False, store: o.StorePath = o.DEFAULT_STORE,
    seed: o.Seed = 0, as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Run a recipe if needed, and write its report: one self-contained HTML file, and its tables as CSV."""
    from askew.publish.page.pictures import check_formats
    from askew.publish.page.writing import check_out

    formats = o.split_fields(figures)
    check_formats(formats)
    check_out(out)
    pairs = _built_before(recipe, settings, groups, lexicon, store)
    with Waiting("writing"):
        done = pairs.report(out, figures=formats, latex=latex, seed=seed)
    if as_json:
        say_json({"html": str(done.html), "files": [str(path) for path in done.files]})
        return
    for path in done.files:
        say(str(path))


def verify_command(
    path: Annotated[str, typer.Argument(help="The folder of a published dataset, a store or an index.")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Compute the damaged parts of a store or an index again.")
    ] = False,
    as_json: o.AsJson = False,
) -> None:
    """Check a dataset, a store, an index or a report: its checksums, and the contents of a dataset.

    Exit code 3 on any error.

    With --repair, damaged steps of a store are computed again from its recipe, and a damaged index is built again from
    its documents, if their location is known. For other damage, the command that makes the files again is printed.
    """
    from askew.app.build.verify import verify

    found = verify(path, repair)
    if as_json:
        say_json({"ok": found.ok, "kind": found.kind, "wrong": found.wrong, "notes": found.notes,
                  "repaired": found.repaired, **found.counts, **found.facts})  # fmt: skip
    else:
        for line in found.lines():
            say(line)
    if not found.ok:
        raise typer.Exit(3)
