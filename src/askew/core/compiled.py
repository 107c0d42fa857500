"""Compile functions with Numba and cache them on disk; intrinsics for machine instructions that Numba lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from askew.core.jit_cache import attach


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function at its first call, to run without the GIL, and cache the machine code on disk."""
    if function is None:
        return lambda wrapped: compiled(wrapped, **options)
    dispatcher = njit(nogil=True, **options)(function)
    attach(dispatcher, function)
    return dispatcher


@intrinsic
def load8(_typing: Any, array: Any, index: Any) -> Any:
    """Read eight bytes at any offset of a byte array as one integer. A NumPy view would require alignment."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(struct.data, [args[1]])
        word = builder.bitcast(pointer, ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(array, types.intp), codegen


@intrinsic
def lowest_bit(_typing: Any, value: Any) -> Any:
    """Return the index of the lowest set bit of a nonzero number."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), codegen


@intrinsic
def count_bits(_typing: Any, value: Any) -> Any:
    """Count the set bits of a number."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def mask_of_64(build: Callable[[Any, Any], Any]) -> Any:
    """Make an intrinsic that maps 64 bytes to a 64-bit mask. LLVM compiles it to a few SIMD instructions."""

    @intrinsic
    def mask(_typing: Any, array: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            struct = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = builder.gep(struct.data, [args[1]])
            block = builder.load(builder.bitcast(pointer, _BLOCK_OF_64.as_pointer()), align=1)
            return builder.bitcast(build(builder, block), ir.IntType(64))

        return types.uint64(array, types.intp), codegen

    return mask


_BLOCK_OF_64 = ir.VectorType(ir.IntType(8), 64)


def each(value: int) -> Any:
    """Make a vector of 64 equal bytes."""
    return ir.Constant(_BLOCK_OF_64, [value] * 64)


def between(builder: Any, block: Any, first: str, size: int) -> Any:
    """Test each byte of a block: is it one of the ``size`` characters that start at ``first``?"""
    return builder.icmp_unsigned("<", builder.sub(block, each(ord(first))), each(size))


# Sorting functions for compiled code. For each data type, NumPy's sorts compile for seconds; these compile faster.

_FEW = 16
_DEEPEST = 64


@compiled
def sort_ascending(values: Any) -> None:
    """Sort numbers in place in ascending order: quicksort, with insertion sort for short parts."""
    lows, right = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    lows[0], right[0], open_parts = 0, len(values) - 1, 1
    while open_parts > 0:
        open_parts -= 1
        low, high = lows[open_parts], right[open_parts]
        while high - low > _FEW:
            i = _partition(values, low, high)
            # Push the longer part on the stack: its depth is then at most the binary logarithm of the length.
            if i - low > high - i:
                lows[open_parts], right[open_parts] = low, i - 1
                low = i
            else:
                lows[open_parts], right[open_parts] = i, high
                high = i - 1
            open_parts += 1
        for i in range(low + 1, high + 1):
            value, place = values[i], i
            while place > low and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value


@compiled
def _partition(values: Any, low: int, high: int) -> int:
    """Partition values around the median of three, and return where the larger ones begin. Neither part is empty."""
    middle = (low + high) >> 1
    if values[middle] < values[low]:
        values[middle], values[low] = values[low], values[middle]
    if values[high] < values[middle]:
        values[high], values[middle] = values[middle], values[high]
        if values[middle] < values[low]:
            values[middle], values[low] = values[low], values[middle]
    pivot = values[middle]
    i, j = low, high
    while i <= j:
        while values[i] < pivot:
            i += 1
        while pivot < values[j]:
            j -= 1
        if i <= j:
            values[i], values[j] = values[j], values[i]
            i += 1
            j -= 1
    return i
