"""Normalization of texts, so that different spellings of the same words compare as equal."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any

from askew.core.errors import UnknownName
from askew.core.files import DATA
from askew.core.text import word

# The numbers of a text in any notation: 2, two, second, 2nd, II and the 5 of 5km are compared as values.

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_PLACES = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth"""
_UNITS, _ORDINALS = _SMALL.split(), _PLACES.split()
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TEN_VALUES = {word: 10 * value for value, word in enumerate(_TENS, 2)}
_VALUES = {
    **{word: value for value, word in enumerate(_UNITS)},
    **_TEN_VALUES,
    **{word: value for value, word in enumerate(_ORDINALS, 1)},
    **{word[:-1] + "ieth": 10 * value for value, word in enumerate(_TENS, 2)},
}
_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# The Roman numerals up to 21 that are not common words; "i" and "v" are among the words that may mean a number.
_ROMAN = {
    "ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "xi": 11, "xii": 12, "xiii": 13, "xiv": 14,
    "xv": 15, "xvi": 16, "xvii": 17, "xviii": 18, "xix": 19, "xx": 20, "xxi": 21,
}  # fmt: skip
# Words that may mean a number; "sixties" and "60s" may also mean 1960.
_LOOSE_WORDS = {
    1: "one once single i original originally initial initially earliest opening inaugural debut premiere premiered",
    2: "both twice double pair dual couple sequel another further sophomore wwii", 3: "thrice triple trio trilogy",
    5: "v", 10: "x decade", 12: "dozen", 50: "l",
    **{10 * value: word[:-1] + "ies" for value, word in enumerate(_TENS, 2)},
}  # fmt: skip
_LOOSE = {word: value for value, words in _LOOSE_WORDS.items() for word in words.split()}
_EITHER = {**_LOOSE, **_ROMAN, **_VALUES, **_SCALES}
_STRICT = _EITHER.keys() - _LOOSE.keys() - {"zero"}
_ONES = {**{word: i for i, word in enumerate(_UNITS[1:10], 1)}, **{word: i for i, word in enumerate(_ORDINALS[:9], 1)}}

_PIECE = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
# Keeps "mp3" in one piece, which is not a number.
_UNGLUED = re.compile(r"[^\W\d_]+\d[^\W_]*|" + _PIECE.pattern)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text, as digits."""
    return frozenset(_strict(_PIECE.findall(_numbers_plain(text))))


def readings(text: str) -> frozenset[str]:
    """All numbers that the words of a text may mean."""
    pieces = _PIECE.findall(_numbers_plain(text))
    return frozenset([*_strict(pieces), *_loose(pieces)])


def has_numbers(text: str, needed: frozenset[str]) -> bool:
    """Whether all of these numbers are in a text, in any notation."""
    return needed <= readings(text)


def adds_number(text: str, allowed: frozenset[str]) -> bool:
    """Whether a text has a number in digits that is not among the known ones; "mp3" has none.

    Spelled-out numbers that are added are mostly harmless: "are they the same or two different things".
    """
    pieces = _UNGLUED.findall(_numbers_plain(text))
    return any(
        piece[0].isdecimal() and allowed.isdisjoint(_stands_for(piece, follows))
        for piece, follows in zip(pieces, [*pieces[1:], ""], strict=False)
    )


def is_number(word: str) -> bool:
    """Whether a word in lower case is a number by itself, or begins with one, as 5km does."""
    return word in _STRICT or word[0].isdecimal()


def parts_of_numbers(words: Collection[str]) -> frozenset[str]:
    """Return the words that are numbers or parts of numbers, or contain a digit, such as mp3."""
    if "".join(words).isalpha() and _EITHER.keys().isdisjoint(words):
        return frozenset()
    return frozenset([word for word in words if word in _EITHER or not word.isalpha()])


def _numbers_plain(text: str) -> str:
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c, c)) for c in unicodedata.normalize("NFKC", text))
    return text.lower()


def _strict(pieces: list[str]) -> Iterator[str]:
    """The value of each number; "twenty one" and "2 million" are one number."""
    at = 0
    while at < len(pieces):
        piece, at = pieces[at], at + 1
        follows = pieces[at] if at < len(pieces) else ""
        if piece[0].isdecimal():
            value = _digits(piece)
        elif piece in _STRICT or (piece == "one" and follows in _SCALES):
            number = _EITHER[piece]
            if piece in _TEN_VALUES and follows in _ONES:
                number, at = number + _ONES[follows], at + 1
            value = str(number)
        else:
            continue
        while at < len(pieces) and pieces[at] in _SCALES:
            value, at = _scaled(value, _SCALES[pieces[at]]), at + 1
        yield value


def _loose(pieces: list[str]) -> Iterator[str]:
    """Yield the numbers that single words may mean: parts of numbers, 2 for "both", 1960 for the sixties."""
    for piece, follows in zip(pieces, [*pieces[1:], ""], strict=False):
        if piece[0].isdecimal():
            yield from _stands_for(piece, follows)
        elif piece in _EITHER:
            yield str(_EITHER[piece])
            if piece.endswith("ties"):
                yield f"19{_EITHER[piece]}"


def _stands_for(piece: str, follows: str) -> list[str]:
    """Return the values of a number: its own, those of a list such as 2,4, 1950 for the 50s, 18 for the 1700s."""
    value = _digits(piece)
    forms = [value, *piece.split(",")]
    if follows == "s" and len(value) in (2, 4):
        forms += [value[2:] or "19" + value, str(int(value[:2]) + 1)]
    return forms


def _digits(piece: str) -> str:
    """Normalize a number: 1,000 to 1000, 3,5 to 3.5, 2.0 to 2."""
    value = piece.replace(",", "" if _THOUSANDS.fullmatch(piece) else ".")
    whole, _, part = value.partition(".")
    return value if part.strip("0") else whole


def _scaled(value: str, scale: int) -> str:
    try:
        return format((Decimal(value) * scale).normalize(), "f")
    except InvalidOperation:  # 1.2.3 million
        return value


# English words that say little about the topic of a query, including question words and the parts of "don't".
# Written down for askew; the choice of such words differs little between lists.
_FUNCTION_WORDS = """
a about after all also am an and any are as at be because been before being between both but by can could d did do
does doing done during each either else for from get gets had has have having he her here hers him his how however i
if in into is it its itself just like ll m me might more most much must my no nor not of off on one only onto or
other our ours out over own re s same shall she should so some such t than that the their theirs them then there
these they this those through to too under until up upon us ve very was we were what whats when where which while
who whom whose why will with within without would you your yours
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
QUESTION_WORDS = frozenset(("who", "whom", "whose", "when", "where", "why", "how", "which", "what"))

_WORD = re.compile(r"[^\W_]+")
_CASED = re.compile(r"[^\W_]+|[.?!:;]")
_DOTTED = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
SENTENCE_ENDS = frozenset(".?!:;")


# Negations, and words that may replace one: "states that lack a law" are states without one.
_NEGATIONS = """no not never without none neither nor nobody nothing cannot cant dont doesnt didnt isnt arent wasnt
wont"""
_DENIALS = """lack lacks lacked lacking absent absence missing unable incapable fail fails failed avoid except exclude
excludes excluding prevent prevents prevented refuse refuses refused refusing"""
_NO, _REPLACED = frozenset(_NEGATIONS.split()), frozenset(_DENIALS.split())


def negates(words: Sequence[str]) -> bool:
    """Whether a text has a negation; "or not", "yes or no" and "no. 10" are none."""
    pairs = zip(["", *words], words, [*words[1:], ""], strict=False)
    return any(
        (this in _NO and not (before in ("or", "yes") or (this == "no" and after.isdecimal())))
        or (this == "t" and before.endswith("n"))
        for before, this, after in pairs
    )


def negation_differs(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether only one of two texts has a negation, and the other has no word that may replace one."""
    return negates(words) != negates(others) and _REPLACED.isdisjoint([*words, *others])


def tokens(text: str) -> list[str]:
    """Split a text into lower-case words without punctuation, after Unicode normalization (NFKC)."""
    return word(text if text.isascii() else unicodedata.normalize("NFKC", text))


def names(text: str) -> frozenset[str]:
    """The words of a text that its capitals mark as names, without case and accents.

    They are: words with a capital inside a sentence, a first word if the next word has a capital too, and words with a
    capital after their first letter (NASA, iPhone). A text without capitals, all in capitals, or with a capital on
    every word as in a headline marks no names.
    """
    if text.islower() or text.isupper():
        return frozenset()
    cased = cased_words(text)
    starts = [i == 0 or cased[i - 1] in SENTENCE_ENDS for i in range(len(cased))]
    inside = [w for w, first in zip(cased, starts, strict=True) if not first and w != "I"]
    # The capitals of a headline do not mark names.
    if any(w.istitle() and w.lower() in FUNCTION_WORDS for w in inside) or not any(w[0].islower() for w in cased):
        return frozenset()
    following = zip(cased, starts, [*cased[1:], ""], strict=True)
    return frozenset(this.casefold() for this, first, follows in following if _is_name(this, first, follows))


def cased_words(text: str) -> list[str]:
    """Words and ends of sentences with their case, without accents, U.S.A. as USA, and Obama's as Obama."""
    return _CASED.findall(_plain_letters(text))


def plain_words(text: str) -> list[str]:
    """The words of a text without case and accents, as ``cased_words`` finds them."""
    # A sign such as "㎩" is letters with capitals only when it is taken apart.
    return _WORD.findall(_plain_letters(text.casefold()).casefold())


def _plain_letters(text: str) -> str:
    if not text.isascii():
        apart = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in apart if not unicodedata.combining(c))
    if "." in text:
        text = _DOTTED.sub(lambda match: match.group().replace(".", ""), text)
    return _POSSESSIVE.sub("", text) if "'" in text or "’" in text else text


def _is_name(this: str, starts: bool, follows: str) -> bool:
    if this == "I" or this in SENTENCE_ENDS:
        return False
    if this[1:] != this[1:].lower():
        return True
    if not this[0].isupper():
        return False
    return not starts or (follows[:1].isupper() and this.lower() not in FUNCTION_WORDS)


# Whether a short text may be in a language: by its script, then by function words and letters of known languages.

# Formulas, names and borrowed words may be in another script.
LEAST_SHARE = 0.8
_LEAST_EVIDENCE = 2


@cache
def _known() -> dict[str, Any]:
    return tomllib.loads((DATA / "languages.toml").read_text(encoding="utf-8"))


def languages() -> list[str]:
    """The codes of the languages that can be checked."""
    return sorted(_known())


class LanguageCheck:
    """Finds texts that are clearly not in a given language."""

    def __init__(self, language: str) -> None:
        if language not in _known():
            raise UnknownName("language", language, [*languages(), "any"], "the rules filter")
        own = _known()[language]
        self._scripts = frozenset(own["scripts"])
        self._rivals = [
            code for code, facts in _known().items()
            if "words" in facts and "words" in own and facts["scripts"] == own["scripts"]
        ]  # fmt: skip
        self._wanted = self._rivals.index(language) if self._rivals else 0
        self._speakers = _speakers(tuple(self._rivals))

    def refuses(self, text: str, words: list[str] | None = None) -> bool:
        """Whether the text is clearly in another language; ``words`` are its words, if they are known already."""
        if text.isascii():
            other_script = "LATIN" not in self._scripts and any(c.isalpha() for c in text)
        else:
            scripts = [_script(c) for c in unicodedata.normalize("NFKC", text) if c.isalpha()]
            other_script = sum(s in self._scripts for s in scripts) < LEAST_SHARE * len(scripts)
        if other_script:
            return True
        evidence, pieces = [0] * len(self._rivals), tokens(text) if words is None else words
        if not text.isascii():
            pieces = [*pieces, *{c for piece in pieces for c in piece if not c.isascii()}]
        for piece in pieces:
            for rival in self._speakers.get(piece, ()):
                evidence[rival] += 1
        most = max(evidence, default=0)
        return most >= _LEAST_EVIDENCE and most > evidence[self._wanted]


@cache
def _speakers(codes: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return, for each function word and letter, the languages that have it."""
    languages: dict[str, set[int]] = {}
    for i, code in enumerate(codes):
        for piece in [*_known()[code]["words"].split(), *_known()[code].get("letters", "")]:
            languages.setdefault(piece, set()).add(i)
    return {piece: tuple(sorted(owners)) for piece, owners in languages.items()}


@cache
def _script(char: str) -> str:
    return unicodedata.name(char, "UNKNOWN").split()[0]
