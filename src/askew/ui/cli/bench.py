"""``askew bench``: which mitigation method reduces lean, and what does it cost?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.study.bench.settings import BenchSettings
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, print_table, say, say_json, say_wrapped

DEFAULTS = BenchSettings()
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method", "-m",
        help="A method to compare; may be repeated. 'qld', 'dense' and 'fusion:bm25,dense' are other rankers. "
        "'greedy', 'mmr', 'detconstsort', 'fairtopk' and 'rerank:MODEL' rerank the results of the base ranker. "
        "'reformulate:NAME' searches with the reformulations of the method NAME, and chooses one of them. To choose "
        "in another way, add ':one-search', ':oracle' or ':SELECTOR'. 'run:FILE' and 'FILE.py:CLASS' are methods of "
        "your own. 'METHOD@3' sets the strength of METHOD to 3. 'METHOD@1,2,3' runs METHOD with three strengths. "
        "'METHOD+greedy' reranks the results of METHOD.",
    ),
]  # fmt: skip


def bench_command(
    collection: Annotated[
        str | None,
        typer.Argument(
            help="The collection: 'demo', 'irds:ID', a recipe, a store, or a folder with documents, queries and qrels."
        ),
    ] = None,
    methods: Methods = None,
    base: Annotated[
        str, typer.Option(help="The base ranker. Each method is compared with this ranker.")
    ] = DEFAULTS.base,
    measures: o.Measures = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    k: Annotated[int, typer.Option("-k", "--k", help="The number of documents to retrieve per query.")] = DEFAULTS.k,
    agree: Annotated[
        float,
        typer.Option(
            help="For methods 'reformulate:NAME': use only reformulations whose top 10 results contain at least this "
            "share of the original query's top 10 results."
        ),
    ] = DEFAULTS.agree,
    equivalence: Annotated[
        str,
        typer.Option(
            help="For methods 'reformulate:NAME': drop reformulations whose meaning differs from the original query. "
            "The model that compares the meanings is 'auto', 'light', 'minilm', 'neural' or 'off' (no model)."
        ),
    ] = DEFAULTS.equivalence,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="For methods with a strength (3 in 'greedy@3'): run the method once for each strength in its "
            "built-in list.",
        ),
    ] = DEFAULTS.sweep,
    queries: Annotated[
        Path | None,
        typer.Option(help="Use only the queries of this file, for example queries that no model was trained on."),
    ] = None,
    method_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of a method, such as --set reformulate:extract.count=5; may be repeated.",
            metavar="METHOD.NAME=VALUE",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write report.html, tables, the scores of every query and the runs to this folder."),
    ] = None,
    from_scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            help="Show the report of an earlier bench from its folder, without searching. Repeat it to show "
            "several collections on one page.",
        ),
    ] = None,
    seconds: Annotated[bool, typer.Option(help="Show how long each method takes.")] = True,
    store: o.StorePath = str(DEFAULTS.store),
    as_json: o.AsJson = False,
    latex: o.LatexFile = None,
    csv: o.CsvFile = None,
    figures: o.FigureFolder = None,
) -> None:
    """Compare mitigation methods on the judged queries of a collection: effectiveness and lean against a base ranker.

    A method is another ranker, a reranker, a reformulator with a rule that chooses among its candidates, or your own
    run. Without --method, the methods that need no optional extra are run. For a recipe or a store, its collection and
    groups are used.
    Example: askew bench demo --method greedy@2,3,5 --method reformulate:reduce --out bench
    """
    from askew.measures.effectiveness import quiet_programs
    from askew.study.bench.bench import bench, show_bench
    from askew.study.bench.page import bench_charts, changes_table, methods_table

    if (collection is None) == (not from_scores):
        raise ConfigError(
            "bench: expected either a collection or --from, found "
            f"{'neither' if collection is None else 'both'}; --from shows an earlier bench from its folder"
        )
    if len(from_scores or []) > 1 and (latex or csv or figures):
        raise ConfigError("--latex, --csv and --figures are for one bench: give --from once")
    if from_scores:
        reports = show_bench(from_scores, out)
    else:
        given = BenchSettings(base, k, agree, equivalence, sweep, o.settings_by_owner(method_settings), out, store)
        with quiet_programs(), Waiting("preparing") as progress:
            reports = [
                bench(
                    collection, methods, measures, groups=Groups.resolve(groups, lexicon), queries=queries,
                    settings=given, progress=progress,
                )
            ]  # fmt: skip
    for report in reports:
        note(report.notes)
        tables = [changes_table(report), methods_table(report, seconds=seconds)]
        if not as_json:
            for one in reversed(tables):
                print_table(one)
            for rule in report.rules:
                say_wrapped(rule)
    if as_json:
        made = [report.to_dict() for report in reports]
        html = {} if out is None else {"html": str(out / "report.html")}
        say_json(made if from_scores else made[0] | html)
    elif out is not None:
        say(f"written to {out / 'report.html'}")
    o.write_tables(tables, latex, csv, {} if figures is None else bench_charts(report), figures)
