"""Whether a candidate still means what the original meant, as far as the nearness of two vectors can tell.

Average precision on labeled variations, 95 % interval over queries, and the share of pairs labeled valid:

                                  ANTIQUE                    TREC DL 2019
    light, all kinds              0.943 [0.936, 0.951]       0.939 [0.916, 0.960]
    neural, all kinds             0.897 [0.878, 0.915]       0.911 [0.878, 0.942]
    valid, of how many            0.816 of 1,844             0.848 of 394
    light, reworded only          0.863 [0.841, 0.885]       0.866 [0.813, 0.920]
    neural, reworded only         0.830 [0.795, 0.863]       0.885 [0.834, 0.933]
    valid, of how many            0.682 of 1,066             0.732 of 224

Reworded are paraphrases, synonyms and shortened queries. The others, misspelt and reordered, were all labeled valid,
and light is good at them. Where a word was replaced by another (synonyms) neural is better: 0.738 against 0.569 on
ANTIQUE, 0.751 against 0.671 on DL 2019. Light was made on ANTIQUE, neural on neither. Choose by the reformulators you
use, and calibrate on pairs of your own (askew.filters.calibrate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from askew.core import defaults
from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError
from askew.core.ranking import Floats
from askew.filters.similarity import light_similarity
from askew.models import MINILM, halving, identify, load_model

FAR = "meaning too far"
# Pairs whose vectors are laid side by side at a time.
_BLOCK = 1 << 14
# Highest F1 on the labeled variations of ANTIQUE (tests/filters/test_calibrated.py has the figures), rounded. Taken
# are the kinds that reformulators make: 1,066 paraphrases, synonyms and shortened queries, 68 % of them valid.
# Misspelt and reordered queries, all of them valid, are left out: with them neural's best F1 keeps nearly everything.
# On the same kinds of TREC DL 2019 neural's best is at 0.66; light keeps nearly everything there (F1 0.84 to 0.85).
THRESHOLDS = {"light": 0.53, "neural": 0.68}


class SemanticFilter:
    """Drops candidates too far from the original: by spelling (light, no model) or by a sentence encoder (neural).

    ``threshold``  the least cosine that is kept; none: the calibrated one of the similarity.
    ``model``      an encoder by name, folder or hub id; read with ``similarity="neural"`` only.
    """

    name = "semantic"

    def __init__(
        self, similarity: str = defaults.SIMILARITY, model: str = MINILM, revision: str | None = None,
        threshold: float | None = None, batch_size: int = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        if similarity not in THRESHOLDS:
            raise ConfigError(f"semantic: expected similarity light or neural, found {similarity!r}")
        if threshold is not None and not -1 <= threshold <= 1:
            raise ConfigError(f"semantic: expected a threshold from -1 to 1, found {threshold}")
        if batch_size < 1:
            raise ConfigError(f"semantic: expected batch_size >= 1, found {batch_size}")
        self._similarity, self._model, self._revision = similarity, model, revision
        self._batch, self._device = batch_size, device
        self.threshold = THRESHOLDS[similarity] if threshold is None else float(threshold)

    def settings(self) -> Mapping[str, Any]:
        """The similarity with its threshold, and the weights of the encoder where there is one."""
        weights = identify(self._model, self._revision) if self._similarity == "neural" else None
        return {"similarity": self._similarity, "threshold": self.threshold, "model": weights}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """``meaning too far`` for those below the threshold."""
        scores = self.score_pairs(originals, candidates)
        return [None if near else FAR for near in (scores >= self.threshold).tolist()]

    def score_pairs(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The cosine of each pair; what a threshold is calibrated on."""
        if len(originals) != len(candidates):
            sizes = f"{len(originals)} originals and {len(candidates)} candidates"
            raise ConfigError(f"semantic: expected a candidate for each original, found {sizes}")
        if self._similarity == "light":
            return light_similarity(originals, candidates)
        return self._neural(originals, candidates)

    def _neural(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        if not len(originals):
            return np.zeros(0)
        encoder = load_model("dense", self._model, self._revision, self._device)
        places = {text: i for i, text in enumerate(dict.fromkeys([*originals, *candidates]))}
        count_model_calls(len(places))
        encode = partial(
            encoder.encode, list(places), show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
        )
        vectors = halving(encoder, self._batch, lambda size: encode(batch_size=size))
        left, right = [places[text] for text in originals], [places[text] for text in candidates]
        scores = np.empty(len(left))
        for start in range(0, len(left), _BLOCK):
            part = slice(start, start + _BLOCK)
            scores[part] = np.einsum("ij,ij->i", vectors[left[part]], vectors[right[part]])
        return scores
