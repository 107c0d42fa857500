"""Classes of mentions: who a word of a lexicon refers to in a text. Resolvers assign the classes.

``real``       one specific real person, or several; pronouns and kin words that refer to such a person count
``fictional``  a character of a story, film, game, song or myth
``generic``    no specific person: anyone, a role, people in general
``name``       part of a title, brand, place or team
``other``      no person: a ship, an animal, another meaning, an artifact of the text such as a clipped "The"

Each class is an estimate. The resolver ``light`` is a linear model of the words around the mention, ``neural`` is a
small neural network.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import NamedTuple

from askew.core.errors import ConfigError, check_name, check_names
from askew.core.shipped import DATA

WHO = ("real", "fictional", "generic", "name", "other")
WHO_SHORT = {
    "real": "a real person", "fictional": "a character", "generic": "anyone",
    "name": "part of the name of a work, brand, place or team",
    "other": "no person, for example because the word has another meaning",
}  # fmt: skip
ANY = "any"
# The resolvers were trained and evaluated on the words of these groups.
LEARNED = ("female", "male")


class ResolverKind(NamedTuple):
    """A resolver, which decides who a mention refers to: its description, and its model files."""

    about: str
    files: tuple[str, ...]


_SHARED = ("mentions/relevance.json", "mentions/frequencies.npz")
RESOLVERS = {
    "light": ResolverKind(
        "a linear model that reads the words around the mention of a group", ("mentions/light.npz", *_SHARED)
    ),
    "neural": ResolverKind(
        "MiniLM with the adapters minilm-who and minilm-why; it is more accurate but slower than 'light', and needs "
        "the optional packages of askew[neural]",
        ("adapters/minilm-who/adapter.safetensors", "adapters/minilm-why/adapter.safetensors", *_SHARED),
    ),
}


@cache
def resolver_id(name: str) -> str:
    """The id of a resolver, with the hash of its files: ``light@0123456789ab``.

    ``name`` may also be such an id. If it is not the id of this version of askew, ``ConfigError`` is raised.
    """
    short, _, content = name.partition("@")
    check_name("resolver", short, RESOLVERS)
    sha = hashlib.sha256()
    for file in RESOLVERS[short].files:
        sha.update((DATA / file).read_bytes())
    found = f"{short}@{sha.hexdigest()[:12]}"
    if content and name != found:
        raise ConfigError(f"resolver {name!r} was requested, but this version of askew has {found}; request {found}")
    return found


def classes_of(who: str, where: str = "") -> tuple[str, ...]:
    """The classes that a text such as ``generic+real`` names, in the order of ``WHO``; all of them for ``any``."""
    named = who.split("+")
    check_names("class of mentions", named, (*WHO, ANY), where)
    return tuple(one for one in WHO if one in named or ANY in named)
