"""The two simplest stemmers: removal of a plural s, and truncation after n letters.

The s-stemmer has the three rules of Harman, How effective is suffixing? (JASIS 42, 1991); only the first rule that fits
is used. The minimum lengths are those of ReQue (2020): "gas" and "yes" stay, and if a word is too short for one rule,
the next rule is tried ("flies" becomes "flie").
"""

from __future__ import annotations

# The ending, the letters before it that forbid the rule, the replacement, and the minimum length of the word.
_RULES = (("ies", "ae", "y", 6), ("es", "aeo", "e", 5), ("s", "us", "", 4))


def s_stem(word: str) -> str:
    """Remove the plural s: -ies becomes -y, -es becomes -e, -s is removed."""
    for ending, forbidden, new, least in _RULES:
        start = word[: -len(ending)]
        if len(word) >= least and word.endswith(ending) and start[-1] not in forbidden:
            return start + new
    return word


def trunc4(word: str) -> str:
    """The first four characters."""
    return word[:4]


def trunc5(word: str) -> str:
    """The first five characters."""
    return word[:5]
