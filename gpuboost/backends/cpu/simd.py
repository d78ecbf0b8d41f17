"""Vector operations that numba does not write by itself, for histograms and sweeps, and a hint to the caches.

LLVM vectorises ``out[i, c] += quantised[j, c]`` over the class axis only behind a test that the two rows do not overlap, and
for a dozen classes the test costs as much as the addition. And it does not turn 64 byte comparisons into the 64 bits that one
instruction gives. Here they are spelled out, in LLVM's own terms, for whatever vector units the machine has.

None of them checks bounds; indices are uint64; arrays are contiguous and one-dimensional.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic as numba_intrinsic

Builder = Callable[..., Any]
cgutils: Any = numba_cgutils


def intrinsic(build: Builder) -> Builder:
    """Make ``build`` callable from compiled loops, without its first argument."""
    made: Builder = numba_intrinsic(build)
    return made


LANES = 4
"""Entries of the vectors that rows of statistics are padded to."""


def padded(n_channels: int) -> int:
    """Return the width of a row of statistics: whole vectors from three channels on."""
    return n_channels if n_channels <= 2 else -(-n_channels // LANES) * LANES


def _vector_at(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Any) -> Any:
    """Return a pointer to the vector that starts at ``array[index]``."""
    made = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(made.data, [index]), vector.as_pointer())


def _vector_of(array_type: Any, n: int) -> Any:
    """Return the type of n neighbours in an array."""
    return ir.VectorType(ir.IntType(array_type.dtype.bitwidth), n)


def _load(builder: Any, pointer: Any, vector: Any) -> Any:
    return builder.load(pointer, align=vector.element.width // 8)


def _widened(builder: Any, value: Any, vector: Any) -> Any:
    """Return integers as those of a type that is as wide or wider."""
    return value if value.type == vector else builder.sext(value, vector)


def _sum_of_lanes(builder: Any, vector: Any) -> Any:
    lanes = [builder.extract_element(vector, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
    return functools.reduce(builder.add, lanes)


@intrinsic
def add_vectors(typing_context: Any, out: Any, i: Any, quantised: Any, j: Any, lanes: Any) -> Any:
    """``out[i:i + n] += quantised[j:j + n]`` for n = 4 * len(lanes), int32 or int64 arrays, ``out`` as wide or wider."""
    signature = types.void(out, types.uint64, quantised, types.uint64, lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, terms = (_vector_of(signature.args[array], LANES * len(signature.args[4])) for array in (0, 2))
        target = _vector_at(context, builder, signature.args[0], arguments[0], arguments[1], sums)
        source = _vector_at(context, builder, signature.args[2], arguments[2], arguments[3], terms)
        added = builder.add(_load(builder, target, sums), _widened(builder, _load(builder, source, terms), sums))
        builder.store(added, target, align=sums.element.width // 8)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def sweep_row(typing_context: Any, edges: Any, histogram: Any, j: Any, lanes: Any) -> Any:
    """``edges -= 2 * histogram[j:j + n]``; return ``sum(abs(edges))``, for n = 4 * len(lanes) up to 16.

    Both arrays are int32 or int64. With entries below 2**30 in magnitude, up to four of them add up in 32 unsigned bits.
    """
    signature = types.int64(edges, histogram, types.uint64, lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, wide = _vector_of(signature.args[1], LANES), ir.VectorType(ir.IntType(64), LANES)
        one, zero = ir.Constant(vector, [1] * LANES), ir.Constant(vector, [0] * LANES)
        total = zero
        for g in range(len(signature.args[3])):
            at = ir.Constant(ir.IntType(64), g * LANES)
            target = _vector_at(context, builder, signature.args[0], arguments[0], at, vector)
            index = builder.add(arguments[2], at)
            source = _vector_at(context, builder, signature.args[1], arguments[1], index, vector)
            twice = builder.shl(_load(builder, source, vector), one)
            edge = builder.sub(_load(builder, target, vector), twice)
            builder.store(edge, target, align=vector.element.width // 8)
            negative = builder.icmp_signed("<", edge, zero)
            total = builder.add(total, builder.select(negative, builder.sub(zero, edge), edge))
        return _sum_of_lanes(builder, total if vector == wide else builder.zext(total, wide))

    return signature, generate


@intrinsic
def move_row(typing_context: Any, left: Any, i: Any, histogram: Any, j: Any, n_vectors: Any) -> Any:
    """``left[i:i + n] += histogram[j:j + n]``; return the sum of what is added, for n = 4 * n_vectors.

    Both arrays are int32 or int64. What is added is not negative.
    """
    signature = types.int64(left, types.uint64, histogram, types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, wide, index = _vector_of(signature.args[0], LANES), ir.VectorType(ir.IntType(64), LANES), ir.IntType(64)
        total = cgutils.alloca_once_value(builder, ir.Constant(wide, [0] * LANES))
        with cgutils.for_range(builder, arguments[4], intp=index) as loop:
            at = builder.mul(loop.index, ir.Constant(index, LANES))
            target = _vector_at(context, builder, signature.args[0], arguments[0], builder.add(arguments[1], at), vector)
            source = _vector_at(context, builder, signature.args[2], arguments[2], builder.add(arguments[3], at), vector)
            moved = _load(builder, source, vector)
            builder.store(builder.add(_load(builder, target, vector), moved), target, align=vector.element.width // 8)
            more = moved if vector == wide else builder.zext(moved, wide)
            builder.store(builder.add(builder.load(total), more), total)
        return _sum_of_lanes(builder, builder.load(total))

    return signature, generate


@intrinsic
def prefetch(typing_context: Any, array: Any, i: Any) -> Any:
    """Tell the caches that ``array[i]`` will be read."""
    signature = types.void(array, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(made.data, [arguments[1]]), byte)
        function = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0i8")
        to_read, keep, data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(hint, [address, to_read, keep, data])
        return context.get_dummy_value()

    return signature, generate


def _differing(width: int) -> Builder:
    @intrinsic
    def differing(typing_context: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
        """Return a uint64 whose bit n says that ``a[i + n] != b[j + n]``; uint8 arrays."""
        signature = types.uint64(a, types.uint64, b, types.uint64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), width)
            one = _vector_at(context, builder, signature.args[0], arguments[0], arguments[1], vector)
            two = _vector_at(context, builder, signature.args[2], arguments[2], arguments[3], vector)
            unequal = builder.icmp_unsigned("!=", builder.load(one, align=1), builder.load(two, align=1))
            bits = builder.bitcast(unequal, ir.IntType(width))
            return bits if width == 64 else builder.zext(bits, ir.IntType(64))

        return signature, generate

    return differing


differing_16, differing_32, differing_64 = _differing(16), _differing(32), _differing(64)


@intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """Return the position of the lowest set bit of a uint64 that is not 0."""
    signature = types.uint64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate
