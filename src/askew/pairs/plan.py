"""Make the steps of a build from a recipe. Every section is checked before anything runs."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import defaults
from askew.core.address import know_secrets
from askew.core.errors import ConfigError, DataError, Note, check_name, check_names
from askew.core.files import DATA
from askew.core.groups import Groups
from askew.core.lexicon import LEXICON_FACTS, Lexicon, one_spelling
from askew.core.measure import Measure, split_measures
from askew.core.plugins import check, from_spec, load, made_type, names, origin, refuse_other_groups, settings_of
from askew.core.protocols import RankerPlugin, ReformulatorPlugin, SelectorPlugin, Stage
from askew.core.store.steps import Plan, Step
from askew.core.store.store import Store
from askew.measures.catalogue import Catalogue
from askew.measures.common import GroupDifference
from askew.measures.measure import note_on_grades
from askew.measures.requested import (
    PUBLISHED,
    as_measure,
    is_doubtful,
    is_signed,
    measure_list,
    note_on_resolver,
    sign_of,
)
from askew.measures.resolver import default_resolver
from askew.models.find import MINILM
from askew.models.generate import SMOLLM
from askew.pairs import held_out as crossfit
from askew.pairs.gains import ORIGINAL
from askew.pairs.holding import Holding
from askew.pairs.recipe import (
    LISTS,
    Recipe,
    check_publish,
    flat_settings,
    groups_of,
    only_known,
    refuse_other_than_names,
)
from askew.pairs.resources import Resources
from askew.pairs.stages import VARIANTS as SCHEMA
from askew.pairs.stages import (
    Classify,
    Evaluate,
    Keep,
    Promising,
    ReformulateStage,
    RetrieveStage,
    Select,
    StepScores,
    with_named_classifier,
)
from askew.rewrite.classifiers import make_classifier
from askew.rewrite.equivalence import MODELS
from askew.rewrite.reformulate import FirstPass, make_filter, make_reformulator
from askew.search.engines.callables import CallableEngine
from askew.search.engines.ranker import EngineRanker
from askew.search.retrieve import is_engine, make_ranker

EVERY = "all"
# The steps that search the original queries first, and keep those that can yield a pair.
ORIGINALS, PROMISING = "originals", "promising"
_SIDES = ("query_id", "variant_id", "text", "original_text", "method")


class ChosenPairs:
    """Converts the pairs of some subsets to variants, to check whether their gains hold with another ranker."""

    name = "chosen"
    version = 1
    together = "query_id"

    def __init__(self, subsets: Sequence[str]) -> None:
        self.subsets = tuple(subsets)

    def rows_used(self, table: pa.Table) -> int:
        """Count the variants without the originals: each was a pair."""
        return int(pc.sum(pc.not_equal(table["method"], ORIGINAL)).as_py() or 0)

    def settings(self) -> Mapping[str, Any]:
        """Return the subsets."""
        return {"subsets": list(self.subsets)}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants, grouped by query."""
        pairs = pl.DataFrame(pl.from_arrow(rows))
        wanted = pl.lit(True) if self.subsets == (EVERY,) else pl.any_horizontal(*self.subsets)
        chosen = pairs.filter(wanted)
        left = pairs.height - chosen.height
        return _variants(chosen), {"not chosen": left} if left else {}


def _variants(pairs: pl.DataFrame) -> pa.Table:
    """Convert pairs to variants: the original of each query, then its candidates, in the order of the pairs."""
    candidates = pairs.select(*_SIDES).with_row_index("place")
    nothing = [pl.lit(None, pl.String).alias(name) for name in ("settings", "doc_id")]
    first = candidates.unique("query_id", keep="first", maintain_order=True)
    originals = first.select(
        "query_id", pl.col("query_id").alias("variant_id"), pl.col("original_text").alias("text"),
        pl.lit(ORIGINAL).alias("method"), *nothing, "place", pl.lit(0).alias("after"),
    )  # fmt: skip
    others = candidates.select("query_id", "variant_id", "text", "method", *nothing, "place", pl.lit(1).alias("after"))
    # The pairs of a query are adjacent, so its first position is before all others.
    table = pl.concat([originals, others]).sort("place", "after").select(SCHEMA.names)
    return table.to_arrow().cast(SCHEMA)


def with_all_mentions(recipe: Recipe, groups: Groups | None) -> tuple[Recipe, tuple[str, ...]]:
    """Return the recipe without ``who=`` where the resolver does not find people in general, and the changed measures.

    These are groups that the resolver was not trained on, and all groups if it is not installed. Measures that name a
    ``resolver`` keep ``who=``.
    """
    measures, select = recipe.table("evaluate").get("measures"), recipe.table("select")
    # A wrong section is reported where it is used.
    if (groups is None and default_resolver()) or not isinstance(measures, list):
        return recipe, ()
    bias = select.get("bias")
    if bias is None and select.get("selector") in names("selector"):
        default = inspect.signature(load("selector", select["selector"])).parameters.get("bias")
        bias = None if default is None else default.default
    by = split_measures(bias) if isinstance(bias, str) else []
    plain = {text: _plain(text, groups) if "who=" in str(text) else text for text in (*measures, *by)}
    changed = tuple(text for text, other in plain.items() if other != text)
    if not changed:
        return recipe, ()
    sections = {**recipe.sections}
    sections["evaluate"] = {**sections["evaluate"], "measures": list(dict.fromkeys(plain[text] for text in measures))}
    if by:
        sections["select"] = {**select, "bias": " ".join(dict.fromkeys(plain[text] for text in by))}
    return Recipe(recipe.name, sections), changed


def _plain(text: str, groups: Groups | None) -> str:
    try:
        (one,) = Catalogue(groups=groups).complete([text])
    except ConfigError:  # the measure cannot compare the groups, which is reported where it is used
        return text
    measure = Measure.parse(text)
    if measure.param("resolver", "") or not (is_doubtful(one) or default_resolver() is None):
        return text
    return replace(measure, params=tuple(one for one in measure.params if one[0] != "who")).text


# The sections and texts of a recipe on which no step depends.
_NOT_BUILT = ("title", "about", "publish")
_SHOWN, _LONGEST = 4, 60


def origin_of(name: str, sections: Mapping[str, Any], groups: Groups | None) -> dict[str, Any] | None:
    """Return the recipe as JSON values, with the absolute path of the collection and the words of the groups.

    None if the recipe has a value that JSON cannot represent, such as a date.
    """
    source = str(sections["collection"]["source"])
    if source != "demo" and not source.startswith("irds:"):
        source = str(Path(source).absolute())
    found = {"recipe": name, "sections": sections, "collection": source}
    if groups is not None:
        lexicon = groups.lexicon
        words = {group: list(terms) for group, terms in lexicon.groups.items()}
        about = {**groups.as_section(), **lexicon.about, "lexicon": lexicon.name}
        found["groups"] = {**about, "words": words, "overlap": groups.overlap}
    try:
        made: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    except (TypeError, ValueError):
        return None
    return made


def other_settings(sections: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The settings that differ between a recipe and an earlier build, such as ``retrieve.k (100 in that build)``."""
    know_secrets(before)
    now, then = (
        flat_settings({name: value for name, value in each.items() if name not in _NOT_BUILT})
        for each in (sections, before)
    )
    names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
    if any(name.startswith("groups.") for name in names):
        # Other groups change the words and the measures too, so only the groups are named.
        given = before.get("groups", {})
        counted = given.get("names") or list(given.get("words", {})) or [given.get("lexicon")]
        groups = ", ".join(map(str, counted)) if given else "none given"
        return [f"the groups, which ⟨groups⟩ and ⟨lexicon⟩ set (groups in that build: {groups})"]
    found = []
    for name in names[:_SHOWN]:
        text = json.dumps(then[name], ensure_ascii=False, default=str) if name in then else "not set"
        found.append(f"{name} ({text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'} in that build)")
    return [*found, *([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])]


def remembered_groups(section: Mapping[str, Any] | None) -> Groups | None:
    """Return the groups as they were counted, even if their lexicon file has changed since."""
    if section is None:
        return None
    words = {name: tuple(terms) for name, terms in section["words"].items()}
    stated = one_spelling(section)
    about = {key: str(stated[key]) for key in LEXICON_FACTS if key in stated}
    lexicon = Lexicon(**{"name": str(section["lexicon"]), **about}, groups=words)
    return Groups(lexicon, section.get("names"), tokens=section.get("tokens"), overlap=str(section["overlap"]))


# An address, a collection to download, or a name in a Python file.
_OUTSIDE = re.compile(r"irds:|.*(://|\.py:)", re.DOTALL)
_PLUGINS = ("ranker", "reformulator", "classifier", "filter", "selector")
_MODELS = {"model", "models", "adapter", "back"}
_OWN_MODELS = {*MODELS, MINILM, SMOLLM, "none", *(path.name for path in (DATA / "adapters").iterdir())}


def needs_trust(recorded: Any, name: str = "") -> list[str]:
    """The recorded settings that could run code, send data, read a secret, or load a model that is not of askew.

    Somebody else may have written a store or an index. Without the user's trust, nothing is made from such settings.
    """
    if isinstance(recorded, Mapping):
        used = {str(key): one for key, one in recorded.items() if name or key not in (*_NOT_BUILT, "groups")}
        return [found for key, one in used.items() for found in needs_trust(one, f"{name}.{key}".lstrip("."))]
    if isinstance(recorded, list | tuple):
        return list(dict.fromkeys(found for one in recorded for found in needs_trust(one, name)))
    if not isinstance(recorded, str):
        return []
    has_power = bool(_OUTSIDE.match(recorded)) or (name.rpartition(".")[2] in _MODELS and recorded not in _OWN_MODELS)
    for kind in _PLUGINS:
        if recorded in names(kind) and not has_power:
            has_power = "(askew." not in origin(kind, recorded) or "base_url" in settings_of(kind, recorded)
            has_power = has_power or (kind == "ranker" and is_engine(recorded))
    return [name] if has_power else []


def trust_note(settings: Sequence[str], what: str) -> Note:
    """Say which settings need trust, and what is not done without it."""
    return Note(
        f"{what}, because it names services, models or code ({', '.join(settings)}). If you trust who made it, add "
        "--trust-store",
        code="not-trusted", settings=tuple(settings),
    )  # fmt: skip


# The file of answers in the store, unless the settings of the engine name another file.
ANSWERS = "engines.answers"


def engine_notes(stages: Iterable[Stage]) -> list[str]:
    """Return the notes of engines about the answers that they gave in this process."""
    opened = [vars(stage).get("ranker") for stage in stages if isinstance(stage, RetrieveStage)]
    return [f"{ranker.id}: {note}" for ranker in opened if isinstance(ranker, EngineRanker) for note in ranker.notes()]


# Settings of [select] that are not settings of the selector: how the stage chooses, and which steps are added.
_HOW = ("per", "judged_sources")
_AROUND = ("across", "held_out", "holds", "placebo")
_METHOD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
# Rows of a shard, by stage: few if a row takes long or becomes many rows, so that workers share the work and little is
# lost if a worker fails.
_SHARD_ROWS = {"promising": 1 << 40, "reformulate": 512, "filter": 16_384, "retrieve": 16_384}
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
        notes = self.resources.collection.notes("queries", "judgements")
        asked = self.evaluate.asked
        if self.chosen_classifier:
            notes.append(f"classify: classifier {self.chosen_classifier}")
        if any(step.stage is self.evaluate for step in self.plan.steps):
            notes += note_on_grades(asked, self.resources.judgements.table["relevance"].unique().to_pylist())
        # For groups of the user: the sign of the measures, and which of them rely on a model of other groups.
        signed = [one for one in asked if is_signed(one) and not set(one.groups) <= PUBLISHED]
        notes += [sign_of(signed[0])] if signed else []
        if self.without_who:
            why = (
                "the model that estimates it was not trained on words of these groups"
                if default_resolver()
                else "the extra neural, which finds people in general, is not installed, so that all mentions decide"
            )
            said = f"{', '.join(self.without_who)}: the parameter ⟨who⟩ is left out, because {why}"
            notes.append(Note(said, code="without-who", measures=self.without_who))
        resolved = note_on_resolver(asked)
        chosen_by = () if self.select is None else self.select.selector.measures()
        if note_on_resolver([one for one in asked if one.text in chosen_by]):
            words = f"{resolved[0]}; to select pairs without this model, name measures without who= in select.bias"
            resolved[0] = Note(words, code="selected-by-resolver")
        return [*notes, *resolved]

    @property
    def select(self) -> Select | None:
        """The stage that chooses pairs; None if the plan does not include it."""
        return next((step.stage for step in self.plan.steps if isinstance(step.stage, Select)), None)


def stage_of(recipe: Recipe, store: Store, name: str) -> Stage:
    """Make the stage of a step, in another process."""
    return next(step.stage for step in prepare(recipe, store).plan.steps if step.name == name)


def prepare(recipe: Recipe, store: Store, until: str | None = None, code: bool = True) -> Build:
    """Check every name and setting of a recipe and return its steps; no index is built and no model is loaded.

    Only with ``code`` are Python functions that the recipe names loaded.
    """
    check_publish(recipe)
    groups = groups_of(recipe)
    is_open = recipe.table("classify").get("classifier") == defaults.CLASSIFIER
    recipe, without_who = with_all_mentions(recipe, groups)
    recipe = Recipe(recipe.name, with_named_classifier(recipe.sections, groups))
    resources = resources_of(recipe, store)
    resources.code = code
    retrieve = retrieve_stage(recipe, resources)
    evaluate = _evaluate(recipe, resources, groups)
    measured = sorted({name for one in evaluate.asked for name in one.groups})
    for section in ("classify", "reformulate", "filter") if groups is None and measured else ():
        for given in recipe.tables(section) if section in LISTS else [recipe.table(section)]:
            if isinstance(own := given.get("groups"), str):
                refuse_other_groups(own, measured, f"recipe {recipe.name}: {section}")
    steps: list[Step] = []
    last = "queries"
    if recipe.sections.get("classify"):
        given = recipe.table("classify")
        keep = given.pop("keep", ["neutral"])
        refuse_other_than_names("classify.keep", keep)
        steps.append(Step("neutral", Classify(make_classifier(given, groups), keep), last))
        last = "neutral"
    if evaluate.holding is not None:
        steps += [Step(ORIGINALS, retrieve, last), Step(PROMISING, Promising(evaluate), ORIGINALS)]
        last = PROMISING
    steps.append(Step("variants", reformulate_stage(recipe, resources, groups), last))
    steps.append(Step("kept", Keep([make_filter(one, groups) for one in recipe.tables("filter")]), "variants"))
    steps.append(Step("runs", retrieve, "kept"))
    steps.append(Step("scores", evaluate, "runs"))
    if recipe.sections.get("select"):
        steps += _selection(recipe, resources, evaluate, steps)
    elif recipe.sections.get("cross"):
        raise ConfigError(f"recipe {recipe.name}: [[cross]] needs selected pairs; add a section [select]")
    if until is not None:
        names_of_steps = [step.name for step in steps]
        check_name("step", until, names_of_steps)
        steps = steps[: names_of_steps.index(until) + 1]
    first_ranker = recipe.table("first_pass").get("ranker")
    steps = [_placed(step, recipe, store, resources, first_ranker) for step in steps]
    plan = Plan({"queries": resources.queries}, steps, origin_of(recipe.name, recipe.sections, groups))
    chosen = recipe.table("classify")["classifier"] if is_open else None
    return Build(recipe, plan, resources, evaluate, chosen, without_who)


def _switch(recipe: Recipe, name: str, default: bool) -> bool:
    """Return a setting of [select] that is true or false."""
    value = recipe.table("select").get(name, default)
    if not isinstance(value, bool):
        raise ConfigError(f"recipe: select.{name} should be true or false, found {value!r}")
    return value


def _evaluate(recipe: Recipe, resources: Resources, groups: Groups | None) -> Evaluate:
    """Return the stage that scores; it also computes the columns by which pairs hold, if they must."""
    given = recipe.table("evaluate")
    only_known(given, ("measures",), "evaluate")
    refuse_other_than_names("evaluate.measures", given.get("measures"))
    evaluate = Evaluate(given["measures"], resources, Catalogue(groups=groups))
    if _switch(recipe, "holds", False):
        evaluate.holding = _holding(recipe, evaluate)
        if evaluate.holding is None:
            raise ConfigError(
                f"recipe {recipe.name}: select.holds needs a selector whose first measure in 'bias' is the difference "
                "of two groups, such as ARaB(tf)@10"
            )
    return evaluate


def _selection(recipe: Recipe, resources: Resources, evaluate: Evaluate, before: list[Step]) -> list[Step]:
    """Return the steps that choose pairs, choose them again to judge the choice, and search them again."""
    steps, across = _across(recipe, resources, evaluate, before)
    select, holding = _select(recipe, evaluate, across), _holding(recipe, evaluate)
    steps.append(Step("pairs", select, "scores"))
    if _switch(recipe, "held_out", True):
        steps.append(Step(crossfit.STEP, crossfit.HeldOut(evaluate, select, resources), "runs"))
    if _switch(recipe, "placebo", True) and holding is not None:
        keys = Plan({"queries": resources.queries}, before).keys()
        originals = StepScores(resources.store, ORIGINALS, keys[ORIGINALS]) if evaluate.holding else None
        steps.append(Step(crossfit.PLACEBO, crossfit.Placebo(evaluate, select, resources, holding, originals), "runs"))
    return steps + _again(recipe, resources, evaluate, select)


def _holding(recipe: Recipe, evaluate: Evaluate) -> Holding | None:
    """Return the lean by which pairs are chosen, the first in ``bias``; None if no difference of two groups decides."""
    known = {Measure.parse(one.text): one for one in evaluate.asked}
    given = dict(selector_of(recipe).settings()) if recipe.sections.get("select") else {}
    bias, effectiveness = (
        [known.get(as_measure(one)) for one in measure_list(given.get(name) or [])]
        for name in ("bias", "effectiveness")
    )
    # The boxes of RePair are chosen by effectiveness alone.
    lean = bias[0] if bias and "boxes" not in given else None
    if lean is None or not isinstance(lean.family, GroupDifference) or len(lean.groups) != 2:
        return None
    return Holding(lean, [one.text for one in effectiveness if one is not None and one.judged])


def _placed(step: Step, recipe: Recipe, store: Store, resources: Resources, first_ranker: object) -> Step:
    """Return the step with the size of its shards, and with the function that makes its stage in other processes."""
    stage, name = step.stage, step.stage.name
    ranker = first_ranker if isinstance(stage, ReformulateStage) else None
    if isinstance(stage, RetrieveStage):
        ranker = stage.settings()["ranker"].get("ranker")
    if is_engine(str(ranker)):
        # Request limits of live engines are per process.
        return replace(step, maker=None, shard_rows=EngineRanker.queries_at_once)
    rows = _SHARD_ROWS.get(name)
    if rows is not None and name in _FEWEST_ROWS:
        expected = resources.queries.rows * (_CANDIDATES if name == "filter" else 1)
        rows = min(rows, max(_FEWEST_ROWS[name], expected // _SHARDS))
    return replace(step, maker=partial(stage_of, recipe, store, step.name), shard_rows=rows)


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
                f"recipe: 'select.across' lists the ranker {name!r}, which must search every candidate; remove the "
                "setting 'of' from its section [[cross]]"
            )
        found += _asked(f"cross-{name}", "kept", given, resources, evaluate, "cross")
    keys = Plan({"queries": resources.queries}, [*steps, *found]).keys() if names else {}
    return found, {name: StepScores(resources.store, f"cross-{name}", keys[f"cross-{name}"]) for name in names}


def _cross_name(given: Mapping[str, Any], section: str) -> str:
    return _plain_name(given.get("name", given.get("ranker", "bm25")), section)


def _again(recipe: Recipe, resources: Resources, evaluate: Evaluate, select: Select) -> list[Step]:
    """Return the steps that search chosen pairs with other rankers."""
    steps: list[Step] = []
    for number, given in enumerate(recipe.tables("cross")):
        section = f"cross.{number}"
        ranker = _cross_name(given, section)
        if ranker in select.across:
            continue
        subsets = select.selector.subsets
        allowed = [*subsets, EVERY]
        of = given.pop("of", [name for name in subsets if name != "negative"])
        if not isinstance(of, list) or not of or not all(one in allowed for one in of):
            raise ConfigError(f"recipe: '{section}.of' should be one or more of {', '.join(allowed)}; found {of!r}")
        given.pop("name", None)
        name = f"cross-{ranker}"
        steps.append(Step(f"{name}-chosen", ChosenPairs([EVERY] if EVERY in of else of), "pairs"))
        steps += _asked(name, f"{name}-chosen", given, resources, evaluate, section)
    return steps


def _plain_name(name: Any, section: str) -> str:
    """Check a name that becomes part of the name of a folder."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        raise ConfigError(f"recipe: {section} needs a name of lowercase letters, digits and hyphens, found {name!r}")
    return name


def _asked(
    name: str, reads: str, given: dict[str, Any], resources: Resources, evaluate: Evaluate, section: str
) -> list[Step]:
    return [Step(f"{name}-runs", _retrieve(given, resources, section), reads), Step(name, evaluate, f"{name}-runs")]


def resources_of(recipe: Recipe, store: Store) -> Resources:
    """Return the resources of the collection of a recipe."""
    given = recipe.table("collection")
    only_known(given, ("source", "fields", "split"), "collection")
    if not isinstance(given.get("source"), str):
        source = given.get("source")
        raise ConfigError(f"recipe: collection.source should be a folder, 'irds:ID' or 'demo', found {source!r}")
    fields, split = given.get("fields", []), given.get("split")
    if not isinstance(fields, str) and fields != []:
        refuse_other_than_names("collection.fields", fields)
    if split is not None and not isinstance(split, str):
        raise ConfigError(f"recipe: collection.split should be a name, found {split!r}")
    return Resources(given["source"], store, fields, split)


def retrieve_stage(recipe: Recipe, resources: Resources) -> RetrieveStage:
    """Return the stage that searches, with the settings of [retrieve]."""
    return _retrieve(recipe.table("retrieve"), resources, "retrieve")


def _retrieve(given: dict[str, Any], resources: Resources, section: str) -> RetrieveStage:
    k = _depth(given, "k", 100, section)
    make, key, ready = _ranker({"ranker": "bm25", **given}, resources, section)
    return RetrieveStage(make, key, k, ready)


def _ranker(given: dict[str, Any], resources: Resources, section: str) -> tuple[Any, dict[str, Any], Any]:
    """Return a function that opens a ranker, the settings that identify it, and a function that builds its index."""
    name = given.get("ranker", "bm25")
    check_name("ranker", str(name), names("ranker"))
    settings = {key: value for key, value in given.items() if key != "ranker"}
    needed = [key for key, default in settings_of("ranker", name).items() if default == "needed"]
    if is_engine(name):
        check("ranker", name, settings, section)
        if missing := [key for key in needed if key not in given]:
            raise ConfigError(f"{section}: the ranker {name!r} needs the setting {missing[0]!r}")
        # This opens no connection, and refuses invalid settings early, such as a secret in an address.
        ranker = make_ranker(given)
        assert isinstance(ranker, EngineRanker), f"internal error: the ranker {name!r} is not a live search engine"
        if resources.code and isinstance(ranker.engine, CallableEngine):
            ranker.engine.load()

        def connect() -> RankerPlugin:
            known = ranker.over(resources.doc_ids)
            known.keep_answers(resources.store.local / ANSWERS)
            return known

        # A ranker of another package may be a plain function; then all of its settings identify it.
        named = getattr(load("ranker", name), "named", dict)(settings)
        return connect, {"ranker": name, **named}, lambda: resources.doc_ids
    kind = name if name in names("index") else "bm25"
    making = settings.pop("index", {})
    if not isinstance(making, dict):
        raise ConfigError(f'{section}.index should be the settings of the index, as in index = {{model = "..."}}')
    check("ranker", name, settings, section)
    check("index", kind, making, f"{section}.index")
    missing = [key for key, default in settings_of("index", kind).items() if default == "needed" and key not in making]
    if extra := [key for key in missing if key not in ("documents", "folder")]:
        raise ConfigError(f"{section}.index: the ranker {name!r} needs the setting {extra[0]!r} there")
    if needed != ["index"]:
        raise ConfigError(f"{section}: the ranker {name!r} does not search an index of its own; name another ranker")

    def make() -> RankerPlugin:
        ranker = make_ranker({**settings, "ranker": name, "index": str(resources.index(kind, making))})
        if not ranker.doc_ids.cast(pa.string()).equals(resources.doc_ids):
            raise DataError(f"{section}: the index of {name!r} has other documents than the collection; delete it")
        return ranker

    named = {"ranker": name, **settings, "index": resources.index_key(kind, making)}
    return make, named, lambda: (resources.index(kind, making), resources.doc_ids)


def _select(recipe: Recipe, evaluate: Evaluate, across: Mapping[str, StepScores]) -> Select:
    given = recipe.table("select")
    how = {name: given[name] for name in _HOW if name in given}
    selector = selector_of(recipe)
    missing = [text for text in selector.measures() if text not in evaluate.directions]
    if missing:
        near = difflib.get_close_matches(missing[0], evaluate.directions, n=1, cutoff=0.8)
        hint = f"; did you mean {near[0]}? If not, add it there" if near else "; add it there"
        raise ConfigError(f"select: the measure {missing[0]} is not in [evaluate]{hint}")
    return Select(selector, evaluate.directions, **how, across=across, holding=evaluate.holding)


def selector_of(recipe: Recipe) -> SelectorPlugin:
    """Make the selector of [select] with its settings."""
    given = {name: value for name, value in recipe.table("select").items() if name not in (*_HOW, *_AROUND)}
    made: SelectorPlugin = from_spec("selector", given)
    return made


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
            what = "a unique name of letters, digits, '.', '_' and '-'"
            raise ConfigError(f"recipe: reformulate.{place}.name should be {what}; found {name!r}")
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
