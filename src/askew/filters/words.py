"""Texts brought to a common form, so that two ways of writing the same thing compare as equal."""

from __future__ import annotations

import re
import unicodedata

from askew.core.text import word

# English words that say little about what a query is about; question words and what is left of "don't" are among them.
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

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SPELLED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NUMBER_OF = {name: str(number) for number, name in enumerate(_SPELLED.split())}

_CASED = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[.?!:;]")
_DOTTED = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_POSSESSIVE = re.compile(r"['’]s$")
_APOSTROPHE = re.compile(r"['’]")
_ENDS = frozenset(".?!:;")
_PRONOUN = frozenset({"I", "I'm", "I've", "I'd", "I'll", "I’m", "I’ve", "I’d", "I’ll"})
# A text of more words than this, each with a capital, is a headline rather than one long name.
_LONGEST_NAME = 3


def tokens(text: str) -> list[str]:
    """Words without case, punctuation or the way their characters are put together."""
    return word(text if text.isascii() else unicodedata.normalize("NFKC", text))


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text, as digits; the commas of 1,000,000 do not count."""
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c, c)) for c in unicodedata.normalize("NFKC", text))
    found = _NUMBER.findall(text)
    return frozenset(n.replace(",", "") if _THOUSANDS.fullmatch(n) else n.replace(",", ".") for n in found)


def has_numbers(text: str, wanted: frozenset[str]) -> bool:
    """Whether all of these numbers are in a text, as digits or spelled out in English up to twenty."""
    missing = wanted - numbers(text)
    return not missing or missing <= {_NUMBER_OF[t] for t in tokens(text) if t in _NUMBER_OF}


def names(text: str) -> frozenset[str]:
    """The words of a text that its capitals mark as names, without case and accents.

    They are: capitals inside a sentence, a first word with a capital that another follows, and words with a capital
    beyond their first letter (NASA, iPhone). A text without capitals, or all in capitals, or with a capital on
    every word as in a headline, marks nothing.
    """
    found = [] if text.islower() or text.isupper() else _cased(text)
    starts = [i == 0 or found[i - 1] in _ENDS for i in range(len(found))]
    if not found or _is_headline(found, starts):
        return frozenset()
    named: set[str] = set()
    for this, first, follows in zip(found, starts, [*found[1:], ""], strict=True):
        if _is_name(this, first, follows):
            named.update(_parts(this))
    return frozenset(named)


def has_names(text: str, wanted: frozenset[str]) -> bool:
    """Whether all of these names are words of a text, however it writes them."""
    return wanted <= {part for token in _cased(text) for part in _parts(token)}


def _cased(text: str) -> list[str]:
    """Words and ends of sentences as they stand, but without accents, and U.S.A. as USA."""
    if not text.isascii():
        apart = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in apart if not unicodedata.combining(c))
    return _CASED.findall(_DOTTED.sub(lambda match: match.group().replace(".", ""), text))


def _parts(token: str) -> list[str]:
    """Obama's is obama; O'Connor is o and connor."""
    return _APOSTROPHE.split(_POSSESSIVE.sub("", token).casefold())


def _is_name(this: str, starts: bool, follows: str) -> bool:
    if this in _PRONOUN or this in _ENDS:
        return False
    if any(c.isupper() for c in this[1:]):
        return True
    if not this[0].isupper():
        return False
    return not starts or (follows[:1].isupper() and this.lower() not in FUNCTION_WORDS)


def _is_headline(found: list[str], starts: list[bool]) -> bool:
    """Capitals that follow from how the line is set, not from what its words name."""
    inside = [w for w, first in zip(found, starts, strict=True) if not first and w not in _PRONOUN]
    if any(w.istitle() and w.lower() in FUNCTION_WORDS for w in inside):
        return True
    words = [w for w in found if w not in _ENDS]
    return len(words) > _LONGEST_NAME and not any(w[0].islower() for w in words)
