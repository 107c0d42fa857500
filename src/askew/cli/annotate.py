"""``askew annotate``: count a collection once, keep it, use it for every run after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askew.cli import options as o
from askew.cli.render import Waiting, say, say_json
from askew.core.errors import ConfigError
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.app.scoring.annotate import Needs


def command(
    docs: Annotated[Path, typer.Argument(help="Documents: a file (TSV, JSON Lines, Parquet, gzip) or a folder.")],
    measures: Annotated[str | None, typer.Option(help="Count what these measures read.")] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="Count what this preset reads, in its way of reading.")
    ] = None,
    groups: o.GroupNames = None,
    lexicon: Annotated[str | None, typer.Option(help="One count: a lexicon by name, or its file.")] = None,
    tokens: Annotated[str | None, typer.Option(help="One count: tokenizer, such as unclipped or word.")] = None,
    overlap: Annotated[
        str | None, typer.Option(help="One count: a term of several groups counts for all of them, or the first.")
    ] = None,
    fields: o.Fields = None,
    store: o.StorePath = o.DEFAULT_STORE,
    as_json: o.AsJson = False,
) -> None:
    """Count how often each document names each group, and keep the counts in the store.

    Counted is all that askew measure reads by default, or all that --measures or --preset read, so that measuring
    reads no text any more. With --lexicon, --tokens or --overlap it is that one count. The same command again does
    nothing; after an interruption it goes on where it was. askew measure --store finds the counts by the content of
    the documents.
    """
    from askew.app.scoring.annotate import annotate
    from askew.engine.store import Store

    needs = _needs(measures, preset, groups, lexicon, tokens, overlap, o.split_fields(fields))
    counts: list[dict[str, Any]] = []
    for number, stage in enumerate(needs.stages, start=1):
        label = f"counting words ({number} of {len(needs.stages)})" if len(needs.stages) > 1 else "counting words"
        with Waiting(label) as progress:
            outcome = annotate(docs, Store(store), stage, needs.fields, progress, needs.published)
        manifest = outcome.manifest
        folder = Store(store).where(manifest.step, manifest.key)
        settings = manifest.settings
        counts.append(
            {
                "lexicon": settings["lexicon"], "tokens": settings["tokens"], "overlap": settings["overlap"],
                "folder": str(folder), "ran": outcome.ran, "rows": manifest.rows_out, "key": manifest.key,
            }
        )  # fmt: skip
        if not as_json:
            verb = "counted" if outcome.ran else "already counted:"
            say(f"{verb} {manifest.rows_out:,} documents with {settings['lexicon']}, tokens {settings['tokens']}")
            say(f"kept in {folder}")
    if as_json:
        say_json({"counts": counts})


def _needs(
    measures: str | None, preset: str | None, groups: str | None, lexicon: str | None, tokens: str | None,
    overlap: str | None, fields: tuple[str, ...],
) -> Needs:  # fmt: skip
    from askew.app.scoring.annotate import Annotate, Needs, needs_of

    one = {"lexicon": lexicon, "tokens": tokens, "overlap": overlap}
    given = {key: value for key, value in one.items() if value is not None}
    if not given:
        needs = needs_of(measures, preset, fields, Groups.resolve(groups))
        if not needs.stages:
            raise ConfigError("--measures: none of these measures reads a count of words, so there is nothing to keep")
        return needs
    if measures is not None or preset is not None or groups is not None:
        raise ConfigError(
            f"--{next(iter(given))} asks for one count: give it without --measures, --preset and --groups"
        )
    if overlap not in (None, "all", "first"):
        raise ConfigError(f"--overlap is all or first, found {overlap!r}")
    return Needs((Annotate(**given),), fields)
