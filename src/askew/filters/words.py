"""Normalization of texts, so that different spellings of the same words compare as equal."""

from __future__ import annotations

import re
import unicodedata

from askew.core.text import word

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

_WORD = re.compile(r"[^\W_]+")
_CASED = re.compile(r"[^\W_]+|[.?!:;]")
_DOTTED = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
SENTENCE_ENDS = frozenset(".?!:;")


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
    found = cased_words(text)
    starts = [i == 0 or found[i - 1] in SENTENCE_ENDS for i in range(len(found))]
    if not found or _is_headline(found, starts):
        return frozenset()
    named: set[str] = set()
    for this, first, follows in zip(found, starts, [*found[1:], ""], strict=True):
        if _is_name(this, first, follows):
            named.add(this.casefold())
    return frozenset(named)


def cased_words(text: str) -> list[str]:
    """Words and ends of sentences with their case, without accents, U.S.A. as USA, and Obama's as Obama."""
    return _CASED.findall(_plain(text))


def plain_words(text: str) -> list[str]:
    """The words of a text without case and accents, as ``cased_words`` finds them."""
    return _WORD.findall(_plain(text.casefold()))


def _plain(text: str) -> str:
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


def _is_headline(found: list[str], starts: list[bool]) -> bool:
    """Whether the capitals come from the style of a headline and do not mark names."""
    inside = [w for w, first in zip(found, starts, strict=True) if not first and w != "I"]
    if any(w.istitle() and w.lower() in FUNCTION_WORDS for w in inside):
        return True
    words = [w for w in found if w not in SENTENCE_ENDS]
    return not any(w[0].islower() for w in words)
