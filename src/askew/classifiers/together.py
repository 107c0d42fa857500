"""The mean of the calibrated probabilities of several trained classifiers, which err on different texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askew.classifiers.transformer import TransformerClassifier
from askew.core.errors import ConfigError
from askew.plugins.methods import Classified, ClassifierPlugin


class MeanClassifier:
    """The mean of the probabilities of several classifiers with the same labels, in any order."""

    name = "mean"

    def __init__(self, members: Sequence[ClassifierPlugin], abstain_below: float = 0.0) -> None:
        if len(members) < 2:
            raise ConfigError(f"{self.name}: expected two classifiers or more, found {len(members)}")
        self.labels = tuple(members[0].labels)
        for member in members[1:]:
            if sorted(member.labels) != sorted(self.labels):
                raise ConfigError(
                    f"{self.name}: expected classifiers of the same labels, found {', '.join(self.labels)} and "
                    f"{', '.join(member.labels)}"
                )
        if not 0 <= abstain_below <= 1:
            raise ConfigError(f"{self.name}: expected abstain_below= to be from 0 to 1, found {abstain_below}")
        self._members, self._least = tuple(members), float(abstain_below)

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of each classifier, and the threshold."""
        return {"members": [dict(member.settings()) for member in self._members], "abstain_below": self._least}

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return the most probable label of each text, or -1 where its probability is below ``abstain_below``."""
        found = [self._ordered(member.classify(texts)) for member in self._members]
        probabilities = np.mean(found, axis=0)
        chosen = probabilities.argmax(axis=1).astype(np.int64)
        chosen[probabilities.max(axis=1) < self._least] = -1
        return Classified(self.labels, probabilities, chosen)

    def _ordered(self, found: Classified) -> Any:
        return found.probabilities[:, [found.labels.index(label) for label in self.labels]]


class TogetherClassifier(MeanClassifier):
    """Combines trained transformers by the mean of their probabilities.

    ``models``         folders or hub ids, separated by commas; each with the temperature in its folder.
    ``abstain_below``  abstain if the mean probability of the label is lower; 0: never.
    """

    name = "together"

    def __init__(
        self, models: str, abstain_below: float = 0.0, batch_size: int = 64, device: str | None = None
    ) -> None:
        names = [name.strip() for name in models.split(",") if name.strip()]
        members = [TransformerClassifier(name, batch_size=batch_size, device=device) for name in names]
        super().__init__(members, abstain_below)
