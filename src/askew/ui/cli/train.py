"""``askew train``: train your own models. Each command also measures the model and writes a card beside it."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from askew.core.groups import Groups
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, print_table, safe, say, say_json, say_wrapped

if TYPE_CHECKING:
    from askew.train.common import Trained


train_app = typer.Typer(
    name="train",
    help="Train a model, measure it on held-out data, and write the model and the values to a folder.\n\n"
    "If a command was stopped, the same command resumes from the last checkpoint.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


_training = partial(
    o.options,
    shared=f"""{o.SHARED}
--out: A new folder for the model, its model card and its measured values.
--seed: The random seed for the folds, the sampling and the training.
--device: The device: 'auto' (a GPU if there is one), 'cpu' or 'cuda'.
--set NAME=VALUE (settings): A setting of the training, such as --set epochs=3; may be repeated.
""",
)


def fit(
    kind: str, data: tuple[object, ...], out: Path, as_json: bool, /, settings: list[str] | None = None,
    device: str | None = None, groups: str | None = None, lexicon: str | None = None, **options: object,
) -> Trained:  # fmt: skip
    """Train a model with the given options and the settings of --set. Print its notes and the tables of its card."""
    from askew.report.table import Column, table
    from askew.train.card import shown
    from askew.train.facade import Trainer

    options["groups"] = Groups.resolve(groups, lexicon)
    given = {name: value for name, value in options.items() if value is not None}
    trainer = Trainer(kind, **{**o.read_settings(settings), **given})
    with Waiting("training") as progress:
        command = shlex.join(["askew", *sys.argv[1:]])
        done = trainer.fit(*data, out=out, device=device, command=command, progress=progress)
    note(done.notes)
    if as_json:
        use = {"use": done.use} if done.use else {}
        say_json({"out": str(done.folder), "new": done.new, **done.measured, **use})
        raise typer.Exit
    # The other tables of a card compare with publications or show weights.
    for one in done.tables[: _TABLES_SHOWN.get(kind, 1)]:
        rows = [[shown(cell) for cell in row] for row in one.rows]
        print_table(table("card", one.title, [Column(name) for name in one.columns], rows))
    return done


# How many tables of the card a command prints, if more than the first one.
_TABLES_SHOWN = {"adapter": 9, "selector": 2}


def _say_command(about: str, *lines: str) -> None:
    """Print a shell command that uses the trained model."""
    say(about)
    typer.echo("  " + " \\\n    ".join(map(safe, lines)))


@_training("""
DATA: A CSV, JSON Lines or Parquet file of labeled queries, each with an id, a text and a label.
--folds: The number of folds of the cross-validation.
**options: groups lexicon folds:int seed:int device settings:texts
""")
def classifier_command(data: Path, out: Path, as_json: bool = False, **options: Any) -> None:
    """Train a classifier that predicts which group a query asks about, or none.

    The classes are neutral and the groups; without groups, they are the labels of the data (f, m and n in the published
    queries). A label is the name of a class or the beginning of it. Accuracy, F1 of each class and calibration are
    measured by cross-validation; the final model is then trained on all queries. Settings: model, words, names, marks,
    most_tokens; epochs, batch_size, learning_rate, accumulate, warmup, weight_decay, save_every; classes and drop, as
    texts with commas.

    Use the model with 'askew classify QUERIES --classifier transformer --set model=FOLDER'.
    """
    done = fit("classifier", (data,), out, as_json, **options)
    say(f"calibration temperature {done.measured['temperature']:.3f}; the model and its model card are in {out}")
    use = f"askew classify QUERIES --classifier transformer --set {shlex.quote(f'model={out}')}"
    _say_command("to classify other queries with this model:", use)


@_training("""
DATA: The folder of the dataset GrepBiasIR (queries-documents_CATEGORY.csv).
--method: Which weights are trained: 'head' (only a head on a frozen encoder), 'lora' (low-rank adapters, with PEFT) or
    'full' (all weights).
--seeds: Train and measure this many models, each with another random seed. Only the model with the first seed is
    written.
**options: method seeds:int seed:int device settings:texts
""")
def adapter_command(data: Path, out: Path, as_json: bool = False, **options: Any) -> None:
    """Train a relevance model without a gender preference, and measure it on held-out categories.

    Settings of a head: model, layout (apart or joint), with_title, penalty, most_loss; epochs, learning_rate,
    batch_size, ridge, start, pairs (query or batch), decay. The alphas of its penalty are chosen by folds of the
    training queries. Settings of lora and full: model, with_title, alpha_mf, alpha_mn, alpha_fn, pairs, rank; epochs,
    batch_size, learning_rate, accumulate, warmup, weight_decay, save_every.
    """
    fit("adapter", (data,), out, as_json, **options)
    say(f"the model and its model card are in {out}")


# ``askew train generator`` and ``askew train rewriter``: models that write queries.

_TO_REFORMULATE = "to reformulate other queries:"


@_training("""
COLLECTION: Judged passages: a folder, 'irds:ID', or 'demo'.
--preset: A published training setup: 'repair2023' or 'repair2023-aol'.
--direction: 'passage-query': the model reads a passage and writes a query. 'query-passage': the reverse.
--join: How to use several passages of a query: 'replicate' (a training pair for each passage) or 'concatenate' (one
    pair with all passages).
--split: How to separate the test data from the training data: 'apart' (no query and no passage is in both), 'query' (no
    query is in both) or 'none' (both have all pairs, as in RePair; discouraged).
--context/--no-context: Put the id of the user who typed the query before the input of the model.
--fields: The fields of a passage to read, such as 'title,url,text'.
--model: The model to start from: a folder or a hub id, such as google-t5/t5-base.
**options: preset model direction join split context:bool fields settings:texts device seed:int
""")
def generator_command(collection: str, out: Path, as_json: bool = False, **options: Any) -> None:
    """Train a model that writes the query that a passage answers, for the reformulator 'docquery'.

    A sequence-to-sequence model (T5) is fine-tuned; a causal model (by default SmolLM2) gets an adapter. If stopped,
    the same command resumes from the last checkpoint. Next: 'askew reformulate', with the options that are printed.
    """
    from askew.data.collection import open_collection

    note(open_collection(collection, o.split_fields(options.get("fields"))).notes("queries", "judgements"))
    done = fit("generator", (collection,), out, as_json, **options)
    say(f"trained on {done.measured['pairs']['train']:,} pairs of a passage and a query; written to {out}")
    if done.use:
        use = done.use.replace("FOLDER", shlex.quote(str(out))).replace(" --set ", "\n--set ").splitlines()
        _say_command(_TO_REFORMULATE, "askew reformulate QUERIES --out FILE --docs DOCS", *use)


@_training("""
PAIRS: Pairs of a query and a more effective reformulation: a store that 'askew run repair' wrote, a published dataset,
    or a file of RePair.
--kind: The kind of model: 'seq2seq' (T5) or 'causal' (a language model with an adapter).
--box: The subset of pairs to train on: 'gold', 'platinum' or 'diamond'. If the file of pairs has values of a measure, a
    criterion such as 'refined > original' is also allowed.
--beams: The number of beams for rewriting held-out queries.
--model: The model to start from: a folder or a hub id, such as google-t5/t5-base.
**options: kind box model beams:int settings:texts device seed:int
""")
def rewriter_command(pairs: Path, out: Path, as_json: bool = False, **options: Any) -> None:
    """Train a model that rewrites queries, on pairs (a query, a better one), and measure it on held-out queries.

    For T5, batches and epochs are those of RePair unless --set changes them. If stopped, the same command resumes from
    the last checkpoint. Next: 'askew reformulate' with '--method rewrite --set rewrite.model=OUT'.
    """
    sizes = fit("rewriter", (pairs,), out, as_json, **options).measured["pairs"]
    say(f"trained on {sizes['train']:,} pairs of queries ({sizes['test']:,} test); written to {out}")
    use = f"--set {shlex.quote(f'rewrite.model={out}')}"
    _say_command(_TO_REFORMULATE, "askew reformulate QUERIES --out FILE", "--method rewrite", use)


# ``askew negatives``, ``askew train ranker``, ``askew train selector``, ``askew rerank``: rankers that lean less.


_of_run = partial(
    _training,
    shared=f"""{_training.keywords["shared"]}
RUN: The run to read, in any format that 'askew measure' reads.
--docs: The documents: a file or folder.
--queries: The texts of the queries: id TAB text, or JSON Lines.
--qrels: The judgements.
--lean: How to measure the bias (lean) of a document: 'tc', 'tf' or 'bool' (as in the measure ARaB), or 'neutrality' (as
    in the measure NFaiRR).
--preset: How to choose the negatives of a query: 'bigdeli2022' (some are the documents that lean most, the others are
    random) or 'original' (all are random).
""",
)


@_of_run("""
--out: The JSON Lines file to write.
--layout: Format of the file: 'st-pairs' or 'st-triples' (pairs or triples for sentence-transformers), 'tevatron' or
    'flagembedding' (for the libraries with these names).
--count: The number of negatives per query.
--share: Choose this share of a query's negatives by lean: the documents that lean most among the query's top-ranked
    documents. The other negatives are random.
--depth: Choose negatives among this number of top-ranked documents per query.
--exclude: Documents that are never negatives: 'judged' (all judged documents) or 'relevant' (only documents that are
    judged relevant).
**options: layout preset count:int share:float depth:int exclude lean groups lexicon seed:int
""")
def negatives_command(
    run: Path, docs: Path, queries: Path, qrels: Path, out: Path, as_json: bool = False, **options: Any
) -> None:
    """Sample training negatives from a run, some of them the documents that lean most, and write them for a trainer.

    A ranker that is trained with leaning documents as negatives ranks such documents lower (Bigdeli et al. 2022).
    """
    from askew.train.common import from_names
    from askew.train.negatives import NegativesJob, RankerData, negatives

    counted = Groups.resolve(options.pop("groups", None), options.pop("lexicon", None))
    job = from_names(NegativesJob, {**options, "groups": counted}, "askew negatives")
    with Waiting("counting") as progress:
        made = negatives(RankerData(run, docs, queries, qrels), out, job, progress)
    note(made.notes)
    if as_json:
        facts = {"queries": made.queries, "negatives": made.negatives, "leaning": made.leaning, "lean": made.lean}
        say_json({**facts, "dropped": dict(made.dropped), "short": dict(made.short), "out": str(out)})
        return
    note([f"{number:,} queries: {reason}" for reason, number in (made.dropped + made.short).items()])
    typer.echo(
        f"{made.queries:,} queries, {made.negatives:,} negatives ({made.leaning:,} of them chosen by lean): "
        f"{safe(str(out))}"
    )
    typer.echo(
        f"mean lean ({job.counting.lean}) of a document: {made.lean[0]:.3f} among the negatives, {made.lean[1]:.3f} in "
        "the whole run"
    )


@_of_run("""
--loss: The training loss: 'bce' (binary cross-entropy), 'hinge' (a margin between the scores of relevant documents and
    negatives), 'bias-aware' ('hinge' with a larger margin for negatives that lean more) or 'lean-list' ('bce', plus a
    penalty for high scores of documents that lean).
--adversary: The strength of adversarial training, 0 or more. Adversarial training makes it hard to predict from the
    encoder's vectors which group a document leans toward. 0 turns it off.
--part: The part of the queries to train on: 'train', 'dev', 'test', or '' for all queries. The text of a query
    determines its part.
--model: The pretrained encoder to train further: a name, a folder or a hub id.
**options: preset loss adversary:float model lean groups lexicon part settings:texts device seed:int
""")
def ranker_command(
    run: Path, docs: Path, queries: Path, qrels: Path, out: Path, as_json: bool = False, **options: Any
) -> None:
    """Train a cross-encoder with negatives from a run. If stopped, the same command resumes from the last checkpoint.

    '--preset original' is standard training; '--preset bigdeli2022' takes the documents that lean most as negatives.
    '--loss bias-aware' increases the margin by the lean of a negative. --adversary removes information about the group
    from the encoder.
    Next: 'askew rerank RUN --model OUT', then 'askew compare'.
    """
    from askew.train.common import HELD_OUT

    done = fit("ranker", (run, docs, queries, qrels), out, as_json, **options)
    found, was = done.measured, "trained on" if done.new else "already trained on"
    say(f"{was} {found['pairs']:,} pairs of {found['queries']:,} queries: {out}")
    if found["held_out"]:
        _say_command(
            f"{found['held_out']:,} queries of the run are held out; to rerank them:",
            f"askew rerank RUN --docs DOCS --out NEW.run --model {shlex.quote(str(out))}",
            f"--queries {shlex.quote(str(out / HELD_OUT))}",
        )


@_training("""
SOURCE: The folder of a store that 'askew run' wrote, or of a published dataset.
--preset: The input of the model: 'refairmulate2025' (the texts of the query and of the reformulation) or
    'refairmulate2025-code' (also the top-ranked passage that each of these texts retrieves).
--learns: Which reformulations the model learns to prefer: 'refairmulate' (those selected for the dataset),
    'effectiveness' (those that improve effectiveness) or 'no-loss' (those that do not worsen effectiveness). For
    'refairmulate', the negative examples are the reformulations in the subset 'negative' of the dataset. For
    'effectiveness' and 'no-loss', the negative examples are reformulations that worsen effectiveness.
--passages: How to append the top-ranked passage to the text that retrieved it: 'none' (no passage), 'separator' (after
    the separator token of the tokenizer) or 'literal' (after the characters [SEP]).
--model: The pretrained encoder to train further: a name, a folder or a hub id.
**options: preset learns passages model settings:texts device seed:int
""")
def selector_command(source: Path, out: Path, as_json: bool = False, **options: Any) -> None:
    """Train a selector: a model that chooses among reformulations of a query, without judgements at query time.

    A cross-encoder is trained on the pairs of a build. It selects the reformulation with the highest score. If the
    source is a store, its choices are compared on held-out queries with the original query, with a simple rule that
    needs no training, and with an oracle. If stopped, the same command resumes from the last checkpoint.
    """
    from askew.train.common import HELD_OUT

    done = fit("selector", (source,), out, as_json, **options)
    say_wrapped(
        "A pair is positive if its reformulation is one that the cross-encoder learns to prefer (see --learns)."
    )
    was = "trained on" if done.new else "already trained on"
    say(f"{was} {done.measured['examples']:,} pairs: {out}")
    _say_command(
        "to evaluate the selector on queries that it was not trained on:",
        f"askew bench COLLECTION --method {shlex.quote(f'reformulate:METHOD:{out}')}",
        f"--queries {shlex.quote(str(out / HELD_OUT))}",
    )


@_of_run("""
--out: The run file to write, in TREC format, or in Parquet format if its name ends in .parquet.
--model: A cross-encoder: a folder or a hub id.
--queries: The texts of the queries; needed for a cross-encoder.
--method: The reranking method: 'crossencoder', 'greedy', 'mmr', 'detconstsort' or 'fairtopk'.
-k --k: The number of documents to write per query.
--depth: The number of top-ranked documents to rerank per query; lower-ranked documents are not written.
--targets: For the methods 'detconstsort' and 'fairtopk': the target shares of neutral documents and of each group, such
    as 'neutral:0.5,GROUP:0.5'. With 'even', neutral documents keep the share that they have in the original list, and
    all groups get equal shares of the rest.
--strength: For 'greedy': how many of the remaining top-ranked documents are candidates for the next rank (1: the order
    does not change). For 'mmr', 'detconstsort' and 'fairtopk': the strength of the reranking, from 0 (weakest) to 1
    (strongest).
--batch-size: The number of query-document pairs per batch.
**options: model queries:path method k:int depth:int targets strength:float groups lexicon batch_size:int device
""")
def rerank_command(run: Path, docs: Path, out: Path, **options: Any) -> None:
    """Rerank the documents of a run with a cross-encoder, or by the groups that the documents name.

    From the next few documents, 'greedy' takes the one that brings the lean of the ranks so far closest to zero.
    'detconstsort' and 'fairtopk' give each group a share of the top ranks. A document belongs to the group that it
    names most.
    """
    from askew.search.rerank import RerankSettings, rerank
    from askew.train.common import from_names

    counted = Groups.resolve(options.pop("groups", None), options.pop("lexicon", None))
    queries = options.pop("queries", None)
    how = from_names(RerankSettings, {**options, "groups": counted}, "askew rerank")
    with Waiting("reranking") as progress:
        done = rerank(run, docs, out, queries, how, progress)
    note(done.notes)
    typer.echo(f"{done.queries:,} queries, {done.lines:,} lines, {safe(done.tag)}: {safe(str(out))}")
    typer.echo(f"queries whose top 10 documents changed: {done.moved:,}")
