"""Batches that fit into the memory of a device: halved when they do not, and kept at the size that did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from askew.core.errors import StageError

Made = TypeVar("Made")
# What fitted for a model: the next call begins there.
_FITS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def halving(model: Any, batch_size: int, work: Callable[[int], Made]) -> Made:
    """What ``work`` makes with a batch size, or with half of it as long as memory runs out."""
    size = min(batch_size, _FITS.get(model, batch_size))
    while True:
        try:
            return work(size)
        except RuntimeError as error:
            _refuse_other(error, size)
        _free()
        size //= 2
        _FITS[model] = size


def halved(rows: Sequence[int], work: Callable[[Sequence[int]], list[Made]]) -> list[Made]:
    """What ``work`` makes of some rows together, or of each half of them where memory runs out."""
    try:
        return work(rows)
    except RuntimeError as error:
        _refuse_other(error, len(rows))
    _free()
    half = len(rows) // 2
    return halved(rows[:half], work) + halved(rows[half:], work)


def _refuse_other(error: RuntimeError, size: int) -> None:
    """Raise what is not for want of memory, and what one row alone has no room for."""
    import torch

    if not isinstance(error, torch.OutOfMemoryError):
        raise error
    if size <= 1:
        raise StageError(
            "out of memory with a batch of one: expected room for one text; take a smaller model, fewer actors for "
            "each GPU, or device='cpu'"
        ) from error


def _free() -> None:
    """Give back what the library keeps for later: the smaller batch needs it in other pieces."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
