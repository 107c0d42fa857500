"""``askew demo``: the embedded collection, measured, so that a stranger sees something real at once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from askew.cli import options as o
from askew.core.errors import ConfigError


def command(
    copy: Annotated[Path | None, typer.Option(help="Copy the demo's files to this new folder, to play with.")] = None,
    as_json: o.AsJson = False,
) -> None:
    """Measure two embedded runs over an embedded collection: nothing to download, nothing to prepare."""
    from askew.cli import measure as cli
    from askew.cli.render import note, say
    from askew.corpora.demo import demo_files
    from askew.stages.measure import measure

    files = demo_files()
    if copy is not None:
        _copy(files.docs.parent, copy)
        return
    report = measure(files.runs, files.docs, qrels=files.qrels)
    if not as_json:
        say(f"{files.documents} passages, {files.queries} judged queries; runs: {files.about}")
        say("")
    note(report.notes)
    cli.show(report, per_query=False, signature=False, as_json=as_json, as_tsv=False)
    if not as_json:
        say("ARaB: 0 is balanced, above 0 leans male, below 0 leans female.")
        say("NFaiRR: 1 is as neutral as the retrieved documents allow.")
        say("Next: askew demo --copy demo, then askew measure demo/bm25.run --docs demo/docs.tsv")


def _copy(source: Path, target: Path) -> None:
    from askew.cli.render import say

    if target.exists():
        raise ConfigError(f"--copy {target}: it exists already; give the name of a new folder")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    say(f"copied to {target}: {', '.join(sorted(p.name for p in target.iterdir()))}")
