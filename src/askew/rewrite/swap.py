"""Queries with the words of one group swapped for their counterparts, made neutral, or without the group.

Words come from a list of pairs (``swaplexicon``). Case and possessives are kept; articles and the verb next to a
pronoun are adapted. Known errors: a word after "her" that is not a noun (made her happy -> made his happy), verbs other
than is, was, has and does (she works -> they works), and names in lower-cased texts that are not in the list (king
arthur).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from askew.core.errors import ConfigError, DataError, UnknownName, check_names
from askew.core.files import DATA, fingerprint
from askew.core.groups import Groups, GroupsLike
from askew.core.lexicon import LEXICON_FACTS, one_spelling
from askew.core.plugins import OneOf
from askew.core.protocols import Candidates, QueryBatch
from askew.core.text import word
from askew.rewrite.lexical import SAME, is_texts, one_line, read_toml

# Words of two groups with their counterparts, in a TOML file that is shipped or written by the user.

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
        raise UnknownName("list of pairs", spec, shipped_swaps(), "⟨pairs⟩ (a shipped list, or a '.toml' file)")
    return _from_toml(Path(spec))


def _from_toml(path: Path) -> SwapLexicon:
    data = one_spelling(read_toml(path, "pairs"))
    check_names("key", data, (*LEXICON_FACTS, *_PARTS), str(path))
    try:
        return _lexicon(path, data)
    except (AttributeError, TypeError, ValueError) as error:
        # The tables are read without checks; a table with another structure raises one of these errors.
        raise DataError(
            f"pairs file {path}: the file does not have the structure of the shipped file 'gender-en.toml' ({error})"
        ) from None


def _lexicon(path: Path, data: Mapping[str, Any]) -> SwapLexicon:
    groups = data.get("groups")
    if not is_texts(groups) or len(set(groups)) != 2:
        raise DataError(f"pairs file {path}: expected the names of two groups, found {groups!r}")
    # The replacements of every listed word; if a word is listed twice, the first entry is used.
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
    for term, neutral_forms in neutrals.items():
        for part in (part for form in neutral_forms for part in [key_of(form), *word(form)]):
            if part in swaps:
                raise DataError(
                    f"pairs file {path}: the neutral word for {term!r} contains {part!r}, which names a group"
                )
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
        remove={part: tuple(key_of(term) for term in line.split()) for part, line in data.get("remove", {}).items()},
        hash=fingerprint({part: data.get(part) for part in _PARTS}, length=12),
    )


def key_of(term: str) -> str:
    """Return the lookup key of a word: independent of case, kind of apostrophe and number of blanks."""
    return " ".join(term.replace("’", "'").split()).casefold()


def _keys(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(key_of(term) for term in terms)


DEFAULT_PAIRS = "gender-en"
_MODES = ("swap", "neutral", "remove")
_NEXT_WORD = re.compile(r"\s+(\w+)")
_LAST_WORD = re.compile(r"(\w+)\s+$")
_WORD = re.compile(r"\w+")
_JOINED = r"(?:\s*[/&]\s*|\s+(?:and|or)\s+)"
_ARTICLE = re.compile(r"\b(an?)(\s+)(\w+)", re.IGNORECASE)
_BLANK_BEFORE_MARK = re.compile(r"\s+([,.;:?!])")
# Words with a sound that differs from the spelling: a unit, a European, a one-off; an heir, an hour.
_NO_VOWEL = re.compile("uni|us[eu]|eu|one|once|ewe")
_VOWEL = re.compile("[aeiou]|heir|hour|hono")


class SwapReformulator:
    """Swaps the words of one group for those of the other, makes them neutral, or removes the group.

    ``mode``: swap, neutral, remove, or all for one candidate of each. ``pairs``: a shipped list or your own .toml file,
    for any two groups. The default is the shipped list for ``groups``; without such a list there are no candidates.
    ``names``: do not change phrases that the list keeps (burger king) and capitalized names (Queen Anne).
    """

    method = "swap"
    reads: frozenset[str] = frozenset()

    def __init__(
        self,
        mode: Annotated[str, OneOf((*_MODES, "all"))] = "all",
        pairs: str | None = None,
        names: bool = True,
        groups: GroupsLike | None = None,
    ) -> None:
        self._mode, self._counted = mode, () if groups is None else Groups.of(groups).names
        swaps = load_swaps(pairs or DEFAULT_PAIRS)
        self._fits = not self._counted or set(swaps.groups) <= set(self._counted)
        if pairs is not None and not self._fits:
            raise ConfigError(
                f"swap: the list of word pairs {swaps.name!r} exchanges words of the groups "
                f"{' and '.join(swaps.groups)}, but the counted groups are {', '.join(self._counted)}; give a list "
                "with words of two of the counted groups"
            )
        self._rewriter = Rewriter(swaps, names)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the pairs identified by their content."""
        if not self._fits:
            return {"mode": self._mode, "pairs": None, "groups": list(self._counted)}
        lexicon = self._rewriter.lexicon
        return {"mode": self._mode, "pairs": f"{lexicon.name}@{lexicon.hash}", "names": self._rewriter.names}

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """One candidate for each mode that changes the query."""
        candidates = Candidates()
        if not self._fits:
            candidates.reject(f"no list of word pairs for the groups {' and '.join(self._counted)}", len(batch))
            return candidates
        modes = _MODES if self._mode == "all" else (self._mode,)
        for row, text in enumerate(batch.texts):
            original = one_line(unicodedata.normalize("NFC", text))
            made = [self._rewriter.rewrite(original, mode) for mode in modes]
            if all(version in ("", original) for version in made):
                candidates.reject("nothing found")
                continue
            for at, version in enumerate(made):
                if version in ("", original):
                    candidates.reject(SAME if version else "nothing left")
                elif version in made[:at]:
                    candidates.reject("same as another")
                else:
                    candidates.add(row, version)
        return candidates


class Rewriter:
    """Rewrites a text with a list of pairs."""

    def __init__(self, lexicon: SwapLexicon, names: bool = True) -> None:
        self.lexicon, self.names = lexicon, names
        terms = _either([*lexicon.swaps, *(lexicon.keep if names else ())])
        self._terms = re.compile(rf"(?<!\w)(?:{terms})(?!\w)", re.IGNORECASE)
        self._verb_after = re.compile(rf"\s+({_either(lexicon.verbs)})(?=n['’]t\b|\b)", re.IGNORECASE)
        self._verb_before = re.compile(rf"\b({_either(lexicon.verbs)})(?=(?:n['’]t)?\s+$)", re.IGNORECASE)
        self._contraction = re.compile(rf"['’]({_either(lexicon.contractions)})\b", re.IGNORECASE)
        # The words that have another form before a noun: both words in "his or her name".
        two_formed = [
            term for term in lexicon.swaps if len({*lexicon.swaps[term]}) > 1 or len({*lexicon.neutrals[term]}) > 1
        ]
        self._next_word = re.compile(rf"(?:{_JOINED}(?:{_either(two_formed)}))?\s+(\w+)", re.IGNORECASE)
        neutral = _either({form for forms in lexicon.neutrals.values() for form in forms if form})
        possessive = r"(?:['’]s?)?"
        self._twice = re.compile(rf"\b({neutral})({possessive}){_JOINED}\1{possessive}(?!\w)", re.IGNORECASE)
        self._blocks = _block_patterns(lexicon)
        # Most queries name no group, and a check of their words is faster than the patterns.
        listed = [*lexicon.swaps, *lexicon.remove.get("nouns", ()), *lexicon.remove.get("attributes", ())]
        self._hints = frozenset(first_word for term in listed for first_word in word(term)[:1])

    def rewrite(self, text: str, mode: str) -> str:
        """Rewrite a text in one of the modes; unchanged if nothing applies. The text has single blanks only."""
        if self._hints.isdisjoint(word(text)):
            return text
        edits = self._removals(text) if mode == "remove" else self._changes(text, mode)
        parts, at = [], 0
        for (start, end), new in sorted(edits.items()):
            parts += [text[at:start], new]
            at = end
        made = "".join([*parts, text[at:]])
        if mode == "neutral" and edits:
            # Two words that became the same are written once: he or she -> they, men's and women's -> people's.
            made = self._twice.sub(r"\1\2", made)
        if made == text:
            return text
        if "" in edits.values():  # repair blanks and punctuation after words were removed
            made = _BLANK_BEFORE_MARK.sub(r"\1", one_line(made)).strip(" ,;:-")
        return _with_articles(text, made)

    def find(self, text: str) -> list[re.Match[str]]:
        """The listed words of a text that are to be changed."""
        return [match for match in self._terms.finditer(text) if not self._is_kept(match)]

    def _is_kept(self, match: re.Match[str]) -> bool:
        key = key_of(match.group())
        return key not in self.lexicon.swaps or (self.names and self._is_name(match, key))

    def _is_name(self, match: re.Match[str], key: str) -> bool:
        """Whether a word is capitalized next to another capitalized word, in a text that has lower-case words too."""
        text, old = match.string, match.group()
        if key in self.lexicon.pronouns or not old[0].isupper() or old.isupper():
            return False
        if not any(match.group()[0].islower() for match in _WORD.finditer(text)):
            return False
        after, before = _NEXT_WORD.match(text, match.end()), _LAST_WORD.search(text[: match.start()])
        if after and after[1][0].isupper():
            return True
        # The first word of a text is usually capitalized, so it indicates a name only if it can be a noun.
        return bool(
            before and before[1][0].isupper() and (before.start() or key_of(before[1]) not in self.lexicon.not_noun)
        )

    def _changes(self, text: str, mode: str) -> dict[tuple[int, int], str]:
        table = self.lexicon.swaps if mode == "swap" else self.lexicon.neutrals
        edits: dict[tuple[int, int], str] = {}
        for match in self.find(text):
            # The form before a noun if the next word may be a noun, else the other form.
            after = self._next_word.match(text, match.end())
            before_noun = after and key_of(after[1]) not in self.lexicon.not_noun
            new = _cased(table[key_of(match.group())][0 if before_noun else 1], match.group())
            edits[match.span()] = new
            edits.update(_possessive(match, new))
            if mode == "neutral" and key_of(match.group()) in self.lexicon.subjects:
                edits.update(self._agreement(match))
        return edits

    def _agreement(self, match: re.Match[str]) -> dict[tuple[int, int], str]:
        """Put the verb right after the subject, or else right before it, in the plural."""
        text, lexicon = match.string, self.lexicon
        short = self._contraction.match(text, match.end())
        if short:
            return {short.span(1): _cased(lexicon.contractions[key_of(short[1])], short[1])}
        verb = self._verb_after.match(text, match.end()) or self._verb_before.search(text[: match.start()])
        return {verb.span(1): _cased(lexicon.verbs[key_of(verb[1])], verb[1])} if verb else {}

    def _removals(self, text: str) -> dict[tuple[int, int], str]:
        """Remove the blocks that name a group, except blocks with a word to keep."""
        spans = [match.span() for match in self._terms.finditer(text) if self._is_kept(match)]
        edits: dict[tuple[int, int], str] = {}
        for pattern in self._blocks:
            for block in pattern.finditer(text):
                start, end = block.span("block")
                if not any(start < stop and begin < end for begin, stop in [*spans, *edits]):
                    edits[start, end] = ""
        return edits


def _block_patterns(lexicon: SwapLexicon) -> list[re.Pattern[str]]:
    """Return patterns for two kinds of blocks: "for women" at the end of a phrase, and "women's" before a noun."""
    remove = lexicon.remove
    if not remove.get("nouns") or not remove.get("attributes"):
        return []
    parts = {
        part: _either(remove.get(part, ())) for part in ("prepositions", "determiners", "nouns", "joiners", "follow")
    }
    noun = rf"(?:(?:{parts['determiners']})\s+)?(?:{parts['nouns']})(?![\w'’-])"
    more = rf"(?:\s*(?:,|\b(?:{parts['joiners']})(?!\w)|&)\s*{noun})*"
    then = rf"(?=\s*$|\s*[^\w\s'’-]|\s+(?:{parts['follow']})(?!\w)|\s+\d)"
    attribute = _either(remove["attributes"])
    attributes = rf"(?:{attribute})(?!\w)(?:\s+(?:{parts['joiners']})\s+(?:{attribute})(?!\w))*"
    lone = rf"(?<![\w-])(?<!\bto )(?<!\bvs )(?<!\bversus )(?<!\bthan )(?P<block>{attributes})"
    return [
        re.compile(rf"(?<![\w-])(?P<block>(?:{parts['prepositions']})\s+{noun}{more}){then}", re.IGNORECASE),
        re.compile(rf"{lone}(?=\s+\w)(?!\s+(?:{_either(lexicon.not_noun)}|{parts['follow']})(?!\w))", re.IGNORECASE),
    ]


def _possessive(match: re.Match[str], new: str) -> dict[tuple[int, int], str]:
    """Adapt a possessive ending: policemen's -> police officers', ladies' -> gentlemen's."""
    text, at, old = match.string, match.end(), match.group()
    if text[at : at + 1] not in tuple("'’") or not new:
        return {}
    plural, was_plural = new[-1] in "sS" and new[-2:].lower() != "ss", old[-1] in "sS"
    has_s = text[at + 1 : at + 2] in tuple("sS") and not text[at + 2 : at + 3].isalnum()
    if plural and not was_plural and has_s:
        return {(at + 1, at + 2): ""}
    if was_plural and new[-1] not in "sS" and _NEXT_WORD.match(text, at + 1):
        return {(at, at + 1): text[at] + ("S" if old.isupper() else "s")}
    return {}


def _cased(new: str, old: str) -> str:
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _with_articles(old: str, new: str) -> str:
    """Adapt each article to the word that now follows it; an article and word of the old text stay."""
    present = {key_of(f"{match[1]} {match[3]}") for match in _ARTICLE.finditer(old)}

    def fitting(match: re.Match[str]) -> str:
        if key_of(f"{match[1]} {match[3]}") in present:
            return match.group()
        following = key_of(match[3])
        right = "an" if _VOWEL.match(following) and not _NO_VOWEL.match(following) else "a"
        upper = match[1].isupper() and (len(match[1]) > 1 or match[3].isupper())
        article = right.upper() if upper else right.capitalize() if match[1][0].isupper() else right
        return article + match[2] + match[3]

    return _ARTICLE.sub(fitting, new)


def _either(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first; without words it never matches."""
    longest_first = sorted(words, key=lambda term: (-len(term), term))
    return "|".join(re.escape(term).replace("'", "['’]") for term in longest_first) or "(?!)"
