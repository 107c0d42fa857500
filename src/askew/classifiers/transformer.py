"""Trained classifiers: a checkpoint for sequence classification, with a temperature that calibrates it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from askew.classifiers.temperature import read_temperature, softmax
from askew.core.errors import ConfigError
from askew.core.ranking import Floats
from askew.models import identify, load_classifier, locate
from askew.plugins.methods import Classified


class LogitsClassifier:
    """Classifies by any function that returns a row of logits for each text; the base of ``TransformerClassifier``.

    ``identity`` contains, as JSON values, everything that determines the logits.
    """

    name = "logits"

    def __init__(
        self, predict_logits: Callable[[Sequence[str]], Floats], labels: Sequence[str], temperature: float = 1.0,
        abstain_below: float = 0.0, identity: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if len(set(labels)) != len(labels) or len(labels) < 2:
            raise ConfigError(f"{self.name}: expected two labels or more, each once, found {', '.join(labels)}")
        if not 0 < temperature < math.inf:
            raise ConfigError(f"{self.name}: expected a temperature above 0, found {temperature}")
        if not 0 <= abstain_below <= 1:
            raise ConfigError(f"{self.name}: expected abstain_below= to be from 0 to 1, found {abstain_below}")
        self.labels = tuple(labels)
        self._predict, self._temperature, self._least = predict_logits, float(temperature), float(abstain_below)
        self._identity = dict(identity or {})

    def settings(self) -> Mapping[str, Any]:
        """Return the model, identified by its weights, its labels, its temperature and the threshold."""
        return {
            **self._identity, "labels": list(self.labels), "temperature": self._temperature,
            "abstain_below": self._least,
        }  # fmt: skip

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return the most probable label of each text, or -1 where its probability is below ``abstain_below``."""
        if not len(texts):
            return Classified(self.labels, np.zeros((0, len(self.labels))), np.zeros(0, np.int64))
        logits = np.asarray(self._predict(list(texts)), np.float64)
        if logits.shape != (len(texts), len(self.labels)) or not np.isfinite(logits).all():
            expected = f"{len(texts)} rows of {len(self.labels)} finite logits"
            raise ConfigError(f"{self.name}: expected {expected}, found the shape {logits.shape}")
        probabilities = softmax(logits, self._temperature)
        chosen = probabilities.argmax(axis=1).astype(np.int64)
        chosen[probabilities.max(axis=1) < self._least] = -1
        return Classified(self.labels, probabilities, chosen)


class TransformerClassifier(LogitsClassifier):
    """A trained transformer for sequence classification, by folder or hub id, with calibrated probabilities.

    ``temperature``    by default the one in ``calibration.json`` in the folder of the model, or 1 if there is none (a
                       model of the hub has none: give it here).
    ``labels``         other names for the model's labels, in its order, separated by commas.
    ``abstain_below``  abstain if the probability of the label is lower; 0: never.
    """

    name = "transformer"

    def __init__(
        self, model: str, revision: str | None = None, labels: str = "", temperature: float | None = None,
        abstain_below: float = 0.0, batch_size: int = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        if batch_size < 1:
            raise ConfigError(f"transformer: expected batch_size >= 1, found {batch_size}")
        loaded = load_classifier(model, revision, device)
        super().__init__(
            lambda texts: loaded.logits(texts, batch_size),
            _renamed(loaded.labels, labels),
            read_temperature(locate(model)) if temperature is None else temperature,
            abstain_below,
            {"model": identify(model, revision)},
        )


def _renamed(own: tuple[str, ...], wanted: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in wanted.split(",")) if wanted else own
    if len(names) != len(own) or not all(names):
        raise ConfigError(f"transformer: expected {len(own)} label names (for {', '.join(own)}), found {wanted!r}")
    return names
