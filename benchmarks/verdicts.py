"""Published figures of five works beside those of askew, each with a verdict by one rule.

    python benchmarks/verdicts.py

verdicts.toml has the published figures, their protocol, and where a figure of askew is found: a block of results.md and
a pattern. No figure of askew is written there. ``verdict`` is the rule, and RULE says it in words.
"""

from __future__ import annotations

import argparse
import csv
import re
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from record import sections

from askew.logs.numbers import spearman

PUBLISHED = Path(__file__).with_name("verdicts.toml")
RULE = """\
verdict: comparable only if the protocol (data, split and measure) is the same. Equal: the 95% interval of askew's
figure includes the published one. Weaker: it excludes it in the worse direction, with any model; a figure to reproduce
is weaker wherever it is excluded. Better: it excludes it in the better direction, with the same model; with another
model (same model?: no) that is "higher, other model", or lower, and says nothing about the method. The published
figures have no intervals, so their own error is not counted. Where askew's has none: not comparable. Reductions are
negative changes. A result of askew beside several published figures counts once, against the strongest of them."""
OTHER = ("higher, other model", "lower, other model")
VERDICTS = ("weaker", "better", *OTHER, "equal", "not comparable", "not measured")
COMPARABLE = VERDICTS[:5]
_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
_NAMED = {name: rf"(?P<{name}>{_NUMBER})" for name in ("value", "low", "high")}
_PLACES = {
    "{change}": rf"{_NAMED['value']}% \[{_NAMED['low']}%?, {_NAMED['high']}%?\]",
    "{value}": rf"{_NAMED['value']} \[{_NAMED['low']}, {_NAMED['high']}\]",
    "{alone}": _NAMED["value"],
}


@dataclass(frozen=True)
class Ours:
    """A figure of askew as it is written in its source; low and high are empty where there is no interval."""

    value: str
    low: str = ""
    high: str = ""

    def __str__(self) -> str:
        return f"{self.value} [{self.low}, {self.high}]" if self.low else self.value


@dataclass(frozen=True)
class Compared:
    """A line of the table; ``rank`` is higher for a stronger published figure."""

    measure: str
    published: str
    ours: Ours | None
    verdict: str
    rank: float = 0.0


def verdict(published: float, ours: Ours | None, same: bool, better: str, same_model: bool = True) -> str:
    """One of VERDICTS. ``better`` is higher, lower, or same for a figure that is to be reproduced."""
    if ours is None:
        return "not measured"
    if not same or not ours.low:
        return "not comparable"
    low, high = number(ours.low), number(ours.high)
    if low <= published <= high:
        return "equal"
    if not {"higher": published < low, "lower": published > high, "same": False}[better]:
        return "weaker"
    return "better" if same_model else f"{better}, other model"


def number(text: str) -> float:
    return float(text.replace(",", ""))


def compare(table: Mapping[str, Any], blocks: Mapping[str, str]) -> Iterator[Compared]:
    """The lines of a published table."""
    for figure in table["figures"]:
        ours = find(table, figure, blocks)
        if ours is None and "missing" not in table:
            raise SystemExit(f"{place_of(table, figure)}: expected a reason in missing= where nothing was measured")
        value, shown = published_value(figure["published"])
        better = figure.get("better", "")
        found = verdict(value, ours, table.get("same", False), better, table.get("same_model", False))
        yield Compared(figure["measure"], shown, ours, found, -value if better == "lower" else value)


def distinct(table: Mapping[str, Any], lines: list[Compared]) -> dict[str, list[Compared]]:
    """The lines of each result of askew, the strongest published figure first; a line without a result is alone."""
    found: dict[str, list[Compared]] = {}
    for line in sorted(lines, key=lambda line: -line.rank):
        found.setdefault(f"{line.ours}" if line.ours else f"{table['name']} {line.measure}", []).append(line)
    return found


def find(table: Mapping[str, Any], figure: Mapping[str, Any], blocks: Mapping[str, str]) -> Ours | None:
    """The figure of askew in its block, or None where none is expected."""
    if "compute" in table:
        return COMPUTED[table["compute"]]()
    if "row" not in figure:
        return None
    pattern = table["pattern"].replace("{row}", figure["row"])
    for name, expression in _PLACES.items():
        pattern = pattern.replace(name, expression)
    found = re.search(pattern, blocks.get(table["section"], ""), re.MULTILINE)
    if found is None:
        if table.get("optional"):
            return None
        raise SystemExit(
            f"{place_of(table, figure)}: expected {pattern!r} in the block {table['section']!r} of results.md, found "
            "nothing; record the block, or change the pattern in verdicts.toml"
        )
    return Ours(**found.groupdict())


def place_of(table: Mapping[str, Any], figure: Mapping[str, Any]) -> str:
    return f"{PUBLISHED.name}, {table['work']}, {table['name']}, {figure['measure']}"


def published_value(published: float | Mapping[str, float]) -> tuple[float, str]:
    """The figure and how it is shown: as it is, or the change from the old mean to the new one in percent."""
    if not isinstance(published, Mapping):
        return published, f"{published:g}"
    change = 100 * (published["new"] / published["old"] - 1)
    return change, f"{change:+.1f}"


def gsqr_spearman() -> Ours:
    """Of the rows that GSQR printed, all but the sum of all topics."""
    text = files("askew").joinpath("shipped/logs/gsqr_table1.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["topic"] != "all topics"]
    found = spearman([float(row["rate"]) for row in rows], [float(row["recommended"]) for row in rows])
    return Ours(*(f"{one:.3f}" for one in (found.rho, found.low, found.high)))


COMPUTED: Mapping[str, Callable[[], Ours]] = {"gsqr_spearman": gsqr_spearman}


def print_table(table: Mapping[str, Any], lines: list[Compared]) -> None:
    """What was published and measured, then the figures."""
    print(f"\n{table['work']}, {table['name']}")
    facts = {"protocol": table["protocol"]}
    if any(line.ours for line in lines):
        answer = "yes" if table["same"] else "no"
        facts |= {"ours": table["ours"], "same protocol?": f"{answer}: {table['differs']}"}
        if table["same"]:
            facts["same model?"] = "yes" if table["same_model"] else "no"
    if any(line.ours is None for line in lines):
        facts["not measured"] = table["missing"]
    for name, text in facts.items():
        print(textwrap.fill(f"{name}: {text}", 118, initial_indent="  ", subsequent_indent="    "))
    for line in lines:
        shown = "-" if line.ours is None else str(line.ours)
        print(f"    {line.measure:<36}{line.published:>10}{shown:>28}  {line.verdict}")


def comparable_row(table: Mapping[str, Any], lines: list[Compared]) -> str:
    """A row of the Markdown table of results that can be compared, one for each result of askew."""
    first, *others = lines
    more = f" (and {len(others)} below it)" if others else ""
    measure = first.measure.replace("|", r"\|")
    name = f"{table['work']}, {table['name']}"
    return f"| {name} | {measure} | {first.published}{more} | {first.ours} | {first.verdict} |"


def main() -> None:
    blocks = sections()
    print(RULE)
    print(f"\n    {'measure':<36}{'published':>10}{'ours [95%]':>28}  verdict")
    figures = 0
    results: dict[str, tuple[Mapping[str, Any], list[Compared]]] = {}
    for table in tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["table"]:
        lines = list(compare(table, blocks))
        figures += len(lines)
        print_table(table, lines)
        for result, mine in distinct(table, lines).items():
            # A result may stand beside figures of several tables.
            known = results.setdefault(f"{table['work']} {table.get('section', '')} {result}", (table, []))
            known[1].extend(mine)
    counts = Counter(lines[0].verdict for _, lines in results.values())
    comparable = [(table, lines) for table, lines in results.values() if lines[0].verdict in COMPARABLE]
    comparable.sort(key=lambda one: COMPARABLE.index(one[1][0].verdict))
    print("\nresults with the same protocol, those that do not reproduce the published figure first:\n")
    print("| work, table | measure | published | askew [95%] | verdict |\n| --- | --- | --: | --: | --- |")
    print("\n".join(comparable_row(*one) for one in comparable))
    print(f"\n{figures} published figures, {counts.total() - counts['not measured']} results of askew: ", end="")
    # That nothing is better is said, other verdicts that no result has are not.
    shown = sorted((one for one in VERDICTS if counts[one] or one == "better"), key=lambda one: one != "better")
    print(", ".join(f"{counts[one]} {one}" for one in shown))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
