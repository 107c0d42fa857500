"""``askew bench``: which mitigation method reduces lean, and what does it cost?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.study.bench.settings import BenchSettings
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, print_table, say, say_json, say_wrapped

_DEFAULTS = BenchSettings()


@o.options("""
COLLECTION: The collection: 'demo', 'irds:ID', a recipe, a store, or a folder with documents, queries and qrels.
-m --method (methods): A method to compare; may be repeated. 'qld', 'dense' and 'fusion:bm25,dense' are other rankers.
    'greedy', 'mmr', 'detconstsort', 'fairtopk' and 'rerank:MODEL' rerank the results of the base ranker.
    'reformulate:NAME' searches with the reformulations of the method NAME, and chooses one of them. To choose in
    another way, add ':one-search', ':oracle' or ':SELECTOR'. 'run:FILE' and 'FILE.py:CLASS' are methods of your own.
    'METHOD@3' sets the strength of METHOD to 3. 'METHOD@1,2,3' runs METHOD with three strengths. 'METHOD+greedy'
    reranks the results of METHOD.
--base: The base ranker. Each method is compared with this ranker.
-k --k: The number of documents to retrieve per query.
--agree: For methods 'reformulate:NAME': use only reformulations whose top 10 results contain at least this share of the
    original query's top 10 results.
--equivalence: For methods 'reformulate:NAME': drop reformulations whose meaning differs from the original query. The
    model that compares the meanings is 'auto', 'light', 'minilm', 'neural' or 'off' (no model).
--sweep: For methods with a strength (3 in 'greedy@3'): run the method once for each strength in its built-in list.
--queries: Use only the queries of this file, for example queries that no model was trained on.
--set METHOD.NAME=VALUE (method_settings): A setting of a method, such as --set reformulate:extract.count=5; may be
    repeated.
--out: Write report.html, tables, the scores of every query and the runs to this folder.
--from (from_scores): Show the report of an earlier bench from its folder, without searching. Repeat it to show several
    collections on one page.
--test: The test of differences: 'randomization', 't', 'wilcoxon' or 'bounded', as in 'askew compare'.
**given: methods:texts base measures groups lexicon k agree equivalence sweep queries:path method_settings:texts
    out:path from_scores:paths test
""", settings=_DEFAULTS)  # fmt: skip
def bench_command(
    collection: str | None = None, store: str = str(_DEFAULTS.store), as_json: bool = False,
    latex: Path | None = None, csv: Path | None = None, figures: Path | None = None, **given: Any,
) -> None:  # fmt: skip
    """Compare mitigation methods on the judged queries of a collection: effectiveness and lean against a base ranker.

    A method is another ranker, a reranker, a reformulator with a rule that chooses among its candidates, or your own
    run. Without --method, the methods that need no optional extra are run. For a recipe or a store, its collection and
    groups are used.
    Example: askew bench demo --method greedy@2,3,5 --method reformulate:reduce --out bench
    """
    from askew.measures.effectiveness import quiet_programs
    from askew.study.bench.bench import bench, show_bench
    from askew.study.bench.page import bench_charts, changes_table, methods_table

    from_scores, out = given.pop("from_scores"), given["out"]
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
        own = o.settings_by_owner(given.pop("method_settings"))
        inputs = {name: given.pop(name) for name in ("methods", "measures", "queries")}
        counted = Groups.resolve(given.pop("groups"), given.pop("lexicon"))
        settings = BenchSettings(method_settings=own, store=store, **given)
        with quiet_programs(), Waiting("preparing") as progress:
            reports = [bench(collection, groups=counted, settings=settings, progress=progress, **inputs)]
    for report in reports:
        note(report.notes)
        effects = report.effects()
        tables = [changes_table(report), methods_table(report), *([effects] if effects else [])]
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
