"""Models that decide whether a reformulation has the meaning of its query, and whether a person could type it.

``light``   logistic regressions on the words, names and numbers that a pair shares or does not share
            (``askew.filters.light_equivalence``). Less accurate, but there is no model to install.
``minilm``  logistic regressions on the logits of ``light`` and of a MiniLM cross-encoder (adapter
            ``minilm-equivalence``).
``neural``  logistic regressions on the same logits and those of SmolLM2, which also reads both texts (adapter
            ``smollm2-equivalence``).

Each model gives a pair the probabilities *same* and *natural*, calibrated on labeled reformulations. The cards of the
adapters report their quality.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Floats
from askew.core.shipped import DATA
from askew.models.find import MINILM, has_minilm, has_smollm, identify, need, need_smollm

ADAPTER = "smollm2-equivalence"
MINILM_ADAPTER = "minilm-equivalence"
MODELS = ("auto", "neural", "minilm", "light")
OTHER_MEANING = "other meaning"
NOT_NATURAL = "not natural"
WEIGHTS = "equivalence.json"
LIGHT = DATA / "equivalence-light.json"
OUTPUTS = ("same", "natural")


def chosen_model(model: str) -> str:
    """Return the name of a model; ``auto`` is the best model with installed libraries and weights."""
    if model not in MODELS:
        raise ConfigError(f"equivalence: expected model= to be one of {', '.join(MODELS)}, found {model!r}")
    if model != "auto":
        return model
    return "light" if not has_minilm() else "neural" if has_smollm() else "minilm"


class EquivalenceFilter:
    """Drops reformulations that have another meaning or that nobody would type.

    ``same``, ``natural``  the minimum probabilities; by default those chosen on the development labels.
    ``model``              auto, neural (extras neural and lm), minilm (extra neural) or light.
    ``adapter``            the folder of another adapter for the model, SmolLM2 or MiniLM.
    ``device``             cuda or cpu; by default the GPU if there is one.
    """

    name = "equivalence"

    def __init__(
        self, same: float | None = None, natural: float | None = None, model: str = "auto", adapter: str | None = None,
        device: str | None = None,
    ) -> None:  # fmt: skip
        for limit in (same, natural):
            if limit is not None and not 0 <= limit <= 1:
                raise ConfigError(f"equivalence: expected a probability from 0 to 1 as threshold, found {limit}")
        self.model = chosen_model(model)
        self._judge = load_judge(self.model, adapter, device)
        self.thresholds = {
            output: self._judge.thresholds[output] if limit is None else float(limit)
            for output, limit in zip(OUTPUTS, (same, natural), strict=True)
        }

    def settings(self) -> Mapping[str, Any]:
        """Return the model, identified by its weights, and the two thresholds."""
        return {"model": self._judge.id, **self.thresholds}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return a list with None for each kept reformulation, and the reason for each dropped reformulation.

        A reformulation is dropped for the reason ``other meaning`` or ``not natural``. A reformulation is kept if two
        probabilities are at least as high as their thresholds. ``same`` is the probability that the reformulation has
        the same meaning as the original query. ``natural`` is the probability that a person could type the
        reformulation as a query.
        """
        return [self.reason(one) for one in self.score(originals, candidates)]

    def reason(self, scores: Mapping[str, float]) -> str | None:
        """Return the reason why a pair with these probabilities is dropped; None if it is kept."""
        if scores["same"] < self.thresholds["same"]:
            return OTHER_MEANING
        return NOT_NATURAL if scores["natural"] < self.thresholds["natural"] else None

    def score(self, originals: Sequence[str], candidates: Sequence[str]) -> list[dict[str, float]]:
        """Return the probabilities ``same`` and ``natural`` of each pair."""
        found = self.probabilities(originals, candidates)
        return [
            dict(zip(OUTPUTS, pair, strict=True)) for pair in zip(*(found[o].tolist() for o in OUTPUTS), strict=True)
        ]

    def probabilities(self, originals: Sequence[str], candidates: Sequence[str]) -> dict[str, Floats]:
        """The probabilities of all pairs, by output (same, natural)."""
        if len(originals) != len(candidates):
            sizes = f"{len(originals)} queries and {len(candidates)} reformulations"
            raise ConfigError(f"equivalence: expected exactly one reformulation for each query, found {sizes}")
        if not len(originals):
            return {output: np.zeros(0) for output in OUTPUTS}
        return self._judge.probabilities(originals, candidates)


class _Judge:
    """Two logistic regressions on features of a pair; their weights and thresholds are read from a file."""

    def __init__(self, file: Path, identity: str) -> None:
        self._weights, self._bias, self.thresholds = read_weights(file)
        self.id = identity

    def features(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        from askew.filters.light_equivalence import pair_features

        return pair_features(originals, candidates)

    def logits(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        """A row for each pair, a column for each output."""
        found: Floats = self.features(originals, candidates) @ self._weights + self._bias
        return found

    def probabilities(self, originals: Sequence[str], candidates: Sequence[str]) -> dict[str, Floats]:
        found = 1 / (1 + np.exp(-self.logits(originals, candidates)))
        return {output: found[:, at] for at, output in enumerate(OUTPUTS)}


class _MinilmJudge(_Judge):
    """Uses the logits of the cross-encoder, which is loaded at first use, and those of the light model."""

    def __init__(self, adapter: str, device: str | None) -> None:
        for library in ("torch", "transformers"):
            need(library, f"the equivalence model {adapter!r}")
        from askew.models.adapted import find_encoder_adapter

        self._folder, self._device = find_encoder_adapter(adapter, MINILM_ADAPTER), device
        self._loaded: Any = None
        self._light = load_judge("light")
        super().__init__(self._folder / WEIGHTS, f"{identify(MINILM)}+{identify(str(self._folder))}+{self._light.id}")

    def features(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        from askew.models.pair_network import load_pair_network, pair_logits

        if self._loaded is None:
            self._loaded = load_pair_network(MINILM, self._folder, self._device)
        network, tokenizer = self._loaded
        logits = pair_logits(network, tokenizer, originals, candidates)
        return np.hstack([logits, self._light.logits(originals, candidates)])


class _NeuralJudge(_Judge):
    """Uses the logits of SmolLM2, which is loaded at first use, and the features of the MiniLM model."""

    def __init__(self, adapter: str, device: str | None) -> None:
        need_smollm(f"the equivalence model {adapter!r}")
        from askew.models.generate import SMOLLM, find_adapter

        self._folder, self._device = find_adapter(adapter), device
        self._loaded: Any = None
        self._smaller = load_judge("minilm", None, device)
        super().__init__(self._folder / WEIGHTS, f"{SMOLLM}+{identify(str(self._folder))}+{self._smaller.id}")

    def features(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        from askew.models.pair_judge import load_pair_judge

        if self._loaded is None:
            self._loaded = load_pair_judge(self._folder, device=self._device)
        return np.hstack([self._loaded.logits(originals, candidates), self._smaller.features(originals, candidates)])


@cache
def load_judge(model: str, adapter: str | None = None, device: str | None = None) -> _Judge:
    """Load one of the models; each is loaded once."""
    if model == "light":
        return _Judge(LIGHT, f"light@{digest(LIGHT)}")
    if model == "minilm":
        return _MinilmJudge(adapter or MINILM_ADAPTER, device)
    return _NeuralJudge(adapter or ADAPTER, device)


def digest(file: Path) -> str:
    """Return the fingerprint of a file of weights."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def read_weights(file: Path) -> tuple[Floats, Floats, dict[str, float]]:
    """The weights (features, outputs), the bias and the threshold of each output."""
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        weights = np.array([facts[output]["weights"] for output in OUTPUTS], np.float64).T
        bias = np.array([facts[output]["bias"] for output in OUTPUTS], np.float64)
        thresholds = {output: float(facts[output]["threshold"]) for output in OUTPUTS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: expected weights, bias and threshold of {' and '.join(OUTPUTS)} ({error!r}); install askew again"
        ) from None
    return weights, bias, thresholds
