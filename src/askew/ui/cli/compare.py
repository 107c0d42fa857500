"""``askew compare``: is the difference between two runs real, and can a loss be ruled out?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.measure import split_measures
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, end_gate, note, print_table, say, say_frame, say_json, say_wrapped


@o.options(f"""
OLD: The old run.
NEW: The new run.
--test: Choose the test: 'randomization' (paired), 't' (Student's paired t-test), 'wilcoxon' (signed ranks; gives no
    interval) or 'bounded' (for bounded measures; needs many queries, but allows for rare large losses).
--margin: The largest acceptable mean loss: one value (0.01), or one per measure ('RR@10=0.01 nDCG@10=0.02').
--fail-if: Exit with code 1 if this condition holds: 'nDCG@10 loses 0.01' (the mean loss is 0.01 or more) or 'nDCG@10
    may lose 0.01' (such a loss is not ruled out; bounded measures only).
--unpaired: How to treat a query that is in only one of the two runs: 'error' (stop) or 'drop' (leave it out).
**given: {o.MEASURING}
""")
def command(
    old: Path,
    new: Path,
    run_format: str = defaults.RUN_FORMAT,
    store: str = o.DEFAULT_STORE,
    seed: int = 0,
    test: str = defaults.TEST,
    margin: str | None = None,
    fail_if: list[str] | None = None,
    unpaired: str = defaults.UNPAIRED,
    as_json: bool = False,
    as_tsv: bool = False,
    latex: Path | None = None,
    csv: Path | None = None,
    figures: Path | None = None,
    **given: Any,
) -> None:
    """Compare two runs query by query. For each measure, print the gain, its interval, p and the effect size.

    A gain is positive if the new run is better: if its effectiveness or neutrality is higher, or its lean is nearer to
    zero. With --margin, a test also shows whether a mean loss as large as the margin can be ruled out.
    """
    from askew.measures.effectiveness import quiet_programs
    from askew.study.compare import compare

    o.one_form(as_json, as_tsv)
    with quiet_programs(), Waiting("counting words") as progress:
        testing = partial(progress, label="comparing")
        report = compare(
            old, new, test=test, margin=_margin(margin), fail_if=fail_if or (), unpaired=unpaired, seed=seed,
            run_format=run_format, store=store, progress=progress, testing=testing, **o.inputs(given),
        )  # fmt: skip
    note(report.notes)
    if as_json:
        say_json(report.to_dict())
    elif as_tsv:
        for name, null in report.nulls.items():
            say(f"note: the null hypothesis of {name} is that {null}", err=True)
        say_frame(report.to_polars())
    else:
        for one in report.tables():
            print_table(one)
            say("")
        if preset := given["preset"]:
            say_wrapped(f"preset: {preset} (details: 'askew show preset {preset}')")
    o.write_tables(report.tables(), latex, csv, {} if figures is None else report.charts(), figures)
    end_gate(fail_if or (), report.failures, report.passed)


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
