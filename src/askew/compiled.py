"""What the compiled loops share: how they are compiled, and machine instructions that Numba has no name for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from askew.jit_cache import attach


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function for use without Python's lock, when it is first called, and keep the result on disk."""
    if function is None:
        return lambda wrapped: compiled(wrapped, **options)
    made = njit(nogil=True, **options)(function)
    attach(made, function)
    return made


@intrinsic
def load8(_typing: Any, array: Any, index: Any) -> Any:
    """Eight bytes at any offset of a byte array as one integer; NumPy views would insist on alignment."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(struct.data, [args[1]])
        word = builder.bitcast(pointer, ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(array, types.intp), codegen


@intrinsic
def lowest_bit(_typing: Any, value: Any) -> Any:
    """The index of the lowest set bit of a number that is not zero."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), codegen


@intrinsic
def count_bits(_typing: Any, value: Any) -> Any:
    """How many bits are set."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def mask_of_64(build: Callable[[Any, Any], Any]) -> Any:
    """An intrinsic: 64 bytes in, one bit per byte out. LLVM makes a few SIMD instructions of it."""

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
    """The same byte 64 times."""
    return ir.Constant(_BLOCK_OF_64, [value] * 64)


def between(builder: Any, block: Any, first: str, size: int) -> Any:
    """Which bytes are one of ``size`` characters from ``first`` on."""
    return builder.icmp_unsigned("<", builder.sub(block, each(ord(first))), each(size))
