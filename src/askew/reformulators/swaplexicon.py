"""Words of two groups with their counterparts, in a TOML file that is shipped or written by the user.

``groups`` names the two groups, and ``pairs`` lists [word of the first group, word of the second group, neutral word].
All other parts are optional; ``data/swaps/gender-en.toml`` has every part and explains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.core.errors import DataError, UnknownName, check_names
from askew.core.fingerprint import fingerprint
from askew.core.lexicon import LEXICON_FACTS, one_spelling
from askew.core.shipped import DATA
from askew.core.text import word
from askew.reformulators.lexical import is_texts, read_toml

_SHIPPED = DATA / "swaps"
_PARTS = ("groups", "pairs", "keep", "one_way", "before_noun", "words", "agreement", "remove")
# The replacement of a word before a noun, and its replacement elsewhere.
Forms = tuple[str, str]


@dataclass(frozen=True)
class SwapLexicon:
    """The replacements of each listed word: for swapping the groups, and for neutral texts."""

    name: str
    groups: tuple[str, str]
    swaps: Mapping[str, Forms]
    neutrals: Mapping[str, Forms]
    keep: tuple[str, ...] = ()
    not_noun: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    verbs: Mapping[str, str] = field(default_factory=dict)
    contractions: Mapping[str, str] = field(default_factory=dict)
    remove: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hash: str = ""


def shipped_swaps() -> list[str]:
    """The names of the lists of pairs that come with askew."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def load_swaps(spec: str) -> SwapLexicon:
    """Load a list of pairs by its name, or from a ``.toml`` file."""
    if spec in shipped_swaps():
        return _from_toml(_SHIPPED / f"{spec}.toml")
    if Path(spec).suffix.lower() != ".toml":
        raise UnknownName(
            "list of pairs",
            spec,
            shipped_swaps(),
            "pairs= (expected the name of a shipped list, or of a file that ends in '.toml')",
        )
    return _from_toml(Path(spec))


def _from_toml(path: Path) -> SwapLexicon:
    data = one_spelling(read_toml(path, "pairs"))
    check_names("key", data, (*LEXICON_FACTS, *_PARTS), str(path))
    try:
        return _checked(_lexicon(path, data), path)
    except (AttributeError, TypeError, ValueError) as error:
        # The tables are read without checks; a table with another structure raises one of these errors.
        raise DataError(
            f"pairs file {path}: the file does not have the structure of the shipped file 'gender-en.toml' ({error})"
        ) from None


def _lexicon(path: Path, data: Mapping[str, Any]) -> SwapLexicon:
    groups = data.get("groups")
    if not is_texts(groups) or len(set(groups)) != 2:
        raise DataError(f"pairs file {path}: expected the names of two groups, found {groups!r}")
    swaps, neutrals = _forms(path, data)
    words, agreement = data.get("words", {}), data.get("agreement", {})
    return SwapLexicon(
        name=str(data.get("name", path.stem)),
        groups=(groups[0], groups[1]),
        swaps=swaps,
        neutrals=neutrals,
        keep=tuple(key_of(phrase) for phrase in data.get("keep", [])),
        not_noun=_keys(words.get("not_noun", "").split()),
        pronouns=_keys(words.get("pronouns", "").split()),
        subjects=_keys(agreement.get("subjects", [])),
        verbs={key_of(verb): str(plural) for verb, plural in agreement.get("verbs", {}).items()},
        contractions={key_of(end): str(plural) for end, plural in agreement.get("contractions", {}).items()},
        remove={part: tuple(key_of(one) for one in line.split()) for part, line in data.get("remove", {}).items()},
        hash=fingerprint({part: data.get(part) for part in _PARTS}, length=12),
    )


def _forms(path: Path, data: Mapping[str, Any]) -> tuple[dict[str, Forms], dict[str, Forms]]:
    """Return the replacements of every listed word; if a word is listed twice, the first entry is used."""
    swaps: dict[str, Forms] = {}
    neutrals: dict[str, Forms] = {}

    def enter(term: str, swap: Iterable[str], neutral: Iterable[str]) -> None:
        (near, far), (neutral_near, neutral_far) = swap, neutral
        swaps.setdefault(key_of(term), (near, far))
        neutrals.setdefault(key_of(term), (neutral_near, neutral_far))

    for term, forms in data.get("before_noun", {}).items():
        enter(term, forms["swap"], forms["neutral"])
    for term, (other, neutral) in data.get("one_way", {}).items():
        enter(term, (other, other), (neutral, neutral))
    for pair in data.get("pairs", []):
        if not is_texts(pair) or len(pair) != 3 or not all(pair):
            raise DataError(f"pairs file {path}: expected [word, counterpart, neutral word], found {pair!r}")
        first, second, neutral = pair
        enter(first, (second, second), (neutral, neutral))
        enter(second, (first, first), (neutral, neutral))
    if not swaps:
        raise DataError(f"pairs file {path}: expected a list of pairs, found none")
    return swaps, neutrals


def _checked(lexicon: SwapLexicon, path: Path) -> SwapLexicon:
    """Refuse a neutral word that names a group."""
    for term, forms in lexicon.neutrals.items():
        for one in (part for form in forms for part in [key_of(form), *word(form)]):
            if one in lexicon.swaps:
                raise DataError(
                    f"pairs file {path}: the neutral word for {term!r} contains {one!r}, which names a group"
                )
    return lexicon


def key_of(term: str) -> str:
    """Return the lookup key of a word: independent of case, kind of apostrophe and number of blanks."""
    return " ".join(term.replace("’", "'").split()).casefold()


def _keys(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(key_of(term) for term in terms)
