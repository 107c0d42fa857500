"""``askew sensitivity``: does the order of systems depend on the word list or on another choice?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from askew.core import defaults
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, print_table, say, say_frame, say_json, say_wrapped

# The number of pairs of systems shown in a terminal.
_MOST_SHOWN = 10


@o.options(f"""
RUNS: Two or more run files in TREC, TSV, JSON Lines or Parquet format; may be gzipped.
--measures: Measures of lean, such as 'ARaB(tf) NFaiRR'. Give no cutoffs here, because --cutoffs sets them. Default:
    ARaB (tc, tf and bool), NFaiRR and LexiconShare.
--lexicons: Lexicons to compare, by name or file, such as 'gender,my.csv'. Default: all shipped lexicons that have the
    groups of --groups (by default 'female' and 'male').
--tokens: Tokenizers to compare. Default: {",".join(defaults.SENSITIVITY_TOKENS)}.
--signs: Signs to compare. Default: {",".join(defaults.SENSITIVITY_SIGNS)}.
--cutoffs: Cutoffs to compare. Default: {",".join(map(str, defaults.SENSITIVITY_CUTOFFS))}.
--missing: How to treat a ranked document without text: 'zero' (it names no group), 'drop' (remove it before the cutoff)
    or 'skip' (remove it after the cutoff). If all documents have a text, this choice is not varied. Default:
    {",".join(defaults.SENSITIVITY_MISSING)}.
--who: Count only the words that refer to one class: 'real' (a real person), 'fictional' (a character), 'generic'
    (people in general), 'name' (a title, brand or place) or 'other' (no person). With '+', the words of several classes
    are counted together, as in 'real+fictional'; 'any' counts all words. Default:
    {",".join(defaults.SENSITIVITY_WHO)}.
--html: Write an HTML page with a heat map to this file.
--out: Write report.html and all tables to this folder.
**given: docs:path queries:path label background:path measures groups lexicon lexicons tokens signs cutoffs missing who
    order fields
""")
def command(
    runs: list[Path],
    run_format: str = defaults.RUN_FORMAT,
    store: str = o.DEFAULT_STORE,
    html: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
    as_tsv: bool = False,
    **given: Any,
) -> None:
    """Measure the lean of runs with different measures, lexicons and settings; report if the order of runs changes.

    All combinations of --measures, --lexicons, --tokens, --signs, --cutoffs, --missing and --who are measured. Separate
    the values of an option with commas.
    Example: askew sensitivity bm25.run bert.run tk.run --docs docs.tsv --html sensitivity.html
    """
    from askew.study.sensitivity import axes_table, pairs_table, sensitivity, systems_table

    o.one_form(as_json, as_tsv)
    with Waiting("counting words") as progress:
        report = sensitivity(
            list(runs), run_format=run_format, store=store, html=html, out=out, progress=progress, **o.inputs(given)
        )
    note(report.notes)
    if as_json:
        say_json(report.to_dict())
    elif as_tsv:
        say_frame(report.to_polars())
    else:
        for sentence in report.sentences():
            say_wrapped(sentence)
        say("")
        tables = [axes_table(report), systems_table(report)]
        for one in [*tables, *([pairs_table(report, _MOST_SHOWN)] if report.flips else [])]:
            print_table(one)
            say("")
        for place in [*([] if html is None else [html]), *([] if out is None else [out / "report.html"])]:
            say(f"written to {place}")
