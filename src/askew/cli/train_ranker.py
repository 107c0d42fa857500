"""``askew negatives``, ``askew train ranker``, ``askew train selector``, ``askew rerank``: rankers that lean less."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.cli import options as o
from askew.cli.render import Waiting, interval, note, p_value, print_tables, safe, say_json
from askew.cli.train import Device, Out, Seed, Settings, fit, say_trained
from askew.core.groups import Groups

Run = Annotated[Path, typer.Argument(help="The run to read, in any format that askew measure reads.")]
Docs = Annotated[Path, typer.Option(help="The documents: a file or folder.")]
Queries = Annotated[Path, typer.Option(help="The texts of the queries: id TAB text, or JSON Lines.")]
Qrels = Annotated[Path, typer.Option(help="The judgements.")]
LeanKind = Annotated[
    str | None,
    typer.Option(
        help="How to measure the lean of a document: tc, tf or bool (as in ARaB), or neutrality (as in NFaiRR)."
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(help="How to choose negatives: bigdeli2022 (some of them lean most) or original (all are random)."),
]
Encoder = Annotated[str | None, typer.Option(help="The encoder to start from: a name, a folder or a hub id.")]


def negatives_command(
    run: Run,
    docs: Docs,
    queries: Queries,
    qrels: Qrels,
    out: Annotated[Path, typer.Option(help="The JSON Lines file to write.")],
    layout: Annotated[
        str | None, typer.Option(help="Format of the file: st-pairs, st-triples, tevatron or flagembedding.")
    ] = None,
    preset: Preset = None,
    count: Annotated[int | None, typer.Option(help="The number of negatives per query.")] = None,
    share: Annotated[
        float | None,
        typer.Option(help="The share of negatives that are the documents that lean most; the others are random."),
    ] = None,
    depth: Annotated[int | None, typer.Option(help="The number of top-ranked documents to read per query.")] = None,
    exclude: Annotated[
        str | None, typer.Option(help="Documents that are never negatives: judged (all judged documents) or relevant.")
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
        f"{made.queries:,} queries, {made.negatives:,} negatives ({made.leaning:,} of them by lean): {safe(str(out))}"
    )
    typer.echo(
        f"mean lean ({job.counting.lean}): {made.lean[0]:.3f} of the negatives, {made.lean[1]:.3f} of the result lists"
    )


def ranker_command(
    run: Run,
    docs: Docs,
    queries: Queries,
    qrels: Qrels,
    out: Out,
    preset: Preset = None,
    loss: Annotated[str | None, typer.Option(help="The loss: bce, hinge, bias-aware or lean-list.")] = None,
    adversary: Annotated[float | None, typer.Option(help="Strength of the adversary; 0 trains without one.")] = None,
    model: Encoder = None,
    lean: LeanKind = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Train on this part of the queries: train, dev or test of a split by their words, or '' for all."
        ),
    ] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a cross-encoder with negatives from a run. If stopped, the same command resumes from the last checkpoint.

    --preset original is standard training; bigdeli2022 takes the documents that lean most as negatives.
    --loss bias-aware increases the margin by the lean of a negative. --adversary removes information about the group
    from the encoder.
    Next: askew rerank RUN --model OUT, and askew compare.
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
    source: Annotated[Path, typer.Argument(help="The store of a build (askew run), or a published dataset.")],
    out: Out,
    preset: Annotated[
        str | None,
        typer.Option(
            help="The input: refairmulate2025 (texts only) or refairmulate2025-code (also the top-ranked passages)."
        ),
    ] = None,
    learns: Annotated[
        str | None, typer.Option(help="The labels to learn: refairmulate, effectiveness or no-loss.")
    ] = None,
    passages: Annotated[
        str | None, typer.Option(help="How to add the top-ranked passage of each query: none, separator or literal.")
    ] = None,
    model: Encoder = None,
    lean_aware: Annotated[
        bool | None,
        typer.Option(
            help="Also learn a rule that selects the candidate that leans least without a loss of effectiveness. "
            "Default: yes, if the source has the data for it."
        ),
    ] = None,
    similar: Annotated[
        str | None, typer.Option(help="The encoder for the similarity of results to the query; '' for no encoder.")
    ] = None,
    margin: Annotated[float | None, typer.Option(help="The largest acceptable loss of mean RR@10.")] = None,
    slack: Annotated[
        float | None, typer.Option(help="The mean loss allowed on the dev queries when the threshold is chosen.")
    ] = None,
    settings: Settings = None,
    device: Device = None,
    seed: Seed = None,
    as_json: o.AsJson = False,
) -> None:
    """Train a selector: a model that chooses among reformulations of a query, without judgements at query time.

    A cross-encoder is trained on the pairs of a build. If the source is a store, a lean-aware rule is trained too. On
    held-out queries, both are compared with keeping the original query, with a random and the most similar candidate,
    and with an oracle. If stopped, the same command resumes from the last checkpoint.
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
    typer.echo("to compare it on queries that it was not trained on:")
    _say_next("askew bench COLLECTION --method", f"reformulate:METHOD:{out}", out / HELD_OUT)
    return None


def _tell(measured: Mapping[str, Any]) -> None:
    """Print what was measured on held-out queries and pairs."""
    if "choices" in measured:
        _print_choices(measured["choices"], measured["margin"])
    apart = measured["told apart"]
    typer.echo(
        f"held-out pairs: average precision {apart['value']:.4f} [{apart['low']:.4f}, {apart['high']:.4f}]\n"
        f"  random guessing has {apart['positive']:.4f}; n = {apart['pairs']:,} pairs of {apart['queries']:,} queries"
    )


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
    print_tables(f"selections by each method on {main[0]['n']:,} held-out queries", "choice", list(choices), columns)
    typer.echo("p: null hypothesis: the mean gain is 0")
    typer.echo(f"p, loss < {margin:g}: null hypothesis: the mean loss is {margin:g} or more")


def _say_next(begin: str, model: object, queries: Path) -> None:
    """Print a shell command that uses the trained model."""
    first, second = (safe(shlex.quote(str(one))) for one in (model, queries))
    typer.echo(f"  {begin} {first} \\\n    --queries {second}")


def rerank_command(
    run: Run,
    docs: Docs,
    out: Annotated[Path, typer.Option(help="The run to write: TREC, or Parquet if the name ends in .parquet.")],
    model: Annotated[str | None, typer.Option(help="A cross-encoder: a folder or a hub id.")] = None,
    queries: Annotated[Path | None, typer.Option(help="The texts of the queries; needed for a cross-encoder.")] = None,
    method: Annotated[
        str | None, typer.Option(help="The method: crossencoder, greedy, mmr, detconstsort or fairtopk.")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", help="The number of documents to write per query.")] = None,
    depth: Annotated[
        int | None, typer.Option(help="The number of top-ranked documents to rerank; the others are left out.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="For detconstsort and fairtopk: the shares of neutral documents and of each group, even or as in "
            "neutral:0.5,GROUP:0.5."
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="For greedy: how many of the next documents it chooses from. For other methods: from 0 to 1."
        ),
    ] = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    batch_size: Annotated[int | None, typer.Option(help="The number of query-document pairs per batch.")] = None,
    device: Device = None,
) -> None:
    """Rerank the documents of a run with a cross-encoder, or by the groups that the documents name.

    From the next few documents, greedy takes the one that brings the lean of the ranks so far closest to zero.
    detconstsort and fairtopk give each group a share of the top ranks. A document belongs to the group that it names
    most.
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
    typer.echo(f"the top 10 of {done.moved:,} queries changed")
