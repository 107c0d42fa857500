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
from askew.core.defaults import HELD_OUT
from askew.core.errors import ConfigError, DataError
from askew.core.groups import resolver_id
from askew.core.measure import Direction, column_of, gain_column, new_column, old_column
from askew.core.protocols import SelectorPlugin
from askew.core.ranking import Ints
from askew.measures.counts import DocumentSource, gather_texts
from askew.measures.decompose import decompose_run, has_parts
from askew.measures.mentions import can_mark
from askew.measures.relevance import RelevanceSource
from askew.measures.requested import listed as joined
from askew.measures.statistics.intervals import gain_bounds, mean_test
from askew.measures.statistics.significance import holm, two_sided_p
from askew.pairs.boxes import agg_all, best_candidates
from askew.pairs.dataset.card import Caution, cautions
from askew.pairs.figures import (
    CROSS,
    HARD,
    PAIRS,
    Results,
    candidates_of,
    counted_groups,
    first_measures,
    headline,
    named_measures,
    sides_of,
)
from askew.pairs.gains import COLUMNS, ORIGINAL, PairParts, find_measures
from askew.pairs.resources import query_parts
from askew.pairs.sections import (
    CountedParts,
    Refined,
    Side,
    against_section,
    counted_section,
    cross_section,
    examples_section,
    held_out_section,
    held_out_sentence,
    improved_section,
    limits_section,
    making_section,
    methods_section,
    outcomes_section,
    refined_section,
    subsets_section,
    tradeoff_section,
)
from askew.pairs.stages import NEGATIVE, Evaluate, Select, judged_note, lists_of, with_originals
from askew.pairs.summary import buckets_of, summarize
from askew.pairs.tables import (
    against_effectiveness,
    against_table,
    best_of,
    cross_table,
    extreme_pairs,
    hard_table,
    method_table,
    outcome_table,
    queries_table,
    query_gains,
    refined_table,
    shares_of,
)
from askew.report.charts import Points
from askew.report.markup import Markup
from askew.report.page import (
    PageParts,
    Section,
    check_formats,
    check_out,
    code,
    document,
    facts,
    listed,
    paragraph,
    write_report,
)
from askew.report.table import measure_label


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
    """Whether two measures have equal values for every pair."""
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
    clouds, said, lot, lost = [], [], "", pairs.height
    for name, part in ((NOT_CHOSEN, known.filter(~pl.col(main))), (main, known.filter(main))):
        n = part.height
        drawn = thinned(n, MOST_POINTS, seed)
        points = _rows_at(part, gains, drawn)
        x, y = (points.get_column(one).to_numpy() for one in gains)
        clouds.append(Points(name, x, y))
        amount = f"all {n:,}"
        if len(drawn) < n:
            amount, lot = f"{len(drawn):,} of {n:,}", f", sampled with seed {seed}"
        said.append(
            f"{amount} pairs that were not chosen" if name == NOT_CHOSEN else f"{amount} pairs of the subset {name!r}"
        )
        lost -= n
    unscored = f" {lost:,} pairs have no score on one of the two measures." if lost else ""
    return clouds, f"The figure shows {' and '.join(said)}{lot}.{unscored}"


def _rows_at(pairs: PairParts, columns: list[str], places: Ints) -> pl.DataFrame:
    """Return the rows at the given positions, which must be sorted."""
    found, start = [], 0
    for frame in pairs.frames(columns):
        first, last = np.searchsorted(places, [start, start + frame.height])
        found.append(frame[places[first:last] - start])
        start += frame.height
    return pl.concat(found)


def thinned(n: int, most: int, seed: int = 0) -> Ints:
    """Return the positions of all n items, or of a sample of ``most``, in order."""
    if n <= most:
        return np.arange(n)
    # Without a permutation of all positions, which would take memory: there may be many.
    return np.sort(np.random.default_rng([seed, n, 3]).choice(n, most, replace=False, shuffle=False))


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


def _said(settings: Mapping[str, Any], but: Sequence[str] = ()) -> list[str]:
    """Return settings as "name value" texts; nested settings are flattened."""
    found = []
    for name, value in sorted(settings.items()):
        if isinstance(value, Mapping):
            found += _said(value, but)
        elif name not in but:
            found.append(f"{name} {value if isinstance(value, str) else json.dumps(value)}")
    return found


class _Report:
    """Makes the page, section by section."""

    def __init__(self, results: Results, stage: Select, pairs: PairParts, seed: int) -> None:
        self.results, self.stage, self.pairs, self.seed = results, stage, pairs, seed
        self.build, self.outcomes, evaluate = results.build, results.outcomes, results.build.evaluate
        self.directions, self.bounds = evaluate.directions, evaluate.bounds
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
        self.summary = summarize(
            self.pairs, self.directions, self.choice.subsets, self.bounds, tolerance=self.choice.tolerance
        )
        self.headline = None
        if results.held_out is not None:
            changes = candidates_of(pairs, evaluate).select("measure", all_candidates_change="change")
            rows = headline(self.summary, results.held_out)
            self.headline = rows.join(changes, on="measure", how="left", maintain_order="left")

    def page(self) -> str:
        """Return the whole page as HTML."""
        sections = list(self._sections())
        title = public_text(str(self.build.recipe.sections.get("title", self.build.recipe.name)))
        manifest = self.outcomes["pairs"].manifest
        try:
            made = json.loads(self.results.store.files.read(f"{manifest.step}-{manifest.key}/provenance.json"))
            when = f" The pairs were finished at {made['finished']} with askew {made['askew']}."
        except (OSError, ValueError, KeyError, TypeError):
            when = ""
        foot = paragraph(f"The points in the figures were sampled with the random seed {self.seed}.{when}")
        return document(f"{title}: report", self._head(), sections, [foot])

    def _sections(self) -> Iterator[Section]:
        if self.headline is not None:
            yield held_out_section(self.files, self.headline, self.labels, self.chosen, self.main)
        yield self._making()
        yield self._subsets()
        if self.choice.those(DECIDES) != [self.choice.effectiveness]:
            yield self._against()
        yield from self._across()
        gains = {name: query_gains(self.pairs, self.main, name) for name in self.directions}
        shares = shares_of(gains, self.choice.tolerance)
        yield improved_section(self.files, shares, gains, self.labels, self.main)
        counted = counted_parts(self.results, self.pairs, self.main, self.seed)
        if counted is not None:
            yield counted_section(self.files, counted)
        yield self._tradeoff()
        found = outcome_table(self.pairs, self.main)
        if len(found):
            given = self.stage.selector.settings()
            sides = [named_measures(given.get(name, []), self.directions) for name in ("effectiveness", "bias")]
            decides = joined(sides[0] or (self.choice.effectiveness,))
            words = f"{decides} for effectiveness and {joined(sides[1])} for lean" if sides[1] else decides
            yield outcomes_section(self.files, found, words)
        if self.stage.selector.name == "boxes":
            measure = self.choice.effectiveness
            best = best_of(self.stage.allowed_parts(self.pairs), measure, self.directions[measure])
            yield self._refined(self.results.scores_under(best, HARD) or self.results.scores_under(best))
        yield self._examples()
        groups = [name for _, names in counted_groups(self.build.evaluate) for name in names]
        yield limits_section(list(dict.fromkeys(groups)))

    def _head(self) -> list[Markup]:
        recipe, settings = self.build.recipe, self.outcomes["runs"].manifest.settings
        about = str(recipe.sections.get("about", "Pairs of an original query and its reformulation."))
        about = public(about, local_paths(recipe.sections))
        groups = counted_groups(self.build.evaluate)
        chosen = ", ".join(f"{name} {self.sizes[name]:,}" for name in self.choice.subsets)
        rows: list[tuple[str, object]] = [
            ("recipe", code(recipe.name)), ("collection", code(public_text(self.build.resources.collection.id))),
            ("ranker", ", ".join([self.ranker, *_said(settings, but=("ranker",))])),
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
        steps = {name: one.manifest for name, one in self.outcomes.items()}
        measures = [
            {"name": one.text, "signature": one.signature, "better": _BETTER[one.direction],
             "part": self.choice.part[one.text]}
            for one in self.build.evaluate.asked
        ]  # fmt: skip
        recipe = json.dumps(public_settings(self.build.recipe.sections), indent=2, ensure_ascii=False)
        return making_section(self.files, steps, measures, recipe)

    def _subsets(self) -> Section:
        given = self.stage.selector.settings().get("boxes", {})
        about = {name: given.get(name) or _SUBSETS.get(name) for name in self.choice.subsets}
        told = {name: words for name, words in about.items() if words}
        return subsets_section(self.files, self.summary, self.labels, told, self.chosen)

    def _against(self) -> Section:
        """Compare with selection by effectiveness only; one test for each measure, corrected over all measures."""
        allowed = self.stage.allowed_parts(self.pairs)
        ps: dict[str, float] = {}
        tables, agree = [], 0
        for name, direction in self.directions.items():
            rows = against_effectiveness(allowed, self.main, self.choice.effectiveness, self.directions, [name])
            tables.append(against_table(rows, {name: direction}, self.bounds))
            agree = int(rows.get_column("agree").sum())
            there = rows.select(f"other_{column_of(name)}", f"chosen_{column_of(name)}").drop_nulls()
            if len(there):
                # If zero is the best value of a measure, absolute values are compared and lower is better.
                to_zero = direction is Direction.ZERO
                way = Direction.DOWN if to_zero else direction
                other, chosen = (column.to_numpy() for column in there.iter_columns())
                p = two_sided_p(mean_test(way.gain(other, chosen), gain_bounds(self.bounds[name], to_zero)))
                ps |= {} if p is None else {name: p}
        found = pl.concat(tables)
        corrected = dict(zip(ps, holm(list(ps.values())), strict=True))
        tested = found.with_columns(
            p=pl.Series([ps.get(name) for name in found["measure"]], dtype=pl.Float64),
            p_holm=pl.Series([corrected.get(name) for name in found["measure"]], dtype=pl.Float64),
        )
        return against_section(self.files, tested, self.labels, self.main, self.choice.effectiveness, agree)

    def _across(self) -> Iterator[Section]:
        """Yield the section on the chosen pairs with other rankers, if the build has any."""
        if not any(name.startswith(CROSS) for name in self.outcomes):
            return
        chosen = self.results.chosen_keys(self.chosen)
        rankers = self.results.scores_under(chosen)
        if rankers:
            found = cross_table(chosen, rankers, self.directions, self.chosen, self.bounds)
            yield cross_section(self.files, found, self.labels, self.ranker, list(self.stage.across))

    def _side(self, measure: str) -> Side:
        return Side(measure, self.labels[measure], self.directions[measure])

    def _tradeoff(self) -> Section:
        effectiveness, lean = self.choice.effectiveness, self.choice.lean
        if lean is None or lean == effectiveness:
            methods = method_table(self.pairs, self.main, {effectiveness: self.directions[effectiveness]}, self.bounds)
            return methods_section(self.files, methods, self._side(effectiveness), self.main)
        both = {name: self.directions[name] for name in (effectiveness, lean)}
        methods = method_table(self.pairs, self.main, both, self.bounds)
        clouds, words = clouds_of(self.pairs, self.main, effectiveness, lean, self.seed)
        sides = self._side(effectiveness), self._side(lean)
        return tradeoff_section(self.files, clouds, words, methods, sides, self.main)

    def _refined(self, rankers: Mapping[str, pl.DataFrame]) -> Section:
        """Return the tables of RePair, over all queries and all candidates, also those in no box (subset of pairs)."""
        measure, resources = self.choice.effectiveness, self.build.resources
        direction = self.directions[measure]
        judged = resources.judgements.table if resources.collection.has_judgements else None
        queries = queries_table(
            pl.DataFrame(pl.from_arrow(resources.queries.table)), len(resources.doc_ids),
            None if judged is None else pl.DataFrame(pl.from_arrow(judged)),
        )  # fmt: skip
        every = self.stage.allowed_parts(query_parts(self.results.store, self.outcomes["scores"].manifest))
        missing = str(self.stage.selector.settings().get("missing", "drop"))
        originals = every.filter(pl.col("method") == ORIGINAL).map([column_of(measure)], lambda part: part)
        values = originals.get_column(column_of(measure)).to_numpy()

        def best(scores: pl.DataFrame) -> pl.DataFrame:
            table = agg_all(with_originals(scores), measure, self.ranker, direction, missing).table
            return best_candidates(table).select("value", "value_")

        found = Refined(
            queries,
            refined_table(self.pairs, values, self.chosen, measure, direction, self.bounds[measure]),
            buckets_of(every.map([*COLUMNS, column_of(measure)], best)),
            hard_table(self.stage.allowed_parts(self.pairs), rankers, measure, direction),
        )
        return refined_section(self.files, found, measure, self.ranker, public_text(resources.collection.id))

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
        return examples_section(self.files, tables, {name: self.labels[name] for name in shown})
