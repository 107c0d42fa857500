"""How much two texts share: ROUGE and BLEU, on lower-cased words between blanks and punctuation."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from askew.core.overlap import common_length, f_measure

_WORDS = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text, lower-cased."""
    return _WORDS.findall(text.lower())


def rouge_l(reference: str, made: str) -> float:
    """F-measure of the longest common subsequence of words (Lin 2004, with precision and recall weighed equally)."""
    return f_measure(common_length(words(reference), words(made)), len(words(reference)), len(words(made)))


def rouge_n(reference: str, made: str, n: int = 1) -> float:
    """F-measure of the common n-grams of words (Lin 2004)."""
    ours, theirs = _grams(words(reference), n), _grams(words(made), n)
    return f_measure((ours & theirs).total(), ours.total(), theirs.total())


def bleu(references: Sequence[str], made: Sequence[str], most: int = 4) -> float:
    """Corpus BLEU (Papineni et al. 2002) with one reference each: geometric mean of precisions, brevity penalty.

    Zero where no n-gram of some length is right anywhere.
    """
    right, total, ours, theirs = [0] * most, [0] * most, 0, 0
    for reference, text in zip(references, made, strict=True):
        left, other = words(reference), words(text)
        ours, theirs = ours + len(left), theirs + len(other)
        for n in range(1, most + 1):
            grams = _grams(other, n)
            right[n - 1] += (grams & _grams(left, n)).total()
            total[n - 1] += grams.total()
    if not theirs or min(right) == 0:
        return 0.0
    penalty = 1.0 if theirs > ours else math.exp(1 - ours / theirs)
    return penalty * math.exp(sum(math.log(r / t) for r, t in zip(right, total, strict=True)) / most)


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
