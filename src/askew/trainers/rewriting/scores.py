"""Score written queries against target queries, with the measures of the papers.

RePair reports rouge, bleu and f1 of three models, and its code computes them in two ways:

    rouge1, rougeL    F of common words, and of the longest common subsequence; lower-cased, letters and digits only,
                      words of more than three letters stemmed (the script for T5; its column "rouge-1" is rougeL)
    bleu_sentence     mean of sentence BLEU with Chen and Cherry's smoothing 7 (the script for T5)
    rougeL_beta       the longest common subsequence of words between blanks, recall weighted by beta 1.2 (baselines)
    bleu_mean         arithmetic mean of corpus BLEU-1 to BLEU-4 (baselines)
    f1, exact         F and exact match of words without punctuation and articles, as in SQuAD (both)

With smoothing 7, the value of a short text can be above 1. Texts are lower-cased first, as in the papers' data. All
values are shares, not percentages.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from askew.core.measure import Bounds
from askew.core.porter import stem

# Not imported from askew.core.ranking, which needs pyarrow: training must work on machines with torch only.
Floats = npt.NDArray[np.float64]
MEASURES = ("rouge1", "rougeL", "bleu_sentence", "rougeL_beta", "f1", "exact", "copies")
_BETA = 1.2
_ORDERS = 4
_K = 5  # the parameter of smoothing 4, which is the first step of smoothing 7
_SMALL, _TINY = 1e-9, 1e-15
_OTHER = re.compile(r"[^a-z0-9]+")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

# RePair, Table 6 (as printed; shares): the platinum box of each dataset, with the ranker bm25 and the measure map. The
# column rouge-1 is rougeL.
TABLE_6 = (
    ("msmarco.passage", "t5-base", 0.4296, 0.2115, 0.4191),
    ("msmarco.passage", "acg", 0.3779, 0.2166, 0.3937),
    ("msmarco.passage", "hred-qs", 0.3107, 0.1678, 0.3129),
    ("aol.title", "t5-base", 0.1555, 0.0625, 0.1442),
    ("aol.title", "acg", 0.1120, 0.0441, 0.1187),
    ("aol.title", "hred-qs", 0.0605, 0.0379, 0.0630),
    ("aol.url.title", "t5-base", 0.2213, 0.0873, 0.2073),
    ("aol.url.title", "acg", 0.1121, 0.0386, 0.1194),
    ("aol.url.title", "hred-qs", 0.0672, 0.0360, 0.0703),
)


def bounds_of(measure: str) -> Bounds:
    """The lowest and highest value of a measure; without an upper bound for measures not in ``pair_scores``."""
    return (0.0, 1.0 if measure in MEASURES and measure != "bleu_sentence" else math.inf)


def pair_scores(wanted: Sequence[str], written: Sequence[str], originals: Sequence[str]) -> dict[str, Floats]:
    """One value for each pair and measure. ``copies`` is 1 if the written query equals the original query."""
    rows = []
    for want, made, asked in zip(wanted, written, originals, strict=True):
        left, right = stemmed(want), stemmed(made)
        rows.append((
            f_measure((Counter(left) & Counter(right)).total(), len(left), len(right)),
            f_measure(common_length(left, right), len(left), len(right)),
            sentence_bleu(want.lower().split(), made.lower().split()),
            rouge_l_beta(want, made), squad_f1(want, made), float(plain(want) == plain(made)),
            float(made.lower().split() == asked.lower().split()),
        ))  # fmt: skip
    columns = np.array(rows, np.float64).reshape(-1, len(MEASURES)).T
    return dict(zip(MEASURES, columns, strict=True))


def f_measure(common: float, ours: int, theirs: int) -> float:
    """The harmonic mean of precision and recall."""
    return 2.0 * common / (ours + theirs) if common else 0.0


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(right) + 1)
    for word in left:
        before = 0
        for i, other in enumerate(right, start=1):
            before, row[i] = row[i], before + 1 if word == other else max(row[i], row[i - 1])
    return row[-1]


def stemmed(text: str) -> list[str]:
    """Words of letters and digits, lower-cased; those of more than three letters stemmed."""
    return [stem(word) if len(word) > 3 else word for word in _OTHER.sub(" ", text.lower()).split()]


def rouge_l_beta(wanted: str, written: str) -> float:
    """ROUGE-L with recall weighted by beta 1.2, on words between blanks."""
    left, right = wanted.lower().split(), written.lower().split()
    common = common_length(left, right)
    if not common:
        return 0.0
    precision, recall = common / len(right), common / len(left)
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def plain(text: str) -> list[str]:
    """Words without punctuation and articles, lower-cased, as SQuAD compares answers."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def squad_f1(wanted: str, written: str) -> float:
    """F of common words, as in SQuAD."""
    left, right = plain(wanted), plain(written)
    return f_measure((Counter(left) & Counter(right)).total(), len(left), len(right))


def sentence_bleu(wanted: Sequence[str], written: Sequence[str]) -> float:
    """Sentence BLEU of four orders with smoothing 7 of Chen and Cherry (2014), as in NLTK."""
    if not set(wanted) & set(written):
        return 0.0
    counts = [_right(wanted, written, n) for n in range(1, _ORDERS + 2)]
    shares = [right / max(1, total) for right, total in counts]
    again = 1
    for i, (right, total) in enumerate(counts[:_ORDERS]):
        if right == 0 and len(written) > 1:
            shares[i] = math.log(len(written)) / (2**again * _K) / max(1, total)
            again += 1
    before, logs = shares[0] + 1, []
    for i in range(_ORDERS):
        # The mean of the previous order (already smoothed), this order and the next one.
        before = (before + shares[i] + shares[i + 1]) / 3
        logs.append(math.log(before))
    short = min(0.0, 1 - len(wanted) / len(written))
    return math.exp(short + math.fsum(logs) / _ORDERS)


def _right(wanted: Sequence[str], written: Sequence[str], n: int) -> tuple[int, int]:
    """The number of correct n-grams, and the number of all n-grams of the written text."""
    ours, theirs = (Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1)) for side in (wanted, written))
    return (ours & theirs).total(), theirs.total()


def bleu_counts(wanted: Sequence[str], written: Sequence[str]) -> Floats:
    """The counts for corpus BLEU of each pair: correct and written n-grams by order, and target and written words."""
    rows = []
    for want, made in zip(wanted, written, strict=True):
        left, right = want.lower().split(), made.lower().split()
        orders = [_right(left, right, n) for n in range(1, _ORDERS + 1)]
        rows.append([*(one for one, _ in orders), *(all_ for _, all_ in orders), len(left), len(right)])
    return np.array(rows, np.float64).reshape(-1, 2 * _ORDERS + 2)


def bleu_mean(counts: Floats) -> Floats:
    """Mean of corpus BLEU-1 to BLEU-4 from summed counts, which are on the last axis."""
    right, total = counts[..., :_ORDERS], counts[..., _ORDERS : 2 * _ORDERS]
    products = np.cumprod((right + _TINY) / (total + _SMALL), axis=-1)
    bleus = products ** (1.0 / np.arange(1, _ORDERS + 1))
    ratio = (counts[..., -1] + _TINY) / (counts[..., -2] + _SMALL)
    with np.errstate(over="ignore"):
        short = np.where(ratio < 1, np.exp(1 - 1 / ratio), 1.0)
    return np.asarray(bleus.mean(axis=-1) * short)


def corpus_bleu(wanted: Sequence[str], written: Sequence[str]) -> float:
    """Mean of corpus BLEU-1 to BLEU-4; the published baselines choose the best epoch by it."""
    return float(bleu_mean(bleu_counts(wanted, written).sum(axis=0)))
