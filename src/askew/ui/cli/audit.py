"""``askew audit``: how far do the results of a live engine lean, why, and what reduces the lean?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askew.core.groups import Groups
from askew.study.audit.settings import AuditSettings
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, end_gate, note, print_table, say, say_json, say_wrapped

if TYPE_CHECKING:
    from askew.study.audit.report import AuditReport


# The number of worst queries and of reformulations shown in a terminal.
_MOST_SHOWN = 5


@o.options("""
ENGINE: The engine: a URL that contains '{query}' and '{k}'; 'http:SETTINGS.toml'; 'callable:FILE.py:FUNCTION'; or a
    ranker (see 'askew list rankers'), such as 'opensearch' or 'bm25', with its settings in --set.
--queries: A file of queries (id TAB text, or JSON Lines), 'irds:ID', or 'demo'.
--docs: The texts of the documents; needed if the engine returns only ids. The file formats are those of 'askew measure
    --docs'.
-k --k: The number of results to request and measure per query.
--worst: How many of the queries that lean beyond chance to show and reformulate.
--level: The false-discovery rate among the queries that lean beyond chance, from 0 to 1.
--tries: The maximum number of reformulations to try per query.
-m --method (methods): A reformulator; may be repeated. Default: 'reduce', and 'rewrite' if its packages are installed.
--baseline: The file audit.json of an earlier audit, to compare this audit with.
--fail-if: Exit with code 1 if this condition holds: 'ARaB(tf)@10 > 0.2', 'ARaB(tf,sign=abs)@10 > +10%' (more than 10%
    above --baseline) or 'LexiconShare@10 worse' (significantly worse than --baseline); may be repeated.
--out: Write report.html, audit.json and tables to this folder. report.html shows the texts of queries.
--keep-queries: Also write the texts of queries to audit.json, the tables and the JSON output.
--store: The folder in which the answers of the engine are kept until the audit is complete. Used only if --out is not
    given.
--set [METHOD.]NAME=VALUE (method_settings): A setting of the engine, such as --set concurrency=2, or of a reformulator
    or filter, such as --set reduce.shortest=2; may be repeated. 'askew show ranker NAME' and 'askew show reformulator
    NAME' list the settings.
**given: method_settings:texts docs:path qrels:path measures groups lexicon k worst level tries methods:texts missing
    baseline:path fail_if:texts out:path keep_queries
""", settings=AuditSettings())  # fmt: skip
def command(engine: str, queries: str, store: str = o.DEFAULT_STORE, as_json: bool = False, **given: Any) -> None:
    """Audit a live engine: measure the bias (lean) of its results, and reformulate the queries that lean most.

    The report also estimates how much of the lean comes from documents that are not about the query, and suggests next
    steps. If an audit was stopped, the same command resumes it. Queries that the engine has already answered are not
    sent again.
    Example: askew audit http:engine.toml --queries queries.tsv --out audit
    """
    from askew.measures.effectiveness import quiet_programs
    from askew.study.audit.audit import audit

    of_methods = o.settings_by_owner(given.pop("method_settings"), "NAME=VALUE or METHOD.NAME=VALUE", own=True)
    own = of_methods.pop("", {})
    counted, fail_if = Groups.resolve(given.pop("groups"), given.pop("lexicon")), given.pop("fail_if") or ()
    inputs = {name: given.pop(name) for name in ("docs", "qrels", "measures", "baseline")}
    how = AuditSettings(method_settings=of_methods, store=store, **given)
    with quiet_programs(), Waiting("searching") as progress:
        report = audit(
            engine, queries, engine_settings=own, groups=counted, fail_if=fail_if, settings=how, progress=progress,
            **inputs,
        )  # fmt: skip
    note(report.notes)
    if as_json:
        say_json(report.to_dict(how.keep_queries))
    else:
        _print_report(report, how.keep_queries)
        if how.out is not None:
            say(f"written to {Path(how.out) / 'report.html'}")
    end_gate(fail_if, report.failures, report.passed)


def _print_report(report: AuditReport, keep_queries: bool) -> None:
    from askew.study.audit import page
    from askew.study.tables import parts_table

    # Texts of queries are printed only if they are to be kept, as in audit.json.
    shown = report if keep_queries else type(report).from_dict(report.to_dict())
    worst, suggested = shown.worst[:_MOST_SHOWN], shown.suggested[:_MOST_SHOWN]
    say(f"{report.engine}: {report.queries:,} queries, up to {report.k:,} results each")
    tables = [page.means_table(shown)]
    tables += [page.baseline_table(shown.against_baseline)] if shown.against_baseline else []
    tables += [parts_table(one, place) for place, one in enumerate(shown.parts, start=1)]
    tables += [page.worst_table(replace(shown, worst=worst))] if worst else []
    tables += [page.tried_table(replace(shown, reformulations=suggested))] if suggested else []
    for one in tables:
        print_table(one)
        say("")
    say("what to do next")
    for sentence in report.next_steps:
        say_wrapped(f"- {sentence}")
