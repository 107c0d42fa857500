"""``askew report``: what a build came to, as one page with tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askew.cli import options as o
from askew.cli.build import RecipeName, built

Out = Annotated[Path, typer.Option(help="The folder to write to; an earlier report there is replaced, nothing else.")]
Figures = Annotated[str, typer.Option(help="Figures as files as well: svg, png or svg,png.")]
Latex = Annotated[bool, typer.Option("--latex", help="Tables for LaTeX as well.")]


def report_command(
    recipe: RecipeName, out: Out, settings: o.OwnSettings = None, groups: o.GroupNames = None,
    lexicon: o.LexiconName = None, figures: Figures = "", latex: Latex = False, store: o.StorePath = o.DEFAULT_STORE,
    seed: o.Seed = 0, as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Run a recipe if need be, and write its report: one HTML file that needs nothing else, and its tables as CSV."""
    from askew.cli.render import Waiting, say, say_json
    from askew.publish.page.pictures import check_formats
    from askew.publish.page.writing import check_out

    formats = o.split_fields(figures)
    check_formats(formats)
    check_out(out)
    pairs = built(recipe, settings, groups, lexicon, store)
    with Waiting("writing"):
        done = pairs.report(out, figures=formats, latex=latex, seed=seed)
    if as_json:
        say_json({"html": str(done.html), "files": [str(path) for path in done.files]})
        return
    for path in done.files:
        say(str(path))
