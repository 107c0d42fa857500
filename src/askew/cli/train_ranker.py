"""``askew negatives``, ``askew train ranker``, ``askew train selector``, ``askew rerank``: rankers that lean less."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.cli import options as o
from askew.cli.render import Waiting, interval, note, p_value, print_tables, safe, say, say_json, say_wrapped
from askew.cli.train import Device, Out, Seed, Settings, fit, say_trained
from askew.core.groups import Groups

Run = Annotated[Path, typer.Argument(help="The run to read, in any format that 'askew measure' reads.")]
Docs = Annotated[Path, typer.Option(help="The documents: a file or folder.")]
Queries = Annotated[Path, typer.Option(help="The texts of the queries: id TAB text, or JSON Lines.")]
Qrels = Annotated[Path, typer.Option(help="The judgements.")]
LeanKind = Annotated[
    str | None,
    typer.Option(
        help="How to measure the bias (lean) of a document: 'tc', 'tf' or 'bool' (as in the measure ARaB), or "
        "'neutrality' (as in the measure NFaiRR)."
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="How to choose the negatives of a query: 'bigdeli2022' (some are the documents that lean most, the others "
        "are random) or 'original' (all are random)."
    ),
]
Encoder = Annotated[
    str | None, typer.Option(help="The pretrained encoder to train further: a name, a folder or a hub id.")
]


def negatives_command(
    run: Run,
    docs: Docs,
    queries: Queries,
    qrels: Qrels,
    out: Annotated[Path, typer.Option(help="The JSON Lines file to write.")],
    layout: Annotated[
        str | None,
        typer.Option(
            help="Format of the file: 'st-pairs' or 'st-triples' (pairs or triples for sentence-transformers), "
            "'tevatron' or 'flagembedding' (for the libraries with these names)."
        ),
    ] = None,
    preset: Preset = None,
    count: Annotated[int | None, typer.Option(help="The number of negatives per query.")] = None,
    share: Annotated[
        float | None,
        typer.Option(
            help="Choose this share of a query's negatives by lean: the documents that lean most among the query's "
            "top-ranked documents. The other negatives are random."
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="Choose negatives among this number of top-ranked documents per query.")
    ] = None,
    exclude: Annotated[
        str | None,
        typer.Option(
            help="Documents that are never negatives: 'judged' (all judged documents) or 'relevant' (only documents "
            "that are judged relevant)."
        ),
    ] = None,
    lean: LeanKind = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Sample training negatives from a run, some of them the documents that lean most, and write them for a trainer.

    A ranker that is trained with leaning documents as negatives ranks such documents lower (Bigdeli et al. 2022).
    """
    from askew.app.train.negatives import NegativesJob, RankerData, make_negatives
    from askew.trainers.settings import from_names

    given = {
        "preset": preset, "count": count, "share": share, "depth": depth, "exclude": exclude, "seed": seed,
        "lean": lean, "groups": Groups.resolve(groups, lexicon), "layout": layout,
    }  # fmt: skip
    job = from_names(NegativesJob, given, "askew negatives")
    with Waiting("counting") as progress:
        made = make_negatives(RankerData(run, docs, queries, qrels), out, job, progress)
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


def ranker_command(
    run: Run,
    docs: Docs,
    queries: Queries,
    qrels: Qrels,
    out: Out,
    preset: Preset = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="The training loss: 'bce' (binary cross-entropy), 'hinge' (a margin between the scores of relevant "
            "documents and negatives), 'bias-aware' ('hinge' with a larger margin for negatives that lean more) or "
            "'lean-list' ('bce', plus a penalty for high scores of documents that lean)."
        ),
    ] = None,
    adversary: Annotated[
        float | None,
        typer.Option(
            help="The strength of adversarial training, 0 or more. Adversarial training makes it hard to predict from "
            "the encoder's vectors which group a document leans toward. 0 turns it off."
        ),
    ] = None,
    model: Encoder = None,
    lean: LeanKind = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="The part of the queries to train on: 'train', 'dev', 'test', or '' for all queries. The text of a "
            "query determines its part."
        ),
    ] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a cross-encoder with negatives from a run. If stopped, the same command resumes from the last checkpoint.

    '--preset original' is standard training; '--preset bigdeli2022' takes the documents that lean most as negatives.
    '--loss bias-aware' increases the margin by the lean of a negative. --adversary removes information about the group
    from the encoder.
    Next: 'askew rerank RUN --model OUT', then 'askew compare'.
    """
    from askew.app.train.held_out import HELD_OUT

    done = fit(
        "ranker", (run, docs, queries, qrels), out, settings, device, preset=preset, loss=loss, adversary=adversary,
        model=model, lean=lean, groups=Groups.resolve(groups, lexicon), part=part, seed=seed,
    )  # fmt: skip
    if as_json:
        return say_trained(done)
    found = done.measured
    was = "trained on" if done.new else "already trained on"
    typer.echo(f"{was} {found['pairs']:,} pairs of {found['queries']:,} queries: {safe(str(out))}")
    if found["held_out"]:
        typer.echo(f"{found['held_out']:,} queries of the run are held out; to rerank them:")
        _say_next("askew rerank RUN --docs DOCS --out NEW.run --model", out, out / HELD_OUT)
    return None


def selector_command(
    source: Annotated[
        Path, typer.Argument(help="The folder of a store that 'askew run' wrote, or of a published dataset.")
    ],
    out: Out,
    preset: Annotated[
        str | None,
        typer.Option(
            help="The input of the model: 'refairmulate2025' (the texts of the query and of the reformulation) or "
            "'refairmulate2025-code' (also the top-ranked passage that each of these texts retrieves)."
        ),
    ] = None,
    learns: Annotated[
        str | None,
        typer.Option(
            help="Which reformulations the model learns to prefer: 'refairmulate' (those selected for the dataset), "
            "'effectiveness' (those that improve effectiveness) or 'no-loss' (those that do not worsen effectiveness). "
            "For 'refairmulate', the negative examples are the reformulations in the subset 'negative' of the dataset. "
            "For 'effectiveness' and 'no-loss', the negative examples are reformulations that worsen effectiveness."
        ),
    ] = None,
    passages: Annotated[
        str | None,
        typer.Option(
            help="How to append the top-ranked passage to the text that retrieved it: 'none' (no passage), 'separator' "
            "(after the separator token of the tokenizer) or 'literal' (after the characters [SEP])."
        ),
    ] = None,
    model: Encoder = None,
    lean_aware: Annotated[
        bool | None,
        typer.Option(
            help="Also learn the rule 'lean-aware': among the reformulations with a low risk of losing effectiveness, "
            "select the one whose results lean least. By default, the rule is learned if the source is a store with "
            "the results of all reformulations."
        ),
    ] = None,
    similar: Annotated[
        str | None,
        typer.Option(
            help="The sentence encoder that measures how similar retrieved documents are to the query; '' for no "
            "encoder."
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="The acceptable loss of mean RR@10, compared with the original queries. A test on held-out queries "
            "checks whether the actual loss is smaller than this value."
        ),
    ] = None,
    slack: Annotated[
        float | None,
        typer.Option(
            help="Set the largest mean loss of effectiveness that the rule 'lean-aware' may have on the dev queries, "
            "by the upper end of its 95% interval. To stay below it, askew raises the probability of no loss that a "
            "reformulation must reach."
        ),
    ] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a selector: a model that chooses among reformulations of a query, without judgements at query time.

    A cross-encoder is trained on the pairs of a build. If the source is a store, a lean-aware rule is trained too. On
    held-out queries, their choices are compared with the original query, a random candidate, the most similar
    candidate, and the choice of an oracle. If stopped, the same command resumes from the last checkpoint.
    """
    from askew.app.train.held_out import HELD_OUT

    done = fit(
        "selector", (source,), out, settings, device, preset=preset, learns=learns, passages=passages, model=model,
        lean_aware=lean_aware, similar=similar, margin=margin, slack=slack, seed=seed,
    )  # fmt: skip
    if as_json:
        return say_trained(done)
    _tell(done.measured)
    was = "trained on" if done.new else "already trained on"
    typer.echo(f"{was} {done.measured['examples']:,} pairs: {safe(str(out))}")
    typer.echo("to evaluate the selector on queries that it was not trained on:")
    _say_next("askew bench COLLECTION --method", f"reformulate:METHOD:{out}", out / HELD_OUT)
    return None


def _tell(measured: Mapping[str, Any]) -> None:
    """Print what was measured on held-out queries and pairs."""
    if "choices" in measured:
        _print_choices(measured["choices"], measured["margin"])
    apart = measured["told apart"]
    say_wrapped(
        "average precision of the cross-encoder on pairs of a held-out query and a reformulation. A pair is positive "
        "if its reformulation is one that the cross-encoder learns to prefer (see --learns):"
    )
    say(f"  {apart['value']:.4f} [{apart['low']:.4f}, {apart['high']:.4f}]; random guessing: {apart['positive']:.4f}")
    say(f"  {apart['pairs']:,} pairs of {apart['queries']:,} queries")


def _print_choices(choices: dict[str, dict[str, Any]], margin: float) -> None:
    """Print for each rule that chooses reformulations: changed queries, tests of effectiveness, values and gains."""
    from askew.app.build.built_pairs import EFFECTIVENESS, as_measured

    main = [one[EFFECTIVENESS] for one in choices.values()]
    columns = [
        ("changed", [f"{one['changed']:,}" for one in choices.values()]),
        ("improved\nworsened", [f"{one['improved']:,}\n{one['worsened']:,}" for one in main]),
        ("p", [p_value(one["p"]) for one in main]),
        (f"p, loss\n< {margin:g}", [p_value(one["p_no_loss"]) for one in main]),
    ]
    for measure in [name for name in next(iter(choices.values())) if name != "changed"]:
        found = [one[measure] for one in choices.values()]
        cells = [f"{one['new']:.4f}\n{one['gain']:+.4f}\n{interval(one['low'], one['high'], '+.4f')}" for one in found]
        columns.append((f"{as_measured(measure)}\ngain, 95%", cells))
    print_tables(
        f"results of each selection rule on {main[0]['n']:,} held-out queries", "choice", list(choices), columns
    )
    say_wrapped(f"Null hypothesis of column 'p': the mean gain in {EFFECTIVENESS} over the original queries is 0.")
    say_wrapped(f"Null hypothesis of column 'p, loss < {margin:g}': the mean loss is {margin:g} or more.")


def _say_next(begin: str, model: object, queries: Path) -> None:
    """Print a shell command that uses the trained model."""
    first, second = (safe(shlex.quote(str(one))) for one in (model, queries))
    typer.echo(f"  {begin} {first} \\\n    --queries {second}")


def rerank_command(
    run: Run,
    docs: Docs,
    out: Annotated[
        Path,
        typer.Option(help="The run file to write, in TREC format, or in Parquet format if its name ends in .parquet."),
    ],
    model: Annotated[str | None, typer.Option(help="A cross-encoder: a folder or a hub id.")] = None,
    queries: Annotated[Path | None, typer.Option(help="The texts of the queries; needed for a cross-encoder.")] = None,
    method: Annotated[
        str | None,
        typer.Option(help="The reranking method: 'crossencoder', 'greedy', 'mmr', 'detconstsort' or 'fairtopk'."),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", help="The number of documents to write per query.")] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            help="The number of top-ranked documents to rerank per query; lower-ranked documents are not written."
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="For the methods 'detconstsort' and 'fairtopk': the target shares of neutral documents and of each "
            "group, such as 'neutral:0.5,GROUP:0.5'. With 'even', neutral documents keep the share that they have in "
            "the original list, and all groups get equal shares of the rest."
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="For 'greedy': how many of the remaining top-ranked documents are candidates for the next rank (1: "
            "the order does not change). For 'mmr', 'detconstsort' and 'fairtopk': the strength of the reranking, from "
            "0 (weakest) to 1 (strongest)."
        ),
    ] = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    batch_size: Annotated[int | None, typer.Option(help="The number of query-document pairs per batch.")] = None,
    device: Device = None,
) -> None:
    """Rerank the documents of a run with a cross-encoder, or by the groups that the documents name.

    From the next few documents, 'greedy' takes the one that brings the lean of the ranks so far closest to zero.
    'detconstsort' and 'fairtopk' give each group a share of the top ranks. A document belongs to the group that it
    names most.
    """
    from askew.app.search.rerank import RerankSettings, rerank
    from askew.trainers.settings import from_names

    given = {
        "model": model, "method": method, "k": k, "depth": depth, "targets": targets, "strength": strength,
        "batch_size": batch_size, "groups": Groups.resolve(groups, lexicon), "device": device,
    }  # fmt: skip
    how = from_names(RerankSettings, given, "askew rerank")
    with Waiting("reranking") as progress:
        done = rerank(run, docs, out, queries, how, progress)
    note(done.notes)
    typer.echo(f"{done.queries:,} queries, {done.lines:,} lines, {safe(done.tag)}: {safe(str(out))}")
    typer.echo(f"queries whose top 10 documents changed: {done.moved:,}")
