"""Stemmed queries: every word is stemmed by one of the eight stemmers of ReQue (Tamannaee et al., CIKM 2020).

Most stemmers have no rules for apostrophes, so a possessive ending is removed first, as in Lucene's English analysis:
women's is stemmed as women. A word with an apostrophe elsewhere (don't, o'brien) is not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

from askew.core import porter as porter_rules
from askew.core.errors import MissingExtra
from askew.core.text import word
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.stemmers import lovins as lovins_rules
from askew.reformulators.stemmers import paicehusk as paicehusk_rules
from askew.reformulators.stemmers import porter2 as porter2_rules
from askew.reformulators.stemmers import simple

Stemmer = Callable[[str], str]
_APOSTROPHES = "'\u2019\uff07"
# Increased when the same stemmer gives other candidates.
_VERSION = 2


class StemReformulator:
    """Replaces each word of the query, lower-cased and without a possessive ending, by its stem; keeps the order."""

    reads: frozenset[str] = frozenset()

    def __init__(self, name: str, stem: Stemmer, version: str = "1") -> None:
        self.method = f"stem.{name}"
        self._name, self._stem, self._version = name, stem, version

    def settings(self) -> dict[str, Any]:
        """Return the stemmer, its version, and the version of the splitting into words."""
        return {"stemmer": self._name, "version": self._version, "words": _VERSION}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """One candidate for each query in which a stem differs from its word."""
        found = Candidates()
        # Queries share most of their words, so each distinct word is stemmed once.
        stems: dict[str, str] = {}
        for row, text in enumerate(asked.texts):
            words = words_of(text)
            for one in words:
                if one not in stems:
                    stems[one] = self._stem_of(one)
            changed = [stems[one] for one in words]
            if not words:
                found.reject("nothing found")
            elif changed == words:
                found.reject("same as the original")
            else:
                found.add(row, " ".join(changed))
        return found

    def _stem_of(self, one: str) -> str:
        owner = one.removesuffix("'s")
        return owner if "'" in owner else self._stem(owner) or owner


def words_of(text: str) -> list[str]:
    """The words of a text, lower-cased. An apostrophe between two letters belongs to the word, and is written ``'``."""
    lowered, found, end = text.lower(), list[str](), 0
    for one in word(text):
        start = lowered.index(one, end)
        if found and start == end + 1 and lowered[end] in _APOSTROPHES:
            found[-1] += f"'{one}"
        else:
            found.append(one)
        end = start + len(one)
    return found


def krovetz() -> StemReformulator:
    """Stems every word by Krovetz's rules with his dictionary (1993); needs the package krovetzstemmer."""
    try:
        package, version = import_module("krovetzstemmer"), metadata.version("krovetzstemmer")
    except ImportError:
        raise MissingExtra("the Krovetz stemmer (krovetzstemmer)", "stemmers") from None
    # The algorithm includes a dictionary of about 30,000 head words, so it is not implemented again here, and the
    # release of the package determines the stems.
    return StemReformulator("krovetz", package.Stemmer().stem, version)


def lovins() -> StemReformulator:
    """Stems every word by Lovins's 294 endings (1968)."""
    return StemReformulator("lovins", lovins_rules.stem)


def paicehusk() -> StemReformulator:
    """Stems every word by the rules of Paice and Husk (Lancaster, 1990)."""
    return StemReformulator("paicehusk", paicehusk_rules.stem)


def porter() -> StemReformulator:
    """Stems every word by Porter's rules (1980, with the changes of his own program)."""
    return StemReformulator("porter", porter_rules.stem)


def porter2() -> StemReformulator:
    """Stems every word by Porter2, the English rules of Snowball."""
    return StemReformulator("porter2", porter2_rules.stem)


def sstemmer() -> StemReformulator:
    """Removes the plural s from every word (Harman 1991)."""
    return StemReformulator("sstemmer", simple.s_stem)


def trunc4() -> StemReformulator:
    """Cuts every word after its first four characters."""
    return StemReformulator("trunc4", simple.trunc4)


def trunc5() -> StemReformulator:
    """Cuts every word after its first five characters."""
    return StemReformulator("trunc5", simple.trunc5)
