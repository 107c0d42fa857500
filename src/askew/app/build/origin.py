"""The origin of a build, recorded in its store: the recipe, the path of the collection, the words of the groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askew.core.address import know_secrets
from askew.core.groups import Groups
from askew.core.lexicon import LEXICON_FACTS, Lexicon, one_spelling

# The sections and texts of a recipe on which no step depends.
_NOT_BUILT = ("title", "about", "publish")
_SHOWN, _LONGEST = 4, 60


def origin_of(name: str, sections: Mapping[str, Any], groups: Groups | None) -> dict[str, Any] | None:
    """Return the recipe as JSON values, with the absolute path of the collection and the words of the groups.

    None if the recipe has a value that JSON cannot represent, such as a date.
    """
    found = {"recipe": name, "sections": sections, "collection": _absolute(str(sections["collection"]["source"]))}
    if groups is not None:
        found["groups"] = _section(groups)
    try:
        made: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    except (TypeError, ValueError):
        return None
    return made


def _absolute(source: str) -> str:
    """Return a name of the collection that is valid in any working directory."""
    return source if source == "demo" or source.startswith("irds:") else str(Path(source).absolute())


def _section(groups: Groups) -> dict[str, Any]:
    lexicon = groups.lexicon
    words = {name: list(terms) for name, terms in lexicon.groups.items()}
    return {**groups.as_section(), **lexicon.about, "lexicon": lexicon.name, "words": words, "overlap": groups.overlap}


def other_settings(sections: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The settings that differ between a recipe and an earlier build, such as ``retrieve.k (100 in that build)``."""
    know_secrets(before)
    now, then = _settings(sections), _settings(before)
    names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
    if any(name.startswith("groups.") for name in names):
        # Other groups change the words and the measures too, so only the groups are named.
        given = before.get("groups", {})
        counted = given.get("names") or list(given.get("words", {})) or [given.get("lexicon")]
        groups = ", ".join(map(str, counted)) if given else "none given"
        return [f"the groups, which groups= and lexicon= set (groups in that build: {groups})"]
    said = {name: _short(then[name]) for name in names if name in then}
    found = [f"{name} ({said.get(name, 'not set')} in that build)" for name in names[:_SHOWN]]
    return [*found, *([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _settings(value: Any, name: str = "") -> dict[str, Any]:
    """The settings of a recipe by names as in ``--set``, such as ``reformulate.0.count``."""
    if isinstance(value, Mapping):
        inner = {str(key): one for key, one in value.items() if name or key not in _NOT_BUILT}
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        inner = {str(number): one for number, one in enumerate(value)}
    else:
        return {name: value}
    return {
        key: one for part, below in inner.items() for key, one in _settings(below, f"{name}.{part}".lstrip(".")).items()
    }


def remembered_groups(section: Mapping[str, Any] | None) -> Groups | None:
    """Return the groups as they were counted, even if their lexicon file has changed since."""
    if section is None:
        return None
    words = {name: tuple(terms) for name, terms in section["words"].items()}
    stated = one_spelling(section)
    about = {key: str(stated[key]) for key in LEXICON_FACTS if key in stated}
    lexicon = Lexicon(**{"name": str(section["lexicon"]), **about}, groups=words)
    return Groups(lexicon, section.get("names"), tokens=section.get("tokens"), overlap=str(section["overlap"]))
