"""Write the dataset card (README.md): the content, how it was made, the measured values, intended use and limits.

The YAML header names the files of each split for ``datasets.load_dataset``. It never contains query text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from askew.core.defaults import FEWEST, HELD_OUT, counted
from askew.core.errors import Note
from askew.core.measure import Direction
from askew.pairs.dataset import numbers
from askew.pairs.dataset.columns import about_columns
from askew.pairs.dataset.facts import BOXES, REFAIRMULATE, SUBSETS, Facts
from askew.pairs.dataset.numbers import PairNumbers, change_text, ends_text, held_out_rows
from askew.report.markup import code, fenced, markdown, yaml_text

# Sentences on what the held-out values of selected pairs do not show, for a build, its report and its card.

_WORSE = "on held-out data, these measures become worse (change, 95% interval)"
_NOT_BETTER = "held-out data do not show that these measures improve (change, 95% interval)"
_UNKNOWN = (
    "these measures of effectiveness have no held-out value, because too few selected queries have several relevant "
    "documents; their in-sample gain is too optimistic"
)
_MAIN = "fair"


@dataclass(frozen=True)
class Caution:
    """What held-out values do not show: the subset, the statement, and the measures that it is about."""

    subset: str
    said: str
    measures: tuple[str, ...]

    def __str__(self) -> str:
        return f"subset {self.subset}: {self.said}: {'; '.join(self.measures)}"


def cautions(
    rows: Iterable[Mapping[str, Any]],
    directions: Mapping[str, Direction],
    subsets: Sequence[str],
    lean: Collection[str],
    effectiveness: Collection[str],
) -> list[Caution]:
    """For each subset, the measures for which held-out data do not show what the pairs were selected for.

    These are measures that become worse, measures of ``lean`` of the selection that may not improve, and measures of
    ``effectiveness`` without held-out values. Of the subsets of Refairmulate, only the main one is
    considered, because it contains the others.
    """
    shown = [_MAIN] if tuple(subsets) == SUBSETS else list(subsets)
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["subset"] in shown and (doubt := _doubt(row, directions[row["measure"]], lean, effectiveness)):
            found.setdefault((row["subset"], doubt[0]), []).append(doubt[1])
    order = (_WORSE, _NOT_BETTER, _UNKNOWN)
    keys = sorted(found, key=lambda key: (shown.index(key[0]), order.index(key[1])))
    return [Caution(*key, tuple(found[key])) for key in keys]


def _doubt(
    row: Mapping[str, Any], direction: Direction, lean: Collection[str], effectiveness: Collection[str]
) -> tuple[str, str] | None:
    name = row["measure"]
    if row["figures"] != HELD_OUT:
        return (_UNKNOWN, name) if name in effectiveness else None
    few = row.get("held_out_queries", FEWEST) < FEWEST or None in (row.get("low"), row.get("high"))
    shown = f"{name} {change_text(row.get('change'))}, {'no interval' if few else ends_text(row)}"
    sign = 1 if direction is Direction.UP else -1
    ends = [] if few else [sign * row["low"], sign * row["high"]]
    if ends and max(ends) < 0:
        return _WORSE, shown
    return (_NOT_BETTER, shown) if name in lean and not (ends and min(ends) > 0) else None


def release_cautions(pairs: PairNumbers) -> list[Caution]:
    """The cautions of a release."""
    facts, chosen = pairs.facts, pairs.facts.selection
    lean = chosen.effectiveness if facts.scheme == BOXES else chosen.bias
    judged = {one.name for one in facts.measures if one.judged}
    return cautions(held_out_rows(pairs), pairs.directions, facts.subsets, lean, judged.union(chosen.effectiveness))


_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]*")
# The identifiers of common licenses of data and text, for a note on an identifier that may be misspelled.
_COMMON_LICENSE = re.compile(
    r"cc0-1\.0|cc-by(-nc)?(-sa|-nd)?-[1-4]\.0|apache-2\.0|mit|bsd-[23]-clause|odc-by(-1\.0)?|odbl(-1\.0)?|"
    r"pddl(-1\.0)?|cdla-\S+|[al]?gpl-\S+|mpl-2\.0|openrail\S*|other|unknown"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
# The content of a file, by its folder and the end of its name.
_LAYOUTS = (
    ("json/", "", "one subset of the pairs, in the layout of the Refairmulate paper"),
    ("tsv/", "", "the pairs whose original query has one value in the column `group`, as in the Refairmulate paper"),
    ("repair/", ".agg.all.tsv", "every original query with all its reformulations, selected or not, as in RePair"),
    (
        "repair/",
        ".agg.gold.tsv",
        "every original query with its gold reformulations, as in RePair: those whose value of the measure in the file "
        "name is above 0 and at least as high as the value of the original query",
    ),
    (
        "repair/",
        ".qrels.tsv",
        "the relevance judgements, in TREC format, of the queries of one subset (box in RePair)",
    ),
    (
        "repair/",
        "",
        "the pairs of one subset (box in RePair). Columns: query id, original query, value of the original query, "
        "reformulation, value of the reformulation",
    ),
)
_JOINING = [
    "The texts of the original queries are not in this dataset: `original_text` is null in every row. If you have "
    "the collection, join the texts by `query_id`:", "",
    "```python", "import polars as pl",
    'pairs = pl.read_parquet("path/to/this/folder/data/*.parquet").drop("original_text")',
    'pairs = pairs.join(queries, on="query_id")  # queries of the collection: columns query_id and original_text',
    "```", "",
]  # fmt: skip
_TOLD = {
    "title", "description", "collection", "ranker", "measures", "selection", "lexicons", "sources", "recipe", "counts",
    "dropped", "versions", "license", "language", "version", "homepage", "contact", "citation", "scheme", "subsets",
    "robust_rankers", "robust_measures", "held_out", "held_out_gains", "query_text", "placebo",
}  # fmt: skip

PLACEBO_LISTS = (
    "Placebo lists are the same result lists, with the direction (the group named most) of each article drawn at "
    "random. They lean only by chance, and so does every pair that the same selection chooses on them. The share is "
    "their number relative to the pairs of the subset: near 100%, chance alone yields as many pairs."
)
NOT_BIAS = (
    "Lexicon counts are not bias by themselves. The measures of lean count words of a lexicon in retrieved documents. "
    "Such words may be appropriate for a query about a named person or about one group, and a text without any such "
    "word can still be unfair."
)
LIMITS = (
    "The measured values of a pair hold for the ranker, the collection and the judgements named "
    "here. They may differ with another ranker. The signature of a measure lists all its "
    "settings, such as how documents without a judgement are treated.",
    "The pairs were selected by the same measures that are reported for them. The "
    "in-sample means of the selected subsets are therefore too optimistic: expect smaller gains on other data.",
    "A reformulation may express another information need than its original. No person has checked this for the "
    "pairs of this dataset.",
)
# Texts under these licenses may be published under any other license.
_FREE = ("cc0-1.0", "pddl-1.0", "unlicense", "0bsd")
NO_LICENSE = "No license is stated for this dataset, so the license of the queries applies."
USES = (
    "Intended uses: to study how the wording of a query changes the effectiveness and the lean of its results, and to "
    "train and compare models that rewrite or select queries.",
    "Not intended: to judge people, groups or documents, to make decisions about people, or to show that a system is "
    "fair.",
)


def group_limit(groups: Sequence[str]) -> str:
    """The sentence on people and documents that measures of lean do not count; ``groups`` may be empty."""
    counted = f"The measures of lean count the words of these groups: {', '.join(groups)}. " if groups else ""
    return f"{counted}Measures of lean do not cover people and documents outside the groups of the lexicons."


def card(pairs: PairNumbers, facts: Facts, splits: Mapping[str, str], more: Iterable[str] = ()) -> str:
    """The text of README.md; ``splits`` maps each split to its file, ``more`` names the other files."""
    limits = (*USES, NOT_BIAS, markdown(group_limit(facts.groups), 2000), *LIMITS)
    uses = ["## Intended use and limits", "", *(f"- {line}" for line in limits), ""]
    parts = (
        _head(pairs, facts, splits), _what(pairs, facts), _numbers(pairs, facts), _examples(pairs, facts),
        _columns(pairs, facts), _making(facts), _splitting(pairs, facts), uses, _license(facts),
        _files(pairs, splits, more),
    )  # fmt: skip
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(pairs: PairNumbers, facts: Facts, splits: Mapping[str, str]) -> list[str]:
    license = facts.text("license", "unknown").strip().lower()
    lines = [
        "---",
        f"pretty_name: {yaml_text(facts.title)}",
        f"license: {license if _LICENSE.fullmatch(license) else 'other'}",
        f"language:\n- {yaml_text(language(facts))}",
        f"size_categories:\n- {numbers.size_category(pairs.every.pairs)}",
        "tags:\n- information-retrieval\n- query-reformulation\n- fairness\n- askew",
        "configs:\n- config_name: default\n  data_files:",
    ]
    # The package datasets cannot load a split without rows, so the header does not list the file of such a split.
    filled = {split for split in splits if pairs.every.splits[split]} or set(splits)
    lines += [f"  - split: {split}\n    path: {file}" for split, file in splits.items() if split in filled]
    return [*lines, "---", ""]


def license_note(facts: Facts) -> list[Note]:
    """Notes if a dataset states no license, one that may be misspelled, or another one than its sources."""
    stated = facts.text("license").strip()
    if not stated:
        said = "the dataset states no license; to state one, set ⟨license=CC-BY-4.0⟩ or another SPDX identifier"
        return [Note(said, code="no-license")]
    found = []
    if not _COMMON_LICENSE.fullmatch(stated.lower()):
        said = f"the license {stated[:60]!r} is not the SPDX identifier of a common license; check its spelling"
        found.append(Note(said, code="unknown-license", license=stated))
    named = {str(row.get("license", "")).strip() for row in facts.rows("sources")}
    others = {one for one in named if one and one.lower() not in (stated.lower(), *_FREE)}
    if facts.query_text and others:
        said = (
            f"the dataset has the license {stated[:60]}, but its sources have other licenses "
            f"({', '.join(sorted(others))[:200]}); check that these licenses allow you to publish the texts of the "
            "queries, or leave the texts out (publish.query_text = false)"
        )
        found.append(Note(said, code="other-licenses", others=tuple(sorted(others))))
    return found


def language(facts: Facts) -> str:
    """The language as a code of two or three letters; ``und`` if the stated text is no such code."""
    stated = facts.text("language", "en").strip().lower()
    return stated if _LANGUAGE.fullmatch(stated) else "und"


def _what(pairs: PairNumbers, facts: Facts) -> list[str]:
    sizes = ", ".join(f"{code(name)} {pairs.subsets[name].pairs:,}" for name in facts.subsets)
    return [
        f"# {markdown(facts.title)}", "", markdown(facts.description, 5000), "",
        f"{counted(pairs.every.pairs, 'pair', 'pairs')} of "
        f"{counted(pairs.every.queries, 'query', 'queries')} of {code(facts.collection)}: an original query, a "
        f"reformulation of it, and measured values of what {code(facts.ranker)} retrieves for both. {NOT_BIAS}", "",
        f"Number of pairs in each subset: {sizes}. Use only one subset at a time, because each subset was selected by "
        "different rules.", "",
        *([] if facts.query_text else _JOINING),
    ]  # fmt: skip


def _numbers(pairs: PairNumbers, facts: Facts) -> list[str]:
    methods, outcomes = (
        numbers.table(
            [column, "pairs", f"{facts.main} pairs"],
            [[code(value), n, inside] for value, n, inside in pairs.column_counts(column)],
        )
        for column in ("method", "outcome")
    )
    by = (
        "Pairs of each subset, by split and by the group of the original query:"
        if facts.scheme == REFAIRMULATE
        else "Pairs of each subset, by split:"
    )
    return [
        "## Numbers", "", *_held_out(pairs), by, "",
        *numbers.counts_table(pairs), "", *_placebo(pairs),
        "The means in the next table are in-sample: the values were measured on the same data that selected the pairs. "
        "The column n has the number of pairs that have a value of the measure. A gain is positive if the value of the "
        "reformulation is better than the value of the original query. For a measure that is best at zero, the "
        "gain of a pair is the absolute old value minus the absolute new value. The old and new means of this measure "
        "are means of signed values, so the mean gain can differ from the change of the means.", "",
        *numbers.means_table(pairs), "", *_robust(pairs, facts), *methods, "", *outcomes, "",
    ]  # fmt: skip


def _held_out(pairs: PairNumbers) -> list[str]:
    """The section of held-out results, which comes before all other numbers of the card."""
    stated = numbers.held_out_rows(pairs)
    if not stated:
        return []
    given = (
        "The 95% interval of a change treats the queries as a random sample. With few queries, it is wide even if no "
        "value changes, because the values of other queries may change. A dash means that there are fewer than "
        f"{FEWEST} queries or that no interval can be computed."
        if numbers.has_intervals(stated)
        else f"The table has no intervals: for each change, there are fewer than {FEWEST} queries, or an interval "
        "cannot be computed."
    )
    warned = [
        f"- **Subset {one.subset}**: {one.said}: {'; '.join(map(code, one.measures))}."
        for one in release_cautions(pairs)
    ]
    return [
        *warned, *([""] if warned else []),
        "Held-out figures: the documents of the collection were split into two halves. Pairs of a query "
        "and a reformulation were selected again with one half and measured on the other half, at half the cutoff of "
        "each measure. The held-out figure of a measure of effectiveness uses only queries with several relevant "
        "documents, because a single relevant document cannot be split. A measure without a held-out figure is marked "
        '`in-sample`. The column "change" has the change of the mean from original queries to reformulations. For a '
        f"measure that is best at zero, this is the change of the mean distance from zero. {given}", "",
        "The in-sample change is measured on the same data that selected the pairs.", "",
        *numbers.held_out_table(pairs), "",
    ]  # fmt: skip


def _placebo(pairs: PairNumbers) -> list[str]:
    """The number of pairs that the same selection chooses on placebo lists."""
    rows = numbers.placebo_table(pairs)
    return [PLACEBO_LISTS, "", *rows, ""] if rows else []


def _robust(pairs: PairNumbers, facts: Facts) -> list[str]:
    if not facts.robust_rankers:
        return []
    rankers, measures = (", ".join(map(code, names)) for names in (facts.robust_rankers, facts.robust_measures))
    return [
        f"Both queries of each pair were searched with several rankers: {rankers}. A pair is better with a ranker "
        f"if at least one of {measures} is better for the reformulation than for the original query, and none is "
        "worse. A pair is `robust` if it is better with at least one ranker, and if none of these measures is worse "
        "with any ranker. Selected pairs are usually better with the first ranker, because it was used to "
        "select them. Therefore, `robust` mainly means that the pair is not worse with any of the other rankers. "
        "The share is the number of robust pairs divided by n, the number of pairs that have a value for every ranker. "
        "Its 95% Wilson interval (low, high) assumes that pairs are independent.", "",
        *numbers.robust_table(pairs), "",
    ]  # fmt: skip


def _examples(pairs: PairNumbers, facts: Facts) -> list[str]:
    shown = facts.main
    first, head = ("original_text", "original") if facts.query_text else ("query_id", "query")
    rows = [
        [markdown(row[first]), markdown(row["text"]), code(row["method"]), code(row["outcome"] or numbers.UNKNOWN)]
        for row in pairs.examples
    ]
    if not rows:
        return [f"The subset {shown} has no pair, so there is no example.", ""]
    only = pairs.subsets[facts.main].pairs == 1
    said = f"The only pair of the subset {shown}:" if only else f"The first pairs of the subset {shown}:"
    return [said, "", *numbers.table([head, "reformulation", "method", "outcome"], rows), ""]


def _columns(pairs: PairNumbers, facts: Facts) -> list[str]:
    about = about_columns(facts)
    rows = [
        [code(name), str(kind).lower(), markdown(about.get(name, "a column that the build added"), 1000)]
        for name, kind in pairs.schema.items()
        if name != "split"
    ]
    return ["## Columns", "", *numbers.table(["column", "type", "meaning"], rows), ""]


def _making(facts: Facts) -> list[str]:
    measures = [[code(one.name), code(one.signature), one.direction.value, code(one.key)] for one in facts.measures]
    lines = [
        "## How it was made", "", f"Collection: {code(facts.collection)}. Ranker: {code(facts.ranker)}.", "",
        *numbers.table(
            ["measure", "signature", "better is", "name of the measure in the papers' files"], measures
        ), "",
    ]  # fmt: skip
    if facts.rows("lexicons"):
        lines += ["Lexicons:", "", *_rows_table(facts.rows("lexicons"), ("id", "groups", "license", "source")), ""]
    for name in ("counts", "dropped", "versions"):
        if facts.mapping(name):
            rows = [[markdown(key), _cell(value)] for key, value in facts.mapping(name).items()]
            lines += [*numbers.table([name, ""], rows), ""]
    if facts.mapping("selection"):
        lines += ["Settings of the selection:", "", *fenced(_settings(facts.mapping("selection"))), ""]
    if facts.text("recipe"):
        lines += ["The recipe:", "", *fenced(facts.text("recipe"), "toml"), ""]
    further = {name: value for name, value in facts.stated.items() if name not in _TOLD}
    if further:
        lines += ["Further facts:", "", *fenced(_settings(further)), ""]
    return lines


def _splitting(pairs: PairNumbers, facts: Facts) -> list[str]:
    echoed = (
        f" In {pairs.echoes} of {pairs.every.pairs} pairs, the normalized reformulation equals an original query of "
        "another split. Leave these pairs out if this matters to you."
    )
    if not facts.query_text:
        echoed = " No reformulation has the same normalized text as an original query of this dataset."
    elif not pairs.echoes:
        echoed = " No reformulation has the same normalized text as an original query of another split."
    return [
        "## Splits",
        "",
        "The normalized text of a query (Unicode NFKC, case-folded, words only) determines its split. Queries with the "
        f"same normalized text are in the same split, and no query is in two splits.{echoed}",
        "",
    ]


def _license(facts: Facts) -> list[str]:
    stated = f"This dataset: {_cell(facts.text('license'))}." if facts.text("license") else NO_LICENSE
    lines = ["## License", "", stated, ""]
    if facts.rows("sources"):
        lines += [*_rows_table(facts.rows("sources"), ("name", "license", "note")), ""]
    else:
        lines += [
            "The licenses of the queries and documents that this dataset was made from are not stated here. Check them "
            "before you redistribute texts of the queries.",
            "",
        ]
    for name in ("citation", "homepage", "contact", "version"):
        if facts.text(name):
            lines += [f"{name.capitalize()}: {markdown(facts.text(name), 2000)}", ""]
    return lines


def _files(pairs: PairNumbers, splits: Mapping[str, str], more: Iterable[str]) -> list[str]:
    sizes = pairs.every.splits
    rows = [
        [code(file), f"the split {split}" + ("" if sizes[split] else ", without rows")]
        for split, file in splits.items()
    ]
    for file in more:
        holds = next(what for place, end, what in _LAYOUTS if file.startswith(place) and file.endswith(end))
        rows.append([code(file), holds])
    rows += [
        [code("askew.json"), "facts about the build, such as settings and versions"],
        [code("croissant.json"), "metadata for machines"],
    ]
    load = [
        "from datasets import load_dataset",
        'pairs = load_dataset("path/to/this/folder")',
        f'chosen = pairs.filter(lambda row: row["{pairs.facts.main}"])  # only the subset {pairs.facts.main}',
    ]
    check = [
        "sha256sum -c checksums.sha256   # checks that no file was changed",
        "askew verify .                   # also checks that the pairs of each subset follow its selection rules",
    ]
    return [
        "## Files", "", *numbers.table(["file", "holds"], rows), "", *fenced("\n".join(load), "python"), "",
        "To check the files:", "",
        *fenced("\n".join(check), "sh"),
    ]  # fmt: skip


def _rows_table(rows: list[dict[str, Any]], first: tuple[str, ...]) -> list[str]:
    names = [*first, *sorted({name for row in rows for name in row} - set(first))]
    cells = [[_cell(row.get(name, "not stated")) for name in names] for row in rows]
    return numbers.table([markdown(name) for name in names], cells)


def _settings(stated: dict[str, Any]) -> str:
    return "\n".join(
        f"{name} = {json.dumps(value, sort_keys=True, ensure_ascii=False)}" for name, value in stated.items()
    )


def _cell(value: Any) -> str:
    """Format a fact for one line: as code if it has no blank and is not alphanumeric, else as escaped text."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return markdown(text) if " " in text or text.isalnum() else code(text)
