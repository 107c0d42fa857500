"""Whether a candidate keeps the meaning of the original, estimated by the similarity of two vectors.

``light`` compares the spelling and needs no model, ``neural`` compares by a sentence encoder.

Average precision on labeled variations, 95% interval over queries, and the share of pairs labeled valid:

                                  ANTIQUE                    TREC DL 2019
    light, all kinds              0.943 [0.936, 0.951]       0.939 [0.916, 0.960]
    neural, all kinds             0.897 [0.878, 0.915]       0.911 [0.878, 0.942]
    share of valid pairs          0.816 of 1,844             0.848 of 394
    light, reworded only          0.863 [0.841, 0.885]       0.866 [0.813, 0.920]
    neural, reworded only         0.830 [0.795, 0.863]       0.885 [0.834, 0.933]
    share of valid pairs          0.682 of 1,066             0.732 of 224

Reworded queries are paraphrases, synonyms and shortened queries. The other kinds, misspelled and reordered queries,
were all labeled valid, and light is good at them. If a word was replaced by another (synonyms), neural is better: 0.738
against 0.569 on ANTIQUE, 0.751 against 0.671 on DL 2019. Light was developed on ANTIQUE, neural on neither collection.
Choose by the reformulators you use, and calibrate on your own pairs (askew.filters.calibrate).
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
# The number of pairs whose vectors are compared at a time.
_BLOCK = 1 << 14
# The thresholds with the highest F1 on the labeled variations of ANTIQUE, rounded (tests/filters/test_calibrated.py has
# the numbers). Only the kinds that reformulators make are used: 1,066 paraphrases, synonyms and shortened queries, 68 %
# of them valid. Misspelled and reordered queries are left out, because all are valid: with them neural's best threshold
# keeps nearly all pairs. On the same kinds of TREC DL 2019, neural's best threshold is 0.66, and light's keeps nearly
# all pairs (F1 0.84 to 0.85).
THRESHOLDS = {"light": 0.53, "neural": 0.68}


class SemanticFilter:
    """Drops candidates too different from the original, by spelling (light, no model) or a sentence encoder (neural).

    ``threshold``  the minimum cosine; by default the calibrated threshold of the similarity.
    ``model``      an encoder by name, folder or hub id; used with ``similarity="neural"`` only.
    """

    name = "semantic"

    def __init__(
        self, similarity: str = defaults.SIMILARITY, model: str = MINILM, revision: str | None = None,
        threshold: float | None = None, batch_size: int = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        if similarity not in THRESHOLDS:
            raise ConfigError(f"semantic: expected similarity= to be 'light' or 'neural', found {similarity!r}")
        if threshold is not None and not -1 <= threshold <= 1:
            raise ConfigError(f"semantic: expected threshold= to be from -1 to 1, found {threshold}")
        if batch_size < 1:
            raise ConfigError(f"semantic: expected batch_size >= 1, found {batch_size}")
        self._similarity, self._model, self._revision = similarity, model, revision
        self._batch, self._device = batch_size, device
        self.threshold = THRESHOLDS[similarity] if threshold is None else float(threshold)

    def settings(self) -> Mapping[str, Any]:
        """Return the similarity with its threshold, and the encoder, if there is one, identified by its weights."""
        weights = identify(self._model, self._revision) if self._similarity == "neural" else None
        return {"similarity": self._similarity, "threshold": self.threshold, "model": weights}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return ``meaning too far`` for each pair with a similarity below the threshold, and None for other pairs."""
        scores = self.score_pairs(originals, candidates)
        return [None if near else FAR for near in (scores >= self.threshold).tolist()]

    def score_pairs(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        """Return the cosine of each pair, on which a threshold can be calibrated."""
        if len(originals) != len(candidates):
            sizes = f"{len(originals)} originals and {len(candidates)} candidates"
            raise ConfigError(f"semantic: expected as many candidates as original queries, found {sizes}")
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
