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
    str | None, typer.Option(help="The model to start from: a folder or a hub id, such as google-t5/t5-base.")
]


def generator_command(
    collection: Annotated[str, typer.Argument(help="Judged passages: a folder, 'irds:ID', or 'demo'.")],
    out: Out,
    preset: Annotated[
        str | None,
        typer.Option(help="A published training setup: 'repair2023' or 'repair2023-aol'.", show_default=False),
    ] = None,
    model: Model = None,
    direction: Annotated[
        str | None,
        typer.Option(
            help="'passage-query': the model reads a passage and writes a query. 'query-passage': the reverse."
        ),
    ] = None,
    join: Annotated[
        str | None,
        typer.Option(
            help="How to use several passages of a query: 'replicate' (a training pair for each passage) or "
            "'concatenate' (one pair with all passages)."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="How to separate the test data from the training data: 'apart' (no query and no passage is in both), "
            "'query' (no query is in both) or 'none' (both have all pairs, as in RePair; discouraged)."
        ),
    ] = None,
    context: Annotated[
        bool | None,
        typer.Option(
            "--context/--no-context", help="Put the id of the user who typed the query before the input of the model."
        ),
    ] = None,
    fields: Annotated[
        str | None, typer.Option(help="The fields of a passage to read, such as 'title,url,text'.")
    ] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a model that writes the query that a passage answers, for the reformulator 'docquery'.

    A sequence-to-sequence model (T5) is fine-tuned; a causal model (by default SmolLM2) gets an adapter. If stopped,
    the same command resumes from the last checkpoint. Next: 'askew reformulate', with the options that are printed.
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
    say(f"trained on {done.measured['pairs']['train']:,} pairs of a passage and a query; written to {out}")
    for name, one in done.measured["test"].items():
        say(f"{name:14} {mean_and_interval(one)}  n = {one['n']} queries")
    if done.use:
        _say_next("--docs DOCS", done.use.replace("FOLDER", shlex.quote(str(out))))
    return None


def rewriter_command(
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Pairs of a query and a more effective reformulation: a store that 'askew run repair' wrote, a "
            "published dataset, or a file of RePair."
        ),
    ],
    out: Out,
    kind: Annotated[
        str | None,
        typer.Option(
            help="The kind of model: 'acg' or 'hred-qs' (recurrent networks), 'seq2seq' (T5) or 'causal' (a language "
            "model with an adapter)."
        ),
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(
            help="The subset of pairs to train on: 'gold', 'platinum' or 'diamond'. If the file of pairs has values of "
            "a measure, a criterion such as 'refined > original' is also allowed."
        ),
    ] = None,
    model: Model = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="The file of word vectors for 'acg' and 'hred-qs'. Training does not change the vectors."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="For 'hred-qs': a file of queries with their users and times. The model also reads earlier queries "
            "of the same user."
        ),
    ] = None,
    beams: Annotated[int | None, typer.Option(help="The number of beams for rewriting held-out queries.")] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a model that rewrites queries, on pairs (a query, a better one), and measure it on held-out queries.

    Sizes, batches and epochs are those of RePair unless --set changes them. If stopped, the same command resumes from
    the last checkpoint. Next: 'askew reformulate' with '--method rewriter --set rewriter.model=OUT'.
    """
    done = fit(
        "rewriter", (pairs,), out, settings, device, kind=kind, box=box, model=model, vectors=vectors,
        queries=queries, beams=beams, seed=seed,
    )  # fmt: skip
    if as_json:
        return say_trained(done)
    sizes = done.measured["pairs"]
    say(
        f"trained on {sizes['train']:,} pairs of queries ({sizes['dev']:,} dev, {sizes['test']:,} test); written to "
        f"{out}"
    )
    _print(done.tables[0].title, done.measured["test"])
    _say_next("", f"--method rewriter --set {shlex.quote(f'rewriter.model={out}')}")
    return None


def _say_next(needs: str, use: str) -> None:
    """Print the command that uses the trained model, one option per line."""
    say("to reformulate other queries:")
    first = " ".join(["askew reformulate QUERIES --out FILE", needs]).rstrip()
    *lines, last = [f"  {first}", *(f"    {line}" for line in use.replace(" --set ", "\n--set ").splitlines())]
    for line in lines:
        say(f"{line} \\")
    say(last)


def _print(title: str, rows: Mapping[str, Any]) -> None:
    from askew.statistics.intervals import mean_and_interval

    columns = [(what, [mean_and_interval(one) for one in values.values()]) for what, values in rows.items()]
    print_tables(title, "measure", list(next(iter(rows.values()))), columns)
