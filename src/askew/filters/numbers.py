"""The numbers of a text in any notation: 2, two, second, 2nd, II and the 5 of 5km are compared as values.

Digits, spelled-out numbers from two on, ordinals and Roman numerals always are numbers of a text. Other words are
accepted as a number only when that number is searched for: "one" and "i" for 1, "both" and "twice" for 2. So "world war
1" is found in "world war one", but "one of the kings" has no number that a candidate must keep.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from decimal import Decimal, InvalidOperation

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_PLACES = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth"""
_UNITS, _ORDINALS = _SMALL.split(), _PLACES.split()
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
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
_TEN_VALUES = {word: 10 * value for value, word in enumerate(_TENS, 2)}
_ONES = {**{word: i for i, word in enumerate(_UNITS[1:10], 1)}, **{word: i for i, word in enumerate(_ORDINALS[:9], 1)}}

_NOTHING: frozenset[str] = frozenset()
_PIECE = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
# Keeps "mp3" in one piece, which is not a number.
_UNGLUED = re.compile(r"[^\W\d_]+\d[^\W_]*|" + _PIECE.pattern)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text, as digits."""
    return frozenset(_strict(_PIECE.findall(_plain(text))))


def readings(text: str) -> frozenset[str]:
    """All numbers that the words of a text may mean."""
    pieces = _PIECE.findall(_plain(text))
    return frozenset([*_strict(pieces), *_loose(pieces)])


def has_numbers(text: str, wanted: frozenset[str]) -> bool:
    """Whether all of these numbers are in a text, in any notation."""
    return wanted <= readings(text)


def adds_number(text: str, known: frozenset[str]) -> bool:
    """Whether a text has a number in digits that is not among the known ones; "mp3" has none.

    Spelled-out numbers that are added are mostly harmless: "are they the same or two different things".
    """
    pieces = _UNGLUED.findall(_plain(text))
    return any(
        piece[0].isdecimal() and known.isdisjoint(_stands_for(piece, follows))
        for piece, follows in zip(pieces, [*pieces[1:], ""], strict=False)
    )


def is_number(word: str) -> bool:
    """Whether a word in lower case is a number by itself, or begins with one, as 5km does."""
    return word in _STRICT or word[0].isdecimal()


def parts_of_numbers(words: Collection[str]) -> frozenset[str]:
    """Return the words that are numbers or parts of numbers, or contain a digit, such as mp3."""
    if "".join(words).isalpha() and _EITHER.keys().isdisjoint(words):
        return _NOTHING
    return frozenset([word for word in words if word in _EITHER or not word.isalpha()])


def _plain(text: str) -> str:
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
    found = [value, *piece.split(",")]
    if follows == "s" and len(value) in (2, 4):
        found += [value[2:] or "19" + value, str(int(value[:2]) + 1)]
    return found


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
