"""Compile functions with Numba and cache them on disk; intrinsics for machine instructions that Numba lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


@compiled
def sort_ascending(values: Any) -> None:
    """Sort numbers in place in ascending order: Shellsort, because NumPy's sorts compile for seconds per data type."""
    gap = 1
    while gap < len(values):
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = max(1, gap * 4 // 9)
        for i in range(gap, len(values)):
            value, place = values[i], i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
