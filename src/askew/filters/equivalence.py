"""Whether a reformulation asks for the same thing as its query, and whether a person could type it.

``light``   logistic regressions on the words, names and numbers that a pair shares or does not share
            (``askew.filters.light_equivalence``): no model to install, and less exact.
``minilm``  on the logits of ``light`` and those of a cross-encoder on MiniLM (adapter ``minilm-equivalence``).
``neural``  on those of ``minilm`` and of SmolLM2, which reads both texts too (adapter ``smollm2-equivalence``).

The cards of the adapters say how well they do. Each gives two probabilities for a pair, calibrated on labeled
reformulations.
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
from askew.models.find import MINILM, has_minilm, has_smollm, identify, need

ADAPTER = "smollm2-equivalence"
MINILM_ADAPTER = "minilm-equivalence"
MODELS = ("auto", "neural", "minilm", "light")
OTHER_MEANING = "other meaning"
NOT_NATURAL = "not natural"
WEIGHTS = "equivalence.json"
LIGHT = DATA / "equivalence-light.json"
OUTPUTS = ("same", "natural")


def chosen_model(model: str) -> str:
    """The model by its name; ``auto`` is the best one whose libraries and weights are installed."""
    if model not in MODELS:
        raise ConfigError(f"equivalence: expected the model {', '.join(MODELS)}, found {model!r}")
    if model != "auto":
        return model
    return "light" if not has_minilm() else "neural" if has_smollm() else "minilm"


class EquivalenceFilter:
    """Drops reformulations that ask for something else or that nobody would type.

    ``same``, ``natural``  the least probability that is kept; none: those chosen on the development labels.
    ``model``              auto, neural (extras neural and lm), minilm (extra neural) or light.
    ``adapter``            another adapter for the model, of SmolLM2 or MiniLM: a folder.
    ``device``             cuda or cpu; without one the GPU where there is one.
    """

    name = "equivalence"

    def __init__(
        self, same: float | None = None, natural: float | None = None, model: str = "auto", adapter: str | None = None,
        device: str | None = None,
    ) -> None:  # fmt: skip
        for limit in (same, natural):
            if limit is not None and not 0 <= limit <= 1:
                raise ConfigError(f"equivalence: expected a probability from 0 to 1, found {limit}")
        self.model = chosen_model(model)
        self._judge = load_judge(self.model, adapter, device)
        self.thresholds = {
            output: self._judge.thresholds[output] if limit is None else float(limit)
            for output, limit in zip(OUTPUTS, (same, natural), strict=True)
        }

    def settings(self) -> Mapping[str, Any]:
        """The model by its weights, and the two thresholds."""
        return {"model": self._judge.id, **self.thresholds}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """``other meaning`` or ``not natural`` for those below a threshold."""
        return [self.reason(one) for one in self.score(originals, candidates)]

    def reason(self, scores: Mapping[str, float]) -> str | None:
        """Why a pair of these probabilities is dropped; None where it is kept."""
        if scores["same"] < self.thresholds["same"]:
            return OTHER_MEANING
        return NOT_NATURAL if scores["natural"] < self.thresholds["natural"] else None

    def score(self, originals: Sequence[str], candidates: Sequence[str]) -> list[dict[str, float]]:
        """For each pair the probabilities ``same`` and ``natural``."""
        found = self.probabilities(originals, candidates)
        return [
            dict(zip(OUTPUTS, pair, strict=True)) for pair in zip(*(found[o].tolist() for o in OUTPUTS), strict=True)
        ]

    def probabilities(self, originals: Sequence[str], candidates: Sequence[str]) -> dict[str, Floats]:
        """The probabilities of all pairs, by output."""
        if len(originals) != len(candidates):
            sizes = f"{len(originals)} queries and {len(candidates)} reformulations"
            raise ConfigError(f"equivalence: expected a reformulation for each query, found {sizes}")
        if not len(originals):
            return {output: np.zeros(0) for output in OUTPUTS}
        return self._judge.probabilities(originals, candidates)


class _Judge:
    """Two logistic regressions on features of a pair; their weights and thresholds lie in a file."""

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
    """The logits of the cross-encoder, which is loaded when it is first used, and those of the light model."""

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
    """The logits of SmolLM2, which is loaded when it is first used, and what the smaller models read."""

    def __init__(self, adapter: str, device: str | None) -> None:
        need("gguf", f"the equivalence model {adapter!r}", "lm")
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
    """One of the models; the same is loaded once."""
    if model == "light":
        return _Judge(LIGHT, f"light@{digest(LIGHT)}")
    if model == "minilm":
        return _MinilmJudge(adapter or MINILM_ADAPTER, device)
    return _NeuralJudge(adapter or ADAPTER, device)


def digest(file: Path) -> str:
    """What tells two files of weights apart."""
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
