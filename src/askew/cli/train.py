"""``askew train``: models of one's own. Each command cross-validates first and writes a card beside the model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.cli import options as o
from askew.core.errors import ConfigError, UnknownName

train_app = typer.Typer(
    name="train",
    help="Train a model, measure it on what it has not seen, and write both into a folder.\n\n"
    "A command that was stopped goes on from its last checkpoint when it is given again.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Out = Annotated[Path, typer.Option(help="A new folder for the model, its card and its measured values.")]
Seed = Annotated[int, typer.Option(help="Seed of the folds and of the training.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


@train_app.command("classifier", short_help="Which group a query asks about.")
def classifier_command(
    data: Annotated[Path, typer.Argument(help="Labelled queries: id,query,label (f, m, n), JSON Lines or Parquet.")],
    out: Out,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    seed: Seed = 7,
    device: Device = "auto",
    settings: o.Settings = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a classifier of which group a query asks about: female, male or neutral.

    Accuracy, F1 of each class and calibration are of the cross-validation; the model itself is then trained on all
    queries. Settings: model, lexicon, names, most_tokens; epochs, batch_size, learning_rate, accumulate, warmup,
    weight_decay, save_every; classes and drop, as texts with commas.

    The folder opens with askew classify QUERIES --classifier transformer --set model=FOLDER.
    """
    from askew.app.train.classifier import CLASSES, ClassifierJob, train_classifier
    from askew.cli.render import Waiting, safe, say_json
    from askew.trainers.classifier import PACE, ClassifierSettings

    given = o.read_settings(settings)
    classes, drop = (_listed(given.pop(name, None)) for name in ("classes", "drop"))
    own, pace = _shared(given, ClassifierSettings(), PACE, seed)
    job = ClassifierJob(own, pace, folds, classes or CLASSES, ("o",) if drop is None else drop)
    with Waiting("training") as progress:
        facts = train_classifier(data, out, job, device, _command(), progress)
    if as_json:
        say_json({"out": str(out), **facts["measured"]})
        return
    _print_table(turned(facts["tables"][0]))
    typer.echo(f"temperature {facts['measured']['temperature']:.3f}; the model and its card: {safe(str(out))}")
    typer.echo("which group other queries ask about:")
    typer.echo(f"  askew classify QUERIES --classifier transformer --set {safe(shlex.quote(f'model={out}'))}")


@train_app.command("adapter", short_help="Relevance that prefers no gender (GrepBiasIR).")
def adapter_command(
    data: Annotated[Path, typer.Argument(help="The folder of GrepBiasIR (queries-documents_CATEGORY.csv).")],
    out: Out,
    method: Annotated[str, typer.Option(help="head (frozen encoder), lora (PEFT) or full (all weights).")] = "head",
    seeds: Annotated[int, typer.Option(help="So many seeds are measured; the first trains the model.")] = 1,
    seed: Seed = 7,
    device: Device = "auto",
    settings: o.Settings = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a model of relevance that prefers no gender, and measure it on categories it has not seen.

    Settings of a head: model, layout (apart or joint), with_title, penalty, most_loss; epochs, learning_rate,
    batch_size, ridge, start, pairs (query or batch), decay. The alphas of its penalty are chosen by folds of the
    training queries. Settings of lora and full: model, with_title, alpha_mf, alpha_mn, alpha_fn, pairs, rank; epochs,
    batch_size, learning_rate, accumulate, warmup, weight_decay, save_every.
    """
    from askew.app.train.grepbias import train_adapter
    from askew.cli.render import Waiting, safe, say_json

    if seeds < 1:
        raise ConfigError(f"--seeds: expected 1 or more, found {seeds}")
    job = _adapter_job(method, tuple(range(seed, seed + seeds)), o.read_settings(settings))
    with Waiting("training") as progress:
        facts = train_adapter(data, out, job, device, _command(), progress)
    if as_json:
        say_json({"out": str(out), **facts["measured"]})
        return
    for table in facts["tables"]:
        _print_table(table)
    typer.echo(f"the model and its card: {safe(str(out))}")


def _adapter_job(method: str, seeds: tuple[int, ...], given: dict[str, Any]) -> Any:
    from askew.app.train.grepbias import AdapterJob
    from askew.trainers.common import with_settings
    from askew.trainers.grepbias.finetune import PACES, FinetuneSettings
    from askew.trainers.grepbias.heads import CONVERGED

    outer: dict[str, Any] = {
        name: given.pop(name) for name in ("model", "layout", "with_title", "penalty", "most_loss") if name in given
    }
    job = with_settings(outer, AdapterJob(method=method, seeds=seeds), "train adapter")
    if method == "head":
        return with_settings({"head": with_settings(given, CONVERGED, "train adapter")}, job, "train adapter")
    own, pace = _shared(given, FinetuneSettings(), PACES[method], seeds[0])
    return AdapterJob(method, job.model, job.layout, job.with_title, finetune=own, pace=pace, seeds=seeds)


def _shared(given: dict[str, Any], own: Any, pace: Any, seed: int) -> tuple[Any, Any]:
    """Settings by whose they are: the trainer's own, or the pace of the training."""
    from dataclasses import fields

    from askew.trainers.common import with_settings

    mine, paces = ({field.name for field in fields(one)} for one in (own, pace))
    for name in given:
        if name not in mine | paces - {"seed"}:
            raise UnknownName("setting", name, sorted(mine | paces - {"seed"}), "askew train")
    return (
        with_settings({n: v for n, v in given.items() if n in mine}, own, "askew train"),
        with_settings({**{n: v for n, v in given.items() if n not in mine}, "seed": seed}, pace, "askew train"),
    )


def _listed(text: Any) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in str(text).split(",") if part.strip())


def turned(table: dict[str, Any]) -> dict[str, Any]:
    """Measures down, models across: a terminal has more lines than columns, and most published cells are empty."""
    rows = [row for row in table["rows"] if None not in row[1:-1]]
    columns = ["measure", *(str(row[0]).replace(" (", "\n(") for row in rows)]
    cells = [[name, *(row[at] for row in rows)] for at, name in enumerate(table["columns"]) if at]
    return {"title": table["title"], "columns": columns, "rows": cells}


def _print_table(table: dict[str, Any]) -> None:
    from askew.cli.render import print_tables

    labels = [str(row[0]) for row in table["rows"]]
    columns = [
        (name, ["-" if row[at] is None else str(row[at]) for row in table["rows"]])
        for at, name in enumerate(table["columns"])
    ]
    print_tables(table["title"], columns[0][0], labels, columns[1:])


def _command() -> str:
    return shlex.join(["askew", *sys.argv[1:]])
