"""``askew demo``: the embedded collection, measured, so that a stranger sees something real at once."""

from __future__ import annotations

import typer

from askew.cli import options as o


def command(as_json: o.AsJson = False) -> None:
    """Measure two embedded runs over an embedded collection: nothing to download, nothing to prepare."""
    from askew.cli import measure as cli
    from askew.cli.render import note
    from askew.corpora.demo import demo_files
    from askew.stages.measure import measure

    files = demo_files()
    report = measure(files.runs, files.docs, qrels=files.qrels, unjudged="error")
    if not as_json:
        typer.echo(f"{files.documents} passages, {files.queries} judged queries; runs: {files.about}\n")
    note(report.notes)
    cli.show(report, per_query=False, signature=False, as_json=as_json, as_tsv=False)
    if not as_json:
        typer.echo("ARaB: 0 is balanced, above 0 leans male, below 0 leans female. NFaiRR: 1 is as neutral as can be.")
        typer.echo("\nYour own run:  askew measure RUN --docs DOCS --qrels QRELS")
        old, new = files.runs
        typer.echo(f"Is it real?    askew compare {old} {new} \\")
        typer.echo(f"                   --docs {files.docs} --qrels {files.qrels}")
