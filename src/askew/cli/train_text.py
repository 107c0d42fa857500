"""``askew train generator`` and ``askew train rewriter``: models that write queries."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.cli import options as o
from askew.core.errors import UnknownName

Out = Annotated[Path, typer.Option(help="The folder of the model.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seed = Annotated[int, typer.Option(help="Seed of the training.")]
Model = Annotated[str, typer.Option(help="A model to begin from: a folder or a hub id, such as google-t5/t5-base.")]


def generator_command(
    collection: Annotated[str, typer.Argument(help="Judged passages: a folder, demo or irds:ID.")],
    out: Out,
    preset: Annotated[
        str, typer.Option(help="A published way to train: repair2023 or repair2023-aol.", show_default=False)
    ] = "",
    model: Model = "",
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
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="epochs, batch_size, steps, most_input, prefix, rank, most_pairs, ...: NAME=VALUE."),
    ] = None,
    device: Device = "auto",
    seed: Seed = 7,
    as_json: o.AsJson = False,
) -> None:
    """Teach a model to write the query that a passage answers. Stopped, it goes on from its last checkpoint.

    A sequence-to-sequence model (T5) is fine-tuned, for the reformulator docquery; a causal one (SmolLM2 unless --model
    says otherwise) gets an adapter, for the reformulator local. Then: askew reformulate, with what is printed here.
    """
    from dataclasses import replace

    from askew.app.train.generator import GeneratorJob, train_generator
    from askew.cli.render import Waiting, note, say, say_json
    from askew.corpora.collection import open_collection
    from askew.trainers.generator import ADAPTER_PACE, PACE, PRESETS, GeneratorSettings
    from askew.trainers.rewriting.finetune import TextSettings, kind_of

    if preset and preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS)
    how, text, pace = PRESETS[preset] if preset else (GeneratorSettings(), TextSettings(), None)
    given = o.read_settings(settings)
    named = {"direction": direction, "join": join, "split": split, "context": context}
    given |= {name: value for name, value in named.items() if value is not None}
    given |= {"model": model} if model else {}
    text = _take(given, text)
    pace = pace or (PACE if kind_of(text) == "seq2seq" else ADAPTER_PACE)
    own = GeneratorJob(_take(given, how), text, _take(given, replace(pace, seed=seed)), o.split_fields(fields))
    job = _last(given, own, ("most_pairs", "most_test"))
    note(open_collection(collection, job.fields).notes("queries", "judgements"))
    with Waiting("training") as progress:
        facts = train_generator(collection, out, job, device, _command(), progress)
    if as_json:
        say_json({"out": str(out), **facts["measured"], "use": facts["extra"]["use"]})
        return
    _tell_left_out(facts["measured"])
    from askew.statistics.intervals import mean_and_interval

    sizes = facts["measured"]["pairs"]
    say(f"trained on {sizes['train']:,} pairs: {out}")
    for name, one in facts["measured"]["test"].items():
        say(f"{name:14} {mean_and_interval(one)}  n = {one['n']} queries")
    use = facts["extra"]["use"].replace("FOLDER", shlex.quote(str(out)))
    if use:
        _say_next("--docs DOCS", use)


def rewriter_command(
    pairs: Annotated[
        Path, typer.Argument(help="Pairs: a store of askew run repair, a published dataset, or a file of RePair.")
    ],
    out: Out,
    kind: Annotated[str, typer.Option(help="acg, hred-qs, seq2seq (T5) or causal (an adapter).")] = "acg",
    box: Annotated[str, typer.Option(help="Which pairs: gold, platinum, diamond; of a file also a criterion.")] = "",
    model: Model = "",
    vectors: Annotated[Path | None, typer.Option(help="Word vectors for acg and hred-qs, kept as they are.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Queries with user and time: earlier ones make the sessions of hred-qs.")
    ] = None,
    beams: Annotated[int, typer.Option(help="Ways followed side by side when held-out queries are rewritten.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="epochs, batch_size, hidden, written, prefix, rank, every, ...: NAME=VALUE."),
    ] = None,
    device: Device = "auto",
    seed: Seed = 7,
    as_json: o.AsJson = False,
) -> None:
    """Teach a model to rewrite queries from pairs (a query, a better one), and measure it on held-out queries.

    Sizes, batches and epochs are RePair's unless --set says otherwise. Stopped, it goes on from its last checkpoint.
    Then: askew reformulate with the method rewriter, --set rewriter.model=OUT.
    """
    from dataclasses import replace

    from askew.app.train.rewriter import BOX, RewriterJob, measured_table, train_rewriter
    from askew.cli.render import Waiting, say, say_json
    from askew.trainers.rewriter import PRESETS

    if kind not in PRESETS:
        raise UnknownName("kind of rewriter", kind, PRESETS)
    chosen, pace = PRESETS[kind]
    given = o.read_settings(settings) | ({"model": model} if model else {})
    chosen = replace(chosen, sizes=_take(given, chosen.sizes), text=_take(given, chosen.text))
    chosen = replace(chosen, prefix=str(given.pop("prefix", chosen.prefix)))
    job = RewriterJob(chosen, _take(given, replace(pace, seed=seed)), box or BOX, beams=beams)
    job = _last(given, job, ("every", "most_test", "before"))
    with Waiting("training") as progress:
        facts = train_rewriter(pairs, out, job, queries, vectors, device, _command(), progress)
    if as_json:
        say_json({"out": str(out), **facts["measured"]})
        return
    _tell_left_out(facts["measured"])

    sizes = facts["measured"]["pairs"]
    say(f"trained on {sizes['train']:,} pairs ({sizes['dev']:,} dev, {sizes['test']:,} test): {out}")
    _print(measured_table(facts["measured"]["test"]), facts["measured"]["test"])
    _say_next("", f"--method rewriter --set {shlex.quote(f'rewriter.model={out}')}")


def _say_next(needs: str, use: str) -> None:
    """The command that writes with what was trained, an option a line."""
    from askew.cli.render import say

    say("what it writes for other queries:")
    first = " ".join(["askew reformulate QUERIES --out FILE", needs]).rstrip()
    *lines, last = [f"  {first}", *(f"    {line}" for line in use.replace(" --set ", "\n--set ").splitlines())]
    for line in lines:
        say(f"{line} \\")
    say(last)


def _take(given: dict[str, Any], into: Any) -> Any:
    """The settings that are this dataclass's own, taken out of those given."""
    from dataclasses import fields

    from askew.trainers.common import with_settings

    names = {field.name for field in fields(into)} & set(given)
    return with_settings({name: given.pop(name) for name in names}, into, "--set")


def _last(given: dict[str, Any], job: Any, known: tuple[str, ...]) -> Any:
    """The job with what is left of the settings; an unknown name is told."""
    from askew.trainers.common import with_settings

    for name in given:
        if name not in known:
            raise UnknownName("setting", name, known, "--set (names of sizes, the model and the pace are known too)")
    return with_settings(given, job, "--set")


def _tell_left_out(measured: Mapping[str, Any]) -> None:
    from askew.cli.render import note

    note([f"{count:,} pairs left out: {reason}" for reason, count in measured["left_out"].items()])


def _print(table: Any, rows: Mapping[str, Any]) -> None:
    from askew.cli.render import print_tables
    from askew.statistics.intervals import mean_and_interval

    columns = [(what, [mean_and_interval(one) for one in values.values()]) for what, values in rows.items()]
    print_tables(table.title, "measure", list(next(iter(rows.values()))), columns)


def _command() -> str:
    return shlex.join(["askew", *sys.argv[1:]])
