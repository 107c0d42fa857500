"""Read and check recipes: TOML files that name the collection, the methods and the measures of a build."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.core.address import know_secrets
from askew.core.errors import ConfigError, UnknownName
from askew.core.files import DATA, parse_toml
from askew.core.groups import Groups
from askew.core.lexicon import LEXICON_FACTS, Lexicon, load_lexicon, one_spelling
from askew.core.measure import split_measures
from askew.core.plugins import names

_FOLDER = DATA / "recipes"
# The sections of a recipe: single tables, lists of tables, and texts.
_TABLES = ("collection", "groups", "classify", "first_pass", "retrieve", "evaluate", "select", "publish")
LISTS = ("reformulate", "filter", "cross")
_TEXTS = ("title", "about")
# The settings of [publish]; the default title and description are those of the recipe.
_PUBLISH = (
    "title", "description", "license", "collection", "contact", "homepage", "citation", "version", "language",
    "query_text", "sources",
)  # fmt: skip
_SOURCE = ("name", "license", "note")
_NEEDED = ("collection", "reformulate", "retrieve", "evaluate")


@dataclass(frozen=True)
class Recipe:
    """A parsed recipe: its name and its sections."""

    name: str
    # A recipe may contain a secret, so its sections are left out of every repr.
    sections: Mapping[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        """Split a text of several measures, and register the secrets of the recipe, so that no message shows them."""
        evaluate = self.sections.get("evaluate")
        if isinstance(evaluate, Mapping) and isinstance(evaluate.get("measures"), str):
            listed = {**evaluate, "measures": split_measures(evaluate["measures"])}
            object.__setattr__(self, "sections", {**self.sections, "evaluate": listed})
        know_secrets(self.sections)

    def table(self, name: str) -> dict[str, Any]:
        """Return a section that is one table; empty if the recipe does not have it."""
        return dict(self.sections.get(name, {}))

    def tables(self, name: str) -> list[dict[str, Any]]:
        """Return a section that is a list of tables."""
        return [dict(one) for one in self.sections.get(name, [])]


def shipped_recipes() -> list[str]:
    """Return the names of the recipes that ship with askew."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def recipe_text(name: str | Path) -> tuple[Path, str]:
    """Return the path and the text of a recipe, given by name or as a file."""
    path = _FOLDER / f"{name}.toml" if str(name) in shipped_recipes() else Path(name)
    try:
        return path, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if path.suffix != ".toml":
            raise UnknownName("recipe", str(name), shipped_recipes()) from None
        raise ConfigError(
            f"recipe {path}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})"
        ) from None


def read_recipe(name: str | Path) -> Recipe:
    """Read a recipe by name, or from a file."""
    path, text = recipe_text(name)
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"recipe {path}: not a valid TOML file ({error})") from None
    recipe = Recipe(path.stem, data)
    _check_shape(recipe, str(path))
    return recipe


def with_settings(recipe: Recipe, changes: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """Return the recipe with some values changed, as in ``{"retrieve": {"k": 50}}``.

    Tables of a list are numbered, as in ``reformulate.0``. The number after the last table adds one:
    ``{"cross.0": {"ranker": "dense"}}``.
    """
    sections: dict[str, Any] = copy.deepcopy(dict(recipe.sections))
    for owner, values in changes.items():
        name, _, number = owner.partition(".")
        target = sections.setdefault(name, []) if name in LISTS else sections.get(name)
        if isinstance(target, list):
            if not number.isdigit() or int(number) > len(target):
                raise ConfigError(
                    f"⟨settings⟩ {owner}: {name} is a list of {len(target)} tables; add the number of a table, as in "
                    f"{name}.0"
                )
            if int(number) == len(target):
                target.append({})
            target = target[int(number)]
        elif target is None and name in _TABLES:
            target = sections[name] = {}
        if not isinstance(target, dict) or (number and name not in LISTS):
            raise UnknownName("section", owner, [*_TABLES, *LISTS], f"recipe {recipe.name}")
        target.update(values)
    changed = Recipe(recipe.name, sections)
    _check_shape(changed, recipe.name)
    return changed


def with_groups(recipe: Recipe, groups: Groups | None) -> Recipe:
    """Return the recipe with these groups, which every measure and method counts; unchanged if None."""
    if groups is None:
        return recipe
    return Recipe(recipe.name, {**recipe.sections, "groups": groups.as_section()})


def _check_shape(recipe: Recipe, where: str) -> None:
    known = [*_TABLES, *LISTS, *_TEXTS]
    for key, value in recipe.sections.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean [{near[0]}]?" if near else ""
            raise ConfigError(f"recipe {where}: there is no section {key!r}{hint} (known: {', '.join(known)})")
        wanted = list if key in LISTS else str if key in _TEXTS else dict
        if not isinstance(value, wanted) or (wanted is list and not all(isinstance(one, dict) for one in value)):
            form = f"[[{key}]]" if key in LISTS else f"[{key}]" if key in _TABLES else f'{key} = "..."'
            raise ConfigError(f"recipe {where}: expected {form}, found {type(value).__name__} for {key!r}")
    missing = [key for key in _NEEDED if not recipe.sections.get(key)]
    if missing:
        raise ConfigError(f"recipe {where}: the section {missing[0]!r} is missing; add it")


def groups_of(recipe: Recipe) -> Groups | None:
    """Return the groups of a recipe (a lexicon by name or file, or words); None if it uses the published defaults."""
    given = one_spelling(recipe.table("groups"))
    only_known(given, ("lexicon", "words", "names", "tokens", *LEXICON_FACTS), "groups")
    if not given:
        return None
    if ("lexicon" in given) == ("words" in given):
        raise ConfigError(f"recipe {recipe.name}: [groups] should have either the key 'lexicon' or the key 'words'")
    chosen, tokens = given.get("names"), given.get("tokens")
    if chosen is not None:
        refuse_other_than_names("groups.names", chosen)
    if tokens is not None and tokens not in names("tokenizer"):
        raise UnknownName("tokenizer", str(tokens), names("tokenizer"), "groups.tokens")
    words = given.get("words", {})
    if not isinstance(words, dict):
        raise ConfigError(f"recipe {recipe.name}: groups.words should list the words of each group, found {words!r}")
    for group, terms in words.items():
        refuse_other_than_names(f"groups.words.{group}", terms)
    about = {key: given[key] for key in LEXICON_FACTS if key in given}
    for key, value in about.items():
        if not words or not isinstance(value, str):
            wrong = f"should be a text, found {value!r}" if words else "needs the key 'words'; remove it"
            raise ConfigError(f"recipe {recipe.name}: 'groups.{key}' {wrong}")
    lexicon = Lexicon(**{"name": recipe.name, **about}, groups=words) if words else load_lexicon(given["lexicon"])
    return Groups(lexicon, chosen, tokens=tokens)


def check_publish(recipe: Recipe) -> None:
    """Check the settings of the section [publish]."""
    given = recipe.table("publish")
    only_known(given, _PUBLISH, "publish")
    has_texts = given.pop("query_text", True)
    if not isinstance(has_texts, bool):
        raise ConfigError(f"recipe: publish.query_text should be true or false, found {has_texts!r}")
    sources = given.pop("sources", [])
    if not isinstance(sources, list) or not all(isinstance(one, dict) and one.get("name") for one in sources):
        raise ConfigError(f"recipe: publish.sources should be tables with name, license and note, found {sources!r}")
    for one in sources:
        only_known(one, _SOURCE, "publish.sources")
    for key, value in given.items():
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"recipe: publish.{key} should be a text, found {value!r}")


def only_known(given: Mapping[str, Any], known: Sequence[str], section: str) -> None:
    """Refuse a setting that the section does not have."""
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"recipe: [{section}] has no setting {key!r}{hint} (it has: {', '.join(known)})")


def refuse_other_than_names(what: str, value: Any) -> None:
    """Refuse a value that is not a list of names."""
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"recipe: {what} should be a list of names, found {value!r}")


def flat_settings(value: Any, name: str = "") -> dict[str, Any]:
    """Return nested settings by names as in ``--set``, such as ``reformulate.0.count``."""
    if isinstance(value, Mapping):
        inner = {str(key): one for key, one in value.items()}
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        inner = {str(number): one for number, one in enumerate(value)}
    else:
        return {name: value}
    parts = (flat_settings(below, f"{name}.{part}".lstrip(".")) for part, below in inner.items())
    return {key: one for part in parts for key, one in part.items()}
