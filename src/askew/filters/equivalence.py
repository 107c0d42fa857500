"""Whether a reformulation asks for the same thing as its query, and whether a person could type it.

``light``   logistic regressions on the words, names and numbers that a pair shares or does not share
            (``askew.filters.light_equivalence``): no model to install, and less exact.
``neural``  logistic regressions on the logits of ``light`` and those of a cross-encoder on MiniLM (adapter
            ``minilm-equivalence``, whose card says how well it does).

Both give two probabilities for each pair, calibrated on labeled reformulations.
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
from askew.models.find import MINILM, has_minilm, identify, need

ADAPTER = "minilm-equivalence"
MODELS = ("auto", "neural", "light")
OTHER_MEANING = "other meaning"
NOT_NATURAL = "not natural"
WEIGHTS = "equivalence.json"
LIGHT = DATA / "equivalence-light.json"
OUTPUTS = ("same", "natural")
_LIBRARIES = ("torch", "transformers")


def chosen_model(model: str) -> str:
    """``neural`` or ``light``; ``auto`` is neural where its libraries and the weights of MiniLM are installed."""
    if model not in MODELS:
        raise ConfigError(f"equivalence: expected the model {', '.join(MODELS)}, found {model!r}")
    if model != "auto":
        return model
    return "neural" if has_minilm() else "light"


class EquivalenceFilter:
    """Drops reformulations that ask for something else or that nobody would type.

    ``same``, ``natural``  the least probability that is kept; none: those chosen on the development labels.
    ``model``              auto, neural (extra neural) or light.
    ``adapter``            the name of a shipped adapter of MiniLM, or a folder.
    """

    name = "equivalence"

    def __init__(
        self, same: float | None = None, natural: float | None = None, model: str = "auto", adapter: str = ADAPTER,
        batch_size: int = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        for limit in (same, natural):
            if limit is not None and not 0 <= limit <= 1:
                raise ConfigError(f"equivalence: expected a probability from 0 to 1, found {limit}")
        if batch_size < 1:
            raise ConfigError(f"equivalence: expected batch_size >= 1, found {batch_size}")
        self.model = chosen_model(model)
        self._judge = _judge(self.model, adapter, batch_size, device)
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


class _NeuralJudge(_Judge):
    """The logits of the cross-encoder, which is loaded when it is first used, and those of the light model."""

    def __init__(self, adapter: str, batch_size: int, device: str | None) -> None:
        for library in _LIBRARIES:
            need(library, f"the equivalence model {adapter!r}")
        from askew.models.adapted import find_encoder_adapter

        self._folder, self._batch, self._device = find_encoder_adapter(adapter, ADAPTER), batch_size, device
        super().__init__(self._folder / WEIGHTS, f"{identify(MINILM)}+{identify(str(self._folder))}+{_light().id}")
        self._loaded: Any = None
        self._light = _light()

    def features(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        from askew.models.pair_network import load_pair_network, pair_logits

        if self._loaded is None:
            self._loaded = load_pair_network(MINILM, self._folder, self._device)
        network, tokenizer = self._loaded
        logits = pair_logits(network, tokenizer, originals, candidates, self._batch)
        return np.hstack([logits, self._light.logits(originals, candidates)])


@cache
def _judge(model: str, adapter: str, batch_size: int, device: str | None) -> _Judge:
    """The same model is loaded once."""
    return _NeuralJudge(adapter, batch_size, device) if model == "neural" else _light()


@cache
def _light() -> _Judge:
    return _Judge(LIGHT, f"light@{digest(LIGHT)}")


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
