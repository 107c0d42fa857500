"""``askew compare``: is the difference between two runs real, and can a loss be ruled out?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields as fields_of
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askew.cli import options as o
from askew.cli.measure import say_directions, say_intervals, say_lexicons, say_what_changed
from askew.cli.render import (
    Waiting,
    end_gate,
    interval,
    note,
    number,
    p_value,
    print_tables,
    say,
    say_json,
    say_tsv,
    say_wrapped,
)
from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.measure import Direction, split_measures

if TYPE_CHECKING:
    from askew.app.measure.compare import CompareReport
    from askew.measures.catalogue import MeasureRequest

_BEST_AT_ZERO = (
    "If the best value of a measure is 0, the gain is the mean decrease of the distance from 0. For such a measure, "
    "no change in percent is shown: positive and negative values cancel in the mean, so a percentage of the mean has "
    "no meaning."
)


def command(
    old: Annotated[Path, typer.Argument(help="The old run.")],
    new: Annotated[Path, typer.Argument(help="The new run.")],
    docs: o.Docs = None,
    qrels: o.Qrels = None,
    queries: o.Queries = None,
    label: o.Label = None,
    background: o.Background = None,
    measures: o.Measures = None,
    preset: o.PresetName = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    tokens: o.Tokens = None,
    missing: o.Missing = None,
    unjudged: o.Unjudged = None,
    unanswered: o.Unanswered = None,
    no_relevant: o.NoRelevant = None,
    order: o.Order = None,
    fields: o.Fields = None,
    run_format: o.RunFormat = defaults.RUN_FORMAT,
    store: o.StorePath = o.DEFAULT_STORE,
    seed: o.Seed = 0,
    test: Annotated[
        str,
        typer.Option(
            help="Choose the test: 'mean' (null hypothesis: the mean gain is 0) or 'randomization' (null hypothesis: "
            "for each query, the values of the old run and the new run are exchangeable)."
        ),
    ] = defaults.TEST,
    margin: Annotated[
        str | None,
        typer.Option(
            help="The largest acceptable mean loss: one value (0.01), or one per measure ('RR@10=0.01 nDCG@10=0.02')."
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with code 1 if this condition holds: 'nDCG@10 loses 0.01' (the mean loss is 0.01 or more) or "
            "'nDCG@10 may lose 0.01' (such a loss is not ruled out; bounded measures only)."
        ),
    ] = None,
    unpaired: Annotated[
        str,
        typer.Option(
            help="How to treat a query that is in only one of the two runs: 'error' (stop) or 'drop' (leave it out)."
        ),
    ] = defaults.UNPAIRED,
    as_json: o.AsJson = False,
    as_tsv: o.AsTsv = False,
) -> None:
    """Compare two runs query by query. For each measure, print the gain, its interval, p (Holm) and the effect size.

    A gain is positive if the new run is better: if its effectiveness or neutrality is higher, or its lean is nearer to
    zero. With --margin, a test also shows whether a mean loss as large as the margin can be ruled out.
    """
    from askew.app.measure.compare import compare
    from askew.measures.borrowed import quiet_programs

    o.one_form(as_json, as_tsv)
    with quiet_programs(), Waiting("counting words") as progress:
        testing = partial(progress, label="comparing")
        report = compare(
            old, new, docs=docs, test=test, margin=_margin(margin), fail_if=fail_if or (), unpaired=unpaired, seed=seed,
            qrels=qrels, queries=queries, label=label, background=background, measures=measures, preset=preset,
            groups=Groups.resolve(groups, lexicon), tokens=tokens, missing=missing, unjudged=unjudged,
            unanswered=unanswered, no_relevant=no_relevant, order=order, fields=o.split_fields(fields),
            run_format=run_format, store=store, progress=progress, testing=testing,
        )  # fmt: skip
    note(report.notes)
    if as_json:
        say_json(report.to_dict())
    elif as_tsv:
        _print_tsv(report)
    else:
        _print_table(report, preset)
    end_gate(fail_if or (), report.failures)


def _margin(text: str | None) -> float | dict[str, float] | None:
    """``0.01``, or ``RR@10=0.01 nDCG@10=0.02``; a measure may have blanks and ``=`` inside its brackets."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        pairs = [(name, float(value)) for name, _, value in (part.rpartition("=") for part in split_measures(text))]
    except (ValueError, ConfigError):
        pairs = []
    if not pairs or not all(name for name, _ in pairs) or len(dict(pairs)) < len(pairs):
        raise ConfigError(f"--margin is a positive number or 'MEASURE=number ...', found {text!r}")
    return dict(pairs)


def _print_tsv(report: CompareReport) -> None:
    from askew.app.measure.compare import SHIFT
    from askew.statistics.significance import Paired

    for name, null in report.nulls.items():
        say(f"note: the null hypothesis of {name} is that {null}", err=True)
    names = [field.name for field in fields_of(Paired)]
    names += ["p_holm", "p_no_loss_holm", "p_equivalent_holm", *SHIFT]
    say_tsv("measure", *names, "signature")
    for text, row in report.to_dict()["measures"].items():
        values = ["" if row[name] is None else str(row[name]) for name in names]
        say_tsv(text, *values, row["signature"])


def _print_table(report: CompareReport, preset: str | None) -> None:
    from askew.statistics.intervals import STUDENTIZED

    texts = [a.text for a in report.asked]
    rows = [report.results[text] for text in texts]
    columns: list[tuple[str, list[str]]] = [
        ("old", [number(r.old) for r in rows]),
        ("new", [number(r.new) for r in rows]),
        ("change", [_change(a, report.results[a.text].relative) for a in report.asked]),
        ("gain [95%]", [f"{r.gain:+.4f}\n{interval(r.low, r.high, '+.3f')}" for r in rows]),
        ("p (Holm)", [p_value(report.p_holm.get(text)) for text in texts]),
        ("d_z", [number(r.d_z, 2) for r in rows]),
        ("queries improved/\nworsened/unchanged", [f"{r.improved}/{r.worsened}/{r.unchanged}" for r in rows]),
        ("n", [str(r.n) for r in rows]),
    ]
    print_tables(f"old: {report.old}   new: {report.new}", "measure", texts, columns)
    say_wrapped("gain: how much better the new run is, as a mean over queries. For every measure, positive is better.")
    if any(a.direction is Direction.ZERO for a in report.asked):
        say_wrapped(_BEST_AT_ZERO)
    several = report.tests > 1
    tests = f", corrected by Holm's method over {report.tests} tests" if several else ""
    intervals = " The intervals of the gains are not corrected." if several else ""
    say_wrapped(f"p: p-value of the null hypothesis that {report.nulls['p']}{tests}.{intervals}")
    say_wrapped("d_z: mean gain / standard deviation of the gains.")
    say_intervals([text for text in texts if report.results[text].method == STUDENTIZED])
    if any(r.low is None for r in rows):
        say_wrapped("-: no interval, because all gains are equal and their spread is not known.")
    say_directions(report.asked)
    for line in _shifts(report):
        say_wrapped(line)
    say_lexicons(report.asked)
    say_what_changed(report.asked, preset)
    say("")
    _print_reach(report)
    if report.p_no_loss_holm:
        say("")
        _print_no_loss(report)


def _shifts(report: CompareReport) -> Iterator[str]:
    """Yield how the mean of each signed measure changes, with its sign."""
    for one in report.asked:
        found = report.shifts.get(one.text)
        if found is not None and found.gain:
            toward = one.groups[0] if found.gain > 0 else one.groups[1]
            ends = "" if found.low is None else f" {interval(found.low, found.high, '+.3f')}"
            yield (
                f"{one.text}: with its sign, the mean changes by {found.gain:+.4f}{ends}, toward {toward} "
                f"(p {p_value(found.p)}, not corrected)."
            )


def _print_reach(report: CompareReport) -> None:
    """Print which losses and gains a comparison with this number of queries can rule out or detect."""
    texts = [a.text for a in report.asked]
    rows = [report.results[text] for text in texts]
    columns = [
        ("smallest\nmargin", [number(r.smallest_margin) for r in rows]),
        ("loss not\nruled out", [number(r.not_ruled_out) for r in rows]),
        ("detectable\ngain", [number(r.detectable) for r in rows]),
    ]
    print_tables(
        "mean losses that n queries can rule out, and mean gains that n queries can detect", "measure", texts, columns
    )
    say_wrapped(
        "smallest margin: the smallest mean loss that n queries can rule out with 95% confidence if both runs have the "
        "same value for every query. If the new run is better for many queries, a smaller loss can be ruled out."
    )
    say_wrapped("loss not ruled out: the upper end of the one-sided 95% confidence interval of the mean loss.")
    say_wrapped("detectable gain: a true mean gain of this size gives p < 0.05 with a probability of 80%.")
    if any(r.smallest_margin is None for r in rows):
        say_wrapped("-: the measure has no upper bound, so no loss can be ruled out.")


def _change(asked: MeasureRequest, relative: float | None) -> str:
    """Format a relative change. It is ``-`` for measures with the best value 0: signed values cancel in a mean."""
    return "-" if relative is None or asked.direction is Direction.ZERO else f"{100 * relative:+.1f}%"


def _print_no_loss(report: CompareReport) -> None:
    """Print the tests against a margin, for the measures that have a margin."""
    texts = list(report.p_no_loss_holm)
    columns = [
        ("margin", [f"{report.results[text].margin:g}" for text in texts]),
        ("no loss: p (Holm)", [p_value(report.p_no_loss_holm[text]) for text in texts]),
        ("equivalent: p (Holm)", [p_value(report.p_equivalent_holm[text]) for text in texts]),
    ]
    print_tables("can a mean loss as large as the margin be ruled out?", "measure", texts, columns)
    say_wrapped(f"Column 'no loss': p-value of the null hypothesis that {report.nulls['p_no_loss']}.")
    say_wrapped(f"Column 'equivalent': p-value of the null hypothesis that {report.nulls['p_equivalent']}.")
