"""What a store remembers of how it was made: the recipe, where its collection is, the words of its groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askew.core.groups import Groups
from askew.core.lexicon import Lexicon


def origin_of(name: str, sections: Mapping[str, Any], groups: Groups | None) -> dict[str, Any] | None:
    """The recipe as JSON holds it, and what it names by a file: the place of the collection, the words of the groups.

    None where it has something that JSON has not, such as a date.
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
    """A collection by a name that holds in any folder."""
    return source if source == "demo" or source.startswith("irds:") else str(Path(source).absolute())


def _section(groups: Groups) -> dict[str, Any]:
    words = {name: list(terms) for name, terms in groups.lexicon.groups.items()}
    section = {**groups.as_section(), "lexicon": groups.lexicon.name, "language": groups.lexicon.language}
    return {**section, "words": words, "overlap": groups.overlap}


def remembered_groups(section: Mapping[str, Any] | None) -> Groups | None:
    """The groups as they were counted, whatever became of the file that they were read from."""
    if section is None:
        return None
    words = {name: tuple(terms) for name, terms in section["words"].items()}
    lexicon = Lexicon(str(section["lexicon"]), words, language=str(section["language"]))
    return Groups(lexicon, section.get("names"), tokens=section.get("tokens"), overlap=str(section["overlap"]))
