"""Vector operations that numba does not write by itself, for the histogram loop.

LLVM vectorises ``out[i, c] += q[j, c]`` over the class axis only behind a test that the two rows do not overlap, and for a
dozen classes the test costs as much as the addition. And it does not turn 64 byte comparisons into the 64 bits that one
instruction gives. Here they are spelled out, in LLVM's own terms, for whatever vector units the machine has.

None of them checks bounds; indices are uint64; arrays are contiguous and one-dimensional.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic as numba_intrinsic

Builder = Callable[..., Any]


def intrinsic(build: Builder) -> Builder:
    """Make ``build`` callable from compiled loops, without its first argument."""
    made: Builder = numba_intrinsic(build)
    return made


LANES = 4
"""Entries that `add_four` adds at once."""


def padded(n_channels: int) -> int:
    """Return the width of a row of statistics: whole vectors from three channels on."""
    return n_channels if n_channels <= 2 else -(-n_channels // LANES) * LANES


def _vector_at(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Any) -> Any:
    """Return a pointer to the vector that starts at ``array[index]``."""
    made = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(made.data, [index]), vector.as_pointer())


@intrinsic
def add_four(typing_context: Any, out: Any, i: Any, q: Any, j: Any) -> Any:
    """``out[i:i + 4] += q[j:j + 4]`` for int32 arrays."""
    signature = types.void(out, types.uint64, q, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), LANES)
        target = _vector_at(context, builder, signature.args[0], arguments[0], arguments[1], vector)
        source = _vector_at(context, builder, signature.args[2], arguments[2], arguments[3], vector)
        added = builder.add(builder.load(target, align=4), builder.load(source, align=4))
        builder.store(added, target, align=4)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def sweep_row(typing_context: Any, edges: Any, histogram: Any, j: Any, lanes: Any) -> Any:
    """``edges -= 2 * histogram[j:j + n]``; return ``sum(abs(edges))``, for int32 arrays and n = 4 * len(lanes) up to 16.

    With entries below 2**30 in magnitude, up to four of them add up in 32 unsigned bits.
    """
    signature = types.int64(edges, histogram, types.uint64, lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, wide = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(ir.IntType(64), LANES)
        one, zero = ir.Constant(vector, [1] * LANES), ir.Constant(vector, [0] * LANES)
        total = zero
        for g in range(len(signature.args[3])):
            at = ir.Constant(ir.IntType(64), g * LANES)
            target = _vector_at(context, builder, signature.args[0], arguments[0], at, vector)
            index = builder.add(arguments[2], at)
            source = _vector_at(context, builder, signature.args[1], arguments[1], index, vector)
            twice = builder.shl(builder.load(source, align=4), one)
            edge = builder.sub(builder.load(target, align=4), twice)
            builder.store(edge, target, align=4)
            negative = builder.icmp_signed("<", edge, zero)
            total = builder.add(total, builder.select(negative, builder.sub(zero, edge), edge))
        sums = builder.zext(total, wide)
        score = builder.extract_element(sums, ir.Constant(ir.IntType(32), 0))
        for lane in range(1, LANES):
            score = builder.add(score, builder.extract_element(sums, ir.Constant(ir.IntType(32), lane)))
        return score

    return signature, generate


@intrinsic
def is_empty(typing_context: Any, a: Any, i: Any, n: Any) -> Any:
    """Return whether ``a[i:i + n]`` is all zeros, for an int32 array and n a multiple of 4."""
    signature = types.boolean(a, types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), LANES)
        array, first, n = arguments
        bits = _variable(builder, ir.Constant(vector, [0] * LANES))
        with cgutils.for_range_slice(builder, _int64(0), n, _int64(LANES), inc=True) as (at, _):
            place = _vector_at(context, builder, signature.args[0], array, builder.add(first, at), vector)
            builder.store(builder.or_(builder.load(bits), builder.load(place, align=4)), bits)
        as_one = builder.bitcast(builder.load(bits), ir.IntType(32 * LANES))
        return builder.icmp_unsigned("==", as_one, ir.Constant(as_one.type, 0))

    return signature, generate


@intrinsic
def cut_purity(typing_context: Any, left: Any, start: Any, histogram: Any, j: Any, n: Any) -> Any:
    """``left += histogram[j:j + n]``; return about ``purity(left) + purity(start - left)``.

    For int32 arrays without negative entries, and n a multiple of 4. "About" because the sums are not taken in the order of the
    definition (`gpuboost.backends.base.Backend.expand`).
    """
    signature = types.float64(left, start, histogram, types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, numbers = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(ir.DoubleType(), LANES)
        lefts, starts, histograms, first, n = arguments
        sums = [_variable(builder, ir.Constant(numbers, [0.0] * LANES)) for _ in range(4)]
        with cgutils.for_range_slice(builder, _int64(0), n, _int64(LANES), inc=True) as (at, _):
            target = _vector_at(context, builder, signature.args[0], lefts, at, vector)
            whole = _vector_at(context, builder, signature.args[1], starts, at, vector)
            source = _vector_at(context, builder, signature.args[2], histograms, builder.add(first, at), vector)
            moved = builder.add(builder.load(target, align=4), builder.load(source, align=4))
            builder.store(moved, target, align=4)
            rest = builder.sub(builder.load(whole, align=4), moved)
            for squares, weight, entries in ((*sums[:2], moved), (*sums[2:], rest)):
                x = builder.sitofp(entries, numbers)
                builder.store(builder.fadd(builder.load(squares), builder.fmul(x, x)), squares)
                builder.store(builder.fadd(builder.load(weight), x), weight)
        left_squares, left_weight, right_squares, right_weight = (_added_up(builder, builder.load(s)) for s in sums)
        sides = ((left_squares, left_weight), (right_squares, right_weight))
        one = ir.Constant(ir.DoubleType(), 1.0)  # the least weight, where there is any
        shares = [builder.fdiv(s, builder.select(builder.fcmp_ordered(">", w, one), w, one)) for s, w in sides]
        return builder.fadd(*shares)

    return signature, generate


def _variable(builder: Any, value: Any) -> Any:
    """Return a pointer to a new variable."""
    new: Any = cgutils.alloca_once_value
    return new(builder, value)


def _int64(value: int) -> Any:
    return ir.Constant(ir.IntType(64), value)


def _added_up(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's entries: of its halves first."""
    n = vector.type.count
    while n > 1:
        n //= 2
        undefined = ir.Constant(vector.type, ir.Undefined)
        halves = [ir.Constant(ir.VectorType(ir.IntType(32), n), list(range(at, at + n))) for at in (0, n)]
        low, high = (builder.shuffle_vector(vector, undefined, half) for half in halves)
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


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
