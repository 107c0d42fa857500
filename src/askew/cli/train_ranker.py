"""``askew negatives``, ``askew train ranker``, ``askew train selector``, ``askew rerank``: rankers that lean less."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.cli import options as o
from askew.core.errors import UnknownName

Run = Annotated[Path, typer.Argument(help="The run to read: TREC, Parquet, or any that askew measure reads.")]
Docs = Annotated[Path, typer.Option(help="The documents: a file or folder.")]
Queries = Annotated[Path, typer.Option(help="The texts of the queries: id TAB text, JSON Lines.")]
Qrels = Annotated[Path, typer.Option(help="The judgements.")]
Seed = Annotated[int, typer.Option(help="Seed of the draws, and of the training.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
LeanKind = Annotated[str, typer.Option(help="How a document leans: tc, tf, bool (as ARaB) or neutrality (as NFaiRR).")]
Preset = Annotated[str, typer.Option(help="bigdeli2022 (12 of 20 lean most, of the first 1000) or original (none).")]


def _sampling(preset: str, count: int | None, share: float | None, depth: int | None, seed: int) -> Any:
    from dataclasses import replace

    from askew.trainers.negatives import PRESETS

    if preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS)
    given: dict[str, Any] = {"count": count, "share": share, "depth": depth, "seed": seed}
    return replace(PRESETS[preset], **{name: value for name, value in given.items() if value is not None})


def negatives_command(
    run: Run,
    docs: Docs,
    queries: Queries,
    qrels: Qrels,
    out: Annotated[Path, typer.Option(help="JSON Lines to write.")],
    layout: Annotated[str, typer.Option(help="st-pairs, st-triples, tevatron or flagembedding.")] = "st-pairs",
    preset: Preset = "bigdeli2022",
    count: Annotated[int | None, typer.Option(help="Negatives of each query.")] = None,
    share: Annotated[float | None, typer.Option(help="Which share of them leans most; the rest is random.")] = None,
    depth: Annotated[int | None, typer.Option(help="How many first documents of a query are looked at.")] = None,
    exclude: Annotated[str, typer.Option(help="Never a negative: judged documents, or relevant ones only.")] = "judged",
    lean: LeanKind = "tf",
    lexicon: Annotated[str, typer.Option(help="Which words name which group.")] = "rekabsaz2020",
    seed: Seed = 7,
    as_json: o.AsJson = False,
) -> None:
    """Sample training negatives from a run, some of them the most leaning, and write them for a trainer.

    A ranker that learns from leaning documents as wrong answers ranks them lower (Bigdeli et al. 2022).
    """
    from dataclasses import replace

    from askew.app.scoring.ranked import Counting
    from askew.app.train.negatives import make_negatives
    from askew.cli.render import Waiting, note, safe, say_json

    how = replace(_sampling(preset, count, share, depth, seed), exclude=exclude)
    with Waiting("counting") as progress:
        made = make_negatives(run, docs, queries, qrels, out, how, Counting(lean, lexicon), layout, progress)
    note(made.notes)
    if as_json:
        facts = {"queries": made.queries, "negatives": made.negatives, "leaning": made.leaning, "lean": made.lean}
        say_json({**facts, "dropped": dict(made.dropped), "short": dict(made.short), "out": str(out)})
        return
    note([f"{number:,} queries: {reason}" for reason, number in (made.dropped + made.short).items()])
    typer.echo(
        f"{made.queries:,} queries, {made.negatives:,} negatives ({made.leaning:,} of them by lean): {safe(str(out))}"
    )
    typer.echo(f"mean lean ({lean}) of the negatives {made.lean[0]:.3f}, of the lists {made.lean[1]:.3f}")


def ranker_command(
    run: Run,
    docs: Docs,
    queries: Queries,
    qrels: Qrels,
    out: Annotated[Path, typer.Option(help="The folder of the model.")],
    preset: Preset = "bigdeli2022",
    loss: Annotated[str, typer.Option(help="bce, hinge, bias-aware or lean-list.")] = "bce",
    adversary: Annotated[float, typer.Option(help="Strength of an adversary; 0 trains without.")] = 0.0,
    model: Annotated[str, typer.Option(help="An encoder to begin from: a name, a folder or a hub id.")] = "",
    lean: LeanKind = "tf",
    part: Annotated[
        str, typer.Option(help="Queries of this part of a split by their words; an empty text takes all.")
    ] = "train",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="epochs, batch_size, learning_rate, most_tokens, ...: NAME=VALUE.")
    ] = None,
    device: Device = "auto",
    seed: Seed = 7,
    as_json: o.AsJson = False,
) -> None:
    """Train a cross-encoder on a run's negatives. Stopped, it goes on from its last checkpoint.

    --preset original is the usual training; bigdeli2022 takes leaning documents as negatives; --loss bias-aware asks
    leaning negatives to lie further below; --adversary makes the encoder forget which group a document leans to.
    Then: askew rerank RUN --model OUT, and askew compare.
    """
    from askew.app.scoring.ranked import Counting
    from askew.app.train.held_out import HELD_OUT
    from askew.app.train.ranker import RankerJob, train_ranker
    from askew.cli.render import Waiting, note, safe, say_json
    from askew.trainers.ranker import PACE, RankerSettings

    own = {"loss": loss, "adversary": float(adversary), **({"model": model} if model else {})}
    chosen, pace = _settings(settings, own, RankerSettings(), PACE, seed)
    job = RankerJob(_sampling(preset, None, None, None, seed), Counting(lean), chosen, pace, part=part)
    with Waiting("training") as progress:
        done = train_ranker(run, docs, queries, qrels, out, job, device, _command(), progress)
    note(done.notes)
    counts = {**done.left_out, **done.short}
    if as_json:
        say_json({"out": str(out), "queries": done.queries, "pairs": done.pairs, "counts": counts, "new": done.new})
        return
    note([f"{number:,} queries: {reason}" for reason, number in counts.items()])
    was = "trained on" if done.new else "was trained before on"
    typer.echo(f"{was} {done.pairs:,} pairs of {done.queries:,} queries: {safe(str(out))}")
    if done.held_out:
        typer.echo(f"{done.held_out:,} queries of the run are held out; how it ranks for them:")
        _say_next("askew rerank RUN --docs DOCS --out NEW.run --model", out, out / HELD_OUT)


def _settings(given: list[str] | None, own: dict[str, Any], settings: Any, pace: Any, seed: int) -> tuple[Any, Any]:
    """The settings of a model and the pace of its training: options first, then what --set gives."""
    from dataclasses import asdict, replace

    from askew.trainers.common import with_settings

    read = o.read_settings(given)
    paces = asdict(pace)
    mine = {name: value for name, value in read.items() if name not in paces}
    unknown = [name for name in mine if name not in asdict(settings)]
    if unknown:
        raise UnknownName("setting", unknown[0], [*asdict(settings), *paces], "--set")
    rest = {name: value for name, value in read.items() if name in paces}
    return with_settings({**mine, **own}, settings, "--set"), with_settings(rest, replace(pace, seed=seed), "--set")


def selector_command(
    source: Annotated[Path, typer.Argument(help="The store of a build (askew run), or a published dataset.")],
    out: Annotated[Path, typer.Option(help="The folder of the model.")],
    preset: Annotated[
        str, typer.Option(help="refairmulate2025 (texts only), or refairmulate2025-code (with the first passages).")
    ] = "refairmulate2025",
    learns: Annotated[str | None, typer.Option(help="refairmulate, effectiveness or no-loss.")] = None,
    passages: Annotated[str | None, typer.Option(help="none, separator or literal: the first passage of each.")] = None,
    model: Annotated[str, typer.Option(help="An encoder to begin from: a name, a folder or a hub id.")] = "",
    lean_aware: Annotated[
        bool | None, typer.Option(help="Also learn to take what leans least without losing; by default if it can be.")
    ] = None,
    similar: Annotated[
        str | None, typer.Option(help="The encoder that tells how near results are to the query; '' does without.")
    ] = None,
    margin: Annotated[float, typer.Option(help="The largest loss of mean RR@10 that would not matter.")] = 0.01,
    slack: Annotated[float, typer.Option(help="How much of it the threshold may lose on the dev part.")] = 0.0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="epochs, batch_size, most_each, text_tokens, ...: NAME=VALUE.")
    ] = None,
    device: Device = "auto",
    seed: Seed = 7,
    as_json: o.AsJson = False,
) -> None:
    """Train a selector: which of several ways to ask a query to take, without judgements at query time.

    A cross-encoder learns from the pairs of a build; where the source is a store, a lean-aware rule is learned beside
    it, and both are compared with keeping the original, a random and the most similar candidate, and an oracle, on
    queries that nothing was learned from. Stopped, it goes on from its last checkpoint.
    """
    from askew.app.train.held_out import HELD_OUT
    from askew.app.train.selector import SelectorJob, train_selector
    from askew.cli.render import Waiting, safe, say_json
    from askew.trainers.selector import PACE, PRESETS

    if preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS)
    own = {"learns": learns, "passages": passages, "model": model or None}
    chosen, pace = _settings(
        settings, {name: value for name, value in own.items() if value is not None}, PRESETS[preset], PACE, seed
    )
    near = {} if similar is None else {"similar": similar}
    job = SelectorJob(chosen, pace, lean_aware, margin=margin, slack=slack, **near)
    with Waiting("training") as progress:
        done = train_selector(source, out, job, device, _command(), progress)
    if as_json:
        say_json({"out": str(out), "new": done.new, **done.measured})
        return
    _tell(done.measured, margin)
    was = "trained on" if done.new else "was trained before on"
    typer.echo(f"{was} {done.measured['examples']:,} pairs: {safe(str(out))}")
    typer.echo("on queries that it was not trained on:")
    _say_next("askew bench COLLECTION --method", f"reformulate:METHOD:{out}", out / HELD_OUT)


def _tell(measured: Any, margin: float) -> None:
    """What was measured on held-out queries and pairs."""
    if "choices" in measured:
        _print_choices(measured["choices"], margin)
    apart = measured["told apart"]
    typer.echo(
        f"held-out pairs told apart: average precision {apart['value']:.4f} [{apart['low']:.4f}, {apart['high']:.4f}]\n"
        f"  of guessing {apart['positive']:.4f}; n = {apart['pairs']:,} pairs of {apart['queries']:,} queries"
    )


def _print_choices(choices: dict[str, dict[str, Any]], margin: float) -> None:
    """Each way to choose: what it changes, what the tests of effectiveness say, and every measure with its gain."""
    from askew.app.build.built_pairs import EFFECTIVENESS, as_measured
    from askew.cli.render import p_value, print_tables

    main = [one[EFFECTIVENESS] for one in choices.values()]
    columns = [
        ("changed", [f"{one['changed']:,}" for one in choices.values()]),
        ("improved\nworsened", [f"{one['improved']:,}\n{one['worsened']:,}" for one in main]),
        ("p", [p_value(one["p"]) for one in main]),
        (f"p, loss\n< {margin:g}", [p_value(one["p_no_loss"]) for one in main]),
    ]
    for measure in [name for name in next(iter(choices.values())) if name != "changed"]:
        found = [one[measure] for one in choices.values()]
        cells = [f"{one['new']:.4f}\n{one['gain']:+.4f}\n{_interval(one['low'], one['high'])}" for one in found]
        columns.append((f"{as_measured(measure)}\ngain, 95%", cells))
    print_tables(f"choices on {main[0]['n']:,} held-out queries", "choice", list(choices), columns)
    typer.echo("p: null hypothesis: the mean gain is 0")
    typer.echo(f"p, loss < {margin:g}: null hypothesis: the mean loss is {margin:g} or more")


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"[{low:+.4f}, {high:+.4f}]"


def _say_next(begin: str, model: object, queries: Path) -> None:
    """A command to give next with what was trained, as a shell reads it."""
    from askew.cli.render import safe

    first, second = (safe(shlex.quote(str(one))) for one in (model, queries))
    typer.echo(f"  {begin} {first} \\\n    --queries {second}")


def _command() -> str:
    return shlex.join(["askew", *sys.argv[1:]])


def rerank_command(
    run: Run,
    docs: Docs,
    out: Annotated[Path, typer.Option(help="The run to write: TREC, or Parquet for the ending .parquet.")],
    model: Annotated[str | None, typer.Option(help="A cross-encoder: a folder or a hub id.")] = None,
    queries: Annotated[Path | None, typer.Option(help="The texts of the queries; a cross-encoder reads them.")] = None,
    method: Annotated[str, typer.Option(help="crossencoder, or detconstsort (shares of groups).")] = "crossencoder",
    k: Annotated[int, typer.Option("-k", "--k", help="How many documents to write for each query.")] = 1000,
    depth: Annotated[int, typer.Option(help="How many first documents are reranked; what is below is left out.")] = 100,
    targets: Annotated[
        str, typer.Option(help="detconstsort: even, or shares as neutral:0.5,male:0.25,female:0.25.")
    ] = "even",
    lexicon: Annotated[str, typer.Option(help="detconstsort: which words name which group.")] = "rekabsaz2020",
    batch_size: Annotated[int, typer.Option(help="Pairs read at a time.")] = 32,
    device: Device = "auto",
) -> None:
    """Put the documents of a run in another order: by a cross-encoder, or by shares of groups as a baseline."""
    from askew.app.scoring.ranked import Counting
    from askew.app.search.rerank import rerank
    from askew.cli.render import Waiting, note, safe

    counting = Counting(lexicon=lexicon)
    with Waiting("reranking") as progress:
        done = rerank(
            run, docs, out, method, queries, model, None, k, depth, targets, counting, batch_size,
            None if device == "auto" else device, progress,
        )  # fmt: skip
    note(done.notes)
    typer.echo(f"{done.queries:,} queries, {done.lines:,} lines, {safe(done.tag)}: {safe(str(out))}")
    typer.echo(f"the first ten of {done.moved:,} queries have changed")
