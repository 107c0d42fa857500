"""Counts of model calls: how many texts neural networks read or write during a computation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

_LOCK = Lock()
_OPEN: list[ModelCalls] = []


@dataclass
class ModelCalls:
    """Texts, or pairs of texts, that neural networks read or wrote."""

    texts: int = 0


@contextmanager
def counting_model_calls() -> Iterator[ModelCalls]:
    """Count the texts that models read and write inside the block, in every thread of this process."""
    counted = ModelCalls()
    with _LOCK:
        _OPEN.append(counted)
    try:
        yield counted
    finally:
        with _LOCK:
            # By identity: two counters with equal counts are equal.
            _OPEN[:] = [counter for counter in _OPEN if counter is not counted]


def count_model_calls(texts: int) -> None:
    """Add to every open count. A component calls this function when a neural network reads or writes texts."""
    with _LOCK:
        for counted in _OPEN:
            counted.texts += texts
