"""``askew plan``, ``run``, ``publish``, ``report`` and ``verify``: run a recipe, write its results, and check them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from askew.core import defaults
from askew.core.address import Address
from askew.core.defaults import FEWEST, HELD_OUT, counted, size_of
from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups
from askew.ui.cli import options as o
from askew.ui.cli.render import (
    Waiting,
    note,
    number,
    print_records,
    reasons,
    safe,
    say,
    say_json,
    say_wrapped,
)

if TYPE_CHECKING:
    from askew.pairs.build import Pairs


# The tables of ``askew run``: the means of each subset of pairs, held out and in-sample, and what they mean.


def show_summary(
    rows: list[dict[str, Any]], others: Sequence[dict[str, Any]] = (), judged: Sequence[str] = (),
    placebo: Sequence[dict[str, Any]] = (),
) -> None:  # fmt: skip
    """Print a block for each subset of pairs, with the means of the original queries and of the reformulations.

    A block with the same numbers as an earlier block is not repeated.

    ``others`` has the changes with other rankers. Each of these rankers has a line below the block. ``judged`` are the
    measures of effectiveness. ``placebo`` has the numbers of pairs on placebo lists.
    """
    by_chance = {row["subset"]: row for row in placebo}
    known: dict[str, str] = {}
    shown = []
    for subset in dict.fromkeys(row["subset"] for row in rows):
        chosen = [row for row in rows if row["subset"] == subset]
        first = known.setdefault(repr([{**row, "subset": ""} for row in chosen]), subset)
        again = f"; the same figures as {first}" if first != subset and chosen[0]["pairs"] else ""
        say("")
        say(f"{size_of(subset, chosen[0]['pairs'], chosen[0]['queries'])}{again}")
        one = by_chance.get(subset)
        if one and (one["pairs"] or one["most"]):
            share = "" if one["share"] is None else f", {one['share']:.0%} of these"
            say(f"on placebo lists: {one['placebo']:.1f} pairs (from {one['fewest']:,} to {one['most']:,}){share}")
        if again or not chosen[0]["pairs"]:
            continue
        shown += chosen
        zero = {_label(row): row["zero_pairs"] for row in chosen if row["measure"] in judged and row["zero_pairs"]}
        if zero:
            say(f"pairs in which the measure is 0 for both queries: {'; '.join(_by_count(zero))}")
        held_out = {_label(row): int(row["held_out_queries"]) for row in chosen if row["figures"] == HELD_OUT}
        if held_out:
            most = max(held_out.values())
            say(f"held-out queries: {most:,}")
            for fewer in _by_count({name: count for name, count in held_out.items() if count < most}):
                say(f"  of which {fewer}")
        records = []
        for row in chosen:
            record = {"measure": _label(row), "old": number(row["old_mean"]), "new": number(row["new_mean"])}
            if held_out:
                # A measure without a held-out value is marked in-sample.
                own = _percent(row) if row["figures"] == HELD_OUT else f"in-sample{_interval(row)}"
                record |= {"held out [95%]": own, "in-sample": _change(row["in_sample_change"])}
            else:
                record |= {"in-sample [95%]": _percent(row)}
                record |= {what: row[f"{what}_pairs"] for what in ("improved", "worsened")}
            records.append(record)
        print_records(records)
        under = [row for row in others if row["subset"] == subset]
        for ranker in dict.fromkeys(row["ranker"] for row in under):
            found = [row for row in under if row["ranker"] == ranker]
            changes = ", ".join(f"{_label(row)} {_percent(row)}" for row in found if row["pairs"])
            part = " (also used to select the pairs)" if found[0]["took_part"] else ""
            said = changes or "unknown, because no pair has a score for both of its queries"
            say(f"change from the original queries to the reformulations, both searched with {ranker}{part}: {said}")
    _explain(shown, others, bool(by_chance))


def _by_count(counts: dict[str, int]) -> list[str]:
    """The names with each number, the largest number first."""
    return [
        f"{count:,} for {', '.join(name for name, one in counts.items() if one == count)}"
        for count in sorted(set(counts.values()), reverse=True)
    ]


def _label(row: dict[str, Any]) -> str:
    return f"|{row['measure']}|" if row["of"] == "distance from zero" else str(row["measure"])


def _explain(rows: list[dict[str, Any]], others: Sequence[dict[str, Any]], by_chance: bool) -> None:
    """Print what the columns of the shown blocks mean."""
    held_out = [row for row in rows if row["figures"] == HELD_OUT]
    in_sample = {row["subset"] for row in rows} - {row["subset"] for row in held_out}
    sentences = {
        "old, new: the mean of the measure over the original queries (old) and over the reformulations (new). In a row "
        "with a held-out change, both means are computed with half of the documents and half the cutoff.": held_out,
        "held out: the change from old to new for pairs that are selected with one half of the documents and measured "
        "with the other half. These pairs differ from the pairs of the subset, which are selected with all documents. "
        "The number of held-out queries can therefore differ from the number of queries of the subset, and two subsets "
        "with the same pairs can have different held-out changes.": held_out,
        "in-sample: the change from the original queries to the reformulations, measured on the data with which the "
        "pairs were selected. In a row that also has a held-out change, the in-sample change is not computed from the "
        "columns old and new, because these are the means of the held-out pairs.": rows,
        f"A change without an interval in brackets has fewer than {FEWEST} queries, or its interval cannot be "
        "computed.": any(row["change"] is None or not _interval(row) for row in rows),
        "A dash in place of a change: it cannot be computed, because no query has a value of the measure or the mean "
        "of the original queries is 0.": any(row["change"] is None for row in rows),
        "improved, worsened: the number of pairs in which the measure is better or worse for the reformulation than "
        "for the original query.": in_sample,
        "on placebo lists: the number of pairs that the same selection chooses if the direction of each article is "
        "drawn at random, so that only chance leans (mean, least and most).": by_chance,
        "fair: all pairs of the subsets 'optimal' and 'effective'. A query can have a pair in each of them.": any(
            row["subset"] == "fair" and row["pairs"] > row["queries"] for row in rows
        ),
        "both searched with R: the change of each measure for the pairs of the subset, if the ranker R searches both "
        "queries of each pair. This change is not held out, because R may retrieve the same passages that were used to "
        "select the pairs.": rows and others,
    }
    if any(sentences.values()):
        say("")
    for sentence, applies in sentences.items():
        if applies:
            say_wrapped(sentence, "  ")


def _percent(row: dict[str, Any]) -> str:
    return f"{_change(row['change'])}{_interval(row)}"


def _interval(row: dict[str, Any]) -> str:
    """Format the interval of a change; empty if there are too few queries or no interval can be computed."""
    queries = row["held_out_queries"] if row.get("figures") == HELD_OUT else row["queries"]
    if queries < FEWEST or row["low"] is None or row["high"] is None:
        return ""
    return f" [{_end(row['low'])}, {_end(row['high'])}]"


def _end(percent: float) -> str:
    """Format an end of an interval without decimals, unless its sign would be lost."""
    return f"{percent:+.0f}" if abs(percent) >= 0.5 else f"{percent:+.1f}"


def _change(percent: float | None) -> str:
    return "-" if percent is None else f"{percent:+.1f}%"


_recipe = partial(
    o.options,
    shared=f"""{o.SHARED}
RECIPE: A recipe by name (see 'askew list recipes'), or a .toml file.
--set SECTION.NAME=VALUE (settings): A setting of a section of the recipe, such as --set retrieve.k=50 or --set
    reformulate.0.count=10; may be repeated.
**given: settings:texts groups lexicon
""",
)


@_recipe("""
--until: Stop after this step; 'askew plan' lists the steps.
""")
def plan_command(
    recipe: str, until: str | None = None, store: str = o.DEFAULT_STORE, as_json: bool = False, **given: Any
) -> None:
    """Show the steps of a recipe: the input of each step, its key, and whether it is finished. Nothing is run."""
    from askew.pairs.build import plan

    build, held = plan(recipe, store=store, until=until, **_settings_and_groups(given))
    note(build.notes)
    rows = []
    for step in build.plan.steps:
        key = build.plan.keys()[step.name]
        done = held.finished(step.name, key)
        rows.append({"step": step.name, "stage": step.stage.name, "reads": step.reads, "key": key,
                     "done": f"{done.rows_out:,} rows" if done else "-"})  # fmt: skip
    if as_json:
        say_json(rows)
    else:
        print_records(rows)


def _settings_and_groups(given: dict[str, Any]) -> dict[str, Any]:
    """The options that every command of a recipe has, as arguments of a function of the package."""
    counted = Groups.resolve(given.get("groups"), given.get("lexicon"))
    settings = o.settings_by_owner(given.get("settings"), "SECTION.NAME=VALUE, as in --set retrieve.k=50")
    return {"groups": counted, "settings": settings}


def built(recipe: str, given: dict[str, Any], store: str, **more: Any) -> Pairs:
    """Call ``askew.build`` with the options of a command, and show its progress and notes."""
    from askew.pairs.build import build
    from askew.pairs.plan import PROMISING

    totals: dict[str, int] = {}

    def tell(step: str, done: int, total: int) -> None:
        if step == "variants" and step not in totals and PROMISING in totals:
            note([f"{total:,} of {counted(totals[PROMISING], 'query', 'queries')} can yield a pair"])
        totals.setdefault(step, total)
        progress(done, total, step)

    with Waiting("running") as progress:
        pairs = build(recipe, store=store, progress=tell, **_settings_and_groups(given), **more)
    note(pairs.notes)
    return pairs


def _built_before(recipe: str, given: dict[str, Any], store: str) -> Pairs:
    """Return the pairs of a finished build. If the recipe was not built before, say so and build."""
    from askew.pairs.build import check_not_forgotten, plan

    ready, held = plan(recipe, store=store, code=True, **_settings_and_groups(given))
    check_not_forgotten(ready, held)
    keys = ready.plan.keys()
    if not all(held.finished(step.name, keys[step.name]) for step in ready.plan.steps):
        note([
            f"{store} has no finished build of {recipe}, so it is built now on the collection "
            f"{ready.resources.collection.id}"
        ])  # fmt: skip
    return built(recipe, given, store)


@_recipe("""
--engine: Where the shards of a step are processed: 'local' (processes on this machine) or 'ray' (a Ray cluster).
--workers: The number of processes or Ray actors. With '--engine local', the value 1 starts no other process.
--address: The address of a Ray cluster. Default: start Ray on this machine.
--gpus: With '--engine ray', give this share of a GPU to each actor that runs a neural model. The default is 1. With
    0.5, two actors share a GPU. With 0, no GPU is used.
--until: Stop after this step; 'askew plan' lists the steps.
""")
def run_command(
    recipe: str, until: str | None = None, store: str = o.DEFAULT_STORE, engine: str = defaults.ENGINE,
    workers: int | None = None, address: str | None = None, gpus: float | None = None, as_json: bool = False,
    **given: Any,
) -> None:  # fmt: skip
    """Run a recipe. Finished steps are reused, interrupted steps resume. Dropped rows are counted by reason."""
    pairs = built(recipe, given, store, until=until, engine=engine, workers=workers, address=address, gpus=gpus)
    names = ("summary", "held_out", "placebo", "all_candidates", "other_rankers")
    tables = {name: [] if (found := getattr(pairs, name)) is None else found.to_dicts() for name in names}
    if as_json:
        say_json({"store": str(Address(store)), "steps": pairs.steps, **tables, "cautions": pairs.cautions})
        return
    show_steps(pairs.steps)
    if pairs.summary is not None:
        show_summary(tables["summary"], tables["other_rankers"], pairs.build.evaluate.judged, tables["placebo"])
        say("")
        if every := tables["all_candidates"]:
            # The mean change of a random selection.
            changes = ", ".join(f"{_label(row)} {_percent(row)}" for row in every)
            size = (
                f"{counted(every[0]['pairs'], 'pair', 'pairs')} of {counted(every[0]['queries'], 'query', 'queries')}"
            )
            what = f"baseline, all candidates ({size}, in-sample), which is what a random selection has on average"
            say_wrapped(f"{what}: {changes}", "  ")
        for caution in pairs.cautions:
            say_wrapped(caution, "  ")
    last = next((row for row in pairs.steps if row["step"] == "pairs"), pairs.steps[-1])
    typer.echo(f"stored in {pairs.store.where(last['step'], last['key'])}")


def show_steps(rows: list[dict[str, Any]]) -> None:
    """Print the steps with their numbers of rows in, out and dropped."""
    print_records([
        {"step": row["step"], "in": row["in"], "out": row["out"], "dropped": reasons(row["dropped"]),
         "": "" if row["ran"] else "found"}
        for row in rows
    ])  # fmt: skip


@_recipe("""
--out: The new folder to write the dataset to.
--license: The license of the dataset as an SPDX identifier, such as CC-BY-4.0. It replaces publish.license of the
    recipe.
""")
def publish_command(
    recipe: str, out: Path, license: str | None = None, store: str = o.DEFAULT_STORE, as_json: bool = False,
    **given: Any,
) -> None:  # fmt: skip
    """Run a recipe if needed, and write its pairs as a dataset: Parquet splits, card, Croissant, checksums."""
    pairs = _built_before(recipe, given, store)
    with Waiting("writing"):
        done = pairs.publish(out, license=license)
    if as_json:
        say_json({"out": str(out), "splits": done.splits, "subsets": done.subsets, "left_out": done.left_out,
                  "unselected": done.unselected, "notes": done.notes})  # fmt: skip
        return
    note(done.notes)
    say("splits: " + ", ".join(f"{name} {count:,}" for name, count in done.splits.items()))
    say("subsets: " + ", ".join(f"{name} {count:,}" for name, count in done.subsets.items()))
    if done.left_out:
        say(
            f"left out, because publish.query_text is false: {done.left_out:,} pairs whose reformulation has the same "
            "words as an original query"
        )
    if done.unselected:
        unselected = counted(done.unselected, "pair of the build is", "pairs of the build are")
        say(f"not published: {unselected} in no subset")
    typer.echo(f"written to {safe(str(out))}; to check it: askew verify {safe(str(out))}")


@_recipe("""
--out: The folder to write to. An earlier report in this folder is replaced; other files in it are kept.
--figures: Also write the figures as files: 'svg', 'png' or 'svg,png'.
--latex: Also write the tables in LaTeX.
""")
def report_command(
    recipe: str, out: Path, figures: str = '', latex: bool = False, store: str = o.DEFAULT_STORE,
    as_json: bool = False, **given: Any,
) -> None:  # fmt: skip
    """Run a recipe if needed, and write its report: one self-contained HTML file, and its tables as CSV."""
    from askew.report.page import check_formats, check_out

    formats = o.split_fields(figures)
    check_formats(formats)
    check_out(out)
    pairs = _built_before(recipe, given, store)
    with Waiting("writing"):
        done = pairs.report(out, figures=formats, latex=latex)
    if as_json:
        say_json({"html": str(done.html), "files": [str(path) for path in done.files]})
        return
    for path in done.files:
        say(str(path))


@o.options("""
PATH: The folder of a published dataset, a store or an index.
--repair: Compute the damaged parts of a store or an index again.
--trust-store: With --repair, also use services, models and code that the store or the index names.
""")
def verify_command(path: str, repair: bool = False, trust_store: bool = False, as_json: bool = False) -> None:
    """Check a dataset, a store, an index or a report: its checksums, and the contents of a dataset.

    Exit code 3 on any error.

    With --repair, damaged steps of a store are computed again from its recipe, and a damaged index is built again from
    its documents, if their location is known. For other damage, the command that makes the files again is printed.
    """
    from askew.pairs.verify import verify

    found = verify(path, repair, trust_store)
    if as_json:
        say_json({"ok": found.ok, "kind": found.kind, "wrong": found.wrong, "notes": found.notes,
                  "repaired": found.repaired, **found.counts, **found.facts})  # fmt: skip
    else:
        for line in found.lines():
            say(line)
    if not found.ok:
        raise typer.Exit(3)


# ``askew demo``: a complete build on the embedded collection, as a first example.

DEFAULT_OUT = Path("askew-demo")


@o.options("""
--out: The folder for the dataset, the report and the store.
--copy: Copy the files of the demo to this new folder, and do not run it.
""")
def demo_command(out: Path = DEFAULT_OUT, copy: Path | None = None, as_json: bool = False) -> None:
    """Run the recipe 'demo' on the embedded collection: from queries to a dataset of selected reformulations.

    No download is needed.
    """
    from askew.data.collection import demo_files
    from askew.pairs.dataset.checking import verify
    from askew.report.page import check_out

    files = demo_files()
    if copy is not None:
        if copy.exists():
            raise ConfigError(f"--copy {copy}: it exists already; give the name of a new folder")
        shutil.copytree(files.docs.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        say(f"copied to {copy}: {', '.join(sorted(path.name for path in copy.iterdir()))}")
        return
    check_out(out / "report")
    pairs = built("demo", {}, str(out / "store"))
    with Waiting("writing"):
        # A dataset that exists is kept, because the same build gives the same files.
        dataset = out / "dataset"
        if not dataset.exists():
            pairs.publish(dataset)
        elif not verify(dataset).ok:
            raise DataError(f"{dataset}: it exists already and is not a valid dataset of askew; give another --out")
        report = pairs.report(out / "report").html
    rows = [] if pairs.summary is None else pairs.summary.to_dicts()
    if as_json:
        say_json({"dataset": str(dataset), "report": str(report), "store": str(out / "store"),
                  "steps": pairs.steps, "summary": rows})  # fmt: skip
        return
    say(f"{files.documents} passages, {files.queries} judged queries")
    show_steps(pairs.steps)
    show_summary([row for row in rows if row["subset"] == "effective"])
    say_wrapped(
        "The subset 'effective' has at most one reformulation per query. On the documents that were used to select "
        "this reformulation, its results lean less than the results of the query and are not less effective. The "
        "changes in the column 'held out' are measured on documents that were not used to select reformulations."
    )
    say("|ARaB|: bias (lean) of the results; 0 is balanced.")
    say("")
    typer.echo(f"dataset  {dataset}")
    typer.echo(f"report   {report}")
    say("To measure a run of the demo:")
    say("  askew demo --copy demo")
    say("  askew measure demo/bm25.run --docs demo/docs.tsv")
