"""Write the report of a finished build: one self-contained page, and its tables and charts as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.address import local_paths, public, public_settings, public_text
from askew.core.defaults import FEWEST, HELD_OUT, IN_SAMPLE, size_of
from askew.core.errors import ConfigError, DataError
from askew.core.files import parse_json
from askew.core.measure import Direction, new_column, old_column
from askew.core.protocols import SelectorPlugin
from askew.core.ranking import Hits
from askew.measures.effects import Effect, EffectMeter, effects_table, lean_without_sign
from askew.measures.headline import CUTOFF, Headline, headlines
from askew.measures.requested import count_key
from askew.measures.requested import listed as joined
from askew.pairs.dataset.card import LIMITS, NOT_BIAS, PLACEBO_LISTS, Caution, cautions, group_limit
from askew.pairs.figures import PAIRS, Results, counted_groups, first_measures, sides_of
from askew.pairs.gains import ORIGINAL, PairParts, find_measures
from askew.pairs.held_out import DRAWS, LEANS, PLACEBO, Placebo, chosen_subsets
from askew.pairs.recipe import flat_settings, groups_of
from askew.pairs.resources import frames_of
from askew.pairs.stages import Evaluate, Select, judged_note, lists_of
from askew.pairs.summary import EVERY
from askew.pairs.tables import extreme_pairs, method_table
from askew.report import markup as n
from askew.report.charts import About, dots
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
    labels_note,
    listed,
    paragraph,
    slug,
    write_report,
)
from askew.report.table import CODE, QUOTE, WORDS, Cell, Column, Estimate, Group, Table, columns, measure_label, table
from askew.rewrite.classifiers import query_labels
from askew.search.common import taken

DECIDES, TWIN, UNUSED = (
    "pairs are chosen by this measure",
    "this measure is not used to choose pairs, but its values equal those of a measure that is used",
    "this measure is only reported",
)


def roles_of(selector: SelectorPlugin, evaluate: Evaluate, pairs: PairParts) -> dict[str, str]:
    """Return the role of each measure in the choice of pairs.

    A measure with the same values as one that pairs are chosen by is not independent: AP equals RR if each query has
    one relevant document.
    """
    # The measures of bias of boxes only name the outcome.
    named = selector.measures() if selector.name != "boxes" else sides_of(selector, evaluate)[0]
    deciding = find_measures(named, evaluate.directions, selector.name)
    roles = dict.fromkeys(evaluate.directions, UNUSED) | dict.fromkeys(deciding, DECIDES)
    for name in [name for name, role in roles.items() if role == UNUSED]:
        if any(_same(pairs, name, other) for other in deciding):
            roles[name] = TWIN
    return roles


def _same(pairs: PairParts, one: str, other: str) -> bool:
    sides = [(side(one), side(other)) for side in (old_column, new_column)]
    frames = pairs.frames([name for side in sides for name in side])
    alike = (np.allclose(part[a], part[b], rtol=0, atol=1e-12, equal_nan=True) for part in frames for a, b in sides)
    return pairs.height > 0 and all(alike)


def build_cautions(selector: SelectorPlugin, evaluate: Evaluate, headline: pl.DataFrame) -> list[Caution]:
    """Return what the held-out values of a build do not show; nothing if the recipe turns held-out values off."""
    if HELD_OUT not in headline["figures"]:
        return []
    effectiveness, lean = sides_of(selector, evaluate)
    # Boxes are chosen by one measure; lean is only reported.
    aim = effectiveness if selector.name == "boxes" or not lean else lean
    rows = headline.filter(pl.col("pairs") > 0).to_dicts()
    return cautions(rows, evaluate.directions, selector.subsets, aim, {*effectiveness, *evaluate.judged})


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


def effect_of(results: Results, subset: str, lean: str) -> Effect | None:
    """What replacing queries by their pair of a subset changes, also on placebo lists, where pairs are chosen again.

    Of several pairs of a query, the first; a query without a pair stays. None without the step placebo.
    """
    evaluate, outcome, rows = results.build.evaluate, results.outcomes.get(PLACEBO), results.rows_of(PAIRS)
    request = lean_without_sign([one for one in evaluate.asked if one.text == lean])
    if outcome is None or not outcome.manifest.parts or rows is None or request is None:
        return None
    drawn = pl.concat(frames_of(results.store, outcome.manifest)).filter(pl.col(subset) & pl.col(LEANS))
    chosen = [pl.concat(rows.filter(subset).frames(["query_id", "variant_id"]))]
    chosen += [drawn.filter(draw=draw).select("query_id", "variant_id") for draw in range(DRAWS)]
    pairs = [dict(one.unique("query_id", keep="first", maintain_order=True).rows()) for one in chosen]
    wanted = pa.array({variant for each in pairs for variant in each.values()}, pa.string())
    names = ["query_id", "variant_id", "method", "doc", "score"]
    table = pa.concat_tables(
        part.filter(pc.or_(pc.equal(part["method"], ORIGINAL), pc.is_in(part["variant_id"], wanted))).select(names)
        for part in results.store.read(results.outcomes["runs"].manifest)
    )
    lists, row_of = lists_of(table), {variant: row for row, variant in enumerate(table["variant_id"].to_pylist())}
    hits = Hits(lists.offsets, lists.docs.astype(np.int32), np.asarray(lists.scores, np.float32))
    originals = np.flatnonzero(pc.equal(table["method"], ORIGINAL).to_numpy(zero_copy_only=False))
    ids = table["query_id"].combine_chunks().take(pa.array(originals))
    base = dict(zip(ids.to_pylist(), originals.tolist(), strict=True))

    def replaced(pairs_of: Mapping[str, str]) -> Hits:
        return taken(hits, np.array([row_of[pairs_of[query]] if query in pairs_of else base[query] for query in base]))

    (placebo,) = (step.stage for step in results.build.plan.steps if isinstance(step.stage, Placebo))
    draws = [placebo.mentions(draw, count_key(request.measure)) for draw in range(DRAWS)]
    meter = EffectMeter(evaluate.scorer, request, ids, taken(hits, originals), draws)
    first, *again = map(replaced, pairs)
    lists_of_draws = iter(again)
    return meter.effect(first, lambda: next(lists_of_draws))


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


def report_of(results: Results, out: Path, *, figures: Sequence[str] = (), latex: bool = False) -> Reported:
    """Write report.html and tables/*.csv to a folder; on request figures/*.svg or *.png, and tables/*.tex.

    Steps named ``cross-NAME`` have the scores of variants with the ranker NAME. The same store gives the same bytes.
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
    report = _Report(results, stage, pairs)
    page = report.page()
    files = {"report.html": page.encode(), **report.files.files(tuple(dict.fromkeys(figures)), latex)}
    written = write_report(out, files)
    return Reported(written[0], written)


Row = dict[str, Any]


def _means(row: Row, queries: str = "queries") -> list[str]:
    return [n.mean(row["old_mean"]), n.mean(row["new_mean"]), n.change(row["change"]), n.interval_of(row, queries)]


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

    def __init__(self, results: Results, stage: Select, pairs: PairParts) -> None:
        assert results.in_sample is not None, "internal error: pairs without a summary"
        self.results, self.stage, self.pairs, self.in_sample = results, stage, pairs, results.in_sample
        self.build, self.outcomes, evaluate = results.build, results.outcomes, results.build.evaluate
        self.directions = evaluate.directions
        self.ranker = str(self.build.recipe.table("retrieve").get("ranker", "bm25"))
        self.roles = roles_of(stage.selector, evaluate, pairs)
        self.effectiveness, self.lean = first_measures(stage.selector, evaluate)
        self.labels = {
            name: measure_label(name, direction, "" if self.roles[name] == UNUSED else "*")
            for name, direction in self.directions.items()
        }
        self.files = PageParts()
        self.chosen = chosen_subsets(stage)
        if not self.chosen:
            raise ConfigError(
                f"report: the selector {stage.selector.name!r} does not define a subset of chosen pairs, so there is "
                "nothing to report; name another selector in the section [select] of the recipe"
            )
        # The charts show the largest subset; of equally large ones the last, because unions come last.
        self.sizes = self.pairs.count(*stage.selector.subsets)
        self.main = max(reversed(self.chosen), key=self.sizes.__getitem__)
        self.headline = None
        if results.held_out is not None and results.summary is not None and results.all_candidates is not None:
            changes = results.all_candidates.select("measure", all_candidates_change="change")
            self.headline = results.summary.join(changes, on="measure", how="left", maintain_order="left")

    def page(self) -> str:
        """Return the whole page as HTML."""
        sections = list(self._sections())
        title = public_text(str(self.build.recipe.sections.get("title", self.build.recipe.name)))
        manifest = self.outcomes["pairs"].manifest
        try:
            made = parse_json(self.results.store.files.read(f"{manifest.step}-{manifest.key}/provenance.json"))
            when = f"The pairs were finished at {made['finished']} with askew {made['askew']}."
        except (OSError, ValueError, KeyError, TypeError):
            when = ""
        return document(f"{title}: report", self._head(), sections, [paragraph(when)] if when else [])

    def _sections(self) -> Iterator[Section]:
        first = headline_of_originals(self.results)
        body = [paragraph(tag("strong", first.sentence)), figure(first.chart(), "Lean in the results and by chance")]
        yield Section("lean", "Lean of the original queries", [*body, self.files.table(first.table())])
        if self.headline is not None:
            yield self._held_out(self.headline)
        yield self._making()
        yield self._subsets()
        if (across := self._across()) is not None:
            yield across
        yield self._methods()
        yield self._examples()
        groups = [name for _, names in counted_groups(self.build.evaluate) for name in names]
        limits = [NOT_BIAS, group_limit(list(dict.fromkeys(groups))), *LIMITS]
        yield Section("limits", "Limits of these numbers", [listed(limits)])

    def _head(self) -> list[Markup]:
        recipe, settings = self.build.recipe, self.outcomes["runs"].manifest.settings
        about = str(recipe.sections.get("about", "Pairs of an original query and its reformulation."))
        about = public(about, local_paths(recipe.sections))
        groups = counted_groups(self.build.evaluate)
        chosen = ", ".join(f"{name} {size:,}" for name, size in self.sizes.items())
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
            wanted = self.lean or self.effectiveness
            first = self.headline.filter(subset=self.main, measure=wanted, figures=HELD_OUT)
            said = [held_out_sentence(row, self.labels[wanted]) for row in first.to_dicts()]
            found = map(str, build_cautions(self.stage.selector, self.build.evaluate, self.headline))
            warned = [f"{one[0].upper()}{one[1:]}." for one in found]
        said.append(self._chosen_by() + (f" {judged}." if judged else ""))
        cautions = [listed(warned)] if warned else []
        return [paragraph(about, kind="lead"), *map(paragraph, said), *cautions, facts(rows)]

    def _chosen_by(self) -> str:
        """Say by which measures pairs were chosen, and which measures are only reported."""
        by = {
            role: joined([name for name, one in self.roles.items() if one == role]) for role in (DECIDES, TWIN, UNUSED)
        }
        said = [f"The selector {self.stage.selector.name} chose pairs of a query and a reformulation by {by[DECIDES]}."]
        for role, words in (
            (TWIN, "that were not used to choose pairs, but have the same values as a measure that was used"),
            (UNUSED, "that were not used to choose pairs and are only reported"),
        ):
            said += [f"Measures {words}: {by[role]}."] if by[role] else []
        return " ".join([*said, *([] if by[UNUSED] else ["No other measure is reported."])])

    def _making(self) -> Section:
        measures = pl.DataFrame([
            {"name": one.text, "signature": one.signature, "better": _BETTER[one.direction],
             "part": self.roles[one.text]}
            for one in self.build.evaluate.asked
        ])  # fmt: skip
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
        lines = measures.select("name", "better", "part", "signature").rows()
        body = [
            self.files.table(table("steps", "Steps of the run", head, rows, note), pl.DataFrame(counts)),
            self.files.table(table("measures", "Measures", told, lines), measures),
            folded("The recipe, including changes from the command line", recipe),
        ]
        return Section("run", "How these results were computed", body)

    def _subsets(self) -> Section:
        """Table 1 of Refairmulate: means before and after for each subset."""
        given = self.stage.selector.settings().get("boxes", {})
        named = {name: given.get(name) or _SUBSETS.get(name) for name in self.sizes}
        about = {name: words for name, words in named.items() if words}
        groups = [self._before_after(part) for part in self.in_sample.partition_by("subset", maintain_order=True)]
        notes = [_METHOD, _IN_SAMPLE, labels_note(self.labels.values())]
        caption = "In-sample means of each measure for original queries (before) and reformulations (after), by subset"
        means = Table("subsets", caption, _BEFORE_AFTER, groups, notes)
        what = [listed([f"{name}: {words}" for name, words in about.items()])] if about else []
        body = [*what, self.files.table(means, self.in_sample)]
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
        if self.lean is not None and (effect := effect_of(self.results, self.main, self.lean)) is not None:
            body.append(self.files.table(effects_table({f"pairs of the subset {self.main}": effect}, "effects")))
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

    def _across(self) -> Section | None:
        """Figure 1 of Refairmulate: the chosen pairs with other rankers; None if the build has no such ranker."""
        found = self.results.across(self.directions)
        if found is None:
            return None
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

    def _methods(self) -> Section:
        """How often each method is chosen, and the effect of its candidates (all, and chosen) on each side."""
        sides = [name for name in dict.fromkeys([self.effectiveness, self.lean]) if name is not None]
        methods = method_table(self.pairs, self.main, {name: self.directions[name] for name in sides})
        changes = [(name, subset) for name in sides for subset in (EVERY, self.main)]
        rows = []
        for part in methods.partition_by("method", maintain_order=True):
            row = part.row(0, named=True)
            ends = n.share_interval(row["won_low"], row["won_high"])
            cells = [n.count(row["method_queries"]), n.count(row["won"]), n.share(row["won_share"]), ends]
            for name, subset in changes:
                cells += [n.change(one) for one in part.filter(measure=name, subset=subset)["change"]]
            rows.append([row["method"], n.count(row["pairs"]), *cells])
        told = [f"{self.labels[name]}, {subset}" for name, subset in changes]
        head = columns("method", "candidates", "queries", "chosen for", "share", "95% interval", *told, kind=CODE)
        note = (
            "Queries: the number of queries that the method reformulated. Chosen for: the number of these queries for "
            f"which a reformulation by the method is in the subset {self.main}. Share: the number 'chosen for' "
            "divided by the number of queries, with a 95% Wilson interval. The other columns have the change of the "
            "mean of a measure from original queries to reformulations, over all candidates of the method, and over "
            "its chosen ones."
        )
        caption = "Queries for which a reformulation by the method was selected, and the change of the means"
        return Section("methods", "Methods", [self.files.table(table("methods", caption, head, rows, note), methods)])

    def _examples(self) -> Section:
        by = list(dict.fromkeys([self.lean or self.effectiveness, self.effectiveness]))
        chosen, rest, label = self.pairs.filter(self.main), self.pairs.filter(~pl.col(self.main)), self.labels[by[0]]
        tables = {
            f"{self.main}: largest gains on {label}": extreme_pairs(chosen, by),
            f"Pairs that are not in the subset {self.main}, largest loss on {label} first": extreme_pairs(
                rest, by, worst=True
            ),
        }
        shown = by[::-1]
        head = [Column("original", QUOTE), Column("reformulated", QUOTE), Column("method", CODE)]
        head += [Column(self.labels[name]) for name in shown]
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
