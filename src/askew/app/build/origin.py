"""The origin of a build, recorded in its store: the recipe, the path of the collection, the words of the groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askew.core.groups import Groups
from askew.core.lexicon import LEXICON_FACTS, Lexicon, one_spelling


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


def remembered_groups(section: Mapping[str, Any] | None) -> Groups | None:
    """Return the groups as they were counted, even if their lexicon file has changed since."""
    if section is None:
        return None
    words = {name: tuple(terms) for name, terms in section["words"].items()}
    stated = one_spelling(section)
    about = {key: str(stated[key]) for key in LEXICON_FACTS if key in stated}
    lexicon = Lexicon(**{"name": str(section["lexicon"]), **about}, groups=words)
    return Groups(lexicon, section.get("names"), tokens=section.get("tokens"), overlap=str(section["overlap"]))
