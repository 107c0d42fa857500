"""Temperature scaling (Guo and others 2017): one number that makes the probabilities of a classifier honest.

Logits are divided by it before they become probabilities; the label never changes. It lies in ``calibration.json``
beside the weights, so that a model carries it along.
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
# Beyond these a temperature says that there were too few mistakes, or nothing but mistakes, to learn from.
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
    """The temperature of the lowest log loss on held-out texts, by golden section on its logarithm.

    The loss is convex in 1 / temperature, so it has one valley.
    """
    if logits.ndim != 2 or len(logits) != len(labels) or not len(labels):
        raise DataError(f"temperature: expected a row of logits for each label, found {logits.shape}, {len(labels)}")
    if labels.min() < 0 or labels.max() >= logits.shape[1]:
        raise DataError(f"temperature: expected labels from 0 to {logits.shape[1] - 1}, found others")
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
    """Fit the temperature on held-out texts and put it beside the model."""
    temperature = fit_temperature(logits, labels)
    facts = {
        "temperature": temperature, "texts": len(labels), "log_loss_before": log_loss(logits, labels),
        "log_loss_after": log_loss(logits, labels, temperature),
    }  # fmt: skip
    write_whole(Path(folder) / FILE, json.dumps(facts, indent=2, sort_keys=True) + "\n")
    return facts


def read_temperature(folder: Path | str) -> float:
    """The temperature beside a model; 1, which changes nothing, where there is none."""
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
