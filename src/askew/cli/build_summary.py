"""The tables of ``askew run``: the means of each subset of pairs, held out and in-sample, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from askew.cli.render import print_rows, say, say_wrapped
from askew.core.figures import FEWEST, HELD_OUT, counted, size_of


def show_summary(rows: list[dict[str, Any]], others: Sequence[dict[str, Any]] = (), judged: Sequence[str] = ()) -> None:
    """Print a block for each subset of pairs, with the means of the original queries and of the reformulations.

    A block with the same numbers as an earlier block is not repeated.

    ``others`` has the changes with other rankers. Each of these rankers has a line below the block. ``judged`` are the
    measures of effectiveness.
    """
    known: dict[str, str] = {}
    shown = []
    for subset in dict.fromkeys(row["subset"] for row in rows):
        chosen = [row for row in rows if row["subset"] == subset]
        first = known.setdefault(repr([{**row, "subset": ""} for row in chosen]), subset)
        again = f"; the same figures as {first}" if first != subset and chosen[0]["pairs"] else ""
        say("")
        say(f"{size_of(subset, chosen[0]['pairs'], chosen[0]['queries'])}{again}")
        if again or not chosen[0]["pairs"]:
            continue
        shown += chosen
        for line in (*_zero_pairs([row for row in chosen if row["measure"] in judged]), *_held_out_queries(chosen)):
            say(line)
        is_held_out = any(row["figures"] == HELD_OUT for row in chosen)
        labels = [_label(row) for row in chosen]
        means = [(side, [_mean(row[f"{side}_mean"]) for row in chosen]) for side in ("old", "new")]
        print_rows("measure", labels, [*means, *(_held_out_columns if is_held_out else _in_sample_columns)(chosen)])
        for line in _under([row for row in others if row["subset"] == subset]):
            say(line)
    _explain(shown, others)


def _under(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each other ranker: the changes of the pairs of a subset with this ranker."""
    for ranker in dict.fromkeys(row["ranker"] for row in rows):
        found = [row for row in rows if row["ranker"] == ranker]
        changes = ", ".join(f"{_label(row)} {_percent(row)}" for row in found if row["pairs"])
        part = " (also used to select the pairs)" if found[0]["took_part"] else ""
        said = changes or "unknown, because no pair has a score for both of its queries"
        yield f"change from the original queries to the reformulations, both searched with {ranker}{part}: {said}"


def baseline(rows: list[dict[str, Any]]) -> str:
    """Say how the measures change for all candidates: the mean change of a random selection."""
    changes = ", ".join(f"{_label(row)} {_percent(row)}" for row in rows)
    size = f"{counted(rows[0]['pairs'], 'pair', 'pairs')} of {counted(rows[0]['queries'], 'query', 'queries')}"
    return f"baseline, all candidates ({size}, in-sample), which is what a random selection has on average: {changes}"


def _zero_pairs(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield how many pairs find no relevant document, neither with the original query nor with the reformulation."""
    counts = {_label(row): row["zero_pairs"] for row in rows if row["zero_pairs"]}
    said = [
        f"{count:,} for {', '.join(name for name, one in counts.items() if one == count)}"
        for count in sorted(set(counts.values()), reverse=True)
    ]
    if said:
        yield f"pairs in which the measure is 0 for both queries: {'; '.join(said)}"


def _held_out_queries(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the number of queries of the held-out values, and the measures for which fewer queries have a value."""
    counts = {_label(row): int(row["held_out_queries"]) for row in rows if row["figures"] == HELD_OUT}
    if counts:
        most = max(counts.values())
        yield f"held-out queries: {most:,}"
        for fewer in sorted({count for count in counts.values() if count < most}, reverse=True):
            yield f"  of which {fewer:,} for {', '.join(name for name, count in counts.items() if count == fewer)}"


def _label(row: dict[str, Any]) -> str:
    return f"|{row['measure']}|" if row["of"] == "distance from zero" else str(row["measure"])


def _held_out_columns(rows: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Columns of a subset with held-out values. A measure without a held-out value is marked in-sample."""
    return [
        (
            "held out [95%]",
            [_percent(row) if row["figures"] == HELD_OUT else f"in-sample{_interval(row)}" for row in rows],
        ),
        ("words", [_change(row["words_change"]) for row in rows]),
        ("in-sample", [_change(row["in_sample_change"]) for row in rows]),
    ]


def _in_sample_columns(rows: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [
        ("in-sample [95%]", [_percent(row) for row in rows]),
        ("improved", [f"{row['improved_pairs']:,}" for row in rows]),
        ("worsened", [f"{row['worsened_pairs']:,}" for row in rows]),
    ]


def _explain(rows: list[dict[str, Any]], others: Sequence[dict[str, Any]]) -> None:
    """Print what the columns of the shown blocks mean."""
    figures = {row["figures"] for row in rows}
    said = []
    if HELD_OUT in figures:
        said += [
            "old, new: the mean of the measure over the original queries (old) and over the reformulations (new). In "
            "a row with a held-out change, both means are computed with half of the documents and half the cutoff.",
            "held out: the change from old to new for pairs that are selected with one half of the documents and "
            "measured with the other half. These pairs differ from the pairs of the subset, which are selected with "
            "all documents. The number of held-out queries can therefore differ from the number of queries of the "
            "subset, and two subsets with the same pairs can have different held-out changes.",
            "words: the change from the original queries to the reformulations if the pairs are selected with one half "
            "of the group words and measured with the other half. This change is too optimistic on average, because "
            "both halves of the words are counted in the same passages.",
        ]
    if figures:
        said.append(
            "in-sample: the change from the original queries to the reformulations, measured on the data with which "
            "the pairs were selected. In a row that also has a held-out change, the in-sample change is not computed "
            "from the columns old and new, because these are the means of the held-out pairs."
        )
    if any(row["change"] is None or not _interval(row) for row in rows):
        said.append(
            f"A change without an interval in brackets has fewer than {FEWEST} queries, or its interval cannot be "
            "computed."
        )
    held_out = {row["subset"] for row in rows if row["figures"] == HELD_OUT}
    if any(None in (row["change"], row["words_change"] if row["subset"] in held_out else 0) for row in rows):
        said.append(
            "A dash in place of a change: it cannot be computed, because no query has a value of the measure or the "
            "mean of the original queries is 0."
        )
    if any(row["subset"] not in held_out for row in rows):
        said.append(
            "improved, worsened: the number of pairs in which the measure is better or worse for the reformulation "
            "than for the original query."
        )
    if any(row["subset"] == "fair" and row["pairs"] > row["queries"] for row in rows):
        said.append(
            "fair: all pairs of the subsets 'optimal' and 'effective'. A query can have a pair in each of them."
        )
    if figures and others:
        said.append(
            "both searched with R: the change of each measure for the pairs of the subset, if the ranker R searches "
            "both queries of each pair. This change is not held out, because R may retrieve the same passages that "
            "were used to select the pairs."
        )
    if said:
        say("")
    for line in said:
        say_wrapped(line, "  ")


def _mean(value: float | None) -> str:
    """Format a mean; ``-`` if no pair of the subset has a score for both of its queries."""
    return "-" if value is None else f"{value:.4f}"


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
