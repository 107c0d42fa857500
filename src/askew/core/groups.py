"""Groups: which words name which group, which of the groups are compared, and how words are matched.

A ``Groups`` object is made once from the user's input. All other code gets its groups from this object.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from askew.core.defaults import TOKENIZER
from askew.core.errors import ConfigError, check_name, check_names
from askew.core.files import DATA
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons

# Classes of mentions: who a word of a lexicon refers to in a text. Resolvers assign the classes.

WHO = ("real", "fictional", "generic", "name", "other")
WHO_SHORT = {
    "real": "a real person", "fictional": "a character", "generic": "anyone",
    "name": "part of the name of a work, brand, place or team",
    "other": "no person, for example because the word has another meaning",
}  # fmt: skip
ANY = "any"
# The resolver was trained and evaluated on the words of these groups.
LEARNED = ("female", "male")


# The resolver decides who a mention refers to. Its model files, and a description.
NEURAL = "neural"
_RESOLVER_FILES = (
    "adapters/minilm-who/adapter.safetensors", "adapters/minilm-why/adapter.safetensors", "mentions/relevance.json",
    "mentions/frequencies.npz",
)  # fmt: skip
RESOLVERS = {NEURAL: "MiniLM with the adapters minilm-who and minilm-why; needs the extra neural"}


@cache
def resolver_id(name: str = NEURAL) -> str:
    """The id of a resolver, with the hash of its files: ``neural@0123456789ab``.

    ``name`` may also be such an id. If it is not the id of this version of askew, ``ConfigError`` is raised.
    """
    short, _, content = name.partition("@")
    if short == "light":
        raise ConfigError(
            f"resolver {name!r} is no longer part of askew, because it found too few mentions of people in general "
            "(recall 0.40 for women, 0.27 for men); leave out ⟨resolver⟩, and install the extra neural",
            code="removed",
        )
    check_name("resolver", short, RESOLVERS)
    sha = hashlib.sha256()
    for file in _RESOLVER_FILES:
        sha.update((DATA / file).read_bytes())
    current = f"{short}@{sha.hexdigest()[:12]}"
    if content and name != current:
        message = f"resolver {name!r} was requested, but this version of askew has {current}; request {current}"
        raise ConfigError(message, code="version", found=current)
    return current


def classes_of(who: str, where: str = "") -> tuple[str, ...]:
    """The classes that a text such as ``generic+real`` names, in the order of ``WHO``; all of them for ``any``."""
    named = who.split("+")
    check_names("class of mentions", named, (*WHO, ANY), where)
    return tuple(name for name in WHO if name in named or ANY in named)


_PAIR = ("female", "male")
_CHOSEN = re.compile(r"(.+):([\w -]+(?:,[\w -]+)*)")


class Groups:
    """All or some of the groups of a lexicon.

    ``names`` selects groups of the lexicon and sets their order. Without ``names``, all groups are used in the order of
    the lexicon. With two groups, a signed measure is the value of the first group minus the value of the second. The
    exception is a lexicon with female and male, if ``names`` is not given: a signed measure is then the value of male
    minus the value of female, as in the published scripts that the presets reproduce.
    ``tokens`` is the tokenizer. By default it is the tokenizer that the measure or the preset sets, and ``unclipped``
    if neither of them sets a tokenizer.
    ``overlap`` sets whether a term that belongs to several groups counts for all of them or only for the first.
    """

    def __init__(
        self,
        words: Lexicon | Mapping[str, Iterable[str]],
        names: Sequence[str] | None = None,
        *,
        tokens: str | None = None,
        overlap: str = "all",
        name: str = "own",
        language: str = "und",
    ) -> None:
        if isinstance(words, Lexicon):
            self.lexicon = words
        else:
            self.lexicon = Lexicon(name, {group: tuple(terms) for group, terms in words.items()}, language=language)
        self.tokens, self.overlap = tokens, overlap
        self._ordered = names is not None
        self.names: tuple[str, ...] = self.lexicon.group_names if names is None else tuple(names)
        check_names("group", self.names, self.lexicon.group_names, f"lexicon {self.lexicon.name}")
        if not self.names or len(set(self.names)) < len(self.names):
            listed = ", ".join(self.names) or "none"
            raise ConfigError(f"groups: expected at least one group, and no group twice; found {listed}")

    @classmethod
    def load(cls, source: str | Path, names: Sequence[str] | None = None, *, tokens: str | None = None) -> Groups:
        """The groups of a shipped lexicon by name, or of a ``.toml``, ``.csv``, ``.tsv``, ``.txt`` or ``.dic`` file."""
        return cls(load_lexicon(source), names, tokens=tokens)

    @classmethod
    def of(cls, given: GroupsLike) -> Groups:
        """Groups from any accepted form: a lexicon, its name or file, or a mapping from groups to words.

        A string may select groups of the lexicon: ``"age:old,young"``.
        """
        if isinstance(given, Groups):
            return given
        if isinstance(given, str) and (chosen := _CHOSEN.fullmatch(given)):
            return cls.load(chosen[1], chosen[2].split(","))
        return cls.load(given) if isinstance(given, str | Path) else cls(given)

    @classmethod
    def resolve(cls, groups: GroupsLike | None = None, lexicon: str | Path | Lexicon | None = None) -> Groups | None:
        """The groups that the arguments ``groups`` and ``lexicon`` specify; None if neither is given.

        If ``lexicon`` is given, ``groups`` has names of its groups, as in ``"old,young"``.
        """
        if lexicon is None:
            return None if groups is None else cls.of(groups)
        if groups is None:
            return cls(load_lexicon(lexicon))
        if isinstance(groups, str):
            return cls(load_lexicon(lexicon), [name.strip() for name in groups.split(",")])
        raise ConfigError("⟨groups⟩: beside ⟨lexicon⟩, expected names of its groups as a text, as in 'old,young'")

    @property
    def tokenizer(self) -> str:
        """The name of the tokenizer: ``tokens``, or the default if ``tokens`` is None."""
        return self.tokens or TOKENIZER

    def as_section(self) -> dict[str, Any]:
        """The section ``[groups]`` of a recipe: a shipped lexicon by name, any other with its words and origin."""
        lexicon = self.lexicon
        shipped = lexicon.name in shipped_lexicons() and load_lexicon(lexicon.name).id == lexicon.id
        words = {name: list(terms) for name, terms in lexicon.groups.items()}
        section: dict[str, Any] = {"lexicon": lexicon.name} if shipped else {"words": words, **lexicon.about}
        if self._ordered:
            section["names"] = list(self.names)
        return section if self.tokens is None else {**section, "tokens": self.tokens}

    @property
    def counted(self) -> Lexicon:
        """The lexicon with these groups only, in this order."""
        if self.names == self.lexicon.group_names:
            return self.lexicon
        return replace(self.lexicon, groups={name: self.lexicon.groups[name] for name in self.names})

    @property
    def difference(self) -> str:
        """The groups as a difference measure writes them: ``male-female``, or one group alone.

        For more than two groups that do not include both female and male it is "auto". A difference measure then
        raises an error that lists the groups.
        """
        if set(self.names) >= set(_PAIR) and not (self._ordered and len(self.names) == 2):
            return "male-female"
        return "-".join(self.names) if len(self.names) <= 2 else "auto"

    @property
    def together(self) -> str:
        """The groups as a measure of all groups writes them: ``female+male``."""
        return "+".join(self.names)

    def __repr__(self) -> str:
        # The sign of a difference depends on how the groups were given, so the text shows it.
        arguments = f"{self.lexicon.id!r}, {list(self.names)}, tokens={self.tokens!r}, overlap={self.overlap!r}"
        return f"Groups({arguments}, difference={self.difference!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, ...]:
        return (self.lexicon.id, self.difference, self.together, self.tokenizer, self.overlap)


# Not a text, so that the annotations of plugins can be read.
GroupsLike: TypeAlias = Groups | Lexicon | str | Path | Mapping[str, Iterable[str]]
