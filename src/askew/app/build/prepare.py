"""Make the steps of a build from a recipe. Every section is checked before anything runs."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from askew.app.build import crossfit
from askew.app.build.across import StepScores
from askew.app.build.again import ChosenPairs, Hard, read_subsets
from askew.app.build.all_mentions import note_on_changed, sure_bias
from askew.app.build.live import asks_engine, engine_ranker, here_only
from askew.app.build.origin import origin_of
from askew.app.build.pairs import Select
from askew.app.build.queries import Classify, with_named_classifier
from askew.app.build.recipe import (
    LISTS,
    Recipe,
    check_publish,
    groups_of,
    only_known,
    refuse_other_than_names,
)
from askew.app.build.resources import Resources
from askew.app.build.runs import RetrieveStage
from askew.app.build.scores import Evaluate
from askew.app.build.variants import ORIGINAL, Keep, ReformulateStage
from askew.app.scoring.comparable import PUBLISHED, is_signed, note_on_resolver, sign_of
from askew.app.scoring.query_notes import note_on_grades
from askew.app.search.classify import make_classifier
from askew.app.search.compose import is_engine, make_ranker
from askew.app.search.reformulate import FirstPass, make_filter, make_reformulator
from askew.core import defaults
from askew.core.errors import ConfigError, DataError, check_name, check_names
from askew.core.groups import Groups
from askew.engine.plan import Plan, Step
from askew.engine.store import Store
from askew.measures.catalogue import MeasureRequest
from askew.plugins.kinds import RankerPlugin, SelectorPlugin, Stage
from askew.plugins.methods import ReformulatorPlugin
from askew.plugins.registry import check, from_spec, made_type, names, refuse_other_groups, settings_of

# Settings of [select] that are not settings of the selector: how the stage chooses, and which steps are added.
_HOW = ("per", "judged_sources")
_AROUND = ("across", "held_out")
_METHOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
# Rows of a shard, by stage: few if a row takes long or becomes many rows, so that workers share the work and little is
# lost if a worker fails.
_SHARD_ROWS = {"reformulate": 512, "filter": 16_384, "retrieve": 16_384}
# A language model takes seconds for a query, and its filter takes seconds for the candidates of a few queries. With few
# queries, shards are smaller, so that a stopped build loses little work, and progress is visible.
_FEWEST_ROWS = {"reformulate": 4, "filter": 128}
# About this many shards if there are few queries, and about this many candidates of a query.
_SHARDS, _CANDIDATES = 128, 20


@dataclass(frozen=True)
class Build:
    """A checked recipe: its plan, and the resources that its steps share."""

    recipe: Recipe
    plan: Plan
    resources: Resources
    evaluate: Evaluate
    # The classifier that ``auto`` stands for; None if the recipe names one.
    chosen_classifier: str | None = None
    # The measures from which ``who=`` was left out.
    without_who: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Notes to show before anything runs: files, the classifier that auto stands for, relevant grades, groups."""
        files = self.resources.collection.notes("queries", "judgements")
        chosen = [f"classify: classifier {self.chosen_classifier}"] if self.chosen_classifier else []
        return [*files, *chosen, *self._note_on_grades(), *self._notes_on_groups()]

    def _note_on_grades(self) -> list[str]:
        if all(step.stage is not self.evaluate for step in self.plan.steps):
            return []
        return note_on_grades(self.evaluate.asked, self.resources.judgements.table["relevance"].unique().to_pylist())

    def _notes_on_groups(self) -> list[str]:
        """For groups of the user: the sign of the measures, and which of them rely on a model of other groups."""
        signed = [one for one in self.evaluate.asked if is_signed(one) and not set(one.groups) <= PUBLISHED]
        notes = note_on_resolver(self.evaluate.asked)
        if self.select is not None and note_on_resolver(self._selecting(self.select)):
            notes[0] += "; to select pairs without this model, name measures without who= in select.bias"
        return [*([sign_of(signed[0])] if signed else []), *note_on_changed(self.without_who), *notes]

    def _selecting(self, select: Select) -> list[MeasureRequest]:
        return [one for one in self.evaluate.asked if one.text in select.selector.measures()]

    @property
    def select(self) -> Select | None:
        """The stage that chooses pairs; None if the plan does not include it."""
        return next((step.stage for step in self.plan.steps if isinstance(step.stage, Select)), None)


@dataclass(frozen=True)
class StageOf:
    """Makes the stage of a step in another process."""

    recipe: Recipe
    store: Store
    step: str

    def __call__(self) -> Stage:
        """Return the stage."""
        return next(step.stage for step in prepare(self.recipe, self.store).plan.steps if step.name == self.step)


def prepare(recipe: Recipe, store: Store, until: str | None = None) -> Build:
    """Check every name and setting of a recipe and return its steps; no index is built and no model is loaded."""
    check_publish(recipe)
    groups = groups_of(recipe)
    is_open = recipe.table("classify").get("classifier") == defaults.CLASSIFIER
    recipe = Recipe(recipe.name, with_named_classifier(recipe.sections, groups))
    resources = resources_of(recipe, store)
    retrieve, evaluate = retrieve_stage(recipe, resources), _evaluate(recipe, resources, groups)
    if groups is None:
        _refuse_other_groups(recipe, evaluate)
    steps: list[Step] = []
    last = "queries"
    if recipe.sections.get("classify"):
        given = recipe.table("classify")
        keep = given.pop("keep", ["neutral"])
        refuse_other_than_names("classify.keep", keep)
        steps.append(Step("neutral", Classify(make_classifier(given, groups), keep), last))
        last = "neutral"
    steps.append(Step("variants", reformulate_stage(recipe, resources, groups), last))
    steps.append(Step("kept", Keep([make_filter(one, groups) for one in recipe.tables("filter")]), "variants"))
    steps.append(Step("runs", retrieve, "kept"))
    steps.append(Step("scores", evaluate, "runs"))
    if recipe.sections.get("select"):
        recipe = _with_bias(recipe, groups)
        others, across = _across(recipe, resources, evaluate, steps)
        select = _select(recipe, evaluate, across)
        steps += [*others, Step("pairs", select, "scores"), *_held_out(recipe, resources, evaluate, select)]
        steps += _again(recipe, resources, evaluate, select)
    elif recipe.sections.get("cross") or recipe.sections.get("hard"):
        raise ConfigError(
            f"recipe {recipe.name}: the sections [[cross]] and [hard] need selected pairs, but the recipe has no "
            "section [select]; add it"
        )
    steps = [
        here_only(step)
        if asks_engine(step, recipe.table("first_pass"))
        else replace(step, maker=StageOf(recipe, store, step.name), shard_rows=_shard_rows(step, resources))
        for step in _up_to(until, steps)
    ]
    plan = Plan({"queries": resources.queries}, steps, origin_of(recipe.name, recipe.sections, groups))
    chosen = recipe.table("classify")["classifier"] if is_open else None
    return Build(recipe, plan, resources, evaluate, chosen)


def _shard_rows(step: Step, resources: Resources) -> int | None:
    name = step.stage.name
    rows = _SHARD_ROWS.get(name)
    if rows is None or name not in _FEWEST_ROWS:
        return rows
    expected = resources.queries.rows * (_CANDIDATES if name == "filter" else 1)
    return min(rows, max(_FEWEST_ROWS[name], expected // _SHARDS))


def _up_to(until: str | None, steps: list[Step]) -> list[Step]:
    names = [step.name for step in steps]
    if until is None:
        return steps
    check_name("step", until, names)
    return steps[: names.index(until) + 1]


def _across(
    recipe: Recipe, resources: Resources, evaluate: Evaluate, steps: list[Step]
) -> tuple[list[Step], dict[str, StepScores]]:
    """Return the steps that search all candidates with the rankers of ``select.across``, and the scores by ranker."""
    names = recipe.table("select").get("across", [])
    found: list[Step] = []
    tables = {_cross_name(given, f"cross.{number}"): given for number, given in enumerate(recipe.tables("cross"))}
    if names:
        refuse_other_than_names("select.across", names)
        check_names("ranker of [[cross]]", names, tables, "select.across")
    for name in names:
        given = {key: value for key, value in tables[name].items() if key != "name"}
        if "of" in given:
            raise ConfigError(
                f"recipe: 'select.across' lists the ranker {name!r}, so this ranker must run a search for every "
                "candidate. In the section [[cross]] of this ranker, the setting 'of' limits the search to subsets of "
                "pairs; remove the setting 'of'"
            )
        found += _asked(f"cross-{name}", "kept", given, resources, evaluate, "cross")
    keys = Plan({"queries": resources.queries}, [*steps, *found]).keys() if names else {}
    return found, {name: StepScores(resources.store, f"cross-{name}", keys[f"cross-{name}"]) for name in names}


def _cross_name(given: Mapping[str, Any], section: str) -> str:
    return _plain_name(given.get("name", given.get("ranker", "bm25")), section)


def _held_out(recipe: Recipe, resources: Resources, evaluate: Evaluate, select: Select) -> list[Step]:
    """Return the step that computes the held-out values, unless the recipe says held_out = false."""
    wanted = recipe.table("select").get("held_out", True)
    if not isinstance(wanted, bool):
        raise ConfigError(f"recipe: select.held_out should be true or false, found {wanted!r}")
    return [Step(crossfit.STEP, crossfit.HeldOut(evaluate, select, resources), "runs")] if wanted else []


def _again(recipe: Recipe, resources: Resources, evaluate: Evaluate, select: Select) -> list[Step]:
    """Return the steps that search chosen pairs with other rankers, and those for hard queries."""
    steps: list[Step] = []
    for number, given in enumerate(recipe.tables("cross")):
        section = f"cross.{number}"
        ranker = _cross_name(given, section)
        if ranker in select.across:
            continue
        known = [name for name in select.selector.subsets if name != "negative"]
        chosen = ChosenPairs(read_subsets(given.pop("of", known), select.selector.subsets, section))
        given.pop("name", None)
        name = f"cross-{ranker}"
        steps.append(Step(f"{name}-chosen", chosen, "pairs"))
        steps += _asked(name, f"{name}-chosen", given, resources, evaluate, section)
    if recipe.sections.get("hard"):
        given = recipe.table("hard")
        measure, ties = given.pop("measure", select.selector.measures()[0]), given.pop("ties", False)
        check_name("measure", str(measure), evaluate.directions, "hard.measure")
        if not isinstance(ties, bool):
            raise ConfigError(f"recipe: hard.ties should be true or false, found {ties!r}")
        name = f"hard-{_plain_name(given.get('ranker', 'bm25'), 'hard')}"
        steps.append(Step("hard", Hard(measure, evaluate.directions[measure], ties, select.judged_sources), "pairs"))
        steps += _asked(name, "hard", given, resources, evaluate, "hard")
    return steps


def _plain_name(name: Any, section: str) -> str:
    """Check a name that becomes part of the name of a folder."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        raise ConfigError(f"recipe: {section} needs a name of lowercase letters, digits and hyphens, found {name!r}")
    return name


def _asked(
    name: str, reads: str, given: dict[str, Any], resources: Resources, evaluate: Evaluate, section: str
) -> list[Step]:
    k = _depth(given, "k", 100, section)
    make, key, ready = _ranker({"ranker": "bm25", **given}, resources, section)
    return [Step(f"{name}-runs", RetrieveStage(make, key, k, ready), reads), Step(name, evaluate, f"{name}-runs")]


def resources_of(recipe: Recipe, store: Store) -> Resources:
    """Return the resources of the collection of a recipe."""
    given = recipe.table("collection")
    only_known(given, ("source", "fields", "split"), "collection")
    if not isinstance(given.get("source"), str):
        raise ConfigError(
            f"recipe {recipe.name}: collection.source should be a folder, 'irds:ID' or 'demo', found "
            f"{given.get('source')!r}"
        )
    fields, split = given.get("fields", []), given.get("split")
    if not isinstance(fields, str) and fields != []:
        refuse_other_than_names("collection.fields", fields)
    if split is not None and not isinstance(split, str):
        raise ConfigError(f"recipe: collection.split should be a name, found {split!r}")
    return Resources(given["source"], store, fields, split)


def retrieve_stage(recipe: Recipe, resources: Resources) -> RetrieveStage:
    """Return the stage that searches, with the settings of [retrieve]."""
    given = recipe.table("retrieve")
    k = _depth(given, "k", 100, "retrieve")
    make, key, ready = _ranker(given, resources, "retrieve")
    return RetrieveStage(make, key, k, ready)


def _ranker(given: dict[str, Any], resources: Resources, section: str) -> tuple[Any, dict[str, Any], Any]:
    """Return a function that opens a ranker, the settings that identify it, and a function that builds its index."""
    name = given.get("ranker", "bm25")
    check_name("ranker", str(name), names("ranker"))
    if is_engine(name):
        return engine_ranker(given, resources, section)
    kind = name if name in names("index") else "bm25"
    making = given.pop("index", {})
    if not isinstance(making, dict):
        raise ConfigError(f'{section}.index should be the settings of the index, as in index = {{model = "..."}}')
    check("ranker", name, {key: value for key, value in given.items() if key != "ranker"}, section)
    check("index", kind, making, f"{section}.index")
    missing = [key for key, default in settings_of("index", kind).items() if default == "needed" and key not in making]
    if extra := [key for key in missing if key not in ("documents", "folder")]:
        raise ConfigError(f"{section}.index: the ranker {name!r} needs the setting {extra[0]!r} there")
    needed = [key for key, default in settings_of("ranker", name).items() if default == "needed"]
    if needed != ["index"]:
        raise ConfigError(
            f"{section}: the ranker {name!r} does not search an index of its own; name a ranker that does"
        )

    def make() -> RankerPlugin:
        ranker = make_ranker({**given, "ranker": name, "index": str(resources.index(kind, making))})
        if not ranker.doc_ids.cast(pa.string()).equals(resources.doc_ids):
            raise DataError(
                f"{section}: the index of {name!r} has other documents than the collection; delete the index"
            )
        return ranker

    named = {**given, "ranker": name, "index": resources.index_key(kind, making)}
    return make, named, lambda: (resources.index(kind, making), resources.doc_ids)


def _refuse_other_groups(recipe: Recipe, evaluate: Evaluate) -> None:
    """Refuse a method that counts other groups than the measures, also without [groups]."""
    measured = sorted({name for one in evaluate.asked for name in one.groups})
    for section in ("classify", "reformulate", "filter"):
        for given in recipe.tables(section) if section in LISTS else [recipe.table(section)]:
            if measured and isinstance(own := given.get("groups"), str):
                refuse_other_groups(own, measured, f"recipe {recipe.name}: {section}")


def _evaluate(recipe: Recipe, resources: Resources, groups: Groups | None) -> Evaluate:
    given = recipe.table("evaluate")
    only_known(given, ("measures",), "evaluate")
    measures: Any = given.get("measures")
    refuse_other_than_names("evaluate.measures", measures)
    return Evaluate(measures, resources, groups=groups)


def _select(recipe: Recipe, evaluate: Evaluate, across: Mapping[str, StepScores]) -> Select:
    given = recipe.table("select")
    how = {name: given[name] for name in _HOW if name in given}
    selector = selector_of(recipe)
    missing = [text for text in selector.measures() if text not in evaluate.directions]
    if missing:
        near = difflib.get_close_matches(missing[0], evaluate.directions, n=1, cutoff=0.8)
        hint = f"; did you mean {near[0]}? If not, add it there" if near else "; add it there"
        raise ConfigError(f"select: the measure {missing[0]} is not in [evaluate]{hint}")
    return Select(selector, evaluate.directions, **how, across=across)


def selector_of(recipe: Recipe) -> SelectorPlugin:
    """Make the selector of [select] with its settings."""
    given = {name: value for name, value in recipe.table("select").items() if name not in (*_HOW, *_AROUND)}
    made: SelectorPlugin = from_spec("selector", given)
    return made


def _with_bias(recipe: Recipe, groups: Groups | None) -> Recipe:
    """Name the bias measures in [select] if the default of the selector relies on a model of other groups."""
    given = recipe.table("select")
    if "bias" in given or (bias := sure_bias(selector_of(recipe), groups)) is None:
        return recipe
    return Recipe(recipe.name, {**recipe.sections, "select": {**given, "bias": bias}})


def reformulate_methods(recipe: Recipe, groups: Groups | None) -> dict[str, ReformulatorPlugin]:
    """Make the methods of [[reformulate]], by name."""
    methods: dict[str, ReformulatorPlugin] = {}
    seen: Counter[str] = Counter()
    for place, one in enumerate(recipe.tables("reformulate")):
        made = make_reformulator({key: value for key, value in one.items() if key != "name"}, groups)
        seen[made.method] += 1
        # A method may be in a recipe twice, with different settings.
        number = seen[made.method]
        name = one.get("name", made.method if number == 1 else f"{made.method}-{number}")
        if name in methods or name == ORIGINAL or not isinstance(name, str) or not _METHOD_NAME.fullmatch(name):
            raise ConfigError(
                f"recipe: reformulate.{place}.name should be a unique name of letters, digits, '.', '_' and '-'; "
                f"found {name!r}"
            )
        methods[name] = made
    return methods


def reformulate_stage(recipe: Recipe, resources: Resources, groups: Groups | None) -> ReformulateStage:
    """Return the stage that reformulates, with the methods of [[reformulate]]."""
    methods = reformulate_methods(recipe, groups)
    given = recipe.table("first_pass")
    depth = _depth(given, "depth", 10, "first_pass")
    make, key, _ = _ranker({"ranker": "bm25", **given}, resources, "first_pass")
    return ReformulateStage(methods, lambda: FirstPass(resources.index(), make(), depth), f"{key} {depth}")


def _depth(given: dict[str, Any], key: str, default: int, section: str) -> int:
    """Return the number of documents per query; refuse more than the ranker can return."""
    value, what = given.pop(key, default), f"{section}.{key}"
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"recipe: {what} should be a whole number of 1 or more, found {value!r}")
    name = given.get("ranker", "bm25")
    most = getattr(made_type("ranker", name), "most", None) if name in names("ranker") else None
    if most is not None and value > most:
        raise ConfigError(f"recipe: {what} should be {most} or less for the ranker {name!r}, found {value}")
    return value
