"""Recipes: a TOML file that says which collection, which methods, which measures. Checked whole before any work."""

from __future__ import annotations

import copy
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, UnknownName
from askew.engine.plan import Plan, Step
from askew.engine.store import Store
from askew.plugins.kinds import Ranker, Selector
from askew.plugins.registry import check, from_spec, names, settings_of
from askew.stages.build.pairs import Select
from askew.stages.build.queries import Classify
from askew.stages.build.resources import Resources
from askew.stages.build.runs import Retrieve
from askew.stages.build.scores import Evaluate
from askew.stages.build.variants import Keep, Reformulate
from askew.stages.classify import make_classifier
from askew.stages.rankers import make_ranker
from askew.stages.reformulate import FirstPass, make_filter, make_reformulator

_FOLDER = Path(__file__).parent.parent / "data" / "recipes"
# The sections of a recipe; those in the second set are lists of tables.
_TABLES = ("collection", "classify", "first_pass", "retrieve", "evaluate", "select", "publish")
_LISTS = ("reformulate", "filter")
_TEXTS = ("title", "about")
_NEEDED = ("collection", "reformulate", "retrieve", "evaluate")
_STEPS = ("neutral", "variants", "kept", "runs", "scores", "pairs")


@dataclass(frozen=True)
class Recipe:
    """A recipe as read: its name and its sections."""

    name: str
    sections: Mapping[str, Any]

    def table(self, name: str) -> dict[str, Any]:
        """A section with one table; empty where the recipe has none."""
        return dict(self.sections.get(name, {}))

    def tables(self, name: str) -> list[dict[str, Any]]:
        """A section with several."""
        return [dict(one) for one in self.sections.get(name, [])]


def shipped_recipes() -> list[str]:
    """The names of the recipes that come with askew."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_recipe(name: str | Path) -> Recipe:
    """A recipe by its name, or a file of one's own."""
    path = _FOLDER / f"{name}.toml" if str(name) in shipped_recipes() else Path(name)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        if path.suffix != ".toml":
            raise UnknownName("recipe", str(name), shipped_recipes()) from None
        raise ConfigError(
            f"recipe {path}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"recipe {path}: not TOML ({error})") from None
    recipe = Recipe(path.stem, data)
    _check_shape(recipe, str(path))
    return recipe


def with_settings(recipe: Recipe, changes: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """The recipe with some values changed: ``{"retrieve": {"k": 50}}``; of a list of tables, ``reformulate.0``."""
    sections: dict[str, Any] = copy.deepcopy(dict(recipe.sections))
    for owner, values in changes.items():
        name, _, number = owner.partition(".")
        target = sections.get(name)
        if isinstance(target, list):
            if not number.isdigit() or int(number) >= len(target):
                raise ConfigError(f"--set {owner}: {name} is a list of {len(target)}; say which, as in {name}.0")
            target = target[int(number)]
        elif target is None and name in _TABLES:
            target = sections[name] = {}
        if not isinstance(target, dict) or (number and name not in _LISTS):
            raise UnknownName("section", owner, [*_TABLES, *_LISTS], f"recipe {recipe.name}")
        target.update(values)
    changed = Recipe(recipe.name, sections)
    _check_shape(changed, recipe.name)
    return changed


def _check_shape(recipe: Recipe, where: str) -> None:
    known = [*_TABLES, *_LISTS, *_TEXTS]
    for key, value in recipe.sections.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean [{near[0]}]?" if near else ""
            raise ConfigError(f"recipe {where}: there is no section {key!r}{hint} (known: {', '.join(known)})")
        wanted = list if key in _LISTS else str if key in _TEXTS else dict
        if not isinstance(value, wanted) or (wanted is list and not all(isinstance(one, dict) for one in value)):
            form = f"[[{key}]]" if key in _LISTS else f"[{key}]" if key in _TABLES else f'{key} = "..."'
            raise ConfigError(f"recipe {where}: expected {form}, found {type(value).__name__} for {key!r}")
    missing = [key for key in _NEEDED if not recipe.sections.get(key)]
    if missing:
        raise ConfigError(f"recipe {where}: the section {missing[0]!r} is missing")


@dataclass(frozen=True)
class Build:
    """A recipe made ready: its plan, and what its steps share."""

    recipe: Recipe
    plan: Plan
    resources: Resources
    evaluate: Evaluate


def prepare(recipe: Recipe, store: Store, until: str | None = None) -> Build:
    """The steps of a recipe. Every name and setting is checked here; no index is made and no model is loaded."""
    if until is not None and until not in _STEPS:
        raise UnknownName("step", until, _STEPS)
    resources = _resources(recipe, store)
    retrieve, evaluate = _retrieve(recipe, resources), _evaluate(recipe, resources)
    steps: list[Step] = []
    last = "queries"
    if recipe.sections.get("classify"):
        given = recipe.table("classify")
        keep = given.pop("keep", ["neutral"])
        _refuse_other_than_names("classify.keep", keep)
        steps.append(Step("neutral", Classify(make_classifier(given), keep), last))
        last = "neutral"
    steps.append(Step("variants", _reformulate(recipe, resources), last))
    steps.append(Step("kept", Keep([make_filter(one) for one in recipe.tables("filter")]), "variants"))
    steps.append(Step("runs", retrieve, "kept"))
    steps.append(Step("scores", evaluate, "runs"))
    if recipe.sections.get("select"):
        steps.append(Step("pairs", _select(recipe, evaluate), "scores"))
    if until is not None:
        names = [step.name for step in steps]
        if until not in names:
            raise ConfigError(f"--until {until}: the recipe {recipe.name!r} has no such step ({', '.join(names)})")
        steps = steps[: names.index(until) + 1]
    return Build(recipe, Plan({"queries": resources.queries}, steps), resources, evaluate)


def _resources(recipe: Recipe, store: Store) -> Resources:
    given = recipe.table("collection")
    _only(given, ("source", "fields", "split"), "collection")
    if not isinstance(given.get("source"), str):
        raise ConfigError(f"recipe {recipe.name}: collection.source should be a folder, irds:ID or demo")
    return Resources(given["source"], store, given.get("fields", ()), given.get("split"))


def _retrieve(recipe: Recipe, resources: Resources) -> Retrieve:
    given = recipe.table("retrieve")
    k = _whole(given.pop("k", 100), "retrieve.k")
    make, key = _ranker(given, resources)
    return Retrieve(make, key, k)


def _ranker(given: dict[str, Any], resources: Resources) -> tuple[Any, dict[str, Any]]:
    """How to open a ranker over the collection's own index, and what names it."""
    name = given.get("ranker", "bm25")
    if name not in names("ranker"):
        raise UnknownName("ranker", str(name), names("ranker"))
    kind = name if name in names("index") else "bm25"
    making = given.pop("index", {})
    if not isinstance(making, dict):
        raise ConfigError('retrieve.index holds the settings of the index, as in index = {model = "..."}')
    check("ranker", name, {key: value for key, value in given.items() if key != "ranker"}, "retrieve")
    check("index", kind, making, "retrieve.index")
    needed = [key for key, default in settings_of("ranker", name).items() if default == "needed"]
    if needed != ["index"]:
        raise ConfigError(
            f"retrieve: the ranker {name!r} does not search an index of its own; a recipe takes one that does"
        )

    def make() -> Ranker:
        return make_ranker({**given, "ranker": name, "index": str(resources.index(kind, making))})

    return make, {**given, "ranker": name, "index": resources.index_key(kind, making)}


def _evaluate(recipe: Recipe, resources: Resources) -> Evaluate:
    given = recipe.table("evaluate")
    _only(given, ("measures",), "evaluate")
    measures: Any = given.get("measures")
    _refuse_other_than_names("evaluate.measures", measures)
    return Evaluate(measures, resources)


def _select(recipe: Recipe, evaluate: Evaluate) -> Select:
    selector: Selector = from_spec("selector", recipe.table("select"))
    missing = [text for text in selector.measures() if text not in evaluate.directions]
    if missing:
        raise ConfigError(f"select: the measure {missing[0]} is not among those of [evaluate]")
    return Select(selector, evaluate.directions)


def _reformulate(recipe: Recipe, resources: Resources) -> Reformulate:
    methods = [make_reformulator(one) for one in recipe.tables("reformulate")]
    given = recipe.table("first_pass")
    depth = _whole(given.pop("depth", 10), "first_pass.depth")
    make, key = _ranker({"ranker": "bm25", **given}, resources)
    return Reformulate(methods, lambda: FirstPass(resources.index(), make(), depth), f"{key} {depth}")


def _only(given: Mapping[str, Any], known: Sequence[str], section: str) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"recipe: [{section}] has no setting {key!r}{hint} (it has: {', '.join(known)})")


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"recipe: {what} should be a whole number of 1 or more, found {value!r}")
    return value


def _refuse_other_than_names(what: str, value: Any) -> None:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"recipe: {what} should be a list of names, found {value!r}")
