"""``askew annotate``: count a collection once, keep it, use it for every run after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askew.cli import options as o


def command(
    docs: Annotated[Path, typer.Argument(help="Documents: a file (TSV, JSON Lines, Parquet, gzip) or a folder.")],
    lexicon: Annotated[str, typer.Option(help="A lexicon by name, or a .toml, .csv or .dic file.")] = "rekabsaz2020",
    tokens: Annotated[str, typer.Option(help="Tokenizer: word, blank (as published) or seyedsalehi.")] = "word",
    overlap: Annotated[
        str, typer.Option(help="A term of several groups counts for: all of them, or the first.")
    ] = "all",
    fields: o.Fields = None,
    store: o.StorePath = o.DEFAULT_STORE,
    as_json: o.AsJson = False,
) -> None:
    """Count how often each document names each group, and keep the counts in the store.

    The same command again does nothing; after an interruption it goes on where it was. askew measure
    --store finds the counts by the content of the documents.
    """
    from askew.cli.render import Waiting, say, say_json
    from askew.core.errors import ConfigError
    from askew.engine.store import Store
    from askew.stages.annotate import Annotate, annotate

    if overlap not in ("all", "first"):
        raise ConfigError(f"--overlap is all or first, found {overlap!r}")
    with Waiting("counting words") as progress:
        outcome = annotate(
            docs,
            Store(store),
            Annotate(lexicon, tokens, overlap),
            o.split_fields(fields),
            lambda rows: progress(rows, 0),
        )
    manifest = outcome.manifest
    folder = Store(store).folder(manifest.step, manifest.key)
    if as_json:
        say_json({"folder": str(folder), "ran": outcome.ran, "rows": manifest.rows_out, "key": manifest.key})
        return
    verb = "counted" if outcome.ran else "already counted:"
    say(f"{verb} {manifest.rows_out:,} documents with {manifest.settings['lexicon']}, tokens {tokens}")
    say(f"kept in {folder}")
