"""Three vector operations that numba does not write by itself, for the histogram loop.

LLVM vectorises ``out[i, c] += q[j, c]`` over the class axis only behind a test that the two rows do not overlap, and for a
dozen classes the test costs as much as the addition. And it does not turn 64 byte comparisons into the 64 bits that one
instruction gives. Here they are spelled out, in LLVM's own terms, for whatever vector units the machine has.

None of them checks bounds; indices are uint64; arrays are contiguous and one-dimensional.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

LANES = 4
"""Entries that `add_four` adds at once."""


def _vector_at(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Any) -> Any:
    """Return a pointer to the vector that starts at ``array[index]``."""
    made = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(made.data, [index]), vector.as_pointer())


@intrinsic
def add_four(typing_context: Any, out: Any, i: Any, q: Any, j: Any) -> Any:
    """``out[i:i + 4] += q[j:j + 4]`` for int32 arrays; ``q`` must not change while the calling function runs."""
    signature = types.void(out, types.uint64, q, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), LANES)
        target = _vector_at(context, builder, signature.args[0], arguments[0], arguments[1], vector)
        source = _vector_at(context, builder, signature.args[2], arguments[2], arguments[3], vector)
        addend = builder.load(source, align=4)
        addend.set_metadata("invariant.load", builder.module.add_metadata([]))  # may stay in a register
        builder.store(builder.add(builder.load(target, align=4), addend), target, align=4)
        return context.get_dummy_value()

    return signature, generate


def _differing(width: int) -> Any:
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
