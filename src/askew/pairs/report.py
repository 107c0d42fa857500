"""Write the report of a finished build: one self-contained page, and its tables and charts as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import defaults
from askew.core.address import local_paths, public, public_settings, public_text
from askew.core.defaults import FEWEST, HELD_OUT, IN_SAMPLE, size_of
from askew.core.errors import ConfigError, DataError
from askew.core.files import parse_json
from askew.core.groups import resolver_id
from askew.core.measure import Direction, column_of, gain_column, new_column, old_column
from askew.core.protocols import SelectorPlugin
from askew.core.ranking import Floats
from askew.measures.counts import DocumentSource, gather_texts
from askew.measures.decompose import decompose_run, has_parts
from askew.measures.headline import CUTOFF, Headline, headlines
from askew.measures.mentions import can_mark
from askew.measures.relevance import RelevanceSource
from askew.measures.requested import listed as joined
from askew.measures.statistics.significance import holm_by_family, paired
from askew.pairs.dataset.card import LIMITS, NOT_BIAS, PLACEBO_LISTS, Caution, cautions, group_limit
from askew.pairs.figures import (
    CROSS,
    HARD,
    PAIRS,
    Results,
    counted_groups,
    first_measures,
    headline,
    named_measures,
    sides_of,
)
from askew.pairs.gains import ORIGINAL, PairParts, find_measures
from askew.pairs.recipe import flat_settings, groups_of
from askew.pairs.resources import query_parts
from askew.pairs.stages import NEGATIVE, Evaluate, Select, judged_note, lists_of
from askew.pairs.summary import summarize
from askew.pairs.tables import (
    against_effectiveness,
    against_table,
    best_of,
    cross_table,
    extreme_pairs,
    hard_table,
    method_table,
    outcome_table,
    query_gains,
    refined_table,
    shares_of,
)
from askew.report import markup as n
from askew.report.charts import About, Points, dots, scatter, sorted_gains
from askew.report.markup import Markup, tag
from askew.report.page import (
    PageParts,
    Section,
    check_formats,
    check_out,
    code,
    document,
    facts,
    figure,
    figures,
    folded,
    heading,
    labels_note,
    listed,
    paragraph,
    slug,
    write_report,
)
from askew.report.table import CODE, QUOTE, WORDS, Cell, Column, Estimate, Group, Table, columns, measure_label, table
from askew.rewrite.classifiers import query_labels


@dataclass(frozen=True)
class SelectionFacts:
    """The measures of a selection; ``part`` has the role of each measure in the choice of pairs."""

    selector: str
    effectiveness: str
    lean: str | None
    part: Mapping[str, str]
    subsets: tuple[str, ...]
    tolerance: float

    def those(self, *parts: str) -> list[str]:
        """Return the measures with one of these roles."""
        return [measure for measure, part in self.part.items() if part in parts]


DECIDES, GROUPS, NAMES, UNUSED = (
    "pairs are chosen by this measure",
    "this measure only decides whether a query or a reformulation meets the thresholds of the selector",
    "this measure only decides whether the reformulation is reported as leaning less than the query, as much as the "
    "query, or more",
    "this measure is only reported",
)
TWIN = "this measure is not used to choose pairs, but its values equal those of a measure that is used"


def choice_of(selector: SelectorPlugin, evaluate: Evaluate, pairs: PairParts) -> SelectionFacts:
    """Return the role of each measure, from the settings of the selector.

    A measure with the same values as one that pairs are chosen by is not independent: AP equals RR if each query has
    one relevant document.
    """
    directions = evaluate.directions
    effectiveness, lean = sides_of(selector, evaluate)
    looked_at = find_measures(selector.measures(), directions, selector.name)
    part = dict.fromkeys(directions, UNUSED)
    if selector.name == "boxes":
        part |= dict.fromkeys(lean, NAMES) | dict.fromkeys(effectiveness, DECIDES)
    elif selector.name == "refairmulate-paper":
        part |= dict.fromkeys(looked_at, GROUPS) | dict.fromkeys((effectiveness[0], lean[0]), DECIDES)
    else:
        part |= dict.fromkeys(looked_at, DECIDES)
    deciding = [name for name, one in part.items() if one == DECIDES]
    for name in [name for name, one in part.items() if one == UNUSED]:
        if any(_same(pairs, name, other) for other in deciding):
            part[name] = TWIN
    tolerance = float(selector.settings().get("tolerance", 0.0))
    return SelectionFacts(selector.name, *first_measures(selector, evaluate), part, tuple(selector.subsets), tolerance)


def _same(pairs: PairParts, one: str, other: str) -> bool:
    sides = [(side(one), side(other)) for side in (old_column, new_column)]
    frames = pairs.frames([name for side in sides for name in side])
    alike = (np.allclose(part[a], part[b], rtol=0, atol=1e-12, equal_nan=True) for part in frames for a, b in sides)
    return pairs.height > 0 and all(alike)


def sentence_of(choice: SelectionFacts) -> str:
    """Say by which measures pairs were chosen, and which measures are only reported."""
    said = [
        f"The selector {choice.selector} chose pairs of a query and a reformulation by {joined(choice.those(DECIDES))}."
    ]
    for role, words in (
        (GROUPS, "used only to decide whether a query or a reformulation meets the thresholds of the selector"),
        (NAMES, "used only to report whether the reformulation leans less or more than the query"),
        (TWIN, "that were not used to choose pairs, but have the same values as a measure that was used"),
        (UNUSED, "that were not used to choose pairs and are only reported"),
    ):
        if choice.those(role):
            said.append(f"Measures {words}: {joined(choice.those(role))}.")
    return " ".join([*said, *([] if choice.those(UNUSED) else ["No other measure is reported."])])


def build_cautions(selector: SelectorPlugin, evaluate: Evaluate, headline: pl.DataFrame) -> list[Caution]:
    """Return what the held-out values of a build do not show; nothing if the recipe turns held-out values off."""
    if HELD_OUT not in headline["figures"]:
        return []
    effectiveness, lean = sides_of(selector, evaluate)
    # Boxes are chosen by one measure; lean is only reported.
    aim = effectiveness if selector.name == "boxes" or not lean else lean
    rows = headline.filter(pl.col("pairs") > 0).to_dicts()
    return cautions(rows, evaluate.directions, selector.subsets, aim, {*effectiveness, *evaluate.judged})


NOT_CHOSEN = "not chosen"
# The most points of each kind that are drawn; more would overlap and make the page large.
MOST_POINTS = 1200


def clouds_of(pairs: PairParts, main: str, effectiveness: str, lean: str, seed: int) -> tuple[list[Points], str]:
    """Return sampled points of chosen and other pairs, and a sentence that states their numbers."""
    gains = [gain_column(lean), gain_column(effectiveness)]
    known = pairs.filter(pl.all_horizontal(pl.col(one).fill_nan(None).is_not_null() for one in gains))
    clouds, amounts, sampled = [], [], ""
    for name, part in ((NOT_CHOSEN, known.filter(~pl.col(main))), (main, known.filter(main))):
        amount, drawn = f"all {part.height:,}", np.arange(part.height)
        if part.height > MOST_POINTS:
            # Without a permutation of all positions, which would take memory: there may be many.
            random = np.random.default_rng([seed, part.height, 3])
            drawn = np.sort(random.choice(part.height, MOST_POINTS, replace=False, shuffle=False))
            amount, sampled = f"{MOST_POINTS:,} of {part.height:,}", f", sampled with seed {seed}"
        frames, start = [], 0
        for frame in part.frames(gains):
            first, last = np.searchsorted(drawn, [start, start + frame.height])
            frames.append(frame[drawn[first:last] - start])
            start += frame.height
        points = pl.concat(frames)
        clouds.append(Points(name, points[gains[0]].to_numpy(), points[gains[1]].to_numpy()))
        kind = "pairs that were not chosen" if name == NOT_CHOSEN else f"pairs of the subset {name!r}"
        amounts.append(f"{amount} {kind}")
    lost = pairs.height - known.height
    unscored = f" {lost:,} pairs have no score on one of the two measures." if lost else ""
    return clouds, f"The figure shows {' and '.join(amounts)}{sampled}.{unscored}"


@dataclass(frozen=True)
class CountedParts:
    """The parts of a measure of lean, for original and chosen queries; ``data`` has one row for each part."""

    measure: str
    resolver: str
    queries: int
    data: pl.DataFrame


# The number of sampled queries: with more, the error of the estimates would still limit the intervals.
MOST_QUERIES = 1000


def counted_parts(results: Results, pairs: PairParts, subset: str, seed: int) -> CountedParts | None:
    """Return the parts of the first measure that has parts, for the originals and the chosen queries of a subset.

    None if no measure of the recipe has parts, or no pair is chosen.
    """
    build, evaluate = results.build, results.build.evaluate
    asked = [one for one in evaluate.asked if has_parts(one) and can_mark(str(one.measure.param("tokens")))]
    if not asked:
        return None
    keys = ["query_id", "variant_id"]
    chosen = pairs.filter(subset).map(keys, lambda part: part.unique("query_id", keep="first", maintain_order=True))
    if not len(chosen):
        return None
    if len(chosen) > MOST_QUERIES:
        chosen = chosen.sample(MOST_QUERIES, seed=seed)
    one = next((found for found in asked if found.text == defaults.DECOMPOSED), asked[0])
    queries, names = (pa.array(chosen[name].to_list(), pa.string()) for name in ("query_id", "variant_id"))
    old_parts, new_parts = [], []
    for rows in results.store.read(results.outcomes["runs"].manifest):
        originals = pc.and_(pc.equal(rows["method"], ORIGINAL), pc.is_in(rows["query_id"], value_set=queries))
        old_parts.append(rows.filter(originals))
        new_parts.append(rows.filter(pc.is_in(rows["variant_id"], value_set=names)))
    runs = {"original": pa.concat_tables(old_parts), "chosen": pa.concat_tables(new_parts)}
    every, judged = build.resources.judged_documents
    needed = np.zeros(len(every), np.bool_)
    for run in runs.values():
        needed[pc.list_flatten(run["doc"]).to_numpy()] = True
    old, source = runs["original"], DocumentSource(build.resources.collection)
    texts = dict(zip(old["query_id"].to_pylist(), old["text"].to_pylist(), strict=True))
    # Whether a document is on topic is judged by the original query.
    relevance = RelevanceSource(judged, lambda: texts, lambda: gather_texts(source, every, needed))
    lexicon = next(found for found in evaluate.lexicons() if found.id == one.measure.param("lexicon"))
    rows, resolver = [], ""
    for name, run in runs.items():
        lists = lists_of(run)
        inputs = evaluate.scorer.inputs(lists, [one], name)
        found = decompose_run(one, inputs, relevance, lexicon, resolver_id(defaults.RESOLVER), lists.queries)
        resolver = resolver or found.resolver
        for part in found.parts:
            rows.append({"queries": found.run, **{k: v for k, v in asdict(part).items() if k != "amounts"}})
    return CountedParts(one.text, resolver, len(chosen), pl.DataFrame(rows))


def headline_of_originals(results: Results) -> Headline:
    """The headline of the original queries with the ranker of the build, as ``askew measure`` begins with it."""
    every, _ = results.build.resources.judged_documents
    queries, lines = list[pl.DataFrame](), list[pl.DataFrame]()
    for rows in results.store.read(results.outcomes["runs"].manifest):
        columns = rows.select(["query_id", "method", "text", "doc", "score"])
        found = pl.DataFrame(pl.from_arrow(columns)).filter(pl.col("method") == ORIGINAL)
        queries.append(found.select("query_id", "text"))
        # Documents that are tied with the last one that counts may come before it.
        last = pl.col("score").list.get(CUTOFF - 1, null_on_oob=True).alias("last")
        long = found.select("query_id", "doc", "score", last).explode("doc", "score")
        lines.append(long.filter(pl.col("last").is_null() | (pl.col("score") >= pl.col("last"))))
    run = pl.concat(lines)
    doc_ids = every.take(pa.array(run["doc"].to_numpy()))
    run = run.select("query_id", pl.Series("doc_id", doc_ids.cast(pa.string())), "score")
    groups = groups_of(results.build.recipe)
    labels, classifier = query_labels(pl.concat(queries), groups)
    (first,) = headlines(
        {"original queries": run}, results.build.resources.collection, labels=labels, classifier=classifier,
        groups=groups,
    )  # fmt: skip
    return first


_MARKS = {DECIDES: "*", TWIN: "*", GROUPS: "°"}
_BETTER = {Direction.UP: "higher", Direction.DOWN: "lower", Direction.ZERO: "nearer zero"}
_SUBSETS = {
    "optimal": "at most one pair per query. The selector accepts this pair, and its reformulation meets all thresholds "
    "of the selector for effectiveness and lean",
    "effective": "at most one pair per query. Of the pairs that the selector accepts, this pair has the highest score. "
    "Pairs that qualify for the subset 'optimal' are not considered",
    "fair": "all pairs of the subsets 'optimal' and 'effective'",
    "negative": "pairs whose reformulation worsens effectiveness or lean; they are negative examples, not chosen pairs",
}


@dataclass(frozen=True)
class Reported:
    """The page, and all files that were written, the page first."""

    html: Path
    files: list[Path]


def report_of(
    results: Results, out: Path, *, figures: Sequence[str] = (), latex: bool = False, seed: int = 0
) -> Reported:
    """Write report.html and tables/*.csv to a folder; on request figures/*.svg or *.png, and tables/*.tex.

    Steps named ``cross-NAME`` have the scores of variants with the ranker NAME. For hard queries, steps named
    ``hard-NAME`` are read instead, if there are any. The same store gives the same bytes.
    """
    check_formats(figures)
    check_out(out)
    stage, pairs = results.build.select, results.rows_of(PAIRS)
    if stage is None:
        name = results.build.recipe.name
        raise ConfigError(f"report: the recipe {name!r} chooses no pairs; it needs a section [select]")
    if pairs is None:
        raise DataError(
            "report: there are no pairs to report on; askew run --json shows how many rows each step dropped"
        )
    report = _Report(results, stage, pairs, seed)
    page = report.page()
    files = {"report.html": page.encode(), **report.files.files(tuple(dict.fromkeys(figures)), latex)}
    written = write_report(out, files)
    return Reported(written[0], written)


Row = dict[str, Any]


def _shares(row: Row, name: str) -> list[str]:
    ends = n.share_interval(row[f"{name}_low"], row[f"{name}_high"])
    return [n.count(row[name]), n.share(row[f"{name}_share"]), ends]


def _means(row: Row, queries: str = "queries") -> list[str]:
    return [n.mean(row["old_mean"]), n.mean(row["new_mean"]), n.change(row["change"]), n.interval_of(row, queries)]


_ROWS = {"better": "retrieves better", "same": "retrieves the same", "worse": "retrieves worse"}
_COLUMNS = {"less": "leans less", "same": "leans the same", "more": "leans more"}


_WHICH = {
    "original better": "every candidate is worse than the original query (the definition in RePair's tables)",
    "none better": "no candidate is better than the original query (the definition in Eq. 1 of RePair)",
}


_COUNTS = ("improved pairs", "unchanged pairs", "worsened pairs")
_BEFORE_AFTER = columns("measure", "pairs", "before", "after", "change", "95% interval", *_COUNTS)
_METHOD = (
    "Change: the relative change of the mean from before to after, in percent. A 95% interval is given if there are at "
    f"least {FEWEST} queries; it contains the changes that the randomization test does not reject."
)
_IN_SAMPLE = (
    "A pair is an original query and its reformulation. In-sample: the pairs are selected and measured on the same "
    "data, so their gains are larger than on other data."
)
_HELD_OUT = (
    "A pair is an original query and its reformulation. Held out: pairs are selected by their gains on half of the "
    "documents of the collection, and measured on the other half. On each half, the cutoff of every measure is "
    "halved. Effectiveness has a held-out figure only for queries with several relevant "
    "documents. The documents are split at random several times. Each half of a "
    "split is used once to select pairs and once to measure them. A pair counts once for each half that selects it. "
    "For the 95% interval, the queries are treated as a random sample. "
    'The column "random" is a baseline: the change over all candidates, selected or not, which a random selection has '
    "on average."
)
_ONLY_IN_SAMPLE = (
    'The value "in-sample" in the column "figures" means that the measure has no held-out figure. For '
    "effectiveness, a held-out figure needs a selected pair whose query has at least two relevant documents, so that "
    "each half of the documents can have one."
)
_QUERIES = ("improved_queries", "unchanged_queries", "worsened_queries")


def held_out_sentence(row: Row, label: str) -> str:
    """A sentence with the held-out change of a measure, for the beginning of a report."""
    ends = n.interval_of(row, "held_out_queries")
    interval = "" if ends == n.NONE else f" {ends}"
    return (
        f"In the subset {row['subset']}, reformulation changes the mean of {label} by "
        f"{n.change(row['change'])}{interval}, measured on held-out documents. If pairs are selected and "
        f"measured on the same data (in-sample), this mean changes by {n.change(row['in_sample_change'])}. For all "
        f"candidates, selected or not, it changes by {n.change(row['all_candidates_change'])}."
    )


def _subset_line(part: pl.DataFrame) -> str:
    return size_of(part.item(0, "subset"), max(part["pairs"].to_list()), max(part["queries"].to_list()))


class _Report:
    """Makes the page, section by section."""

    def __init__(self, results: Results, stage: Select, pairs: PairParts, seed: int) -> None:
        self.results, self.stage, self.pairs, self.seed = results, stage, pairs, seed
        self.build, self.outcomes, evaluate = results.build, results.outcomes, results.build.evaluate
        self.directions = evaluate.directions
        self.ranker = str(self.build.recipe.table("retrieve").get("ranker", "bm25"))
        self.choice = choice_of(stage.selector, evaluate, pairs)
        self.labels = {
            name: measure_label(name, direction, _MARKS.get(self.choice.part[name], ""))
            for name, direction in self.directions.items()
        }
        self.files = PageParts()
        self.chosen = [name for name in self.choice.subsets if name != NEGATIVE]
        if not self.chosen:
            raise ConfigError(
                f"report: the selector {stage.selector.name!r} does not define a subset of chosen pairs, so there is "
                "nothing to report; name another selector in the section [select] of the recipe"
            )
        # The charts show the largest subset; of equally large ones the last, because unions come last.
        self.sizes = self.pairs.count(*self.choice.subsets)
        self.main = max(reversed(self.chosen), key=self.sizes.__getitem__)
        self.summary = summarize(self.pairs, self.directions, self.choice.subsets, self.choice.tolerance)
        self.headline = None
        if results.held_out is not None and results.all_candidates is not None:
            changes = results.all_candidates.select("measure", all_candidates_change="change")
            rows = headline(self.summary, results.held_out)
            self.headline = rows.join(changes, on="measure", how="left", maintain_order="left")

    def page(self) -> str:
        """Return the whole page as HTML."""
        sections = list(self._sections())
        title = public_text(str(self.build.recipe.sections.get("title", self.build.recipe.name)))
        manifest = self.outcomes["pairs"].manifest
        try:
            made = parse_json(self.results.store.files.read(f"{manifest.step}-{manifest.key}/provenance.json"))
            when = f" The pairs were finished at {made['finished']} with askew {made['askew']}."
        except (OSError, ValueError, KeyError, TypeError):
            when = ""
        foot = paragraph(f"The points in the figures were sampled with the random seed {self.seed}.{when}")
        return document(f"{title}: report", self._head(), sections, [foot])

    def _sections(self) -> Iterator[Section]:
        first = headline_of_originals(self.results)
        body = [paragraph(tag("strong", first.sentence)), figure(first.chart(), "Lean in the results and by chance")]
        yield Section("lean", "Lean of the original queries", [*body, self.files.table(first.table())])
        if self.headline is not None:
            yield self._held_out(self.headline)
        yield self._making()
        yield self._subsets()
        if self.choice.those(DECIDES) != [self.choice.effectiveness]:
            yield self._against()
        if (across := self._across()) is not None:
            yield across
        yield self._improved()
        counted = counted_parts(self.results, self.pairs, self.main, self.seed)
        if counted is not None:
            yield self._counted(counted)
        yield self._tradeoff()
        found = outcome_table(self.pairs, self.main)
        if len(found):
            yield self._outcomes(found)
        if self.stage.selector.name == "boxes":
            yield self._refined()
        yield self._examples()
        groups = [name for _, names in counted_groups(self.build.evaluate) for name in names]
        limits = [NOT_BIAS, group_limit(list(dict.fromkeys(groups))), *LIMITS]
        yield Section("limits", "Limits of these numbers", [listed(limits)])

    def _head(self) -> list[Markup]:
        recipe, settings = self.build.recipe, self.outcomes["runs"].manifest.settings
        about = str(recipe.sections.get("about", "Pairs of an original query and its reformulation."))
        about = public(about, local_paths(recipe.sections))
        groups = counted_groups(self.build.evaluate)
        chosen = ", ".join(f"{name} {self.sizes[name]:,}" for name in self.choice.subsets)
        named = [(name.rpartition(".")[2], value) for name, value in sorted(flat_settings(settings).items())]
        searched = [
            f"{name} {value if isinstance(value, str) else json.dumps(value)}"
            for name, value in named
            if name != "ranker"
        ]
        rows: list[tuple[str, object]] = [
            ("recipe", code(recipe.name)), ("collection", code(public_text(self.build.resources.collection.id))),
            ("ranker", ", ".join([self.ranker, *searched])),
            ("pairs", f"{self.pairs.height:,} of {self.pairs.queries:,} queries"), ("subsets", chosen),
            ("groups", "; ".join(f"{', '.join(names)} (lexicon {one.id})" for one, names in groups) or "none"),
        ]  # fmt: skip
        judged = judged_note(self.stage, self.pairs)
        said, warned = [], []
        if self.headline is not None:
            wanted = self.choice.lean or self.choice.effectiveness
            first = self.headline.filter(subset=self.main, measure=wanted, figures=HELD_OUT)
            said = [held_out_sentence(row, self.labels[wanted]) for row in first.to_dicts()]
            found = map(str, build_cautions(self.stage.selector, self.build.evaluate, self.headline))
            warned = [f"{one[0].upper()}{one[1:]}." for one in found]
        said.append(sentence_of(self.choice) + (f" {judged}." if judged else ""))
        cautions = [listed(warned)] if warned else []
        return [paragraph(about, kind="lead"), *map(paragraph, said), *cautions, facts(rows)]

    def _making(self) -> Section:
        measures = [
            {"name": one.text, "signature": one.signature, "better": _BETTER[one.direction],
             "part": self.choice.part[one.text]}
            for one in self.build.evaluate.asked
        ]  # fmt: skip
        recipe = json.dumps(public_settings(self.build.recipe.sections), indent=2, ensure_ascii=False)
        head = [
            *columns("step", "rows in", "rows out", kind=CODE),
            Column("dropped, by reason", WORDS),
            Column("key", CODE),
        ]
        rows, counts = list[list[Cell]](), []
        for name, outcome in self.outcomes.items():
            one = outcome.manifest
            why = "; ".join(f"{count:,} {reason}" for reason, count in one.dropped.items())
            rows.append([name, one.rows_in, one.rows_out, why or n.NONE, one.key])
            counts.append({
                "step": name, "stage": one.stage, "key": one.key, "rows_in": one.rows_in, "rows_out": one.rows_out,
                "dropped": sum(one.dropped.values()), "reasons": why,
            })  # fmt: skip
        note = "The key of a step identifies its settings and inputs. Steps with the same key have the same output."
        kinds = {"measure": CODE, "better": WORDS, "role in the selection of pairs": WORDS, "signature": CODE}
        told = [Column(label, kind) for label, kind in kinds.items()]
        lines = [[one["name"], one["better"], one["part"], one["signature"]] for one in measures]
        body = [
            self.files.table(table("steps", "Steps of the run", head, rows, note), pl.DataFrame(counts)),
            self.files.table(table("measures", "Measures", told, lines), pl.DataFrame(list(measures))),
            folded("The recipe, including changes from the command line", recipe),
        ]
        return Section("run", "How these results were computed", body)

    def _subsets(self) -> Section:
        """Table 1 of Refairmulate: means before and after for each subset."""
        given = self.stage.selector.settings().get("boxes", {})
        named = {name: given.get(name) or _SUBSETS.get(name) for name in self.choice.subsets}
        about = {name: words for name, words in named.items() if words}
        groups = [self._before_after(part) for part in self.summary.partition_by("subset", maintain_order=True)]
        notes = [_METHOD, _IN_SAMPLE, labels_note(self.labels.values())]
        caption = "In-sample means of each measure for original queries (before) and reformulations (after), by subset"
        means = Table("subsets", caption, _BEFORE_AFTER, groups, notes)
        what = [listed([f"{name}: {words}" for name, words in about.items()])] if about else []
        body = [*what, self.files.table(means, self.summary)]
        if (placebo := self.results.placebo) is not None:
            head = columns("subset", "pairs", "on placebo lists", "least", "most", "share", "if any original counts")
            rows = [
                [row["subset"], row["pairs"], n.mean(row["placebo"], 1), row["fewest"], row["most"],
                 n.NONE if row["share"] is None else n.share(row["share"]), n.mean(row["untested"], 1)]
                for row in placebo.rows(named=True)
            ]  # fmt: skip
            caption = "Pairs of each subset, and of the same selection on placebo lists"
            shown = table("placebo", caption, head, rows, PLACEBO_LISTS)
            body.append(self.files.table(shown, placebo))
        return Section("subsets", "In-sample means before and after reformulation", body)

    def _held_out(self, headline: pl.DataFrame) -> Section:
        chosen = headline.filter(pl.col("subset").is_in(self.chosen))
        beside = {"in_sample": "in-sample", "all_candidates": "random"}
        groups = []
        for part in chosen.partition_by("subset", maintain_order=True):
            rows = [
                [self.labels[row["measure"]], row["figures"]]
                + _means(row, "held_out_queries" if row["figures"] == HELD_OUT else "queries")
                + [n.change(row[f"{name}_change"]) for name in beside]
                for row in part.rows(named=True)
            ]
            groups.append(Group(_subset_line(part), rows if part["pairs"].sum() else []))
        head = columns("measure", "figures", "before", "after", "change", "95% interval", *beside.values())
        notes = [_METHOD, _HELD_OUT, labels_note(self.labels.values())]
        if (chosen["figures"] == IN_SAMPLE).any():
            notes.insert(2, _ONLY_IN_SAMPLE)
        caption = "Held-out means of each measure for original queries (before) and reformulations (after), by subset"
        given = Table("held-out", caption, head, groups, notes)
        part = chosen.filter(subset=self.main)
        series = {HELD_OUT: self._intervals(part.filter(figures=HELD_OUT))}
        own = {column: pl.col(f"in_sample_{column}") for column in ("change", "low", "high")}
        series[IN_SAMPLE] = self._intervals(part.with_columns(**own))
        title = f"Subset {self.main}: change of the means from original queries to reformulations"
        drawn = self._change_figure("held-out-change", title, series)
        body = [self.files.table(given, chosen), figures(drawn)]
        return Section("held-out", "Means on held-out data, before and after reformulation", body)

    def _before_after(self, part: pl.DataFrame, line: str = "") -> Group:
        rows = [
            [
                self.labels[row["measure"]],
                row["pairs"],
                *_means(row),
                *(row[name.replace(" ", "_")] for name in _COUNTS),
            ]
            for row in part.rows(named=True)
        ]
        return Group(line or _subset_line(part), rows if part["pairs"].sum() else [])

    def _intervals(self, rows: pl.DataFrame) -> list[Estimate | None]:
        found = {row["measure"]: row for row in rows.iter_rows(named=True) if row["change"] is not None}
        ends = {name: (row["low"], row["high"]) if row["queries"] >= FEWEST else () for name, row in found.items()}
        changes = {name: Estimate(row["change"], *ends[name]) for name, row in found.items()}
        return [changes.get(name) for name in self.labels]

    def _change_figure(self, name: str, title: str, series: Mapping[str, list[Estimate | None]]) -> Markup:
        told = {name: column for name, column in series.items() if any(column)}
        if not told:
            return Markup()
        words = (
            "The change of the mean of each measure from original query to reformulation, in percent, with 95% "
            f"intervals. Shown: {', '.join(told)}."
        )
        about = About(name, title, words)
        drawn = dots(about, list(self.labels.values()), told, "change, in % of the mean of the original queries")
        return self.files.chart(about, drawn, "With 95% intervals.")

    def _against(self) -> Section:
        """Compare with selection by effectiveness only; one test for each measure, corrected over all measures."""
        allowed = self.stage.allowed_parts(self.pairs)
        ps: dict[str, float | None] = {}
        tables, agree = [], 0
        for name, direction in self.directions.items():
            pairs = against_effectiveness(allowed, self.main, self.choice.effectiveness, self.directions, [name])
            tables.append(against_table(pairs, {name: direction}))
            agree = int(pairs.get_column("agree").sum())
            there = pairs.select(f"other_{column_of(name)}", f"chosen_{column_of(name)}").drop_nulls()
            if len(there):
                # If zero is the best value of a measure, absolute values are compared and lower is better.
                way = Direction.DOWN if direction is Direction.ZERO else direction
                other, chosen = (column.to_numpy() for column in there.iter_columns())
                ps[name] = paired(other, chosen, way).p
        found = pl.concat(tables)
        corrected = holm_by_family(ps, set(self.build.evaluate.judged).__contains__)
        tested = found.with_columns(
            p=pl.Series([ps.get(name) for name in found["measure"]], dtype=pl.Float64),
            p_holm=pl.Series([corrected.get(name) for name in found["measure"]], dtype=pl.Float64),
        )
        rows = []
        for row in tested.iter_rows(named=True):
            means = [n.mean(row[f"{which}_mean"]) for which in ("old", "other", "chosen")]
            figures = [n.change(row["change"]), n.interval_of(row), n.p_value(row["p"]), n.p_value(row["p_holm"])]
            rows.append([self.labels[row["measure"]], row["queries"], *means, *figures])
        names = ("original", "by effectiveness", "chosen", "change", "95% interval", "p", "p (Holm)")
        head = columns("measure", "queries", *names)
        note = (
            f"By effectiveness: the candidate with the best value of {self.choice.effectiveness} for each query; of "
            "several such candidates, the first. Chosen: the candidate that the selector chose. Change: the relative "
            "change of the mean from the column 'by effectiveness' to the column 'chosen', in percent. p: the null "
            "hypothesis is that the two values of each query are exchangeable (randomization test). p (Holm): p after "
            "Holm's correction for the number of measures of effectiveness, or of lean."
        )
        caption = (
            "Means for the original queries, for candidates selected by effectiveness alone, and for the selected pairs"
        )
        given = table("against-effectiveness", caption, head, rows, note, labels_note(self.labels.values()))
        most = max(tested.get_column("queries").to_list(), default=0)
        intro = paragraph(
            f"For every query of the subset {self.main}, the table compares the selected candidate with the candidate "
            f"that has the best value of {self.choice.effectiveness}. For the column 'by effectiveness', candidates "
            f"are selected by effectiveness alone, as in the dataset Matches Made in Heaven. For {agree:,} of "
            f"{most:,} queries, the selected candidate is also the candidate in the column 'by effectiveness'."
        )
        return Section("against", "Against effectiveness alone", [intro, self.files.table(given, tested)])

    def _across(self) -> Section | None:
        """Figure 1 of Refairmulate: the chosen pairs with other rankers; None if the build has no such ranker."""
        if not any(name.startswith(CROSS) for name in self.outcomes):
            return None
        chosen = self.results.chosen_keys(self.chosen)
        rankers = self.results.scores_under(chosen)
        if not rankers:
            return None
        found = cross_table(chosen, rankers, self.directions, self.chosen)
        groups = []
        for part in found.partition_by("ranker", "subset", maintain_order=True):
            row = part.row(0, named=True)
            lost = f"; not scored by this ranker: {row['no_original']:,} originals, {row['no_variant']:,} variants"
            line = f"{row['ranker']}, {row['subset']}: {row['chosen']:,} pairs"
            groups.append(self._before_after(part, line + (lost if row["no_original"] or row["no_variant"] else "")))
        notes = [_METHOD, labels_note(self.labels.values(), self.ranker)]
        caption = f"Means of each measure for the selected pairs, with rankers other than {self.ranker}"
        given = Table("cross-ranker", caption, _BEFORE_AFTER, groups, notes)
        role = (
            f". The selection of the pairs also used the results of {', '.join(self.stage.across)}"
            if self.stage.across
            else ", which was not used to select the pairs"
        )
        intro = paragraph(
            f"The pairs were selected by the results of {self.ranker}. In this section, the original query and the "
            f"reformulation of each pair are searched with another ranker{role}."
        )
        drawn = []
        for part in found.partition_by("subset", maintain_order=True):
            subset, names = part.item(0, "subset"), part.get_column("ranker").unique(maintain_order=True)
            series = {name: self._intervals(part.filter(ranker=name)) for name in names}
            title = f"Subset {subset}, other rankers: change of the means from original queries to reformulations"
            drawn.append(self._change_figure(slug(subset, self.files.charts, "cross-ranker"), title, series))
        return Section("rankers", "Other rankers", [intro, self.files.table(given, found), figures(*drawn)])

    def _improved(self) -> Section:
        """Figure 2 of Refairmulate: the sorted gains of the queries, and the shares that improve and worsen."""
        gains = {name: query_gains(self.pairs, self.main, name) for name in self.directions}
        shares = shares_of(gains, self.choice.tolerance)
        rows, drawn = [], []
        for row in shares.iter_rows(named=True):
            cells = [text for side in _QUERIES for text in _shares(row, side)[1:]]
            rows.append([self.labels[row["measure"]], row["queries"], *cells])
            if row["queries"]:
                drawn.append(self._improved_figure(row, gains[row["measure"]]))
        labels_of = [label for side in _QUERIES for label in (side.replace("_", " "), "95% interval")]
        head = columns("measure", "queries", *labels_of)
        note = (
            "Each percentage is a share of the queries in the column 'queries', with a 95% Wilson interval. The gain "
            "of a query with several reformulations is the mean of their gains."
        )
        caption = f"Queries of the subset {self.main} that the reformulation improves, leaves unchanged or worsens"
        given = table("improved-worsened", caption, head, rows, note, labels_note(self.labels.values()))
        return Section(
            "improved-worsened", "Improved and worsened queries", [self.files.table(given, shares), figures(*drawn)]
        )

    def _improved_figure(self, row: Row, gains: Floats) -> Markup:
        label = self.labels[row["measure"]]
        said = {side: side.partition("_")[0] for side in _QUERIES}
        improved, unchanged, worsened = (f"{said[side]} {n.share(row[f'{side}_share'])}" for side in _QUERIES)
        words = f"{improved}, {unchanged}, {worsened} of {row['queries']:,} queries."
        told = (
            f"For each query, the chart shows the gain of the reformulation over the original query in {label}. The "
            f"gains are sorted from the highest to the lowest. A gain above zero is an improvement. {words}"
        )
        about = About(slug(row["measure"], self.files.charts, "improved-worsened"), f"Gains on {label}", told)
        return self.files.chart(about, sorted_gains(about, gains, "gain", [improved, worsened]), words)

    def _tradeoff(self) -> Section:
        """Effectiveness against lean: pairs as points, and tables of the methods; or effectiveness alone."""
        sides = [name for name in dict.fromkeys([self.choice.effectiveness, self.choice.lean]) if name is not None]
        methods = method_table(self.pairs, self.main, {name: self.directions[name] for name in sides})
        if len(sides) == 1:
            return Section("methods", "Methods", self._method_tables(methods, sides))
        effectiveness, lean = (self.labels[name] for name in sides)
        clouds, words = clouds_of(self.pairs, self.main, sides[0], sides[1], self.seed)
        told = (
            "Each point is a pair of an original query and its reformulation. Points further right are better by "
            f"{lean}; higher points are better by {effectiveness}. {words}"
        )
        about = About("tradeoff", "Gains in effectiveness and in lean (a gain in lean is less lean)", told)
        drawn = scatter(about, clouds, f"gain on {lean}", f"gain on {effectiveness}", size=3, opacity=0.55, zero=True)
        chart = figures(self.files.chart(about, drawn, words))
        return Section("trade-off", "Effectiveness and lean", [chart, *self._method_tables(methods, sides)])

    def _method_tables(self, methods: pl.DataFrame, sides: Sequence[str]) -> list[Markup]:
        """How often each method is chosen, and the effect of its candidates (all, and chosen) on each measure."""
        found = methods.unique("method", keep="first", maintain_order=True)
        rows = [
            [row["method"], n.count(row["pairs"]), n.count(row["method_queries"]), *_shares(row, "won")]
            for row in found.iter_rows(named=True)
        ]
        head = columns("method", "candidates", "queries", "chosen for", "share", "95% interval", kind=CODE)
        note = (
            "Queries: the number of queries that the method reformulated. Chosen for: the number of these queries for "
            f"which a reformulation by the method is in the subset {self.main}. Share: the number 'chosen for' "
            "divided by the number of queries, with a 95% Wilson interval."
        )
        shares = found.select("method", "pairs", "method_queries", "won", "won_share", "won_low", "won_high")
        caption = "Number of queries for which a reformulation by the method was selected"
        used = self.files.table(table("methods-chosen", caption, head, rows, note), shares)
        groups = []
        for side in sides:
            parts = methods.filter(measure=side).partition_by("method", maintain_order=True)
            lines = []
            for part in parts:
                cells = [text for row in part.rows(named=True) for text in (n.count(row["pairs"]), *_means(row))]
                lines.append([part.item(0, "method"), *cells])
            groups.append(Group(self.labels[side], lines))
        values = ("before", "after", "change", "95% interval")
        head = columns("method", "candidates", *values, "chosen", *values, kind=CODE)
        note = (
            "The column 'candidates' and the four columns after it are for all candidate reformulations of a method. "
            "The column 'chosen' and the four columns after it are for the candidates of the method that were chosen. "
            "The intervals treat the queries as a random sample."
        )
        caption = "Means of each measure before and after reformulation, by method"
        return [used, self.files.table(Table("methods", caption, head, groups, [note]), methods)]

    def _outcomes(self, found: pl.DataFrame) -> Section:
        given = self.stage.selector.settings()
        sides = [named_measures(given.get(name, []), self.directions) for name in ("effectiveness", "bias")]
        measures = joined(sides[0] or (self.choice.effectiveness,))
        if sides[1]:
            measures = f"{measures} for effectiveness and {joined(sides[1])} for lean"
        groups = []
        for part in found.partition_by("of", maintain_order=True):
            cells = {}
            for row in part.iter_rows(named=True):
                share = f"{n.share(row['share'])} {n.share_interval(row['low'], row['high'])}"
                cells[row["outcome"]] = f"{n.count(row['pairs'])} = {share}"
            rows = [[words, *(cells[f"{side}-{lean}"] for lean in _COLUMNS)] for side, words in _ROWS.items()]
            groups.append(Group(f"{part.item(0, 'of')}: {part.item(0, 'n'):,} pairs", rows))
        note = (
            f"A pair is an original query and its reformulation. The outcome of a pair is decided by {measures}. Each "
            "cell has the number of pairs with this outcome, their share of all pairs, and the 95% interval of the "
            "share."
        )
        shown = Table("outcomes", "Nine outcomes", columns("", *_COLUMNS.values()), groups, [note])
        return Section("outcomes", "Outcomes", [self.files.table(shown, found)])

    def _refined(self) -> Section:
        """Return the tables of RePair, over all queries and all candidates, also those in no box (subset of pairs)."""
        measure = self.choice.effectiveness
        direction = self.directions[measure]
        allowed = self.stage.allowed_parts(self.pairs)
        hardest = best_of(allowed, measure, direction)
        rankers = self.results.scores_under(hardest, HARD) or self.results.scores_under(hardest)
        every = self.stage.allowed_parts(query_parts(self.results.store, self.outcomes["scores"].manifest))
        originals = every.filter(pl.col("method") == ORIGINAL).map([column_of(measure)], lambda part: part)
        body = [
            heading("Refined queries"), self._boxes(originals.get_column(column_of(measure)).to_numpy(), measure),
            heading("Hard queries"), self._hard(hard_table(allowed, rankers, measure, direction), measure),
        ]  # fmt: skip
        return Section("refined", "Refined and hard queries, as in the RePair paper", body)

    def _boxes(self, originals: Floats, measure: str) -> Markup:
        """Table 4 of RePair; ``originals`` are the values of all originals."""
        found = refined_table(self.pairs, originals, self.chosen, measure, self.directions[measure])
        head = columns("box", "originals", "mean of all", "refined", "share", "95% interval", "mean words", "before",
                       "after", "change", "95% interval", "value 1", "share", "95% interval", kind=CODE)  # fmt: skip
        rows = [
            [row["box"], n.count(row["originals"]), n.mean(row["all_mean"]), *_shares(row, "refined"),
             n.mean(row["mean_words"], 2), *_means(row, "refined"), *_shares(row, "oracles")]
            for row in found.iter_rows(named=True)
        ]  # fmt: skip
        note = (
            "Candidates are reformulations of an original query; a box is a subset of the candidates. Refined: number "
            "of original queries that have a candidate in the box. The columns 'mean words', 'before', 'after' and "
            "'change' are for these original queries only. If several candidates of an original query are in the box, "
            f"only the candidate with the best {measure} is used. Mean words: mean number of words of the used "
            f"candidates. After: mean {measure} of the used candidates. Value 1: number of used candidates with a "
            f"{measure} of 1. Each share is a share of all original queries, with its 95% Wilson interval."
        )
        caption = f"Boxes (subsets of the candidates) by {measure}, as in Table 4 of the RePair paper"
        return self.files.table(table("boxes", caption, head, rows, note), found)

    def _hard(self, found: pl.DataFrame, measure: str) -> Markup:
        ranker = self.ranker
        head = columns("hard if", "queries", "hard", "share", "95% interval", kind=WORDS)
        note = (
            "Only original queries that have a candidate reformulation are counted. A query is hard if it meets the "
            f"condition in the column 'hard if'. The condition uses values of {measure} from searches with {ranker}. "
            "Intervals are Wilson intervals."
        )
        if "ranker" in found.columns:
            told = ("scored by both", f"originals, {ranker}", "originals, other", f"best candidates, {ranker}",
                    "best candidates, other", "improved, other", "share", "95% interval")  # fmt: skip
            head += [Column("other ranker", CODE), *map(Column, told)]
            note += (
                f" The best candidate of a query has the best {measure} with {ranker}. Scored by both: number of hard "
                f"queries that have values with {ranker} and with the ranker in the column 'other ranker'. The columns "
                "after 'scored by both' use only these hard queries. The columns 'originals' and 'best candidates' "
                f"have the mean {measure} with {ranker} and with the other ranker. Improved, other: number of these "
                f"hard queries whose best candidate has a better {measure} than the original query, both searched "
                "with the other ranker."
            )
        rows = []
        for row in found.iter_rows(named=True):
            cells = [_WHICH[row["which"]], n.count(row["queries"]), *_shares(row, "hard")]
            if "ranker" in row:
                means = [n.mean(row[f"{name}_mean"]) for name in ("old", "other_old", "new", "other_new")]
                cells += [row["ranker"], n.count(row["scored"]), *means, *_shares(row, "improved")]
            rows.append(cells)
        caption = f"Hard queries by {measure}, as in Table 5 of the RePair paper"
        return self.files.table(table("hard", caption, head, rows, note), found)

    def _counted(self, found: CountedParts) -> Section:
        """A table of the share of each part and what it adds to the mean (net), for original and chosen queries."""
        rows = []
        for kind, name in found.data.select("kind", "name").unique(maintain_order=True).rows():
            cells = [f"{kind}: {n.part_name(name)}"]
            for side in ("original", "chosen"):
                here = found.data.filter(queries=side, kind=kind, name=name)
                if not len(here):
                    cells += ["", "", ""]
                    continue
                one = here.row(0, named=True)
                cells += [n.share(one["share"]), n.share_interval(one["low"], one["high"]), n.mean(one["net"])]
            rows.append(cells)
        head = columns("part", "original: share", "95% interval", "net", "chosen: share", "95% interval", "net")
        caption = (
            f"How much each kind of counted word contributes to the mean of {found.measure} over "
            f"{found.queries:,} queries"
        )
        who = (
            ' Each row "who" is a kind of person or thing that counted words refer to. The net values of the rows '
            '"who" '
            "also add up to the mean of the measure. The values of these rows are corrected for known errors of the "
            "model."
            if "who" in found.data["kind"].to_list()
            else ""
        )
        intro = paragraph(
            f'A model ({found.resolver}) estimates all values. Each row "why" is a reason why counted words are in the '
            "results. Net: what the words of a row add to the mean of the measure. The net values of the rows "
            f'"why" add up to this mean.{who} The row "on topic" includes stereotypes, because too few stereotypes are '
            "labeled for a separate estimate."
        )
        shown = self.files.table(table("counted", caption, head, rows), found.data)
        return Section("counted", "What the measure of lean counts", [intro, shown])

    def _examples(self) -> Section:
        effectiveness, lean = self.choice.effectiveness, self.choice.lean or self.choice.effectiveness
        chosen, rest = self.pairs.filter(self.main), self.pairs.filter(~pl.col(self.main))
        by, label = list(dict.fromkeys([lean, effectiveness])), self.labels[lean]
        shown = list(dict.fromkeys([effectiveness, lean]))
        losses: dict[str, pl.DataFrame] = {}
        for name in self.choice.those(UNUSED, NAMES):
            lost = extreme_pairs(chosen, [name], worst=True, shown=[*shown, name])
            if len(lost):
                losses[f"{self.main}: largest losses on {self.labels[name]} (reported only)"] = lost
                shown = list(dict.fromkeys([*shown, name]))
                break
        tables = {
            f"{self.main}: largest gains on {label}": extreme_pairs(chosen, by, shown=shown), **losses,
            f"Pairs that are not in the subset {self.main}, largest loss on {label} first": extreme_pairs(
                rest, by, worst=True, shown=shown
            ),
        }  # fmt: skip
        head = [Column("original", QUOTE), Column("reformulated", QUOTE), Column("method", CODE)]
        head += [Column(label) for label in (self.labels[name] for name in shown)]
        body = [
            paragraph(
                "A pair is an original query and its reformulation. The tables list the pairs with the largest gains "
                "and losses, which are not typical. Scores are given as: score of the original query → score of the "
                "reformulation."
            )
        ]
        for number, (caption, rows) in enumerate(tables.items(), 1):
            cells = [
                [row["original_text"], row["text"], row["method"]]
                + [f"{n.mean(row[old_column(name)], 3)} → {n.mean(row[new_column(name)], 3)}" for name in shown]
                for row in rows.iter_rows(named=True)
            ]
            body.append(self.files.table(table(f"examples-{number}", caption, head, cells)))
        return Section("examples", "Examples", body)
