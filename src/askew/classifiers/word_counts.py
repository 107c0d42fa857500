"""Input of the model ``query-groups`` in addition to the text: counts of words and first names for women and for men.

Training and use must agree on these numbers, so they are computed only here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from askew.classifiers.terms import TermCounter
from askew.core.lexicon import load_lexicon
from askew.core.shipped import DATA

GROUPS = ("female", "male")
LEXICON = "gender"
_NAMES = DATA / "names" / "en.toml"


def log_counts(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """One row for each text: log(1 + count) of female and male words, then of female and male first names."""
    counts = [counter.count(texts)[:, [counter.groups.index(one) for one in GROUPS]] for counter in _counters()]
    return np.log1p(np.concatenate(counts, axis=1)).astype(np.float32)


def counted_id() -> list[str]:
    """Return the ids of the two word lists that determine the counts, by their content."""
    return [load_lexicon(one).id for one in (LEXICON, _NAMES)]


@cache
def _counters() -> tuple[TermCounter, TermCounter]:
    return TermCounter(load_lexicon(LEXICON)), TermCounter(load_lexicon(_NAMES))
