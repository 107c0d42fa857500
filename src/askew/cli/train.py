"""``askew train``: train your own models. Each command also measures the model and writes a card beside it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askew.cli import options as o
from askew.cli.render import Waiting, note, print_tables, safe, say_json
from askew.cli.train_help import WithDefaults
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.app.train.trained import Trained
    from askew.trainers.card import CardTable

train_app = typer.Typer(
    name="train",
    help="Train a model, measure it on held-out data, and write the model and the values to a folder.\n\n"
    "If a command was stopped, the same command resumes from the last checkpoint.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Out = Annotated[Path, typer.Option(help="A new folder for the model, its model card and its measured values.")]
Seed = Annotated[int | None, typer.Option(help="The random seed for the folds, the sampling and the training.")]
Device = Annotated[str | None, typer.Option(help="The device: 'auto' (a GPU if there is one), 'cpu' or 'cuda'.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of the training, such as --set epochs=3; may be repeated.",
        metavar="NAME=VALUE",
    ),
]


def fit(
    kind: str, data: tuple[object, ...], out: Path, settings: list[str] | None, device: str | None, /,
    **options: object,
) -> Trained:  # fmt: skip
    """Train a model with the given options and the settings of --set, and print its notes."""
    from askew.app.train.facade import Trainer

    given = {name: value for name, value in options.items() if value is not None}
    trainer = Trainer(kind, **{**o.read_settings(settings), **given})
    with Waiting("training") as progress:
        command = shlex.join(["askew", *sys.argv[1:]])
        done = trainer.fit(*data, out=out, device=device, command=command, progress=progress)
    note(done.notes)
    return done


def say_trained(done: Trained) -> None:
    """Print the result of a training as JSON."""
    use = {"use": done.use} if done.use else {}
    say_json({"out": str(done.folder), "new": done.new, **done.measured, **use})


@train_app.command(
    "classifier", short_help="Train a classifier that predicts which group a query asks about.", cls=WithDefaults
)
def classifier_command(
    data: Annotated[
        Path,
        typer.Argument(
            help="A CSV, JSON Lines or Parquet file of labeled queries, each with an id, a text and a label."
        ),
    ],
    out: Out,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    folds: Annotated[int | None, typer.Option(help="The number of folds of the cross-validation.")] = None,
    seed: Seed = None,
    device: Device = None,
    settings: Settings = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a classifier that predicts which group a query asks about, or none.

    The classes are neutral and the groups; without groups, they are the labels of the data (f, m and n in the published
    queries). A label is the name of a class or the beginning of it. Accuracy, F1 of each class and calibration are
    measured by cross-validation; the final model is then trained on all queries. Settings: model, words, names, marks,
    most_tokens; epochs, batch_size, learning_rate, accumulate, warmup, weight_decay, save_every; classes and drop, as
    texts with commas.

    Use the model with 'askew classify QUERIES --classifier transformer --set model=FOLDER'.
    """
    counted = Groups.resolve(groups, lexicon)
    done = fit("classifier", (data,), out, settings, device, groups=counted, folds=folds, seed=seed)
    if as_json:
        return say_trained(done)
    _print_table(*turned(done.tables[0]))
    typer.echo(
        f"calibration temperature {done.measured['temperature']:.3f}; "
        f"the model and its model card are in {safe(str(out))}"
    )
    typer.echo("to classify other queries with this model:")
    typer.echo(f"  askew classify QUERIES --classifier transformer --set {safe(shlex.quote(f'model={out}'))}")
    return None


@train_app.command(
    "adapter", short_help="Train a relevance model without gender preference (GrepBiasIR).", cls=WithDefaults
)
def adapter_command(
    data: Annotated[
        Path, typer.Argument(help="The folder of the dataset GrepBiasIR (queries-documents_CATEGORY.csv).")
    ],
    out: Out,
    method: Annotated[
        str | None,
        typer.Option(
            help="Which weights are trained: 'head' (only a head on a frozen encoder), 'lora' (low-rank adapters, with "
            "PEFT) or 'full' (all weights)."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Train and measure this many models, each with another random seed. Only the model with the first "
            "seed is written."
        ),
    ] = None,
    seed: Seed = None,
    device: Device = None,
    settings: Settings = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a relevance model without a gender preference, and measure it on held-out categories.

    Settings of a head: model, layout (apart or joint), with_title, penalty, most_loss; epochs, learning_rate,
    batch_size, ridge, start, pairs (query or batch), decay. The alphas of its penalty are chosen by folds of the
    training queries. Settings of lora and full: model, with_title, alpha_mf, alpha_mn, alpha_fn, pairs, rank; epochs,
    batch_size, learning_rate, accumulate, warmup, weight_decay, save_every.
    """
    done = fit("adapter", (data,), out, settings, device, method=method, seeds=seeds, seed=seed)
    if as_json:
        return say_trained(done)
    for table in done.tables:
        _print_table(table.title, table.columns, table.rows)
    typer.echo(f"the model and its model card are in {safe(str(out))}")
    return None


def turned(table: CardTable) -> tuple[str, list[str], list[list[Any]]]:
    """Transpose a table to one row per measure and one column per model, without models that have empty cells."""
    rows = [row for row in table.rows if None not in row[1:-1]]
    columns = ["measure", *(str(row[0]).replace(" (", "\n(") for row in rows)]
    return table.title, columns, [[name, *(row[at] for row in rows)] for at, name in enumerate(table.columns) if at]


def _print_table(title: str, names: Any, rows: Any) -> None:
    columns = [(name, ["-" if row[at] is None else str(row[at]) for row in rows]) for at, name in enumerate(names)]
    print_tables(title, names[0], columns[0][1], columns[1:])
