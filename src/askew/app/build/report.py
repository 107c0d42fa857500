"""Write the report of a finished build: one self-contained page, and its tables and charts as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from askew.app.build.across import NEGATIVE
from askew.app.build.counted import counted_parts
from askew.app.build.other_rankers import (
    CROSS,
    HARD,
    chosen_keys,
    named_measures,
    scores_under,
)
from askew.app.build.pairs import Select, judged_note, with_originals
from askew.app.build.points import clouds_of
from askew.app.build.prepare import Build
from askew.app.build.rows import query_parts, step_parts
from askew.app.build.selection_roles import (
    DECIDES,
    GROUPS,
    NAMES,
    TWIN,
    UNUSED,
    build_cautions,
    choice_of,
    sentence_of,
)
from askew.app.build.summary import candidates_of, counted_groups, headline, held_out_of
from askew.app.build.variants import ORIGINAL
from askew.app.scoring.comparable import listed as joined
from askew.core.errors import ConfigError, DataError
from askew.core.figures import HELD_OUT
from askew.core.local import local_paths, public, public_settings, public_text
from askew.core.measure import Direction, column_of
from askew.engine.run import StepOutcome
from askew.engine.store import Store
from askew.publish.page.counted import counted_section
from askew.publish.page.document import Section, code, document, facts, listed, paragraph
from askew.publish.page.making import MeasureDescription, StepFacts, limits_section, making_section
from askew.publish.page.markup import Markup
from askew.publish.page.parts import PageParts, measure_label
from askew.publish.page.pictures import check_formats
from askew.publish.page.refined import Refined, refined_section
from askew.publish.page.selection import (
    against_section,
    cross_section,
    held_out_section,
    held_out_sentence,
    improved_section,
    subsets_section,
)
from askew.publish.page.tradeoff import Side, examples_section, methods_section, outcomes_section, tradeoff_section
from askew.publish.page.writing import check_out, write_report
from askew.selectors.boxes import agg_all, best_candidates
from askew.selectors.pairs import COLUMNS
from askew.selectors.refined import best_of, hard_table, queries_table, refined_table
from askew.selectors.summary import buckets_of, summarize
from askew.selectors.tables import (
    against_effectiveness,
    against_table,
    cross_table,
    extreme_pairs,
    method_table,
    outcome_table,
    query_gains,
    shares_of,
)
from askew.statistics.intervals import gain_bounds, mean_test
from askew.statistics.significance import holm, two_sided_p

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
    build: Build, store: Store, outcomes: Mapping[str, StepOutcome], out: Path, *,
    figures: Sequence[str] = (), latex: bool = False, seed: int = 0,
) -> Reported:  # fmt: skip
    """Write report.html and tables/*.csv to a folder; on request figures/*.svg or *.png, and tables/*.tex.

    Steps named ``cross-NAME`` have the scores of variants with the ranker NAME. For hard queries, steps named
    ``hard-NAME`` are read instead, if there are any. The same store gives the same bytes.
    """
    check_formats(figures)
    check_out(out)
    stage = build.select
    if stage is None:
        raise ConfigError(f"report: the recipe {build.recipe.name!r} chooses no pairs; it needs a section [select]")
    if not outcomes["pairs"].manifest.parts:
        raise DataError(
            "report: there are no pairs to report on; askew run --json shows how many rows each step dropped"
        )
    report = _Report(build, store, outcomes, stage, seed)
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

    def __init__(
        self, build: Build, store: Store, outcomes: Mapping[str, StepOutcome], stage: Select, seed: int
    ) -> None:
        self.build, self.store, self.outcomes, self.stage, self.seed = build, store, outcomes, stage, seed
        self.directions, self.bounds = build.evaluate.directions, build.evaluate.bounds
        self.ranker = str(build.recipe.table("retrieve").get("ranker", "bm25"))
        self.pairs = step_parts(store, outcomes["pairs"].manifest)
        self.choice = choice_of(stage.selector, build, self.pairs)
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
        held_out = held_out_of(store, outcomes, stage, build.evaluate)
        self.headline = None if held_out is None else self._beside_all(headline(self.summary, held_out))

    def _beside_all(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add the change of each measure over all candidates."""
        every = candidates_of(self.pairs, self.build.evaluate)
        changes = every.select("measure", pl.col("change").alias("all_candidates_change"))
        return rows.join(changes, on="measure", how="left", maintain_order="left")

    def page(self) -> str:
        """Return the whole page as HTML."""
        sections = list(self._sections())
        title = public_text(str(self.build.recipe.sections.get("title", self.build.recipe.name)))
        return document(f"{title}: report", self._head(), sections, self._foot())

    def _sections(self) -> Iterator[Section]:
        if self.headline is not None:
            yield held_out_section(self.files, self.headline, self.labels, self.chosen, self.main)
        yield self._making()
        yield self._subsets()
        if self.choice.those(DECIDES) != [self.choice.effectiveness]:
            yield self._against()
        steps = self.build, self.store, self.outcomes
        yield from self._across()
        yield self._improved()
        counted = counted_parts(*steps, self.pairs, self.main, self.seed)
        if counted is not None:
            yield counted_section(self.files, counted)
        yield self._tradeoff()
        found = outcome_table(self.pairs, self.main)
        if len(found):
            yield outcomes_section(self.files, found, self._outcome_measures())
        if self.stage.selector.name == "boxes":
            measure = self.choice.effectiveness
            best = best_of(self.stage.allowed_parts(self.pairs), measure, self.directions[measure])
            yield self._refined(scores_under(*steps, best, HARD) or scores_under(*steps, best))
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
        said = [*self._first_figure(), sentence_of(self.choice) + (f" {judged}." if judged else "")]
        return [paragraph(about, kind="lead"), *map(paragraph, said), *self._cautions(), facts(rows)]

    def _cautions(self) -> list[Markup]:
        """Return a list of what the held-out values do not show."""
        if self.headline is None:
            return []
        found = build_cautions(self.stage.selector, self.build.evaluate, self.headline)
        return [listed([f"{str(one)[0].upper()}{str(one)[1:]}." for one in found])] if found else []

    def _first_figure(self) -> list[str]:
        """Return the held-out change of the measure of lean, or of effectiveness if there is none."""
        wanted = self.choice.lean or self.choice.effectiveness
        rows = [] if self.headline is None else self.headline.filter(subset=self.main, measure=wanted).to_dicts()
        return [held_out_sentence(row, self.labels[wanted]) for row in rows if row["figures"] == HELD_OUT]

    def _foot(self) -> list[Markup]:
        manifest = self.outcomes["pairs"].manifest
        try:
            made = json.loads(self.store.files.read(f"{manifest.step}-{manifest.key}/provenance.json"))
            when = f" The pairs were finished at {made['finished']} with askew {made['askew']}."
        except (OSError, ValueError, KeyError, TypeError):
            when = ""
        return [paragraph(f"The points in the figures were sampled with the random seed {self.seed}.{when}")]

    def _making(self) -> Section:
        steps = [
            StepFacts(name, one.manifest.stage, one.manifest.key, one.manifest.rows_in, one.manifest.rows_out,
                      one.manifest.dropped)
            for name, one in self.outcomes.items()
        ]  # fmt: skip
        measures = [
            MeasureDescription(one.text, one.signature, _BETTER[one.direction], self.choice.part[one.text])
            for one in self.build.evaluate.asked
        ]
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
        chosen = chosen_keys(self.store, self.outcomes, self.chosen)
        rankers = scores_under(self.build, self.store, self.outcomes, chosen)
        if rankers:
            found = cross_table(chosen, rankers, self.directions, self.chosen, self.bounds)
            yield cross_section(self.files, found, self.labels, self.ranker, list(self.stage.across))

    def _improved(self) -> Section:
        gains = {name: query_gains(self.pairs, self.main, name) for name in self.directions}
        return improved_section(self.files, shares_of(gains, self.choice.tolerance), gains, self.labels, self.main)

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

    def _outcome_measures(self) -> str:
        given = self.stage.selector.settings()
        sides = [named_measures(given.get(name, []), self.directions) for name in ("effectiveness", "bias")]
        sides[0] = sides[0] or (self.choice.effectiveness,)
        return f"{joined(sides[0])} for effectiveness and {joined(sides[1])} for lean" if sides[1] else joined(sides[0])

    def _refined(self, rankers: Mapping[str, pl.DataFrame]) -> Section:
        """Return the tables of RePair, over all queries and all candidates, also those in no box (subset of pairs)."""
        measure, resources = self.choice.effectiveness, self.build.resources
        direction = self.directions[measure]
        judged = resources.judgements.table if resources.collection.has_judgements else None
        queries = queries_table(
            pl.DataFrame(pl.from_arrow(resources.queries.table)), len(resources.doc_ids),
            None if judged is None else pl.DataFrame(pl.from_arrow(judged)),
        )  # fmt: skip
        every = self.stage.allowed_parts(query_parts(self.store, self.outcomes["scores"].manifest))
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
