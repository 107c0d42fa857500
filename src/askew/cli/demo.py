"""``askew demo``: a complete build on the embedded collection, as a first example."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askew.cli import options as o
from askew.cli.render import Waiting, say, say_json, say_wrapped
from askew.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from askew.app.build.facade import Pairs

DEFAULT_OUT = Path("askew-demo")


def command(
    out: Annotated[Path, typer.Option(help="The folder for the dataset, the report and the store.")] = DEFAULT_OUT,
    copy: Annotated[
        Path | None, typer.Option(help="Copy the files of the demo to this new folder, and do not run it.")
    ] = None,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    """Run the recipe 'demo' on the embedded collection: from queries to a dataset of selected reformulations.

    No download is needed.
    """
    from askew.cli import build as cli
    from askew.cli.build_summary import show_summary
    from askew.corpora.demo import demo_files
    from askew.publish.page.writing import check_out

    files = demo_files()
    if copy is not None:
        _copy(files.docs.parent, copy)
        return
    check_out(out / "report")
    pairs = cli.built("demo", None, None, None, str(out / "store"))
    with Waiting("writing"):
        dataset = _dataset(pairs, out / "dataset")
        report = pairs.report(out / "report", seed=seed).html
    rows = [] if pairs.summary is None else pairs.summary.to_dicts()
    if as_json:
        say_json({"dataset": str(dataset), "report": str(report), "store": str(out / "store"),
                  "steps": pairs.steps, "summary": rows})  # fmt: skip
        return
    say(f"{files.documents} passages, {files.queries} judged queries")
    cli.show_steps(pairs.steps)
    show_summary([row for row in rows if row["subset"] == "effective"])
    say_wrapped(
        "The subset 'effective' has at most one reformulation per query. On the documents that were used to select "
        "this reformulation, its results lean less than the results of the query and are not less effective. The "
        "changes in the column 'held out' are measured on documents that were not used to select reformulations."
    )
    say("|ARaB|: bias (lean) of the results; 0 is balanced. NFaiRR: 1 is the most neutral value.")
    say("")
    typer.echo(f"dataset  {dataset}")
    typer.echo(f"report   {report}")
    say("To measure a run of the demo:")
    say("  askew demo --copy demo")
    say("  askew measure demo/bm25.run --docs demo/docs.tsv")


def _dataset(pairs: Pairs, folder: Path) -> Path:
    """Write the dataset. A dataset that exists is kept, because the same build gives the same files."""
    from askew.publish.checking import verify

    if not folder.exists():
        pairs.publish(folder)
    elif not verify(folder).ok:
        raise DataError(f"{folder}: it exists already and is not a valid dataset of askew; give another --out")
    return folder


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        raise ConfigError(f"--copy {target}: it exists already; give the name of a new folder")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    say(f"copied to {target}: {', '.join(sorted(p.name for p in target.iterdir()))}")
