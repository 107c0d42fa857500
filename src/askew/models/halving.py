"""Find batch sizes that fit into the memory of a device: a batch that does not fit is halved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from askew.core.errors import StageError

Made = TypeVar("Made")
# The batch size that fitted for a model: the next call starts with it.
_FITS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def halving(model: Any, batch_size: int, work: Callable[[int], Made]) -> Made:
    """Call ``work`` with a batch size; as long as it runs out of memory, call it again with half the size."""
    size = first = min(batch_size, _FITS.get(model, batch_size))
    while True:
        try:
            made = work(size)
        except RuntimeError as error:
            _refuse_other(error, size)
        else:
            if size < first:
                _FITS[model] = size
            return made
        _free()
        size //= 2


def halved(rows: Sequence[int], work: Callable[[Sequence[int]], list[Made]]) -> list[Made]:
    """Call ``work`` with all rows; if it runs out of memory, call it with each half of them."""
    try:
        return work(rows)
    except RuntimeError as error:
        _refuse_other(error, len(rows))
    _free()
    half = len(rows) // 2
    return halved(rows[:half], work) + halved(rows[half:], work)


def _refuse_other(error: RuntimeError, size: int) -> None:
    """Raise if the error is not a lack of memory, or if a batch of one row does not fit."""
    import torch

    if not isinstance(error, torch.OutOfMemoryError):
        raise error
    if size <= 1:
        raise StageError(
            "out of memory with a batch of one text; use a smaller model, fewer workers on each GPU, or device='cpu'"
        ) from error


def _free() -> None:
    """Release the memory that PyTorch has cached, so that the smaller batch can use it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
