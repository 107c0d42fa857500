"""``askew train generator`` and ``askew train rewriter``: models that write queries."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.cli import options as o
from askew.cli.render import note, print_tables, say
from askew.cli.train import Device, Out, Seed, Settings, fit, say_trained

Model = Annotated[
    str | None, typer.Option(help="A model to begin from: a folder or a hub id, such as google-t5/t5-base.")
]


def generator_command(
    collection: Annotated[str, typer.Argument(help="Judged passages: a folder, demo or irds:ID.")],
    out: Out,
    preset: Annotated[
        str | None, typer.Option(help="A published way to train: repair2023 or repair2023-aol.", show_default=False)
    ] = None,
    model: Model = None,
    direction: Annotated[str | None, typer.Option(help="passage-query, or query-passage.")] = None,
    join: Annotated[
        str | None, typer.Option(help="Several passages of a query: replicate (a pair each) or concatenate.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Held out: apart (queries and passages), query, or none (as RePair; discouraged)."),
    ] = None,
    context: Annotated[
        bool | None, typer.Option("--context/--no-context", help="Who asked stands before what is read.")
    ] = None,
    fields: Annotated[str | None, typer.Option(help="Parts of a passage, such as title,url,text.")] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Teach a model to write the query that a passage answers. Stopped, it goes on from its last checkpoint.

    A sequence-to-sequence model (T5) is fine-tuned, for the reformulator docquery; a causal one (SmolLM2 unless --model
    says otherwise) gets an adapter, for the reformulator docquery. Then: askew reformulate, with what is printed here.
    """
    from askew.corpora.collection import open_collection
    from askew.statistics.intervals import mean_and_interval

    note(open_collection(collection, o.split_fields(fields)).notes("queries", "judgements"))
    done = fit(
        "generator", (collection,), out, settings, device, preset=preset, model=model, direction=direction, join=join,
        split=split, context=context, fields=fields, seed=seed,
    )  # fmt: skip
    if as_json:
        return say_trained(done)
    say(f"trained on {done.measured['pairs']['train']:,} pairs: {out}")
    for name, one in done.measured["test"].items():
        say(f"{name:14} {mean_and_interval(one)}  n = {one['n']} queries")
    if done.use:
        _say_next("--docs DOCS", done.use.replace("FOLDER", shlex.quote(str(out))))
    return None


def rewriter_command(
    pairs: Annotated[
        Path, typer.Argument(help="Pairs: a store of askew run repair, a published dataset, or a file of RePair.")
    ],
    out: Out,
    kind: Annotated[str | None, typer.Option(help="acg, hred-qs, seq2seq (T5) or causal (an adapter).")] = None,
    box: Annotated[
        str | None, typer.Option(help="Which pairs: gold, platinum, diamond; of a file also a criterion.")
    ] = None,
    model: Model = None,
    vectors: Annotated[Path | None, typer.Option(help="Word vectors for acg and hred-qs, kept as they are.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Queries with user and time: earlier ones make the sessions of hred-qs.")
    ] = None,
    beams: Annotated[
        int | None, typer.Option(help="Ways followed side by side when held-out queries are rewritten.")
    ] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Teach a model to rewrite queries from pairs (a query, a better one), and measure it on held-out queries.

    Sizes, batches and epochs are RePair's unless --set says otherwise. Stopped, it goes on from its last checkpoint.
    Then: askew reformulate with the method rewriter, --set rewriter.model=OUT.
    """
    done = fit(
        "rewriter", (pairs,), out, settings, device, kind=kind, box=box, model=model, vectors=vectors,
        queries=queries, beams=beams, seed=seed,
    )  # fmt: skip
    if as_json:
        return say_trained(done)
    sizes = done.measured["pairs"]
    say(f"trained on {sizes['train']:,} pairs ({sizes['dev']:,} dev, {sizes['test']:,} test): {out}")
    _print(done.tables[0].title, done.measured["test"])
    _say_next("", f"--method rewriter --set {shlex.quote(f'rewriter.model={out}')}")
    return None


def _say_next(needs: str, use: str) -> None:
    """The command that writes with what was trained, an option a line."""
    say("what it writes for other queries:")
    first = " ".join(["askew reformulate QUERIES --out FILE", needs]).rstrip()
    *lines, last = [f"  {first}", *(f"    {line}" for line in use.replace(" --set ", "\n--set ").splitlines())]
    for line in lines:
        say(f"{line} \\")
    say(last)


def _print(title: str, rows: Mapping[str, Any]) -> None:
    from askew.statistics.intervals import mean_and_interval

    columns = [(what, [mean_and_interval(one) for one in values.values()]) for what, values in rows.items()]
    print_tables(title, "measure", list(next(iter(rows.values()))), columns)
