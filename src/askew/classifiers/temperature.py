"""Temperature scaling (Guo and others 2017): one number that calibrates the probabilities of a classifier.

Logits are divided by the temperature before the softmax; the label never changes. The temperature is stored with the
weights of a model, in ``calibration.json``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError
from askew.core.ranking import Floats
from askew.core.whole_files import write_whole

FILE = "calibration.json"
# A temperature outside these bounds means that there were too few errors, or only errors, to fit it.
COLDEST, HOTTEST = 0.05, 20.0
_STEPS = 80


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """Probabilities of each row; they sum to one."""
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def log_loss(logits: Floats, labels: npt.NDArray[np.integer], temperature: float = 1.0) -> float:
    """Mean negative log-likelihood of the right labels."""
    scaled = logits / temperature
    top = scaled.max(axis=1)
    total = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
    return float(np.mean(total - scaled[np.arange(len(labels)), labels]))


def fit_temperature(logits: Floats, labels: npt.NDArray[np.integer]) -> float:
    """Return the temperature with the lowest log loss on held-out texts, by golden-section search on its logarithm.

    The loss is convex in 1 / temperature, so it has one minimum.
    """
    if logits.ndim != 2 or len(logits) != len(labels) or not len(labels):
        raise DataError(
            f"temperature: expected one row of logits for each label, found logits of shape {logits.shape} "
            f"and {len(labels)} labels"
        )
    if labels.min() < 0 or labels.max() >= logits.shape[1]:
        raise DataError(f"temperature: expected labels from 0 to {logits.shape[1] - 1}, found another label")
    low, high = math.log(COLDEST), math.log(HOTTEST)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(_STEPS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if log_loss(logits, labels, math.exp(left)) <= log_loss(logits, labels, math.exp(right)):
            high = right
        else:
            low = left
    return math.exp((low + high) / 2)


def write_calibration(folder: Path | str, logits: Floats, labels: npt.NDArray[np.integer]) -> dict[str, Any]:
    """Fit the temperature on held-out texts and write it to the folder of the model."""
    temperature = fit_temperature(logits, labels)
    facts = {
        "temperature": temperature, "texts": len(labels), "log_loss_before": log_loss(logits, labels),
        "log_loss_after": log_loss(logits, labels, temperature),
    }  # fmt: skip
    write_whole(Path(folder) / FILE, json.dumps(facts, indent=2, sort_keys=True) + "\n")
    return facts


def read_temperature(folder: Path | str) -> float:
    """Read the temperature from the folder of a model; 1, which changes nothing, if there is none."""
    file = Path(folder) / FILE
    if not file.is_file():
        return 1.0
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: expected JSON with a temperature ({error})") from None
    found = facts.get("temperature") if isinstance(facts, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < math.inf:
        raise DataError(f"{file}: expected a temperature above 0, found {found!r}")
    return float(found)
